"""An agent's turns: ask the model, answer its calls, and again, as a stream of events."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from contextlib import aclosing
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from toolcrib.dispatch import acall_tools
from toolcrib.errors import EngineError
from toolcrib.events import Event, ModelReplied, RunFinished, RunStarted, TextDelta, ToolFinished
from toolcrib.limits import DEFAULT_LIMITS, Limits
from toolcrib.protocols import Engine, Executor, StreamingEngine
from toolcrib.types import (
    Envelope,
    Message,
    NativeTool,
    Reply,
    RunError,
    RunMetadata,
    ToolCall,
    ToolContext,
    ToolResult,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence

    from toolcrib.tools import Tool
    from toolcrib.toolset import Toolset

__all__ = ["run_turns"]

_current: ContextVar[_Run | None] = ContextVar("toolcrib_run", default=None)


async def run_turns(
    engine: Engine,
    tools: Toolset,
    prompt: str | None,
    *,
    history: Sequence[Message] = (),
    results: Sequence[ToolResult] = (),
    before: RunMetadata | None = None,
    agent: str = "agent",
    limits: Limits | None = None,
    executor: Executor | None = None,
    deps: Any = None,
    stream: bool = False,
    check: Callable[[Tool], None] | None = None,
    native_tools: Sequence[NativeTool] = (),
) -> AsyncGenerator[Event, None]:
    """Run one task and yield what happens as it happens; `RunFinished` with the outcome is the last.

    Nothing runs on between two events but tools already started. Closing the generator early, or
    cancelling the task that reads it, cancels them and waits until they are gone.

    An engine that fails and a run that is out of turns end in an outcome with its `error` set. Calls that
    are not run because the turns are used up are answered all the same, so every call in the
    conversation has its answer and the conversation can be continued. Only a call of a declared tool has
    none: the other calls of its turn are answered, and the outcome has it among its `pending`.

    Args:
        engine: The model.
        tools: What it may call; nothing else is visible to this run.
        prompt: The task; None goes on with a run that waited for results.
        history: The conversation so far, system message first.
        results: The results that were waited for, which `history` has already.
        before: What the run took before it waited.
        agent: The name the run is known by.
        limits: Bounds of the run and its calls; the toolset's own when None.
        executor: What runs the calls.
        deps: What tools find in their `ToolContext`.
        stream: Whether to ask for the words as they come, from engines that can.
        check: Told of each tool before any call of its turn is run; what it raises ends the run.
        native_tools: Tools of the provider that the model may use; the engine has all of them.
    """
    messages = [*history, *([] if prompt is None else [Message("user", prompt)])]
    earlier = before or RunMetadata()
    run = _Run(
        engine, tools, agent, limits, executor, deps, check, messages, tuple(native_tools), earlier, stream=stream
    )
    try:
        yield RunStarted(run.id, agent, prompt or "")
        for result in results:
            run.count(result)
            yield ToolFinished(run.id, result)
        async with aclosing(run.turns()) as events:
            async for event in events:
                yield event
        yield RunFinished(run.id, run.finish())
    finally:
        run.report()


@dataclass(eq=False)
class _Run:
    """What is known of a run while it runs."""

    engine: Engine
    tools: Toolset
    agent: str
    limits: Limits | None
    executor: Executor | None
    deps: Any
    check: Callable[[Tool], None] | None
    messages: list[Message]
    native_tools: tuple[NativeTool, ...]
    before: RunMetadata
    stream: bool
    id: str = field(default_factory=lambda: uuid4().hex)
    caller: _Run | None = field(default_factory=_current.get)
    started: float = field(default_factory=time.perf_counter)
    reply: Reply | None = None
    results: list[ToolResult] = field(default_factory=list[ToolResult])
    said: str = ""
    turn: int = 0
    usage: Usage = field(default_factory=Usage)
    nested: list[RunMetadata] = field(default_factory=list[RunMetadata])
    error: RunError | None = None
    pending: tuple[ToolCall, ...] = ()
    outcome: Envelope | None = None

    def __post_init__(self) -> None:
        self.id = self.before.run_id or self.id
        self.turn = self.before.turns

    @property
    def bounds(self) -> Limits:
        return self.limits or self.tools.limits or DEFAULT_LIMITS

    async def turns(self) -> AsyncGenerator[Event, None]:
        """Ask and answer until there is a reply without calls, or a reason to stop or wait."""
        self.error = self._too_deep()
        while self.error is None and not self.pending:
            async with aclosing(self._ask()) as events:
                async for event in events:
                    yield event
            if self.reply is None:
                return
            if not self.reply.calls:
                self._keep(self.reply, ())
                return
            async with aclosing(self._answers(self.reply.calls)) as events:
                async for event in events:
                    yield event
            self._keep(self.reply, self.results)

    def _too_deep(self) -> RunError | None:
        depth, run = 1, self.caller
        while run is not None:
            depth, run = depth + 1, run.caller
        if depth <= self.bounds.max_depth:
            return None
        return RunError(
            "max_depth", f"Agent runs are nested {depth} deep; Limits.max_depth is {self.bounds.max_depth}."
        )

    # -- asking

    async def _ask(self) -> AsyncGenerator[Event, None]:
        """Set `reply`, or `error` when the engine has none."""
        self.reply, heard = None, ""
        try:
            await self.tools.prepare()
            async with aclosing(self._pieces()) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Reply):
                        self._take(piece)
                        break
                    heard += piece
                    yield TextDelta(self.id, piece)
        except BaseException as error:
            if _is_callers_own(error):
                raise
            self.said = heard or self.said
            self.error = RunError(type(error).__name__, str(error), getattr(error, "retryable", False) is True)
            return
        if self.reply is not None:
            yield ModelReplied(self.id, self.turn, self.reply)

    async def _pieces(self) -> AsyncGenerator[str | Reply, None]:
        """Yield what the engine says; the Reply is last."""
        messages = tuple(self.messages)
        # Only an engine that has such tools need take the keyword.
        wanted: dict[str, Any] = {"native_tools": self.native_tools} if self.native_tools else {}
        if self.stream and isinstance(self.engine, StreamingEngine):
            pieces: AsyncIterator[object] = self.engine.astream(messages, self.tools, **wanted)
        else:
            pieces = _once(self.engine.acomplete(messages, self.tools, **wanted))
        try:
            async for piece in pieces:
                if not isinstance(piece, (str, Reply)):
                    raise EngineError(f"{type(self.engine).__name__} gave {type(piece).__name__} instead of a Reply")
                yield piece
                if isinstance(piece, Reply):
                    return
        finally:
            if (close := getattr(pieces, "aclose", None)) is not None:  # an iterator need not have one
                await close()
        raise EngineError(f"{type(self.engine).__name__} ended without a Reply")

    def _take(self, reply: Reply) -> None:
        self.turn += 1
        self.usage += reply.usage
        self.said = reply.text if reply.text or not reply.calls else self.said
        self.reply = _with_ids(reply, f"{self.id[:8]}-{self.turn}")

    def _keep(self, reply: Reply, results: Sequence[ToolResult]) -> None:
        """Add a reply and its answers to the conversation, always together."""
        self.messages.append(Message("assistant", reply.text, reply.calls, native=reply.native))
        self.messages += [Message("tool", result.text, result=result) for result in results]

    # -- answering

    def _answers(self, calls: Sequence[ToolCall]) -> AsyncGenerator[Event, None]:
        most = self.bounds.max_turns
        if self.turn >= most:
            self.error = RunError(
                "max_turns", f"The model still asked for tools after {most} turns (Limits.max_turns)."
            )
            return self._refuse(calls, f"Not run: the limit of {most} turns was reached.")
        if self.check is not None:
            for tool in filter(None, (self.tools.get(call.name) for call in calls)):
                self.check(tool)
        read = {call.id: self._declared(call) for call in calls}
        self.pending = tuple(replace(call, arguments=args) for call in calls if (args := read[call.id]) is not None)
        return self._answer([call for call in calls if read[call.id] is None])

    def _declared(self, call: ToolCall) -> dict[str, Any] | None:
        """Return the validated arguments of a call that somebody else is to answer; None of every other call."""
        tool = self.tools.get(call.name)
        if tool is None or tool.func is not None or tool.executor is not None:
            return None
        try:
            return tool.read(call.arguments, self.bounds)
        except Exception:  # noqa: BLE001  # dispatch reads it again, and answers with what is wrong
            return None

    async def _answer(self, calls: Sequence[ToolCall]) -> AsyncGenerator[Event, None]:
        """Run the calls in a task of their own and pass on its events; set `results`."""
        feed = _Feed()
        context = ToolContext[Any](run_id=self.id, deps=self.deps)
        inside = copy_context()
        inside.run(_current.set, self)
        task = asyncio.create_task(
            acall_tools(
                calls, self.tools, context=context, limits=self.limits, on_event=feed.put, executor=self.executor
            ),
            context=inside,
        )
        task.add_done_callback(feed.end)
        answered: dict[str, ToolResult] = {}
        try:
            while (event := await feed.get()) is not None:
                if isinstance(event, ToolFinished):
                    answered[event.result.call.id] = event.result
                yield event
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
        if task.cancelled():  # not by us: by a tool, say, that cancels every task it can find
            async for event in self._refuse([call for call in calls if call.id not in answered], "It was cancelled."):
                yield event
            answered |= {result.call.id: result for result in self.results}
            self.results = [answered[call.id] for call in calls]
        else:
            self.results = task.result()
        for result in self.results:
            self.count(result)

    async def _refuse(self, calls: Sequence[ToolCall], why: str) -> AsyncGenerator[Event, None]:
        """Answer the calls without running them; set `results`."""
        self.results = [ToolResult(call, kind="cancelled", text=why) for call in calls]
        for result in self.results:
            yield ToolFinished(self.id, result)

    # -- the outcome

    def count(self, result: ToolResult) -> None:
        """Count the run that a result is the outcome of, if it is one."""
        if issubclass(type(result.value), Envelope) and _countable(result.value.metadata):
            self.adopt(result.value.metadata)

    def adopt(self, nested: RunMetadata) -> None:
        """Count a run that this one's tools caused, once: in place of what is known of it and of the runs in it."""
        if nested.run_id and any(nested.run_id in _ids(known.nested) for known in self.nested):
            return
        inside = set(_ids([nested]))
        self.nested = [known for known in self.nested if known.run_id not in inside]
        self.nested.append(nested)

    def report(self) -> None:
        """Tell the run whose tool called this one what it took, also when it was cut short."""
        if self.caller is not None:
            self.caller.adopt(self.outcome.metadata if self.outcome else self._metadata())

    def finish(self) -> Envelope:
        """Return the outcome."""
        self.outcome = Envelope(self.said, self._metadata(), self.error, tuple(self.messages), self.pending)
        return self.outcome

    def _metadata(self) -> RunMetadata:
        return RunMetadata(
            run_id=self.id,
            agent=self.agent,
            model=(self.reply.model if self.reply else "") or self.engine.model,
            turns=self.turn,
            usage=sum((run.usage for run in self.nested), self.before.usage + self.usage),
            latency_ms=self.before.latency_ms + (time.perf_counter() - self.started) * 1000,
            nested=(*self.before.nested, *self.nested),
        )


