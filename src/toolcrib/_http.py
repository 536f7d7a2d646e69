"""HTTP requests with bounds: seconds, bytes and redirects."""

from __future__ import annotations

import asyncio
import re
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

from toolcrib.errors import MissingExtraError
from toolcrib.limits import MAX_HTTP_BYTES, MAX_REDIRECTS

if TYPE_CHECKING:
    import httpx2

__all__ = ["Http", "HttpError", "Received", "is_loopback", "without_login"]


class HttpError(Exception):
    """A request without a usable answer; whoever asked makes an error of their own of it.

    Args:
        message: What happened, such as `did not answer within 30 seconds`.
        status: The HTTP status, if there was an answer.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Http:
    """A client for one host, to be used on one event loop; its connections end with it or with the loop.

    Redirects are followed within the host only, never from https to http, and never in a way that turns
    a POST into a GET. Cookies are not kept.

    Args:
        wanted_by: What needs it, for the error when the extra is not installed.
        timeout: Seconds one request may take, from connecting to the last byte; None for no end.
        trust_env: Whether proxies and certificates come from the environment.

    Raises:
        MissingExtraError: The `http` extra is not installed.
    """

    def __init__(self, *, wanted_by: str, timeout: float | None, trust_env: bool) -> None:
        try:
            import httpx2
        except ImportError:
            raise MissingExtraError("http", wanted_by) from None
        # Made here, since importing and reading certificates would hold up the loop of the first request.
        self._certificates = httpx2.create_ssl_context(trust_env=trust_env)
        self._timeout = timeout
        self._trust_env = trust_env
        self._opened: list[_Opened] = []
        weakref.finalize(self, _leave, self._opened).atexit = False

    @asynccontextmanager
    async def request(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None = None
    ) -> AsyncGenerator[Received]:
        """Send a request and give its answer, whose body is still to come.

        Args:
            method: Such as `GET`.
            url: Where to; without user name and password.
            headers: Sent as they are.
            content: The body.

        Raises:
            HttpError: There is no answer, not in time, or not all of it; also while the body is read.
        """
        import httpx2

        received = None
        try:
            async with asyncio.timeout(self._timeout):
                response = await self._answer(method, url, headers, content)
                received = Received(response)
                try:
                    yield received
                finally:
                    await response.aclose()
        except (TimeoutError, httpx2.TimeoutException) as error:
            within = "in time" if self._timeout is None else f"within {self._timeout:g} seconds"
            raise HttpError(f"did not answer {within}", received.status if received else None) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError) as error:
            said = f"{type(error).__name__}: {error}".removesuffix(": ")
            if received is None:
                raise HttpError(f"could not be reached ({said})") from error
            raise HttpError(f"broke off ({said})", received.status) from error

    async def _answer(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None
    ) -> httpx2.Response:
        import httpx2

        client, to, status = await self._client(), httpx2.URL(url), 0
        for _ in range(MAX_REDIRECTS + 1):
            request = client.build_request(method, to, headers=headers, content=content)
            response = await client.send(request, stream=True)
            status = response.status_code
            if status not in _REDIRECTS or "location" not in response.headers:
                return response
            await response.aclose()
            to = _redirected(response)
        raise HttpError(f"redirected more than {MAX_REDIRECTS} times", status)

    async def _client(self) -> httpx2.AsyncClient:
        loop = asyncio.get_running_loop()
        if not self._opened or self._opened[-1].loop is not loop:  # a forked process has a loop of its own
            client = self._made()
            opened = _Opened(loop, client, _held(client))
            self._opened.append(opened)
            await anext(opened.held)
        return self._opened[-1].client

    def _made(self) -> httpx2.AsyncClient:
        import httpx2

        no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
        limits = httpx2.Limits(max_connections=_MOST_CONNECTIONS)
        return httpx2.AsyncClient(
            timeout=self._timeout,
            trust_env=self._trust_env,
            verify=self._certificates,
            cookies=no_cookies,
            limits=limits,
        )


_MOST_CONNECTIONS = 100


class _Opened(NamedTuple):
    loop: asyncio.AbstractEventLoop
    client: httpx2.AsyncClient
    held: AsyncGenerator[None]


async def _held(client: httpx2.AsyncClient) -> AsyncGenerator[None]:
    """Keep connections until the loop ends or nobody holds them: a loop closes the generators begun on it."""
    try:
        yield
    finally:
        await client.aclose()


def _leave(opened: list[_Opened]) -> None:
    """Close the connections of a client that is gone, on their loop; one that has ended has closed them."""
    for loop, _, held in opened:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_close_soon, held)


def _close_soon(held: AsyncGenerator[None]) -> None:
    task = asyncio.ensure_future(_close(held))
    _closing.add(task)
    task.add_done_callback(_closing.discard)


async def _close(held: AsyncGenerator[None]) -> None:
    await held.aclose()


_closing: set[asyncio.Task[None]] = set()


# -- redirects

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_KEEPS_METHOD = frozenset({307, 308})


def _redirected(response: httpx2.Response) -> httpx2.URL:
    """Return where a redirect leads.

    Raises:
        HttpError: Somewhere it may not lead.
    """
    import httpx2

    old, status = response.url, response.status_code
    try:
        new = old.join(response.headers["location"]).copy_with(userinfo=b"", fragment=None)
    except (httpx2.InvalidURL, ValueError):
        raise HttpError("refusing redirect to something that is no address", status) from None
    if problem := _objection(old, new):
        raise HttpError(f"refusing redirect {problem}", status)
    if response.request.method not in ("GET", "HEAD") and status not in _KEEPS_METHOD:
        raise HttpError(f"refusing redirect that would turn {response.request.method} into GET", status)
    return new


def _objection(old: httpx2.URL, new: httpx2.URL) -> str:
    if new.scheme not in ("http", "https"):
        return f"to {new.scheme}"
    if new.host != old.host:
        return f"to different host {new.host!r}"
    if (old.scheme, new.scheme) == ("https", "http"):
        return "from https to http"
    if new.port != old.port and old.scheme == new.scheme:
        return f"to different host {new.netloc.decode()!r}"
    return ""


# -- bodies


class Received:
    """The answer to a request; its body is read once, decompressed, and never beyond its bound."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._response.status_code

    @property
    def content_type(self) -> str:
        """The media type, without parameters."""
        return self._response.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def read(self, *, cut: bool = False) -> bytes:
        """Return the body.

        Args:
            cut: Whether a body that is too long is cut, instead of refused.

        Raises:
            HttpError: The body is too long.
        """
        body = bytearray()
        async for chunk in self._response.aiter_bytes():
            body += chunk
            if len(body) > MAX_HTTP_BYTES:
                if cut:
                    break
                raise _too_long(self.status)
        return bytes(body[:MAX_HTTP_BYTES])

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the lines of the body as they come, without their ends.

        Raises:
            HttpError: The body is too long.
        """
        rest, total = bytearray(), 0
        async for chunk in self._response.aiter_bytes():
            total += len(chunk)
            if total > MAX_HTTP_BYTES:
                raise _too_long(self.status)
            first, *others = chunk.split(b"\n")
            rest += first
            for line in others:
                yield bytes(rest).removesuffix(b"\r")
                rest = bytearray(line)
        if rest:
            yield bytes(rest)

    async def events(self) -> AsyncIterator[tuple[str, bytes]]:
        """Yield name and data of the server-sent events in the body.

        Raises:
            HttpError: The body is too long.
        """
        name, data = "", list[bytes]()
        async for line in self.lines():
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"event":
                name = value.decode("utf-8", "replace")
            elif field == b"data":
                data.append(value)
            elif not line:
                if data:
                    yield name or "message", b"\n".join(data)
                name, data = "", []
        if data:
            yield name or "message", b"\n".join(data)


def _too_long(status: int) -> HttpError:
    return HttpError(f"answered with more than {MAX_HTTP_BYTES:,} bytes", status)


# -- addresses


def without_login(url: str) -> str:
    """Return an address without the user name and password in it; any other text as it is."""
    return re.sub(r"(?<=://)[^/?#]*@", "", url, count=1)


def is_loopback(host: str) -> bool:
    """Whether a host, by name or address, is this very machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
