from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from raw_server import RawServer

from toolcrib.serve._listen import _bound


@pytest.fixture
def server():
    """A server on loopback that answers each request with the next of the bytes it is given, or as a function does."""
    with RawServer() as running:
        yield running


@pytest.fixture
def running() -> Iterator[Any]:
    """Serve ASGI applications on loopback; give the address of each."""
    started: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start(app: Any) -> str:
        bound = _bound("127.0.0.1", 0)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        started.append((server, thread))
        return f"http://127.0.0.1:{bound.getsockname()[1]}"

    yield start
    for server, thread in started:
        server.should_exit = True
        thread.join(10)
