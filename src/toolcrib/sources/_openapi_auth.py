"""The security schemes of a document, and the credentials a developer gave for them."""

from __future__ import annotations

import base64
import inspect
import logging
import os
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias, cast
from urllib.parse import quote, quote_plus

from toolcrib._secrets import Secret, any_secrets, redacted
from toolcrib.errors import ToolExecutionError
from toolcrib.sources._openapi_document import Document, Lost, as_list, as_map

__all__ = ["Auth", "Credential", "Credentials", "Environment", "Scheme", "Sent", "requirements_of", "schemes_of"]

Credential: TypeAlias = "str | Secret | tuple[str | Secret, str | Secret]"
Auth: TypeAlias = (
    "Credential | Mapping[str, Credential] | Callable[[str], Credential | Awaitable[Credential | None] | None] | None"
)


class Scheme(NamedTuple):
    """One security scheme.

    Args:
        name: What the document calls it.
        kind: `key`, `basic`, `bearer`, or `none` for one that no request can carry.
        location: Where a key goes: `header`, `query` or `cookie`.
        key: What it is called there; of another HTTP scheme, that scheme's word.
        words: What it is, for people.
    """

    name: str
    kind: str
    location: str
    key: str
    words: str


class Sent(NamedTuple):
    """What a request carries because of its credentials."""

    headers: dict[str, str]
    query: list[tuple[str, str]]
    cookies: list[tuple[str, str]]


def schemes_of(document: Document) -> dict[str, Scheme]:
    """Return the security schemes that a document declares."""
    declared = as_map(as_map(document.root.get("components")).get("securitySchemes"))
    found = dict[str, Scheme]()
    for name, node in declared.items():
        try:
            found[name] = _scheme(name, document.resolved(node, document.base).node)
        except Lost:
            found[name] = _unknown(name)
    return found


def requirements_of(node: Any) -> tuple[tuple[str, ...], ...] | None:
    """Return the alternatives of a `security`, each the names of the schemes it takes together; None where none is."""
    if not isinstance(node, list):
        return None
    return tuple(tuple(cast("dict[str, Any]", one)) for one in as_list(node) if isinstance(one, dict))


def _scheme(name: str, node: Mapping[str, Any]) -> Scheme:
    kind, location, key = node.get("type"), node.get("in"), node.get("name")
    if kind == "apiKey" and location in ("header", "query", "cookie") and isinstance(key, str) and key:
        return Scheme(name, "key", cast("str", location), key, f"an API key in the {location} {key}")
    if kind in ("oauth2", "openIdConnect"):
        return Scheme(name, "bearer", "header", "Bearer", f"an access token of {kind}")
    if kind == "http":
        word = str(node.get("scheme", "")).strip()
        if word.lower() == "basic":
            return Scheme(name, "basic", "header", "Basic", "a user name and password")
        return Scheme(name, "bearer", "header", word.title() or "Bearer", f"a {word or 'bearer'} token")
    if kind == "mutualTLS":
        return Scheme(name, "none", "", "", "a client certificate, which cannot be sent from here")
    return _unknown(name)


def _unknown(name: str) -> Scheme:
    return Scheme(name, "bearer", "header", "Bearer", "a scheme the document does not declare")


