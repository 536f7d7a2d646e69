"""What a dialect did to a schema, undone in the arguments that come back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple, cast

from toolcrib.schema._walk import Schema, accepts_null, as_schema, members, properties_of, resolve

__all__ = ["Undo"]

_MOST_DEPTH = 100  # deeper arguments are passed on as they are, and refused where they are read


class Undo(NamedTuple):
    """The way back from what a provider was shown.

    Args:
        schema: The canonical schema.
        keys: The canonical property key for each that was renamed.
        nulls: Whether optional properties were made nullable: a null where none is allowed means "left out".
    """

    schema: Schema
    keys: Mapping[str, str]
    nulls: bool

    def __call__(self, arguments: str | Mapping[str, Any]) -> str | Mapping[str, Any]:
        """Return the arguments as the canonical schema knows them; text that need not or cannot change, as it is."""
        if not isinstance(arguments, str):
            return cast("dict[str, Any]", self._value(dict(arguments), [self.schema], 0))
        if not self.keys and "null" not in arguments:
            return arguments
        try:
            given = _exactly(arguments)
            found = self._value(given, [self.schema], 0)
            return arguments if found == given else json.dumps(found, ensure_ascii=False)
        except (ValueError, RecursionError):
            return arguments

    def _value(self, value: Any, schemas: Iterable[Any], depth: int) -> Any:
        if depth > _MOST_DEPTH or not isinstance(value, dict | list):
            return value
        facets = _facets(schemas, self.schema)
        if isinstance(value, dict):
            return self._object(cast("dict[str, Any]", value), facets, depth)
        items = cast("list[Any]", value)
        return [self._value(item, _items(facets, i), depth + 1) for i, item in enumerate(items)]

    def _object(self, value: dict[str, Any], facets: list[Schema], depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, item in value.items():
            name = self._name(key, facets)
            if name in found or (name != key and name in value):
                return value  # two keys for one: passed on, for the reader of arguments to refuse
            schemas = [properties_of(facet)[name] for facet in facets if name in properties_of(facet)]
            if item is None and self.nulls and self._filled(name, facets, schemas):
                continue
            others = () if schemas else (facet.get("additionalProperties") for facet in facets)
            found[name] = self._value(item, schemas or others, depth + 1)
        return found

    def _name(self, key: str, facets: list[Schema]) -> str:
        name = self.keys.get(key, key)
        known = any(name in properties_of(facet) for facet in facets)
        return name if known and not any(key in properties_of(facet) for facet in facets) else key

    def _filled(self, name: str, facets: list[Schema], schemas: list[Any]) -> bool:
        """Return whether a null stands there only because the provider was told that every property is required."""
        optional = any(name not in members(facet, "required") for facet in facets if name in properties_of(facet))
        return optional and not any(accepts_null(schema, self.schema) for schema in schemas)


def _facets(schemas: Iterable[Any], root: Schema) -> list[Schema]:
    """Return every plain schema that may say something of a value: references followed, choices all taken."""
    waiting = [as_schema(schema) for schema in schemas]
    found: dict[int, Schema] = {}
    while waiting:
        schema = waiting.pop()
        if id(schema) in found:
            continue
        found[id(schema)] = schema
        waiting += [as_schema(part) for word in ("anyOf", "oneOf", "allOf") for part in members(schema, word)]
        if target := resolve(schema.get("$ref"), root):
            waiting.append(target)
    return list(found.values())


def _items(facets: list[Schema], index: int) -> list[Any]:
    found: list[Any] = []
    for facet in facets:
        listed = members(facet, "prefixItems") or members(facet, "items")
        found.append(listed[index] if index < len(listed) else facet.get("items"))
    return found


# -- JSON text that can be written again without changing what it says


def _exactly(text: str) -> Any:
    """Return what the text says.

    Raises:
        ValueError: It is no JSON, has a key twice, or a number that would not be written back as it was.
    """
    decoder: Callable[[str], Any] = json.JSONDecoder(
        object_pairs_hook=_once, parse_float=_number, parse_constant=_refused
    ).decode
    return decoder(text)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands there twice")
    return found


def _number(text: str) -> float:
    number = float(text)
    if Decimal(repr(number)) != Decimal(text):
        raise ValueError("a number that Python cannot hold")
    return number


def _refused(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")
