"""Runs calls in processes of their own, which may crash, leak or hang without harm to this one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from toolcrib.errors import WallError
from toolcrib.executors._crew import Crew
from toolcrib.executors._crossing import held_by, request_for, value_of
from toolcrib.executors._worker import START, Worker
from toolcrib.limits import WallLimits

if TYPE_CHECKING:
    from toolcrib.tools import Tool
    from toolcrib.types import ToolCall

__all__ = ["ProcessExecutor"]

_CALLS = 1_000


class ProcessExecutor:
    """Runs functions in a few warm processes: a crash, a hang, a leak or an `os._exit` is one error answer.

    It is for functions that are trusted and may break, not for hostile ones: they have this program's files,
    network and environment. What a call starts ends with the call, and everything ends with this process.

    Arguments and results cross as JSON. Functions are found again by module and name, so they stand at the
    top of a module. Of a ToolContext the ids and the timeout cross; `deps` and progress do not.

    Args:
        workers: How many processes there are at most; calls beyond them wait, which does not count as theirs.
        limits: What each may take.

    Raises:
        WallError: This system has no such processes.
        ValueError: There is to be none.
    """

    def __init__(self, *, workers: int = 2, limits: WallLimits | None = None) -> None:
        if sys.platform == "win32":
            raise WallError("ProcessExecutor needs a POSIX system: Windows has no process groups and no limits to set")
        if workers < 1:
            raise ValueError(f"workers must be at least 1, not {workers!r}")
        self.limits = limits or WallLimits()
        self._crew = Crew(workers, self._worker, _CALLS)

    def _worker(self) -> Worker:
        return Worker([sys.executable, "-P", "-c", START], self.limits, sys.path, guarded=True)

    def tools(self, tools: Any) -> list[Tool]:
        """Return the tools with this executor, each looked at: whether it can cross, and names that clash.

        Args:
            tools: Whatever a Toolset takes.

        Raises:
            ToolNameError: Two of them have one name.
            ToolSignatureError: A function cannot be found again by its name.
            NotSerializableError: A default is not JSON data; the message has its path.
        """
        return held_by(self, tools)

    async def run(self, tool: Tool, arguments: Mapping[str, Any], call: ToolCall) -> Any:
        """Return what the function returned, as JSON data.

        Raises:
            ToolExecutionError: It raised, or its process came to an end.
            ToolTimeoutError: The deadline passed; the process was ended.
            NotSerializableError: An argument cannot cross; the message has its path.
        """
        timeout = call.context.timeout if call.context is not None else None
        return value_of(await self._crew.run(request_for(tool, arguments, call), timeout))

    def close(self) -> None:
        """End the processes; nothing can run after it."""
        self._crew.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
