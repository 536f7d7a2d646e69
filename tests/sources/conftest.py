from __future__ import annotations

import pytest
from echo_server import EchoServer
from raw_server import RawServer


@pytest.fixture
def server():
    """A server on loopback that answers each request with the next of the bytes it is given, or as a function does."""
    with RawServer() as running:
        yield running


@pytest.fixture(scope="module")
def running_echo():
    with EchoServer() as running:
        yield running


@pytest.fixture
def echo(running_echo):
    """An application on loopback that answers with what it understood of each request."""
    running_echo.asked.clear()
    running_echo.answers.clear()
    return running_echo
