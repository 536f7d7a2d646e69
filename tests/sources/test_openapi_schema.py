"""Schemas of OpenAPI 3.0 and 3.1 as JSON Schemas of what is sent."""

from __future__ import annotations

import pytest

from toolcrib import OpenAPI
from toolcrib.schema.jsonschema import compiled


def converted(schema, parts=None, *, version="3.0.3"):
    """The schema of one query parameter, and the `$defs` beside it, and what was given up."""
    told = {"name": "p", "in": "query", "schema": schema}
    paths = {"/a": {"get": {"operationId": "x", "parameters": [told]}}}
    source = OpenAPI({"openapi": version, "paths": paths, "components": {"schemas": parts or {}}})
    (tool,) = source.as_tools()
    compiled(tool.input_schema)
    return tool.input_schema["properties"]["p"], tool.input_schema.get("$defs", {}), source.report.notes


NULL = {"type": "null"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "nullable": False}, {"type": "string"}),
        ({"nullable": True}, {}),
        ({"type": "string", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"enum": ["a", None], "type": "string", "nullable": True}, {"enum": ["a", None], "type": ["string", "null"]}),
        ({"allOf": [{"type": "string"}], "nullable": True}, {"anyOf": [{"allOf": [{"type": "string"}]}, NULL]}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"type": ["string"]}, {"type": "string"}),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"minimum": 1, "exclusiveMinimum": False}, {"minimum": 1}),
        ({"exclusiveMaximum": True, "maximum": 9}, {"exclusiveMaximum": 9}),
        ({"exclusiveMinimum": 3}, {"exclusiveMinimum": 3}),
        ({"exclusiveMinimum": True}, {}),
        ({"enum": []}, {}),
        ({"enum": "nonsense"}, {}),
        ({"type": "file"}, {}),
        ({"type": "any"}, {}),
        ({"type": "array", "items": [{"type": "string"}]}, {"type": "array", "prefixItems": [{"type": "string"}]}),
        ({"type": "string", "required": True}, {"type": "string"}),
        ({"required": ["a", "a", 1]}, {"required": ["a"]}),
        ({"minLength": "3", "maxLength": 4.0}, {"maxLength": 4}),
        ({"minItems": -1, "multipleOf": 0}, {}),
        ({"pattern": "("}, {}),
        ({"pattern": "^a(?=b)"}, {"pattern": "^a(?=b)"}),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [{"type": "string"}, NULL]}),
        ({"oneOf": [{}], "anyOf": [True]}, {"anyOf": [{}], "allOf": [{"anyOf": [True]}]}),
        ({"oneOf": [], "allOf": [], "anyOf": None}, {}),
        ({"example": "x", "xml": {}, "externalDocs": {}, "x-y": 1}, {"examples": ["x"]}),
        ({"example": "x" * 100}, {}),
        ({"const": None, "default": None}, {"const": None, "default": None}),
        ({"additionalProperties": True}, {"additionalProperties": True}),
        (
            {"additionalProperties": {"nullable": True, "type": "string"}},
            {"additionalProperties": {"type": ["string", "null"]}},
        ),
        ({"properties": None}, {"properties": {}}),
        ({"description": "a\x1b[1mb"}, {"description": "ab"}),
        ({"not": {"type": "string"}, "if": {}, "then": True}, {"not": {"type": "string"}, "if": {}, "then": True}),
        ({"$schema": "x", "$id": "http://x/y", "$anchor": "z", "$defs": {"a": {}}}, {}),
        (True, {}),
        (False, {"not": {}}),
        (None, {}),
        ("nonsense", {}),
    ],
)
def test_a_schema_becomes_one_of_json_schema(schema, expected):
    assert converted(schema)[0] == expected


def test_parts_are_shared_and_only_those_that_are_reached_come_along():
    part = {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/B"}}}
    schema, parts, _ = converted(
        {"type": "array", "items": {"$ref": "#/components/schemas/A"}},
        {"A": part, "B": {"type": "object", "properties": {"back": {"$ref": "#/components/schemas/A"}}}, "C": {}},
    )
    assert schema["items"] == {"$ref": "#/$defs/A"}
    assert parts == {
        "A": {"type": "object", "properties": {"next": {"$ref": "#/$defs/B"}}},
        "B": {"type": "object", "properties": {"back": {"$ref": "#/$defs/A"}}},
    }


def test_a_part_that_is_itself_is_accepted():
    _, parts, _ = converted(
        {"$ref": "#/components/schemas/A"}, {"A": {"properties": {"a": {"$ref": "#/components/schemas/A"}}}}
    )
    assert parts["A"]["properties"]["a"] == {"$ref": "#/$defs/A"}


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("#/components/schemas/A~1B", "A_1B"),
        ("#/components/schemas/A%20C", "A_C"),
        ("#/components/schemas/D/properties/x", "x"),
        ("#/paths/~1a/get/parameters/0/schema/items", "items"),
    ],
)
def test_a_part_has_a_legal_name_wherever_it_stands(reference, name):
    parts = {"A/B": {"type": "string"}, "A C": {"type": "string"}, "D": {"properties": {"x": {"type": "string"}}}}
    schema, defs, _ = converted({"type": "array", "items": {"type": "string"}, "contains": {"$ref": reference}}, parts)
    assert schema["contains"] == {"$ref": f"#/$defs/{name}"}
    assert defs == {name: {"type": "string"}}


