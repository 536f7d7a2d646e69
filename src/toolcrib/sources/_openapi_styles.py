"""Values as the text of a path, a query, a header or a cookie, in the styles of OpenAPI."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast
from urllib.parse import quote, unquote

from pydantic_core import to_json

from toolcrib.errors import ToolArgumentError

__all__ = ["Style", "filled", "pairs", "query_text", "style_of", "words"]


class Style(NamedTuple):
    """How a parameter is written.

    Args:
        name: One of `simple`, `label`, `matrix`, `form`, `spaceDelimited`, `pipeDelimited`, `deepObject`, or `json`.
        explode: Whether the items of a list, or the members of an object, stand on their own.
        reserved: Whether the characters that mean something in an address are left as they are.
    """

    name: str
    explode: bool
    reserved: bool = False


_DEFAULTS = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
_KNOWN = {
    "path": frozenset({"simple", "label", "matrix"}),
    "query": frozenset({"form", "spaceDelimited", "pipeDelimited", "deepObject"}),
    "header": frozenset({"simple"}),
    "cookie": frozenset({"form"}),
}


def style_of(told: Mapping[str, Any], location: str) -> Style:
    """Return the style that a parameter, or the encoding of a property, asks for; the usual one for one that is none.

    Args:
        told: What the document says.
        location: `path`, `query`, `header` or `cookie`.
    """
    name = told.get("style")
    if name not in _KNOWN[location]:
        name = _DEFAULTS[location]
    explode = told.get("explode")
    if not isinstance(explode, bool):
        explode = name in ("form", "deepObject")
    return Style(cast("str", name), explode, told.get("allowReserved") is True and location == "query")


# -- text of values


def words(value: Any) -> str:
    """Return a value as text: numbers as in JSON, `true` and `false`, and what holds other values as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return to_json(value).decode()


def _items(value: Any) -> list[str] | None:
    return [words(item) for item in cast("list[Any]", value)] if isinstance(value, list | tuple) else None


def _members(value: Any) -> list[tuple[str, str]] | None:
    if not isinstance(value, Mapping):
        return None
    return [(str(key), words(item)) for key, item in cast("Mapping[Any, Any]", value).items()]


def _flat(value: Any, explode: bool, escape: Callable[[str], str], between: str) -> str:  # noqa: FBT001  # as the style says
    """Return a value of the styles `simple` and `label`: escaped words with separators between."""
    if (items := _items(value)) is not None:
        return between.join(map(escape, items))
    if (members := _members(value)) is not None:
        if explode:
            return between.join(f"{escape(key)}={escape(item)}" for key, item in members)
        return between.join(escape(word) for member in members for word in member)
    return escape(words(value))


# -- paths


def filled(template: str, values: Mapping[str, tuple[Any, Style]]) -> str:
    """Return a path with its values, each as one segment, or a part of one.

    Args:
        template: Such as `/pets/{petId}`.
        values: The value and the style of each name in braces.

    Raises:
        ToolArgumentError: A value is empty, or would lead to another path than the template's.
    """
    parts = list[str]()
    for piece in _PIECES.split(template):
        name = piece[1:-1]
        if piece.startswith("{") and name in values:
            parts.append(_segment(name, *values[name]))
        else:
            parts.append(quote(piece, safe=_LITERAL))
    path = "".join(parts)
    if any(unquote(segment) in (".", "..") for segment in path.split("/")):
        raise ToolArgumentError(f"the path {path!r:.200} would lead elsewhere: no segment may be . or ..")
    return path


_PIECES = re.compile(r"(\{[^{}/]+\})")
_LITERAL = "/:@!$&'()*+,;=~-._%"


def _segment(name: str, value: Any, style: Style) -> str:
    escape: Callable[[str], str] = lambda text: _escaped(name, text)  # noqa: E731  # one line, used thrice
    if style.name == "json":
        return escape(to_json(value).decode())
    if style.name == "label":
        written = "." + _flat(value, style.explode, escape, "." if style.explode else ",")
    elif style.name == "matrix":
        written = _matrix(name, value, escape, explode=style.explode)
    else:
        written = _flat(value, style.explode, escape, ",")
    if written in ("", "."):
        raise ToolArgumentError(f"{name}: an empty value would lead to another path")
    return written