class Environment:
    """Credentials in environment variables: a prefix and a scheme's name, or the prefix alone for all others."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def variable(self, scheme: str) -> str:
        """Return the variable of a scheme."""
        return f"{self.prefix}_{re.sub(r'[^A-Za-z0-9]', '_', scheme).upper()}"

    def __call__(self, scheme: str) -> str | None:
        """Return the credential of a scheme, as the environment has it at that time."""
        return os.environ.get(self.variable(scheme)) or os.environ.get(self.prefix)


class Credentials:
    """What a developer gave: one credential for every scheme, some by name, or a function that is asked.

    Args:
        auth: The credentials.
        headers: Headers that every request carries; a scheme that one of them answers needs no more.
    """

    def __init__(self, auth: Auth, headers: Mapping[str, str]) -> None:
        self._auth = _kept(cast("Any", auth))
        #: The schemes that credentials were given for by name.
        self.names = tuple(cast("dict[str, Any]", auth)) if isinstance(auth, Mapping) else ()
        self._headers = headers
        # Held while they may be echoed, so that no answer and no error shows them.
        self._held: OrderedDict[str, list[Secret]] = OrderedDict()

    def __repr__(self) -> str:
        """Return a text that gives nothing away."""
        return "Credentials(***)"

    async def sent(self, alternatives: tuple[tuple[str, ...], ...], schemes: Mapping[str, Scheme], what: str) -> Sent:
        """Return what a request carries: the credentials of the first alternative they are there for.

        Raises:
            ToolExecutionError: There are not the credentials that any of them takes.
        """
        missing = list[Scheme]()
        for alternative in sorted(alternatives, key=lambda names: not names):  # none at all is the last resort
            sent, lacking = Sent({}, [], []), list[Scheme]()
            for name in alternative:
                scheme = schemes.get(name) or _unknown(name)
                if not self._is_answered(scheme) and not await self._add(sent, scheme):
                    lacking.append(scheme)
            if not lacking:
                return sent
            missing = missing or lacking
        if not missing:
            return await self._undeclared(schemes)
        told = " and ".join(f"{scheme.name!r} ({scheme.words})" for scheme in missing)
        raise ToolExecutionError(
            f"{what} needs credentials that were not given: {told}. "
            f"Whoever set up this tool has to {self._way([scheme.name for scheme in missing])}; no argument of it can."
        )

    def _way(self, names: list[str]) -> str:
        if isinstance(self._auth, Environment):
            return f"set {' and '.join(map(self._auth.variable, names))} in its environment"
        return f"pass auth={{{', '.join(f'{name!r}: ...' for name in names)}}}"

    async def _undeclared(self, schemes: Mapping[str, Scheme]) -> Sent:
        """Return a plain token as a bearer, where a document that declares nothing cannot say what it is for."""
        sent = Sent({}, [], [])
        if not schemes and isinstance(self._auth, str | Secret | tuple):
            await self._add(sent, _unknown(""))
        return sent

    def _is_answered(self, scheme: Scheme) -> bool:
        name = scheme.key if scheme.kind == "key" else "authorization"
        return scheme.kind != "none" and scheme.location == "header" and name.lower() in self._headers

    async def _add(self, sent: Sent, scheme: Scheme) -> bool:
        credential = await self._credential(scheme.name)
        if credential is None or scheme.kind == "none":
            return False
        texts = [_revealed(part) for part in (credential if isinstance(credential, tuple) else (credential,))]
        value = ":".join(texts)
        written = _written(scheme, value)
        self._hold(scheme.name, [*texts, value, written, quote(value, safe=""), quote_plus(value)])
        if not (written.isascii() and written.isprintable()) and scheme.location != "query":
            raise ToolExecutionError(f"the credentials of {scheme.name!r} have characters that no header can carry")
        if scheme.kind != "key":
            sent.headers["authorization"] = f"{scheme.key} {written}"
        elif scheme.location == "header":
            sent.headers[scheme.key.lower()] = written
        elif scheme.location == "query":
            _keep_addresses_out_of_logs()
            sent.query.append((scheme.key, written))
        else:
            sent.cookies.append((scheme.key, written))
        return True

    async def _credential(self, name: str) -> Credential | None:
        found: Any = self._auth
        if isinstance(found, Mapping):
            found = cast("Mapping[str, Any]", found).get(name)
        elif callable(found):
            found = found(name)
            if inspect.isawaitable(found):
                found = await found
        if found is not None and not _is_credential(found):
            kind = type(cast("object", found)).__name__
            raise ToolExecutionError(f"the credentials of {name!r} are text or (user, password), not {kind}")
        return cast("Credential | None", found or None)

    def _hold(self, name: str, values: Iterable[str]) -> None:
        wanted = [value for value in dict.fromkeys(values) if len(value) >= _SHORTEST]
        if [secret.reveal() for secret in self._held.get(name, ())] != wanted:
            self._held[name] = [Secret(value) for value in wanted]


_SHORTEST = 6  # a shorter one is a word that may stand anywhere


def _kept(auth: Any) -> Any:
    """Return what was given, as it is, with its kind checked.

    Raises:
        TypeError: It is nothing that can be a credential; it is not shown.
    """
    if isinstance(auth, Mapping):
        given: dict[str, Any] = {
            str(name): value for name, value in cast("Mapping[Any, Any]", auth).items() if value is not None
        }
        if not all(map(_is_credential, given.values())):
            raise TypeError("auth maps names of security schemes to text, Secrets or (user, password)")
        return given
    if auth is None or _is_credential(auth) or callable(auth):
        return cast("Any", auth)
    kind = type(cast("object", auth)).__name__
    raise TypeError(f"auth is text, a Secret, (user, password), a mapping of them, or a function, not {kind}")


def _is_credential(value: Any) -> bool:
    if isinstance(value, tuple):
        pair = cast("tuple[Any, ...]", value)
        return len(pair) == 2 and all(isinstance(part, str | Secret) for part in pair)  # noqa: PLR2004  # user and password
    return isinstance(value, str | Secret)


def _revealed(part: str | Secret) -> str:
    return part.reveal() if isinstance(part, Secret) else part


def _written(scheme: Scheme, value: str) -> str:
    return base64.b64encode(value.encode()).decode() if scheme.kind == "basic" else value.strip()


# -- logs


def _keep_addresses_out_of_logs() -> None:
    """Keep the HTTP library, which logs every address it asks, from logging the keys in them."""
    logger = logging.getLogger("httpx2")
    if _without_secrets not in logger.filters:
        logger.addFilter(_without_secrets)


def _without_secrets(record: logging.LogRecord) -> bool:
    if any_secrets():
        record.msg, record.args = redacted(record.getMessage()), None
    return True
