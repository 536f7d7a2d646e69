"""Servers that misbehave: each costs at most its own call, in bounded time and memory, with an error that says why."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import uvicorn
from mcp_raw_server import entry
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from toolcrib import MCP, MCPClient, MCPConnectionError, ToolExecutionError, Toolset, ToolTimeoutError
from toolcrib.sources import _mcp_connection, _mcp_list


@pytest.fixture(scope="module")
def raw():
    with MCPClient({"mcpServers": {"raw": entry()}}) as running:
        yield running


# -- over pipes


@pytest.mark.parametrize(
    ("name", "value"), [("noise", "the answer"), ("bad_bytes", "a��b"), ("flood", "after the flood")]
)
def test_noise_around_an_answer_does_no_harm(raw, name, value):
    assert raw.call_tool(name) == value


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("giant", "more than 20,000,000 bytes"),
        ("giant_backwards", "more than 20,000,000 bytes"),
        ("deep", "an answer that cannot be read"),
    ],
)
def test_an_answer_that_cannot_be_taken_fails_its_call_alone(raw, name, why):
    before = raw.call_tool("pid")
    with pytest.raises(ToolExecutionError, match=why):
        raw.call_tool(name)
    assert raw.call_tool("pid") == before


def test_a_line_without_end_ends_the_connection_and_the_next_call_has_another(raw):
    with pytest.raises(MCPConnectionError, match="was lost"):
        raw.call_tool("endless")
    assert raw.call_tool("echo", {"text": "again"}) == "again"


def test_a_server_that_stops_reading_costs_each_call_its_own_time():
    with MCPClient({"mcpServers": {"raw": entry()}}) as raw:
        began = time.monotonic()
        for name, arguments in (("deaf", {}), ("echo", {"text": "x" * 500_000}), ("echo", {"text": "x" * 500_000})):
            with pytest.raises(ToolTimeoutError):
                raw.call_tool(name, arguments, timeout=0.2)
        assert time.monotonic() - began < 5


def test_a_server_that_says_nothing_at_all_is_given_up(monkeypatch):
    monkeypatch.setattr(_mcp_connection, "HANDSHAKE_SECONDS", 0.5)
    with pytest.raises(MCPConnectionError, match=r"did not agree on a session within 0\.5 seconds"):
        MCPClient({"mcpServers": {"mute": entry(mute=True)}})


def test_as_many_tools_are_read_as_a_toolset_may_have(monkeypatch):
    monkeypatch.setattr(_mcp_list, "MAX_TOOLS", 5)
    with MCPClient({"mcpServers": {"raw": entry(pages="endless")}}) as running:
        assert len(running.as_tools()) == 5


# -- over HTTP


def event(text):
    return Response(text, media_type="text/event-stream")


WAYS = {
    "fine": lambda answer: answer({"content": [{"type": "text", "text": "fine"}]}),
    "giant": lambda answer: answer({"content": [{"type": "text", "text": "x" * 21_000_000}]}),
    "broken": lambda _: Response("{no json", media_type="application/json"),
    "html": lambda _: Response("<html>", media_type="text/html"),
    "error": lambda _: PlainTextResponse("out of order", 500),
    "moved": lambda _: RedirectResponse("http://other.example/mcp", 307),
    "silent": lambda _: event(""),
    "huge_event": lambda _: event("data: " + "x" * 21_000_000 + "\n\n"),
}


async def endpoint(request):
    if "locked" in request.query_params:
        return PlainTextResponse("who are you?", 401)
    if request.method == "DELETE" and "deaf" in request.query_params:
        await asyncio.sleep(600)
    if request.method != "POST":
        return PlainTextResponse("no", 405)
    message = await request.json()
    number, name = message.get("id"), message.get("params", {}).get("name")
    if number is None:
        return Response(status_code=202)

    def answer(result, status=200, key="result"):
        session = {"Mcp-Session-Id": "one"} if "deaf" in request.query_params else None
        return JSONResponse({"jsonrpc": "2.0", "id": number, key: result}, status, session)

    if message["method"] == "initialize":
        info = {"name": "web", "version": "1"}
        return answer({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info})
    if name in WAYS:
        return WAYS[name](answer)
    return answer({"code": -32601, "message": "Method not found"}, 404, "error")


@pytest.fixture(scope="module")
def web():
    app = Starlette(routes=[Route("/mcp", endpoint, methods=["GET", "POST", "DELETE"])])
    with socket.create_server(("127.0.0.1", 0)) as bound:
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        with MCPClient(f"http://127.0.0.1:{bound.getsockname()[1]}/mcp") as running:
            yield running
        server.should_exit = server.force_exit = True
        thread.join(10)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("giant", "more than 20,000,000 bytes"),
        ("broken", "parse JSON"),
        ("html", "text/html"),
        ("error", "error response"),
        ("moved", "Redirect to"),
        ("silent", "was lost"),
        ("huge_event", "was lost"),
    ],
)
def test_an_http_server_that_misbehaves_fails_the_call_alone(web, name, why):
    with pytest.raises(ToolExecutionError, match=why):
        web.call_tool(name, timeout=20)
    assert web.call_tool("fine") == "fine"


def test_a_server_that_wants_other_credentials_is_told_with_its_status(web):
    url = web._servers[0].connection._place.url
    with pytest.raises(MCPConnectionError, match="answered with HTTP 401") as caught:
        MCP.http("web", f"{url}?locked", headers={"Authorization": "Bearer not-this-one"}, allow="*")
    assert "not-this-one" not in str(caught.value)


def test_a_server_that_does_not_hear_the_end_of_a_session_does_not_hold_it_up(web):
    url = web._servers[0].connection._place.url
    client = MCPClient(f"{url}?deaf")
    began = time.monotonic()
    client.close()
    assert time.monotonic() - began < 5


def test_a_server_without_tools_has_none(web):
    assert Toolset([web]).names == ()


# -- our own end


SCRIPT = """
import json, sys
from toolcrib import MCPClient
client = MCPClient(json.loads(sys.argv[1]))
print(client.call_tool("echo", {"text": "hello"}), flush=True)
{then}
"""


@pytest.mark.parametrize(
    ("then", "code"), [("", 0), ("sys.exit(3)", 3), ("import os; os.fork() or os._exit(0); client.call_tool('pid')", 0)]
)
def test_a_program_that_ends_leaves_no_server_behind(tmp_path, then, code):
    pids = tmp_path / "pids"
    config = json.dumps({"mcpServers": {"raw": entry(pids=str(pids), stubborn="fork" not in then)}})
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT.replace("{then}", then), config],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("hello\n", "", code)
    over = time.monotonic() + 10
    while any(map(lives, pids.read_text().split())):
        assert time.monotonic() < over


def lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
