"""Where JSON objects begin and end in a text, without reading what is inside them."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

__all__ = ["Found", "Member", "Spans", "text_at"]

_TOKEN = re.compile(r'\s*+("[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]:,]|[^\s"{}\[\]:,]++)', re.DOTALL)
_WORK = 3  # how many times over a text may be read before the rest of it is given up


class Member(NamedTuple):
    """One member of an object.

    Args:
        key: Its key.
        start: Where its value begins.
        end: Where its value ends.
    """

    key: str
    start: int
    end: int


class Found(NamedTuple):
    """One object.

    Args:
        start: Where it begins.
        members: What it has.
        end: Where it ends.
    """

    start: int
    members: list[Member]
    end: int


class Spans:
    """Finds JSON in one text, in time proportional to its length whatever is asked.

    Args:
        text: Any text.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._left = _WORK * len(text) + 1_000

    def objects(self, start: int) -> tuple[list[Found], int] | None:
        """Return the object at `start`, or those of the list there, and where the whole ends; None if it is neither."""
        if self._text.startswith("[", start):
            return self._items(start)
        found = self.object(start)
        return None if found is None else ([found], found.end)

    def object(self, start: int) -> Found | None:
        """Return the object that begins at `start`, or None when there is none.

        The values of its members are only told apart: whether they are valid JSON is not asked.
        """
        if not self._text.startswith("{", start):
            return None
        found: list[Member] = []
        key, end = self._token(start + 1)
        while key.startswith('"'):
            colon, value = self._token(end)
            stop = self._value_end(value) if colon == ":" else -1
            if stop < 0:
                return None
            found.append(Member(text_at(key), self._solid(value), stop))
            comma, end = self._token(stop)
            if comma == "}":
                return Found(start, found, end)
            key, end = self._token(end) if comma == "," else ("", end)
        return Found(start, found, end) if key == "}" and not found else None

    def _items(self, start: int) -> tuple[list[Found], int] | None:
        found: list[Found] = []
        token, end = self._token(start + 1)
        while token == "{":  # noqa: S105  # of a text, not of an account
            item = self.object(end - 1)
            comma, end = self._token(item.end) if item else ("", end)
            if item is not None:
                found.append(item)
            if comma == "]":
                return found, end
            token, end = self._token(end) if comma == "," else ("", end)
        return None

    def end(self, start: int) -> int:
        """Return where the object or list that begins at `start` ends, or -1 if it never does."""
        return self._value_end(start)

    def _value_end(self, start: int) -> int:
        token, end = self._token(start)
        depth = _DEPTH.get(token, 0)
        if not token or token in "}]:,":  # noqa: S105  # as above
            return -1
        while depth > 0:
            token, end = self._token(end)
            if not token:
                return -1
            depth += _DEPTH.get(token, 0)
        return end

    def _token(self, start: int) -> tuple[str, int]:
        """Return the token at `start` and where it ends; an empty one when there is none."""
        found = _TOKEN.match(self._text, start) if self._left > 0 else None
        self._left -= (found.end() if found else len(self._text)) - start + 1
        return (found[1], found.end()) if found else ("", start)

    def _solid(self, start: int) -> int:
        return _SPACE.match(self._text, start).end()  # pyright: ignore[reportOptionalMemberAccess]  # may be empty


_DEPTH = {"{": 1, "[": 1, "}": -1, "]": -1}
_SPACE = re.compile(r"\s*+")


def text_at(quoted: str) -> str:
    """Return the text of a JSON string, or the string as it stands when it is not a valid one."""
    try:
        return str(json.loads(quoted))
    except ValueError:
        return quoted.strip('"')
