"""Runs calls in this process: coroutines on the caller's loop, sync functions in worker threads."""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from toolcrib._deadline import within
from toolcrib._portal import off_loop, off_thread

if TYPE_CHECKING:
    from toolcrib.tools import Tool
    from toolcrib.types import ToolCall, ToolContext

__all__ = ["InlineExecutor"]


class InlineExecutor:
    """The executor every call ends in unless another one is named; keeps the deadline of the call's context."""

    async def run(self, tool: Tool, arguments: Mapping[str, Any], call: ToolCall) -> Any:
        """Return what the tool returned, or raise what it raised.

        Raises:
            ToolTimeoutError: The deadline passed.
        """
        context = call.context
        timeout = None if context is None else _armed(context)
        if tool.is_async or not tool.thread:
            value = tool.invoke(arguments, context)
        else:
            value = await off_loop(tool.invoke, arguments, context, timeout=timeout)
        if inspect.iscoroutine(value):
            return await within(value, timeout)
        return await within(_awaited(value), timeout) if inspect.isawaitable(value) else value

    def run_sync(self, tool: Tool, arguments: Mapping[str, Any], call: ToolCall) -> Any:
        """Do the same for a sync function from sync code, without an event loop."""
        context = call.context
        timeout = None if context is None else _armed(context)
        if not tool.thread:
            return tool.invoke(arguments, context)
        return off_thread(tool.invoke, arguments, context, timeout=timeout)


def _armed(context: ToolContext[Any]) -> float | None:
    """Start the clock: the time an approval or a retry took before this run does not count."""
    if context.timeout is not None:
        context.deadline = time.monotonic() + context.timeout
    return context.timeout


def _awaited(value: Awaitable[Any]) -> Coroutine[Any, Any, Any]:
    async def waiting() -> Any:
        return await value

    return waiting()
