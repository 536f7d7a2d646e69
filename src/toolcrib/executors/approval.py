"""Asks before a call runs."""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from toolcrib._portal import off_loop
from toolcrib.errors import ToolDeniedError
from toolcrib.executors.inline import InlineExecutor

if TYPE_CHECKING:
    from toolcrib.protocols import Executor
    from toolcrib.tools import Tool
    from toolcrib.types import Effect, ToolCall

__all__ = ["ApprovalExecutor", "Ask", "Verdict"]

#: True runs the call as it is, a mapping runs it with these arguments instead, a text denies it with
#: that reason, False or None denies it without one.
Verdict: TypeAlias = bool | str | Mapping[str, Any] | None
Ask: TypeAlias = "Callable[[Tool, Mapping[str, Any], ToolCall], Verdict | Awaitable[Verdict]]"


class ApprovalExecutor:
    """Asks a person, or a policy, before a call runs; what was approved is what runs.

    The wait has a limit of its own and never counts against the tool's deadline. An edited call is
    validated like any other. When asking fails, the call is denied.

    Args:
        ask: Called with the tool, a copy of the validated arguments and the call; sync (in a worker thread)
            or async. See Verdict for what it may return.
        inner: What runs an approved call.
        effects: Which tools are asked about, by effect; None in it stands for tools that declare none.
            By default all but `read`.
        timeout: Seconds to wait for an answer; None for ever.
    """

    def __init__(
        self,
        ask: Ask,
        inner: Executor | None = None,
        *,
        effects: tuple[Effect | None, ...] = ("idempotent", "write", "destructive", None),
        timeout: float | None = 300.0,
    ) -> None:
        self._ask = ask
        self._inner = inner or InlineExecutor()
        self._effects = effects
        self._timeout = timeout

    async def run(self, tool: Tool, arguments: Mapping[str, Any], call: ToolCall) -> Any:
        """Return what the tool returned.

        Raises:
            ToolDeniedError: The answer was no, or did not come in time.
        """
        if tool.effect not in self._effects:
            return await self._inner.run(tool, arguments, call)
        try:
            verdict = await asyncio.wait_for(self._verdict(tool, arguments, call), self._timeout)
        except TimeoutError:
            raise ToolDeniedError(f"nobody approved it within {self._timeout:g} seconds") from None
        except Exception as error:
            raise ToolDeniedError("asking for approval failed") from error
        if isinstance(verdict, Mapping):
            return await self._inner.run(tool, tool.read(verdict), call)
        if verdict is True:
            return await self._inner.run(tool, arguments, call)
        raise ToolDeniedError(verdict if isinstance(verdict, str) and verdict else "it was not approved")

    async def _verdict(self, tool: Tool, arguments: Mapping[str, Any], call: ToolCall) -> Verdict:
        shown = copy.deepcopy(dict(arguments))  # whatever asking does to it, what was validated is what runs
        if inspect.iscoroutinefunction(self._ask):
            return await self._ask(tool, shown, call)
        answer = await off_loop(self._ask, tool, shown, call)
        return await answer if inspect.isawaitable(answer) else answer
