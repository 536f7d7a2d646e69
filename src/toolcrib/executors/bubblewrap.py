"""Runs calls behind bubblewrap: without network, environment or files, but for what is declared."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from toolcrib.errors import WallError
from toolcrib.executors._crew import Crew
from toolcrib.executors._crossing import held_by, request_for, value_of
from toolcrib.executors._worker import PACKAGE, START, Worker
from toolcrib.limits import WallLimits

if TYPE_CHECKING:
    from toolcrib.tools import Tool
    from toolcrib.types import ToolCall

__all__ = ["BubblewrapExecutor"]

_PROBE_SECONDS = 20.0
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
_PROCESSES = 3  # bwrap outside, bwrap inside, and the interpreter


class BubblewrapExecutor:
    """Runs untrusted functions, and wraps untrusted commands: each call gets a world of its own, and leaves nothing.

    Inside there are the system's programs, Python with its packages, and the function's own file, all read-only;
    an empty `/tmp`; no network at all; no environment, no other process, nothing else of this machine. It runs on
    Linux, with Debian's `bubblewrap` or another of at least 0.8.

    Args:
        read: Files and folders that may be read.
        write: Folders, and files, that may be written.
        env: The environment, in full.
        limits: What each call may take.
        workers: How many calls run at once; those beyond wait, which does not count as theirs.

    Raises:
        WallError: The wall cannot be had here; it is never left out.
        ValueError: A path that does not exist or is not absolute, or there is to be no worker.
    """

    def __init__(
        self,
        *,
        read: Iterable[str | Path] = (),
        write: Iterable[str | Path] = (),
        env: Mapping[str, str] | None = None,
        limits: WallLimits | None = None,
        workers: int = 4,
    ) -> None:
        if workers < 1:
            raise ValueError(f"workers must be at least 1, not {workers!r}")
        self._read = [_checked(path) for path in read]
        self._write = [_checked(path) for path in write]
        self._env = dict(env or {})
        self.limits = limits or WallLimits()
        self._bwrap = _found()
        self._probe()
        self._crews: dict[str, Crew] = {}
        self._workers = workers

    # -- the wall

    def command(self, command: Sequence[str]) -> list[str]:
        """Return a command line that runs a command behind the wall, such as that of an MCP server over stdio.

        Its memory, files and processes have the bounds of `limits`; how long it runs is up to whoever starts it.

        Args:
            command: The program and its arguments.

        Raises:
            ValueError: It is empty.
        """
        if not command or isinstance(command, str):
            raise ValueError("command is a list: the program and its arguments")
        limits = self.limits
        bounds = [
            f"--as={limits.memory_bytes}",
            f"--nofile={limits.open_files}",
            f"--fsize={limits.file_bytes}",
            f"--nproc={limits.processes}",
            "--core=0",
        ]
        return [*self._wall(), "--proc", "/proc", "--remount-ro", "/", "--", "prlimit", *bounds, "--", *command]

    def _wall(self, *files: str) -> list[str]:
        room = str(self.limits.file_bytes)
        seen: list[str] = []
        for path in [*_SYSTEM, *_interpreter()]:
            seen += _shown(path)
        for path in [*files, *self._read]:
            seen += ["--ro-bind", path, path]
        tmp = ["--size", room, "--perms", "1777", "--tmpfs", "/tmp"]  # noqa: S108  # of the world inside
        dev = ["--dev", "/dev", "--size", room, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108  # the same
        written = [word for path in self._write for word in ("--bind", path, path)]
        named = [word for name, value in self._env.items() for word in ("--setenv", name, value)]
        return [
            *(
                self._bwrap,
                "--unshare-all",
                "--unshare-user",
                "--disable-userns",
                "--die-with-parent",
                "--new-session",
                "--cap-drop",
                "ALL",
            ),
            *("--hostname", "wall", "--clearenv", *named, *tmp, *dev, *seen, *written, "--chdir", "/tmp"),  # noqa: S108  # the same
        ]

    def _probe(self) -> None:
        try:
            done = subprocess.run(  # noqa: S603  # bubblewrap, from the path of the system
                [*self._wall(PACKAGE), "--remount-ro", "/", "--", sys.executable, "-I", "-S", "-c", "print(6 * 7)"],
                capture_output=True,
                text=True,
                timeout=_PROBE_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise WallError(f"bubblewrap does not run here: {error}") from error
        if done.stdout != "42\n":
            said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
            raise WallError(f"bubblewrap cannot build a wall here: {said[0]}")

    # -- calls

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
            ToolTimeoutError: The deadline passed; its world was ended.
            NotSerializableError: An argument cannot cross; the message has its path.
        """
        timeout = call.context.timeout if call.context is not None else None
        request = request_for(tool, arguments, call)
        return value_of(await self._crew(request["file"] or "").run(request, timeout))

    def _crew(self, file: str) -> Crew:
        """Return the crew whose worlds have one file: a function sees no other's."""
        if file not in self._crews:
            self._crews.setdefault(file, Crew(self._workers, lambda: self._worker(file), 1))
        return self._crews[file]

    def _worker(self, file: str) -> Worker:
        inside = [sys.executable, "-I", "-S", "-c", START]
        files = [file] if file else []
        command = [*self._wall(*files, PACKAGE), "--remount-ro", "/", "--", *inside]
        return Worker(command, self.limits, _import_path(), guarded=False, env={}, processes=_PROCESSES)

    def close(self) -> None:
        """End what runs; nothing can run after it."""
        for crew in self._crews.values():
            crew.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def _found() -> str:
    if sys.platform != "linux":
        raise WallError("BubblewrapExecutor needs Linux; there is no such wall on this system")
    found = shutil.which("bwrap")
    if found is None:
        raise WallError("BubblewrapExecutor needs bubblewrap: install the package `bubblewrap` of your system")
    return found


def _checked(path: str | Path) -> str:
    text = os.fspath(path)
    if not os.path.isabs(text) or not os.path.exists(text):  # noqa: PTH110, PTH117  # it is kept as text
        raise ValueError(f"a declared path is absolute and exists, and {text!r} is not or does not")
    return text


def _shown(path: str) -> list[str]:
    """Return how a path of the system gets in: a link as a link, anything else read-only, or not at all."""
    if os.path.islink(path):  # noqa: PTH114  # it is kept as text
        return ["--symlink", os.readlink(path), path]  # noqa: PTH115  # the same
    return ["--ro-bind-try", path, path]


def _interpreter() -> list[str]:
    places = dict.fromkeys([sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix])
    return [place for place in places if not place.startswith("/usr/") and place != "/usr"]


def _import_path() -> list[str]:
    roots = [*_SYSTEM, *_interpreter()]
    seen = [entry for entry in sys.path if any(entry.startswith(f"{root}/") for root in roots)]
    return [*seen, str(Path(PACKAGE).parent)]
