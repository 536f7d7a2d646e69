"""A Toolset served over MCP on the standard streams of a real process: what is on the wire, and how it ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

KIT = """
    import asyncio, ctypes, os, subprocess, sys, time

    print("loading")
    os.write(1, b"loading from below\\n")

    def noisy() -> str:
        "Print in every way there is."
        print("from print", flush=True)
        print("left in the buffer")
        os.write(1, b"from os.write\\n")
        os.system("echo from a shell")
        subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
        ctypes.CDLL(None).puts(b"from C, and left in its buffer")
        return "quiet"

    def asks() -> str:
        "Read standard input, where there is nothing."
        return repr(sys.stdin.read() + subprocess.run(["cat"], capture_output=True, text=True).stdout)

    async def waits() -> str:
        "Wait."
        with open("begun", "w"):
            pass
        try:
            await asyncio.sleep(60)
        finally:
            with open("ended", "w"):
                pass

    def blocks() -> str:
        "Block."
        with open("begun", "w"):
            pass
        time.sleep(60)

    def add(a: int, b: int = 1) -> int:
        "Add."
        return a + b
"""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.fixture
def kit(tmp_path):
    (tmp_path / "kit.py").write_text(textwrap.dedent(KIT), encoding="utf-8")
    return tmp_path


class Served:
    """A server as a process, spoken to line by line."""

    def __init__(self, folder, *words):
        words = words or ("-m", "toolcrib.serve.mcp", "kit.py")
        self.process = subprocess.Popen(
            [sys.executable, *words],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def tell(self, *messages) -> None:
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def hear(self):
        return json.loads(self.process.stdout.readline())

    def begin(self):
        self.tell(INITIALIZE, INITIALIZED)
        return self.hear()["result"]

    def ask(self, number, name, **arguments) -> None:
        self.tell(
            {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        )

    def end(self):
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out.decode(), err.decode()


@pytest.fixture
def served(kit):
    made = []

    def start(*words):
        made.append(Served(kit, *words))
        return made[-1]

    yield start
    for server in made:
        server.process.kill()
        for pipe in (server.process.stdin, server.process.stdout, server.process.stderr):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        server.process.wait(20)


def wait_for(path) -> None:
    end = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < end, f"{path.name} did not come"
        time.sleep(0.02)


def test_what_tools_print_never_reaches_the_wire(served):
    server = served(*COMMAND)
    assert server.begin()["capabilities"]["tools"] == {"listChanged": True}
    server.ask(1, "noisy")
    assert server.hear()["result"]["content"] == [{"type": "text", "text": "quiet"}]
    status, out, err = server.end()
    assert (status, out) == (0, "")
    for words in (
        "loading",
        "loading from below",
        "from print",
        "left in the buffer",
        "from os.write",
        "from a shell",
        "from a child",
        "from C, and left in its buffer",
    ):
        assert words in err.splitlines()


def test_tools_find_standard_input_empty(served):
    server = served()
    server.begin()
    server.ask(1, "asks")
    assert server.hear()["result"]["content"][0]["text"] == "''"


NO_MESSAGES = [
    (b"not json", -32700, "one JSON-RPC message"),
    (b'{"jsonrpc": "2.0"}', -32700, "one JSON-RPC message"),
    (b'"\xff\xfe"', -32700, "UTF-8"),
    (b"[" * 100_000, -32700, "one JSON-RPC message"),
    (b"x" * 5_000_000, -32600, "at most 4,001,000 bytes"),
]


def test_a_line_that_is_no_message_is_refused_and_the_next_one_read(served):
    server = served()
    server.begin()
    for line, code, said in NO_MESSAGES:
        server.tell(b"", line)
        error = server.hear()
        assert (error["id"], error["error"]["code"]) == (None, code)
        assert said in error["error"]["message"]
    server.ask(2, "add", a=1)
    answer = server.hear()
    assert (answer["id"], answer["result"]["content"][0]["text"]) == (2, "2")


def test_it_ends_when_the_client_hangs_up_and_cancels_what_runs(served, kit):
    server = served()
    server.begin()
    server.ask(1, "waits")
    wait_for(kit / "begun")
    status, _, err = server.end()
    assert (status, (kit / "ended").exists()) == (0, True)
    assert "Traceback" not in err


def test_a_sync_tool_that_still_runs_does_not_keep_the_process(served, kit):
    server = served()
    server.begin()
    server.ask(1, "blocks")
    wait_for(kit / "begun")
    assert server.end()[0] == 0


COMMAND = ("-m", "toolcrib", "serve", "kit.py", "--mcp", "stdio")


@pytest.mark.parametrize(
    ("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["interrupted", "terminated"]
)
def test_a_signal_ends_it_in_good_order_while_the_client_is_silent(served, kit, sent, status):
    server = served(*COMMAND)
    server.begin()
    server.ask(1, "waits")
    wait_for(kit / "begun")
    server.process.send_signal(sent)
    assert server.process.wait(20) == status
    assert (kit / "ended").exists()
    assert b"Traceback" not in server.process.stderr.read()


def test_it_ends_when_nobody_reads_its_answers(served):
    server = served()
    server.begin()
    server.process.stdout.close()
    server.ask(1, "add", a=1)
    assert server.process.wait(20) == 0
    assert b"Traceback" not in server.process.stderr.read()


def test_a_client_that_dies_leaves_nothing_running(kit):
    client = f"""
import subprocess, sys, os, time
server = subprocess.Popen([{sys.executable!r}, "-m", "toolcrib", "serve", "kit.py", "--mcp", "stdio"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(server.pid, flush=True)
server.stdin.write({json.dumps(INITIALIZE)!r}.encode() + b"\\n"); server.stdin.flush()
server.stdout.readline()
os.kill(os.getpid(), 9)
"""
    died = subprocess.run(
        [sys.executable, "-c", client], cwd=kit, capture_output=True, text=True, timeout=60, check=False
    )
    pid, end = int(died.stdout), time.monotonic() + 20
    while _is_running(pid):
        assert time.monotonic() < end, "the server outlived its client"
        time.sleep(0.05)


def _is_running(pid) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:  # noqa: PTH123
        return ") Z " not in stat.read()


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_sdk_s_client_lists_and_calls(kit, mode):
    words = ["-m", "toolcrib.serve.mcp", "kit.py"]  # without the command line
    place = StdioServerParameters(command=sys.executable, args=words, cwd=kit)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123, ASYNC230  # it is no file
        async with Client(stdio_client(place, errlog=nowhere), mode=mode) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names == ["noisy", "asks", "waits", "blocks", "add"]
            assert (await client.call_tool("add", {"a": 2, "b": 3})).content[0].text == "5"


def test_the_module_says_how_it_is_run(served):
    status, out, err = served("-m", "toolcrib.serve.mcp").end()
    assert (status, out, err) == (1, "", "usage: python -m toolcrib.serve.mcp TARGET...\n")


def test_the_module_says_what_is_wrong_with_a_target_without_a_traceback(served):
    status, out, err = served("-m", "toolcrib.serve.mcp", "nothing.py").end()
    assert (status, out) == (1, "")
    assert err == "toolcrib: there is no file nothing.py\n"
