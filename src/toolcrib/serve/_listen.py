"""An application on a port, until somebody stops it."""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from toolcrib._http import is_loopback
from toolcrib.errors import MissingExtraError
from toolcrib.limits import Limits
from toolcrib.serve._guard import ANY_HOST, LOOPBACK_HOSTS

__all__ = ["check_exposure", "default_hosts", "listen", "most_bytes"]

_EVERYWHERE = ("", "0.0.0.0", "::")  # noqa: S104  # to recognise them
_CLOSING_SECONDS = 5
_HIGHEST_PORT = 65535


def check_exposure(host: str, *, has_token: bool) -> None:
    """Refuse to serve other machines without a token.

    Raises:
        ValueError: The host is not this machine alone, and there is no token.
    """
    if not has_token and not is_loopback(host):
        raise ValueError(
            f"refusing to serve on {host or 'every address'} without a token, since every machine that reaches it "
            "could call these tools: pass token= (on the command line --token or TOOLCRIB_SERVE_TOKEN), or serve on "
            "127.0.0.1 behind a proxy that knows who may call"
        )


def default_hosts(host: str) -> tuple[str, ...]:
    """Return the names a server on this host may be addressed by, if nobody says."""
    return (ANY_HOST,) if host in _EVERYWHERE else (*LOOPBACK_HOSTS, host)


def most_bytes(limits: Limits) -> int:
    """Return how long a request may be: the longest arguments, as UTF-8, and what stands around them."""
    return limits.max_argument_chars * _BYTES_PER_CHARACTER + _AROUND


_BYTES_PER_CHARACTER = 4
_AROUND = 1_000


def listen(
    app: Any,
    host: str,
    port: int,
    on_start: Callable[[str], None] | None,
    *,
    wanted_by: str,
    on_stop: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Serve an ASGI application until SIGINT or SIGTERM.

    Args:
        app: The application.
        host: The address to listen on.
        port: The port; 0 takes a free one.
        on_start: Told the server's URL once it listens.
        wanted_by: What needs it, for the error when the extra is not installed.
        on_stop: Awaited when it stops listening, before it waits for the answers that are still on their way.

    Raises:
        OSError: The address is taken, or none of this machine's.
        ValueError: The port is none.
        MissingExtraError: The `serve` extra is not installed.
    """
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError("serve", wanted_by) from None
    if not 0 <= port <= _HIGHEST_PORT:
        raise ValueError(f"a port is a number from 0 to {_HIGHEST_PORT}, not {port}")
    with _bound(host, port) as bound:
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            proxy_headers=False,
            timeout_graceful_shutdown=_CLOSING_SECONDS,
        )
        if on_start is not None:
            on_start(_url(host, bound.getsockname()[1]))
        server = uvicorn.Server(config)
        if on_stop is not None:
            server.shutdown = _after(on_stop, server.shutdown)
        server.run(sockets=[bound])


def _after(first: Callable[[], Awaitable[None]], then: Callable[..., Awaitable[None]]) -> Callable[..., Any]:
    async def both(*args: Any, **kwargs: Any) -> None:
        await first()
        await then(*args, **kwargs)

    return both


def _bound(host: str, port: int) -> socket.socket:
    found: Iterable[Any] = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, _, _, address = next(iter(found))
    # Its protocol is named, since asyncio turns off the delay of small packets only where it is.
    bound = socket.socket(family, kind, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(_BACKLOG)
    except BaseException:
        bound.close()
        raise
    return bound


_BACKLOG = 2048


def _url(host: str, port: int) -> str:
    shown = "127.0.0.1" if host in _EVERYWHERE else host
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"
