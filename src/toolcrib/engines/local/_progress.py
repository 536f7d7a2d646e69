"""How far a download is, for a person at a terminal or a log."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from rich.progress import Progress

__all__ = ["download_bar"]

_STEP = 10  # percent between two lines of a log


@contextmanager
def download_bar(name: str, total: int) -> Generator[Callable[[int], None]]:
    """Give a function that shows the bytes so far on standard error: a bar, or a line at every tenth.

    Args:
        name: What is downloaded.
        total: Its length in bytes.
    """
    title = f"fetching {name}, once ({total / 1e6:.0f} MB)"
    bar = _rich_bar(title, total)
    if bar is None:
        yield _lines(title, total)
        return
    with bar as show:
        yield show


def _lines(title: str, total: int) -> Callable[[int], None]:
    shown = -1

    def show(done: int) -> None:
        nonlocal shown
        percent = done * 100 // total // _STEP * _STEP
        if percent > shown and sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison]  # None under pythonw
            shown = percent
            print(f"toolcrib: {title}: {percent}%", file=sys.stderr, flush=True)  # noqa: T201  # progress is for people

    return show


def _rich_bar(title: str, total: int) -> AbstractContextManager[Callable[[int], None]] | None:
    if sys.stderr is None or not sys.stderr.isatty():  # pyright: ignore[reportUnnecessaryComparison]  # None under pythonw
        return None
    try:
        from rich.console import Console  # optional
        from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn  # optional
    except ImportError:
        return None
    columns = ("{task.description}", BarColumn(), DownloadColumn(), TimeRemainingColumn())
    return _running(Progress(*columns, console=Console(stderr=True)), title, total)


@contextmanager
def _running(bar: Progress, title: str, total: int) -> Generator[Callable[[int], None]]:
    with bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.update(task, completed=done)
