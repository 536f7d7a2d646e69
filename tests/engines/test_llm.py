from __future__ import annotations

import asyncio
import gc
import json
import threading
from base64 import b64encode

import pytest
from model_server import CHAT, GEMINI, KEY, MESSAGES, RESPONSES
from pydantic_ai import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from toolcrib import Agent, EngineError, Message, Reply, ToolCall, ToolResponse, ToolResult
from toolcrib.engines.llm import LLMEngine
from toolcrib.formats import anthropic, gemini, openai_chat, openai_responses
from toolcrib.protocols import StreamingEngine
from toolcrib.tools import Tool
from toolcrib.toolset import Toolset

HELLO = [Message("user", "hello")]
NONE = Toolset()
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "title": "City", "description": "Where."},
        "day": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "default": None},
        "at": {"$ref": "#/$defs/Place"},
    },
    "required": ["city"],
    "$defs": {"Place": {"type": "object", "properties": {"lat": {"type": "number", "minimum": -90}}}},
}


def weather(**_: object) -> str:
    return "sunny"


def forecast(name: str = "weather", *, strict: bool = False) -> Tool:
    return Tool.from_schema(name, "Tell the weather.", SCHEMA, weather, strict=strict)


def answered(call: ToolCall, text: str, *, kind="ok", parts=()) -> Message:
    response = ToolResponse(success=kind == "ok", message=text)
    return Message("tool", text, result=ToolResult(call, response, kind, None, text, parts))


def asked(reply: Reply) -> Message:
    return Message("assistant", reply.text, reply.calls, native=reply.native)


async def pieces(engine, messages, tools) -> list[str | Reply]:
    return [piece async for piece in engine.astream(messages, tools)]


# -- a request and its reply


@pytest.mark.anyio
async def test_a_reply_carries_the_words_the_tokens_and_the_model_that_answered(server, engine):
    server.say("Hi there.", model="gpt-5.4-mini-2026-03-17", usage=(120, 7))
    reply = await engine.acomplete([Message("system", "Be brief."), *HELLO], NONE)
    assert (reply.text, reply.calls, reply.model) == ("Hi there.", (), "gpt-5.4-mini-2026-03-17")
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (120, 7)
    assert server.requests[0].path == CHAT
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.bodies[0]["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hello"},
    ]
    assert "tools" not in server.bodies[0]


@pytest.mark.anyio
async def test_a_known_model_has_a_price_in_proportion_to_its_tokens(server, engine):
    server.say("a", model="gpt-5.4-mini", usage=(1000, 100))
    server.say("b", model="gpt-5.4-mini", usage=(2000, 200))
    first, second = [(await engine.acomplete(HELLO, NONE)).usage.cost_usd for _ in range(2)]
    assert first > 0
    assert second == pytest.approx(2 * first)


@pytest.mark.anyio
@pytest.mark.parametrize("options", [{"model": "our-own-model"}, {"model": "gpt-5.4-mini", "usage": None}])
async def test_a_price_that_is_not_known_is_none_and_never_zero(server, engine, options):
    server.say("a", **options)
    assert (await engine.acomplete(HELLO, NONE)).usage.cost_usd is None


@pytest.mark.anyio
@pytest.mark.parametrize("strict", [False, True])
async def test_openai_receives_the_definition_of_our_dialect_unchanged(server, engine, strict):
    tools = Toolset([forecast(strict=strict)])
    server.say("ok")
    await engine.acomplete(HELLO, tools)
    ours = openai_chat.tools(tools)[0]["function"]
    sent = server.bodies[0]["tools"][0]["function"]
    assert json.dumps(sent["parameters"]) == json.dumps(ours["parameters"])
    assert (sent["name"], sent["description"]) == ("weather", "Tell the weather.")
    assert sent.get("strict", False) is strict


@pytest.mark.anyio
async def test_a_schema_that_is_not_strict_arrives_as_the_tool_has_it(server, engine):
    tool = forecast()
    server.say("ok")
    await engine.acomplete(HELLO, Toolset([tool]))
    assert json.dumps(tool.input_schema, separators=(",", ":")).encode() in server.requests[0].raw


