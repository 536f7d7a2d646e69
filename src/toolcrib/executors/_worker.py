"""One process behind a wall, seen from outside: a call goes in, and its answer or its end comes out."""

from __future__ import annotations

import contextlib
import marshal
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from pydantic_core import from_json

from toolcrib.errors import ToolExecutionError, ToolTimeoutError
from toolcrib.executors import _harness
from toolcrib.limits import WallLimits

__all__ = ["PACKAGE", "START", "Worker"]

PACKAGE = str(Path(__file__).parents[1])

#: What a Python is given to run: the inside of the wall, as a module, which is compiled once and not for each call.
START = (
    f"import sys; sys.path.append({str(Path(__file__).parent)!r}); "
    f"import {_harness.__name__.rpartition('.')[2]} as inside; inside.main()"
)

_LOOK_EVERY = 0.05  # seconds between two looks at how many processes there are
_PATIENCE = 2.0  # seconds a process has to end by itself
_HEAD = 8


class Worker:
    """A process that answers calls one by one.

    Args:
        command: What starts it.
        limits: What it may take.
        path: Its `sys.path`.
        guarded: Whether a guard is to stand before it; behind a wall with a process table of its own none is needed.
        env: Its environment; that of this process when None.
        processes: How many there are when nothing runs.
    """

    def __init__(
        self,
        command: Sequence[str],
        limits: WallLimits,
        path: Sequence[str],
        *,
        guarded: bool,
        env: Mapping[str, str] | None = None,
        processes: int = 2,
    ) -> None:
        self.calls = 0
        self._limits = limits
        self._own = processes
        self._process = subprocess.Popen(  # noqa: S603  # our own interpreter, or what the wall is made of
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
            start_new_session=True,
        )
        assert self._process.stdin is not None  # noqa: S101  # it is a pipe
        assert self._process.stdout is not None  # noqa: S101  # it is a pipe
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        room = _processes_of_user() + limits.processes if guarded else limits.processes
        setup = {"guard": guarded, "limits": asdict(limits) | {"user_processes": room}, "path": list(path)}
        self._unsent = _framed(setup)
        self._read = b""

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def ask(self, request: Mapping[str, Any], timeout: float | None) -> dict[str, Any]:
        """Return the answer to a call; whatever else happens ends the process.

        Args:
            request: The call.
            timeout: Seconds until it is given up.

        Raises:
            ToolTimeoutError: There was no answer in time.
            ToolExecutionError: The process died, started too many others, or said too much.
        """
        self.calls += 1
        self._unsent += _framed({**request, "id": self.calls})
        try:
            answer = self._exchange(None if timeout is None else time.monotonic() + timeout, timeout)
        except BaseException:
            self.end()
            raise
        if answer.get("last"):  # a thread goes on in it
            self.end()
        return answer

    def _exchange(self, end: float | None, timeout: float | None) -> dict[str, Any]:
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        poll.register(self._in, select.POLLOUT)
        while True:
            if not self._unsent:
                with contextlib.suppress(KeyError):
                    poll.unregister(self._in)
            left = _LOOK_EVERY if end is None else min(_LOOK_EVERY, end - time.monotonic())
            events = poll.poll(max(0.0, left) * 1_000)
            if not events:
                self._look(end, timeout)
            for number, _ in events:
                if number == self._in:
                    self._send()
                elif (answer := self._receive()) is not None:
                    return answer
            if end is not None and time.monotonic() > end:
                raise ToolTimeoutError(f"no answer within {timeout:g} seconds")

    def _send(self) -> None:
        try:
            self._unsent = self._unsent[os.write(self._in, self._unsent[: 1 << 16]) :]
        except BlockingIOError:
            return
        except OSError:  # it is gone, and what it leaves to be read says how
            self._unsent = b""

    def _receive(self) -> dict[str, Any] | None:
        piece = os.read(self._out, 1 << 20)
        if not piece:
            raise ToolExecutionError(self._epitaph())
        self._read += piece
        length = int.from_bytes(self._read[:_HEAD], "big") if len(self._read) >= _HEAD else 0
        if length > self._limits.answer_bytes + 10_000 or len(self._read) > length + _HEAD > _HEAD:
            raise ToolExecutionError("its answer is too long, or none")
        if length == 0 or len(self._read) < _HEAD + length:
            return None
        text, self._read = self._read[_HEAD:], b""
        try:
            answer = from_json(text)
        except ValueError:
            answer = None
        if not isinstance(answer, dict) or cast("dict[str, Any]", answer).get("id") != self.calls:
            raise ToolExecutionError("its answer cannot be read")
        return cast("dict[str, Any]", answer)

    def _look(self, end: float | None, timeout: float | None) -> None:
        if end is not None and time.monotonic() > end:
            raise ToolTimeoutError(f"no answer within {timeout:g} seconds")
        if _family(self._process.pid, self._own + self._limits.processes) > self._own + self._limits.processes:
            raise ToolExecutionError(f"it started more than {self._limits.processes} processes")

    def _epitaph(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        code = self._process.returncode
        if code is None:
            return "it stopped answering"
        number = -code if code < 0 else code - 128 if code > 128 else 0  # noqa: PLR2004  # as shells count
        try:
            return f"its process was ended by {signal.Signals(number).name}"
        except ValueError:
            return f"it ended its process with exit code {code}"

    def end(self) -> None:
        """End the process and all it started; safe to call again, and from another thread."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()  # the guard ends what is out of reach from here
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_PATIENCE)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _framed(message: Mapping[str, Any]) -> bytes:
    text = marshal.dumps(dict(message))
    return len(text).to_bytes(_HEAD, "big") + text


def _family(pid: int, most: int) -> int:
    """Return how many processes there are below one and with it, counting no further than just past a number."""
    count, waiting = 0, [pid]
    while waiting and count <= most:
        count += 1
        one = waiting.pop()
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{one}/task").iterdir():
                waiting += map(int, (task / "children").read_bytes().split())
    return count


def _processes_of_user() -> int:
    """Return how many processes and threads this user has, which is what the system's own limit counts."""
    if sys.platform != "linux" or os.getuid() == 0:  # of which it counts none
        return -1_000_000
    own, count = os.getuid(), 0
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == own:
                count += sum(1 for _ in (entry / "task").iterdir())
    return count
