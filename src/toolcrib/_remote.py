"""MCP servers and gateways as a command line names them: which one a URL is, its token, and tools while it is away."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from toolcrib._http import without_login
from toolcrib.errors import ExternalToolError, MCPConnectionError, MissingExtraError, TargetError, warn
from toolcrib.protocols import ToolProvider
from toolcrib.sources._mcp_places import Places, Remote, read_config
from toolcrib.sources.gateway import ExternalToolProvider, JsonHttpExternalToolClient
from toolcrib.sources.mcp import MCPClient
from toolcrib.tools import Tool

__all__ = [
    "GATEWAY",
    "MCP",
    "RemoteTools",
    "check_token",
    "gateway_at",
    "is_url",
    "mcp_server_at",
    "mcp_servers_of_file",
    "whatever_is_at",
]

GATEWAY, MCP = "gateway+", "mcp+"
_MCP_PATHS = ("/mcp", "/sse")
_PROBE_SECONDS = 10.0
_TOKEN = "TOOLCRIB_TOKEN"  # noqa: S105  # the name of a variable


class RemoteTools:
    """The tools of a server or gateway: those it listed last, with a warning, while it cannot be asked.

    One of several that a proxy gathers may be away for a while; the others must go on, and their changes be seen.

    Args:
        place: What it is called in warnings.
        source: Makes the provider that is to be asked, given whom to tell when its tools have changed.
    """

    def __init__(self, place: str, source: Callable[[Callable[[], None]], ToolProvider]) -> None:
        #: Called, in a worker thread, when the server says that its tools have changed.
        self.on_change: Callable[[], Any] = lambda: None
        self._place = place
        self._listed: list[Tool] | None = None
        self._source = source(self._changed)

    def _changed(self) -> None:
        self.on_change()

    def as_tools(self) -> list[Tool]:
        """Return the tools as they are listed now, or were when they could be listed last.

        Raises:
            MCPConnectionError: They never could.
            ExternalToolError: The same, of a gateway.
        """
        try:
            self._listed = list(self._source.as_tools())
        except (MCPConnectionError, ExternalToolError) as error:
            if self._listed is None:
                raise
            warn(f"{self._place} cannot be asked for its tools, and those it had stay: {error}")
        return self._listed


# -- where they are


def is_url(target: str) -> bool:
    """Whether a target is an address of the web."""
    return target.startswith(("http://", "https://"))


def gateway_at(target: str) -> list[Any]:
    """Return the tools of a gateway, with or without its mark before the URL."""
    url = target.removeprefix(GATEWAY)
    return [RemoteTools(without_login(url), lambda _: ExternalToolProvider(_gateway(url)))]


def _gateway(url: str, **options: Any) -> JsonHttpExternalToolClient:
    try:
        return JsonHttpExternalToolClient(url, api_key=_token_of(url), **options)
    except ValueError as error:
        raise TargetError(f"{without_login(url)}: {error}") from None


def mcp_server_at(target: str) -> list[Any]:
    """Return the tools of an MCP server, with or without its mark before the URL.

    Raises:
        TargetError: It cannot be reached.
    """
    url = target.removeprefix(MCP)
    token = _token_of(url)
    try:
        place = Remote(url, {"Authorization": f"Bearer {token}"} if token else {})
        return [_connected(Places({urlsplit(url).netloc: place}))]
    except (MCPConnectionError, ValueError) as error:
        raise TargetError(f"{without_login(url)}: {error}") from None


def mcp_servers_of_file(target: str) -> list[Any]:
    """Return the tools of each server that a file lists as `mcpServers`.

    Raises:
        TargetError: There is no such file, it lists none, or one of them cannot be reached.
    """
    if not Path(target).exists():
        raise TargetError(f"there is no file {target}")
    try:
        places = read_config(target)
        each = [Places({name: place}, places.are_prefixes) for name, place in places.by_name.items()]
        with ThreadPoolExecutor(len(each)) as pool:
            return list(pool.map(_connected, each))
    except (MCPConnectionError, ValueError, OSError) as error:
        raise TargetError(f"{target}: {error}") from None


def _connected(places: Places) -> RemoteTools:
    [name] = places.by_name
    config: Any = places
    return RemoteTools(f"MCP server '{name}'", lambda changed: MCPClient(config, on_change=changed))


def whatever_is_at(target: str) -> list[Any]:
    """Tell by the path, or else by asking, what is behind a URL; a gateway is asked first, by one plain GET.

    Raises:
        TargetError: It is neither, or cannot be reached.
    """
    if urlsplit(target).path.rstrip("/").endswith(_MCP_PATHS):
        return mcp_server_at(target)
    try:
        _gateway(target, timeout=_PROBE_SECONDS).list_tools()
    except ExternalToolError as error:
        if error.status is None:
            raise TargetError(f"{without_login(target)}: ExternalToolError: {error}") from None
        return _or_mcp(target, error)
    return gateway_at(target)


def _or_mcp(target: str, refusal: ExternalToolError) -> list[Any]:
    try:
        return mcp_server_at(target)
    except (TargetError, MissingExtraError) as error:
        place = without_login(target)
        raise TargetError(
            f"{place} is no tool gateway ({refusal}), and no MCP server ({error}); "
            f"if you know which it is, write {GATEWAY}{place} or {MCP}{place}"
        ) from None


# -- tokens


def check_token(urls: Iterable[str]) -> None:
    """Refuse to send one token to several hosts.

    Args:
        urls: Those of every target that the token of the environment would be sent to.

    Raises:
        TargetError: There is a token, and more than one host without a token of its own.
    """
    hosts = {_host(url): None for url in urls if not os.environ.get(_variable(url))}
    if len(hosts) > 1 and os.environ.get(_TOKEN):
        names = " and ".join(f"{_variable(f'https://{host}')} for {host}" for host in hosts)
        raise TargetError(
            f"{_TOKEN} is not sent to more than one host: unset it, and set, as far as they want a token, {names}"
        )


def _token_of(url: str) -> str | None:
    return os.environ.get(_variable(url)) or os.environ.get(_TOKEN)


def _variable(url: str) -> str:
    return f"{_TOKEN}_{re.sub(r'[^A-Za-z0-9]', '_', _host(url)).upper()}"


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2].lower()
