"""Compare our MCP server with the SDK's lowlevel server by itself, on loopback.

    python benchmarks/mcp_server.py             # every row, about two minutes
    python benchmarks/mcp_server.py stdio 32    # only rows whose name holds one of these words

Each server is a process of its own and has the same tool; the client is the SDK's, the same for both. Runs
of the two alternate, and the figures are medians over the runs: a busy machine slows both. The last column is
the time the server's own process computed for each call, which a busy machine changes less.
"""

from __future__ import annotations

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from toolcrib import serve_mcp

ROUNDS = 31
CALLS = 10  # in one run
CLIENTS = 32
CALLS_OF_EACH = 1
NAMES = ("ours", "bare")


async def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


# -- the servers


def bare_server() -> Any:
    """Return what somebody would write with the SDK alone."""
    from mcp import types
    from mcp.server.lowlevel import Server

    number = {"type": "integer"}
    schema = {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]}
    tool = types.Tool(name="add", description="Add two numbers.", input_schema=schema)

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool])

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        given = params.arguments or {}
        value = await add(given["a"], given["b"])
        text = types.TextContent(type="text", text=f'{{"sum":{value["sum"]}}}')
        return types.CallToolResult(content=[text], structured_content=value)

    return Server("bare", on_list_tools=list_tools, on_call_tool=call_tool)


def serve(name: str, transport: str) -> None:
    """Serve in this process."""
    if name == "ours" and transport == "http":
        serve_mcp([add], transport="http", port=0, on_start=say)
    elif name == "ours":
        serve_mcp([add])
    elif transport == "http":
        import uvicorn

        config = uvicorn.Config(bare_server().streamable_http_app(), log_level="warning", access_log=False)
        # the same kind of socket as ours, which does not wait for more before it sends
        bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        bound.bind(("127.0.0.1", 0))
        bound.listen(2048)
        say(f"http://127.0.0.1:{bound.getsockname()[1]}/mcp")
        uvicorn.Server(config).run(sockets=[bound])
    else:
        asyncio.run(bare_stdio())


async def bare_stdio() -> None:
    from mcp.server.stdio import stdio_server

    server = bare_server()
    async with stdio_server() as (reads, writes):
        await server.run(reads, writes, server.create_initialization_options())


def say(url: str) -> None:
    print(url, flush=True)


# -- the client


@asynccontextmanager
async def over_stdio(name: str, mode: str) -> AsyncIterator[tuple[Any, int]]:
    """Give a client of a server that it started, and the server's process id."""
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters

    before = children()
    place = StdioServerParameters(command=sys.executable, args=[__file__, "--serve", name, "stdio"])
    async with Client(place, mode=mode) as client:
        [pid] = children() - before
        yield client, pid


@asynccontextmanager
async def over_http(url: str, mode: str) -> AsyncIterator[Any]:
    """Give a client of a server that runs."""
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async with (
        httpx2.AsyncClient(timeout=60, verify=False) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


def started(name: str) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--serve", name, "http"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603  # our own interpreter


def children() -> set[int]:
    listed = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return {int(pid) for pid in listed.read_text().split()}


async def call(client: Any, times: int) -> None:
    for number in range(times):
        result = await client.call_tool("add", {"a": number, "b": 1})
        if result.structured_content != {"sum": number + 1}:
            raise RuntimeError(f"not what was asked: {result}")


def computed(pid: int) -> float:
    """Return the seconds a process has computed."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# -- the rows


async def compare(row: str, run: Callable[[str], Awaitable[Any]], calls: int, pids: dict[str, int]) -> None:
    """Run each in turn and print one line."""
    times: dict[str, list[float]] = {name: [] for name in NAMES}
    for name in NAMES:
        await run(name)
    begun = {name: computed(pids[name]) for name in NAMES}
    for number in range(ROUNDS):
        for name in NAMES if number % 2 else NAMES[::-1]:
            start = time.perf_counter()
            await run(name)
            times[name].append((time.perf_counter() - start) / calls * 1e6)
    ours, bare = (statistics.median(times[name]) for name in NAMES)
    busy = {name: (computed(pids[name]) - begun[name]) / calls / ROUNDS * 1e6 for name in NAMES}
    print(f"| {row} | {bare:,.0f} | {ours:,.0f} | {bare / ours:.2f} | {busy['bare']:,.0f} / {busy['ours']:,.0f} |")


async def stdio_row(mode: str, row: str) -> None:
    async with AsyncExitStack() as stack:
        opened = {name: await stack.enter_async_context(over_stdio(name, mode)) for name in NAMES}
        pids = {name: pid for name, (_, pid) in opened.items()}
        await compare(row, lambda name: call(opened[name][0], CALLS), CALLS, pids)


async def http_rows(mode: str, row: str, wanted: Callable[[str], bool]) -> None:
    servers = {name: started(name) for name in NAMES}
    urls = {name: server.stdout.readline().strip() for name, server in servers.items() if server.stdout}
    pids = {name: server.pid for name, server in servers.items()}
    try:
        async with AsyncExitStack() as stack:

            async def clients(name: str, count: int) -> list[Any]:
                return [await stack.enter_async_context(over_http(urls[name], mode)) for _ in range(count)]

            if wanted(row):
                one = {name: (await clients(name, 1))[0] for name in NAMES}
                await compare(row, lambda name: call(one[name], CALLS), CALLS, pids)
            if wanted(many := f"{row}, {CLIENTS} clients at once"):
                all_of = {name: await clients(name, CLIENTS) for name in NAMES}

                async def together(name: str) -> None:
                    await asyncio.gather(*(call(client, CALLS_OF_EACH) for client in all_of[name]))

                await compare(many, together, CLIENTS * CALLS_OF_EACH, pids)
    finally:
        for server in servers.values():
            server.terminate()
            server.communicate()


async def main(words: list[str]) -> None:
    def wanted(row: str) -> bool:
        return not words or any(word in row for word in words)

    print("| a call over | SDK alone, us | toolcrib, us | throughput | computed by the server, us |")
    print("|---|---:|---:|---:|---:|")
    for mode, era in (("auto", "2026-07-28"), ("legacy", "2025-11-25")):
        if wanted(row := f"stdio, {era}"):
            await stdio_row(mode, row)
        row = f"http, {era}"
        if wanted(row) or wanted(f"{row}, {CLIENTS} clients at once"):
            await http_rows(mode, row, wanted)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:])
    else:
        asyncio.run(main(sys.argv[1:]))
