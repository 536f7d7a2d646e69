"""Tools that come with toolcrib, in kits.

Each kit is a list for `tools=[...]`, loaded when it is first asked for: `math`, `time`, `web`, and
`docs` and `files` for the current folder. A kit for a place of your own is made: `read_docs_tools`,
`file_tools`, `sql_tools`, `web_tools`. `ALL_TOOLS` are those that are safe to hand out: they change
nothing and reach nothing of this machine.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.builtin.arithmetic import calculate
    from toolcrib.builtin.clock import convert_time, current_time, shift_time, time_between
    from toolcrib.builtin.databases import sql_tools
    from toolcrib.builtin.documents import read_docs_tools
    from toolcrib.builtin.folders import file_tools
    from toolcrib.builtin.pages import web_tools
    from toolcrib.tools import Tool

    Kit = list[Callable[..., Any] | Tool]
    ALL_TOOLS: Kit
    docs: Kit
    files: Kit
    math: Kit
    time: Kit
    web: Kit

__all__ = [
    "ALL_TOOLS",
    "calculate",
    "convert_time",
    "current_time",
    "docs",
    "file_tools",
    "files",
    "kit",
    "math",
    "read_docs_tools",
    "shift_time",
    "sql_tools",
    "time",
    "time_between",
    "web",
    "web_tools",
]

#: The kits, and the files of those that make the list.
_KITS = {"docs": ".documents", "files": ".folders", "math": ".arithmetic", "time": ".clock", "web": ".pages"}
_SAFE = ("math", "time", "web")
_ITEMS = {
    "calculate": ".arithmetic",
    "convert_time": ".clock",
    "current_time": ".clock",
    "file_tools": ".folders",
    "read_docs_tools": ".documents",
    "shift_time": ".clock",
    "sql_tools": ".databases",
    "time_between": ".clock",
    "web_tools": ".pages",
}


def kit(name: str, place: str | None = None) -> Kit:
    """Return a kit by its name, for a command line or a configuration.

    Args:
        name: `math`, `time`, `web`, `docs`, `files` or `sql`; empty for `ALL_TOOLS`.
        place: The folder of `docs` and `files`, by default the current one; the file of `sql`.

    Raises:
        ValueError: There is no such kit, or it has no place, or needs one.
        OSError: The place is not there.
    """
    if place is not None and name in _PLACED:
        return __getattr__(_PLACED[name])(place)
    if name in _KITS and place is not None:
        raise ValueError(f"{name} takes no place: write {name} alone")
    if name == "sql":
        raise ValueError("sql needs a database: write sql=FILE")
    if name and name not in _KITS:
        raise ValueError(f"there is no such kit: there are {', '.join((*_KITS, 'sql'))}")
    return __getattr__(name or "ALL_TOOLS")


_PLACED = {"docs": "read_docs_tools", "files": "file_tools", "sql": "sql_tools"}


def __getattr__(name: str) -> Any:
    if name == "ALL_TOOLS":
        value: Any = [item for kit in _SAFE for item in __getattr__(kit)]
    elif name in _KITS:
        value = importlib.import_module(_KITS[name], __name__).TOOLS
    elif name in _ITEMS:
        value = getattr(importlib.import_module(_ITEMS[name], __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
