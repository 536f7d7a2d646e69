"""An MCP server as a process of ours: its pipes as the SDK's streams, with bounds, and an end for all it started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import TYPE_CHECKING

from toolcrib.limits import MAX_MESSAGE_BYTES
from toolcrib.sources._mcp_line import Line

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCMessage

__all__ = ["stdio_streams"]


@contextlib.asynccontextmanager
async def stdio_streams(
    command: str,
    args: tuple[str, ...],
    env: Mapping[str, str],
    cwd: str | None,
    line: Line,
) -> AsyncGenerator[TransportStreams]:
    """Start a server, give the streams a session reads and writes, and end it with everything it started.

    Args:
        command: What to run.
        args: Its arguments.
        env: Its variables, beside the few that are safe to pass on.
        cwd: Where it runs.
        line: Told what it writes to stderr, and to stdout beside messages, and when it ends.

    Raises:
        OSError: It cannot be started.
        ValueError: The command or a variable has a NUL in it.
    """
    import anyio
    from mcp.client.stdio import get_default_environment

    process = await asyncio.create_subprocess_exec(
        command,
        *args,
        env={**get_default_environment(), **env},
        cwd=cwd,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        limit=MAX_MESSAGE_BYTES,
        start_new_session=True,  # so that its children can be ended with it
    )
    to_session, from_server = anyio.create_memory_object_stream["SessionMessage | Exception"](0)
    to_server, from_session = anyio.create_memory_object_stream["SessionMessage"](_WAITING_MESSAGES)
    pumps = [
        asyncio.create_task(_listen(process, to_session, line)),
        asyncio.create_task(_speak(process, from_session)),
        asyncio.create_task(_keep_log(process, line)),
    ]
    try:
        yield from_server, to_server
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)
            line.exit_code = process.returncode
            await asyncio.wait(pumps, timeout=_LAST_WORDS_SECONDS)
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            for stream in (to_session, from_server, to_server, from_session):
                stream.close()
            # a descendant that left the group may hold the pipes open for ever
            getattr(getattr(process, "_transport", None), "close", lambda: None)()


_WAITING_MESSAGES = 64  # a cancellation must not have to wait for a server that reads nothing
_LAST_WORDS_SECONDS = 0.2


# -- what it says


async def _listen(
    process: Process,
    session: MemoryObjectSendStream[SessionMessage | Exception],
    line: Line,
) -> None:
    import anyio

    stdout = process.stdout
    assert stdout is not None  # noqa: S101  # asked for with PIPE
    try:
        async with session:
            try:
                async for message in _messages(stdout, line):
                    await session.send(message)
            finally:
                line.over.set()  # before the session learns of it
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass  # the session has left
    while await stdout.read(_CHUNK):  # or a server that still writes could not end
        pass


async def _keep_log(process: Process, line: Line) -> None:
    while process.stderr is not None and (data := await process.stderr.read(_CHUNK)):
        line.log(data)


_CHUNK = 65_536


async def _messages(stdout: asyncio.StreamReader, line: Line) -> AsyncIterator[SessionMessage]:
    """Yield the messages among the lines; a line that is none is kept in the log, one too long is answered for."""
    from mcp.shared.message import SessionMessage

    async for text, is_whole in _lines(stdout):
        message = _message(text) if is_whole else None
        if message is None:
            line.log(text + b"\n")
            problem = "an answer that cannot be read" if is_whole else f"more than {MAX_MESSAGE_BYTES:,} bytes"
            message = _failure(text, f"the server sent {problem}")
        if message is not None:
            yield SessionMessage(message)
        elif not is_whole:
            return  # nobody can tell what it would have answered


def _message(text: bytes) -> JSONRPCMessage | None:
    from mcp_types import jsonrpc_message_adapter

    try:
        return jsonrpc_message_adapter.validate_json(_utf8(text), by_name=False)
    except ValueError:
        return None


def _utf8(text: bytes) -> str | bytes:
    return text if text.isascii() else text.decode("utf-8", "replace")


def _failure(text: bytes, problem: str) -> JSONRPCMessage | None:
    """Return an error as the answer to the request that an unusable line was meant to answer, as far as it shows."""
    from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError

    if b'"jsonrpc"' not in text:
        return None
    found = _ID.search(text[:_MARGIN]) or _ID.search(text[-_MARGIN:])
    error = ErrorData(code=INTERNAL_ERROR, message=problem)
    return None if found is None else JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=error)


_ID = re.compile(rb'"id"\s*:\s*(\d{1,18})\s*[,}]')
_MARGIN = 200


async def _lines(stdout: asyncio.StreamReader) -> AsyncIterator[tuple[bytes, bool]]:
    """Yield lines; of one that is too long only its two ends, and that it is not whole."""
    head, tail, skipped = b"", b"", 0
    while True:
        try:
            text = await stdout.readuntil(b"\n")
        except asyncio.LimitOverrunError as over:
            piece = await stdout.readexactly(over.consumed)
            head, tail = head or piece[:_MARGIN], (tail + piece[-_MARGIN:])[-_MARGIN:]
            skipped += len(piece)
            if skipped <= _MOST_SKIPPED:
                continue
            text = b""
        except asyncio.IncompleteReadError as end:
            text = end.partial
        if head:
            yield head + (tail + text[-_MARGIN:])[-_MARGIN:], False
        elif text.strip():
            yield text, True
        if not text.endswith(b"\n"):
            return
        head, tail, skipped = b"", b"", 0


_MOST_SKIPPED = 5 * MAX_MESSAGE_BYTES  # after which no end of the line is waited for


# -- what it is told


async def _speak(process: Process, messages: MemoryObjectReceiveStream[SessionMessage]) -> None:
    stdin = process.stdin
    assert stdin is not None  # noqa: S101  # asked for with PIPE
    with contextlib.suppress(OSError):  # it no longer reads; that it has ended shows on its stdout
        async with messages:
            async for message in messages:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                stdin.write(text.encode() + b"\n")
                await stdin.drain()


# -- its end


async def _end(process: Process) -> None:
    """Ask politely, then less so; what the server started ends with it."""
    if process.stdin is not None:
        process.stdin.close()
    for name, patience in _FAREWELL:
        if name is not None:
            _signal(process, name)
        if await _has_ended(process, patience):
            break
    _signal(process, "SIGKILL")


_FAREWELL = ((None, 1.5), ("SIGTERM", 1.0), ("SIGKILL", 1.0))  # together less than the portal waits at exit
_GLANCE_SECONDS = 0.01


async def _has_ended(process: Process, patience: float) -> bool:
    # Not process.wait(), which waits for the pipes too, and a child may hold those.
    over = asyncio.get_running_loop().time() + patience
    while process.returncode is None:
        if asyncio.get_running_loop().time() >= over:
            return False
        await asyncio.sleep(_GLANCE_SECONDS)
    return True


def _signal(process: Process, name: str) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, getattr(signal, name))
        elif process.returncode is None:
            process.kill()
