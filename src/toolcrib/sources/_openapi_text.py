"""The text of a document as plain data: JSON as it is, YAML without the surprises of its old rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import from_json

from toolcrib.errors import MissingExtraError, OpenAPIError
from toolcrib.limits import MAX_DOCUMENT_BYTES, MAX_DOCUMENT_DEPTH, MAX_DOCUMENT_NODES

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["parsed", "plain"]


def parsed(text: bytes, name: str) -> Any:
    """Return the data that a JSON or YAML text holds.

    Args:
        text: The text, in UTF-8.
        name: What to call it in errors.

    Raises:
        OpenAPIError: It is neither, or beyond all bounds.
        MissingExtraError: It is YAML, and PyYAML is not installed.
    """
    if len(text) > MAX_DOCUMENT_BYTES:
        raise OpenAPIError(f"{name} has more than {MAX_DOCUMENT_BYTES:,} bytes")
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise OpenAPIError(f"{name} is not UTF-8 text") from None
    reason = ""
    if decoded.lstrip()[:1] in ("{", "["):  # which YAML may begin with too
        try:
            return from_json(decoded, allow_inf_nan=False)
        except ValueError as error:
            reason = f"as JSON: {error}; as YAML: "
    try:
        return _from_yaml(decoded)
    except ValueError as error:
        raise OpenAPIError(f"{name} cannot be read: {reason}{error}") from None


def plain(data: Any, name: str) -> Any:
    """Return a copy of somebody's parsed document as JSON data: keys as text, dates as they are written.

    Raises:
        OpenAPIError: It is circular, or beyond all bounds.
    """
    return _Copy(name).of(data, 0)


class _Copy:
    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes = 0

    def of(self, data: Any, depth: int) -> Any:
        self.nodes += 1
        if self.nodes > MAX_DOCUMENT_NODES or depth > MAX_DOCUMENT_DEPTH:
            raise OpenAPIError(f"{self.name} is circular, nested too deep, or has too many values")
        if isinstance(data, Mapping):
            members = cast("Mapping[Any, Any]", data)
            return {_key(key): self.of(value, depth + 1) for key, value in members.items()}
        if isinstance(data, (list, tuple)):
            return [self.of(item, depth + 1) for item in cast("list[Any]", data)]
        return data if data is None or isinstance(data, str | int | float | bool) else str(data)


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


# -- YAML


def _from_yaml(text: str) -> Any:
    try:
        import yaml as found
    except ImportError:
        raise MissingExtraError("openapi", "reading YAML") from None
    yaml: Any = found  # which has types for few of its names
    try:
        return _built(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())[:_LONGEST_REASON]) from None


_LONGEST_REASON = 300


def _built(events: Iterable[Any]) -> Any:
    """Return the data that a stream of events tells of.

    Built here, since a loader makes Python objects of dates and `yes`, and lets few lines grow without end.
    """
    builder = _Builder()
    for event in events:
        kind = type(event).__name__
        if kind == "ScalarEvent":
            builder.add(_scalar(event), event.anchor)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            builder.open({} if kind == "MappingStartEvent" else [], event.anchor)
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            builder.close()
        elif kind == "AliasEvent":
            builder.alias(event.anchor)
        elif kind == "DocumentStartEvent" and builder.done:
            raise ValueError("it holds more than one document")
    return builder.root


class _Open:
    """A list or mapping whose end has not come yet."""

    def __init__(self, container: Any, anchor: str | None, nodes: int) -> None:
        self.container = container
        self.is_list = isinstance(container, list)
        self.anchor = anchor
        self.nodes_before = nodes
        self.depth = 1
        self.key: Any = _NO_KEY


class _Builder:
    def __init__(self) -> None:
        self.root: Any = None
        self.done = False
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int, int]] = {}
        self._nodes = 0

    def open(self, container: Any, anchor: str | None) -> None:
        self._check_depth(1)
        self._count(1)
        self._open.append(_Open(container, anchor, self._nodes))

    def close(self) -> None:
        ended = self._open.pop()
        self._put(ended.container, ended.anchor, self._nodes - ended.nodes_before + 1, ended.depth)

    def add(self, value: Any, anchor: str | None) -> None:
        self._count(1)
        self._put(value, anchor, 1, 0)

    def alias(self, anchor: str) -> None:
        """Put what an anchor stands for, and count it as often as it is put."""
        if anchor not in self._anchors:
            raise ValueError(f"the alias *{anchor} stands for nothing, or for what it is in")
        value, size, depth = self._anchors[anchor]
        self._check_depth(depth)
        self._count(size)
        self._put(value, None, size, depth)

    def _check_depth(self, more: int) -> None:
        if len(self._open) + more > MAX_DOCUMENT_DEPTH:
            raise ValueError(f"nested deeper than {MAX_DOCUMENT_DEPTH} levels")

    def _count(self, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > MAX_DOCUMENT_NODES:
            raise ValueError(f"more than {MAX_DOCUMENT_NODES:,} values, aliases written out")

    def _put(self, value: Any, anchor: str | None, size: int, depth: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = value, size, depth
        if not self._open:
            self.root, self.done = _value(value), True
            return
        outer = self._open[-1]
        outer.depth = max(outer.depth, depth + 1)
        if outer.is_list:
            outer.container.append(_value(value))
        elif outer.key is _NO_KEY:
            outer.key = value
        else:
            _set(outer.container, outer.key, _value(value))
            outer.key = _NO_KEY


_NO_KEY = object()


class _Plain(str):
    """A scalar without quotes, which may be a number; as a key it is text as it is written."""

    __slots__ = ()


def _set(members: dict[str, Any], key: Any, value: Any) -> None:
    if not isinstance(key, str):
        raise ValueError("a key is a list or a mapping")  # noqa: TRY004  # as every flaw of a text
    if isinstance(key, _Plain) and key == "<<":
        for part in cast("list[Any]", value if isinstance(value, list) else [value]):
            if isinstance(part, dict):
                members.update({name: one for name, one in cast("dict[str, Any]", part).items() if name not in members})
    else:
        members[str(key)] = value


def _scalar(event: Any) -> str:
    return _Plain(event.value) if event.implicit[0] else event.value


def _value(scalar: Any) -> Any:
    """Return what a scalar without quotes means, by the rules of YAML 1.2: `yes` and `2020-01-01` are text."""
    if not isinstance(scalar, _Plain):
        return scalar
    text = str(scalar)
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in _DIGITS:
        if _INTEGER.fullmatch(text) and len(text) <= _LONGEST_NUMBER:
            return int(text)
        if _FLOAT.fullmatch(text) and len(text) <= _LONGEST_NUMBER:
            return float(text)
    return text


_WORDS: Mapping[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_DIGITS = frozenset("0123456789+-.")
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,2})?")
_LONGEST_NUMBER = 300
