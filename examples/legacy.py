"""Functions as old code has them: no type hints, `**kwargs`, a docstring that lies. A model writes what is missing.

It reads their source. Here a clerk with prepared answers stands in for it, so that this runs anywhere; with a real one:
`toolcrib schema examples/legacy.py --mode llm --model local --diff`.
"""

from __future__ import annotations

import json

from toolcrib import Reply, Tool

STOCK = {"AB-12": 7, "CD-34": 0}


def stock_level(sku, warehouse="main", min_level=None):
    """Return the price of an article."""
    level = STOCK.get(sku, 0) if warehouse == "main" else 0
    return level if min_level is None or level >= min_level else None


def reserve(**kwargs):
    sku, count = kwargs["sku"], int(kwargs.get("count", 1))
    return f"{count} of {sku} reserved"


ANSWERS = {
    "reserve": {
        "description": "Reserve pieces of an article.",
        "parameters": {
            "type": "object",
            "properties": {
                "sku": {"type": "string", "description": "The article's number, such as AB-12."},
                "count": {"type": "integer", "description": "How many pieces; 1 if left out."},
            },
            "required": ["sku"],
        },
    },
    "stock_level": {
        "description": "Return how many pieces of an article are in a warehouse.",
        "parameters": {
            "type": "object",
            "properties": {
                "sku": {"type": "string", "description": "The article's number, such as AB-12."},
                "warehouse": {"type": "string", "description": "Which warehouse."},
                "min_level": {"type": "integer", "description": "Tell no level below this."},
            },
            "required": ["sku"],
        },
    },
}


class Clerk:
    """An engine that looks its answers up."""

    model = "clerk"

    async def acomplete(self, messages, tools):  # noqa: ARG002  # there are none to call
        asked = messages[-1].content
        return Reply(next(json.dumps(answer) for name, answer in ANSWERS.items() if f"def {name}(" in asked))


clerk = Clerk()

__all__ = ["reserve", "stock_level"]

if __name__ == "__main__":
    for function in (stock_level, reserve):
        tool = Tool(function, mode="llm", schema_llm=clerk)
        print(f"{tool.name}: {tool.description}")
        for part in tool.explain():
            print(f"  {part.part}: {part.value} ({part.source})", *part.overridden)
    print(tool.call({"sku": "AB-12", "count": 2}))
    print(tool.pin())
