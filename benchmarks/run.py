"""Print toolcrib's costs as ratios to a floor measured in the same process, interleaved with it.

    python benchmarks/run.py            # all rows, about a minute
    python benchmarks/run.py call async # only rows whose name holds one of these words

The floor is pydantic-core written by hand: `validate_json(raw)`, then the call. Each figure is the
minimum of many short repeats that alternate between floor and candidate, since a busy machine slows
both; compare the ratios, not the digits.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, Field, TypeAdapter
from pydantic_core import SchemaValidator, ValidationError, core_schema

from toolcrib import Tool, ToolCall, Toolset, dispatch, formats
from toolcrib._portal import off_loop

REPEATS = 40
SECONDS = 0.02  # of one repeat


class Row(NamedTuple):
    """One line of the table; `floor` and `cost` in microseconds, `bar` is what the ratio should not exceed."""

    name: str
    floor: float
    cost: float
    bar: str


# -- what is called


def two_scalars(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


def one_text(text: str, times: int) -> str:
    """Repeat a text."""
    return text


class Address(BaseModel):
    """Where it goes."""

    city: str
    zip: str


class Line(BaseModel):
    """What is ordered."""

    sku: str
    qty: int = Field(ge=1)
    price: float


class Order(BaseModel):
    """An order."""

    name: str
    address: Address
    lines: list[Line]


def nested(order: Order, dry_run: bool = False) -> str:  # noqa: FBT001, FBT002  # a tool as people write them
    """Place an order."""
    return order.name


async def asynchronous(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


SCALARS = '{"a": 3, "b": 4}'
COLON = '{"text": "at 10:30", "times": 2}'
ORDER = (
    '{"order": {"name": "Ann", "address": {"city": "Oslo", "zip": "0150"}, "lines": ['
    '{"sku": "a", "qty": 2, "price": 9.5}, {"sku": "b", "qty": 1, "price": 3.0}]}, "dry_run": true}'
)


def by_hand(**fields: Any) -> Callable[[str], dict[str, Any]]:
    """Return the floor's validator: a typed dict straight from pydantic-core."""
    typed = {name: core_schema.typed_dict_field(schema) for name, schema in fields.items()}
    return SchemaValidator(core_schema.typed_dict_schema(typed, extra_behavior="forbid")).validate_json


INT, STR, BOOL = core_schema.int_schema(), core_schema.str_schema(), core_schema.bool_schema()
VALIDATE_SCALARS = by_hand(a=INT, b=INT)
VALIDATE_TEXT = by_hand(text=STR, times=INT)
VALIDATE_ORDER = by_hand(order=TypeAdapter(Order).core_schema, dry_run=BOOL)


# -- measuring


def _once(func: Callable[[], Any], count: int) -> float:
    started = time.perf_counter()
    for _ in range(count):
        func()
    return (time.perf_counter() - started) / count * 1e6


def alternate(floor: Callable[[], Any], candidate: Callable[[], Any]) -> tuple[float, float]:
    """Return the least microseconds of both, measured turn by turn."""
    counts = [max(1, int(SECONDS * 1e6 / max(_once(func, 3), 0.1))) for func in (floor, candidate)]
    best = [float("inf"), float("inf")]
    for _ in range(REPEATS):
        for i, func in enumerate((floor, candidate)):
            best[i] = min(best[i], _once(func, counts[i]))
    return best[0], best[1]


async def alternate_async(
    floor: Callable[[], Awaitable[Any]], candidate: Callable[[], Awaitable[Any]], count: int = 5_000
) -> tuple[float, float]:
    """Return the least microseconds of both, awaited in one loop, turn by turn."""
    best = [float("inf"), float("inf")]
    for _ in range(REPEATS):
        for i, func in enumerate((floor, candidate)):
            started = time.perf_counter()
            for _ in range(count):
                await func()
            best[i] = min(best[i], (time.perf_counter() - started) / count * 1e6)
    return best[0], best[1]


# -- the rows


def call_two_scalars() -> Row:
    """Validated sync call, two numbers."""
    tool = Tool(two_scalars)
    return Row(
        "sync tool.call, 2 scalars",
        *alternate(lambda: two_scalars(**VALIDATE_SCALARS(SCALARS)), lambda: tool.call(SCALARS)),
        "2",
    )


def call_with_colon() -> Row:
    """The same where a colon in a text makes the check for duplicate keys exact."""
    tool = Tool(one_text)
    return Row(
        "sync tool.call, a colon in a string",
        *alternate(lambda: one_text(**VALIDATE_TEXT(COLON)), lambda: tool.call(COLON)),
        "3.5",
    )


def call_nested_models() -> Row:
    """The same with nested pydantic models."""
    tool = Tool(nested)
    return Row(
        "sync tool.call, nested models",
        *alternate(lambda: nested(**VALIDATE_ORDER(ORDER)), lambda: tool.call(ORDER)),
        "2.5",
    )


def async_dispatch() -> Row:
    """A whole answer: found, validated, run under a deadline, rendered."""
    toolset, call = Toolset([asynchronous]), ToolCall("1", "asynchronous", SCALARS)

    async def floor() -> int:
        return await asynchronous(**VALIDATE_SCALARS(SCALARS))

    figures = asyncio.run(alternate_async(floor, lambda: dispatch.acall(call, toolset)))
    return Row("async dispatch.acall, 2 scalars", *figures, "5")


