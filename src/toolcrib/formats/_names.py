"""Which tool names each provider takes, and the names that stand in for the others."""

from __future__ import annotations

from collections.abc import Iterable

from toolcrib.schema._aliases import Rule, alias_of, aliases

__all__ = ["ANTHROPIC", "GEMINI", "MCP", "OPENAI", "gemini_name", "wire_names"]

OPENAI = Rule("a-zA-Z0-9_-")
ANTHROPIC = Rule("a-zA-Z0-9_-")
GEMINI = Rule("a-zA-Z0-9_.:-", first="a-zA-Z_")
MCP = Rule("a-zA-Z0-9_.-", longest=128)


def wire_names(names: Iterable[str], rule: Rule) -> dict[str, str]:
    """Return a legal name for each tool name: unique within the set, and the same in any order."""
    return aliases(names, rule)


def gemini_name(name: str) -> str:
    """Return a legal name that depends on nothing else, for a provider whose answers repeat the name."""
    return alias_of(str(name), GEMINI)  # a model may have asked for anything
