"""Calls out of a provider's reply, whether it is the SDK's own object or a dict of the same shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

from pydantic_core import to_json

from toolcrib.formats._definitions import Definitions
from toolcrib.types import ToolCall

__all__ = ["Asked", "has", "listed", "made_id", "member", "not_a_reply", "tool_calls"]

_MADE = "call_"


class Asked(NamedTuple):
    """A call as a reply has it, of whatever types the server sent.

    Args:
        id: Its id, if any.
        name: The wire name.
        arguments: JSON text, or what an SDK or a local server parsed already.
    """

    id: Any
    name: Any
    arguments: Any


def has(thing: Any, name: str) -> bool:
    """Return whether a dict or an object has a member of that name."""
    return name in thing if isinstance(thing, Mapping) else hasattr(thing, name)


def member(thing: Any, *names: str) -> Any:
    """Return the first of the members that a dict or an object has, or None."""
    for name in names:
        value = cast("Mapping[str, Any]", thing).get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
        if value is not None:
            return value
    return None


def listed(value: Any) -> list[Any]:
    """Return a list or tuple as a list, and anything else as an empty one."""
    return list(cast("list[Any]", value)) if isinstance(value, list | tuple) else []


def not_a_reply(reply: Any, *accepted: str) -> TypeError:
    """Return the error for what is no reply; it names what would be."""
    return TypeError(f"calls() takes {', '.join(accepted[:-1])} or {accepted[-1]}, not {type(reply).__name__}")


def tool_calls(asked: Iterable[Asked], definitions: Definitions) -> list[ToolCall]:
    """Return the calls under their canonical names; one without an id gets `call_<n>`, unique within the reply."""
    found = list(asked)
    ids = _ids([str(call.id) if call.id is not None else "" for call in found])
    return [_call(identity, call, definitions) for identity, call in zip(ids, found, strict=True)]


def _call(identity: str, asked: Asked, definitions: Definitions) -> ToolCall:
    wire = asked.name if isinstance(asked.name, str) else ""
    name = definitions.canonical.get(wire, wire)
    arguments = _arguments(asked.arguments)
    undo = definitions.undo.get(name)
    return ToolCall(identity, name, arguments if undo is None else undo(arguments))


def _arguments(arguments: Any) -> str | Mapping[str, Any]:
    """Return text or a mapping: nothing at all is no arguments, and other values are text that says what they are."""
    if isinstance(arguments, str):
        return arguments if arguments.strip() else "{}"
    if arguments is None:
        return "{}"
    if isinstance(arguments, Mapping):
        return cast("Mapping[str, Any]", arguments)
    return to_json(arguments, fallback=str).decode()


def _ids(ids: list[str]) -> list[str]:
    taken = set(ids)
    made = (f"{_MADE}{n}" for n in range(1, 2 * len(ids) + 1))
    free = (identity for identity in made if identity not in taken)
    return [identity or next(free) for identity in ids]


def made_id(identity: str) -> bool:
    """Return whether the id is one of ours, which the provider has never seen."""
    return identity.startswith(_MADE) and identity.removeprefix(_MADE).isdecimal()
