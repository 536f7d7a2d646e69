"""A tool with a JSON Schema from elsewhere: kept verbatim, and enforced on every call."""

from typing import Any

from toolcrib import Tool, ToolCall, Toolset, call_tools

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "x-trace": {"type": "string"},  # not a Python name, and no trouble
    },
    "required": ["city"],
}


def forecast(**arguments: Any) -> dict[str, Any]:
    return {"forecast": "rain", **arguments}


if __name__ == "__main__":
    tool = Tool.from_schema("weather.forecast", "Forecast the weather.", SCHEMA, forecast)
    calls = [
        ToolCall("1", "weather.forecast", '{"city": "Paris", "days": 3, "x-trace": "abc"}'),
        ToolCall("2", "weather.forecast", '{"city": "Paris", "days": 40}'),
        ToolCall("3", "weather.forecast", '{"city": "Paris", "city": "Rome"}'),
    ]
    for result in call_tools(calls, Toolset([tool])):
        print(f"{result.kind}: {result.text}")
