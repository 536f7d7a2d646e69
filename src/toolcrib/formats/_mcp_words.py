"""Tools and answers in the words of the Model Context Protocol, in either of its eras."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from toolcrib._json import first_unsafe
from toolcrib.formats._definitions import Definitions, Shown, define
from toolcrib.formats._names import MCP, wire_names
from toolcrib.limits import DEFAULT_LIMITS
from toolcrib.results import answer_to
from toolcrib.types import Effect, Envelope, ToolResponse, ToolResult

if TYPE_CHECKING:
    from toolcrib.tools import Tool
    from toolcrib.toolset import Toolset

__all__ = ["call_result", "definitions"]

_ANNOTATIONS: Mapping[Effect, dict[str, bool]] = {
    "read": {"readOnlyHint": True},
    "idempotent": {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True},
    "write": {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False},
    "destructive": {"readOnlyHint": False, "destructiveHint": True},
}


def definitions(toolset: Toolset) -> Definitions:
    """Return what a client is shown of a toolset, and the way back from the names it knows; cached."""
    return toolset.cached(("mcp",), lambda: define(toolset, "MCP", wire_names(toolset.names, MCP), _dialect, _written))


def _dialect(tool: Tool) -> Shown:
    return Shown(tool.input_schema)


def _written(tool: Tool, name: str, shown: Shown) -> dict[str, Any]:
    definition = {"name": name, "description": tool.description, "inputSchema": shown.parameters}
    if name != tool.name:
        definition["title"] = tool.name
    # older clients drop the whole list over an output schema that is not of an object
    if tool.output_schema is not None and tool.output_schema.get("type") == "object":
        definition["outputSchema"] = tool.output_schema
    if tool.effect is not None:
        definition["annotations"] = _ANNOTATIONS[tool.effect]
    return definition


def call_result(result: ToolResult, *, any_value: bool = False) -> dict[str, Any]:
    """Return an answer as a `CallToolResult`.

    Args:
        result: The answer.
        any_value: Whether the structured content may be any JSON value, as since 2026-07-28, or an object only.
    """
    answer: dict[str, Any] = {"content": _content(result), "isError": not result.ok}
    structured = _structured(result.value, any_value=any_value) if result.ok and not result.parts else None
    return answer if structured is None else {**answer, "structuredContent": structured}


def _content(result: ToolResult) -> list[dict[str, Any]]:
    """Return the answer as content blocks: what was a list with images in it, in the order of the list."""
    value: object = result.value
    if not result.parts or value is None:
        text = [_text(result.text)] if result.text or not result.parts else []
        return [*text, *result.parts]
    items = cast("Iterable[Any]", value) if isinstance(value, list | tuple) else [value]
    return [block for item in items for block in _blocks(item)]


def _blocks(item: Any) -> list[dict[str, Any]]:
    if isinstance(item, dict):
        members = cast("dict[str, Any]", item)
        item = members["text"] if members.get("type") == "text" and "text" in members else members
    _, text, parts, _ = answer_to(item)
    return list(parts) or [_text(text)]


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _structured(value: Any, *, any_value: bool) -> Any:
    """Return the value as JSON data, if the protocol takes it beside its text and it is not beyond all measure."""
    if not _is_record(value) and not (any_value and isinstance(value, list | tuple | int | float)):
        return None
    if isinstance(value, ToolResponse | Envelope):
        return None
    try:
        plain = to_jsonable_python(value)
        small = len(to_json(plain)) <= DEFAULT_LIMITS.max_result_bytes
    except (PydanticSerializationError, ValueError, RecursionError):
        return None
    if not any_value and not isinstance(plain, dict):
        return None
    return cast("Any", plain) if small and first_unsafe(plain, "value") is None else None


def _is_record(value: Any) -> bool:
    return isinstance(value, Mapping) or hasattr(value, "__pydantic_serializer__") or is_dataclass(value)
