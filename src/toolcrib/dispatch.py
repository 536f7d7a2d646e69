"""One call, start to answer: find the tool, validate, run under a deadline, answer.

Whatever happens on the way is an answer with the call's id; only the caller's own cancellation or
Ctrl-C ends a run.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from toolcrib._portal import portal
from toolcrib._secrets import any_secrets
from toolcrib.errors import warn
from toolcrib.events import Event, ToolFinished, ToolProgress, ToolStarted
from toolcrib.executors.inline import InlineExecutor
from toolcrib.limits import DEFAULT_LIMITS, Limits
from toolcrib.results import Answer, answer_to, clean, failure, hidden
from toolcrib.toolset import Toolset
from toolcrib.types import ToolCall, ToolContext, ToolResult

if TYPE_CHECKING:
    from toolcrib.protocols import Executor
    from toolcrib.tools import Tool

__all__ = ["acall", "acall_tools", "call", "call_tools"]

_OnEvent = Callable[[Event], None]
_INLINE = InlineExecutor()


# -- one call


async def acall(
    call: ToolCall,
    toolset: Toolset,
    *,
    context: ToolContext[Any] | None = None,
    limits: Limits | None = None,
    on_event: _OnEvent | None = None,
    executor: Executor | None = None,
) -> ToolResult:
    """Answer one call; never raises but for the caller's own cancellation.

    Args:
        call: What the model asked for.
        toolset: The tools it may call.
        context: The run's id and `deps`, passed on to tools that ask for a ToolContext.
        limits: Bounds in place of the toolset's own.
        on_event: Called when the call starts, reports progress and is answered.
        executor: What runs calls of tools that name no executor themselves.
    """
    started, limits = perf_counter(), limits or toolset.limits or DEFAULT_LIMITS
    arguments = None
    try:
        tool = toolset.get(call.name) or toolset[call.name]
        if tool.mode != "signature":  # a model may have to be asked before the arguments can be read
            await tool.prepare()
        arguments = tool.read(call.arguments, limits)
        call = _in_context(call, tool, context, limits, on_event)
        if tool.executor is not None and call.context is not None:
            call.context.line = limits, on_event, executor
        value = await (tool.executor or executor or _INLINE).run(tool, arguments, call)
        answer = answer_to(value, limits)
    except BaseException as error:  # SystemExit and the like are the tool's failure, not the run's
        if _ends_the_run(error):
            raise
        value, answer = None, _failed(call, error, limits, ran=arguments is not None)
    return _finished(call, answer, value, started, context, on_event)


def call(
    call: ToolCall,
    toolset: Toolset,
    *,
    context: ToolContext[Any] | None = None,
    limits: Limits | None = None,
    on_event: _OnEvent | None = None,
    executor: Executor | None = None,
) -> ToolResult:
    """Answer one call from sync code; see `acall`. A sync function runs in a worker thread, without any loop."""
    found = toolset.get(call.name)
    if executor is not None or (found is not None and (found.is_async or found.executor is not None)):
        return call_tools([call], toolset, context=context, limits=limits, on_event=on_event, executor=executor)[0]
    started, limits = perf_counter(), limits or toolset.limits or DEFAULT_LIMITS
    arguments = None
    try:
        tool = toolset.get(call.name) or toolset[call.name]
        arguments = tool.read(call.arguments, limits)
        call = _in_context(call, tool, context, limits, on_event)
        value = _INLINE.run_sync(tool, arguments, call)
        answer = answer_to(value, limits)
    except BaseException as error:  # as in acall
        if issubclass(type(error), KeyboardInterrupt) and _ends_the_run(error):
            raise
        value, answer = None, _failed(call, error, limits, ran=arguments is not None)
    return _finished(call, answer, value, started, context, on_event)


def _in_context(
    call: ToolCall, tool: Tool, context: ToolContext[Any] | None, limits: Limits, on_event: _OnEvent | None
) -> ToolCall:
    timeout = limits.deadline if tool.timeout is None else tool.timeout
    if context is None:
        own = ToolContext(call.id, "", None, None, None, timeout)
    else:
        own = ToolContext(call.id, context.run_id, None, context.deps, context.on_progress, timeout)
    call = ToolCall(call.id, call.name, call.arguments, own)
    if on_event is not None:
        own.on_progress = own.on_progress or _progress_to(on_event, own.run_id)
        shown = {p.name: p.display_name for p in tool.facts if p.display_name}
        _tell(on_event, ToolStarted(own.run_id, call, shown))
    return call


def _progress_to(on_event: _OnEvent, run_id: str) -> Callable[[str, float, float | None, str | None], None]:
    def tell(call_id: str, progress: float, total: float | None, message: str | None) -> None:
        _tell(on_event, ToolProgress(run_id, call_id, progress, total, clean(message) if message else message))

    return tell


def _failed(call: ToolCall, error: BaseException, limits: Limits, *, ran: bool) -> Answer:
    name = call.name[:200] if isinstance(call.name, str) else f"of type {type(call.name).__name__}"  # pyright: ignore[reportUnnecessaryIsInstance]  # a model's word
    if issubclass(type(error), asyncio.CancelledError):
        return "cancelled", clean(f"Tool '{name}' was cancelled"), (), None
    kind, text, parts, response = failure(name, error, limits)
    if ran and kind == "not_found":  # another tool, which this one looked for
        kind, text = "failed", clean(f"Tool '{name}' failed: {text}", limits)
    return kind, text, parts, response


def _ends_the_run(error: BaseException) -> bool:
    """Whether it is the caller's own cancellation, or Ctrl-C, which reaches no thread but the main one."""
    kind = type(error)  # not __class__, which a hostile error may define
    if issubclass(kind, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return issubclass(kind, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


def _finished(
    call: ToolCall,
    answer: Answer,
    value: Any,
    started: float,
    context: ToolContext[Any] | None,
    on_event: _OnEvent | None,
) -> ToolResult:
    kind, text, parts, response = answer
    if any_secrets():
        value, response = hidden(value), hidden(response) if response else None
    result = ToolResult(call, response, kind, value, text, parts, perf_counter() - started)
    if on_event is not None:
        _tell(on_event, ToolFinished(context.run_id if context else "", result))
    return result


def _tell(on_event: _OnEvent, event: Event) -> None:
    try:
        on_event(event)
    except Exception as error:  # noqa: BLE001  # a listener must not sink the call it listens to
        warn(f"on_event failed for {type(event).__name__}: {type(error).__name__}: {error}")


# -- the calls of one turn


async def acall_tools(
    calls: Iterable[ToolCall],
    toolset: Toolset,
    *,
    context: ToolContext[Any] | None = None,
    limits: Limits | None = None,
    on_event: _OnEvent | None = None,
    executor: Executor | None = None,
) -> list[ToolResult]:
    """Answer the calls of one turn, side by side, in the order they were asked.

    Calls of `write` and `destructive` tools of one provider keep their order among themselves.

    Args:
        calls: What the model asked for.
        toolset: The tools it may call.
        context: The run's id and `deps`, passed on to tools that ask for a ToolContext.
        limits: Bounds in place of the toolset's own; `max_parallel` is how many run at once.
        on_event: Called when a call starts, reports progress and is answered.
        executor: What runs calls of tools that name no executor themselves.
    """
    asked = list(calls)
    limits = limits or toolset.limits or DEFAULT_LIMITS
    places = asyncio.Semaphore(limits.max_parallel)
    results: dict[int, ToolResult] = {}
    tasks: list[asyncio.Task[None]] = []
    last: dict[Any, asyncio.Task[None]] = {}

    async def answer(index: int, after: asyncio.Task[None] | None) -> None:
        if after is not None:
            await asyncio.wait([after])
        async with places:
            results[index] = await acall(
                asked[index], toolset, context=context, limits=limits, on_event=on_event, executor=executor
            )

    for index, one in enumerate(asked):
        lane = _lane(one, toolset)
        tasks.append(asyncio.create_task(answer(index, last.get(lane))))
        if lane is not None:
            last[lane] = tasks[-1]
    await _all_of(tasks)
    cancelled: Answer = ("cancelled", "The tool cancelled its own call", (), None)
    return [
        results.get(index) or _finished(one, cancelled, None, perf_counter(), context, on_event)
        for index, one in enumerate(asked)
    ]


def _lane(call: ToolCall, toolset: Toolset) -> tuple[str | None] | None:
    """Return whose calls this one keeps in order with; None when its order does not matter."""
    tool = toolset.get(call.name)
    return (tool.origin,) if tool is not None and tool.effect in ("write", "destructive") else None


async def _all_of(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Wait for every task; when the caller is cancelled or one breaks the run, none is left behind."""
    try:
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    broken = [o for o in outcomes if isinstance(o, BaseException) and not isinstance(o, asyncio.CancelledError)]
    if broken:
        raise broken[0]


def call_tools(
    calls: Iterable[ToolCall],
    toolset: Toolset,
    *,
    context: ToolContext[Any] | None = None,
    limits: Limits | None = None,
    on_event: _OnEvent | None = None,
    executor: Executor | None = None,
) -> list[ToolResult]:
    """Answer the calls of one turn from sync code; see `acall_tools`."""
    return portal().call(
        acall_tools, calls, toolset, context=context, limits=limits, on_event=on_event, executor=executor
    )
