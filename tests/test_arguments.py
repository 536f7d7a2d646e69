import enum
import json
import math
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, field_validator

from toolcrib.errors import ToolArgumentError, ToolSignatureError
from toolcrib.limits import Limits
from toolcrib.tools import Tool


class Line(BaseModel):
    sku: str
    count: int = 1


class Order(BaseModel):
    lines: list[Line]
    note: str | None = None


@dataclass
class Point:
    x: int
    y: int = 0


class Tree(BaseModel):
    value: int
    children: "list[Tree]" = []


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


def two(a: int, b: str = "x"):
    return a, b


def anything(x: Any = None, y: Any = None):
    return x, y


def items(x: list[int]):
    return x


def loose(x: list[Any]):
    return x


def order(order: Order):
    return order


def tree(tree: Tree):
    return tree


def echo(**arguments: Any):
    return arguments


FOREIGN = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "s": {"type": "string"}, "l": {"type": "array"}},
}


def foreign(schema: Mapping[str, Any] = MappingProxyType(FOREIGN), **options: Any) -> Tool:
    return Tool.from_schema("foreign", "", schema, echo, **options)


def refusal(tool: Tool, arguments: Any, limits: Limits | None = None) -> ToolArgumentError:
    with pytest.raises(ToolArgumentError) as caught:
        tool.read(arguments, limits or Limits())
    return caught.value


READERS = pytest.mark.parametrize("tool", [Tool(anything), foreign({"type": "object"})], ids=["function", "foreign"])


# -- strict parsing


@READERS
@pytest.mark.parametrize(
    "text",
    [
        '{"x": 1, "x": 1}',
        '{"x": 1, "\\u0078": 2}',
        '{"x": {"k": 1, "k": 2}}',
        '{"x": [[{"k": 1, "k": 2}]]}',
        '{"x": {"k": {"a": 1}, "k": {"a": 1}}}',
        '{"x": ":", "x": "::"}',
        '{"x": "\\u003a", "x": 1}',
        '{"x": "\\u003A\\u003a", "y": {"k": 1, "k": 1}}',
        '{"x": {"\\u003a": 1, ":": 2}}',
        '{"x": {"": 1, "": 2}}',
        '{"x": {"\\ud83d\\ude00": 1, "😀": 2}}',
    ],
)
def test_a_key_that_stands_twice_is_refused_wherever_and_however_it_is_written(tool, text):
    assert "duplicate key" in str(refusal(tool, text))


@pytest.mark.parametrize("text", ['{"a": 1, "a": 1}', '{"a": 1, "b": "x", "a": 1}', '{"\\u0061": 1, "a": 2}'])
def test_a_key_that_stands_twice_is_refused_for_plain_signatures_too(text):
    assert "duplicate key" in str(refusal(Tool(two), text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1, "b": ":"}', ":"),
        ('{"a": 1, "b": "{\\"a\\": 1, \\"a\\": 2}"}', '{"a": 1, "a": 2}'),
        ('{"a": 1, "b": "\\u003a"}', ":"),
        ('{"b": "a:a:a", "a": 1}', "a:a:a"),
        ('{"a": 1, "b": "\\"a\\":"}', '"a":'),
    ],
)
def test_a_colon_in_a_text_is_no_key(text, value):
    assert Tool(two).read(text) == {"a": 1, "b": value}


@READERS
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "[1, 1e400]", '{"k": 1e999}'])
def test_numbers_that_json_has_not_are_refused(tool, number):
    refusal(tool, f'{{"x": {number}}}')
    refusal(tool, f'{{"x": {number}, "y": "Infinity NaN"}}')


@pytest.mark.parametrize("hint", [float, list[float], float | None, dict[str, float]])
@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", '"NaN"', '"inf"'])
def test_typed_numbers_are_finite(hint, number):
    def f(x): ...

    f.__annotations__ = {"x": hint}
    written = {list[float]: f"[{number}]", dict[str, float]: f'{{"k": {number}}}'}.get(hint, number)
    refusal(Tool(f), f'{{"x": {written}}}')


