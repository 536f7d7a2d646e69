"""One script from its first line to its last: its calls are answered as any model's calls are."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pydantic_core import to_jsonable_python

from toolcrib._json import first_unsafe
from toolcrib._portal import off_loop
from toolcrib.dispatch import acall, call
from toolcrib.errors import NotSerializableError, ToolExecutionError, ToolTimeoutError
from toolcrib.events import Event, ToolFinished
from toolcrib.results import failure
from toolcrib.sources._script_state import Asked, ScriptState, Settled
from toolcrib.toolset import Toolset
from toolcrib.types import Envelope, ToolCall, ToolContext, ToolResult

if TYPE_CHECKING:
    from pydantic_monty import FunctionSnapshot, FutureSnapshot, NameLookupSnapshot, SyncSnapshot

    from toolcrib.limits import Limits, ScriptLimits
    from toolcrib.sources._stubs import Stub, Stubs

__all__ = ["Around", "Interrupted", "ScriptCalls", "plain"]


class Around(NamedTuple):
    """What a script's calls are made with.

    Args:
        toolset: The tools.
        stubs: The same as functions.
        bounds: What the script may take.
        limits: What each call may take.
        context: The call of the script itself.
        find: What `find_tools` answers; None when the script has no such function.
        pauses: Whether a call of a declared tool ends the script, to be gone on with later.
        keep: Keeps the state before each wait; None when nobody needs it.
    """

    toolset: Toolset
    stubs: Stubs
    bounds: ScriptLimits
    limits: Limits
    context: ToolContext[Any]
    find: Callable[[str], str] | None = None
    pauses: bool = False
    keep: Callable[[ScriptState], Awaitable[None]] | None = None


class _Running(NamedTuple):
    """A call in the interpreter's own thread."""

    snapshot: Any
    call: ToolCall
    due: float
    timeout: float


class Interrupted(Exception):  # noqa: N818  # no error: the script waits
    """The script called a declared tool, and waits for what somebody else will answer."""


