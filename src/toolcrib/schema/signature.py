"""A function's signature as a JSON Schema and as a validator, both from one reading.

Ordinary annotations (scalars, `Literal`, `Optional`, unions, lists and dicts of these) are written
directly, which is some twenty times quicker than asking pydantic; one annotation beyond them sends
the whole function to pydantic, which knows every type. Both routes give the same schema.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Union, cast, get_args, get_origin

from pydantic_core import to_jsonable_python

from toolcrib._json import first_unsafe
from toolcrib.errors import ToolSignatureError
from toolcrib.schema._pydantic import by_pydantic
from toolcrib.schema._typeddict import portable
from toolcrib.types import ToolContext

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import CoreSchema

__all__ = ["Parameter", "Shape", "Signature", "context_of", "read_signature", "shape_of"]

_EMPTY = inspect.Parameter.empty


class Parameter(NamedTuple):
    """A parameter that a call may name; `annotation` and `default` are `inspect.Parameter.empty` when absent."""

    name: str
    annotation: Any
    default: Any

    @property
    def required(self) -> bool:
        """Whether a call must give it."""
        return self.default is _EMPTY


class Signature(NamedTuple):
    """What a function takes, before any annotation is resolved.

    Args:
        parameters: What a call may name.
        variadic: `*args` and `**kwargs`, stars included.
        positional_only: Parameters that no call can name.
    """

    parameters: tuple[Parameter, ...]
    variadic: tuple[str, ...]
    positional_only: tuple[str, ...]

    @property
    def takes_any(self) -> bool:
        """Whether the function takes any keyword."""
        return bool(self.variadic) and self.variadic[-1].startswith("**")

    @property
    def names_without_hints(self) -> frozenset[str]:
        """Parameters without a type hint, required or not."""
        return frozenset(p.name for p in self.parameters if p.annotation is _EMPTY)

    @property
    def unhinted(self) -> tuple[str, ...]:
        """Required parameters without a type hint."""
        return tuple([p.name for p in self.parameters if p.annotation is _EMPTY and p.required])


class Shape(NamedTuple):
    """What a function takes from a model.

    Args:
        schema: The JSON Schema of its arguments; `properties` in the function's order.
        core: A pydantic-core typed dict that validates them and fills in no default of the function's own.
        context: The parameter that receives the ToolContext, if any.
        colons_tell: Whether as many colons in the text as arguments prove that no key stands twice.
    """

    schema: dict[str, Any]
    core: CoreSchema
    context: str | None
    colons_tell: bool


def read_signature(func: Callable[..., Any]) -> Signature:
    """Return what `func` takes; `self` of a bound method is not part of it.

    Raises:
        ToolSignatureError: It has no signature that Python can read.
    """
    if type(func) is types.FunctionType and not hasattr(func, "__wrapped__") and not hasattr(func, "__signature__"):
        return _read_code(func)
    try:
        parameters = inspect.signature(func).parameters.values()
    except (ValueError, TypeError) as error:
        raise ToolSignatureError(f"{_name(func)} has no readable signature: {error}") from None
    named = tuple(Parameter(p.name, p.annotation, p.default) for p in parameters if p.kind in _NAMED)
    variadic = tuple(_STARS[p.kind] + p.name for p in parameters if p.kind in _STARS)
    return Signature(named, variadic, tuple(p.name for p in parameters if p.kind is p.POSITIONAL_ONLY))


_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_STARS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def _read_code(func: types.FunctionType) -> Signature:
    """Read a plain function as `inspect.signature` would, several times quicker."""
    code, hints = func.__code__, func.__annotations__
    count, keyword_only = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    defaults = func.__defaults__ or ()
    first_default = count - len(defaults)
    kwdefaults: dict[str, Any] = func.__kwdefaults__ or {}
    positional_only = code.co_posonlyargcount
    named = [
        Parameter(names[i], hints.get(names[i], _EMPTY), defaults[i - first_default] if i >= first_default else _EMPTY)
        for i in range(positional_only, count)
    ]
    end = count + keyword_only
    named += [Parameter(n, hints.get(n, _EMPTY), kwdefaults.get(n, _EMPTY)) for n in names[count:end]]
    variadic: list[str] = []
    if code.co_flags & inspect.CO_VARARGS:
        variadic.append("*" + names[end])
        end += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        variadic.append("**" + names[end])
    return Signature(tuple(named), tuple(variadic), names[:positional_only])


def shape_of(
    func: Callable[..., Any],
    signature: Signature,
    descriptions: Mapping[str, str],
    declared: Mapping[str, Any] = types.MappingProxyType({}),
) -> Shape:
    """Return the schema and the validator of a function's arguments.

    Args:
        func: The function, method, partial or callable object.
        signature: What `read_signature` said of it.
        descriptions: What its docstring says of its parameters.
        declared: Type hints to use in place of the function's own.

    Raises:
        ToolSignatureError: An annotation cannot be resolved, or no JSON Schema can express it.
    """
    parameters, context = _without_context(_resolved(func, signature.parameters))
    if declared:
        parameters = [p._replace(annotation=declared[p.name]) if p.name in declared else p for p in parameters]
    try:
        shape = _directly(parameters, context)
    except _NotPlainError:
        schema, core = by_pydantic(_name(func), parameters)
        shape = Shape(schema, core, context, colons_tell=False)
    properties = shape.schema["properties"]
    for name, text in descriptions.items():
        if text and name in properties:
            properties[name].setdefault("description", text)
    return shape


def context_of(func: Callable[..., Any]) -> str | None:
    """Return the parameter annotated `ToolContext`, if there is one; a hint that cannot be resolved is not."""
    try:
        parameters = [p for p in read_signature(func).parameters if p.annotation is not _EMPTY]
        return _without_context(_resolved(func, tuple(parameters)))[1]
    except ToolSignatureError:
        return None


def _name(func: Callable[..., Any]) -> str:
    return getattr(func, "__qualname__", None) or type(func).__name__


# -- annotations


def _resolved(func: Callable[..., Any], parameters: tuple[Parameter, ...]) -> list[Parameter]:
    hints = {p.name: Any if p.annotation is _EMPTY else p.annotation for p in parameters}
    late = {name: hint for name, hint in hints.items() if type(hint) is not type and hint is not Any}
    if late:
        hints.update(_evaluated(func, late))
    return [Parameter(p.name, _nullable(hints[p.name], p.default), p.default) for p in parameters]


def _evaluated(func: Callable[..., Any], hints: dict[str, Any]) -> dict[str, Any]:
    namespace, local = _globals_of(func), _closure_of(func)
    try:
        resolved = {name: _value_of(hint, namespace, local) for name, hint in hints.items()}
        if any(map(_is_postponed, resolved.values())):
            resolved = _by_typing(hints, namespace, local)
    except Exception as error:
        raise ToolSignatureError(f"a type hint of {_name(func)} cannot be resolved: {error}") from error
    return {name: hint if _is_final(hint) else portable(hint) for name, hint in resolved.items()}


def _value_of(hint: Any, namespace: dict[str, Any], local: dict[str, Any]) -> Any:
    if not isinstance(hint, str):
        return hint
    if hint in _BUILTIN and hint not in namespace and hint not in local:
        return _BUILTIN[hint]
    return eval(_compiled(hint), namespace, local)  # noqa: S307  # the author's own hint


@functools.lru_cache(2_000)
def _compiled(hint: str) -> types.CodeType:
    return compile(hint, "<type hint>", "eval")


def _is_final(hint: Any) -> bool:
    """Whether there is nothing in a hint to look into: a class, or a Literal."""
    return type(hint) is type or getattr(hint, "__origin__", None) is Literal


def _is_postponed(hint: Any) -> bool:
    """Whether names inside a hint are still text, as in `list["Order"]`."""
    if _is_final(hint):
        return False
    if isinstance(hint, (str, typing.ForwardRef)):
        return True
    return any(_is_postponed(argument) for argument in _types_in(hint))


def _types_in(hint: Any) -> tuple[Any, ...]:
    return get_args(hint)[:1] if get_origin(hint) is Annotated else get_args(hint)


def _by_typing(hints: dict[str, Any], namespace: dict[str, Any], local: dict[str, Any]) -> dict[str, Any]:
    def carrier() -> None: ...

    carrier.__annotations__ = hints
    return typing.get_type_hints(carrier, namespace, local, include_extras=True)


_BUILTIN: dict[str, Any] = {"str": str, "int": int, "float": float, "bool": bool, "dict": dict, "list": list}


def _innermost(func: Callable[..., Any]) -> Any:
    while True:
        if isinstance(func, functools.partial):
            func = cast("functools.partial[Any]", func).func
        elif isinstance(func, types.MethodType):
            func = func.__func__
        elif hasattr(func, "__wrapped__"):
            func = func.__wrapped__  # pyright: ignore[reportFunctionMemberAccess]  # what functools.wraps sets
        elif not hasattr(func, "__globals__") and not inspect.isroutine(func):
            return type(func).__call__
        else:
            return func


def _globals_of(func: Callable[..., Any]) -> dict[str, Any]:
    found = getattr(_innermost(func), "__globals__", None)
    return found if found is not None else vars(sys.modules.get(getattr(func, "__module__", ""), typing))


def _closure_of(func: Callable[..., Any]) -> dict[str, Any]:
    inner = _innermost(func)
    cells: Any = getattr(inner, "__closure__", None)
    return {} if cells is None else dict(_filled(inner.__code__.co_freevars, cells))


def _filled(names: tuple[str, ...], cells: tuple[types.CellType, ...]) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(names, cells, strict=True):
        with contextlib.suppress(ValueError):  # a name that is given its value later
            yield name, cell.cell_contents


def _nullable(annotation: Any, default: Any) -> Any:
    """Make `x: int = None` what its author meant: the default is a value the schema must allow."""
    if default is None and annotation is not Any and not _allows_none(annotation):
        return Union[annotation, None]  # noqa: UP007  # the left side may be anything typing knows
    return annotation


def _allows_none(annotation: Any) -> bool:
    if annotation in (None, type(None), Any):
        return True
    origin = get_origin(annotation)
    if origin is Annotated:
        return _allows_none(get_args(annotation)[0])
    if origin is Literal:
        return None in get_args(annotation)
    return origin in _UNIONS and any(_allows_none(choice) for choice in get_args(annotation))


_UNIONS = (Union, types.UnionType)


def _without_context(parameters: list[Parameter]) -> tuple[list[Parameter], str | None]:
    contexts = [p.name for p in parameters if _is_context(p.annotation)]
    if not contexts:
        return parameters, None
    if len(contexts) > 1:
        raise ToolSignatureError(f"only one parameter can receive the ToolContext, not {' and '.join(contexts)}")
    return [p for p in parameters if p.name != contexts[0]], contexts[0]


def _is_context(annotation: Any) -> bool:
    if type(annotation) is type:
        return annotation is ToolContext
    if get_origin(annotation) is ToolContext:
        return True
    if get_origin(annotation) is Annotated:
        return _is_context(get_args(annotation)[0])
    return get_origin(annotation) in _UNIONS and any(_is_context(choice) for choice in get_args(annotation))


# -- the direct route


class _NotPlainError(Exception):
    """An annotation that is pydantic's to read."""


