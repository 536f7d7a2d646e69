"""A tool as Python code, and what has changed since it was pinned."""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from toolcrib.schema._walk import Schema, as_schema, names, properties_of

__all__ = ["difference", "drifted", "pinned"]

_INDENT = "    "
_WIDEST = 120  # what stays on one line there, formatters with narrower lines leave on one line, too
_WIDTH = 88
_NARROWEST = 24
_PIECES = re.compile(r"\S*\n|\S+[^\S\n]*|[^\S\n]+")


# -- code


def pinned(tool: Any) -> str:
    """Return the code that makes a tool from its schema, as a formatter would leave it.

    Args:
        tool: The Tool. Its executor is left out, and a function that cannot be imported is named all the same.
    """
    return "\n".join([*_imports(tool.func), "", *_statement(tool), ""])


def _imports(func: Any) -> list[str]:
    lines = ["from toolcrib import Tool"]
    if place := _place(func):
        # Which of two imports comes first depends on where the code is pasted; so each is a block of its own.
        lines += ["", "# isort: split", f"from {place[0]} import {place[1]}"]
    return lines


def _place(func: Any) -> tuple[str, str] | None:
    """Return the module and the name that a function can be imported by."""
    module, name = getattr(func, "__module__", None), getattr(func, "__name__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module in ("__main__", "builtins"):
        return None
    found: Any = sys.modules.get(module)
    if getattr(found, "__spec__", None) is None or getattr(found, name, None) is not func:
        return None
    stem = Path(getattr(found, "__file__", None) or module).stem.partition(".")[0]
    # A file that was loaded by its path has a name made for it, and is imported by its own.
    place = module if "." in module or stem == "__init__" else stem
    return (place, name) if all(part.isidentifier() for part in place.split(".")) else None


_DEFAULTS = {
    "strict": False,
    "returns_envelope": False,
    "timeout": None,
    "effect": None,
    "thread": True,
    "validate": True,
}


def _statement(tool: Any) -> Iterator[str]:
    called = re.sub(r"\W", "_", tool.name, flags=re.ASCII)
    yield f"{'_' if called[:1].isdigit() else ''}{called}_tool = Tool.from_schema("
    for value in (tool.name, tool.description, tool.input_schema):
        yield from _value("", value, 1, ",")
    if tool.func is not None:
        function = getattr(tool.func, "__name__", "")
        yield f"{_INDENT}{function if function.isidentifier() else called},"
    for word, default in _DEFAULTS.items():
        if (value := getattr(tool, word)) != default:
            yield from _value(f"{word}=", value, 1, ",")
    yield ")"


def _value(before: str, value: Any, depth: int, after: str) -> Iterator[str]:
    margin = _INDENT * depth
    if isinstance(value, str):
        yield from _text(f"{margin}{before}", value, depth, after)
    elif isinstance(value, Mapping) and value:
        members = cast("Mapping[str, Any]", value)
        yield f"{margin}{before}{{"
        for key, member in members.items():
            yield from _value(f"{_literal(key)}: ", member, depth + 1, ",")
        yield f"{margin}}}{after}"
    elif isinstance(value, list) and value:
        yield f"{margin}{before}["
        for member in cast("list[Any]", value):
            yield from _value("", member, depth + 1, ",")
        yield f"{margin}]{after}"
    else:
        text = repr(cast("object", value))
        text = text.replace("e+", "e") if isinstance(value, float) else text
        yield f"{margin}{before}{text}{after}"


def _text(before: str, text: str, depth: int, after: str) -> Iterator[str]:
    whole = f"{before}{_literal(text)}{after}"
    pieces = _pieces(text, max(_NARROWEST, _WIDTH - len(_INDENT) * (depth + 1)))
    if len(whole) <= _WIDEST or len(pieces) < 2:  # noqa: PLR2004  # nothing to break
        yield whole
        return
    yield f"{before}("
    yield from (f"{_INDENT * (depth + 1)}{_literal(piece)}" for piece in pieces)
    yield f"{_INDENT * depth}){after}"


def _pieces(text: str, width: int) -> list[str]:
    pieces = [""]
    for word in _PIECES.findall(text):
        if pieces[-1] and (pieces[-1].endswith("\n") or len(_literal(pieces[-1] + word)) > width):
            pieces.append("")
        pieces[-1] += word
    return pieces


def _literal(text: str) -> str:
    """Return a string literal in the quotes that formatters prefer."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    body = repr(text + "'\"")[1:-4].replace("\\'", "'")  # both quotes in it, so that Python takes single ones
    return quote + body.replace(quote, f"\\{quote}") + quote


# -- drift


def drifted(pinned: Mapping[str, Any], own: Mapping[str, Any], *, takes_any: bool) -> Schema:
    """Return the pinned schema as the function would have it now; equal to it when nothing has changed.

    A pinned schema may say more than the signature, never something else: a type may be narrowed, but a
    parameter the function lacks, or that is not in the schema, is drift, and so is another type or default.

    Args:
        pinned: The schema that was pinned.
        own: The schema of the function's signature.
        takes_any: Whether the function takes any keyword.
    """
    there, here = properties_of(pinned), properties_of(own)
    kept = [name for name in there if takes_any or name in here]
    nodes = {name: _settled(there[name], here.get(name)) for name in kept}
    nodes |= {name: node for name, node in here.items() if name not in nodes}
    wanted = [name for name in names(pinned, "required") if name in nodes]
    wanted += [name for name in names(own, "required") if name not in wanted]
    definitions = {word: own[word] for word in ("$defs",) if word in own and own[word] != pinned.get(word)}
    listed = {"required": wanted} if wanted or "required" in pinned else {}
    return {**pinned, **definitions, "properties": nodes, **listed}


def _settled(pinned: Any, own: Any) -> Any:
    if own is None or not isinstance(pinned, dict):
        return pinned
    there, here = cast("Schema", pinned), as_schema(own)
    default = {"default": here["default"]} if "default" in there and "default" in here else {}
    if _extends(there, _plain(here)):
        bare = {word: value for word, value in there.items() if word != "default"}
        return {**there, **default} if default or "default" not in there else bare
    return {**_plain(here), **{word: there[word] for word in ("description",) if word in there}, **default}


def _plain(schema: Schema) -> Schema:
    return {word: value for word, value in schema.items() if word not in _SAID}


_SAID = frozenset({"description", "default", "title", "examples"})


def _extends(pinned: Any, own: Any) -> bool:
    """Return whether one schema says all that the other does."""
    if not isinstance(own, dict) or not isinstance(pinned, dict):
        return own is True or pinned == own
    there, here = cast("Schema", pinned), cast("Schema", own)
    return all(word in there and _extends(there[word], value) for word, value in here.items() if word not in _SAID)


def difference(before: Any, after: Any, called: tuple[str, str]) -> str:
    """Return a unified diff of two schemas as JSON text; empty when they are the same.

    Args:
        before: The one.
        after: The other.
        called: What the two are called.
    """
    old, new = (json.dumps(schema, indent=2, ensure_ascii=False).splitlines() for schema in (before, after))
    return "\n".join(difflib.unified_diff(old, new, *called, lineterm="", n=2))
