"""The standard streams as a protocol's wire: lines of JSON in, lines of JSON out, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

__all__ = ["Incoming", "Outgoing", "Wire", "claimed", "streams"]

_CHUNK = 65536
_MOST_WAITING = 64  # lines read ahead of whoever answers them


class Wire(NamedTuple):
    """The file descriptors that lead to the peer.

    Args:
        reads: Where its messages come from.
        writes: Where the answers go.
    """

    reads: int
    writes: int


@functools.cache
def claimed() -> Wire:
    """Take the process's standard input and output for a protocol, for as long as the process lives.

    For everything else, tools, C libraries and child processes included, standard input is empty from here on and
    standard output is standard error. That is not undone when serving ends, since what a C library printed may
    stand in its buffer until the process ends.

    Raises:
        OSError: One of them is closed.
    """
    wire = Wire(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # standard error is closed
        os.dup2(nothing, 1)
    os.close(nothing)
    return wire


@contextlib.asynccontextmanager
async def streams(wire: Wire, most_bytes: int) -> AsyncGenerator[tuple[Incoming, Outgoing]]:
    """Give the two streams that `mcp.server.lowlevel.Server.run` takes.

    Reading and writing block, so each has a thread of its own. Both are daemons: a peer that neither writes nor
    hangs up does not hold up the end of the process.

    Args:
        wire: The peer.
        most_bytes: How long one line may be; a longer one is refused.
    """
    outgoing = Outgoing(wire.writes)
    incoming = Incoming(wire.reads, outgoing, most_bytes)
    outgoing.on_broken = incoming.end
    try:
        yield incoming, outgoing
    finally:
        await outgoing.aclose()


class Incoming:
    """The messages of the peer, as an async iterator that ends when it hangs up."""

    def __init__(self, descriptor: int, outgoing: Outgoing, most_bytes: int) -> None:
        self._outgoing = outgoing
        self._most_bytes = most_bytes
        self._lines = asyncio.Queue[bytes | None]()
        self._room = threading.Semaphore(_MOST_WAITING)
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(descriptor,), name="toolcrib stdin", daemon=True).start()

    def _read(self, descriptor: int) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and so has whoever listened
            for line in _lines(descriptor, self._most_bytes):
                self._room.acquire()
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
            self._loop.call_soon_threadsafe(self.end)

    def end(self) -> None:
        """Let the iteration end after what was received."""
        self._lines.put_nowait(None)

    async def receive(self) -> SessionMessage:
        """Return the next message; what is none is answered as JSON-RPC says, and passed over.

        Raises:
            EndOfStream: There is none.
        """
        from anyio import EndOfStream
        from mcp.shared.message import SessionMessage
        from mcp.types import jsonrpc_message_adapter

        while (line := await self._lines.get()) is not None:
            self._room.release()
            if len(line) > self._most_bytes:
                await self._outgoing.refuse(_INVALID_REQUEST, f"a message has at most {self._most_bytes:,} bytes")
            elif line.strip():
                try:
                    return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
                except ValueError:
                    await self._outgoing.refuse(_PARSE_ERROR, "a line is one JSON-RPC message, in UTF-8")
        self.end()  # for whoever asks again
        raise EndOfStream

    async def aclose(self) -> None:
        """Do nothing: the thread ends with the peer, or with the process."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        from anyio import EndOfStream

        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        await self.aclose()


_PARSE_ERROR, _INVALID_REQUEST = -32700, -32600


def _lines(descriptor: int, most_bytes: int) -> Iterator[bytes]:
    """Yield the lines of a file; of one that is too long, only as much as shows that it is."""
    rest = bytearray()
    while chunk := _chunk(descriptor):
        *ended, begun = chunk.split(b"\n")
        for end in ended:
            yield bytes(rest + end)
            rest = bytearray()
        rest += begun[: most_bytes + 1 - len(rest)] if len(rest) <= most_bytes else b""
    if rest:
        yield bytes(rest)


def _chunk(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK)
    except OSError:  # the terminal or the connection is gone
        return b""


class Outgoing:
    """Where messages to the peer go; one at a time, each as a whole."""

    def __init__(self, descriptor: int) -> None:
        self.on_broken: Callable[[], None] = lambda: None
        self._loop = asyncio.get_running_loop()
        self._wanted = SimpleQueue[tuple[bytes, asyncio.Future[None]] | None]()
        self._is_open = True
        threading.Thread(target=self._write, args=(descriptor,), name="toolcrib stdout", daemon=True).start()

    def _write(self, descriptor: int) -> None:
        with contextlib.suppress(RuntimeError):  # as above
            while (wanted := self._wanted.get()) is not None:
                data, written = wanted
                try:
                    while data:
                        data = data[os.write(descriptor, data) :]
                except OSError as error:
                    self._loop.call_soon_threadsafe(self._broken, written, error)
                else:
                    self._loop.call_soon_threadsafe(_settle, written)

    def _broken(self, written: asyncio.Future[None], error: OSError) -> None:
        _settle(written, error)
        self._is_open = False
        self.on_broken()

    async def send(self, item: SessionMessage) -> None:
        """Write a message, and return once it is written.

        Raises:
            BrokenResourceError: The peer is gone.
        """
        await self._send(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    async def refuse(self, code: int, message: str) -> None:
        """Answer what is no message."""
        from anyio import BrokenResourceError
        from mcp.types import ErrorData, JSONRPCError

        refusal = JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=code, message=message))
        with contextlib.suppress(BrokenResourceError):
            await self._send(refusal.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    async def _send(self, data: bytes) -> None:
        from anyio import BrokenResourceError

        if not self._is_open:
            raise BrokenResourceError
        written = self._loop.create_future()
        self._wanted.put((data, written))
        try:
            await asyncio.shield(written)
        except OSError as error:
            raise BrokenResourceError from error

    async def aclose(self) -> None:
        """Write no more."""
        self._is_open = False
        self._wanted.put(None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        await self.aclose()


def _settle(written: asyncio.Future[None], error: OSError | None = None) -> None:
    if written.done():
        return
    if error is None:
        written.set_result(None)
    else:
        written.set_exception(error)
