"""Any Python value as bounded, JSON-safe text for a model. Total: nothing here raises."""

from __future__ import annotations

import base64
import gc
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from types import AsyncGeneratorType, CoroutineType
from typing import Any, TypeAlias, cast

from pydantic_core import from_json, to_json

from toolcrib._json import first_unsafe
from toolcrib._secrets import any_secrets, redacted, without_secrets
from toolcrib.errors import (
    AuthorizationNeededError,
    NotSerializableError,
    ToolArgumentError,
    ToolDeniedError,
    ToolExecutionError,
    ToolNotFoundError,
    ToolTimeoutError,
)
from toolcrib.limits import DEFAULT_LIMITS, Limits
from toolcrib.types import Envelope, Kind, Secret, ToolResponse

__all__ = ["Answer", "answer_to", "clean", "failure", "hidden"]

_Part = dict[str, Any]


#: What a value or a failure comes down to: its kind (`ok`, or what went wrong), the text the model reads, images and
#: files beside it as MCP content blocks, and the author's own ToolResponse, if there was one. One is made for every
#: call, and a plain tuple costs a tenth of a named one.
Answer: TypeAlias = tuple[Kind, str, tuple[_Part, ...], ToolResponse | None]


# -- values


def answer_to(value: Any, limits: Limits = DEFAULT_LIMITS) -> Answer:
    """Return what a model is shown of a value a tool returned.

    Text stays as it is; everything else is JSON, but images and other bytes, which become content
    parts; a value JSON cannot carry is a failure that says so.
    """
    kind = type(value)  # pyright: ignore[reportUnknownVariableType]  # not __class__, which may be hostile
    if kind is str:
        return "ok", clean(value, limits), (), None
    if kind is int and value.bit_length() <= _FEW_BITS:
        return "ok", str(value), (), None
    if kind in _SCALARS and not (kind is int and value.bit_length() > _MOST_BITS):
        return "ok", to_json(value, inf_nan_mode="strings").decode(), (), None
    try:
        return _answer(value, limits)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  # a hostile value may raise anything from anywhere
        reason = f"its result cannot be shown: {_offender(value, _reason(error))}"
        return "failed", clean(f"The tool ran, but {reason}", limits), (), None


def _offender(value: Any, reason: str) -> str:
    """Return the reason, with the offender's path, such as `result.rows[3].conn`, where plain containers hold it."""
    try:
        data = value.data if isinstance(value, ToolResponse) else value
        bad = first_unsafe(data, "data" if isinstance(value, ToolResponse) else "result")
    except BaseException:  # noqa: BLE001  # as hostile here as there
        return reason
    return ": ".join(bad) if bad is not None and bad[1] in reason else reason


_SCALARS = frozenset({int, float, bool, type(None)})
_FEW_BITS = 1_000  # quicker as text than as JSON, which is the same


def _answer(value: Any, limits: Limits) -> Answer:
    if isinstance(value, ToolResponse):
        members = {"success": value.success, "message": value.message, "data": value.data}
        text = _json({key: item for key, item in members.items() if item is not None})
        return "ok" if value.success else "failed", clean(text, limits), (), value
    if isinstance(value, Envelope):
        return _outcome(value, limits)
    parts = _parts(value, limits)
    if parts is None:
        return "ok", clean(_plain(value), limits), (), None
    texts = [_in_words(part) for part in parts]
    return "ok", clean("\n".join(texts), limits), tuple(part for part in parts if part["type"] != "text"), None


def _outcome(envelope: Envelope, limits: Limits) -> Answer:
    if envelope.error is not None:
        return "failed", clean(f"{envelope.error.type}: {envelope.error.message}", limits), (), None
    if envelope.pending:
        names = ", ".join(call.name for call in envelope.pending)
        return "failed", clean(f"It cannot go on: nobody here can run what it called ({names})", limits), (), None
    if envelope.metadata.verified is False:
        said = "".join(envelope.metadata.verdicts[-1:])[:_LONGEST_VERDICT]
        return "ok", clean(f"{envelope.text()}\n\n[Unverified: this answer was rejected: {said}]", limits), (), None
    return "ok", clean(envelope.text(), limits), (), None


