from __future__ import annotations

from openai.types.responses import FunctionToolParam, Response, ResponseFunctionToolCall
from openai.types.responses.response_input_item_param import FunctionCallOutput
from pydantic import TypeAdapter

from toolcrib.formats import openai_responses
from toolcrib.tools import Tool
from toolcrib.toolset import Toolset
from toolcrib.types import ToolCall, ToolResult

PNG = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
SVG = {"type": "image", "data": "aGk=", "mimeType": "image/svg+xml"}
ITEM = {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "ext_search", "arguments": '{"q": 1}'}
CALL = ToolCall("c1", "ext.search", '{"q": 1}')


def search(q: int, limit: int = 5) -> int:
    """Search."""
    return q


TOOLS = Toolset([Tool(search, name="ext.search")])


def response(*items):
    return {
        "id": "r",
        "object": "response",
        "created_at": 0,
        "model": "m",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "output": list(items),
    }


def test_definitions_are_what_the_sdk_takes_and_say_that_they_are_not_strict():
    shown = openai_responses.tools(TOOLS)
    TypeAdapter(list[FunctionToolParam]).validate_python(shown)
    assert shown == [
        {
            "type": "function",
            "name": "ext_search",
            "description": "Search.",
            "parameters": TOOLS["ext.search"].input_schema,
            "strict": False,
        }
    ]


def test_a_strict_tool_is_sent_strict_and_a_null_becomes_the_default_again():
    toolset = Toolset([Tool(search, strict=True)])
    (shown,) = openai_responses.tools(toolset)
    assert shown["strict"] is True
    assert shown["parameters"]["required"] == ["q", "limit"]
    (call,) = openai_responses.calls([{**ITEM, "name": "search", "arguments": '{"q": 1, "limit": null}'}], toolset)
    assert call.arguments == '{"q": 1}'


def test_calls_are_read_from_every_shape_of_a_reply():
    text = {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "hi", "annotations": []}],
    }
    reply = response(text, ITEM)
    typed = Response.model_validate(reply)
    for shape in (reply, typed, reply["output"], typed.output, [ResponseFunctionToolCall.model_validate(ITEM)]):
        assert openai_responses.calls(shape, TOOLS) == [CALL]


def test_other_kinds_of_calls_are_left_alone():
    custom = {"type": "custom_tool_call", "call_id": "c9", "name": "sql", "input": "select 1"}
    assert openai_responses.calls([custom, ITEM], TOOLS) == [CALL]


def test_an_item_without_a_call_id_goes_by_its_own():
    assert openai_responses.calls([{**ITEM, "call_id": None}], TOOLS)[0].id == "fc1"


def test_answers_are_what_the_sdk_takes_with_their_images():
    plain = ToolResult(CALL, text="")
    seen = ToolResult(CALL, text="[image/png, 2 bytes]", parts=(PNG, SVG))
    messages = openai_responses.results([plain, seen])
    TypeAdapter(list[FunctionCallOutput]).validate_python(messages)
    assert messages == [
        {"type": "function_call_output", "call_id": "c1", "output": ""},
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [
                {"type": "input_text", "text": "[image/png, 2 bytes]"},
                {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aGk="},
            ],
        },
    ]
