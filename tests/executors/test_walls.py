"""Attempts to get out of each wall that claims to hold, and what is left afterwards."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import escapes
import pytest

import toolcrib
from toolcrib import (
    BubblewrapExecutor,
    Limits,
    ProcessExecutor,
    ScriptLimits,
    ScriptTool,
    Tool,
    ToolCall,
    Toolset,
    WallError,
    WallLimits,
    call_tools,
)

ALL = {**escapes.HOSTILE, **escapes.BROKEN}
LIMITS = WallLimits(memory_bytes=200_000_000, processes=20, file_bytes=20_000_000, answer_bytes=1_000_000)
DEADLINE = Limits(deadline=1.0)


def family(pid):
    children = []
    with contextlib.suppress(OSError):  # it may be gone by now
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += [int(child) for child in (task / "children").read_text().split()]
    return [one for child in children for one in (child, *family(child))]


def names(pids):
    told = {}
    for pid in pids:
        try:
            told[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return {pid: name for pid, name in told.items() if name and "monty" not in name}


def left(before, fine=0):
    """What is there beside what was there before, once it had time to go; so many are fine."""
    end = time.monotonic() + 5
    while len(now := set(names(family(os.getpid()))) - set(before)) > fine and time.monotonic() < end:
        time.sleep(0.02)
    return names(now)


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outside")
    secret = folder / "secret"
    secret.write_text("a deep secret")
    os.environ["TOOLCRIB_SECRET"] = "a deep secret"  # noqa: S105  # nobody's
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        name = f"toolcrib-{os.getpid()}"
        abstract.bind("\0" + name)
        abstract.listen()
        host = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(300)"])
        yield {
            "SECRET": str(secret),
            "OUTSIDE": str(folder / "made"),
            "PACKAGE": str(Path(toolcrib.__file__).parent),
            "PORT": server.getsockname()[1],
            "ABSTRACT": name,
            "HOST": host.pid,
        }
        assert host.poll() is None
        host.kill()
        host.wait()
    del os.environ["TOOLCRIB_SECRET"]
    assert [file.name for file in folder.iterdir()] == ["secret"]
    for place in ("/usr", "/", "/dev"):
        assert not Path(place, "toolcrib-was-here").exists()
    assert not Path(toolcrib.__file__).with_name("was_here.py").exists()


def bubblewrap(**options):
    try:
        return BubblewrapExecutor(**options)
    except WallError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def wall():
    with bubblewrap(limits=LIMITS) as executor:
        yield executor


@pytest.fixture(scope="module")
def processes():
    with ProcessExecutor(limits=LIMITS, workers=1) as executor:
        yield executor


def tried(executor, code, given):
    before = family(os.getpid())  # nameless ones as well: one that has just begun has no name yet
    tools = Toolset(executor.tools([escapes.attempt]))
    call = ToolCall("1", "attempt", {"code": code, "given": given})
    (result,) = call_tools([call], tools, limits=DEADLINE)
    return result, before


def check(result):
    assert result.kind in ("failed", "timed_out", "invalid_arguments"), result.text
    assert "deep secret" not in result.text
    assert "ESCAPED" not in result.text
    assert result.duration < 12


@pytest.mark.parametrize("name", ALL)
def test_nothing_gets_out_of_bubblewrap(name, wall, given):
    result, before = tried(wall, ALL[name], given)
    check(result)
    assert left(before) == {}


@pytest.mark.parametrize("name", escapes.BROKEN)
def test_nothing_that_breaks_in_a_process_reaches_this_one(name, processes, given):
    code = escapes.BROKEN[name].replace("/tmp/toolcrib-flood", given["OUTSIDE"])  # noqa: S108  # what it replaces
    result, before = tried(processes, code, given)
    Path(given["OUTSIDE"]).unlink(missing_ok=True)
    check(result)
    after = tried(processes, "6 * 7", given)[0]
    assert after.value == 42
    assert len(left(before, fine=2)) <= 2  # the next process, and its guard


@pytest.mark.parametrize("name", ALL)
def test_nothing_gets_out_of_a_script(name, given):
    limits = ScriptLimits(seconds=0.5, memory_bytes=50_000_000, printed_chars=1_000)
    script = ScriptTool([Tool(lambda: 1, name="harmless")], limits=limits, check_types=False)
    lines = [f"{key} = {value!r}" for key, value in given.items()]
    # what a script may do without leaving its interpreter is no way out
    code = "\n".join([*lines, ALL[name]])
    (result,) = call_tools([ToolCall("1", "run_script", {"code": code})], Toolset([script]), limits=DEADLINE)
    assert "deep secret" not in result.text
    if name in INSIDE:
        return
    check(result)


#: Harmless inside an interpreter that has no processes: it gives a value, prints, or sleeps no time at all.
INSIDE = {
    "say too much",
    "say too much for JSON",
    "return something circular",
}


def test_there_are_at_least_forty_attempts():
    assert len(ALL) >= 40
