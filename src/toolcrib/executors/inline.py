"""Runs calls in this process: coroutines on the caller's loop, sync functions in worker threads."""

from __future__ import annotations

import time
from collections.abc import Mapping
from inspect import isawaitable
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any

from toolcrib._deadline import within
from toolcrib._portal import off_loop, off_thread, portal
from toolcrib.executors._pieces import gathered, gathered_async

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
        timeout = _armed(context)
        if tool.is_async:
            value = tool.invoke(arguments, context)
        elif tool.thread:
            end = _end_of(context)
            value = await off_loop(_run, tool, arguments, context, timeout=timeout)
            timeout = _until(end)
        else:
            value = _run(tool, arguments, context)
        if value.__class__ is CoroutineType:
            return await within(value, timeout)
        return await within(_awaited(value, context), timeout) if _needs_a_loop(value) else value

    def run_sync(self, tool: Tool, arguments: Mapping[str, Any], call: ToolCall) -> Any:
        """Do the same for a sync function from sync code, without an event loop."""
        context = call.context
        timeout, end = _armed(context), _end_of(context)
        if tool.thread:
            value = off_thread(_run, tool, arguments, context, timeout=timeout)
        else:
            value = _run(tool, arguments, context)
        return portal().call(_in_time, value, context, end) if _needs_a_loop(value) else value


def _run(tool: Tool, arguments: Mapping[str, Any], context: ToolContext[Any] | None) -> Any:
    value = tool.invoke(arguments, context)
    return gathered(value, context) if value.__class__ is GeneratorType else value


def _needs_a_loop(value: Any) -> bool:
    return isawaitable(value) or value.__class__ is AsyncGeneratorType


def _armed(context: ToolContext[Any] | None) -> float | None:
    """Start the clock, and return how long it runs; the time an approval or a retry took before does not count."""
    if context is None or context.timeout is None:
        return None
    context.deadline = time.monotonic() + context.timeout
    return context.timeout


def _end_of(context: ToolContext[Any] | None) -> float | None:
    """Return the deadline as it is before the tool can change its context."""
    return None if context is None else context.deadline


def _until(end: float | None) -> float | None:
    return None if end is None else max(0.0, end - time.monotonic())


async def _in_time(value: Any, context: ToolContext[Any] | None, end: float | None) -> Any:
    return await within(_awaited(value, context), _until(end))


async def _awaited(value: Any, context: ToolContext[Any] | None) -> Any:
    if value.__class__ is AsyncGeneratorType:
        return await gathered_async(value, context)
    return await value