_LONGEST_VERDICT = 500  # what was said against an answer must not crowd it out


def _plain(value: Any) -> str:
    """Return text as it is, and anything else as JSON; of an Enum that is a str, its value."""
    return str.__str__(value) if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    _refuse_numbers([value] if type(value) is int else [])
    _refuse_endless(value)
    return to_json(value, inf_nan_mode="strings", fallback=_unserializable).decode()


def _refuse_endless(value: Any) -> None:
    """Look for what takes no end to write: iterators at any depth, which writing would run, and too much text."""
    if _room_after(value, _ROOM):
        return
    level, seen, written, shared = [value], set[int](), 0, False
    while level:
        _refuse_kinds(set(map(type, level)))
        fresh = {id(node): node for node in level if id(node) not in seen}
        shared = shared or len(fresh) < len(level)
        seen.update(fresh)
        # what plain containers hold, in one step: there may be very many of them
        inside = gc.get_referents(*[node for node in fresh.values() if type(node) in _CONTAINERS])
        for node in fresh.values():
            if type(node) not in _CONTAINERS:
                inside += _inside(node)
        _refuse_numbers([item for item in inside if type(item) is int])
        written += len(inside) + sum(map(len, [item for item in inside if type(item) is str]))
        level = [item for item in inside if type(item) not in _LEAVES]
    _refuse_length(_written(value) if shared else written)


def _refuse_numbers(numbers: list[int]) -> None:
    if max(map(int.bit_length, numbers), default=0) > _MOST_BITS:
        raise ValueError("a number in it has too many digits")


def _refuse_kinds(kinds: set[type]) -> None:
    for kind in kinds:
        if kind in _ENDLESS or hasattr(kind, "__next__"):
            raise TypeError(f"a {kind.__name__} is not a value; return a list of what it gives")


def _refuse_length(written: int) -> None:
    if written > _MOST_WRITTEN:
        raise ValueError("it is far too long, or holds the same things over and over")


def _written(value: Any) -> int:
    """Return about how many characters it takes to write a value that holds some of its parts more than once."""
    level, written = {id(value): (value, 1)}, 0
    for _ in range(_DEEPEST):  # what is nested deeper, or circular, is not written at all
        inside: dict[int, tuple[Any, int]] = {}
        for node, times in level.values():
            items = gc.get_referents(node) if type(node) in _CONTAINERS else list(_inside(node))
            written += times * (len(items) + sum(len(item) for item in items if type(item) is str))
            for item in items:
                if type(item) not in _LEAVES:
                    inside[id(item)] = item, times + inside.get(id(item), (item, 0))[1]
        if not inside or written > _MOST_WRITTEN:
            break
        level = inside
    return written


_DEEPEST = 256
_MOST_WRITTEN = 200_000_000
_MOST_BITS = 70_000  # about 20,000 digits: the time to write more grows with their square


def _room_after(value: Any, room: int) -> int:
    """Return what a value of the plainest types, as most are, leaves of some room; 0 for any other or larger one."""
    is_list = type(value) in _LISTS
    inside: Iterable[Any] = cast("Any", value).values() if type(value) is dict else value if is_list else (value,)
    for item in inside:
        if type(item) is str:
            room -= 1 + len(item) // 1_000
        elif type(item) is int:
            room -= 1 + item.bit_length() // 1_000
        elif type(item) in _SCALARS:
            room -= 1
        else:
            room = 0 if item is value else _room_after(item, room - 1)
        if room <= 0:
            return 0
    return room


_ROOM = 200
_LISTS = frozenset({list, tuple})
_ENDLESS: frozenset[type] = frozenset({AsyncGeneratorType, CoroutineType})
_CONTAINERS = frozenset({dict, list, tuple, set, frozenset, deque})
_LEAVES = frozenset({*_SCALARS, str})


def _inside(node: Any) -> Iterable[Any]:
    kind = cast("Any", type(node))  # what a class of its own says of itself need not end either
    if issubclass(kind, dict):
        return dict[Any, Any].values(node)
    for plain in (list, tuple, set, frozenset, deque):
        if issubclass(kind, plain):
            return cast("Any", plain).__iter__(node)
    if isinstance(fields := getattr(kind, "__dataclass_fields__", None), dict):
        return [getattr(node, name, None) for name in cast("dict[str, Any]", fields)]
    return cast("dict[str, Any]", vars(node)).values() if hasattr(kind, "__pydantic_serializer__") else ()


