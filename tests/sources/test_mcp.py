"""MCPClient as a user meets it, against a server over pipes without any library."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import threading
import time
from pathlib import Path

import pytest
from mcp_raw_server import entry as server

from toolcrib import (
    MCP,
    Limits,
    MCPClient,
    MCPConnectionError,
    Secret,
    ToolArgumentError,
    ToolCall,
    ToolDeniedError,
    ToolExecutionError,
    ToolNotFoundError,
    Toolset,
    ToolTimeoutError,
    acall_tools,
    call_tools,
)
from toolcrib.formats import FORMATS

SERVER = str(Path(__file__).parents[1] / "mcp_raw_server.py")


def client(**options):
    return MCPClient({"mcpServers": {"raw": server(**options)}})


@pytest.fixture(scope="module")
def raw():
    with client() as running:
        yield running


@pytest.fixture(scope="module")
def tools(raw):
    return Toolset([raw])


def answered(toolset, name, arguments=None, **options):
    return call_tools([ToolCall("1", name, arguments or {})], toolset, **options)[0]


# -- tools


def test_the_tools_of_one_server_keep_their_names_and_say_where_they_are_from(tools):
    assert tools.names[:3] == ("echo", "pid", "env")
    assert (tools["echo"].origin, tools["echo"].original_name) == ("mcp:raw", "echo")
    assert tools["echo"].description == "Do echo."


def test_schemas_are_the_servers_own(tools):
    assert tools["echo"].input_schema == {"type": "object", "properties": {"text": {"type": "string"}}}
    assert tools["structured"].output_schema == {
        "type": "object",
        "properties": {"n": {"type": "string"}},
        "required": ["n"],
    }


@pytest.mark.parametrize(
    ("name", "effect"),
    [("echo", "read"), ("giant_backwards", "idempotent"), ("flood", "write"), ("giant", "destructive"), ("fail", None)],
)
def test_annotations_become_effects(tools, name, effect):
    assert tools[name].effect == effect


def test_a_tool_that_has_not_changed_is_the_same_tool_again(raw):
    before = {tool.name: tool for tool in raw.as_tools()}
    assert all(tool is before[tool.name] for tool in raw.as_tools())
    assert not raw.refresh()


@pytest.mark.parametrize(
    ("tool", "why"),
    [
        ({"name": "bad"}, "no inputSchema"),
        ({"name": "bad", "inputSchema": None}, "no inputSchema"),
        ({"name": "bad", "inputSchema": {"type": "array"}}, "must describe an object"),
        (
            {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"type": "no such type"}}}},
            "not a usable",
        ),
        (
            {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "http://x/y"}}}},
            "not a usable",
        ),
        ({"name": "b" * 2_000, "inputSchema": {}}, "more than 1,000 characters"),
        ({"description": "nameless"}, "without a name"),
        ("no tool at all", "without a name"),
        ({"name": "good", "inputSchema": {}}, "a second 'good'"),
    ],
)
def test_a_malformed_tool_is_left_out_with_a_warning_and_the_others_come(tool, why):
    good = {"name": "good", "inputSchema": {}, "outputSchema": ["odd"], "annotations": "odd", "description": 5}
    with client(tools=[good, tool]) as running, pytest.warns(UserWarning, match=why):
        assert [tool.name for tool in running.as_tools()] == ["good"]


def test_pages_are_read_to_the_end():
    with client(pages="two") as running:
        assert [tool.name for tool in running.as_tools()] == ["t0", "t1"]


@pytest.mark.parametrize(("kind", "count"), [("endless", 1_000), ("loop", 3)])
def test_pages_that_never_end_are_given_up_with_a_warning(kind, count):
    with client(pages=kind) as running, pytest.warns(UserWarning, match="its list"):
        assert len(running.as_tools()) == count


def test_a_list_that_is_none_is_an_error():
    with client(pages="none") as running, pytest.raises(MCPConnectionError, match="has no list of tools"):
        running.as_tools()


# -- calls


def test_a_call_gives_the_text(raw, tools):
    assert raw.call_tool("echo", {"text": "häßlich 🎉"}) == "häßlich 🎉"
    assert answered(tools, "echo", {"text": "hi"}).text == "hi"


def test_the_structured_value_comes_through_even_if_it_differs_from_the_output_schema(raw):
    assert raw.call_tool("structured") == {"n": 5}


def test_images_sound_and_resources_come_through_as_parts(raw, tools):
    value = raw.call_tool("mixed")
    assert value[0] == "look:"
    assert [part["type"] for part in value[1:4]] == ["image", "audio", "resource"]
    assert value[4] == "[resource: b, file:///b.txt, another]"
    result = answered(tools, "mixed")
    assert [part["type"] for part in result.parts] == ["image", "audio", "resource"]


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "mcp"])
def test_a_model_reads_the_text_of_an_embedded_resource(tools, name):
    assert "inside" in str(FORMATS[name].results([answered(tools, "mixed")]))


def test_content_of_unknown_types_is_put_in_words(raw):
    assert raw.call_tool("strange").count("not known") == 3


def test_a_tool_that_fails_is_a_failed_answer_with_its_text(raw, tools):
    with pytest.raises(ToolExecutionError, match="the disk is full") as caught:
        raw.call_tool("fail")
    assert not isinstance(caught.value, MCPConnectionError)
    assert answered(tools, "fail").text == "Tool 'fail' failed: the disk is full"


def test_an_error_of_the_protocol_is_a_failed_answer_and_the_connection_goes_on(raw, tools):
    before = raw.call_tool("pid")
    assert answered(tools, "refuse").text == "Tool 'refuse' failed: no such thing (MCP error -32602)"
    with pytest.raises(ToolExecutionError, match="Unknown tool: nothing"):
        raw.call_tool("nothing")
    assert raw.call_tool("pid") == before


def test_arguments_are_checked_against_the_schema_before_they_are_sent(tools):
    assert answered(tools, "echo", {"text": 5}).kind == "invalid_arguments"


def test_without_validation_the_server_decides():
    with MCPClient({"mcpServers": {"raw": server()}}, validate=False) as running:
        assert answered(Toolset([running]), "fail", {"text": 5}).kind == "failed"


@pytest.mark.parametrize("bad", [{"text": "\ud800"}, {"text": float("nan")}, {"text": {1}}])
def test_arguments_that_json_cannot_carry_are_refused_and_the_connection_goes_on(raw, bad):
    with pytest.raises(ToolArgumentError, match=r"arguments\.text"):
        raw.call_tool("echo", bad)
    assert raw.ping()


def test_progress_reaches_events(tools):
    events = []
    answered(tools, "steps", on_event=events.append)
    told = [(e.progress, e.total, e.message) for e in events if type(e).__name__ == "ToolProgress"]
    assert sorted(told) == [(1.0, 2.0, "step 1"), (2.0, 2.0, "step 2")]


def test_progress_is_not_asked_for_when_nobody_listens(raw):
    assert raw.call_tool("steps") == "token None"


def test_a_call_that_hangs_ends_at_its_deadline_and_the_server_is_told(raw, tools):
    assert answered(tools, "hang", limits=Limits(deadline=0.2)).kind == "timed_out"
    with pytest.raises(ToolTimeoutError, match=r"0\.2 seconds"):
        raw.call_tool("hang", timeout=0.2)
    assert len(json.loads(raw.call_tool("cancelled"))) >= 2


@pytest.mark.anyio
async def test_a_cancelled_caller_cancels_the_call_on_the_server(raw):
    before = len(json.loads(await raw.acall_tool("cancelled")))
    task = asyncio.create_task(raw.acall_tool("hang"))
    while not await raw.acall_tool("echo", {"text": "sent after"}):
        pass
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    while len(json.loads(await raw.acall_tool("cancelled"))) == before:
        pass


# -- who calls


def test_it_works_from_several_loops_and_threads_at_once(raw, tools):
    found = []

    def in_a_loop(number):
        calls = [ToolCall(str(i), "echo", {"text": f"{number}.{i}"}) for i in range(10)]
        found.extend(result.text for result in asyncio.run(acall_tools(calls, tools)))

    def without_one(number):
        found.extend(raw.call_tool("echo", {"text": f"{number}.{i}"}) for i in range(10))

    threads = [threading.Thread(target=target, args=(n,)) for n, target in enumerate([in_a_loop, without_one] * 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(f"{n}.{i}" for n in range(6) for i in range(10))


@pytest.mark.anyio
async def test_on_a_loop_it_is_entered_called_and_left_with_await():
    async with MCPClient({"mcpServers": {"raw": server()}}, connect=False) as running:
        assert await running.acall_tool("echo", {"text": "hi"}) == "hi"
        assert await running.aping()
    assert not await running.aping()
    with pytest.raises(MCPConnectionError, match="is closed"):
        await running.acall_tool("echo")


# -- names and filters


def test_a_named_server_is_a_namespace_and_filters_are_globs_on_it():
    with MCP.stdio("fs", sys.executable, [SERVER], allow=["fs.e[cn]*", "fs.pid"], deny=["*.env", "*.endless"]) as fs:
        assert [tool.name for tool in fs.as_tools()] == ["fs.echo", "fs.pid"]
        assert fs.call_tool("fs.echo", {"text": "hi"}) == "hi"
        for name in ("fs.fail", "fs.env"):
            with pytest.raises(ToolDeniedError, match="not among the tools that are allowed"):
                fs.call_tool(name)
        with pytest.raises(ToolNotFoundError, match=r"There are: fs\.\*"):
            fs.call_tool("echo")


@pytest.mark.parametrize(
    "make",
    [
        lambda: MCP.stdio("fs", sys.executable, [SERVER]),
        lambda: MCP.http("web", "http://127.0.0.1:9/mcp"),
    ],
)
def test_a_named_server_wants_to_hear_which_tools_to_take(make):
    with pytest.raises(ValueError, match=r"allow=\['\*'\]"):
        make()


def test_a_filter_that_takes_nothing_is_told():
    with (
        MCP.stdio("fs", sys.executable, [SERVER], allow="read_*") as fs,
        pytest.warns(UserWarning, match=r"'read_\*' takes none of the tools"),
    ):
        assert fs.as_tools() == []


def test_several_servers_put_their_names_before_the_tools():
    with MCPClient({"mcpServers": {"a": server(), "b": server(pages="two"), "c": {"disabled": True}}}) as both:
        names = [tool.name for tool in both.as_tools()]
        assert names[0] == "a.echo"
        assert names[-2:] == ["b.t0", "b.t1"]
        assert both.call_tool("a.echo", {"text": "hi"}) == "hi"


# -- configuration


def test_a_configuration_may_be_a_file_and_take_values_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("MCP_TEST_KEY", "a-key-of-mine")
    entry = {**server(), "env": {"KEY": "${MCP_TEST_KEY}", "OTHER": "${MCP_NOT_SET:-else}"}, "cwd": str(tmp_path)}
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"raw": entry}}), encoding="utf-8")
    with MCPClient(path) as running:
        seen = json.loads(running.call_tool("env"))
        shown = answered(Toolset([running]), "env").text
    assert (seen["env"]["KEY"], seen["env"]["OTHER"], seen["cwd"]) == ("a-key-of-mine", "else", str(tmp_path))
    assert "a-key-of-mine" not in shown


def test_variables_of_ours_are_not_passed_on(raw, monkeypatch):
    assert "PYTEST_CURRENT_TEST" in os.environ
    assert "PYTEST_CURRENT_TEST" not in json.loads(raw.call_tool("env"))["env"]


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({}, "mcpServers"),
        ({"mcpServers": {}}, "mcpServers"),
        ({"mcpServers": {"a": 5}}, "a command or a url"),
        ({"mcpServers": {"a": {}}}, "a command or a url"),
        ({"mcpServers": {"a": {"command": "x", "url": "http://x"}}}, "a command or a url"),
        ({"mcpServers": {"a": {"command": ["x", "y"]}}}, "one program"),
        ({"mcpServers": {"a": {"command": "x", "args": "y z"}}}, "list of texts"),
        ({"mcpServers": {"a": {"command": "x", "env": {"A": 1}}}}, "mapping of texts"),
        ({"mcpServers": {"a": {"url": "ftp://x"}}}, "an address such as"),
        ({"mcpServers": {"a": {"url": "http://me:secret@x/"}}}, "user name"),
        (
            {"mcpServers": {"a": {"url": "http://x.example/", "headers": {"Authorization": "Bearer abcdef"}}}},
            "plain http",
        ),
        ({"mcpServers": {"a": {"url": "http://x/", "type": "sse"}}}, "HTTP\\+SSE"),
        ({"mcpServers": {"a": {"command": "${MCP_NOT_SET}"}}}, "MCP_NOT_SET"),
        ({"mcpServers": {"a": {"command": "x", "disabled": True}}}, "disabled"),
    ],
)
def test_a_configuration_that_is_none_is_a_value_error_that_says_why(config, why):
    with pytest.raises(ValueError, match=why) as caught:
        MCPClient(config)
    assert "secret" not in str(caught.value)


def test_a_file_that_holds_no_configuration_is_told_by_its_name(tmp_path):
    (tmp_path / "mcp.json").write_text("{not json", encoding="utf-8")
    with pytest.raises(ValueError, match=r"mcp\.json is not JSON"):
        MCPClient(tmp_path / "mcp.json")


def test_credentials_are_in_no_text(raw):
    hidden = MCP.http(
        "web",
        "https://web.example/mcp",
        headers={"X-Api-Key": "k-12345", "A": Secret("s-6789")},
        allow="*",
        connect=False,
    )
    places = [server.connection._place for server in hidden._servers]
    assert not {"k-12345", "s-6789"} & set(f"{hidden!r} {places!r}".replace("'", " ").split())


# -- life and death


def test_a_server_that_cannot_be_started_is_told_at_construction():
    with pytest.raises(MCPConnectionError, match="could not be started: No such file or directory: no-such-command"):
        MCPClient({"mcpServers": {"raw": {"command": "no-such-command"}}})


def test_a_server_that_ends_at_once_is_told_with_its_last_words():
    with pytest.raises(MCPConnectionError, match=r"(?s)exit code 1.*no key") as caught:
        client(dies="no key")
    assert "usage: give me a key" in str(caught.value)  # which it printed where messages belong


def test_one_server_that_fails_ends_the_others_too(tmp_path):
    pids = tmp_path / "pids"
    with pytest.raises(MCPConnectionError, match="'bad'"):
        MCPClient({"mcpServers": {"good": server(pids=str(pids)), "bad": server(dies="no")}})
    assert not pids.exists() or are_gone(pids)


def test_a_server_that_ends_over_the_new_protocol_is_spoken_to_in_the_old_one():
    with client(dies_of_news=True) as running:
        assert running.call_tool("echo", {"text": "hi"}) == "hi"


def test_a_server_that_dies_is_started_again_for_the_next_call(raw):
    before = raw.call_tool("pid")
    with pytest.raises(MCPConnectionError, match="may or may not have done"):
        raw.call_tool("die")
    assert not raw.ping()
    assert raw.call_tool("pid") != before
    assert raw.ping()


def test_a_server_that_was_killed_while_idle_costs_no_call(raw):
    before = raw.call_tool("pid")
    os.kill(int(before), 9)
    while raw.ping():
        pass
    assert raw.call_tool("pid") != before


def test_a_call_that_only_reads_is_sent_again_when_the_server_dies_of_it(raw, tmp_path):
    assert raw.as_tools()
    assert raw.call_tool("die_once", {"text": str(tmp_path / "mark")}) == "the second time"


def lives(pid):
    try:
        os.kill(int(pid), 0)
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


def are_gone(pids):
    """Whether processes end: one that was killed may take a moment to be seen no more."""
    over = time.monotonic() + 10
    while any(map(lives, pids.read_text(encoding="utf-8").split())) and time.monotonic() < over:
        pass
    return time.monotonic() < over


@pytest.mark.parametrize("stubborn", [False, True])
def test_closing_ends_the_server_and_everything_it_started(tmp_path, stubborn):
    pids = tmp_path / "pids"
    with client(pids=str(pids), stubborn=stubborn):
        assert all(map(lives, pids.read_text().split()))
    assert are_gone(pids)


def test_a_client_that_nobody_holds_ends_its_server(tmp_path):
    pids = tmp_path / "pids"
    held = client(pids=str(pids))
    tools = held.as_tools()
    del held
    gc.collect()
    assert tools[0].call({"text": "still here"}) == "still here"
    del tools
    gc.collect()
    assert are_gone(pids)
