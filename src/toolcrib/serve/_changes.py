"""Clients of an MCP server that are told when its tools change, in either era of the protocol."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext
    from mcp.types import SubscriptionsListenRequestParams, SubscriptionsListenResult

    from toolcrib.toolset import Toolset

__all__ = ["Changes", "watching"]

_TELLING_SECONDS = 5.0  # a client that does not read must not keep the others from hearing of it


class Changes:
    """Who hears of changes, on one event loop: clients with a session, and streams that others opened for it."""

    def __init__(self) -> None:
        from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

        self.happened = asyncio.Event()
        self._bus = InMemorySubscriptionBus()
        self._streams = ListenHandler(self._bus)
        self._sessions: dict[int, Connection] = {}

    def join(self, context: ServerRequestContext[Any, Any]) -> None:
        """Tell a client, from here on and for as long as its session lives."""
        connection = _connection_of(context)
        if id(connection) not in self._sessions:
            self._sessions[id(connection)] = connection
            connection.exit_stack.callback(self._sessions.pop, id(connection), None)

    async def listen(
        self, context: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Answer a `subscriptions/listen` request, which lasts until the client leaves or serving ends."""
        return await self._streams(context, params)

    async def tell(self) -> None:
        """Tell everybody, each time something happened; changes in quick succession are told once."""
        from mcp.server.subscriptions import ToolsListChanged

        while True:
            await self.happened.wait()
            self.happened.clear()
            await self._bus.publish(ToolsListChanged())
            await asyncio.gather(*[_told(connection) for connection in tuple(self._sessions.values())])

    def close(self) -> None:
        """End the streams."""
        self._streams.close()


async def _told(connection: Connection) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_TELLING_SECONDS):
            await connection.send_tool_list_changed()


def _connection_of(context: ServerRequestContext[Any, Any]) -> Connection:
    # The SDK has no public way from a request to what outlives it.
    return context.session._connection  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # a test holds that it is there


@contextlib.asynccontextmanager
async def watching(toolset: Toolset) -> AsyncGenerator[Changes]:
    """Tell clients of changes of a toolset meanwhile."""
    changes, loop = Changes(), asyncio.get_running_loop()

    def notice(_: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(changes.happened.set)

    end = toolset.watch(notice)
    telling = asyncio.create_task(changes.tell())
    try:
        yield changes
    finally:
        end()
        changes.close()
        telling.cancel()
        await asyncio.wait([telling])
