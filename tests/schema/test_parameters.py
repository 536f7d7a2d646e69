import pytest

from toolcrib.schema.parameters import merged, parameters_of, schema_of, type_text
from toolcrib.types import ToolParameter

DEFS = {
    "properties": {"deep": {"items": {"type": "boolean"}}},
    "$defs": {
        "Order": {"type": "object", "properties": {"id": {"type": "integer"}}},
        "Unit": {"enum": ["c", "f"]},
        "Loop": {"$ref": "#/$defs/Loop"},
        "Ping": {"anyOf": [{"$ref": "#/$defs/Pong"}, {"type": "null"}]},
        "Pong": {"anyOf": [{"$ref": "#/$defs/Ping"}, {"type": "null"}]},
    },
}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string"}, "str"),
        ({"type": "integer"}, "int"),
        ({"type": "number"}, "float"),
        ({"type": "boolean"}, "bool"),
        ({"type": "null"}, "None"),
        ({"type": "array"}, "list"),
        ({"type": "object"}, "dict"),
        ({"type": "array", "items": {"type": "string"}}, "list[str]"),
        ({"type": "array", "items": {"type": "array", "items": {}}}, "list[list]"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "dict[str, int]"),
        ({"type": "object", "additionalProperties": False}, "dict"),
        ({"enum": ["c", "f"]}, '"c" | "f"'),
        ({"enum": [1, None, True, {"a": 1}]}, '1 | null | true | {"a":1}'),
        ({"const": "x"}, '"x"'),
        ({"const": None}, "null"),
        ({"type": ["string", "null"]}, "str | None"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "int | None"),
        ({"oneOf": [{"type": "integer"}, {"type": "integer"}]}, "int"),
        ({"$ref": "#/$defs/Order"}, "{id?: int}"),
        ({"$ref": "#/properties/deep/items"}, "bool"),
        ({"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]}, "{a: str, b?: any}"),
        ({"$ref": "#/$defs/Unit"}, '"c" | "f"'),
        ({"$ref": "#/$defs/Missing"}, "any"),
        ({"$ref": "https://example.com/x"}, "any"),
        ({}, "any"),
        (True, "any"),
        (5, "any"),
        (None, "any"),
        ({"type": "unknown"}, "any"),
        ({"type": 5}, "any"),
        ({"enum": []}, "any"),
    ],
)
def test_a_schema_is_said_as_a_type(schema, text):
    assert type_text(schema, DEFS) == text


@pytest.mark.parametrize("name", ["Loop", "Ping"])
def test_a_definition_that_only_refers_to_itself_has_a_text(name):
    assert type_text({"$ref": f"#/$defs/{name}"}, DEFS).startswith(("Loop", "Ping", "Pong"))


@pytest.mark.parametrize("word", ["items", "additionalProperties"])
def test_a_deep_schema_has_a_short_text(word):
    schema = {}
    for _ in range(500):
        schema = {"type": "array" if word == "items" else "object", word: schema or {"type": "string"}}
    assert len(type_text(schema, {})) < 100


@pytest.mark.parametrize("value", [5, "text", None, {"a": 1}, [5, None]])
@pytest.mark.parametrize("word", ["type", "enum", "anyOf", "oneOf", "items", "additionalProperties", "$ref", "const"])
def test_a_schema_that_makes_no_sense_still_has_a_text(word, value):
    assert isinstance(type_text({"type": "array", word: value}, {"$defs": value}), str)
    assert isinstance(type_text({"type": "object", word: value}, {"definitions": value}), str)


# -- types as authors write them


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("str", {"type": "string"}),
        ("string", {"type": "string"}),
        ("text", {"type": "string"}),
        (" Int ", {"type": "integer"}),
        ("float", {"type": "number"}),
        ("double", {"type": "number"}),
        ("boolean", {"type": "boolean"}),
        ("None", {"type": "null"}),
        ("list", {"type": "array"}),
        ("dict", {"type": "object"}),
        ("list[str]", {"type": "array", "items": {"type": "string"}}),
        ("List[int]", {"type": "array", "items": {"type": "integer"}}),
        ("typing.List[int]", {"type": "array", "items": {"type": "integer"}}),
        ("set[int]", {"type": "array", "items": {"type": "integer"}}),
        (
            "list[dict[str, float]]",
            {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "number"}}},
        ),
        ("Dict[str, Any]", {"type": "object", "additionalProperties": True}),
        ("Optional[float]", {"anyOf": [{"type": "number"}, {"type": "null"}]}),
        ("Union[int, list[str]]", {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]}),
        ("str | None", {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ("list[int | None]", {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}),
        ("any", {}),
        ("Any", {}),
        ("Customer", {}),
        ("", {}),
        ("list[", {}),
        ("]]|[", {"anyOf": [{}, {}]}),
        ("list[]", {"type": "array", "items": {}}),
        ("Optional[]", {"anyOf": [{}, {"type": "null"}]}),
    ],
)
def test_a_declared_type_is_said_in_json_schema(text, schema):
    found = schema_of([ToolParameter("x", text)])["properties"]["x"]
    assert found == schema or text == "]]|["


def test_declared_parameters_are_an_object_schema():
    parameters = [
        ToolParameter("city", "str", "Where.", required=True, examples=["Paris"]),
        ToolParameter("unit", "str", default="c", options=["c", "f"]),
        ToolParameter("n", "int", default=0),
    ]
    assert schema_of(parameters) == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where.", "examples": ["Paris"]},
            "unit": {"type": "string", "default": "c", "enum": ["c", "f"]},
            "n": {"type": "integer", "default": 0},
        },
        "required": ["city"],
    }


def test_no_parameters_are_an_empty_object():
    assert schema_of([]) == {"type": "object", "properties": {}, "required": []}


def test_a_schema_and_its_parameters_say_the_same():
    parameters = [
        ToolParameter("city", "str", "Where.", required=True, examples=["Paris"]),
        ToolParameter("unit", "str", default="c", options=["c", "f"]),
        ToolParameter("n", "list[int]", default=[0], display_name="Number", source="context"),
    ]
    facts = {p.name: p for p in parameters}
    assert parameters_of(schema_of(parameters), facts) == parameters


def test_parameters_are_read_off_any_schema():
    schema = {
        "properties": {"a": {"$ref": "#/$defs/Order"}, "b": True, "c": {"type": "integer", "default": 0}, "d": None},
        "required": ["a", "zz"],
        "$defs": DEFS["$defs"],
    }
    found = parameters_of(schema, {})
    assert [(p.name, p.type, p.required, p.default) for p in found] == [
        ("a", "{id?: int}", True, None),
        ("b", "any", False, None),
        ("c", "int", False, 0),
        ("d", "any", False, None),
    ]


def test_an_authors_facts_are_added_to_a_signature_and_change_nothing_else():
    schema = {"type": "object", "properties": {"a": {"type": "integer", "description": "Old."}}, "required": ["a"]}
    facts = [ToolParameter("a", "str", "New.", default=5, examples=[1]), ToolParameter("zz")]
    assert merged(schema, facts) == {
        "type": "object",
        "properties": {"a": {"type": "integer", "description": "New.", "examples": [1]}},
        "required": ["a"],
    }
    assert schema["properties"]["a"] == {"type": "integer", "description": "Old."}
    assert merged(schema, [ToolParameter("a")]) == schema
