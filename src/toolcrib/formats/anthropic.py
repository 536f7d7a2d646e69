"""Anthropic's messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from toolcrib.formats._definitions import Definitions, Shown, define
from toolcrib.formats._images import images
from toolcrib.formats._names import ANTHROPIC, wire_names
from toolcrib.formats._replies import Asked, has, listed, member, not_a_reply, tool_calls
from toolcrib.formats._undo import Undo
from toolcrib.schema._keys import key_aliases
from toolcrib.schema.dialects import ANTHROPIC_KEYS
from toolcrib.schema.dialects import anthropic as to_anthropic
from toolcrib.types import ToolCall, ToolResult

if TYPE_CHECKING:
    from toolcrib.tools import Tool
    from toolcrib.toolset import Toolset

__all__ = ["calls", "results", "tools"]


def tools(toolset: Toolset) -> list[Any]:
    """Return the definitions for `tools=`; cached, so read-only."""
    return _definitions(toolset).listed


def calls(reply: Any, toolset: Toolset) -> list[ToolCall]:
    """Return what a reply asks for, by canonical names and property keys; blocks of other kinds are left alone.

    Args:
        reply: A Message, or the list of its content blocks; as objects or dicts.
        toolset: The tools the model was shown.

    Raises:
        TypeError: It is none of these.
    """
    return tool_calls(
        [
            Asked(member(block, "id"), member(block, "name"), member(block, "input"))
            for block in _blocks(reply)
            if member(block, "type") == "tool_use"
        ],
        _definitions(toolset),
    )


def results(results: Sequence[ToolResult]) -> list[dict[str, Any]]:
    """Return all answers as the one `user` message this provider wants them in; no message for no answers."""
    blocks = [_block(result) for result in results]
    return [{"role": "user", "content": blocks}] if blocks else []


def _block(result: ToolResult) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.call.id}
    # a text without words is refused, but an answer may do without; a failure may show no images
    text = result.text if result.text.strip() else ""
    shown = [_image(image.media_type, image.data) for image in images(result)] if result.ok else []
    if shown:
        block["content"] = [{"type": "text", "text": text}, *shown] if text else shown
    elif text:
        block["content"] = text
    return block if result.ok else {**block, "is_error": True}


def _image(media_type: str, data: str) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def _blocks(reply: Any) -> list[Any]:
    if isinstance(reply, list | tuple):
        return listed(reply)
    if isinstance(reply, dict) or has(reply, "content"):
        return listed(member(reply, "content"))
    raise not_a_reply(reply, "a Message", "a list of its content blocks")


def _dialect(tool: Tool) -> Shown:
    parameters, _ = to_anthropic(tool.input_schema)
    if parameters is tool.input_schema:
        return Shown(parameters)
    keys = {alias: key for key, alias in key_aliases(tool.input_schema, ANTHROPIC_KEYS).items()}
    return Shown(parameters, undo=Undo(tool.input_schema, keys, nulls=False) if keys else None)


def _definitions(toolset: Toolset) -> Definitions:
    return toolset.cached(("anthropic",), lambda: _defined(toolset))


def _defined(toolset: Toolset) -> Definitions:
    return define(toolset, "Anthropic", wire_names(toolset.names, ANTHROPIC), _dialect, _written)


def _written(tool: Tool, name: str, shown: Shown) -> dict[str, Any]:
    return {"name": name, "description": tool.description, "input_schema": shown.parameters}
