"""Which style of calling suits a model: native, XML or a script, over simple cases of the BFCL.

    python benchmarks/calling_styles.py --cases 5 --model local

Each case offers one function, which answers with a fixed result; right is a call of that function with arguments the
case accepts. A case whose style ends in an error counts as wrong. Cases are in ../shared/data/bfcl, or --data.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any

from toolcrib import Agent, Limits, LocalEngine, Tool, ToolFinished, Toolset
from toolcrib.engines.calling import Calling

DATA = Path(__file__).parents[2] / "shared" / "data" / "bfcl"
STYLES: tuple[Calling, ...] = ("native", "xml", "script")
TURNS = 2  # a call and what is said of its answer; small models go on calling
TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None}


def schema(node: Any) -> Any:
    """Return a BFCL schema as JSON Schema."""
    if isinstance(node, list):
        return [schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    members = {key: schema(value) for key, value in node.items()}
    if isinstance(kind := members.get("type"), str) and kind in TYPES:
        members["type"] = TYPES[kind]
    return {key: value for key, value in members.items() if key != "type" or value is not None}


def is_right(name: str, arguments: Any, truth: dict[str, Any]) -> bool:
    """Whether a call is one the case accepts; an empty text among the values means that it may be left out."""
    if list(truth) != [name] or not isinstance(arguments, dict):
        return False
    accepted: dict[str, list[Any]] = truth[name]
    return set(arguments) <= set(accepted) and all(
        arguments[key] in values if key in arguments else "" in values for key, values in accepted.items()
    )


async def one(engine: LocalEngine, case: dict[str, Any], function: dict[str, Any], style: Calling) -> tuple[bool, int]:
    made: list[Any] = []

    def listen(event: object) -> None:
        if isinstance(event, ToolFinished) and event.result.ok and event.result.call.name == function["name"]:
            made.append(event.result.call.arguments)

    tool = Tool.from_schema(
        function["name"], function["description"], schema(function["parameters"]), lambda **_: "done"
    )
    agent = Agent(engine, Toolset([tool]), calling=style, on_event=listen, limits=Limits(max_turns=TURNS))
    outcome = await agent.arun(case["question"][0][-1]["content"])
    calls = [json.loads(call) if isinstance(call, str) else dict(call) for call in made]
    usage = outcome.metadata.usage
    right = bool(calls) and is_right(function["name"], calls[0], case["ground_truth"][0])
    return right, usage.input_tokens + usage.output_tokens


async def main(cases: int, model: str, data: Path) -> None:
    lines = (data / "simple_python.cases.jsonl").read_text(encoding="utf-8").splitlines()[:cases]
    functions = (data / "simple_python.functions.jsonl").read_text(encoding="utf-8").splitlines()
    engine = LocalEngine(model)
    print("style   right  tokens per case")
    for style in STYLES:
        outcomes = [
            await one(engine, case, json.loads(functions[case["function"][0]]), style)
            for case in map(json.loads, lines)
        ]
        right, tokens = sum(right for right, _ in outcomes), sum(tokens for _, tokens in outcomes)
        print(f"{style:7} {right:2} of {len(outcomes):2}  {tokens // max(1, len(outcomes)):6}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Which style of calling suits a model.")
    parser.add_argument("--cases", type=int, default=5)
    parser.add_argument("--model", default="local")
    parser.add_argument("--data", type=Path, default=DATA)
    given = parser.parse_args()
    asyncio.run(main(given.cases, given.model, given.data))
