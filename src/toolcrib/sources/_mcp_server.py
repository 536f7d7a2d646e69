"""One server of an MCP client: its connection, its list, its calls. Everything async here runs on the portal's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from toolcrib.errors import MCPConnectionError, ToolExecutionError, ToolTimeoutError
from toolcrib.limits import CATALOGUE_SECONDS
from toolcrib.sources._annotations import effect_of
from toolcrib.sources._mcp_connection import Connection, Handlers
from toolcrib.sources._mcp_list import Listing, listed
from toolcrib.sources._mcp_places import Place, Remote
from toolcrib.tools import Tool
from toolcrib.types import ToolContext

__all__ = ["Server"]


class Server:
    """A server by its name here.

    Args:
        name: Its name.
        prefix: What comes before the names of its tools.
        place: Where it is.
        handlers: What answers its own requests.
    """

    def __init__(self, name: str, prefix: str, place: Place, handlers: Handlers) -> None:
        self.name = name
        self.prefix = prefix
        self.connection = Connection(name, place, handlers)
        #: The tools made so far, each with the description it was made of.
        self.made: dict[str, tuple[dict[str, Any], Tool]] = {}
        self._is_remote = isinstance(place, Remote)
        self._raw: dict[str, dict[str, Any]] = {}

    async def listed(self) -> Listing:
        """Return its tools as it describes them now.

        Raises:
            MCPConnectionError: It cannot be reached, or gives no list.
        """
        from mcp import MCPError
        from mcp_types import METHOD_NOT_FOUND

        try:
            async with asyncio.timeout(CATALOGUE_SECONDS):
                listing = await listed(self._ask)
        except MCPError as error:
            if error.error.code == METHOD_NOT_FOUND:  # a server of other things than tools
                return Listing({}, [])
            raise MCPConnectionError(
                f"MCP server '{self.name}' does not list its tools: {error.error.message}"
            ) from error
        except TimeoutError:
            late = f"did not list its tools within {CATALOGUE_SECONDS:g} seconds"
            raise MCPConnectionError(f"MCP server '{self.name}' {late}") from None
        except MCPConnectionError:
            raise
        except ToolExecutionError as error:
            raise MCPConnectionError(f"MCP server '{self.name}': {error}") from error
        self._raw = dict(listing.tools)
        return self._without_bad_headers(listing)

    async def _ask(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        return await self.connection.request("tools/list", params, replay=True)

    def _without_bad_headers(self, listing: Listing) -> Listing:
        """Leave out tools that want arguments as HTTP headers in a way that the protocol forbids."""
        from mcp.shared.inbound import find_invalid_x_mcp_header

        if self._is_remote and self.connection.is_modern:
            for name, raw in list(listing.tools.items()):
                if (reason := find_invalid_x_mcp_header(raw.get("inputSchema"))) is not None:
                    del listing.tools[name]
                    listing.problems.append(f"{self.prefix + name!r:.100} (x-mcp-header: {reason})")
        return listing

    async def call(
        self, name: str, arguments: dict[str, Any], context: ToolContext[Any] | None, seconds: float | None
    ) -> dict[str, Any]:
        """Return the raw answer to a call.

        Args:
            name: The tool's name on the server.
            arguments: What to send.
            context: Hears of progress, if somebody listens.
            seconds: When to give up; None for never.

        Raises:
            ToolExecutionError: The server refused it.
            ToolTimeoutError: The time is over; the server is told.
            MCPConnectionError: The server cannot be reached, or was lost.
        """
        from mcp import MCPError

        try:
            async with asyncio.timeout(seconds):
                return await self._called(name, arguments, context)
        except TimeoutError:
            raise ToolTimeoutError(f"no answer within {seconds:g} seconds") from None
        except MCPError as error:
            raise ToolExecutionError(f"{error.error.message} (MCP error {error.error.code})") from error

    async def _called(self, name: str, arguments: dict[str, Any], context: ToolContext[Any] | None) -> dict[str, Any]:
        from mcp import MCPError
        from mcp_types import HEADER_MISMATCH

        async def send() -> dict[str, Any]:
            return await self.connection.request(
                "tools/call",
                {"name": name, "arguments": arguments},
                replay=self._may_be_repeated(name),
                on_progress=_progress_of(context),
                headers=self._headers(name, arguments) if self._is_remote else None,
            )

        try:
            return await send()
        except MCPError as error:
            if error.error.code != HEADER_MISMATCH:
                raise
        await self.listed()  # the server has another idea of the tool's headers than we
        return await send()

    def _may_be_repeated(self, name: str) -> bool:
        return effect_of(self._raw.get(name, {}).get("annotations")) in ("read", "idempotent")

    def _headers(self, name: str, arguments: Mapping[str, Any]) -> Callable[[bool], dict[str, str]]:
        def headers(is_modern: bool) -> dict[str, str]:  # noqa: FBT001  # asked for by the connection
            from mcp.shared.inbound import mcp_param_headers, x_mcp_header_map

            schema = self._raw.get(name, {}).get("inputSchema") if is_modern else None
            return mcp_param_headers(x_mcp_header_map(schema), arguments) if isinstance(schema, dict) else {}

        return headers


def _progress_of(context: ToolContext[Any] | None) -> Any:
    if context is None or context.on_progress is None:
        return None

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        context.progress(progress, total, message)

    return tell
