"""A deadline around a coroutine that costs nothing until it waits, and cannot be swallowed.

The coroutine is driven by hand, in the caller's own task: one that never waits needs no timer, one
that swallows its cancellation is, after a short grace, simply driven no further.
"""

from __future__ import annotations

import asyncio
import contextlib
import types
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

from toolcrib.errors import ToolTimeoutError

__all__ = ["within"]

T = TypeVar("T")
_GRACE_SECONDS = 0.1  # for a cancelled tool to clean up


@types.coroutine
def within(coroutine: Coroutine[Any, Any, T], seconds: float | None) -> Generator[Any, Any, T]:
    """Await a coroutine for at most so many seconds.

    Args:
        coroutine: What to await; a coroutine object.
        seconds: When to cancel it; None for never.

    Raises:
        ToolTimeoutError: The time was over.
    """
    try:
        awaited = coroutine.send(None)
    except StopIteration as done:
        return done.value
    if seconds is None:
        return (yield from _driven(coroutine, awaited, None))
    timer = _Timer(seconds)
    try:
        value = yield from _driven(coroutine, awaited, timer)
    except BaseException:
        if not timer.fired:
            raise
    else:
        if not timer.fired:
            return value
    finally:
        timer.handle.cancel()
    timer.settle()
    raise ToolTimeoutError(f"no answer within {round(seconds, 3):g} seconds")


class _Timer:
    """Cancels the current task once at the deadline, and again after the grace."""

    def __init__(self, seconds: float) -> None:
        self.fired = 0
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self.handle = self._loop.call_later(seconds, self._fire)

    def _fire(self) -> None:
        self.fired += 1
        if self.fired == 1:
            self.handle = self._loop.call_later(_GRACE_SECONDS, self._fire)
        if self._task is not None:
            self._task.cancel()

    def settle(self) -> None:
        """Take our own cancellations back; one of the caller's remains and goes on its way."""
        if self._task is None:
            return
        for _ in range(self.fired):
            self._task.uncancel()
        if self._task.cancelling():
            raise asyncio.CancelledError


def _driven(coroutine: Coroutine[Any, Any, T], awaited: Any, timer: _Timer | None) -> Generator[Any, Any, T]:
    try:
        while True:
            try:
                received = yield awaited
            except asyncio.CancelledError as error:  # ours, the caller's, or a timeout of the tool's own
                if timer is not None and timer.fired > 1:
                    with contextlib.suppress(BaseException):
                        coroutine.close()
                    raise
                awaited = coroutine.throw(error)
            except BaseException as error:  # noqa: BLE001  # whatever is thrown in belongs to the coroutine
                awaited = coroutine.throw(error)
            else:
                awaited = coroutine.send(received)
    except StopIteration as done:
        return done.value
