"""Stand around every call: an executor may log, ask a person, retry or refuse, and pass the call on to another."""

from collections.abc import Mapping
from typing import Any

from quickstart import book_table, get_weather

from toolcrib import InlineExecutor, Tool, ToolCall, ToolDeniedError, Toolset, call_tools


class AskFirst:
    """Runs what only reads; asks before anything else."""

    def __init__(self, allowed: set[str]) -> None:
        self.allowed = allowed
        self.inner = InlineExecutor()

    async def run(self, tool: Tool, arguments: Mapping[str, Any], call: ToolCall) -> Any:
        """Run the call, or refuse it."""
        if tool.effect != "read" and tool.name not in self.allowed:
            raise ToolDeniedError(f"{tool.name} was not approved")
        return await self.inner.run(tool, arguments, call)


if __name__ == "__main__":
    tools = Toolset([Tool(get_weather, effect="read"), Tool(book_table, effect="write")])
    order = {"order": {"name": "Ada", "guests": 3, "day": "Friday"}}
    calls = [ToolCall("1", "get_weather", {"city": "Paris"}), ToolCall("2", "book_table", order)]
    for allowed in (set[str](), {"book_table"}):
        for result in call_tools(calls, tools, executor=AskFirst(allowed)):
            print(f"{result.kind}: {result.text}")
