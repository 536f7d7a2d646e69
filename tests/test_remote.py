"""Several servers and gateways of a command line, with their tokens, and while one of them is away."""

from __future__ import annotations

import json
import os
import threading

import pytest
import uvicorn
from mcp_raw_server import entry
from raw_server import RawServer

from toolcrib import ToolCall, ToolcribWarning, call_tools
from toolcrib.errors import TargetError
from toolcrib.serve._listen import _after, _bound
from toolcrib.serve.mcp import mcp_app
from toolcrib.targets import resolve, resolve_all

LIST = [{"name": "look", "description": "Look."}]


@pytest.fixture(autouse=True)
def _no_tokens_of_ours(monkeypatch):
    for name in [name for name in os.environ if name.startswith("TOOLCRIB_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def gateways():
    with RawServer() as one, RawServer() as other:
        one.say(LIST)
        other.say(LIST)
        yield one, other


def sent(gateway):
    return {asked.headers.get("authorization") for asked in gateway.asked}


@pytest.fixture
def two_servers(tmp_path):
    """Two servers in one file, whose lists follow two files; the second cannot start while `away` is there."""
    for name in ("a", "b"):
        (tmp_path / name).write_text("pid die changed", encoding="utf-8")
    servers = {name: entry(pages="file", names=str(tmp_path / name)) for name in ("a",)}
    servers["b"] = entry(pages="file", names=str(tmp_path / "b"), away=str(tmp_path / "away"))
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return tmp_path


def answered(tools, name):
    return call_tools([ToolCall("1", name, {})], tools)[0]


# -- tokens


def test_a_token_is_not_sent_to_two_hosts(gateways, monkeypatch):
    one, other = gateways
    monkeypatch.setenv("TOOLCRIB_TOKEN", "a-secret-token")
    with pytest.raises(TargetError, match=rf"TOOLCRIB_TOKEN_127_0_0_1_{other.port} for 127\.0\.0\.1:{other.port}"):
        resolve_all([one.url, f"other=gateway+{other.url}"])
    assert sent(one) == sent(other) == set()
    assert resolve_all([one.url, "builtin:math"])["look"]
    assert sent(one) == {"Bearer a-secret-token"}


def test_each_host_may_have_a_token_of_its_own(gateways, monkeypatch):
    one, other = gateways
    monkeypatch.setenv("TOOLCRIB_TOKEN", "a-secret-token")
    monkeypatch.setenv(f"TOOLCRIB_TOKEN_127_0_0_1_{other.port}", "another-token")
    assert resolve_all([f"one={one.url}", f"other={other.url}"]).names == ("one.look", "other.look")
    assert (sent(one), sent(other)) == ({"Bearer a-secret-token"}, {"Bearer another-token"})


# -- names


def test_two_tools_of_one_name_are_told_apart_by_a_name_before_the_target(gateways):
    one, other = gateways
    with pytest.raises(TargetError, match=r"two tools are named 'look'.*put a name before one of the targets"):
        resolve_all([one.url, other.url])
    tools = resolve_all([one.url, f"crm={other.url}"])
    assert tools.names == ("look", "crm.look")
    assert answered(tools, "crm.look").ok
    assert (len(one.asked), other.asked[-1].path) == (4, "/tools/look/call")


def test_a_file_whose_name_looks_like_that_is_still_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "crm=kit.py").write_text("def one(): ...", encoding="utf-8")
    assert resolve("crm=kit.py").names == ("one",)


def test_a_json_file_that_lists_no_servers_is_told_what_it_should_hold(tmp_path):
    path = tmp_path / "n.json"
    path.write_text('{"a": 1}', encoding="utf-8")
    with pytest.raises(TargetError, match=r"n\.json: an MCP configuration is \{\"mcpServers\""):
        resolve(str(path))


# -- one of several that is away


def heard(tools):
    event = threading.Event()
    tools.watch(lambda _: event.set())
    return event


def test_a_server_that_is_away_keeps_its_tools_and_does_not_hold_up_the_others(two_servers):
    tools = resolve_all([f"x={two_servers / 'mcp.json'}"])
    before = answered(tools, "x.b.pid").text
    (two_servers / "away").touch()
    assert answered(tools, "x.b.die").kind == "failed"
    assert "could not be" in answered(tools, "x.b.pid").text or "ended before" in answered(tools, "x.b.pid").text
    (two_servers / "a").write_text("pid more", encoding="utf-8")
    with pytest.warns(ToolcribWarning, match="MCP server 'b' cannot be asked for its tools, and those it had stay"):
        changes = tools.refresh()
    assert (changes.added, changes.removed) == (("x.a.more",), ("x.a.die", "x.a.changed"))
    assert "x.b.pid" in tools
    (two_servers / "away").unlink()
    assert answered(tools, "x.b.pid").text not in ("", before)


def test_a_server_that_came_back_with_other_tools_is_listed_again(two_servers):
    tools = resolve_all([str(two_servers / "mcp.json")])
    changed = heard(tools)
    assert answered(tools, "b.die").kind == "failed"
    (two_servers / "b").write_text("pid more", encoding="utf-8")
    assert answered(tools, "b.pid").ok
    assert changed.wait(20)
    assert ("b.more" in tools, "b.die" in tools) == (True, False)


def test_what_a_server_says_of_changes_reaches_tools_with_a_name_before_them(two_servers):
    tools = resolve_all([f"x={two_servers / 'mcp.json'}", "builtin:math"])
    changed = heard(tools)
    (two_servers / "a").write_text("pid more", encoding="utf-8")
    assert answered(tools, "x.a.changed").ok
    assert changed.wait(20)
    assert "x.a.more" in tools


def served(app, port=0):
    """Serve an application on a port of this machine; return the port, and what ends it."""
    listening = _bound("127.0.0.1", port)
    port = listening.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    server.shutdown = _after(app.state.close, server.shutdown)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()

    def end():
        server.should_exit = True
        thread.join(10)

    return port, end


@pytest.mark.parametrize("is_missed", [False, True])
def test_a_server_behind_a_url_that_was_restarted_with_other_tools_is_listed_again(is_missed):
    def one() -> str:
        """Do one."""
        return "1"

    def two() -> str:
        """Do two."""
        return "2"

    port, end = served(mcp_app([one]))
    tools = resolve_all([f"x=http://127.0.0.1:{port}/mcp"])
    assert answered(tools, "x.one").text == "1"
    changed = heard(tools)
    end()
    if is_missed:  # and its loss is noticed by a call, so that it is the next one that connects again
        assert answered(tools, "x.one").kind == "failed"
    _, end = served(mcp_app([two]), port)
    if is_missed:
        assert answered(tools, "x.one").kind == "failed"
    assert changed.wait(20)
    assert tools.names == ("x.two",)
    end()
