"""The bodies of requests: JSON, forms, files and text."""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast
from urllib.parse import unquote, urlencode

from pydantic_core import to_json

from toolcrib.errors import ToolArgumentError
from toolcrib.sources._openapi_styles import Style, pairs, words

__all__ = ["FILE_WORDS", "Body", "Field", "encoded", "kind_of"]

FILE_WORDS = "The text of a file, or its bytes as a data URL such as data:image/png;name=a.png;base64,iVBORw0KGgo="


class Field(NamedTuple):
    """One property of a body.

    Args:
        name: What the API calls it.
        style: How a form writes it; None for the usual way.
        content_type: What a part of a multipart body is said to be; None for the usual.
        is_file: Whether its text, or each of its texts, is a file.
    """

    name: str
    style: Style | None = None
    content_type: str | None = None
    is_file: bool = False


class Body(NamedTuple):
    """How a body is made of arguments.

    Args:
        content_type: Its media type.
        kind: `json`, `form`, `multipart` or `raw`.
        required: Whether there has to be one.
        whole: The argument that is the whole body; empty when its properties are arguments.
        fields: The properties, by the argument they come from; with `whole`, by their own name.
    """

    content_type: str
    kind: str
    required: bool
    whole: str
    fields: Mapping[str, Field]


def kind_of(content_type: str) -> str:
    """Return how a body of a media type is made."""
    media = content_type.partition(";")[0].strip().lower()
    if media in ("application/json", "*/*", "application/*", "text/json") or media.endswith("+json"):
        return "json"
    if media == "application/x-www-form-urlencoded":
        return "form"
    return "multipart" if media.startswith("multipart/") else "raw"


def encoded(body: Body, arguments: Mapping[str, Any]) -> tuple[bytes, str] | None:
    """Return the bytes of a body and their content type, or None when there is none to send.

    Raises:
        ToolArgumentError: An argument cannot be written that way.
    """
    if body.whole:
        if body.whole not in arguments:
            return None
        value = arguments[body.whole]
    else:
        value = {field.name: arguments[key] for key, field in body.fields.items() if key in arguments}
        if not value and not body.required:
            return None
    if body.kind == "json":
        return to_json(value), body.content_type.replace("*/*", _JSON).replace("application/*", _JSON)
    if body.kind == "raw":
        return _raw(value, body.content_type)
    if not isinstance(value, Mapping):
        raise ToolArgumentError(f"{body.whole}: a form is an object, not {type(value).__name__}")
    named = {field.name: field for field in body.fields.values()}
    given = [(named.get(name, Field(name)), item) for name, item in cast("Mapping[str, Any]", value).items()]
    if body.kind == "form":
        found = [pair for field, item in given for pair in _form_pairs(field, item)]
        return urlencode(found, errors="replace").encode(), body.content_type
    return _multipart(given, body.content_type)


_JSON = "application/json"


def _raw(value: Any, content_type: str) -> tuple[bytes, str]:
    if not isinstance(value, str):
        return to_json(value), content_type
    data, media, _ = _file(value)
    kind = content_type if "*" not in content_type else media or "application/octet-stream"
    return data, kind


def _form_pairs(field: Field, value: Any) -> list[tuple[str, str]]:
    if value is None:
        return []
    if field.content_type is not None and field.content_type.endswith("json"):
        return [(field.name, to_json(value).decode())]
    if field.style is not None:
        return pairs(field.name, value, field.style)
    return [(field.name, words(item)) for item in _items(value)]


def _items(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


# -- files and parts


def _file(text: str) -> tuple[bytes, str, str]:
    """Return the bytes, the media type and the name of a file that was given as text or as a data URL.

    Raises:
        ToolArgumentError: It begins as a data URL, and is not base64.
    """
    found = _DATA_URL.match(text)
    if found is None:
        return text.encode("utf-8", "replace"), "", ""
    name = next((one[5:] for one in found[2].split(";") if one.startswith("name=")), "")
    try:
        return base64.b64decode("".join(text[found.end() :].split()), validate=True), found[1], unquote(name)
    except (binascii.Error, ValueError):
        raise ToolArgumentError("a data URL of a file is not valid base64") from None


_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?((?:;[^;,]{1,300}){0,5});base64,", re.ASCII)


def _multipart(given: Iterable[tuple[Field, Any]], content_type: str) -> tuple[bytes, str]:
    boundary = secrets.token_hex(16)
    chunks = list[bytes]()
    for field, value in given:
        for head, data in _parts(field, value):
            chunks += [b"--", boundary.encode(), b"\r\n", head.encode("utf-8", "replace"), b"\r\n\r\n", data, b"\r\n"]
    chunks.append(f"--{boundary}--\r\n".encode())
    return b"".join(chunks), f"{content_type.partition(';')[0].strip()}; boundary={boundary}"


def _parts(field: Field, value: Any) -> Iterator[tuple[str, bytes]]:
    for item in _items(value):
        if item is None:
            continue
        disposition = f'Content-Disposition: form-data; name="{_in_quotes(field.name)}"'
        if field.is_file and isinstance(item, str):
            data, media, name = _file(item)
            kind = field.content_type or media or "application/octet-stream"
            named = _in_quotes(name or field.name)
            yield f'{disposition}; filename="{named}"\r\nContent-Type: {kind}', data
        elif isinstance(item, str | int | float | bool):
            kind = f"\r\nContent-Type: {field.content_type}" if field.content_type else ""
            yield f"{disposition}{kind}", words(item).encode("utf-8", "replace")
        else:
            yield f"{disposition}\r\nContent-Type: {field.content_type or _JSON}", to_json(item)


def _in_quotes(name: str) -> str:
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
