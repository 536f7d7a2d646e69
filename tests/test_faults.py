"""Every fault in one turn with two healthy calls: each is answered, and nobody else notices."""

import asyncio
import contextlib
import functools
import itertools
import json
import os
import random
import sys
import threading
import time
import types
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any, NamedTuple
from unittest.mock import MagicMock

import pytest
from pydantic import BaseModel, BeforeValidator, field_serializer

from toolcrib import (
    Agent,
    Envelope,
    Limits,
    Reply,
    RetryExecutor,
    RunError,
    RunMetadata,
    ScriptedEngine,
    Secret,
    Tool,
    ToolArgumentError,
    ToolCall,
    ToolContext,
    ToolDeniedError,
    ToolExecutionError,
    ToolNotFoundError,
    ToolResponse,
    ToolResult,
    Toolset,
    ToolTimeoutError,
    _portal,
    acall_tools,
    call_tools,
    dispatch,
)
from toolcrib.formats import FORMATS
from toolcrib.limits import MAX_WORKER_THREADS

HERE = os.path.dirname(__file__)  # noqa: PTH120  # a text, as it stands in messages
SOON = 0.05  # the deadline of what hangs; everything else has the usual minute
BUSY = 20  # seconds no turn may take on the slowest machine


# -- one turn: a fault between two healthy calls


def double(n: int) -> int:
    """Double."""
    return 2 * n


async def greet(name: str) -> str:
    """Greet."""
    await asyncio.sleep(0)
    return f"hello {name}"


FIRST = ToolCall("first", "double", '{"n": 21}')
LAST = ToolCall("last", "greet", '{"name": "Ann"}')


class Room:
    """Where one fault happens, and what must be put right afterwards."""

    def __init__(self) -> None:
        self.hold = threading.Event()  # what hangs waits for it
        self.kept: list[Any] = []  # what must not be collected before the test is over
        self.afterwards = contextlib.ExitStack()

    def hang(self) -> None:
        self.hold.wait(BUSY)

    def leave(self) -> None:
        self.hold.set()
        self.afterwards.close()


@pytest.fixture
def room(capsys, caplog):
    room, others = Room(), foreign_threads()
    yield room
    room.leave()
    wait_until(lambda: _portal._workers._lost == 0)
    wait_until(lambda: foreign_threads() <= others)
    wait_until(lambda: not asyncio.all_tasks(_portal.portal().loop()))
    assert sum(thread.name == "toolcrib worker" for thread in threading.enumerate()) <= MAX_WORKER_THREADS
    assert capsys.readouterr().err == ""
    assert caplog.records == []  # asyncio would complain there


def foreign_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if not thread.name.startswith("toolcrib ")}


def wait_until(over: Callable[[], bool]) -> None:
    end = time.monotonic() + BUSY
    while not over():
        assert time.monotonic() < end
        time.sleep(0.001)


def in_async(func):
    @functools.wraps(func)
    async def coloured(*args, **kwargs):
        await asyncio.sleep(0)
        return func(*args, **kwargs)

    return coloured


COLOURS = {"sync": lambda func: func, "async": in_async}


def by_call(tools, calls):
    return [dispatch.call(call, Toolset(tools)) for call in calls]


def by_call_tools(tools, calls):
    return call_tools(calls, Toolset(tools))


def by_acall_tools(tools, calls):
    async def main():
        results = await acall_tools(calls, Toolset(tools))
        left = {task for task in asyncio.all_tasks() if task.get_name() != "left by the tool"}
        assert left == {asyncio.current_task()}
        return results

    return asyncio.run(main())


def by_agent(tools, calls):
    engine = ScriptedEngine([Reply("", tuple(calls)), "done"])
    envelope = asyncio.run(Agent(engine, tools).arun("go"))
    return answers_of(envelope, engine)


def by_sync_agent(tools, calls):
    engine = ScriptedEngine([Reply("", tuple(calls)), "done"])
    return answers_of(Agent(engine, tools).run("go"), engine)


def answers_of(envelope: Envelope, engine: ScriptedEngine) -> list[ToolResult]:
    assert (envelope.ok, envelope.text(), envelope.metadata.turns) == (True, "done", 2)
    results = [message.result for message in envelope.messages if message.result is not None]
    shown = [message["content"] for message in engine.requests[1]["messages"] if message["role"] == "tool"]
    assert shown == [result.text for result in results]
    return results


DOORS = [by_call, by_call_tools, by_acall_tools, by_agent]
ALL_DOORS = [*DOORS, by_sync_agent]
AGENTS = (by_agent, by_sync_agent)


def one_turn(door, tools, *faults: ToolCall) -> list[ToolResult]:
    """Return the answers to the faulty calls, when everything around them is as it should be."""
    started = time.monotonic()
    first, *answers, last = results = door([double, greet, *tools], [FIRST, *faults, LAST])
    assert time.monotonic() - started < BUSY
    assert (first.call.id, first.kind, first.text) == ("first", "ok", "42")
    assert (last.call.id, last.kind, last.text) == ("last", "ok", "hello Ann")
    assert [result.call.name for result in answers] == [call.name for call in faults]
    for result in answers:
        assert_fit_for_a_model(result)
    if all(isinstance(call.id, str) for call in faults):
        for form in FORMATS.values():
            json.dumps(form.results(results), ensure_ascii=False, allow_nan=False)
    return answers