@pytest.mark.parametrize("reference", ["#/components/schemas/No", "#/a/b", "#anchor", 7, "http://x/y", "other.json"])
def test_a_reference_that_leads_nowhere_takes_anything_and_is_noted(reference):
    schema, _, notes = converted({"type": "array", "items": {"$ref": reference}})
    assert schema == {"type": "array", "items": {}}
    assert "accepts anything" in notes[0].reason


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("3.0.3", {"$ref": "#/$defs/A", "description": "Mine."}),
        ("3.1.0", {"$ref": "#/$defs/A", "description": "Mine.", "maxLength": 3}),
    ],
)
def test_beside_a_reference_only_words_about_it_count_before_3_1(version, expected):
    given = {"$ref": "#/components/schemas/A", "description": "Mine.", "maxLength": 3}
    assert converted(given, {"A": {"type": "string"}}, version=version)[0] == expected


def test_a_nullable_reference_takes_null():
    given = {"$ref": "#/components/schemas/A", "nullable": True}
    assert converted(given, {"A": {"type": "string"}})[0] == {"anyOf": [{"$ref": "#/$defs/A"}, NULL]}


def test_what_is_read_only_is_neither_shown_nor_required_wherever_it_is_said():
    parts = {
        "Id": {"type": "integer", "readOnly": True},
        "Base": {
            "type": "object",
            "required": ["id", "made"],
            "properties": {"id": {"$ref": "#/components/schemas/Id"}, "made": {"readOnly": True}},
        },
        "Pet": {
            "allOf": [{"$ref": "#/components/schemas/Base"}, {"required": ["id", "name"], "properties": {"name": {}}}],
            "required": ["made", "name"],
        },
    }
    _, found, _ = converted({"$ref": "#/components/schemas/Pet"}, parts)
    assert found["Base"] == {"type": "object", "properties": {}}
    assert found["Pet"] == {
        "allOf": [{"$ref": "#/$defs/Base"}, {"required": ["name"], "properties": {"name": {}}}],
        "required": ["name"],
    }


def test_what_is_write_only_is_sent():
    schema, _, _ = converted(
        {"properties": {"password": {"type": "string", "writeOnly": True}}, "required": ["password"]}
    )
    assert schema == {"properties": {"password": {"type": "string"}}, "required": ["password"]}


def test_a_discriminator_says_which_value_leads_to_which_alternative():
    parts = {"Cat": {"type": "object"}, "Dog": {"type": "object"}}
    one_of = [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}]
    implicit, _, _ = converted({"oneOf": one_of, "discriminator": {"propertyName": "kind"}}, parts)
    assert implicit["anyOf"][0] == {
        "$ref": "#/$defs/Cat",
        "properties": {"kind": {"const": "Cat"}},
        "required": ["kind"],
    }
    mapping = {"cat": "#/components/schemas/Cat", "kitten": "Cat", "dog": "Dog"}
    mapped, _, _ = converted({"oneOf": one_of, "discriminator": {"propertyName": "kind", "mapping": mapping}}, parts)
    assert [one["properties"]["kind"] for one in mapped["anyOf"]] == [{"enum": ["cat", "kitten"]}, {"const": "dog"}]


# -- bodies as arguments


def arguments_of(schema, parts=None, *, required=True):
    body = {"required": required, "content": {"application/json": {"schema": schema}}}
    paths = {"/a": {"post": {"operationId": "x", "requestBody": body}}}
    (tool,) = OpenAPI({"openapi": "3.1.0", "paths": paths, "components": {"schemas": parts or {}}}).as_tools()
    return tool.input_schema


@pytest.mark.parametrize(
    ("schema", "names", "needed"),
    [
        ({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]}, ["a", "b"], ["a"]),
        ({"$ref": "#/components/schemas/A"}, ["a"], ["a"]),
        ({"type": ["object", "null"], "properties": {"a": {}}}, ["a"], []),
        (
            {"allOf": [{"$ref": "#/components/schemas/A"}, {"properties": {"b": {}}, "required": ["b"]}]},
            ["a", "b"],
            ["a", "b"],
        ),
        ({"properties": {"a": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, ["a"], []),
        ({"properties": {"a": {}}, "additionalProperties": False}, ["a"], []),
        ({"type": "object"}, ["body"], ["body"]),
        ({"type": "array"}, ["body"], ["body"]),
        ({}, ["body"], ["body"]),
        ({"properties": {"a": {}}, "additionalProperties": {"type": "string"}}, ["body"], ["body"]),
        ({"properties": {"a": {}}, "oneOf": [{"type": "object", "properties": {"b": {}}}]}, ["body"], ["body"]),
        (
            {"allOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"a": {"minLength": 1}}}]},
            ["body"],
            ["body"],
        ),
        ({"allOf": [{"$ref": "#/components/schemas/A"}, {"not": {}}]}, ["body"], ["body"]),
        ({"$ref": "#/components/schemas/Loop"}, ["body"], ["body"]),
    ],
)
def test_a_plain_object_is_told_by_its_properties_and_anything_else_is_one_argument(schema, names, needed):
    parts = {
        "A": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        "Loop": {"allOf": [{"$ref": "#/components/schemas/Loop"}]},
    }
    found = arguments_of(schema, parts)
    assert list(found["properties"]) == names
    assert found.get("required", []) == needed
    assert found["additionalProperties"] is False


def test_a_body_that_may_be_left_out_as_a_whole_stays_whole_when_it_requires_something():
    schema = {"type": "object", "properties": {"a": {}}, "required": ["a"]}
    assert list(arguments_of(schema, required=False)["properties"]) == ["body"]
    assert list(arguments_of({**schema, "required": []}, required=False)["properties"]) == ["a"]
