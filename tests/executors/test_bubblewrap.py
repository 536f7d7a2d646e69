import subprocess

import pytest
import walled
import walled_kinds

from toolcrib import BubblewrapExecutor, ToolCall, Toolset, WallError, WallLimits, call_tools


def bubblewrap(**options):
    try:
        return BubblewrapExecutor(**options)
    except WallError as error:
        pytest.skip(str(error))


def ran(wall, *command):
    return subprocess.run(wall.command(command), capture_output=True, text=True, timeout=20, check=False)  # noqa: S603  # ours


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
