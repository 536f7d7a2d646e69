"""An MCP server made with the SDK, for both eras of the protocol, over pipes or HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys

from mcp import MCPError, types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

WANTED = {"type": "object", "properties": {"name": {"type": "string"}, "loud": {"type": "boolean", "default": True}}}


def made():
    """Return a server with a state of its own."""
    bus, names, seen = InMemorySubscriptionBus(), ["add", "steps", "slow", "ask", "think", "grow", "seen"], []

    async def list_tools(ctx, params):
        hints = types.ToolAnnotations(read_only_hint=True)
        return types.ListToolsResult(
            tools=[types.Tool(name=n, description=n, input_schema={"type": "object"}, annotations=hints) for n in names]
        )

    async def call_tool(ctx, params):
        arguments, session = params.arguments or {}, ctx.session
        if params.name == "add":
            return said(str(arguments["a"] + arguments["b"]))
        if params.name == "steps":
            for step in (1, 2):
                await session.report_progress(step, 2, f"step {step}")
            return said("done")
        if params.name == "slow":
            seen.append("began")
            try:
                await asyncio.sleep(60)
            finally:
                seen.append("cancelled")
        if params.name == "seen":
            return said(json.dumps(seen))
        if params.name == "grow":
            names.append("grown")
            await bus.publish(ToolsListChanged())
            with contextlib.suppress(Exception):
                await session.send_tool_list_changed()
            return said("grown")
        if params.name in ("ask", "think"):
            return await asked(params, session)
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")

    return Server(
        "sdk", version="1", on_list_tools=list_tools, on_call_tool=call_tool, on_subscriptions_listen=ListenHandler(bus)
    )


def said(text):
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def asked(params, session):
    """Ask the client something, in the way of the era, and say what it answered."""
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="think"))
    if session.protocol_version < "2026":
        if params.name == "ask":
            answer = await session.elicit_form("who?", WANTED)
            return said(f"{answer.action} {json.dumps(answer.content)}")
        answer = await session.create_message([message], max_tokens=10)
        return said(answer.content.text)
    if params.input_responses:
        answer = params.input_responses["q"]
        text = answer.content.text if params.name == "think" else f"{answer.action} {json.dumps(answer.content)}"
        return said(f"{text} {params.request_state}" if params.request_state != "s" else text)
    if params.name == "ask":
        inner = types.ElicitRequestFormParams(message="who?", requested_schema=WANTED)
        request = types.ElicitRequest(params=inner)
    else:
        request = types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=10))
    return types.InputRequiredResult(input_requests={"q": request}, request_state="s")


async def over_pipes(server):
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options(NotificationOptions(tools_changed=True)))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        import uvicorn

        uvicorn.run(made().streamable_http_app(), port=int(sys.argv[1]), log_level="error")
    else:
        asyncio.run(over_pipes(made()))