@READERS
def test_the_word_infinity_in_a_text_is_a_text(tool):
    assert tool.read('{"x": "\\u0049nfinity", "y": "NaN"}') == {"x": "Infinity", "y": "NaN"}


@READERS
@pytest.mark.parametrize("number", [math.nan, math.inf, [math.nan], {"k": (1, -math.inf)}])
def test_numbers_that_json_has_not_are_refused_in_mappings(tool, number):
    refusal(tool, {"x": number})


@READERS
@pytest.mark.parametrize("build", [lambda n: "[" * n + "]" * n, lambda n: '{"k":' * n + "1" + "}" * n])
def test_depth_is_bounded(tool, build):
    assert tool.read(f'{{"x": {build(63)}}}')
    for depth in (64, 150, 100_000):
        refusal(tool, f'{{"x": {build(depth)}}}')
    assert tool.read(f'{{"x": {build(3)}}}', Limits(max_argument_depth=4))
    refusal(tool, f'{{"x": {build(4)}}}', Limits(max_argument_depth=4))


@READERS
def test_brackets_in_a_text_are_no_depth(tool):
    assert tool.read(json.dumps({"x": "[" * 500 + "{"})) == {"x": "[" * 500 + "{"}


@READERS
def test_a_mapping_has_the_same_depth(tool):
    value: Any = 1
    for _ in range(63):
        value = [value]
    assert tool.read({"x": value}) == {"x": value}
    assert "deep" in str(refusal(tool, {"x": [value]}))


@READERS
def test_a_circular_mapping_is_refused_at_once(tool):
    circular: dict[str, Any] = {}
    circular["a"] = circular["b"] = [circular, circular]
    assert "circular" in str(refusal(tool, {"x": circular}))


@READERS
def test_length_is_bounded(tool):
    limits = Limits(max_argument_chars=20)
    assert tool.read('{"x": "123456789"}', limits)
    assert "at most 20" in str(refusal(tool, '{"x": "123456789012345"}', limits))
    assert len(str(refusal(tool, " " * 1_000_001))) < 200


@READERS
@pytest.mark.parametrize("text", ["", "   ", "\n", "{}", None])
def test_empty_text_means_no_arguments(tool, text):
    assert tool.read(text) == {}


@READERS
@pytest.mark.parametrize(
    ("text", "kind"),
    [("[]", "array"), ("[1]", "array"), ("null", "null"), ("5", "number"), ('"x"', "string"), ("true", "boolean")],
)
def test_what_is_no_object_is_named(tool, text, kind):
    assert f"not {kind}" in str(refusal(tool, text))


@READERS
@pytest.mark.parametrize(
    "text",
    [
        '{"x": 1',
        '{"x": 1}}',
        '{"x": 1} {"x": 2}',
        "{'x': 1}",
        '{"x": 1,}',
        "{x: 1}",
        '{"x": "\n"}',
        '{"x": "\\q"}',
        '{"x": "\\ud800"}',
        '{"x": "\ud800"}',
        '{"\udfff": 1}',
        '{"x": 01}',
        '{"x": ' + "9" * 5_000 + "}",
        '```json\n{"x": 1}\n```',
        '{"x": undefined}',
        '\ufeff{"x": 1}',
        '{"x": 1} // note',
        "\x00",
    ],
)
def test_malformed_json_is_refused_and_never_repaired(tool, text):
    assert "not valid JSON" in str(refusal(tool, text))


@READERS
@pytest.mark.parametrize("arguments", [b'{"x": 1}', [1], [("x", 1)], 5, 0, False, object(), {1, 2}, ["x"]])
def test_arguments_of_another_type_are_refused(tool, arguments):
    if arguments is not None:
        assert "must be a JSON object" in str(refusal(tool, arguments))