def assert_fit_for_a_model(result: ToolResult) -> None:
    text = result.text
    assert type(text) is str
    assert len(text) <= (100_100 if result.kind == "ok" else 5_000)
    assert len(json.dumps([text, result.parts], ensure_ascii=False, allow_nan=False).encode()) < 1_000_000
    for unwanted in ("Traceback", " object at 0x", HERE, "pydantic.dev", "\x1b", "\U000e0041"):
        assert unwanted not in text
    assert result.response.success is result.ok
    assert repr(result).isprintable() or len(result.call.name) > 100


def fault_of(func: Callable[..., Any], **options: Any) -> Tool:
    return Tool(func, name="fault", **options)


def check(result: ToolResult, kind: str, says: str) -> None:
    assert (result.kind, result.call.id) == (kind, "fault")
    assert says in result.text


def check_all(doors, tools, call: ToolCall, kind: str, says: str) -> None:
    for door in doors:
        [result] = one_turn(door, tools, call)
        check(result, kind, says)


# -- tools that return what nobody can show


class EvilText(str):
    __slots__ = ()

    def __len__(self):
        raise RuntimeError("no length")

    __getitem__ = __iter__ = __str__ = __repr__ = encode = __len__


class Evil:
    def __repr__(self):
        raise RuntimeError("no repr")

    __str__ = __iter__ = __len__ = __bool__ = __repr__

    def __eq__(self, other):
        raise RuntimeError("no comparison")

    def __hash__(self):
        raise RuntimeError("no hash")


class Classless:
    @property
    def __class__(self):
        raise RuntimeError("no class")


class Pretender:
    __class__ = Envelope


class Anything:
    def __getattr__(self, name):
        return self

    def __iter__(self):
        return itertools.count()


class EndlessList(list):
    def __iter__(self):
        return itertools.count()


class EndlessDict(dict):
    def values(self):
        return itertools.count()

    items = keys = __iter__ = values


class EvilMapping(Mapping):
    def __getitem__(self, key):
        raise SystemExit

    def __iter__(self):
        raise SystemExit

    def __len__(self):
        raise SystemExit


class Row(BaseModel):
    n: Any = 1


class FailingRow(BaseModel):
    n: int = 1

    @field_serializer("n")
    def fail(self, n: int) -> int:
        raise OSError(2, "gone", f"{HERE}/secret/rows.txt")


@dataclass
class Point:
    x: Any = 1


class Colour(Enum):
    RED = "red"


def circular() -> Any:
    rows: list[Any] = []
    rows.append({"rows": rows})
    return rows


def deep(levels: int = 5_000) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def repeated() -> Any:
    value: Any = ["ha"]
    for _ in range(60):
        value = [value, Point(value)]
    return value


def repeated_lists() -> Any:
    value: Any = [threading.Lock()]
    for _ in range(60):
        value = [value, value]
    return value


def released() -> memoryview:
    view = memoryview(b"gone")
    view.release()
    return view


