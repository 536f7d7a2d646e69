"""Every call is answered in time, whatever its tool does: raise, hang, return no data, or not be there at all."""

import time

from toolcrib import Limits, ToolCall, Toolset, call_tools


def divide(a: float, b: float) -> float:
    """Divide two numbers."""
    return a / b


def sleep() -> str:
    """Sleep for an hour."""
    time.sleep(3600)
    return "awake"


def connection() -> object:
    """Return something that is no data."""
    return object()


def essay() -> str:
    """Write a very long text."""
    return "word " * 1_000_000


if __name__ == "__main__":
    tools = Toolset([divide, sleep, connection, essay], limits=Limits(deadline=0.5, max_result_chars=300))
    calls = [
        ToolCall("1", "divide", '{"a": 1, "b": 0}'),
        ToolCall("2", "divide", '{"a": 1, "b": }'),
        ToolCall("3", "divide", '{"a": 1, "c": 2}'),
        ToolCall("4", "multiply", '{"a": 1, "b": 2}'),
        ToolCall("5", "sleep"),
        ToolCall("6", "connection"),
        ToolCall("7", "essay"),
    ]
    for result in call_tools(calls, tools):
        print(f"{result.call.id} {result.call.name}: {result.kind}: {result.text}\n")
