"""A Toolset served over MCP and read back by our own client: the same tools, and the same answers."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest
from served_tools import IMAGE, PNG, TOKEN, TOOLS, add

from toolcrib import MCPClient, TargetError, Tool, ToolCall, Toolset, acall_tools, call_tools
from toolcrib.limits import Limits
from toolcrib.serve.gateway import gateway_app
from toolcrib.serve.mcp import mcp_app, mcp_server
from toolcrib.targets import resolve, resolve_all

CALLS = [
    ToolCall("1", "math.add", '{"a": 2}'),
    ToolCall("2", "foreign", '{"x": 2, "self": {"x": 1}, "y": "ü\\u001b"}'),
    ToolCall("3", "depth", '{"node": {"name": "r", "children": [{"name": "l"}]}}'),
    ToolCall("4", "picture"),
    ToolCall("5", "mixed"),
    ToolCall("6", "record"),
    ToolCall("7", "numbers"),
    ToolCall("8", "words"),
    ToolCall("9", "steps"),
]
WRONG = [
    ToolCall("1", "math.add", '{"a": "many"}'),
    ToolCall("2", "fail"),
    ToolCall("3", "refused"),
    ToolCall("4", "nowhere"),
]
KIT = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from served_tools import TOOLS
"""


def reach(transport, serve_app, folder) -> MCPClient:
    if transport == "http":
        url = serve_app(mcp_app(TOOLS, token=TOKEN)) + "/mcp"
        return MCPClient({"mcpServers": {"it": {"url": url, "headers": {"Authorization": f"Bearer {TOKEN}"}}}})
    if transport == "in process":
        return MCPClient.in_process(mcp_server(TOOLS))
    (folder / "kit.py").write_text(KIT, encoding="utf-8")
    args = ["-m", "toolcrib.serve.mcp", str(folder / "kit.py")]
    return MCPClient({"mcpServers": {"it": {"command": sys.executable, "args": args}}})


TRANSPORTS = ["http", "stdio", "in process"]


@pytest.fixture(params=TRANSPORTS)
def client(request, serve_app, tmp_path):
    with reach(request.param, serve_app, tmp_path) as client:
        yield client


def test_the_same_tools_come_back(client):
    sent, back = Toolset(TOOLS), Toolset([client])
    wire = {"a/b ç?/call": "a_b____call"}  # which MCP has no name for
    assert list(back.names) == [wire.get(name, name) for name in sent.names]
    for there, here in zip(sent, back, strict=True):
        assert (here.input_schema, here.description, here.effect) == (
            there.input_schema,
            there.description,
            there.effect,
        )


def answers(results) -> list[tuple[str, object]]:
    return [(result.kind, result.value) for result in results]


def check_the_same_answers(back) -> None:
    assert back[:3] == [("ok", 3), ("ok", {"x": 2, "self": {"x": 1}, "y": "ü\u001b"}), ("ok", 2)]
    assert back[3] == ("ok", [IMAGE])
    assert back[4] == ("ok", ["hello", IMAGE, '{"n":1}'])
    assert back[5] == ("ok", {"name": "root", "children": [{"name": "leaf", "children": []}]})
    assert back[6:] == [("ok", [1, 2]), ("ok", "one two"), ("ok", "done")]


def test_the_same_answers_come_back(client):
    tools = Toolset([client])
    check_the_same_answers(answers(call_tools(CALLS, tools)))


@pytest.mark.anyio
async def test_the_same_answers_come_back_to_async_code(serve_app, tmp_path):
    with reach("http", serve_app, tmp_path) as client:
        tools = Toolset([client])
        check_the_same_answers(answers(await acall_tools(CALLS, tools)))


def test_the_same_errors_come_back(client):
    here, there = call_tools(WRONG, Toolset(TOOLS)), call_tools(WRONG, Toolset([client]))
    assert [result.kind for result in there] == ["invalid_arguments", "failed", "failed", "not_found"]
    assert there[0].text.splitlines()[::2] == here[0].text.splitlines()[::2]  # but for the words of two validators
    assert "no such row" in there[1].text
    assert "not today" in there[2].text


# -- served again: targets of the command line


@pytest.fixture
def upstream(serve_app):
    return serve_app(mcp_app(TOOLS)), serve_app(gateway_app([Tool(add, name="plus")]))


def test_a_url_is_told_by_its_path_its_prefix_or_by_asking(upstream, serve_app):
    mcp, gateway = upstream
    elsewhere = serve_app(mcp_app([Tool(add, name="minus")], path="/")) + "/"
    for target, name in [
        (f"{mcp}/mcp", "math.add"),
        (f"mcp+{mcp}/mcp", "math.add"),
        (gateway, "plus"),
        (f"gateway+{gateway}", "plus"),
        (elsewhere, "minus"),
    ]:
        assert name in resolve(target)


def test_a_file_of_servers_is_a_target(upstream, tmp_path):
    path = tmp_path / "mcp.json"
    path.write_text(f'{{"mcpServers": {{"up": {{"url": "{upstream[0]}/mcp"}}}}}}', encoding="utf-8")
    assert "math.add" in resolve(str(path))
    path.write_text('{"mcpServers": {"up": {"command": 1}}}', encoding="utf-8")
    with pytest.raises(TargetError, match="command must be"):
        resolve(str(path))
    with pytest.raises(TargetError, match=r"there is no file .*other\.json"):
        resolve(str(tmp_path / "other.json"))


def test_a_url_where_neither_is_is_told_with_the_way_to_say_which(serve_app):
    url = serve_app(gateway_app([add], token=TOKEN))
    with pytest.raises(TargetError, match=r"is no tool gateway .*HTTP 401.* and no MCP server .*write gateway\+http"):
        resolve(url)
    with pytest.raises(TargetError, match=r"MCP server '127\.0\.0\.1:1'"):
        resolve("http://127.0.0.1:1/mcp")


def test_many_targets_behind_one_endpoint(upstream, serve_app):
    mcp, gateway = upstream
    gathered = resolve_all([f"{mcp}/mcp", gateway]).prefixed("up.").select(allow=["up.*add", "up.pl*"])
    with MCPClient(serve_app(mcp_app(gathered)) + "/mcp") as client:
        tools = Toolset([client])
        assert tools.names == ("up.math.add", "up.plus")
        results = call_tools([ToolCall("1", "up.math.add", {"a": 1}), ToolCall("2", "up.plus", {"a": 2})], tools)
        assert [result.value for result in results] == [2, 3]


def test_what_changes_at_a_server_changes_for_those_behind_it(serve_app):
    names, heard = ["one"], threading.Event()

    class Shelf:
        def as_tools(self):
            return [Tool(add, name=name) for name in names]

    shelf = Toolset([Shelf()])
    followed = resolve_all([serve_app(mcp_app(shelf)) + "/mcp"])
    followed.watch(lambda _: heard.set())
    assert followed.names == ("one",)
    end = time.monotonic() + 20
    while not heard.is_set():  # the client opens the stream on which it is told in its own time
        assert time.monotonic() < end
        names.append(f"more{len(names)}")
        shelf.refresh()
        heard.wait(0.2)
    assert "more1" in followed


def test_a_picture_that_is_too_large_is_told_in_words(serve_app):
    def large() -> bytes:
        """Draw."""
        return PNG + bytes(2_000)

    limits = Limits(max_result_bytes=1_000)
    with MCPClient(serve_app(mcp_app([large], limits=limits)) + "/mcp") as client:
        assert client.call_tool("large") == "[image/png, 2,048 bytes: too large to show]"