class _Plain(NamedTuple):
    core: Any
    schema: dict[str, Any]
    loose: bool = False  # may hold anything, so neither depth nor finite numbers are certain


_SCALARS: dict[Any, _Plain] = {
    str: _Plain({"type": "str"}, {"type": "string"}),
    int: _Plain({"type": "int"}, {"type": "integer"}),
    float: _Plain({"type": "float", "allow_inf_nan": False}, {"type": "number"}),
    bool: _Plain({"type": "bool"}, {"type": "boolean"}),
    None: _Plain({"type": "none"}, {"type": "null"}),
    type(None): _Plain({"type": "none"}, {"type": "null"}),
    Any: _Plain({"type": "any"}, {}, loose=True),
    list: _Plain({"type": "list"}, {"items": {}, "type": "array"}, loose=True),
    dict: _Plain({"type": "dict"}, {"additionalProperties": True, "type": "object"}, loose=True),
}
_LITERALS: dict[Any, str] = {str: "string", int: "integer", bool: "boolean"}


def _directly(parameters: list[Parameter], context: str | None) -> Shape:
    properties: dict[str, Any] = {}
    required: list[str] = []
    fields: dict[str, Any] = {}
    loose = False
    for name, annotation, default in parameters:
        plain = _plain(annotation)
        loose = loose or plain.loose
        fields[name] = {"type": "typed-dict-field", "schema": plain.core, "required": default is _EMPTY}
        properties[name] = dict(plain.schema)
        if default is _EMPTY:
            required.append(name)
        else:
            _add_default(properties[name], default)
    schema = {"type": "object", "properties": properties, "required": required}
    core = cast("CoreSchema", {"type": "typed-dict", "fields": fields, "extra_behavior": "forbid"})
    return Shape(schema, core, context, not loose)