NO_JSON = "is not JSON data"
NO_VALUE = "is not a value; return a list"
RETURNED: dict[str, tuple[Callable[[], Any], str, str]] = {
    "an object": (object, "failed", NO_JSON),
    "NaN": (lambda: float("nan"), "ok", '"NaN"'),
    "infinity inside": (lambda: {"rows": [float("inf"), -float("inf")]}, "ok", '{"rows":["Infinity","-Infinity"]}'),
    "something circular": (circular, "failed", "cannot be shown"),
    "5,000 levels": (deep, "failed", "cannot be shown"),
    "a model 5,000 levels deep": (lambda: Row(n=deep()), "failed", "cannot be shown"),
    "the same lists over and over": (repeated, "failed", "over and over"),
    "the same lists of nothing over and over": (repeated_lists, "failed", "cannot be shown"),
    "one long text over and over": (lambda: ["x" * 100_000] * 10_000, "failed", "far too long"),
    "a lone surrogate": (lambda: "a\ud800b", "ok", "a?b"),
    "a lone surrogate inside": (lambda: {"\ud800": ["\udfff"]}, "failed", "surrogates not allowed"),
    "an evil object": (Evil, "failed", NO_JSON),
    "an evil object inside": (lambda: {"rows": [Evil()]}, "failed", NO_JSON),
    "an object without a class": (Classless, "failed", "no class"),
    "an object that pretends to be another": (Pretender, "failed", "cannot be shown"),
    "an object that has every attribute": (Anything, "failed", "cannot be shown"),
    "a mock": (MagicMock, "failed", "cannot be shown"),
    "evil text": (lambda: EvilText("fine"), "ok", "fine"),
    "an evil mapping": (EvilMapping, "failed", "cannot be shown"),
    "a list that never ends": (lambda: EndlessList([1, 2]), "ok", "[1,2]"),
    "a lock in a list that never ends": (lambda: EndlessList([1, threading.Lock()]), "failed", NO_JSON),
    "a lock in a dictionary that never ends": (lambda: EndlessDict(a=threading.Lock()), "failed", NO_JSON),
    "a dictionary that never ends": (lambda: EndlessDict(a=1), "ok", '{"a":1}'),
    "48 MB of text": (lambda: "word " * 9_600_000, "ok", "characters left out"),
    "10 MB of bytes": (lambda: b"\0" * 10_000_000, "ok", "10,000,000 bytes: too large to show"),
    "bytes that are gone": (released, "failed", "cannot be shown"),
    "bytes that are no text": (lambda: {"raw": b"\xff\xfe"}, "failed", "cannot be shown"),
    "numbers without end": (itertools.count, "failed", NO_VALUE),
    "an iterator without end inside": (lambda: {"rows": [itertools.repeat("x")]}, "failed", NO_VALUE),
    "a map without end": (lambda: map(str, itertools.count()), "failed", NO_VALUE),
    "a generator without end inside": (lambda: [(n for n in itertools.count())], "failed", NO_VALUE),
    "standard input": (lambda: sys.stdin, "failed", "cannot be shown"),
    "a future": (Future, "failed", NO_JSON),
    "a class": (lambda: Row, "failed", NO_JSON),
    "a module": (lambda: types, "failed", NO_JSON),
    "a function": (lambda: deep, "failed", NO_JSON),
    "a lock": (threading.Lock, "failed", NO_JSON),
    "the ellipsis": (lambda: ..., "failed", NO_JSON),
    "an exception": (lambda: ValueError(f"{HERE}/x"), "failed", NO_JSON),
    "a number of 5,000 digits": (lambda: 10**5_000, "ok", "0" * 5_000),
    "a number of a million digits": (lambda: 1 << 3_000_000, "failed", "too many digits"),
    "a number of a million digits inside": (lambda: [{"n": 1 << 3_000_000}], "failed", "too many digits"),
    "a set": (lambda: {1}, "ok", "[1]"),
    "odd keys": (lambda: {None: 1, 1.5: 2, (1, "a"): 3}, "ok", '{"None":1,"1.5":2,"1,a":3}'),
    "keys that are objects": (lambda: {object(): 1}, "failed", "cannot be shown"),
    "a model whose serializer fails": (FailingRow, "failed", "cannot be shown"),
    "a dataclass": (Point, "ok", '{"x":1}'),
    "a dataclass of something else": (lambda: Point(threading.Lock()), "failed", NO_JSON),
    "an enum": (lambda: Colour.RED, "ok", '"red"'),
    "a time": (lambda: datetime(2026, 1, 2, tzinfo=UTC), "ok", '"2026-01-02T00:00:00Z"'),
    "a response with odd data": (lambda: ToolResponse(success=True, data={"f": deep}), "failed", NO_JSON),
    "a response with an odd message": (lambda: ToolResponse(success=False, message=object()), "failed", NO_JSON),
    "a response of failure": (lambda: ToolResponse(success=False, message="no stock"), "failed", "no stock"),
    "an envelope of failure": (lambda: Envelope("", error=RunError("max_turns", "16")), "failed", "max_turns: 16"),
    "an envelope without metadata": (lambda: Envelope("x", metadata=None), "failed", "cannot be shown"),
    "an envelope with odd figures": (lambda: Envelope("x", RunMetadata("r", usage=None)), "ok", "x"),
    "an envelope of odd runs": (lambda: Envelope("x", RunMetadata([], nested=5)), "ok", "x"),
    "an envelope of an odd error": (lambda: Envelope("", error="bad"), "failed", "cannot be shown"),
    "terminal escapes": (lambda: "\x1b[31mred\x1b[0m \x1b]0;title\x07", "ok", "red "),
    "invisible tags": (lambda: {"a": "b\U000e0041\U000e007f"}, "ok", '{"a":"b"}'),
    "an image that is none": (lambda: {"type": "image", "data": "\ud800", "mimeType": "x"}, "failed", "surrogate"),
    "the truth": (lambda: NotImplemented, "failed", NO_JSON),
}


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("fault", RETURNED)
def test_a_value_nobody_expects_harms_nobody(room, colour, fault):
    make, kind, says = RETURNED[fault]

    def returning():
        return make()

    check_all(DOORS, [fault_of(COLOURS[colour](returning))], ToolCall("fault", "fault"), kind, says)


@pytest.mark.parametrize("fault", RETURNED)
def test_it_does_not_either_while_there_are_secrets_to_keep(room, fault):
    secret = Secret(f"secret {random.random()}")  # noqa: S311  # a text nothing else holds
    make, kind, says = RETURNED[fault]

    def returning():
        return make()

    check_all([by_call_tools], [fault_of(returning)], ToolCall("fault", "fault"), kind, says)
    assert secret.reveal()


