"""Tools of MCP servers: processes, URLs, and server objects of this process, in both eras of the protocol."""

from __future__ import annotations

import asyncio
import fnmatch
import importlib
import os
import re
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

from toolcrib._json import first_unsafe
from toolcrib._portal import portal
from toolcrib._secrets import Secret
from toolcrib.errors import (
    MissingExtraError,
    ToolArgumentError,
    ToolcribError,
    ToolDeniedError,
    ToolNotFoundError,
    warn,
)
from toolcrib.limits import DEFAULT_LIMITS
from toolcrib.sources._mcp_connection import Connection
from toolcrib.sources._mcp_list import tool_of, value_of
from toolcrib.sources._mcp_places import Command, Local, Place, Places, Remote, read_config
from toolcrib.sources._mcp_requests import Callbacks, MCPElicitation, MCPSampling
from toolcrib.sources._mcp_server import Server
from toolcrib.tools import Tool
from toolcrib.toolset import ToolsetChanges
from toolcrib.types import ToolContext

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["MCP", "MCPClient", "MCPElicitation", "MCPSampling"]

_CALL_SECONDS = DEFAULT_LIMITS.deadline
_Names: TypeAlias = str | Iterable[str]
_Texts: TypeAlias = Mapping[str, str | Secret]


class MCPClient:
    """The tools of one MCP server or several; put it in `tools=[...]`.

    It connects when it is made, and starts a server that has died again for the next call. It may be used from sync
    code, from any event loop, and from several threads and tasks at once. `MCP` is the same class.

    Args:
        config: `{"mcpServers": {name: {"command": ..., "args": [...]} or {"url": ..., "headers": {...}}}}`, the path
            of a JSON file that holds this, or the URL of one server. The tools of one server keep their names; of
            several they become `server.tool`. `${NAME}` stands for a variable of the environment.
        allow: The only tools to take, by glob on their names here.
        deny: Tools to leave out, by glob on their names here.
        validate: Whether arguments are checked here against the tool's schema before they are sent.
        connect: Whether to connect at once; otherwise at the first use, or on entering `async with`.
        on_elicit: Asked when a server wants to know something of the user: takes an MCPElicitation and returns the
            answer as a mapping, True for a page that was opened, or None for no answer. Like the next, it may be
            async, and is then run on a background loop.
        on_sample: Asked when a server wants words of a model: takes an MCPSampling and returns text.
        on_change: Called, in a worker thread, when a server says that its tools have changed, and when a call had to
            connect to it again, since it may then have others; such as the `refresh` of a Toolset.

    Raises:
        MCPConnectionError: A server cannot be reached; the message has the end of what it wrote to stderr.
        ValueError: The configuration is none.
        OSError: The file of the configuration cannot be read.
        MissingExtraError: The `mcp` extra is not installed.
    """

    def __init__(
        self,
        config: Mapping[str, Any] | str | os.PathLike[str],
        *,
        allow: _Names | None = None,
        deny: _Names | None = None,
        validate: bool = True,
        connect: bool = True,
        on_elicit: Callable[[MCPElicitation], Any] | None = None,
        on_sample: Callable[[MCPSampling], Any] | None = None,
        on_change: Callable[[], Any] | None = None,
    ) -> None:
        _load_sdk()
        places = read_config(config)
        callbacks = Callbacks(on_elicit, on_sample, on_change)
        self._validate = validate
        self._filter = _Filter(allow, deny or ())
        self._tools: dict[str, Tool] = {}
        self._servers = [
            Server(name, f"{name}." if places.are_prefixes else "", place, callbacks.handlers(name))
            for name, place in places.by_name.items()
        ]
        # Tools hold the client; when the last of them is gone, so is the reason for the connections.
        weakref.finalize(self, _abandon, [server.connection for server in self._servers]).atexit = False
        if connect:
            portal().call(self._connect)

    @classmethod
    def stdio(
        cls,
        name: str,
        command: str,
        args: Sequence[str] = (),
        *,
        env: _Texts | None = None,
        cwd: str | os.PathLike[str] | None = None,
        allow: _Names | None = None,
        deny: _Names | None = None,
        **options: Any,
    ) -> Self:
        """Return a client of a server that is started as a process; its tools are `name.tool`.

        Args:
            name: What comes before the names of its tools.
            command: The program to run.
            args: Its arguments, as a list.
            env: Variables for it; of ours it sees only a few harmless ones, such as PATH.
            cwd: Where it runs.
            allow: The only tools to take, by glob on the name here, such as `fs.read_*`.
            deny: Tools to leave out, by glob on the name here.
            **options: The other options of MCPClient.

        Raises:
            ValueError: Neither `allow` nor `deny` is given: `allow=["*"]` says that everything is wanted.
            MCPConnectionError: It cannot be started, or does not speak the protocol.
        """
        place = Command(command, args, env or {}, None if cwd is None else os.fspath(cwd))
        return cls._named(name, place, allow, deny, options)

    @classmethod
    def http(
        cls,
        name: str,
        url: str,
        *,
        headers: _Texts | None = None,
        allow: _Names | None = None,
        deny: _Names | None = None,
        allow_insecure: bool = False,
        **options: Any,
    ) -> Self:
        """Return a client of a server behind a URL; its tools are `name.tool`.

        Args:
            name: What comes before the names of its tools.
            url: Its endpoint for streamable HTTP.
            headers: Sent with every request, such as `{"Authorization": "Bearer ..."}`; never shown.
            allow: The only tools to take, by glob on the name here, such as `crm.find_*`.
            deny: Tools to leave out, by glob on the name here.
            allow_insecure: Whether credentials may be sent over plain http to another machine.
            **options: The other options of MCPClient.

        Raises:
            ValueError: Neither `allow` nor `deny` is given: `allow=["*"]` says that everything is wanted.
            MCPConnectionError: It cannot be reached, or does not speak the protocol.
        """
        return cls._named(name, Remote(url, headers or {}, allow_insecure), allow, deny, options)

    @classmethod
    def in_process(
        cls,
        server: Any,
        name: str | None = None,
        *,
        allow: _Names | None = None,
        deny: _Names | None = None,
        **options: Any,
    ) -> Self:
        """Return a client of a server object of this process, which runs on a background loop.

        Args:
            server: An `mcp` server, low-level or not.
            name: What comes before the names of its tools; without one they keep their names.
            allow: The only tools to take, by glob on the name here.
            deny: Tools to leave out, by glob on the name here.
            **options: The other options of MCPClient.

        Raises:
            ValueError: There is a name, but neither `allow` nor `deny`.
        """
        if name is None:
            label = getattr(server, "name", None) or "in-process"
            return cls(cast("Any", Places({label: Local(server)})), allow=allow, deny=deny, **options)
        return cls._named(name, Local(server), allow, deny, options)

    @classmethod
    def _named(
        cls, name: str, place: Place, allow: _Names | None, deny: _Names | None, options: dict[str, Any]
    ) -> Self:
        if not isinstance(name, str) or not name.strip():  # pyright: ignore[reportUnnecessaryIsInstance]  # often from a configuration
            raise ValueError(f"name must be the text that comes before the tools' names, not {name!r:.100}")
        if allow is None and deny is None:
            raise ValueError(
                f"say which tools of '{name}' to take: allow=['{name}.read_*'], deny=[...], or allow=['*'] for all"
            )
        return cls(cast("Any", Places({name: place}, are_prefixes=True)), allow=allow, deny=deny, **options)

    def __repr__(self) -> str:
        """Return a text that names the servers."""
        return f"<{type(self).__name__} of {', '.join(server.name for server in self._servers)}>"

    # -- tools

    def as_tools(self) -> list[Tool]:
        """Return the tools as the servers list them now; what is no tool is left out with a warning.

        Raises:
            MCPConnectionError: A server cannot be reached.
        """
        listings = portal().call(self._listed)
        tools, problems, names = dict[str, Tool](), list[str](), list[str]()
        for server, listing in zip(self._servers, listings, strict=True):
            problems += [f"{problem} of {server.name}" for problem in listing.problems]
            for name, raw in listing.tools.items():
                names.append(server.prefix + name)
                if not self._filter.takes(names[-1]):
                    continue
                try:
                    tools[names[-1]] = self._tool(server, name, raw)
                except (ToolcribError, ValueError, TypeError, RecursionError) as error:
                    why = str(error).partition("\n")[0][:_LONGEST_PROBLEM]
                    problems.append(f"{names[-1]!r:.100} ({why})")
        if problems:
            more = f" and {len(problems) - _MOST_PROBLEMS} more" if len(problems) > _MOST_PROBLEMS else ""
            warn(f"MCP: left out {', '.join(problems[:_MOST_PROBLEMS])}{more}")
        if vain := self._filter.vain(names):
            warn(f"MCP: allow={vain[0]!r:.100} takes none of the tools; they are named like {', '.join(names[:3])}")
        self._tools = tools
        return list(tools.values())

    def _tool(self, server: Server, name: str, raw: dict[str, Any]) -> Tool:
        known = server.made.get(name)
        if known is not None and known[0] == raw:  # so that what is cached for it stays
            return known[1]
        tool = tool_of(raw, server.prefix, self._caller(server, name), validate=self._validate)
        tool = tool.replace(origin=f"mcp:{server.name}")
        server.made[name] = raw, tool
        return tool

    def _caller(self, server: Server, name: str) -> Callable[..., Any]:
        async def call(*, toolcrib_context_: ToolContext[Any] | None = None, **arguments: Any) -> Any:
            return await self._called(server, name, arguments, toolcrib_context_)

        return call

    def refresh(self) -> ToolsetChanges:
        """List the tools anew and return what was added, removed and changed since they were last listed.

        Raises:
            MCPConnectionError: A server cannot be reached.
        """
        before = self._tools
        after = {tool.name: tool for tool in self.as_tools()}
        return ToolsetChanges(
            added=tuple(name for name in after if name not in before),
            removed=tuple(name for name in before if name not in after),
            changed=tuple(name for name, tool in after.items() if name in before and before[name] is not tool),
        )

    # -- calls

    def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, timeout: float | None = _CALL_SECONDS
    ) -> Any:
        """Call a tool by its name here and return its structured value, its text, or a list of texts and parts.

        Args:
            name: The tool's name, with that of its server where tools have it.
            arguments: Sent as they are.
            timeout: Seconds after which it is cancelled; None for never.

        Raises:
            ToolExecutionError: The tool failed, or the server refused the call.
            ToolTimeoutError: There was no answer in time.
            ToolDeniedError: The tool is not among those that are allowed.
            MCPConnectionError: The server cannot be reached, or was lost.
        """
        return portal().call(self.acall_tool, name, arguments, timeout=timeout)

    async def acall_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = _CALL_SECONDS,  # noqa: ASYNC109  # the server is told, which a cancelled caller need not wait for
    ) -> Any:
        """Call a tool by its name here; see `call_tool`.

        Args:
            name: The tool's name, with that of its server where tools have it.
            arguments: Sent as they are.
            timeout: Seconds after which it is cancelled; None for never.
        """
        server = self._server_of(name)
        return await self._called(server, name[len(server.prefix) :], dict(arguments or {}), None, timeout)

    def _server_of(self, name: str) -> Server:
        servers = [server for server in self._servers if name.startswith(server.prefix)]
        if not servers:
            prefixes = ", ".join(server.prefix + "*" for server in self._servers)
            raise ToolNotFoundError(f"Tool {name!r:.100} not found. There are: {prefixes}.")
        return max(servers, key=lambda server: len(server.prefix))

    async def _called(
        self,
        server: Server,
        name: str,
        arguments: dict[str, Any],
        context: ToolContext[Any] | None,
        seconds: float | None = None,
    ) -> Any:
        if not self._filter.takes(server.prefix + name):
            raise ToolDeniedError(f"'{server.prefix + name}' is not among the tools that are allowed")
        if bad := first_unsafe(arguments, "arguments"):
            raise ToolArgumentError(f"The arguments of '{name}' cannot be sent: {': '.join(bad)}")
        return value_of(await portal().acall(server.call, name, arguments, context, seconds))

    # -- the connections

    def ping(self) -> bool:
        """Whether every server answers; one that has died is not started again for it."""
        return portal().call(self.aping)

    async def aping(self) -> bool:
        """Whether every server answers; see `ping`."""
        return all(await portal().acall(self._each, Connection.ping))

    def close(self) -> None:
        """End every connection and the servers that were started; calls fail from then on."""
        portal().call(self._each, Connection.close)

    async def aclose(self) -> None:
        """End every connection; see `close`."""
        await portal().acall(self._each, Connection.close)

    def __enter__(self) -> Self:
        portal().call(self._connect)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await portal().acall(self._connect)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _connect(self) -> None:
        """Connect to every server, or to none."""
        outcomes = await asyncio.gather(*(s.connection.session() for s in self._servers), return_exceptions=True)
        errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        if errors:
            await self._each(Connection.close)
            for other in errors[1:]:
                errors[0].add_note(str(other))
            raise errors[0]

    async def _each(self, do: Callable[[Connection], Awaitable[Any]]) -> list[Any]:
        return await asyncio.gather(*(do(server.connection) for server in self._servers))

    async def _listed(self) -> list[Any]:
        return await asyncio.gather(*(server.listed() for server in self._servers))


