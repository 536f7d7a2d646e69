"""Runs a call again when it failed and doing so can do no harm."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from toolcrib.errors import ExternalToolError, ToolArgumentError, ToolDeniedError
from toolcrib.executors.inline import InlineExecutor

if TYPE_CHECKING:
    from toolcrib.protocols import Executor
    from toolcrib.tools import Tool
    from toolcrib.types import ToolCall

__all__ = ["RetryExecutor"]


class RetryExecutor:
    """Runs calls of `read` and `idempotent` tools again when they raise; others run once.

    Each attempt has the whole deadline; the waits between them double. What a tool answers with
    `ToolResponse(False)` is its answer and is not tried again, nor is a denied call.

    Args:
        inner: What runs each attempt.
        attempts: How often at most, the first included.
        wait: Seconds before the second attempt.
        retries: Whether an error is worth another attempt; by default every error is, but those of a gateway
            that say they are not.

    Raises:
        ValueError: Fewer than one attempt, or a negative wait.
    """

    def __init__(
        self,
        inner: Executor | None = None,
        *,
        attempts: int = 3,
        wait: float = 0.2,
        retries: Callable[[Exception], bool] | None = None,
    ) -> None:
        if attempts < 1 or wait < 0:
            raise ValueError(f"attempts must be at least 1 and wait not negative, not {attempts} and {wait}")
        self._inner = inner or InlineExecutor()
        self._attempts = attempts
        self._wait = wait
        self._retries = retries or _may_pass

    async def run(self, tool: Tool, arguments: Mapping[str, Any], call: ToolCall) -> Any:
        """Return what the first attempt that succeeds returned, or raise what the last one raised."""
        attempts = self._attempts if tool.effect in ("read", "idempotent") else 1
        for attempt in range(1, attempts):
            try:
                return await self._inner.run(tool, _fresh(arguments), call)
            except (ToolArgumentError, ToolDeniedError):
                raise
            except Exception as error:
                if not self._retries(error):
                    raise
            await asyncio.sleep(self._wait * 2 ** (attempt - 1))
        return await self._inner.run(tool, arguments, call)


def _may_pass(error: Exception) -> bool:
    return not (isinstance(error, ExternalToolError) and error.retryable is False)


def _fresh(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a copy, so that what one attempt does to its arguments is not what the next one gets."""
    try:
        return copy.deepcopy(dict(arguments))
    except Exception:  # noqa: BLE001  # something that a caller passed and nobody can copy
        return arguments
