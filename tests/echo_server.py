"""A real application on loopback that answers with what it understood of each request, or as a test says."""

from __future__ import annotations

import socket
import threading
from typing import Any, Self
from urllib.parse import parse_qsl, unquote

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]


class EchoServer:
    """Runs until the `with` ends; `answers` maps a path to the Response given there."""

    def __init__(self) -> None:
        self.answers: dict[str, Response] = {}
        self.asked: list[dict[str, Any]] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        app = Starlette(routes=[Route("/{rest:path}", self._answer, methods=METHODS)])
        config = uvicorn.Config(app, log_level="warning", lifespan="off", access_log=False)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()

    async def _answer(self, request: Request) -> Response:
        told = {
            "method": request.method,
            "path": request.scope["raw_path"].decode(),
            "segments": [unquote(part) for part in request.scope["raw_path"].decode().split("/")[1:]],
            "query": request.scope["query_string"].decode(),
            "pairs": parse_qsl(request.scope["query_string"].decode(), keep_blank_values=True),
            "headers": dict(request.headers),
            "cookies": request.cookies,
            **await _body(request),
        }
        self.asked.append(told)
        return self.answers.get(request.url.path) or JSONResponse(told)


async def _body(request: Request) -> dict[str, Any]:
    kind = request.headers.get("content-type", "").partition(";")[0]
    if kind.endswith("json"):
        return {"json": await request.json()}
    if kind == "application/x-www-form-urlencoded":
        return {"form": parse_qsl((await request.body()).decode(), keep_blank_values=True)}
    if kind == "multipart/form-data":
        return {"parts": _parts(await request.body(), request.headers["content-type"].partition("boundary=")[2])}
    return {"body": (await request.body()).decode("latin-1")}


def _parts(body: bytes, boundary: str) -> list[dict[str, Any]]:
    """The parts of a multipart body, read without the library that starlette would need."""
    parts = []
    for piece in body.split(b"--" + boundary.encode())[1:-1]:
        head, _, data = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        parts.append({"headers": headers, "data": data.removesuffix(b"\r\n").decode("latin-1")})
    return parts
