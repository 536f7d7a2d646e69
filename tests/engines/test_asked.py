from __future__ import annotations

import pytest

from toolcrib.engines.local._asked import Rest, first_clause, is_grounded, mentions, only_asked, rest_of
from toolcrib.engines.local._conversation import Done


def done(*values: object, ok: bool = True) -> Done:
    return Done("tool", {f"p{number}": value for number, value in enumerate(values)}, "42", ok)


@pytest.mark.parametrize(
    ("request_", "calls", "rest"),
    [
        ("What's the weather in Oslo and in Rome?", [done("Oslo")], Rest("in Rome?", joined=True)),
        ("What's the weather in Oslo and in Rome?", [done("Oslo"), done("Rome")], Rest()),
        ("What's the weather in Oslo?", [done("Oslo")], Rest()),
        ("Add 5 and 6, and remind me at 5pm.", [done(5, 6)], Rest("remind me at 5pm.", joined=True)),
        ("Add 1,200 and six, then halve it.", [done(1200.0, 6)], Rest("halve it.", joined=True)),
        ("Convert 50 dollars to euros, add 10.", [done(50)], Rest("add 10.", joined=False)),
        ("Greet Bob. Email it to Ann.", [done("bob")], Rest("Email it to Ann.", joined=False)),
        ("Multiply 6 by 7, then set a timer for that long.", [done(6, 7), done(42)], Rest()),
        ("Say a, b and c", [done("a"), done("b")], Rest("c", joined=True)),
        ("Roll the dice and call Ann", [done()], Rest("call Ann", joined=True)),
        ("Roll a six and call Ann", [done("unsaid")], Rest()),
        ("Oslo and Rome?", [done("Oslo", ok=False)], Rest()),
        ("Wetter in Oslo und in Rom?", [done("Oslo")], Rest("in Rom?", joined=True)),
        ("", [done("x")], Rest()),
        ("no calls and nothing used", [], Rest()),
    ],
)
def test_the_rest_of_a_request_is_what_comes_after_the_values_of_its_calls(
    request_: str, calls: list[Done], rest: Rest
):
    assert rest_of(request_, calls) == rest


@pytest.mark.parametrize(
    ("request_", "first"),
    [
        ("Subtract 15 from 90, then divide the result by 3.", "Subtract 15 from 90"),
        ("Add 1 and 2 and then halve it", "Add 1 and 2"),
        ("Take the root of 81 and text the result to Nina.", "Take the root of 81"),
        ("Add 5 and 6", "Add 5 and 6"),
        ("Weather in Oslo and in Rome?", "Weather in Oslo and in Rome?"),
    ],
)
def test_a_sequence_begins_with_its_first_clause(request_: str, first: str):
    assert first_clause(request_) == first


def test_values_are_mentioned_as_whole_words_in_any_case():
    assert mentions("weather in new york, please", "New York")
    assert mentions("a table for two", 2)
    assert mentions("send 1,000 now", {"amount": 1000.0})
    assert not mentions("remind me at 5pm", 5)
    assert not mentions("Yorkshire", "York")
    assert mentions("count our lamps", "lamp")
    assert not mentions("nothing", "")


def test_optional_arguments_nobody_asked_for_are_dropped():
    schema = {"required": ["city"], "properties": {}}
    arguments = {"city": "Paris", "unit": "celsius", "days": 3, "detailed": True, "hourly": False}
    assert only_asked(arguments, schema, "Detailed weather in Paris for three days") == {
        "city": "Paris",
        "days": 3,
        "detailed": True,
    }


@pytest.mark.parametrize(
    ("arguments", "rest", "grounded"),
    [
        ({"city": "Rome"}, Rest("in Rome?", joined=True), True),
        ({"city": "Rome"}, Rest("Rome", joined=True), True),
        ({"city": "Lisbon"}, Rest("in Rome?", joined=True), False),
        ({"minutes": 42}, Rest("set a timer for that long", joined=True), True),
        ({"minutes": 42}, Rest("how long is that?", joined=False), False),
        ({"query": "look through my files"}, Rest("Look through my files.", joined=False), False),
        ({}, Rest("roll the dice", joined=True), True),
    ],
)
def test_a_further_call_needs_a_value_from_what_is_left(arguments: dict[str, object], rest: Rest, *, grounded: bool):
    assert is_grounded(arguments, rest, ["42"]) is grounded
