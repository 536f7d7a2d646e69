"""How often the embedded model makes the right call: four groups of ten questions, in one process.

    python benchmarks/local_model.py --model local

Groups: one tool on offer; one of four; two calls needed; no call needed. "tool" counts the right tool (or none,
where none is needed), "all" also the right arguments; optional arguments nobody asked for must be absent. Two
calls count only when exactly the expected ones are made, in a loop whose tools answer with fixed results.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import dataclass
from typing import Any, Literal

from toolcrib.engines.local import LocalEngine
from toolcrib.toolset import Toolset
from toolcrib.types import Message, ToolCall, ToolResponse, ToolResult

Metal = Literal["gold", "silver", "copper"]


def play_music(title: str, room: str = "kitchen") -> None:
    """Play a song or an album."""


def find_train(origin: str, destination: str, day: str) -> None:
    """Find train connections between two cities on a day."""


def divide(numerator: float, denominator: float) -> None:
    """Divide one number by another."""


def metal_price(metal: Metal) -> None:
    """Get the market price of a metal per ounce."""


def set_thermostat(degrees: float) -> None:
    """Set the heating to a temperature."""


def add_to_list(item: str, amount: int = 1) -> None:
    """Put an item on the shopping list."""


def define_word(word: str) -> None:
    """Look a word up in the dictionary."""


def local_time(city: str) -> None:
    """Tell the current time in a city."""


def send_text(recipient: str, message: str) -> None:
    """Send a text message to a person."""


def square_root(number: float) -> None:
    """Compute the square root of a number."""


def subtract(a: float, b: float) -> None:
    """Subtract the second number from the first."""


def count_stock(product: str) -> None:
    """Count how many of a product are in the warehouse."""


HOME = [play_music, set_thermostat, add_to_list, local_time]
DESK = [divide, subtract, metal_price, define_word]
ROAD = [find_train, send_text, square_root, count_stock]


@dataclass
class Like:
    """A text that only has to contain something."""

    part: str


Expected = tuple[str, dict[str, Any]]

ONE: list[tuple[Any, str, Expected]] = [
    (play_music, "Put on Abbey Road.", ("play_music", {"title": "Abbey Road"})),
    (
        find_train,
        "How do I get from Hamburg to Vienna by rail on Sunday?",
        ("find_train", {"origin": "Hamburg", "destination": "Vienna", "day": Like("Sunday")}),
    ),
    (divide, "What's 144 divided by 12?", ("divide", {"numerator": 144, "denominator": 12})),
    (metal_price, "What does silver cost today?", ("metal_price", {"metal": "silver"})),
    (set_thermostat, "Make it 21.5 degrees in here.", ("set_thermostat", {"degrees": 21.5})),
    (add_to_list, "We are out of butter, put it on the shopping list.", ("add_to_list", {"item": Like("butter")})),
    (define_word, "What does 'serendipity' mean?", ("define_word", {"word": "serendipity"})),
    (local_time, "What time is it in Tokyo?", ("local_time", {"city": "Tokyo"})),
    (
        send_text,
        "Text Paula that I'm running late.",
        ("send_text", {"recipient": "Paula", "message": Like("late")}),
    ),
    (count_stock, "How many umbrellas do we have in the warehouse?", ("count_stock", {"product": Like("umbrella")})),
]

FOUR: list[tuple[list[Any], str, Expected]] = [
    (HOME, "I'd like to hear Bohemian Rhapsody.", ("play_music", {"title": "Bohemian Rhapsody"})),
    (HOME, "Turn the heating to 19 degrees.", ("set_thermostat", {"degrees": 19})),
    (HOME, "Add 6 eggs to my list.", ("add_to_list", {"item": Like("egg"), "amount": 6})),
    (HOME, "How late is it in Sydney right now?", ("local_time", {"city": "Sydney"})),
    (DESK, "Take 58 away from 100.", ("subtract", {"a": 100, "b": 58})),
    (DESK, "How expensive is an ounce of gold?", ("metal_price", {"metal": "gold"})),
    (DESK, "Look up the word ephemeral.", ("define_word", {"word": "ephemeral"})),
    (ROAD, "What is the square root of 1764?", ("square_root", {"number": 1764})),
    (
        ROAD,
        "I need a train from Lyon to Paris on Friday.",
        ("find_train", {"origin": "Lyon", "destination": "Paris", "day": Like("Friday")}),
    ),
    (
        ROAD,
        "Let Omar know by text that dinner is ready.",
        ("send_text", {"recipient": "Omar", "message": Like("dinner is ready")}),
    ),
]

TWO: list[tuple[list[Any], str, list[tuple[Expected, str]]]] = [
    (
        HOME,
        "What time is it in Lima and in Delhi?",
        [(("local_time", {"city": "Lima"}), "9:15"), (("local_time", {"city": "Delhi"}), "19:45")],
    ),
    (
        HOME,
        "Set the heating to 20 degrees and play Hotel California.",
        [(("set_thermostat", {"degrees": 20}), "set"), (("play_music", {"title": "Hotel California"}), "playing")],
    ),
    (
        DESK,
        "Compare the prices of gold and copper.",
        [(("metal_price", {"metal": "gold"}), "4100.5"), (("metal_price", {"metal": "copper"}), "0.29")],
    ),
    (
        ROAD,
        "Count our lamps and also our chairs in the warehouse.",
        [(("count_stock", {"product": Like("lamp")}), "12"), (("count_stock", {"product": Like("chair")}), "31")],
    ),
    (
        DESK,
        "Define irony and sarcasm for me.",
        [
            (("define_word", {"word": "irony"}), "saying the opposite"),
            (("define_word", {"word": "sarcasm"}), "mocking"),
        ],
    ),
    (
        DESK,
        "Subtract 15 from 90, then divide the result by 3.",
        [
            (("subtract", {"a": 90, "b": 15}), "75"),
            (("divide", {"numerator": 75, "denominator": 3}), "25"),
        ],
    ),
    (
        ROAD,
        "Compute the square root of 81 and text the result to Nina.",
        [
            (("square_root", {"number": 81}), "9"),
            (("send_text", {"recipient": "Nina", "message": Like("9")}), "sent"),
        ],
    ),
    (
        ROAD,
        "Find a train from Rome to Milan on Monday, then text Luca when it leaves.",
        [
            (("find_train", {"origin": "Rome", "destination": "Milan", "day": Like("Monday")}), "departs 08:10"),
            (("send_text", {"recipient": "Luca", "message": Like("08:10")}), "sent"),
        ],
    ),
    (
        [divide, set_thermostat, local_time, play_music],
        "Divide 88 by 4, then set the heating to that many degrees.",
        [
            (("divide", {"numerator": 88, "denominator": 4}), "22"),
            (("set_thermostat", {"degrees": 22}), "set"),
        ],
    ),
    (
        [count_stock, subtract, add_to_list, define_word],
        "Count the batteries in the warehouse, then subtract 5 from that number.",
        [
            (("count_stock", {"product": Like("batter")}), "48"),
            (("subtract", {"a": 48, "b": 5}), "43"),
        ],
    ),
]

NONE: list[tuple[list[Any], str]] = [
    (HOME, "Good morning! Did you sleep well?"),
    (HOME, "What is the meaning of friendship?"),
    (HOME, "Tell me something funny about dogs."),
    (DESK, "Who was the first president of the United States?"),
    (DESK, "Thanks a lot, you are very kind."),
    (DESK, "Why do leaves turn red in autumn?"),
    (ROAD, "Can you sing?"),
    (ROAD, "Write two lines about the moon."),
    (ROAD, "What's the largest planet?"),
    (ROAD, "I feel a bit sad today."),
]


def equals(expected: Any, given: Any) -> bool:
    if isinstance(expected, Like):
        return expected.part.lower() in str(given).lower()
    if isinstance(expected, (int, float)):
        return isinstance(given, (int, float)) and abs(given - expected) < 1e-6
    return str(given).strip(" .!?'\"").lower() == expected.lower()


def is_right(expected: Expected, call: ToolCall) -> bool:
    name, arguments = expected
    given = call.arguments
    return (
        call.name == name
        and isinstance(given, dict)
        and given.keys() == arguments.keys()
        and all(equals(value, given[key]) for key, value in arguments.items())
    )


class Bench:
    """Asks, counts and says what went wrong."""

    def __init__(self, model: str) -> None:
        self.engine = LocalEngine(model)
        self.rows: list[tuple[str, int, int, int, float]] = []

    async def _ask(self, messages: list[Message], tools: Toolset) -> ToolCall | None:
        reply = await self.engine.acomplete(messages, tools)
        return reply.calls[0] if reply.calls else None

    async def _single(self, tools: Any, question: str, expected: Expected | None) -> tuple[bool, bool]:
        call = await self._ask([Message("user", question)], Toolset(tools))
        if expected is None or call is None:
            right = (call is None) == (expected is None)
            self._tell(right, question, call)
            return right, right
        right = is_right(expected, call)
        self._tell(right, question, call)
        return call.name == expected[0], right

    async def _double(self, tools: Any, question: str, expected: list[tuple[Expected, str]]) -> tuple[bool, bool]:
        messages, left, made = [Message("user", question)], list(expected), list[ToolCall]()
        while len(made) < 2 * len(expected) and (call := await self._ask(messages, Toolset(tools))):
            made.append(call)
            hit = next((pair for pair in left if is_right(pair[0], call)), None)
            if hit:
                left.remove(hit)
            text = hit[1] if hit else "done"
            result = ToolResult(call, ToolResponse(success=True, message=text), "ok", text, text)
            messages += [Message("assistant", "", (call,)), Message("tool", text, result=result)]
        right = not left and len(made) == len(expected)
        self._tell(right, question, *made)
        return [call.name for call in made] == [pair[0][0] for pair in expected], right

    def _tell(self, right: bool, question: str, *calls: ToolCall | None) -> None:  # noqa: FBT001  # a verdict
        if not right:
            said = "; ".join(f"{call.name} {call.arguments}" for call in calls if call) or "words"
            print(f"  {question}\n    -> {said}", flush=True)

    async def run(self, title: str, questions: list[Any]) -> None:
        """Ask the questions of a group and count the right calls."""
        started, tool, whole = time.perf_counter(), 0, 0
        for tools, question, *rest in questions:
            expected: Any = rest[0] if rest else None
            ask: Any = self._double if isinstance(expected, list) else self._single
            right_tool, right = await ask(tools, question, expected)
            tool, whole = tool + right_tool, whole + right
        self.rows.append((title, len(questions), tool, whole, time.perf_counter() - started))

    def print_table(self) -> None:
        """Print what was counted."""
        print(f"\n{'group':<16}{'questions':>10}{'tool':>6}{'all':>6}{'s each':>9}")
        for title, count, tool, whole, seconds in self.rows:
            print(f"{title:<16}{count:>10}{tool:>6}{whole:>6}{seconds / count:>9.1f}")


async def main() -> None:
    parser = argparse.ArgumentParser(description="How often the embedded model makes the right call.")
    parser.add_argument("--model", default="local", help="local, local:1.5b, local:135m or local:path.gguf")
    parser.add_argument("--groups", default="1234", help="which groups to run, such as 14")
    options = parser.parse_args()
    bench = Bench(options.model)
    groups = {"1": ("one tool", ONE), "2": ("one of four", FOUR), "3": ("two calls", TWO), "4": ("no call", NONE)}
    for number in options.groups:
        await bench.run(*groups[number])
    bench.print_table()


if __name__ == "__main__":
    asyncio.run(main())
