from __future__ import annotations

import runpy
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from model_server import Answer, ModelServer
from pydantic_ai import ModelResponse, TextPart
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import FunctionModel

from toolcrib.agent import Agent
from toolcrib.engines._native import KINDS
from toolcrib.engines.llm import LLMEngine
from toolcrib.engines.local import LocalEngine
from toolcrib.engines.scripted import ScriptedEngine
from toolcrib.errors import ToolcribWarning
from toolcrib.events import Event, ModelReplied, TextDelta, ToolFinished
from toolcrib.toolset import Toolset
from toolcrib.types import Message, NativeTool, Reply

ROOT = Path(__file__).parents[1]
KEY = "sk-very-secret-key"
HELLO = [Message("user", "hello")]
SAFE = [NativeTool.WEB_SEARCH, NativeTool.WEB_FETCH, NativeTool.IMAGE_GENERATION, NativeTool.FILE_SEARCH]
DANGEROUS = [NativeTool.CODE_EXECUTION, NativeTool.COMPUTER_USE]


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Searching:
    """An engine with one native tool, which keeps what it was asked with."""

    model = "searching"
    native_tools = frozenset({NativeTool.WEB_SEARCH})

    def __init__(self) -> None:
        self.asked: list[tuple[NativeTool, ...]] = []

    async def acomplete(self, messages: Any, tools: Toolset, *, native_tools: Any = None) -> Reply:
        self.asked.append(native_tools)
        return Reply("found")


class Plain:
    """An engine of somebody who never heard of native tools."""

    model = "plain"

    async def acomplete(self, messages: Any, tools: Toolset) -> Reply:
        return Reply("hi")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


def openai(server: ModelServer, **options: Any) -> LLMEngine:
    return LLMEngine("openai-responses:gpt-5.4-mini", base_url=server.base_url, api_key=KEY, **options)


def claude(server: ModelServer) -> LLMEngine:
    return LLMEngine("anthropic:claude-haiku-4-5", base_url=server.root, api_key=KEY)


def gemini(server: ModelServer) -> LLMEngine:
    return LLMEngine("google:gemini-2.5-flash", base_url=server.root, api_key=KEY)


# -- what an agent is given


@pytest.mark.parametrize(
    ("given", "understood"),
    [
        ([NativeTool.WEB_SEARCH], (NativeTool.WEB_SEARCH,)),
        (["web_search"], (NativeTool.WEB_SEARCH,)),
        ("web_search", (NativeTool.WEB_SEARCH,)),
        (NativeTool.WEB_SEARCH, (NativeTool.WEB_SEARCH,)),
        (["web_search", NativeTool.WEB_SEARCH], (NativeTool.WEB_SEARCH,)),
        (iter(["web_search"]), (NativeTool.WEB_SEARCH,)),
        ((), ()),
    ],
)
def test_native_tools_may_be_given_by_name(given, understood):
    assert Agent(Searching(), native_tools=given).native_tools == understood


@pytest.mark.parametrize("given", [["search"], "", [""], ["WEB_SEARCH"], [None], [add], [7]])
def test_an_unknown_native_tool_is_refused_with_those_there_are(given):
    with pytest.raises(ValueError, match=r"unknown native tool .*; there are web_search, web_fetch"):
        Agent(Searching(), native_tools=given)


@pytest.mark.parametrize("tool", DANGEROUS)
def test_native_tools_that_act_must_be_allowed(tool):
    with pytest.raises(ValueError, match=f"{tool.value} can do harm: pass allow_dangerous_native_tools=True"):
        Agent(Searching(), native_tools=["web_search", tool])


def test_native_tools_that_act_may_be_allowed(server):
    server.say("42")
    agent = Agent(openai(server), native_tools=["code_execution"], allow_dangerous_native_tools=True)
    agent.run("6 * 7?")
    assert [tool["type"] for tool in server.bodies[0]["tools"]] == ["code_interpreter"]


@pytest.mark.parametrize("tool", [*SAFE, NativeTool.MAPS])
def test_native_tools_that_look_things_up_need_no_permission(tool):
    with pytest.warns(ToolcribWarning) if tool is not NativeTool.WEB_SEARCH else warnings.catch_warnings():
        assert Agent(Searching(), native_tools=[tool]).native_tools == (tool,)


# -- engines that have them, and engines that have not


