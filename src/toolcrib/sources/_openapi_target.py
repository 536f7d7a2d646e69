"""OpenAPI documents as a command line names them."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from toolcrib.sources._openapi_auth import Environment
from toolcrib.sources.openapi import OpenAPI

__all__ = ["is_document", "source_of"]

_PREFIX = "openapi+"
_BASE_URL = re.compile(r"@(https?://[^@]+)$")
_ENDINGS = (".json", ".yaml", ".yml")
_MARK = re.compile(rb"""(?:^|[{,]|\n)\s*["']?(?:openapi|swagger)["']?\s*:""")


def is_document(target: str) -> bool:
    """Whether a target is `openapi+` and a URL, a URL of a JSON or YAML file, or a file that says it is OpenAPI."""
    place = _BASE_URL.sub("", target)
    if place.startswith((f"{_PREFIX}http://", f"{_PREFIX}https://")):
        return True
    if place.startswith(("http://", "https://")):
        return urlsplit(place).path.endswith(_ENDINGS)
    path = Path(place)
    if path.suffix not in _ENDINGS or not path.is_file():
        return place != target or path.suffix in _ENDINGS[1:]
    return _MARK.search(path.read_bytes()) is not None


def source_of(target: str) -> OpenAPI:
    """Return the source a target names, with credentials from the environment.

    Those of a security scheme are in `TOOLCRIB_AUTH_` and its name in capitals; `TOOLCRIB_AUTH` is for all others.

    Args:
        target: A path or a URL; after an `@` may stand where the API is, as in `openapi.yaml@https://api.example`.

    Raises:
        ValueError: One of the addresses is none.
    """
    base = _BASE_URL.search(target)
    place = _BASE_URL.sub("", target).removeprefix(_PREFIX)
    return OpenAPI(place, base_url=base[1] if base else None, auth=Environment("TOOLCRIB_AUTH"))
