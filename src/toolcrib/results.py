"""Any Python value as bounded, JSON-safe text for a model. Total: nothing here raises."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, NamedTuple, cast

from pydantic_core import to_json

from toolcrib.errors import ToolArgumentError, ToolDeniedError, ToolExecutionError, ToolTimeoutError
from toolcrib.limits import DEFAULT_LIMITS, Limits
from toolcrib.types import Envelope, Kind, Secret, ToolResponse

__all__ = ["Answer", "answer_to", "clean", "failure"]

Part = dict[str, Any]


class Answer(NamedTuple):
    """What a value or a failure comes down to.

    Args:
        kind: `ok`, or what went wrong.
        text: What the model reads.
        parts: Images and files beside the text, as MCP content blocks.
        response: The author's own ToolResponse, if there was one.
    """

    kind: Kind
    text: str
    parts: tuple[Part, ...] = ()
    response: ToolResponse | None = None


# -- values


def answer_to(value: Any, limits: Limits = DEFAULT_LIMITS) -> Answer:
    """Return what a model is shown of a value a tool returned.

    Text stays as it is; everything else is JSON, but images and other bytes, which become content
    parts; a value JSON cannot carry is a failure that says so.
    """
    if value.__class__ is str:
        return Answer("ok", clean(value, limits))
    try:
        return _answer(value, limits)
    except Exception as error:  # noqa: BLE001  # a hostile value may raise anything from anywhere
        reason = f"its result cannot be shown: {_reason(error)}"
        return Answer("failed", clean(f"The tool ran, but {reason}", limits))


def _answer(value: Any, limits: Limits) -> Answer:
    if isinstance(value, ToolResponse):
        members = {"success": value.success, "message": value.message, "data": value.data}
        text = _json({key: item for key, item in members.items() if item is not None})
        return Answer("ok" if value.success else "failed", clean(text, limits), (), value)
    if isinstance(value, Envelope):
        if value.error is None:
            return Answer("ok", clean(value.text(), limits))
        return Answer("failed", clean(f"{value.error.type}: {value.error.message}", limits))
    parts = _parts(value, limits)
    if parts is None:
        return Answer("ok", clean(value if isinstance(value, str) else _json(value), limits))
    texts = [part["text"] if part["type"] == "text" else _described(part) for part in parts]
    return Answer("ok", clean("\n".join(texts), limits), tuple(part for part in parts if part["type"] != "text"))


_ENDLESS = (GeneratorType, AsyncGeneratorType, CoroutineType)


def _json(value: Any) -> str:
    if isinstance(value, _ENDLESS):
        raise TypeError("a generator or coroutine is not a value")
    return to_json(value, inf_nan_mode="strings", fallback=_unserializable).decode()


def _unserializable(value: Any) -> Any:
    if isinstance(value, Secret):
        return "***"
    raise TypeError(f"{type(value).__name__} is not JSON data")


# -- images and files


def _parts(value: Any, limits: Limits) -> list[Part] | None:
    """Return a value as content parts when it is, or holds, an image, a file or a ready part; else None."""
    items: Sequence[Any] = cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else (value,)
    if not any(_is_part(item) for item in items):
        return None
    return [_part(item, limits) for item in items]


def _is_part(item: Any) -> bool:
    if isinstance(item, (bytes, bytearray, memoryview)):
        return True
    if not isinstance(item, Mapping):
        return False
    kind: Any = cast("Mapping[str, Any]", item).get("type")
    return kind in _PART_KEYS and _PART_KEYS[kind] <= cast("Mapping[str, Any]", item).keys()


_PART_KEYS: dict[Any, set[str]] = {
    "image": {"data", "mimeType"},
    "audio": {"data", "mimeType"},
    "resource": {"resource"},
}


def _part(item: Any, limits: Limits) -> Part:
    if isinstance(item, (bytes, bytearray, memoryview)):
        return _from_bytes(bytes(item), limits)
    if _is_part(item):
        return dict(item)
    return {"type": "text", "text": item if isinstance(item, str) else _json(item)}


def _from_bytes(data: bytes, limits: Limits) -> Part:
    kind = next((mime for magic, mime in _MAGIC if data.startswith(magic)), None)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind = "image/webp"
    if len(data) > limits.max_result_bytes:
        return {"type": "text", "text": f"[{kind or 'binary'}, {len(data):,} bytes: too large to show]"}
    text = base64.b64encode(data).decode()
    if kind and kind.startswith("image/"):
        return {"type": "image", "data": text, "mimeType": kind}
    return {
        "type": "resource",
        "resource": {"uri": "result:bytes", "mimeType": kind or "application/octet-stream", "blob": text},
    }


_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
)


def _described(part: Part) -> str:
    resource = cast("Mapping[str, Any]", part.get("resource") or part)
    text = resource.get("text")
    size = (
        len(text.encode("utf-8", "replace"))
        if text
        else len(resource.get("data") or resource.get("blob") or "") * 3 // 4
    )
    return f"[{resource.get('mimeType') or part['type']}, {size:,} bytes]"


# -- failures


def failure(name: str, error: BaseException, limits: Limits = DEFAULT_LIMITS) -> Answer:
    """Return what a model is told when a call raised: no traceback, no paths of the machine.

    Args:
        name: The tool's name.
        error: What was raised.
        limits: How long the text may be.
    """
    if isinstance(error, ToolArgumentError):
        return Answer("invalid_arguments", clean(str(error), limits))
    if isinstance(error, ToolTimeoutError):
        return Answer("timed_out", clean(f"Tool '{name}' timed out: {_reason(error)}", limits))
    if isinstance(error, ToolDeniedError):
        return Answer("denied", clean(f"Tool '{name}' was denied: {_reason(error)}", limits))
    reason = _reason(error) if isinstance(error, ToolExecutionError) else f"{type(error).__name__}: {_reason(error)}"
    return Answer("failed", clean(f"Tool '{name}' failed: {reason.removesuffix(': ')}", limits))


def _reason(error: BaseException) -> str:
    try:
        if isinstance(error, OSError) and error.strerror:
            text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
        else:
            text = str(error)
    except BaseException:  # noqa: BLE001  # an exception whose text raises has none
        text = ""
    return _ABSOLUTE.sub(r"\1", text[:_LONGEST_REASON])


_LONGEST_REASON = 4_000
#: An absolute path of three parts or more: a model needs the file's name, not where it lives on this machine.
_ABSOLUTE = re.compile(r"(?<![\w/:.~])(?:/[\w.@+~-]+){2,}/([\w.@+~-]+)")


# -- text


def clean(text: str, limits: Limits = DEFAULT_LIMITS) -> str:
    """Return text fit for a model: bounded, valid Unicode, without terminal escapes and invisible tags."""
    if len(text) > limits.max_result_chars:
        text = _shortened(text, limits.max_result_chars)
    if text.isascii():
        return _ESCAPES.sub("", text) if "\x1b" in text else text
    text = text.encode("utf-8", "replace").decode() if _SURROGATES.search(text) else text
    return _HIDDEN.sub("", _ESCAPES.sub("", text))


def _shortened(text: str, most: int) -> str:
    note = f"\n[… {len(text) - most:,} characters left out …]\n"
    head = most * 2 // 3
    return text[:head] + note + text[len(text) - (most - head) :]


_SURROGATES = re.compile("[\ud800-\udfff]")
_HIDDEN = re.compile("[\U000e0000-\U000e007f]")
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])|[\x1b\x9b]")
