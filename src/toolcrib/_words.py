"""Arguments as words of a command line, `name=value`, turned into JSON text by their schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias, cast

from pydantic_core import from_json

__all__ = ["json_of"]

_Tree: TypeAlias = "dict[str, _Tree | list[str]]"


def json_of(words: Sequence[str], schema: Mapping[str, Any]) -> str:
    """Return the arguments as JSON text, not validated.

    Where the schema wants text the word stays as it is; elsewhere it is taken as JSON if it is JSON.
    A repeated name makes a list, and `a.b=1` a member of an object.

    Args:
        words: Words such as `city=Paris`, or a single one that is a whole JSON object.
        schema: The JSON Schema of the arguments.

    Raises:
        ValueError: A word is not of that form, or two of them contradict each other.
    """
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        return words[0]
    tree: _Tree = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not (name and equals):
            raise ValueError(f"{word!r} is no argument: write name=value, or all arguments as one JSON object")
        path = [name] if name in schema.get("properties", {}) else name.split(".")
        _plant(tree, path, text)
    return _object(tree, schema, schema)


def _plant(tree: _Tree, path: Sequence[str], text: str) -> None:
    for depth, step in enumerate(path):
        last = depth == len(path) - 1
        here = tree.setdefault(step, [] if last else {})
        if last and isinstance(here, list):
            here.append(text)
        elif last or isinstance(here, list):
            raise ValueError(f"{'.'.join(path[: depth + 1])} is given both as a whole and in parts")
        else:
            tree = here


def _object(tree: _Tree, schema: Any, root: Mapping[str, Any]) -> str:
    known = {name: node for kind in _meant(schema, root) for name, node in kind.get("properties", {}).items()}
    members = (f"{json.dumps(name)}: {_member(value, known.get(name), root)}" for name, value in tree.items())
    return f"{{{', '.join(members)}}}"


def _member(value: _Tree | list[str], schema: Any, root: Mapping[str, Any]) -> str:
    if not isinstance(value, list):
        return _object(value, schema, root)
    lists = [kind for kind in _meant(schema, root) if kind.get("type") == "array"]
    if len(value) == 1 and (not lists or value[0].lstrip().startswith("[") or _takes_text(value[0], schema, root)):
        return _value(value[0], schema, root)
    items = lists[0].get("items") if lists else None
    return f"[{', '.join(_value(text, items, root) for text in value)}]"


def _value(text: str, schema: Any, root: Mapping[str, Any]) -> str:
    if not _takes_text(text, schema, root):
        with suppress(ValueError):
            from_json(text, allow_inf_nan=False)
            return text
    return json.dumps(text)


def _takes_text(text: str, schema: Any, root: Mapping[str, Any]) -> bool:
    return any(
        "string" in (kind.get("type"), *_listed(kind.get("type"))) or text in _listed(kind.get("enum"))
        for kind in _meant(schema, root)
    )


def _listed(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _meant(schema: Any, root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the schemas that a schema may mean: itself, what it refers to, and its alternatives."""
    meant: list[Mapping[str, Any]] = []
    waiting, followed = [schema], set[str]()
    while waiting:
        node = waiting.pop(0)
        if not isinstance(node, Mapping):
            continue
        node = cast("Mapping[str, Any]", node)
        meant.append(node)
        waiting += [*_listed(node.get("anyOf")), *_listed(node.get("oneOf")), *_listed(node.get("allOf"))]
        target = node.get("$ref")
        if isinstance(target, str) and target not in followed:
            followed.add(target)
            waiting.append(_referred(target, root))
    return meant


def _referred(target: str, root: Mapping[str, Any]) -> Any:
    node: Any = root
    for step in target.removeprefix("#").strip("/").split("/"):
        node = cast("Mapping[str, Any]", node).get(step) if isinstance(node, Mapping) else None
    return node
