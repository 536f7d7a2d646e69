"""Where schemas stand inside a schema, and what its references lead to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias, cast
from urllib.parse import unquote

__all__ = ["Schema", "accepts_null", "as_schema", "children", "mapped", "members", "names", "properties_of", "resolve"]

Schema: TypeAlias = dict[str, Any]

#: Words whose value is a mapping to schemas, a list of schemas or a schema.
_MAPS = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
_NESTED = frozenset(
    {
        *("anyOf", "oneOf", "allOf", "prefixItems", "items", "additionalProperties", "unevaluatedItems"),
        *("unevaluatedProperties", "not", "if", "then", "else", "contains", "propertyNames"),
    }
)


def as_schema(node: Any) -> Schema:
    """Return `node` if it is an object, else an empty schema: `true`, nonsense, and what is absent alike."""
    return cast("Schema", node) if isinstance(node, dict) else {}


def members(node: Mapping[str, Any], word: str) -> list[Any]:
    """Return the list at `word`, or an empty one."""
    found = node.get(word)
    return cast("list[Any]", found) if isinstance(found, list) else []


def names(node: Mapping[str, Any], word: str) -> list[str]:
    """Return the names in the list at `word`; what is no name there is left out."""
    return [name for name in members(node, word) if isinstance(name, str)]


def properties_of(node: Mapping[str, Any]) -> Schema:
    """Return the property schemas of an object schema."""
    return as_schema(node.get("properties"))


def children(node: Schema) -> Iterator[Any]:
    """Yield every schema that stands directly in `node`."""
    for word, value in node.items():
        if isinstance(value, dict):
            if word in _MAPS:
                yield from cast("Schema", value).values()
            elif word in _NESTED:
                yield value
        elif isinstance(value, list) and word in _NESTED:
            yield from cast("list[Any]", value)


def mapped(node: Schema, change: Callable[[Any], Any]) -> Schema:
    """Return a copy of `node` with every schema that stands directly in it changed."""
    copy = dict(node)
    for word, value in node.items():
        if isinstance(value, dict) and word in _MAPS:
            copy[word] = {name: change(child) for name, child in cast("Schema", value).items()}
        elif isinstance(value, dict) and word in _NESTED:
            copy[word] = change(value)
        elif isinstance(value, list) and word in _NESTED:
            copy[word] = [change(child) for child in cast("list[Any]", value)]
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
