"""What holds for any schema, any arguments, any calls and any value, all the way through the library.

Properties of one part stand with the tests of that part.
"""

from __future__ import annotations

import contextlib
import json
import re
import warnings
import xml.etree.ElementTree as ET
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from replies import as_shown, read_back

from toolcrib.dispatch import call_tools
from toolcrib.errors import ToolArgumentError, ToolcribWarning, ToolSignatureError
from toolcrib.formats import FORMATS
from toolcrib.limits import Limits
from toolcrib.schema import dialects
from toolcrib.schema._walk import accepts_null
from toolcrib.schema.jsonschema import compiled
from toolcrib.tools import Tool
from toolcrib.toolset import Toolset
from toolcrib.types import ToolCall, ToolResponse

NAMES = st.text(max_size=12) | st.sampled_from(["a", "a.b", "a_b", "a b", "x" * 65])
KEYS = st.sampled_from(
    ["a", "b", "_a", "a b", "a/b", "a.b", "$a", "é", "1", "type", "properties", "required", "enum", "null", "x" * 65]
)
WITH_SCHEMAS = [name for name in FORMATS if name != "xml"]


@contextlib.contextmanager
def unwarned():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ToolcribWarning)
        yield


# -- the rules of the providers


def nodes(schema):
    """Yield every schema in one that a dialect made."""
    yield schema
    for word, value in schema.items():
        if word in ("properties", "$defs", "definitions"):
            children = list(value.values())
        else:
            children = value if word == "anyOf" else [value] if word == "items" else []
        for child in children:
            yield from nodes(child)


GEMINI_WORDS = {
    *("type", "description", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "nullable", "enum"),
    *("minItems", "maxItems", "minProperties", "maxProperties", "properties", "required", "items", "anyOf"),
}
STRICT_WORDS = {
    *("type", "description", "enum", "const", "pattern", "format", "multipleOf", "minimum", "maximum", "minItems"),
    *("exclusiveMinimum", "exclusiveMaximum", "maxItems", "properties", "required", "additionalProperties", "items"),
    *("anyOf", "$ref", "$defs", "definitions"),
}


def obeys_gemini(node):
    assert node.keys() <= GEMINI_WORDS
    if "anyOf" in node:
        assert node.keys() == {"anyOf"}
        return
    assert node["type"] in ("object", "array", "string", "integer", "number", "boolean")
    assert ("items" in node) is (node["type"] == "array")
    assert all(isinstance(value, str) for value in node.get("enum", ()))
    assert "enum" not in node or node["type"] == "string"
    assert all(re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}", key) for key in node.get("properties", ()))
    assert set(node.get("required", ())) <= set(node.get("properties", ()))


def obeys_strict(node):
    assert node.keys() <= STRICT_WORDS
    assert {"type", "anyOf", "$ref"} & node.keys()
    assert "$ref" not in node or node.keys() == {"$ref"}
    if "properties" in node:
        assert node["required"] == list(node["properties"])
        assert node["additionalProperties"] is False


def obeyed(schema, rule):
    for node in nodes(schema):
        rule(node)


RULES = {"gemini": obeys_gemini, "openai_chat": obeys_strict, "openai_responses": obeys_strict}


# -- schemas and the values that fit them


class Kind(NamedTuple):
    """A schema, and values that fit it."""

    schema: dict[str, Any]
    values: st.SearchStrategy[Any]


WORDS = ["x", "y", "", "null", "[1]", '{"a": 1}', "é"]
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
LEAVES = [
    Kind({"type": "string"}, st.text(max_size=6) | st.sampled_from(WORDS)),
    Kind({"type": "string", "format": "uri", "minLength": 1}, st.text(min_size=1, max_size=6)),
    Kind({"type": "integer", "minimum": -9, "default": 1}, st.integers(min_value=-9)),
    Kind({"type": "number", "title": "N"}, NUMBERS),
    Kind({"type": "boolean"}, st.booleans()),
    Kind({"type": ["string", "integer"]}, st.text(max_size=3) | st.integers()),
    Kind({"type": ["integer", "null"], "default": None}, st.none() | st.integers()),
    Kind({"enum": ["x", "y"]}, st.sampled_from(["x", "y"])),
    Kind({"enum": [1, 2, None], "description": "D."}, st.sampled_from([1, 2, None])),
    Kind({"const": "x"}, st.just("x")),
    Kind({"anyOf": [{"type": "string"}, {"type": "boolean"}, {"type": "null"}]}, st.text() | st.booleans() | st.none()),
]


def listed(inner: Kind) -> Kind:
    return Kind({"type": "array", "items": inner.schema}, st.lists(inner.values, max_size=3))


