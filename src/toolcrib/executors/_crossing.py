"""What crosses a wall: a function by its name, arguments and results as JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import to_jsonable_python

from toolcrib._json import first_unsafe
from toolcrib.errors import (
    NotSerializableError,
    ToolArgumentError,
    ToolcribError,
    ToolExecutionError,
    ToolSignatureError,
)
from toolcrib.tools import Tool
from toolcrib.toolset import Toolset
from toolcrib.types import ToolContext, ToolParameter, ToolResponse

if TYPE_CHECKING:
    from toolcrib.protocols import Executor
    from toolcrib.types import ToolCall

__all__ = ["held_by", "request_for", "value_of"]


def held_by(executor: Executor, tools: Any) -> list[Tool]:
    """Return tools with an executor behind a wall, each looked at.

    Raises:
        ToolNameError: Two of them have one name.
        ToolSignatureError: A function cannot be found again by its module and name.
        NotSerializableError: A default cannot cross; the message has its path.
    """
    held = [tool.replace(executor=executor) for tool in Toolset(tools, on_collision="raise")]
    for tool in held:
        _check_crosses(tool)
    return held


def _check_crosses(tool: Tool) -> None:
    _place(tool)
    declared: Any = vars(tool).get("_given_parameters")  # which a function's own defaults win over in its schema
    for parameter in cast("Iterable[ToolParameter]", declared if isinstance(declared, tuple) else tool.parameters):
        if bad := first_unsafe(parameter.default, f"{tool.name}.{parameter.name}"):
            raise NotSerializableError(*bad)


def _place(tool: Tool) -> dict[str, Any]:
    """Return where a tool's function is to be found."""
    func = tool.func
    module, name = getattr(func, "__module__", None), getattr(func, "__qualname__", "<nothing>")
    found = home = sys.modules.get(module) if isinstance(module, str) else None
    for part in name.split("."):
        found = getattr(found, part, None)
    file = getattr(home, "__file__", None)
    if found is None or found != func or (module == "__main__" and file is None):
        raise ToolSignatureError(
            f"{tool.name!r} cannot run in another process: its function must stand at the top of a module in a file, "
            "where it is found by its name; a lambda, a partial, a nested function or a method of an instance is not"
        )
    return {"module": module, "qualname": name, "file": file}


def request_for(tool: Tool, arguments: Mapping[str, Any], call: ToolCall) -> dict[str, Any]:
    """Return a call as it crosses.

    Raises:
        NotSerializableError: An argument cannot cross; the message has its path.
        ToolSignatureError: The function cannot.
    """
    place, given = _place(tool), dict(arguments)
    plain = first_unsafe(given, "arguments") is None
    if plain and tool.context_parameter is None:
        return {**place, "arguments": to_jsonable_python(given), "typed": None}
    context = call.context or ToolContext[Any]()
    told = {"call_id": context.call_id, "run_id": context.run_id, "timeout": context.timeout}
    typed = {"tool": Tool.__module__, "types": ToolContext.__module__, "context": told}
    return {**place, "arguments": given if plain else _jsonable(given), "typed": typed}


def _jsonable(arguments: dict[str, Any]) -> dict[str, Any]:
    crossed: dict[str, Any] = {}
    for name, value in arguments.items():
        try:
            crossed[name] = to_jsonable_python(value, by_alias=True)
        except Exception as error:
            reason = f"{type(value).__name__} is not JSON data"
            raise NotSerializableError(*(_offender(value, name) or (name, reason))) from error
    if bad := first_unsafe(crossed, "arguments"):
        raise NotSerializableError(*bad)
    return crossed


def _offender(value: Any, name: str) -> tuple[str, str] | None:
    fields = hasattr(cast("Any", type(value)), "__dataclass_fields__")
    return first_unsafe(asdict(value) if fields else value, name)


def value_of(answer: Mapping[str, Any]) -> Any:
    """Return what a function returned, or raise what it came to.

    Raises:
        ToolExecutionError: It raised, or its answer makes no sense.
        ToolArgumentError: Its arguments did not fit.
    """
    if "error" in answer:
        raise _raised(answer["error"])
    try:
        if "bytes" in answer:
            return bytes.fromhex(answer["bytes"])
        if "response" in answer:
            success, message, data = answer["response"]
            return ToolResponse(success, message, data)
        return answer["value"]
    except Exception:  # noqa: BLE001  # what is behind the wall may say anything
        raise ToolExecutionError("its answer cannot be read") from None


def _raised(told: Any) -> ToolcribError:
    error = cast("dict[str, Any]", told) if isinstance(told, dict) else {}
    message, kind = str(error.get("message")), str(error.get("type"))
    if error.get("arguments"):
        return ToolArgumentError(message)
    if error.get("said"):
        return ToolExecutionError(message or "it failed")
    return ToolExecutionError(f"{kind}: {message}".removesuffix(": "))
