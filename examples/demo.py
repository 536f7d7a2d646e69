"""A small model on this machine calls ordinary functions: no key, no account, and after the first run no network.

It asks questions that need none, one and two of the functions, shows every call, and says where the model erred:
the right calls are known, so they can be compared.
"""

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic_core import from_json
from quickstart import add, convert_currency, get_weather
from rich.console import Console

from toolcrib import Agent, LocalEngine, RunFinished, TextDelta, ToolCall, ToolFinished


class Expected(NamedTuple):
    """A call that the right answer needs."""

    name: str
    arguments: dict[str, Any]


QUESTIONS: dict[str, list[Expected]] = {
    "Hello! How are you?": [],
    "What's the weather in Paris?": [Expected("get_weather", {"city": "Paris"})],
    "Convert 250 euros to dollars.": [
        Expected("convert_currency", {"amount": 250, "from_currency": "EUR", "to_currency": "USD"})
    ],
    "What's the weather in Oslo, and what is 1250 plus 375?": [
        Expected("get_weather", {"city": "Oslo"}),
        Expected("add", {"a": 1250, "b": 375}),
    ],
}

screen = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


def ask(agent: Agent, question: str) -> list[Expected]:
    """Show a run as it happens and return the calls it made."""
    screen.print(f"\n> {question}", style="bold")
    made: list[Expected] = []
    for event in agent.stream(question):
        match event:
            case ToolFinished(result=result):
                made.append(Expected(result.call.name, arguments_of(result.call)))
                outcome = f"  {shown(made[-1])} -> {result.text}  [{result.kind}, {result.duration * 1000:.0f} ms]"
                screen.print(outcome, style="green" if result.ok else "red")
            case TextDelta(text=text):
                print(text, end="", flush=True)
            case RunFinished(envelope=envelope):
                print()
                if envelope.error is not None:
                    sys.exit(f"{envelope.error.type}: {envelope.error.message}")
            case _:
                pass
    return made


def arguments_of(call: ToolCall) -> dict[str, Any]:
    return from_json(call.arguments) if isinstance(call.arguments, str) else dict(call.arguments)


def shown(call: Expected) -> str:
    return f"{call.name}({', '.join(f'{name}={value!r}' for name, value in call.arguments.items())})"


def same(call: Expected, wanted: Expected) -> bool:
    # Arguments nobody asked about, such as a unit, are the model's own choice.
    given: Mapping[str, Any] = call.arguments
    return call.name == wanted.name and all(given.get(name) == value for name, value in wanted.arguments.items())


def judge(made: Sequence[Expected], expected: Sequence[Expected]) -> int:
    """Say what the model got wrong, and return how many of the expected calls it made."""
    missed = [wanted for wanted in expected if not any(same(call, wanted) for call in made)]
    unasked = [call for call in made if not any(same(call, wanted) for wanted in expected)]
    for call in missed:
        screen.print(f"  (the small model missed {shown(call)})", style="yellow")
    for call in unasked:
        screen.print(f"  (nobody asked the small model for {shown(call)})", style="yellow")
    return len(expected) - len(missed)


def main() -> None:
    began = time.perf_counter()
    agent = Agent(LocalEngine("local"), [get_weather, convert_currency, add])
    right = 0
    for question, expected in QUESTIONS.items():
        asked = time.perf_counter()
        right += judge(ask(agent, question), expected)
        screen.print(f"  {time.perf_counter() - asked:.1f} s", style="dim")
    wanted = sum(map(len, QUESTIONS.values()))
    screen.print(f"\n{right} of {wanted} expected calls were made, in {time.perf_counter() - began:.0f} s altogether.")
    screen.print('Ask it yourself: toolcrib run "What is 12.5 plus 30?" examples/quickstart.py')


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
