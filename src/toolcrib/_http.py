"""HTTP requests with bounds: seconds, bytes, redirects, and the hosts they may reach."""

from __future__ import annotations

import asyncio
import os
import re
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from toolcrib._addresses import NotPublicError, PublicOnly, Resolve
from toolcrib.errors import MissingExtraError
from toolcrib.limits import CONNECT_SECONDS, MAX_HTTP_BYTES, MAX_REDIRECTS

if TYPE_CHECKING:
    import ssl

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
    """A client to be used on one event loop; its connections end with it or with the loop.

    It reaches hosts of the public network, and those that are trusted: a name is resolved once, and the address
    that was checked is the one connected to. Through a proxy of the environment it is the proxy that resolves and
    connects; then what this machine's own resolver knows of the name is checked, and the proxy must do the rest.

    Redirects are followed within the host only, never from https to http, and never in a way that turns
    a POST into a GET. Cookies are not kept.

    Args:
        wanted_by: What needs it, for the error when the extra is not installed.
        timeout: Seconds one request may take, from resolving to the last byte; None for no end.
        trust_env: Whether proxies and certificates come from the environment.
        trusted: Hosts, by name or address, that the developer named: they may be anywhere. None for none.
        roam: Whether a GET may be redirected to other hosts, which are then sent none of the caller's credentials.
        resolve: Asked for the addresses of names; by default this machine's resolver.

    Raises:
        MissingExtraError: The `http` extra is not installed.
        ValueError: One of `trusted` is no host.
    """

    def __init__(
        self,
        *,
        wanted_by: str,
        timeout: float | None,
        trust_env: bool,
        trusted: Collection[str] | None = None,
        roam: bool = False,
        resolve: Resolve | None = None,
    ) -> None:
        try:
            import httpx2
        except ImportError:
            raise MissingExtraError("http", wanted_by) from None
        hosts = (trusted,) if isinstance(trusted, str) else trusted or ()
        self._public = PublicOnly([_host(host) for host in hosts], resolve)
        self._roam = roam
        # Made here, since importing and reading certificates would hold up the loop of the first request.
        named = [os.environ.get(name) for name in _CERTIFICATE_VARIABLES] if trust_env else []
        self._certificates = _certificates(httpx2.create_ssl_context, trust_env, *named)
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
        except NotPublicError as error:
            raise HttpError(f"refusing {error}") from error
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
            await self._check(client, to)
            request = client.build_request(method, to, headers=headers, content=content)
            response = await client.send(request, stream=True)
            status = response.status_code
            if status not in _REDIRECTS or "location" not in response.headers:
                return response
            await response.aclose()
            to, left = _redirected(response, roam=self._roam)
            headers = _anonymous(headers) if left else headers
        raise HttpError(f"redirected more than {MAX_REDIRECTS} times", status)

    async def _check(self, client: httpx2.AsyncClient, url: httpx2.URL) -> None:
        host = url.raw_host.decode("ascii")
        self._public.check(host)
        direct, chosen = _transports(client, url)
        if chosen is not direct and not self._public.trusts(host):
            with suppress(OSError):  # a name that only the proxy can resolve
                await self._public.addresses(host, url.port or 0, strict=True)

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
        client = httpx2.AsyncClient(
            timeout=self._timeout,
            trust_env=self._trust_env,
            verify=self._certificates,
            cookies=no_cookies,
            limits=limits,
        )
        pool = _transports(client, httpx2.URL("http://localhost"))[0]._pool  # noqa: SLF001  # nothing public leads to it
        pool._network_backend = _Checked(self._public, pool._network_backend)  # noqa: SLF001  # read first: fails where there is none
        return client


_MOST_CONNECTIONS = 100
_CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


@cache
def _certificates(create: Callable[..., ssl.SSLContext], trust_env: bool, *_: str | None) -> ssl.SSLContext:  # noqa: FBT001  # a key
    """Return what clients share, since reading certificates takes long: one for each setting of the environment."""
    return create(trust_env=trust_env)


