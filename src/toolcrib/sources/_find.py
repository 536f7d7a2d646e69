"""Which tools of a large set a few words are about."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.tools import Tool

__all__ = ["Finder"]

_NAME_WEIGHT = 3
_SHORTEST = 2


class Finder:
    """Ranks tools by the words they share with a query: rare words count more, and words of a name most.

    Args:
        tools: The tools by the names they are found under.
    """

    def __init__(self, tools: Iterable[tuple[str, Tool]]) -> None:
        self._words = {
            name: Counter(_words(f"{tool.description} {' '.join(tool.input_schema.get('properties', {}))}"))
            + Counter(dict.fromkeys(_words(f"{name} {tool.name}"), _NAME_WEIGHT))
            for name, tool in tools
        }
        self._spread = Counter(word for words in self._words.values() for word in words)

    def best(self, query: str, most: int = 8) -> list[str]:
        """Return the names of the tools that fit best, best first.

        Args:
            query: What is looked for.
            most: How many at most.
        """
        wanted = set(_words(query))
        scores = {name: sum(self._weight(word, words) for word in wanted) for name, words in self._words.items()}
        found = [name for name, score in scores.items() if score > 0]
        return sorted(found, key=lambda name: -scores[name])[:most]

    def _weight(self, word: str, words: Counter[str]) -> float:
        return (
            min(words[word], _NAME_WEIGHT) * math.log(1 + len(self._words) / self._spread[word]) if words[word] else 0.0
        )


def _words(text: str) -> list[str]:
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    words = (word.lower() for word in re.findall(r"[^\W_]+", parted))
    return [word.removesuffix("s") for word in words if len(word) >= _SHORTEST]
