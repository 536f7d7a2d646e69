"""Values that are passed along but never printed, and the texts they are kept out of."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from threading import RLock
from typing import Any, cast

__all__ = ["Secret", "any_secrets", "redacted", "without_secrets"]

_held: Counter[str] = Counter()
_lock = RLock()  # collecting garbage may drop one secret while another is being made, in the same thread
_SHORTEST = 4  # a shorter one stands in ordinary words, which redaction would tear apart


class Secret:
    """A value that is passed along but never printed: not in reprs, answers, errors, events or logs.

    While it lives, its text is replaced by `***` wherever a model or a listener would see it; a value
    shorter than four characters is only kept out of reprs.

    Args:
        value: The value; read it with `reveal()`.

    Raises:
        TypeError: The value is not text; it is not shown.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # often from a configuration
            self._value = ""
            raise TypeError("a secret is text")
        self._value = value
        if len(value) >= _SHORTEST:
            with _lock:
                _held[value] += 1

    def __del__(self) -> None:
        if len(self._value) >= _SHORTEST:
            with _lock:
                _held[self._value] -= 1
                if _held[self._value] <= 0:
                    del _held[self._value]

    def reveal(self) -> str:
        """Return the value itself."""
        return self._value

    def __repr__(self) -> str:
        """Return a text that says only that there is a secret."""
        return "Secret(***)"

    def __reduce__(self) -> Any:
        """Refuse to be written out with whatever holds it."""
        raise TypeError("a Secret is not pickled")

    def __copy__(self) -> Secret:
        """Return a secret of the same value."""
        return Secret(self._value)

    def __deepcopy__(self, memo: dict[int, Any]) -> Secret:
        """Return a secret of the same value."""
        return Secret(self._value)


def any_secrets() -> bool:
    """Whether there is any live secret, which is all a program without them ever pays."""
    return bool(_held)


def redacted(text: str) -> str:
    """Return the text with `***` in place of every live secret."""
    for value in sorted(_held, key=len, reverse=True):
        text = text.replace(value, "***").replace(json.dumps(value, ensure_ascii=False)[1:-1], "***")
    return text


def without_secrets(data: Any) -> Any:
    """Return plain JSON data with `***` in place of every live secret, in keys too."""
    if isinstance(data, str):
        return redacted(data)
    if isinstance(data, Mapping):
        members = cast("Mapping[str, Any]", data)
        return {redacted(key): without_secrets(value) for key, value in members.items()}
    if isinstance(data, (list, tuple)):
        return [without_secrets(item) for item in cast("list[Any]", data)]
    return data