@pytest.mark.anyio
@pytest.mark.parametrize("strict", [False, True])
async def test_the_responses_api_receives_the_definition_of_our_dialect(server, strict):
    engine = LLMEngine("openai-responses:gpt-5.4-mini", base_url=server.base_url)
    tools = Toolset([forecast(strict=strict)])
    server.ask(("c1", "weather", '{"city": "Oslo"}'), model="gpt-5.4-mini")
    reply = await engine.acomplete(HELLO, tools)
    ours, sent = openai_responses.tools(tools)[0], server.bodies[0]["tools"][0]
    assert server.requests[0].path == RESPONSES
    assert json.dumps(sent["parameters"]) == json.dumps(ours["parameters"])
    assert sent["strict"] is strict
    assert [call.name for call in reply.calls] == ["weather"]


# -- calls and their answers


@pytest.mark.anyio
async def test_a_call_comes_back_with_its_arguments_untouched(server, engine):
    raw = '{"city":  "Oslo", "n": 1.50e3}'
    server.ask(("call_1", "weather", raw))
    reply = await engine.acomplete(HELLO, Toolset([forecast()]))
    assert reply.calls == (ToolCall("call_1", "weather", raw),)


@pytest.mark.anyio
async def test_the_null_that_strict_mode_makes_a_model_say_is_left_out_again(server, engine):
    server.ask(("c1", "book", '{"city": "Oslo", "nights": null}'))
    schema = {"type": "object", "properties": {"city": {"type": "string"}, "nights": {"type": "integer"}}}
    tool = Tool.from_schema("book", "Book a room.", {**schema, "required": ["city"]}, weather, strict=True)
    reply = await engine.acomplete(HELLO, Toolset([tool]))
    assert json.loads(reply.calls[0].arguments) == {"city": "Oslo"}


