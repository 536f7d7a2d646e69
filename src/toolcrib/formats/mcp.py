"""The Model Context Protocol's own words for tools, calls and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from toolcrib._json import first_unsafe
from toolcrib.formats._definitions import Definitions, Shown, define
from toolcrib.formats._names import MCP, wire_names
from toolcrib.formats._replies import Asked, member, not_a_reply, tool_calls
from toolcrib.limits import DEFAULT_LIMITS
from toolcrib.types import Effect, Envelope, ToolCall, ToolResponse, ToolResult

if TYPE_CHECKING:
    from toolcrib.tools import Tool
    from toolcrib.toolset import Toolset

__all__ = ["calls", "results", "tools"]

_ANNOTATIONS: Mapping[Effect, dict[str, bool]] = {
    "read": {"readOnlyHint": True},
    "idempotent": {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True},
    "write": {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False},
    "destructive": {"readOnlyHint": False, "destructiveHint": True},
}


def tools(toolset: Toolset) -> list[Any]:
    """Return the definitions for a `tools/list` answer; cached, so read-only."""
    return _definitions(toolset).listed


def calls(reply: Any, toolset: Toolset) -> list[ToolCall]:
    """Return the one call of a request, by its canonical name, or none if the request is another one.

    Its id is that of the request if it has one, else `call_1`.

    Args:
        reply: A `tools/call` request or its params; as objects or dicts.
        toolset: The tools the client was shown.

    Raises:
        TypeError: It is none of these.
    """
    params = member(reply, "params")
    if not isinstance(reply, dict) and params is None and not hasattr(reply, "name"):
        raise not_a_reply(reply, "a tools/call request", "its params")
    if params is not None and member(reply, "method") not in (None, "tools/call"):
        return []
    asked = Asked(member(reply, "id"), member(params or reply, "name"), member(params or reply, "arguments"))
    return tool_calls([asked] if asked.name is not None else [], _definitions(toolset))


def results(results: Sequence[ToolResult]) -> list[dict[str, Any]]:
    """Return one `CallToolResult` per answer."""
    return [_result(result) for result in results]


def _result(result: ToolResult) -> dict[str, Any]:
    text = [{"type": "text", "text": result.text}] if result.text or not result.parts else []
    answer: dict[str, Any] = {"content": [*text, *result.parts], "isError": not result.ok}
    structured = _structured(result.value) if result.ok else None
    return answer if structured is None else {**answer, "structuredContent": structured}


def _structured(value: Any) -> dict[str, Any] | None:
    """Return the value as a JSON object, if it is one and not beyond all measure."""
    if isinstance(value, ToolResponse | Envelope) or not _is_record(value):
        return None
    try:
        plain = to_jsonable_python(value)
        small = len(to_json(plain)) <= DEFAULT_LIMITS.max_result_bytes
    except (PydanticSerializationError, ValueError, RecursionError):
        return None
    plain = cast("dict[str, Any]", plain) if isinstance(plain, dict) else None
    return plain if small and first_unsafe(plain, "value") is None else None


def _is_record(value: Any) -> bool:
    return isinstance(value, Mapping) or hasattr(value, "__pydantic_serializer__") or is_dataclass(value)


def _definitions(toolset: Toolset) -> Definitions:
    return toolset.cached(("mcp",), lambda: _defined(toolset))


def _defined(toolset: Toolset) -> Definitions:
    return define(toolset, "MCP", wire_names(toolset.names, MCP), _dialect, _written)


def _dialect(tool: Tool) -> Shown:
    return Shown(tool.input_schema)


def _written(tool: Tool, name: str, shown: Shown) -> dict[str, Any]:
    definition = {"name": name, "description": tool.description, "inputSchema": shown.parameters}
    # older clients drop the whole list over an output schema that is not of an object
    if tool.output_schema is not None and tool.output_schema.get("type") == "object":
        definition["outputSchema"] = tool.output_schema
    if tool.effect is not None:
        definition["annotations"] = _ANNOTATIONS[tool.effect]
    return definition