# -- tools that raise what nobody expects


class NakedError(BaseException):
    pass


class UnborableError(Exception):
    def __init__(self):
        raise LookupError("cannot even be made")


class MuteError(Exception):
    def __str__(self):
        raise SystemExit

    __repr__ = __eq__ = __bool__ = __str__

    __hash__ = Exception.__hash__


class EvilTextError(Exception):
    def __str__(self):
        return EvilText("still told")


class ClasslessError(Exception):
    __class__ = Classless.__class__


class _Nameless(type):
    @property
    def __name__(cls):
        raise RuntimeError("no name")


class NamelessError(Exception, metaclass=_Nameless):
    pass


class MuteNotFoundError(ToolNotFoundError):
    __str__ = MuteError.__str__


class MuteArgumentError(ToolArgumentError):
    __str__ = MuteError.__str__


LongNameError = type("Long" * 100_000, (Exception,), {})


def endless():
    return endless()


def too_much():
    return bytearray(1 << 62)


def nested_group():
    group: BaseException = ValueError("inmost")
    for _ in range(500):
        group = BaseExceptionGroup("group", [group])
    raise group


def circular_cause():
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    raise first


def raising(make):
    def fault():
        raise make()

    return fault


RAISED: dict[str, tuple[Callable[[], Any], str, str]] = {
    "ValueError": (raising(lambda: ValueError("no such city")), "failed", "ValueError: no such city"),
    "SystemExit": (raising(lambda: SystemExit(3)), "failed", "SystemExit: 3"),
    "sys.exit with a text": (lambda: sys.exit("bye"), "failed", "SystemExit: bye"),
    "a bare BaseException": (raising(lambda: NakedError("naked")), "failed", "NakedError: naked"),
    "a cancellation of its own": (raising(asyncio.CancelledError), "cancelled", "was cancelled"),
    "StopIteration": (raising(lambda: StopIteration(1)), "failed", "StopIteration"),
    "StopAsyncIteration": (raising(StopAsyncIteration), "failed", "StopAsyncIteration"),
    "GeneratorExit": (raising(GeneratorExit), "failed", "GeneratorExit"),
    "an exhausted iterator": (lambda: next(iter([])), "failed", "StopIteration"),
    "real recursion": (endless, "failed", "RecursionError"),
    "real lack of memory": (too_much, "failed", "Error"),
    "MemoryError": (raising(MemoryError), "failed", "MemoryError"),
    "a group": (raising(lambda: ExceptionGroup("several", [ValueError("a")])), "failed", "several"),
    "a group of exits": (raising(lambda: BaseExceptionGroup("several", [SystemExit()])), "failed", "several"),
    "groups 500 levels deep": (nested_group, "failed", "group"),
    "circular causes": (circular_cause, "failed", "ValueError: first"),
    "an error without a text": (raising(MuteError), "failed", "MuteError"),
    "an error of evil text": (raising(EvilTextError), "failed", "EvilTextError: still told"),
    "an error without a class": (raising(ClasslessError), "failed", "Tool 'fault' failed"),
    "an error without a name": (raising(NamelessError), "failed", "Tool 'fault' failed"),
    "an error of a very long name": (raising(LongNameError), "failed", "LongLong"),
    "an error that cannot be made": (raising(UnborableError), "failed", "LookupError: cannot even be made"),
    "an error of 10 MB": (raising(lambda: ValueError("x" * 10_000_000)), "failed", "ValueError: xxx"),
    "an error of lone surrogates": (raising(lambda: ValueError("a\ud800b")), "failed", "a?b"),
    "an error of escapes": (raising(lambda: ValueError("\x1b[2Jblank\U000e0041")), "failed", "ValueError: blank"),
    "the machine's paths": (
        raising(lambda: OSError(2, "gone", f"{HERE}/a b/c.txt")),
        "failed",
        "FileNotFoundError: gone: c.txt",
    ),
    "a path after a colon": (raising(lambda: ValueError(f"open:{HERE}/c.txt")), "failed", "open:c.txt"),
    "a path in quotes": (raising(lambda: ValueError(f"in '{HERE}/a b/c.txt'")), "failed", "in 'c.txt'"),
    "a path as a URL": (raising(lambda: ValueError(f"file://{HERE}/c.txt")), "failed", "ValueError: c.txt"),
    "a path of another system": (raising(lambda: ValueError(r"C:\Users\ann lee\c.txt")), "failed", "ValueError: c.txt"),
    "another tool that is not there": (
        raising(lambda: ToolNotFoundError("Tool 'x' not found.")),
        "failed",
        "Tool 'fault' failed: Tool 'x' not found.",
    ),
    "a mute not-found": (raising(lambda: MuteNotFoundError("x")), "failed", "Tool 'fault' failed"),
    "a mute argument error": (raising(lambda: MuteArgumentError("x")), "failed", "Tool 'fault' failed"),
    "words of its own": (raising(lambda: ToolExecutionError("in my words")), "failed", "failed: in my words"),
    "a timeout of its own": (raising(lambda: TimeoutError("slow")), "failed", "TimeoutError: slow"),
    "our timeout": (raising(lambda: ToolTimeoutError("slow")), "timed_out", "slow"),
    "our denial": (raising(lambda: ToolDeniedError("not you")), "denied", "not you"),
    "our argument error": (raising(lambda: ToolArgumentError("n: odd")), "invalid_arguments", "n: odd"),
}


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("fault", RAISED)
def test_an_error_nobody_expects_harms_nobody(room, colour, fault):
    func, kind, says = RAISED[fault]

    def failing():
        return func()

    check_all(DOORS, [fault_of(COLOURS[colour](failing))], ToolCall("fault", "fault"), kind, says)


