"""OpenAI's own SDK: toolcrib writes the definitions, reads the calls, runs them and words the answers.

With OPENAI_API_KEY set it asks the real model; without, a stand-in on this machine.
"""

import os
from typing import Any

from loopback import answering
from openai import OpenAI
from quickstart import convert_currency, get_weather

from toolcrib import Toolset, call_tools
from toolcrib.formats import openai_chat

TOOLS = Toolset([get_weather, convert_currency])
DEFINITIONS = openai_chat.tools(TOOLS)
PROMPT = "How is the weather in Paris, and what are 250 euros in dollars?"


def converse(client: OpenAI) -> str | None:
    messages: list[Any] = [{"role": "user", "content": PROMPT}]
    while True:
        reply = client.chat.completions.create(model="gpt-5.4-mini", messages=messages, tools=DEFINITIONS)
        messages.append(reply.choices[0].message)
        calls = openai_chat.calls(reply, TOOLS)
        if not calls:
            return reply.choices[0].message.content
        results = call_tools(calls, TOOLS)
        for result in results:
            print(f"{result.call.name}({result.call.arguments}) -> {result.text}")
        messages += openai_chat.results(results)


def reply_of(message: dict[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    return {"id": "1", "object": "chat.completion", "created": 0, "model": "stand-in", "choices": [choice]}


def call_of(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


if __name__ == "__main__":
    if "OPENAI_API_KEY" in os.environ:
        print(converse(OpenAI()))
    else:
        euros = '{"amount": 250, "from_currency": "EUR", "to_currency": "USD"}'
        calls = [call_of("a", "get_weather", '{"city": "Paris"}'), call_of("b", "convert_currency", euros)]
        words = "Light rain in Paris, 14 degrees; and 250 euros are 275 dollars."
        with answering(reply_of({"content": None, "tool_calls": calls}), reply_of({"content": words})) as address:
            print(converse(OpenAI(api_key="none", base_url=address)))
