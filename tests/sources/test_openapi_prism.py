"""Calls that somebody else's server, generated from the document, finds to be what the document says."""

from __future__ import annotations

import fcntl
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
from openapi_documents import CACHE

from toolcrib import OpenAPI

PRISM = CACHE / "prism" / "node_modules" / ".bin" / "prism"
PACKAGE = "@stoplight/prism-cli@5.16.0"

TEXTS = {"type": "array", "items": {"type": "string"}, "minItems": 2}
RG = {"type": "object", "properties": {"R": {"type": "string"}, "G": {"type": "string"}}, "required": ["R", "G"]}
VALUES = {"one": ({"type": "integer"}, 7), "list": (TEXTS, ["u/v", "w&x"]), "object": (RG, {"R": "1", "G": "2"})}

#: Location, style, explode and value, as far as Prism itself can read them.
STYLES = [
    *(("path", style, explode, "one") for style in ("simple", "label", "matrix") for explode in (True, False)),
    *(("query", "form", explode, kind) for explode in (True, False) for kind in ("one", "list")),
    ("query", "pipeDelimited", False, "list"),
    *(("header", "simple", False, kind) for kind in ("one", "list", "object")),
    ("header", "simple", True, "object"),
    ("cookie", "form", False, "one"),
]
SCHEMES = {
    "header": ({"type": "apiKey", "in": "header", "name": "X-Key"}, "key-of-header"),
    "query": ({"type": "apiKey", "in": "query", "name": "key"}, "key-of-query"),
    "basic": ({"type": "http", "scheme": "basic"}, ("user", "password")),
    "bearer": ({"type": "http", "scheme": "bearer"}, "token-of-bearer"),
}
PET = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "readOnly": True},
        "name": {"type": "string"},
        "age": {"type": "integer"},
    },
    "required": ["name", "age"],
}
BODIES = ["application/json", "application/x-www-form-urlencoded", "multipart/form-data"]


def document() -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """A document with an operation for everything, and arguments for each."""
    paths: dict[str, Any] = {}
    calls: dict[str, dict[str, Any]] = {}

    def add(name: str, method: str, path: str, arguments: dict[str, Any], **told: Any) -> None:
        answer = {"200": {"description": "ok", "content": {"application/json": {"example": {"ok": name}}}}}
        paths[path] = {method: {"operationId": name, "responses": answer, **told}}
        calls[name] = arguments

    for number, (location, style, explode, kind) in enumerate(STYLES):
        schema, value = VALUES[kind]
        parameter = {
            "name": "p",
            "in": location,
            "required": True,
            "style": style,
            "explode": explode,
            "schema": schema,
        }
        path = f"/s{number}/{{p}}" if location == "path" else f"/s{number}"
        add(f"{location} {style} {explode} {kind}", "get", path, {"p": value}, parameters=[parameter])
    for name in SCHEMES:
        add(name, "get", f"/{name}", {}, security=[{name: []}])
    for number, media in enumerate(BODIES):
        body = {"required": True, "content": {media: {"schema": PET}}}
        add(media, "post", f"/b{number}", {"name": "x&y", "age": 3}, requestBody=body)
    schemes = {name: scheme for name, (scheme, _) in SCHEMES.items()}
    return {
        "openapi": "3.0.3",
        "info": {"title": "t", "version": "1"},
        "paths": paths,
        "components": {"securitySchemes": schemes},
    }, calls


@pytest.fixture(scope="module")
def prism(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("npm and node are not installed, which run Prism")
    _install()
    path = tmp_path_factory.mktemp("prism") / "api.json"
    path.write_text(json.dumps(document()[0]))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(PRISM), "mock", "--host", "127.0.0.1", "--port", str(port), "--errors", str(path)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _await(port, running)
        yield f"http://127.0.0.1:{port}"
    finally:
        running.terminate()
        running.wait(10)


def _install() -> None:
    folder = CACHE / "prism"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not PRISM.exists():
            command = [
                "npm",
                "install",
                "--no-save",
                "--no-audit",
                "--no-fund",
                "--silent",
                "--prefix",
                str(folder),
                PACKAGE,
            ]
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
            if done.returncode:
                pytest.skip(f"npm could not install {PACKAGE}: {done.stderr[-200:]}")


def _await(port: int, running: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and running.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            running.poll()
        else:
            return
    pytest.fail("Prism does not listen")


def test_a_server_generated_from_the_document_accepts_every_call(prism):
    told, calls = document()
    source = OpenAPI(told, base_url=prism, auth={name: given for name, (_, given) in SCHEMES.items()})
    tools = {tool.original_name: tool for tool in source.as_tools()}
    assert {name: tools[name].call(arguments) for name, arguments in calls.items()} == {n: {"ok": n} for n in calls}


@pytest.mark.parametrize("name", SCHEMES)
def test_that_server_refuses_calls_without_credentials_which_we_never_send(prism, name):
    told, _ = document()
    del told["paths"][f"/{name}"]["get"]["security"]
    source = OpenAPI(told, base_url=prism, include=[name])
    with pytest.raises(Exception, match="answered HTTP 401"):
        source.as_tools()[0].call({})
