"""SKILL.md: what a skill that is kept as a folder says of itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from toolcrib._terminal import printable
from toolcrib.errors import MissingExtraError
from toolcrib.limits import MAX_FRONT_MATTER_CHARS
from toolcrib.results import clean

__all__ = ["SKILL_FILE", "SkillCard", "body_of", "read_card"]

SKILL_FILE = "SKILL.md"

# What the open format allows.
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_MAX_NAME_CHARS = 64
_MAX_DESCRIPTION_CHARS = 1024

_FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


class SkillCard(NamedTuple):
    """What a skill says of itself in the front matter of its SKILL.md.

    Args:
        name: Lower-case letters, digits and hyphens.
        description: What it does and when to use it; one line.
        path: Its folder.
        license: The licence, if it says.
        compatibility: What it needs around it, if it says.
        allowed_tools: The tools it would like to use without being asked; told, never granted.
        metadata: Whatever else its author says.
    """

    name: str
    description: str
    path: Path
    license: str | None = None
    compatibility: str | None = None
    allowed_tools: tuple[str, ...] = ()
    metadata: Mapping[str, str] = {}


def read_card(text: str, path: Path) -> SkillCard:
    """Return what a SKILL.md says of its skill.

    Args:
        text: All of the file.
        path: The skill's folder.

    Raises:
        ValueError: It breaks a rule of the format; the message says which.
        MissingExtraError: The `skills` extra is not installed.
    """
    facts = _facts(text)
    name = facts.get("name")
    if not isinstance(name, str) or len(name) > _MAX_NAME_CHARS or not _NAME.fullmatch(name):
        raise ValueError("its name must be lower-case letters, digits and single hyphens, 64 at most")
    description = _line(facts.get("description"))
    if not description or len(description) > _MAX_DESCRIPTION_CHARS:
        raise ValueError(f"its description must be a text of 1 to {_MAX_DESCRIPTION_CHARS} characters")
    metadata = facts.get("metadata")
    return SkillCard(
        name,
        description,
        path,
        license=_line(facts.get("license")) or None,
        compatibility=_line(facts.get("compatibility")) or None,
        allowed_tools=tuple(_line(facts.get("allowed-tools")).split()),
        metadata=_texts(cast("Mapping[Any, Any]", metadata)) if isinstance(metadata, Mapping) else {},
    )


def body_of(text: str) -> str:
    """Return the instructions of a SKILL.md: all that follows its front matter."""
    found = _FRONT_MATTER.match(text)
    return text[found.end() :].strip() if found else text.strip()


def _facts(text: str) -> Mapping[Any, Any]:
    found = _FRONT_MATTER.match(text)
    if found is None:
        raise ValueError("it must begin with front matter between two lines of ---")
    if len(found[1]) > MAX_FRONT_MATTER_CHARS:
        raise ValueError(f"its front matter is longer than {MAX_FRONT_MATTER_CHARS:,} characters")
    try:
        import yaml
    except ImportError:
        raise MissingExtraError("skills", "a skill folder") from None
    try:
        facts = yaml.safe_load(found[1])
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = " ".join(str(getattr(error, "problem", None) or "nested too deep").split())
        raise ValueError(f"its front matter is not YAML ({problem}): put quotes around text with a colon") from None
    if not isinstance(facts, Mapping):
        raise ValueError("its front matter must be name: value lines")  # noqa: TRY004  # of a file, not of an argument
    return cast("Mapping[Any, Any]", facts)


def _texts(metadata: Mapping[Any, Any]) -> dict[str, str]:
    return {
        _line(str(key)): _line(str(value)) for key, value in metadata.items() if isinstance(value, str | int | float)
    }


def _line(text: Any) -> str:
    """Return foreign text as one line without anything that is not seen; what is no text is empty."""
    return " ".join(printable(clean(text)).split()) if isinstance(text, str) else ""
