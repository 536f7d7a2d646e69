"""OpenAPI documents on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from starlette.responses import Response

from toolcrib import TargetError, ToolExecutionError
from toolcrib.sources._openapi_target import is_document
from toolcrib.targets import resolve

DOCUMENT = {
    "openapi": "3.0.0",
    "security": [{"my key": []}],
    "components": {"securitySchemes": {"my key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
    "paths": {"/pets/{id}": {"get": {"operationId": "getPet", "summary": "Get a pet."}}},
}


@pytest.mark.parametrize(
    ("target", "is_one"),
    [
        ("openapi+https://api.example", True),
        ("openapi+http://127.0.0.1:8000/docs", True),
        ("https://api.example/openapi.json", True),
        ("https://api.example/openapi.yaml?v=1", True),
        ("https://api.example/openapi.json@https://other.example/v1", True),
        ("https://api.example/mcp", False),
        ("https://api.example/tools.json/x", False),
        ("mcp+https://api.example/x.json", False),
        ("api.json", True),
        ("api.json@http://localhost:1", True),
        ("pretty.json", True),
        ("swagger.json", True),
        ("api.yaml", True),
        ("api.yml", True),
        ("none.yaml", True),
        ("mcp.json", False),
        ("none.json", False),
        ("notes.yaml", False),
        ("tools.py", False),
        ("package.module", False),
        ("package.module:attribute", False),
    ],
)
def test_a_target_is_a_document_by_its_name_and_what_it_holds(tmp_path, monkeypatch, target, is_one):
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "api.json": json.dumps(DOCUMENT),
        "pretty.json": json.dumps({"info": {}, "openapi": "3.0.0"}, indent=2),
        "swagger.json": '{"swagger": "2.0"}',
        "api.yaml": "# mine\nopenapi: 3.0.0\n",
        "api.yml": "'openapi': 3.0.0\n",
        "mcp.json": '{"mcpServers": {"a": {"command": "openapi"}}}',
        "notes.yaml": "title: about openapi: the format\n",
        "tools.py": "openapi: str = ''\n",
    }.items():
        (tmp_path / name).write_text(text)
    assert is_document(target) is is_one


def toolcrib(*words, **environment):
    return subprocess.run(
        [sys.executable, "-m", "toolcrib", *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )


@pytest.fixture
def target(echo, tmp_path):
    path = tmp_path / "api.json"
    path.write_text(json.dumps(DOCUMENT))
    return f"{path}@{echo.url}/v1"


def test_the_command_line_lists_and_calls_the_operations_of_a_file(echo, target):
    assert "getPet\tid: str\tGet a pet." in toolcrib("list", target).stdout
    done = toolcrib("call", target, "getPet", "id=7", TOOLCRIB_AUTH_MY_KEY="k-secret-key")
    assert done.returncode == 0
    assert json.loads(done.stdout)["path"] == "/v1/pets/7"
    assert "k-secret-key" not in done.stdout
    assert echo.asked[-1]["headers"]["x-key"] == "k-secret-key"


def test_credentials_come_from_the_environment_when_they_are_needed(echo, target, monkeypatch):
    tool = resolve(target)["getPet"]
    with pytest.raises(
        ToolExecutionError, match=r"'my key' \(an API key in the header X-Key\).* set TOOLCRIB_AUTH_MY_KEY in its env"
    ):
        tool.call({"id": "7"})
    monkeypatch.setenv("TOOLCRIB_AUTH", "another-key")
    tool.call({"id": "7"})
    assert echo.asked[-1]["headers"]["x-key"] == "another-key"


def test_a_url_is_read_and_its_servers_are_beside_it(echo):
    echo.answers["/docs"] = Response(json.dumps({**DOCUMENT, "security": []}).encode())
    tools = resolve(f"openapi+{echo.url}/docs")
    assert tools["getPet"].call({"id": "1"})["path"] == "/pets/1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"swagger": "2.0"}', "is Swagger 2.0: convert it to OpenAPI 3"),
        ('{"openapi": "3.0.0"}', "holds no tools"),
        ('{"openapi": ', "cannot be read"),
    ],
)
def test_a_document_without_tools_is_a_target_without_tools(tmp_path, text, said):
    path = tmp_path / "api.json"
    path.write_text(text)
    with pytest.raises(TargetError, match=said):
        resolve(str(path))
    with pytest.raises(TargetError, match="does not exist"):
        resolve(str(tmp_path / "none.yaml"))
    with pytest.raises(TargetError, match="is no address"):
        resolve("openapi+http://:80/x")
