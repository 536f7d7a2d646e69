"""One OpenTelemetry span for each call, by the GenAI conventions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from toolcrib.errors import MissingExtraError
from toolcrib.executors.inline import InlineExecutor

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

    from toolcrib.protocols import Executor
    from toolcrib.tools import Tool
    from toolcrib.types import ToolCall

__all__ = ["TraceExecutor"]


class TraceExecutor:
    """Runs each call inside a span `execute_tool {name}` of OpenTelemetry's GenAI conventions.

    The tool sees the span as the current one. Arguments and results are recorded only on request,
    since they may hold what a trace must not.

    Args:
        inner: What runs the call.
        tracer: Where spans go; by default the global provider's.
        content: Whether arguments and results are recorded.

    Raises:
        MissingExtraError: The `otel` extra is not installed.
    """

    def __init__(self, inner: Executor | None = None, *, tracer: Tracer | None = None, content: bool = False) -> None:
        try:
            from opentelemetry import trace
        except ImportError as error:
            raise MissingExtraError("otel", "TraceExecutor") from error
        self._trace = trace
        self._inner = inner or InlineExecutor()
        self._tracer = tracer or trace.get_tracer("toolcrib")
        self._content = content

    async def run(self, tool: Tool, arguments: Mapping[str, Any], call: ToolCall) -> Any:
        """Return what the tool returned; what it raises is marked on the span by its type alone."""
        with self._tracer.start_as_current_span(
            f"execute_tool {tool.name}",
            attributes=self._attributes(tool, arguments, call),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                value = await self._inner.run(tool, arguments, call)
            except BaseException as error:
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(self._trace.StatusCode.ERROR)
                raise
            if self._content:
                span.set_attribute("gen_ai.tool.call.result", _text(value))
            return value

    def _attributes(self, tool: Tool, arguments: Mapping[str, Any], call: ToolCall) -> dict[str, str]:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool.name,
            "gen_ai.tool.type": "function" if tool.origin is None else "extension",
            "gen_ai.tool.call.id": call.id,
            "gen_ai.tool.description": tool.description,
        }
        return attributes | {"gen_ai.tool.call.arguments": _text(dict(arguments))} if self._content else attributes


def _text(value: Any) -> str:
    try:
        return value if isinstance(value, str) else to_json(value, fallback=lambda value: type(value).__name__).decode()
    except ValueError:
        return type(value).__name__
