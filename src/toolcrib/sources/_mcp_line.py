"""What is known of the line to one MCP server while a session is held over it."""

from __future__ import annotations

import asyncio

from toolcrib.limits import MAX_LOG_TAIL_BYTES

__all__ = ["Line"]


class Line:
    """Made anew for each session; the transport writes what it sees, the connection reads it."""

    def __init__(self) -> None:
        self.over = asyncio.Event()  # the server says nothing any more
        self.forgotten = False  # the server has said that it does not know the session
        self.exit_code: int | None = None
        self.refusal: int | None = None  # the HTTP status of the last answer that was none
        self._tail = bytearray()

    def log(self, data: bytes) -> None:
        """Keep the end of what a server wrote where no message belongs."""
        self._tail += data[-MAX_LOG_TAIL_BYTES:]
        del self._tail[:-MAX_LOG_TAIL_BYTES]

    @property
    def last_words(self) -> str:
        """What was kept of it."""
        return self._tail.decode("utf-8", "replace").strip()
