import asyncio
import contextlib
import contextvars
import functools
import json
import math
import re
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from toolcrib import dispatch
from toolcrib.errors import (
    ToolArgumentError,
    ToolcribWarning,
    ToolDeniedError,
    ToolExecutionError,
    ToolNotFoundError,
)
from toolcrib.events import ToolFinished, ToolProgress, ToolStarted
from toolcrib.executors.inline import InlineExecutor
from toolcrib.limits import Limits
from toolcrib.tools import Tool
from toolcrib.toolset import Toolset
from toolcrib.types import Secret, ToolCall, ToolContext, ToolParameter, ToolResponse, ToolResult

SHORT = Limits(deadline=0.05)
WHO: contextvars.ContextVar[str] = contextvars.ContextVar("WHO", default="nobody")


# -- the four doors to one line


def by_acall(call, toolset, **options):
    return asyncio.run(dispatch.acall(call, toolset, **options))


def by_acall_tools(call, toolset, **options):
    return asyncio.run(dispatch.acall_tools([call], toolset, **options))[0]


def by_call(call, toolset, **options):
    return dispatch.call(call, toolset, **options)


def by_call_tools(call, toolset, **options):
    return dispatch.call_tools([call], toolset, **options)[0]


def inside_a_loop(call, toolset, **options):
    async def main():
        return dispatch.call(call, toolset, **options)

    return asyncio.run(main())


DOORS = [by_acall, by_acall_tools, by_call, by_call_tools, inside_a_loop]
Door = Callable[..., ToolResult]


@pytest.fixture(params=DOORS, ids=lambda door: door.__name__)
def answer(request) -> Door:
    return request.param


def in_async(func):
    @functools.wraps(func)
    async def coloured(*args, **kwargs):
        await asyncio.sleep(0)
        return func(*args, **kwargs)

    return coloured


def at_once(func):
    @functools.wraps(func)
    async def coloured(*args, **kwargs):
        return func(*args, **kwargs)

    return coloured


def through(func):
    """A plain decorator around an async function: a sync function that returns a coroutine."""
    inner = in_async(func)

    @functools.wraps(func)
    def coloured(*args, **kwargs):
        return inner(*args, **kwargs)

    return coloured


@pytest.fixture(params=[lambda func: func, in_async, at_once, through], ids=["sync", "async", "at once", "through"])
def colour(request):
    return request.param


def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


def call_of(name: str, /, **arguments: Any) -> ToolCall:
    return ToolCall("c1", name, json.dumps(arguments))


# -- each kind of answer


def test_a_call_is_answered_with_its_value(answer, colour):
    result = answer(call_of("add", a="2"), Toolset([colour(add)]))
    assert (result.kind, result.ok, result.value, result.text) == ("ok", True, 3, "3")
    assert (result.call.id, result.call.name, result.call.arguments) == ("c1", "add", '{"a": "2"}')
    assert result.response == ToolResponse(success=True, data=3)
    assert 0 <= result.duration < 5


def test_a_call_with_an_unknown_name_is_answered_with_near_names(answer):
    result = answer(call_of("ad"), Toolset([add, Tool(add, name="subtract")]))
    assert result.kind == "not_found"
    assert result.text.startswith("Tool 'ad' not found.")
    assert "add" in result.text
    assert "subtract" not in result.text
    assert result.response.success is False


def test_a_call_with_an_unknown_name_in_an_empty_toolset_is_answered(answer):
    assert answer(call_of("x"), Toolset()).text.startswith("Tool 'x' not found.")


@pytest.mark.parametrize("name", ["", "\ud800", "\x1b[31m" * 50, "x" * 1_000_000, None, 5, ["add"], "add ", "ADD"])
def test_any_name_is_answered(answer, name):
    result = answer(ToolCall("c1", name, "{}"), Toolset([add]))
    assert result.kind == "not_found"
    assert len(result.text) < 1_000
    assert "\x1b" not in result.text
    result.text.encode()


