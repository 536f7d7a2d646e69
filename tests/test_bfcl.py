"""The Berkeley Function Calling Leaderboard: what its functions are shown as, and its gold calls come back as."""

from __future__ import annotations

import json
import warnings
from typing import Any, NamedTuple

import pytest
from replies import as_shown, read_back

from toolcrib.errors import ToolArgumentError, ToolcribWarning
from toolcrib.formats import FORMATS
from toolcrib.schema.jsonschema import compiled
from toolcrib.tools import Tool
from toolcrib.toolset import Toolset
from toolcrib.types import ToolCall

SETS = {"simple_python": (400, 400, 400), "parallel": (198, 200, 540)}  # functions, cases, gold calls
LEFT_OUT = ""  # as an accepted value: the argument may be left out

# Calls whose first accepted values do not fit the schema that the same case gives.
CONTRADICTIONS = {
    "simple_python_200": "fuel_efficiency is required, but the first accepted answer leaves it out",
}

# Any other accepted value that does not fit, where every other argument has its first one.
OTHER_CONTRADICTIONS = {
    ("simple_python_17", "formatted", ""): "required, but may be left out",
    ("simple_python_149", "company_names", (("Apple",), ("Microsoft",))): "lists of names, but the items are strings",
    ("simple_python_307", "venue", True): "a boolean, but the type is string",
    ("simple_python_358", "diet", ("GF",)): "not one of the enum",
    ("simple_python_358", "diet", ("gluten free",)): "not one of the enum",
    ("parallel_88", "initial_velocity", ""): "required, but may be left out",
    ("parallel_152", "mod", None): "null, but the type is number",
}

# Functions that strict mode cannot express, and why: their schemas leave open what a value is.
NOT_STRICT = {
    "poker_game_winner": "cards takes any key",
    "random_forest.train": "data may be anything",
    "waste_calculation.calculate": "population takes any key",
}


class Case(NamedTuple):
    """One case: its tools, and the calls that answer it."""

    id: str
    function: dict[str, Any]
    gold: list[dict[str, list[Any]]]

    def toolset(self, **options):
        spec = self.function
        return Toolset([Tool.from_schema(spec["name"], spec["description"], spec["parameters"], **options)])

    def calls(self):
        return [ToolCall(f"id_{n}", self.function["name"], firsts(given)) for n, given in enumerate(self.gold)]


# -- the data set's own dialect

WORDS = {"dict": "object", "float": "number", "tuple": "array", "any": None}


def json_schema(node):
    schema = dict(node)
    schema["type"] = WORDS.get(node["type"], node["type"])
    if schema["type"] is None:
        del schema["type"]
    if "properties" in node:
        schema["properties"] = {name: json_schema(child) for name, child in node["properties"].items()}
    if "items" in node:
        schema["items"] = json_schema(node["items"])
    return schema


def firsts(accepted):
    """Return the first accepted value of each member that is not left out."""
    return {name: plain(values[0]) for name, values in accepted.items() if values[0] != LEFT_OUT}


def plain(value):
    if isinstance(value, dict):  # the members of an object have lists of accepted values again
        return firsts(value)
    return [plain(item) for item in value] if isinstance(value, list) else value


def hashable(value):
    return tuple(hashable(item) for item in value) if isinstance(value, list) else value


def lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def read_set(folder, name):
    functions = [
        {**spec, "parameters": json_schema(spec["parameters"])} for spec in lines(folder / f"{name}.functions.jsonl")
    ]
    cases: list[Case] = []
    for case in lines(folder / f"{name}.cases.jsonl"):
        (index,) = case["function"]
        gold = [given[functions[index]["name"]] for given in case["ground_truth"]]
        cases.append(Case(case["id"], functions[index], gold))
    return functions, cases


@pytest.fixture(scope="module")
def bfcl(shared_data):
    return {name: read_set(shared_data / "bfcl", name) for name in SETS}


@pytest.fixture(scope="module")
def cases(bfcl):
    return [case for _, cases in bfcl.values() for case in cases]


@pytest.fixture(scope="module")
def sound(cases):
    return [case for case in cases if case.id not in CONTRADICTIONS]


# -- schemas and arguments


@pytest.mark.parametrize("name", SETS)
def test_every_function_becomes_a_tool_that_can_read_arguments(bfcl, name):
    functions, cases = bfcl[name]
    assert (len(functions), len(cases), sum(len(case.gold) for case in cases)) == SETS[name]
    for spec in functions:
        made = Tool.from_schema(spec["name"], spec["description"], spec["parameters"])
        assert made.input_schema == spec["parameters"]
        assert callable(made.read)


