from __future__ import annotations

import pytest
from anthropic.types import Message, MessageParam, ToolParam
from pydantic import TypeAdapter

from toolcrib.dispatch import call_tools
from toolcrib.formats import anthropic
from toolcrib.tools import Tool
from toolcrib.toolset import Toolset
from toolcrib.types import ToolCall, ToolResult

PNG = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
WAV = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}
BLOCK = {"type": "tool_use", "id": "toolu_1", "name": "ext_search", "input": {"q": 1}}
CALL = ToolCall("toolu_1", "ext.search", {"q": 1})


def search(q: int) -> int:
    """Search."""
    return q


TOOLS = Toolset([Tool(search, name="ext.search")])


def message(*blocks):
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(blocks),
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def test_definitions_are_what_the_sdk_takes():
    shown = anthropic.tools(TOOLS)
    TypeAdapter(list[ToolParam]).validate_python(shown)
    assert shown == [{"name": "ext_search", "description": "Search.", "input_schema": TOOLS["ext.search"].input_schema}]
    assert shown[0]["input_schema"] is TOOLS["ext.search"].input_schema


def test_calls_are_read_from_every_shape_of_a_reply():
    reply = message({"type": "text", "text": "hi"}, BLOCK)
    typed = Message.model_validate(reply)
    for shape in (reply, typed, reply["content"], typed.content):
        assert anthropic.calls(shape, TOOLS) == [CALL]


def test_a_message_of_plain_text_has_no_calls():
    assert anthropic.calls({"role": "assistant", "content": "hi"}, TOOLS) == []


def test_calls_that_the_server_runs_itself_are_left_alone():
    server = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    assert anthropic.calls(message(server, BLOCK), TOOLS) == [CALL]


def test_illegal_property_keys_are_renamed_and_come_back():
    schema = {
        "type": "object",
        "properties": {"$filter": {"type": "string"}, "a b": {"type": "string"}, "a/b": {"type": "string"}},
        "required": ["$filter"],
    }
    toolset = Toolset([Tool.from_schema("odata", "", schema, lambda **given: given)])
    shown = anthropic.tools(toolset)[0]["input_schema"]
    first, second, third = shown["properties"]
    assert (first, shown["required"]) == ("_filter", ["_filter"])
    assert second != third
    (call,) = anthropic.calls([{**BLOCK, "name": "odata", "input": {first: "x", second: "y", third: "z"}}], toolset)
    assert call.arguments == {"$filter": "x", "a b": "y", "a/b": "z"}
    assert call_tools([call], toolset)[0].ok


def test_all_answers_go_into_one_user_message_that_the_sdk_takes():
    messages = anthropic.results([ToolResult(CALL, text="1"), ToolResult(CALL, kind="failed", text="no")])
    TypeAdapter(list[MessageParam]).validate_python(messages)
    assert messages == [
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "1"},
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "no", "is_error": True},
            ],
        }
    ]


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_text_without_words_is_left_out(text):
    (sent,) = anthropic.results([ToolResult(CALL, text=text)])
    assert sent["content"] == [{"type": "tool_result", "tool_use_id": "toolu_1"}]
    (sent,) = anthropic.results([ToolResult(CALL, text=text, parts=(PNG,))])
    assert [part["type"] for part in sent["content"][0]["content"]] == ["image"]


def test_images_are_shown_and_other_files_only_named():
    messages = anthropic.results([ToolResult(CALL, text="see", parts=(PNG, WAV))])
    TypeAdapter(list[MessageParam]).validate_python(messages)
    assert messages[0]["content"][0]["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
    ]


def test_a_failure_shows_no_images():
    (sent,) = anthropic.results([ToolResult(CALL, kind="failed", text="no", parts=(PNG,))])
    assert sent["content"][0]["content"] == "no"
