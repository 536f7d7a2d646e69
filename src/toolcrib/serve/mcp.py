"""A Toolset as a Model Context Protocol server: the mirror of `sources.mcp`."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import math
import signal
import sys
import threading
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import partial
from importlib.metadata import version as version_of
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from pydantic_core import to_json

from toolcrib import dispatch, targets
from toolcrib._terminal import printable
from toolcrib.errors import MissingExtraError, ToolcribError, ToolNotFoundError
from toolcrib.events import Event, ToolProgress
from toolcrib.formats._mcp_words import call_result, definitions
from toolcrib.limits import DEFAULT_LIMITS, MCP_PAGE_TOOLS, Limits
from toolcrib.results import clean
from toolcrib.serve import _stdio
from toolcrib.serve._changes import Changes, watching
from toolcrib.serve._guard import LOOPBACK_HOSTS, Guard, secret_token
from toolcrib.serve._listen import check_exposure, default_hosts, listen, most_bytes
from toolcrib.serve._sessions import Sessions
from toolcrib.toolset import Toolset
from toolcrib.types import Secret, ToolCall

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server
    from mcp.types import (
        CallToolRequestParams,
        NotificationParams,
        PaginatedRequestParams,
        SubscriptionsListenRequestParams,
        SubscriptionsListenResult,
    )
    from starlette.applications import Starlette

    from toolcrib.protocols import Executor

    _Context: TypeAlias = ServerRequestContext[Changes, Any]

__all__ = ["mcp_app", "mcp_server", "serve_mcp"]

_Transport: TypeAlias = Literal["stdio", "http"]
_LEAST_BYTES = 100_000  # what an endpoint takes in any case: there is more to say than arguments
_MOST_WAITING = 1_000  # reports for a client that is slower than its tool; progress beyond is not told


def mcp_server(
    tools: Any,
    *,
    name: str = "toolcrib",
    version: str | None = None,
    instructions: str | None = None,
    limits: Limits | None = None,
    executor: Executor | None = None,
    on_event: Callable[[Event], None] | None = None,
    page_size: int = MCP_PAGE_TOOLS,
) -> Server[Any]:
    """Return a server of the MCP SDK that serves tools, to be run on a transport of your own.

    Args:
        tools: A Toolset, or what one is made of. When a Toolset is refreshed, clients are told.
        name: What the server is called.
        version: Its version; by default that of toolcrib.
        instructions: How a model should use the tools; by default, what the skills among them say.
        limits: Bounds for the calls, in place of the toolset's own.
        executor: What runs calls of tools that name no executor themselves.
        on_event: Called when a call starts, reports progress and is answered.
        page_size: How many tools are listed in one answer.

    Raises:
        MissingExtraError: The `mcp` extra is not installed.
        ValueError: A page of no tools.
    """
    try:
        from mcp.server.lowlevel import NotificationOptions, Server
        from mcp.types import NotificationParams
    except ImportError:
        raise MissingExtraError("mcp", "mcp_server") from None
    if page_size < 1:
        raise ValueError(f"page_size is a number of tools, not {page_size}")
    served = _Served(_toolset(tools), limits, executor, on_event, page_size)
    # Handlers give plain data: the SDK checks it against the protocol's schemas, and takes it.
    handlers: dict[str, Any] = {"on_list_tools": served.list_tools, "on_call_tool": served.call_tool}
    server = Server[Any](
        name,
        version=version_of("toolcrib") if version is None else version,
        instructions=("\n\n".join(served.toolset.instructions) if instructions is None else instructions) or None,
        lifespan=lambda _: watching(served.toolset),
        get_tool_input_schema=served.input_schema,
        on_subscriptions_listen=served.listen,
        **handlers,
    )
    server.middleware[:] = [_while_traced(step) for step in server.middleware]
    server.add_notification_handler("notifications/initialized", NotificationParams, served.join)
    # The SDK's transports ask for it, without saying that the list may change.
    describe: Any = partial(server.create_initialization_options, NotificationOptions(tools_changed=True))
    server.create_initialization_options = describe
    return server


def _while_traced(step: Any) -> Any:
    """Return the SDK's tracing so that it costs nothing where nobody traces, and any other step as it is."""
    from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider

    if type(step).__name__ != "OpenTelemetryMiddleware":
        return step

    async def traced(context: _Context, call_next: Callable[[_Context], Awaitable[Any]]) -> Any:
        is_traced = not isinstance(get_tracer_provider(), ProxyTracerProvider)
        return await (step(context, call_next) if is_traced else call_next(context))

    return traced


