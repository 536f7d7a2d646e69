"""A program that is run to its end, or to its deadline, with everything it started."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from toolcrib.errors import ToolTimeoutError
from toolcrib.limits import MAX_OUTPUT_BYTES

__all__ = ["Child", "Ended"]

_TICK = 0.02  # how soon it is seen that a program ended whose children keep its output open
_DRAIN_SECONDS = 1.0


class Ended(NamedTuple):
    """How a program ended.

    Args:
        status: Its exit status; negative for the signal that ended it.
        output: What it wrote to standard output.
        errors: What it wrote to standard error.
        cut: Whether it wrote more than was kept.
    """

    status: int
    output: str
    errors: str
    cut: bool


class Child:
    """A program in a process group of its own, which ends with it.

    It reads nothing, and no more of what it writes is kept than the bound.

    Args:
        command: The program and its arguments; no shell reads them.
        cwd: The folder it runs in.
        env: All of its environment.

    Raises:
        OSError: It cannot be started.
    """

    def __init__(self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(  # noqa: S603  # the developer allowed it
            command,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._ending = threading.Lock()

    def wait(self, seconds: float) -> Ended:
        """Return how it ended.

        Args:
            seconds: When to end it.

        Raises:
            ToolTimeoutError: It had to be ended.
        """
        ends = time.monotonic() + seconds
        kept = {stream: bytearray() for stream in (self._process.stdout, self._process.stderr) if stream is not None}
        try:
            with selectors.DefaultSelector() as selector:
                for stream, text in kept.items():
                    selector.register(stream, selectors.EVENT_READ, text)
                cut = _followed(selector, lambda: self._has_ended() or time.monotonic() >= ends)
                timed_out = not self._has_ended()
                self.end()
                drained = time.monotonic() + _DRAIN_SECONDS
                cut |= _followed(selector, lambda: not selector.get_map() or time.monotonic() >= drained)
        finally:
            self.end()
            status = self._process.wait()
            for stream in kept:
                stream.close()
        if timed_out:
            raise ToolTimeoutError(f"it did not end within {seconds:g} seconds")
        output, errors = (bytes(text).decode(errors="replace") for text in kept.values())
        return Ended(status, output, errors, cut)

    def end(self) -> None:
        """End it and everything in its group, at once; from any thread."""
        with self._ending, suppress(ProcessLookupError, PermissionError):
            if self._process.returncode is not None:  # reaped: its number may be somebody else's
                return
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()

    def _has_ended(self) -> bool:
        """Whether the program itself has ended, without reaping it, so that its group can still be named."""
        if hasattr(os, "waitid"):
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        return self._process.poll() is not None


def _followed(selector: selectors.BaseSelector, over: Callable[[], bool]) -> bool:
    """Keep what is written until it is over, and return whether there was more than is kept."""
    cut = False
    while not over():
        for key, _ in selector.select(_TICK):
            chunk = os.read(key.fd, 65_536)
            if not chunk:
                selector.unregister(key.fileobj)
            cut |= len(key.data) + len(chunk) > MAX_OUTPUT_BYTES
            key.data.extend(chunk[: MAX_OUTPUT_BYTES - len(key.data)])
    return cut
