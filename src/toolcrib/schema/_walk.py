"""Where schemas stand inside a schema, and what its references lead to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias, cast
from urllib.parse import unquote

__all__ = ["Schema", "accepts_null", "as_schema", "children", "mapped", "members", "properties_of", "resolve"]

Schema: TypeAlias = dict[str, Any]

_MAPS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
_SINGLES = (
    "items additionalProperties not if then else contains propertyNames unevaluatedItems unevaluatedProperties"
).split()


def as_schema(node: Any) -> Schema:
    """Return `node` if it is an object, else an empty schema: `true`, nonsense, and what is absent alike."""
    return cast("Schema", node) if isinstance(node, dict) else {}


def members(node: Mapping[str, Any], word: str) -> list[Any]:
    """Return the list at `word`, or an empty one."""
    found = node.get(word)
    return cast("list[Any]", found) if isinstance(found, list) else []


def properties_of(node: Mapping[str, Any]) -> Schema:
    """Return the property schemas of an object schema."""
    return as_schema(node.get("properties"))


def children(node: Schema) -> Iterator[Any]:
    """Yield every schema that stands directly in `node`."""
    for word in _MAPS:
        yield from as_schema(node.get(word)).values()
    for word in _LISTS:
        yield from members(node, word)
    for word in _SINGLES:
        if isinstance(node.get(word), dict):
            yield node[word]


def mapped(node: Schema, change: Callable[[Any], Any]) -> Schema:
    """Return a copy of `node` with every schema that stands directly in it changed."""
    copy = dict(node)
    for word in _MAPS:
        if isinstance(node.get(word), dict):
            copy[word] = {name: change(child) for name, child in node[word].items()}
    for word in _LISTS:
        if isinstance(node.get(word), list):
            copy[word] = [change(child) for child in node[word]]
    for word in _SINGLES:
        if isinstance(node.get(word), dict):
            copy[word] = change(node[word])
    return copy


def resolve(reference: Any, root: Schema) -> Schema | None:
    """Return the schema that a local `$ref` leads to, or None when it leads nowhere."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return None
    node: Any = root
    for part in reference.split("/")[1:]:
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        node = _item(cast("list[Any]", node), key) if isinstance(node, list) else as_schema(node).get(key)
    return cast("Schema", node) if isinstance(node, dict) else None


def _item(items: list[Any], key: str) -> Any:
    return next((item for i, item in enumerate(items) if str(i) == key), None)


def accepts_null(node: Any, root: Schema, known: dict[str, bool] | None = None) -> bool:
    """Return whether null is a value of the schema.

    Args:
        node: The schema.
        root: The schema it stands in, for its references.
        known: What is known of references already; one that is being looked at counts as no.
    """
    if not isinstance(node, dict):
        return node is True
    schema = cast("Schema", node)
    known = {} if known is None else known
    kind = schema.get("type", "null")
    return (
        (kind == "null" or (isinstance(kind, list) and "null" in kind))
        and ("enum" not in schema or None in members(schema, "enum"))
        and schema.get("const") is None
        and all(_any_null(schema, word, root, known) for word in ("anyOf", "oneOf") if word in schema)
        and all(accepts_null(part, root, known) for part in members(schema, "allOf"))
        and ("$ref" not in schema or _target_null(str(schema["$ref"]), root, known))
    )


def _any_null(schema: Schema, word: str, root: Schema, known: dict[str, bool]) -> bool:
    return any(accepts_null(choice, root, known) for choice in members(schema, word))


def _target_null(reference: str, root: Schema, known: dict[str, bool]) -> bool:
    if reference not in known:
        known[reference] = False
        known[reference] = accepts_null(resolve(reference, root), root, known)
    return known[reference]