def test_an_engine_is_asked_with_the_native_tools_it_has():
    engine = Searching()
    agent = Agent(engine, native_tools=["web_search"])
    agent.run("go")
    agent.chat("go")
    list(agent.stream("go"))
    agent.run("go", tools=[])
    assert engine.asked == [(NativeTool.WEB_SEARCH,)] * 4


def test_an_engine_is_not_asked_with_native_tools_when_there_are_none():
    engine = Searching()
    Agent(engine).run("go")
    assert engine.asked == [None]


@pytest.mark.parametrize("engine", [ScriptedEngine(["hi", "hi"]), Plain()])
def test_what_an_engine_does_not_have_is_left_out_with_one_warning(engine):
    with pytest.warns(ToolcribWarning, match=f"{engine.model} has no native web_search, web_fetch") as told:
        agent = Agent(engine, native_tools=["web_search", "web_fetch"])
    assert len(told) == 1
    assert told[0].filename == __file__
    assert agent.run("go").text() == agent.run("go").text() == "hi"


def test_the_local_model_has_none():
    assert not hasattr(LocalEngine, "native_tools")


def test_what_an_engine_has_is_kept_when_the_rest_is_left_out():
    engine = Searching()
    with pytest.warns(ToolcribWarning, match="no native maps"):
        agent = Agent(engine, native_tools=["maps", "web_search"])
    agent.run("go")
    assert engine.asked == [(NativeTool.WEB_SEARCH,)]


def test_another_engine_is_asked_what_it_has():
    agent = Agent(Searching(), native_tools=["web_search"])
    agent.engine = Plain()
    with pytest.warns(ToolcribWarning, match="plain has no native web_search"):
        assert agent.run("go").text() == "hi"
    agent.run("go")
    agent.engine = engine = Searching()
    agent.run("go")
    assert engine.asked == [(NativeTool.WEB_SEARCH,)]


def test_native_tools_are_no_tools_of_the_agent():
    engine = ScriptedEngine(["hi"])
    with pytest.warns(ToolcribWarning):
        agent = Agent(engine, [add], native_tools=["web_search"])
    agent.run("go")
    assert agent.tools == [add]
    assert engine.requests[0]["tools"] == ["add"]


# -- providers


@pytest.mark.parametrize(
    ("tool", "sent"),
    [
        (NativeTool.WEB_SEARCH, "web_search"),
        (NativeTool.IMAGE_GENERATION, "image_generation"),
        (NativeTool.FILE_SEARCH, "file_search"),
    ],
)
def test_openai_is_sent_the_native_tool_beside_the_tools(server, tool, sent):
    server.say("found")
    outcome = Agent(openai(server, file_stores=["vs_1"]), [add], native_tools=[tool]).run("go")
    assert outcome.text() == "found"
    tools = {one["type"]: one for one in server.bodies[0]["tools"]}
    assert set(tools) == {sent, "function"}
    assert tools["function"]["name"] == "add"
    if tool is NativeTool.FILE_SEARCH:
        assert tools[sent]["vector_store_ids"] == ["vs_1"]


def test_anthropic_is_sent_the_native_tools_beside_the_tools(server):
    server.say("found")
    Agent(claude(server), [add], native_tools=["web_search", "web_fetch"]).run("go")
    assert {tool["name"] for tool in server.bodies[0]["tools"]} == {"add", "web_search", "web_fetch"}
    assert any(tool.get("type", "").startswith("web_search_2") for tool in server.bodies[0]["tools"])


def test_anthropic_is_sent_the_native_tool_when_it_streams(server):
    server.say("found it")
    events = list(Agent(claude(server), native_tools=["web_search"]).stream("go"))
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "found it"
    assert [tool["name"] for tool in server.bodies[0]["tools"]] == ["web_search"]


def test_google_is_sent_the_native_tool(server):
    server.say("found")
    Agent(gemini(server), native_tools=["web_search"]).run("go")
    assert server.bodies[0]["tools"] == [{"googleSearch": {}}]


def test_gemini_before_3_keeps_the_tools_of_the_agent_when_it_cannot_have_both(server):
    server.say("found")
    agent = Agent(gemini(server), [add], native_tools=["web_search"])
    with pytest.warns(ToolcribWarning, match="takes no native tools beside others, so web_search is left out"):
        assert agent.run("go").text() == "found"
    [sent] = server.bodies[0]["tools"]
    assert [declared["name"] for declared in sent["functionDeclarations"]] == ["add"]


