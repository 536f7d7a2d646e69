"""The client that the official conformance suite tests: it lists the tools of the server it is given and calls them.

The suite starts it with the server's URL as the last argument, and the scenario and its context in the environment.
"""

from __future__ import annotations

import json
import os
import sys

if os.environ.get("MCP_CONFORMANCE_SCENARIO", "").startswith("auth/"):
    sys.exit("logging in is not offered")  # before anything is imported: the suite starts all scenarios at once

from toolcrib import MCPClient, ToolExecutionError, Toolset  # see above

CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
SAMPLES = {"string": "text", "integer": 3, "number": 5, "boolean": True, "array": [], "object": {}}


def sample(schema):
    """Return arguments that fit the schema, as far as the suite's schemas go."""
    wanted = {name: schema["properties"][name] for name in schema.get("required", ())}
    return {name: part.get("enum", [SAMPLES.get(part.get("type"), "text")])[0] for name, part in wanted.items()}


def calls(tools):
    """Yield the calls the scenario names, or else one of each tool."""
    if "toolCalls" in CONTEXT:
        for call in CONTEXT["toolCalls"]:
            yield call["name"], call.get("arguments") or {}
        return
    for tool in tools:
        if tool.name == "json_schema_echo":
            yield tool.name, {"schema": tools["json_schema_2020_12_tool"].input_schema}
            continue
        yield tool.name, sample(tool.input_schema)


def main():
    """Do what the scenario asks for."""
    client = MCPClient(
        {"mcpServers": {"suite": {"url": sys.argv[-1]}}},
        on_elicit=lambda asked: {"confirmed": True} if "confirmed" in str(asked.schema) else {},
        on_sample=lambda _asked: "a model's words",
    )
    with client:
        for name, arguments in calls(Toolset([client])):
            try:
                print(name, arguments, client.call_tool(name, arguments, timeout=20))  # noqa: T201  # for --verbose
            except ToolExecutionError as error:
                print(name, arguments, "failed:", error)  # noqa: T201  # for --verbose


if __name__ == "__main__":
    main()
