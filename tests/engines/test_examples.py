from __future__ import annotations

import datetime as dt
import decimal
import enum
import json
import uuid
from typing import Any, Literal

import jsonschema_rs
import pydantic
import pytest

from toolcrib.engines.local._examples import example_arguments
from toolcrib.engines.local._grammar import arguments_grammar, choice_grammar
from toolcrib.tools import Tool


class Color(enum.Enum):
    RED = "red"
    GREEN = "green"


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(min_length=2, max_length=4)
    age: int = pydantic.Field(ge=18, lt=99, multiple_of=3)
    color: Color
    tags: list[str] = []
    friend: Person | None = None


class Tree(pydantic.BaseModel):
    children: list[Tree] = pydantic.Field(min_length=1)


def everything(
    person: Person,
    people: list[Person],
    when: dt.datetime,
    day: dt.date,
    key: uuid.UUID,
    price: decimal.Decimal,
    pair: tuple[int, str],
    table: dict[str, int],
    word: Literal["a", 1],
    either: int | str | None,
    unique: set[int],
    whatever: Any,
    share: float,
    *,
    yes: bool,
    optional: str = "x",
) -> None: ...


@pytest.mark.parametrize("turn", range(4))
def test_made_up_arguments_fit_the_schema(turn: int):
    schema = Tool(everything).input_schema
    arguments = example_arguments(schema, turn)
    jsonschema_rs.validator_for(schema, validate_formats=True).validate(arguments)
    assert "optional" not in arguments


@pytest.mark.parametrize(
    "member",
    [
        {"type": "integer", "minimum": 100},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 5},
        {"type": "integer", "minimum": 10, "multipleOf": 7},
        {"type": "integer", "maximum": -3},
        {"type": "string", "minLength": 30},
        {"type": "string", "maxLength": 2},
        {"type": "string", "pattern": "^[A-Z]{3}$", "examples": ["ABC"]},
        {"type": ["null", "integer"]},
        {"type": "array", "items": {"type": "integer"}, "minItems": 3},
        {"type": "array", "prefixItems": [{"type": "string"}], "items": False},
        {"const": "only"},
        {"type": "null"},
        {"enum": [None, 3]},
        {"oneOf": [{"type": "null"}, {"type": "boolean"}]},
        {"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"required": ["a"]}]},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"$ref": "#/$defs/a~1b"},
        {"default": 5, "type": "integer"},
        {},
        True,
    ],
    ids=str,
)
def test_a_made_up_value_fits(member: object):
    schema = {"type": "object", "properties": {"x": member}, "required": ["x"], "$defs": {"a/b": {"type": "boolean"}}}
    for turn in range(3):
        jsonschema_rs.validate(schema, example_arguments(schema, turn))


def test_schemas_without_end_end():
    assert example_arguments(Tree.model_json_schema(), 0)["children"]
    loop = {"type": "object", "properties": {"x": {"$ref": "#/properties/x"}}, "required": ["x"]}
    assert "x" in example_arguments(loop, 0)
    assert example_arguments({"type": "object", "properties": {"x": {"$ref": "#/none"}}, "required": ["x"]}, 0)


# -- grammars


def grammar_schema(member: dict[str, Any]) -> dict[str, Any]:
    grammar = arguments_grammar({"type": "object", "properties": {"x": member}})
    return json.loads(grammar.partition("%json ")[2])["properties"]["x"]


def test_texts_and_lists_get_an_end():
    assert grammar_schema({"type": "string"})["maxLength"] <= 1000
    assert grammar_schema({"type": "string", "maxLength": 9})["maxLength"] == 9
    assert "maxLength" not in grammar_schema({"type": "string", "enum": ["a"]})
    listed = grammar_schema({"type": "array", "items": {"type": "string"}})
    assert listed["maxItems"] <= 100
    assert listed["items"]["maxLength"] <= 1000


def test_keywords_that_would_lose_the_grammar_are_left_to_validation():
    kept = grammar_schema({"type": "array", "uniqueItems": True, "items": {"not": {"type": "null"}, "type": "integer"}})
    assert "uniqueItems" not in kept
    assert kept["items"] == {"type": "integer"}


def test_parameters_named_like_keywords_stay():
    schema = {"type": "object", "properties": {"not": {"type": "integer"}, "properties": {"enum": ["not"]}}}
    kept = json.loads(arguments_grammar(schema).partition("%json ")[2])["properties"]
    assert kept == schema["properties"]


def test_the_callers_schema_is_not_changed():
    schema = {"type": "object", "properties": {"x": {"type": "string", "not": {}}}}
    before = json.dumps(schema)
    arguments_grammar(schema)
    assert json.dumps(schema) == before


def test_a_choice_keeps_the_closing_quote():
    assert choice_grammar(["add", 'say "hi"']) == r'root ::= "add\"" | "say \\\"hi\\\"\""'
