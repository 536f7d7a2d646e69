from __future__ import annotations

import asyncio
import gc
import signal
import threading
import warnings
from collections.abc import Iterable
from contextlib import aclosing
from typing import Any

import pytest

from toolcrib.agent import Agent
from toolcrib.engines.llm import LLMEngine
from toolcrib.engines.scripted import ScriptedEngine
from toolcrib.errors import EngineError, ToolcribWarning, ToolNameError
from toolcrib.events import Event, RunFinished, RunStarted, TextDelta, ToolFinished, ToolStarted
from toolcrib.limits import Limits
from toolcrib.sources.skill import BaseSkill
from toolcrib.tools import Tool, tool, tool_from_function
from toolcrib.toolset import Toolset
from toolcrib.types import Envelope, Reply, ToolCall, ToolContext, Usage


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def slow_add(a: int, b: int) -> int:
    """Add two numbers, elsewhere."""
    await asyncio.sleep(0)
    return a + b


def calling(name: str, **arguments: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(name, arguments)]


def answers(envelope: Envelope) -> list[tuple[str, str]]:
    return [(m.result.kind, m.content) for m in envelope.messages if m.result is not None]


def error_of(envelope: Envelope) -> str:
    return envelope.error.type if envelope.error else ""


class Broken:
    """A model that cannot be reached."""

    model = "broken"

    async def acomplete(self, messages: Any, tools: Any) -> Reply:
        raise EngineError("no route to the model")


# -- what an agent is made of


@pytest.mark.parametrize("value", ["Run", "", None, True, []])
def test_async_tools_is_run_or_raise(value):
    with pytest.raises(ValueError, match="async_tools must be"):
        Agent(ScriptedEngine([]), async_tools=value)


@pytest.mark.parametrize("engine", [None, object(), 3])
def test_an_engine_without_acomplete_is_refused(engine):
    with pytest.raises(TypeError, match="acomplete"):
        Agent(engine)


