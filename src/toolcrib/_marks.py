"""What `@tool` leaves on a function."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

from toolcrib.errors import ToolExecutionError, ToolSignatureError

__all__ = ["NoInstance", "mark", "tool_on"]

_Tool = TypeVar("_Tool")


def mark(func: Any, tool: Any) -> None:
    """Leave a Tool on the function it was made of, with its definition in OpenAI's form."""
    marks: dict[str, Any] = {"__tool__": tool, "__tool_is_async__": tool.is_async}
    try:
        definition = tool.definition()
        strict = definition.pop("strict")
        marks["__tool_spec__"] = {"type": "function", "function": definition | ({"strict": True} if strict else {})}
    except ToolSignatureError as error:
        if not isinstance(error.__cause__, NameError):  # a hint whose class comes later in the module
            raise
    for name, value in marks.items():
        setattr(func, name, value)


def tool_on(kind: type[_Tool], fn: Any) -> _Tool | None:
    """Return the Tool that something already is, or carries from `@tool`.

    Args:
        kind: The class Tool.
        fn: Anything.
    """
    if isinstance(fn, kind):
        return fn
    carried: Any = getattr(fn, "__tool__", None) if callable(fn) else None
    if not isinstance(carried, kind):
        return None
    found: Any = carried
    if found.func is fn or getattr(found.func, "__func__", None) is fn:
        return found
    return found.replace(func=fn)  # a method of an instance, or a decorator around the function


class NoInstance:
    """Stands where an instance will: lets a method's signature be read before there is one."""

    def __getattr__(self, name: str) -> NoReturn:
        raise ToolExecutionError("a method was called as a tool without its instance; pass instance.method")
