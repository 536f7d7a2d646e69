"""A JSON Schema as a list of ToolParameters, and the other way round."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, Union, cast

from pydantic_core import to_json

from toolcrib.errors import ToolSignatureError
from toolcrib.schema._walk import as_schema, members, names, properties_of, resolve
from toolcrib.types import ToolParameter

if TYPE_CHECKING:
    from toolcrib.schema.signature import Signature

__all__ = ["check_callable", "declared_hints", "merged", "parameters_of", "schema_of", "type_text", "untellable"]

_WORDS = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "array": "list",
    "object": "dict",
}
_MOST_DEPTH = 6
_MOST_MEMBERS = 12


# -- schema to words


def type_text(schema: Any, root: Mapping[str, Any], depth: int = 0) -> str:
    """Return a schema as a Python-like type, such as `list[str]`, `"c" | "f"` or `{city: str, zip?: str}`.

    Args:
        schema: The schema of one value.
        root: The schema it stands in, for its `$defs`.
        depth: How many levels of it have been told already; below six it is `any`.
    """
    if not isinstance(schema, Mapping) or depth > _MOST_DEPTH:
        return "any"
    node = cast("Mapping[str, Any]", schema)
    if "$ref" in node:
        return _reference_text(str(node["$ref"]), root, depth)
    if "enum" in node or "const" in node:
        values = members(node, "enum") if "enum" in node else [node["const"]]
        return " | ".join(to_json(value).decode() for value in values) or "any"
    for key in ("anyOf", "oneOf"):
        if choices := members(node, key):
            return " | ".join(dict.fromkeys(type_text(choice, root, depth + 1) for choice in choices))
    return _plain_text(node, root, depth)


def _reference_text(reference: str, root: Mapping[str, Any], depth: int) -> str:
    target = resolve(reference, cast("dict[str, Any]", root))
    if target is None:
        return "any"
    return reference.rsplit("/", 1)[-1] if depth >= _MOST_DEPTH else type_text(target, root, depth + 1)


def _plain_text(node: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    kind = node.get("type")
    if isinstance(kind, list):
        return " | ".join(type_text({**node, "type": one}, root, depth + 1) for one in cast("list[Any]", kind))
    if kind == "array" and node.get("items"):
        return f"list[{type_text(node['items'], root, depth + 1)}]"
    if kind == "object" and isinstance(node.get("additionalProperties"), Mapping):
        return f"dict[str, {type_text(node['additionalProperties'], root, depth + 1)}]"
    if kind == "object" and properties_of(node):
        return _object_text(node, root, depth)
    return _WORDS.get(str(kind), "any")


def _object_text(node: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    required, properties = names(node, "required"), properties_of(node)
    listed = [
        f"{name}{'' if name in required else '?'}: {type_text(member, root, depth + 1)}"
        for name, member in islice(properties.items(), _MOST_MEMBERS)
    ]
    return "{" + ", ".join(listed if len(properties) == len(listed) else [*listed, "..."]) + "}"


def parameters_of(schema: Mapping[str, Any], facts: Mapping[str, ToolParameter]) -> list[ToolParameter]:
    """Return the parameters of a tool's schema; what an author said of one in `facts` is kept."""
    required = names(schema, "required")
    return [
        replace(_parameter(name, node, schema, facts.get(name)), required=name in required)
        for name, node in properties_of(schema).items()
    ]


def _parameter(name: str, node: Any, root: Mapping[str, Any], fact: ToolParameter | None) -> ToolParameter:
    told = as_schema(node)
    return ToolParameter(
        name,
        fact.type if fact and fact.type != "any" else type_text(told, root),
        told.get("description"),
        default=told.get("default"),
        options=told.get("enum"),
        examples=told.get("examples"),
        source=fact.source if fact else "all",
        display_name=fact.display_name if fact else None,
    )


# -- what no model can be told


def check_callable(name: str, signature: Signature, facts: Sequence[ToolParameter]) -> None:
    """Refuse a function that cannot be called by keyword, or has not the parameters its author describes.

    Raises:
        ToolSignatureError: It is such a function.
    """
    taken = {p.name for p in signature.parameters} if facts else ()
    if strangers := [p.name for p in facts if p.name not in taken]:
        raise ToolSignatureError(f"{name} takes no parameter {strangers[0]!r}, which parameters= describes")
    if signature.positional_only:
        names = ", ".join(signature.positional_only)
        raise ToolSignatureError(f"{name} takes {names} by position only, but models call by name")


