"""Property keys: legal stand-ins for those a provider refuses."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, cast
from urllib.parse import unquote

from toolcrib.schema._aliases import Rule, aliases
from toolcrib.schema._walk import Schema, as_schema, children, mapped

__all__ = ["key_aliases", "renamed"]


def key_aliases(schema: Schema, rule: Rule) -> dict[str, str]:
    """Return a legal key for each property key of the schema, at any depth, that the provider refuses."""
    keys: dict[str, None] = {}
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if "properties" in node:
            keys.update(dict.fromkeys(as_schema(node["properties"])))
        waiting += (child for child in children(node) if isinstance(child, dict))
    if all(map(rule.allows, keys)):
        return {}
    return {key: alias for key, alias in aliases(keys, rule).items() if key != alias}


def renamed(schema: Schema, names: Mapping[str, str]) -> Schema:
    """Return the schema with its property keys renamed, also where they are required or referred to."""
    return cast("Schema", _renamed(schema, names)) if names else schema


def _renamed(node: Any, names: Mapping[str, str]) -> Any:
    if not isinstance(node, dict):
        return node
    copy = mapped(cast("Schema", node), partial(_renamed, names=names))
    for word in ("properties", "dependentSchemas", "dependentRequired"):
        if isinstance(copy.get(word), dict):
            copy[word] = {names.get(key, key): value for key, value in copy[word].items()}
    if isinstance(copy.get("required"), list):
        copy["required"] = _each(copy["required"], names)
    if isinstance(copy.get("dependentRequired"), dict):
        copy["dependentRequired"] = {key: _each(needed, names) for key, needed in copy["dependentRequired"].items()}
    if isinstance(copy.get("$ref"), str):
        copy["$ref"] = _pointer(copy["$ref"], names)
    return copy


def _each(keys: Any, names: Mapping[str, str]) -> Any:
    return [names.get(str(key), key) for key in cast("list[Any]", keys)] if isinstance(keys, list) else keys


def _pointer(reference: str, names: Mapping[str, str]) -> str:
    parts = reference.split("/")
    for i, word in enumerate(parts[:-1]):
        if word == "properties":
            key = unquote(parts[i + 1]).replace("~1", "/").replace("~0", "~")
            parts[i + 1] = names.get(key, parts[i + 1])
    return "/".join(parts)
