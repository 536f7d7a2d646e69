from __future__ import annotations

import json
from typing import Any

import pytest

from toolcrib._words import json_of

ORDER = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "guests": {"type": "integer"}, "notes": {"$ref": "#/$defs/Notes"}},
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "either": {"type": ["integer", "string"]},
        "count": {"type": "integer"},
        "flag": {"type": "boolean"},
        "level": {"enum": [1, "2", None]},
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "words": {"$ref": "#/$defs/Notes"},
        "one_or_many": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        "anything": {},
        "order": {"$ref": "#/$defs/Order"},
        "dotted.name": {"type": "string"},
        "circle": {"$ref": "#/$defs/Circle"},
        "nowhere": {"$ref": "elsewhere.json#/x"},
    },
    "$defs": {
        "Order": ORDER,
        "Notes": {"type": "array", "items": {"type": "string"}},
        "Circle": {"anyOf": [{"$ref": "#/$defs/Circle"}, {"$ref": "#/$defs/Circle"}]},
    },
}


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ([], {}),
        (["text=5"], {"text": "5"}),
        (["text=true"], {"text": "true"}),
        (["text="], {"text": ""}),
        (["text=a=b"], {"text": "a=b"}),
        (["text= spaced "], {"text": " spaced "}),
        (['text="quoted" \\ é \x1b'], {"text": '"quoted" \\ é \x1b'}),
        (["maybe=null"], {"maybe": "null"}),
        (["either=5"], {"either": "5"}),
        (["count=5"], {"count": 5}),
        (["count=-5"], {"count": -5}),
        (["count=five"], {"count": "five"}),
        (["count=NaN"], {"count": "NaN"}),
        (["flag=true"], {"flag": True}),
        (["flag=yes"], {"flag": "yes"}),
        (["level=1"], {"level": 1}),
        (["level=2"], {"level": "2"}),
        (["level=null"], {"level": None}),
        (["numbers=[1, 2]"], {"numbers": [1, 2]}),
        (["numbers=1"], {"numbers": [1]}),
        (["numbers=1", "numbers=2"], {"numbers": [1, 2]}),
        (["words=1", "words=b"], {"words": ["1", "b"]}),
        (["one_or_many=a"], {"one_or_many": "a"}),
        (["one_or_many=a", "one_or_many=b"], {"one_or_many": ["a", "b"]}),
        (["count=1", "count=2"], {"count": [1, 2]}),
        (["anything=5"], {"anything": 5}),
        (["anything=some text"], {"anything": "some text"}),
        (['anything={"a": [1]}'], {"anything": {"a": [1]}}),
        (['order={"name": "5"}'], {"order": {"name": "5"}}),
        (["order.name=5", "order.guests=5"], {"order": {"name": "5", "guests": 5}}),
        (["order.notes=1"], {"order": {"notes": ["1"]}}),
        (["dotted.name=5"], {"dotted.name": "5"}),
        (["unknown=5", "unknown2.a=b"], {"unknown": 5, "unknown2": {"a": "b"}}),
        (["circle=5"], {"circle": 5}),
        (["nowhere=5"], {"nowhere": 5}),
        (['{"count": 5}'], {"count": 5}),
    ],
)
def test_words_become_arguments_as_their_schema_says(words, arguments):
    assert json.loads(json_of(words, SCHEMA)) == arguments


def test_a_key_that_stands_twice_in_a_value_is_kept_for_the_strict_reader():
    assert json_of(['order={"name": "a", "name": "b"}'], SCHEMA).count('"name"') == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["count"], "'count' is no argument: write name=value, or all arguments as one JSON object"),
        (["=5"], "'=5' is no argument"),
        (['{"count": 5}', "flag=true"], "is no argument"),
        (["order={}", "order.name=a"], "order is given both as a whole and in parts"),
        (["order.name=a", "order={}"], "order is given both as a whole and in parts"),
        (["order.name.x=a", "order.name=a"], "order.name is given both as a whole and in parts"),
    ],
)
def test_words_that_make_no_sense_are_refused(words, said):
    with pytest.raises(ValueError, match="is") as raised:
        json_of(words, SCHEMA)
    assert said in str(raised.value)
