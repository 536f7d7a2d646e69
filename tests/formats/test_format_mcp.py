from __future__ import annotations

from dataclasses import dataclass

import pytest

from toolcrib.dispatch import call_tools
from toolcrib.formats import mcp
from toolcrib.tools import Tool
from toolcrib.toolset import Toolset
from toolcrib.types import Envelope, ToolCall, ToolResponse, ToolResult

PNG = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
CALL = ToolCall("7", "fs.read", {"path": "x"})


def read(path: str) -> dict:
    """Read a file."""
    return {"path": path}


@dataclass
class Stat:
    size: int


class Params:
    """As the SDK's own CallToolRequestParams."""

    def __init__(self, name, arguments):
        self.name = name
        self.arguments = arguments


class Request:
    """As the SDK's own CallToolRequest."""

    method = "tools/call"

    def __init__(self, params):
        self.params = params


TOOLS = Toolset([Tool(read, name="fs.read", effect="read")])


def test_definitions_are_the_protocol_s_own():
    assert mcp.tools(TOOLS) == [
        {
            "name": "fs.read",
            "description": "Read a file.",
            "inputSchema": TOOLS["fs.read"].input_schema,
            "annotations": {"readOnlyHint": True},
        }
    ]


def test_an_output_schema_is_shown_when_it_is_of_an_object():
    output = {"type": "object", "properties": {"size": {"type": "integer"}}}
    tool = TOOLS["fs.read"].replace(output_schema=output)
    assert mcp.tools(Toolset([tool]))[0]["outputSchema"] == output
    assert "outputSchema" not in mcp.tools(Toolset([tool.replace(output_schema={"type": "array"})]))[0]


@pytest.mark.parametrize(
    ("effect", "annotations"),
    [
        ("read", {"readOnlyHint": True}),
        ("idempotent", {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True}),
        ("write", {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False}),
        ("destructive", {"readOnlyHint": False, "destructiveHint": True}),
        (None, None),
    ],
)
def test_the_effect_of_a_tool_is_told_as_annotations(effect, annotations):
    (shown,) = mcp.tools(Toolset([Tool(read, effect=effect)]))
    assert shown.get("annotations") == annotations


def test_a_call_is_read_from_every_shape_of_a_request():
    params = {"name": "fs.read", "arguments": {"path": "x"}}
    request = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    assert mcp.calls(request, TOOLS) == [CALL]
    for shape in (params, {"params": params}, Params(**params), Request(Params(**params))):
        assert mcp.calls(shape, TOOLS) == [ToolCall("call_1", "fs.read", {"path": "x"})]


def test_a_call_without_arguments_has_none():
    assert mcp.calls({"name": "fs.read", "arguments": None}, TOOLS)[0].arguments == "{}"


def test_a_request_of_another_method_is_no_call():
    assert mcp.calls({"method": "tools/list", "params": {}}, TOOLS) == []
    assert mcp.calls({"method": "prompts/get", "params": {"name": "fs.read"}}, TOOLS) == []


def test_an_answer_is_text_and_the_object_itself():
    assert mcp.results(call_tools([CALL], TOOLS)) == [
        {"content": [{"type": "text", "text": '{"path":"x"}'}], "isError": False, "structuredContent": {"path": "x"}}
    ]


def test_an_answer_carries_its_parts():
    (answer,) = mcp.results([ToolResult(CALL, text="[image/png, 2 bytes]", parts=(PNG,))])
    assert answer == {"content": [{"type": "text", "text": "[image/png, 2 bytes]"}, PNG], "isError": False}


def test_an_empty_answer_has_an_empty_text():
    assert mcp.results([ToolResult(CALL)]) == [{"content": [{"type": "text", "text": ""}], "isError": False}]


def test_a_failure_is_an_error_without_structure():
    (answer,) = mcp.results([ToolResult(CALL, kind="failed", text="no", value={"a": 1})])
    assert answer == {"content": [{"type": "text", "text": "no"}], "isError": True}


@pytest.mark.parametrize(
    ("value", "structured"),
    [
        ({"a": 1}, {"a": 1}),
        (Stat(3), {"size": 3}),
        ({1: "a"}, {"1": "a"}),
        ("text", None),
        ('{"a": 1}', None),
        ([1], None),
        (7, None),
        (None, None),
        ({"a": object()}, None),
        ({"a": float("nan")}, None),
        ({"a": "x" * 6_000_000}, None),
        (Stat, None),
        (ToolResponse(success=True, data={"a": 1}), None),
        (Envelope({"a": 1}), None),
    ],
)
def test_only_a_json_object_of_bounded_size_is_structured_content(value, structured):
    (answer,) = mcp.results([ToolResult(CALL, text="x", value=value)])
    assert answer.get("structuredContent") == structured
