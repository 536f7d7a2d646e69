"""Raw text or a mapping in, validated keyword arguments out, or one message a model can act on.

Parsing is strict: duplicate keys, NaN and infinities, excess length and depth are refused, and
malformed JSON is never repaired. One thing is forgiven: a *string* where the schema wants something
else, which does not validate as it is but does once decoded as JSON, is decoded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn, Protocol, cast

from pydantic_core import CoreSchema, SchemaValidator, ValidationError, from_json, to_json

from toolcrib._json import first_unsafe
from toolcrib.errors import ToolArgumentError
from toolcrib.limits import DEFAULT_LIMITS, Limits
from toolcrib.schema.jsonschema import compiled
from toolcrib.schema.parameters import type_text

__all__ = ["FunctionReader", "Reader", "SchemaReader", "expected_call"]

Path = tuple[Any, ...]


class Reader(Protocol):
    """Whatever turns the arguments of one tool into keyword arguments."""

    def read(self, arguments: str | Mapping[str, Any] | None, limits: Limits = DEFAULT_LIMITS) -> dict[str, Any]:
        """Return validated keyword arguments; raises ToolArgumentError."""
        ...


class FunctionReader:
    """Reads the arguments of one of our own functions: pydantic-core validates the JSON text directly.

    Args:
        name: The tool's name, for errors.
        schema: Its JSON Schema, for errors.
        core: The typed dict that validates; see `schema.signature.Shape`.
        colons_tell: Whether as many colons as arguments prove that no key stands twice.
    """

    def __init__(self, name: str, schema: Mapping[str, Any], core: CoreSchema, *, colons_tell: bool) -> None:
        self._name = name
        self._schema = schema
        validator = SchemaValidator(core)
        self._validate_json = validator.validate_json
        self._validate_python = validator.validate_python
        self._colons_tell = colons_tell

    def read(self, arguments: str | Mapping[str, Any] | None, limits: Limits = DEFAULT_LIMITS) -> dict[str, Any]:
        """Return keyword arguments as the function's types say.

        Args:
            arguments: JSON text, or a mapping; empty text and None mean no arguments.
            limits: How long and how deep the text may be.

        Raises:
            ToolArgumentError: They do not fit, or are not acceptable JSON.
        """
        if not isinstance(arguments, str):
            return self._read_mapping(arguments or {})
        if len(arguments) > limits.max_argument_chars:
            _too_long(self._name, len(arguments), limits)
        try:
            values = self._validate_json(arguments)
        except ValidationError as error:
            return self._second_look(arguments, error, limits)
        if not self._colons_tell or arguments.count(":") != len(values):
            _check_exactly(self._name, arguments, limits)
        return values

    def _read_mapping(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return self._validate_python(dict(arguments))
        except ValidationError as error:
            return self._decoding_strings(dict(arguments), error)

    def _second_look(self, text: str, error: ValidationError, limits: Limits) -> dict[str, Any]:
        values = parse(self._name, text, limits)
        return self._decoding_strings(values, error) if values else self._read_mapping(values)

    def _decoding_strings(self, arguments: dict[str, Any], error: ValidationError) -> dict[str, Any]:
        errors = error.errors(include_url=False)
        if any(isinstance(e["input"], str) for e in errors):
            again = _with_strings_decoded(arguments, [e["loc"] for e in errors if isinstance(e["input"], str)])
            try:
                if again is not None:
                    return self._validate_json(to_json(again))
            except ValidationError:
                pass  # decoding did not help: the first errors say what the model really sent
        problems = [_pydantic_problem(cast("dict[str, Any]", e), self._schema) for e in errors]
        raise _refusal(self._name, self._schema, problems)


class SchemaReader:
    """Reads the arguments of a tool with a foreign schema: checked against that very schema, values unchanged.

    Args:
        name: The tool's name, for errors.
        schema: The JSON Schema, verbatim.
        validate: Whether to check against it; parsing is strict either way.

    Raises:
        ToolSignatureError: The schema is not valid, or refers to something outside itself.
    """

    def __init__(self, name: str, schema: Mapping[str, Any], *, validate: bool = True) -> None:
        self._name = name
        self._schema = schema
        self._validator = compiled(schema) if validate else None

    def read(self, arguments: str | Mapping[str, Any] | None, limits: Limits = DEFAULT_LIMITS) -> dict[str, Any]:
        """Return the arguments as they came.

        Raises:
            ToolArgumentError: They do not fit the schema, or are not acceptable JSON.
        """
        values = parse(self._name, arguments, limits) if isinstance(arguments, str) else dict(arguments or {})
        if not isinstance(arguments, str) and (bad := first_unsafe(values, "arguments")):
            raise ToolArgumentError(f"Invalid arguments for '{self._name}': {bad[0]}: {bad[1]}", (": ".join(bad),))
        if self._validator is None or self._validator.is_valid(values):
            return values
        return self._second_look(values)

    def _second_look(self, values: dict[str, Any]) -> dict[str, Any]:
        assert self._validator is not None  # noqa: S101  # read() comes here only after validating
        errors = list(self._validator.iter_errors(values))
        paths: list[Path] = [tuple(e.instance_path) for e in errors]
        again = _with_strings_decoded(values, [path for path in paths if isinstance(_at(values, path), str)])
        if again is not None and self._validator.is_valid(again):
            return again
        raise _refusal(self._name, self._schema, [_foreign_problem(e) for e in errors])


# -- strict parsing


def parse(name: str, text: str, limits: Limits) -> dict[str, Any]:
    """Return the JSON object in `text`.

    Raises:
        ToolArgumentError: It is malformed, too long or deep, holds a key twice or a number JSON has not,
            or is not an object.
    """
    if len(text) > limits.max_argument_chars:
        _too_long(name, len(text), limits)
    if not text.strip():
        return {}
    try:
        values = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        reason = str(error)
        raise ToolArgumentError(f"Arguments for '{name}' are not valid JSON: {reason}", (reason,)) from None
    if not isinstance(values, dict):
        kind = _KINDS.get(type(values).__name__, "number")
        raise ToolArgumentError(
            f"Arguments for '{name}' must be a JSON object, not {kind}", (f"not an object: {kind}",)
        )
    _check_exactly(name, text, limits, values)
    return cast("dict[str, Any]", values)


_KINDS = {"list": "array", "str": "string", "NoneType": "null", "bool": "boolean"}


def _check_exactly(name: str, text: str, limits: Limits, values: Any = None) -> None:
    """Refuse what the parser lets through: keys that stand twice, infinities, excess depth.

    Each member owns one colon and parsing drops duplicates, so writing the parsed data again tells
    whether any was dropped; only an escaped colon could hide that, and then every key is looked at.
    """
    if not text.strip():
        return
    try:
        if "\\u003" in text.lower():
            _STRICT.decode(text)
        values = from_json(text, allow_inf_nan=False) if values is None else values
        written = to_json(values, inf_nan_mode="constants")
        if written.count(b":") != text.count(":") and "\\u003" not in text.lower():
            _STRICT.decode(text)
        if b"Infinity" in written and "Infinity" not in text:
            raise ValueError("a number is too large")  # noqa: TRY301  # the message is given below, once
    except (ValueError, RecursionError) as error:
        raise ToolArgumentError(f"Arguments for '{name}' are not valid JSON: {error}", (str(error),)) from None
    if text.count("{") + text.count("[") > limits.max_argument_depth and _depth(values) > limits.max_argument_depth:
        problem = f"nested deeper than {limits.max_argument_depth} levels"
        raise ToolArgumentError(f"Arguments for '{name}' are {problem}", (problem,))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {_shown(twice)} stands twice in one object")
    return members


_STRICT = json.JSONDecoder(object_pairs_hook=_unique)


def _depth(value: Any) -> int:
    deepest, level = 0, [value]
    while level:
        children: list[Any] = []
        for item in level:
            if isinstance(item, (dict, list)):
                children += cast("dict[str, Any]", item).values() if isinstance(item, dict) else cast("list[Any]", item)
        deepest += any(isinstance(item, (dict, list)) for item in level)
        level = children
    return deepest


def _too_long(name: str, length: int, limits: Limits) -> NoReturn:
    problem = f"{length:,} characters long, but at most {limits.max_argument_chars:,} are accepted"
    raise ToolArgumentError(f"Arguments for '{name}' are {problem}", (problem,))


# -- strings that should not have been


def _with_strings_decoded(arguments: dict[str, Any], paths: Sequence[Path]) -> dict[str, Any] | None:
    """Return a copy whose strings at `paths` are decoded as JSON, or None when none of them can be."""
    copy: Any = from_json(to_json(arguments)) if paths and not first_unsafe(arguments, "") else None
    changed = False
    for path in paths if copy is not None else ():
        parent, key, text = _string_on(copy, path)
        decoded = _decoded(text)
        if parent is not None and decoded is not None:
            parent[key] = decoded[0]
            changed = True
    return copy if changed else None


def _string_on(root: Any, path: Path) -> tuple[Any, Any, str]:
    """Follow a path as far as it exists, since pydantic adds the names of union branches to it."""
    parent, key, node = None, None, root
    for step in path:
        if _has(node, step):
            parent, key, node = node, step, node[step]
    return (parent, key, node) if isinstance(node, str) else (None, None, "")


def _has(node: Any, step: Any) -> bool:
    if isinstance(node, dict):
        return step in node
    return isinstance(node, list) and isinstance(step, int) and step < len(cast("list[Any]", node))


def _decoded(text: str) -> tuple[Any] | None:
    """Return what a string holds as JSON; None when it is no JSON, or holds just another string."""
    try:
        value = from_json(text, allow_inf_nan=False)
        _STRICT.decode(text)
    except (ValueError, RecursionError):
        return None
    return None if isinstance(value, str) else (value,)


def _at(values: Any, path: Path) -> Any:
    for step in path:
        values = values[step]
    return values


# -- errors for a model


def _refusal(name: str, schema: Mapping[str, Any], problems: list[str]) -> ToolArgumentError:
    unique = list(dict.fromkeys(problems))
    lines = unique[:_MOST_PROBLEMS]
    if len(unique) > len(lines):
        lines.append(f"and {len(unique) - len(lines)} more")
    listed = "".join(f"\n- {line}" for line in lines)
    message = f"Invalid arguments for '{name}':{listed}\nExpected: {expected_call(name, schema)}"
    return ToolArgumentError(message, tuple(unique))


_MOST_PROBLEMS = 12


def expected_call(name: str, schema: Mapping[str, Any]) -> str:
    """Return the tool as one line of a signature, such as `add(a: int, b: int = 0)`."""
    required = schema.get("required", ())
    properties = cast("Mapping[str, Any]", schema.get("properties", {}))
    parts: list[str] = []
    for key in sorted(properties, key=lambda key: key not in required):
        default = "" if key in required else _default_of(properties[key])
        parts.append(f"{key}: {type_text(properties[key], schema)}{default}")
    return f"{name}({', '.join(parts)})"


def _default_of(schema: Any) -> str:
    return f" = {_shown(schema['default'])}" if isinstance(schema, dict) and "default" in schema else " (optional)"


def _pydantic_problem(error: dict[str, Any], schema: Mapping[str, Any]) -> str:
    path, kind = _path(error["loc"]), error["type"]
    if kind == "missing":
        return f"{path}: required, but missing"
    if kind == "extra_forbidden":
        return f"{path}: not a parameter{_near(str(error['loc'][-1]), schema.get('properties', {}))}"
    if kind == "literal_error":
        return f"{path}: must be {error['ctx']['expected']}, not {_shown(error['input'])}"
    message = error["msg"]
    plain = message[0].lower() + message[1:] if message[:1].isupper() and not message[1:2].isupper() else message
    return f"{path}: {plain}, not {_shown(error['input'])}"


def _foreign_problem(error: Any) -> str:
    return f"{_path(tuple(error.instance_path))}: {_cut(error.message, 300)}"


def _near(name: str, known: Mapping[str, Any]) -> str:
    near = get_close_matches(name[:100], list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _path(steps: Path) -> str:
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text or "arguments"


def _shown(value: Any) -> str:
    """Return a short JSON text of a value; the rest of a long one is left out."""
    shorten: Callable[[Any], str] = lambda value: f"<{type(value).__name__}>"  # noqa: E731  # a fallback of one line
    try:
        return _cut(to_json(value, fallback=shorten).decode(), 80)
    except ValueError:
        return f"<{type(value).__name__}>"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 20]}…{text[-15:]}"
