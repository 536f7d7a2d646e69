"""Two places to run things besides the caller's loop: worker threads, and one background loop.

Worker threads take sync functions off the loop. The background loop (the portal) carries whatever a
sync caller awaits, and the connections that must outlive the loop that opened them.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import contextvars
import os
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from queue import SimpleQueue
from typing import Any, Literal, ParamSpec, TypeVar, cast

from toolcrib.errors import ToolTimeoutError, warn
from toolcrib.limits import MAX_WORKER_THREADS

__all__ = ["Portal", "off_loop", "off_thread", "portal"]

P = ParamSpec("P")
T = TypeVar("T")


# -- worker threads


class _Job:
    """One function to run in a worker, and who waits for it."""

    __slots__ = ("args", "context", "func", "lost", "settle", "state")

    def __init__(self, func: Callable[..., Any], args: tuple[Any, ...], settle: Callable[[Any, Any], None]) -> None:
        self.func = func
        self.args = args
        self.settle = settle
        self.context = contextvars.copy_context()
        self.state: Literal["queued", "running", "unwanted", "finished"] = "queued"
        self.lost = False

    def run(self) -> tuple[Any, BaseException | None]:
        try:
            return self.context.run(self.func, *self.args), None
        except _MISTAKEN as raised:
            return None, RuntimeError(f"the function raised {type(raised).__name__}")
        except BaseException as raised:  # noqa: BLE001  # handed to whoever waits
            return None, raised


#: What means something else to whoever awaits: the end of a coroutine, or Ctrl-C.
_MISTAKEN = (StopIteration, GeneratorExit, KeyboardInterrupt)


class _Workers:
    """Daemon threads that run jobs; they never hold up the end of the process.

    A thread whose job outlived its deadline is lost to that job: it no longer counts, so that another can take
    its place, until as many are lost as may exist.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._queue: SimpleQueue[_Job] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads: int = 0
        self._idle: int = 0  # threads that wait for a job, or are about to
        self._queued: int = 0
        self._lost: int = 0

    def submit(self, job: _Job) -> None:
        with self._lock:
            self._queued += 1
            spawn = self._queued > self._idle and self._threads < self._most
            self._threads += spawn
            self._idle += spawn
        self._queue.put(job)
        if spawn:
            self._start(job)

    def _start(self, job: _Job) -> None:
        try:
            threading.Thread(target=self._work, name="toolcrib worker", daemon=True).start()
        except RuntimeError:  # the system has no more threads
            with self._lock:
                self._threads -= 1
                self._idle -= 1
                if self._threads:  # one of which will take the job
                    return
            self.abandon(job)
            raise

    def abandon(self, job: _Job) -> None:
        """Stop waiting for a job; its thread is free again once the function returns."""
        with self._lock:
            if job.state != "running":
                job.state = "unwanted" if job.state == "queued" else job.state
                return
            job.lost = self._lost < self._most
            self._lost += job.lost
            self._threads -= job.lost
            lost = self._lost
        if lost == _MANY_LOST:
            warn(f"{lost} sync tools are still running after their deadlines; each holds a thread until it returns")

    def _work(self) -> None:
        while True:
            job = self._queue.get()
            with self._lock:
                self._queued -= 1
                self._idle -= 1
                wanted = job.state == "queued"
                job.state = "running" if wanted else job.state
            outcome = job.run() if wanted else None
            surplus = self._is_surplus_after(job)  # first, or whoever is woken finds no thread free for its next
            if outcome is not None:
                job.settle(*outcome)
            if surplus:
                return
            del job, outcome  # hold nothing of a finished call while waiting for the next

    def _is_surplus_after(self, job: _Job) -> bool:
        with self._lock:
            job.state = "finished"
            self._lost -= job.lost
            self._threads += job.lost
            if self._threads > self._most:
                self._threads -= 1
                return True
            self._idle += 1
            return False


_MANY_LOST = 8
_workers = _Workers(MAX_WORKER_THREADS)


