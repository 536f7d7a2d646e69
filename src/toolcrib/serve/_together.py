"""One toolset as an MCP server and as a tool gateway, on one port."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from toolcrib.serve._guard import secret_token
from toolcrib.serve._listen import check_exposure, default_hosts, listen
from toolcrib.serve.gateway import gateway_app
from toolcrib.serve.mcp import mcp_app
from toolcrib.toolset import Toolset
from toolcrib.types import Secret

__all__ = ["serve_together"]

_PATH = "/mcp"


def serve_together(
    tools: Any,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | Secret | None = None,
    hosts: Iterable[str] | None = None,
    on_start: Callable[[str], None] | None = None,
    **options: Any,
) -> None:
    """Serve tools over MCP at `/mcp`, and as plain JSON at `/tools`, until the process is told to stop.

    Args:
        tools: A Toolset, or what one is made of.
        host: The address to listen on; one that other machines reach needs a token.
        port: The port; 0 takes a free one.
        token: What callers must send as `Authorization: Bearer ...`.
        hosts: Names the server may be addressed by; by default those of `host`.
        on_start: Told the server's URL once it listens.
        **options: What gateway_app and mcp_app both take: `origins`, `limits`, `executor`, `on_event`.

    Raises:
        ValueError: Other machines could call the tools without a token, or the port is none.
        OSError: The address is taken, or none of this machine's.
        MissingExtraError: The `mcp` or the `serve` extra is not installed.
    """
    secret = secret_token(token)
    check_exposure(host, has_token=secret is not None)
    toolset = tools if isinstance(tools, Toolset) else Toolset(tools)
    names = default_hosts(host) if hosts is None else tuple(hosts)
    gateway = gateway_app(toolset, token=secret, hosts=names, **options)
    mcp = mcp_app(toolset, path=_PATH, token=secret, hosts=names, **options)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        inner = mcp if scope["path"] in (_PATH, f"{_PATH}/") else gateway
        await inner(scope, receive, send)

    listen(app, host, port, on_start, wanted_by="serve_together", on_stop=mcp.state.close)
