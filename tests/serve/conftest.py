from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from toolcrib.serve._listen import _after, _bound
from toolcrib.serve.gateway import gateway_app


@pytest.fixture
def serve_app() -> Iterator[Any]:
    """Serve an ASGI application on a real socket of this machine and return its URL."""
    running: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start(app: Any) -> str:
        bound = _bound("127.0.0.1", 0)
        port = bound.getsockname()[1]
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        if (close := getattr(app.state, "close", None)) is not None:
            server.shutdown = _after(close, server.shutdown)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        running.append((server, thread))
        return f"http://127.0.0.1:{port}"

    yield start
    for server, thread in running:
        server.should_exit = True
        thread.join(10)


@pytest.fixture
def serve(serve_app: Any) -> Any:
    """Serve tools as a gateway and return its URL."""
    return lambda tools, **options: serve_app(gateway_app(tools, **options))
