"""Gemini's function declarations: a subset of OpenAPI 3.0 schemas, without references."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

from pydantic_core import to_json

from toolcrib.errors import ToolSignatureError
from toolcrib.schema._roots import conjoined
from toolcrib.schema._walk import Schema, as_schema, members, names, properties_of, resolve
from toolcrib.schema._words import SILENT, described, hinted, types_of, widened_tuple

__all__ = ["Gemini"]

_KEPT = frozenset(
    {
        *("description", "format", "pattern", "minLength", "maxLength", "minimum", "maximum"),
        *("minItems", "maxItems", "minProperties", "maxProperties"),
    }
)
_HANDLED = SILENT | {
    *("type", "enum", "const", "nullable", "properties", "required", "items", "prefixItems"),
    *("anyOf", "oneOf", "allOf", "$ref", "$defs", "definitions"),
}
_FORMATS = {"string": {"date-time"}, "integer": {"int32", "int64"}, "number": {"float", "double"}}
_ANYTHING = ("string", "number", "boolean", "object", "array")
_INSIDE = frozenset({"type", "anyOf", "nullable", "description"})
_SHAPES = frozenset({"anyOf", "items", "properties", "required"})
_MOST_NODES = 10_000
_OPEN: Schema = {"type": "object"}

#: The references that were followed to where the walk is.
_Followed: TypeAlias = tuple[str, ...]


class Gemini:
    """One schema on its way to Gemini's subset.

    Args:
        root: The canonical schema, with one object at its root and legal property keys.
    """

    def __init__(self, root: Schema) -> None:
        self.root = root
        self.losses: list[str] = []
        self.count = 0

    def render(self) -> Schema:
        """Return the schema.

        Raises:
            ToolSignatureError: It is too large once its references are written out, or one leads nowhere.
        """
        return self.node(self.root, "", ("#",))

    def node(self, node: Any, path: str, followed: _Followed) -> Schema:
        """Return Gemini's form of one schema."""
        schema, followed = self.inlined(as_schema(node), path, followed)
        out = {word: value for word, value in schema.items() if word in _KEPT and _keeps(schema, word)}
        if choices := members(schema, "anyOf") or members(schema, "oneOf"):
            out = self.choices([_of_kind(schema, choice) for choice in choices], out, path, followed)
        out = self.typed(schema, out)
        if out.get("type") == "object":
            self.object(schema, out, path, followed)
        if out.get("type") == "array" and ("items" not in out or "array" in types_of(schema)):
            self.array(schema, out, path, followed)
        lost = {word: value for word, value in schema.items() if word not in out and word not in _HANDLED}
        self.losses += [f"{path or 'root'}: {word}" for word in lost]
        for word in ("default", "additionalProperties"):
            lost.pop(word, None)
        return self.plain(out, lost, path)

    def inlined(self, schema: Schema, path: str, followed: _Followed) -> tuple[Schema, _Followed]:
        """Return the schema without `$ref` and `allOf` at its top."""
        self.count += 1
        if self.count > _MOST_NODES:
            raise ToolSignatureError(f"it has over {_MOST_NODES} parts once its $refs are written out")
        if "$ref" not in schema and "allOf" not in schema:
            return schema, followed
        rest = {word: value for word, value in schema.items() if word not in ("$ref", "allOf")}
        parts = [{"$ref": schema["$ref"]}] if "$ref" in schema else []
        merged: Schema = {}
        for part in [*parts, *map(as_schema, members(schema, "allOf"))]:
            found, followed = self.target(part, path, followed)
            if "$ref" in found or "allOf" in found:
                found, followed = self.inlined(found, path, followed)
            merged = conjoined(merged, found)
        return conjoined(merged, rest), followed

    def target(self, part: Schema, path: str, followed: _Followed) -> tuple[Schema, _Followed]:
        if "$ref" not in part:
            return part, followed
        reference = str(part["$ref"])
        if reference in followed:
            self.losses.append(f"{path}: what is inside, since it is a {reference} again")
            return _OPEN, followed
        found = resolve(reference, self.root)
        if found is None:
            raise ToolSignatureError(f"{path} refers to {reference!r}, which leads nowhere")
        return {**found, **{word: value for word, value in part.items() if word != "$ref"}}, (*followed, reference)

    def choices(self, choices: list[Any], out: Schema, path: str, followed: _Followed) -> Schema:
        """Return the schema with its choices; one that is null makes it nullable, a single other one is the schema."""
        solid = [choice for choice in choices if types_of(as_schema(choice)) != ["null"]]
        if len(solid) < len(choices):
            out["nullable"] = True
        found = [self.node(choice, path, followed) for choice in solid]
        if len(found) == 1:
            return {**found[0], **out}
        return {**out, "anyOf": found} if found else out

    def typed(self, schema: Schema, out: Schema) -> Schema:
        """Return the schema with its one type, or a choice of types, and with the values it may have."""
        kinds = types_of(schema)
        if "null" in kinds or schema.get("nullable") is True:
            out = {**out, "nullable": True}
        solid = [kind for kind in kinds if kind != "null"]
        if len(solid) == 1:
            out = {"type": solid[0], **out}
        elif solid and "anyOf" not in out:
            out = {**out, "anyOf": [_bare(kind) for kind in solid]}
        values = [schema["const"]] if "const" in schema else members(schema, "enum")
        values = [value for value in values if value is not None]
        return self.valued(out, values) if values else out

    def valued(self, out: Schema, values: list[Any]) -> Schema:
        if all(isinstance(value, str) for value in values):
            rest = {word: value for word, value in out.items() if word not in _SHAPES}
            return {**rest, "type": "string", "enum": values}
        # Gemini writes every enum as text, so that the model would answer "1" where 1 is wanted
        self.losses.append("values that are not text")
        return described(out, f"one of: {', '.join(to_json(value).decode() for value in values)}")

    def plain(self, out: Schema, lost: Schema, path: str) -> Schema:
        """Return the schema as one type or one choice, whose words all stand inside: Vertex refuses any other."""
        if "type" in out and "anyOf" in out and (out["type"] != "object" or "properties" in out):
            self.losses.append(f"{path}: anyOf, beside a type of its own")
            del out["anyOf"]
        if "type" in out and "anyOf" not in out:
            return hinted(out, lost)
        first, *others = _flat(members(out, "anyOf")) or map(_bare, _ANYTHING)
        lost = {**{word: value for word, value in out.items() if word not in _INSIDE}, **lost}
        if "description" in out:
            first = {**first, "description": f"{out['description']} {first.get('description') or ''}".strip()}
        shared: Schema = {"nullable": True} if out.get("nullable") else {}
        return {"anyOf": [{**hinted(first, lost), **shared}, *({**other, **shared} for other in others)]}

    def object(self, schema: Schema, out: Schema, path: str, followed: _Followed) -> None:
        properties = properties_of(schema)
        if properties:
            out["properties"] = {
                name: self.node(node, f"{path}.{name}".lstrip("."), followed) for name, node in properties.items()
            }
        if required := [name for name in names(schema, "required") if name in properties]:
            out["required"] = required

    def array(self, schema: Schema, out: Schema, path: str, followed: _Followed) -> None:
        wide = widened_tuple(schema)
        if wide is not schema:
            self.losses.append(f"{path}: prefixItems, as items of any of these kinds")
        out["items"] = self.node(wide.get("items"), f"{path}[]", followed)


def _keeps(schema: Schema, word: str) -> bool:
    if word != "format":
        return True
    return any(schema[word] in _FORMATS.get(kind, ()) for kind in types_of(schema))


def _of_kind(schema: Schema, choice: Any) -> Schema:
    """Return a choice with the type that stands beside the choices, when it names none itself."""
    return {"type": schema["type"], **as_schema(choice)} if "type" in schema else as_schema(choice)


def _flat(choices: list[Any]) -> list[Schema]:
    """Return the choices with those of choices among them in their place, each once."""
    found: list[Schema] = []
    for choice in choices:
        found += [one for one in members(choice, "anyOf") or [choice] if one not in found]
    return found


def _bare(kind: str) -> Schema:
    return cast("Schema", {"type": kind, "items": {"type": "string"}} if kind == "array" else {"type": kind})
