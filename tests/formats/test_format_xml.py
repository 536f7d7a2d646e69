from __future__ import annotations

import json
from time import process_time
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.dispatch import call_tools
from toolcrib.formats import xml
from toolcrib.formats._prose import calls_in
from toolcrib.tools import Tool
from toolcrib.toolset import Toolset
from toolcrib.types import ToolCall, ToolResponse, ToolResult


def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


def order(order_id: str) -> ToolResponse:
    """Find an order."""
    if order_id == "7":
        return ToolResponse(success=True, data={"id": 7})
    return ToolResponse(success=False, message="Order not found.", data={"attempted_id": order_id})


TOOLS = Toolset([add, order, Tool(add, name="fs.read <all>")])


def read(text):
    return [(call.name, call.arguments) for call in xml.calls(text, TOOLS)]


# -- showing


def test_the_block_says_how_to_call_and_shows_every_tool():
    block = xml.tools(TOOLS)
    shown, end, how = block[block.index("<tools>") :].partition("</tools>")
    assert '<tool_call>{"name": ' in how
    tools = ET.fromstring(shown + end)  # noqa: S314  # our own text
    assert [tool.get("name") for tool in tools] == ["add", "order", "fs.read <all>"]
    for tool in TOOLS:
        assert tool.build_prompt() in block


# -- reading calls

ONE = [("add", '{"a": 1}')]
CALL = '{"name": "add", "arguments": {"a": 1}}'

READ = {
    "a tag": (f"<tool_call>{CALL}</tool_call>", ONE),
    "a tag on lines of its own": (f"Sure.\n<tool_call>\n{CALL}\n</tool_call>\n", ONE),
    "a tag within a sentence": (f"I will call <tool_call>{CALL}</tool_call> now.", ONE),
    "a last tag that is not closed": (f"<tool_call>\n{CALL}", ONE),
    "several tags": (f"<tool_call>{CALL}</tool_call><tool_call>{CALL}</tool_call>", ONE * 2),
    "several objects in a tag": (f"<tool_call>{CALL}\n{CALL}</tool_call>", ONE * 2),
    "a list in a tag": (f"<tool_call>[{CALL}, {CALL}]</tool_call>", ONE * 2),
    "a code block in a tag": (f"<tool_call>\n```json\n{CALL}\n```\n</tool_call>", ONE),
    "a tag in a code block of XML": (f"```xml\n<tool_call>{CALL}</tool_call>\n```\n{CALL}", ONE * 2),
    "other spellings": ('<tool_call>{"tool": "add", "parameters": {"a": 1}}</tool_call>', ONE),
    "and another": ('<tool_call>{"name": "add", "args": {"a": 1}}</tool_call>', ONE),
    "OpenAI's spelling": ('{"type": "function", "function": {"name": "add", "arguments": "{\\"a\\": 1}"}}', ONE),
    "arguments as text": ('<tool_call>{"name": "add", "arguments": "{\\"a\\": 1}"}</tool_call>', ONE),
    "a name in the tag": ('<tool_call name="add">{"a": 1}</tool_call>', ONE),
    "a name in the tag and in the object": (f"<tool_call name='add'>{CALL}</tool_call>", ONE),
    "a name in the tag alone": ('<tool_call name="add"></tool_call>', [("add", "{}")]),
    "no arguments": ('<tool_call>{"name": "add"}</tool_call>', [("add", "{}")]),
    "null for no arguments": ('<tool_call>{"name": "add", "arguments": null}</tool_call>', [("add", "{}")]),
    "an unknown name in a tag": ('<tool_call>{"name": "nope", "arguments": {}}</tool_call>', [("nope", "{}")]),
    "a name written as XML": ('<tool_call>{"name": "fs.read &lt;all&gt;"}</tool_call>', [("fs.read <all>", "{}")]),
    "the end of the tag within an argument": (
        '<tool_call>{"name": "add", "arguments": {"a": "</tool_call>"}}</tool_call>',
        [("add", '{"a": "</tool_call>"}')],
    ),
    "a JSON code block": (f"Sure:\n```json\n{CALL}\n```\nDone.", ONE),
    "a code block without a language": (f"```\n{CALL}\n{CALL}\n```", ONE * 2),
    "a code block on one line": (f"```json {CALL}```\n{CALL}", ONE * 2),
    "a code block that is not closed": (f"```json\n{CALL}", ONE),
    "fences within an argument": (
        '```json\n{"name": "add", "arguments": {"a": "```\\n```python\\n"}}\n```\n',
        [("add", '{"a": "```\\n```python\\n"}')],
    ),
    "a bare object": (CALL, ONE),
    "a bare object after prose": (f"I will add.\n\n{CALL}\n", ONE),
    "bare objects in a row": (f"{CALL}\n{CALL}; {CALL}\r\n", ONE * 3),
    "a bare list": (f"[{CALL},\n {CALL}]", ONE * 2),
    "a bare object over several lines": (
        '{\n  "name": "add",\n  "arguments": {\n    "a": 1\n  }\n}',
        [("add", '{\n    "a": 1\n  }')],
    ),
    "after a thought": (f"<think>\n{CALL}\n<tool_call>{CALL}</tool_call></think>\n{CALL}", ONE),
    "after a thought whose beginning the template wrote": (f"maybe\n{CALL}\n</think>\n{CALL}", ONE),
    "the end of a thought within an argument": (
        '<tool_call>{"name": "add", "arguments": {"a": "</think>"}}</tool_call>',
        [("add", '{"a": "</think>"}')],
    ),
    "duplicate keys, left for the reader to refuse": (
        '<tool_call>{"name": "add", "arguments": {"a": 1, "a": 2}}</tool_call>',
        [("add", '{"a": 1, "a": 2}')],
    ),
    "a broken argument, left for the reader to refuse": (
        '<tool_call>{"name": "add", "arguments": {"a": 1,}}</tool_call>',
        [("add", '{"a": 1,}')],
    ),
    "a broken object, left for the reader to refuse": (
        '<tool_call>{"name": "add", "arguments": {"a": 1}</tool_call> and so on',
        [("add", '{"name": "add", "arguments": {"a": 1}')],
    ),
    "a broken object with a name in its tag": ('<tool_call name="add">{"a": 1</tool_call>', [("add", '{"a": 1')]),
    "a broken object before a good one": (
        f'<tool_call>{{"name": "add", "arguments": {{"a": 1\n<tool_call>{CALL}</tool_call>',
        [("add", '{"name": "add", "arguments": {"a": 1'), *ONE],
    ),
}

