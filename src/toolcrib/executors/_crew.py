"""A few processes behind a wall, and the threads that wait for them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from toolcrib.errors import ToolExecutionError
from toolcrib.executors._worker import Worker

__all__ = ["Crew"]


class _Job:
    """One call on its way.

    Args:
        request: The call.
        timeout: Seconds it may take once it has begun.
    """

    def __init__(self, request: Mapping[str, Any], timeout: float | None) -> None:
        self.request = request
        self.timeout = timeout
        self.future: Future[dict[str, Any]] = Future()
        self.worker: Worker | None = None
        self.unwanted = False

    def drop(self) -> None:
        """End it, begun or not."""
        self.unwanted = True
        if self.worker is not None:
            self.worker.end()


class Crew:
    """Runs calls on at most so many processes; each belongs to one thread, which waits for it.

    Args:
        size: How many processes.
        make: Makes one.
        calls: How many calls one answers before another takes its place.
    """

    def __init__(self, size: int, make: Callable[[], Worker], calls: int) -> None:
        self._size = size
        self._make = make
        self._calls = calls
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._idle: list[None] = []  # one entry for each thread that waits for a job, or is about to
        self._closed = False
        self._workers: set[Worker] = set()
        self._ended = weakref.finalize(self, _end_all, self._workers, self._jobs, self._threads)

    async def run(self, request: Mapping[str, Any], timeout: float | None) -> dict[str, Any]:  # noqa: ASYNC109  # it is the process's
        """Return the answer to a call; one that is cancelled ends its process.

        Args:
            request: The call.
            timeout: Seconds it may take once a process has it.

        Raises:
            ToolExecutionError: The process came to another end.
        """
        job = _Job(request, timeout)
        with self._lock:
            if self._closed:
                raise ToolExecutionError("the executor is closed")
            if not self._idle and len(self._threads) < self._size:
                self._start()
            elif self._idle:
                self._idle.pop()
            self._jobs.put(job)
        try:
            return await asyncio.wrap_future(job.future)
        except asyncio.CancelledError:
            threading.Thread(target=job.drop, daemon=True).start()  # it may take a moment, and blocks
            raise

    def _start(self) -> None:
        args = self._jobs, self._make, self._calls, self._workers, self._idle
        thread = threading.Thread(target=_work, args=args, name="toolcrib wall", daemon=True)
        self._threads.append(thread)
        thread.start()

    def close(self) -> None:
        """End every process; calls under way are answered as failed."""
        with self._lock:
            self._closed = True
        self._ended()


def _end_all(workers: set[Worker], jobs: SimpleQueue[_Job | None], threads: list[threading.Thread]) -> None:
    for _ in threads:
        jobs.put(None)
    for worker in list(workers):
        worker.end()


def _work(
    jobs: SimpleQueue[_Job | None], make: Callable[[], Worker], calls: int, workers: set[Worker], idle: list[None]
) -> None:
    worker: Worker | None = None
    while (job := jobs.get()) is not None:
        if not job.unwanted and job.future.set_running_or_notify_cancel():
            try:
                worker = _ready(worker, make, workers)
                job.worker = worker
                answer = worker.ask(job.request, job.timeout)
            except BaseException as error:  # noqa: BLE001  # handed to whoever waits
                _settle(job.future, error)
            else:
                _settle(job.future, answer)
            job.worker = None
        if worker is not None and (worker.calls >= calls or not worker.alive):
            worker.end()
            workers.discard(worker)
            worker = None
        idle.append(None)
        del job
    if worker is not None:
        worker.end()
        workers.discard(worker)


def _ready(worker: Worker | None, make: Callable[[], Worker], workers: set[Worker]) -> Worker:
    if worker is None or not worker.alive:
        worker = make()
        workers.add(worker)
    return worker


def _settle(future: Future[dict[str, Any]], outcome: dict[str, Any] | BaseException) -> None:
    with contextlib.suppress(Exception):  # nobody waits any more
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
