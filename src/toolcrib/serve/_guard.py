"""Who may ask a server of tools: by host, by origin, by token."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from pydantic_core import to_json

from toolcrib._secrets import Secret

__all__ = ["ANY_HOST", "LOOPBACK_HOSTS", "Guard", "secret_token"]

_Scope: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_App: TypeAlias = Callable[[_Scope, _Receive, _Send], Awaitable[None]]

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
ANY_HOST = "*"


class _Objection(NamedTuple):
    status: int
    kind: str
    message: str


class Guard:
    """ASGI middleware that lets through only requests for a known host, from a known origin, with the token.

    A page in somebody's browser can reach this machine by a name of its own (DNS rebinding), but not
    under a host or from an origin that is expected here.

    Args:
        app: The application behind it.
        token: What `Authorization: Bearer ...` must hold; None asks for none.
        hosts: Names this server may be addressed by, without port; `*` for any.
        origins: Web origins, such as `https://app.example`, that may ask besides the server's own.
        public: Paths that need no token.
    """

    def __init__(
        self, app: _App, *, token: Secret | None, hosts: Iterable[str], origins: Iterable[str], public: Iterable[str]
    ) -> None:
        self._app = app
        self._token = None if token is None else _digest(token.reveal().encode())
        self._hosts = frozenset(_bare(host) for host in hosts)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)
        self._public = frozenset(public)

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """Answer the request, or pass it on."""
        objection = self._objection(scope) if scope["type"] in ("http", "websocket") else None
        if objection is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await _refuse(objection, send)

    def _objection(self, scope: _Scope) -> _Objection | None:
        host, origin = _only(scope, b"host"), _only(scope, b"origin")
        if ANY_HOST not in self._hosts and (host is None or _bare(host) not in self._hosts):
            return _Objection(421, "denied", f"this server does not answer for the host {host!r:.100}")
        if origin is not None and not self._is_known(origin, host):
            return _Objection(403, "denied", f"pages of the origin {origin!r:.100} may not ask this server")
        if self._token is None or scope["path"].removeprefix(scope.get("root_path", "")) in self._public:
            return None
        scheme, _, given = (_only(scope, b"authorization") or "").partition(" ")
        right = hmac.compare_digest(_digest(given.strip().encode("utf-8", "replace")), self._token)
        if scheme.lower() == "bearer" and right:
            return None
        return _Objection(401, "denied", "this server wants its token as Authorization: Bearer ...")

    def _is_known(self, origin: str, host: str | None) -> bool:
        own = urlsplit(origin.lower()).netloc
        return origin.lower() in self._origins or (bool(own) and own == (host or "").lower())


def secret_token(token: str | Secret | None) -> Secret | None:
    """Return the token as a secret, so that no answer shows it.

    Raises:
        ValueError: It is empty.
    """
    if token is None:
        return None
    value = token.reveal() if isinstance(token, Secret) else token
    if not value.strip():
        raise ValueError("a token must not be empty; pass None to ask for none")
    return Secret(value.strip())


def _digest(value: bytes) -> bytes:
    return hashlib.sha256(value).digest()  # of one length, so that comparing tells nothing of the token's


def _only(scope: _Scope, name: bytes) -> str | None:
    """Return a header that stands there exactly once."""
    found = [value for key, value in scope["headers"] if key == name]
    return found[0].decode("latin-1") if len(found) == 1 else "" if found else None


def _bare(host: str) -> str:
    """Return a host without its port, as it is compared."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host if host.count(":") > 1 else host.partition(":")[0].rstrip(".")


async def _refuse(objection: _Objection, send: _Send) -> None:
    body = to_json({"error": {"kind": objection.kind, "message": objection.message}})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if objection.status == 401:  # noqa: PLR2004  # the one that must say how to ask
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": objection.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
