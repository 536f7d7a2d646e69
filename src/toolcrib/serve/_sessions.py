"""The sessions of an MCP server over HTTP, started by its first request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

__all__ = ["Sessions"]


class Sessions:
    """An ASGI endpoint whose sessions are kept by one task of its own.

    The SDK's manager wants to be entered and left in the same task, around all requests. An application
    that is mounted in another is not told when that begins, so it begins with the first request.

    Args:
        server: What answers.
        most_bytes: How long the body of a request may be.
    """

    def __init__(self, server: Server[Any], most_bytes: int) -> None:
        self._server = server
        self._most_bytes = most_bytes
        self._keeper: _Keeper | None = None
        self._is_closed = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        from starlette.responses import PlainTextResponse

        if self._is_closed:
            await PlainTextResponse("this server is stopping", 503)(scope, receive, send)
            return
        loop = asyncio.get_running_loop()
        if self._keeper is None or self._keeper.loop is not loop or self._keeper.task.done():
            self._keeper = _Keeper(loop, self._server, self._most_bytes)
        manager = await asyncio.shield(self._keeper.ready)
        await manager.handle_request(scope, receive, send)

    @asynccontextmanager
    async def lifespan(self, _app: Any) -> AsyncGenerator[None]:
        """End the sessions with the application."""
        self._is_closed = False
        try:
            yield
        finally:
            await self.close()

    async def close(self) -> None:
        """End the sessions, and whatever runs in them."""
        self._is_closed = True
        if self._keeper is not None and self._keeper.loop is asyncio.get_running_loop():
            self._keeper.task.cancel()
            await asyncio.wait([self._keeper.task])


class _Keeper:
    """The task that keeps the sessions of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, server: Server[Any], most_bytes: int) -> None:
        self.loop = loop
        self.ready: asyncio.Future[StreamableHTTPSessionManager] = loop.create_future()
        self.task = loop.create_task(self._keep(server, most_bytes))

    async def _keep(self, server: Server[Any], most_bytes: int) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        manager = StreamableHTTPSessionManager(server, max_request_body_size=most_bytes)
        try:
            async with manager.run():
                self.ready.set_result(manager)
                await self.loop.create_future()  # for ever
        except BaseException as error:
            if not self.ready.done():
                self.ready.set_exception(error)
            raise
