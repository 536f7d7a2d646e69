"""Foreign schemas: compiled as they are, closed on request, and never allowed to fetch anything."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from toolcrib.errors import ToolSignatureError
from toolcrib.schema._roots import object_root

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

    known = dict(schema)
    if not _is_known_draft(known.get("$schema")):
        known.pop("$schema", None)
    try:
        return jsonschema_rs.validator_for(known, retriever=refuse)
    except (ValueError, TypeError) as error:
        raise ToolSignatureError(f"not a usable JSON Schema: {str(error).splitlines()[0]}") from None


def _is_known_draft(name: Any) -> bool:
    """Whether a validator knows the draft; a schema of any other is read as one of the newest."""
    return isinstance(name, str) and _DRAFTS.match(name) is not None


_DRAFTS = re.compile(r"https?://json-schema\.org/(schema|draft-0[4-7]/schema|draft/20(19-09|20-12)/schema)#?$")


def object_schema(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema for arguments, verbatim but with the `type` and `properties` every provider wants to see.

    Raises:
        ToolSignatureError: It describes something other than an object.
    """
    kind = parameters.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise ToolSignatureError(f"the schema of a tool's arguments must describe an object, not {kind!r:.100}")
    if not isinstance(parameters.get("properties", {}), Mapping):
        raise ToolSignatureError("the properties of a tool's arguments must be an object of schemas")
    return {"type": "object", "properties": {}, **parameters, **({"type": "object"} if kind != "object" else {})}


def closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy in which every object that lists its properties allows no others; the root always does.

    Raises:
        ToolSignatureError: The root is composed of something other than objects.
    """
    copy = cast("dict[str, Any]", _closed(schema))
    if _COMPOSED & schema.keys():  # a closed object looks only at its own properties, so it has to name them all
        named = object_root(dict(schema))[0].get("properties", {})
        copy["properties"] = {**{name: {} for name in named}, **copy.get("properties", {})}
    return {**copy, "additionalProperties": False}


def _closed(node: Any, *, is_part: bool = False) -> Any:
    if isinstance(node, list):
        return [_closed(item, is_part=is_part) for item in cast("list[Any]", node)]
    if not isinstance(node, Mapping):
        return node
    members = cast("Mapping[str, Any]", node)
    copy = {key: _closed_member(key, value, members) for key, value in members.items()}
    if isinstance(members.get("properties"), Mapping) and not is_part and not _COMPOSED & members.keys():
        copy.setdefault("additionalProperties", False)
    return copy


#: An object that is one part of a composition cannot be closed without refusing the other parts.
_COMPOSED = frozenset({"allOf", "anyOf", "oneOf", "$ref"})
_ALTERNATIVES = frozenset({"anyOf", "oneOf"})
_PARTS = frozenset({"allOf", "then", "else", "dependentSchemas"})
_UNTOUCHED = frozenset({"default", "const", "enum", "examples", "not", "if"})
_MAPS = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})


def _closed_member(key: str, value: Any, siblings: Mapping[str, Any]) -> Any:
    if key in _UNTOUCHED:
        return value
    is_part = key in _PARTS or (
        key in _ALTERNATIVES and not siblings.keys().isdisjoint(("properties", "allOf", "$ref"))
    )
    if key in _MAPS and isinstance(value, Mapping):
        schemas = cast("Mapping[str, Any]", value)
        return {name: _closed(schema, is_part=is_part) for name, schema in schemas.items()}
    return _closed(value, is_part=is_part)
