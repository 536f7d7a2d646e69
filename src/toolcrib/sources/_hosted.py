"""Catalogues of tools that act for many users: whose call it is, pages, and what was listed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias, cast

from toolcrib._portal import portal
from toolcrib._secrets import Secret
from toolcrib.errors import AuthorizationNeededError, ExternalToolError
from toolcrib.limits import CATALOGUE_SECONDS, MAX_TOOLS
from toolcrib.sources._rest import Rest, plain
from toolcrib.types import ToolContext

__all__ = ["HostedTools", "UserId", "consent", "listed", "members", "names", "paged", "revealed", "text_of"]

#: Whose account a call is for: always the same, or read from the call's ToolContext.
UserId: TypeAlias = str | Callable[[ToolContext[Any]], str]


class HostedTools:
    """What the clients of hosted catalogues share; each says how it lists and how it calls.

    Args:
        rest: The API.
        user_id: Whose account calls are for.
    """

    def __init__(self, rest: Rest, user_id: UserId) -> None:
        self._rest = rest
        self._user_id = user_id
        self._known: dict[str, Mapping[str, Any]] = {}
        #: Where the catalogue is.
        self.name = rest.name

    def __repr__(self) -> str:
        """Return a text with the address, without credentials."""
        return f"{type(self).__name__}({self._rest.base_url!r})"

    def list_tools(self) -> list[Mapping[str, Any]]:
        """Return the tools, as `ExternalToolSpec.from_mapping` reads them.

        Raises:
            ExternalToolError: The catalogue cannot be read.
        """
        return portal().call(self._all)

    def call_tool(self, name: str, arguments: Mapping[str, Any], *, context: ToolContext[Any] | None = None) -> Any:
        """Return what a tool returned.

        Args:
            name: The tool's name in the catalogue.
            arguments: Plain JSON data.
            context: The call, of which a function `user_id` reads whose it is.

        Raises:
            AuthorizationNeededError: The user has to allow it first.
            ExternalToolError: There is no result.
        """
        return portal().call(self._call, name, plain(name, arguments, self._rest.title), self._user(context))

    async def acall_tool(
        self, name: str, arguments: Mapping[str, Any], *, context: ToolContext[Any] | None = None
    ) -> Any:
        """Return what a tool returned; see `call_tool`."""
        return await portal().acall(self._call, name, plain(name, arguments, self._rest.title), self._user(context))

    def _user(self, context: ToolContext[Any] | None) -> str:
        given = self._user_id if isinstance(self._user_id, str) else self._user_id(context or ToolContext())
        if not isinstance(given, str) or not given.strip():  # pyright: ignore[reportUnnecessaryIsInstance]  # of the author's function
            raise ExternalToolError(f"{self._rest.title} cannot be asked: user_id gave no user id for this call")
        return given

    async def _all(self) -> list[Mapping[str, Any]]:
        try:
            async with asyncio.timeout(CATALOGUE_SECONDS):
                return await self._list()
        except TimeoutError:
            problem = f"{self._rest.title} did not list its tools within {CATALOGUE_SECONDS:g} seconds"
            raise ExternalToolError(problem, retryable=True) from None

    async def _list(self) -> list[Mapping[str, Any]]:
        raise NotImplementedError

    async def _call(self, name: str, arguments: dict[str, Any], user: str) -> Any:
        raise NotImplementedError


def consent(what: str, url: Any, user: str, error: ExternalToolError) -> ExternalToolError:
    """Return what asks for the user's consent, or the error it stands for if there is no address to give it at."""
    usable = isinstance(url, str) and _WEB_ADDRESS.fullmatch(url)
    return AuthorizationNeededError(what, url, user_id=user, body=error.body) if usable else error


_WEB_ADDRESS = re.compile(r"https?://[!-~]{1,2000}")


async def paged(page: Callable[[Any], Awaitable[tuple[Any, Any]]], title: str) -> list[Mapping[str, Any]]:
    """Return the items of all pages.

    Args:
        page: Returns the items after a cursor, at first None, and the next cursor, None at the end.
        title: What errors call the catalogue.

    Raises:
        ExternalToolError: A page is no list, or comes twice.
    """
    items, cursor, seen = list[Mapping[str, Any]](), None, set[Any]()
    while len(items) < MAX_TOOLS:
        found, cursor = await page(cursor)
        if not isinstance(found, list):
            raise ExternalToolError(f"{title} did not answer with a list")
        items += listed(found)
        if not found or not cursor:
            break
        if cursor in seen:
            raise ExternalToolError(f"{title} lists the same page again and again")
        seen.add(cursor)
    return items[:MAX_TOOLS]


def members(value: Any, *path: str) -> Mapping[str, Any]:
    """Return the object at a path in JSON data, or an empty one."""
    for key in path:
        value = cast("Mapping[str, Any]", value).get(key) if isinstance(value, Mapping) else None
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def listed(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects of a list in JSON data, or none."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, Mapping)]


def text_of(value: Any) -> str:
    """Return a text in JSON data, or an empty one."""
    return value if isinstance(value, str) else ""


def names(given: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return one name or several as a tuple."""
    return (given,) if isinstance(given, str) else tuple(given or ())


def revealed(value: str | Secret, what: str) -> str:
    """Return the text of a credential.

    Raises:
        ValueError: It is empty.
    """
    text = (value.reveal() if isinstance(value, Secret) else value).strip()
    if not text:
        raise ValueError(f"{what} must not be empty")
    return text
