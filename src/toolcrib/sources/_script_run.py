"""One script from its first line to its last: its calls are answered as any model's calls are."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pydantic_core import to_jsonable_python

from toolcrib._json import first_unsafe
from toolcrib.dispatch import acall, call
from toolcrib.errors import NotSerializableError, ToolExecutionError
from toolcrib.sources._script_state import Asked, ScriptState, Settled
from toolcrib.types import Envelope, ToolCall, ToolContext, ToolResult

if TYPE_CHECKING:
    from pydantic_monty import FunctionSnapshot, FutureSnapshot, NameLookupSnapshot, SyncSnapshot

    from toolcrib.limits import Limits, ScriptLimits
    from toolcrib.sources._stubs import Stub, Stubs
    from toolcrib.toolset import Toolset

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


class Interrupted(Exception):  # noqa: N818  # no error: the script waits
    """The script called a declared tool, and waits for what somebody else will answer."""


class ScriptCalls:
    """Answers what a script asks for until it is over.

    Args:
        around: What its calls are made with.
        state: Where it stands.
        step: Lets the interpreter run on.
    """

    def __init__(self, around: Around, state: ScriptState, step: Callable[..., Awaitable[Any]]) -> None:
        self._around = around
        self._run = step
        self._state = state
        self._tasks: dict[int, asyncio.Task[Settled]] = {}
        self._lanes: dict[str | None, asyncio.Task[Settled]] = {}
        self._places = asyncio.Semaphore(around.limits.max_parallel)

    async def answered(self, snapshot: SyncSnapshot) -> Any:
        """Answer every call and return the script's last value.

        Raises:
            Interrupted: It waits for the answer of a declared tool; the state has the rest.
            ToolExecutionError: It made too many calls.
        """
        from pydantic_monty import FutureSnapshot, MontyComplete, NameLookupSnapshot

        try:
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

    async def _step(self, method: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return await self._run(self._on, method, *args, **options)

    def _on(self, method: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Let the interpreter run on, and answer calls of plain functions here, in its own thread."""
        snapshot = method(*args, **options)
        while (settled := self._at_once(snapshot)) is not None:
            snapshot = snapshot.resume(settled)
        return snapshot

    def _at_once(self, snapshot: Any) -> Settled | None:
        """Return what a call comes to that needs no loop; None of everything else."""
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
        one, options = self._call(Asked(self._state.count, name, arguments))
        return _crossing(call(one, self._around.toolset, **options), self._around.limits.max_result_chars)

    async def _named(self, snapshot: NameLookupSnapshot) -> SyncSnapshot:
        """Give a function that is passed on as a value, as in `map(fetch, rows)`."""
        name = snapshot.variable_name
        if snapshot.object_id is not None or not self._is_function(name):
            return await self._step(snapshot.resume)

        def function() -> None: ...

        function.__name__ = name
        return await self._step(snapshot.resume, value=function)

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
        self._state.count += 1
        self._state.made[name] = self._state.made.get(name, 0) + 1
        if self._state.count > self._around.bounds.calls:
            raise ToolExecutionError(f"the script made more than {self._around.bounds.calls} calls")

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
        one, options = self._call(asked)
        executor = self._around.context.line[2] if self._around.context.line else None
        result = await acall(one, self._around.toolset, **options, executor=executor)
        return _crossing(result, self._around.limits.max_result_chars)

    def _call(self, asked: Asked) -> tuple[ToolCall, dict[str, Any]]:
        context = self._around.context
        one = ToolCall(f"{context.call_id}.{asked.number}", self._stub(asked).tool.name, asked.arguments)
        inner = ToolContext[Any](run_id=context.run_id, deps=context.deps)
        on_event = context.line[1] if context.line else None
        return one, {"context": inner, "limits": self._around.limits, "on_event": on_event}


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
