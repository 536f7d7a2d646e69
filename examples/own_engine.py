"""Bring a model of your own: an engine is anything with a name and `acomplete`.

This one looks for numbers and adds them up. The command line takes it too:

    toolcrib run "What is 1250 plus 375?" examples/quickstart.py --model examples/own_engine.py:engine
"""

import re
from collections.abc import Sequence

from quickstart import add

from toolcrib import Agent, Message, Reply, ToolCall, Toolset


class AddingEngine:
    """Asks for the sum of the first two numbers of the prompt, and repeats the answer."""

    model = "adding"

    async def acomplete(self, messages: Sequence[Message], tools: Toolset) -> Reply:
        """Return a call of add, or words."""
        last = messages[-1]
        numbers = [float(number) for number in re.findall(r"\d+", last.content)]
        if last.role == "user" and "add" in tools and len(numbers) > 1:
            return Reply("", calls=(ToolCall("1", "add", {"a": numbers[0], "b": numbers[1]}),))
        return Reply(f"The answer is {last.content}." if last.role == "tool" else "I can only add.")


engine = AddingEngine()

if __name__ == "__main__":
    agent = Agent(engine, [add])
    print(agent("What is 1250 plus 375?").text())
    print(agent("Tell me a joke.").text())
