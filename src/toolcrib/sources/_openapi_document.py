"""An OpenAPI document: where it is read, and where its references lead."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from toolcrib._http import Http, HttpError, is_loopback, without_login
from toolcrib._portal import portal
from toolcrib._secrets import redacted
from toolcrib.errors import OpenAPIError
from toolcrib.limits import CATALOGUE_SECONDS, MAX_DOCUMENT_BYTES, MAX_DOCUMENT_FILES
from toolcrib.sources._openapi_text import parsed, plain

__all__ = ["Clients", "Document", "Found", "Lost", "Place", "as_list", "as_map", "shown"]


def as_map(node: Any) -> dict[str, Any]:
    """Return `node` if it is an object, else an empty one."""
    return cast("dict[str, Any]", node) if isinstance(node, dict) else {}


def as_list(node: Any) -> list[Any]:
    """Return `node` if it is a list, else an empty one."""
    return cast("list[Any]", node) if isinstance(node, list) else []


class Lost(Exception):  # noqa: N818  # no error of ours: whoever follows a reference decides what it means
    """A reference that leads nowhere, or where it may not."""


class Found(NamedTuple):
    """What a reference leads to.

    Args:
        node: The value there.
        base: The file it is in, by which its own references go.
        pointer: The reference in full, the same for the same place.
    """

    node: Any
    base: str
    pointer: str


class Clients:
    """The HTTP clients of one source: proxies of the environment are used, but not for this machine.

    Args:
        timeout: Seconds one request may take.
        urls: Addresses that the developer named, whose hosts may be anywhere; any other must be public.
    """

    def __init__(self, timeout: float | None, urls: Iterable[str]) -> None:
        self._timeout = timeout
        self._trusted: frozenset[str] = frozenset()
        self._made: dict[bool, Http] = {}
        self.trust(urls)

    def trust(self, urls: Iterable[str]) -> None:
        """Add the hosts of more addresses to those that may be anywhere."""
        hosts = self._trusted | {host for url in urls if (host := _host(url))}
        if hosts != self._trusted:
            self._trusted = hosts
            self._made.clear()

    def of(self, url: str) -> Http:
        """Return the client for an address. Ask for it before there is an event loop: making one takes a while."""
        local = is_loopback(_host(url))
        if local not in self._made:
            trusted = self._trusted
            self._made[local] = Http(wanted_by="OpenAPI", timeout=self._timeout, trust_env=not local, trusted=trusted)
        return self._made[local]


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


class Place:
    """Where a document is: a file, an address, or only in memory.

    Args:
        given: A path, an http(s) address, or the document itself.
        headers: What to send along with a request for an address.
        clients: What makes the requests.

    Raises:
        OpenAPIError: An address that is none.
        TypeError: It is none of these.
    """

    def __init__(self, given: Any, headers: Mapping[str, str], clients: Clients) -> None:
        self.data: Mapping[str, Any] | None = None
        self.name = "the document"
        self._http: Http | None = None
        self._headers = headers
        if isinstance(given, Mapping):
            self.data = cast("Mapping[str, Any]", given)
        elif isinstance(given, str) and given.startswith(("http://", "https://")):
            self.name = _address(given)
            self._http = clients.of(self.name)
        elif isinstance(given, str | Path):
            self.name = str(Path(given).absolute())
        else:
            raise TypeError(f"a document is a path, an address or a mapping, not {type(given).__name__}")
        self.is_url = self._http is not None

    def read(self, name: str) -> bytes:
        """Return the text at one place, which `beside` allowed, or at the document's own.

        Raises:
            OpenAPIError: It cannot be read.
        """
        return self._fetched(name) if self._http is not None else _file(Path(name))

    def beside(self, reference: str, base: str) -> str:
        """Return the place that a reference from one at `base` leads to.

        Raises:
            Lost: It leaves the document's folder, or its host.
        """
        if self.data is not None:
            raise Lost(f"{reference!r:.200} is not followed: a document given as data has no place")
        if self.is_url:
            place = urljoin(base, reference)
            if _origin(place) != _origin(self.name) or "@" in urlsplit(place).netloc:
                raise Lost(f"{reference!r:.200} is not followed: it leaves the document's host")
            return place
        if urlsplit(reference).scheme or reference.startswith(("/", "\\")):
            raise Lost(f"{reference!r:.200} is not followed: only files beside the document are")
        path = Path(base).parent.joinpath(unquote(reference)).resolve()
        if not path.is_relative_to(Path(self.name).resolve().parent):
            raise Lost(f"{reference!r:.200} is not followed: it leaves the document's folder")
        return str(path)

    def _fetched(self, url: str) -> bytes:
        try:
            return portal().call(self._body, url)
        except HttpError as error:
            raise OpenAPIError(redacted(f"{shown(url)} {error}")) from None

    async def _body(self, url: str) -> bytes:
        if self._http is None:
            raise OpenAPIError(f"{shown(url)} is no address")
        headers = {"accept": "application/json, application/yaml, */*;q=0.5", "user-agent": "toolcrib"}
        async with self._http.request("GET", url, {**headers, **self._headers}) as received:
            if received.status >= _FIRST_FAILURE:
                raise HttpError(f"answered HTTP {received.status}", received.status)
            return await received.read()


_FIRST_FAILURE = 300


def shown(url: str) -> str:
    """Return an address, or path, without login and query: either may hold credentials."""
    return without_login(url).partition("?")[0]


def _address(given: str) -> str:
    try:
        address = urlsplit(given)
        usable = bool(address.hostname) and address.port != 0 and "@" not in address.netloc
    except ValueError:
        usable = False
    if not usable:
        raise OpenAPIError(f"{shown(given)!r:.200} is no address: write https://host/openapi.json, without a login")
    return urldefrag(given)[0]


def _origin(url: str) -> tuple[str, str]:
    try:
        address = urlsplit(url)
    except ValueError:
        raise Lost(f"{url!r:.200} is no address") from None
    return address.scheme, address.netloc.lower()


def _file(path: Path) -> bytes:
    try:
        if not path.is_file():
            problem = "is a folder" if path.is_dir() else "is no file" if path.exists() else "does not exist"
            raise OpenAPIError(f"{path} {problem}")
        with path.open("rb") as file:
            return file.read(min(os.fstat(file.fileno()).st_size, MAX_DOCUMENT_BYTES) + 1)
    except OSError as error:
        raise OpenAPIError(f"{path} cannot be read: {error.strerror or error}") from None


class Document:
    """One reading of a document, and of the files it refers to, each of which is read when it is first needed.

    Args:
        place: Where it is.

    Raises:
        OpenAPIError: It cannot be read, or is no OpenAPI document of version 3.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._until = time.monotonic() + CATALOGUE_SECONDS
        self._files: dict[str, Any] = {}
        self._problems: dict[str, str] = {}
        self._digests: dict[str, bytes] = {}
        self.base = place.name
        self.root = self._checked(self._loaded(self.base))

    @property
    def address(self) -> str:
        """Where the document is, if that is an address."""
        return self._place.name if self._place.is_url else ""

    @property
    def version(self) -> str:
        """What `openapi` says, such as `3.0.3`."""
        return str(self.root["openapi"])

    def has_changed(self) -> bool:
        """Whether any of the files reads otherwise than it did."""
        if self._place.data is not None:
            return False
        return any(hashlib.sha256(self._place.read(name)).digest() != held for name, held in self._digests.items())

    def forget(self) -> None:
        """Drop what was read; only whether it has changed can still be asked."""
        self.root = {}
        self._files.clear()

    def resolve(self, reference: Any, base: str) -> Found:
        """Return what a `$ref` leads to, through references to references.

        Raises:
            Lost: It leads nowhere, in a circle, or where it may not.
        """
        followed = set[str]()
        while True:
            found = self._step(reference, base)
            inner = as_map(found.node).get("$ref")
            if not isinstance(inner, str) or len(as_map(found.node)) > 1:
                return found
            if found.pointer in followed:
                raise Lost(f"{reference!r:.200} leads in a circle")
            followed.add(found.pointer)
            reference, base = inner, found.base

    def resolved(self, node: Any, base: str) -> Found:
        """Return an object, or what it stands for if it is a reference.

        Raises:
            Lost: It is a reference that leads nowhere, or no object at all.
        """
        found, seen = Found(node, base, ""), 0
        while isinstance(reference := as_map(found.node).get("$ref"), str):
            found, seen = self.resolve(reference, found.base), seen + 1
            if seen > _MOST_STEPS:
                raise Lost(f"{reference!r:.200} leads in a circle")
        if not isinstance(found.node, dict):
            raise Lost(f"{_kind(found.node)} stands where an object should")
        return found

    def _step(self, reference: Any, base: str) -> Found:
        if not isinstance(reference, str):
            raise Lost(f"a $ref is {_kind(reference)}, not text")
        file, _, fragment = reference.partition("#")
        place = self._place.beside(file, base) if file else base
        if place not in self._files:
            self._load(place, reference)
        node = self._files[place]
        if fragment and not fragment.startswith("/"):
            raise Lost(f"{reference!r:.200} leads nowhere")
        for part in fragment.split("/")[1:]:
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            node = _member(node, key, reference)
        return Found(node, place, f"{place}#{unquote(fragment)}")

    def _load(self, place: str, reference: str) -> None:
        if place not in self._problems:
            try:
                self._loaded(place)
            except OpenAPIError as error:
                self._problems[place] = str(error)
        if place in self._problems:
            raise Lost(f"{reference!r:.200} cannot be followed: {self._problems[place]}")

    def _loaded(self, place: str) -> Any:
        if len(self._files) + len(self._problems) >= MAX_DOCUMENT_FILES:
            raise OpenAPIError(f"more than {MAX_DOCUMENT_FILES} files belong to it")
        if time.monotonic() > self._until:
            raise OpenAPIError(f"reading it took longer than {CATALOGUE_SECONDS:g} seconds")
        if self._place.data is not None:
            data = plain(self._place.data, "the document")
        else:
            text = self._place.read(place)
            self._digests[place] = hashlib.sha256(text).digest()
            data = parsed(text, shown(place))
        self._files[place] = data
        return data

    def _checked(self, data: Any) -> dict[str, Any]:
        name, members = shown(self.base), as_map(data)
        if "swagger" in members:
            said = str(members["swagger"])
            raise OpenAPIError(f"{name} is Swagger {said:.20}: convert it to OpenAPI 3, as swagger2openapi does")
        version = members.get("openapi")
        if not str(version).startswith("3."):  # which YAML reads as a number when there are no quotes
            said = "says nothing of a version" if version is None else f"says version {version!s:.20}"
            raise OpenAPIError(f"{name} is no OpenAPI document of version 3.0 or 3.1: it {said}")
        return members


_MOST_STEPS = 50


def _member(node: Any, key: str, reference: str) -> Any:
    if isinstance(node, dict) and key in node:
        return cast("dict[str, Any]", node)[key]
    items = as_list(node)
    if key.isascii() and key.isdigit() and len(key) < _LONGEST_INDEX and int(key) < len(items):
        return items[int(key)]
    raise Lost(f"{reference!r:.200} leads nowhere")


_LONGEST_INDEX = 10


def _kind(value: Any) -> str:
    return {"NoneType": "nothing", "str": "text", "list": "a list", "bool": "true or false"}.get(
        type(value).__name__, type(value).__name__
    )
