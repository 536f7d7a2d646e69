"""One MCP server, connected when it is needed, by a task of the portal that alone enters and leaves the session.

Everything here runs on the portal's loop. Calls are tasks of their own, so that they keep the caller's context.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from toolcrib.errors import MCPConnectionError
from toolcrib.limits import HANDSHAKE_SECONDS, MAX_INPUT_ROUNDS
from toolcrib.results import clean
from toolcrib.sources._mcp_line import Line
from toolcrib.sources._mcp_places import Place

if TYPE_CHECKING:
    from mcp import Client, MCPError

__all__ = ["Connection", "Handlers"]

_Progress = Callable[[float, float | None, str | None], Awaitable[None]]


class Handlers(NamedTuple):
    """What answers a server that asks something itself, in the SDK's own words; None where nobody does."""

    elicitation: Any = None
    sampling: Any = None
    change: Callable[[], None] | None = None


class _Session:
    """A session that was agreed on, and whether it still is one."""

    def __init__(self, client: Client, line: Line) -> None:
        self.client = client
        self.line = line
        self._loop = asyncio.get_running_loop()  # a forked child has another, and no session

    @property
    def lives(self) -> bool:
        return not self.line.over.is_set() and self._loop is asyncio.get_running_loop()

    def leave(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is gone, and the session with it
            self._loop.call_soon_threadsafe(self.line.over.set)

    @property
    def is_modern(self) -> bool:
        """Whether there is no session on the wire: no ping, and changes only for those who listen."""
        return self.client.session.discover_result is not None


class Connection:
    """One server, by name; a dead one is started again for the next call.

    Args:
        name: What it is called in errors.
        place: Where it is.
        handlers: What answers its own requests.
    """

    def __init__(self, name: str, place: Place, handlers: Handlers) -> None:
        self.name = name
        self._place = place
        self._handlers = handlers
        self._mode = "auto"
        self._line: Line | None = None
        self._session: _Session | None = None
        self._starting: asyncio.Task[_Session] | None = None
        self._owners: set[asyncio.Task[None]] = set()
        self._closed = False

    # -- what it is for

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        replay: bool = False,
        on_progress: _Progress | None = None,
        headers: Callable[[bool], dict[str, str]] | None = None,
    ) -> dict[str, Any]:
        """Return the raw result of a request.

        Args:
            method: The protocol's name of it.
            params: Its parameters.
            replay: Whether it may be sent again when the server is lost before it answers.
            on_progress: Hears of progress.
            headers: Gives the HTTP headers of the request.

        Raises:
            MCPConnectionError: The server cannot be reached, or was lost.
            MCPError: The server answered with an error.
        """
        from mcp import MCPError

        for attempt in range(_MOST_ATTEMPTS):
            session = await self._session_for(method)
            try:
                return await _answered(session.client, method, params, on_progress, headers)
            except MCPError as error:
                refused = session.line.forgotten and not _is_unanswered(error)
                if not refused and not _is_unanswered(error):
                    raise
                if refused or _is_closed(error):
                    session.line.over.set()
                if attempt or not (refused or replay):
                    raise self._lost(method) from error
        raise AssertionError  # the last attempt raises

    async def _session_for(self, method: str) -> _Session:
        """Return the session, and have it told when it is another one, of a server that may have other tools."""
        before = self._session
        session = await self.session()
        # Whoever lists hears of the tools anyway; and a server that dies of its own list would be asked for ever.
        if session is not before is not None and method != "tools/list" and self._handlers.change is not None:
            self._handlers.change()
        return session

    def _lost(self, method: str) -> MCPConnectionError:
        doubt = "; it may or may not have done what was asked" if method == "tools/call" else ""
        return MCPConnectionError(f"MCP server '{self.name}' was lost before it answered{doubt}")

    async def ping(self) -> bool:
        """Whether the server answers; one that has died is not started for it."""
        from mcp import MCPError

        session = self._session
        if session is None or not session.lives:
            return False
        method = "server/discover" if session.is_modern else "ping"
        with contextlib.suppress(MCPError, TimeoutError):
            async with asyncio.timeout(_PING_SECONDS):
                await _raw(session.client, method, {}, None, None)
            return True
        return False

    async def session(self) -> _Session:
        """Return the session, started if there is none.

        Raises:
            MCPConnectionError: It cannot be started, or the client is closed.
        """
        if self._closed:
            raise MCPConnectionError(f"MCP server '{self.name}' is closed")
        if self._session is not None and self._session.lives:
            return self._session
        if self._starting is None or self._starting.get_loop() is not asyncio.get_running_loop():
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(self._started)
        return await asyncio.shield(self._starting)

    def _started(self, task: asyncio.Task[_Session]) -> None:
        self._starting = None
        if not task.cancelled():
            task.exception()  # which nobody may be left to read

    @property
    def is_modern(self) -> bool:
        """Whether the session, if there is one, is of the protocol without sessions on the wire."""
        return self._session is not None and self._session.is_modern

    def abandon(self) -> None:
        """Leave the session without waiting; from any thread, also while garbage is collected."""
        self._closed = True
        if self._session is not None:
            self._session.leave()

    async def close(self) -> None:
        """Leave the session for good, and wait until the server is gone."""
        self._closed = True
        if self._starting is not None:
            self._starting.cancel()
        if self._session is not None:
            self._session.line.over.set()
        if owners := [owner for owner in self._owners if owner.get_loop() is asyncio.get_running_loop()]:
            _, late = await asyncio.wait(owners, timeout=_CLOSING_SECONDS)
            for owner in late:
                owner.cancel()

    # -- the owner

    async def _start(self) -> _Session:
        try:
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                try:
                    return await self._owned(self._mode)
                except _EndedError as error:
                    if self._mode == "legacy" or not error.was_silence:
                        raise
                # A server of the older protocol may end over a first word it does not know.
                return await self._owned("legacy")
        except _EndedError as error:
            raise MCPConnectionError(f"MCP server '{self.name}' {error}") from error.__cause__
        except TimeoutError:
            raise MCPConnectionError(
                f"MCP server '{self.name}' did not agree on a session within {HANDSHAKE_SECONDS:g} seconds"
                f"{_last_words(self._line)}"
            ) from None

    async def _owned(self, mode: str) -> _Session:
        """Return a session whose owner is a task of its own."""
        ready: asyncio.Future[_Session] = asyncio.get_running_loop().create_future()
        owner = asyncio.create_task(self._own(mode, ready))
        self._owners.add(owner)
        owner.add_done_callback(self._owners.discard)
        try:
            session = await asyncio.shield(ready)
        except asyncio.CancelledError:
            owner.cancel()
            raise
        self._mode, self._session = mode, session
        return session

    async def _own(self, mode: str, ready: asyncio.Future[_Session]) -> None:
        line = self._line = Line()
        try:
            async with self._client(line, mode) as client:
                session = _Session(client, line)
                ready.set_result(session)
                async with _listening(session, self._handlers.change):
                    await line.over.wait()
        except BaseException as error:  # noqa: BLE001  # the SDK's groups of errors, too; told to whoever waits
            if not ready.done():
                ready.set_exception(_EndedError.after(error, line))
                ready.exception()  # which nobody may be left to read
        finally:
            line.over.set()

    def _client(self, line: Line, mode: str) -> Client:
        from mcp import Client
        from mcp_types import ToolListChangedNotification

        async def on_message(message: Any) -> None:
            if self._handlers.change is not None and isinstance(message, ToolListChangedNotification):
                self._handlers.change()

        return Client(
            self._place.transport(line),
            mode=mode,
            cache=None,
            message_handler=on_message,
            elicitation_callback=self._handlers.elicitation,
            sampling_callback=self._handlers.sampling,
        )