# -- tools that misbehave


class Misdeed(NamedTuple):
    build: Callable[[Room], Tool]
    kind: str
    says: str


MISDEEDS: dict[str, Misdeed] = {}


def misdeed(kind: str, says: str, **options: Any):
    """Add to the table what the decorated function makes in a room: the function of a tool."""

    def add(build):
        MISDEEDS[build.__name__.replace("_", " ")] = Misdeed(lambda room: fault_of(build(room), **options), kind, says)
        return build

    return add


hanging = functools.partial(misdeed, "timed_out", "Tool 'fault' timed out", timeout=SOON)


@hanging()
def hangs(room):
    return room.hang


@hanging()
def hangs_asynchronously(room):
    async def fault():
        await asyncio.Event().wait()

    return fault


@hanging()
def returns_a_coroutine_that_hangs(room):
    def fault():
        return asyncio.Event().wait()

    return fault


@hanging()
def returns_a_future_nobody_resolves(room):
    def fault():
        async def wait():
            await asyncio.get_running_loop().create_future()

        return wait()

    return fault


@hanging()
def swallows_its_cancellation(room):
    async def fault():
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

    return fault


@hanging()
def swallows_everything_for_ever(room):
    async def stubborn():
        while not room.hold.is_set():
            try:
                await asyncio.Event().wait()
            except BaseException:  # noqa: BLE001, S112  # as bad as a tool can be
                continue

    def fault():
        room.kept.append(stubborn())
        room.afterwards.callback(room.kept[-1].close)
        return room.kept[-1]

    return fault


@hanging()
def hangs_in_its_cleanup(room):
    async def fault():
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.Event().wait()

    return fault


@hanging()
def raises_in_its_cleanup(room):
    async def fault():
        try:
            await asyncio.Event().wait()
        finally:
            raise SystemExit

    return fault


@hanging()
def hangs_in_a_task_group(room):
    async def fault():
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(asyncio.Event().wait())

    return fault


@hanging()
def hangs_while_it_yields(room):
    def fault():
        yield 1
        room.hang()

    return fault


@hanging()
def hangs_while_it_yields_asynchronously(room):
    async def fault():
        yield 1
        await asyncio.Event().wait()

    return fault


@hanging()
def blocks_in_a_thread_of_its_own(room):
    def fault():
        thread = threading.Thread(target=room.hang)
        thread.start()
        thread.join()

    return fault


@hanging()
def reads_standard_input(room):
    reader, writer = os.pipe()
    stdin, sys.stdin = sys.stdin, os.fdopen(reader)

    def put_back():
        os.close(writer)
        wait_until(lambda: _portal._workers._lost == 0)
        sys.stdin.close()
        sys.stdin = stdin

    room.afterwards.callback(put_back)

    def fault():
        return sys.stdin.read()

    return fault


@hanging()
def takes_its_deadline_away(room):
    def fault(context: ToolContext):
        context.deadline = context.timeout = None
        return asyncio.Event().wait()

    return fault


@misdeed("failed", "TimeoutError")
def has_a_timeout_of_its_own(room):
    async def fault():
        async with asyncio.timeout(0.01):
            await asyncio.Event().wait()

    return fault


@misdeed("ok", "after three", timeout=BUSY)
def has_nested_timeouts_of_its_own(room):
    async def fault():
        for seconds in (0.001, 0.002, 0.003):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(BUSY), asyncio.timeout(seconds):
                    await asyncio.Event().wait()
        return "after three"

    return fault


@misdeed("failed", "KeyboardInterrupt")
def raises_keyboard_interrupt_in_its_worker(room):
    return raising(KeyboardInterrupt)


@misdeed("cancelled", "cancelled")
def cancels_its_own_task(room):
    async def fault():
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    return fault


@misdeed("failed", "RuntimeError")
def closes_the_loop_it_runs_on(room):
    async def fault():
        asyncio.get_running_loop().close()

    return fault


@misdeed("failed", "bad yield")
def awaits_what_is_not_awaitable(room):
    class Odd:
        def __await__(self):
            yield 5

    async def fault():
        await Odd()

    return fault


