"""Functions as they are found in old code: no type hints, docstrings that are missing or lie, `**kwargs`.

A model reads their source and writes what is missing: `toolcrib schema examples/legacy.py --mode llm --diff`. Here a
scripted engine stands in for it, so that this file runs anywhere.
"""

from __future__ import annotations

import json

STOCK = {"AB-12": 7, "CD-34": 0}


def stock_level(sku, warehouse="main", min_level=None):
    """Return the price of an article."""  # it never did
    level = STOCK.get(sku, 0) if warehouse == "main" else 0
    return level if min_level is None or level >= min_level else None


def reserve(**kwargs):
    sku, count = kwargs["sku"], int(kwargs.get("count", 1))
    return f"{count} of {sku} reserved"


ANSWER = {
    "description": "Reserve pieces of an article.",
    "parameters": {
        "type": "object",
        "properties": {
            "sku": {"type": "string", "description": "The article's number, such as AB-12."},
            "count": {"type": "integer", "description": "How many pieces; 1 if left out."},
        },
        "required": ["sku"],
    },
}

__all__ = ["reserve", "stock_level"]

if __name__ == "__main__":
    from toolcrib import ScriptedEngine, Tool

    model = ScriptedEngine([json.dumps(ANSWER)])
    tool = Tool(reserve, mode="llm", schema_llm=model)
    print(json.dumps(tool.input_schema["properties"]))
    print(tool.call({"sku": "AB-12", "count": 2}))
    for part in tool.explain():
        print(f"{part.part}: {part.value} (by {part.source})")
    print(tool.pin())
