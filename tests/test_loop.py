from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing
from contextvars import ContextVar
from typing import Any

import pytest

from toolcrib.engines.scripted import ScriptedEngine
from toolcrib.errors import EngineError, ToolDeniedError, ToolExecutionError
from toolcrib.events import (
    ModelReplied,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)
from toolcrib.limits import Limits
from toolcrib.loop import run_turns
from toolcrib.tools import Tool
from toolcrib.toolset import Toolset
from toolcrib.types import Envelope, Message, Reply, RunMetadata, ToolCall, ToolContext, Usage

pytestmark = pytest.mark.anyio


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def events_of(engine: Any, tools: Any = (), prompt: str = "go", **options: Any) -> list[Any]:
    return [event async for event in run_turns(engine, Toolset(tools), prompt, **options)]


async def outcome_of(engine: Any, tools: Any = (), prompt: str = "go", **options: Any) -> Any:
    last = (await events_of(engine, tools, prompt, **options))[-1]
    assert isinstance(last, RunFinished)
    return last.envelope


def answers(envelope: Envelope) -> list[tuple[str, str]]:
    return [(m.result.kind, m.content) for m in envelope.messages if m.result is not None]


def assert_every_call_is_answered(envelope: Envelope) -> None:
    """Each assistant message with calls is followed by its answers, in order, with its ids."""
    pending: list[str] = []
    for message in envelope.messages:
        if message.role == "tool":
            assert message.result is not None
            assert message.result.call.id == pending.pop(0)
        else:
            assert not pending
            pending = [call.id for call in message.calls]
    assert not pending


class Engine:
    """An engine that cannot stream and gives what it is made with."""

    model = "plain"

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)

    async def acomplete(self, messages: Any, tools: Any) -> Any:
        reply = self.replies.pop(0)
        if isinstance(reply, BaseException):
            raise reply
        return reply


# -- events


async def test_events_come_in_the_order_things_happen():
    engine = ScriptedEngine([[("add", {"a": 2, "b": 3})], "five"])
    events = await events_of(engine, [add], "2+3?", agent="adder")
    assert [type(event) for event in events] == [
        RunStarted,
        ModelReplied,
        ToolStarted,
        ToolFinished,
        ModelReplied,
        RunFinished,
    ]
    assert len({event.run_id for event in events}) == 1
    assert events[0][1:] == ("adder", "2+3?")
    assert [event.turn for event in events if isinstance(event, ModelReplied)] == [1, 2]


async def test_words_are_streamed_when_wanted_and_only_then():
    quiet = await events_of(ScriptedEngine(["one two three"]))
    assert not any(isinstance(event, TextDelta) for event in quiet)
    told = await events_of(ScriptedEngine(["one two three"]), stream=True)
    assert [event.text for event in told if isinstance(event, TextDelta)] == ["one ", "two ", "three"]
    assert isinstance(told[-2], ModelReplied)


async def test_an_engine_that_cannot_stream_is_asked_for_the_whole():
    events = await events_of(Engine(Reply("hi")), stream=True)
    assert [type(event) for event in events] == [RunStarted, ModelReplied, RunFinished]


async def test_events_of_concurrent_calls_arrive_while_they_run():
    seen_both = asyncio.Event()

    async def wait(number: int) -> int:
        await seen_both.wait()
        return number

    engine = ScriptedEngine([[("wait", {"number": 1}), ("wait", {"number": 2})], "done"])
    started = 0
    async with asyncio.timeout(10):
        async for event in run_turns(engine, Toolset([wait]), "go"):
            started += isinstance(event, ToolStarted)
            if started == 2:
                seen_both.set()
    assert seen_both.is_set()


async def test_progress_arrives_while_an_async_tool_runs():
    seen = asyncio.Event()

    async def work(context: ToolContext[Any]) -> str:
        context.progress(1, 2, "half")
        await seen.wait()
        return "done"

    async with asyncio.timeout(10):
        async for event in run_turns(ScriptedEngine([[("work", {})], "ok"]), Toolset([work]), "go"):
            if isinstance(event, ToolProgress):
                assert event[1:] == ("call_1_1", 1, 2, "half")
                seen.set()
    assert seen.is_set()


async def test_progress_arrives_from_a_worker_thread():
    seen = threading.Event()

    def work(context: ToolContext[Any]) -> bool:
        context.progress(0.5)
        return seen.wait(10)

    events: list[Any] = []
    async for event in run_turns(ScriptedEngine([[("work", {})], "ok"]), Toolset([work]), "go"):
        events.append(event)
        if isinstance(event, ToolProgress):
            seen.set()
    assert [type(event) for event in events[2:5]] == [ToolStarted, ToolProgress, ToolFinished]
    assert answers(events[-1].envelope) == [("ok", "true")]


