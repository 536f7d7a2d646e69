"""A Toolset served over MCP, read back by the SDK's own client, in both eras and over both transports."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from served_tools import IMAGE, TOKEN, TOOLS, add
from starlette.applications import Starlette
from starlette.routing import Mount

from toolcrib import BaseSkill, Limits, Tool, ToolContext, Toolset
from toolcrib.events import ToolFinished, ToolProgress
from toolcrib.serve.mcp import mcp_app, mcp_server, serve_mcp

ERAS = ("2026-07-28", "2025-11-25")


def mode_of(era: str) -> str:
    return "legacy" if era == "2025-11-25" else "auto"


@contextlib.asynccontextmanager
async def connected(url: str, era: str, token: str | None = None, **options) -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=20, verify=False) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode_of(era), **options) as client,
    ):
        assert client.protocol_version == era
        yield client


@pytest.fixture
def serve_mcp_at(serve_app):
    return lambda tools, **options: serve_app(mcp_app(tools, **options)) + "/mcp"


# -- what is listed


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_tools_are_listed_as_they_are(serve_mcp_at, era):
    tools = Toolset(TOOLS)
    async with connected(serve_mcp_at(tools), era) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(listed) == ["math.add", "a_b____call", *tools.names[2:]]
    for tool, shown in zip(tools, listed.values(), strict=True):
        assert (shown.input_schema, shown.description) == (tool.input_schema, tool.description)
        assert shown.title == (None if shown.name == tool.name else tool.name)
    assert listed["math.add"].annotations.read_only_hint is True
    assert listed["foreign"].annotations.destructive_hint is True


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_many_tools_are_listed_in_pages(serve_mcp_at, era):
    tools = [Tool(add, name=f"add_{number}") for number in range(7)]
    async with connected(serve_mcp_at(tools, page_size=3), era) as client:
        names, cursor, pages = [], None, 0
        while pages == 0 or cursor is not None:
            page = await client.list_tools(cursor=cursor)
            names += [tool.name for tool in page.tools]
            cursor, pages = page.next_cursor, pages + 1
        assert (names, pages) == ([tool.name for tool in tools], 3)
        with pytest.raises(MCPError, match="list them from the start") as refused:
            await client.list_tools(cursor="nonsense")
        assert refused.value.error.code == -32602


@pytest.mark.anyio
async def test_a_cursor_is_worth_nothing_once_the_tools_have_changed(serve_mcp_at):
    names = ["a", "b", "c"]

    class Source:
        def as_tools(self):
            return [Tool(add, name=name) for name in names]

    tools = Toolset([Source()])
    async with connected(serve_mcp_at(tools, page_size=2), "2026-07-28") as client:
        cursor = (await client.list_tools()).next_cursor
        names.insert(0, "new")
        tools.refresh()
        with pytest.raises(MCPError, match="have changed"):
            await client.list_tools(cursor=cursor)


@pytest.mark.anyio
async def test_no_tools_are_an_empty_list(serve_mcp_at):
    async with connected(serve_mcp_at([]), "2026-07-28") as client:
        assert (await client.list_tools()).tools == []


# -- what is called


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_calls_are_answered_with_what_the_tools_return(serve_mcp_at, era):
    async with connected(serve_mcp_at(TOOLS), era) as client:

        async def call(name, **arguments):
            result = await client.call_tool(name, arguments)
            assert result.is_error is False
            blocks = [block.model_dump(by_alias=True, exclude_none=True) for block in result.content]
            return [block.get("text") or block for block in blocks], result.structured_content

        tree = {"name": "r", "children": [{"name": "l", "children": []}]}
        new = era == "2026-07-28"
        assert await call("math.add", a=2, b="5") == (["7"], 7 if new else None)
        assert await call("a_b____call", a=2) == (["3"], 3 if new else None)
        given = {"x": 2, "self": {"x": 1}, "y": "ü\u001b"}
        assert (await call("foreign", **given))[1] == given
        assert (await call("depth", node=tree))[0] == ["2"]
        assert await call("picture") == ([IMAGE], None)
        assert await call("mixed") == (["hello", IMAGE, '{"n":1}'], None)
        assert (await call("record"))[1] == {"name": "root", "children": [{"name": "leaf", "children": []}]}
        assert await call("numbers") == (["[1,2]"], [1, 2] if new else None)
        assert await call("words") == (["one two"], None)


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("math.add", {"a": "many"}, "Invalid arguments for 'math.add':\n- a: "),
        ("math.add", {}, "- a: required, but missing"),
        ("foreign", {"x": 3}, "- x: "),
        ("fail", {}, "Tool 'fail' failed: RuntimeError: no such row"),
        ("refused", {}, "not today"),
    ],
)
async def test_what_goes_wrong_is_told_to_the_model(serve_mcp_at, era, name, arguments, said):
    async with connected(serve_mcp_at(TOOLS), era) as client:
        result = await client.call_tool(name, arguments)
    assert result.is_error is True
    assert said in result.content[0].text


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_an_unknown_tool_is_an_error_of_the_protocol(serve_mcp_at, era):
    async with connected(serve_mcp_at(TOOLS), era) as client:
        with pytest.raises(MCPError) as refused:
            await client.call_tool("math.ad", {})
    assert refused.value.error.code == -32602
    assert refused.value.error.message == "Tool 'math.ad' not found. Did you mean 'math.add'?"


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_a_call_has_a_deadline(serve_mcp_at, era):
    async def slow() -> None:
        await asyncio.sleep(60)

    async with connected(serve_mcp_at([slow], limits=Limits(deadline=0.05)), era) as client:
        result = await client.call_tool("slow", {})
    assert "timed out" in result.content[0].text


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_progress_reaches_the_client_before_the_answer(serve_mcp_at, era):
    heard, events = [], []

    async def hurries(context: ToolContext) -> None:
        context.progress(1)

    async def hear(progress, total, message):
        heard.append((progress, total, message))

    async with connected(serve_mcp_at([*TOOLS, hurries], on_event=events.append), era) as client:
        result = await client.call_tool("steps", {}, progress_callback=hear)
        told = list(heard)
        await client.call_tool("steps", {})
        await client.call_tool("hurries", {}, progress_callback=hear)
    assert heard.pop() == (1, None, None)
    assert result.content[0].text == "done"
    assert told == heard == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]
    assert sum(isinstance(event, ToolProgress) for event in events) == 11
    assert [event.result.kind for event in events if isinstance(event, ToolFinished)] == ["ok"] * 3


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_cancels_cancels_the_tool(serve_mcp_at, era):
    begun, cancelled = threading.Event(), threading.Event()

    async def slow() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async with connected(serve_mcp_at([slow, add]), era) as client:
        task = asyncio.create_task(client.call_tool("slow", {}))
        assert await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        assert await asyncio.to_thread(cancelled.wait, 10)
        assert (await client.call_tool("add", {"a": 1})).content[0].text == "2"


@pytest.mark.anyio
async def test_many_clients_call_at_the_same_time(serve_mcp_at):
    url = serve_mcp_at(TOOLS)

    async def one(number):
        async with connected(url, ERAS[number % 2]) as client:
            return [(await client.call_tool("math.add", {"a": number, "b": n})).content[0].text for n in range(3)]

    answers = await asyncio.gather(*map(one, range(8)))
    assert answers == [[str(number + n) for n in range(3)] for number in range(8)]


# -- changes


class Shelf:
    def __init__(self):
        self.names = ["one"]

    def as_tools(self):
        return [Tool(add, name=name) for name in self.names]


@pytest.mark.anyio
async def test_a_stream_that_was_opened_for_it_hears_of_a_refresh(serve_mcp_at):
    shelf = Shelf()
    tools = Toolset([shelf])
    async with connected(serve_mcp_at(tools), "2026-07-28") as client:
        assert client.server_capabilities.tools.list_changed is True
        async with client.listen(tools_list_changed=True) as changes:
            shelf.names.append("two")
            await asyncio.to_thread(tools.refresh)
            async with asyncio.timeout(10):
                await anext(aiter(changes))
            assert [tool.name for tool in (await client.list_tools()).tools] == ["one", "two"]


@pytest.mark.anyio
async def test_a_session_hears_of_a_refresh(serve_mcp_at):
    shelf, heard = Shelf(), asyncio.Queue()
    tools = Toolset([shelf])

    async def hear(message):
        heard.put_nowait(getattr(message, "method", message))

    async with connected(serve_mcp_at(tools), "2025-11-25", message_handler=hear) as client:
        assert client.server_capabilities.tools.list_changed is True
        await client.list_tools()
        shelf.names.append("two")
        # The stream on which a session is told is opened by the client in its own time.
        async with asyncio.timeout(10):
            while heard.empty():
                tools.refresh()
                shelf.names.append(f"more{len(shelf.names)}")
                await asyncio.sleep(0.05)
        assert heard.get_nowait() == "notifications/tools/list_changed"


@pytest.mark.anyio
async def test_a_refresh_that_changes_nothing_is_not_told():
    tools, told = Toolset([Shelf()]), []
    end = tools.watch(told.append)
    tools.refresh()
    assert told == []
    tools._entries[0].names.append("two")
    tools.refresh()
    assert [changes.added for changes in told] == [("two",)]
    end()
    end()
    tools._entries[0].names.append("three")
    tools.refresh()
    assert len(told) == 1


# -- who may call


def ask(url, **headers):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    return httpx2.post(url, json=body, headers={"accept": "application/json, text/event-stream", **headers})


def test_a_client_without_the_token_is_refused(serve_mcp_at):
    url = serve_mcp_at(TOOLS, token=TOKEN)
    assert ask(url).status_code == 401
    assert ask(url).headers["www-authenticate"] == "Bearer"
    assert ask(url, authorization="Bearer wrong").status_code == 401


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_a_client_with_the_token_is_served(serve_mcp_at, era):
    async with connected(serve_mcp_at(TOOLS, token=TOKEN), era, TOKEN) as client:
        assert (await client.call_tool("math.add", {"a": 1})).content[0].text == "2"


def test_pages_of_other_origins_and_requests_for_other_hosts_are_refused(serve_mcp_at):
    url = serve_mcp_at(TOOLS, origins=["https://app.example"])
    assert ask(url, origin="https://evil.example").status_code == 403
    assert ask(url, host="evil.example").status_code == 421
    allowed = ask(url, origin="https://app.example")
    assert allowed.status_code == 400  # no session, but let through
    assert "mcp-session-id" in allowed.headers["access-control-expose-headers"].lower()


def test_a_body_that_is_too_long_is_refused(serve_mcp_at):
    url = serve_mcp_at(TOOLS, limits=Limits(max_argument_chars=1_000))
    assert httpx2.post(url, content=b"x" * 200_000, headers={"content-type": "application/json"}).status_code == 413


def test_other_machines_are_not_served_without_a_token():
    with pytest.raises(ValueError, match="without a token"):
        serve_mcp([add], transport="http", host="0.0.0.0")  # noqa: S104  # which is refused


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"transport": "carrier pigeon"}, "stdio or http"),
        ({"transport": "http", "token": " "}, "must not be empty"),
        ({"transport": "http", "page_size": 0}, "page_size"),
        ({"transport": "http", "port": 70_000}, "a port is a number"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        serve_mcp([add], **options)


# -- mounted


@pytest.mark.anyio
async def test_it_may_be_mounted_where_no_lifespan_reaches_it(serve_app):
    url = serve_app(Starlette(routes=[Mount("/tools", app=mcp_app(TOOLS, path="/mcp"))]))
    for era in ERAS:
        async with connected(f"{url}/tools/mcp", era) as client:
            assert (await client.call_tool("math.add", {"a": 1})).content[0].text == "2"


@pytest.mark.anyio
async def test_a_server_runs_on_a_transport_of_ones_own():
    async with Client(mcp_server(TOOLS, name="mine", version="7", instructions="Add.")) as client:
        assert (client.server_info.name, client.server_info.version) == ("mine", "7")
        assert client.instructions == "Add."
        assert (await client.call_tool("math.add", {"a": 1})).content[0].text == "2"


class Skilled(BaseSkill):
    instructions = "Ask which numbers are meant."

    def get_tools(self) -> list[Tool]:
        return [Tool(add)]


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_what_skills_say_is_told_to_clients_unless_something_else_is(serve_mcp_at, era):
    for options, told in (({}, "Ask which numbers are meant."), ({"instructions": "Add."}, "Add.")):
        async with connected(serve_mcp_at(Toolset([Skilled()]).prefixed("x."), **options), era) as client:
            assert client.instructions == told


@pytest.mark.anyio
@pytest.mark.parametrize(("tools", "options"), [([add], {}), ([Skilled()], {"instructions": ""})])
async def test_a_server_that_has_nothing_to_say_says_nothing(tools, options):
    async with Client(mcp_server(tools, **options)) as client:
        assert client.instructions is None
