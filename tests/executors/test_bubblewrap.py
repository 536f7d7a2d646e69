import json
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import mcp_raw_server
import pytest
import walled
import walled_kinds

from toolcrib import MCP, BubblewrapExecutor, ToolCall, Toolset, WallError, WallLimits, call_tools


def bubblewrap(**options):
    try:
        return BubblewrapExecutor(**options)
    except WallError as error:
        pytest.skip(str(error))


def ran(wall, *command):
    return subprocess.run(wall.command(command), capture_output=True, text=True, timeout=20, check=False)


@pytest.mark.parametrize(
    ("func", "arguments", "value"),
    [
        (walled.add, {"a": 2, "b": 3}, 5),
        (walled_kinds.aadd, {"a": 2}, 2),
        (walled_kinds.weather, {"place": {"city": "Oslo"}}, {"city": "Oslo", "degrees": 14.0}),
    ],
)
def test_a_function_runs_in_a_world_of_its_own(func, arguments, value):
    with bubblewrap() as wall:
        tools = Toolset(wall.tools([func]))
        (result,) = call_tools([ToolCall("1", tools.names[0], arguments)], tools)
    assert result.value == value, result.text


def test_a_command_sees_what_is_declared_and_nothing_else(tmp_path):
    seen, written, hidden = tmp_path / "seen", tmp_path / "written", tmp_path / "hidden"
    seen.write_text("fine")
    hidden.write_text("not fine")
    written.mkdir()
    with bubblewrap(read=[seen], write=[written], env={"NAME": "Ada"}) as wall:
        assert ran(wall, "cat", str(seen)).stdout == "fine"
        assert ran(wall, "sh", "-c", 'echo "$NAME $HOME"').stdout == "Ada \n"
        assert ran(wall, "sh", "-c", f"echo x > {written}/made").returncode == 0
        ran(wall, "sh", "-c", f"echo x > {tmp_path}/other")  # into a /tmp of its own
        for refused in (f"cat {hidden}", f"echo x > {seen}", "echo x > /made", "cat /etc/passwd"):
            assert ran(wall, "sh", "-c", refused).returncode != 0
    assert (written / "made").read_text() == "x\n"
    assert seen.read_text() == "fine"
    assert not (tmp_path / "other").exists()


def test_a_command_has_the_bounds_of_the_wall():
    with bubblewrap(limits=WallLimits(open_files=32)) as wall:
        assert ran(wall, "sh", "-c", "ulimit -n").stdout == "32\n"


def processes_with(mark):
    """Return how many processes of the system have a text in their command line."""
    lines = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(place.read_bytes())
        except OSError:  # it has ended
            continue
    return sum(mark.encode() in line for line in lines)


def test_an_mcp_server_behind_the_wall_answers_and_sees_only_what_is_declared(monkeypatch):
    monkeypatch.setenv("API_KEY", "private")
    server, mark = mcp_raw_server.__file__, uuid4().hex
    with bubblewrap(read=[server], env={"NAME": "Ada"}) as wall:
        program, *arguments = wall.command([sys.executable, server, json.dumps({"mark": mark})])
        with MCP.stdio("raw", program, arguments, env={"TOKEN": "ours"}, allow=["raw.echo", "raw.env"]) as client:
            echo, env = call_tools(
                [ToolCall("1", "raw.echo", {"text": "hi"}), ToolCall("2", "raw.env", {})], Toolset([client])
            )
            assert processes_with(mark)
    assert "hi" in echo.text, echo.text
    assert "Ada" in env.text, env.text
    assert "private" not in env.text
    assert "ours" not in env.text
    assert not processes_with(mark)


def test_where_there_is_no_bubblewrap_no_executor_is_built(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(WallError, match="install the package `bubblewrap`"):
        BubblewrapExecutor()


def test_where_bubblewrap_cannot_build_its_wall_no_executor_is_built(monkeypatch, tmp_path):
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'No permissions to create a new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WallError, match="cannot build a wall here: No permissions to create a new namespace"):
        BubblewrapExecutor()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"read": ["/no/such/file"]}, "declared path"),
        ({"write": ["here"]}, "declared path"),
        ({"workers": 0}, "workers"),
    ],
)
def test_what_makes_no_sense_is_refused(options, problem):
    with pytest.raises(ValueError, match=problem):
        BubblewrapExecutor(**options)


def test_an_empty_command_is_refused():
    with bubblewrap() as wall, pytest.raises(ValueError, match="command is a list"):
        wall.command("ls -l")