def _unserializable(value: Any) -> Any:
    if isinstance(value, Secret):
        return "***"
    raise TypeError(f"{type(value).__name__} is not JSON data")


# -- images and files


def _parts(value: Any, limits: Limits) -> list[_Part] | None:
    """Return a value as content parts when it is, or holds, an image, a file or a ready part; else None."""
    items: Sequence[Any] = (value,)
    if isinstance(value, (list, tuple)):
        items = tuple(_inside(cast("Any", value)))
    if not any(_is_part(item) for item in items):
        return None
    return [_part(item, limits) for item in items]


def _is_part(item: Any) -> bool:
    if type(item) in _LEAVES or (type(item) is dict and "type" not in item):
        return False
    if isinstance(item, (bytes, bytearray, memoryview)):
        return True
    if not isinstance(item, Mapping):
        return False
    members = cast("Mapping[str, Any]", item)
    if members.get("type") in ("image", "audio"):
        return isinstance(members.get("data"), str) and isinstance(members.get("mimeType"), str)
    resource = members.get("resource") if members.get("type") == "resource" else None
    return isinstance(resource, Mapping) and _is_resource(cast("Mapping[str, Any]", resource))


def _is_resource(members: Mapping[str, Any]) -> bool:
    content = members.get("blob", members.get("text"))
    return isinstance(members.get("uri"), str) and isinstance(content, str)


def _part(item: Any, limits: Limits) -> _Part:
    if isinstance(item, (bytes, bytearray, memoryview)):
        return _from_bytes(bytes(cast("bytes", item)), limits)
    return _ready(dict(item), limits) if _is_part(item) else {"type": "text", "text": _plain(item)}


def _ready(part: _Part, limits: Limits) -> _Part:
    if bad := first_unsafe(part, "result"):
        raise NotSerializableError(*bad)
    if len(_content(part)) * 3 // 4 > limits.max_result_bytes:
        return {"type": "text", "text": f"{_described(part)[:-1]}: too large to show]"}
    return part


def _content(part: _Part) -> str:
    resource = cast("Mapping[str, Any]", part.get("resource") or part)
    return resource.get("data") or resource.get("blob") or resource.get("text") or ""


def _from_bytes(data: bytes, limits: Limits) -> _Part:
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


def _in_words(part: _Part) -> str:
    """Return the text of a part that has one, be it a resource's, and of any other what it is."""
    text = part["text"] if part["type"] == "text" else part.get("resource", part).get("text")
    return text if isinstance(text, str) else _described(part)


def _described(part: _Part) -> str:
    resource = cast("Mapping[str, Any]", part.get("resource") or part)
    text = resource.get("text")
    data = resource.get("data") or resource.get("blob") or ""
    size = len(text.encode("utf-8", "replace")) if text else len(data) * 3 // 4 - data[-2:].count("=")
    return f"[{resource.get('mimeType') or part['type']}, {size:,} bytes]"


# -- failures


def failure(name: str, error: BaseException, limits: Limits = DEFAULT_LIMITS) -> Answer:
    """Return what a model is told when a call raised: no traceback, no paths of the machine.

    Args:
        name: The tool's name.
        error: What was raised.
        limits: How long the text may be.
    """
    try:
        return _told(name, error, limits)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  # a hostile error may raise anything from anywhere
        return "failed", clean(f"Tool '{name}' failed, and what it raised cannot be shown"), (), None


