"""Calls of operations: one request to the API, one answer read from it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, NoReturn
from urllib.parse import quote, urljoin, urlsplit

from pydantic_core import from_json, to_json

from toolcrib._http import HttpError, Received, is_loopback
from toolcrib._portal import portal
from toolcrib._secrets import redacted, without_secrets
from toolcrib.errors import ExternalToolError, ToolArgumentError
from toolcrib.sources._openapi_auth import Credentials, Scheme
from toolcrib.sources._openapi_document import Clients, as_list, as_map
from toolcrib.sources._openapi_requests import Plan

__all__ = ["Call", "Caller", "address_of", "server_of"]


class Call(NamedTuple):
    """All that a call of one operation needs.

    Args:
        what: The method and the path's template, for people.
        method: In capitals.
        server: Where the API is; empty when nobody knows.
        problem: Why nobody knows.
        plan: How arguments become a request.
        security: The alternatives of credentials, each the names of the schemes it takes.
        accept: The media types of the answers it promises.
    """

    what: str
    method: str
    server: str
    problem: str
    plan: Plan
    security: tuple[tuple[str, ...], ...]
    accept: str


class Caller:
    """Makes the requests of one source.

    Args:
        credentials: What the developer gave.
        headers: What every request carries.
        clients: What makes the requests.
        has_secrets: Whether the headers hold credentials.
        allow_insecure: Whether credentials may be sent over plain http to another machine.
    """

    def __init__(
        self,
        credentials: Credentials,
        headers: Mapping[str, str],
        clients: Clients,
        *,
        has_secrets: bool,
        allow_insecure: bool,
    ) -> None:
        self._credentials = credentials
        self._headers = headers
        self._clients = clients
        self._has_secrets = has_secrets
        self._allow_insecure = allow_insecure

    def trust(self, urls: Iterable[str]) -> None:
        """Let the hosts of these addresses be anywhere, also outside the public network."""
        self._clients.trust(urls)

    def function(self, call: Call, schemes: Mapping[str, Scheme]) -> Callable[..., Any]:
        """Return the function of one tool."""
        if call.server:
            self._clients.of(call.server)

        async def request(**arguments: Any) -> Any:
            return await self._called(call, schemes, arguments)

        return request

    async def _called(self, call: Call, schemes: Mapping[str, Scheme], arguments: Mapping[str, Any]) -> Any:
        if not call.server:
            raise ExternalToolError(f"{call.what} has no address: {call.problem}")
        request = call.plan.request(arguments)
        sent = await self._credentials.sent(call.security, schemes, call.what)
        url = call.server + request.path
        for name, value in sent.query:
            url += f"{'&' if '?' in url else '?'}{quote(name, safe='')}={quote(value, safe='')}"
        _check_origin(call.server, url)
        headers = {"accept": call.accept, "user-agent": "toolcrib", **request.headers, **self._headers, **sent.headers}
        if cookies := [*request.cookies, *sent.cookies]:
            pairs = [f"{quote(name, safe=_COOKIE)}={quote(value, safe=_COOKIE)}" for name, value in cookies]
            headers["cookie"] = "; ".join([*filter(None, [headers.get("cookie")]), *pairs])
        self._check_secure(call, bool(sent.headers or sent.query or sent.cookies))
        return await portal().acall(self._exchange, call, url, headers, request.content)

    def _check_secure(self, call: Call, has_credentials: bool) -> None:  # noqa: FBT001  # one fact of the request
        address = urlsplit(call.server)
        is_open = address.scheme == "http" and not is_loopback(address.hostname or "")
        if is_open and not self._allow_insecure and (has_credentials or self._has_secrets):
            raise ExternalToolError(
                f"{call.what} is refused: credentials would go over plain http to {address.hostname}; "
                "whoever set up this tool has to use https, or pass allow_insecure=True"
            )

    # -- on the background loop

    async def _exchange(self, call: Call, url: str, headers: Mapping[str, str], content: bytes | None) -> Any:
        try:
            async with self._clients.of(url).request(call.method, url, headers, content) as received:
                if received.status >= _FIRST_FAILURE:
                    await _fail(received, call.what)
                return _value(await received.read(), received.content_type)
        except HttpError as error:
            head, colon = ("", ": ") if str(error).startswith("refusing") else (" ", "")
            hint = (
                "; whoever set up this tool names its host with base_url=" if "refusing to reach" in str(error) else ""
            )
            text = f"{call.what}{colon or head}{error}{hint}"
            raise ExternalToolError(redacted(text.replace(url, call.what)), status=error.status) from None


_FIRST_FAILURE = 300  # what is left of redirects here leads nowhere
_COOKIE = "!#$%&'()*+-./:<=>?@[]^_`{|}~"


def _check_origin(server: str, url: str) -> None:
    """Refuse an address that is not below the server's: what built it should have made that impossible."""
    base, made = urlsplit(server), urlsplit(url)
    if (made.scheme, made.netloc) != (base.scheme, base.netloc) or not made.path.startswith(base.path):
        raise ToolArgumentError("the arguments would lead to another host or path")