# -- strings that should not have been


@pytest.mark.parametrize(
    ("hint", "text", "value"),
    [
        (list[int], '"[1, 2]"', [1, 2]),
        (list[Any], '"[1, 2]"', [1, 2]),
        (dict[str, int], '"{\\"k\\": 1}"', {"k": 1}),
        (int | None, '"null"', None),
        (Point, '"{\\"x\\": 1}"', Point(1)),
        (Line, '"{\\"sku\\": \\"a\\"}"', Line(sku="a")),
        (Line | None, '"{\\"sku\\": \\"a\\"}"', Line(sku="a")),
        (list[int] | int, '"[3]"', [3]),
        (list[Line], '["{\\"sku\\": \\"a\\"}"]', [Line(sku="a")]),
        (Literal[1, 2], '"2"', 2),
        (bool, '"true"', True),
    ],
)
def test_a_string_where_something_else_is_wanted_is_decoded(hint, text, value):
    def f(x):
        return x

    f.__annotations__ = {"x": hint}
    assert Tool(f).call(f'{{"x": {text}}}') == value
    assert Tool(f).call(json.loads(f'{{"x": {text}}}')) == value


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (str, "[1, 2]"),
        (str, "null"),
        (str, "1"),
        (str | None, "null"),
        (str | list[int], "[1, 2]"),
        (Any, "[1, 2]"),
        (Literal["1"], "1"),
        (str | int, '{"a": 1}'),
    ],
)
def test_a_string_where_a_string_is_wanted_is_never_touched(hint, text):
    def f(x):
        return x

    f.__annotations__ = {"x": hint}
    assert Tool(f).call(json.dumps({"x": text})) == text
    assert Tool(f).call({"x": text}) == text


@pytest.mark.parametrize(
    "text",
    [
        '"[1, \\"b\\"]"',  # not what is wanted after decoding either
        '"[1, 2"',
        '"\\"[1]\\""',  # a string in a string
        '"{\\"a\\": 1, \\"a\\": 2}"',
        '"[NaN]"',
        '"[1e999]"',
        '"not json"',
        '""',
    ],
)
@pytest.mark.parametrize(
    "tool", [Tool(items), foreign({"properties": {"x": {"type": "array", "items": {"type": "integer"}}}})]
)
def test_a_string_that_does_not_fit_when_decoded_is_refused_as_it_came(tool, text):
    error = refusal(tool, f'{{"x": {text}}}')
    assert error.problems[0].startswith("x: ")


@pytest.mark.parametrize("tool", [Tool(loose), foreign({"properties": {"x": {"type": "array"}}})])
@pytest.mark.parametrize(
    "inner",
    ["[1e999]", "[NaN]", "[-Infinity]", '[{"k": 1, "k": 2}]', '[{"k": 1, "\\u006b": 2}]', "[" * 100 + "]" * 100],
)
def test_what_a_string_holds_is_parsed_as_strictly_as_the_rest(tool, inner):
    refusal(tool, json.dumps({"x": inner}))
    refusal(tool, {"x": inner})


def test_decoding_reaches_into_numbered_members_of_objects():
    schema = {"additionalProperties": {"type": "array"}}
    assert foreign(schema).read({"0": "[1]", "1": [2]}) == {"0": [1], "1": [2]}
    assert "[1]" in str(refusal(foreign(schema), {"0": [], "1": "x"}))


def test_a_foreign_string_is_decoded_by_the_same_rule():
    tool = foreign(
        {"properties": {"l": {"type": "array"}, "s": {"type": "string"}, "n": {"type": ["integer", "null"]}}}
    )
    assert tool.read('{"l": "[1]", "s": "[1]", "n": "null"}') == {"l": [1], "s": "[1]", "n": None}
    assert tool.read('{"n": "5"}') == {"n": 5}


