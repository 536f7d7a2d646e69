"""Raw text or a mapping in, validated keyword arguments out, or one message a model can act on.

Parsing is strict: duplicate keys, NaN and infinities, excess length and depth are refused, and
malformed JSON is never repaired. One thing is forgiven: a *string* where the schema wants something
else, which does not validate as it is but does once decoded as JSON, is decoded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from math import isfinite
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, cast

from jiter import from_json
from pydantic_core import CoreSchema, ErrorDetails, SchemaValidator, ValidationError, to_json

from toolcrib._json import first_unsafe
from toolcrib.errors import ToolArgumentError
from toolcrib.limits import DEFAULT_LIMITS, Limits
from toolcrib.schema._walk import names, properties_of
from toolcrib.schema.jsonschema import compiled
from toolcrib.schema.parameters import type_text

if TYPE_CHECKING:
    from jsonschema_rs import Validator

__all__ = ["FunctionReader", "Reader", "SchemaReader", "expected_call", "parse"]

_Path = tuple[Any, ...]


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
            return self._read_mapping(arguments, limits)
        if len(arguments) > limits.max_argument_chars:
            _too_long(self._name, len(arguments), limits)
        try:
            values = self._validate_json(arguments)
        except ValidationError as error:
            return self._second_look(arguments, error, limits)
        except TypeError:
            parse(self._name, arguments, limits)  # text that is no Unicode; any other TypeError is a validator's own
            raise
        if self._colons_tell and (arguments.count(":") == len(values) or _colons_explained(arguments, values)):
            return values
        _exactly(self._name, arguments, limits)
        return values

    def _read_mapping(self, arguments: Mapping[str, Any] | None, limits: Limits) -> dict[str, Any]:
        values = _members(self._name, arguments, limits)
        try:
            return self._validate_python(values)
        except ValidationError as error:
            return self._with_strings_decoded(values, self._details(error), limits)

    def _second_look(self, text: str, error: ValidationError, limits: Limits) -> dict[str, Any]:
        if inner := _object_in(text):
            return self.read(inner, limits)
        errors = self._details(error)
        if not [e for e in errors if isinstance(e["input"], str) or not e["loc"]]:
            raise self._refusal(errors)
        arguments = parse(self._name, text, limits)
        return (
            self._with_strings_decoded(arguments, errors, limits)
            if arguments
            else self._read_mapping(arguments, limits)
        )

    def _details(self, error: ValidationError) -> list[ErrorDetails]:
        """Return the errors one by one, which takes seconds when there are very many."""
        if error.error_count() > _MOST_ERRORS:
            problem = f"{error.error_count():,} problems, too many to list"
            raise _refusal(self._name, [problem], self._expected)
        return error.errors(include_url=False)

    def _with_strings_decoded(
        self, arguments: dict[str, Any], errors: list[ErrorDetails], limits: Limits
    ) -> dict[str, Any]:
        again = _decoding_strings(arguments, [e["loc"] for e in errors if isinstance(e["input"], str)], limits)
        try:
            if again is not None:
                return self._validate_json(to_json(again))
        except ValidationError:
            pass  # decoding did not help: the first errors say what the model really sent
        raise self._refusal(errors)

    def _refusal(self, errors: list[ErrorDetails]) -> ToolArgumentError:
        problems = [_pydantic_problem(cast("dict[str, Any]", e), self._schema) for e in errors]
        return _refusal(self._name, problems, self._expected)

    @functools.cached_property
    def _expected(self) -> str:
        return expected_call(self._name, self._schema)


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
        if isinstance(arguments, str):
            values = parse(self._name, arguments, limits)
        else:
            values = _members(self._name, arguments, limits)
            if bad := first_unsafe(values, "arguments"):
                raise _refusal(self._name, [_cut(": ".join(bad), 300)], self._expected)
        if self._validator is None or self._validator.is_valid(values):
            return values
        return self._second_look(self._validator, values, limits)

    def _second_look(self, validator: Validator, values: dict[str, Any], limits: Limits) -> dict[str, Any]:
        errors = _foreign_errors(validator, values)
        again = _decoding_strings(values, [tuple(e.instance_path) for e in errors], limits)
        if again is not None and validator.is_valid(again):
            return again
        raise _refusal(self._name, [_foreign_problem(e) for e in errors], self._expected)

    @functools.cached_property
    def _expected(self) -> str:
        return expected_call(self._name, self._schema)


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
    values = _exactly(name, _object_in(text) or text, limits)
    if not isinstance(values, dict):
        kind = _KINDS.get(type(values).__name__, "number")
        raise ToolArgumentError(
            f"Arguments for '{name}' must be a JSON object, not {kind}", (f"not an object: {kind}",)
        )
    return cast("dict[str, Any]", values)


_KINDS = {"list": "array", "str": "string", "NoneType": "null", "bool": "boolean"}


def _members(name: str, arguments: Any, limits: Limits) -> dict[str, Any]:
    """Return the members of a mapping that an SDK has parsed, or a caller made.

    Raises:
        ToolArgumentError: It is no mapping, too deep, or holds a number JSON has not.
    """
    if arguments is None:
        return {}
    if not isinstance(arguments, Mapping):
        problem = f"must be a JSON object, as text or as a mapping, not {type(arguments).__name__}"
        raise ToolArgumentError(f"Arguments for '{name}' {problem}", (problem,))
    values = dict(cast("Mapping[str, Any]", arguments))
    if problem := _excess(values, limits.max_argument_depth):
        raise ToolArgumentError(f"Arguments for '{name}' hold {problem}", (problem,))
    if (length := _length(values)) > limits.max_argument_chars:
        _too_long(name, length, limits)
    return _copied(values)


def _length(value: Any) -> int:
    """Return about how many characters the JSON text of a value has; never more than there are."""
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, dict):
        members = cast("dict[Any, Any]", value)
        return 2 + sum(_length(key) + _length(item) for key, item in members.items())
    return 2 + sum(map(_length, cast("list[Any]", value))) if isinstance(value, (list, tuple)) else 1


def _copied(value: Any) -> Any:
    """Return plain containers as new ones: whatever a tool does to its arguments, the model said what it said."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in cast("dict[Any, Any]", value).items()}
    return [_copied(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def _excess(value: Any, room: int) -> str | None:
    """Return what in a value no JSON text of acceptable depth can hold, other than objects of unknown types."""
    if isinstance(value, float):
        return None if isfinite(value) else f"{value}, which is not a JSON number"
    if not isinstance(value, (dict, list, tuple)):
        return None
    if room <= 0:
        return "something nested too deep, or circular"
    items = cast("dict[Any, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value)
    return next((problem for item in items if (problem := _excess(item, room - 1))), None)


def _exactly(name: str, text: str, limits: Limits) -> Any:
    """Return what a text holds; lax parsers let through keys that stand twice, infinities, any depth."""
    try:
        values = _strict(text)
    except ValueError as error:
        reason = _cut(str(error), 300)
        raise ToolArgumentError(f"Arguments for '{name}' are not valid JSON: {reason}", (reason,)) from None
    if text.count("{") + text.count("[") > limits.max_argument_depth and _depth(values) > limits.max_argument_depth:
        problem = f"nested deeper than {limits.max_argument_depth} levels"
        raise ToolArgumentError(f"Arguments for '{name}' are {problem}", (problem,))
    return values


def _strict(text: str) -> Any:
    """Return the JSON value in `text`.

    Raises:
        ValueError: It is malformed, or holds a key twice or a number JSON has not.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise ValueError("it has a lone surrogate") from None
    values = from_json(data, allow_inf_nan=False, catch_duplicate_keys=True)
    plain = data.translate(_PLAIN_NUMBERS, b"+")
    if (b"e000" in plain or _LONG_NUMBER in plain) and first_unsafe(values, ""):
        raise ValueError("a number is too large")
    return values


# A number takes an exponent of three digits, or very many digits, to be read as infinity.
_PLAIN_NUMBERS = bytes.maketrans(b"123456789E", b"000000000e")
_LONG_NUMBER = b"0" * 200


def _colons_explained(text: str, values: dict[str, Any]) -> bool:
    """Whether the arguments and the colons in their texts are all the colons there are, so that no key stands twice."""
    colons = len(values)
    for value in values.values():
        if value.__class__ is str:
            colons += value.count(":")
    return colons == text.count(":") and "\\u003" not in text


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


def _decoding_strings(arguments: dict[str, Any], paths: Sequence[_Path], limits: Limits) -> dict[str, Any] | None:
    """Return a copy whose strings at `paths` are decoded as JSON, or None when none of them can be."""
    copy: Any = from_json(to_json(arguments)) if paths and not first_unsafe(arguments, "") else None
    changed = False
    for path in paths if copy is not None else ():
        parent, key, text = _string_on(copy, path)
        decoded = _decoded(text)
        if parent is not None and decoded is not None:
            parent[key] = decoded[0]
            changed = True
    return None if not changed or _excess(copy, limits.max_argument_depth) else copy


def _string_on(root: Any, path: _Path) -> tuple[Any, Any, str]:
    """Follow a path as far as it exists, since pydantic adds the names of union branches to it."""
    parent, key, node = None, None, root
    for step in path:
        found = _key_of(node, step)
        if _has(node, found):
            parent, key, node = node, found, node[found]
    return (parent, key, node) if isinstance(node, str) else (None, None, "")


def _key_of(node: Any, step: Any) -> Any:
    return str(step) if isinstance(node, dict) else step  # jsonschema-rs takes the key "0" for a number


def _has(node: Any, step: Any) -> bool:
    if isinstance(node, dict):
        return step in node
    return isinstance(node, list) and isinstance(step, int) and step < len(cast("list[Any]", node))


def _decoded(text: str) -> tuple[Any] | None:
    """Return what a string holds as JSON; None when it is no JSON, or holds just another string."""
    try:
        value = _strict(text)
    except ValueError:
        return None
    return None if isinstance(value, str) else (value,)


def _object_in(text: str) -> str | None:
    """Return the text of an object that was sent as a string, or None when it is anything else."""
    if not text.lstrip().startswith('"'):
        return None
    try:
        inner = _strict(text)
    except ValueError:
        return None
    return inner if isinstance(inner, str) and inner.lstrip().startswith("{") else None


# -- errors for a model


def _refusal(name: str, problems: list[str], expected: str) -> ToolArgumentError:
    unique = tuple(dict.fromkeys(map(_encodable, problems)))
    more = len(unique) - _MOST_PROBLEMS
    lines = unique if more <= 0 else (*unique[:_MOST_PROBLEMS], f"and {more} more")
    listed = "\n- ".join(lines)
    return ToolArgumentError(f"Invalid arguments for '{name}':\n- {listed}\nExpected: {expected}", unique)


_MOST_PROBLEMS = 12
_MOST_ERRORS = 1_000
_MOST_NODES = 5_000
_MOST_EXPECTED = 2_000


def _foreign_errors(validator: Validator, values: Any) -> list[Any]:
    """Return what is wrong; of very large values only the first, since each error holds a copy of its part."""
    if not _is_large(values):
        return list(validator.iter_errors(values))
    try:
        validator.validate(values)
    except ValueError as error:
        return [error]
    return []


def _is_large(values: Any) -> bool:
    waiting, seen = [values], 0
    while waiting and seen <= _MOST_NODES:
        node = waiting.pop()
        if isinstance(node, (dict, list)):
            waiting += cast("dict[str, Any]", node).values() if isinstance(node, dict) else cast("list[Any]", node)
            seen += len(cast("list[Any]", node))
    return seen > _MOST_NODES


def expected_call(name: str, schema: Mapping[str, Any]) -> str:
    """Return the tool as one line of a signature, such as `add(a: int, b: int = 0)`."""
    required, properties = names(schema, "required"), properties_of(schema)
    parts: list[str] = []
    for key in sorted(properties, key=lambda key: key not in required):
        default = "" if key in required else _default_of(properties[key])
        parts.append(f"{key}: {_cut(type_text(properties[key], schema), 500)}{default}")
    return _cut(f"{name}({', '.join(parts)})", _MOST_EXPECTED)


def _default_of(schema: Any) -> str:
    return f" = {_shown(schema['default'])}" if isinstance(schema, dict) and "default" in schema else " (optional)"


def _pydantic_problem(error: dict[str, Any], schema: Mapping[str, Any]) -> str:
    path, kind = _path(error["loc"]), error["type"]
    if kind == "missing":
        return f"{path}: required, but missing"
    if kind == "extra_forbidden":
        nested = len(error["loc"]) > 1
        return f"{path}: not a parameter{'' if nested else _near(str(error['loc'][0]), schema.get('properties', {}))}"
    if kind == "literal_error":
        return f"{path}: must be {_cut(error['ctx']['expected'], 300)}, not {_shown(error['input'])}"
    message = _cut(error["msg"], 300)
    plain = message[0].lower() + message[1:] if message[:1].isupper() and not message[1:2].isupper() else message
    return f"{path}: {plain}, not {_shown(error['input'])}"


def _foreign_problem(error: Any) -> str:
    return f"{_path(tuple(error.instance_path))}: {_cut(error.message, 300)}"


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _near(name: str, known: Mapping[str, Any]) -> str:
    near = get_close_matches(name[:100], list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _path(steps: _Path) -> str:
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{_cut(step, 80)}" if text else _cut(str(step), 80)
    return _cut(text, 300) or "arguments"


def _shown(value: Any) -> str:
    """Return a short JSON text of a value; the rest of a long one is left out."""
    shorten: Callable[[Any], str] = lambda value: f"<{type(value).__name__}>"  # noqa: E731  # a fallback of one line
    if type(value).__module__ != "builtins":
        return shorten(value)
    try:
        return _cut(to_json(value, fallback=shorten).decode(), 80)
    except ValueError:
        return f"<{type(value).__name__}>"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 20]}…{text[-15:]}"