def untellable(name: str, signature: Signature, facts: Iterable[ToolParameter]) -> list[str]:
    """Return what of a function's parameters a model is told nothing about: no type, or not even a name."""
    known = {p.name for p in facts}
    unhinted = [
        f"parameter {one!r} of {name} is required and has no type hint: annotate it, or models get no type"
        for one in signature.unhinted
        if one not in known
    ]
    return unhinted + [
        f"{name} takes {stars}, which no schema can list: name its parameters, or use Tool.from_schema"
        for stars in signature.variadic
    ]


# -- words to schema


def schema_of(parameters: Iterable[ToolParameter]) -> dict[str, Any]:
    """Return the object schema that a list of declared parameters describes."""
    listed = list(parameters)
    return {
        "type": "object",
        "properties": {p.name: _with_facts(_type_schema(p.type), p) for p in listed},
        "required": [p.name for p in listed if p.required],
    }


def declared_hints(parameters: Iterable[ToolParameter]) -> dict[str, Any]:
    """Return the Python types of parameters that declare options or a type."""
    return {
        p.name: Literal[tuple(p.options)] if p.options else _hint(_type_schema(p.type))
        for p in parameters
        if p.options or _type_schema(p.type)
    }


def _hint(schema: Mapping[str, Any]) -> Any:
    if "anyOf" in schema:
        return Union[tuple(_hint(choice) for choice in schema["anyOf"])]  # noqa: UP007  # made from data
    if schema.get("items"):
        return list[_hint(schema["items"])]
    if isinstance(schema.get("additionalProperties"), Mapping):
        return dict[str, _hint(schema["additionalProperties"])]
    return _HINTS.get(schema.get("type"), Any)


_HINTS: dict[Any, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": None,
    "array": list,
    "object": dict,
}


def merged(schema: Mapping[str, Any], parameters: Iterable[ToolParameter]) -> dict[str, Any]:
    """Return a function's schema with its author's descriptions and examples; all else is the signature's."""
    properties = dict(cast("Mapping[str, Any]", schema["properties"]))
    for p in parameters:
        if p.name in properties:
            facts = {"description": p.description, "examples": p.examples}
            properties[p.name] = {**properties[p.name], **{k: v for k, v in facts.items() if v is not None}}
    return {**schema, "properties": properties}


def _with_facts(node: Mapping[str, Any], parameter: ToolParameter) -> dict[str, Any]:
    facts = {
        "description": parameter.description,
        "default": parameter.default,
        "enum": parameter.options,
        "examples": parameter.examples,
    }
    return {**node, **{key: value for key, value in facts.items() if value is not None}}


_TYPES = {
    **{word: kind for kind, word in _WORDS.items()},
    **{kind: kind for kind in _WORDS},
    "text": "string",
    "double": "number",
    "tuple": "array",
    "set": "array",
    "none": "null",
    "bytes": "string",
}
_GENERIC = re.compile(r"^\s*(?:typing\.)?(\w+)\s*\[(.*)\]\s*$", re.DOTALL)


def _type_schema(text: str) -> dict[str, Any]:
    """Return the schema of a type as authors write it: `int`, `List[str]`, `Optional[float]`, `str | None`."""
    choices = _split(text, "|")
    if len(choices) > 1:
        return {"anyOf": [_type_schema(choice) for choice in choices]}
    if found := _GENERIC.match(text):
        return _generic_schema(found[1].lower(), _split(found[2], ","))
    kind = _TYPES.get(text.strip().lower())
    return {"type": kind} if kind else {}


def _generic_schema(name: str, arguments: list[str]) -> dict[str, Any]:
    if name == "optional":
        return {"anyOf": [_type_schema(arguments[0]), {"type": "null"}]}
    if name == "union":
        return {"anyOf": [_type_schema(argument) for argument in arguments]}
    kind = _TYPES.get(name)
    if kind == "array":
        return {"type": "array", "items": _type_schema(arguments[0])}
    if kind == "object":
        return {"type": "object", "additionalProperties": _type_schema(arguments[-1]) or True}
    return {"type": kind} if kind else {}


def _split(text: str, separator: str) -> list[str]:
    """Split at a separator outside brackets."""
    parts: list[str] = []
    depth = start = 0
    for i, char in enumerate(text):
        depth += (char == "[") - (char == "]")
        if char == separator and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]
