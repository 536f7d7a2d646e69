"""What a small model may write: one of the tools' names, then arguments under that tool's schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["answer_grammar", "arguments_grammar", "choice_grammar", "literal"]

_LONGEST_TEXT = 160  # characters; a small model may never close a string that has no end
_LONGEST_LIST = 16
# The grammar loses its hold on the whole text when a schema says one of these.
_UNKNOWN = frozenset({"not", "uniqueItems", "patternProperties", "if", "then", "else", "dependentSchemas"})
_MAPS = frozenset({"properties", "$defs", "definitions"})  # their keys are names, not keywords
_DATA = frozenset({"enum", "const", "default", "examples"})


def literal(text: str) -> str:
    """Return `text` as a GBNF literal."""
    return json.dumps(text, ensure_ascii=False)


def choice_grammar(names: Iterable[str]) -> str:
    """Return the grammar of one of the names as JSON text with its closing quote.

    The quote is what tells `add` from `add_all`.
    """
    return "root ::= " + " | ".join(literal(json.dumps(name, ensure_ascii=False)[1:]) for name in names)


def answer_grammar(schema: Mapping[str, Any]) -> str:
    """Return the grammar of an answer in JSON.

    Args:
        schema: Its schema.
    """
    return "%llguidance {}\nstart: %json " + json.dumps({**_bounded(schema), "x-guidance": _SPACING})


def arguments_grammar(schema: Mapping[str, Any]) -> str:
    """Return the grammar of a tool's arguments and of the brace that closes the call around them.

    A model that has seen whole calls wants to write both braces as one token. Were the second one not
    allowed, it could not close its last string either.

    Args:
        schema: The tool's input schema; what the grammar cannot hold is left to validation.
    """
    bounded = cast("dict[str, Any]", _bounded(schema))
    bounded.setdefault("additionalProperties", False)
    return '%llguidance {}\nstart: args "}"\nargs: %json ' + json.dumps({**bounded, "x-guidance": _SPACING})


_SPACING = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}


def _bounded(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_bounded(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _member(key, value) for key, value in cast("dict[str, Any]", schema).items() if key not in _UNKNOWN}
    if kept.get("type") == "string" and not kept.keys() & {"enum", "const", "pattern", "format"}:
        kept["maxLength"] = max(min(kept.get("maxLength", _LONGEST_TEXT), _LONGEST_TEXT), kept.get("minLength", 0))
    if kept.get("type") == "array":
        kept["maxItems"] = max(min(kept.get("maxItems", _LONGEST_LIST), _LONGEST_LIST), kept.get("minItems", 0))
    return kept


def _member(key: str, value: Any) -> Any:
    if key in _DATA:
        return value
    if key in _MAPS and isinstance(value, dict):
        return {name: _bounded(member) for name, member in cast("dict[str, Any]", value).items()}
    return _bounded(value)