async def off_loop(func: Callable[..., T], *args: Any, timeout: float | None = None) -> T:  # noqa: ASYNC109  # the thread cannot be cancelled, only given up
    """Run a sync function in a worker thread, with the caller's context variables, and await its value.

    Args:
        func: What to call.
        *args: Its arguments.
        timeout: Seconds after which the thread is given up.

    Raises:
        ToolTimeoutError: The time is over; the function goes on in its thread until it returns.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is gone, and with it whoever waited
            loop.call_soon_threadsafe(_finish, future, value, error)

    job = _Job(func, args, settle)
    timer = None if timeout is None else loop.call_later(timeout, _expire, future, timeout)
    _workers.submit(job)
    try:
        return await future
    except (ToolTimeoutError, asyncio.CancelledError):
        _workers.abandon(job)
        raise
    finally:
        if timer is not None:
            timer.cancel()


def _expire(future: asyncio.Future[Any], timeout: float) -> None:
    _finish(future, None, ToolTimeoutError(_late(timeout)))


def _finish(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)


def off_thread(func: Callable[..., T], *args: Any, timeout: float | None = None) -> T:
    """Run a sync function in a worker thread and wait for it here, without any event loop.

    Args:
        func: What to call.
        *args: Its arguments.
        timeout: Seconds after which the thread is given up.

    Raises:
        ToolTimeoutError: The time is over; the function goes on in its thread until it returns.
    """
    done = threading.Lock()
    done.acquire()
    outcome: list[Any] = []

    def settle(value: Any, error: BaseException | None) -> None:
        outcome.extend((value, error))
        done.release()

    job = _Job(func, args, settle)
    _workers.submit(job)
    try:
        in_time = done.acquire(timeout=-1 if timeout is None else min(max(timeout, 0), threading.TIMEOUT_MAX))
    except BaseException:
        _workers.abandon(job)
        raise
    if not in_time:
        _workers.abandon(job)
        raise ToolTimeoutError(_late(cast("float", timeout)))
    value, error = outcome
    if error is not None:
        raise error
    return value


def _late(timeout: float) -> str:
    return f"no answer within {timeout:g} seconds"


# -- the background loop


class Portal:
    """One daemon thread with an event loop, for callers that have none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pending: set[asyncio.Task[Any]] = set()

    def loop(self) -> asyncio.AbstractEventLoop:
        """Return the running loop, started on first use."""
        with self._lock:
            if self._loop is None:
                self._loop = self._start()
            return self._loop

    def _start(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, args=(loop,), name="toolcrib portal", daemon=True)
        self._thread.start()
        threading.Thread(target=self._watch, args=(loop,), name="toolcrib watch", daemon=True).start()
        return loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run the loop until it is closed here, whatever a tool does to it or raises in a task of its own."""
        while True:
            with contextlib.suppress(SystemExit, KeyboardInterrupt):
                loop.run_forever()
            if self._loop is not loop:
                return

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Free threads that wait in `call` once the main thread is done, so that the process can end."""
        threading.main_thread().join()
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(self._cancel_pending)

    def _cancel_pending(self) -> None:
        for task in self._pending:
            task.cancel()

    def call(self, func: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a coroutine function on the background loop and wait for its value here.

        Inside a running loop it works too, and blocks that loop meanwhile; use the async surface there.

        Raises:
            RuntimeError: Called on the background loop's own thread, where waiting would never end.
        """
        loop = self.loop()
        if threading.current_thread() is self._thread:
            raise RuntimeError("a sync call was made inside an async tool of a sync run; use the async surface there")
        done, context = threading.Event(), contextvars.copy_context()
        in_thread = threading.current_thread() is not threading.main_thread()  # which calls at exit, too
        tasks: list[asyncio.Task[tuple[T | None, BaseException | None]]] = []

        def start() -> None:
            task = loop.create_task(_kept(func, *args, **kwargs), context=context)
            tasks.append(task)
            if in_thread:
                self._pending.add(task)
            task.add_done_callback(lambda task: (self._pending.discard(task), done.set()))

        try:
            loop.call_soon_threadsafe(start)
            done.wait()
        except BaseException:  # Ctrl-C, above all
            loop.call_soon_threadsafe(lambda: tasks and tasks[0].cancel())
            raise
        if tasks[0].cancelled():
            raise RuntimeError(_ENDING)
        value, error = tasks[0].result()
        if error is not None:
            raise error
        return cast("T", value)

    async def acall(self, func: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a coroutine function on the background loop and await its value on the caller's.

        Cancelling the caller cancels it there. On the background loop itself it is simply awaited.
        """
        loop, here = self.loop(), asyncio.get_running_loop()
        if loop is here:
            return await func(*args, **kwargs)
        future: asyncio.Future[T] = here.create_future()
        context, tasks = contextvars.copy_context(), list[asyncio.Task[tuple[T | None, BaseException | None]]]()

        def start() -> None:
            tasks.append(loop.create_task(_kept(func, *args, **kwargs), context=context))
            tasks[0].add_done_callback(tell)

        def tell(task: asyncio.Task[tuple[T | None, BaseException | None]]) -> None:
            error = RuntimeError(_ENDING) if task.cancelled() else task.exception()
            value, error = task.result() if error is None else (None, error)
            with contextlib.suppress(RuntimeError):  # the caller's loop is gone, and the caller with it
                here.call_soon_threadsafe(_finish, future, value, error)

        loop.call_soon_threadsafe(start)
        try:
            return await future
        except asyncio.CancelledError:
            with contextlib.suppress(RuntimeError):  # the background loop has ended
                loop.call_soon_threadsafe(lambda: tasks and tasks[0].cancel())
            raise

    def close(self) -> None:
        """Cancel what runs, stop the loop and join its thread; a later call starts anew."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None or not thread.is_alive():
            return
        stopped = asyncio.run_coroutine_threadsafe(_cancel_all(), loop)
        over = time.monotonic() + _CLOSING_SECONDS
        with contextlib.suppress(Exception):
            stopped.result(_CLOSING_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(max(0.1, over - time.monotonic()))
        if not thread.is_alive():
            loop.close()

    def forget(self) -> None:
        """Drop what a forked child inherited: the loop and its thread exist only in the parent."""
        self._lock, self._loop, self._thread = threading.Lock(), None, None
        self._pending = set()


async def _kept(
    func: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
) -> tuple[T | None, BaseException | None]:
    """Await a value; what a task may not raise, since it would end the loop for everybody, is returned beside it."""
    try:
        return await func(*args, **kwargs), None
    except (SystemExit, KeyboardInterrupt) as error:
        return None, error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return None, error  # raised by the function itself


_ENDING = "the call was cancelled because the process is ending"
_CLOSING_SECONDS = 5.0  # what the slowest polite connection needs to close


async def _cancel_all() -> None:
    tasks: list[Awaitable[Any]] = []
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
        tasks.append(task)
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()  # some hold connections open until their loop ends


_portal = Portal()
atexit.register(_portal.close)


def portal() -> Portal:
    """Return this process's portal."""
    return _portal


def _in_child() -> None:
    global _workers  # noqa: PLW0603  # a forked child has none of its parent's threads
    _workers = _Workers(MAX_WORKER_THREADS)
    _portal.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