def async_dispatch_in_a_crowd() -> Row:
    """The same tool among 10,000; the floor is the tool alone."""
    alone = Toolset([asynchronous])
    crowd = Toolset([asynchronous, *(Tool(two_scalars, name=f"tool_{i}") for i in range(10_000))])
    call = ToolCall("1", "asynchronous", SCALARS)
    figures = asyncio.run(alternate_async(lambda: dispatch.acall(call, alone), lambda: dispatch.acall(call, crowd)))
    return Row("async dispatch.acall, 1 tool against 10,000", *figures, "1.1")


def error_answer() -> Row:
    """An answer to wrong arguments; the floor raises pydantic's error and writes it out."""
    toolset, call = Toolset([asynchronous]), ToolCall("1", "asynchronous", '{"a": 3}')

    async def floor() -> str:
        try:
            VALIDATE_SCALARS('{"a": 3}')
        except ValidationError as error:
            return str(error)
        return ""

    figures = asyncio.run(alternate_async(floor, lambda: dispatch.acall(call, toolset), 1_000))
    return Row("error answer (bar: 10 us)", *figures, "")


def worker_hop() -> Row:
    """A sync function run off the loop; the floor is `asyncio.to_thread`."""

    async def hop() -> int:
        return await off_loop(two_scalars, 1, 2, timeout=60.0)

    figures = asyncio.run(alternate_async(lambda: asyncio.to_thread(two_scalars, 1, 2), hop, 300))
    return Row("sync function off the loop", *figures, "0.75")


def build() -> Row:
    """A tool with its schema and validator; the floor is pydantic's generic route."""
    from pydantic.experimental.arguments_schema import generate_arguments_schema
    from pydantic.json_schema import GenerateJsonSchema

    def floor() -> None:
        core = generate_arguments_schema(two_scalars, schema_type="arguments")
        GenerateJsonSchema().generate(core)
        SchemaValidator(core)

    def candidate() -> None:
        made = Tool(two_scalars)
        _ = made.input_schema
        _ = made.read

    return Row("build, 2 scalars and a docstring", *alternate(floor, candidate), "0.2")


def catalogue() -> list[Row]:
    """Ten thousand tools, in processor time: built with schemas, rendered, rendered again; no floor but the bar."""

    def function(i: int) -> Callable[..., Any]:
        def tool(city: str, days: int = 3, unit: Literal["c", "f"] = "c") -> str:
            """Look something up.

            Args:
                city: Where.
                days: How many.
                unit: Celsius or Fahrenheit.
            """
            return city

        tool.__name__ = f"tool_{i}"
        return tool

    functions = [function(i) for i in range(10_000)]
    best = [float("inf")] * 3
    for _ in range(5):
        gc.collect()
        started = time.process_time()
        toolset = Toolset([Tool(func) for func in functions])
        for tool in toolset:
            _ = tool.input_schema
        built = time.process_time()
        formats.openai_chat.tools(toolset)
        first = time.process_time()
        formats.openai_chat.tools(toolset)
        took = (built - started, first - built, time.process_time() - first)
        best = [min(pair) for pair in zip(best, took, strict=True)]
    return [
        Row("10,000 tools with schemas (bar: 0.5 s)", 0, best[0] * 1e6, ""),
        Row("10,000 definitions, first", 0, best[1] * 1e6, ""),
        Row("10,000 definitions, again (bar: 1 ms)", 0, best[2] * 1e6, ""),
    ]


def importing() -> Row:
    """A fresh process; the floor is what any program that uses pydantic and asyncio pays."""
    floor_code, code = "import asyncio; from pydantic import BaseModel", "import toolcrib"
    best = {floor_code: float("inf"), code: float("inf")}
    for _ in range(11):
        for text, so_far in best.items():
            timed = f"import time; t = time.process_time(); {text}; print(time.process_time() - t)"
            shown = subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True)  # noqa: S603  # our own text
            best[text] = min(so_far, float(shown.stdout) * 1e6)
    return Row("import toolcrib", best[floor_code], best[code], "1.2")


ROWS: dict[str, Callable[[], Row | list[Row]]] = {
    "call": call_two_scalars,
    "call-colon": call_with_colon,
    "call-nested": call_nested_models,
    "async": async_dispatch,
    "async-crowd": async_dispatch_in_a_crowd,
    "error": error_answer,
    "hop": worker_hop,
    "build": build,
    "catalogue": catalogue,
    "import": importing,
}


def main() -> None:
    """Measure the rows asked for and print them as a Markdown table."""
    wanted = sys.argv[1:]
    print(f"{sys.version.split()[0]} on {sys.platform}\n")
    print("| what | floor, us | toolcrib, us | ratio | bar |\n|---|---:|---:|---:|---:|")
    for name, measure in ROWS.items():
        if wanted and not any(word in name for word in wanted):
            continue
        measured = measure()
        for row in measured if isinstance(measured, list) else [measured]:
            ratio = f"{row.cost / row.floor:.2f}" if row.floor else ""
            floor = f"{row.floor:,.2f}" if row.floor else ""
            print(f"| {row.name} | {floor} | {row.cost:,.2f} | {ratio} | {row.bar} |", flush=True)


if __name__ == "__main__":
    main()
