"""A toolset as one provider is shown it, and the way back to canonical names and arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from toolcrib.errors import ToolSignatureError, warn
from toolcrib.formats._undo import Undo
from toolcrib.schema._walk import Schema
from toolcrib.schema.jsonschema import compiled

if TYPE_CHECKING:
    from toolcrib.tools import Tool
    from toolcrib.toolset import Toolset

__all__ = ["Definitions", "Dialect", "Shown", "define"]


class Shown(NamedTuple):
    """One tool's schema as a provider is shown it.

    Args:
        parameters: The schema in the provider's dialect.
        strict: Whether the provider is asked to enforce it.
        undo: What to do to arguments that come back; None for nothing.
    """

    parameters: Schema
    strict: bool = False
    undo: Undo | None = None


class Definitions(NamedTuple):
    """What is cached on a toolset for one format.

    Args:
        listed: The definitions, in the toolset's order.
        canonical: The canonical name for each wire name.
        undo: By canonical name, what to do to arguments that come back.
    """

    listed: list[dict[str, Any]]
    canonical: Mapping[str, str]
    undo: Mapping[str, Undo]


Dialect = Callable[["Tool"], Shown]

# What select, prefixed and refresh leave as it was is not rendered again.
_SHOWN: WeakKeyDictionary[Tool, dict[Dialect, Shown | str]] = WeakKeyDictionary()


def define(
    toolset: Toolset, provider: str, names: Mapping[str, str], dialect: Dialect, write: Callable[..., dict[str, Any]]
) -> Definitions:
    """Return the definitions of a toolset; a tool that cannot be expressed is left out with a warning.

    Args:
        toolset: The tools.
        provider: Who is shown them, for the warning.
        names: The wire name of each canonical name.
        dialect: Turns a tool into what is shown of its schema.
        write: Makes one definition of a tool, its wire name and what is shown.
    """
    found = Definitions([], {}, {})
    canonical: dict[str, str] = {}
    undo: dict[str, Undo] = {}
    for tool in toolset:
        wire = names[tool.name]
        shown = _shown(tool, dialect) if wire not in canonical else f"{canonical[wire]!r} has the name {wire!r} there"
        canonical.setdefault(wire, tool.name)
        if isinstance(shown, str):
            warn(f"{provider} is not shown the tool {tool.name!r}: {shown}")
            continue
        if shown.undo is not None:
            undo[tool.name] = shown.undo
        found.listed.append(write(tool, wire, shown))
    return found._replace(canonical=canonical, undo=undo)


def _shown(tool: Tool, dialect: Dialect) -> Shown | str:
    """Return what is shown of a tool, or why nothing can be."""
    known = _SHOWN.setdefault(tool, {})
    for step in (_sound, dialect):
        if step not in known:
            known[step] = _attempt(step, tool)
        if isinstance(known[step], str):
            return known[step]
    return known[dialect]


def _sound(tool: Tool) -> Shown:
    """Refuse what is no JSON Schema: a provider would refuse the whole request for it."""
    if tool.is_verbatim:
        compiled(tool.input_schema)
    return Shown(tool.input_schema)


def _attempt(step: Dialect, tool: Tool) -> Shown | str:
    try:
        return step(tool)
    except ToolSignatureError as error:
        return str(error)
    except RecursionError:
        return "its schema is nested too deeply"
