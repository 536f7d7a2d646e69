import asyncio

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from toolcrib import ToolCall, Toolset, TraceExecutor, call_tools


@pytest.fixture
def spans():
    return InMemorySpanExporter()


@pytest.fixture
def tracer(spans):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    return provider.get_tracer("test")


def test_each_call_is_one_span_of_the_genai_conventions(spans, tracer):
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    call_tools([ToolCall("call_7", "add", '{"a": 1, "b": 2}')], Toolset([add]), executor=TraceExecutor(tracer=tracer))
    [span] = spans.get_finished_spans()
    assert span.name == "execute_tool add"
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call_7",
        "gen_ai.tool.description": "Add two numbers.",
    }


def test_arguments_and_results_are_recorded_only_on_request(spans, tracer):
    def add(a: int, b: int) -> int:
        return a + b

    executor = TraceExecutor(tracer=tracer, content=True)
    call_tools([ToolCall("1", "add", '{"a": 1, "b": 2}')], Toolset([add]), executor=executor)
    attributes = spans.get_finished_spans()[0].attributes
    assert attributes["gen_ai.tool.call.arguments"] == '{"a":1,"b":2}'
    assert attributes["gen_ai.tool.call.result"] == "3"


def test_a_failure_is_marked_by_its_type_and_its_text_stays_out(spans, tracer):
    def pay() -> None:
        raise LookupError("card 4111 is unknown")

    call_tools([ToolCall("1", "pay")], Toolset([pay]), executor=TraceExecutor(tracer=tracer))
    [span] = spans.get_finished_spans()
    assert span.attributes["error.type"] == "LookupError"
    assert span.status.status_code is trace.StatusCode.ERROR
    assert "4111" not in span.to_json()


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_the_tool_runs_inside_its_span(spans, tracer, colour):
    def sync_tool() -> str:
        return format(trace.get_current_span().get_span_context().span_id, "016x")

    async def async_tool() -> str:
        await asyncio.sleep(0)
        return sync_tool()

    tool = sync_tool if colour == "sync" else async_tool
    [result] = call_tools([ToolCall("1", f"{colour}_tool")], Toolset([tool]), executor=TraceExecutor(tracer=tracer))
    [span] = spans.get_finished_spans()
    assert result.text == format(span.context.span_id, "016x")
