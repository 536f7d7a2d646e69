"""Pages of the web as text, and searches for them."""

from __future__ import annotations

import codecs
import functools
from collections.abc import Collection
from importlib import import_module
from typing import Annotated, Any, cast
from urllib.parse import urlsplit

import pydantic
from typing_extensions import TypedDict

from toolcrib._http import Http, HttpError
from toolcrib._portal import portal
from toolcrib.builtin._markup import text_of_html
from toolcrib.builtin.documents import Page, page_part, pages_of_pdf
from toolcrib.errors import MissingExtraError, ToolExecutionError
from toolcrib.limits import MAX_PAGE_BYTES, PAGE_SECONDS
from toolcrib.tools import Tool, tool

__all__ = ["TOOLS", "Found", "web_tools"]

_SEARCH_SECONDS = 10
_HEADERS = {"accept": "text/html, text/*;q=0.9, application/json;q=0.9, application/pdf;q=0.8, */*;q=0.1"}
_FEW_CHARS = 400  # an article shorter than this may be all that was recognised of a page that is none


class Found(TypedDict):
    """One page that a search found."""

    title: str
    url: str
    text: str


def web_tools(*, trusted: Collection[str] = (), timeout: float = PAGE_SECONDS) -> list[Tool]:
    """Return tools that fetch pages of the web as text, and search for them.

    Only the public network is reached: an address of this machine or of a local network is refused, also when a name or
    a redirect leads to it.

    Args:
        trusted: Host names and addresses that may be anywhere, such as a wiki of your own.
        timeout: Seconds one page may take, redirects included.

    Raises:
        ValueError: One of `trusted` is no host.
    """
    web = _Web(trusted, timeout)
    return [Tool.wrap(web.fetch_page), Tool.wrap(web.search_web)]


class _Web:
    def __init__(self, trusted: Collection[str], timeout: float) -> None:
        self.trusted = trusted
        self.timeout = timeout

    @functools.cached_property
    def http(self) -> Http:
        return Http(wanted_by="fetch_page", timeout=self.timeout, trust_env=True, trusted=self.trusted, roam=True)

    @tool(effect="read")
    def fetch_page(
        self,
        url: Annotated[str, pydantic.Field(max_length=4_000, examples=["https://example.com/news"])],
        *,
        page: Annotated[int, pydantic.Field(ge=1, le=1_000_000)] = 1,
        start: Annotated[int, pydantic.Field(ge=0, le=100_000_000)] = 0,
        links: bool = False,
    ) -> str:
        """Fetch a page of the web and return its text; where it goes on is told at the end.

        Articles come without menus and advertisements. JSON and plain text come as they are, PDFs as text.

        Args:
            url: The address, with https:// or http://.
            page: The page to begin at, of a PDF.
            start: The character to begin at, for the rest of a long page.
            links: Whether the addresses that links lead to are told as well.
        """
        _check(url)
        kind, charset, data = portal().call(self._fetched, url)
        return page_part(_pages(data, kind, charset, links=links), page, start)

    @tool(effect="read")
    def search_web(
        self,
        query: Annotated[str, pydantic.Field(min_length=1, max_length=400, examples=["opening hours Louvre"])],
        limit: Annotated[int, pydantic.Field(ge=1, le=20)] = 8,
    ) -> list[Found]:
        """Search the web, and return the titles, addresses and first words of the pages found.

        Args:
            query: What to look for, in a few words.
            limit: How many pages to return at most.
        """
        try:
            ddgs = import_module("ddgs")
        except ImportError:
            raise MissingExtraError("web", "search_web") from None
        try:
            found = ddgs.DDGS(timeout=_SEARCH_SECONDS).text(query, max_results=limit)
        except import_module("ddgs.exceptions").DDGSException as error:
            if "No results" in str(error):
                return []
            raise ToolExecutionError("no search engine answered: try again later, or in other words") from None
        return [_found(item) for item in found[:limit]]

    async def _fetched(self, url: str) -> tuple[str, str | None, bytes]:
        try:
            async with self.http.request("GET", url, _HEADERS) as received:
                if received.status >= 400:  # noqa: PLR2004  # where HTTP's errors begin
                    raise ToolExecutionError(f"the page cannot be had: the server answered with HTTP {received.status}")
                return received.content_type, received.charset, await received.read(cut=True)
        except HttpError as error:
            raise ToolExecutionError(f"the page cannot be had: {error}") from None


TOOLS = web_tools()


def _check(url: str) -> None:
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        has_host, parts = False, urlsplit("")
    if parts.scheme not in ("http", "https") or not has_host:
        raise ToolExecutionError(f"{url[:200]!r} is no address of the web: write it as https://example.com/page")
    if parts.username is not None or parts.password is not None:
        raise ToolExecutionError("an address must not hold a user name or a password")


def _pages(data: bytes, kind: str, charset: str | None, *, links: bool) -> list[Page]:
    if kind == "application/pdf" or data.startswith(b"%PDF-"):
        return pages_of_pdf(data)
    if kind in ("text/html", "application/xhtml+xml") or (not kind and data.lstrip()[:1] == b"<"):
        text = _text_of_page(data[:MAX_PAGE_BYTES], _known(charset), links=links)
    elif _is_text(kind, data):
        text = data.decode(_known(charset) or "utf-8", "replace")
    else:
        raise ToolExecutionError(f"the page is {kind or 'of an unknown kind'} ({len(data):,} bytes), which is not text")
    return [lambda: text]


def _is_text(kind: str, data: bytes) -> bool:
    if b"\0" in data[:8192]:
        return False
    named = kind.startswith("text/") or kind.endswith(("json", "xml", "yaml", "javascript", "ndjson", "csv"))
    return named or not kind


def _known(charset: str | None) -> str | None:
    try:
        return codecs.lookup(charset).name if charset else None
    except (LookupError, ValueError):
        return None


def _text_of_page(data: bytes, charset: str | None, *, links: bool) -> str:
    """Return the article of a page, or all its text where there is no article."""
    try:
        extract: Any = import_module("trafilatura").extract
    except ImportError:
        raise MissingExtraError("web", "fetch_page") from None
    source = data.decode(charset, "replace") if charset else data
    options = {"output_format": "markdown", "include_comments": False, "include_links": links}
    try:
        article = cast("str | None", extract(source, **options)) or ""
    except Exception:  # noqa: BLE001  # a page may be broken in ways that nobody thought of
        article = ""
    if len(article) >= _FEW_CHARS:
        return article
    whole = text_of_html(data, charset)
    return whole if len(whole) > len(article) else article


def _found(item: Any) -> Found:
    return {"title": str(item.get("title", "")), "url": str(item.get("href", "")), "text": str(item.get("body", ""))}
