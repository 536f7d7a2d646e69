"""Where MCP servers are, and how each is reached: a command, a URL, an object of this process."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, cast
from urllib.parse import urlsplit

from toolcrib._http import is_loopback
from toolcrib._secrets import Secret
from toolcrib.errors import MissingExtraError
from toolcrib.limits import HANDSHAKE_SECONDS, MAX_MESSAGE_BYTES
from toolcrib.sources._mcp_line import Line
from toolcrib.sources._mcp_stdio import stdio_streams

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams

__all__ = ["Command", "Local", "Place", "Places", "Remote", "read_config"]

_Transport: TypeAlias = contextlib.AbstractAsyncContextManager["TransportStreams"]
_Text: TypeAlias = str | Secret


class Place(Protocol):
    """A server that can be reached, any number of times."""

    def transport(self, line: Line) -> Any:
        """Return what `mcp.Client` connects to; what is seen of the server is told to the line."""
        ...


@dataclass(frozen=True, slots=True)
class Command:
    """A server that is started as a process, and ended with it.

    Args:
        command: What to run.
        args: Its arguments.
        env: Its variables, beside the few that are safe to pass on.
        cwd: Where it runs.
    """

    command: str
    args: Sequence[str] = ()
    env: Mapping[str, _Text] = field(default_factory=dict[str, _Text], repr=False)
    cwd: str | None = None
    _held: tuple[Secret, ...] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.command, str) or not self.command:  # pyright: ignore[reportUnnecessaryIsInstance]  # often from a file
            raise ValueError(f"command must be the text of one program, not {self.command!r:.100}")
        if isinstance(self.args, str) or not all(isinstance(arg, str) for arg in self.args):  # pyright: ignore[reportUnnecessaryIsInstance]  # often from a configuration
            raise ValueError(f"args must be a list of texts, not {self.args!r:.100}")
        _check_texts("env", self.env)
        object.__setattr__(self, "_held", _credentials(self.env))

    def transport(self, line: Line) -> _Transport:
        """Return the pipes of a new process."""
        env = {name: _revealed(value) for name, value in self.env.items()}
        return stdio_streams(self.command, tuple(self.args), env, self.cwd, line)


@dataclass(frozen=True, slots=True)
class Remote:
    """A server behind a URL, spoken to over streamable HTTP.

    Args:
        url: Its endpoint.
        headers: Sent with every request; they are never shown.
        allow_insecure: Whether credentials may be sent over plain http to another machine.
    """

    url: str
    headers: Mapping[str, _Text] = field(default_factory=dict[str, _Text], repr=False)
    allow_insecure: bool = False
    _held: tuple[Secret, ...] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        address = urlsplit(self.url if isinstance(self.url, str) else "")  # pyright: ignore[reportUnnecessaryIsInstance]  # often from a configuration
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ValueError(f"url must be an address such as https://tools.example/mcp, not {self.url!r:.100}")
        if address.username is not None:
            raise ValueError("url must not have a user name or password in it; send them in headers=")
        _check_texts("headers", self.headers)
        object.__setattr__(self, "_held", _credentials(self.headers))
        is_open = address.scheme == "http" and not is_loopback(address.hostname)
        if is_open and self._held and not self.allow_insecure:
            raise ValueError(
                f"refusing to send credentials over plain http to {address.hostname}: use https, "
                "or pass allow_insecure=True if the network between is your own"
            )

    @contextlib.asynccontextmanager
    async def transport(self, line: Line) -> AsyncGenerator[TransportStreams]:
        """Give the streams of a new session."""
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        async def look(response: httpx2.Response) -> None:
            if response.status_code >= _BAD_REQUEST:
                line.refusal = response.status_code
            if response.status_code == _NOT_FOUND and "mcp-session-id" in response.request.headers:
                line.forgotten = True
            _bound(response)

        headers = {**{name: _revealed(value) for name, value in self.headers.items()}, **_PLAIN}
        async with httpx2.AsyncClient(
            headers=headers,
            timeout=httpx2.Timeout(None, connect=HANDSHAKE_SECONDS),  # each call has a deadline of its own
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=_KEPT_CONNECTIONS),
            trust_env=not is_loopback(urlsplit(self.url).hostname or ""),
            event_hooks={"request": [_hasten], "response": [look]},
        ) as client:
            transport = streamable_http_client(self.url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES)
            async with transport as streams:
                yield streams


_PLAIN = {"Accept-Encoding": "identity"}  # what is not compressed is as large as it looks
_KEPT_CONNECTIONS = 32
_BAD_REQUEST, _NOT_FOUND = 400, 404
_FAREWELL_SECONDS = 2.0


async def _hasten(request: httpx2.Request) -> None:
    """Give a server little time to hear that a session is over; nobody waits for that answer under a deadline."""
    if request.method == "DELETE":
        request.extensions["timeout"] = dict.fromkeys(("connect", "read", "write", "pool"), _FAREWELL_SECONDS)


def _bound(response: httpx2.Response) -> None:
    import httpx2

    if response.headers.get("content-encoding", "identity") != "identity":
        raise httpx2.DecodingError("the server compressed what it was asked to send plain")
    if not response.headers.get("content-type", "").startswith("text/event-stream"):  # whose events are bounded
        response.stream = _bounded_body()(response.stream)


@functools.cache
def _bounded_body() -> Callable[[Any], httpx2.AsyncByteStream]:
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        """A body that ends in an error once it is larger than a message may be."""

        def __init__(self, body: Any) -> None:
            self._body = body

        async def __aiter__(self) -> AsyncGenerator[bytes]:
            left = MAX_MESSAGE_BYTES
            async for piece in self._body:
                left -= len(piece)
                if left < 0:
                    raise httpx2.StreamError(f"more than {MAX_MESSAGE_BYTES:,} bytes")
                yield piece

        async def aclose(self) -> None:
            await self._body.aclose()

    return Bounded


@dataclass(frozen=True, slots=True)
class Local:
    """A server object of this process.

    Args:
        server: An `mcp` server, low-level or not.
    """

    server: Any

    def __post_init__(self) -> None:
        try:
            from mcp.server import MCPServer, Server
        except ImportError:
            raise MissingExtraError("mcp", "MCPClient") from None
        if not isinstance(self.server, (MCPServer, Server)):
            raise TypeError(f"an mcp Server or MCPServer is needed, not {type(self.server).__name__}")

    def transport(self, line: Line) -> Any:
        """Return the server itself, which `mcp.Client` calls without any wire."""
        del line  # it ends with this process
        return self.server


# -- configuration


class Places(NamedTuple):
    """Servers by name.

    Args:
        by_name: Where each is.
        are_prefixes: Whether the names come before those of the tools.
    """

    by_name: Mapping[str, Place]
    are_prefixes: bool = False


def read_config(config: Any) -> Places:
    """Return the servers of an `mcpServers` configuration; several have their names before those of their tools.

    Args:
        config: `{"mcpServers": {name: {"command": ..., "args": [...]} or {"url": ..., "headers": {...}}}}`, the path
            of a JSON file that holds it, the URL of one server, or ready Places.

    Raises:
        ValueError: It is no such configuration.
        OSError: The file cannot be read.
    """
    if isinstance(config, Places):
        return config
    if isinstance(config, str) and config.startswith(("http://", "https://")):
        return Places({urlsplit(config).netloc.rpartition("@")[2]: Remote(config)})
    members = cast("Mapping[str, Any]", config) if isinstance(config, Mapping) else _loaded(Path(config))
    servers = members.get("mcpServers", members.get("servers"))
    if not isinstance(servers, Mapping) or not servers:
        raise ValueError('an MCP configuration is {"mcpServers": {"name": {"command": ...} or {"url": ...}}}')
    named = cast("Mapping[str, Any]", servers)
    places = {str(name): _place(name, entry) for name, entry in named.items() if not _is_disabled(entry)}
    if not places:
        raise ValueError("every server of this MCP configuration is disabled")
    return Places(places, are_prefixes=len(places) > 1)


def _loaded(path: Path) -> Mapping[str, Any]:
    try:
        config: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(config, Mapping):
        raise ValueError(f"{path} must hold a JSON object")  # noqa: TRY004  # as every flaw of a configuration
    return cast("Mapping[str, Any]", config)


def _is_disabled(entry: Any) -> bool:
    return isinstance(entry, Mapping) and cast("Mapping[str, Any]", entry).get("disabled") is True


def _place(name: Any, entry: Any) -> Place:
    where = f"MCP server {name!r:.100}"
    members: Mapping[str, Any] = cast("Mapping[str, Any]", entry) if isinstance(entry, Mapping) else {}
    if ("command" in members) == ("url" in members):
        raise ValueError(f"{where} needs either a command or a url")
    if members.get("type", members.get("transport")) == "sse":
        raise ValueError(f"{where}: HTTP+SSE is not spoken here; give the URL of its streamable HTTP endpoint")
    members = _filled_in(members, where)
    try:
        if "url" in members:
            return Remote(members["url"], members.get("headers") or {})
        return Command(members["command"], members.get("args") or (), members.get("env") or {}, members.get("cwd"))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _filled_in(value: Any, where: str) -> Any:
    """Return the value with the variables of the environment in place of `${NAME}` and `${NAME:-default}`."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: _variable(found, where), value)
    if isinstance(value, Mapping):
        return {key: _filled_in(item, where) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list):
        return [_filled_in(item, where) for item in cast("list[Any]", value)]
    return value


