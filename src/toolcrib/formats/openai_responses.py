"""OpenAI's Responses API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from toolcrib.formats._definitions import Definitions, Shown, define
from toolcrib.formats._images import images
from toolcrib.formats._names import OPENAI, wire_names
from toolcrib.formats._openai import dialect
from toolcrib.formats._replies import Asked, has, listed, member, not_a_reply, tool_calls
from toolcrib.types import ToolCall, ToolResult

if TYPE_CHECKING:
    from toolcrib.tools import Tool
    from toolcrib.toolset import Toolset

__all__ = ["calls", "results", "tools"]


def tools(toolset: Toolset) -> list[Any]:
    """Return the definitions for `tools=`; cached, so read-only."""
    return _definitions(toolset).listed


def calls(reply: Any, toolset: Toolset) -> list[ToolCall]:
    """Return what a reply asks for, by canonical names; items that are no function calls are left alone.

    Args:
        reply: A Response, or the list of its output items; as objects or dicts.
        toolset: The tools the model was shown.

    Raises:
        TypeError: It is none of these.
    """
    return tool_calls(
        [
            Asked(member(item, "call_id", "id"), member(item, "name"), member(item, "arguments"))
            for item in _items(reply)
            if member(item, "type") == "function_call"
        ],
        _definitions(toolset),
    )


def results(results: Sequence[ToolResult]) -> list[dict[str, Any]]:
    """Return one `function_call_output` item per answer, with its images."""
    return [
        {"type": "function_call_output", "call_id": result.call.id, "output": _output(result)} for result in results
    ]


def _output(result: ToolResult) -> str | list[dict[str, Any]]:
    shown = [
        {"type": "input_image", "detail": "auto", "image_url": f"data:{image.media_type};base64,{image.data}"}
        for image in images(result)
    ]
    return [{"type": "input_text", "text": result.text}, *shown] if shown else result.text


def _items(reply: Any) -> list[Any]:
    if isinstance(reply, list | tuple):
        return listed(reply)
    if isinstance(reply, dict) or has(reply, "output"):
        return listed(member(reply, "output"))
    raise not_a_reply(reply, "a Response", "a list of its output items")


def _definitions(toolset: Toolset) -> Definitions:
    return toolset.cached(("openai_responses",), lambda: _defined(toolset))


def _defined(toolset: Toolset) -> Definitions:
    return define(toolset, "OpenAI", wire_names(toolset.names, OPENAI), dialect, _written)


def _written(tool: Tool, name: str, shown: Shown) -> dict[str, Any]:
    # said also when it is off: this API takes a tool that is silent about it for strict
    return {
        "type": "function",
        "name": name,
        "description": tool.description,
        "parameters": shown.parameters,
        "strict": shown.strict,
    }
