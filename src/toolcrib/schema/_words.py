"""What several dialects do with the words of one schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic_core import to_json

from toolcrib.schema._walk import Schema, members

__all__ = ["SILENT", "described", "hinted", "types_of", "widened_tuple"]


#: Words that say nothing about which values are right.
SILENT = frozenset(
    {
        *("title", "$schema", "$id", "$comment", "$anchor", "examples", "example", "deprecated"),
        *("readOnly", "writeOnly", "discriminator"),
    }
)


def types_of(schema: Schema) -> list[str]:
    """Return the JSON types a schema names, or those its values or other words imply; none when it may be anything."""
    kind = schema.get("type")
    if isinstance(kind, str):
        return [kind]
    if isinstance(kind, list):
        return [str(one) for one in cast("list[Any]", kind)]
    values = [schema["const"]] if "const" in schema else members(schema, "enum")
    if values:
        return list(dict.fromkeys(map(_type_of, values)))
    return ["object"] if "properties" in schema else ["array"] if schema.keys() & {"items", "prefixItems"} else []


def _type_of(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(value.__class__, "null")


def hinted(schema: Schema, lost: Mapping[str, Any]) -> Schema:
    """Return the schema with the lost words that say something short added to its description."""
    hints = [f"{word}: {_short(value)}" for word, value in lost.items() if isinstance(value, str | int | float)]
    return described(schema, ", ".join(hints)) if hints else schema


def described(schema: Schema, hint: str) -> Schema:
    """Return the schema with a hint, in parentheses, at the end of its description."""
    return {**schema, "description": f"{schema.get('description') or ''} ({hint})".strip()}


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else to_json(value).decode()


def widened_tuple(schema: Schema) -> Schema:
    """Return an array schema without positional items: each item is of any of their kinds."""
    listed = members(schema, "prefixItems") or members(schema, "items")
    if not listed:
        return schema
    rest = schema.get("items") if isinstance(schema.get("items"), dict) else None
    kinds: list[Any] = []
    for item in [*listed, *([rest] if rest else [])]:
        if item not in kinds:
            kinds.append(item)
    wide = {word: value for word, value in schema.items() if word != "prefixItems"}
    wide["items"] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    return wide