def test_what_a_provider_runs_makes_no_events_of_tools(server):
    search = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "q"},
    }
    server.script.append(Answer("found", output=(search,)))
    events: list[Event] = []
    Agent(openai(server), [add], native_tools=["web_search"], on_event=events.append).run("go")
    assert not [event for event in events if isinstance(event, ToolFinished)]
    [replied] = [event for event in events if isinstance(event, ModelReplied)]
    assert (replied.reply.text, replied.reply.calls) == ("found", ())


def test_a_conversation_with_native_tools_in_it_goes_on(server):
    search = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "q"},
    }
    server.script.append(Answer("found", output=(search,)))
    server.say("and more")
    agent = Agent(openai(server), native_tools=["web_search"])
    agent.chat("go")
    assert agent.chat("go on").text() == "and more"
    assert "found" in str(server.bodies[1]["input"])


@pytest.mark.parametrize("stream", [False, True])
def test_a_provider_that_pauses_is_asked_to_go_on(server, stream):
    server.say("Searching.", finish="pause_turn", usage=(100, 10))
    server.say(" Still.", finish="pause_turn", usage=(100, 10))
    server.say(" Found.", usage=(100, 10))
    agent = Agent(claude(server), native_tools=["web_search"])
    events = list(agent.stream("go")) if stream else []
    outcome = events[-1].envelope if stream else agent.run("go")
    assert outcome.text() == "Searching. Still. Found."
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == (outcome.text() if stream else "")
    assert (outcome.metadata.turns, outcome.metadata.input_tokens) == (1, 300)
    assert [message["role"] for message in server.bodies[2]["messages"]] == ["user", "assistant"]
    assert len(outcome.messages) == 2


def test_a_provider_that_only_pauses_is_given_up(server):
    server.say("Hm.", finish="pause_turn")
    outcome = Agent(claude(server), native_tools=["web_search"]).run("go")
    assert outcome.error
    assert "paused" in outcome.error.message
    assert len(server.requests) < 50


# -- models


@pytest.mark.parametrize(
    ("name", "tools"),
    [
        ("openai:gpt-5.4-mini", set()),
        ("openai:gpt-4o-search-preview", {NativeTool.WEB_SEARCH}),
        ("openai-responses:gpt-5.4-mini", {"web_search", "code_execution", "image_generation"}),
        ("anthropic:claude-haiku-4-5", {"web_search", "web_fetch", "code_execution"}),
        ("google:gemini-2.5-flash", {"web_search", "web_fetch", "code_execution"}),
    ],
)
def test_a_model_says_which_it_has(name, tools):
    assert LLMEngine(name, api_key=KEY).native_tools == tools


@pytest.mark.parametrize("stores", [["vs_1"], "vs_1"])
def test_file_search_is_there_when_there_is_something_to_search(server, stores):
    assert NativeTool.FILE_SEARCH in openai(server, file_stores=stores).native_tools
    server.say("found")
    Agent(openai(server, file_stores=stores), native_tools=["file_search"]).run("go")
    assert server.bodies[0]["tools"][0]["vector_store_ids"] == ["vs_1"]


def test_file_search_without_stores_is_left_out_with_a_hint(server):
    with pytest.warns(ToolcribWarning, match=r"no native file_search.*needs LLMEngine\(\.\.\., file_stores="):
        Agent(openai(server), native_tools=["file_search"])


def test_a_model_that_only_passes_on_has_none():
    model = FunctionModel(lambda messages, info: ModelResponse([TextPart("hi")]))  # noqa: ARG005
    assert LLMEngine(FallbackModel(model, model)).native_tools == frozenset()
    assert NativeTool.WEB_SEARCH in LLMEngine(model).native_tools


def test_every_native_tool_that_has_a_kind_is_known_to_the_provider_layer():
    from pydantic_ai.native_tools import NATIVE_TOOL_TYPES

    assert set(KINDS.values()) <= set(NATIVE_TOOL_TYPES)


# -- the table


def test_the_documents_table_is_what_the_code_says():
    script = runpy.run_path(str(ROOT / "scripts" / "native_tools.py"))
    page = (ROOT / "docs" / "native-tools.md").read_text(encoding="utf-8")
    assert script["BLOCK"].search(page)[0] == script["table"](), "run scripts/native_tools.py"
