"""`typing.TypedDict`s as pydantic accepts them before Python 3.12."""

from __future__ import annotations

import sys
import types
import typing
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typing_extensions

__all__ = ["portable", "rebuilt"]


def portable(annotation: Any) -> Any:
    """Return the annotation with every `typing.TypedDict` in it, at any depth, as a `typing_extensions` one."""
    return annotation if sys.version_info >= (3, 12) else _portable(annotation, {})


def _portable(annotation: Any, made: dict[Any, Any]) -> Any:
    if typing.is_typeddict(annotation) and type(annotation).__module__ == "typing":
        return made.get(annotation) or _made(annotation, made)
    arguments = get_args(annotation)
    if not arguments or get_origin(annotation) is Literal:
        return annotation
    replaced = tuple(_portable(argument, made) for argument in arguments)
    return annotation if replaced == arguments else rebuilt(annotation, replaced)


def _made(typed_dict: Any, made: dict[Any, Any]) -> Any:
    """Return the twin of a TypedDict; it is known by then to members that refer to it again."""
    twin: Any = typing_extensions.TypedDict(typed_dict.__name__, {})  # type: ignore[operator]  # made from data
    made[typed_dict] = twin
    hints = typing.get_type_hints(typed_dict, include_extras=True)
    optional = {key for key, hint in hints.items() if not _is_required(typed_dict, key, hint)}
    twin.__doc__, twin.__module__, twin.__qualname__ = (
        typed_dict.__doc__,
        typed_dict.__module__,
        typed_dict.__qualname__,
    )
    twin.__required_keys__, twin.__optional_keys__ = frozenset(hints.keys() - optional), frozenset(optional)
    twin.__annotations__ = {key: _portable(_bare(hint), made) for key, hint in hints.items()}
    return twin


def _is_required(typed_dict: Any, key: str, hint: Any) -> bool:
    origin = get_origin(hint)
    return key in typed_dict.__required_keys__ if origin not in _REQUIREDNESS else origin is typing.Required


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) in _REQUIREDNESS else hint


_REQUIREDNESS = (typing.Required, typing.NotRequired)


def rebuilt(annotation: Any, arguments: tuple[Any, ...]) -> Any:
    """Return the annotation with other arguments."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return Annotated[(arguments[0], *annotation.__metadata__)]
    if origin in (Union, types.UnionType):
        return Union[arguments]  # noqa: UP007  # made from data
    return annotation.copy_with(arguments) if hasattr(annotation, "copy_with") else origin[arguments]
