"""What holds for every client of a hosted catalogue, before servers that speak its shapes."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from hosted_servers import KEY, Arcade, Composio, Pipedream
from raw_server import reply

from toolcrib import (
    ArcadeClient,
    AuthorizationNeededError,
    ComposioClient,
    ExternalToolClient,
    ExternalToolError,
    ExternalToolProvider,
    PipedreamClient,
    RetryExecutor,
    Secret,
    ToolCall,
    ToolContext,
    Toolset,
    acall_tools,
    call_tools,
)
from toolcrib.formats import openai_chat


def composio(url: str, **options: Any) -> ComposioClient:
    return ComposioClient(
        options.pop("key", KEY), **{"user_id": "ada", "toolkits": "github", "base_url": url, **options}
    )


def arcade(url: str, **options: Any) -> ArcadeClient:
    return ArcadeClient(options.pop("key", KEY), **{"user_id": "ada", "toolkits": "Github", "base_url": url, **options})


def pipedream(url: str, **options: Any) -> PipedreamClient:
    given = {"user_id": "ada", "apps": ["slack", "sheets", "plain"], "project_id": "proj_1", "base_url": url, **options}
    return PipedreamClient("id", given.pop("key", KEY), **given)


class Kind:
    def __init__(self, server: type, make: Any, name: str, arguments: dict[str, Any], asks: str, user: str) -> None:
        self.server, self.make, self.name, self.arguments = server, make, name, arguments
        self.asks, self.user = asks, user

    def __repr__(self) -> str:
        return self.server.__name__


KINDS = [
    Kind(Composio, composio, "GITHUB_STAR", {"repo": "a/b"}, "/api/v3.1/tools/execute/", "user_id"),
    Kind(Arcade, arcade, "Github.Star", {"repo": "a/b"}, "/v1/tools/execute", "user_id"),
    Kind(Pipedream, pipedream, "slack-send", {"text": "hi"}, "/v1/connect/proj_1/actions/run", "external_user_id"),
]
TOKEN = {"access_token": "t" * 20, "expires_in": 3600}
every = pytest.mark.parametrize("kind", KINDS, ids=repr)


@pytest.fixture
def hosted(kind: Kind, running: Any) -> Any:
    server = kind.server()
    server.url = running(server.app)
    return server


@every
def test_it_is_a_client_of_tools(kind, hosted):
    assert isinstance(kind.make(hosted.url), ExternalToolClient)


@every
def test_its_tools_are_listed_page_by_page_filtered_prefixed_and_called(kind, hosted):
    client = kind.make(hosted.url)
    tools = Toolset([ExternalToolProvider(client, include=[kind.name], name_prefix="ext.")])
    (result,) = call_tools([ToolCall("1", f"ext.{kind.name}", kind.arguments)], tools)
    assert (tools.names, result.kind, result.value) == ((f"ext.{kind.name}",), "ok", result.value)
    assert result.value in ({"starred": True}, {"ok": True})
    assert len(client.list_tools()) == {"Composio": 3, "Arcade": 141, "Pipedream": 3}[repr(kind)]


@every
def test_a_wrong_argument_is_refused_here_by_the_tools_own_schema(kind, hosted):
    tools = Toolset([ExternalToolProvider(kind.make(hosted.url), include=[kind.name])])
    (result,) = call_tools([ToolCall("1", kind.name, {})], tools)
    assert result.kind == "invalid_arguments"
    assert hosted.bodies(kind.asks) == []


@every
def test_a_known_tool_needs_no_listing(kind, hosted):
    assert kind.make(hosted.url).call_tool(kind.name, kind.arguments) in ({"starred": True}, {"ok": True})


@every
@pytest.mark.anyio
async def test_each_call_acts_for_the_user_of_its_run(kind, hosted):
    hosted.connected |= {"bob", "eve"}
    client = kind.make(hosted.url, user_id=lambda context: context.deps["user"])
    tools = await asyncio.to_thread(lambda: Toolset([ExternalToolProvider(client, include=[kind.name])]))
    users = ["ada", "bob", "eve"]
    runs = [
        acall_tools([ToolCall("1", kind.name, kind.arguments)], tools, context=ToolContext(deps={"user": user}))
        for user in users
    ]
    assert [result.kind for (result,) in await asyncio.gather(*runs)] == ["ok"] * 3
    assert sorted(body[kind.user] for body in hosted.bodies(kind.asks)) == users


@every
@pytest.mark.parametrize("gives", ["", "  ", None, 5])
def test_without_a_user_nothing_is_asked(kind, hosted, gives):
    client = kind.make(hosted.url, user_id=lambda _: gives)
    with pytest.raises(ExternalToolError, match="user_id gave no user id"):
        client.call_tool(kind.name, kind.arguments)
    assert hosted.asked == []


@every
def test_a_user_who_has_not_allowed_it_is_a_failed_answer_with_the_url(kind, hosted):
    client = kind.make(hosted.url, user_id="bob")
    with pytest.raises(AuthorizationNeededError) as raised:
        client.call_tool(kind.name, kind.arguments)
    assert (raised.value.user_id, raised.value.retryable) == ("bob", False)
    assert raised.value.url.startswith("https://")
    assert "bob" in raised.value.url
    tools = Toolset([ExternalToolProvider(client, include=[kind.name])])
    (result,) = call_tools([ToolCall("1", kind.name, kind.arguments)], tools)
    assert result.kind == "failed"
    assert result.response.data == {"authorization_url": raised.value.url}
    assert f"ask them to open {raised.value.url}" in result.text
    (message,) = openai_chat.results([result])
    assert raised.value.url in message["content"]


@every
def test_what_needs_consent_is_not_tried_again(kind, hosted):
    provider = ExternalToolProvider(kind.make(hosted.url, user_id="bob"), include=[kind.name])
    tools = Toolset([tool.replace(effect="read") for tool in provider.as_tools()])
    before = len(hosted.asked)
    call_tools([ToolCall("1", kind.name, kind.arguments)], tools, executor=RetryExecutor(wait=0))
    once = len(hosted.asked) - before
    call_tools([ToolCall("1", kind.name, kind.arguments)], tools)
    assert len(hosted.asked) - before == 2 * once


@every
@pytest.mark.parametrize("url", ["javascript:alert(1)", "https://a b", "", None, 5, "https://x\x1b[2J"])
def test_a_url_that_is_none_is_not_passed_on(kind, server, url):
    connected = {"Composio": "redirect_url", "Arcade": "url", "Pipedream": "connect_link_url"}[repr(kind)]
    no_account = {"error": {"slug": "ActionExecute_ConnectedAccountNotFound"}, "successful": False}
    tool = {"toolkit": {"slug": "github"}, "requirements": {"authorization": {"provider_id": "github"}}}
    props = {"data": {"configurable_props": [{"name": "slack", "type": "app", "app": "slack"}]}}
    server.say(
        *{
            "Composio": [tool, reply(no_account, "400 Bad Request"), {"items": [{"id": "ac"}]}, {connected: url}],
            "Arcade": [tool, reply({}, "403 Forbidden"), {connected: url}],
            "Pipedream": [TOKEN, props, {"data": []}, {connected: url}],
        }[repr(kind)]
    )
    with pytest.raises(ExternalToolError) as raised:
        kind.make(server.url).call_tool(kind.name, kind.arguments)
    if repr(kind) == "Pipedream" and isinstance(raised.value, AuthorizationNeededError):
        raise AssertionError(raised.value.url)
    assert type(raised.value) is ExternalToolError


# -- failures


@every
@pytest.mark.parametrize(
    "answer",
    [[], None, "text", 5, {}, {"items": 5, "data": 5}, {"items": None, "data": None}, {"items": {}, "data": {}}],
)
def test_a_catalogue_that_is_none_is_an_error(kind, server, answer):
    server.say(TOKEN, answer) if repr(kind) == "Pipedream" else server.say(answer)
    with pytest.raises(ExternalToolError, match="did not answer with a list"):
        kind.make(server.url).list_tools()


@every
def test_pages_that_never_end_are_given_up(kind, server):
    page = {"items": [{"slug": "a", "qualified_name": "a"}], "next_cursor": "x", "data": [{"key": "a"}]}
    page |= {"page_info": {"end_cursor": "x"}, "access_token": "t" * 20, "expires_in": 3600, "total_count": 10**9}
    server.say(page)
    if repr(kind) == "Arcade":  # counts, so that no page comes twice: another page is empty
        server.script.clear()
        server.say(page, {**page, "items": []})
        assert len(kind.make(server.url).list_tools()) == 1
        return
    with pytest.raises(ExternalToolError, match="again and again"):
        kind.make(server.url).list_tools()


@every
@pytest.mark.parametrize(
    "answer", [[], None, "text", 5, {}, {"output": 5, "os": 5}, {"output": {"error": "x"}}, [[[]]]]
)
def test_an_outcome_of_another_shape_ends_the_call_and_nothing_else(kind, server, answer):
    definition = {"data": {}}
    server.say(*([TOKEN, definition, answer] if repr(kind) == "Pipedream" else [definition, answer]))
    with suppress(ExternalToolError):  # what is no outcome is a failure, or nothing
        assert kind.make(server.url).call_tool(kind.name, kind.arguments) is None


@every
@pytest.mark.parametrize(
    ("status", "retryable"), [("429 Slow Down", True), ("503 Later", True), ("404 Gone", False), ("500 No", None)]
)
def test_a_status_says_whether_to_try_again_and_when(kind, server, status, retryable):
    server.say(reply({"error": "no"}, status, "Retry-After: 7"))
    with pytest.raises(ExternalToolError) as raised:
        kind.make(server.url).call_tool(kind.name, kind.arguments)
    assert (raised.value.status, raised.value.retryable) == (int(status[:3]), retryable)
    assert raised.value.retry_after == 7


@every
@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_no_address_can_have_is_refused(kind, hosted, name):
    with pytest.raises(ExternalToolError, match="cannot be asked for"):
        kind.make(hosted.url).call_tool(name, {})


@every
@pytest.mark.parametrize("name", ["../admin", "a/b", "a?b=c", "%2e%2e", "größe"])
def test_a_name_cannot_lead_out_of_its_place(kind, server, name):
    server.say(TOKEN) if repr(kind) == "Pipedream" else None
    server.say(reply({}, "404 Not Found"))
    with pytest.raises(ExternalToolError, match="404"):
        kind.make(server.url).call_tool(name, {})
    path = server.asked[-1].path.partition("?")[0] if name != "a?b=c" else server.asked[-1].path
    assert "/admin" not in path
    assert "/a/b" not in path
    assert "?b=c" not in path


# -- credentials


@every
def test_the_key_is_shown_nowhere(kind, hosted):
    client = kind.make(hosted.url, key=Secret(KEY))
    tools = Toolset([ExternalToolProvider(client)])
    wrong = kind.make(hosted.url, key="another-key-to-be-hidden")
    with pytest.raises(ExternalToolError) as raised:
        wrong.list_tools()
    definitions = [tool.definition() for tool in tools]
    shown = f"{client!r} {wrong!r} {client.name} {tools!r} {definitions} {raised.value} {raised.value.body}"
    assert KEY not in shown
    assert "another-key-to-be-hidden" not in shown
    assert raised.value.status == 401


@every
def test_the_key_is_not_sent_in_the_open_unless_that_is_wanted(kind):
    with pytest.raises(ValueError, match=r"refusing to send credentials over plain http to tools\.example"):
        kind.make("http://tools.example")
    kind.make("http://tools.example", allow_insecure=True)
    kind.make("https://tools.example")


@every
@pytest.mark.parametrize("key", ["", "  "])
def test_an_empty_key_is_refused(kind, key):
    with pytest.raises(ValueError, match="must not be empty"):
        kind.make("https://tools.example", key=key)


@every
def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(kind):
    if repr(kind) == "Pipedream":  # whose secret goes in a body
        kind.make("https://tools.example", key="line\nbreak")
        return
    with pytest.raises(ValueError, match="api_key has characters") as raised:
        kind.make("https://tools.example", key="line\nbreak")
    assert "break" not in str(raised.value)
