"""What every format does, whichever provider it speaks to."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from toolcrib.errors import ToolcribWarning
from toolcrib.formats import FORMATS
from toolcrib.protocols import Format
from toolcrib.tools import Tool
from toolcrib.toolset import Toolset
from toolcrib.types import ToolCall, ToolResponse, ToolResult


def weather(city: str, days: int = 1) -> str:
    """Tell the weather.

    Args:
        city: Where.
        days: How far ahead.
    """
    return f"{city}: sun for {days} days"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


IMPOSSIBLE = Tool.from_schema("impossible", "", {"type": "object", "anyOf": [{"type": "string"}]})


@pytest.fixture(params=FORMATS)
def fmt(request) -> Format:
    return FORMATS[request.param]


@pytest.fixture
def toolset() -> Toolset:
    return Toolset([weather, add])


def result(text="ok", kind="ok", call_id="c1", name="add", **members):
    return ToolResult(ToolCall(call_id, name), kind=kind, text=text, **members)


def test_formats_are_found_by_name():
    assert {name: module.__name__.rpartition(".")[2] for name, module in FORMATS.items()} == {
        name: name for name in FORMATS
    }


def test_definitions_are_the_same_object_each_time(fmt, toolset):
    assert fmt.tools(toolset) is fmt.tools(toolset)


def test_definitions_keep_the_order_of_the_tools(fmt, toolset):
    text = json.dumps(fmt.tools(toolset))
    assert text.index("weather") < text.index("add")


SHOW_ALL = """
from pydantic_core import to_json
from toolcrib.formats import FORMATS
from toolcrib.tools import Tool
from toolcrib.toolset import Toolset
schema = {"type": "object", "properties": {"a b": {"enum": ["x"]}, "a/b": {"type": "integer"}}, "required": ["a b"]}
names = [f"tool {mark}" for mark in ".:/_-"]
toolset = Toolset([Tool.from_schema(name, "d", schema, strict=True) for name in names])
print(to_json([form.tools(toolset) for form in FORMATS.values()]).decode())
"""


def test_definitions_are_the_same_bytes_in_every_process():
    shown = {
        subprocess.run(
            [sys.executable, "-c", SHOW_ALL],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(shown) == 1


def test_definitions_are_json_and_leave_the_tools_unchanged(fmt, toolset):
    before = json.dumps([tool.input_schema for tool in toolset])
    json.dumps(fmt.tools(toolset))
    assert json.dumps([tool.input_schema for tool in toolset]) == before


def test_an_empty_toolset_has_no_definitions(fmt):
    assert not fmt.tools(Toolset())


def test_refreshed_tools_are_shown_anew(fmt):
    source = [weather]
    toolset = Toolset([source])
    assert "add" not in json.dumps(fmt.tools(toolset))
    source.append(add)
    toolset.refresh()
    assert '"add' in json.dumps(fmt.tools(toolset)).replace('\\"', '"')


def test_no_results_are_no_messages(fmt):
    assert fmt.results([]) == []


def test_results_keep_their_order_and_are_json(fmt):
    text = json.dumps(fmt.results([result("first"), result("second", "failed", "c2")]))
    assert text.index("first") < text.index("second")


def test_an_empty_text_is_an_answer_too(fmt):
    assert json.dumps(fmt.results([result("")]))


@pytest.mark.parametrize("reply", [None, 7, 1.5, object(), b"{}"])
def test_what_is_no_reply_is_refused_by_name(fmt, toolset, reply):
    with pytest.raises(TypeError, match=f"not {type(reply).__name__}"):
        fmt.calls(reply, toolset)


@pytest.mark.parametrize("format_name", [name for name in FORMATS if name != "xml"])
def test_a_dict_without_calls_has_no_calls(format_name, toolset):
    assert FORMATS[format_name].calls({}, toolset) == []
    with pytest.raises(TypeError):
        FORMATS[format_name].calls("text", toolset)


@pytest.mark.parametrize("format_name", ["openai_chat", "openai_responses", "anthropic", "gemini"])
def test_junk_in_a_list_is_no_call(format_name, toolset):
    assert FORMATS[format_name].calls([], toolset) == []
    assert FORMATS[format_name].calls([None, 7, "x", {}, [], {"type": "text", "text": "hi"}], toolset) == []


@pytest.mark.parametrize("format_name", ["openai_chat", "openai_responses", "anthropic"])
def test_a_tool_that_cannot_be_expressed_is_left_out_with_a_warning(format_name):
    toolset = Toolset([IMPOSSIBLE, add])
    with pytest.warns(ToolcribWarning, match=r"not shown the tool 'impossible': the root of its schema is not one"):
        shown = FORMATS[format_name].tools(toolset)
    assert len(shown) == 1
    assert '"add"' in json.dumps(shown)


@pytest.mark.parametrize(
    "broken",
    [{"type": "any"}, {"type": "string", "pattern": "("}, {"$ref": "#/$defs/No"}, {"$ref": "https://x.test/y"}],
)
def test_what_is_no_json_schema_is_left_out_of_every_request_with_a_warning(broken):
    broken_tool = Tool.from_schema("broken", "", {"type": "object", "properties": {"a": broken}})
    toolset = Toolset([broken_tool, add])
    for name in FORMATS.keys() - {"xml"}:
        with pytest.warns(ToolcribWarning, match="not shown the tool 'broken': not a usable JSON Schema"):
            shown = json.dumps(FORMATS[name].tools(toolset))
        assert '"add"' in shown
        assert "broken" not in shown


@pytest.mark.filterwarnings("ignore::toolcrib.errors.ToolcribWarning")
@pytest.mark.parametrize("strict", [False, True])
def test_a_deeply_nested_schema_sinks_no_request(fmt, strict):
    schema = {"type": "string"}
    for _ in range(140):
        schema = {"type": "object", "properties": {"a b": schema}}
    toolset = Toolset([Tool.from_schema("deep", "", schema, strict=strict), add])
    assert "'add'" in str(fmt.tools(toolset)).replace('"', "'")


def test_a_failure_says_so_in_the_provider_s_own_way():
    failed = result("no luck", "failed")
    shown = {name: json.dumps(fmt.results([failed])[0]) for name, fmt in FORMATS.items()}
    assert '"is_error": true' in shown["anthropic"]
    assert '"isError": true' in shown["mcp"]
    assert '"error": "no luck"' in shown["gemini"]
    assert 'success=\\"False\\"' in shown["xml"]
    assert "no luck" in shown["openai_chat"]
    assert "no luck" in shown["openai_responses"]


def test_a_tool_response_of_the_author_is_answered_in_every_format(fmt):
    response = ToolResponse(success=False, message="no such order", data={"id": 7})
    text = '{"success":false,"message":"no such order","data":{"id":7}}'
    answer = result(text, "failed", value=response, response=response)
    assert "no such order" in json.dumps(fmt.results([answer]))
