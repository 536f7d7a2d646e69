"""MCP servers of others, installed from npm and PyPI into the project's cache: once, whoever comes first."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

CACHE = Path(__file__).parents[1] / ".peers" / "mcp"
NODE = (
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
)
PYTHON = ("mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19")


@contextmanager
def alone(name: str) -> Iterator[Path]:
    """Give the folder of that name to one process at a time."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield CACHE / name


def run(*command: str, cwd: Path | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        shown = " ".join(command)
        pytest.fail(f"{shown} failed:\n{done.stderr[-2_000:]}")


def node_modules() -> Path:
    """Return the folder of the npm packages; skip where there is no npm."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    with alone("node") as folder:
        if not (folder / "installed").exists():
            folder.mkdir(exist_ok=True)
            (folder / "package.json").write_text('{"private": true}', encoding="utf-8")
            run(npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", *NODE, cwd=folder)
            (folder / "installed").touch()
    return folder / "node_modules"


def venv() -> Path:
    """Return the folder of programs of an environment with the PyPI packages."""
    with alone("python") as folder:
        if not (folder / "installed").exists():
            run(sys.executable, "-m", "venv", str(folder))
            run(str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *PYTHON)
            (folder / "installed").touch()
    return folder / "bin"