def test_gold_calls_fit_their_own_schema_but_for_the_known_contradictions(cases):
    refused: set[str] = set()
    for case in cases:
        (tool,) = case.toolset()
        for call in case.calls():
            try:
                read = [tool.read(call.arguments), tool.read(json.dumps(call.arguments))]
            except ToolArgumentError:
                refused.add(case.id)
            else:
                assert read == [call.arguments, call.arguments]
    assert refused == CONTRADICTIONS.keys()


def test_all_other_accepted_values_fit_too_but_for_the_known_contradictions(sound):
    refused: set[Any] = set()
    for case in sound:
        (tool,) = case.toolset()
        for accepted in case.gold:
            for name, value in [(name, value) for name, values in accepted.items() for value in values]:
                try:
                    tool.read(firsts({**accepted, name: [value]}))
                except ToolArgumentError:
                    refused.add((case.id, name, hashable(value)))
    assert refused == OTHER_CONTRADICTIONS.keys()


def test_a_call_without_one_required_argument_is_refused_by_its_name(sound):
    for case in sound:
        (tool,) = case.toolset()
        for name in tool.input_schema.get("required", ()):
            arguments = case.calls()[0].arguments
            with pytest.raises(ToolArgumentError, match=name):
                tool.read({key: value for key, value in arguments.items() if key != name})


def test_googles_own_types_which_refuse_strangers_take_every_function(bfcl):
    from google.genai import types

    for spec in [spec for functions, _ in bfcl.values() for spec in functions]:
        tool = Tool.from_schema(spec["name"], spec["description"], spec["parameters"])
        (group,) = FORMATS["gemini"].tools(Toolset([tool]))
        (declaration,) = types.Tool.model_validate(group).function_declarations or ()
        assert len((declaration.parameters and declaration.parameters.properties) or ()) == len(tool.parameters)


# -- replies, as each provider builds them from the definitions that it was shown


def differences(cases, format_name, **options):
    """Return the cases whose calls do not come back as they were made."""
    different: list[str] = []
    for case in cases:
        toolset = case.toolset(**options)
        (tool,) = toolset
        found = read_back(format_name, toolset, case.calls())
        # a text has no ids, so there they are made
        expected = [
            (f"call_{n}" if format_name == "xml" else call.id, call.name, call.arguments)
            for n, call in enumerate(case.calls(), 1)
        ]
        if [(call.id, call.name, tool.read(call.arguments)) for call in found] != expected:
            different.append(case.id)
    return different


@pytest.mark.parametrize("format_name", FORMATS)
def test_gold_calls_come_back_from_every_provider_in_their_order(sound, format_name):
    assert differences(sound, format_name) == []


@pytest.mark.filterwarnings("ignore:OpenAI is shown the tool:toolcrib.errors.ToolcribWarning")
@pytest.mark.parametrize("format_name", ["openai_chat", "openai_responses"])
def test_gold_calls_come_back_from_strict_mode_without_its_nulls(sound, format_name):
    assert differences(sound, format_name, strict=True) == []


@pytest.mark.filterwarnings("ignore:OpenAI is shown the tool:toolcrib.errors.ToolcribWarning")
@pytest.mark.parametrize("strict", [False, True])
def test_a_provider_that_obeys_the_definition_can_make_every_gold_call(sound, strict):
    for case in sound:
        toolset = case.toolset(strict=strict)
        (tool,) = toolset
        shown = FORMATS["openai_chat"].tools(toolset)[0]["function"]["parameters"]
        validator = compiled(shown)
        for call in case.calls():
            assert validator.is_valid(as_shown(call.arguments, tool.input_schema, shown)), case.id


def test_strict_mode_is_given_up_only_for_functions_that_it_cannot_express(bfcl):
    reasons: dict[str, str] = {}
    for spec in [spec for functions, _ in bfcl.values() for spec in functions]:
        tool = Tool.from_schema(spec["name"], spec["description"], spec["parameters"], strict=True)
        with warnings.catch_warnings(record=True, category=ToolcribWarning) as caught:
            warnings.simplefilter("always")
            (shown,) = FORMATS["openai_chat"].tools(Toolset([tool]))
        assert shown["function"].get("strict", False) is not bool(caught)
        for one in caught:
            reasons[tool.name] = str(one.message).partition("strict mode: ")[2]
    assert reasons == NOT_STRICT
