"""OpenAI's chat completions, and the many servers that speak them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from toolcrib.formats._definitions import Definitions, Shown, define
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
    """Return what a reply asks for, by canonical names.

    Calls without an id, as some local servers send them, get `call_1`, `call_2`, ...; other kinds of tool calls are
    not ours and left alone.

    Args:
        reply: A ChatCompletion (its first choice counts), its message, or a list of tool calls; as objects or dicts.
        toolset: The tools the model was shown.

    Raises:
        TypeError: It is none of these.
    """
    found = _tool_calls(reply)
    asked = [(call, member(call, "function")) for call in found]
    return tool_calls(
        [
            Asked(member(call, "id"), member(function, "name"), member(function, "arguments"))
            for call, function in asked
            if function is not None and member(call, "type") in (None, "", "function")
        ],
        _definitions(toolset),
    )


def results(results: Sequence[ToolResult]) -> list[dict[str, Any]]:
    """Return one `tool` message per answer; this provider takes text only, which names any images."""
    return [{"role": "tool", "tool_call_id": result.call.id, "content": result.text} for result in results]


def _tool_calls(reply: Any) -> list[Any]:
    if isinstance(reply, list | tuple):
        return listed(reply)
    if has(reply, "choices"):
        first = next(iter(listed(member(reply, "choices"))), None)
        return listed(member(member(first, "message"), "tool_calls"))
    if isinstance(reply, dict) or has(reply, "tool_calls"):
        return listed(member(reply, "tool_calls"))
    raise not_a_reply(reply, "a ChatCompletion", "its message", "a list of tool calls")


def _definitions(toolset: Toolset) -> Definitions:
    return toolset.cached(("openai_chat",), lambda: _defined(toolset))


def _defined(toolset: Toolset) -> Definitions:
    return define(toolset, "OpenAI", wire_names(toolset.names, OPENAI), dialect, _written)


def _written(tool: Tool, name: str, shown: Shown) -> dict[str, Any]:
    function = {"name": name, "description": tool.description, "parameters": shown.parameters}
    return {"type": "function", "function": {**function, "strict": True} if shown.strict else function}