@misdeed("failed", "more than 100,000 values")
def yields_for_ever(room):
    def fault():
        yield from itertools.count()

    return fault


@misdeed("failed", "more than 100,000 values")
def yields_for_ever_asynchronously(room):
    async def fault():
        for n in itertools.count():
            yield n

    return fault


@misdeed("failed", "characters")
def yields_large_texts_for_ever(room):
    text = "x" * 1_000_000

    def fault():
        yield from itertools.repeat(text)

    return fault


@misdeed("failed", "ValueError: half way")
def raises_while_it_yields(room):
    def fault():
        yield "half"
        raise ValueError("half way")

    return fault


@misdeed("failed", "coroutine is not a value")
def returns_a_coroutine_inside(room):
    def fault():
        room.kept.append(asyncio.sleep(0))
        room.afterwards.callback(room.kept[-1].close)
        return {"rows": [room.kept[-1]]}

    return fault


@misdeed("failed", "Future is not JSON data")
def returns_a_future_as_its_value(room):
    async def fault():
        return asyncio.get_running_loop().create_future()

    return fault


@misdeed("ok", "printed")
def prints_a_lot(room):
    def fault():
        for _ in range(100):
            sys.stdout.write("x" * 50_000)
        return "printed"

    return fault


@misdeed("ok", "told")
def reports_a_lot(room):
    def fault(context: ToolContext):
        for n in range(2_000):
            context.progress(n, float("nan"), "\ud800\x1b[2J" * 100)
        return "told"

    return fault


@misdeed("ok", "left")
def leaves_a_task_behind(room):
    async def fault():
        loop = asyncio.get_running_loop()
        task = loop.create_task(asyncio.Event().wait(), name="left by the tool")
        room.afterwards.callback(lambda: loop.is_closed() or loop.call_soon_threadsafe(task.cancel))
        return "left"

    return fault


@misdeed("ok", "changed")
def changes_the_event_loop_policy(room):
    policy = asyncio.get_event_loop_policy()
    room.afterwards.callback(asyncio.set_event_loop_policy, policy)

    def fault():
        asyncio.set_event_loop_policy(asyncio.DefaultEventLoopPolicy())
        asyncio.set_event_loop(None)
        return "changed"

    return fault


@misdeed("ok", "42")
def calls_another_tool(room):
    return lambda: dispatch.call(FIRST, Toolset([double])).text


@misdeed("ok", "42")
def runs_a_loop_of_its_own(room):
    return lambda: asyncio.run(dispatch.acall(FIRST, Toolset([double]))).text


@misdeed("failed", "declared")
def has_no_function(room):
    return None


#: All but one of an agent's, whose run waits for somebody else to do what has no function.
MISDEEDS_BY_DOOR = [
    (fault, door) for fault in MISDEEDS for door in DOORS if (fault, door) != ("has no function", by_agent)
]


@pytest.mark.parametrize(("fault", "door"), MISDEEDS_BY_DOOR)
def test_a_misdeed_harms_nobody(room, door, fault):
    build, kind, says = MISDEEDS[fault]
    [result] = one_turn(door, [build(room)], ToolCall("fault", "fault"))
    check(result, kind, says)


@pytest.mark.parametrize("door", ALL_DOORS)
def test_many_that_hang_are_counted_until_they_are_released(room, door):
    hung = [ToolCall(f"fault {n}", "fault") for n in range(5)]
    results = one_turn(door, [fault_of(room.hang, timeout=SOON)], *hung)
    assert [(result.call.id, result.kind) for result in results] == [(call.id, "timed_out") for call in hung]
    assert _portal._workers._lost == 5
    room.leave()
    wait_until(lambda: _portal._workers._lost == 0)


# -- what only a loop of our own survives


@pytest.mark.parametrize("door", [by_call, by_call_tools, by_sync_agent])
@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_task_left_behind_that_exits_does_not_end_the_background_loop(room, door, error):
    async def exit_later():
        raise error

    async def fault():
        task = asyncio.get_running_loop().create_task(exit_later())
        with contextlib.suppress(BaseException):
            await asyncio.wait([task])
        return "left" if isinstance(task.exception(), error) else "not left"

    for _ in range(2):
        [result] = one_turn(door, [fault_of(fault)], ToolCall("fault", "fault"))
        check(result, "ok", "left")


@pytest.mark.parametrize("door", [by_call, by_call_tools, by_sync_agent])
def test_a_tool_that_stops_the_background_loop_stops_nothing(room, door):
    async def fault():
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0.001)
        return "stopped"

    for _ in range(2):
        [result] = one_turn(door, [fault_of(fault)], ToolCall("fault", "fault"))
        check(result, "ok", "stopped")


# -- tools that change what they are given


def spoiling(rows: list[Any], box: Any = None) -> str:
    rows.append("spoilt")
    box["more"].append("spoilt")
    box["spoilt"] = True
    return "done"