class ScriptCalls:
    """Answers what a script asks for until it is over.

    Args:
        around: What its calls are made with.
        state: Where it stands.
        kill: Ends the interpreter.
    """

    def __init__(self, around: Around, state: ScriptState, kill: Callable[[], None]) -> None:
        self._around = around
        self._kill = kill
        self._here = around.toolset.cached(("script.here",), lambda: _threadless(around.toolset))
        self._lock = Lock()
        self._turn = 0
        self._running: _Running | None = None
        self._state = state
        self._inner: ToolContext[Any] = ToolContext(run_id=around.context.run_id, deps=around.context.deps)
        self._tasks: dict[int, asyncio.Task[Settled]] = {}
        self._lanes: dict[str | None, asyncio.Task[Settled]] = {}
        self._places = asyncio.Semaphore(around.limits.max_parallel)

    async def answered(self, start: Callable[..., SyncSnapshot], *args: Any) -> Any:
        """Answer every call and return the script's last value.

        Args:
            start: Lets the interpreter begin, or go on.
            *args: What with.

        Raises:
            Interrupted: It waits for the answer of a declared tool; the state has the rest.
            ToolExecutionError: It made too many calls.
        """
        from pydantic_monty import FutureSnapshot, MontyComplete, NameLookupSnapshot

        try:
            snapshot = await self._step(start, *args)
            while not isinstance(snapshot, MontyComplete):
                if isinstance(snapshot, NameLookupSnapshot):
                    snapshot = await self._named(snapshot)
                elif isinstance(snapshot, FutureSnapshot):
                    snapshot = await self._waited(snapshot)
                else:
                    snapshot = await self._called(snapshot)
            return snapshot.output
        finally:
            await self._stop()

    async def _stop(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    # -- the interpreter's thread

    async def _step(self, method: Callable[..., Any], *args: Any) -> Any:
        """Let the interpreter run to where it needs this loop; calls of plain functions are answered in its thread."""
        while True:
            task = asyncio.ensure_future(off_loop(self._on, self._turn, method, *args))
            try:
                late = await self._late(task)
            except asyncio.CancelledError:
                self._kill()
                task.cancel()
                raise
            if late is None:
                return task.result()
            task.cancel()  # the function goes on in its thread until it returns, as any late one
            method, args = late.snapshot.resume, (self._timed_out(late),)

    def _on(self, turn: int, method: Callable[..., Any], *args: Any) -> Any:
        snapshot = method(*args)
        while (settled := self._at_once(snapshot, turn)) is not None:
            snapshot = snapshot.resume(settled)
        return snapshot

    def _at_once(self, snapshot: Any, turn: int) -> Settled | None:
        """Return what a call of a plain function comes to; None of everything else."""
        if getattr(snapshot, "is_os_function", True) or snapshot.object_id is not None:
            return None
        name, context = snapshot.function_name, self._around.context
        stub = self._around.stubs.get(name)
        if stub is None or not stub.is_plain or (context.line and context.line[2]) or self._around.keep:
            return None
        try:
            arguments = self._arguments(name, snapshot.args, snapshot.kwargs)
        except (TypeError, ValueError):  # told where every other call is
            return None
        self._count(name)
        one = self._call(stub, self._state.count, arguments)
        on_event = context.line[1] if context.line else None
        heard = None if on_event is None else partial(self._heard, on_event, turn)
        timeout = self._around.limits.deadline if stub.tool.timeout is None else stub.tool.timeout
        due = math.inf if timeout is None else time.monotonic() + timeout
        self._running = _Running(snapshot, one, due, timeout or 0.0)
        result = call(one, self._here, context=self._inner, limits=self._around.limits, on_event=heard)
        with self._lock:
            if self._turn != turn:  # it was late, and somebody else has gone on
                raise ToolTimeoutError
            self._running = None
        return _crossing(result, self._around.limits.max_result_chars)

    def _heard(self, on_event: Callable[[Event], object], turn: int, event: Event) -> None:
        if self._turn == turn:  # else it was late, which has been told
            on_event(event)

    async def _late(self, task: asyncio.Future[Any]) -> _Running | None:
        """Return the call in the interpreter's thread that passed its deadline; None when the thread is done."""
        while True:
            await asyncio.wait([task], timeout=_LOOK_EVERY)
            with self._lock:
                running = self._running
                if task.done():
                    return None
                if running is not None and time.monotonic() > running.due:
                    self._turn += 1
                    self._running = None
                    return running

    def _timed_out(self, late: _Running) -> Settled:
        error = ToolTimeoutError(f"no answer within {late.timeout:g} seconds")
        kind, text, *_ = failure(late.call.name, error)
        result = ToolResult(late.call, None, kind, text=text, duration=late.timeout)
        context = self._around.context
        if context.line and context.line[1]:
            context.line[1](ToolFinished(context.run_id, result))
        return _crossing(result, self._around.limits.max_result_chars)

    async def _named(self, snapshot: NameLookupSnapshot) -> SyncSnapshot:
        """Give a function that is passed on as a value, as in `map(fetch, rows)`."""
        name = snapshot.variable_name
        if snapshot.object_id is not None or not self._is_function(name):
            return await self._step(snapshot.resume)

        def function() -> None: ...

        function.__name__ = name
        return await self._step(partial(snapshot.resume, value=function))

    def _is_function(self, name: str) -> bool:
        return name in self._around.stubs.functions or (name == "find_tools" and self._around.find is not None)

    # -- a call

    async def _called(self, snapshot: FunctionSnapshot) -> SyncSnapshot:
        if snapshot.is_os_function:
            return await self._step(snapshot.resume_auto)
        name, number = str(snapshot.function_name), snapshot.call_id
        if number in self._state.asked:  # a script that goes on where it waited
            return await self._go_on(snapshot, number)
        if snapshot.object_id is not None or not self._is_function(name):
            return await self._step(
                snapshot.resume, {"exc_type": "NameError", "message": f"name '{name}' is not defined"}
            )
        try:
            arguments = self._arguments(name, snapshot.args, snapshot.kwargs)
        except (TypeError, ValueError) as error:
            return await self._step(snapshot.resume, {"exc_type": "TypeError", "message": str(error)})
        if name == "find_tools" and self._around.find is not None:
            return await self._step(
                snapshot.resume, {"return_value": self._around.find(str(arguments.get("query", "")))}
            )
        self._count(name)
        self._state.asked[number] = Asked(self._state.count, name, arguments)
        return await self._go_on(snapshot, number)

    def _arguments(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        stub = self._around.stubs.get(name)
        given = stub.arguments(args, kwargs) if stub else dict(zip(["query"], args, strict=False)) | dict(kwargs)
        return cast("dict[str, Any]", plain(given, name))

    def _count(self, name: str) -> None:
        if self._state.count >= self._around.bounds.calls:
            raise ToolExecutionError(f"the script made more than {self._around.bounds.calls} calls")
        self._state.count += 1
        self._state.made[name] = self._state.made.get(name, 0) + 1

    async def _go_on(self, snapshot: FunctionSnapshot, number: int) -> SyncSnapshot:
        state = self._state
        stub = self._stub(state.asked[number])
        if (
            number not in state.settled
            and stub.tool.func is None
            and stub.tool.executor is None
            and self._around.pauses
        ):
            await self._pause(snapshot)
        if stub.tool.is_async:
            self._start(number)
            return await self._step(snapshot.resume, {"future": ...})
        if number not in state.settled:
            await self._kept(snapshot)
            state.settled[number] = await self._settle(state.asked[number])
        del state.asked[number]
        return await self._step(snapshot.resume, cast("Any", state.settled.pop(number)))

    def _stub(self, asked: Asked) -> Stub:
        stub = self._around.stubs.get(asked.function)
        if stub is None:
            raise ToolExecutionError(f"the script called {asked.function}, which is no tool any more")
        return stub

    async def _pause(self, snapshot: FunctionSnapshot) -> None:
        """Let what runs come to its end, keep everything, and leave."""
        for number, task in self._tasks.items():
            self._state.settled[number] = await task
        self._state.snapshot = snapshot.dump()
        raise Interrupted

    async def _kept(self, snapshot: FunctionSnapshot | FutureSnapshot) -> None:
        if self._around.keep is None:
            return
        over = {number: task.result() for number, task in self._tasks.items() if task.done()}
        self._state.settled |= over
        self._state.snapshot = snapshot.dump()
        await self._around.keep(self._state)

    # -- calls at the same time

    def _start(self, number: int) -> None:
        """Start an async tool's call; `write` and `destructive` ones of one origin keep their order."""
        state = self._state
        if number in state.settled:
            return
        tool = self._stub(state.asked[number]).tool
        ordered = tool.effect in ("write", "destructive")
        after = self._lanes.get(tool.origin) if ordered else None
        task = asyncio.create_task(self._in_turn(state.asked[number], after))
        self._tasks[number] = task
        if ordered:
            self._lanes[tool.origin] = task

    async def _in_turn(self, asked: Asked, after: asyncio.Task[Settled] | None) -> Settled:
        if after is not None:
            await asyncio.wait([after])
        async with self._places:
            return await self._settle(asked)

    async def _waited(self, snapshot: FutureSnapshot) -> SyncSnapshot:
        """Wait until one of the calls that the script awaits is over, and tell it of all that are."""
        awaited = snapshot.pending_call_ids
        for number in awaited:
            if number not in self._tasks:  # it was under way when the process that ran it ended
                self._start(number)
        await self._kept(snapshot)
        over = self._over(awaited)
        if not over:
            await asyncio.wait([self._tasks[n] for n in awaited], return_when=asyncio.FIRST_COMPLETED)
            over = self._over(awaited)
        for number in over:
            self._state.settled.pop(number, None)
            self._state.asked.pop(number, None)
            self._tasks.pop(number, None)
        return await self._step(snapshot.resume, cast("Any", over))

    def _over(self, numbers: list[int]) -> dict[int, Settled]:
        known = {n: self._state.settled[n] for n in numbers if n in self._state.settled}
        return known | {n: self._tasks[n].result() for n in numbers if n in self._tasks and self._tasks[n].done()}

    # -- one call

    async def _settle(self, asked: Asked) -> Settled:
        """Answer one call down the line that every call goes, in words the script understands."""
        around, line = self._around, self._around.context.line
        on_event, executor = (line[1], line[2]) if line else (None, None)
        one = self._call(self._stub(asked), asked.number, asked.arguments)
        result = await acall(
            one, around.toolset, context=self._inner, limits=around.limits, on_event=on_event, executor=executor
        )
        return _crossing(result, around.limits.max_result_chars)

    def _call(self, stub: Stub, number: int, arguments: dict[str, Any]) -> ToolCall:
        return ToolCall(f"{self._around.context.call_id}.{number}", stub.tool.name, arguments)


def _threadless(toolset: Toolset) -> Toolset:
    """Return the tools as they run in a thread that is there already."""
    return Toolset([tool.replace(thread=False) for tool in toolset])


_LOOK_EVERY = 0.05  # seconds between two looks at the interpreter's thread


def _crossing(result: ToolResult, most: int) -> Settled:
    if not result.ok:
        return {"exc_type": _ERRORS.get(result.kind, "RuntimeError"), "message": result.text}
    value = result.value
    if isinstance(value, str) and len(value) > most:
        return {"exc_type": "RuntimeError", "message": f"it returned {len(value):,} characters; at most {most:,} fit"}
    if isinstance(value, Envelope):
        return {"return_value": result.text}
    response = result.response
    return {"return_value": response.message if response.data is None else response.data}


_ERRORS = {"invalid_arguments": "ValueError", "timed_out": "TimeoutError", "denied": "PermissionError"}


def plain(value: Any, path: str) -> Any:
    """Return a script's value as JSON data.

    Args:
        value: What the interpreter gave.
        path: What to call it in an error.

    Raises:
        NotSerializableError: It is a function or the like; the message has its path.
    """
    try:
        made = to_jsonable_python(value, inf_nan_mode="strings", fallback=_attributes)
    except ValueError as error:
        raise NotSerializableError(path, str(error)[:200]) from None
    if bad := first_unsafe(made, path):
        raise NotSerializableError(*bad)
    return made


def _attributes(value: Any) -> Any:
    """Return the attributes of an instance of a script's own class."""
    attributes = getattr(value, "attributes", None)
    if isinstance(attributes, dict):
        return cast("dict[str, Any]", attributes)
    raise ValueError(f"{getattr(value, 'name', type(value).__name__)} is not JSON data")
