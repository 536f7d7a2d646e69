"""The root of a tool's schema as one plain object, which is all that most providers take there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from toolcrib.errors import ToolSignatureError
from toolcrib.schema._walk import Schema, members, names, properties_of, resolve

__all__ = ["conjoined", "object_root"]

_WORDS = ("$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const")
_DROPPED = ("not", "if", "then", "else", "enum", "const")
_MOST_PARTS = 1_000


def object_root(schema: Schema) -> tuple[Schema, list[str]]:
    """Return the schema with references and choices at its root written out as one object, and what was lost.

    A choice between objects becomes an object that has the properties of all, and requires what all of them require.

    Raises:
        ToolSignatureError: The root stands for something other than an object.
    """
    if schema.get("type") == "object" and not any(word in schema for word in _WORDS):
        return schema, []
    root = _Root(schema)
    return {**root.flat(schema, ()), "type": "object"}, root.losses


class _Root:
    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.losses: list[str] = []
        self.parts = 0

    def flat(self, node: Any, followed: tuple[str, ...]) -> Schema:
        """Return one object schema that takes at least what `node` takes."""
        self.parts += 1
        if node is True or not isinstance(node, dict):
            return {}
        schema = cast("Schema", node)
        kind = schema.get("type", "object")
        if (kind != "object" and not (isinstance(kind, list) and "object" in kind)) or self.parts > _MOST_PARTS:
            raise ToolSignatureError(f"the root of its schema is not one object but {kind}")
        self.losses += [f"{word} at the root" for word in _DROPPED if word in schema]
        merged: Schema = {}
        for part in self.conjuncts(schema, followed):
            merged = conjoined(merged, part)
        return conjoined(merged, {word: value for word, value in schema.items() if word not in _WORDS})

    def conjuncts(self, schema: Schema, followed: tuple[str, ...]) -> list[Schema]:
        """Return the objects that a value must fit at once."""
        parts = [self.flat(part, followed) for part in members(schema, "allOf")]
        if "$ref" in schema:
            parts.append(self.target(schema["$ref"], followed))
        for word in ("anyOf", "oneOf"):
            if choices := [choice for choice in members(schema, word) if choice != {"type": "null"}]:
                self.losses.append(f"{word} at the root")
                parts.append(_disjoined([self.flat(choice, followed) for choice in choices]))
        return parts

    def target(self, reference: Any, followed: tuple[str, ...]) -> Schema:
        found = None if reference in followed else resolve(reference, self.schema)
        if found is None:
            raise ToolSignatureError(f"the $ref {reference!r} at the root of its schema leads nowhere")
        return self.flat(found, (*followed, reference))


def conjoined(one: Schema, other: Schema) -> Schema:
    """Return an object schema for values that fit both; where words differ, the second one's stand."""
    merged = {**one, **other}
    if properties := {**properties_of(one), **properties_of(other)}:
        merged["properties"] = {
            name: _both(properties_of(one).get(name), properties_of(other).get(name)) for name in properties
        }
    if required := list(dict.fromkeys([*names(one, "required"), *names(other, "required")])):
        merged["required"] = required
    return merged


def _both(one: Any, other: Any) -> Any:
    return other if one is None or one == other else one if other is None else {"allOf": [one, other]}


def _disjoined(parts: Sequence[Schema]) -> Schema:
    choices: dict[str, list[Any]] = {}
    for part in parts:
        for name, schema in properties_of(part).items():
            if schema not in choices.setdefault(name, []):
                choices[name].append(schema)
    properties = {name: found[0] if len(found) == 1 else {"anyOf": found} for name, found in choices.items()}
    required = [name for name in names(parts[0], "required") if all(name in names(part, "required") for part in parts)]
    return {"properties": properties, **({"required": required} if required else {})}