def test_wrong_arguments_are_answered_without_a_run(answer, colour):
    ran = []

    def record(a: int) -> None:
        ran.append(a)

    wrong: tuple[Any, ...] = (
        '{"a": "x"}',
        "{}",
        "[",
        '{"a": 1, "a": 2}',
        '{"b": 1, "a": 1}',
        {"a": "x"},
        [1],
        b"{}",
        5,
    )
    for arguments in wrong:
        result = answer(ToolCall("c1", "record", arguments), Toolset([colour(record)]))
        assert result.kind == "invalid_arguments"
        assert result.value is None
        assert "record" in result.text
    assert ran == []


class _OddError(Exception):
    def __str__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no"),
        SystemExit(3),
        RecursionError("deep"),
        MemoryError(),
        StopIteration(4),
        StopAsyncIteration(),
        GeneratorExit(),
        BaseException("base"),
        BaseExceptionGroup("group", [SystemExit()]),
        ExceptionGroup("group", [ValueError()]),
        _OddError(),
        AssertionError(),
        ToolExecutionError("said so"),
        ToolNotFoundError("Tool 'other' not found."),
        TimeoutError("its own"),
        Warning("as an error"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_tool_raises_is_an_answer(answer, colour, error):
    def fail():
        raise error

    result = answer(call_of("fail"), Toolset([colour(fail)]))
    assert result.kind == "failed"
    assert result.text.startswith("Tool 'fail' failed")
    assert "Traceback" not in result.text


def test_endless_recursion_is_an_answer(answer, colour):
    def again():
        return again()

    assert answer(call_of("again"), Toolset([colour(again)])).text.startswith("Tool 'again' failed: RecursionError")


def test_a_denied_call_is_told_apart(answer, colour):
    def deny():
        raise ToolDeniedError("not on Sundays")

    result = answer(call_of("deny"), Toolset([colour(deny)]))
    assert (result.kind, result.text) == ("denied", "Tool 'deny' was denied: not on Sundays")


def test_a_cancellation_that_a_tool_raises_by_itself_is_an_answer(answer, colour):
    def cancel():
        raise asyncio.CancelledError

    assert answer(call_of("cancel"), Toolset([colour(cancel)])).kind == "cancelled"


@pytest.mark.parametrize("door", [by_call, by_call_tools, by_acall_tools])
def test_a_tool_that_cancels_its_own_task_is_answered(door):
    async def give_up():
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(5)

    assert door(call_of("give_up"), Toolset([give_up])).kind == "cancelled"


@pytest.mark.parametrize("secret", [None, "hunter2", "\ud800abcd"])
@pytest.mark.parametrize(
    ("value", "kind"),
    [(object(), "failed"), (float("nan"), "ok"), ("\ud800", "ok"), ({1: {2}}, "ok"), ([b"\xff"], "ok")],
)
def test_any_value_is_answered_and_has_a_response(answer, colour, value, kind, secret):
    held = secret and Secret(secret)
    result = answer(call_of("give"), Toolset([Tool(colour(lambda: value), name="give")]))
    assert result.kind == kind
    assert result.value is value
    assert held is None or held.reveal() == secret
    result.text.encode()
    json.dumps(result.response.to_dict(), allow_nan=False)


def test_a_secret_is_not_told(answer):
    result = answer(call_of("give"), Toolset([Tool(lambda: {"key": Secret("hunter2")}, name="give")]))
    assert "hunter2" not in result.text + repr(result) + str(result.response)


def test_a_generator_in_a_value_is_not_run_to_look_for_secrets(answer):
    def ones():
        while True:
            yield 1

    held = Secret("hunter2")
    result = answer(call_of("give"), Toolset([Tool(lambda: {"rows": ones()}, name="give")]))
    assert (result.kind, result.value, held.reveal()) == ("failed", None, "hunter2")


def test_a_declared_tool_answers_that_it_cannot_be_called(answer):
    result = answer(call_of("later"), Toolset([Tool(name="later")]))
    assert (result.kind, "only declared" in result.text) == ("failed", True)


def test_a_tool_whose_schema_is_unusable_is_an_answer(answer):
    broken = Tool.from_schema("broken", "", {"properties": {"a": {"$ref": "#/nowhere"}}}, lambda **_: 1)
    assert answer(call_of("broken", a=1), Toolset([broken])).kind == "failed"


def test_a_tool_whose_hint_cannot_be_resolved_is_an_answer(answer):
    def strange(x: "Missing"): ...  # noqa: F821

    assert answer(call_of("strange", x=1), Toolset([strange])).kind == "failed"


def test_a_response_of_the_author_decides(answer, colour):
    def stock() -> ToolResponse:
        return ToolResponse(success=False, message="sold out")

    result = answer(call_of("stock"), Toolset([colour(stock)]))
    assert result.kind == "failed"
    assert result.response == result.value == ToolResponse(success=False, message="sold out")


# -- deadlines


def hanging(release: threading.Event) -> list[Callable[..., Any]]:
    def sync_hang():
        release.wait(30)

    async def async_hang():
        await asyncio.Event().wait()

    async def swallowing():
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

    def returning():
        return async_hang()

    return [sync_hang, async_hang, swallowing, returning]


@pytest.mark.parametrize("index", range(4), ids=["sync", "async", "swallowing", "returning"])
def test_a_tool_that_hangs_is_answered_at_the_deadline(answer, index):
    release = threading.Event()
    tool = hanging(release)[index]
    started = time.monotonic()
    result = answer(call_of(tool.__name__), Toolset([tool]), limits=SHORT)
    assert result.kind == "timed_out"
    assert re.search(r"no answer within 0\.0\d+ seconds", result.text)
    assert 0.05 <= time.monotonic() - started < 5
    release.set()


def test_a_tools_own_timeout_wins(answer):
    async def hang():
        await asyncio.Event().wait()

    tools = Toolset([Tool(hang, timeout=0.03)], limits=Limits(deadline=30))
    assert "0.03" in answer(call_of("hang"), tools).text
    patient = Toolset([Tool(lambda: "done", name="quick", timeout=30)], limits=Limits(deadline=0))
    assert answer(call_of("quick"), patient).text == "done"


@pytest.mark.parametrize("deadline", [None, math.inf, 1e12])
def test_there_may_be_no_deadline(answer, colour, deadline):
    assert answer(call_of("add", a=1), Toolset([colour(add)]), limits=Limits(deadline=deadline)).ok


@pytest.mark.parametrize(
    "bounds", [{"max_parallel": 0}, {"deadline": -1}, {"deadline": math.nan}, {"max_parallel": -1}]
)
def test_limits_under_which_nothing_could_be_answered_are_refused(bounds):
    with pytest.raises(ValueError, match=next(iter(bounds))):
        Limits(**bounds)


def test_the_limits_of_the_call_win_over_those_of_the_toolset(answer):
    tools = Toolset([Tool(lambda: "x" * 100, name="long")], limits=Limits(max_result_chars=20))
    assert "left out" in answer(call_of("long"), tools).text
    assert answer(call_of("long"), tools, limits=Limits()).text == "x" * 100


# -- context


def test_the_context_tells_what_is_known_of_the_call(answer, colour):
    seen: list[ToolContext[Any]] = []

    def look(x: int, context: ToolContext[list[str]]):
        seen.append(context)
        assert context.remaining is not None
        assert 0 < context.remaining <= 7
        context.deps.append(f"{context.run_id} {context.call_id} {x}")

    given = ToolContext("ignored", "run 7", deps=["first"])
    assert answer(call_of("look", x=1), Toolset([colour(look)]), context=given, limits=Limits(deadline=7)).ok
    assert given.deps == ["first", "run 7 c1 1"]
    assert seen[0] is not given
    assert given.deadline is None


def test_a_context_is_there_without_a_run(answer, colour):
    def look(context: ToolContext[Any] | None = None):
        assert context is not None
        return [context.call_id, context.run_id, context.deps]

    assert answer(call_of("look"), Toolset([colour(look)])).value == ["c1", "", None]


def test_context_variables_reach_the_tool(answer, colour):
    def who():
        return WHO.get()

    token = WHO.set("ann")
    try:
        assert answer(call_of("who"), Toolset([colour(who)])).value == "ann"
    finally:
        WHO.reset(token)


def test_what_one_tool_sets_no_other_call_of_the_turn_sees():
    def remember(name: str):
        found = WHO.get()
        WHO.set(name)
        return found

    tools = Toolset([Tool(in_async(remember), effect="write")])
    calls = [call_of("remember", name=str(i)) for i in range(3)]
    assert [result.value for result in dispatch.call_tools(calls, tools)] == ["nobody"] * 3


# -- events


def test_events_tell_of_start_progress_and_end(answer, colour):
    def work(context: ToolContext[Any]):
        context.progress(1, 2, "half")
        return "done"

    events = []
    context = ToolContext[Any](run_id="r")
    result = answer(call_of("work"), Toolset([colour(work)]), context=context, on_event=events.append)
    started, progress, finished = events
    assert isinstance(started, ToolStarted)
    assert (started.run_id, started.call.id, started.call.name) == ("r", "c1", "work")
    assert progress == ToolProgress("r", "c1", 1, 2, "half")
    assert finished == ToolFinished("r", result)


def test_the_start_of_a_call_tells_the_names_that_people_are_shown():
    tool = Tool(lambda a=1: a, name="f", parameters=[ToolParameter("a", "int", display_name="Order number")])
    events = []
    dispatch.call(ToolCall("1", "f", {"a": 1}), Toolset([tool]), on_event=events.append)
    assert events[0].display_names == {"a": "Order number"}


@pytest.mark.parametrize("call", [call_of("missing"), ToolCall("c1", "add", "[")])
def test_a_call_that_never_ran_only_ends(answer, call):
    events = []
    answer(call, Toolset([add]), on_event=events.append)
    assert [type(event) for event in events] == [ToolFinished]


def test_a_listener_that_fails_does_not_sink_the_call(answer, colour):
    def listen(event):
        raise ValueError("deaf")

    with pytest.warns(ToolcribWarning, match="on_event failed for Tool.*: ValueError: deaf"):
        assert answer(call_of("add", a=1), Toolset([colour(add)]), on_event=listen).ok


# -- executors


class Recording:
    def __init__(self, inner=None):
        self.inner = inner or InlineExecutor()
        self.seen = []

    async def run(self, tool, arguments, call):
        self.seen.append((tool.name, dict(arguments), call.id))
        return await self.inner.run(tool, arguments, call)


def test_an_executor_sees_validated_calls_only(answer, colour):
    executor = Recording()
    tools = Toolset([colour(add)])
    assert answer(call_of("add", a="1"), tools, executor=executor).value == 2
    answer(call_of("add", a="x"), tools, executor=executor)
    answer(call_of("missing"), tools, executor=executor)
    assert executor.seen == [("add", {"a": 1}, "c1")]


def test_the_executor_of_a_tool_wins(answer, colour):
    own, general = Recording(), Recording()
    assert answer(call_of("add", a=1), Toolset([Tool(colour(add), executor=own)]), executor=general).ok
    assert (len(own.seen), len(general.seen)) == (1, 0)


def test_executors_nest_and_may_refuse(answer, colour):
    class Ask:
        def __init__(self, inner):
            self.inner = inner

        async def run(self, tool, arguments, call):
            if arguments["a"] > 1:
                raise ToolDeniedError("too much")
            return await self.inner.run(tool, arguments, call)

    executor = Ask(Recording())
    tools = Toolset([colour(add)])
    assert answer(call_of("add", a=1), tools, executor=executor).value == 2
    assert answer(call_of("add", a=2), tools, executor=executor).kind == "denied"


def test_time_spent_in_a_wrapper_does_not_count(answer, colour):
    class Waits:
        async def run(self, tool, arguments, call):
            await asyncio.sleep(0.1)
            return await InlineExecutor().run(tool, arguments, call)

    assert answer(call_of("add", a=1), Toolset([colour(add)]), executor=Waits(), limits=SHORT).value == 2


def test_an_executor_that_fails_is_an_answer(answer):
    class Broken:
        async def run(self, tool, arguments, call):
            raise OSError("no sandbox")

    assert answer(call_of("add", a=1), Toolset([add]), executor=Broken()).kind == "failed"


def test_a_tool_that_calls_another_is_not_mistaken_for_it(answer):
    inner = Toolset([add])

    def outer(name: str):
        return inner[name]

    result = answer(call_of("outer", name="ad"), Toolset([outer]))
    assert result.kind == "failed"
    assert result.text.startswith("Tool 'outer' failed")


# -- where tools run


def test_sync_tools_run_in_a_worker_unless_they_opt_out():
    def where():
        return threading.current_thread().name

    tools = Toolset([where, Tool(where, name="here", thread=False)])
    assert by_acall(call_of("where"), tools).value == by_call(call_of("where"), tools).value == "toolcrib worker"
    assert by_acall(call_of("here"), tools).value == by_call(call_of("here"), tools).value == "MainThread"


@pytest.mark.anyio
async def test_async_tools_run_on_the_callers_own_loop():
    event = asyncio.Event()

    async def wait():
        await event.wait()
        return asyncio.get_running_loop() is here

    here = asyncio.get_running_loop()
    task = asyncio.create_task(dispatch.acall(call_of("wait"), Toolset([wait])))
    await asyncio.sleep(0)
    event.set()
    assert (await task).value is True


@pytest.mark.anyio
async def test_a_sync_tool_does_not_block_the_loop():
    release = threading.Event()
    task = asyncio.create_task(dispatch.acall(call_of("wait"), Toolset([Tool(lambda: release.wait(10), name="wait")])))
    await asyncio.sleep(0.01)  # the loop goes on meanwhile, or the tool would never end
    release.set()
    assert (await task).value is True


def test_a_sync_call_inside_an_async_tool_of_a_sync_run_is_a_clear_error():
    tools = Toolset([in_async(add)])

    async def nested():
        return dispatch.call_tools([call_of("add", a=1)], tools)

    result = by_call(call_of("nested"), Toolset([nested]))
    assert result.kind == "failed"
    assert "use the async surface" in result.text


def test_a_sync_call_inside_a_sync_tool_works(answer):
    tools = Toolset([add, Tool(in_async(add), name="aadd")])

    def nested(name: str):
        return dispatch.call(call_of(name, a=1), tools).value

    assert answer(call_of("nested", name="add"), Toolset([nested])).value == 2
    assert answer(call_of("nested", name="aadd"), Toolset([nested])).value == 2


# -- cancellation and Ctrl-C


@pytest.mark.anyio
@pytest.mark.parametrize("many", [False, True])
async def test_a_caller_who_cancels_stops_the_tool(many):
    started, stopped = asyncio.Event(), []

    async def hang():
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(1)

    tools, call, before = Toolset([hang]), call_of("hang"), asyncio.all_tasks()
    task = asyncio.create_task(dispatch.acall_tools([call] * 3, tools) if many else dispatch.acall(call, tools))
    await started.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped == [1] * (3 if many else 1)
    assert asyncio.all_tasks() == before


@pytest.mark.anyio
async def test_a_caller_with_a_timeout_of_its_own_keeps_it():
    async def hang():
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await dispatch.acall_tools([call_of("hang")], Toolset([hang]))


@pytest.mark.anyio
async def test_a_caller_who_cancels_does_not_wait_for_a_sync_tool():
    started, release = threading.Event(), threading.Event()

    def hang():
        started.set()
        release.wait(10)

    task = asyncio.create_task(dispatch.acall(call_of("hang"), Toolset([hang])))
    await asyncio.to_thread(started.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("door", ["call", "call_tools", "acall", "acall_tools"])
@pytest.mark.parametrize("kind", ["def", "async def"])
def test_ctrl_c_ends_the_run_whatever_runs(door, kind):
    program = f"""
        import asyncio, os, signal, threading, time
        from toolcrib import ToolCall, dispatch
        from toolcrib.toolset import Toolset

        {kind} hang():
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
            {"await asyncio.sleep(30)" if kind == "async def" else "time.sleep(30)"}

        {kind} five():
            return 5

        calls = ToolCall("1", "hang"), ToolCall("2", "five")
        def run(call):
            found = dispatch.{door}({"[call]" if "tools" in door else "call"}, Toolset([hang, five]))
            return asyncio.run(found) if "{door}".startswith("a") else found

        try:
            run(calls[0])
        except KeyboardInterrupt:
            print("interrupted", {"run(calls[1])[0].value" if "tools" in door else "run(calls[1]).value"})
    """
    started = time.monotonic()
    done = run(program)
    assert done.stdout == "interrupted 5\n", done.stderr
    assert time.monotonic() - started < 25


def test_a_keyboard_interrupt_raised_by_a_tool_off_the_main_thread_is_its_failure(answer):
    def interrupt():
        raise KeyboardInterrupt

    assert answer(call_of("interrupt"), Toolset([interrupt])).kind == "failed"


@pytest.mark.parametrize("door", [by_call, by_call_tools, inside_a_loop])
def test_a_keyboard_interrupt_raised_on_the_background_loop_is_a_failure(door):
    tools = Toolset([Tool(in_async(lambda: exec("raise KeyboardInterrupt")), name="interrupt"), in_async(add)])
    assert door(call_of("interrupt"), tools).kind == "failed"
    assert door(call_of("add", a=1), tools).value == 2


# -- the calls of one turn


@pytest.fixture(params=["sync", "async"])
def answer_all(request):
    if request.param == "sync":
        return dispatch.call_tools
    return lambda calls, toolset, **options: asyncio.run(dispatch.acall_tools(calls, toolset, **options))


def test_no_calls_have_no_answers(answer_all):
    assert answer_all([], Toolset([add])) == []


def test_answers_keep_the_order_of_the_calls(answer_all):
    turns = [threading.Event() for _ in range(5)]
    turns[4].set()

    def backwards(i: int):
        turns[i].wait(10)
        turns[i - 1].set()
        return i

    calls = (ToolCall(str(i), "backwards", {"i": i}) for i in range(5))
    results = answer_all(calls, Toolset([backwards]))
    assert [(result.call.id, result.value) for result in results] == [(str(i), i) for i in range(5)]


def test_every_call_has_its_own_answer_whatever_becomes_of_the_others(answer_all):
    async def hang():
        await asyncio.Event().wait()

    def fail():
        raise SystemExit

    calls = [
        ToolCall("", "add", '{"a": 1}'),
        ToolCall("same", "add", '{"a": 2}'),
        ToolCall("same", "fail"),
        ToolCall("same", "hang"),
        ToolCall("e", "missing"),
        ToolCall("f", "add", "{"),
    ]
    results = answer_all(calls, Toolset([add, fail, hang]), limits=SHORT)
    assert [result.kind for result in results] == ["ok", "ok", "failed", "timed_out", "not_found", "invalid_arguments"]
    assert [result.call.id for result in results] == [call.id for call in calls]


def test_calls_run_side_by_side_up_to_the_limit(answer_all):
    meeting, running, most = threading.Barrier(4), [], []

    def meet(i: int):
        running.append(i)
        most.append(len(running))
        meeting.wait(10)
        running.remove(i)

    calls = [call_of("meet", i=i) for i in range(12)]
    results = answer_all(calls, Toolset([meet]), limits=Limits(max_parallel=4))
    assert all(result.ok for result in results)
    assert max(most) == 4


@pytest.mark.parametrize("effect", ["write", "destructive"])
def test_calls_that_change_something_keep_their_order(answer_all, effect, colour):
    seen: list[int] = []

    def write(i: int):
        seen.append(i)
        time.sleep(0.001 * (5 - i))
        seen.append(i)
        return i

    calls = [call_of("write", i=i) for i in range(5)]
    results = answer_all(calls, Toolset([Tool(colour(write), effect=effect)]))
    assert [result.value for result in results] == list(range(5))
    assert seen == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_writes_of_different_providers_and_reads_do_not_wait_for_each_other(answer_all):
    meeting = threading.Barrier(3)

    def meet():
        meeting.wait(10)

    tools = Toolset(
        [
            Tool(meet, name="local", effect="write"),
            Tool(meet, name="remote", effect="destructive").replace(origin="mcp:fs"),
            Tool(meet, name="read", effect="read"),
        ]
    )
    results = answer_all([call_of(name) for name in tools.names], tools)
    assert [result.kind for result in results] == ["ok"] * 3


def test_a_write_that_fails_or_hangs_does_not_stop_the_next(answer_all):
    async def write(i: int):
        if i == 0:
            raise ValueError
        if i == 1:
            await asyncio.Event().wait()
        if i == 2:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(1)
        return i

    calls = [call_of("write", i=i) for i in range(4)]
    results = answer_all(calls, Toolset([Tool(write, effect="write")]), limits=SHORT)
    assert [result.kind for result in results] == ["failed", "timed_out", "cancelled", "ok"]


@pytest.mark.parametrize("most", [1, 32])
def test_ordered_calls_do_not_starve_the_others(answer_all, most):
    calls = [call_of("write", a=i) for i in range(10)] + [call_of("add", a=i) for i in range(10)]
    results = answer_all(
        calls, Toolset([add, Tool(add, name="write", effect="write")]), limits=Limits(max_parallel=most)
    )
    assert [result.value for result in results] == [*range(1, 11), *range(1, 11)]


def test_a_thousand_calls_at_once_are_all_answered(answer_all, colour):
    calls = [ToolCall(str(i), "add", {"a": i}) for i in range(1_000)]
    results = answer_all(calls, Toolset([colour(add)]), limits=Limits(max_parallel=1_000))
    assert [result.value for result in results] == list(range(1, 1_001))


def test_no_threads_are_left_behind_beyond_the_pool():
    tools = Toolset([add, Tool(in_async(add), name="aadd")])
    calls = [call_of("add", a=1), call_of("aadd", a=1)] * 50
    dispatch.call_tools(calls, tools)
    before = threading.active_count()
    for _ in range(20):
        dispatch.call_tools(calls, tools)
        asyncio.run(dispatch.acall_tools(calls, tools))
    assert threading.active_count() <= max(before, 70)


def test_many_threads_may_call_at_once():
    tools = Toolset([add, Tool(in_async(add), name="aadd")])
    values: list[Any] = []

    def work(i: int):
        values.extend(dispatch.call(call_of(name, a=i), tools).value for name in ("add", "aadd"))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(values) == sorted([*range(1, 21), *range(1, 21)])


def test_an_argument_error_names_its_problems(answer):
    result = answer(call_of("add", b="x"), Toolset([add]))
    with pytest.raises(ToolArgumentError) as caught:
        Tool(add).read('{"b": "x"}')
    assert result.text == str(caught.value)