SPOILT = {"rows": [[1]], "box": {"more": [2]}}
SPOILING = [
    fault_of(spoiling),
    Tool.from_schema("fault", "", {"type": "object", "properties": {"rows": {}, "box": {}}}, spoiling),
    fault_of(in_async(spoiling)),
]


@pytest.mark.parametrize("door", ALL_DOORS)
@pytest.mark.parametrize("tool", SPOILING, ids=["ours", "foreign", "async"])
@pytest.mark.parametrize("raw", [False, True], ids=["mapping", "text"])
def test_what_a_tool_does_to_its_arguments_changes_no_call(room, door, tool, raw):
    given = json.loads(json.dumps(SPOILT))
    calls = [ToolCall(i, "fault", json.dumps(SPOILT) if raw else given) for i in ("fault", "again")]
    results = one_turn(door, [tool], *calls)
    assert [result.text for result in results] == ["done", "done"]
    assert given == SPOILT
    assert all(result.call.arguments == (json.dumps(SPOILT) if raw else SPOILT) for result in results)


def test_what_an_attempt_does_to_its_arguments_the_next_does_not_see(room):
    seen = []

    def fault(rows: list[int]) -> list[int]:
        seen.append(list(rows))
        rows.append(9)
        if len(seen) < 3:
            raise ValueError
        return rows

    tool = fault_of(fault, effect="read", executor=RetryExecutor(wait=0))
    [result] = one_turn(by_call_tools, [tool], ToolCall("fault", "fault", '{"rows": [1]}'))
    assert (seen, result.value) == ([[1], [1], [1]], [1, 9])


@pytest.mark.parametrize("error", [SystemExit, RecursionError, NakedError, asyncio.CancelledError, MuteError])
def test_a_validator_that_raises_anything_harms_nobody(room, error):
    def boom(value: Any) -> Any:
        raise error

    def fault(n: Annotated[int, BeforeValidator(boom)]) -> int:
        return n

    kind = "cancelled" if error is asyncio.CancelledError else "failed"
    check_all(ALL_DOORS, [fault_of(fault)], ToolCall("fault", "fault", '{"n": 1}'), kind, "fault")


# -- models that send what nobody can read


class EvilArguments(EvilMapping):
    pass


BAD, GONE = "invalid_arguments", "not_found"
SENT: dict[str, tuple[Any, Any, str, str]] = {
    "truncated": ("double", '{"n": 2', BAD, "not valid JSON"),
    "truncated in a text": ("double", '{"n": "2', BAD, "not valid JSON"),
    "a trailing comma": ("double", '{"n": 2,}', BAD, "trailing comma"),
    "single quotes": ("double", "{'n': 2}", BAD, "not valid JSON"),
    "a comment": ("double", '{"n": 2 /* two */}', BAD, "not valid JSON"),
    "trailing text": ("double", '{"n": 2} and that is it', BAD, "trailing characters"),
    "a fence": ("double", '```json\n{"n": 2}\n```', BAD, "not valid JSON"),
    "two objects": ("double", '{"n": 2}{"n": 3}', BAD, "trailing characters"),
    "a byte order mark": ("double", '\ufeff{"n": 2}', BAD, "not valid JSON"),
    "a key twice": ("double", '{"n": 2, "n": 3}', BAD, "duplicate key"),
    "a key twice, escaped": ("double", r'{"n": 2, "\u006e": 3}', BAD, "duplicate key"),
    "NaN": ("double", '{"n": NaN}', BAD, "n"),
    "infinity": ("double", '{"n": 1e999}', BAD, "n"),
    "Python": ("double", '{"n": None}', BAD, "not valid JSON"),
    "an array": ("double", "[2]", BAD, "not array"),
    "a text": ("double", '"two"', BAD, "not string"),
    "a number": ("double", "2", BAD, "not number"),
    "null": ("double", "null", BAD, "not null"),
    "nothing": ("double", "", BAD, "n: required, but missing"),
    "None": ("double", None, BAD, "n: required, but missing"),
    "an integer": ("double", 5, BAD, "must be a JSON object"),
    "a list": ("double", [2], BAD, "must be a JSON object"),
    "bytes": ("double", b'{"n": 2}', BAD, "must be a JSON object"),
    "an evil mapping": ("double", EvilArguments(), "failed", "Tool 'double' failed"),
    "10 MB": ("greet", json.dumps({"name": "x" * 10_000_000}), BAD, "10,000,012 characters long"),
    "10 MB in a mapping": ("greet", {"name": "x" * 10_000_000}, BAD, "characters long"),
    "10 MB of keys": ("greet", {"x" * 10_000_000: 1}, BAD, "characters long"),
    "10,000 levels": ("double", '{"n": ' + "[" * 10_000 + "]" * 10_000 + "}", BAD, "recursion limit"),
    "10,000 levels in a mapping": ("double", {"n": deep(10_000)}, BAD, "too deep"),
    "a circular mapping": ("double", {"n": circular()}, BAD, "circular"),
    "100,000 unknown arguments": ("double", json.dumps({f"k{n}": n for n in range(50_000)}), BAD, "too many to list"),
    "an unknown argument": ("double", '{"n": 2, "m": 3}', BAD, "m: not a parameter"),
    "a wrong type": ("double", '{"n": {"n": 2}}', BAD, "n: "),
    "a number of 10,000 digits": ("double", '{"n": 1' + "0" * 10_000 + "}", BAD, "n"),
    "a lone surrogate": ("greet", '{"name": "\ud800"}', BAD, "surrogate"),
    "an escaped lone surrogate": ("greet", r'{"name": "\ud800"}', BAD, "not valid JSON"),
    "a control character": ("greet", '{"name": "\x00"}', BAD, "not valid JSON"),
    "a text for a number": ("double", '{"n": "2"}', "ok", "4"),
    "an object as a text": ("double", json.dumps('{"n": 2}'), "ok", "4"),
    "a key twice in an object as a text": ("double", json.dumps('{"n": 2, "n": 3}'), BAD, "duplicate key"),
    "an object as a text as a text": ("double", json.dumps(json.dumps('{"n": 2}')), BAD, "not string"),
    "an unknown name": ("weather", "{}", GONE, "Tool 'weather' not found."),
    "a near miss": ("duoble", "{}", GONE, "Did you mean 'double'?"),
    "no name": ("", "{}", GONE, "Tool '' not found."),
    "a name of 1 MB": ("x" * 1_000_000, "{}", GONE, "not found"),
    "None for a name": (None, "{}", GONE, "Tool None not found."),
    "a number for a name": (5, "{}", GONE, "not found"),
    "a list for a name": (["double"], "{}", GONE, "not found"),
    "bytes for a name": (b"double", "{}", GONE, "not found"),
    "nothing right at all": (None, 5, GONE, "not found"),
    "a name in full width": ("ｄouble", "{}", GONE, "Did you mean 'double'?"),  # noqa: RUF001  # that is the trick
    "a name of another alphabet": ("dоuble", "{}", GONE, "Did you mean 'double'?"),  # noqa: RUF001  # that is the trick
    "a name of invisible characters": ("double\u200b\U000e0041", "{}", GONE, "not found"),
    "a name from right to left": ("\u202edouble", "{}", GONE, "not found"),
    "a name of escapes": ("\x1b[2Jdouble", "{}", GONE, "not found"),
    "a name of lone surrogates": ("\ud800", "{}", GONE, "not found"),
    "a path for a name": ("../double", "{}", GONE, "not found"),
    "a name with a space": ("double ", '{"n": 2}', GONE, "Did you mean 'double'?"),
}