@pytest.mark.anyio
@pytest.mark.parametrize("keep_native", [True, False])
async def test_calls_and_answers_are_told_to_the_model_on_the_next_request(server, engine, keep_native):
    tools = Toolset([forecast(), forecast("tide")])
    server.ask(("c1", "weather", '{"city":"Oslo"}'), ("c2", "tide", '{"city":"Bergen"}'), text="Let me see.")
    server.say("Done.")
    reply = await engine.acomplete(HELLO, tools)
    first, second = reply.calls
    said = asked(reply) if keep_native else Message("assistant", reply.text, reply.calls)
    await engine.acomplete([*HELLO, said, answered(first, "sunny"), answered(second, "no", kind="failed")], tools)
    function = {"type": "function"}
    assert server.bodies[1]["messages"] == [
        {"role": "user", "content": "hello"},
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [
                {"id": "c1", **function, "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}},
                {"id": "c2", **function, "function": {"name": "tide", "arguments": '{"city":"Bergen"}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
        {"role": "tool", "tool_call_id": "c2", "content": "no"},
    ]


@pytest.mark.anyio
@pytest.mark.parametrize("keep_native", [True, False])
async def test_a_name_the_provider_refuses_is_legal_on_the_wire_and_comes_back_as_it_was(server, engine, keep_native):
    tools = Toolset([forecast("fs.read_file")])
    server.say("not yet")
    await engine.acomplete(HELLO, tools)
    wire = server.bodies[0]["tools"][0]["function"]["name"]
    assert wire.replace("_", "").replace("-", "").isalnum()
    server.script.clear()
    server.ask(("c1", wire, "{}"))
    reply = await engine.acomplete(HELLO, tools)
    assert reply.calls[0].name == "fs.read_file"
    said = asked(reply) if keep_native else Message("assistant", "", reply.calls)
    await engine.acomplete([*HELLO, said, answered(reply.calls[0], "x")], tools)
    assert server.bodies[2]["messages"][1]["tool_calls"][0]["function"]["name"] == wire


@pytest.mark.anyio
@pytest.mark.parametrize("keep_native", [True, False])
async def test_a_name_the_model_invented_is_made_legal_in_history(server, engine, keep_native):
    server.ask(("c1", "fs/read file!", "{}"))
    reply = await engine.acomplete(HELLO, NONE)
    assert reply.calls[0].name == "fs/read file!"
    said = asked(reply) if keep_native else Message("assistant", "", reply.calls)
    await engine.acomplete([*HELLO, said, answered(reply.calls[0], "no such tool", kind="not_found")], NONE)
    sent = server.bodies[1]["messages"][1]["tool_calls"][0]["function"]["name"]
    assert sent.replace("_", "").replace("-", "").isalnum()
    assert len(sent) <= 64


@pytest.mark.anyio
async def test_an_image_in_an_answer_reaches_a_model_that_sees(server, engine):
    picture = b64encode(b"\x89PNG-ish").decode()
    call = ToolCall("c1", "photo", "{}")
    image = {"type": "image", "data": picture, "mimeType": "image/png"}
    broken = {"type": "image", "data": "not base64!", "mimeType": "image/png"}
    other = {"type": "resource", "resource": {"uri": "x", "blob": "AAAA", "mimeType": "application/x-unknown"}}
    server.say("A cat.")
    history = [*HELLO, Message("assistant", "", (call,)), answered(call, "a photo", parts=(image, broken, other))]
    await engine.acomplete(history, NONE)
    tool, shown = server.bodies[0]["messages"][2:]
    assert "a photo" in tool["content"]
    urls = [part["image_url"]["url"] for part in shown["content"] if part["type"] == "image_url"]
    assert urls == [f"data:image/png;base64,{picture}"]


# -- streaming


@pytest.mark.anyio
async def test_words_are_streamed_as_they_come_and_the_reply_is_last(server, engine):
    assert isinstance(engine, StreamingEngine)
    server.say("Hello, world.", model="gpt-5.4-mini", usage=(50, 5))
    *words, reply = await pieces(engine, HELLO, NONE)
    assert words == ["Hello,", " world."]
    assert (reply.text, reply.usage.input_tokens, reply.usage.output_tokens) == ("Hello, world.", 50, 5)
    assert reply.usage.cost_usd > 0
    assert server.bodies[0]["stream"] is True


@pytest.mark.anyio
async def test_parallel_calls_are_put_together_from_a_stream(server, engine):
    server.ask(("c1", "weather", '{"city":"Oslo"}'), ("c2", "weather", '{"city":"Rome"}'), text="Two.")
    *words, reply = await pieces(engine, HELLO, Toolset([forecast()]))
    assert "".join(words) == reply.text == "Two."
    assert reply.calls == (
        ToolCall("c1", "weather", '{"city":"Oslo"}'),
        ToolCall("c2", "weather", '{"city":"Rome"}'),
    )


@pytest.mark.anyio
async def test_a_stream_may_be_left_early(server, engine):
    server.say("Hello, world.")
    stream = engine.astream(HELLO, NONE)
    assert await anext(stream) == "Hello,"
    await stream.aclose()
    assert (await engine.acomplete(HELLO, NONE)).text == "Hello, world."


# -- event loops


def test_one_engine_serves_one_event_loop_after_another(server, engine):
    server.say("Hi.")
    for _ in range(3):
        assert asyncio.run(engine.acomplete(HELLO, NONE)).text == "Hi."


def test_one_engine_serves_many_event_loops_at_once(server, engine):
    server.say("Hi.")
    meet = threading.Barrier(4, timeout=30)
    texts: list[str] = []

    async def talk() -> None:
        await engine.acomplete(HELLO, NONE)
        await asyncio.to_thread(meet.wait)  # every loop is open, each with a connection
        texts.append((await engine.acomplete(HELLO, NONE)).text)

    threads = [threading.Thread(target=asyncio.run, args=(talk(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["Hi."] * 4


@pytest.mark.anyio
async def test_requests_of_one_loop_share_a_connection(server, engine):
    server.say("Hi.")
    for _ in range(3):
        await engine.acomplete(HELLO, NONE)
    assert len({request.peer for request in server.requests}) == 1


def test_connections_are_closed_with_their_loop(server, engine):
    server.say("Hi.")
    asyncio.run(engine.acomplete(HELLO, NONE))
    assert server.wait_until_left()


def test_connections_are_closed_when_engine_and_loop_end_together(server):
    async def talk() -> str:
        engine = LLMEngine("openai:gpt-5.4-mini", base_url=server.base_url)
        return (await engine.acomplete(HELLO, NONE)).text

    server.say("Hi.")
    assert asyncio.run(talk()) == "Hi."
    assert server.wait_until_left()


@pytest.mark.anyio
async def test_connections_are_closed_with_an_engine_that_is_gone(server):
    engine = LLMEngine("openai:gpt-5.4-mini", base_url=server.base_url)
    server.say("Hi.")
    await engine.acomplete(HELLO, NONE)
    del engine
    gc.collect()
    assert await asyncio.to_thread(server.wait_until_left)


@pytest.mark.anyio
async def test_many_requests_may_begin_at_once_on_a_fresh_engine(server, engine):
    server.say("Hi.")
    replies = await asyncio.gather(*(engine.acomplete(HELLO, NONE) for _ in range(10)))
    assert [reply.text for reply in replies] == ["Hi."] * 10


# -- Anthropic and Google


@pytest.mark.anyio
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("keep_native", [True, False])
async def test_anthropic_takes_tools_calls_and_answers_in_its_own_words(server, claude, strict, keep_native):
    tools = Toolset([forecast("fs.weather", strict=strict)])
    wire = anthropic.tools(tools)[0]["name"]
    server.ask(("t1", wire, '{"city": "Oslo"}'), ("t2", wire, '{"city": "Rome"}'), model="claude-haiku-4-5")
    reply = await claude.acomplete([Message("system", "Be brief."), *HELLO], tools)
    first, second = reply.calls
    assert (first.id, first.name) == ("t1", "fs.weather")
    assert reply.usage.cost_usd > 0
    said = asked(reply) if keep_native else Message("assistant", "", reply.calls)
    await claude.acomplete([*HELLO, said, answered(first, "sunny"), answered(second, "no", kind="failed")], tools)
    request = server.requests[0]
    assert (request.path, request.headers["authorization"]) == (MESSAGES, f"Bearer {KEY}")
    assert json.dumps(request.body["tools"][0]["input_schema"]) == json.dumps(anthropic.tools(tools)[0]["input_schema"])
    uses, results = server.bodies[1]["messages"][1:]
    assert [(block["name"], block["input"]) for block in uses["content"]] == [
        (wire, {"city": "Oslo"}),
        (wire, {"city": "Rome"}),
    ]
    shown = [(b["tool_use_id"], b["content"], b["is_error"]) for b in results["content"]]
    text = {"type": "text"}
    assert shown == [("t1", [{**text, "text": "sunny"}], False), ("t2", [{**text, "text": "no"}], True)]


@pytest.mark.anyio
async def test_anthropic_streams_words_and_calls(server, claude):
    server.ask(("t1", "weather", '{"city": "Oslo"}'), text="Let me see.", model="claude-haiku-4-5", usage=(30, 9))
    *words, reply = await pieces(claude, HELLO, Toolset([forecast()]))
    assert "".join(words) == reply.text == "Let me see."
    assert [(call.id, call.name) for call in reply.calls] == [("t1", "weather")]
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (30, 9)


@pytest.mark.anyio
async def test_anthropic_is_shown_an_image_in_the_answer_itself(server, claude):
    call = ToolCall("t1", "photo", "{}")
    image = {"type": "image", "data": b64encode(b"\x89PNG-ish").decode(), "mimeType": "image/png"}
    server.say("A cat.", model="claude-haiku-4-5")
    await claude.acomplete([*HELLO, Message("assistant", "", (call,)), answered(call, "a", parts=(image,))], NONE)
    blocks = server.bodies[0]["messages"][2]["content"][0]["content"]
    assert [block["type"] for block in blocks] == ["text", "image"]


@pytest.mark.anyio
async def test_an_anthropic_error_is_told_like_any_other(server):
    server.fail(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    engine = LLMEngine("claude-haiku-4-5", base_url=server.root, settings={"max_retries": 0})
    with pytest.raises(EngineError, match="Overloaded") as caught:
        await engine.acomplete(HELLO, NONE)
    assert caught.value.retryable


@pytest.mark.anyio
async def test_a_blank_answer_is_one_that_anthropic_takes(server, claude):
    call = ToolCall("t1", "done", "{}")
    server.say("Good.", model="claude-haiku-4-5")
    await claude.acomplete([*HELLO, Message("assistant", "", (call,)), answered(call, "")], NONE)
    assert not server.bodies[0]["messages"][2]["content"][0]["content"]


@pytest.mark.anyio
async def test_gemini_takes_tools_calls_and_answers_in_its_own_words(server):
    engine = LLMEngine("google:gemini-2.5-flash", base_url=server.root, api_key=KEY)
    tools = Toolset([forecast("fs.weather")])
    ours = gemini.tools(tools)[0]["function_declarations"][0]
    server.ask(("g1", ours["name"], '{"city": "Oslo"}'), model="gemini-2.5-flash")
    reply = await engine.acomplete(HELLO, tools)
    assert [call.name for call in reply.calls] == ["fs.weather"]
    await engine.acomplete([*HELLO, asked(reply), answered(reply.calls[0], "sunny")], tools)
    sent = server.bodies[0]["tools"][0]["functionDeclarations"][0]
    assert server.requests[0].path == GEMINI
    assert sent["name"] == ours["name"]
    shown, schema = ours["parameters"]["properties"], sent["parameters_json_schema"]["properties"]
    assert {**schema, "day": None} == {**shown, "day": None}
    assert shown["day"]["nullable"] is True
    assert schema["day"]["anyOf"][1] == {"type": "null"}
    assert server.bodies[1]["contents"][1]["parts"][0]["functionCall"]["name"] == ours["name"]


# -- a pydantic-ai Model


@pytest.mark.anyio
async def test_a_pydantic_ai_model_may_be_given():
    seen = []

    def think(messages, info):
        seen.append((messages, info))
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart(info.function_tools[0].name, {"city": "Oslo"}, "c1")])
        return ModelResponse(parts=[TextPart("Sunny.")])

    engine = LLMEngine(FunctionModel(think, model_name="thinker"))
    tools = Toolset([forecast("fs.weather")])
    reply = await engine.acomplete(HELLO, tools)
    assert engine.model == "thinker"
    assert [call.name for call in reply.calls] == ["fs.weather"]
    assert json.loads(json.dumps(seen[0][1].function_tools[0].parameters_json_schema)) == forecast().input_schema
    last = await engine.acomplete([*HELLO, asked(reply), answered(reply.calls[0], "sunny")], tools)
    assert (last.text, last.usage.cost_usd) == ("Sunny.", None)


@pytest.mark.anyio
async def test_what_a_given_model_raises_is_an_engine_error():
    def think(messages, info):
        raise LookupError("lost the thread")

    with pytest.raises(EngineError, match="LookupError: lost the thread"):
        await LLMEngine(FunctionModel(think)).acomplete(HELLO, NONE)


def test_a_given_model_with_connections_serves_one_loop_after_another(server):
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel("gpt-5.4-mini", provider=OpenAIProvider(base_url=server.base_url, api_key=KEY))
    engine, tools = LLMEngine(model), Toolset([forecast()])
    server.say("Hi.")
    for _ in range(2):
        assert asyncio.run(engine.acomplete(HELLO, tools)).text == "Hi."
    assert server.bodies[0]["tools"][0]["function"]["parameters"] == forecast().input_schema
    assert model.profile["json_schema_transformer"] is not None


# -- as the engine of an agent


def test_an_agent_runs_its_tools_through_the_wire(server, engine):
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    server.ask(("c1", "add", '{"a": 2, "b": "3"}'), model="gpt-5.4-mini")
    server.say("It is 5.", model="gpt-5.4-mini")
    outcome = Agent(engine, tools=[add]).run("2 + 3?")
    assert outcome.text() == "It is 5."
    assert outcome.metadata.cost_usd > 0
    assert server.bodies[1]["messages"][-1] == {"role": "tool", "tool_call_id": "c1", "content": "5"}


def test_an_agent_on_the_background_loop_and_one_on_its_own_share_an_engine(server, engine):
    server.say("Hi.")
    agent = Agent(engine)
    assert agent.run("hello").text() == "Hi."
    assert asyncio.run(agent.arun("hello")).text() == "Hi."
    assert agent.run("hello").text() == "Hi."
