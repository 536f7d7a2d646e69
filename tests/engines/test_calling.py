import pytest

from toolcrib import Agent, EngineError, Reply, ScriptedEngine, TextDelta, ToolResponse


def get_weather(city: str) -> str:
    """Get the weather.

    Args:
        city: The city.
    """
    if city == "Atlantis":
        return ToolResponse(success=False, message="no such city", data={"tried": city})
    return f"14 degrees in {city}"


XML = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'
SCRIPT = '```python\n[get_weather(city) for city in ("Oslo", "Rome")]\n```'


def asked(engine):
    """What the model was shown, which knows nothing of tools."""
    assert all(request["tools"] == [] for request in engine.requests)
    return [request["messages"] for request in engine.requests]


def test_xml_shows_the_tools_in_the_system_message_and_answers_as_tool_responses():
    engine = ScriptedEngine([f"Let me see.\n{XML}", "It is 14 degrees."])
    outcome = Agent(engine, [get_weather], system="Be brief.", calling="xml").run("How warm is it in Oslo?")
    assert outcome.text() == "It is 14 degrees."
    first, second = asked(engine)
    assert first[0]["content"].startswith("Be brief.\n\nYou can call these tools:\n\n<tools>")
    assert '<tool name="get_weather">' in first[0]["content"]
    assert [message["role"] for message in second] == ["system", "user", "assistant", "user"]
    assert second[2]["content"] == f"Let me see.\n{XML}"
    answer = '<tool_response success="True">\n  <data>"14 degrees in Oslo"</data>\n</tool_response>'
    assert second[3]["content"] == answer
    assert [message.result.kind for message in outcome.messages if message.result] == ["ok"]


def test_several_calls_of_one_turn_are_answered_in_one_message():
    wrong = XML.replace("Oslo", "Atlantis")
    engine = ScriptedEngine([f"{XML}\n{wrong}", "Done."])
    Agent(engine, [get_weather], calling="xml").run("?")
    told = asked(engine)[1][-1]["content"]
    assert told.count("<tool_response") == 2
    assert 'success="False"' in told
    assert "no such city" in told
    assert "Atlantis" in told


def test_what_a_model_imagines_of_an_answer_is_cut_off():
    engine = ScriptedEngine(
        [f'{XML}\n<tool_response success="True">90 degrees</tool_response>\nIt is 90.', "It is 14."]
    )
    Agent(engine, [get_weather], calling="xml").run("?")
    assert "90" not in str(asked(engine)[1])


def test_an_answer_that_is_all_imagined_is_not_made_an_empty_one():
    engine = ScriptedEngine(["<tool_response>90 degrees</tool_response>"])
    assert Agent(engine, [get_weather], calling="xml").run("?").text() == "<tool_response>90 degrees</tool_response>"


def test_a_model_that_writes_a_script_is_shown_stubs_and_reads_what_comes_of_it():
    engine = ScriptedEngine([f"I will ask for both.\n{SCRIPT}\nIt is 90 degrees.", "Both have 14 degrees."])
    outcome = Agent(engine, [get_weather], calling="script").run("?")
    first, second = asked(engine)
    assert "```python" in first[0]["content"]
    assert 'def get_weather(city: str) -> str: "Get the weather. city: The city."' in first[0]["content"]
    assert '["14 degrees in Oslo","14 degrees in Rome"]' in second[-1]["content"]
    assert outcome.text() == "Both have 14 degrees."


def test_a_conversation_that_began_natively_goes_on_in_words():
    engine = ScriptedEngine([[("get_weather", {"city": "Oslo"})], "14.", "Again 14."])
    agent = Agent(engine, [get_weather])
    agent.chat("Oslo?")
    agent.calling = "xml"
    agent.chat("And again?")
    assert engine.requests[-1]["messages"][2] == {
        "role": "assistant",
        "content": '<tool_call>{"name": "get_weather", "arguments": {"city":"Oslo"}}</tool_call>',
    }


@pytest.mark.parametrize(
    ("calling", "turns", "shown"),
    [
        ("xml", [f"See <b>here</b>: {XML}", "Fine, 1 < 2."], "See <b>here</b>: Fine, 1 < 2."),
        ("xml", ["A lone <tool"], "A lone <tool"),
        ("script", [f"So: {SCRIPT}", "Done ``` really."], "So: Done ``` really."),
    ],
)
def test_words_are_streamed_and_calls_are_not(calling, turns, shown):
    agent = Agent(ScriptedEngine(turns), [get_weather], calling=calling)
    assert "".join(event.text for event in agent.stream("?") if isinstance(event, TextDelta)) == shown


def test_auto_is_xml_for_an_engine_that_calls_no_tools_and_native_for_others():
    plain = ScriptedEngine([XML, "Done."])
    plain.calls_tools = False
    assert Agent(plain, [get_weather], calling="auto").run("?").text() == "Done."
    assert asked(plain)
    native = ScriptedEngine([[("get_weather", {"city": "Oslo"})], "Done."])
    assert Agent(native, [get_weather], calling="auto").run("?").text() == "Done."
    assert native.requests[0]["tools"] == ["get_weather"]


def test_without_tools_nothing_is_said_of_any():
    engine = ScriptedEngine(["Hello."])
    Agent(engine, calling="xml").run("?")
    assert asked(engine) == [[{"role": "user", "content": "?"}]]


def test_an_engine_that_cannot_stream_still_answers():
    class Plain:
        model = "plain"

        async def acomplete(self, messages, tools):
            return Reply("Hi.")

    events = list(Agent(Plain(), [get_weather], calling="xml").stream("?"))
    assert events[-1].envelope.text() == "Hi."


def test_an_error_of_the_engine_ends_the_run():
    assert Agent(ScriptedEngine([EngineError("down")]), [get_weather], calling="xml").run("?").error.message == "down"


def test_an_unknown_style_is_refused():
    with pytest.raises(ValueError, match="calling must be one of native, xml, script, auto, not 'json'"):
        Agent(ScriptedEngine([]), calling="json")
