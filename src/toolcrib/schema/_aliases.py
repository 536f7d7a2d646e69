"""Legal stand-ins for names a provider refuses: unique, deterministic, whatever the order of the names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from hashlib import blake2s
from typing import NamedTuple

__all__ = ["Rule", "alias_of", "aliases"]

_SHORT = 4  # bytes of a hash that is checked against the other names
_LONG = 8  # bytes of one that is made without knowing them


class Rule(NamedTuple):
    """Which names a provider takes.

    Args:
        characters: The legal characters, as the inside of a regular-expression class.
        longest: The most characters a name may have.
        first: The legal first characters; None when they are those of the rest.
    """

    characters: str
    longest: int = 64
    first: str | None = None

    def allows(self, name: str) -> bool:
        """Return whether the provider takes `name` as it is."""
        return _legal(self).fullmatch(name) is not None

    def plain(self, name: str) -> str:
        """Return `name` with `_` for each character the provider refuses; it may still be too long, or empty."""
        plain = re.sub(f"[^{self.characters}]", "_", name)
        return plain if self.first is None or re.match(f"[{self.first}]", plain) else f"_{plain}"


@cache
def _legal(rule: Rule) -> re.Pattern[str]:
    return re.compile(f"[{rule.first or rule.characters}][{rule.characters}]{{0,{rule.longest - 1}}}")


def aliases(names: Iterable[str], rule: Rule) -> dict[str, str]:
    """Return a legal name for each of `names`, in their order.

    A legal name keeps itself. Any other gets its plain form when nothing else of the set has it, and a hash otherwise.
    """
    plain = {name: name if rule.allows(name) else rule.plain(name) for name in names}
    count = Counter(plain.values())
    hashed = {
        name for name, wire in plain.items() if not rule.allows(name) and (count[wire] > 1 or not rule.allows(wire))
    }
    taken = {wire for name, wire in plain.items() if name not in hashed}
    for name in sorted(hashed):
        attempts = (_hashed(name, rule, _SHORT, salt) for salt in range(len(plain) + 1))
        plain[name] = next(wire for wire in attempts if wire not in taken)
        taken.add(plain[name])
    return plain


def alias_of(name: str, rule: Rule) -> str:
    """Return a legal name for `name` that does not depend on any other: itself, or a hash."""
    return name if rule.allows(name) else _hashed(name, rule, _LONG, 0)


def _hashed(name: str, rule: Rule, size: int, salt: int) -> str:
    digest = blake2s(name.encode(errors="surrogatepass"), digest_size=size, salt=salt.to_bytes(8, "big")).hexdigest()
    return f"{rule.plain(name)[: rule.longest - len(digest) - 1]}_{digest}"
