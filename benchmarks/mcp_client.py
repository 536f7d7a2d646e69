"""Compare MCPClient with the bare client of the SDK, on the same server, in interleaved runs.

    python benchmarks/mcp_client.py

Each line has the medians of many short runs that alternate between the two, and the median of the ratios of
neighbours; above 1.00 we are the faster one. The server is made with the SDK and runs in a process of its own,
over pipes and over HTTP on loopback.
"""

from __future__ import annotations

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any

from mcp import Client, types
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from toolcrib import MCPClient, Toolset

ROUNDS, CALLS, AT_ONCE = 60, 16, 16
ARGUMENTS = {"a": 1, "b": 2}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}


def served() -> Server[Any]:
    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="add", description="Add.", input_schema=SCHEMA)])

    async def call_tool(_context: Any, params: Any) -> types.CallToolResult:
        text = str(params.arguments["a"] + params.arguments["b"])
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    return Server("bench", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve(how: str) -> None:
    if how == "stdio":
        server = served()
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
    else:
        import uvicorn

        app = served().streamable_http_app(json_response=True)
        await uvicorn.Server(uvicorn.Config(app, port=int(how), log_level="error")).serve()


@contextmanager
def over_http() -> Generator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, __file__, str(port)])  # noqa: S603  # this very file
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.terminate()
        server.wait()


async def seconds(call: Callable[[], Awaitable[Any]], at_once: int) -> float:
    began = time.perf_counter()
    for _ in range(CALLS // at_once or 1):
        await asyncio.gather(*(call() for _ in range(at_once)))
    return (time.perf_counter() - began) / (CALLS // at_once or 1) / at_once


async def turn(
    bare: Callable[[], Awaitable[Any]],
    ours: Callable[[], Awaitable[Any]],
    at_once: int,
    bare_first: bool,  # noqa: FBT001  # by position, in one place
) -> tuple[float, float]:
    if bare_first:
        return await seconds(bare, at_once), await seconds(ours, at_once)
    mine = await seconds(ours, at_once)
    return await seconds(bare, at_once), mine


async def compare(name: str, bare: Callable[[], Awaitable[Any]], ours: Callable[[], Awaitable[Any]]) -> None:
    for at_once in (1, AT_ONCE):
        times: list[tuple[float, float]] = [
            await turn(bare, ours, at_once, number % 2 == 0) for number in range(ROUNDS)
        ]
        theirs, mine = (statistics.median(column) for column in zip(*times, strict=True))
        ratio = statistics.median(sdk / own for sdk, own in times)  # of neighbours, which a busy machine slows alike
        label = f"{name}, {at_once} at once"
        print(f"{label:34} SDK {theirs * 1e6:7.0f} us   MCPClient {mine * 1e6:7.0f} us   {ratio:5.2f}")


async def measure(name: str, place: Any, config: dict[str, Any]) -> None:
    async with Client(place) as bare, MCPClient({"mcpServers": {"bench": config}}, connect=False) as client:
        tool = Toolset([client])["add"]
        await bare.list_tools()
        await compare(
            f"{name}, call_tool",
            lambda: bare.call_tool("add", ARGUMENTS),
            lambda: client.acall_tool("add", ARGUMENTS),
        )
        await compare(
            f"{name}, validated tool", lambda: bare.call_tool("add", ARGUMENTS), lambda: tool.acall(ARGUMENTS)
        )


async def main() -> None:
    with open(os.devnull, "w", encoding="utf-8") as quiet:  # noqa: ASYNC230, PTH123  # opened once, at the start
        parameters = StdioServerParameters(command=sys.executable, args=[__file__, "stdio"])
        entry = {"command": sys.executable, "args": [__file__, "stdio"]}
        await measure("pipes", stdio_client(parameters, errlog=quiet), entry)
    with over_http() as url:
        await measure("HTTP", url, {"url": url})


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]) if len(sys.argv) > 1 else main())
