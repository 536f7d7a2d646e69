"""Arguments that come back, as the canonical schema knows them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.formats._undo import Undo
from toolcrib.schema._keys import key_aliases
from toolcrib.schema.dialects import ANTHROPIC_KEYS

SCHEMA = {
    "type": "object",
    "properties": {
        "q": {"type": "string"},
        "limit": {"type": "integer", "default": 5},
        "unit": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "opt": {"$ref": "#/$defs/Opt"},
        "many": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/Opt"}, {"type": "null"}]}},
        "pair": {"type": "array", "prefixItems": [{"$ref": "#/$defs/Opt"}, {"type": "null"}]},
        "free": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Opt"}},
    },
    "required": ["q"],
    "$defs": {
        "Opt": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "string", "default": "x"}},
            "required": ["a"],
        },
    },
}
nulls = Undo(SCHEMA, {}, nulls=True)


@pytest.mark.parametrize(
    ("given_arguments", "expected"),
    [
        ({"q": "x", "limit": None}, {"q": "x"}),
        ({"q": None, "limit": 1}, {"q": None, "limit": 1}),
        ({"q": "x", "unit": None}, {"q": "x", "unit": None}),
        ({"q": "x", "opt": None}, {"q": "x"}),
        ({"q": "x", "opt": {"a": 1, "b": None}}, {"q": "x", "opt": {"a": 1}}),
        ({"q": "x", "opt": {"a": None, "b": "y"}}, {"q": "x", "opt": {"a": None, "b": "y"}}),
        ({"many": [{"a": 1, "b": None}, None]}, {"many": [{"a": 1}, None]}),
        ({"pair": [{"a": 1, "b": None}, None]}, {"pair": [{"a": 1}, None]}),
        ({"free": {"x": {"a": 1, "b": None}, "y": None}}, {"free": {"x": {"a": 1}, "y": None}}),
        ({"unknown": None}, {"unknown": None}),
        ({"q": ["x", None]}, {"q": ["x", None]}),
    ],
)
def test_a_null_goes_only_where_it_stands_for_left_out(given_arguments, expected):
    assert nulls(given_arguments) == expected
    assert json.loads(nulls(json.dumps(given_arguments))) == expected


@pytest.mark.parametrize(
    "text",
    [
        '{"q": "x",   "limit": 5}',
        '{"q": "null"}',
        '{"q": "x", "unit": null}',
        '{"q": "x", "limit": null',
        '{"q": "a", "q": "b", "limit": null}',
        '{"q": "a", "limit": null, "limit": null}',
        '{"opt": {"a": 1, "a": 2}, "limit": null}',
        '{"q": NaN, "limit": null}',
        '{"q": 1e999, "limit": null}',
        '{"q": 0.1000000000000000055511151231257827, "limit": null}',
        '{"q": "x", "limit": null} trailing',
        "null",
        "[null]",
        "",
        '{"q":' + "[" * 100_000 + "null",
        '{"limit": null, "q": ' + "1" * 5000 + "}",
    ],
)
def test_text_with_nothing_to_remove_or_something_wrong_is_passed_on_untouched(text):
    assert nulls(text) == text


def test_a_mapping_that_came_from_an_sdk_is_not_changed():
    given_arguments = {"q": "x", "limit": None, "opt": {"a": 1, "b": None}}
    nulls(given_arguments)
    assert given_arguments == {"q": "x", "limit": None, "opt": {"a": 1, "b": None}}


def test_arguments_nested_beyond_measure_are_passed_on():
    deep = {}
    for _ in range(5_000):
        deep = {"opt": deep}
    assert nulls({"limit": None, "q": deep}) == {"q": deep}


KEYED = {
    "type": "object",
    "properties": {
        "my key": {"type": "string"},
        "$filter": {"type": "array", "items": {"$ref": "#/$defs/Row"}},
        "free": {"type": "object"},
        "x": {"type": "string"},
    },
    "$defs": {"Row": {"type": "object", "properties": {"col/1": {"type": "integer"}}}},
}
ALIASES = key_aliases(KEYED, ANTHROPIC_KEYS)
keys = Undo(KEYED, {alias: key for key, alias in ALIASES.items()}, nulls=False)


def test_keys_get_their_own_names_back_at_every_depth():
    assert ALIASES == {"my key": "my_key", "$filter": "_filter", "col/1": "col_1"}
    assert keys({"my_key": "a", "_filter": [{"col_1": 1}], "x": None}) == {
        "my key": "a",
        "$filter": [{"col/1": 1}],
        "x": None,
    }


def test_free_data_that_looks_like_a_renamed_key_is_left_alone():
    assert keys({"free": {"my_key": 1}, "col_1": 2}) == {"free": {"my_key": 1}, "col_1": 2}


def test_a_model_that_writes_the_canonical_key_is_understood():
    assert keys({"my key": "a"}) == {"my key": "a"}


def test_both_spellings_of_a_key_are_left_for_the_reader_to_refuse():
    both = {"my key": "a", "my_key": "b"}
    assert keys(both) == both


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["q", "limit", "opt", "a", "b", "many"]) | st.text(), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "z"]), json_values))
def test_text_and_mapping_come_to_the_same(arguments):
    assert json.loads(nulls(json.dumps(arguments))) == nulls(arguments)


@given(st.text(alphabet='{}[]":,nul q1e.-\\', max_size=40))
def test_any_text_is_passed_on(text):
    nulls(text)
