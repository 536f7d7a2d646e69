"""The weights on this machine: fetched once into the user's cache, by one process at a time.

A file stands under its final name only after its digest was found right, beside a note of the size and
the modification time it then had. Later starts compare those two instead of reading half a gigabyte
again: a truncated, replaced or edited file differs in at least one, and is read in full.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from toolcrib.engines.local._carriers import from_carriers
from toolcrib.engines.local._catalogue import Weights, verify
from toolcrib.engines.local._hub import from_hub, hub_is_allowed
from toolcrib.engines.local._progress import download_bar
from toolcrib.errors import WeightsError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["OnDownload", "cache_dir", "fetch"]

#: Told `(bytes so far, bytes in all)` while weights are fetched.
OnDownload = Callable[[int, int], None]

_LOCK_POLL = 0.2  # seconds between looks at a lock that another process holds
_HEADROOM = 50_000_000  # bytes left free on the disk


def cache_dir() -> Path:
    """Return where weights are kept: $TOOLCRIB_CACHE, else toolcrib in $XDG_CACHE_HOME or ~/.cache."""
    if own := os.environ.get("TOOLCRIB_CACHE"):
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(shared) if Path(shared).is_absolute() else Path.home() / ".cache") / "toolcrib"


def fetch(weights: Weights, on_download: OnDownload | None = None, stop: threading.Event | None = None) -> Path:
    """Return the path of the weights, fetched first if they are not on this machine.

    Args:
        weights: Which ones.
        on_download: Told how far the download is; without it a bar, or lines, on standard error.
        stop: Once set, the download ends with an error; whole parts are kept for the next time.

    Raises:
        WeightsError: No source has these bytes, or there is no room for them.
    """
    home = cache_dir() / weights.sha256
    if not _is_intact(home, weights):
        with _clear_os_errors(home), _claimed(home, stop or threading.Event()) as stopped:
            if not _is_intact(home, weights):
                _fetch(home, weights, on_download, stopped)
    return home / weights.file


def _is_intact(home: Path, weights: Weights) -> bool:
    path = home / weights.file
    if not path.is_file():
        return False
    if path.stat().st_size == weights.size and _note(home).is_file() and _note(home).read_text() == _state(path):
        return True
    try:
        verify(path, weights.sha256, str(path))
    except (WeightsError, OSError):
        return False
    _write_note(home, path)
    return True


def _note(home: Path) -> Path:
    return home / "verified"


def _state(path: Path) -> str:
    stat = path.stat()
    return f"{stat.st_size} {stat.st_mtime_ns}"


def _write_note(home: Path, path: Path) -> None:
    with suppress(OSError):  # a cache that may only be read costs a reading per start
        _note(home).write_text(_state(path))


def _fetch(home: Path, weights: Weights, on_download: OnDownload | None, stop: threading.Event) -> None:
    staging = home / "staging"
    staging.mkdir(exist_ok=True)
    _check_room(staging, weights)
    with _watching(weights, on_download, stop) as watch:
        assembled = _from_any_source(weights, staging, watch)
        watch(weights.size)
    path = home / weights.file
    assembled.replace(path)
    _write_note(home, path)
    shutil.rmtree(staging, ignore_errors=True)


def _check_room(staging: Path, weights: Weights) -> None:
    have = sum(file.stat().st_size for file in staging.rglob("*") if file.is_file())
    need = max(0, 2 * weights.size - have) + _HEADROOM
    free = shutil.disk_usage(staging).free
    if free < need:
        raise WeightsError(
            f"{weights.name} needs {need / 1e6:.0f} MB on the disk of {staging.parent}, where {free / 1e6:.0f} MB"
            " are free; make room, or set TOOLCRIB_CACHE to a directory on another disk"
        )


def _from_any_source(weights: Weights, staging: Path, watch: Callable[[int], None]) -> Path:
    reasons: list[str] = []
    if weights.official and hub_is_allowed():
        try:
            return from_hub(weights, weights.official, staging, watch)
        except WeightsError as error:
            reasons.append(str(error))
        watch(0)  # raises when what ended the first source was a wish to stop
    try:
        return from_carriers(weights, staging, watch)
    except WeightsError as error:
        reasons.append(str(error))
    raise WeightsError(f"the weights of {weights.name} could not be had: " + "; then ".join(reasons), retryable=True)


@contextmanager
def _watching(
    weights: Weights, on_download: OnDownload | None, stop: threading.Event
) -> Generator[Callable[[int], None]]:
    """Give what the sources tell their progress to, and what ends them."""
    with download_bar(weights.name, weights.size) if on_download is None else _told(on_download, weights) as show:

        def watch(done: int) -> None:
            if stop.is_set():
                raise WeightsError("the download was stopped", retryable=True)
            show(min(done, weights.size))

        yield watch


@contextmanager
def _told(on_download: OnDownload, weights: Weights) -> Generator[Callable[[int], None]]:
    yield lambda done: on_download(done, weights.size)


@contextmanager
def _clear_os_errors(home: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        hint = "the disk is full" if error.errno == errno.ENOSPC else error.strerror or type(error).__name__
        raise WeightsError(
            f"the weights could not be written to {home}: {hint}; set TOOLCRIB_CACHE to a directory that has room"
        ) from error


# -- one process at a time


@contextmanager
def _claimed(home: Path, stop: threading.Event) -> Generator[threading.Event]:
    """Hold the lock file; the system lets go of it however its holder ends, so it never goes stale."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("a+b") as lock:
        while not _try_lock(lock):
            if stop.is_set():
                raise WeightsError("the wait for another process's download was stopped", retryable=True)
            time.sleep(_LOCK_POLL)
        yield stop


_HELD = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}

if sys.platform == "win32":

    def _try_lock(lock: IO[bytes]) -> bool:
        lock.seek(0)
        return _is_taken(lambda: msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1))

else:

    def _try_lock(lock: IO[bytes]) -> bool:
        return _is_taken(lambda: fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB))


def _is_taken(take: Callable[[], None]) -> bool:
    try:
        take()
    except OSError as error:
        # A file system without locks: the digests still guard the bytes, so go on without.
        return error.errno not in _HELD
    return True
