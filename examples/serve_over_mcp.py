"""Serve tools over MCP, and use them as any MCP client would: here the SDK's own, in the same process.

As a server for other programs it is one line, `serve_mcp([stock, reorder])`, or
`toolcrib serve examples/serve_over_mcp.py --mcp stdio`.
"""

import asyncio

from mcp import Client
from mcp.types import CallToolResult, TextContent

from toolcrib import ToolContext, mcp_server

SHELVES = {"screws": 1200, "nails": 40}

__all__ = ["reorder", "stock"]


def stock(article: str) -> dict[str, int]:
    """Count what is there.

    Args:
        article: The article's name, such as screws.
    """
    return {article: SHELVES[article]}


async def reorder(article: str, crates: int, context: ToolContext) -> str:
    """Order more of an article.

    Args:
        article: The article's name.
        crates: How many crates.
        context: Filled in by toolcrib.
    """
    for crate in range(1, crates + 1):
        context.progress(crate, crates, f"crate {crate}")
        await asyncio.sleep(0)
    return f"{crates} crates of {article} are on their way"


def text_of(result: CallToolResult) -> str:
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


async def main() -> None:
    async def hear(progress: float, total: float | None, message: str | None) -> None:
        print(f"{progress:g} of {total:g}: {message}")

    async with Client(mcp_server([stock, reorder], name="warehouse")) as client:
        print([tool.name for tool in (await client.list_tools()).tools])
        print((await client.call_tool("stock", {"article": "nails"})).structured_content)
        ordered = await client.call_tool("reorder", {"article": "nails", "crates": 2}, progress_callback=hear)
        print(text_of(ordered))
        print(text_of(await client.call_tool("reorder", {"article": "nails", "crates": "many"})))


if __name__ == "__main__":
    asyncio.run(main())
