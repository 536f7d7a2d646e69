"""MCPClient against the reference servers, as their makers publish them."""

from __future__ import annotations

import base64
import shutil
import subprocess

import pytest
from mcp_peers import node_modules, venv

from toolcrib import MCP, ToolCall, ToolExecutionError, Toolset, call_tools


def node_server(name, *args, **options):
    entry = node_modules() / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js"
    return MCP.stdio(name, "node", [str(entry), *map(str, args)], allow=["*"], **options)


def python_server(name, *args, **options):
    return MCP.stdio(name, str(venv() / f"mcp-server-{name}"), list(map(str, args)), allow=["*"], **options)


def test_server_everything():
    events = []
    with node_server("everything", on_sample=lambda _: "words of ours", on_elicit=lambda _: {}) as client:
        tools = Toolset([client])
        assert len(tools) >= 13
        assert client.call_tool("everything.echo", {"message": "hi"}) == "Echo: hi"
        image = call_tools([ToolCall("1", "everything.get-tiny-image", {})], tools)[0]
        assert base64.b64decode(image.parts[0]["data"]).startswith(b"\x89PNG")
        arguments = {"duration": 0.2, "steps": 2}
        call = ToolCall("2", "everything.trigger-long-running-operation", arguments)
        assert call_tools([call], tools, on_event=events.append)[0].ok
        assert "ToolProgress" in {type(event).__name__ for event in events}
        sampled = client.call_tool("everything.trigger-sampling-request", {"prompt": "say", "maxTokens": 10})
        assert "words of ours" in sampled
        structured = client.call_tool("everything.get-structured-content", {"location": "Chicago"})
        assert set(structured) == {"temperature", "conditions", "humidity"}


def test_server_filesystem(tmp_path):
    with node_server("filesystem", tmp_path) as client:
        tools = Toolset([client])
        assert tools["filesystem.read_text_file"].effect == "read"
        assert tools["filesystem.write_file"].effect == "destructive"
        path = str(tmp_path / "a.txt")
        client.call_tool("filesystem.write_file", {"path": path, "content": "häßlich"})
        assert client.call_tool("filesystem.read_text_file", {"path": path}) == {"content": "häßlich"}
        with pytest.raises(ToolExecutionError, match="denied"):
            client.call_tool("filesystem.read_text_file", {"path": "/etc/passwd"})


def test_server_memory(tmp_path):
    with node_server("memory", env={"MEMORY_FILE_PATH": str(tmp_path / "memory.json")}) as client:
        entity = {"name": "crib", "entityType": "place", "observations": ["has tools"]}
        tools = Toolset([client])
        assert call_tools([ToolCall("1", "memory.create_entities", {"entities": [entity]})], tools)[0].ok
        assert client.call_tool("memory.read_graph")["entities"] == [entity]


def test_server_git(tmp_path):
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed")
    subprocess.run([git, "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "new.txt").touch()
    with python_server("git", "--repository", tmp_path) as client:
        answer = call_tools([ToolCall("1", "git.git_status", {"repo_path": str(tmp_path)})], Toolset([client]))[0]
        assert "new.txt" in answer.text


def test_server_time():
    with python_server("time", "--local-timezone", "UTC") as client:
        now = call_tools([ToolCall("1", "time.get_current_time", {"timezone": "Europe/Berlin"})], Toolset([client]))[0]
        assert "Europe/Berlin" in now.text
        with pytest.raises(ToolExecutionError):
            client.call_tool("time.get_current_time", {"timezone": "Nowhere"})