# -- answers


async def test_answers_keep_the_order_of_the_calls():
    second_done = asyncio.Event()

    async def first() -> str:
        await second_done.wait()
        return "1"

    async def second() -> str:
        second_done.set()
        return "2"

    engine = ScriptedEngine([[("first", {}), ("second", {})], "done"])
    envelope = await outcome_of(engine, [first, second])
    assert answers(envelope) == [("ok", "1"), ("ok", "2")]
    assert [m["content"] for m in engine.requests[1]["messages"]] == ["go", "", "1", "2"]


async def test_every_kind_of_mistake_is_answered_and_the_model_can_correct_itself():
    def fail() -> str:
        raise ToolExecutionError("the disk is full")

    def deny() -> str:
        raise ToolDeniedError("not on a Sunday")

    async def hang() -> None:
        await asyncio.Event().wait()

    wrong = [
        ("ad", {}),
        ("add", {"a": "x", "b": 1}),
        ("add", '{"a": 1, "b"'),
        ("fail", {}),
        ("deny", {}),
        ("hang", {}),
    ]
    engine = ScriptedEngine([wrong, [("add", {"a": 1, "b": 1})], "two"])
    envelope = await outcome_of(engine, [add, fail, deny, Tool(hang, timeout=0.01)])
    kinds = ["not_found", "invalid_arguments", "invalid_arguments", "failed", "denied", "timed_out", "ok"]
    assert [kind for kind, _ in answers(envelope)] == kinds
    assert "the disk is full" in answers(envelope)[3][1]
    assert envelope.ok
    assert envelope.text() == "two"
    assert_every_call_is_answered(envelope)


@pytest.mark.parametrize("ids", [("", ""), ("a", "a"), ("a", ""), ("a", "a", "")])
async def test_calls_without_an_id_of_their_own_are_each_answered(ids):
    calls = tuple(ToolCall(given, "add", {"a": number, "b": 0}) for number, given in enumerate(ids))
    envelope = await outcome_of(Engine(Reply("", calls, native="raw"), Reply("done")), [add])
    asked = envelope.messages[1]
    assert len({call.id for call in asked.calls}) == len(ids)
    assert all(call.id for call in asked.calls)
    assert asked.native is None  # it would bring the old ids back
    assert [text for _, text in answers(envelope)] == [str(number) for number in range(len(ids))]
    assert_every_call_is_answered(envelope)


async def test_ids_and_native_messages_are_kept_as_they_are():
    native = object()
    envelope = await outcome_of(
        Engine(Reply("", (ToolCall("x", "add", {"a": 1, "b": 1}),), native=native), Reply("")), [add]
    )
    assert envelope.messages[1].native is native
    assert envelope.messages[1].calls[0].id == "x"


async def test_tools_find_deps_run_id_and_context_variables():
    request: ContextVar[str] = ContextVar("request")
    request.set("r1")

    def look(context: ToolContext[dict[str, int]]) -> list[str]:
        return [context.run_id, str(context.deps["n"]), request.get()]

    events = await events_of(ScriptedEngine([[("look", {})], "ok"]), [look], deps={"n": 7})
    [finished] = [event for event in events if isinstance(event, ToolFinished)]
    assert finished.result.value == [events[0].run_id, "7", "r1"]


# -- the end of a run


