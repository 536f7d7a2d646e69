"""A toolset as typed Python stubs: what a model that writes scripts reads, and what its scripts are checked against."""

from __future__ import annotations

import builtins
import inspect
import keyword
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast, get_type_hints

from pydantic_core import to_json

from toolcrib.schema._aliases import Rule, aliases
from toolcrib.schema._walk import as_schema, members, names, properties_of, resolve
from toolcrib.types import Envelope, ToolResponse

if TYPE_CHECKING:
    from toolcrib.tools import Tool

__all__ = ["Stub", "Stubs"]

_HEAD = "from typing import Any, Literal, NotRequired, TypedDict"

_NAME = Rule("a-zA-Z0-9_", first="a-zA-Z_")
_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_MOST_DEPTH = 12
_MOST_CLASSES = 40
_MOST_VALUES = 40
_MOST_DOC = 300
_MOST_TOLD = 100


@dataclass(frozen=True, slots=True)
class Stub:
    """One tool as a Python function.

    Args:
        name: The function's name, a legal identifier.
        tool: The tool it stands for.
        keys: The tool's own parameter names by the function's, in its order.
        classes: The TypedDicts it needs, by name.
        line: The function itself.
    """

    name: str
    tool: Tool
    keys: Mapping[str, str]
    classes: Mapping[str, str]
    line: str

    @property
    def is_plain(self) -> bool:
        """Whether calling it takes a worker thread and nothing else."""
        tool = self.tool
        return tool.func is not None and tool.executor is None and tool.thread and not tool.is_async

    def arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the function was called with under the tool's own parameter names.

        Raises:
            TypeError: There are more arguments than parameters, or one is given twice.
        """
        if len(args) > len(self.keys):
            raise TypeError(f"{self.name}() takes {len(self.keys)} arguments but {len(args)} were given")
        given = dict(zip(self.keys.values(), args, strict=False))
        for key, value in kwargs.items():
            own = self.keys.get(key, key)
            if own in given:
                raise TypeError(f"{self.name}() got multiple values for argument '{key}'")
            given[own] = value
        return given


class Stubs:
    """The stubs of a toolset, made one by one when they are first asked for; the same tools give the same text.

    Args:
        tools: The tools, in order.
    """

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._names = _identifiers(self._tools)
        self._made: dict[str, Stub] = {}
        self.functions: dict[str, str] = {name: tool for tool, name in self._names.items()}

    def __len__(self) -> int:
        return len(self._tools)

    def get(self, function: str) -> Stub | None:
        """Return the stub of that name, or None."""
        tool = self.functions.get(function)
        if tool is None:
            return None
        if function not in self._made:
            self._made[function] = _stub(function, self._tools[tool])
        return self._made[function]

    def named_in(self, code: str) -> list[str]:
        """Return the functions whose names stand in a script."""
        return [word for word in dict.fromkeys(re.findall(r"[^\W\d]\w*", code)) if word in self.functions]

    def text(self, functions: Iterable[str]) -> str:
        """Return the stubs of some functions, TypedDicts first."""
        stubs = [stub for name in functions if (stub := self.get(name)) is not None]
        classes = {name: body for stub in stubs for name, body in stub.classes.items()}
        return "\n".join([*classes.values(), *(stub.line for stub in stubs)])

    def checked_text(self, code: str) -> str:
        """Return what a script is checked against: the stubs of the functions it names."""
        return f"{_HEAD}\n{self.text(self.named_in(code))}\n"


def _identifiers(tools: Iterable[str]) -> dict[str, str]:
    """Return a Python name for each tool: legal, unique, and none that Python has already."""
    listed = list(tools)
    legal = aliases(listed, _NAME)
    taken = set(legal.values())
    named: dict[str, str] = {}
    for tool in listed:
        name = legal[tool]
        if name.startswith("_"):  # the checker does not see names that Python calls private
            name = f"tool{name}"
        while _is_reserved(name) or (name != legal[tool] and name in taken):
            name += "_"
        taken.add(name)
        named[tool] = name
    return named


def _is_reserved(name: str) -> bool:
    return keyword.iskeyword(name) or hasattr(builtins, name) or name in _OTHER_NAMES


#: What the stubs themselves, or scripts, use under these names.
_OTHER_NAMES = frozenset({"Any", "Literal", "NotRequired", "TypedDict", "asyncio", "result", "find_tools"})


# -- one function


def _stub(name: str, tool: Tool) -> Stub:
    schema = tool.input_schema
    types = _Types(schema, _camel(name))
    required, properties = names(schema, "required"), properties_of(schema)
    ordered = sorted(properties, key=lambda key: key not in required)
    keys = {alias: key for key, alias in _parameters(ordered).items()}
    listed = [
        f"{alias}: {types.told(properties[key], alias)}{'' if key in required else _default(properties[key])}"
        for alias, key in keys.items()
    ]
    returned = _returned(name, tool)
    doc = to_json(_documented(tool, keys, properties)).decode()
    start = "async def" if tool.is_async else "def"
    line = f"{start} {name}({', '.join(listed)}) -> {returned.expression}: {doc}"
    return Stub(name, tool, keys, {**types.classes, **returned.classes}, line)


def _parameters(keys: list[str]) -> dict[str, str]:
    legal = aliases(keys, _NAME)
    return {key: f"{name}_" if keyword.iskeyword(name) else name for key, name in legal.items()}


def _default(schema: Any) -> str:
    node = as_schema(schema)
    default = node.get("default", ...)
    plain = (
        default is None
        or isinstance(default, (bool, int, float))
        or (isinstance(default, str) and len(default) < _MOST_TOLD)
    )
    return f" = {default!r}" if "default" in node and plain else " = ..."


def _documented(tool: Tool, keys: Mapping[str, str], properties: Mapping[str, Any]) -> str:
    told = [_first_words(tool.description)]
    for alias, key in keys.items():
        words = _first_words(str(as_schema(properties[key]).get("description") or ""), _MOST_TOLD)
        told += [f"{alias}: {words}"] if words else []
    return " ".join(filter(None, told))[:_MOST_DOC]


def _first_words(text: str, most: int = 160) -> str:
    words = " ".join(text.split("\n\n", maxsplit=1)[0].split())
    return words if len(words) <= most else f"{words[: most - 1]}…"


# -- what it returns


@dataclass(frozen=True, slots=True)
class _Returned:
    expression: str = "Any"
    classes: Mapping[str, str] = field(default_factory=dict[str, str])


def _returned(name: str, tool: Tool) -> _Returned:
    if tool.returns_envelope:
        return _Returned("str")
    schema = tool.output_schema or _schema_of_hint(tool.func)
    if not schema:
        return _Returned()
    types = _Types(schema, f"{_camel(name)}Result")
    return _Returned(types.told(schema, ""), types.classes)


def _schema_of_hint(func: Any) -> dict[str, Any] | None:
    """Return the schema of what a function says it returns, as JSON; None where it says nothing of use."""
    from pydantic import TypeAdapter

    try:
        hint = get_type_hints(inspect.unwrap(func) if inspect.isroutine(func) else type(func).__call__).get(
            "return", Any
        )
        if hint in (Any, object, ToolResponse, Envelope):
            return None
        return TypeAdapter[Any](hint).json_schema(mode="serialization")
    except Exception:  # noqa: BLE001  # a hint that cannot be resolved or has no schema: the value may be anything
        return None


# -- types


class _Types:
    """JSON Schema as Python types, with a TypedDict for each object.

    Args:
        root: The whole schema, for its references.
        prefix: What the classes it makes are named after.
    """

    def __init__(self, root: Mapping[str, Any], prefix: str) -> None:
        self.root = dict(root)
        self.prefix = prefix
        self.classes: dict[str, str] = {}
        self._known: dict[str, str] = {}

    def told(self, schema: Any, hint: str, depth: int = 0) -> str:
        """Return the type of a schema, and keep the classes it needs.

        Args:
            schema: The schema of one value.
            hint: What the value is called, for the name of its class.
            depth: How many levels have been told already.
        """
        node = as_schema(schema)
        if depth > _MOST_DEPTH or not node:
            return "Any"
        if "$ref" in node:
            return self._referenced(str(node["$ref"]), hint, depth)
        if "enum" in node or "const" in node:
            return _literal(members(node, "enum") if "enum" in node else [node["const"]])
        if choices := _choices(node):
            return _union(self.told(choice, hint, depth + 1) for choice in choices)
        return self._plain(node, hint, depth)

    def _plain(self, node: dict[str, Any], hint: str, depth: int) -> str:
        kind = node.get("type", "object" if "properties" in node else None)
        if kind == "array":
            return f"list[{self.told(node.get('items'), hint, depth + 1)}]"
        if kind != "object":
            return _SCALARS.get(str(kind), "Any")
        if properties_of(node):
            return self._class(node, f"{self.prefix}{_camel(hint)}", depth)
        return f"dict[str, {self.told(node.get('additionalProperties'), hint, depth + 1)}]"

    def _referenced(self, reference: str, hint: str, depth: int) -> str:
        if reference in self._known:
            return self._known[reference]
        target = resolve(reference, self.root)
        if target is None:
            return "Any"
        if "properties" not in target:
            self._known[reference] = "Any"  # while it is told, in case it leads to itself
            self._known[reference] = self.told(target, hint, depth + 1)
            return self._known[reference]
        name = self._free(f"{self.prefix}{_camel(reference.rsplit('/', 1)[-1])}")
        self._known[reference] = name
        return self._class(target, name, depth, named=True)

    def _free(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self.classes:
            number += 1
            name = f"{wanted}{number}"
        return name

    def _class(self, node: dict[str, Any], wanted: str, depth: int, *, named: bool = False) -> str:
        if len(self.classes) >= _MOST_CLASSES:
            return "dict[str, Any]"
        name = wanted if named else self._free(wanted)
        self.classes[name] = ""  # its place, before the classes it needs
        required = names(node, "required")
        fields = {
            key: told if key in required else f"NotRequired[{told}]"
            for key, member in properties_of(node).items()
            for told in [self.told(member, key, depth + 1)]
        }
        self.classes[name] = _class_text(name, fields)
        return name


def _choices(node: dict[str, Any]) -> list[Any]:
    if isinstance(node.get("type"), list):
        return [{**node, "type": one} for one in members(node, "type")]
    parts = members(node, "allOf")
    return members(node, "anyOf") or members(node, "oneOf") or (parts if len(parts) == 1 else [])


def _class_text(name: str, fields: Mapping[str, str]) -> str:
    if all(key.isidentifier() and key.isascii() and not keyword.iskeyword(key) for key in fields):
        return f"class {name}(TypedDict): {'; '.join(f'{key}: {kind}' for key, kind in fields.items())}"
    listed = ", ".join(f"{to_json(key).decode()}: {kind}" for key, kind in fields.items())
    return f'{name} = TypedDict("{name}", {{{listed}}})'


def _literal(values: list[Any]) -> str:
    plain = [value for value in values if value is None or isinstance(value, (str, bool, int))]
    if len(plain) != len(values) or not 0 < len(values) <= _MOST_VALUES:
        return _union(_kind_of(value) for value in values) if values else "Any"
    return f"Literal[{', '.join(to_json(v).decode() if isinstance(v, str) else repr(v) for v in plain)}]"


def _kind_of(value: Any) -> str:
    kind = type(cast("object", value)).__name__
    return "None" if value is None else kind if kind in ("str", "bool", "int", "float") else "Any"


def _union(kinds: Iterable[str]) -> str:
    told = list(dict.fromkeys(kinds))
    return "Any" if "Any" in told else " | ".join(told)


def _camel(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^a-zA-Z0-9]+", name))
