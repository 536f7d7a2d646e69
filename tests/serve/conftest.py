from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from toolcrib.serve._listen import _bound
from toolcrib.serve.gateway import gateway_app


@pytest.fixture
def serve() -> Iterator[Any]:
    """Serve tools over a real server on loopback and return its URL."""
    running: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start(tools: Any, **options: Any) -> str:
        bound = _bound("127.0.0.1", 0)
        port = bound.getsockname()[1]
        server = uvicorn.Server(uvicorn.Config(gateway_app(tools, **options), log_level="warning", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        running.append((server, thread))
        return f"http://127.0.0.1:{port}"

    yield start
    for server, thread in running:
        server.should_exit = True
        thread.join(10)
