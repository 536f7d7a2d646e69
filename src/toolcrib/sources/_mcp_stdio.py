"""An MCP server as a process of ours: its pipes as the SDK's streams, with bounds, and an end for all it started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Self

from toolcrib.limits import MAX_MESSAGE_BYTES
from toolcrib.sources._mcp_line import Line

if TYPE_CHECKING:
    from types import TracebackType

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
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    assert stdin is not None and stdout is not None and stderr is not None  # noqa: S101, PT018  # asked for with PIPE
    logging = asyncio.create_task(_read_all(stderr, line.log))
    try:
        yield _Heard(stdout, line), _Said(stdin)
    finally:
        await _shielded(_end(process, stdin, stdout))
        line.exit_code = process.returncode
        await asyncio.wait([logging], timeout=_LAST_WORDS_SECONDS)
        logging.cancel()
        # a descendant that left the group may hold the pipes open for ever
        getattr(getattr(process, "_transport", None), "close", lambda: None)()


_LAST_WORDS_SECONDS = 0.2


async def _shielded(coroutine: Coroutine[Any, Any, None]) -> None:
    import anyio

    with anyio.CancelScope(shield=True):
        await coroutine


async def _read_all(pipe: asyncio.StreamReader, take: Callable[[bytes], None] = lambda _: None) -> None:
    while data := await pipe.read(_CHUNK):
        take(data)


_CHUNK = 65_536


# -- what it says


class _Heard:
    """What a server says, as the stream a session reads; the end of it is the end of the line."""

    def __init__(self, stdout: asyncio.StreamReader, line: Line) -> None:
        self._messages = _messages(stdout, line)
        self._line = line

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await anext(self._messages)
        except StopAsyncIteration:
            self._line.over.set()  # before the session learns of it
            raise

    async def receive(self) -> SessionMessage | Exception:
        return await anext(self)

    async def aclose(self) -> None:
        await self._messages.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


async def _messages(stdout: asyncio.StreamReader, line: Line) -> AsyncGenerator[SessionMessage]:
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


class _Said:
    """What a session writes; a server that does not read holds up requests, but no cancellation."""

    def __init__(self, stdin: asyncio.StreamWriter) -> None:
        self._stdin = stdin

    async def send(self, item: SessionMessage, /) -> None:
        message = item.message
        self._stdin.write(message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
        if hasattr(message, "id"):
            with contextlib.suppress(OSError):  # it no longer reads; that it has ended shows on its stdout
                await self._stdin.drain()

    async def aclose(self) -> None:
        """Leave the pipe to the end of the process."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


# -- its end


async def _end(process: Process, stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader) -> None:
    """Ask politely, then less so; what the server started ends with it."""
    stdin.close()
    draining = asyncio.create_task(_read_all(stdout))  # or a server that still writes could not end
    for name, patience in _FAREWELL:
        if name is not None:
            _signal(process, name)
        if await _has_ended(process, patience):
            break
    _signal(process, "SIGKILL")
    draining.cancel()


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
