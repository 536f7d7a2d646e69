"""A function's source as text, or the best there is in place of it."""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import to_json, to_jsonable_python

from toolcrib._callables import name_of
from toolcrib._json import first_unsafe
from toolcrib.limits import MAX_SOURCE_CHARS

if TYPE_CHECKING:
    from toolcrib.schema.signature import Parameter, Signature

__all__ = ["signature_text", "source_of"]

_EMPTY = inspect.Parameter.empty
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def source_of(func: Callable[..., Any], signature: Signature) -> str:
    """Return the function's source, or a stub of its signature where there is none, the same in every process.

    Args:
        func: The function, method, partial or callable object.
        signature: What `read_signature` said of it.
    """
    source = _written(func)
    if source is None:
        source = f"def {name_of(func)}{signature_text(signature)}: ...\n"
    return _cut(textwrap.dedent(source).replace("\r\n", "\n").rstrip())


def signature_text(signature: Signature) -> str:
    """Return a signature as Python code, the same in every process."""
    return f"({', '.join([*map(_stub, signature.parameters), *signature.variadic])})"


def _written(func: Callable[..., Any]) -> str | None:
    code = inspect.unwrap(_plain(func))
    if getattr(code, "__name__", "") == "<lambda>":  # the line it stands on is mostly about something else
        return None
    try:
        return inspect.getsource(code)
    except (OSError, TypeError):
        return None


def _plain(func: Any) -> Any:
    while isinstance(func, functools.partial):
        func = cast("functools.partial[Any]", func).func
    return func if inspect.isroutine(func) or isinstance(func, type) else type(func).__call__


def _stub(parameter: Parameter) -> str:
    hint = "" if parameter.annotation is _EMPTY else f": {_hint_text(parameter.annotation)}"
    return parameter.name + hint + ("" if parameter.default is _EMPTY else f" = {_default_text(parameter.default)}")


def _hint_text(hint: Any) -> str:
    text = hint if isinstance(hint, str) else inspect.formatannotation(hint)
    return _ADDRESS.sub("", text)


def _default_text(default: Any) -> str:
    try:
        plain = to_jsonable_python(default)
    except ValueError:
        return "..."
    # A set has no order that two processes share.
    return "..." if isinstance(default, (set, frozenset)) or first_unsafe(plain, "") else to_json(plain).decode()


def _cut(text: str) -> str:
    if len(text) <= MAX_SOURCE_CHARS:
        return text
    head = MAX_SOURCE_CHARS * 2 // 3
    tail = text[len(text) - (MAX_SOURCE_CHARS - head) :]
    return f"{text[:head]}\n# … {len(text) - MAX_SOURCE_CHARS:,} characters left out …\n{tail}"
