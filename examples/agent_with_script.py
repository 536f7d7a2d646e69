"""A scripted model: test what surrounds a model, your tools included, without one.

`ScriptedEngine` says what it was told to say, turn by turn, and keeps what it was shown.
"""

from quickstart import add, get_weather

from toolcrib import Agent, ScriptedEngine

engine = ScriptedEngine(
    [
        [("get_weather", {"city": "Paris"}), ("add", {"a": 1250, "b": "many"})],
        [("add", {"a": 1250, "b": 375})],
        "It rains in Paris, and the sum is 1625.",
    ]
)
agent = Agent(engine, [get_weather, add], system="Be brief.")

if __name__ == "__main__":
    envelope = agent("How is the weather in Paris, and what is 1250 + 375?")
    print(envelope.text())
    print(f"{envelope.metadata.turns} turns, {envelope.metadata.cost_usd} dollars, ok: {envelope.ok}\n")

    print("What the model was told of its calls:")
    for message in envelope.messages:
        if message.result is not None:
            print(f"- {message.result.kind}: {message.content}")
