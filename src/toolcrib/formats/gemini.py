"""Google's Gemini, with classic function declarations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from toolcrib.formats._definitions import Definitions, Shown, define
from toolcrib.formats._names import gemini_name
from toolcrib.formats._replies import Asked, has, listed, made_id, member, not_a_reply, tool_calls
from toolcrib.formats._undo import Undo
from toolcrib.schema._keys import key_aliases
from toolcrib.schema.dialects import GEMINI_KEYS
from toolcrib.schema.dialects import gemini as to_gemini
from toolcrib.types import ToolCall, ToolResult

if TYPE_CHECKING:
    from toolcrib.tools import Tool
    from toolcrib.toolset import Toolset

__all__ = ["calls", "results", "tools"]


def tools(toolset: Toolset) -> list[Any]:
    """Return the definitions for `tools=`, an empty list for an empty toolset; cached, so read-only."""
    return toolset.cached(("gemini", "tools"), lambda: _grouped(_definitions(toolset).listed))


def calls(reply: Any, toolset: Toolset) -> list[ToolCall]:
    """Return what a reply asks for, by canonical names and property keys; parts of other kinds are left alone.

    Calls without an id, which is most of them, get `call_1`, `call_2`, ...

    Args:
        reply: A GenerateContentResponse (its first candidate counts), its content, a list of parts or
            of function calls; as objects or dicts, spelled the Python way or as on the wire.
        toolset: The tools the model was shown.

    Raises:
        TypeError: It is none of these.
    """
    found = [part if has(part, "args") else member(part, "function_call", "functionCall") for part in _parts(reply)]
    return tool_calls(
        [Asked(member(call, "id"), member(call, "name"), member(call, "args")) for call in found if call is not None],
        _definitions(toolset),
    )


def results(results: Sequence[ToolResult]) -> list[dict[str, Any]]:
    """Return all answers as the one `user` content this provider wants them in; no content for no answers."""
    parts = [{"function_response": _response(result)} for result in results]
    return [{"role": "user", "parts": parts}] if parts else []


def _response(result: ToolResult) -> dict[str, Any]:
    response = {"name": gemini_name(result.call.name), "response": {"result" if result.ok else "error": result.text}}
    # an id this provider never gave would match no call of its own
    return response if made_id(result.call.id) else {"id": result.call.id, **response}


def _parts(reply: Any) -> list[Any]:
    if isinstance(reply, list | tuple):
        return listed(reply)
    if has(reply, "candidates"):
        first = next(iter(listed(member(reply, "candidates"))), None)
        return listed(member(member(first, "content"), "parts"))
    if has(reply, "content"):
        return listed(member(member(reply, "content"), "parts"))
    if isinstance(reply, dict) or has(reply, "parts"):
        return listed(member(reply, "parts"))
    raise not_a_reply(reply, "a GenerateContentResponse", "its content", "a list of parts")


def _dialect(tool: Tool) -> Shown:
    parameters, _ = to_gemini(tool.input_schema)
    keys = {alias: key for key, alias in key_aliases(tool.input_schema, GEMINI_KEYS).items()}
    return Shown(parameters, undo=Undo(tool.input_schema, keys, nulls=False) if keys else None)


def _definitions(toolset: Toolset) -> Definitions:
    return toolset.cached(("gemini",), lambda: _defined(toolset))


def _defined(toolset: Toolset) -> Definitions:
    # answers repeat the name but come without the toolset: so a name must follow from itself alone
    names = {name: gemini_name(name) for name in toolset.names}
    return define(toolset, "Gemini", names, _dialect, _written)


def _grouped(declarations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"function_declarations": declarations}] if declarations else []


def _written(tool: Tool, name: str, shown: Shown) -> dict[str, Any]:
    declaration = {"name": name, "description": tool.description}
    # an object without properties is refused; no parameters at all is how a tool says that it takes none
    return {**declaration, "parameters": shown.parameters} if shown.parameters.get("properties") else declaration