def test_the_callers_mapping_is_not_changed_by_decoding():
    given = {"x": "[1]"}
    assert Tool(items).read(given) == {"x": [1]}
    assert given == {"x": "[1]"}
    nested = {"l": {"deep": ["[1]"]}}
    foreign({"properties": {"l": {"properties": {"deep": {"items": {"type": "array"}}}}}}).read(nested)
    assert nested == {"l": {"deep": ["[1]"]}}


# -- errors for a model


def test_all_problems_are_listed_with_paths_and_the_expected_call():
    error = refusal(Tool(order), '{"order": {"lines": [{"sku": "a"}, {"count": "many"}]}, "ordr": 1}')
    assert str(error) == (
        "Invalid arguments for 'order':\n"
        "- order.lines[1].sku: required, but missing\n"
        '- order.lines[1].count: input should be a valid integer, unable to parse string as an integer, not "many"\n'
        "- ordr: not a parameter; did you mean order?\n"
        "Expected: order(order: {lines: list[{sku: str, count?: int}], note?: str | None})"
    )
    assert len(error.problems) == 3


def test_missing_arguments_and_strangers_are_told():
    error = refusal(Tool(two), '{"c": 1}')
    assert error.problems == ("a: required, but missing", "c: not a parameter")
    assert str(error).endswith('Expected: two(a: int, b: str = "x")')


def test_a_stranger_in_a_model_is_not_mistaken_for_a_parameter():
    def f(aa: Closed): ...

    assert refusal(Tool(f), '{"aa": {"a": 1, "ab": 2}}').problems == ("aa.ab: not a parameter",)


def test_a_choice_is_spelled_out():
    def f(unit: Literal["c", "f"], colour: Colour = Colour.RED): ...

    error = refusal(Tool(f), '{"unit": "k", "colour": "green"}')
    assert error.problems[0] == "unit: must be 'c' or 'f', not \"k\""
    assert "'red' or 'blue'" in error.problems[1]


def test_foreign_problems_are_listed_with_paths():
    tool = foreign({"properties": {"n": {"type": "integer"}, "l": {"items": {"type": "string"}}}, "required": ["k"]})
    error = refusal(tool, '{"n": "x", "l": ["a", 1]}')
    assert {problem.split(":")[0] for problem in error.problems} == {"n", "l[1]", "arguments"}
    assert '"k"' in str(error)
    assert "Expected: foreign(" in str(error)


@pytest.mark.parametrize(
    "arguments",
    [
        {"x": "a"},
        {"x": [{"a": object()}]},
        {"x": {"a": 1}},
        {"zz": 1},
        {"x": datetime(2026, 1, 1, tzinfo=UTC)},
    ],
)
def test_no_message_has_a_url_or_a_repr(arguments):
    message = str(refusal(Tool(items), arguments))
    assert "http" not in message
    assert "object at 0x" not in message
    assert "datetime.datetime(" not in message


HUGE = {
    "one long value": '{"x": "' + "a" * 900_000 + '"}',
    "a long key": '{"' + "k" * 900_000 + '": 1}',
    "a long nested key": '{"x": {"' + "k" * 900_000 + '": [1]}}',
    "many values": '{"x": [' + ",".join(['"a"'] * 240_000) + "]}",
    "many keys": "{" + ",".join(f'"k{i}": 1' for i in range(60_000)) + "}",
    "one object": '{"x": {' + ",".join(f'"k{i}": 1' for i in range(60_000)) + "}}",
    "many numbers in text": '{"x": "[' + ",".join(["1"] * 400_000) + '"}',
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE.keys())
@pytest.mark.parametrize(
    "tool",
    [
        Tool(items),
        foreign(
            {
                "properties": {"x": {"type": "array", "items": {"type": "integer"}}},
                "additionalProperties": {"anyOf": [{"type": "null"}, {"type": "string"}]},
                "propertyNames": {"maxLength": 5},
            }
        ),
    ],
    ids=["function", "foreign"],
)
def test_huge_arguments_give_a_short_message_soon(tool, text):
    started = time.process_time()
    error = refusal(tool, text)
    assert len(str(error)) < 10_000
    assert sum(map(len, error.problems)) < 1_000_000
    assert time.process_time() - started < 5


