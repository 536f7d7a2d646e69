"""Foreign schemas: compiled as they are, closed on request, and never allowed to fetch anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from toolcrib.errors import ToolSignatureError

if TYPE_CHECKING:
    from jsonschema_rs import Validator

__all__ = ["closed", "compiled", "object_schema"]


def compiled(schema: Mapping[str, Any]) -> Validator:
    """Return a validator of the schema's own draft (2020-12 when it names none).

    Raises:
        ToolSignatureError: It is not a valid JSON Schema, or refers to something outside itself.
    """
    import jsonschema_rs  # costly, and only foreign schemas need it

    def refuse(uri: str) -> Any:
        raise ValueError(f"a $ref may not leave the schema: {uri}")

    try:
        return jsonschema_rs.validator_for(dict(schema), retriever=refuse)
    except (ValueError, TypeError) as error:
        raise ToolSignatureError(f"not a usable JSON Schema: {str(error).splitlines()[0]}") from None


def object_schema(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema for arguments, verbatim but with the `type` and `properties` every provider wants to see.

    Raises:
        ToolSignatureError: It describes something other than an object.
    """
    kind = parameters.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise ToolSignatureError(f"the schema of a tool's arguments must describe an object, not {kind!r}")
    return {"type": "object", "properties": {}, **parameters, **({"type": "object"} if kind != "object" else {})}


def closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy in which every object that lists its properties allows no others; the root always does."""
    return {**cast("dict[str, Any]", _closed(schema)), "additionalProperties": False}


def _closed(node: Any) -> Any:
    if isinstance(node, list):
        return [_closed(item) for item in cast("list[Any]", node)]
    if not isinstance(node, Mapping):
        return node
    members = cast("Mapping[str, Any]", node)
    copy = {key: _closed_member(key, value) for key, value in members.items()}
    if isinstance(members.get("properties"), Mapping) and not _COMPOSED & members.keys():
        copy.setdefault("additionalProperties", False)
    return copy


#: An object that is one part of a composition cannot be closed without refusing the other parts.
_COMPOSED = frozenset({"allOf", "anyOf", "oneOf", "$ref"})
_DATA = frozenset({"default", "const", "enum", "examples"})
_MAPS = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})


def _closed_member(key: str, value: Any) -> Any:
    if key in _DATA:
        return value
    if key in _MAPS and isinstance(value, Mapping):
        return {name: _closed(schema) for name, schema in cast("Mapping[str, Any]", value).items()}
    return _closed(value)