async def test_the_outcome_has_the_conversation_and_what_it_took():
    call = ToolCall("1", "add", {"a": 1, "b": 2})
    engine = Engine(Reply("Let me see.", (call,), Usage(10, 5, 0.25), "m-1"), Reply("3", (), Usage(20, 1, 0.5), "m-2"))
    history = (Message("system", "Be brief."),)
    envelope = await outcome_of(engine, [add], "1+2?", history=history, agent="adder")
    assert [m.role for m in envelope.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert (envelope.text(), envelope.ok) == ("3", True)
    metadata = envelope.metadata
    assert (metadata.agent, metadata.model, metadata.turns) == ("adder", "m-2", 2)
    assert metadata.usage == Usage(30, 6, 0.75)
    assert metadata.latency_ms > 0


async def test_a_run_out_of_turns_answers_the_calls_it_does_not_run():
    ran: list[int] = []

    def step(number: int) -> int:
        ran.append(number)
        return number

    engine = ScriptedEngine([[("step", {"number": 1})], [("step", {"number": 2}), ("step", {"number": 3})]])
    events = await events_of(engine, [step], limits=Limits(max_turns=2))
    envelope = events[-1].envelope
    assert (envelope.error.type, envelope.error.retryable) == ("max_turns", False)
    assert ran == [1]
    assert [kind for kind, _ in answers(envelope)] == ["ok", "cancelled", "cancelled"]
    assert sum(isinstance(event, ToolFinished) for event in events) == 3
    assert_every_call_is_answered(envelope)


async def test_a_toolsets_limits_bound_the_run_that_has_none_of_its_own():
    engine = ScriptedEngine([[("add", {"a": 1, "b": 2})]])
    tools = Toolset([add], limits=Limits(max_turns=1))
    events: list[Any] = [event async for event in run_turns(engine, tools, "go")]
    assert events[-1].envelope.error.type == "max_turns"


@pytest.mark.parametrize(
    ("error", "named", "retryable"),
    [
        (EngineError("overloaded", retryable=True), "EngineError", True),
        (EngineError("no such model"), "EngineError", False),
        (KeyError("choices"), "KeyError", False),
        (SystemExit("bye"), "SystemExit", False),
        (asyncio.CancelledError("shut down"), "CancelledError", False),
    ],
)
async def test_an_engine_that_fails_midway_ends_the_run_with_what_there_is(error, named, retryable):
    call = ToolCall("1", "add", {"a": 1, "b": 2})
    envelope = await outcome_of(Engine(Reply("Let me see.", (call,)), error), [add])
    assert (envelope.error.type, envelope.error.retryable) == (named, retryable)
    assert envelope.text() == "Let me see."
    assert answers(envelope) == [("ok", "3")]
    assert envelope.metadata.turns == 1


@pytest.mark.parametrize("reply", [None, {"text": "hi"}, "hi"])
async def test_an_engine_that_gives_no_reply_has_failed(reply):
    envelope = await outcome_of(Engine(reply))
    assert envelope.error.type == "EngineError"
    assert [m.role for m in envelope.messages] == ["user"]


async def test_words_of_a_stream_that_breaks_off_are_kept():
    class Breaking(Engine):
        async def astream(self, messages: Any, tools: Any) -> Any:
            yield "Once upon "
            yield "a time"
            raise EngineError("connection lost", retryable=True)

    envelope = await outcome_of(Breaking(), stream=True)
    assert envelope.text() == "Once upon a time"
    assert envelope.error.message == "connection lost"


async def test_a_stream_without_a_reply_at_its_end_has_failed():
    class Endless(Engine):
        async def astream(self, messages: Any, tools: Any) -> Any:
            yield "hm"

    envelope = await outcome_of(Endless(), stream=True)
    assert (envelope.error.type, envelope.error.message) == ("EngineError", "Endless ended without a Reply")


async def test_a_check_that_raises_ends_the_run_before_any_call_runs():
    ran: list[str] = []

    def check(tool: Tool) -> None:
        if tool.name == "second":
            raise ValueError("not that one")

    def first() -> None:
        ran.append("first")

    def second() -> None:
        ran.append("second")

    engine = ScriptedEngine([[("first", {}), ("unknown", {}), ("second", {})]])
    with pytest.raises(ValueError, match="not that one"):
        await events_of(engine, [first, second], check=check)
    assert ran == []


# -- leaving early


class Hanging:
    """A tool that never ends, and tells when it began and when it was cancelled."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.cancelled = False

    async def hang(self) -> None:
        self.began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise


async def test_cancelling_the_reader_cancels_the_tool_and_leaves_nothing_behind():
    before, hanging = asyncio.all_tasks(), Hanging()
    engine = ScriptedEngine([[("hang", {}), ("hang", {})]])
    task = asyncio.create_task(events_of(engine, [hanging.hang]))
    await hanging.began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert hanging.cancelled
    assert asyncio.all_tasks() == before


async def test_closing_the_events_cancels_the_tool_and_leaves_nothing_behind():
    before, hanging = asyncio.all_tasks(), Hanging()
    async with aclosing(run_turns(ScriptedEngine([[("hang", {})]]), Toolset([hanging.hang]), "go")) as events:
        async for event in events:
            if isinstance(event, ToolStarted):
                await hanging.began.wait()
                break
    assert hanging.cancelled
    assert asyncio.all_tasks() == before


async def test_a_reader_that_leaves_before_the_calls_prevents_them():
    ran: list[str] = []

    def act() -> None:
        ran.append("act")

    async with aclosing(run_turns(ScriptedEngine([[("act", {})]]), Toolset([act]), "go")) as events:
        async for event in events:
            if isinstance(event, ModelReplied):
                break
    assert ran == []


async def test_cancelling_while_the_model_thinks_propagates():
    asked = asyncio.Event()

    class Slow(Engine):
        async def acomplete(self, messages: Any, tools: Any) -> Any:
            asked.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(events_of(Slow()))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_engines_stream_is_closed_when_the_reader_leaves():
    closed: list[bool] = []

    class Talking(Engine):
        async def astream(self, messages: Any, tools: Any) -> Any:
            try:
                while True:
                    yield "bla "
            finally:
                closed.append(True)

    async with aclosing(run_turns(Talking(), Toolset(), "go", stream=True)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break
    assert closed == [True]


async def test_a_tool_that_cancels_every_task_of_the_run_ends_nothing_but_its_turn():
    before, added = asyncio.all_tasks(), asyncio.Event()

    async def rampage() -> None:
        await added.wait()
        for task in asyncio.all_tasks() - before:
            task.cancel()
        await asyncio.Event().wait()

    engine = ScriptedEngine([[("rampage", {}), ("add", {"a": 1, "b": 1})], "still here"])
    events: list[Any] = []
    async for event in run_turns(engine, Toolset([rampage, add]), "go"):
        events.append(event)
        if isinstance(event, ToolFinished):
            added.set()
    envelope = events[-1].envelope
    assert envelope.text() == "still here"
    assert answers(envelope) == [("cancelled", "It was cancelled."), ("ok", "2")]
    assert sum(isinstance(event, ToolFinished) for event in events) == 2
    assert_every_call_is_answered(envelope)


# -- runs inside runs


async def test_envelopes_of_tools_are_rolled_up():
    inner = Envelope("42", RunMetadata(run_id="inner", model="x", usage=Usage(7, 3, 0.5)))

    def ask() -> Envelope:
        return inner

    calls = (ToolCall("1", "ask"), ToolCall("2", "ask"))
    envelope = await outcome_of(Engine(Reply("", calls, Usage(1, 1, 0.25)), Reply("done")), [ask])
    assert envelope.metadata.nested == (inner.metadata,)  # one run, however often it is handed out
    assert envelope.metadata.usage == Usage(8, 4, 0.75)
    assert [text for _, text in answers(envelope)] == ["42", "42"]


async def test_an_unknown_price_makes_the_whole_unknown():
    def ask() -> Envelope:
        return Envelope("?", RunMetadata(run_id="inner", usage=Usage(1, 1, None)))

    envelope = await outcome_of(ScriptedEngine([[("ask", {})], "done"]), [ask])
    assert envelope.metadata.cost_usd is None
    assert envelope.metadata.input_tokens == 1


async def test_a_run_inside_a_plain_tool_counts_too():
    async def research() -> str:
        return (await outcome_of(Engine(Reply("found", usage=Usage(5, 5, 1.0))))).text()

    envelope = await outcome_of(ScriptedEngine([[("research", {})], "done"]), [research])
    [nested] = envelope.metadata.nested
    assert nested.usage == envelope.metadata.usage == Usage(5, 5, 1.0)
    assert answers(envelope) == [("ok", "found")]


async def test_a_run_cut_short_by_the_deadline_of_its_call_still_counts():
    async def hang() -> None:
        await asyncio.Event().wait()

    async def research() -> str:
        calls = (ToolCall("1", "hang"),)
        return (await outcome_of(Engine(Reply("", calls, Usage(5, 5, 1.0))), [hang])).text()

    tools = [Tool(research, timeout=0.05)]
    envelope = await outcome_of(ScriptedEngine([[("research", {})], "done"]), tools)
    assert [kind for kind, _ in answers(envelope)] == ["timed_out"]
    assert envelope.metadata.usage == Usage(5, 5, 1.0)


async def test_a_tool_that_promises_an_envelope_and_gives_none_crashes_nothing():
    schema = {"type": "object", "properties": {}}
    tool = Tool.from_schema("sub", "Not really an agent.", schema, lambda: "plain", returns_envelope=True)
    envelope = await outcome_of(ScriptedEngine([[("sub", {})], "done"]), [tool])
    assert answers(envelope) == [("ok", "plain")]
    assert envelope.metadata.nested == ()


async def test_runs_nest_only_so_deep():
    limits = Limits(max_depth=3)
    outcomes: list[Envelope] = []

    async def again() -> str:
        outcomes.append(await outcome_of(ScriptedEngine([[("again", {})], "done"]), [again], limits=limits))
        return outcomes[-1].text()

    outer = await outcome_of(ScriptedEngine([[("again", {})], "done"]), [again], limits=limits)
    assert outer.ok
    assert [outcome.error and outcome.error.type for outcome in outcomes] == ["max_depth", None, None]