def _add_default(schema: dict[str, Any], default: Any) -> None:
    if default is None or type(default) in (bool, int) or (type(default) is str and default.isascii()):
        schema["default"] = default
        return
    if type(default).__module__ == "pydantic.fields":
        raise _NotPlainError
    try:
        value = to_jsonable_python(default)
    except ValueError:
        return  # a default that JSON cannot carry stays the function's own affair
    if not first_unsafe(value, "default"):
        schema["default"] = value


def _plain(annotation: Any) -> _Plain:
    if getattr(annotation, "__origin__", None) is Literal:  # first, since it is slow to hash
        return _plain_literal(annotation.__args__)
    try:
        scalar = _SCALARS.get(annotation)
    except TypeError:
        raise _NotPlainError from None
    if scalar is not None:
        return scalar
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _plain_annotated(arguments)
    if origin in _UNIONS:
        return _plain_union(arguments)
    if origin is list:
        item = _plain(arguments[0])
        return _Plain({"type": "list", "items_schema": item.core}, {"items": item.schema, "type": "array"}, item.loose)
    if origin is dict and arguments[0] is str:
        item = _plain(arguments[1])
        core = {"type": "dict", "keys_schema": {"type": "str"}, "values_schema": item.core}
        return _Plain(core, {"additionalProperties": item.schema or True, "type": "object"}, item.loose)
    raise _NotPlainError


