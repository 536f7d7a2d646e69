"""Schemas of an OpenAPI document as JSON Schemas of what is sent, each part converted once and shared."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from pydantic_core import to_json

from toolcrib.errors import ToolSignatureError
from toolcrib.limits import MAX_OPERATION_SCHEMA_CHARS
from toolcrib.results import clean
from toolcrib.schema.jsonschema import compiled
from toolcrib.sources._openapi_document import Document, Found, Lost, as_list, as_map

__all__ = ["Schema", "Schemas", "nullable"]

Schema = dict[str, Any]

_PREFIX = "#/$defs/"


class Schemas:
    """Turns the schemas of one document into JSON Schemas, with `$ref`s into `$defs`.

    They describe what is sent: `readOnly` properties are left out. A choice of `oneOf` becomes `anyOf`,
    since the alternatives of real documents overlap, and leaving properties out makes more of them do so.

    Args:
        document: What references go by.
        note: Told of what was given up.
    """

    def __init__(self, document: Document, note: Callable[[str], None]) -> None:
        self.note = note
        self._document = document
        self._names: dict[str, str] = {}
        self._parts: dict[str, Schema] = {}
        self._reached: dict[str, _Part] = {}
        self._patterns: dict[str, bool] = {}
        self._waiting: list[tuple[str, Found]] = []

    def converted(self, node: Any, base: str) -> Schema:
        """Return one schema as JSON Schema; what it refers to is converted with it.

        Args:
            node: The schema in the document.
            base: The file it is in.
        """
        schema = _as_schema(self._schema(node, base, frozenset()))
        while self._waiting:
            name, found = self._waiting.pop()
            self._parts[name] = _as_schema(self._schema(found.node, found.base, frozenset()))
        return schema

    def target(self, schema: Schema) -> Schema:
        """Return what a converted schema stands for, when it is nothing but a reference."""
        for _ in range(_MOST_STEPS):
            name = str(schema.get("$ref", "")).removeprefix(_PREFIX)
            if name not in self._parts:
                break
            schema = {**self._parts[name], **{word: value for word, value in schema.items() if word != "$ref"}}
        return schema

    def with_parts(self, schema: Schema) -> Schema:
        """Return a converted schema with the `$defs` that it reaches, the nearest first.

        Once there is too much for any model to read, what lies farther away takes anything of its type.

        Raises:
            Lost: There is far too much even without them.
        """
        needed, waiting, cut = dict[str, Schema](), deque(_references(schema)), 0
        chars = len(to_json(schema))
        if chars > MAX_OPERATION_SCHEMA_CHARS * _TIMES_TOO_LARGE:
            raise Lost(f"its schema has {chars:,} characters, which no model reads")
        room = MAX_OPERATION_SCHEMA_CHARS - chars
        while waiting:
            name = waiting.popleft()
            if name in needed or name not in self._parts:
                continue
            part = self._measured(name)
            room -= part.chars
            if room >= 0:
                needed[name] = self._parts[name]
                waiting.extend(part.reached)
            else:
                cut += 1
                needed[name] = {key: value for key, value in self._parts[name].items() if key == "type"}
        if cut:
            most = f"{MAX_OPERATION_SCHEMA_CHARS:,}"
            self.note(f"its schema is cut at {most} characters: {cut} parts of it take anything")
        return {**schema, "$defs": dict(sorted(needed.items()))} if needed else schema

    def _measured(self, name: str) -> _Part:
        if name not in self._reached:
            part = self._parts[name]
            self._reached[name] = _Part(len(to_json(part)), tuple(dict.fromkeys(_references(part))))
        return self._reached[name]

    # -- one schema

    def _schema(self, node: Any, base: str, unwanted: frozenset[str]) -> Any:
        """Return a schema without the properties in `unwanted` among those it requires."""
        if not isinstance(node, dict):
            return node if isinstance(node, bool) else {}
        members = cast("Schema", node)
        if "$ref" in members:
            return self._reference(members, base)
        if members.keys() & _REQUIRING:
            unwanted = unwanted | frozenset(self._read_only(members, base, 0))
        schema: Schema = {}
        for word, value in members.items():
            self._word(schema, word, value, base, unwanted)
        if schema.get("required") and unwanted:
            schema["required"] = [name for name in schema["required"] if name not in unwanted]
        if not schema.get("required", True):
            del schema["required"]
        _bounds(schema, members)
        if "discriminator" in members:
            self._discriminate(schema, members, base)
        return nullable(schema) if members.get("nullable") is True else schema

    def _word(self, schema: Schema, word: str, value: Any, base: str, unwanted: frozenset[str]) -> None:
        if word in _MAPS:
            schema[word] = {
                name: self._schema(child, base, frozenset())
                for name, child in as_map(value).items()
                if (word != "properties" or not self._is_read_only(child, base))
                and (word != "patternProperties" or self._is_pattern(name))
            }
        elif word in _LISTS or (word == "items" and isinstance(value, list)):
            inherited = unwanted if word in _REQUIRING else frozenset[str]()
            if items := [self._schema(child, base, inherited) for child in as_list(value)]:
                _choose(schema, _LISTS.get(word, "prefixItems"), items)
        elif word in _NESTED and isinstance(value, dict | bool):
            schema[word] = self._schema(value, base, frozenset())
        elif word in ("const", "default"):
            schema[word] = value
        elif word == "pattern":
            if isinstance(value, str) and self._is_pattern(value):
                schema[word] = value
        elif word in _KEPT and (kept := _KEPT[word](value)) is not None:
            schema.setdefault("examples" if word == "example" else word, kept)

    def _reference(self, node: Schema, base: str) -> Any:
        try:
            found = self._document.resolve(node["$ref"], base)
        except Lost as lost:
            self.note(f"accepts anything where {lost}")
            return {}
        if not isinstance(found.node, dict):
            return found.node if isinstance(found.node, bool) else {}
        schema: Schema = {"$ref": _PREFIX + self._name_of(found)}
        beside = {word: value for word, value in node.items() if word in _BESIDE or not self._is_old}
        for word, value in beside.items():
            self._word(schema, word, value, base, frozenset())
        return nullable(schema) if node.get("nullable") is True else schema

    @property
    def _is_old(self) -> bool:
        """Whether what stands beside a `$ref` means nothing, as before 3.1."""
        return self._document.version.startswith("3.0")

    def _name_of(self, found: Found) -> str:
        if found.pointer not in self._names:
            wanted = _ILLEGAL.sub("_", found.pointer.rpartition("/")[2])[:_LONGEST_NAME] or "part"
            name, number, taken = wanted, 1, self._parts
            while name in taken:
                number += 1
                name = f"{wanted}_{number}"
            self._names[found.pointer] = name
            self._parts[name] = {}
            self._waiting.append((name, found))
        return self._names[found.pointer]

    def _is_pattern(self, text: str) -> bool:
        if text not in self._patterns:
            try:
                compiled({"pattern": text})
            except ToolSignatureError:
                self.note(f"the pattern {text!r:.100} is none that can be checked: it is left out")
                self._patterns[text] = False
            else:
                self._patterns[text] = True
        return self._patterns[text]

    # -- what is never sent

    def _is_read_only(self, node: Any, base: str) -> bool:
        members = as_map(node)
        if members.get("readOnly") is True:
            return True
        if "$ref" in members:
            return self._followed(members["$ref"], base).get("readOnly") is True
        return any(self._is_read_only(part, base) for part in as_list(members.get("allOf")) if "$ref" in as_map(part))

    def _read_only(self, node: Schema, base: str, depth: int) -> Iterator[str]:
        """Yield the names of the properties that are never sent, those of the parts of `allOf` included."""
        for name, child in as_map(node.get("properties")).items():
            if self._is_read_only(child, base):
                yield name
        for part in as_list(node.get("allOf")) if depth < _DEEPEST_PARTS else ():
            members = as_map(part)
            if "$ref" in members:
                try:
                    found = self._document.resolve(members["$ref"], base)
                except Lost:
                    continue
                yield from self._read_only(as_map(found.node), found.base, depth + 1)
            else:
                yield from self._read_only(members, base, depth + 1)

    def _followed(self, reference: Any, base: str) -> Schema:
        try:
            return as_map(self._document.resolve(reference, base).node)
        except Lost:
            return {}

    # -- discriminators

    def _discriminate(self, schema: Schema, node: Schema, base: str) -> None:
        """Say of each alternative which values of the discriminator lead to it."""
        told = as_map(node["discriminator"])
        name, mapping = told.get("propertyName"), as_map(told.get("mapping"))
        if not isinstance(name, str) or "anyOf" not in schema:
            return
        values: dict[str, list[str]] = {}
        for value, target in mapping.items():
            if isinstance(target, str):
                reference = target if "#" in target or "/" in target else f"#/components/schemas/{target}"
                values.setdefault(self._pointer(reference, base), []).append(value)
        alternatives = list[Any]()
        for part in schema["anyOf"]:
            reference = str(as_map(part).get("$ref", "")).removeprefix(_PREFIX)
            pointer = next((pointer for pointer, held in self._names.items() if held == reference), "")
            known = values.get(pointer) or ([pointer.rpartition("/")[2]] if pointer and not mapping else [])
            alternatives.append(_told_apart(part, name, known))
        schema["anyOf"] = alternatives

    def _pointer(self, reference: str, base: str) -> str:
        try:
            return self._document.resolve(reference, base).pointer
        except Lost:
            return ""


class _Part(NamedTuple):
    chars: int
    reached: tuple[str, ...]


_MOST_STEPS = 50
_DEEPEST_PARTS = 8
_TIMES_TOO_LARGE = 10
_LONGEST_NAME = 100
_ILLEGAL = re.compile(r"[^\w.-]+", re.ASCII)


def _as_schema(schema: Any) -> Schema:
    """Return a schema as an object; false, which nothing fits, is `not: {}`."""
    return cast("Schema", schema) if isinstance(schema, dict) else {} if schema else {"not": {}}


def _told_apart(part: Any, name: str, values: list[str]) -> Any:
    if not values:
        return part
    told = {"const": values[0]} if len(values) == 1 else {"enum": values}
    return {**part, "properties": {**as_map(part).get("properties", {}), name: told}, "required": [name]}


def _choose(schema: Schema, word: str, items: list[Any]) -> None:
    """Add alternatives, or parts; a second choice stands beside the first as a part of its own."""
    if word in schema and word == "anyOf":
        schema.setdefault("allOf", []).append({"anyOf": items})
    else:
        schema[word] = [*schema.get(word, ()), *items]


def nullable(schema: Schema) -> Schema:
    """Return the schema that takes null as well."""
    if "type" not in schema:
        return {"anyOf": [schema, {"type": "null"}]} if schema else schema
    kinds = _listed(schema["type"])
    if _COMPOSED & schema.keys():
        return {"anyOf": [schema, {"type": "null"}]}
    changed: Schema = {**schema, "type": list(dict.fromkeys([*kinds, "null"]))}
    if "enum" in changed and None not in changed["enum"]:
        changed["enum"] = [*changed["enum"], None]
    return changed


def _listed(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


_REQUIRING = frozenset({"required", "allOf", "anyOf", "oneOf"})
_COMPOSED = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "const"})


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        members = cast("dict[str, Any]", node)
        reference = members.get("$ref")
        if isinstance(reference, str) and reference.startswith(_PREFIX):
            yield reference.removeprefix(_PREFIX)
        inside: Iterable[Any] = members.values()
    else:
        inside = as_list(node)
    for item in inside:
        if isinstance(item, dict | list):
            yield from _references(item)


# -- words

_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas"})
_LISTS = {"allOf": "allOf", "anyOf": "anyOf", "oneOf": "anyOf", "prefixItems": "prefixItems"}
_NESTED = frozenset(
    {
        *("items", "additionalProperties", "unevaluatedItems", "unevaluatedProperties", "not"),
        *("if", "then", "else", "contains", "propertyNames"),
    }
)
#: What is meant even where it should mean nothing.
_BESIDE = frozenset({"description", "default", "deprecated", "example", "examples"})
_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})


def _type(value: Any) -> Any:
    kinds = [kind for kind in _listed(value) if kind in _TYPES]
    return kinds[0] if len(kinds) == 1 else list(dict.fromkeys(kinds)) or None


def _text(value: Any) -> str | None:
    return clean(value) if isinstance(value, str) else None


def _verbatim(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _true(value: Any) -> bool | None:
    return True if value is True else None


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _above_zero(value: Any) -> float | None:
    number = _number(value)
    return number if number is not None and number > 0 else None


def _count(value: Any) -> int | None:
    number = _number(value)
    return int(number) if number is not None and number >= 0 and number == int(number) else None


def _choices(value: Any) -> list[Any] | None:
    return as_list(value) or None


def _names(value: Any) -> list[str] | None:
    return list(dict.fromkeys(name for name in as_list(value) if isinstance(name, str))) or None


def _examples(value: Any) -> list[Any] | None:
    return [example for example in as_list(value) if _is_short(example)][:_MOST_EXAMPLES] or None


def _is_short(value: Any) -> bool:
    return isinstance(value, str | int | float | bool) and len(str(value)) <= _LONGEST_EXAMPLE


def _dependent(value: Any) -> dict[str, list[str]] | None:
    return {key: listed for key, names in as_map(value).items() if (listed := _names(names))} or None


def _bounds(schema: Schema, node: Schema) -> None:
    """Read the bounds of 3.0, where an exclusive one is a mark on the other."""
    for mark, word in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if node.get(mark) is True and word in schema:
            schema[mark] = schema.pop(word)


_MOST_EXAMPLES = 2
_LONGEST_EXAMPLE = 60

_KEPT: Mapping[str, Callable[[Any], Any]] = {
    "type": _type,
    "enum": _choices,
    "required": _names,
    "dependentRequired": _dependent,
    "examples": _examples,
    "example": lambda value: _examples([value]),
    **dict.fromkeys(("title", "description"), _text),
    **dict.fromkeys(("format", "contentMediaType", "contentEncoding"), _verbatim),
    **dict.fromkeys(("uniqueItems", "deprecated"), _true),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _count),
    **dict.fromkeys(("minContains", "maxContains"), _count),
    "multipleOf": _above_zero,
}