def test_an_engine_can_be_named(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    agent = Agent("openai:gpt-5.4-mini")
    assert isinstance(agent.engine, LLMEngine)
    assert agent.engine.model == LLMEngine("openai:gpt-5.4-mini").model


def test_a_name_that_cannot_be_a_tools_is_refused():
    with pytest.raises(ToolNameError):
        Agent(ScriptedEngine([]), name="")


def test_an_async_listener_is_refused():
    async def listen(event: Event) -> None: ...

    with pytest.raises(TypeError, match="plain function"):
        Agent(ScriptedEngine([]), on_event=listen)


def test_a_prompt_is_text():
    with pytest.raises(TypeError, match="a prompt is text, not dict"):
        Agent(ScriptedEngine(["hi"])).run({"task": "?"})


def test_every_kind_of_entry_works_in_one_agent():
    @tool
    def marked(x: int) -> int:
        """Return x."""
        return x

    class Skill(BaseSkill):
        def _look(self) -> str:
            """Look."""
            return "seen"

        def get_tools(self) -> list[Tool]:
            return [tool_from_function(self._look)]

    class Kit:
        def as_tools(self) -> Iterable[Tool]:
            return [Tool.from_schema("kit.echo", "Echo.", {"type": "object", "properties": {}}, lambda: "echo")]

    helper = Agent(ScriptedEngine(["helped"]), name="helper")
    entries = [add, Tool.wrap(add, name="plus"), marked, helper, Kit(), Skill(), [slow_add], Toolset([abs_of])]
    names = ["add", "plus", "marked", "helper", "kit.echo", "_look", "slow_add", "abs_of"]
    two, none = {"a": 1, "b": 1}, {}
    given = [two, two, {"x": 3}, {"task": "help"}, none, none, two, {"x": -4}]
    engine = ScriptedEngine([list(zip(names, given, strict=True)), "done"])
    envelope = Agent(engine, entries).run("go")
    assert engine.requests[0]["tools"] == names
    assert [text for _, text in answers(envelope)] == ["2", "2", "3", "helped", "echo", "seen", "2", "4"]


def abs_of(x: int) -> int:
    """Return x without its sign."""
    return abs(x)


# -- one task


@pytest.mark.parametrize("ask", [Agent.run, Agent.__call__, Agent.chat])
def test_the_sync_surfaces_return_the_outcome(ask):
    engine = ScriptedEngine([calling("add", a=2, b=3), calling("slow_add", a=5, b=1), "six"])
    envelope = ask(Agent(engine, [add, slow_add], system="Be brief."), "2+3+1?")
    assert (envelope.text(), envelope.ok, envelope.metadata.cost_usd) == ("six", True, 0.0)
    assert engine.requests[0]["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "2+3+1?"},
    ]
    assert answers(envelope) == [("ok", "5"), ("ok", "6")]


@pytest.mark.anyio
@pytest.mark.parametrize("ask", [Agent.arun, Agent.achat])
async def test_the_async_surfaces_run_async_tools_on_the_callers_loop(ask):
    here = asyncio.get_running_loop()

    async def where() -> bool:
        return asyncio.get_running_loop() is here

    envelope = await ask(Agent(ScriptedEngine([calling("where"), "ok"]), [where]), "go")
    assert answers(envelope) == [("ok", "true")]


@pytest.mark.anyio
async def test_a_sync_run_works_inside_a_running_loop():
    engine = ScriptedEngine([calling("add", a=1, b=1), calling("slow_add", a=2, b=1), "three"])
    assert Agent(engine, [add, slow_add]).run("go").text() == "three"


def test_a_model_that_cannot_be_reached_is_an_outcome():
    envelope = Agent(Broken()).run("go")
    assert (envelope.ok, error_of(envelope), envelope.text()) == (False, "EngineError", "")


def test_a_model_corrects_itself_from_the_answer_it_gets():
    engine = ScriptedEngine([calling("add", a="one", b=2), calling("add", a=1, b=2), "three"])
    envelope = Agent(engine, [add]).run("1+2?")
    assert [kind for kind, _ in answers(envelope)] == ["invalid_arguments", "ok"]
    assert "a" in engine.requests[1]["messages"][-1]["content"]


def test_deps_reach_the_tools_of_the_run():
    def whoami(context: ToolContext[dict[str, str]]) -> str:
        return context.deps["user"]

    agent = Agent(ScriptedEngine([calling("whoami"), "ok", calling("whoami"), "ok"]), [whoami])
    said = [answers(agent.run("who?", deps={"user": name}))[0] for name in ("ada", "bob")]
    assert said == [("ok", "ada"), ("ok", "bob")]


def test_limits_and_executor_hold_for_every_call():
    seen: list[str] = []

    class Spy:
        async def run(self, tool: Tool, arguments: Any, call: ToolCall) -> Any:
            seen.append(f"{tool.name} {dict(arguments)}")
            return "spied"

    engine = ScriptedEngine([calling("add", a=1, b=2)] * 2)
    envelope = Agent(engine, [add], limits=Limits(max_turns=2), executor=Spy()).run("go")
    assert seen == ["add {'a': 1, 'b': 2}"]
    assert error_of(envelope) == "max_turns"
    assert answers(envelope)[0] == ("ok", "spied")


# -- tools of a run


def test_tools_of_a_run_replace_the_agents_for_that_run():
    engine = ScriptedEngine(["a", "b", "c"])
    agent = Agent(engine, [add])
    agent.run("1", tools=[slow_add])
    agent.run("2", tools=[])
    agent.run("3")
    assert [request["tools"] for request in engine.requests] == [["slow_add"], [], ["add"]]
    assert agent.tools == [add]


def test_a_tool_the_run_does_not_have_is_not_found():
    engine = ScriptedEngine([calling("add", a=1, b=1), "ok"])
    envelope = Agent(engine, [add]).run("go", tools=[])
    assert answers(envelope)[0][0] == "not_found"
    assert answers(envelope)[0][1].startswith("Tool 'add' not found.")


@pytest.mark.anyio
async def test_concurrent_runs_with_different_tools_never_see_each_others():
    both_in = asyncio.Barrier(2)

    class Meeting:
        """Each run is held at its first request until the other is there as well."""

        model = "meeting"

        def __init__(self) -> None:
            self.offered: dict[str, list[tuple[str, ...]]] = {}

        async def acomplete(self, messages: Any, tools: Toolset) -> Reply:
            prompt = messages[0].content
            offered = self.offered.setdefault(prompt, [])
            offered.append(tools.names)
            if len(offered) > 1:
                return Reply(messages[-2].content + messages[-1].content)
            await both_in.wait()
            return Reply("", (ToolCall("1", "one"), ToolCall("2", "two")))

    def one() -> str:
        return "from one"

    def two() -> str:
        return "from two"

    engine = Meeting()
    agent = Agent(engine, [add])
    async with asyncio.timeout(10):
        first, second = await asyncio.gather(agent.arun("A", tools=[one]), agent.arun("B", tools=[two]))
    assert engine.offered == {"A": [("one",)] * 2, "B": [("two",)] * 2}
    assert [kind for kind, _ in answers(first)] == ["ok", "not_found"]
    assert [kind for kind, _ in answers(second)] == ["not_found", "ok"]
    assert agent.tools == [add]


def test_tools_are_the_entries_as_given_and_may_be_set_and_changed():
    engine = ScriptedEngine(["1", "2", "3", "4"])
    agent = Agent(engine, (add,))
    agent.run("as given")
    agent.tools.append(slow_add)
    agent.run("appended")
    agent.tools[0] = abs_of
    agent.run("replaced in place")
    agent.tools = [add]
    agent.run("set")
    shown = [request["tools"] for request in engine.requests]
    assert shown == [["add"], ["add", "slow_add"], ["abs_of", "slow_add"], ["add"]]
    assert agent.tools == [add]


@pytest.mark.anyio
async def test_a_change_of_tools_is_seen_by_async_runs_too():
    engine = ScriptedEngine(["1", "2"])
    agent = Agent(engine, [add])
    await agent.arun("as given")
    agent.tools.clear()
    await agent.arun("cleared")
    assert [request["tools"] for request in engine.requests] == [["add"], []]


def test_the_list_given_stays_the_callers():
    mine = [add]
    agent = Agent(ScriptedEngine(["hi"]), mine)
    agent.tools.append(slow_add)
    assert mine == [add]


def test_tools_that_did_not_change_are_read_once():
    asked: list[int] = []

    class Kit:
        def as_tools(self) -> Iterable[Tool]:
            asked.append(1)
            return [Tool(add)]

    agent = Agent(ScriptedEngine(["1", "2"]), [Kit()])
    agent.run("a")
    agent.run("b")
    assert len(asked) == 1


def test_collisions_are_told_when_tools_are_given():
    other = Tool(slow_add, name="add")
    with pytest.warns(UserWarning, match="add"):
        agent = Agent(ScriptedEngine(["hi"]), [add, other])
    with pytest.warns(UserWarning, match="add"):
        agent.tools = [add, other]
    agent.run("quiet now")


def test_an_entry_that_is_no_tool_is_refused_when_given():
    with pytest.raises(TypeError):
        Agent(ScriptedEngine([]), [3])
    agent = Agent(ScriptedEngine([]), [add])
    with pytest.raises(TypeError):
        agent.tools = [None]
    assert agent.tools == [add]


def test_a_toolset_keeps_its_limits():
    engine = ScriptedEngine([calling("add", a=1, b=1)])
    agent = Agent(engine, Toolset([add], limits=Limits(max_turns=1)))
    assert error_of(agent.run("go")) == "max_turns"


def test_a_provider_may_use_the_background_loop_to_list_its_tools():
    class Remote:
        """Lists its tools by way of a sync run, as a connection would."""

        def as_tools(self) -> Iterable[Tool]:
            return [Tool(add)] if Agent(ScriptedEngine(["up"])).run("up?").ok else []

    engine = ScriptedEngine(["a", "b"])
    agent = Agent(engine)
    agent.run("go", tools=[Remote()])
    asyncio.run(agent.arun("go", tools=[Remote()]))
    assert [request["tools"] for request in engine.requests] == [["add"], ["add"]]


# -- async functions on the sync surfaces


def drained(agent: Agent, prompt: str) -> list[Event]:
    return list(agent.stream(prompt))


@pytest.mark.parametrize("ask", [Agent.run, Agent.chat, drained])
def test_async_functions_can_be_refused_on_the_sync_surfaces(ask):
    ran: list[str] = []

    def note() -> None:
        ran.append("note")

    engine = ScriptedEngine([[("note", {}), ("slow_add", {"a": 1, "b": 1})], "two"])
    agent = Agent(engine, [note, slow_add], async_tools="raise")
    with pytest.raises(
        ValueError, match="Tool 'slow_add' is an async function; use arun/achat/astream, or async_tools=\"run\""
    ):
        ask(agent, "1+1?")
    assert ran == []
    assert agent.messages == ()
    agent.reset()  # the turn is over


def test_having_an_async_function_is_no_mistake_until_it_is_called():
    engine = ScriptedEngine([calling("add", a=1, b=1), "two"])
    assert Agent(engine, [add, slow_add], async_tools="raise").run("1+1?").text() == "two"


def test_tools_of_a_source_and_agents_are_never_refused():
    remote = Tool(slow_add).replace(origin="mcp:math", name="remote")
    helper = Agent(ScriptedEngine(["helped"]), name="helper")
    engine = ScriptedEngine([[("remote", {"a": 1, "b": 1}), ("helper", {"task": "?"})], "done"])
    envelope = Agent(engine, [remote, helper], async_tools="raise").run("go")
    assert answers(envelope) == [("ok", "2"), ("ok", "helped")]


@pytest.mark.anyio
async def test_the_async_surface_runs_async_functions_whatever_the_sync_one_does():
    engine = ScriptedEngine([calling("slow_add", a=1, b=1), "two"])
    assert (await Agent(engine, [slow_add], async_tools="raise").arun("1+1?")).text() == "two"


# -- a conversation


def test_a_chat_keeps_the_conversation_and_a_run_does_not():
    engine = ScriptedEngine([calling("add", a=1, b=1), "two", "aside", "four", "fresh"])
    agent = Agent(engine, [add], system="Be brief.")
    assert agent.messages == ()
    agent.chat("1+1?")
    agent.run("an aside")
    agent.chat("doubled?")
    roles = ["system", "user", "assistant", "tool", "assistant"]
    assert [m["role"] for m in engine.requests[3]["messages"]] == [*roles, "user"]
    assert [m.role for m in agent.messages] == [*roles, "user", "assistant"]
    agent.reset()
    assert agent.messages == ()
    agent.chat("hello")
    assert [m["content"] for m in engine.requests[4]["messages"]] == ["Be brief.", "hello"]


@pytest.mark.anyio
async def test_sync_and_async_turns_are_one_conversation():
    engine = ScriptedEngine(["one", "two"])
    agent = Agent(engine)
    await agent.achat("first")
    agent.chat("second")
    assert [m.content for m in agent.messages] == ["first", "one", "second", "two"]


def test_a_conversation_goes_on_after_a_turn_that_failed():
    engine = ScriptedEngine([calling("add", a=1, b=1), EngineError("overloaded"), "two"])
    agent = Agent(engine, [add])
    assert not agent.chat("1+1?").ok
    assert agent.chat("again, please").text() == "two"
    assert [m["role"] for m in engine.requests[2]["messages"]] == ["user", "assistant", "tool", "user"]


def test_a_conversation_goes_on_after_a_turn_ran_out():
    engine = ScriptedEngine([calling("add", a=1, b=1), "two"])
    agent = Agent(engine, [add], limits=Limits(max_turns=1))
    assert error_of(agent.chat("1+1?")) == "max_turns"
    assert agent.chat("and?").ok
    assert [m["role"] for m in engine.requests[1]["messages"]] == ["user", "assistant", "tool", "user"]


@pytest.mark.anyio
async def test_a_second_turn_at_the_same_time_is_refused():
    release, asked = asyncio.Event(), asyncio.Event()

    class Slow:
        model = "slow"

        async def acomplete(self, messages: Any, tools: Any) -> Reply:
            asked.set()
            await release.wait()
            return Reply("done")

    agent = Agent(Slow())
    first = asyncio.create_task(agent.achat("first"))
    await asked.wait()
    for refused in (agent.achat("second"), asyncio.to_thread(agent.chat, "third"), asyncio.to_thread(agent.reset)):
        with pytest.raises(RuntimeError, match="in the middle of a chat turn"):
            await refused
    release.set()
    assert (await first).text() == "done"
    assert (await agent.achat("fourth")).ok
    assert [m.content for m in agent.messages if m.role == "user"] == ["first", "fourth"]


@pytest.mark.anyio
async def test_a_turn_that_is_cancelled_is_forgotten():
    began = asyncio.Event()

    async def hang() -> None:
        began.set()
        await asyncio.Event().wait()

    agent = Agent(ScriptedEngine(["hi", calling("hang"), "back"]), [hang])
    await agent.achat("hello")
    turn = asyncio.create_task(agent.achat("hang"))
    await began.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    await agent.achat("still there?")
    assert [m.content for m in agent.messages] == ["hello", "hi", "still there?", "back"]


# -- events


@pytest.mark.parametrize("surface", ["stream", "astream"])
def test_a_stream_is_the_events_of_a_run(surface):
    agent = Agent(ScriptedEngine([calling("add", a=1, b=1), "it is two"]), [add])

    async def collected() -> list[Event]:
        return [event async for event in agent.astream("1+1?")]

    events = list(agent.stream("1+1?")) if surface == "stream" else asyncio.run(collected())
    assert isinstance(events[0], RunStarted)
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["it ", "is ", "two"]
    assert isinstance(events[-1], RunFinished)
    assert events[-1].envelope.text() == "it is two"


def test_a_sync_stream_shows_a_tool_while_it_runs():
    seen = threading.Event()

    def wait() -> bool:
        return seen.wait(10)

    agent = Agent(ScriptedEngine([calling("wait"), "done"]), [wait])
    for event in agent.stream("go"):
        if isinstance(event, ToolStarted):
            seen.set()
        if isinstance(event, ToolFinished):
            assert event.result.value is True
    assert seen.is_set()


class Hanging:
    """A tool that never ends, and tells when it began and when it was gone."""

    def __init__(self) -> None:
        self.began, self.gone = threading.Event(), threading.Event()

    async def hang(self) -> None:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.gone.set()


def test_leaving_a_sync_stream_early_cancels_the_run_before_going_on():
    hanging = Hanging()
    events = Agent(ScriptedEngine([calling("hang")]), [hanging.hang]).stream("go")
    for event in events:
        if isinstance(event, ToolStarted):
            assert hanging.began.wait(10)
            break
    events.close()
    assert hanging.gone.is_set()
    assert list(events) == []


def test_a_sync_stream_left_to_the_garbage_collector_is_cancelled_too():
    hanging = Hanging()
    for event in Agent(ScriptedEngine([calling("hang")]), [hanging.hang]).stream("go"):
        if isinstance(event, ToolStarted):
            break
    gc.collect()
    assert hanging.gone.wait(10)


def test_a_stream_that_is_never_read_runs_nothing():
    engine = ScriptedEngine(["hi"])
    Agent(engine).stream("go")
    gc.collect()
    assert engine.requests == []


def test_a_sync_stream_does_nothing_its_reader_has_not_asked_for():
    engine = ScriptedEngine(["hi"])
    events = Agent(engine).stream("go")
    assert isinstance(next(events), RunStarted)
    assert engine.requests == []
    events.close()


@pytest.mark.anyio
async def test_leaving_an_async_stream_early_leaves_nothing_behind():
    before, hanging = asyncio.all_tasks(), Hanging()
    async with aclosing(Agent(ScriptedEngine([calling("hang")]), [hanging.hang]).astream("go")) as events:
        async for event in events:
            if isinstance(event, ToolStarted):
                break
    assert asyncio.all_tasks() == before


@pytest.mark.anyio
async def test_cancelling_a_run_cancels_its_tool_and_leaves_nothing_behind():
    before, hanging = asyncio.all_tasks(), Hanging()
    run = asyncio.create_task(Agent(ScriptedEngine([calling("hang")]), [hanging.hang]).arun("go"))
    await asyncio.to_thread(hanging.began.wait, 10)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert hanging.gone.is_set()
    assert asyncio.all_tasks() == before


def test_ctrl_c_in_a_sync_run_cancels_its_tool():
    hanging = Hanging()
    main = threading.main_thread().ident
    assert main is not None

    def press() -> None:
        hanging.began.wait(10)
        signal.pthread_kill(main, signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        Agent(ScriptedEngine([calling("hang")]), [hanging.hang]).run("go")
    presser.join()
    assert hanging.gone.wait(10)


def test_a_listener_hears_every_event_of_every_surface():
    heard: list[Event] = []
    agent = Agent(ScriptedEngine([calling("add", a=1, b=1), "two", "hi"]), [add], on_event=heard.append)
    agent.run("1+1?")
    assert [type(event).__name__ for event in heard] == [
        "RunStarted",
        "ModelReplied",
        "ToolStarted",
        "ToolFinished",
        "ModelReplied",
        "RunFinished",
    ]
    heard.clear()
    assert list(agent.stream("hello")) == heard


def test_a_listener_that_fails_sinks_nothing_and_is_told_of_once():
    def fail(event: Event) -> None:
        raise OSError("disk full")

    agent = Agent(ScriptedEngine(["one", "two"]), on_event=fail, name="noisy")
    with pytest.warns(ToolcribWarning, match="on_event of agent 'noisy' raised OSError: disk full") as told:
        assert agent.run("go").text() == "one"
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert agent.run("go").text() == "two"


# -- an agent as a tool


def test_an_agent_is_a_tool_with_one_task_to_take():
    agent = Agent(ScriptedEngine(["42"]), name="oracle", description="Knows the answer.")
    one = agent.as_tool()
    assert (one.name, one.description, one.returns_envelope) == ("oracle", "Knows the answer.", True)
    assert list(one.input_schema["properties"]) == one.input_schema["required"] == ["task"]
    assert one.input_schema["properties"]["task"]["type"] == "string"
    envelope = asyncio.run(one.acall({"task": "the question"}))
    assert isinstance(envelope, Envelope)
    assert envelope.text() == "42"


def test_an_agents_tool_can_be_given_another_name_and_description():
    agent = Agent(ScriptedEngine([]), name="oracle")
    assert agent.as_tool().description == "Hand a task to oracle."
    renamed = agent.as_tool("seer", "Sees.")
    assert (renamed.name, renamed.description) == ("seer", "Sees.")


def test_what_nested_agents_take_is_rolled_up():
    leaf = Agent(ScriptedEngine([Reply("leaf", (), Usage(1, 2, 0.5), "small")]), name="leaf")
    call = (ToolCall("1", "leaf", {"task": "x"}),)
    middle_script = [Reply("", call, Usage(10, 20, 1.0), "mid"), Reply("middle", (), Usage(10, 20, 1.0), "mid")]
    middle = Agent(ScriptedEngine(middle_script), [leaf], name="middle")
    envelope = Agent(ScriptedEngine([calling("middle", task="y"), "done"]), [middle]).run("go")
    [nested] = envelope.metadata.nested
    assert (nested.agent, nested.model, nested.usage) == ("middle", "mid", Usage(21, 42, 2.5))
    assert [inner.agent for inner in nested.nested] == ["leaf"]
    assert envelope.metadata.usage == Usage(21, 42, 2.5)
    assert envelope.metadata.turns == 2
    assert envelope.metadata.latency_ms >= nested.latency_ms


def test_a_nested_agent_that_fails_is_an_error_its_caller_reads():
    helper = Agent(Broken(), name="helper")
    engine = ScriptedEngine([calling("helper", task="help"), "I could not."])
    envelope = Agent(engine, [helper]).run("go")
    assert envelope.ok
    [(kind, text)] = answers(envelope)
    assert kind == "failed"
    assert "no route to the model" in text


def test_a_nested_agents_tools_find_the_deps_of_the_run():
    def whoami(context: ToolContext[str]) -> str:
        return context.deps

    helper = Agent(ScriptedEngine([calling("whoami"), "ok"]), [whoami], name="helper")
    heard: list[Event] = []
    helper.on_event = heard.append
    Agent(ScriptedEngine([calling("helper", task="who?"), "ok"]), [helper]).run("go", deps="ada")
    assert [event.result.value for event in heard if isinstance(event, ToolFinished)] == ["ada"]


def test_an_agent_that_calls_itself_comes_to_an_end():
    engine = ScriptedEngine([*[calling("me", task="again")] * 3, *["enough"] * 3])
    agent = Agent(engine, name="me", limits=Limits(max_depth=3))
    agent.tools.append(agent)
    envelope = agent.run("go")
    assert envelope.ok
    assert len(engine.requests) == 6
    assert "max_depth" in str(engine.requests[3]["messages"])


def test_parallel_agents_answer_in_the_order_they_were_asked():
    helpers = [Agent(ScriptedEngine([f"answer {n}"]), name=f"helper{n}") for n in range(5)]
    engine = ScriptedEngine([[(helper.name, {"task": "?"}) for helper in helpers], "done"])
    envelope = Agent(engine, helpers).run("go")
    assert [text for _, text in answers(envelope)] == [f"answer {n}" for n in range(5)]
    assert len(envelope.metadata.nested) == 5
