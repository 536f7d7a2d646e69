"""Made-up values that fit a JSON Schema, for showing a small model what a call looks like."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["example_arguments", "resolved"]

_DEEPEST = 6  # levels of objects and arrays; what is deeper is left empty
_EMPTY: dict[str, Any] = {"array": [], "object": {}, "string": ""}
_WORDS = ("Zagreb", "violet", "Quinn")
_NUMBERS = (7, 12, 40)
_INTEGERS = (3, 8, 5)
_FORMATS = {
    "date": ("2026-03-14", "2027-01-30", "2026-11-05"),
    "date-time": ("2026-03-14T09:30:00Z", "2027-01-30T18:00:00Z", "2026-11-05T12:15:00Z"),
    "time": ("09:30:00Z", "18:00:00Z", "12:15:00Z"),
    "duration": ("PT5M", "PT1H", "P2D"),
    "email": ("sam@example.com", "kim@example.com", "lou@example.com"),
    "uri": ("https://example.com/a", "https://example.com/b", "https://example.com/c"),
    "uuid": tuple(f"6f1c2a9e-1b7d-4c3e-9a5f-0d2b4c6e8a1{digit}" for digit in "014"),
    "ipv4": ("192.0.2.1", "192.0.2.7", "192.0.2.9"),
    "ipv6": ("2001:db8::1", "2001:db8::7", "2001:db8::9"),
}


def example_arguments(schema: Mapping[str, Any], turn: int) -> dict[str, Any]:
    """Return the required arguments of a tool with values that fit, differing from turn to turn.

    A string that must match a pattern takes one of the schema's examples or its default where it has
    them; without those it is a plain word, which may not match.

    Args:
        schema: The tool's input schema.
        turn: Which of the possible values to take.
    """
    return _object(resolved(schema, schema), _Maker(schema, turn))


class _Maker:
    """What is known on the way down a schema."""

    def __init__(self, root: Mapping[str, Any], turn: int, depth: int = 0) -> None:
        self.root = root
        self.turn = turn
        self.depth = depth

    def deeper(self, step: int) -> _Maker:
        return _Maker(self.root, self.turn + step, self.depth + 1)

    def pick(self, values: Any) -> Any:
        return values[self.turn % len(values)]


def resolved(schema: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema a local `$ref` stands for, with what is said beside it; any other as it is."""
    found: dict[str, Any] = dict(cast("Mapping[str, Any]", schema)) if isinstance(schema, dict) else {}
    for _ in range(_DEEPEST):
        reference = found.pop("$ref", None)
        if not isinstance(reference, str) or not reference.startswith("#"):
            break
        target: Any = root
        for key in reference.split("/")[1:]:
            key = key.replace("~1", "/").replace("~0", "~")  # noqa: PLW2901  # JSON pointer's own escapes
            target = cast("Mapping[str, Any]", target).get(key) if isinstance(target, dict) else None
        found = {**(cast("dict[str, Any]", target) if isinstance(target, dict) else {}), **found}
    return found


def _object(schema: Mapping[str, Any], maker: _Maker) -> dict[str, Any]:
    members: Mapping[str, Any] = schema.get("properties") or {}
    required = [name for name in members if name in schema.get("required", ())]
    made = {name: _value(members[name], maker.deeper(step)) for step, name in enumerate(required)}
    extra = schema.get("additionalProperties")
    if not made and not members and isinstance(extra, dict):
        made[maker.pick(_WORDS)] = _value(extra, maker.deeper(0))
    return made


def _value(schema: Any, maker: _Maker) -> Any:
    schema = resolved(schema, maker.root)
    for key in ("const", "default"):
        if key in schema and schema[key] is not None:
            return schema[key]
    for key in ("enum", "examples"):
        if schema.get(key):
            return maker.pick(schema[key])
    if maker.depth > _DEEPEST:
        return _EMPTY.get(schema.get("type", ""))
    for key in ("anyOf", "oneOf"):
        if branches := [branch for branch in schema.get(key, ()) if branch.get("type") != "null"]:
            return _value(branches[0], maker)
    for branch in schema.get("allOf", ()):
        schema = {**resolved(branch, maker.root), **{key: value for key, value in schema.items() if key != "allOf"}}
    return _typed(schema, maker)


def _typed(schema: dict[str, Any], maker: _Maker) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = next((each for each in cast("list[str]", kind) if each != "null"), "null")
    if kind == "object":
        return _object(schema, maker)
    if kind == "array":
        return _array(schema, maker)
    if kind in {"integer", "number"}:
        return _number(schema, maker.pick(_INTEGERS if kind == "integer" else _NUMBERS))
    if kind == "string":
        return _string(schema, maker)
    return maker.pick((True, False)) if kind == "boolean" else None


def _array(schema: dict[str, Any], maker: _Maker) -> list[Any]:
    first = [_value(item, maker.deeper(step)) for step, item in enumerate(schema.get("prefixItems", ()))]
    wanted = max(schema.get("minItems", 1), 1) - len(first)
    if schema.get("items") is False or wanted <= 0:
        return first
    return first + [_value(schema.get("items"), maker.deeper(step)) for step in range(min(wanted, _DEEPEST))]


def _string(schema: dict[str, Any], maker: _Maker) -> str:
    text: str = maker.pick(_FORMATS.get(schema.get("format", ""), _WORDS))
    text = text.ljust(min(schema.get("minLength", 0), 200), "a")
    return text[: schema.get("maxLength", len(text))]


def _number(schema: dict[str, Any], wished: float) -> float:
    low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    step = schema.get("multipleOf") or 1
    low = max(low, schema.get("exclusiveMinimum", -math.inf) + step)
    high = min(high, schema.get("exclusiveMaximum", math.inf) - step)
    value = min(max(wished, low), high)
    if "multipleOf" not in schema:
        return value
    value = math.ceil(value / step) * step
    return value if value <= high else math.floor(high / step) * step
