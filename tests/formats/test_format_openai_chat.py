from __future__ import annotations

import json

import pytest
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionMessage,
    ChatCompletionToolMessageParam,
    ChatCompletionToolParam,
)
from pydantic import TypeAdapter

from toolcrib.dispatch import call_tools
from toolcrib.errors import ToolcribWarning
from toolcrib.formats import openai_chat
from toolcrib.tools import Tool
from toolcrib.toolset import Toolset
from toolcrib.types import ToolCall, ToolResult

PNG = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def search(query: str, limit: int = 5, unit: str | None = None) -> str:
    """Search."""
    return f"{query} {limit} {unit}"


def anything(value: dict) -> str:
    """Take anything."""
    return str(value)


@pytest.fixture
def toolset() -> Toolset:
    return Toolset([Tool(search, name="ext.search")])


def completion(*tool_calls, **message):
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {"role": "assistant", "content": None, "tool_calls": list(tool_calls), **message},
            }
        ],
    }


def asked(call_id="c1", name="ext_search", arguments='{"query": "x"}'):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


CALL = ToolCall("c1", "ext.search", '{"query": "x"}')


def test_definitions_are_what_the_sdk_takes(toolset):
    shown = openai_chat.tools(toolset)
    TypeAdapter(list[ChatCompletionToolParam]).validate_python(shown)
    assert shown == [
        {
            "type": "function",
            "function": {
                "name": "ext_search",
                "description": "Search.",
                "parameters": toolset["ext.search"].input_schema,
            },
        }
    ]
    assert shown[0]["function"]["parameters"] is toolset["ext.search"].input_schema


def test_calls_are_read_from_every_shape_of_a_reply(toolset):
    reply = completion(asked())
    typed = ChatCompletion.model_validate(reply)
    shapes = [
        reply,
        typed,
        reply["choices"][0]["message"],
        typed.choices[0].message,
        [asked()],
        typed.choices[0].message.tool_calls,
    ]
    assert [openai_chat.calls(shape, toolset) for shape in shapes] == [[CALL]] * len(shapes)


def test_a_reply_without_calls_has_none(toolset):
    message = {"role": "assistant", "content": "hi"}
    for reply in (message, ChatCompletionMessage.model_validate(message), completion(tool_calls=None), {"choices": []}):
        assert openai_chat.calls(reply, toolset) == []


def test_only_the_first_choice_counts(toolset):
    reply = completion(asked())
    reply["choices"].append(completion(asked("c2"))["choices"][0])
    assert [call.id for call in openai_chat.calls(reply, toolset)] == ["c1"]


def test_custom_tool_calls_are_left_alone(toolset):
    custom = {"id": "c9", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    for reply in (completion(custom, asked()), ChatCompletion.model_validate(completion(custom, asked()))):
        assert openai_chat.calls(reply, toolset) == [CALL]


def test_calls_without_an_id_get_one_that_is_unique_in_the_reply(toolset):
    reply = [asked(""), asked("call_1"), asked(None), asked("call_3")]
    assert [call.id for call in openai_chat.calls(reply, toolset)] == ["call_2", "call_1", "call_4", "call_3"]


def test_two_calls_with_one_id_are_both_kept(toolset):
    assert [call.id for call in openai_chat.calls([asked(), asked()], toolset)] == ["c1", "c1"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"query": "x"}, {"query": "x"}),
        (None, "{}"),
        ("", "{}"),
        ("  \n", "{}"),
        ('{"query": ', '{"query": '),
        ('{"query":"a","query":"b"}', '{"query":"a","query":"b"}'),
        ([1], "[1]"),
        (7, "7"),
    ],
)
def test_arguments_of_any_kind_reach_the_reader(toolset, arguments, expected):
    (call,) = openai_chat.calls([asked(arguments=arguments)], toolset)
    assert call.arguments == expected


