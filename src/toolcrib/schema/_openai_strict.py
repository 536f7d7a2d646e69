"""OpenAI's strict mode: every property required, no other keys, and only the words it knows."""

from __future__ import annotations

import re
from typing import Any, cast

from toolcrib.errors import ToolSignatureError
from toolcrib.schema._roots import conjoined
from toolcrib.schema._walk import Schema, accepts_null, as_schema, members, names, properties_of, resolve
from toolcrib.schema._words import SILENT, hinted, types_of, widened_tuple

__all__ = ["OpenAIStrict"]

_KEPT = frozenset(
    {
        *("type", "description", "enum", "const", "pattern", "format", "multipleOf"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"),
    }
)
_HANDLED = SILENT | {
    *("properties", "required", "additionalProperties", "items", "prefixItems", "nullable"),
    *("anyOf", "oneOf", "allOf", "$ref", "$defs", "definitions"),
}
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_DEFINITION = re.compile(r"#|#/(\$defs|definitions)/[^/]+")
_MOST_PROPERTIES = 5_000
_MOST_LEVELS = 10


class OpenAIStrict:
    """One schema on its way to strict mode.

    Args:
        root: The canonical schema, with one object at its root.
    """

    def __init__(self, root: Schema) -> None:
        self.root = root
        self.losses: list[str] = []
        self.count = 0

    def render(self) -> Schema:
        """Return the schema.

        Raises:
            ToolSignatureError: Strict mode cannot express it; the message says why.
        """
        return self.node(self.root, "", 0)

    def node(self, node: Any, path: str, level: int) -> Schema:
        """Return the strict form of one schema.

        Args:
            node: The schema.
            path: Which value it is of.
            level: How many objects it stands in.
        """
        schema = self.merged(as_schema(node), path)
        out = {word: value for word, value in schema.items() if word in _KEPT and self.keeps(schema, word)}
        if "$ref" in schema:
            self.reference(schema["$ref"], out, path)
        self.choices(schema, out, path, level)
        if "type" not in out and not {"$ref", "anyOf"} & out.keys():
            out = {"type": self.kind(schema, path), **out}
        if "object" in types_of(out):
            self.object(schema, out, path, level + 1)
        if "array" in types_of(out):
            self.array(schema, out, path, level)
        self.definitions(schema, out)
        lost = {word: value for word, value in schema.items() if word not in out and word not in _HANDLED}
        self.losses += [f"{path or 'root'}: {word}" for word in lost]
        lost.pop("default", None)
        return hinted(out, lost)

    def merged(self, schema: Schema, path: str) -> Schema:
        """Return the schema without `allOf`."""
        parts = members(schema, "allOf")
        if not parts:
            return schema
        rest = {word: value for word, value in schema.items() if word != "allOf"}
        if len(parts) == 1 and isinstance(parts[0], dict) and not (rest.keys() & parts[0].keys() - {"description"}):
            return {**parts[0], **rest}
        merged: Schema = {}
        for part in parts:
            target = resolve(part.get("$ref"), self.root) if "$ref" in as_schema(part) else as_schema(part)
            if target is None or "properties" not in target or {"allOf", "anyOf", "oneOf", "$ref"} & target.keys():
                raise ToolSignatureError(f"{path or 'it'} is an allOf of more than plain objects")
            merged = conjoined(merged, target)
        return conjoined(merged, rest)

    def keeps(self, schema: Schema, word: str) -> bool:
        if word == "format":
            return str(schema[word]) in _FORMATS
        # look-around is the one thing of patterns that is refused
        return word != "pattern" or not re.search(r"\(\?<?[=!]", str(schema[word]))

    def reference(self, reference: Any, out: Schema, path: str) -> None:
        if not _DEFINITION.fullmatch(str(reference)) or resolve(reference, self.root) is None:
            raise ToolSignatureError(f"{path} refers to {reference!r}, which is not one of its $defs")
        # a $ref stands alone, but an anyOf may have a description beside it
        out.update({"anyOf": [{"$ref": reference}]} if out else {"$ref": reference})

    def choices(self, schema: Schema, out: Schema, path: str, level: int) -> None:
        for word in ("anyOf", "oneOf"):
            if found := members(schema, word):
                if "anyOf" in out:
                    raise ToolSignatureError(f"{path} must fit two lists of choices at once")
                out["anyOf"] = [self.node(choice, f"{path}", level) for choice in found]
        if "oneOf" in schema:
            self.losses.append(f"{path}: oneOf, as anyOf")

    def kind(self, schema: Schema, path: str) -> Any:
        kinds = types_of(schema)
        if not kinds:
            raise ToolSignatureError(f"{path} may be anything")
        return kinds[0] if len(kinds) == 1 else kinds

    def object(self, schema: Schema, out: Schema, path: str, level: int) -> None:
        properties = properties_of(schema)
        extra = schema.get("additionalProperties")
        if extra not in (None, False) or "patternProperties" in schema or (extra is None and path and not properties):
            raise ToolSignatureError(f"{path or 'it'} takes any key")
        self.count += len(properties)
        if level > _MOST_LEVELS or self.count > _MOST_PROPERTIES:
            raise ToolSignatureError(f"it has over {_MOST_LEVELS} levels or {_MOST_PROPERTIES} properties")
        required = names(schema, "required")
        out["properties"] = {
            name: self.property(node, f"{path}.{name}".lstrip("."), level, optional=name not in required)
            for name, node in properties.items()
        }
        out["required"] = list(properties)
        out["additionalProperties"] = False

    def property(self, node: Any, path: str, level: int, *, optional: bool) -> Schema:
        strict = self.node(node, path, level)
        return _nullable(strict) if optional and not accepts_null(node, self.root) else strict

    def array(self, schema: Schema, out: Schema, path: str, level: int) -> None:
        wide = widened_tuple(schema)
        if wide is not schema:
            self.losses.append(f"{path}: prefixItems, as items of any of these kinds")
        out.update({word: wide[word] for word in ("minItems", "maxItems") if word in wide})
        out["items"] = self.node(wide.get("items"), f"{path}[]", level)

    def definitions(self, schema: Schema, out: Schema) -> None:
        for word in ("$defs", "definitions"):
            if found := as_schema(schema.get(word)):
                out[word] = {name: self.node(node, name, 0) for name, node in found.items()}


def _nullable(schema: Schema) -> Schema:
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    kind = schema["type"]
    out = {**schema, "type": [*cast("list[Any]", kind), "null"] if isinstance(kind, list) else [kind, "null"]}
    if "const" in out:
        out["enum"] = [out.pop("const")]
    if "enum" in out:
        out["enum"] = [*out["enum"], None]
    return out