def nullable(inner: Kind) -> Kind:
    return Kind({"anyOf": [inner.schema, {"type": "null"}], "description": "May be null."}, inner.values | st.none())


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Kind]) -> Kind:
    members = draw(st.dictionaries(KEYS, inner, max_size=4))
    required = [name for name in members if draw(st.booleans())]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: kind.schema for name, kind in members.items()},
        "required": required,
    }
    # Under strict mode a null says "left out", unless null is a value: then the two are one on the wire.
    given_always = {n: k.values for n, k in members.items() if n in required or accepts_null(k.schema, {})}
    optional = {name: kind.values for name, kind in members.items() if name not in given_always}
    return Kind(schema, st.fixed_dictionaries(given_always, optional=optional))


KINDS = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: inner.map(listed) | inner.filter(lambda k: "anyOf" not in k.schema).map(nullable) | objects(inner),
    max_leaves=8,
)
CASES = objects(KINDS).flatmap(lambda kind: st.tuples(st.just(kind.schema), kind.values))


def schema_shown(format_name, toolset):
    listed_ = FORMATS[format_name].tools(toolset)
    (one,) = listed_[0]["function_declarations"] if format_name == "gemini" else listed_
    one = one.get("function", one)
    nothing = {"type": "object", "properties": {}}
    return next((one[word] for word in ("parameters", "input_schema", "inputSchema") if word in one), nothing)


def in_json_schema(schema):
    """Return Gemini's form with null as JSON Schema says it."""
    if isinstance(schema, list):
        return [in_json_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {
        word: {name: in_json_schema(child) for name, child in value.items()}
        if word == "properties"
        else in_json_schema(value)
        for word, value in schema.items()
        if word != "nullable"
    }
    return {"anyOf": [plain, {"type": "null"}]} if schema.get("nullable") is True else plain


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("strict", [False, True])
@given(CASES)
def test_whatever_fits_a_schema_can_be_said_to_every_provider_and_comes_back(format_name, strict, case):
    schema, value = case
    tool = Tool.from_schema("t", "", schema, strict=strict)
    toolset = Toolset([tool])
    with unwarned():
        assert tool.read(value) == tool.read(json.dumps(value)) == value
        (call,) = read_back(format_name, toolset, [ToolCall("1", "t", value)])
        assert tool.read(call.arguments) == value
        if format_name in WITH_SCHEMAS:
            shown = schema_shown(format_name, toolset)
            wire = as_shown(value, tool.input_schema, shown)
            if format_name == "gemini" or (strict and format_name in RULES):
                obeyed(shown, RULES[format_name])
            assert compiled(in_json_schema(shown) if format_name == "gemini" else shown).is_valid(wire)


# -- anything that looks like a schema

TYPES = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])
ROOT = (
    "#",
    "#/$defs/a",
    "#/properties/a",
    "#/properties/a/items",
)  # where a reference may lead, if there is such a place
CHOICES = st.lists(st.sampled_from(["x", 1, None, True, 1.5]), min_size=1, max_size=3, unique_by=repr)


