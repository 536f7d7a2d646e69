"""What can be read off a callable: functions, methods, partials and callable objects alike."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, cast

__all__ = ["doc_of", "first_parameter", "is_async", "name_of"]


def first_parameter(func: Callable[..., Any]) -> str | None:
    """Return the name of a plain function's first parameter, which tells a method before it is bound."""
    code = getattr(func, "__code__", None)
    return code.co_varnames[0] if code is not None and code.co_argcount else None


def name_of(func: Any) -> str | None:
    """Return what a callable is called; None only for None."""
    if isinstance(func, functools.partial):
        return name_of(cast("functools.partial[Any]", func).func)
    return getattr(func, "__name__", None) or (None if func is None else type(func).__name__)


def doc_of(func: Any) -> str | None:
    """Return the docstring an author wrote; that of a partial or an instance's class is not about the tool."""
    if isinstance(func, functools.partial):
        return doc_of(cast("functools.partial[Any]", func).func)
    if inspect.isroutine(func) or isinstance(func, type):
        return func.__doc__
    return getattr(type(func).__call__, "__doc__", None) or type(func).__doc__ if func is not None else None


def is_async(func: Any) -> bool:
    """Whether calling it gives a coroutine or an async generator."""
    called = func
    if not isinstance(func, functools.partial) and not inspect.isroutine(func):
        called = getattr(cast("type[Any]", type(func)), "__call__", None)  # noqa: B004  # its method is wanted
    return inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)
