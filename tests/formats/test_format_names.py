from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.formats import FORMATS
from toolcrib.formats._names import ANTHROPIC, GEMINI, MCP, OPENAI, gemini_name, wire_names
from toolcrib.tools import Tool
from toolcrib.toolset import Toolset

LEGAL = {
    "openai_chat": r"[a-zA-Z0-9_-]{1,64}",
    "openai_responses": r"[a-zA-Z0-9_-]{1,64}",
    "anthropic": r"[a-zA-Z0-9_-]{1,64}",
    "gemini": r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}",
    "mcp": r"[a-zA-Z0-9_.-]{1,128}",
}
HOSTILE = [
    "",
    ".",
    "a.b",
    "a b",
    "a_b",
    "a/b",
    "ü",
    "名前",
    "1st",
    "-x",
    "x" * 64,
    "x" * 65,
    "x" * 200,
    "a\ud800",
    "\n",
]

# few characters, so that names collide, and any at all
names = st.text("ab._/ 1-:", max_size=5) | st.text(max_size=12) | st.text("ab", min_size=60, max_size=140)


def declared(name):
    return Tool.from_schema(name, "", {"type": "object"})


def wire_list(format_name, toolset):
    listed = FORMATS[format_name].tools(toolset)
    if format_name == "gemini":
        return [one["name"] for group in listed for one in group["function_declarations"]]
    return [one["function"]["name"] if "function" in one else one["name"] for one in listed]


def reply_with(format_name, *wire):
    if format_name == "openai_chat":
        return [{"id": f"i{n}", "function": {"name": name, "arguments": "{}"}} for n, name in enumerate(wire)]
    if format_name == "openai_responses":
        return [{"type": "function_call", "call_id": f"i{n}", "name": name} for n, name in enumerate(wire)]
    if format_name == "anthropic":
        return [{"type": "tool_use", "id": f"i{n}", "name": name, "input": {}} for n, name in enumerate(wire)]
    return [{"functionCall": {"id": f"i{n}", "name": name, "args": {}}} for n, name in enumerate(wire)]


def read_names(format_name, toolset, wire):
    if format_name == "mcp":
        return [call.name for name in wire for call in FORMATS["mcp"].calls({"name": name}, toolset)]
    return [call.name for call in FORMATS[format_name].calls(reply_with(format_name, *wire), toolset)]


@pytest.mark.parametrize("rule", [OPENAI, ANTHROPIC, MCP])
@given(st.lists(names, unique=True, max_size=30), st.randoms())
def test_wire_names_are_legal_and_unique_and_do_not_depend_on_the_order(rule, given_names, chance):
    wire = wire_names(given_names, rule)
    assert list(wire) == given_names
    assert all(rule.allows(name) for name in wire.values())
    assert len(set(wire.values())) == len(given_names)
    chance.shuffle(given_names)
    assert wire_names(given_names, rule) == wire


@pytest.mark.parametrize("rule", [OPENAI, MCP])
@given(st.lists(names, unique=True, max_size=30))
def test_a_legal_name_keeps_itself(rule, given_names):
    wire = wire_names(given_names, rule)
    assert all(wire[name] == name for name in given_names if rule.allows(name))


def test_wire_names_stay_unique_when_a_legal_name_equals_the_hash_of_another():
    hashed = wire_names(["a.b", "a/b"], OPENAI)["a.b"]
    wire = wire_names(["a.b", "a/b", hashed], OPENAI)
    assert wire[hashed] == hashed
    assert len(set(wire.values())) == 3


def test_a_dot_becomes_an_underscore_where_that_is_free():
    assert wire_names(["fs.read_file"], OPENAI) == {"fs.read_file": "fs_read_file"}


def test_two_names_with_one_plain_form_are_told_apart_by_hashes():
    wire = wire_names(["a.b", "a b", "a_b"], OPENAI)
    assert wire["a_b"] == "a_b"
    assert re.fullmatch("a_b_[0-9a-f]{8}", wire["a.b"])
    assert re.fullmatch("a_b_[0-9a-f]{8}", wire["a b"])
    assert wire["a.b"] != wire["a b"]


@given(names)
def test_a_gemini_name_follows_from_the_name_alone(name):
    wire = gemini_name(name)
    assert re.fullmatch(LEGAL["gemini"], wire)
    assert (wire == name) is GEMINI.allows(name)


@pytest.mark.parametrize("format_name", LEGAL)
def test_every_hostile_name_is_sent_legally_and_mapped_back(format_name):
    canonical = [name for name in HOSTILE if name.strip()]
    toolset = Toolset([declared(name) for name in canonical])
    wire = wire_list(format_name, toolset)
    assert all(re.fullmatch(LEGAL[format_name], name) for name in wire)
    assert len(set(wire)) == len(canonical)
    assert read_names(format_name, toolset, wire) == canonical


@pytest.mark.parametrize("format_name", LEGAL)
@given(st.lists(names.filter(lambda name: name.strip()), unique=True, max_size=12))
def test_names_always_map_back(format_name, canonical):
    toolset = Toolset([declared(name) for name in canonical])
    assert read_names(format_name, toolset, wire_list(format_name, toolset)) == canonical


@pytest.mark.parametrize("format_name", LEGAL)
def test_a_name_nobody_was_shown_comes_through_as_it_is(format_name):
    toolset = Toolset([declared("a.b")])
    assert read_names(format_name, toolset, ["no_such", "a b c"]) == ["no_such", "a b c"]


def test_ten_thousand_names_are_unique():
    chance = random.Random(7)  # noqa: S311  # not for secrets
    many = list({f"x{'.' * chance.randint(0, 60)}{n}" for n in range(10_000)})
    assert len(set(wire_names(many, OPENAI).values())) == len(many)