class _Feed:
    """Events on their way from running calls to the generator, from any thread, in order."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._events = asyncio.Queue[Event | None]()
        self.get = self._events.get

    def put(self, event: Event) -> None:
        if threading.get_ident() == self._thread:
            self._events.put_nowait(event)
            return
        with contextlib.suppress(RuntimeError):  # a lost thread reports after its loop is closed
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)

    def end(self, _: object) -> None:
        self._events.put_nowait(None)


async def _once(reply: Awaitable[object]) -> AsyncGenerator[object, None]:
    yield await reply


def _with_ids(reply: Reply, prefix: str) -> Reply:
    """Return the reply with an id on every call, none twice; unchanged when it has them already."""
    seen: set[str] = set()
    calls: list[ToolCall] = []
    for number, call in enumerate(reply.calls, 1):
        whole = call if _is_id(call.id) and call.id not in seen else replace(call, id=f"{prefix}-{number}")
        seen.add(whole.id)
        calls.append(whole)
    if all(new is old for new, old in zip(calls, reply.calls, strict=True)):
        return reply
    return replace(reply, calls=tuple(calls), native=None)  # the native object has the old ids


def _is_id(given: object) -> bool:
    """Whether it can be sent back: a model may write anything, and not every server checks."""
    return isinstance(given, str) and given != "" and given == given.encode("utf-8", "replace").decode()


def _countable(run: object) -> bool:
    """Whether what a run took can be added up: a tool may return an Envelope of its own making."""
    if not isinstance(run, RunMetadata) or not isinstance(run.run_id, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # as said
        return False
    try:
        _ = Usage() + run.usage
        return all(map(_countable, run.nested))
    except Exception:  # noqa: BLE001  # figures of any kind
        return False


def _ids(runs: Sequence[RunMetadata]) -> Iterator[str]:
    """Yield the ids of the runs and of every run in them."""
    for run in runs:
        if run.run_id:
            yield run.run_id
        yield from _ids(run.nested)


def _is_callers_own(error: BaseException) -> bool:
    """Whether it comes from whoever awaits the run; an engine may raise CancelledError by itself."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0
    if isinstance(error, KeyboardInterrupt):  # Ctrl-C reaches the main thread only
        return threading.current_thread() is threading.main_thread()
    return isinstance(error, GeneratorExit)
