from __future__ import annotations

import pytest
from google.genai import types

from toolcrib.dispatch import call_tools
from toolcrib.formats import gemini
from toolcrib.tools import Tool
from toolcrib.toolset import Toolset
from toolcrib.types import ToolCall, ToolResult


def search(query: str, limit: int = 5, tags: list[str] | None = None) -> str:
    """Search."""
    return f"{query} {limit} {tags}"


def now() -> str:
    """Tell the time."""
    return "now"


TOOLS = Toolset([Tool(search, name="ext.search"), now, Tool(search, name="my search")])
PART = {"function_call": {"id": "g1", "name": "ext.search", "args": {"query": "x"}}}
CALL = ToolCall("g1", "ext.search", {"query": "x"})


def test_definitions_are_what_the_sdk_takes():
    (group,) = gemini.tools(TOOLS)
    types.Tool.model_validate(group)
    first, second, third = group["function_declarations"]
    assert first == {
        "name": "ext.search",
        "description": "Search.",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "limit": {"type": "integer"},
                "tags": {"type": "array", "items": {"type": "string"}, "nullable": True},
            },
            "required": ["query"],
        },
    }
    assert second == {"name": "now", "description": "Tell the time."}
    assert third["name"].startswith("my_search_")


def test_calls_are_read_from_every_shape_of_a_reply():
    content = {"role": "model", "parts": [{"text": "hi"}, PART]}
    wire = {"parts": [{"functionCall": PART["function_call"]}]}
    reply = {"candidates": [{"content": content}]}
    typed = types.GenerateContentResponse.model_validate(reply)
    shapes = [
        reply,
        typed,
        typed.candidates[0],
        typed.candidates[0].content,
        typed.candidates[0].content.parts,
        typed.function_calls,
        content,
        content["parts"],
        wire,
        {"candidates": [{"content": wire}]},
    ]
    for shape in shapes:
        assert gemini.calls(shape, TOOLS) == [CALL]


def test_a_reply_without_candidates_or_content_has_no_calls():
    empty = [{"candidates": []}, {"candidates": [{"finish_reason": "SAFETY"}]}]
    for reply in empty:
        assert gemini.calls(reply, TOOLS) == []
        assert gemini.calls(types.GenerateContentResponse.model_validate(reply), TOOLS) == []


def test_a_call_without_id_or_arguments_can_be_answered():
    (call,) = gemini.calls([{"functionCall": {"name": "now"}}], TOOLS)
    assert call == ToolCall("call_1", "now", "{}")
    (content,) = gemini.results(call_tools([call], TOOLS))
    types.Content.model_validate(content)
    assert content == {
        "role": "user",
        "parts": [{"function_response": {"name": "now", "response": {"result": "now"}}}],
    }


def test_answers_carry_the_wire_name_and_the_provider_s_id():
    wire = gemini.tools(TOOLS)[0]["function_declarations"][2]["name"]
    calls = gemini.calls([{"functionCall": {"id": "g7", "name": wire, "args": {"query": "x"}}}], TOOLS)
    assert [call.name for call in calls] == ["my search"]
    (content,) = gemini.results(call_tools(calls, TOOLS))
    types.Content.model_validate(content)
    assert content["parts"] == [{"function_response": {"id": "g7", "name": wire, "response": {"result": "x 5 None"}}}]


def test_a_failure_is_an_error_response():
    (content,) = gemini.results([ToolResult(CALL, kind="timed_out", text="too slow")])
    assert content["parts"][0]["function_response"]["response"] == {"error": "too slow"}


def test_illegal_property_keys_are_renamed_and_come_back():
    schema = {"type": "object", "properties": {"X-Api-Version": {"type": "string"}, "1": {"type": "string"}}}
    toolset = Toolset([Tool.from_schema("api", "", schema, lambda **given: given)])
    shown = gemini.tools(toolset)[0]["function_declarations"][0]["parameters"]["properties"]
    assert list(shown) == ["X_Api_Version", "_1"]
    (call,) = gemini.calls([{"functionCall": {"name": "api", "args": {"X_Api_Version": "2", "_1": "y"}}}], toolset)
    assert call.arguments == {"X-Api-Version": "2", "1": "y"}


@pytest.mark.parametrize("enum", [["a", "b"], [1, 2], [True], [None, "a"], ["a", 1]])
def test_every_enum_is_one_that_the_sdk_takes(enum):
    schema = {"type": "object", "properties": {"a": {"enum": enum}}}
    (group,) = gemini.tools(Toolset([Tool.from_schema("f", "", schema)]))
    types.Tool.model_validate(group)
