"""The XML that parameters, tools and responses are shown as."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.errors import NotSerializableError
from toolcrib.tools import Tool
from toolcrib.types import ToolParameter, ToolResponse

HOSTILE = "a < b && \"c\" > 'd' ]]> <!-- --> &amp; \r\n\t é 😀 </description>"


def parsed(text):
    return ET.fromstring(text)  # noqa: S314  # our own text


# -- parameters


def test_a_parameter_shows_only_what_is_set():
    assert ToolParameter("n", "int").build_prompt() == '<parameter name="n" type="int" required="False">\n</parameter>'


def test_a_parameter_shows_its_facts_in_their_order():
    parameter = ToolParameter(
        name="order_id",
        type="str",
        description="The customer's order number.",
        default="A1",
        required=True,
        options=["A1", "B2"],
        examples=["A1", "B2"],
        source="history",
        display_name="Order number",
    )
    assert parameter.build_prompt() == (
        '<parameter name="order_id" type="str" required="True">\n'
        "  <description>The customer's order number.</description>\n"
        "  <default>A1</default>\n"
        '  <options>["A1","B2"]</options>\n'
        "  <source>history</source>\n"
        "  <display_name>Order number</display_name>\n"
        "  <examples>\n"
        "    <example>A1</example>\n"
        "    <example>B2</example>\n"
        "  </examples>\n"
        "</parameter>"
    )


@pytest.mark.parametrize(
    ("default", "shown"),
    [(0, "0"), (False, "false"), ([], "[]"), ({}, "{}"), ("", None), (1.5, "1.5"), ({"a": [None]}, '{"a":[null]}')],
)
def test_a_default_that_is_empty_is_shown(default, shown):
    element = parsed(ToolParameter("n", default=default).build_prompt())
    assert element.find("default").text == shown


def test_no_default_is_no_element():
    assert parsed(ToolParameter("n", default=None).build_prompt()).find("default") is None


def test_an_unknown_source_is_refused():
    with pytest.raises(ValueError, match="context, history or all, not 'everywhere'"):
        ToolParameter("n", source="everywhere")


def test_a_parameter_as_plain_data_is_json():
    parameter = ToolParameter("n", "int", "Number.", default=1, options=[1, 2], examples=[1], display_name="N")
    assert json.loads(json.dumps(parameter.to_dict())) == {
        "name": "n",
        "type": "int",
        "description": "Number.",
        "default": 1,
        "required": False,
        "options": [1, 2],
        "examples": [1],
        "source": "all",
        "display_name": "N",
    }


@pytest.mark.parametrize(
    ("members", "path"),
    [
        ({"default": object()}, "default"),
        ({"default": {"a": [1, {2}]}}, r"default\.a\[1\]"),
        ({"options": [1, float("nan")]}, r"options\[1\]"),
        ({"examples": [{"x": b"1"}]}, r"examples\[0\]\.x"),
        ({"default": "\ud800"}, "default"),
    ],
)
def test_what_is_no_json_is_refused_with_its_path(members, path):
    with pytest.raises(NotSerializableError, match=f"^{path}: "):
        ToolParameter("n", **members).to_dict()


# -- tools


def test_a_tool_shows_its_description_and_its_parameters():
    def find_order(order_id: str, limit: int = 5) -> str:
        """Find an order.

        Args:
            order_id: Its number.
            limit: How many.
        """
        return order_id

    assert Tool(find_order).build_prompt() == (
        '<tool name="find_order">\n'
        "  <description>Find an order.</description>\n"
        '  <parameter name="order_id" type="str" required="True">\n'
        "    <description>Its number.</description>\n"
        "  </parameter>\n"
        '  <parameter name="limit" type="int" required="False">\n'
        "    <description>How many.</description>\n"
        "    <default>5</default>\n"
        "  </parameter>\n"
        "</tool>"
    )


# -- responses


@pytest.mark.parametrize(
    ("response", "shown"),
    [
        (
            ToolResponse(success=True, data={"id": 7, "items": ["a"]}),
            '<tool_response success="True">\n  <data>{"id":7,"items":["a"]}</data>\n</tool_response>',
        ),
        (
            ToolResponse(success=False, message="Order not found.", data={"attempted_id": "9"}),
            (
                '<tool_response success="False">\n'
                "  <message>Order not found.</message>\n"
                '  <data>{"attempted_id":"9"}</data>\n'
                "</tool_response>"
            ),
        ),
        (ToolResponse(success=True), '<tool_response success="True">\n</tool_response>'),
        (ToolResponse(success=True, data=0), '<tool_response success="True">\n  <data>0</data>\n</tool_response>'),
        (ToolResponse(success=True, data=[]), '<tool_response success="True">\n  <data>[]</data>\n</tool_response>'),
        (ToolResponse(success=True, data={}), '<tool_response success="True">\n  <data>{}</data>\n</tool_response>'),
        (
            ToolResponse(success=True, data=False),
            '<tool_response success="True">\n  <data>false</data>\n</tool_response>',
        ),
    ],
)
def test_a_response_shows_its_message_and_its_data(response, shown):
    assert response.build_prompt() == shown


def test_a_failure_needs_a_message():
    with pytest.raises(ValueError, match="needs a message"):
        ToolResponse(success=False)


def test_a_response_as_plain_data_is_json():
    response = ToolResponse(success=True, message="done", data=[1])
    assert response.to_dict() == {"success": True, "message": "done", "data": [1]}


@pytest.mark.parametrize("show", [ToolResponse.build_prompt, ToolResponse.to_dict])
def test_data_that_is_no_json_is_refused_with_its_path(show):
    with pytest.raises(NotSerializableError, match=r"^data\.rows\[1\]\.conn: "):
        show(ToolResponse(success=True, data={"rows": [{}, {"conn": object()}]}))


# -- any text at all


def test_hostile_text_comes_back_from_a_parser():
    parameter = parsed(ToolParameter(HOSTILE, HOSTILE, HOSTILE, default=HOSTILE, examples=[HOSTILE]).build_prompt())
    assert parameter.get("name") == parameter.get("type") == HOSTILE
    assert parameter.find("description").text == parameter.find("default").text == HOSTILE
    assert parameter.find("examples/example").text == HOSTILE
    response = parsed(ToolResponse(success=True, message=HOSTILE, data=HOSTILE).build_prompt())
    assert response.find("message").text == HOSTILE
    assert json.loads(response.find("data").text) == HOSTILE


@pytest.mark.parametrize("character", ["\x00", "\x08", "\x0b", "\x1b", "\ud800", "\ufffe", "\uffff"])
def test_what_xml_cannot_carry_is_replaced(character):
    parameter = parsed(ToolParameter("n", description=f"a{character}b").build_prompt())
    assert parameter.find("description").text == "a\ufffdb"


texts = st.text(st.characters(exclude_categories=()), max_size=30)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(texts, texts, texts, plain, st.lists(plain, max_size=3))
def test_every_parameter_can_be_parsed(name, kind, description, default, examples):
    parameter = ToolParameter(name, kind, description, default=default, options=examples, examples=examples)
    element = parsed(parameter.build_prompt())
    assert element.tag == "parameter"
    assert len(element.findall("examples/example")) == len(examples)


@given(texts.filter(bool), plain, st.booleans())
def test_every_response_can_be_parsed_and_gives_its_data_back(message, data, success):
    element = parsed(ToolResponse(success=success, message=message, data=data).build_prompt())
    assert element.get("success") == str(success)
    shown = element.find("data")
    assert (None if shown is None else json.loads(shown.text)) == data
