"""Weights from their publisher's repository on the model hub, at a pinned revision."""

from __future__ import annotations

import os
from http import HTTPStatus
from http.client import HTTPException
from ssl import SSLError
from typing import TYPE_CHECKING, cast
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from toolcrib.engines.local._catalogue import Official, Weights, verify
from toolcrib.errors import WeightsError

if TYPE_CHECKING:
    from collections.abc import Callable
    from http.client import HTTPResponse
    from pathlib import Path

__all__ = ["from_hub", "hub_is_allowed"]

_HUB = "https://huggingface.co"
_TIMEOUT = 3.0  # seconds without a byte: where there is no way to the hub, that should show at once
_TRIES = 4  # connections in a row that bring no byte
_BLOCK = 1 << 18
_TRUE = {"1", "on", "yes", "true"}


def hub_is_allowed() -> bool:
    """Whether the hub may be asked: not when HF_HUB_OFFLINE is set."""
    return os.environ.get("HF_HUB_OFFLINE", "").lower() not in _TRUE


def from_hub(weights: Weights, official: Official, staging: Path, watch: Callable[[int], None]) -> Path:
    """Return the publisher's file; a broken download goes on where it stopped, also in a later process.

    Args:
        weights: Which file.
        official: Where the publisher keeps it.
        staging: A directory that outlives a failure.
        watch: Told the bytes so far, often; what it raises ends the download.

    Raises:
        WeightsError: The hub cannot be reached, or has other bytes.
    """
    path = staging / weights.file
    address = _address(weights, official)
    fruitless = 0
    while (before := _length(path)) < weights.size:
        ending = _go_on(address, path, weights.size, watch)
        fruitless = 0 if _length(path) > before else fruitless + 1
        if not _length(path) or fruitless == _TRIES:
            raise WeightsError(f"{urlsplit(address).netloc} could not be reached: {ending}")
    verify(path, weights.sha256, f"{weights.file} of {urlsplit(address).netloc}")
    return path


def _address(weights: Weights, official: Official) -> str:
    hub = os.environ.get("HF_ENDPOINT") or _HUB
    address = f"{hub.rstrip('/')}/{official.repository}/resolve/{official.revision}/{weights.file}"
    if urlsplit(address).scheme not in {"http", "https"}:
        raise WeightsError(f"HF_ENDPOINT must be an http or https address, not {hub!r}")
    return address


def _length(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _go_on(address: str, path: Path, size: int, watch: Callable[[int], None]) -> str:
    """Read what is missing and return how the connection ended."""
    have = _length(path)
    headers = {"User-Agent": "toolcrib", **({"Range": f"bytes={have}-"} if have else {})}
    request = Request(address, headers=headers)  # noqa: S310  # the scheme was checked
    try:
        with cast("HTTPResponse", urlopen(request, timeout=_TIMEOUT)) as answer:  # noqa: S310  # as above
            _copy(answer, path, size, watch)
    except HTTPError as error:
        raise WeightsError(f"{urlsplit(address).netloc} answered {error.code} for {path.name}") from error
    except (URLError, TimeoutError, ConnectionError, SSLError, HTTPException) as error:
        return str(error)
    return "the connection ended early"


def _copy(answer: HTTPResponse, path: Path, size: int, watch: Callable[[int], None]) -> None:
    with path.open("ab" if answer.status == HTTPStatus.PARTIAL_CONTENT else "wb") as file:
        while block := answer.read1(_BLOCK):
            file.write(block)
            watch(file.tell())
            if file.tell() > size:
                file.truncate(0)
                raise WeightsError(f"{path.name} of the hub was refused: it is longer than {size} bytes")
