"""A model without native tool calls: the tools go into the prompt as XML, its calls are read out of its words."""

from quickstart import book_table, get_weather

from toolcrib import Toolset, call_tools
from toolcrib.formats import xml

TOOLS = Toolset([get_weather, book_table])

if __name__ == "__main__":
    print("In the system prompt:\n")
    print(xml.tools(TOOLS))

    said = """I look at the sky first.
<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>
<tool_call>{"name": "book_table", "arguments": {"order": {"name": "A & B", "guests": 2, "day": "Friday"}}}</tool_call>
"""
    print("\nWhat the model said:\n")
    print(said)

    print("What it is told:\n")
    print(*xml.results(call_tools(xml.calls(said, TOOLS), TOOLS)), sep="\n")