NOT_CALLS = {
    "prose": "I could use add or order here.",
    "a mention of the tag": "Write <tool_call> and </tool_call> around it.",
    "a quoted tag": f"Write `<tool_call>{CALL}</tool_call>` to call.",
    "JSON within a sentence": f"To add, send {CALL} to me.",
    "JSON that a sentence goes on from": f"{CALL} is what you would send.",
    "another language": f"```python\n{CALL}\n<tool_call>{CALL}</tool_call>\n```",
    "another language that is not closed": f"```python\n{CALL}",
    "an unknown name": '{"name": "nope", "arguments": {}}',
    "other data": '{"name": "add", "age": 5}',
    "a definition": '{"name": "add", "description": "Adds.", "parameters": {"type": "object"}}',
    "a call within other data": f'{{\n "examples": [\n{CALL}\n]\n}}',
    "a list of other data": f"[1,\n{CALL}\n]",
    "broken JSON by itself": '{"name": "add", "arguments": {',
    "a thought": f"<think>{CALL}\n{CALL}\n</think> Done.",
    "a thought without end": f"<think>hm\n{CALL}",
    "a tag without a name": '<tool_call>{"arguments": {}}</tool_call>',
    "a tag with a number for a name": '<tool_call>{"name": 7}</tool_call>',
    "nothing": "",
}  # fmt: skip


@pytest.mark.parametrize("case", READ)
def test_calls_are_read_from(case):
    text, expected = READ[case]
    assert read(text) == expected


@pytest.mark.parametrize("case", NOT_CALLS)
def test_no_call_is_read_from(case):
    assert read(NOT_CALLS[case]) == []


def test_calls_are_numbered_in_their_order():
    calls = xml.calls(f"{CALL}\n{CALL}", TOOLS)
    assert calls == [ToolCall("call_1", "add", '{"a": 1}'), ToolCall("call_2", "add", '{"a": 1}')]


