import asyncio
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import walled
import walled_kinds

from toolcrib import (
    Limits,
    NotSerializableError,
    ProcessExecutor,
    Tool,
    ToolCall,
    ToolNameError,
    ToolParameter,
    Toolset,
    ToolSignatureError,
    WallLimits,
    acall_tools,
    call_tools,
)


@pytest.fixture(scope="module")
def executor():
    with ProcessExecutor() as made:
        yield made


def answer(executor, func, limits=None, **arguments):
    tools = Toolset(executor.tools([func]))
    (result,) = call_tools([ToolCall("1", tools.names[0], arguments)], tools, limits=limits)
    return result


def gone(pid, seconds=10.0):
    end = time.monotonic() + seconds
    while Path(f"/proc/{pid}").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z":
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


# -- what crosses


def test_a_call_runs_in_another_process_that_stays_warm(executor):
    pids = {answer(executor, walled.pid).value for _ in range(5)}
    assert len(pids) <= 2
    assert os.getpid() not in pids


@pytest.mark.parametrize(
    ("func", "arguments", "value"),
    [
        (walled.add, {"a": 2, "b": 3}, 5),
        (walled.add, {"a": "2"}, 2),
        (walled_kinds.aadd, {"a": 2}, 2),
        (walled_kinds.words, {}, "one two"),
        (walled_kinds.numbers, {}, [1, 2]),
        (walled_kinds.image, {}, b"\x89PNG"),
        (walled_kinds.weather, {"place": {"city": "Oslo"}}, {"city": "Oslo", "degrees": 14.0}),
        (walled_kinds.told, {}, {"call_id": "1", "deps": None}),
    ],
)
def test_arguments_and_results_cross_as_json(executor, func, arguments, value):
    assert answer(executor, func, **arguments).value == value


def test_a_response_is_the_authors_own(executor):
    result = answer(executor, walled_kinds.soft)
    assert (result.kind, result.response.message, result.response.data) == ("failed", "not today", {"tried": 1})


def test_a_result_that_cannot_leave_is_told_with_its_path(executor):
    text = answer(executor, walled_kinds.rows).text
    assert text == "Tool 'rows' failed: its result cannot leave: result.rows[3].conn: object is not JSON data"


def test_an_argument_that_cannot_enter_is_told_with_its_path(executor):
    tool = Tool(walled_kinds.weather, executor=executor)
    call = ToolCall("1", "weather")
    with pytest.raises(NotSerializableError, match=r"^place\.city: object is not JSON data$"):
        asyncio.run(executor.run(tool, {"place": walled_kinds.Place(object())}, call))


# -- what is refused when it is built


def nested():
    def inner() -> None: ...

    return inner


@pytest.mark.parametrize("func", [lambda: 1, partial(walled.add, b=1), nested(), walled_kinds.Skill().method])
def test_a_function_that_is_not_found_again_by_its_name_is_refused(executor, func):
    with pytest.raises(ToolSignatureError, match="must stand at the top of a module"):
        executor.tools([Tool(func, name="f")])


def test_a_default_that_cannot_cross_is_refused(executor):
    options = {"parameters": [ToolParameter("conn", default={"rows": [object()]})]}
    with pytest.raises(NotSerializableError, match=r"any_way.conn.rows\[0\]: object is not JSON data"):
        executor.tools([Tool(walled_kinds.any_way, **options)])


def test_two_tools_of_one_name_are_refused(executor):
    with pytest.raises(ToolNameError, match="two tools are named 'add'"):
        executor.tools([walled.add, Tool(walled.pid, name="add")])


def test_no_workers_and_no_room_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        ProcessExecutor(workers=0)
    with pytest.raises(ValueError, match="a process needs"):
        WallLimits(memory_bytes=1)


# -- what breaks


@pytest.mark.parametrize(
    ("func", "arguments", "text"),
    [
        (walled.die, {"code": 3}, "it ended its process with exit code 3"),
        (walled.segfault, {}, "its process was ended by SIGSEGV"),
        (walled.fail, {"text": "no"}, "ValueError: no"),
        (walled.leave, {}, "SystemExit: 4"),
        (walled.hog, {"n": 10**11}, "MemoryError: there is no more memory"),
        (walled_kinds.said, {}, "the words of its author"),
    ],
)
def test_what_breaks_is_one_error_answer_and_the_next_call_runs(executor, func, arguments, text):
    result = answer(executor, func, **arguments)
    assert (result.kind, result.text) == ("failed", f"Tool '{func.__name__}' failed: {text}")
    assert answer(executor, walled.add, a=1).value == 1


def test_a_call_that_is_late_is_ended_with_its_process(executor):
    result = answer(executor, walled.sleep, limits=Limits(deadline=0.3), seconds=60)
    assert (result.kind, result.text) == ("timed_out", "Tool 'sleep' timed out: no answer within 0.3 seconds")
    assert result.duration < 5


def test_what_a_call_leaves_behind_ends_with_it(executor):
    assert gone(answer(executor, walled.daemonize).value)


@pytest.mark.anyio
async def test_a_call_that_is_cancelled_ends_its_process(tmp_path):
    with ProcessExecutor(workers=1) as executor:
        tools = Toolset(executor.tools([walled.note_and_sleep]))
        note = tmp_path / "pid"
        call = ToolCall("1", "note_and_sleep", {"path": str(note)})
        run = asyncio.create_task(acall_tools([call], tools))
        async with asyncio.timeout(20):
            while not note.exists() or not note.read_text():  # noqa: ASYNC110  # another process writes it
                await asyncio.sleep(0.01)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert await asyncio.to_thread(gone, int(note.read_text().split()[0]))


def test_everything_ends_with_the_program_however_that_ends(tmp_path):
    code = (
        f"import sys; sys.path.insert(0, {str(Path(walled.__file__).parent)!r})\n"
        "import walled\nfrom toolcrib import *\n"
        "tools = Toolset(ProcessExecutor().tools([walled.note_and_sleep]))\n"
        f"call_tools([ToolCall('1', 'note_and_sleep', {{'path': {str(tmp_path / 'pid')!r}}})], tools)"
    )
    program = subprocess.Popen([sys.executable, "-c", code])
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().endswith("\n"):
        assert program.poll() is None
        time.sleep(0.02)
    worker, child = map(int, (tmp_path / "pid").read_text().split())
    program.send_signal(signal.SIGKILL)
    program.wait()
    assert gone(worker)
    assert gone(child)


def test_a_closed_executor_says_so():
    executor = ProcessExecutor()
    executor.close()
    executor.close()
    assert answer(executor, walled.add, a=1).text == "Tool 'add' failed: the executor is closed"


def test_a_thousand_calls_of_which_some_crash_are_a_thousand_answers():
    descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # as short as it gets
    with ProcessExecutor(workers=2) as executor:
        tools = Toolset(executor.tools([walled.maybe]))
        results = call_tools([ToolCall(f"c{n}", "maybe", {"n": n}) for n in range(1_000)], tools)
        pids = [worker._process.pid for worker in executor._crew._workers]
    assert [result.call.id for result in results] == [f"c{n}" for n in range(1_000)]
    assert [result.value for result in results] == [None if n % 20 == 7 else n for n in range(1_000)]
    assert {result.kind for result in results if result.value is None} == {"failed"}
    assert all(gone(pid) for pid in pids)
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 2  # noqa: PTH208  # those of a loop
