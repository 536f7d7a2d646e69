"""What a task over many records costs a model in words: called natively, and in code mode."""

import asyncio

from pydantic_core import to_json

from toolcrib import Agent, Reply, ScriptTool, ToolCall
from toolcrib.formats import openai_chat

CHARS_PER_TOKEN = 4
RECORDS = 20


def list_orders(day: str) -> list[str]:
    """List the orders of a day.

    Args:
        day: The day, such as 2026-11-22.
    """
    return [f"order-{number}" for number in range(RECORDS)]


def get_order(order: str) -> dict[str, object]:
    """Get an order.

    Args:
        order: The order's id.
    """
    number = int(order.rpartition("-")[2])
    return {
        "order": order,
        "customer": f"customer-{number}",
        "cents": 1_000 + number,
        "placed_at": "2026-11-22T09:30:00Z",
        "ship_to": {"name": f"Customer {number}", "street": f"{number} High Street", "city": "Oslo", "country": "NO"},
        "note": "please ring twice",
    }


def get_discount(customer: str) -> int:
    """Get a customer's discount in percent.

    Args:
        customer: The customer's id.
    """
    return int(customer.rpartition("-")[2]) % 3 * 10


class Metered:
    """A model that plays both: it asks as a model would, and counts what goes through it."""

    model = "metered"

    def __init__(self, play):
        self.play = play
        self.chars = 0
        self.requests = 0

    async def acomplete(self, messages, tools):
        self.requests += 1
        self.chars += len(to_json(openai_chat.tools(tools))) + sum(map(self._length, messages))
        reply = self.play(messages)
        self.chars += self._length(reply)
        return reply

    def _length(self, said):
        calls = [{"name": call.name, "arguments": call.arguments, "id": call.id} for call in said.calls]
        return len(getattr(said, "content", None) or getattr(said, "text", "")) + len(to_json(calls) if calls else b"")

    @property
    def tokens(self):
        return self.chars // CHARS_PER_TOKEN


def native(messages):
    """Three rounds of calls, side by side where they can be: as few as there can be."""
    told = [message.result for message in messages if message.result]
    orders = [result.value for result in told if result.call.name == "get_order"]
    if not told:
        return Reply("", (ToolCall("", "list_orders", {"day": "2026-11-22"}),))
    if not orders:
        return Reply("", tuple(ToolCall("", "get_order", {"order": order}) for order in told[0].value))
    discounts = [result.value for result in told if result.call.name == "get_discount"]
    if not discounts:
        return Reply("", tuple(ToolCall("", "get_discount", {"customer": order["customer"]}) for order in orders))
    total = sum(order["cents"] * (100 - off) // 100 for order, off in zip(orders, discounts, strict=True))
    return Reply(f"The day's total is {total} cents.")


SCRIPT = """\
total = 0
for id in list_orders("2026-11-22"):
    order = get_order(id)
    total += order["cents"] * (100 - get_discount(order["customer"])) // 100
total"""


def scripted(messages):
    told = [message.content for message in messages if message.result]
    if not told:
        return Reply("", (ToolCall("", "run_script", {"code": SCRIPT}),))
    return Reply(f"The day's total is {told[0]} cents.")


def test_a_task_over_twenty_records_takes_a_fifth_of_the_tokens_and_one_round_trip_more_than_an_answer():
    tools = [list_orders, get_order, get_discount]
    by_calls, by_script = Metered(native), Metered(scripted)
    first = asyncio.run(Agent(by_calls, tools).arun("What is the total of 22 November?"))
    second = asyncio.run(
        Agent(by_script, [ScriptTool(tools, check_types=False)]).arun("What is the total of 22 November?")
    )
    assert first.text() == second.text() == "The day's total is 18266 cents."
    assert (by_calls.requests, by_script.requests) == (4, 2)
    assert by_script.tokens <= 0.2 * by_calls.tokens, (by_script.tokens, by_calls.tokens)
