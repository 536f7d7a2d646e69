"""Tools of an HTTP API that an OpenAPI document describes: one operation, one tool."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from toolcrib._secrets import Secret
from toolcrib.sources._openapi_auth import Auth, Credentials
from toolcrib.sources._openapi_calls import Caller, address_of
from toolcrib.sources._openapi_document import Clients, Document, Place, shown
from toolcrib.sources._openapi_import import Import, OpenAPILine, OpenAPIReport, Options, warn_of
from toolcrib.tools import Tool

__all__ = ["OpenAPI", "OpenAPILine", "OpenAPIReport"]


class OpenAPI:
    """The operations of an OpenAPI 3 document as tools that call the API.

    Put it in `tools=[...]`. The document is read when the tools are first asked for, and again once it has changed.

    Args:
        document: A path, an http(s) address, or the document as data. JSON or YAML.
        base_url: Where the API is, in place of every server the document names.
        include: The only operations to take, by exact `operationId` (or `METHOD /path` where there is none).
        exclude: Operations to leave out, by exact `operationId`.
        name_prefix: What to put before each name, after `include` and `exclude` were applied, as in `shop.`.
        allow: The only tools to take, by glob on the name with its prefix.
        deny: Tools to leave out, by glob on the name with its prefix.
        auth: Credentials: one for every security scheme, a mapping by the schemes' names, or a function
            that is asked for each call with a scheme's name, and may be async. A credential is text, a Secret or,
            for a user name and password, a pair of them. No model ever sees one.
        headers: Sent with every request; a parameter of that name is then not asked of the model.
        server_variables: Values for the variables in the addresses of servers.
        timeout: Seconds one request may take in all; None for no end.
        validate: Whether arguments are checked here against the operation's schema before they are sent.
        allow_insecure: Whether credentials may be sent over plain http to another machine.

    Raises:
        OpenAPIError: `document` looks like an address and is none.
        TypeError: `document` or `auth` is nothing that can be one.
        ValueError: `base_url`, a header or `timeout` is none.
        MissingExtraError: The `openapi` extra is not installed.
    """

    def __init__(
        self,
        document: str | Path | Mapping[str, Any],
        *,
        base_url: str | None = None,
        include: str | Iterable[str] | None = None,
        exclude: str | Iterable[str] | None = (),
        name_prefix: str = "",
        allow: str | Iterable[str] | None = None,
        deny: str | Iterable[str] | None = (),
        auth: Auth = None,
        headers: Mapping[str, str | Secret] | None = None,
        server_variables: Mapping[str, str] | None = None,
        timeout: float | None = 30.0,
        validate: bool = True,
        allow_insecure: bool = False,
    ) -> None:
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout is a number of seconds above 0, or None, not {timeout!r:.100}")
        address = "" if base_url is None else _address(base_url)
        given, self._secrets = _headers(headers or {})
        clients = Clients(timeout, [address, document if isinstance(document, str) else ""])
        self._place = Place(document, given if _same_host(document, address) else {}, clients)
        self._read: _Reading | None = None
        self.origin = f"openapi:{shown(self._place.name).rstrip('/').rpartition('/')[2]}"
        credentials = Credentials(auth, given)
        self._options = Options(
            origin=self.origin,
            base_url=address,
            server_variables=dict(server_variables or {}),
            names=(None if include is None else _texts(include), _texts(exclude or ())),
            prefix=name_prefix,
            globs=(None if allow is None else _texts(allow), _texts(deny or ())),
            headers=frozenset(given),
            credentials=credentials,
            caller=Caller(credentials, given, clients, has_secrets=bool(self._secrets), allow_insecure=allow_insecure),
            validate=validate,
        )

    def __repr__(self) -> str:
        """Return a text that names the document."""
        return f"<OpenAPI {self.origin}>"

    def as_tools(self) -> list[Tool]:
        """Return the tools as the document describes them now; what is no tool is left out with a warning.

        Raises:
            OpenAPIError: The document cannot be read, or is none.
        """
        if self._read is None or self._read.document.has_changed():
            self._read = self._reading()
            warn_of(self._read.report, self.origin)
        return list(self._read.tools)

    @property
    def report(self) -> OpenAPIReport:
        """What became of every operation when the document was last read; it is read if it never was.

        Raises:
            OpenAPIError: The document cannot be read, or is none.
        """
        if self._read is None:
            self._read = self._reading()
        return self._read.report

    def _reading(self) -> _Reading:
        document = Document(self._place)
        tools, report = Import(document, self._options).run()
        document.forget()
        return _Reading(document, tools, report)


class _Reading(NamedTuple):
    document: Document
    tools: list[Tool]
    report: OpenAPIReport


def _texts(names: str | Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _address(base_url: str) -> str:
    address, problem = address_of(base_url)
    if problem:
        raise ValueError(
            "base_url must be an http or https address without login and query, such as https://api.example"
        )
    return address


def _same_host(document: Any, address: str) -> bool:
    """Whether the document is where the API is, so that what the API is sent may be sent along for the document."""
    if not isinstance(document, str) or not address:
        return False
    return (
        document.partition("://")[0] == urlsplit(address).scheme
        and urlsplit(document).netloc == urlsplit(address).netloc
    )


def _headers(given: Mapping[str, str | Secret]) -> tuple[dict[str, str], list[Secret]]:
    """Return headers in lower case, and those of their values that no answer and no error may show."""
    headers, secrets = dict[str, str](), list[Secret]()
    for name, value in given.items():
        text = value.reveal() if isinstance(value, Secret) else value
        if not _HEADER_NAME.fullmatch(name) or not (text.isascii() and text.isprintable()):
            raise ValueError(f"header {name!r:.100} has characters that no HTTP header can carry")
        headers[name.lower()] = text
        if isinstance(value, Secret) or _CREDENTIAL.search(name.lower()):
            secrets += [Secret(part) for part in {text, text.rpartition(" ")[2]} if len(part) >= _SHORTEST_CREDENTIAL]
    return headers, secrets


_HEADER_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_CREDENTIAL = re.compile(r"(?:authorization|cookie|key|token|secret)$")
_SHORTEST_CREDENTIAL = 8  # shorter ones are words that may stand anywhere