def _told(name: str, error: BaseException, limits: Limits) -> Answer:
    if isinstance(error, ToolArgumentError):
        return "invalid_arguments", clean(str(error), limits), (), None
    if isinstance(error, ToolNotFoundError):
        return "not_found", clean(str(error), limits), (), None
    if isinstance(error, ToolTimeoutError):
        return "timed_out", clean(f"Tool '{name}' timed out: {_reason(error)}", limits), (), None
    if isinstance(error, ToolDeniedError):
        return "denied", clean(f"Tool '{name}' was denied: {_reason(error)}", limits), (), None
    kind = type(error).__name__[:_LONGEST_NAME]
    reason = _reason(error) if isinstance(error, ToolExecutionError) else f"{kind}: {_reason(error)}"
    text = clean(f"Tool '{name}' failed: {reason.removesuffix(': ')}", limits)
    if isinstance(error, AuthorizationNeededError):
        where = {"authorization_url": error.url}
        return "failed", text, (), ToolResponse(success=False, message=text, data=where)
    return "failed", text, (), None


def _reason(error: BaseException) -> str:
    try:
        if isinstance(error, OSError) and error.strerror:
            text = f"{error.strerror}: {_file_name(error.filename)}" if error.filename else error.strerror
        else:
            text = str(error)
        text = str.__str__(text)  # of a class of its own, perhaps
    except BaseException:  # noqa: BLE001  # an exception whose text raises has none
        text = ""
    return _ABSOLUTE.sub(lambda path: path[path.lastindex or 0], text[:_LONGEST_REASON])


def _file_name(path: object) -> str:
    """Return a path as it is, or only its end when it tells where things are on this machine."""
    text = str(path)
    return text.rpartition("/")[2] or text if text.startswith("/") and text.count("/") > _FEW_PARTS else text


_FEW_PARTS = 2
_LONGEST_NAME = 200
_LONGEST_REASON = 4_000
#: An absolute path of three parts or more: a model needs the file's name, not where it lives on this machine.
_ABSOLUTE = re.compile(
    r"""(?<=["'])/(?:[^"'/\n]+/){2,}([^"'/\n]+)(?=["'])"""  # in quotes, where it may have spaces
    r"|(?:file://|(?<=\w:)|(?<![\w/:.~])(?<!GET )(?<!POST ))(?:/[\w.@+~-]+){2,}/([\w.@+~-]+)"
    r"|(?<!\w)[A-Za-z]:(?:\\[\w.@+~ -]+){2,}\\([\w.@+~-]+)"
)


# -- text


def clean(text: str, limits: Limits = DEFAULT_LIMITS) -> str:
    """Return text fit for a model: bounded, valid Unicode, without terminal escapes and invisible tags."""
    if any_secrets():
        text = redacted(_printable(redacted(text)))  # what removing escapes brings together may be one, too
    if len(text) > limits.max_result_chars:
        text = _shortened(text, limits.max_result_chars)
    return _printable(text)


def _printable(text: str) -> str:
    if text.isascii():
        return _ESCAPES.sub("", text) if "\x1b" in text else text
    text = text.encode("utf-8", "replace").decode() if _SURROGATES.search(text) else text
    return _HIDDEN.sub("", _ESCAPES.sub("", text))


def hidden(value: Any) -> Any:
    """Return a tool's value as listeners may see it: unchanged, or as redacted JSON data if it holds a live secret."""
    try:
        return _hidden(value)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  # as in answer_to
        return None


def _hidden(value: Any) -> Any:
    if isinstance(value, ToolResponse):
        message = None if value.message is None else redacted(value.message)
        return ToolResponse(value.success, message, hidden(value.data))
    text = value if isinstance(value, str) else _searchable(value)
    if redacted(text) == text and redacted(_printable(text)) == _printable(text):
        return value
    return redacted(_printable(text)) if isinstance(value, str) else without_secrets(from_json(text))


def _searchable(value: Any) -> str:
    _refuse_endless(value)
    return to_json(value, inf_nan_mode="strings", bytes_mode="base64", fallback=_named).decode()


def _named(value: Any) -> str:
    return "***" if isinstance(value, Secret) else type(value).__name__


def _shortened(text: str, most: int) -> str:
    note = f"\n[… {len(text) - most:,} characters left out …]\n"
    head = most * 2 // 3
    return text[:head] + note + text[len(text) - (most - head) :]


_SURROGATES = re.compile("[\ud800-\udfff]")
_HIDDEN = re.compile("[\U000e0000-\U000e007f]")
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])|[\x1b\x90\x98\x9b\x9d-\x9f]"
)