_MOST_ATTEMPTS = 2
_PING_SECONDS = 10.0
_CLOSING_SECONDS = 10.0


class _EndedError(Exception):
    """A server that ended, or could not begin."""

    @property
    def was_silence(self) -> bool:
        """Whether it began, and ended without an answer."""
        from mcp import MCPError

        return isinstance(self.__cause__, MCPError) and _is_closed(self.__cause__)

    @classmethod
    def after(cls, error: BaseException, line: Line) -> _EndedError:
        """Return what is to be told of it, with its last words."""
        while isinstance(error, BaseExceptionGroup):
            error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
        told = f"could not be connected to: {type(error).__name__}: {error}"
        if isinstance(error, OSError) and error.filename is not None:
            told = f"could not be started: {error.strerror}: {error.filename}"
        elif line.refusal is not None:
            told = f"could not be connected to: it answered with HTTP {line.refusal}"
        elif line.exit_code is not None:
            told = f"ended before a session was agreed on (exit code {line.exit_code})"
        ended = cls(told + _last_words(line))
        ended.__cause__ = error
        return ended


def _last_words(line: Line | None) -> str:
    words = clean(line.last_words) if line is not None else ""
    return f". The last it wrote:\n{words}" if words else ""


@contextlib.asynccontextmanager
async def _listening(session: _Session, on_change: Callable[[], None] | None) -> AsyncGenerator[None]:
    """Hear of changes for as long as the session is held, where the protocol has to be asked for that."""
    tools = session.client.server_capabilities.tools
    if on_change is None or not session.is_modern or tools is None or not tools.list_changed:
        yield
        return
    task = asyncio.create_task(_listen(session.client, on_change))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _listen(client: Client, on_change: Callable[[], None]) -> None:
    """Hear of changes, and open the stream again when it ends; what changed meanwhile, nobody will say."""
    from mcp import MCPError
    from mcp.client.subscriptions import SubscriptionLost
    from mcp_types import METHOD_NOT_FOUND

    pause, clock = _LISTENING_PAUSE_SECONDS, asyncio.get_running_loop()
    for attempt in itertools.count():
        begun = clock.time()
        try:
            async with client.listen(tools_list_changed=True) as events:
                if attempt:
                    on_change()
                async for _ in events:
                    on_change()
        except SubscriptionLost:
            pass
        except MCPError as error:
            if error.error.code == METHOD_NOT_FOUND:
                return
        lasted = clock.time() - begun > _LONGEST_LISTENING_PAUSE_SECONDS
        pause = _LISTENING_PAUSE_SECONDS if lasted else min(2 * pause, _LONGEST_LISTENING_PAUSE_SECONDS)
        await asyncio.sleep(pause)