def mcp_app(
    tools: Any,
    *,
    path: str = "/mcp",
    token: str | Secret | None = None,
    hosts: Iterable[str] = LOOPBACK_HOSTS,
    origins: Iterable[str] = (),
    limits: Limits | None = None,
    **options: Any,
) -> Starlette:
    """Return an ASGI application that serves tools over MCP's streamable HTTP, to clients of either era.

    It may be mounted anywhere: what it needs to run is started by the first request, and ends with the
    application's lifespan where that is run, else with the event loop.

    Args:
        tools: A Toolset, or what one is made of. When a Toolset is refreshed, clients are told.
        path: Where in the application the endpoint is.
        token: What clients must send as `Authorization: Bearer ...`; None lets everybody call.
        hosts: Names the server may be addressed by, without port; `*` for any.
        origins: Web origins whose pages may call besides the server's own.
        limits: Bounds for the calls, in place of the toolset's own.
        **options: Any other option of mcp_server.

    Raises:
        MissingExtraError: The `mcp` extra is not installed.
        ValueError: The token is empty.
    """
    secret, toolset = secret_token(token), _toolset(tools)
    server = mcp_server(toolset, limits=limits, **options)
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.cors import CORSMiddleware
    from starlette.routing import Route

    sessions = Sessions(server, _most_bytes(limits or toolset.limits or DEFAULT_LIMITS))
    origins = tuple(origins)
    cors = Middleware(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],
        expose_headers=["mcp-session-id", "mcp-protocol-version", "www-authenticate"],
    )
    guard = Middleware(Guard, token=secret, hosts=tuple(hosts), origins=origins, public=())
    middleware = [cors, guard] if origins else [guard]
    app = Starlette(routes=[Route(path, sessions)], middleware=middleware, lifespan=sessions.lifespan)
    app.state.close = sessions.close
    return app


def serve_mcp(
    tools: Any,
    *,
    transport: _Transport = "stdio",
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | Secret | None = None,
    hosts: Iterable[str] | None = None,
    on_start: Callable[[str], None] | None = None,
    **options: Any,
) -> None:
    """Serve tools over MCP until the client hangs up, or the process is told to stop.

    On the transport `stdio` the process's standard input and output are the protocol's from here on, for as long as
    the process lives: for everything else, tools and child processes included, standard input is empty and
    standard output is standard error.

    Args:
        tools: A Toolset, or what one is made of. When a Toolset is refreshed, clients are told.
        transport: `stdio` for the one client that started this process, `http` for any number of them.
        host: The address to listen on; one that other machines reach needs a token.
        port: The port; 0 takes a free one.
        token: What clients must send as `Authorization: Bearer ...`.
        hosts: Names the server may be addressed by; by default those of `host`.
        on_start: Told the URL of the endpoint once the server listens.
        **options: Any other option of mcp_app for `http`, of mcp_server for `stdio`.

    Raises:
        ValueError: Other machines could call the tools without a token, or there is no such port or transport.
        OSError: The address is taken, or none of this machine's.
        MissingExtraError: The `mcp` extra is not installed.
    """
    if transport not in get_args(_Transport):
        raise ValueError(f"transport must be stdio or http, not {transport!r}")
    if transport == "stdio":
        wire, toolset = _stdio.claimed(), _toolset(tools)
        limits = options.get("limits") or toolset.limits or DEFAULT_LIMITS
        _run_until_told(_on_stdio(mcp_server(toolset, **options), wire, _most_bytes(limits)))
        return
    secret, path = secret_token(token), options.get("path", "/mcp")
    check_exposure(host, has_token=secret is not None)
    app = mcp_app(tools, token=secret, hosts=default_hosts(host) if hosts is None else hosts, **options)

    def tell(url: str) -> None:
        if on_start is not None:
            on_start(url + path)

    listen(app, host, port, tell, wanted_by="serve_mcp", on_stop=app.state.close)


def _toolset(tools: Any) -> Toolset:
    return tools if isinstance(tools, Toolset) else Toolset(tools)


def _most_bytes(limits: Limits) -> int:
    return max(most_bytes(limits), _LEAST_BYTES)


# -- requests


