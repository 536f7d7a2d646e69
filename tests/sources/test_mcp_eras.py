"""MCPClient against servers made with the SDK: over pipes, over HTTP and in this process, in both eras."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from pathlib import Path

import pytest
import uvicorn
from mcp_sdk_server import made

from toolcrib import (
    MCP,
    MCPConnectionError,
    ToolCall,
    ToolExecutionError,
    Toolset,
    ToolTimeoutError,
    call_tools,
)

# What the SDK's server half says of what both halves can still do.
pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated as of 2026:Warning")

SERVER = str(Path(__file__).parents[1] / "mcp_sdk_server.py")


class Web:
    """An MCP server over HTTP on loopback, which may be stopped and started again at the same address."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.start()

    def start(self):
        self.server = uvicorn.Server(uvicorn.Config(made().streamable_http_app(), log_level="critical"))
        kept = self.socket.dup()
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [kept]}, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def stop(self):
        self.server.should_exit = self.server.force_exit = True
        self.thread.join(10)

    def close(self):
        self.stop()
        self.socket.close()


@pytest.fixture(scope="module")
def web():
    running = Web()
    yield running
    running.close()


WAYS = [(how, era) for how in ("stdio", "http", "local") for era in ("modern", "legacy")]


@pytest.fixture(scope="module")
def changes():
    return threading.Semaphore(0)


@pytest.fixture(scope="module", params=WAYS, ids="-".join)
def sdk(request, changes):
    how, era = request.param
    options = {"on_elicit": lambda asked: {"name": asked.message}, "on_sample": lambda asked: f"of {asked.server}"}
    options |= {"on_change": changes.release, "allow": "*", "connect": False}
    if how == "stdio":
        client = MCP.stdio("sdk", sys.executable, [SERVER], **options)
    elif how == "http":
        client = MCP.http("sdk", request.getfixturevalue("web").url, **options)
    else:
        client = MCP.in_process(made(), "sdk", **options)
    client._servers[0].connection._mode = "auto" if era == "modern" else "legacy"
    with client:
        yield client


def test_tools_are_listed_and_called(sdk):
    tools = Toolset([sdk])
    assert tools.names[:2] == ("sdk.add", "sdk.steps")
    assert sdk.call_tool("sdk.add", {"a": 1, "b": 2}) == "3"
    assert sdk.ping()


def test_progress_reaches_events(sdk):
    events = []
    call_tools([ToolCall("1", "sdk.steps", {})], Toolset([sdk]), on_event=events.append)
    told = {(e.progress, e.total, e.message) for e in events if type(e).__name__ == "ToolProgress"}
    assert told == {(1.0, 2.0, "step 1"), (2.0, 2.0, "step 2")}


def test_an_unknown_tool_is_a_failed_call(sdk):
    with pytest.raises(ToolExecutionError, match="Unknown tool: nothing"):
        sdk.call_tool("sdk.nothing")


def test_a_deadline_cancels_on_the_server(sdk):
    with pytest.raises(ToolTimeoutError):
        sdk.call_tool("sdk.slow", timeout=0.3)
    over = time.monotonic() + 5
    while "cancelled" not in json.loads(sdk.call_tool("sdk.seen")):
        assert time.monotonic() < over


def test_what_a_server_asks_of_the_user_goes_to_the_callback_and_defaults_are_filled_in(sdk):
    assert sdk.call_tool("sdk.ask") == 'accept {"loud": true, "name": "who?"}'


def test_what_a_server_asks_of_a_model_goes_to_the_callback(sdk):
    assert sdk.call_tool("sdk.think") == "of sdk"


def test_a_change_of_the_tools_is_told_and_seen(sdk, changes, request):
    if "http-legacy" in request.node.callspec.id:
        pytest.skip("the SDK's server promises no such thing there")
    sdk.as_tools()
    sdk.call_tool("sdk.grow")
    assert changes.acquire(timeout=5)
    assert sdk.refresh().added == ("sdk.grown",)


# -- answers of callbacks


@pytest.fixture(params=["auto", "legacy"])
def ask(request):
    """Return what the server makes of the answer that a callback gives it."""

    def call(on_elicit=None):
        with MCP.in_process(made(), connect=False, on_elicit=on_elicit) as client:
            client._servers[0].connection._mode = request.param
            try:
                return client.call_tool("ask")
            finally:
                assert client.ping()

    return call


@pytest.mark.parametrize(
    ("said", "heard"),
    [(None, "decline null"), (True, 'accept {"loud": true}'), ({"name": "me", "loud": False}, '"loud": false')],
)
def test_the_user_may_answer_in_several_ways(ask, said, heard):
    async def on_elicit(asked):
        return said

    assert heard in ask(on_elicit)


def test_without_a_callback_a_server_that_asks_is_refused(ask):
    with pytest.raises(ToolExecutionError):
        ask()


def test_a_callback_that_fails_fails_the_call_and_not_the_connection(ask):
    def on_elicit(asked):
        raise LookupError("nobody is here")

    with pytest.raises((ToolExecutionError, LookupError)):
        ask(on_elicit)


# -- HTTP alone


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_an_http_server_that_was_started_anew_is_connected_to_again(web, era):
    with MCP.http("sdk", web.url, allow="*", connect=False) as client:
        client._servers[0].connection._mode = era
        assert client.call_tool("sdk.add", {"a": 1, "b": 2}) == "3"
        web.stop()
        web.start()
        assert client.call_tool("sdk.add", {"a": 1, "b": 2}) == "3"


def test_an_address_where_nobody_answers_is_a_connection_error():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(MCPConnectionError, match="could not be connected to: ConnectError"):
        MCP.http("web", f"http://127.0.0.1:{port}/mcp", allow="*")