# -- answers


async def _fail(received: Received, what: str) -> NoReturn:
    body = await received.read(cut=True)
    told = _json_or_text(body)
    text = told if isinstance(told, str) else to_json(told).decode()
    said = " ".join(text.split()) if "<html" in text[:_HEAD].lower() else text.strip()
    short = f"{said[:_LONGEST_DETAIL]}…" if len(said) > _LONGEST_DETAIL else said
    message = f"{what} answered HTTP {received.status}{f': {short}' if short else ''}"
    raise ExternalToolError(redacted(message), status=received.status, body=without_secrets(told))


_HEAD = 1_000
_LONGEST_DETAIL = 2_000


def _value(body: bytes, content_type: str) -> Any:
    """Return what an answer holds: JSON data, text, an image or sound as a part, anything else as bytes."""
    if not body:
        return None
    major = content_type.partition("/")[0]
    if content_type.endswith(("/json", "+json")) or not content_type:
        return _json_or_text(body)
    if major in ("image", "audio") and not content_type.endswith("xml"):
        return {"type": major, "data": base64.b64encode(body).decode(), "mimeType": content_type}
    if major == "text" or content_type.endswith(_TEXTS):
        return _text(body)
    return body


_TEXTS = ("xml", "yaml", "javascript", "ndjson", "jsonl", "x-www-form-urlencoded", "csv", "graphql", "toml")


def _json_or_text(body: bytes) -> Any:
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError:
        return _text(body)


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        return body.decode("latin-1")


# -- servers


def server_of(levels: list[Any], place: str, variables: Mapping[str, str]) -> tuple[str, str]:
    """Return where an operation is to be found, or an empty address and why there is none.

    Args:
        levels: The `servers` of the operation, its path and the document.
        place: Where the document is, if it is an address, for servers that are told relative to it.
        variables: Values for the variables of servers, in place of their defaults.
    """
    servers = next((as_list(level) for level in levels if as_list(level)), [{"url": "/"}])
    problem = ""
    for server in map(as_map, servers):
        url, problem = _usable(server, place, variables)
        if url:
            return url, ""
    return "", problem


def _usable(server: Mapping[str, Any], place: str, variables: Mapping[str, str]) -> tuple[str, str]:
    url = server.get("url")
    if not isinstance(url, str):
        return "", "its server has no url; pass base_url="
    for name, told in as_map(server.get("variables")).items():
        allowed, value = as_list(as_map(told).get("enum")), variables.get(name, as_map(told).get("default", ""))
        if allowed and value not in allowed and name in variables:
            return "", f"the server variable {name!r:.100} may be {', '.join(map(str, allowed))[:200]}"
        url = url.replace(f"{{{name}}}", str(value))
    return address_of(urljoin(place, url) if place else url)


def address_of(url: str) -> tuple[str, str]:
    """Return an address without a slash at its end, or an empty one and what is wrong with it."""
    try:
        address = urlsplit(url)
        usable = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:
        return "", f"its server {url!r:.100} is no address; pass base_url="
    if not usable:
        return "", f"its server {url!r:.100} does not say on which host it is; pass base_url="
    if "@" in address.netloc or address.query or address.fragment or "{" in url or "\\" in url or not url.isprintable():
        return "", f"its server {url.rpartition('@')[2]!r:.100} is no plain address; pass base_url="
    path = urlsplit(urljoin(url, address.path or "/")).path
    return f"{address.scheme}://{address.netloc}{quote(path.rstrip('/'), safe=_PATH)}", ""


_PATH = "/:@!$&'()*+,;=~-._%"
