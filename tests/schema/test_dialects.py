"""Each dialect as a table: a schema, what the provider is shown, and what was lost."""

from __future__ import annotations

import copy
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.errors import ToolSignatureError
from toolcrib.schema import dialects
from toolcrib.schema._walk import accepts_null, resolve

NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}, "required": []}


def root(**properties):
    return {"type": "object", "properties": properties, "required": []}


def required(**properties):
    return {**root(**properties), "required": list(properties)}


def closed(**properties):
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


STRICT = {
    "a required property stays as it is": (required(a={"type": "string"}), closed(a={"type": "string"}), []),
    "an optional property may be null": (root(a={"type": "string"}), closed(a={"type": ["string", "null"]}), []),
    "a default is dropped": (
        root(a={"type": "integer", "default": 3}),
        closed(a={"type": ["integer", "null"]}),
        ["a: default"],
    ),
    "an optional enum takes null among its values": (
        root(a={"enum": ["x", "y"]}),
        closed(a={"type": ["string", "null"], "enum": ["x", "y", None]}),
        [],
    ),
    "an optional const becomes an enum": (
        root(a={"const": 1}),
        closed(a={"type": ["integer", "null"], "enum": [1, None]}),
        [],
    ),
    "a choice that has null already stays": (
        root(a={"anyOf": [{"type": "string"}, {"type": "null"}]}),
        closed(a={"anyOf": [{"type": "string"}, {"type": "null"}]}),
        [],
    ),
    "a choice gets null": (
        root(a={"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        closed(a={"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}),
        [],
    ),
    "oneOf is anyOf": (
        required(a={"oneOf": [{"type": "string"}, {"type": "integer"}]}),
        closed(a={"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ["a: oneOf, as anyOf"],
    ),
    "several types get null": (
        root(a={"type": ["string", "integer"]}),
        closed(a={"type": ["string", "integer", "null"]}),
        [],
    ),
    "words it does not know become a hint": (
        required(a={"type": "string", "minLength": 3, "description": "A."}),
        closed(a={"type": "string", "description": "A. (minLength: 3)"}),
        ["a: minLength"],
    ),
    "numbers keep their bounds": (
        required(a={"type": "integer", "minimum": 1, "maximum": 9}),
        closed(a={"type": "integer", "minimum": 1, "maximum": 9}),
        [],
    ),
    "titles and examples go without a word": (
        required(a={"type": "string", "title": "A", "examples": ["x"]}),
        closed(a={"type": "string"}),
        [],
    ),
    "a format it knows stays and another is a hint": (
        required(a={"type": "string", "format": "date"}, b={"type": "string", "format": "uri"}),
        closed(a={"type": "string", "format": "date"}, b={"type": "string", "description": "(format: uri)"}),
        ["b: format"],
    ),
    "a pattern that looks around is a hint": (
        required(a={"type": "string", "pattern": "^(?!x)"}, b={"type": "string", "pattern": "^x"}),
        closed(
            a={"type": "string", "description": "(pattern: ^(?!x))"},
            b={"type": "string", "pattern": "^x"},
        ),
        ["a: pattern"],
    ),
    "nested objects are closed too": (
        required(a=root(b={"type": "string"})),
        closed(a=closed(b={"type": ["string", "null"]})),
        [],
    ),
    "items are closed too": (
        required(a={"type": "array", "items": root(b={"type": "string"})}),
        closed(a={"type": "array", "items": closed(b={"type": ["string", "null"]})}),
        [],
    ),
    "a tuple becomes a list of any of its kinds": (
        required(a={"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "maxItems": 2}),
        closed(a={"type": "array", "maxItems": 2, "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}),
        ["a: prefixItems, as items of any of these kinds"],
    ),
    "a recursive definition stays": (
        {**root(a={"$ref": "#/$defs/Node"}), "$defs": {"Node": NODE}},
        {
            **closed(a={"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}),
            "$defs": {"Node": closed(next={"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]})},
        },
        [],
    ),
    "a reference with a description becomes a choice of one": (
        {**required(a={"$ref": "#/$defs/Node", "description": "A."}), "$defs": {"Node": closed()}},
        {**closed(a={"description": "A.", "anyOf": [{"$ref": "#/$defs/Node"}]}), "$defs": {"Node": closed()}},
        [],
    ),
    "an allOf of objects becomes one": (
        required(a={"allOf": [root(b={"type": "string"}), required(c={"type": "string"})]}),
        closed(a=closed(b={"type": ["string", "null"]}, c={"type": "string"})),
        [],
    ),
    "an allOf of one is that one": (
        required(a={"allOf": [{"type": "string"}], "description": "A."}),
        closed(a={"type": "string", "description": "A."}),
        [],
    ),
    "no parameters at all": ({"type": "object"}, closed(), []),
}

NOT_STRICT = {
    "anything": (required(a={}), "a may be anything"),
    "anything, said by true": (required(a=True), "a may be anything"),
    "an open object": (required(a={"type": "object"}), "a takes any key"),
    "a mapping": (required(a={"type": "object", "additionalProperties": {"type": "string"}}), "a takes any key"),
    "an open root": ({"type": "object", "additionalProperties": True}, "it takes any key"),
    "patterns of keys": (required(a={"type": "object", "patternProperties": {}, "properties": {}}), "a takes any key"),
    "items of any kind": (required(a={"type": "array"}), "a[] may be anything"),
    "a reference to elsewhere": (required(a={"$ref": "#/properties/b"}, b={"type": "string"}), "not one of its $defs"),
    "a reference to nowhere": (required(a={"$ref": "#/$defs/No"}), "not one of its $defs"),
    "an allOf of more": (required(a={"allOf": [{"type": "string"}, {"minLength": 1}]}), "a is an allOf"),
    "two lists of choices": (
        required(a={"anyOf": [{"type": "string"}], "oneOf": [{"type": "string"}]}),
        "a must fit two lists",
    ),
}

OPEN_B = {"type": "object", "properties": {"b": {"type": "string"}}}
ANYTHING = {
    "anyOf": [
        {"type": "string"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "object"},
        {"type": "array", "items": {"type": "string"}},
    ]
}

GEMINI = {
    "a plain schema": (required(a={"type": "string"}), required(a={"type": "string"}), []),
    "annotations go": (
        root(a={"type": "string", "title": "A", "default": "x", "examples": ["y"]}),
        {"type": "object", "properties": {"a": {"type": "string"}}},
        ["a: default"],
    ),
    "closed objects stay open": (
        {**required(a={"type": "string"}), "additionalProperties": False},
        required(a={"type": "string"}),
        ["root: additionalProperties"],
    ),
    "a choice with null is nullable": (
        required(a={"anyOf": [{"type": "string"}, {"type": "null"}], "description": "A."}),
        required(a={"type": "string", "nullable": True, "description": "A."}),
        [],
    ),
    "several types are a choice": (
        required(a={"type": ["string", "integer", "null"]}),
        required(a={"anyOf": [{"type": "string", "nullable": True}, {"type": "integer", "nullable": True}]}),
        [],
    ),
    "a choice stands alone": (
        required(a={"description": "A.", "minLength": 1, "anyOf": [{"type": "string"}, {"type": "integer"}]}),
        required(a={"anyOf": [{"type": "string", "description": "A. (minLength: 1)"}, {"type": "integer"}]}),
        [],
    ),
    "a choice beside a type takes it over": (
        required(a={"type": "object", "anyOf": [{"properties": {"b": {"type": "string"}}}, {}]}),
        required(a={"anyOf": [OPEN_B, {"type": "object"}]}),
        [],
    ),
    "a choice beside a type that says enough is lost": (
        required(a={**OPEN_B, "anyOf": [{"required": ["b"]}, {"required": ["c"]}]}),
        required(a=OPEN_B),
        ["a: anyOf, beside a type of its own"],
    ),
    "a list that may be null keeps its items": (
        required(a={"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]}),
        required(a={"type": "array", "items": {"type": "integer"}, "nullable": True}),
        [],
    ),
    "one type or null is nullable": (
        required(a={"type": ["string", "null"]}),
        required(a={"type": "string", "nullable": True}),
        [],
    ),
    "oneOf is anyOf": (
        required(a={"oneOf": [{"type": "string"}, {"type": "integer"}]}),
        required(a={"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        [],
    ),
    "an enum gets its type": (
        required(a={"enum": ["x", None]}),
        required(a={"nullable": True, "type": "string", "enum": ["x"]}),
        [],
    ),
    "a const is an enum of one": (required(a={"const": "x"}), required(a={"type": "string", "enum": ["x"]}), []),
    "an enum of numbers is a hint, or the model would answer text": (
        required(a={"enum": [1, 2]}),
        required(a={"type": "integer", "description": "(one of: 1, 2)"}),
        ["values that are not text"],
    ),
    "references are written out": (
        {**required(a={"$ref": "#/$defs/A", "description": "Mine."}), "$defs": {"A": {"type": "string"}}},
        required(a={"type": "string", "description": "Mine."}),
        [],
    ),
    "recursion ends in an open object": (
        {**required(a={"$ref": "#/$defs/Node"}), "$defs": {"Node": NODE}},
        required(a={"type": "object", "properties": {"next": {"type": "object"}}}),
        ["a.next: what is inside, since it is a #/$defs/Node again"],
    ),
    "an allOf becomes one": (
        required(a={"allOf": [required(b={"type": "string"}), required(c={"type": "string"})]}),
        required(a=required(b={"type": "string"}, c={"type": "string"})),
        [],
    ),
    "a format it refuses is a hint": (
        required(a={"type": "string", "format": "uri"}, b={"type": "string", "format": "date-time"}),
        required(a={"type": "string", "description": "(format: uri)"}, b={"type": "string", "format": "date-time"}),
        ["a: format"],
    ),
    "words it does not know become a hint": (
        required(a={"type": "integer", "exclusiveMinimum": 0}),
        required(a={"type": "integer", "description": "(exclusiveMinimum: 0)"}),
        ["a: exclusiveMinimum"],
    ),
    "a list of anything is a list of choices": (
        required(a={"type": "array"}),
        required(a={"type": "array", "items": ANYTHING}),
        [],
    ),
    "a tuple is a list of any of its kinds": (
        required(a={"type": "array", "prefixItems": [{"type": "string"}, {"type": "string"}]}),
        required(a={"type": "array", "items": {"type": "string"}}),
        ["a: prefixItems, as items of any of these kinds"],
    ),
    "a mapping is an open object": (
        required(a={"type": "object", "additionalProperties": {"type": "string"}}),
        required(a={"type": "object"}),
        ["a: additionalProperties"],
    ),
    "keys are letters, digits and underscores": (
        required(**{"my-key": {"type": "string"}, "1st": {"type": "string"}}),
        required(my_key={"type": "string"}, _1st={"type": "string"}),
        [],
    ),
    "anything is a choice of all types": (required(a={}), required(a=ANYTHING), []),
    "nothing but null is a choice of all types that may be null": (
        required(a={"type": "null", "description": "A."}),
        required(
            a={
                "anyOf": [
                    {"type": "string", "description": "A.", "nullable": True},
                    *({**one, "nullable": True} for one in ANYTHING["anyOf"][1:]),
                ]
            }
        ),
        [],
    ),
}

ROOTS = {
    "a choice of what is required": (
        {**root(a={"type": "string"}, b={"type": "string"}), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        root(a={"type": "string"}, b={"type": "string"}) | {"required": []},
        ["anyOf at the root"],
    ),
    "a choice of objects": (
        {"type": "object", "oneOf": [required(a={"type": "string"}, k={"const": 1}), required(k={"const": 2})]},
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "k": {"anyOf": [{"const": 1}, {"const": 2}]}},
            "required": ["k"],
        },
        ["oneOf at the root"],
    ),
    "all of several objects": (
        {"type": "object", "allOf": [required(a={"type": "string"}), required(b={"type": "string"})]},
        required(a={"type": "string"}, b={"type": "string"}),
        [],
    ),
    "a reference": (
        {"$ref": "#/$defs/A", "$defs": {"A": required(a={"type": "string"})}},
        {"$defs": {"A": required(a={"type": "string"})}, **required(a={"type": "string"})},
        [],
    ),
    "a condition": (
        {**required(a={"type": "string"}), "if": {}, "then": {}},
        required(a={"type": "string"}),
        ["if at the root", "then at the root"],
    ),
}


def test_the_tables_speak_of_strict_schemas_as_openai_defines_them():
    assert closed(a={"type": "string"}) == {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("case", STRICT)
def test_openai_strict(case):
    schema, shown, losses = STRICT[case]
    before = copy.deepcopy(schema)
    assert dialects.openai_strict(schema) == (shown, losses)
    assert schema == before


@pytest.mark.parametrize("case", NOT_STRICT)
def test_openai_strict_says_why_it_cannot(case):
    schema, reason = NOT_STRICT[case]
    with pytest.raises(ToolSignatureError, match=re.escape(reason)):
        dialects.openai_strict(schema)


def test_openai_strict_refuses_more_levels_than_openai_takes():
    schema = {"type": "string"}
    for _ in range(11):
        schema = required(a=schema)
    with pytest.raises(ToolSignatureError, match="10 levels"):
        dialects.openai_strict(schema)


@pytest.mark.parametrize("case", GEMINI)
def test_gemini(case):
    schema, shown, losses = GEMINI[case]
    before = copy.deepcopy(schema)
    assert dialects.gemini(schema) == (shown, losses)
    assert schema == before


def test_gemini_refuses_references_that_multiply_without_end():
    definitions = {
        f"D{n}": required(a={"$ref": f"#/$defs/D{n + 1}"}, b={"$ref": f"#/$defs/D{n + 1}"}) for n in range(40)
    }
    schema = {**required(a={"$ref": "#/$defs/D0"}), "$defs": {**definitions, "D40": {"type": "string"}}}
    with pytest.raises(ToolSignatureError, match="parts once its"):
        dialects.gemini(schema)


@pytest.mark.parametrize("case", ROOTS)
@pytest.mark.parametrize("dialect", [dialects.openai, dialects.anthropic])
def test_the_root_becomes_one_plain_object(dialect, case):
    schema, shown, losses = ROOTS[case]
    before = copy.deepcopy(schema)
    assert dialect(schema) == (shown, losses)
    assert schema == before


@pytest.mark.parametrize("dialect", [dialects.openai, dialects.openai_strict, dialects.anthropic, dialects.gemini])
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        {"$ref": "#/$defs/No"},
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"$ref": "https://example.com/schema"},
    ],
)
def test_a_root_that_is_no_object_is_refused(dialect, schema):
    with pytest.raises(ToolSignatureError, match="root of its schema"):
        dialect(schema)


@pytest.mark.parametrize("dialect", [dialects.openai, dialects.anthropic])
def test_a_schema_that_need_not_change_is_the_same_object(dialect):
    schema = {**root(a={"type": "string", "default": "x"}), "$defs": {"A": {"type": "string"}}}
    assert dialect(schema)[0] is schema


def test_anthropic_renames_keys_everywhere_they_are_named():
    schema = {
        **required(**{"my key": {"$ref": "#/$defs/A"}, "b/c": {"$ref": "#/properties/my%20key"}}),
        "dependentRequired": {"my key": ["b/c"]},
        "$defs": {"A": required(**{"$filter": {"type": "string"}})},
    }
    shown, losses = dialects.anthropic(schema)
    assert shown == {
        "type": "object",
        "properties": {"my_key": {"$ref": "#/$defs/A"}, "b_c": {"$ref": "#/properties/my_key"}},
        "required": ["my_key", "b_c"],
        "dependentRequired": {"my_key": ["b_c"]},
        "$defs": {"A": required(_filter={"type": "string"})},
    }
    assert losses == []


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, True),
        (True, True),
        (False, False),
        ({"type": "null"}, True),
        ({"type": ["string", "null"]}, True),
        ({"type": "string"}, False),
        ({"enum": [1, None]}, True),
        ({"enum": [1]}, False),
        ({"const": None}, True),
        ({"const": 1}, False),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, True),
        ({"oneOf": [{"type": "string"}]}, False),
        ({"allOf": [{"type": ["string", "null"]}, {"type": "string"}]}, False),
        ({"$ref": "#/$defs/A"}, True),
        ({"$ref": "#/$defs/B"}, False),
        ({"$ref": "#/$defs/No"}, False),
    ],
)
def test_whether_a_schema_takes_null(schema, expected):
    definitions = {"A": {"anyOf": [{"$ref": "#/$defs/B"}, {"type": "null"}]}, "B": {"$ref": "#/$defs/B"}}
    assert accepts_null(schema, {"$defs": definitions}) is expected


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("#", "root"),
        ("#/$defs/a~1b", "slash"),
        ("#/$defs/a%20b", "space"),
        ("#/anyOf/1", "second"),
        ("#/anyOf/9", None),
        ("#/anyOf/x", None),
        ("other.json#/a", None),
        (7, None),
    ],
)
def test_where_a_reference_leads(reference, found):
    schema = {
        "title": "root",
        "$defs": {"a/b": {"title": "slash"}, "a b": {"title": "space"}},
        "anyOf": [{}, {"title": "second"}],
    }
    assert (resolve(reference, schema) or {}).get("title") == found


# -- any schema at all

words = st.sampled_from(
    [
        *("type", "properties", "items", "anyOf", "oneOf", "allOf", "enum", "const", "required", "$ref", "$defs"),
        *("additionalProperties", "prefixItems", "description", "default", "pattern", "format", "minLength", "not"),
    ]
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["object", "array", "string", "null", "#", "#/$defs/a"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(words | st.sampled_from(["a", "b c"]), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.dictionaries(words, values, max_size=6))
def test_any_schema_is_rendered_or_refused_and_never_changed(schema):
    schema = {"type": "object", **schema}
    before = json.dumps(schema)
    for dialect in (dialects.openai, dialects.openai_strict, dialects.anthropic, dialects.gemini):
        try:
            shown, losses = dialect(schema)
        except ToolSignatureError:
            continue
        assert shown["type"] == "object"
        assert json.loads(json.dumps(shown)) == shown
        assert all(isinstance(loss, str) for loss in losses)
    assert json.dumps(schema) == before