#: The same class under the name it is often called by.
MCP = MCPClient

_LONGEST_PROBLEM = 200
_MOST_PROBLEMS = 5


def _load_sdk() -> None:
    """Import what takes a second here, and not on the loop that all connections share."""
    try:
        importlib.import_module("mcp")
    except ModuleNotFoundError as error:
        if error.name != "mcp":
            raise
        raise MissingExtraError("mcp", "MCPClient") from None


def _abandon(connections: list[Connection]) -> None:
    for connection in connections:
        connection.abandon()


class _Filter:
    """Which names are taken: globs, of which `deny` wins."""

    def __init__(self, allow: _Names | None, deny: _Names) -> None:
        self._allow = None if allow is None else _globs("allow", allow)
        self._deny = _globs("deny", deny)

    def takes(self, name: str) -> bool:
        allowed = self._allow is None or any(matches(name) for matches in self._allow.values())
        return allowed and not any(matches(name) for matches in self._deny.values())

    def vain(self, names: Iterable[str]) -> list[str]:
        """Return the patterns of `allow` that fit none of the names."""
        given = list(names)
        return [text for text, matches in (self._allow or {}).items() if not any(map(matches, given))]


def _globs(option: str, patterns: _Names) -> dict[str, Callable[[str], Any]]:
    texts = (patterns,) if isinstance(patterns, str) else tuple(patterns)
    if wrong := [text for text in texts if not isinstance(text, str)]:  # pyright: ignore[reportUnnecessaryIsInstance]  # often from a configuration
        raise TypeError(f"{option} takes globs, not {type(wrong[0]).__name__}")
    return {text: re.compile(fnmatch.translate(text)).match for text in texts}
