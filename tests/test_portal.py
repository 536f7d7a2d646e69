import asyncio
import contextvars
import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import pytest

from toolcrib._portal import Portal, off_loop, off_thread, portal
from toolcrib.errors import ToolcribWarning, ToolTimeoutError
from toolcrib.limits import MAX_WORKER_THREADS
from toolcrib.tools import Tool

SHORT = 0.05
WHERE: contextvars.ContextVar[str] = contextvars.ContextVar("WHERE", default="nowhere")


async def value_of(value=None):
    await asyncio.sleep(0)
    return value


def run(program: str, timeout: float = 30) -> tuple[subprocess.CompletedProcess[str], float]:
    """Run a program in a process of its own and tell how long it took."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return done, time.monotonic() - started


# -- the background loop


def test_a_coroutine_runs_on_the_background_loop():
    async def where():
        return threading.current_thread().name, threading.current_thread().daemon

    assert portal().call(where) == ("toolcrib portal", True)


def test_arguments_and_values_pass_through():
    assert portal().call(value_of, 5) == 5
    assert portal().call(value_of, value="x") == "x"


def test_an_error_comes_back_as_it_is():
    async def fail():
        raise KeyError("k")

    with pytest.raises(KeyError):
        portal().call(fail)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_nothing_a_coroutine_raises_ends_the_loop(error):
    async def fail():
        raise error

    with pytest.raises(type(error)):
        portal().call(fail)
    assert portal().call(value_of, 1) == 1


def test_a_call_that_cannot_begin_is_an_error():
    with pytest.raises(TypeError):
        portal().call(value_of, 1, 2, 3)
    assert portal().call(value_of, 1) == 1


@pytest.mark.anyio
async def test_it_works_inside_a_running_loop():
    assert portal().call(value_of, 5) == 5


def test_a_call_from_its_own_thread_is_a_clear_error():
    async def nested():
        portal().call(value_of)

    with pytest.raises(RuntimeError, match="use the async surface"):
        portal().call(nested)


def test_context_variables_reach_the_loop_and_do_not_come_back():
    async def look():
        found = WHERE.get()
        WHERE.set("changed")
        return found

    token = WHERE.set("here")
    try:
        assert portal().call(look) == "here"
        assert WHERE.get() == "here"
    finally:
        WHERE.reset(token)


@pytest.mark.anyio
async def test_an_async_caller_awaits_the_background_loop_without_blocking_its_own():
    here = asyncio.Event()

    async def wake(loop):
        loop.call_soon_threadsafe(here.set)
        return threading.current_thread().name, WHERE.get()

    WHERE.set("here")
    assert await portal().acall(wake, asyncio.get_running_loop()) == ("toolcrib portal", "here")
    await here.wait()


@pytest.mark.anyio
@pytest.mark.parametrize("error", [KeyError("k"), SystemExit(3), asyncio.CancelledError()])
async def test_an_async_caller_gets_what_was_raised_there(error):
    async def fail():
        raise error

    with pytest.raises(type(error)):
        await portal().acall(fail)
    assert await portal().acall(value_of, 1) == 1


@pytest.mark.anyio
async def test_cancelling_an_async_caller_cancels_what_it_awaits_there():
    began, ended = threading.Event(), threading.Event()

    async def hang():
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    task = asyncio.create_task(portal().acall(hang))
    assert await asyncio.to_thread(began.wait, 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(ended.wait, 5)


def test_on_the_background_loop_itself_an_async_call_is_simply_awaited():
    async def nested():
        return await portal().acall(value_of, 7)

    assert portal().call(nested) == 7


@pytest.mark.anyio
async def test_an_async_caller_is_told_when_the_background_loop_closes():
    own = Portal()
    began = threading.Event()

    async def hang():
        began.set()
        await asyncio.sleep(60)

    task = asyncio.create_task(own.acall(hang))
    assert await asyncio.to_thread(began.wait, 5)
    await asyncio.to_thread(own.close)
    with pytest.raises(RuntimeError, match="the process is ending"):
        await task


def test_many_threads_share_one_loop():
    loops, barrier = set(), threading.Barrier(8)

    async def which():
        return asyncio.get_running_loop()

    def work():
        barrier.wait(10)
        loops.add(portal().call(which))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(loops) == 1


def test_an_interrupted_caller_cancels_its_call():
    program = """
        import asyncio, os, signal, threading
        from toolcrib._portal import portal

        cancelled = threading.Event()

        async def hang():
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        async def five():
            return 5

        try:
            portal().call(hang)
        except KeyboardInterrupt:
            print("interrupted", cancelled.wait(5), portal().call(five))
    """
    done, _ = run(program)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "interrupted True 5", "")


def test_after_closing_a_later_call_starts_anew():
    own = Portal()
    assert own.call(value_of, 1) == 1
    own.close()
    own.close()
    assert own.call(value_of, 2) == 2
    own.close()


def test_closing_cancels_what_runs():
    own, started, ended = Portal(), threading.Event(), threading.Event()

    async def hang():
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    errors = []

    def call():
        try:
            own.call(hang)
        except RuntimeError as error:
            errors.append(str(error))

    thread = threading.Thread(target=call)
    thread.start()
    assert started.wait(10)
    own.close()
    thread.join(10)
    assert ended.is_set()
    assert errors == ["the call was cancelled because the process is ending"]


def test_exit_codes_and_outputs_are_kept():
    program = """
        import sys
        from toolcrib._portal import portal
        async def f(): return 5
        print(portal().call(f))
        sys.exit(7)
    """
    done, _ = run(program)
    assert (done.returncode, done.stdout, done.stderr) == (7, "5\n", "")


def test_a_hanging_sync_tool_does_not_hold_the_process():
    program = """
        import time
        from toolcrib import Limits, ToolCall
        from toolcrib.dispatch import call
        from toolcrib.toolset import Toolset

        def hang():
            time.sleep(60)

        print(call(ToolCall("1", "hang"), Toolset([hang]), limits=Limits(deadline=0.05)).kind)
    """
    done, took = run(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "timed_out\n", "")
    assert took < 20


def test_a_hanging_async_tool_of_a_daemon_thread_does_not_hold_the_process():
    program = """
        import asyncio, threading
        from toolcrib._portal import portal
        started = threading.Event()

        async def hang():
            started.set()
            await asyncio.Event().wait()

        threading.Thread(target=portal().call, args=(hang,), daemon=True).start()
        started.wait()
        raise SystemExit(3)
    """
    done, took = run(program)
    assert done.returncode == 3
    assert took < 20


def test_a_thread_that_waits_for_a_hanging_async_tool_does_not_hold_the_process():
    program = """
        import asyncio, threading
        from toolcrib._portal import portal
        started = threading.Event()

        async def hang():
            started.set()
            await asyncio.Event().wait()

        def work():
            try:
                portal().call(hang)
            except RuntimeError as error:
                print(error)

        threading.Thread(target=work).start()
        started.wait()
    """
    done, took = run(program)
    assert (done.returncode, done.stderr) == (0, "")
    assert "the process is ending" in done.stdout
    assert took < 20


def test_an_async_tool_that_blocks_the_loop_holds_the_process_for_a_few_seconds_only():
    program = """
        import threading, time
        from toolcrib._portal import portal
        started = threading.Event()

        async def block():
            started.set()
            time.sleep(60)

        threading.Thread(target=portal().call, args=(block,), daemon=True).start()
        started.wait()
        raise SystemExit(3)
    """
    done, took = run(program)
    assert done.returncode == 3
    assert took < 20


def test_exit_handlers_may_still_call():
    program = """
        import atexit
        from toolcrib._portal import portal
        async def f(): return "still there"
        portal().call(f)
        atexit.register(lambda: print(portal().call(f)))
    """
    done, _ = run(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "still there\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_a_loop_and_workers_of_its_own():
    program = """
        import os, sys, time
        from toolcrib import ToolCall
        from toolcrib.dispatch import call_tools, call
        from toolcrib.toolset import Toolset

        def pid() -> int:
            return os.getpid()

        async def apid() -> int:
            return os.getpid()

        tools = Toolset([pid, apid])
        calls = [ToolCall("1", "pid"), ToolCall("2", "apid")]

        def right():
            return all(r.value == os.getpid() for r in call_tools(calls, tools)) and call(calls[0], tools).ok

        assert right()
        child = os.fork()
        if child == 0:
            sys.exit(0 if right() else 9)
        _, status = os.waitpid(child, 0)
        assert right()
        print(os.waitstatus_to_exitcode(status))
    """
    done, took = run(program)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    assert took < 25


# -- worker threads


def identity():
    return threading.current_thread().name, threading.current_thread().daemon


@pytest.mark.anyio
async def test_sync_functions_run_in_daemon_threads():
    assert await off_loop(identity) == ("toolcrib worker", True)
    assert off_thread(identity) == ("toolcrib worker", True)


@pytest.mark.anyio
async def test_context_variables_reach_the_worker():
    token = WHERE.set("here")
    try:
        assert await off_loop(WHERE.get) == "here"
        assert off_thread(WHERE.get) == "here"
    finally:
        WHERE.reset(token)
    assert off_thread(WHERE.get) == "nowhere"


@pytest.mark.anyio
@pytest.mark.parametrize("error", [KeyError("k"), SystemExit(3), asyncio.CancelledError(), BaseException("b")])
async def test_what_a_function_raises_comes_back(error):
    def fail():
        raise error

    with pytest.raises(type(error)):
        await off_loop(fail)
    with pytest.raises(type(error)):
        off_thread(fail)


@pytest.mark.anyio
@pytest.mark.parametrize("error", [StopIteration(4), GeneratorExit(), KeyboardInterrupt()])
async def test_what_would_be_mistaken_for_something_else_is_renamed(error):
    def fail():
        raise error

    with pytest.raises(RuntimeError, match=type(error).__name__):
        await off_loop(fail)
    with pytest.raises(RuntimeError, match=type(error).__name__):
        off_thread(fail)


@pytest.mark.anyio
async def test_a_function_that_hangs_is_given_up_at_its_deadline():
    release = threading.Event()
    try:
        started = time.monotonic()
        with pytest.raises(ToolTimeoutError, match=r"within 0\.05 seconds"):
            await off_loop(release.wait, 30, timeout=SHORT)
        with pytest.raises(ToolTimeoutError, match=r"within 0\.05 seconds"):
            off_thread(release.wait, 30, timeout=SHORT)
        assert time.monotonic() - started < 5
    finally:
        release.set()


@pytest.mark.anyio
@pytest.mark.parametrize("seconds", [1e300, float("inf"), 10**9])
async def test_a_deadline_may_be_as_far_off_as_one_likes(seconds):
    assert await off_loop(int, timeout=seconds) == 0
    assert off_thread(int, timeout=seconds) == 0


def test_a_deadline_that_is_over_already_still_ends():
    release = threading.Event()
    with pytest.raises(ToolTimeoutError):
        off_thread(release.wait, 30, timeout=-1)
    release.set()


@pytest.mark.anyio
async def test_a_caller_who_is_cancelled_does_not_wait():
    started, release = threading.Event(), threading.Event()

    def hang():
        started.set()
        release.wait(30)

    task = asyncio.create_task(off_loop(hang))
    assert await off_loop(started.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()


def test_a_loop_that_is_gone_is_no_error_for_the_worker():
    release, finished = threading.Event(), threading.Event()

    def slow():
        release.wait(10)
        finished.set()

    async def give_up():
        with pytest.raises(ToolTimeoutError):
            await off_loop(slow, timeout=SHORT)

    asyncio.run(give_up())
    release.set()
    assert finished.wait(10)
    assert off_thread(int) == 0


def test_workers_are_reused_and_hold_nothing():
    class Held: ...

    held = Held()
    gone = weakref.ref(held)
    off_thread(id, held)
    del held
    assert off_thread(int) == 0  # the worker has let go of the first job once it takes another
    assert gone() is None


def workers() -> int:
    return sum(thread.name == "toolcrib worker" for thread in threading.enumerate())


def test_work_that_is_done_one_by_one_needs_few_threads():
    before = workers()
    for _ in range(200):
        off_thread(int)
    assert workers() <= before + 2


def test_threads_are_bounded_and_everything_queued_is_done():
    program = f"""
        import asyncio, threading
        from toolcrib._portal import off_loop

        done = []

        def work(i):
            done.append(i)
            return sum(t.name == "toolcrib worker" for t in threading.enumerate())

        async def main():
            return max(await asyncio.gather(*(off_loop(work, i) for i in range(2000))))

        most = asyncio.run(main())
        print(most <= {MAX_WORKER_THREADS}, len(done))
    """
    done, _ = run(program)
    assert (done.stdout, done.stderr) == ("True 2000\n", "")


def test_lost_threads_are_replaced_up_to_a_bound_and_a_person_is_warned():
    program = f"""
        import threading, warnings
        from toolcrib._portal import off_thread
        from toolcrib.errors import ToolTimeoutError

        release = threading.Event()

        def lose(count):
            lost = 0
            for _ in range(count):
                try:
                    off_thread(release.wait, timeout=0.01)
                except ToolTimeoutError:
                    lost += 1
            return lost

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert lose({2 * MAX_WORKER_THREADS + 10}) == {2 * MAX_WORKER_THREADS + 10}
        named = [t for t in threading.enumerate() if t.name == "toolcrib worker"]
        print(len(named) <= {2 * MAX_WORKER_THREADS}, len(caught), "still running" in str(caught[0].message))
        release.set()
        print(off_thread(int, timeout=10), lose(0))
    """
    done, _ = run(program)
    assert (done.stdout, done.stderr) == ("True 1 True\n0 0\n", "")


def test_a_function_that_was_given_up_while_it_waited_for_a_thread_never_runs():
    program = f"""
        import asyncio, threading
        from toolcrib._portal import off_loop, off_thread
        from toolcrib.errors import ToolTimeoutError

        release, ran = threading.Event(), []

        async def main():
            busy = [asyncio.create_task(off_loop(release.wait, 30)) for _ in range({MAX_WORKER_THREADS})]
            await asyncio.sleep(0)
            try:
                await off_loop(ran.append, 1, timeout=0.05)
            except ToolTimeoutError:
                print("given up")
            release.set()
            await asyncio.gather(*busy)

        asyncio.run(main())
        off_thread(int)
        print(ran)
    """
    done, _ = run(program)
    assert (done.stdout, done.stderr) == ("given up\n[]\n", "")


# -- a tool's own sync surface


async def double(x: int):
    await asyncio.sleep(0)
    return 2 * x


def test_an_async_tool_can_be_called_from_sync_code():
    assert Tool(double).call('{"x": 2}') == 4


@pytest.mark.anyio
async def test_an_async_tool_can_be_called_inside_a_running_loop():
    assert Tool(double).call('{"x": 2}') == 4


def test_the_warning_for_lost_threads_is_one_of_ours():
    assert issubclass(ToolcribWarning, UserWarning)
