"""What a request asks for in so many words, and what of it is left once some calls are done.

A small model cannot tell what it has already done: after one result it either stops or does it again.
Where a value of a call stands in the request shows how far the calls have come, and the clause after
that can be put to the model as if it were a request of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from toolcrib.engines.local._conversation import Done

__all__ = ["Rest", "first_clause", "is_grounded", "mentions", "only_asked", "rest_of"]

_NUMBER_WORDS = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
_JOINT = re.compile(
    r"(?:[,;]\s*)?\b(?:and|then|also|plus|afterwards|next|und|dann|et|puis|ensuite|y|luego|e|poi)\b"
    r"(?:\s+(?:and|then|also|dann)\b)*|[,;]|[.?!](?=\s)",
    re.IGNORECASE,
)
_SEQUENCE = re.compile(
    r"[,;.]?\s+(?:and\s+)?\b(?:then|afterwards|dann|ensuite|luego|poi)\b|[,;]?\s+and\b(?=[^.?!]*\bthe result\b)",
    re.IGNORECASE,
)
_EDGES = " \t\n.,;:!?'\""
_STEM = 4  # letters of a parameter's name that make a word of the request mean it


@dataclass(frozen=True, slots=True)
class Rest:
    """The part of a request that comes after what the calls used.

    Args:
        text: Its words; empty when nothing is left.
        joined: Whether a word such as "and" leads to it, rather than a mere comma or stop.
    """

    text: str = ""
    joined: bool = False


def rest_of(request: str, calls: Sequence[Done]) -> Rest:
    """Return what is left of the request after these calls; nothing where that cannot be told.

    Each call that succeeded uses up the clause its values stand in.
    """
    text, joined = request, False
    for call in calls:
        if call.ok:
            ends = [end for value in _leaves(call.arguments) if (end := _end(value, text)) is not None]
            joint = _JOINT.search(text, max(ends, default=0)) if ends or not call.arguments else None
            if joint is None:
                return Rest()
            text, joined = text[joint.end() :].strip(), any(map(str.isalpha, joint[0]))
    return Rest(text, joined) if text.strip(_EDGES) and text != request else Rest()


def first_clause(request: str) -> str:
    """Return what a request wants done first, where its words put one thing after another; else all of it."""
    joint = _SEQUENCE.search(request)
    return request[: joint.start()].strip(" ,;") if joint else request


def mentions(text: str, value: Any) -> bool:
    """Whether the text says the value, or any leaf of it."""
    return any(_end(leaf, text) is not None for leaf in _leaves(value))


def is_grounded(arguments: Mapping[str, Any], rest: Rest, results: Iterable[str]) -> bool:
    """Whether a further call takes at least one value from what is left to do.

    A value from an earlier result counts only where a word joins the clauses: "I have 80 pounds, how much
    is that?" is one request. A value that is the whole rest was not taken from it but repeats it.

    Args:
        arguments: The call's arguments.
        rest: What is left of the request.
        results: What the calls so far answered.
    """
    said = [leaf for leaf in _leaves(arguments) if not _echoes(leaf, rest.text)]
    sources = [rest.text, *results] if rest.joined else [rest.text]
    return not arguments or any(mentions(source, leaf) for source in sources for leaf in said)


def only_asked(arguments: Mapping[str, Any], schema: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the arguments without the optional ones the text does not mention.

    A small model fills what it could leave out. A yes or no is mentioned when the parameter's name is.
    """
    required = schema.get("required", ())
    return {name: value for name, value in arguments.items() if name in required or _is_asked(name, value, text)}


def _is_asked(name: str, value: Any, text: str) -> bool:
    if not isinstance(value, bool):
        return mentions(text, value)
    stems = [word[:_STEM] for word in re.split(r"[\W_]+", name.lower()) if len(word) >= _STEM]
    return any(stem in text.lower() for stem in stems)


def _echoes(leaf: Any, rest: str) -> bool:
    return isinstance(leaf, str) and " " in leaf.strip() and leaf.strip(_EDGES).lower() == rest.strip(_EDGES).lower()


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for member in cast("dict[str, Any]", value).values() for leaf in _leaves(member)]
    if isinstance(value, list):
        return [leaf for item in cast("list[Any]", value) for leaf in _leaves(item)]
    return [value]


def _end(value: Any, text: str) -> int | None:
    """Return where the value ends in the text, as whole words, or None when it is not there."""
    for form in _forms(value):
        plural = "(?:e?s)?" if form[-1:].isalpha() else ""
        if found := re.compile(rf"(?<!\w){re.escape(form)}{plural}(?!\w)", re.IGNORECASE).search(text):
            return found.end()
    return None


def _forms(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value.strip(_EDGES)] if value.strip(_EDGES) else []
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return []
    if not float(value).is_integer():
        return [repr(value)]
    whole = int(value)
    words = [_NUMBER_WORDS[whole]] if 0 <= whole < len(_NUMBER_WORDS) else []
    return [str(whole), f"{whole:,}", f"{whole}.0", *words]
