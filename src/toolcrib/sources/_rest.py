"""A JSON API that is asked over HTTP with credentials: what the clients of gateways share."""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NoReturn
from urllib.parse import SplitResult, quote, unquote, urlencode, urlsplit

from pydantic_core import from_json, to_json

from toolcrib._http import Http, HttpError, Received, is_loopback
from toolcrib._json import first_unsafe
from toolcrib._secrets import Secret, without_secrets
from toolcrib.errors import ExternalToolError

__all__ = ["Rest", "json_of", "plain", "segment"]

_FIRST_FAILURE = 300  # what is left of redirects here leads nowhere
_NO_CONTENT = 204
_MAY_PASS = frozenset({408, 425, 429, 502, 503, 504})


class Rest:
    """One API: where it is, what it is sent with every request, and how its failures are told.

    Args:
        base_url: Where it is; a trailing slash is dropped.
        title: What errors call it.
        wanted_by: What needs it, for the error when the extra is not installed.
        headers: Sent with every request.
        api_key: The header that carries the credential, and its value, unless `headers` has it.
        timeout: Seconds one request may take in all; None for no end.
        allow_insecure: Whether credentials may be sent over plain http to another machine.
        sends_credentials: Whether requests will carry some that are not in their headers yet.

    Raises:
        ValueError: An address, a header or a timeout that is none, or credentials over plain http.
        MissingExtraError: The `http` extra is not installed.
    """

    def __init__(
        self,
        base_url: str,
        *,
        title: str,
        wanted_by: str,
        headers: Mapping[str, str] | None = None,
        api_key: tuple[str, str] | None = None,
        timeout: float | None = 30.0,
        allow_insecure: bool = False,
        sends_credentials: bool = False,
    ) -> None:
        address = _address(base_url)
        host = address.hostname or ""
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout is a number of seconds above 0, or None, not {timeout!r:.100}")
        self.headers = _headers(headers or {}, api_key, address)
        sends_credentials = sends_credentials or any(map(_CREDENTIAL.search, self.headers))
        if not allow_insecure and _is_open(address) and sends_credentials:
            raise ValueError(
                f"refusing to send credentials over plain http to {host}: use https, "
                "or pass allow_insecure=True if the network between is your own"
            )
        self.title = title
        #: Where it is, without user name, password and path.
        self.name = address.netloc.rpartition("@")[2]
        self.base_url = f"{address.scheme}://{self.name}{address.path.rstrip('/')}"
        # Held so that, while this client lives, no answer and no error shows them.
        self._secrets = [Secret(value) for value in _credentials(self.headers, address)]
        self._http = Http(wanted_by=wanted_by, timeout=timeout, trust_env=not is_loopback(host), trusted=[host])

    @asynccontextmanager
    async def open(
        self, method: str, path: str, content: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> AsyncGenerator[Received]:
        """Send a request and give its answer, whose body is still to come.

        Raises:
            ExternalToolError: There is no answer, it is a failure, or it breaks off.
        """
        kind = {} if content is None else {"content-type": "application/json"}
        what = _what(method, path)
        try:
            async with self._http.request(
                method, f"{self.base_url}{path}", {**kind, **self.headers, **(headers or {})}, content
            ) as received:
                if received.status >= _FIRST_FAILURE:
                    await self._fail(received, what)
                yield received
        except HttpError as error:
            text = without_secrets(self._told(str(error), what))
            raise ExternalToolError(text, status=error.status) from error

    async def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Return the JSON that a request is answered with; members that are None are not sent.

        Raises:
            ExternalToolError: There is no answer, it is a failure, or it is no JSON.
        """
        given = {name: value for name, value in (query or {}).items() if value is not None}
        to = f"{path}?{urlencode(given)}" if given else path
        content = None if body is None else to_json({name: value for name, value in body.items() if value is not None})
        async with self.open(method, to, content, headers) as received:
            return await self.read(received, _what(method, path))

    async def read(self, received: Received, what: str) -> Any:
        """Return the JSON of an answer, or None if it has no content.

        Raises:
            ExternalToolError: It is no JSON.
        """
        if received.status == _NO_CONTENT:
            return None
        return json_of(await received.read(), what, received.status, self.title)

    def failure(
        self,
        problem: str,
        *,
        body: Any = None,
        retryable: bool | None = None,
        retry_after: float | None = None,
    ) -> ExternalToolError:
        """Return the error of a call that was answered, and answered with a failure."""
        text = without_secrets(f"{self.title} {problem}")
        told = without_secrets(body)
        return ExternalToolError(text, body=told, retryable=retryable, retry_after=retry_after)

    async def _fail(self, received: Received, what: str) -> NoReturn:
        body = await received.read(cut=True)
        try:
            told = from_json(body)
        except ValueError:
            told = body.decode("utf-8", "replace")
        raise ExternalToolError(
            f"{self.title} returned HTTP {received.status} for {what}",
            status=received.status,
            body=without_secrets(told),
            retryable=True if received.status in _MAY_PASS else False if received.status < 500 else None,  # noqa: PLR2004  # a server's own failure
            retry_after=received.retry_after,
        )

    def _told(self, problem: str, what: str) -> str:
        """Return the problem with the request it came from, which stands before the reason in brackets."""
        head, bracket, reason = problem.partition(" (")
        colon = ":" if head.startswith("refusing") else ""
        return f"{self.title}{colon} {head} for {what}{bracket}{reason}"


def _what(method: str, path: str) -> str:
    return f"{method} {path.partition('?')[0]}"


# -- what is sent


def _address(base_url: str) -> SplitResult:
    try:
        address = urlsplit(base_url)
        usable = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except (ValueError, AttributeError, TypeError):
        raise ValueError("base_url must be an address such as https://gateway.example") from None
    if not usable or address.query or address.fragment:
        raise ValueError("base_url must be an http or https address without query, such as https://gateway.example")
    return address


def _is_open(address: SplitResult) -> bool:
    return address.scheme == "http" and not is_loopback(address.hostname or "")


def _headers(given: Mapping[str, str], api_key: tuple[str, str] | None, address: SplitResult) -> dict[str, str]:
    headers = {"accept": "application/json", "user-agent": "toolcrib"}
    if address.username is not None:
        login = f"{unquote(address.username)}:{unquote(address.password or '')}"
        headers["authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
    if api_key:
        headers[api_key[0]] = api_key[1]
    headers |= {name.lower(): value for name, value in given.items()}
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not (value.isascii() and value.isprintable()):
            what = "api_key" if api_key and name == api_key[0] else f"header {name!r:.100}"
            raise ValueError(f"{what} has characters that no HTTP header can carry")
    return headers


_HEADER_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_CREDENTIAL = re.compile(r"(?:authorization|cookie|key|token|secret)$")
_SHORTEST_CREDENTIAL = 8  # shorter ones are words that may stand anywhere


def _credentials(headers: Mapping[str, str], address: SplitResult) -> list[str]:
    found = [value.rpartition(" ")[2] for name, value in headers.items() if _CREDENTIAL.search(name)]
    found.append(unquote(address.password or ""))
    return [value for value in found if len(value) >= _SHORTEST_CREDENTIAL]


def segment(name: str, title: str) -> str:
    """Return a name as one segment of a path, out of which it cannot lead.

    Raises:
        ExternalToolError: No path can have it.
    """
    if name in ("", ".", ".."):
        raise ExternalToolError(f"{title} cannot be asked for a tool named {name!r}: no address would have it")
    try:
        return quote(name, safe="")
    except UnicodeEncodeError:
        raise ExternalToolError(f"{title} cannot be asked for {name!r:.100}: it is no Unicode") from None


def plain(name: str, arguments: Mapping[str, Any], title: str) -> dict[str, Any]:
    """Return the arguments of a call as plain JSON data.

    Raises:
        ExternalToolError: JSON cannot carry them.
    """
    given = dict(arguments)
    if bad := first_unsafe(given, "arguments"):
        raise ExternalToolError(f"{title} cannot be sent the arguments of {name!r:.100}: {': '.join(bad)}")
    return given


# -- what comes back


def json_of(body: bytes, what: str, status: int, title: str) -> Any:
    """Return what a body of JSON says.

    Raises:
        ExternalToolError: It is no JSON.
    """
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ExternalToolError(
            f"{title} returned invalid JSON for {what}: it is not UTF-8",
            status=status,
            body=without_secrets(body.decode("utf-8", "replace")),
        ) from None
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        problem = f"{title} returned invalid JSON for {what}: {error}"
        raise ExternalToolError(problem, status=status, body=without_secrets(text)) from None