def _plain_annotated(arguments: tuple[Any, ...]) -> _Plain:
    """Read `Annotated[X, "what it means"]`; richer metadata is pydantic's."""
    if len(arguments) != 2 or type(arguments[1]) is not str:  # noqa: PLR2004  # the type and one text
        raise _NotPlainError
    plain = _plain(arguments[0])
    return plain._replace(schema={**plain.schema, "description": arguments[1]})


def _plain_literal(values: tuple[Any, ...]) -> _Plain:
    kind = _LITERALS.get(type(values[0]))
    if kind is None or len(set(map(type, values))) > 1:
        raise _NotPlainError
    choice = {"const": values[0]} if len(values) == 1 else {"enum": list(values)}
    return _Plain({"type": "literal", "expected": list(values)}, {**choice, "type": kind})


def _plain_union(choices: tuple[Any, ...]) -> _Plain:
    plains = [_plain(choice) for choice in choices if choice is not type(None)]
    if any("anyOf" in plain.schema for plain in plains) or not plains:
        raise _NotPlainError
    core = plains[0].core if len(plains) == 1 else {"type": "union", "choices": [plain.core for plain in plains]}
    schemas = [plain.schema for plain in plains]
    if type(None) in choices:
        core, schemas = {"type": "nullable", "schema": core}, [*schemas, {"type": "null"}]
    return _Plain(core, {"anyOf": schemas}, any(plain.loose for plain in plains))
