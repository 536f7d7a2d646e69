"""The providers' own packages: what they take and serialise of ours, and what ours reads of theirs."""

from __future__ import annotations

import base64
import json
import typing

import anthropic as anthropic_sdk
import openai as openai_sdk
import pytest
from anthropic.types import ToolParam, ToolResultBlockParam
from google import genai
from google.genai import types as gemini_types
from model_server import KEY, ModelServer
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionToolMessageParam
from openai.types.responses import FunctionToolParam
from openai.types.responses.response_input_item_param import FunctionCallOutput
from openai.types.shared_params import FunctionDefinition

from toolcrib.dispatch import call_tools
from toolcrib.formats import FORMATS
from toolcrib.limits import Limits
from toolcrib.tools import Tool
from toolcrib.toolset import Toolset
from toolcrib.types import ToolCall, ToolResponse

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8


def book(city: str, nights: int = 1, extras: list[str] | None = None) -> dict[str, str | int]:
    """Book a room.

    Args:
        city: Where.
        nights: How many.
    """
    return {"city": city, "nights": nights, "extras": len(extras or ())}


def picture() -> bytes:
    """Draw."""
    return PNG


def refuse() -> ToolResponse:
    """Refuse."""
    return ToolResponse(success=False, message="not today")


def crash() -> None:
    """Crash."""
    raise ValueError


def nothing() -> None:
    """Do nothing."""


def mute() -> str:
    """Say nothing."""
    return ""


SEARCH = Tool.from_schema(
    "ext.search",
    "Search.",
    {
        "type": "object",
        "properties": {
            "$filter": {"anyOf": [{"$ref": "#/$defs/Filter"}, {"type": "null"}], "default": None},
            "kind": {"enum": ["a", "b", None]},
            "size": {"enum": [1, 2]},
            "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]},
            "free": {"type": "object", "additionalProperties": {"type": "number"}},
        },
        "required": ["kind"],
        "$defs": {
            "Filter": {
                "type": "object",
                "properties": {"and": {"type": "array", "items": {"$ref": "#/$defs/Filter"}}, "eq": {"const": "x"}},
                "additionalProperties": False,
            }
        },
    },
    lambda **given: given,
)
TOOLS = Toolset([Tool(book, name="rooms.book", strict=True), SEARCH, picture, refuse, crash, nothing, mute])
CALLS = [
    ToolCall("c1", "rooms.book", '{"city": "Oslo"}'),
    ToolCall("c2", "ext.search", '{"kind": null, "$filter": {"and": [{"eq": "x"}]}}'),
    *(ToolCall(f"c-{name}", name) for name in ("picture", "refuse", "crash", "nothing", "mute", "unknown")),
    ToolCall("c9", "rooms.book", "{"),
]
RESULTS = call_tools(CALLS, TOOLS, limits=Limits(deadline=10))


def wire_name(format_name, number):
    listed = FORMATS[format_name].tools(TOOLS)
    flat = [one for group in listed for one in group.get("function_declarations", [group])]
    return flat[number].get("function", flat[number])["name"]


# -- types


def unknown_keys(shown, kind):
    """Return the keys that a TypedDict does not have; its own validation passes over them."""
    return set(shown) - kind.__required_keys__ - kind.__optional_keys__, kind.__required_keys__ - set(shown)


@pytest.mark.parametrize(
    ("format_name", "kind", "inner"),
    [
        ("openai_chat", ChatCompletionFunctionToolParam, FunctionDefinition),
        ("openai_responses", FunctionToolParam, None),
        ("anthropic", ToolParam, None),
    ],
)
def test_definitions_have_no_member_the_sdk_does_not_know_and_lack_none_it_needs(format_name, kind, inner):
    for shown in FORMATS[format_name].tools(TOOLS):
        assert unknown_keys(shown, kind) == (set(), set())
        if inner is not None:
            assert unknown_keys(shown["function"], inner) == (set(), set())


def test_gemini_definitions_and_answers_are_whole_in_the_sdks_own_types_which_refuse_strangers():
    (group,) = FORMATS["gemini"].tools(TOOLS)
    typed = gemini_types.Tool.model_validate(group)
    assert [one.name for one in typed.function_declarations or ()] == [
        one["name"] for one in group["function_declarations"]
    ]
    (content,) = FORMATS["gemini"].results(RESULTS)
    written = gemini_types.Content.model_validate(content).model_dump(exclude_none=True)
    assert written == content


@pytest.mark.parametrize(
    ("format_name", "kind", "blocks"),
    [
        ("openai_chat", ChatCompletionToolMessageParam, lambda messages: messages),
        ("openai_responses", FunctionCallOutput, lambda messages: messages),
        ("anthropic", ToolResultBlockParam, lambda messages: messages[0]["content"]),
    ],
)
def test_answers_of_every_kind_have_the_members_of_the_sdks_types(format_name, kind, blocks):
    listed = blocks(FORMATS[format_name].results(RESULTS))
    assert len(listed) == len(CALLS)
    for shown in listed:
        assert unknown_keys(shown, kind) == (set(), set())


