"""The Model Context Protocol's own words for tools, calls and answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from toolcrib.formats._mcp_words import call_result, definitions
from toolcrib.formats._replies import Asked, member, not_a_reply, tool_calls
from toolcrib.types import ToolCall, ToolResult

if TYPE_CHECKING:
    from toolcrib.toolset import Toolset

__all__ = ["calls", "results", "tools"]


def tools(toolset: Toolset) -> list[Any]:
    """Return the definitions for a `tools/list` answer; cached, so read-only."""
    return definitions(toolset).listed


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
    return tool_calls([asked] if asked.name is not None else [], definitions(toolset))


def results(results: Sequence[ToolResult]) -> list[dict[str, Any]]:
    """Return one `CallToolResult` per answer."""
    return [call_result(result) for result in results]