@pytest.mark.parametrize("fault", SENT)
def test_what_a_model_should_not_send_harms_nobody(room, fault):
    name, arguments, kind, says = SENT[fault]
    check_all(ALL_DOORS, [], ToolCall("fault", name, arguments), kind, says)


@pytest.mark.parametrize("door", ALL_DOORS)
def test_a_thousand_calls_at_once_are_all_answered(room, door):
    faults = list(itertools.islice(itertools.cycle(SENT.values()), 1_000))
    faults = [row for row in faults if not isinstance(row[1], (str, dict)) or len(row[1]) < 5_000]
    calls = [ToolCall(f"call {n}", name, arguments) for n, (name, arguments, _, _) in enumerate(faults)]
    results = one_turn(door, [], *calls)
    assert [(result.call.id, result.kind) for result in results] == [
        (call.id, kind) for call, (_, _, kind, _) in zip(calls, faults, strict=True)
    ]


ODD_IDS = {
    "the same twice": ["same", "same"],
    "one of another call": ["first", "first"],
    "none": ["", None],
    "numbers": [5, 5.5],
    "containers": [[], {}],
    "an object": [object(), object()],
    "lone surrogates": ["\ud800", "\udfff"],
}


#: Who calls dispatch chose the ids, and gets them back as they are, even what no text can hold.
ODD_IDS_BY_DOOR = [
    (fault, door) for fault in ODD_IDS for door in ALL_DOORS if fault != "lone surrogates" or door in AGENTS
]


@pytest.mark.parametrize(("fault", "door"), ODD_IDS_BY_DOOR)
def test_every_call_of_an_odd_id_has_its_own_answer(room, door, fault):
    ids = ODD_IDS[fault]
    calls = [ToolCall(given, "double", {"n": n}) for n, given in enumerate(ids)]
    results = one_turn(door, [], *calls)
    assert [result.text for result in results] == ["0", "2"]
    answered = [result.call.id for result in results]
    if door not in AGENTS:
        assert all(answer is given for answer, given in zip(answered, ids, strict=True))
    else:
        assert len({*answered, "first", "last"}) == 4
        assert all(isinstance(answer, str) and answer.encode() for answer in answered)


def test_limits_hold_for_what_is_shown(room):
    limits = Limits(max_result_chars=10)
    results = call_tools([ToolCall("1", "fault")], Toolset([fault_of(lambda: "x" * 1_000)]), limits=limits)
    assert len(results[0].text) < 60
