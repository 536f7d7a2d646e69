"""Text for a terminal: nothing that steers it, short lines, tables, JSON."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["brief", "console", "json_text", "print_table", "printable", "seconds", "write_line"]

_MOST_SHOWN = 300
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """Return the text without the characters that steer a terminal; tabs and line ends stay."""
    return _STEERING.sub("", text)


def brief(text: str) -> str:
    """Return the text as one short line."""
    line = " ".join(printable(text).split())
    return line if len(line) <= _MOST_SHOWN else f"{line[:_MOST_SHOWN]}… ({len(line):,} characters)"


def seconds(duration: float) -> str:
    """Return a duration as a person reads it."""
    return f"{duration:.1f} s" if duration >= 1 else f"{duration * 1000:.0f} ms"


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return JSON in characters that standard output can carry."""
    carries_all = sys.stdout.encoding.lower().replace("-", "") == "utf8"
    return json.dumps(value, indent=indent, ensure_ascii=not carries_all)


def write_line(text: str, *, stderr: bool = False) -> None:
    """Write one line at once, to standard output or standard error."""
    stream = sys.stderr if stderr else sys.stdout
    stream.write(f"{text}\n")
    stream.flush()


def console(*, stderr: bool = False) -> Console:
    """Return a rich console that never breaks lines and reads no markup in what it prints."""
    from rich.console import Console

    return Console(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows as a table on a terminal, and separated by tabs, without the header, for a program."""
    if not sys.stdout.isatty():
        for row in rows:
            write_line("\t".join(" ".join(printable(cell).split()) for cell in row))
        return
    from rich.table import Table  # of the cli extra

    table = Table(*header, box=None, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(*map(printable, row))
    console().print(table, soft_wrap=False)