def composed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Schemas of schemas: with the words that most have, and with others that need not fit."""
    common = {
        "type": TYPES,
        "properties": st.dictionaries(KEYS, inner, max_size=3),
        "required": st.lists(KEYS, max_size=2, unique=True),
        "items": inner,
        "anyOf": st.lists(inner, min_size=1, max_size=3),
        "enum": CHOICES,
        "description": st.text(max_size=3),
        "default": st.none() | st.integers(),
        "format": st.sampled_from(["uri", "date-time"]),
    }
    rare = {
        "type": st.lists(TYPES, min_size=1, max_size=3, unique=True),
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
        "oneOf": st.lists(inner, min_size=1, max_size=2),
        "allOf": st.lists(inner, min_size=1, max_size=2),
        "not": inner,
        "const": st.sampled_from(["x", 1, None, {"a": 1}]),
        "additionalProperties": inner,
        "patternProperties": st.dictionaries(st.just("^x"), inner, max_size=1),
        "pattern": st.sampled_from(["^x", "(?=x)"]),
        "minLength": st.integers(0, 3),
        "maximum": st.integers(0, 3),
    }
    often = st.fixed_dictionaries({"type": TYPES}, optional={word: common[word] for word in common if word != "type"})
    return often | often | st.fixed_dictionaries({}, optional={**common, **rare})


INNER = st.recursive(
    st.booleans()
    | st.just({})
    | st.builds(lambda kind: {"type": kind}, TYPES)
    | st.builds(lambda where: {"$ref": where}, st.sampled_from(ROOT)),
    composed,
    max_leaves=10,
)
SCHEMAS = st.builds(
    lambda root, a, b, definition: {**root, "properties": {"a": a, **b}, "$defs": {"a": definition}},
    composed(INNER),
    INNER,
    st.dictionaries(KEYS, INNER, max_size=2),
    INNER,
)


@given(SCHEMAS)
@example({"properties": {"a": {"const": "x", "anyOf": [{"items": {}}]}}})
@example({"properties": {"a": {"type": "array", "anyOf": [{"type": "array"}, {"type": "null"}]}}})
def test_what_the_dialects_make_of_a_schema_obeys_the_rules_of_the_provider(schema):
    schema = {**schema, "type": "object"}
    try:
        compiled(schema)
    except ToolSignatureError:  # which formats show to nobody
        assume(False)  # noqa: FBT003  # hypothesis has it so
    before = json.dumps(schema)
    for dialect, obeys in ((dialects.gemini, obeys_gemini), (dialects.openai_strict, obeys_strict)):
        with contextlib.suppress(ToolSignatureError):
            made, losses = dialect(schema)
            assert all(isinstance(loss, str) for loss in losses)
            obeyed(made, obeys)
    assert json.dumps(schema) == before


@pytest.mark.parametrize("strict", [False, True])
@given(SCHEMAS)
def test_no_schema_costs_another_tool_its_place_or_the_call_its_answer(strict, schema):
    try:
        tool = Tool.from_schema("t", "", schema, lambda **given: given, strict=strict)
    except ToolSignatureError:
        assume(False)  # noqa: FBT003  # hypothesis has it so
    toolset = Toolset([tool, Tool(ok)])
    with unwarned():
        for format_name, form in FORMATS.items():
            shown = form.tools(toolset)
            assert '"ok"' in json.dumps(shown).replace('\\"', '"'), format_name
    (result,) = call_tools([ToolCall("1", "t", "{}")], toolset)
    assert result.kind in ("ok", "invalid_arguments", "failed")


def ok() -> str:
    """Say it."""
    return "ok"


# -- arguments: what is accepted fits, whatever was sent


ARGUMENTS = st.dictionaries(
    KEYS,
    st.recursive(
        st.none() | st.booleans() | st.integers() | NUMBERS | st.sampled_from(WORDS) | st.text(max_size=4),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)


@given(objects(KINDS), ARGUMENTS, st.booleans())
def test_what_is_read_fits_the_schema_and_what_fits_is_read_as_it_is(kind, arguments, strict):
    tool = Tool.from_schema("t", "", kind.schema, strict=strict)
    fits = compiled(tool.input_schema).is_valid
    try:
        read = tool.read(json.dumps(arguments))
    except ToolArgumentError:
        assert not fits(arguments)
        return
    assert fits(read)
    assert read == arguments or not fits(arguments)


# -- calls: each has one answer


def echo(value: Any = None) -> Any:
    """Say it again."""
    return value


def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


def fail(text: str = "") -> None:
    """Fail."""
    raise ValueError(text)


TOOLS = Toolset([echo, add, Tool(fail, effect="write")])
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=12)
CALLS = st.lists(
    st.builds(
        ToolCall,
        ANY_TEXT,
        st.sampled_from([*TOOLS.names, "ad"]) | ANY_TEXT,
        ANY_TEXT
        | ARGUMENTS.map(json.dumps)
        | st.fixed_dictionaries({}, optional={"a": st.integers(), "value": ANY_TEXT, "text": ANY_TEXT}),
    ),
    max_size=6,
)


@given(CALLS, st.integers(1, 200))
def test_every_call_has_one_answer_in_its_place_that_every_provider_can_be_sent(calls, most):
    results = call_tools(calls, TOOLS, limits=Limits(max_result_chars=most))
    assert [result.call.id for result in results] == [call.id for call in calls]
    for result in results:
        assert result.kind in ("ok", "not_found", "invalid_arguments", "failed")
        assert len(result.text) <= most + 100
        result.text.encode()
    for form in FORMATS.values():
        for message in form.results(results):
            json.dumps(message)


# -- values: whatever a tool returns

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.binary(max_size=6) | st.builds(object),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(ANY_TEXT | st.integers(), inner, max_size=3)
        | st.tuples(inner, inner)
        | st.builds(lambda value: ToolResponse(success=True, data=value), inner)
        | st.builds(lambda text: ToolResponse(success=False, message=text or "no"), ANY_TEXT)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_any_value_becomes_an_answer_that_every_provider_can_be_sent(value):
    (result,) = call_tools([ToolCall("1", "give")], Toolset([Tool(lambda: value, name="give")]))
    assert result.kind in ("ok", "failed")
    assert result.response.success is result.ok
    for form in FORMATS.values():
        (message,) = form.results([result])
        text = json.dumps(message, allow_nan=False)
        assert text.encode()
        assert json.loads(text) == message


# -- names and XML


@given(st.lists(st.tuples(NAMES.filter(str.strip), ANY_TEXT), max_size=4, unique_by=lambda pair: pair[0]))
def test_the_prompt_can_be_parsed_and_shows_each_tool_by_its_own_name(described):
    tools = [Tool.from_schema(name, text, {"type": "object"}) for name, text in described]
    prompt = FORMATS["xml"].tools(Toolset(tools))
    shown = ET.fromstring(prompt[prompt.index("<tools>") : prompt.rindex("</tools>") + 8]) if tools else []  # noqa: S314  # our own text
    assert [one.get("name") for one in shown] == [in_xml(tool.name) for tool in tools]
    assert [one.findtext("description", "") for one in shown] == [in_xml(tool.description) for tool in tools]


def in_xml(text):
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)