# -- clients


@pytest.fixture
def server():
    with ModelServer() as running:
        yield running


@pytest.fixture
def made(server):
    """Make a client that is closed after the test."""
    clients: list[typing.Any] = []

    def make(kind):
        clients.append(kind(server))
        return clients[-1]

    yield make
    for client in clients:
        client.client.close()


class ChatClient:
    format_name = "openai_chat"

    def __init__(self, server):
        self.client = openai_sdk.OpenAI(base_url=server.base_url, api_key=KEY)
        self.messages: list[typing.Any] = [{"role": "user", "content": "go"}]

    def ask(self):
        tools = FORMATS["openai_chat"].tools(TOOLS)
        reply = self.client.chat.completions.create(model="m", messages=self.messages, tools=tools)
        self.messages.append(reply.choices[0].message)
        return reply

    @staticmethod
    def sent(body):
        return body["tools"], [message for message in body["messages"] if message["role"] == "tool"]


class ResponsesClient:
    format_name = "openai_responses"

    def __init__(self, server):
        self.client = openai_sdk.OpenAI(base_url=server.base_url, api_key=KEY)
        self.messages: list[typing.Any] = [{"role": "user", "content": "go"}]

    def ask(self):
        tools = FORMATS["openai_responses"].tools(TOOLS)
        reply = self.client.responses.create(model="m", input=self.messages, tools=tools)
        self.messages += reply.output
        return reply

    @staticmethod
    def sent(body):
        return body["tools"], [item for item in body["input"] if item.get("type") == "function_call_output"]


class AnthropicClient:
    format_name = "anthropic"

    def __init__(self, server):
        self.client = anthropic_sdk.Anthropic(base_url=server.root, api_key=KEY)
        self.messages: list[typing.Any] = [{"role": "user", "content": "go"}]

    def ask(self):
        tools = FORMATS["anthropic"].tools(TOOLS)
        reply = self.client.messages.create(model="m", max_tokens=100, messages=self.messages, tools=tools)
        self.messages.append({"role": "assistant", "content": reply.content})
        return reply

    @staticmethod
    def sent(body):
        return body["tools"], body["messages"][2:]


class GeminiClient:
    format_name = "gemini"

    def __init__(self, server):
        self.client = genai.Client(api_key=KEY, http_options={"base_url": server.root})
        self.messages: list[typing.Any] = [{"role": "user", "parts": [{"text": "go"}]}]

    def ask(self):
        config = {"tools": FORMATS["gemini"].tools(TOOLS)}
        reply = self.client.models.generate_content(model="gemini-2.5-flash", contents=self.messages, config=config)
        self.messages.append(reply.candidates[0].content)
        return reply

    @staticmethod
    def sent(body):
        return None, body["contents"][2:]  # whose spelling is the wire's


CLIENTS = [ChatClient, ResponsesClient, AnthropicClient, GeminiClient]


@pytest.mark.parametrize("kind", CLIENTS, ids=lambda kind: kind.format_name)
def test_a_whole_turn_goes_through_the_sdks_own_client(server, made, kind):
    client, form = made(kind), FORMATS[kind.format_name]
    arguments = {"city": "Oslo", "nights": None, "extras": None} if "openai" in kind.format_name else {"city": "Oslo"}
    server.ask(
        ("c1", wire_name(kind.format_name, 0), json.dumps(arguments)),
        ("c2", "picture", "{}"),
        ("c3", "no_such_tool", "{}"),
    )
    server.say("Done.")

    calls = form.calls(client.ask(), TOOLS)
    assert [(call.id, call.name) for call in calls] == [
        ("c1", "rooms.book"),
        ("c2", "picture"),
        ("c3", "no_such_tool"),
    ]
    results = call_tools(calls, TOOLS)
    assert [result.kind for result in results] == ["ok", "ok", "not_found"]
    assert results[0].value == {"city": "Oslo", "nights": 1, "extras": 0}
    client.messages += form.results(results)
    assert form.calls(client.ask(), TOOLS) == []

    definitions, answers = client.sent(server.bodies[1])
    assert definitions in (None, json.loads(json.dumps(form.tools(TOOLS))))
    if kind is GeminiClient:
        answers = [gemini_types.Content.model_validate(one).model_dump(exclude_none=True) for one in answers]
    assert answers == form.results(results)


def test_an_image_survives_the_way_through_the_sdk(server, made):
    client = made(AnthropicClient)
    server.ask(("c1", "picture", "{}"))
    server.say("Nice.")
    client.messages += FORMATS["anthropic"].results(call_tools(FORMATS["anthropic"].calls(client.ask(), TOOLS), TOOLS))
    client.ask()
    (block,) = server.bodies[1]["messages"][2]["content"]
    (image,) = [part for part in block["content"] if part["type"] == "image"]
    assert base64.b64decode(image["source"]["data"]) == PNG