def _matrix(name: str, value: Any, escape: Callable[[str], str], *, explode: bool) -> str:
    key = quote(name, safe="")
    items, members = _items(value), _members(value)
    if explode and items is not None:
        return "".join(f";{key}={escape(item)}" for item in items)
    if explode and members is not None:
        return "".join(f";{escape(one)}={escape(item)}" for one, item in members)
    return f";{key}={_flat(value, False, escape, ',')}"  # noqa: FBT003  # the style's own word


def _escaped(name: str, text: str) -> str:
    """Return text that cannot be taken for anything but part of a segment, however often it is unescaped."""
    if not text:
        raise ToolArgumentError(f"{name}: an empty value would lead to another path")
    seen = text
    for _ in range(_MOST_ESCAPES):
        if _CONTROL.search(seen):
            raise ToolArgumentError(f"{name}: {text!r:.100} has characters that no path can carry")
        if any(part.strip() in (".", "..") for part in _SEPARATORS.split(seen)):
            raise ToolArgumentError(f"{name}: {text!r:.100} would lead to another path")
        unescaped = unquote(seen)
        if unescaped == seen:
            return _quoted(name, text)
        seen = unescaped
    raise ToolArgumentError(f"{name}: {text!r:.100} is escaped over and over")


_MOST_ESCAPES = 6
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SEPARATORS = re.compile(r"[/\\;]")


def _quoted(name: str, text: str, safe: str = "") -> str:
    try:
        return quote(text, safe=safe)
    except UnicodeEncodeError:
        raise ToolArgumentError(f"{name}: {text!r:.100} is no Unicode") from None


# -- queries, cookies and forms


def pairs(name: str, value: Any, style: Style) -> list[tuple[str, str]]:
    """Return a value of a query, a cookie or a form as names and values, not escaped.

    A list that is joined is joined with the separator of its style.
    """
    if style.name == "json":
        return [(name, to_json(value).decode())]
    if style.name == "deepObject" and isinstance(value, Mapping | list | tuple):
        return _deep(name, {"": value} if not isinstance(value, Mapping) else cast("Mapping[Any, Any]", value), 0)
    items, members = _items(value), _members(value)
    if style.explode:
        if members is not None:
            return members
        if items is not None:
            return [(name, item) for item in items]
    if items is None and members is not None:
        items = [word for member in members for word in member]
    if items is not None:
        return [(name, _BETWEEN.get(style.name, ",").join(items))] if items else []
    return [(name, words(value))]


_BETWEEN = {"spaceDelimited": " ", "pipeDelimited": "|"}


def _deep(name: str, value: Mapping[Any, Any], depth: int) -> list[tuple[str, str]]:
    found = list[tuple[str, str]]()
    for key, item in value.items():
        inner = f"{name}[{key}]" if key else name
        if isinstance(item, Mapping) and depth < _DEEPEST:
            found += _deep(inner, cast("Mapping[Any, Any]", item), depth + 1)
        elif isinstance(item, list | tuple):
            found += [(f"{inner}[]", words(one)) for one in cast("list[Any]", item)]
        else:
            found.append((inner, words(item)))
    return found


_DEEPEST = 20


def query_text(name: str, value: Any, style: Style) -> str:
    """Return a value as part of a query, escaped, without the `&` before it.

    Raises:
        ToolArgumentError: It is no Unicode.
    """
    safe = _RESERVED if style.reserved else ""
    found = pairs(name, value, style)
    if style.name in _SEPARATED and not style.explode and isinstance(value, list | tuple | Mapping):
        return "&".join(f"{_quoted(name, key)}={_joined(name, value, style, safe)}" for key, _ in found)
    return "&".join(f"{_quoted(name, key, _BRACKETS)}={_quoted(name, text, safe)}" for key, text in found)


def _joined(name: str, value: Any, style: Style, safe: str) -> str:
    """Return a list with escaped items, so that a separator in one is told from one between two."""
    items = _items(value)
    if items is None:
        items = [word for member in _members(value) or () for word in member]
    return _SEPARATED[style.name].join(_quoted(name, item, safe) for item in items)


_SEPARATED = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
_BRACKETS = "[]$"
#: Not `&`, `#` and `+`, which would end the value, end the query, or become a space.
_RESERVED = ":/?@!$'()*,;=[]"