def _variable(found: re.Match[str], where: str) -> str:
    value = os.environ.get(found["name"]) or found["default"]
    if not value and found["default"] is None:
        raise ValueError(f"{where} wants the environment variable {found['name']}, which is not set, or empty")
    return value or ""


_VARIABLE = re.compile(r"\$\{(?:env:)?(?P<name>\w+)(?::-(?P<default>[^}]*))?\}")


# -- what is passed along but never shown


def _check_texts(what: str, texts: Any) -> None:
    if not isinstance(texts, Mapping) or not all(
        isinstance(key, str) and isinstance(value, (str, Secret))
        for key, value in cast("Mapping[Any, Any]", texts).items()
    ):
        raise ValueError(f"{what} must be a mapping of texts")


def _credentials(texts: Mapping[str, _Text]) -> tuple[Secret, ...]:
    """Return what must not be shown while a place is held: what is marked, or named like a credential."""
    marked = [value for value in texts.values() if isinstance(value, Secret)]
    named = [value for name, value in texts.items() if _CREDENTIAL.search(name) and _revealed(value)]
    return (*marked, *(Secret(_revealed(value).rpartition(" ")[2]) for value in named))


_CREDENTIAL = re.compile(r"auth|key|token|secret|cookie|password|credential", re.IGNORECASE)


def _revealed(value: _Text) -> str:
    return value.reveal() if isinstance(value, Secret) else value
