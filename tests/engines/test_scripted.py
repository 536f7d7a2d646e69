from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from toolcrib.engines.scripted import ScriptedEngine
from toolcrib.errors import EngineError
from toolcrib.protocols import StreamingEngine
from toolcrib.toolset import Toolset
from toolcrib.types import Message, Reply, Usage

pytestmark = pytest.mark.anyio
HELLO = (Message("system", "Be brief."), Message("user", "hello"))


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def test_turns_are_played_in_order():
    engine = ScriptedEngine(["one", [("add", {"a": 1, "b": 2}), ("add", '{"a": 1')], "two"])
    first, second, third = [await engine.acomplete(HELLO, Toolset()) for _ in range(3)]
    assert (first.text, first.calls) == ("one", ())
    assert second.text == ""
    assert [(call.name, call.arguments) for call in second.calls] == [("add", {"a": 1, "b": 2}), ("add", '{"a": 1')]
    assert third.text == "two"


async def test_every_call_has_an_id_of_its_own():
    engine = ScriptedEngine([[("add", {}), ("add", {})], [("add", {})]])
    replies = [await engine.acomplete(HELLO, Toolset()) for _ in range(2)]
    assert len({call.id for reply in replies for call in reply.calls}) == 3


async def test_a_reply_costs_nothing_and_names_its_model():
    engine = ScriptedEngine(["hi"])
    reply = await engine.acomplete(HELLO, Toolset())
    assert reply.usage == Usage(0, 0, 0.0)
    assert reply.model == engine.model == "scripted"


async def test_requests_are_plain_data_of_what_the_model_was_shown():
    engine = ScriptedEngine(["hi", "there"])
    await engine.acomplete(HELLO, Toolset([add]))
    await engine.acomplete((*HELLO, Message("assistant", "hi")), Toolset())
    shown = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}]
    assert json.loads(json.dumps(engine.requests)) == [
        {"tools": ["add"], "messages": shown},
        {"tools": [], "messages": [*shown, {"role": "assistant", "content": "hi"}]},
    ]


async def test_a_script_that_is_used_up_says_so():
    engine = ScriptedEngine(["only"])
    await engine.acomplete(HELLO, Toolset())
    with pytest.raises(EngineError, match="has 1 turns and was asked for one more"):
        await engine.acomplete(HELLO, Toolset())


async def test_an_exception_is_raised_in_its_turn():
    engine = ScriptedEngine([EngineError("overloaded", retryable=True), "fine"])
    with pytest.raises(EngineError, match="overloaded"):
        await engine.acomplete(HELLO, Toolset())
    assert (await engine.acomplete(HELLO, Toolset())).text == "fine"


async def test_a_whole_reply_is_given_as_it_is():
    reply = Reply("done", usage=Usage(3, 4, 0.5), model="other")
    assert await ScriptedEngine([reply]).acomplete(HELLO, Toolset()) is reply


@pytest.mark.parametrize("text", ["two  words\nand more ", "  ", "", "word"])
async def test_a_stream_is_the_words_and_then_the_reply(text):
    engine = ScriptedEngine([text])
    assert isinstance(engine, StreamingEngine)
    pieces: list[Any] = [piece async for piece in engine.astream(HELLO, Toolset())]
    *words, reply = pieces
    assert "".join(words) == text == reply.text
    assert len(words) == max(len(text.split()), 1 if text else 0)


@pytest.mark.parametrize("turn", [7, None, {"add": {}}, ["add"], [("add", 3)], [("add", {}, {})], [(3, {})]])
def test_a_turn_that_is_none_is_refused_at_once(turn):
    with pytest.raises(TypeError, match=r"turn 1 must be|a call is"):
        ScriptedEngine([turn])


def test_threads_that_share_a_script_get_each_turn_once():
    engine = ScriptedEngine([str(number) for number in range(200)])
    got: list[str] = []

    async def drain():
        got.extend([(await engine.acomplete(HELLO, Toolset())).text for _ in range(50)])

    threads = [threading.Thread(target=lambda: asyncio.run(drain())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got, key=int) == [str(number) for number in range(200)]
    assert len(engine.requests) == 200
