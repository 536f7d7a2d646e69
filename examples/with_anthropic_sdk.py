"""Anthropic's own SDK: toolcrib writes the definitions, reads the calls, runs them and words the answers.

With ANTHROPIC_API_KEY set it asks the real model; without, a stand-in on this machine.
"""

import os
from typing import Any

from anthropic import Anthropic
from loopback import answering
from quickstart import Order, book_table

from toolcrib import Toolset, call_tools
from toolcrib.formats import anthropic

TOOLS = Toolset([book_table])
DEFINITIONS = anthropic.tools(TOOLS)
PROMPT = "A table for three on Friday, please. I am Ada."


def converse(client: Anthropic) -> str:
    messages: list[Any] = [{"role": "user", "content": PROMPT}]
    while True:
        reply: Any = client.messages.create(
            model="claude-haiku-4-5", max_tokens=1000, messages=messages, tools=DEFINITIONS
        )
        messages.append({"role": "assistant", "content": reply.content})
        calls = anthropic.calls(reply, TOOLS)
        if not calls:
            return "".join(block.text for block in reply.content if block.type == "text")
        results = call_tools(calls, TOOLS)
        for result in results:
            print(f"{result.call.name}({result.call.arguments}) -> {result.text}")
        messages += anthropic.results(results)


def reply_of(content: list[dict[str, Any]], stop_reason: str) -> dict[str, Any]:
    usage = {"input_tokens": 0, "output_tokens": 0}
    facts = {"id": "1", "type": "message", "role": "assistant", "model": "stand-in", "stop_sequence": None}
    return {**facts, "content": content, "stop_reason": stop_reason, "usage": usage}


if __name__ == "__main__":
    if "ANTHROPIC_API_KEY" in os.environ:
        print(converse(Anthropic()))
    else:
        order = Order(name="Ada", guests=3, day="Friday").model_dump()
        call = {"type": "tool_use", "id": "a", "name": "book_table", "input": {"order": order}}
        words = {"type": "text", "text": "Your table for three on Friday is booked, Ada."}
        with answering(reply_of([call], "tool_use"), reply_of([words], "end_turn")) as address:
            print(converse(Anthropic(api_key="none", base_url=address)))
