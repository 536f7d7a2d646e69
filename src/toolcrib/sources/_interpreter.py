"""The interpreters that models' scripts run in: processes of pydantic-monty, kept warm and shared."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import signal
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

from toolcrib._portal import off_loop
from toolcrib.errors import MissingExtraError, ToolArgumentError, ToolExecutionError, ToolTimeoutError
from toolcrib.limits import MAX_SCRIPT_WORKERS

if TYPE_CHECKING:
    from pydantic_monty import Frame, Monty, MontySession, SyncSnapshot

    from toolcrib.limits import ScriptLimits

__all__ = ["LACKS", "Interpreter", "check_installed", "explained"]

#: The subset of Python there is, as a model is told.
LACKS = """\
A subset of Python: no files, network, environment, waiting or packages. Modules: asyncio, base64, bisect, collections,
copy, csv, dataclasses, datetime, decimal, functools, hashlib, itertools, json, math, random, re, time, tomllib, typing.
Without: map, filter, yield, inheritance, property, classmethod, staticmethod, super, del, async for, async with."""

_SECONDS_TO_WAIT = 60.0
_SUSPENSIONS_PER_CALL = 4
_SUSPENSIONS = 100
_DEEPEST = 200
_MOST_FRAMES = 4
_MOST_PROBLEMS = 8

_lock = Lock()
_pools: list[Monty] = []


def check_installed() -> None:
    """Refuse to promise scripts where nothing can run them.

    Raises:
        MissingExtraError: The `script` extra is not installed.
    """
    if find_spec("pydantic_monty") is None:
        raise MissingExtraError("script", "ScriptTool")


def _pool() -> Monty:
    # The blocking interface: threads of the other one reach into Python while it shuts down, which aborts it.
    from pydantic_monty import Monty

    with _lock:
        if not _pools:
            pool = Monty(max_processes=MAX_SCRIPT_WORKERS, checkout_timeout=_SECONDS_TO_WAIT)
            _pools.append(pool.__enter__())
            atexit.register(pool.__exit__, None, None, None)
    return _pools[0]


class Interpreter:
    """One interpreter with nothing in it, within bounds; an async context manager.

    Args:
        bounds: What the script may take.
        stubs: What it is checked against before it runs; None leaves the check out.

    Raises:
        ToolExecutionError: None is free.
    """

    def __init__(self, bounds: ScriptLimits, stubs: str | None) -> None:
        self._bounds = bounds
        self._stubs = stubs

    async def __aenter__(self) -> Self:
        self._opened, self._pid = await off_loop(self._open)
        return self

    def _open(self) -> tuple[MontySession, int | None]:
        bounds = self._bounds
        limits: Any = {
            "max_feed_duration_secs": bounds.seconds,
            "max_memory": bounds.memory_bytes,
            "max_recursion_depth": _DEEPEST,
            "max_suspensions": _SUSPENSIONS + _SUSPENSIONS_PER_CALL * bounds.calls,
        }
        checkout = _pool().checkout(
            limits=limits,
            type_check=self._stubs is not None,
            type_check_stubs=self._stubs,
            type_check_format="concise",
            os_policy={"sleep": "zero"},
        )
        try:
            opened = checkout.__enter__()
        except TimeoutError:
            raise ToolExecutionError(
                f"no interpreter was free within {_SECONDS_TO_WAIT:g} seconds; try again"
            ) from None
        return opened, opened.worker_pid

    async def __aexit__(self, *raised: object) -> None:
        await off_loop(self._close)

    def _close(self) -> None:
        with contextlib.suppress(Exception):  # one that was stopped has nothing left to close
            self._opened.__exit__(None, None, None)

    def start(self, code: str, print_: Callable[[Any, str], None]) -> SyncSnapshot:
        """Run a script up to its end or its first call; blocks."""
        return self._opened.feed_start(code, print_callback=print_)

    def load(self, snapshot: bytes, print_: Callable[[Any, str], None]) -> SyncSnapshot:
        """Return a script to where it waited; blocks."""
        return self._opened.load_snapshot(snapshot, print_callback=print_)

    async def variable(self, name: str) -> Any:
        """Return what a script that is over has left in a variable; None if there is none."""
        from pydantic_monty import MontyRuntimeError

        try:
            return await off_loop(partial(self._opened.feed_run, name, skip_type_check=True))
        except MontyRuntimeError:
            return None

    def kill(self) -> None:
        """End the interpreter, in the middle of whatever it does."""
        if self._pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)


# -- what went wrong, as a model is told


def explained(error: Exception, code: str, bounds: ScriptLimits) -> Exception:
    """Return an interpreter's error in words for the model that wrote the script, with the line.

    Args:
        error: What the interpreter raised.
        code: The script.
        bounds: What it may take.
    """
    from pydantic_monty import MontyCrashedError, MontyRuntimeError, MontySyntaxError, MontyTypingError

    lines = code.splitlines()
    match error:
        case MontyTypingError():
            return _refused(_diagnosed(error.display(), lines))
        case MontySyntaxError():
            return _refused([_located(at.line, str(error), lines) for at in error.traceback()[-1:]] or [str(error)])
        case MontyCrashedError():
            return ToolExecutionError("the script broke its interpreter, which was replaced; write it in another way")
        case MontyRuntimeError():
            return _raised(str(error), error.traceback(), lines, bounds)
        case _:
            return error


def _raised(text: str, frames: list[Frame], lines: list[str], bounds: ScriptLimits) -> Exception:
    if text.startswith("TimeoutError: feed time limit"):
        return ToolTimeoutError(f"it computed for more than {bounds.seconds:g} seconds, not counting its calls")
    if text.startswith("NotImplementedError: The monty syntax parser"):
        said = text.partition("support ")[2].removeprefix("the ") or text
        return _refused([_located(frame.line, f"{said} is not supported", lines) for frame in frames[-1:]])
    where = [_located(frame.line, _place(frame.function_name), lines) for frame in frames]
    cut = [*where[:1], "…", *where[1 - _MOST_FRAMES :]] if len(where) > _MOST_FRAMES else where
    return ToolExecutionError("\n".join([text, *cut]))


def _refused(problems: list[str]) -> ToolArgumentError:
    told = problems[:_MOST_PROBLEMS]
    more = [f"and {len(problems) - len(told)} more"] if len(problems) > len(told) else []
    listed = "\n- ".join(["The script was not run:", *told, *more])
    return ToolArgumentError(listed, tuple(problems))


def _diagnosed(display: str, lines: list[str]) -> list[str]:
    found = [_DIAGNOSTIC.match(line) for line in display.splitlines()]
    problems = [_located(int(match[1]), match[2], lines) for match in found if match]
    return problems or [display.strip()]


_DIAGNOSTIC = re.compile(r"[^:]*:(\d+):\d+: \w+\[[\w-]+\] (.*)")


def _place(function: str | None) -> str:
    return f"in {function}" if function and function != "<module>" else ""


def _located(number: int, text: str, lines: list[str]) -> str:
    source = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return f"line {number}: {text}".rstrip(" :") + (f"\n    {source[:200]}" if source else "")
