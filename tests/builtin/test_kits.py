"""What holds for every tool that comes with toolcrib."""

from __future__ import annotations

import subprocess
import sys

import pytest

from toolcrib import Tool, ToolCall, Toolset, builtin, call_tools
from toolcrib.formats import FORMATS

EVERYTHING = Toolset([builtin.ALL_TOOLS, builtin.docs, builtin.file_tools(writable=True)])


@pytest.mark.parametrize("tool", EVERYTHING, ids=lambda tool: tool.name)
def test_a_builtin_tool_is_an_example_of_a_good_one(tool: Tool):
    assert tool.description
    assert tool.description.endswith(".")
    assert tool.effect is not None
    for name, schema in tool.input_schema["properties"].items():
        assert schema.get("description"), f"{tool.name} does not say what {name} is"
        text = schema.get("type") == "string" and name not in {"text", "old", "new"}
        assert not text or "maxLength" in schema, f"{name} of {tool.name} has no bound"
        assert schema.get("type") != "integer" or "minimum" in schema, f"{name} of {tool.name} has no bound"


@pytest.mark.parametrize("name", builtin.__all__)
def test_every_name_of_the_room_is_there(name):
    assert getattr(builtin, name) is not None
    assert name in dir(builtin)


def test_all_tools_only_read_and_are_the_kits_without_a_place():
    tools = Toolset(builtin.ALL_TOOLS)
    assert {tool.effect for tool in tools} == {"read"}
    assert not {"read_file", "list_files"} & set(tools.names)


def test_a_kit_is_a_list_and_can_be_added_to_another():
    assert len(Toolset(builtin.math + builtin.time)) == len(builtin.math) + len(builtin.time)


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'maths'"):
        builtin.maths  # noqa: B018  reading it is what is tested


def test_importing_the_room_loads_no_kit_and_a_kit_loads_no_optional_package():
    code = (
        "import sys; from toolcrib import builtin; light = set(sys.modules)\n"
        "assert not {name for name in light if name.startswith('toolcrib.builtin.')}, light\n"
        "from toolcrib import Toolset; Toolset([builtin.ALL_TOOLS, builtin.files])\n"
        "print(*{'simpleeval', 'trafilatura', 'ddgs', 'pypdf', 'markitdown', 'duckdb', 'httpx2'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("form", FORMATS)
def test_every_provider_is_shown_every_builtin_tool(form):
    shown = str(FORMATS[form].tools(EVERYTHING))
    assert [tool.name for tool in EVERYTHING if tool.name not in shown] == []


@pytest.mark.parametrize("tool", EVERYTHING, ids=lambda tool: tool.name)
def test_what_fits_no_parameter_is_told_and_never_raised(tool: Tool):
    wrong = {name: {"not": ["what", "is", "wanted"]} for name in tool.input_schema["properties"]}
    (result,) = call_tools([ToolCall("1", tool.name, {**wrong, "more": None})], EVERYTHING)
    assert result.kind == "invalid_arguments"
    assert "more: not a parameter" in result.text
