import copy
from typing import Any

import jsonschema_rs
import pytest

from toolcrib.errors import ToolSignatureError
from toolcrib.schema.jsonschema import closed, compiled, object_schema

# -- the root


@pytest.mark.parametrize(
    ("schema", "root"),
    [
        ({}, {"type": "object", "properties": {}}),
        ({"type": "object"}, {"type": "object", "properties": {}}),
        ({"properties": {"a": {}}}, {"type": "object", "properties": {"a": {}}}),
        ({"type": ["object", "null"]}, {"type": "object", "properties": {}}),
        (
            {"$ref": "#/$defs/A", "$defs": {"A": {}}},
            {"type": "object", "properties": {}, "$ref": "#/$defs/A", "$defs": {"A": {}}},
        ),
    ],
)
def test_the_root_is_an_object_with_properties(schema, root):
    given = copy.deepcopy(schema)
    assert object_schema(given) == root
    assert given == schema


@pytest.mark.parametrize("kind", ["string", "array", ["array", "null"], None, 5, {}])
def test_a_schema_of_something_else_is_refused(kind):
    with pytest.raises(ToolSignatureError, match="must describe an object"):
        object_schema({"type": kind})


@pytest.mark.parametrize("properties", [5, ["a"], "a", None])
def test_properties_that_are_none_are_refused(properties):
    with pytest.raises(ToolSignatureError, match="properties"):
        object_schema({"properties": properties})


# -- closing


def fits(schema: dict[str, Any], value: Any) -> bool:
    return jsonschema_rs.validator_for(schema).is_valid(value)


def test_every_object_that_lists_its_properties_is_closed():
    schema = {
        "properties": {
            "a": {"properties": {"b": {}}},
            "rows": {"items": {"properties": {"c": {}}}},
            "ref": {"$ref": "#/$defs/D"},
            "maybe": {"anyOf": [{"properties": {"e": {}}}, {"type": "null"}]},
            "open": {"type": "object"},
            "map": {"type": "object", "additionalProperties": {"properties": {"f": {}}}},
            "own": {"properties": {"g": {}}, "additionalProperties": {"type": "integer"}},
        },
        "$defs": {"D": {"properties": {"h": {}}}},
    }
    found = closed(schema)
    properties = found["properties"]
    assert found["additionalProperties"] is False
    assert properties["a"]["additionalProperties"] is False
    assert properties["rows"]["items"]["additionalProperties"] is False
    assert properties["maybe"]["anyOf"][0]["additionalProperties"] is False
    assert properties["map"]["additionalProperties"] == {"properties": {"f": {}}, "additionalProperties": False}
    assert properties["own"]["additionalProperties"] == {"type": "integer"}
    assert found["$defs"]["D"]["additionalProperties"] is False
    assert properties["open"] == {"type": "object"}


def test_closing_is_done_on_a_copy():
    schema = {"properties": {"a": {"properties": {"b": {"items": [{"properties": {}}]}}}}, "additionalProperties": True}
    before = copy.deepcopy(schema)
    assert closed(schema)["additionalProperties"] is False
    assert schema == before


@pytest.mark.parametrize("word", ["default", "const", "examples", "enum"])
def test_values_that_look_like_schemas_are_left_alone(word):
    value = {"properties": {"a": {}}}
    found = closed({"properties": {"x": {word: [value] if word in ("enum", "examples") else value}}})
    assert "additionalProperties" not in str(found["properties"]["x"])


@pytest.mark.parametrize(
    "name", ["default", "const", "properties", "not", "allOf", "$ref", "additionalProperties", "if"]
)
def test_a_property_may_be_named_like_a_word_of_json_schema(name):
    found = closed({"properties": {name: {"properties": {"a": {}}}}})
    assert found["properties"][name] == {"properties": {"a": {}}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (
            {"allOf": [{"properties": {"a": {"type": "integer"}}}, {"properties": {"b": {}}, "required": ["b"]}]},
            {"a": 1, "b": 2},
            {"a": 1, "b": 2, "c": 3},
        ),
        (
            {"properties": {"a": {}}, "anyOf": [{"properties": {"b": {}}, "required": ["b"]}, {"required": ["a"]}]},
            {"a": 1, "b": 2},
            {"a": 1, "b": 2, "c": 3},
        ),
        (
            {
                "properties": {"k": {}},
                "if": {"properties": {"k": {"const": 1}}},
                "then": {"properties": {"k": {}}, "required": ["k"]},
            },
            {"k": 1},
            {"k": 1, "c": 3},
        ),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"a": {}}}}}, {"a": 1}, {"c": 3}),
        (
            {"properties": {"a": {"allOf": [{"properties": {"x": {}}}, {"properties": {"y": {}}}]}}},
            {"a": {"x": 1, "y": 2}},
            {"c": 3},
        ),
        (
            {"properties": {"a": {}}, "not": {"properties": {"a": {"const": 1}}, "required": ["a"]}},
            {"a": 2},
            {"a": 1},
        ),
        (
            {"properties": {"a": {}}, "dependentSchemas": {"a": {"properties": {"b": {"type": "integer"}}}}},
            {"a": 1},
            {"a": 1, "c": 1},
        ),
        (
            {"oneOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]},
            {"a": 1},
            {"a": 1, "c": 1},
        ),
    ],
)
def test_what_fits_a_composed_schema_still_fits_when_it_is_closed(schema, good, bad):
    assert fits(object_schema(schema), good)
    found = closed(object_schema(schema))
    assert found["additionalProperties"] is False
    assert fits(found, good)
    assert not fits(found, bad)


# -- compiling


def test_the_draft_a_schema_names_is_used():
    draft_4 = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"a": {"maximum": 5, "exclusiveMaximum": True}},
    }
    assert not compiled(draft_4).is_valid({"a": 5})
    newest = {"properties": {"a": {"prefixItems": [{"type": "integer"}]}}}
    assert not compiled(newest).is_valid({"a": ["x"]})


def test_a_schema_of_a_draft_it_names_wrongly_is_refused():
    with pytest.raises(ToolSignatureError, match="not a usable JSON Schema"):
        compiled(
            {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"exclusiveMaximum": True}}}
        )


@pytest.mark.parametrize(
    "reference", ["http://127.0.0.1:9/x", "https://example.com/x.json", "file:///etc/passwd", "other.json"]
)
def test_nothing_is_fetched(reference):
    with pytest.raises(ToolSignatureError):
        compiled({"$id": "https://example.com/root", "properties": {"a": {"$ref": reference}}})


def test_the_error_of_an_unusable_schema_is_one_line():
    with pytest.raises(ToolSignatureError) as caught:
        compiled({"properties": {"a": {"type": "objekt"}}})
    assert "\n" not in str(caught.value)