_LISTENING_PAUSE_SECONDS = 0.5
_LONGEST_LISTENING_PAUSE_SECONDS = 60.0


# -- the wire


async def _raw(
    client: Client,
    method: str,
    params: Mapping[str, Any],
    on_progress: _Progress | None,
    headers: dict[str, str] | None,
) -> dict[str, Any]:
    """Send one request and return its result as it came.

    The SDK's own methods read results into its types: one malformed tool there costs the whole list, and a result
    that differs from its output schema is an error. This is the one place that goes below them.
    """
    session = client.session
    data: dict[str, Any] = {"method": method, "params": dict(params)}
    options: dict[str, Any] = {"headers": dict(headers)} if headers else {}
    if on_progress is not None:
        options["on_progress"] = on_progress
    session._stamp(data, cast("Any", options))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # see above
    return await session._dispatcher.send_raw_request(method, data["params"], cast("Any", options))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # see above


async def _answered(
    client: Client,
    method: str,
    params: Mapping[str, Any],
    on_progress: _Progress | None,
    headers: Callable[[bool], dict[str, str]] | None,
) -> dict[str, Any]:
    """Send a request, and again with what the server wants to know first, until it is answered."""
    from mcp import MCPError
    from mcp_types import INTERNAL_ERROR

    is_modern = client.session.discover_result is not None
    given = headers(is_modern) if headers is not None else None
    asked, kind = params, "complete"
    for waited in range(MAX_INPUT_ROUNDS + 1):
        result = await _raw(client, method, asked, on_progress, given)
        kind = result.get("resultType", "complete") if is_modern else "complete"
        if kind == "complete":
            return result
        if kind != "input_required":
            break
        asked = {**params, **await _inputs(client, result, waited)}
    raise MCPError(INTERNAL_ERROR, f"the server gives no answer but {kind!r:.100}")


async def _inputs(client: Client, result: dict[str, Any], waited: int) -> dict[str, Any]:
    from mcp import MCPError
    from mcp.client.session import ClientRequestContext
    from mcp_types import INTERNAL_ERROR, ErrorData, InputRequiredResult
    from pydantic import ValidationError

    try:
        wanted = InputRequiredResult.model_validate(result, by_name=False)
    except ValidationError:
        raise MCPError(INTERNAL_ERROR, "the server asks for something in a way that cannot be read") from None
    more: dict[str, Any] = {} if wanted.request_state is None else {"requestState": wanted.request_state}
    if not wanted.input_requests:
        await asyncio.sleep(min(0.05 * 2**waited, 0.25))
        return more

    async def answer(key: str, request: Any) -> tuple[str, Any]:
        context = ClientRequestContext(session=client.session, request_id=key, meta=None)
        said = await client.session.dispatch_input_request(context, request)
        if isinstance(said, ErrorData):
            raise MCPError.from_error_data(said)
        return key, said.model_dump(by_alias=True, mode="json", exclude_none=True)

    tasks = [asyncio.create_task(answer(key, request)) for key, request in wanted.input_requests.items()]
    try:
        return {**more, "inputResponses": dict(await asyncio.gather(*tasks))}
    finally:
        for task in tasks:
            task.cancel()


def _is_closed(error: MCPError) -> bool:
    from mcp_types import CONNECTION_CLOSED

    return error.error.code == CONNECTION_CLOSED and error.error.message == "Connection closed"


def _is_unanswered(error: MCPError) -> bool:
    """Whether the SDK says that there will be no answer; a server may send the same code with words of its own."""
    from mcp_types import CONNECTION_CLOSED

    message = error.error.message
    return error.error.code == CONNECTION_CLOSED and message.startswith(("Connection closed", "SSE stream "))
