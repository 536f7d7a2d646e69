"""Ordinary functions become tools: a model is shown their schemas, and what it asks for is checked and run.

Run it, or name this file to the command line:

    python examples/quickstart.py
    toolcrib list examples/quickstart.py
    toolcrib call examples/quickstart.py convert_currency amount=250 from_currency=EUR to_currency=USD
"""

from typing import Literal

from pydantic import BaseModel, Field

from toolcrib import ToolCall, Toolset, call_tools

Currency = Literal["USD", "EUR", "GBP", "JPY"]
IN_DOLLARS = {"USD": 1.0, "EUR": 1.1, "GBP": 1.3, "JPY": 0.0066}


class Order(BaseModel):
    """A table to book."""

    name: str = Field(description="Who comes.", min_length=1)
    guests: int = Field(description="How many come.", ge=1, le=12)
    day: str = Field(description="The day, such as Friday.")


async def get_weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """Get the current weather in a city.

    Args:
        city: The city, such as Paris.
        unit: The unit of the temperature.
    """
    degrees = 14 if unit == "celsius" else 57
    return f"{degrees} degrees {unit} and light rain in {city}"


def convert_currency(amount: float, from_currency: Currency, to_currency: Currency) -> float:
    """Convert an amount of money from one currency to another.

    Args:
        amount: How much money.
        from_currency: The currency it is in.
        to_currency: The currency wanted.
    """
    return round(amount * IN_DOLLARS[from_currency] / IN_DOLLARS[to_currency], 2)


def add(a: float, b: float) -> float:
    """Add two numbers.

    Args:
        a: One number.
        b: The other.
    """
    return a + b


def book_table(order: Order) -> str:
    """Book a table in the restaurant.

    Args:
        order: Who comes, how many, and when.
    """
    return f"A table for {order.guests} on {order.day}, in the name of {order.name}"


if __name__ == "__main__":
    tools = Toolset([get_weather, convert_currency, add, book_table])

    print("What a model is shown of one of them:\n")
    print(tools["book_table"].build_prompt())

    print("\nWhat comes of its calls, right or wrong:\n")
    calls = [
        ToolCall("1", "get_weather", '{"city": "Paris"}'),
        ToolCall("2", "convert_currency", '{"amount": "250", "from_currency": "EUR", "to_currency": "USD"}'),
        ToolCall("3", "book_table", '{"order": {"name": "Ada", "guests": 40, "day": "Friday"}}'),
        ToolCall("4", "get_wether", '{"city": "Paris"}'),
    ]
    for result in call_tools(calls, tools):
        print(f"{result.call.name}: {result.kind}: {result.text}")