def test_a_call_without_a_name_is_still_a_call_to_answer(toolset):
    (call,) = openai_chat.calls([{"id": "c1", "function": {}}], toolset)
    assert call == ToolCall("c1", "", "{}")


def test_answers_are_what_the_sdk_takes(toolset):
    results = call_tools(openai_chat.calls(completion(asked(), asked("c2", "nope")), toolset), toolset)
    messages = openai_chat.results(results)
    TypeAdapter(list[ChatCompletionToolMessageParam]).validate_python(messages)
    assert messages[0] == {"role": "tool", "tool_call_id": "c1", "content": "x 5 None"}
    assert messages[1]["tool_call_id"] == "c2"
    assert messages[1]["content"].startswith("Tool 'nope' not found.")


def test_images_are_named_in_the_text_alone():
    answer = ToolResult(CALL, text="[image/png, 2 bytes]", parts=(PNG,))
    assert openai_chat.results([answer]) == [{"role": "tool", "tool_call_id": "c1", "content": "[image/png, 2 bytes]"}]


# -- strict


def test_a_strict_tool_is_sent_strict_and_a_null_becomes_the_default_again():
    toolset = Toolset([Tool(search, strict=True)])
    (shown,) = openai_chat.tools(toolset)
    assert shown["function"]["strict"] is True
    assert shown["function"]["parameters"] == {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": ["integer", "null"]},
            "unit": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["query", "limit", "unit"],
        "additionalProperties": False,
    }
    for arguments in ('{"query": "x", "limit": null, "unit": null}', {"query": "x", "limit": None, "unit": None}):
        calls = openai_chat.calls([asked(name="search", arguments=arguments)], toolset)
        assert [result.text for result in call_tools(calls, toolset)] == ["x 5 None"]


def test_a_null_does_not_hide_a_key_that_stands_there_twice():
    toolset = Toolset([Tool(search, strict=True)])
    raw = '{"query": "a", "query": "b", "limit": null}'
    calls = openai_chat.calls([asked(name="search", arguments=raw)], toolset)
    assert calls[0].arguments == raw
    assert call_tools(calls, toolset)[0].kind == "invalid_arguments"


def test_a_tool_that_cannot_be_strict_falls_back_alone_with_one_warning():
    toolset = Toolset([Tool(search, strict=True), Tool(anything, strict=True)])
    with pytest.warns(ToolcribWarning) as warned:
        shown = openai_chat.tools(toolset)
    assert openai_chat.tools(toolset) is shown
    assert ["strict" in one["function"] for one in shown] == [True, False]
    assert [str(one.message) for one in warned] == [
        "OpenAI is shown the tool 'anything' without strict mode: value takes any key"
    ]


def test_a_null_to_a_tool_that_is_not_strict_is_left_for_the_reader(toolset):
    raw = '{"query": "x", "limit": null}'
    assert openai_chat.calls([asked(arguments=raw)], toolset)[0].arguments == raw


def test_a_select_shares_what_was_rendered_before():
    toolset = Toolset([Tool(search, strict=True)])
    first = openai_chat.tools(toolset)[0]["function"]["parameters"]
    assert openai_chat.tools(toolset.select(include=["search"]))[0]["function"]["parameters"] is first


def test_definitions_of_a_model_with_nested_objects_are_closed_everywhere():
    schema = {
        "type": "object",
        "properties": {"rows": {"type": "array", "items": {"$ref": "#/$defs/Row"}}},
        "required": ["rows"],
        "$defs": {"Row": {"type": "object", "properties": {"a": {"type": "integer", "default": 1}}}},
    }
    toolset = Toolset([Tool.from_schema("f", "", schema, lambda **given: given, strict=True)])
    assert json.dumps(openai_chat.tools(toolset)).count('"additionalProperties": false') == 2
    (call,) = openai_chat.calls([asked(name="f", arguments='{"rows": [{"a": null}]}')], toolset)
    assert call.arguments == '{"rows": [{}]}'