def test_a_huge_signature_gives_a_short_message():
    properties = {f"parameter_{i}": {"enum": [f"value {j}" for j in range(100)]} for i in range(1_000)}
    assert len(str(refusal(foreign({"properties": properties}), '{"parameter_1": 1}'))) < 10_000


def test_a_huge_choice_gives_a_short_message():
    def f(x: Literal[tuple(f"value {i}" for i in range(5_000))]): ...

    f.__annotations__["x"] = Literal[tuple(f"value {i}" for i in range(5_000))]
    assert len(str(refusal(Tool(f), '{"x": "y"}'))) < 10_000


@pytest.mark.parametrize("pattern", ["^(a+)+$", r"^(a+)+\1$", "(x+x+)+y"])
def test_a_pattern_that_backtracks_is_bounded(pattern):
    tool = foreign({"properties": {"x": {"type": "string", "pattern": pattern}}})
    started = time.process_time()
    refusal(tool, json.dumps({"x": "a" * 60 + "x" * 60 + "!"}))
    assert time.process_time() - started < 10


# -- our own functions


@pytest.mark.parametrize(
    ("hint", "text", "value"),
    [
        (int, '"5"', 5),
        (int, "5.0", 5),
        (int, "true", 1),
        (float, '"5.5"', 5.5),
        (float, "5", 5.0),
        (bool, '"yes"', True),
        (bool, "1", True),
        (str, '"5"', "5"),
        (datetime, '"2026-01-02T03:04:05Z"', datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        (Point, '{"x": "1"}', Point(1)),
        (Colour, '"red"', Colour.RED),
    ],
)
def test_coercion_is_lax(hint, text, value):
    def f(x):
        return x

    f.__annotations__ = {"x": hint}
    read = Tool(f).read(f'{{"x": {text}}}')["x"]
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("hint", "text"), [(str, "5"), (int, "5.5"), (int, '"x"'), (bool, "2"), (int, "null"), (str, "null")]
)
def test_coercion_has_bounds(hint, text):
    def f(x): ...

    f.__annotations__ = {"x": hint}
    refusal(Tool(f), f'{{"x": {text}}}')


def test_models_are_constructed_with_their_defaults():
    read = Tool(order).read('{"order": {"lines": [{"sku": "a", "count": "2"}, {"sku": "b"}]}}')
    assert read == {"order": Order(lines=[Line(sku="a", count=2), Line(sku="b")])}


def test_a_functions_own_defaults_are_left_to_the_function():
    assert Tool(two).read('{"a": 1}') == {"a": 1}
    assert Tool(two).call('{"a": 1}') == (1, "x")


def test_recursive_models_are_bounded_in_depth():
    def nested(levels: int) -> str:
        return '{"value": 1, "children": [' * levels + '{"value": 1}' + "]}" * levels

    assert Tool(tree).read(f'{{"tree": {nested(20)}}}')
    assert "deep" in str(refusal(Tool(tree), f'{{"tree": {nested(40)}}}'))


def test_a_mapping_may_hold_what_json_cannot():
    moment = datetime(2026, 1, 1, tzinfo=UTC)

    def f(when: datetime, point: Point, extra: Any = None):
        return when, point, extra

    marker = object()
    assert Tool(f).call({"when": moment, "point": Point(1), "extra": marker}) == (moment, Point(1), marker)
    assert Tool(f).call(MappingProxyType({"when": moment, "point": {"x": 1}})) == (moment, Point(1), None)