def test_a_call_goes_all_the_way_and_back():
    text = (
        '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'
        '<tool_call>{"name": "order", "arguments": {"order_id": "9"}}</tool_call>'
        '<tool_call>{"name": "ad", "arguments": {}}</tool_call>'
        '<tool_call>{"name": "add", "arguments": {"a": 1,}}</tool_call>'
    )
    answers = xml.results(call_tools(xml.calls(text, TOOLS), TOOLS))
    assert answers[0] == '<tool_response success="True">\n  <data>3</data>\n</tool_response>'
    assert answers[1] == (
        '<tool_response success="False">\n'
        "  <message>Order not found.</message>\n"
        '  <data>{"attempted_id":"9"}</data>\n'
        "</tool_response>"
    )
    assert "not found. Did you mean 'add'" in answers[2]
    assert 'success="False"' in answers[3]


# -- hostile text

HOSTILE = (
    *("{", "[", "{\n", "[\n", "<tool_call>", "<tool_call>{", "<tool_call>[", '<tool_call>{"name":"', '<tool_call>["'),
    *("```json\n", "```\n", "```x\n", '"', "\\", "<think>", "</think>", "<tool_call ", " ", "\n", "`", '{"a":\n'),
    *(
        '<tool_call>{"a":1,',
        '{"a":[\n',
        '[{"a":1},\n',
        '<tool_call name="add">',
        '<tool_call>{"name":"add"',
        '{"a":"\n',
    ),
    *('<tool_call>{"a":"b",', "[{},\n", '```json\n{"a":"', '{"function":', '<tool_call>{"function":', "<tool_call>x`"),
)


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_takes_time_proportional_to_its_length(piece):
    def seconds(characters):
        text = piece * (characters // len(piece))
        start = process_time()
        xml.calls(text, TOOLS)
        return process_time() - start

    seconds(10_000)
    # sixteen times the text: anything quadratic would take 256 times as long
    assert seconds(320_000) < 60 * max(seconds(20_000), 0.005)


@given(
    st.text() | st.lists(st.sampled_from([*HOSTILE, CALL, "</tool_call>", "}", "]", ":", ",", "\\", "a"])).map("".join)
)
def test_no_text_makes_it_raise(text):
    for call in xml.calls(text, TOOLS):
        assert isinstance(call.name, str)
        assert isinstance(call.arguments, str)


names = st.sampled_from(TOOLS.names) | st.text(min_size=1)
arguments = st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text()))


@given(st.lists(st.tuples(names, arguments), max_size=4), st.text("abc \n.!"))
def test_tagged_calls_come_back_whatever_they_say(calls, prose):
    written = [json.dumps({"name": name, "arguments": given_arguments}) for name, given_arguments in calls]
    text = prose + f"\n{prose}\n".join(f"<tool_call>{one}</tool_call>" for one in written)
    found = calls_in(text, lambda name: name in TOOLS)
    assert [(call.name, json.loads(call.arguments)) for call in found] == [(n, a) for n, a in calls]


# -- answering


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (ToolResult(ToolCall("1", "f"), text="hi", value="hi"), '<data>"hi"</data>'),
        (ToolResult(ToolCall("1", "f"), text="null"), '<tool_response success="True">\n</tool_response>'),
        (ToolResult(ToolCall("1", "f"), text="hi"), '<data>"hi"</data>'),
        (ToolResult(ToolCall("1", "f"), text="<seen>", value=object()), '<data>"&lt;seen&gt;"</data>'),
        (ToolResult(ToolCall("1", "f"), kind="failed", text=""), "<message>failed</message>"),
        (
            ToolResult(ToolCall("1", "f"), text="t", response=ToolResponse(success=True, data={"a": object()})),
            '<data>"t"</data>',
        ),
        (ToolResult(ToolCall("1", "f"), text="short", value={"a": "x" * 1_000_000}), '<data>"short"</data>'),
        (
            ToolResult(ToolCall("1", "f"), text="t", response=ToolResponse(success=True, message="a\U000e0041b")),
            "<message>ab</message>",
        ),
    ],
)
def test_an_answer_says_what_the_text_says(result, expected):
    (answer,) = xml.results([result])
    assert expected in answer
    ET.fromstring(answer)  # noqa: S314  # our own text


@given(st.text(), st.sampled_from(["ok", "failed"]))
def test_every_answer_can_be_parsed(text, kind):
    (answer,) = xml.results([ToolResult(ToolCall("1", "f"), kind=kind, text=text, value=text)])
    assert ET.fromstring(answer).get("success") == str(kind == "ok")  # noqa: S314  # our own text
