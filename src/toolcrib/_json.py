"""What JSON can carry, and the path of the first thing it cannot."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Any, cast

__all__ = ["first_unsafe"]

_DEEPEST = 200  # what common JSON readers accept; deeper data is refused rather than sent


def first_unsafe(value: Any, path: str) -> tuple[str, str] | None:
    """Return where `value` stops being plain JSON data, and why, or None when all of it is.

    Args:
        value: Anything. Only dict, list, tuple, str, int, float, bool and None are plain.
        path: What to call the value itself, such as `data`.
    """
    return _unsafe(value, path, 0, {})


def _unsafe(value: Any, path: str, depth: int, safe: dict[int, int]) -> tuple[str, str] | None:
    if value is None or isinstance(value, (bool, int)):
        return None
    if isinstance(value, str):
        return None if value.isascii() or _encodable(value) else (path, "text with a lone surrogate")
    if isinstance(value, float):
        return None if isfinite(value) else (path, f"{value} is not a JSON number")
    if depth >= _DEEPEST:
        return path, f"nested deeper than {_DEEPEST} levels, or circular"
    if depth <= safe.get(id(value), -1):  # the same thing again, no deeper than it was found to be safe
        return None
    bad = _unsafe_inside(value, path, depth, safe)
    if bad is None:
        safe[id(value)] = depth
    return bad


def _unsafe_inside(value: Any, path: str, depth: int, safe: dict[int, int]) -> tuple[str, str] | None:
    # as JSON is written: what a class of its own says of itself need not end
    if isinstance(value, dict):
        return _unsafe_member(dict[Any, Any].items(cast("dict[Any, Any]", value)), path, depth, safe)
    if isinstance(value, (list, tuple)):
        own = list[Any].__iter__ if isinstance(value, list) else tuple[Any, ...].__iter__
        items = enumerate(own(cast("Any", value)))
        return next((bad for i, item in items if (bad := _unsafe(item, f"{path}[{i}]", depth + 1, safe))), None)
    return path, f"{type(cast('object', value)).__name__} is not JSON data"


def _unsafe_member(
    members: Iterable[tuple[Any, Any]], path: str, depth: int, safe: dict[int, int]
) -> tuple[str, str] | None:
    for key, item in members:
        if not isinstance(key, str):
            return path, f"a key is {type(key).__name__}, not text"
        if bad := _unsafe(item, f"{path}.{key}", depth + 1, safe):
            return bad
    return None


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
