from __future__ import annotations

import pytest
from raw_server import RawServer


@pytest.fixture
def server():
    """A server on loopback that answers each request with the next of the bytes it is given, or as a function does."""
    with RawServer() as running:
        yield running
