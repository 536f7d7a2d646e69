"""The tools as one provider is shown them, through the format of its family."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from toolcrib.formats import anthropic, gemini, openai_chat
from toolcrib.formats._names import ANTHROPIC, GEMINI, OPENAI, gemini_name, wire_names
from toolcrib.schema._aliases import Rule, alias_of
from toolcrib.types import ToolCall

if TYPE_CHECKING:
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.tools import ToolDefinition

    from toolcrib.toolset import Toolset

__all__ = ["Wire"]


class _Family(NamedTuple):
    """What differs between the families of providers.

    Args:
        key: What its definitions are cached under.
        rule: The tool names it takes.
        names: The wire name of each tool of a set.
        definitions: Its definitions: name, description, schema and whether it is strict.
        calls: Its own reader of calls, fed with what pydantic-ai read.
        tells_failure: Whether an answer can be marked as a failure, beside its text.
    """

    key: str
    rule: Rule
    names: Callable[[Iterable[str]], Mapping[str, str]]
    definitions: Callable[[Toolset], list[tuple[str, str, dict[str, Any], bool]]]
    calls: Callable[[list[ToolCallPart], Toolset], list[ToolCall]]
    tells_failure: bool = False


class Wire:
    """The way from canonical names and schemas to one provider's, and back.

    Args:
        system: What pydantic-ai calls the provider.
        tools: The tools of the request.
    """

    def __init__(self, system: str, tools: Toolset) -> None:
        self._tools = tools
        self._family = _family(system)
        self.tells_failure = self._family.tells_failure

    def definitions(self) -> list[ToolDefinition]:
        """Return the definitions, made once for a toolset."""
        return self._tools.cached(("llm", self._family.key), self._defined)

    def _defined(self) -> list[ToolDefinition]:
        from pydantic_ai.tools import ToolDefinition

        return [
            ToolDefinition(name=name, description=description, parameters_json_schema=schema, strict=strict)
            for name, description, schema, strict in self._family.definitions(self._tools)
        ]

    def name(self, canonical: str) -> str:
        """Return the name a provider knows a tool by; one it does not have is made legal."""
        names = self._tools.cached(("llm", self._family.key, "names"), lambda: self._family.names(self._tools.names))
        return names.get(canonical) or alias_of(canonical, self._family.rule)

    def calls(self, parts: list[ToolCallPart]) -> tuple[ToolCall, ...]:
        """Return the calls by canonical names, with the arguments our schema means."""
        return tuple(self._family.calls(parts, self._tools))


def _family(system: str) -> _Family:
    if system == "anthropic":
        return _ANTHROPIC
    return _GEMINI if system.startswith("google") else _OPENAI


def _openai_definitions(tools: Toolset) -> list[tuple[str, str, dict[str, Any], bool]]:
    functions = [definition["function"] for definition in openai_chat.tools(tools)]
    return [(f["name"], f["description"], f["parameters"], f.get("strict", False)) for f in functions]


def _openai_calls(parts: list[ToolCallPart], tools: Toolset) -> list[ToolCall]:
    asked = [
        {"id": part.tool_call_id, "type": "function", "function": {"name": part.tool_name, "arguments": part.args}}
        for part in parts
    ]
    return openai_chat.calls(asked, tools)


def _anthropic_definitions(tools: Toolset) -> list[tuple[str, str, dict[str, Any], bool]]:
    return [(d["name"], d["description"], d["input_schema"], d.get("strict", False)) for d in anthropic.tools(tools)]


def _anthropic_calls(parts: list[ToolCallPart], tools: Toolset) -> list[ToolCall]:
    asked = [
        {"type": "tool_use", "id": part.tool_call_id, "name": part.tool_name, "input": part.args} for part in parts
    ]
    return anthropic.calls(asked, tools)


def _gemini_definitions(tools: Toolset) -> list[tuple[str, str, dict[str, Any], bool]]:
    declared = [declaration for group in gemini.tools(tools) for declaration in group["function_declarations"]]
    nothing = {"type": "object"}
    return [(d["name"], d["description"], _in_json_schema(d.get("parameters", nothing)), False) for d in declared]


def _in_json_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return Gemini's form with null as JSON Schema says it: pydantic-ai fills that field, not the one of OpenAPI."""
    plain = {word: value for word, value in schema.items() if word != "nullable"}
    if "properties" in plain:
        plain["properties"] = {name: _in_json_schema(value) for name, value in plain["properties"].items()}
    if "items" in plain:
        plain["items"] = _in_json_schema(plain["items"])
    if "anyOf" in plain:
        plain["anyOf"] = [_in_json_schema(choice) for choice in plain["anyOf"]]
    if not schema.get("nullable"):
        return plain
    said = {word: plain.pop(word) for word in ("description",) if word in plain}
    return {**said, "anyOf": [plain, {"type": "null"}]}


def _gemini_calls(parts: list[ToolCallPart], tools: Toolset) -> list[ToolCall]:
    asked = [{"function_call": {"id": part.tool_call_id, "name": part.tool_name, "args": part.args}} for part in parts]
    return gemini.calls(asked, tools)


def _openai_names(names: Iterable[str]) -> Mapping[str, str]:
    return wire_names(names, OPENAI)


def _anthropic_names(names: Iterable[str]) -> Mapping[str, str]:
    return wire_names(names, ANTHROPIC)


def _gemini_names(names: Iterable[str]) -> Mapping[str, str]:
    return {name: gemini_name(name) for name in names}


_OPENAI = _Family("openai", OPENAI, _openai_names, _openai_definitions, _openai_calls)
_ANTHROPIC = _Family(
    "anthropic", ANTHROPIC, _anthropic_names, _anthropic_definitions, _anthropic_calls, tells_failure=True
)
_GEMINI = _Family("gemini", GEMINI, _gemini_names, _gemini_definitions, _gemini_calls, tells_failure=True)