def _transports(client: httpx2.AsyncClient, url: httpx2.URL) -> tuple[Any, Any]:
    """Return what connects directly, and what will send a request to this address: that, or a proxy's."""
    inside = cast("Any", client)
    return inside._transport, inside._transport_for_url(url)  # noqa: SLF001  # nothing public tells of proxies


class _Checked:
    """Connects to checked addresses instead of names; what TLS and HTTP call the host remains the name."""

    def __init__(self, public: PublicOnly, inner: Any) -> None:
        self._public = public
        self._inner = inner

    async def connect_tcp(self, host: str, port: int, timeout: float | None = None, **options: Any) -> Any:  # noqa: ASYNC109  # the shape of a network backend
        if self._public.trusts(host):
            return await self._inner.connect_tcp(host, port, timeout=timeout, **options)
        *others, last = await self._public.addresses(host, port)
        for address in others:
            with suppress(Exception):  # the next one may answer
                async with asyncio.timeout(CONNECT_SECONDS):
                    return await self._inner.connect_tcp(address, port, timeout=timeout, **options)
        return await self._inner.connect_tcp(last, port, timeout=timeout, **options)

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


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


def _redirected(response: httpx2.Response, *, roam: bool) -> tuple[httpx2.URL, bool]:
    """Return where a redirect leads, and whether that is another host.

    Raises:
        HttpError: Somewhere it may not lead.
    """
    import httpx2

    old, status, method = response.url, response.status_code, response.request.method
    try:
        new = old.join(response.headers["location"]).copy_with(userinfo=b"", fragment=None)
    except (httpx2.InvalidURL, ValueError):
        raise HttpError("refusing redirect to something that is no address", status) from None
    if problem := _objection(old, new, roam=roam and method == "GET"):
        raise HttpError(f"refusing redirect {problem}", status)
    if method not in ("GET", "HEAD") and status not in _KEEPS_METHOD:
        raise HttpError(f"refusing redirect that would turn {method} into GET", status)
    return new, bool(_elsewhere(old, new))


def _objection(old: httpx2.URL, new: httpx2.URL, *, roam: bool = False) -> str:
    if new.scheme not in ("http", "https"):
        return f"to {new.scheme}"
    if not roam and (elsewhere := _elsewhere(old, new)):
        return f"to different host {elsewhere!r}"
    if (old.scheme, new.scheme) == ("https", "http"):
        return "from https to http"
    return ""


def _elsewhere(old: httpx2.URL, new: httpx2.URL) -> str:
    """Return the new host, if it is another one; the same one may go on to https."""
    if new.host != old.host:
        return new.host
    return new.netloc.decode() if new.port != old.port and old.scheme == new.scheme else ""


_NO_CREDENTIALS = frozenset({"accept", "accept-language", "user-agent"})


def _anonymous(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() in _NO_CREDENTIALS}


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

    @property
    def retry_after(self) -> float | None:
        """Seconds to wait before asking again, if the answer gives a number of them."""
        given = self._response.headers.get("retry-after", "").strip()
        return float(given) if given.isdecimal() and len(given) <= _LONGEST_SECONDS else None

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


_LONGEST_SECONDS = 6  # digits


def _too_long(status: int) -> HttpError:
    return HttpError(f"answered with more than {MAX_HTTP_BYTES:,} bytes", status)


# -- addresses


def _host(text: str) -> str:
    """Return a host as it stands in a parsed address."""
    import httpx2

    try:
        host = httpx2.URL(scheme="http", host=text).raw_host.decode("ascii")
    except (httpx2.InvalidURL, TypeError):
        host = ""
    if not host or ("%" in host and ":" not in host):
        raise ValueError(f"trusted hosts are names or addresses, without scheme and port, unlike {text!r:.200}")
    return host


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