def test_a_validator_of_the_author_is_told_to_the_model():
    class Even(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def check(cls, n: int) -> int:
            if n % 2:
                raise ValueError("must be even")
            return n

    def f(x: Even): ...

    assert "must be even" in str(refusal(Tool(f), '{"x": {"n": 1}}'))


def test_a_type_error_of_an_authors_validator_stays_what_it_is():
    class Broken(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def check(cls, _n: int) -> int:
            raise TypeError("broken validator")

    def f(x: Broken): ...

    with pytest.raises(TypeError, match="broken validator"):
        Tool(f).read('{"x": {"n": 1}}')


def test_an_alias_is_what_the_model_writes():
    def f(from_: Annotated[str, Field(alias="from")], to: str = "b"):
        return from_, to

    tool = Tool(f)
    assert list(tool.input_schema["properties"]) == ["from", "to"]
    assert tool.call('{"from": "a"}') == ("a", "b")


def test_defaults_of_pydantic_fields_are_filled_in():
    def f(a: int = Field(3, ge=1), b: list[int] = Field(default_factory=lambda: [1]), c: int = Field(ge=1)):  # noqa: B008  # what pydantic users write
        return a, b, c

    tool = Tool(f)
    assert tool.input_schema["required"] == ["c"]
    assert tool.call('{"c": 1}') == (3, [1], 1)
    assert "duplicate key" in str(refusal(tool, '{"c": 1, "c": 1}'))
    refusal(tool, '{"a": 0, "c": 1}')


# -- foreign schemas


@pytest.mark.parametrize(
    "arguments",
    [
        {"n": 1.0, "s": "5", "l": [None, True, {"a": []}]},
        {"n": 10**400},
        {"unknown": {"kept": 1}},
        {},
    ],
)
def test_foreign_arguments_are_passed_on_unchanged(arguments):
    tool = foreign({"properties": {"n": {"type": "number"}, "d": {"type": "integer", "default": 5}}})
    read = tool.read(json.dumps(arguments))
    assert read == arguments
    assert {key: type(value) for key, value in read.items()} == {key: type(value) for key, value in arguments.items()}
    assert tool.call(arguments) == arguments


def test_foreign_arguments_are_not_coerced():
    for wrong in ('{"n": 1.5}', '{"n": true}', '{"s": 5}', '{"n": "x"}'):
        refusal(foreign(), wrong)


def test_a_draft_07_schema_is_read_as_such():
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"pair": {"type": "array", "items": [{"type": "integer"}, {"type": "string"}]}},
        "definitions": {"unused": {}},
    }
    tool = foreign(schema)
    assert tool.read('{"pair": [1, "a"]}') == {"pair": [1, "a"]}
    refusal(tool, '{"pair": ["a", 1]}')


@pytest.mark.parametrize("name", ["https://example.com/schema", "http://json-schema.org/draft-03/schema#", "urn:x", ""])
def test_an_unknown_draft_is_read_as_the_newest(name):
    tool = foreign({"$schema": name, "properties": {"n": {"type": "integer"}}})
    assert tool.read('{"n": 1}') == {"n": 1}
    refusal(tool, '{"n": "x"}')
    assert tool.input_schema["$schema"] == name


def test_recursive_references_are_followed():
    tree_schema = {
        "properties": {"root": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {"properties": {"kids": {"items": {"$ref": "#/$defs/node"}}}, "required": ["v"]}},
    }
    tool = foreign(tree_schema)
    assert tool.read('{"root": {"v": 1, "kids": [{"v": 2}]}}')
    assert "root.kids[0]" in str(refusal(tool, '{"root": {"v": 1, "kids": [{}]}}'))


@pytest.fixture
def listener():
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(0)
    with server:
        yield server


