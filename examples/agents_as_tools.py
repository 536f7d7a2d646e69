"""An agent is a tool like any other: one agent hands tasks to others, and its outcome counts what they took."""

from quickstart import convert_currency, get_weather

from toolcrib import Agent, ScriptedEngine

# Scripted, so that it runs without a key; any engine will do, such as LLMEngine("claude-haiku-4-5") or LocalEngine().
weather = Agent(
    ScriptedEngine([[("get_weather", {"city": "Rome"})], "Rome: 14 degrees and light rain."]),
    [get_weather],
    name="weather_desk",
    description="Knows the weather anywhere.",
)
money = Agent(
    ScriptedEngine(
        [[("convert_currency", {"amount": 80, "from_currency": "USD", "to_currency": "EUR"})], "72.73 euros."]
    ),
    [convert_currency],
    name="money_desk",
    description="Converts money.",
)
travel = Agent(
    ScriptedEngine(
        [
            [("weather_desk", {"task": "The weather in Rome?"}), ("money_desk", {"task": "80 dollars in euros?"})],
            "Take an umbrella to Rome, and 72.73 euros.",
        ]
    ),
    [weather, money],
    name="travel_desk",
)

if __name__ == "__main__":
    outcome = travel("I am off to Rome with 80 dollars.")
    print(outcome.text())
    for nested in outcome.metadata.nested:
        print(f"- {nested.agent} took {nested.turns} turns")