class _Served:
    """The answers to requests, whatever they came over."""

    def __init__(
        self,
        toolset: Toolset,
        limits: Limits | None,
        executor: Executor | None,
        on_event: Callable[[Event], None] | None,
        page_size: int,
    ) -> None:
        self.toolset = toolset
        self._limits = limits or toolset.limits or DEFAULT_LIMITS
        self._executor = executor
        self._on_event = on_event
        self._page_size = page_size
        self._calls, self._number = uuid.uuid4().hex, itertools.count(1)

    async def join(self, context: _Context, _params: NotificationParams | None) -> None:
        context.lifespan_context.join(context)

    async def listen(self, context: _Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        return await context.lifespan_context.listen(context, params)

    async def list_tools(self, _context: _Context, params: PaginatedRequestParams | None) -> dict[str, Any]:
        await self.toolset.prepare()
        pages = self.toolset.cached(("mcp", "pages", self._page_size), lambda: _pages(self.toolset, self._page_size))
        cursor = params.cursor if params is not None else None
        if cursor not in pages:
            raise _invalid(f"no such cursor: {cursor!r:.100}; the tools have changed, list them from the start")
        return pages[cursor]

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        tool = self.toolset.get(definitions(self.toolset).canonical.get(name, ""))
        return None if tool is None else tool.input_schema

    async def call_tool(self, context: _Context, params: CallToolRequestParams) -> dict[str, Any]:
        await self.toolset.prepare()
        name = definitions(self.toolset).canonical.get(params.name)
        if name is None:
            raise _invalid(_not_found(params.name, self.toolset))
        call = ToolCall(f"{self._calls}-{next(self._number)}", name, params.arguments or {})
        reports = _Reports(context, self._on_event)
        try:
            result = await dispatch.acall(
                call, self.toolset, limits=self._limits, executor=self._executor, on_event=reports.hear
            )
            await reports.told()
        finally:
            reports.close()
        return {**_COMPLETE, **call_result(result, any_value=context.protocol_version in _modern())}


class _Reports:
    """What a tool reports on its way, passed on to the client; free for a tool that reports nothing."""

    def __init__(self, context: _Context, on_event: Callable[[Event], None] | None) -> None:
        self._context = context
        self._on_event = on_event
        self._loop = asyncio.get_running_loop()
        self._home = threading.get_ident()
        self._news: asyncio.Queue[ToolProgress | None] | None = None
        self._telling: asyncio.Task[None] | None = None

    def hear(self, event: Event) -> None:
        """Take an event, from any thread."""
        if self._on_event is not None:
            self._on_event(event)
        if not isinstance(event, ToolProgress):
            return
        if threading.get_ident() == self._home:
            self._note(event)
        else:
            self._loop.call_soon_threadsafe(self._note, event)

    def _note(self, event: ToolProgress) -> None:
        if self._news is None:
            self._news = asyncio.Queue()
            self._telling = asyncio.create_task(_tell(self._context, self._news))
        if self._news.qsize() < _MOST_WAITING:
            self._news.put_nowait(event)

    async def told(self) -> None:
        """Wait until the client has been told everything."""
        if self._news is not None and self._telling is not None:
            self._news.put_nowait(None)
            await self._telling

    def close(self) -> None:
        """Tell no more."""
        if self._telling is not None:
            self._telling.cancel()


async def _tell(context: _Context, news: asyncio.Queue[ToolProgress | None]) -> None:
    """Pass reports on; the protocol wants each to be further than the one before."""
    reached = -math.inf
    while (event := await news.get()) is not None:
        if math.isfinite(event.progress) and event.progress > reached:
            reached = event.progress
            total = event.total if event.total is not None and math.isfinite(event.total) else None
            await context.session.report_progress(event.progress, total, event.message)


def _pages(toolset: Toolset, size: int) -> dict[str | None, dict[str, Any]]:
    """Return the answers to `tools/list`, each by its cursor, which is worth nothing once the tools change."""
    listed = definitions(toolset).listed
    digest = hashlib.sha256(to_json(listed)).hexdigest()[:16]
    starts = range(0, len(listed), size) or range(1)
    cursors = [None, *(f"{digest}-{start}" for start in starts[1:])]
    return {
        cursor: {
            **_COMPLETE,
            **_UNCACHED,
            "tools": listed[start : start + size],
            **({"nextCursor": following} if following else {}),
        }
        for cursor, following, start in zip(cursors, [*cursors[1:], None], starts, strict=True)
    }


# What the newer era wants of every result, and of lists; the SDK leaves it out for clients of the older one.
_COMPLETE = {"resultType": "complete"}
_UNCACHED = {"ttlMs": 0, "cacheScope": "private"}


def _not_found(name: str, toolset: Toolset) -> str:
    try:
        return clean(f"Tool {toolset[name].name!r} cannot be called over MCP.")
    except ToolNotFoundError as error:
        return clean(str(error))


def _invalid(message: str) -> Exception:
    from mcp import MCPError
    from mcp.types import INVALID_PARAMS

    return MCPError(INVALID_PARAMS, message)


def _modern() -> Iterable[str]:
    from mcp.types.version import MODERN_PROTOCOL_VERSIONS

    return MODERN_PROTOCOL_VERSIONS


# -- standard streams


async def _on_stdio(server: Server[Any], wire: _stdio.Wire, most_bytes: int) -> None:
    async with _stdio.streams(wire, most_bytes) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _run_until_told(serving: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine; SIGINT and SIGTERM end it in good order, and then do what they would have done."""
    told: list[int] = []
    before = None

    async def run() -> None:
        nonlocal before
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(serving)

        def stop(number: int, _frame: object) -> None:
            told.append(number)
            loop.call_soon_threadsafe(task.cancel)

        if threading.current_thread() is threading.main_thread():
            before = signal.signal(signal.SIGTERM, stop)
        try:
            await task
        except asyncio.CancelledError:
            if not told:
                raise

    try:
        asyncio.run(run())
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
    for number in told:
        signal.raise_signal(number)


def _main(words: list[str]) -> None:
    """Do what `toolcrib serve TARGET... --mcp stdio` does, where the command line is not installed."""
    if not words:
        sys.exit("usage: python -m toolcrib.serve.mcp TARGET...")
    _stdio.claimed()  # first, since loading the targets may print, too
    try:
        tools = targets.resolve_all(words)
    except ToolcribError as error:
        sys.exit(f"toolcrib: {printable(str(error))}")
    serve_mcp(tools)


if __name__ == "__main__":
    _main(sys.argv[1:])
