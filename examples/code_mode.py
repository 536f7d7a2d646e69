"""Code mode: the model writes one script that makes every call, and reads only what comes out of it."""

from toolcrib import Agent, ScriptedEngine, ScriptTool

STOCK = {"bolt": 120, "nut": 8, "washer": 0}


def list_parts() -> list[str]:
    """List the parts that are kept in stock."""
    return list(STOCK)


async def count(part: str) -> int:
    """Count what is left of a part.

    Args:
        part: The part's name.
    """
    return STOCK[part]


def order(part: str, pieces: int) -> str:
    """Order more of a part.

    Args:
        part: The part's name.
        pieces: How many.
    """
    return f"{pieces} of {part} ordered"


# A real model writes this by itself.
SCRIPT = """\
import asyncio

parts = list_parts()
counts = await asyncio.gather(*[count(part) for part in parts])
[order(part, 100 - left) for part, left in zip(parts, counts) if left < 10]
"""


if __name__ == "__main__":
    tools = ScriptTool([list_parts, count, order])
    print(tools.stubs)
    agent = Agent(ScriptedEngine([[("run_script", {"code": SCRIPT})], "I ordered nuts and washers."]), [tools])
    outcome = agent.run("Fill up whatever runs low.")
    for message in outcome.messages:
        print(f"{message.role}: {message.content}")
