"""Use the tools of an MCP server: here an object of this process; a command or a URL is one line as well."""

from mcp.server import MCPServer

from toolcrib import MCP, ToolCall, Toolset, call_tools

server = MCPServer("shelf")
books = {"7": "A Field Guide to Hammers"}


@server.tool(structured_output=False)
def find_book(number: str) -> str:
    """Return the title of a book by its number."""
    return books[number]


@server.tool()
def burn_book(number: str) -> str:
    """Remove a book for ever."""
    return books.pop(number)


if __name__ == "__main__":
    # A process is reached with MCP.stdio, an address with MCP.http; the rest stays the same.
    with MCP.in_process(server, "shelf", allow=["shelf.find_*"]) as shelf:
        tools = Toolset([shelf])
        print("tools:", *tools.names)
        calls = [
            ToolCall("1", "shelf.find_book", {"number": "7"}),
            ToolCall("2", "shelf.find_book", {"number": 7}),
            ToolCall("3", "shelf.burn_book", {"number": "7"}),
        ]
        for result in call_tools(calls, tools):
            print(f"{result.kind}: {result.text}")