def test_a_remote_reference_is_refused_without_a_connection(listener):
    tool = foreign({"properties": {"n": {"$ref": f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"}}})
    with pytest.raises(ToolSignatureError, match="may not leave the schema"):
        tool.read('{"n": 1}')
    with pytest.raises(BlockingIOError):
        listener.accept()


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"n": {"$ref": "file:///etc/passwd"}}},
        {"properties": {"n": {"$ref": "#/$defs/missing"}}},
        {"properties": {"n": {"pattern": "("}}},
        {"properties": {"n": 5}},
        {"required": "n"},
        {"properties": {"n": {"type": "objekt"}}},
    ],
)
def test_an_unusable_schema_is_a_signature_error(schema):
    with pytest.raises(ToolSignatureError):
        foreign(schema).read('{"n": 1}')


def test_validation_can_be_turned_off_but_strict_parsing_cannot():
    tool = foreign(validate=False)
    assert tool.read('{"n": "not a number"}') == {"n": "not a number"}
    for text in ('{"n": 1, "n": 2}', '{"n": NaN}', "[]", "{"):
        refusal(tool, text)
    refusal(tool, {"n": math.nan})


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, b"x", {1: 2}, "\ud800", datetime(2026, 1, 1, tzinfo=UTC), {"k": [object()]}]
)
def test_a_foreign_tool_takes_json_data_only(value):
    error = refusal(foreign({}), {"x": value})
    assert "arguments.x" in error.problems[0]
    assert len(str(error)) < 1_000


# -- anything at all

ANY_CHARACTER = st.characters(exclude_categories=())
TEXT = st.text(ANY_CHARACTER, max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
ANYTHING = JSON | st.binary(max_size=8) | st.builds(object) | st.sets(st.integers(), max_size=3) | st.datetimes()


def every(a: int = 0, b: float = 0, c: list[str] = [], d: dict[str, Any] | None = None, e: Order | None = None): ...  # noqa: B006


def assert_read_or_refused(tool: Tool, arguments: Any) -> None:
    try:
        read = tool.read(arguments)
    except ToolArgumentError as error:
        refused = error
    else:
        assert type(read) is dict
        return
    assert refused.problems
    assert len(str(refused)) < 10_000
    str(refused).encode()


ALL = [Tool(two), Tool(anything), Tool(items), Tool(every), Tool(tree), foreign(), foreign(validate=False)]


@given(st.text(ANY_CHARACTER, max_size=60) | JSON.map(json.dumps))
def test_text_is_read_or_refused_and_nothing_else(text):
    for tool in ALL:
        assert_read_or_refused(tool, text)


@given(st.dictionaries(st.sampled_from("abcdexnsl") | TEXT, ANYTHING, max_size=5) | ANYTHING)
def test_values_are_read_or_refused_and_nothing_else(arguments):
    for tool in ALL:
        assert_read_or_refused(tool, arguments)


@given(JSON)
def test_whatever_json_a_model_sends_arrives_as_it_is(value):
    text = json.dumps({"x": value})
    finite = "NaN" not in text and "Infinity" not in text
    surrogate = any(0xD800 <= int(part[:4], 16) <= 0xDFFF for part in text.split("\\u")[1:] if len(part) >= 4)
    if finite and not surrogate:
        assert Tool(anything).read(text) == {"x": value}
        assert foreign({}).read(text) == {"x": value}


@given(st.lists(st.tuples(st.sampled_from(["x", "y", "x:", '"', "\\", ""]), JSON), max_size=4), st.booleans())
def test_duplicate_keys_are_found_exactly_when_there_are_any(pairs, escaped):
    members = [f"{json.dumps(key)}:{json.dumps(value, ensure_ascii=escaped)}" for key, value in pairs]
    text = '{"x": {' + ",".join(members) + "}}"
    try:
        value = json.loads(text)
        text.encode()
    except (ValueError, UnicodeEncodeError):
        return
    duplicate = len({key for key, _ in pairs}) < len(pairs)
    if "NaN" in text or "Infinity" in text or "\\ud" in text:
        return
    if duplicate:
        assert "duplicate key" in str(refusal(Tool(anything), text))
    else:
        assert Tool(anything).read(text) == value
