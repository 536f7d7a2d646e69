"""What users of other tool layers complain about: schemas, dialects and names, one row an issue.

Rows are named by the issue of the repository where it was told; `test_peers_calls.py` has arguments, errors and time.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Literal, Optional, Union

import pytest
from model_server import KEY, ModelServer
from pydantic import BaseModel
from replies import as_shown

from toolcrib import Agent, LLMEngine, Tool, ToolCall, ToolcribWarning, ToolNameError, Toolset, tool
from toolcrib.dispatch import call_tools
from toolcrib.formats import FORMATS

TOLD: set[str] = set()


def table(names, rows):
    """Run a test for each row; rows are named by the issue they answer."""
    TOLD.update(rows)
    return pytest.mark.parametrize(names, list(rows.values()), ids=list(rows))


# What each format shows of the only tool of a toolset, or of the one of a name.


def shown(format_name, *tools) -> list[dict[str, Any]]:
    listed = FORMATS[format_name].tools(Toolset(tools))
    if format_name == "gemini":
        return [one for group in listed for one in group["function_declarations"]]
    return [one.get("function", one) for one in listed]


def schema_shown(format_name, made) -> dict[str, Any]:
    (one,) = shown(format_name, made)
    return next(one[word] for word in ("parameters", "input_schema", "inputSchema") if word in one)


def nodes(schema) -> Iterator[dict[str, Any]]:
    """Yield every schema inside a schema, itself included; what property names spell is no word of a schema."""
    if isinstance(schema, dict):
        yield schema
        for word, value in schema.items():
            children = value.values() if word in ("properties", "$defs") else [value]
            for child in children:
                yield from nodes(child)
    elif isinstance(schema, list):
        for item in schema:
            yield from nodes(item)


def taking(hint, *default):
    def f(x):
        return x

    f.__annotations__ = {"x": hint}
    f.__defaults__ = default or None
    return Tool(f)


def obj(required=(), **properties):
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def declared(schema, name="t", **options):
    return Tool.from_schema(name, "", schema, lambda **given: given, **options)


def answer(made, arguments):
    (result,) = call_tools([ToolCall("1", made.name, json.dumps(arguments))], Toolset([made]))
    return result


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


WITH_SCHEMAS = [name for name in FORMATS if name != "xml"]
PROVIDERS = [name for name in WITH_SCHEMAS if name != "mcp"]
OPENAI = ["openai_chat", "openai_responses"]


# -- 1: from a function to its schema


@table(
    ("hint", "default", "kind"),
    {
        "pydantic-ai#533": (int | None, (), "integer"),
        "pydantic-ai#540": (Optional[list[str]], (None,), "array"),  # noqa: UP045  # as its author wrote it
        "harness-sdk#1151": (Optional[int], (), "integer"),  # noqa: UP045  # as its author wrote it
    },
)
def test_a_value_that_may_be_none_is_one_nullable_type_for_gemini_with_and_without_default(hint, default, kind):
    made = taking(hint, *default)
    parameters = schema_shown("gemini", made)
    assert parameters["properties"]["x"]["type"] == kind
    assert parameters["properties"]["x"]["nullable"] is True
    assert not [node for node in nodes(parameters) if "anyOf" in node or node.get("type") == "null"]
    assert ("x" in parameters.get("required", [])) is (not default)
    assert answer(made, {"x": None}).value is None
    assert answer(made, {}).ok is bool(default)


NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@table(
    "values",
    {
        "pydantic-ai#2682": [(datetime, "2026-11-21T12:00:00Z", NOON)],
        "agent-framework#8661": [
            (datetime, "2026-11-21T12:00:00Z", NOON),
            (set[str], ["a", "b", "a"], {"a", "b"}),
            (tuple[int, str], [1, "x"], (1, "x")),
        ],
    },
)
def test_rich_types_have_a_schema_everywhere_and_arrive_as_what_they_are(values):
    for hint, sent, received in values:
        made = taking(hint)
        for format_name in WITH_SCHEMAS:
            assert schema_shown(format_name, made.replace(strict=True))["properties"]["x"]["type"]
        result = answer(made, {"x": sent})
        assert result.value == received
        assert type(result.value) is type(received)


class Unit(Enum):
    METRIC = "metric"
    IMPERIAL = "imperial"


@table(
    ("hint", "schema", "good", "bad"),
    {
        "smolagents#1277": (Literal["a", "b"] | int, {"enum": ["a", "b"], "type": "string"}, ["a", 1], ["c"]),
        "PraisonAI#1845": (
            Union[Unit, list[int], None],  # noqa: UP007  # as its author wrote it
            {"enum": ["metric", "imperial"], "type": "string"},
            ["metric", [1], None],
            ["feet", ["x"]],
        ),
    },
)
def test_choices_keep_their_kinds_and_are_enforced(hint, schema, good, bad):
    made = taking(hint)
    assert schema in list(nodes(made.input_schema))
    assert [answer(made, {"x": value}).ok for value in [*good, *bad]] == [True] * len(good) + [False] * len(bad)


@table("style", {"smolagents#1073": "{name} ({kind}): {text}"})
def test_types_in_a_docstring_do_not_hide_the_descriptions(style):
    def trip(city: str, days: int = 1) -> str:
        return f"{city} {days}"

    lines = [style.format(name=name, kind=kind, text="About it.") for name, kind in [("city", "str"), ("days", "int")]]
    trip.__doc__ = "Plan.\n\nArgs:\n    " + "\n    ".join(lines)
    made = Tool(trip)
    assert made.description == "Plan."
    assert [p.description for p in made.parameters] == ["About it."] * 2


@table("mark", {"smolagents#681": tool})
def test_a_decorated_method_is_a_tool_of_its_instance(mark):
    class Shop:
        def __init__(self, name):
            self.name = name

        @mark
        def price(self, item: str) -> str:
            """Tell a price."""
            return f"{item} at {self.name}"

    made = Tool.wrap(Shop("Ann's").price)
    assert list(made.input_schema["properties"]) == ["item"]
    assert answer(made, {"item": "tea"}).value == "tea at Ann's"
    assert answer(Tool.wrap(Shop("Bob's").price), {"item": "tea"}).value == "tea at Bob's"
    assert Shop("Eve's").price("tea") == "tea at Eve's"


class Room(BaseModel):
    number: int
    beds: int = 1


@dataclass
class Guest:
    name: str
    age: int


@table(
    ("hint", "sent", "received"),
    {
        "autogen#5736": (Guest, {"name": "Ann", "age": "40"}, Guest("Ann", 40)),
        "harness-sdk#917": (list[Room], [{"number": 7}], [Room(number=7, beds=1)]),
    },
)
def test_models_and_dataclasses_arrive_constructed(hint, sent, received):
    assert answer(taking(hint), {"x": sent}).value == received


UNTYPED = {
    "plain": obj(a={"enum": ["x", "y"]}),
    "in a choice": obj(a={"anyOf": [{"enum": ["x"]}, {"type": "null"}]}),
    "in a list": obj(a={"type": "array", "items": {"enum": ["x"]}}),
    "by reference": {**obj(a={"$ref": "#/$defs/A"}), "$defs": {"A": obj(b={"const": "x"})}},
}


@table("schemas", {"inspect_ai#3104": UNTYPED})
def test_every_enum_that_gemini_sees_has_a_type(schemas):
    for schema in schemas.values():
        found = [node for node in nodes(schema_shown("gemini", declared(schema))) if "enum" in node]
        assert found
        assert all(node["type"] == "string" for node in found)


class Comparison(BaseModel):
    key: str


class Compound(BaseModel):
    filters: list[Comparison | Compound]


NODE = obj(value={"type": "string"}, children={"type": "array", "items": {"$ref": "#/$defs/Node"}})
POINTER = obj(
    nodes={
        "type": "array",
        "items": obj(
            value={"type": "string"}, children={"type": "array", "items": {"$ref": "#/properties/nodes/items"}}
        ),
    }
)
TREE = {"value": "a", "children": [{"value": "b", "children": []}]}
BAD_TREE = {"value": "a", "children": [{"value": 1, "children": []}]}
ONE = obj(b={"$ref": "#/$defs/B"}, v={"type": "string"})
TWO = obj(a={"$ref": "#/$defs/A"})


def recursive(schema, **definitions):
    return declared({**schema, "$defs": definitions}, "recursive")


@table(
    ("made", "good", "bad"),
    {
        "fastmcp#1016": (recursive(obj(root={"$ref": "#/$defs/Node"}), Node=NODE), {"root": TREE}, {"root": BAD_TREE}),
        "fastmcp#3893": (declared(POINTER, "recursive"), {"nodes": [TREE]}, {"nodes": [BAD_TREE]}),
        "fastmcp#3896": (
            declared(obj(first={"type": "string"}, again={"$ref": "#/properties/first"}), "recursive"),
            {"again": "x"},
            {"again": 1},
        ),
        "fastapi_mcp#287": (
            taking(Compound | None).replace(name="recursive"),
            {"x": {"filters": [{"key": "k"}, {"filters": []}]}},
            {"x": {"filters": [{"key": [1]}]}},
        ),
        "crewAI#3101": (
            declared(obj(inner={"$ref": "#"}, v={"type": "string"}), "recursive"),
            {"inner": {"inner": {"v": "x"}}},
            {"inner": {"inner": {"v": 1}}},
        ),
        "crewAI#4312": (
            recursive({"$ref": "#/$defs/Node"}, Node=NODE),
            TREE,
            BAD_TREE,
        ),
        "crewAI#5500": (
            recursive(obj(a={"$ref": "#/$defs/A"}), A=ONE, B=TWO),
            {"a": {"b": {"a": {"v": "x"}}}},
            {"a": {"b": {"a": {"v": 1}}}},
        ),
    },
)
@pytest.mark.filterwarnings("ignore:OpenAI is shown the tool 'recursive' without strict:toolcrib.ToolcribWarning")
def test_a_schema_that_leads_back_to_itself_is_shown_and_enforced_and_costs_no_other_tool(made, good, bad):
    for format_name in WITH_SCHEMAS:
        for one in (made, made.replace(strict=True)):
            definitions = shown(format_name, one, add)
            assert [definition["name"] for definition in definitions] == ["recursive", "add"]
            assert json.dumps(definitions)
    assert answer(made, good).ok
    assert answer(made, bad).kind == "invalid_arguments"


@table(
    ("schema", "good", "bad"),
    {
        "agent-framework#2747": (
            obj(user=obj(["name"], name={"type": "string"}, home=obj(zip={"type": "string"}))),
            {"user": {"name": "Ann", "home": {"zip": "1"}}},
            {"user": {"name": "Ann", "home": {"zip": 1}}},
        ),
        "agent-framework#4253": (
            obj(size={"anyOf": [{"type": "integer", "minimum": 1}, {"enum": ["all"]}]}),
            {"size": "all"},
            {"size": "some"},
        ),
        "autogen#6152": (obj(rows={"type": "array"}, s={"type": "string"}), {"rows": [[1, "x"]]}, {"rows": "x"}),
        "autogen#6906": (
            obj(text={"type": ["string", "null"], "title": "Text", "x-vendor": [1], "format": "json"}),
            {"text": None},
            {"text": 1},
        ),
    },
)
def test_a_foreign_schema_is_kept_verbatim_and_enforced_as_it_is(schema, good, bad):
    before = json.dumps(schema)
    made = declared(schema)
    assert json.dumps(made.input_schema) == before
    assert made.input_schema is not schema
    for format_name in ("mcp", "openai_chat", "openai_responses", "anthropic"):
        assert json.dumps(schema_shown(format_name, made)) == before
    assert answer(made.replace(name="other", origin="mcp:x"), good).value == good
    assert answer(made, bad).kind == "invalid_arguments"
    assert json.dumps(schema) == before


ADDRESS = obj(street={"type": "string"})


@table(
    ("schema", "is_whole"),
    {
        "fastmcp#2814": ({**obj(a={"$ref": "#/$defs/Address"}), "$defs": {"Address": ADDRESS}}, True),
        "fastmcp#2861": (obj(a={"$ref": "#/$defs/Address"}), False),
    },
)
def test_no_reference_leads_nowhere_and_a_tool_whose_does_is_left_out_alone(schema, is_whole):
    warned = contextlib.nullcontext() if is_whole else pytest.warns(ToolcribWarning, match="not shown the tool 't'")
    for format_name in WITH_SCHEMAS:
        with warned:
            definitions = shown(format_name, declared(schema), add)
        assert [one["name"] for one in definitions] == (["t", "add"] if is_whole else ["add"])
        whole = {f"#/$defs/{name}" for node in nodes(definitions) for name in node.get("$defs", ())}
        assert {node["$ref"] for node in nodes(definitions) if "$ref" in node} <= whole


# -- 2: strict mode and the dialects of providers


@table(
    "schema",
    {
        "openai-agents#992": obj(["a"], a={"type": "string"}),
        "openai-agents#1023": obj(["a"], a=obj(["b"], b={"type": "array", "items": obj(["c"], c={"type": "integer"})})),
        "openai-agents#1041": {
            **obj(a={"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]}),
            "$defs": {"A": obj(b={"type": "string"})},
        },
    },
)
def test_every_object_of_a_strict_tool_is_closed_and_requires_all(schema):
    made = declared(schema, strict=True)
    for format_name in OPENAI:
        objects = [node for node in nodes(schema_shown(format_name, made)) if node.get("type") == "object"]
        assert len(objects) == json.dumps(schema).count('"object"')
        assert all(node["additionalProperties"] is False for node in objects)
        assert all(node["required"] == list(node["properties"]) for node in objects)
        assert shown(format_name, made)[0]["strict"] is True


def label(text: str, marks: dict[str, int]) -> str:
    """Label it."""
    return text + json.dumps(marks)


def anything(value: Any) -> Any:
    """Take anything."""
    return value


@table(
    ("func", "reason"),
    {
        "openai-agents#794": (label, "marks takes any key"),
        "glean-agent-toolkit#76": (anything, "value may be anything"),
    },
)
@pytest.mark.parametrize("format_name", OPENAI)
def test_a_tool_that_cannot_be_strict_is_shown_without_and_the_others_stay_strict(format_name, func, reason):
    open_ended = Tool(func, name="t", strict=True)
    with pytest.warns(ToolcribWarning, match=f"shown the tool 't' without strict mode: {reason}"):
        definitions = shown(format_name, Tool(add, strict=True), open_ended, Tool(add, name="more", strict=True))
    assert [one["name"] for one in definitions] == ["add", "t", "more"]
    assert [one.get("strict", False) for one in definitions] == [True, False, True]
    assert schema_shown(format_name, open_ended.replace(strict=False)) == Tool(func).input_schema


@table(
    ("format_name", "toolset"),
    {
        "openai-agents#2181": ("openai_chat", Toolset([Tool(add, strict=True)])),
        "autogen#4447": ("openai_chat", Toolset([Tool.wrap(add).replace(strict=True)])),
        "autogen#5507": ("openai_responses", Toolset([t.replace(strict=True) for t in Toolset([add])])),
    },
)
def test_strict_is_said_to_the_provider_and_can_be_asked_of_any_tool(format_name, toolset):
    (definition,) = shown(format_name, *toolset)
    assert definition["strict"] is True
    assert definition["parameters"]["additionalProperties"] is False


LEAF = {"type": "string", "default": "x", "title": "T", "examples": ["x"], "$comment": "c"}
RICH = {
    **obj(
        ["a"],
        a={"$ref": "#/$defs/A"},
        title=LEAF,  # a property may be named like a word that is refused
        default=LEAF,
        rows={"type": "array", "items": {**obj(examples=LEAF), "additionalProperties": False}, "default": []},
        pick={"anyOf": [LEAF, {"type": "null"}], "default": None, "title": "P"},
    ),
    "additionalProperties": False,
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {"A": {**obj(b=LEAF), "additionalProperties": {"type": "string"}, "patternProperties": {"^x": LEAF}}},
}


@table(
    "refused",
    {
        "litellm#14330": {"additionalProperties", "patternProperties", "$schema", "$comment"},
        "litellm#7808": {"default", "title", "examples"},
        "litellm#6459": {"$defs", "$ref", "anyOf"},
    },
)
def test_words_that_gemini_refuses_stand_nowhere_and_properties_named_like_them_stay(refused):
    parameters = schema_shown("gemini", declared(RICH))
    assert not [word for node in nodes(parameters) for word in refused & node.keys()]
    assert list(parameters["properties"]) == ["a", "title", "default", "rows", "pick"]
    assert list(parameters["properties"]["rows"]["items"]["properties"]) == ["examples"]
    assert parameters["properties"]["pick"] == {"type": "string", "nullable": True}


LONG = "settings__approved__or__denied__countries__or__regions__approved__list"


@table(
    ("schema", "arguments"),
    {
        "composio#2330": (
            obj([LONG], **{LONG: {"type": "string"}, LONG.replace("approved__list", "denied__list"): {}}),
            {LONG: "no"},
        ),
        "composio#3500": (
            obj(["$top"], **{"$top": {"type": "integer"}, "@microsoft.graph.conflictBehavior": {"enum": ["fail"]}}),
            {"$top": 5, "@microsoft.graph.conflictBehavior": "fail"},
        ),
        "composio#3574": (
            obj(**{"$filter": {"type": "string"}, "_filter": {"type": "string"}, "filter": {"type": "string"}}),
            {"$filter": "a", "_filter": "b", "filter": "c"},
        ),
        "composio#3649": (
            obj(rows={"type": "array", "items": obj(["a b"], **{"a b": obj(**{"c/d": {"type": "integer"}})})}),
            {"rows": [{"a b": {"c/d": 1}}, {"a b": {"c/d": 2}}]},
        ),
        "claude-code#79418": (
            obj(["my key"], **{"my key": {"type": "string"}, "é": {"type": "string"}, "x" * 65: {"type": "string"}}),
            {"my key": "a", "é": "b", "x" * 65: "c"},
        ),
    },
)
def test_property_keys_that_anthropic_refuses_are_renamed_and_come_back(schema, arguments):
    made = declared(schema)
    parameters = schema_shown("anthropic", made)
    keys = [key for node in nodes(parameters) for key in node.get("properties", ())]
    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", key) for key in keys)
    assert all(set(node.get("required", ())) <= set(node.get("properties", ())) for node in nodes(parameters))
    block = {"type": "tool_use", "id": "1", "name": "t", "input": as_shown(arguments, schema, parameters)}
    (call,) = FORMATS["anthropic"].calls([block], Toolset([made]))
    assert call.arguments == arguments
    assert answer(made, call.arguments).value == arguments


# -- names on the wire, in definitions and in history

WIRE = {
    "anthropic": r"[a-zA-Z0-9_-]{1,64}",
    "gemini": r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}",
    "openai_chat": r"[a-zA-Z0-9_-]{1,64}",
    "openai_responses": r"[a-zA-Z0-9_-]{1,64}",
}
CLOUDWATCH = "mcp__awslabs.cloudwatch__get_telemetry_evaluation_status_for_organization"


def asked(format_name, name):
    """Return a reply of the provider that calls a tool by its wire name."""
    if format_name == "gemini":
        return [{"function_call": {"id": "1", "name": name, "args": {}}}]
    kinds = {"anthropic": "tool_use", "openai_responses": "function_call", "openai_chat": "function"}
    one = {"id": "1", "call_id": "1", "type": kinds[format_name], "name": name, "input": {}, "arguments": "{}"}
    return [{**one, "function": one} if format_name == "openai_chat" else one]


@table(
    "names",
    {
        "litellm#5138": [CLOUDWATCH, "short"],
        "hermes-agent#90016": ["click_on_link(url='https://a.example')", "名前", "a b"],
        "archestra#3705": [CLOUDWATCH + "_a", CLOUDWATCH + "_b", CLOUDWATCH],
    },
)
@pytest.mark.parametrize("format_name", PROVIDERS)
def test_long_and_illegal_names_are_legal_on_the_wire_and_decoded(format_name, names):
    toolset = Toolset([declared(obj(), name) for name in names])
    wire = [one["name"] for one in shown(format_name, *toolset)]
    assert all(re.fullmatch(WIRE[format_name], name) for name in wire)
    assert len(set(wire)) == len(names)
    assert wire == [one["name"] for one in shown(format_name, *toolset)]
    read = [FORMATS[format_name].calls(asked(format_name, name), toolset)[0].name for name in wire]
    assert read == names


@pytest.fixture
def server():
    with ModelServer() as running:
        yield running


def names_in(body):
    """Return the names that one request tells the model: of its tools, and of the calls in its history."""
    calls = [call["function"]["name"] for message in body["messages"] for call in message.get("tool_calls", ())]
    blocks = [
        block for message in body["messages"] if isinstance(message["content"], list) for block in message["content"]
    ]
    return (
        [one.get("function", one)["name"] for one in body.get("tools", ())],
        calls + [block["name"] for block in blocks if block["type"] == "tool_use"],
    )


@table(
    ("canonical", "called"),
    {
        "litellm#28874": ("fs.read/" + "x" * 80, None),  # called by the name that it has on the wire
        "vercel/ai#17769": ("fs.read", "fs/read file (path='a')" * 4),
    },
)
@pytest.mark.parametrize("family", ["openai", "anthropic"])
def test_a_name_is_the_same_legal_one_in_definition_and_history_and_an_invented_one_is_legal(
    server, family, canonical, called
):
    base_url = server.root if family == "anthropic" else server.base_url
    engine = LLMEngine(f"{family}:some-model", base_url=base_url, api_key=KEY)
    made = Tool(lambda: "fine", name=canonical)
    (wire,) = (one["name"] for one in shown("anthropic" if family == "anthropic" else "openai_chat", made))
    server.ask(("c1", called or wire, "{}"))
    server.say("Done.")
    envelope = Agent(engine, [made]).run("go")
    assert envelope.text() == "Done."
    defined, history = names_in(server.bodies[1])
    assert defined == [wire]
    assert re.fullmatch(WIRE["anthropic"], history[0])
    assert (history == [wire]) is (called is None)
    assert [message.result.kind for message in envelope.messages if message.result] == [
        "ok" if called is None else "not_found"
    ]


# -- 7: collisions

CREATE = Tool.from_schema("create_issue", "", obj(title={"type": "string"}), lambda title="": f"local {title}")


def of_server(name, tool_name="create_issue"):
    made = Tool.from_schema(tool_name, "", obj(), lambda: f"{tool_name} of {name}")
    return made.replace(origin=f"mcp:{name}", original_name=tool_name)


@table(
    ("tools", "names"),
    {
        "openai-agents#464": ([of_server("github"), of_server("linear")], ["create_issue", "linear.create_issue"]),
        "openai-agents#1167": ([CREATE, of_server("linear")], ["create_issue", "linear.create_issue"]),
        "openai-agents#1178": (
            [of_server("a"), of_server("a b"), of_server("a.b"), of_server("a")],
            ["create_issue", "a_b.create_issue", "a.b.create_issue", "a.create_issue"],
        ),
        "openai-agents-js#161": (
            [of_server("my server", "run"), of_server("my/server", "run"), of_server("my:server", "run")],
            ["run", "my_server.run", "my_server.run_2"],
        ),
        "langchain-mcp-adapters#202": (
            [of_server("x" * 100, "t"), of_server("x" * 90, "t")],
            ["t", "x" * 64 + ".t"],
        ),
    },
)
def test_a_collision_is_prefixed_by_its_server_the_same_each_time_and_dispatched_to_the_right_one(tools, names):
    toolset = Toolset(tools, on_collision="prefix")
    assert list(toolset.names) == names == list(Toolset(tools, on_collision="prefix").names)
    assert [one.original_name or one.name for one in toolset] == [one.name for one in tools]
    results = call_tools([ToolCall(str(n), name) for n, name in enumerate(names)], toolset)
    assert [result.value for result in results] == [made.func() for made in tools]
    for format_name in PROVIDERS:
        wire = [one["name"] for one in shown(format_name, *toolset)]
        assert len(set(wire)) == len(names)
        assert all(len(name) <= 64 for name in wire)


@table(
    "change",
    {
        "openai-agents#2830": lambda servers: [server.prefixed(f"{n}.") for n, server in enumerate(servers)],
        "CopilotKit#2409": lambda servers: [servers[0], servers[1].renamed({"create_issue": "linear_issue"})],
    },
)
def test_names_can_be_chosen_for_each_server_and_the_original_is_kept(change):
    servers = [Toolset([of_server("github")]), Toolset([of_server("linear")])]
    toolset = Toolset(change(servers), on_collision="raise")
    assert len(toolset) == 2
    assert [one.original_name for one in toolset] == ["create_issue"] * 2
    assert [result.value for result in call_tools([ToolCall("1", name) for name in toolset.names], toolset)] == [
        "create_issue of github",
        "create_issue of linear",
    ]


@table("ways_out", {"openai-agents#3678": ["rename", "prefix", "on_collision='replace' or 'prefix'"]})
def test_a_collision_of_servers_is_refused_with_both_origins_and_every_way_out(ways_out):
    with pytest.raises(ToolNameError) as caught:
        Toolset([of_server("github"), of_server("linear")])
    assert all(words in str(caught.value) for words in ["mcp:github", "mcp:linear", *ways_out])


# -- whether every issue has its row

ISSUES = """
    pydantic-ai#533 pydantic-ai#540 pydantic-ai#2682 agent-framework#8661 smolagents#1277 smolagents#1073 smolagents#681
    harness-sdk#1151 PraisonAI#1845 autogen#5736 harness-sdk#917 inspect_ai#3104 fastmcp#1016 fastmcp#3893 fastmcp#3896
    fastapi_mcp#287 crewAI#3101 crewAI#4312 crewAI#5500 agent-framework#2747 agent-framework#4253 autogen#6152
    autogen#6906 fastmcp#2814 fastmcp#2861

    openai-agents#992 openai-agents#1023 openai-agents#1041 openai-agents#794 openai-agents#2181 autogen#4447
    autogen#5507 glean-agent-toolkit#76 litellm#14330 litellm#7808 litellm#6459 composio#2330 composio#3500
    composio#3574 composio#3649 claude-code#79418 litellm#5138 litellm#28874 vercel/ai#17769 hermes-agent#90016
    archestra#3705

    openai-agents#464 openai-agents#3678 openai-agents#1167 openai-agents#1178 openai-agents#2830 openai-agents-js#161
    langchain-mcp-adapters#202 CopilotKit#2409
"""
NOT_OURS_YET: dict[str, str] = {}


def test_every_issue_is_a_row_or_has_a_reason_not_to_be_one():
    assert set(ISSUES.split()) == TOLD | NOT_OURS_YET.keys()
    assert not TOLD & NOT_OURS_YET.keys()
