"""The operations of a document: which there are, and under which names."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast
from urllib.parse import unquote

from toolcrib.sources._openapi_document import Document, Found, Lost, as_list, as_map
from toolcrib.types import Effect

__all__ = ["EFFECTS", "WEBHOOK", "Operation", "operations", "parameters_of"]

EFFECTS: dict[str, Effect] = {
    "get": "read",
    "head": "read",
    "options": "read",
    "trace": "read",
    "put": "idempotent",
    "delete": "destructive",
    "post": "write",
    "patch": "write",
}

WEBHOOK = "a webhook is called by the API, not by its clients"


class Operation(NamedTuple):
    """One operation, as the document has it.

    Args:
        name: What models call it: legal everywhere, and no other operation has it.
        original: What the document calls it: its `operationId`, or method and path.
        method: In capitals.
        path: The template, with its braces.
        node: What the document says of it.
        shared: What it says of all operations of the path.
        base: The file both are in.
    """

    name: str
    original: str
    method: str
    path: str
    node: dict[str, Any]
    shared: dict[str, Any]
    base: str

    @property
    def key(self) -> str:
        """The method and the path."""
        return f"{self.method} {self.path}"


def operations(document: Document, skip: Callable[[str, str], None]) -> list[Operation]:
    """Return the operations of a document, in its order.

    Args:
        document: The document.
        skip: Told the operation, and why, of each that can be none.
    """
    found, names, originals = list[Operation](), set[str](), set[str]()
    for one in _operations(document, skip):
        original = one.original if one.original not in originals else one.key
        name = _free(_legal(original if original != one.key else _spoken(one)), one.key, names)
        names.add(name)
        originals.add(original)
        found.append(one._replace(name=name, original=original))
    for name, hook in as_map(document.root.get("webhooks")).items():
        for method in as_map(hook):
            skip(f"webhook {name} {method.upper()}", WEBHOOK)
    return found


def _operations(document: Document, skip: Callable[[str, str], None]) -> Iterator[Operation]:
    for path, node in as_map(document.root.get("paths")).items():
        if path.startswith("x-"):
            continue
        try:
            item = _path_item(document, node)
        except Lost as lost:
            skip(path, str(lost))
            continue
        problem = _objection(path)
        for method, operation in item.node.items():
            if method.lower() not in EFFECTS:
                if method not in _NOT_METHODS and not method.startswith("x-"):
                    skip(f"{method.upper()} {path}", "not a method that OpenAPI 3 knows")
                continue
            key = f"{method.upper()} {path}"
            if problem or not isinstance(operation, dict):
                skip(key, problem or "what is said of it is no object")
                continue
            operation = as_map(cast("object", operation))  # noqa: PLW2901  # the same thing, its kind known
            said = operation.get("operationId")
            original = said if isinstance(said, str) and said.strip() else key
            yield Operation("", original, method.upper(), path, operation, item.node, item.base)


_NOT_METHODS = frozenset({"summary", "description", "servers", "parameters", "$ref"})


def _path_item(document: Document, node: Any) -> Found:
    members = as_map(node)
    if "$ref" not in members:
        return document.resolved(node, document.base)
    found = document.resolved({"$ref": members["$ref"]}, document.base)
    beside = {key: value for key, value in members.items() if key != "$ref"}
    return found._replace(node={**as_map(found.node), **beside})


def _objection(path: str) -> str:
    if not path.startswith("/"):
        return "its path does not begin with a slash, so it could lead to another host"
    if path.startswith("//") or "\\" in path or not path.isprintable():
        return "its path has characters that could lead to another host"
    if any(unquote(segment) in (".", "..") for segment in re.split(r"[/?#]", path)):
        return "its path leads out of itself: no segment may be . or .."
    return ""


def parameters_of(document: Document, one: Operation) -> dict[tuple[str, str], Found]:
    """Return what is said of each parameter of an operation, by location and name; its own win over the path's.

    Raises:
        Lost: One of them is a reference that leads nowhere.
    """
    found = dict[tuple[str, str], Found]()
    for node in [*as_list(one.shared.get("parameters")), *as_list(one.node.get("parameters"))]:
        told = document.resolved(node, one.base)
        name, location = told.node.get("name"), told.node.get("in")
        if not isinstance(name, str) or not name or not isinstance(location, str):
            raise Lost("a parameter has no name, or no location")
        found[location, name] = told
    return found


# -- names


def _spoken(one: Operation) -> str:
    """Return a name for an operation without one, such as `get_pets_by_petId`."""
    words = [one.method.lower()]
    for segment in one.path.strip("/").split("/"):
        inner = re.sub(r"[{}]+", " ", segment).split()
        words += ["by", *inner] if segment.startswith("{") else inner
    return "_".join(words)


def _legal(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_") or "operation"


def _free(name: str, key: str, taken: set[str]) -> str:
    """Return the name if it is short enough and free, else one that its method and path make unique."""
    if len(name) <= _LONGEST and name not in taken:
        return name
    for length in range(_MARK, _LONGEST):
        mark = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:length]
        marked = f"{name[: _LONGEST - length - 1]}_{mark}"
        if marked not in taken:
            return marked
    return name  # not reached: two operations of one document differ in method or path


_LONGEST = 64
_MARK = 6
