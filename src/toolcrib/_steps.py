"""An async generator read from sync code, a step at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing
from typing import Generic, TypeVar

from toolcrib._portal import portal

__all__ = ["steps"]

T = TypeVar("T")


def steps(events: AsyncGenerator[T, None]) -> Generator[T, None, None]:
    """Yield what an async generator yields, a step whenever one is asked for; leaving early closes it.

    Args:
        events: The generator; its code runs on the background loop.
    """
    run = _Stepped(events)
    try:
        while (event := portal().call(run.step)) is not None:
            yield event
    finally:
        run.leave()


class _Stepped(Generic[T]):
    """One async generator, driven by one task on the portal's loop, a step whenever one is asked for."""

    def __init__(self, events: AsyncGenerator[T, None]) -> None:
        self._events = events
        self._task: asyncio.Task[None] | None = None

    async def step(self) -> T | None:
        """Return the next event, or None after the last; raises what the generator raised."""
        if self._task is None:
            self._wanted = asyncio.Semaphore(0)
            self._given = asyncio.Queue[T | None]()
            self._task = asyncio.create_task(self._drive())
            self._task.add_done_callback(lambda _: self._given.put_nowait(None))
        self._wanted.release()
        event = await self._given.get()
        if event is None:
            self._task.result()
        return event

    def leave(self) -> None:
        """Cancel the run, if it is not over, and wait until it is gone."""
        task = self._task
        if task is None or task.done():
            return
        if _is_running(task.get_loop()):  # collected as garbage by the very thread that would be waited for
            task.cancel()
        else:
            portal().call(_cancelled, task)

    async def _drive(self) -> None:
        async with aclosing(self._events) as events:
            while True:
                await self._wanted.acquire()
                if (event := await anext(events, None)) is None:
                    return
                self._given.put_nowait(event)


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


def _is_running(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
