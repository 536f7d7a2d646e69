from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest

from toolcrib.agent import Agent
from toolcrib.dispatch import call_tools
from toolcrib.engines.scripted import ScriptedEngine
from toolcrib.events import Event, RunFinished, RunStarted, ToolFinished, ToolStarted
from toolcrib.limits import Limits
from toolcrib.tools import Tool
from toolcrib.toolset import Toolset
from toolcrib.types import (
    Envelope,
    Message,
    Reply,
    RunMetadata,
    ToolCall,
    ToolContext,
    ToolParameter,
    ToolResponse,
    ToolResult,
    Usage,
)

QUESTION = {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]}
ask = Tool(name="ask_user", description="Ask the user.", parameters=QUESTION)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def asking(question: str = "Which city?") -> list[tuple[str, Any]]:
    return [("ask_user", {"question": question})]


def answers(envelope: Envelope) -> list[tuple[str, str, str]]:
    return [(m.result.call.id, m.result.kind, m.content) for m in envelope.messages if m.result is not None]


def waiting(*turns: Any, tools: Any = (ask, add), **options: Any) -> tuple[Agent, Envelope]:
    agent = Agent(ScriptedEngine(turns), tools, **options)
    return agent, agent.run("go")


def ids(envelope: Envelope) -> list[str]:
    return [call.id for call in envelope.pending]


def shown(agent: Agent, request: int = -1) -> list[dict[str, Any]]:
    return agent.engine.requests[request]["messages"]


# -- a run that waits


def test_a_call_of_a_declared_tool_ends_the_run_with_the_call_pending():
    agent, outcome = waiting(asking(), "Oslo it is.")
    [call] = outcome.pending
    assert (call.name, call.arguments) == ("ask_user", {"question": "Which city?"})
    assert (outcome.error, outcome.ok) == (None, False)
    assert answers(outcome) == []
    assert len(agent.engine.requests) == 1


def test_a_run_that_does_not_wait_has_nothing_pending():
    _, outcome = waiting("Hello.")
    assert (outcome.ok, outcome.pending) == (True, ())


def test_words_said_beside_the_call_are_the_payload_so_far():
    call = ToolCall("1", "ask_user", {"question": "?"})
    assert waiting(Reply("I need to know more.", (call,)))[1].text() == "I need to know more."


def test_the_other_calls_of_the_turn_are_run_and_kept():
    turn = [("add", {"a": 1, "b": 1}), *asking(), ("add", {"a": 2, "b": 2})]
    agent, outcome = waiting(turn, "done")
    assert [text for *_, text in answers(outcome)] == ["2", "4"]
    done = agent.resume(outcome, {ids(outcome)[0]: "Oslo"})
    assert [text for *_, text in answers(done)] == ["2", "Oslo", "4"]
    assert [call_id for call_id, *_ in answers(done)] == [call.id for call in done.messages[1].calls]
    assert [m["content"] for m in shown(agent)] == ["go", "", "2", "Oslo", "4"]


def test_arguments_that_do_not_fit_are_answered_as_ever_and_never_pending():
    turn = [("ask_user", {}), ("ask_user", {"question": 5}), ("ask_user", '{"question"')]
    agent, outcome = waiting(turn, asking(), "done")
    assert [kind for _, kind, _ in answers(outcome)] == ["invalid_arguments"] * 3
    assert len(outcome.pending) == 1
    assert outcome.metadata.turns == 2
    assert agent.resume(outcome, {ids(outcome)[0]: "x"}).ok


def test_raw_arguments_are_pending_as_the_values_they_mean():
    _, outcome = waiting([("ask_user", '{"question": "Which?"}')])
    assert outcome.pending[0].arguments == {"question": "Which?"}
    assert outcome.messages[1].calls[0].arguments == '{"question": "Which?"}'


def test_a_declared_tool_of_listed_parameters_waits_too():
    tool = Tool(name="ask_user", parameters=[ToolParameter("question", "str", required=True)])
    assert waiting(asking(), tools=[tool])[1].pending[0].arguments == {"question": "Which city?"}


def test_a_declared_tool_with_an_executor_of_its_own_is_run_by_it():
    class Elsewhere:
        async def run(self, tool: Tool, arguments: Any, call: ToolCall) -> Any:
            return f"asked {arguments['question']}"

    agent, outcome = waiting(asking(), "done", tools=[ask.replace(executor=Elsewhere())])
    assert (outcome.ok, outcome.pending) == (True, ())
    assert shown(agent)[-1]["content"] == "asked Which city?"


def test_a_run_out_of_turns_does_not_wait():
    _, outcome = waiting(asking(), limits=Limits(max_turns=1))
    assert outcome.error
    assert outcome.error.type == "max_turns"
    assert outcome.pending == ()


def test_the_last_event_carries_the_envelope_that_waits():
    agent = Agent(ScriptedEngine([[*asking(), ("add", {"a": 1, "b": 1})]]), [ask, add])
    events = list(agent.stream("go"))
    assert isinstance(events[-1], RunFinished)
    assert [call.name for call in events[-1].envelope.pending] == ["ask_user"]
    told = [event for event in events if isinstance(event, (ToolStarted, ToolFinished))]
    assert [type(event) for event in told] == [ToolStarted, ToolFinished]


# -- going on


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ("Oslo", "ok", "Oslo"),
        ("", "ok", ""),
        (14, "ok", "14"),
        (None, "ok", "null"),
        ({"city": "Oslo"}, "ok", '{"city":"Oslo"}'),
        (ToolResponse(success=True, data="Oslo"), "ok", '{"success":true,"data":"Oslo"}'),
        (ToolResponse(success=False, message="no answer"), "failed", '{"success":false,"message":"no answer"}'),
        (object(), "failed", "The tool ran, but its result cannot be shown"),
    ],
)
def test_a_result_is_shown_as_if_the_tool_had_returned_it(given, kind, text):
    agent, outcome = waiting(asking(), "done")
    done = agent.resume(outcome, {ids(outcome)[0]: given})
    [(call_id, told_kind, told)] = answers(done)
    assert (call_id, told_kind) == (ids(outcome)[0], kind)
    assert told.startswith(text)
    assert shown(agent)[-1]["content"] == told
    assert (done.ok, done.text()) == (True, "done")


def test_results_may_be_tool_results_in_any_order():
    agent, outcome = waiting([*asking("1?"), *asking("2?")], "done")
    run = Tool(lambda question: f"to {question}", name="ask_user", parameters=QUESTION)
    results = call_tools(reversed(outcome.pending), Toolset([run]))
    done = agent.resume(outcome, results)
    assert [text for *_, text in answers(done)] == ["to 1?", "to 2?"]


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"text": "Oslo"}, "ok", "Oslo"),
        ({"value": 5}, "ok", "5"),
        ({"value": ""}, "ok", ""),
        ({"response": ToolResponse(success=True, data=5)}, "ok", '{"success":true,"data":5}'),
        ({"response": ToolResponse(success=False, message="no")}, "failed", '{"success":false,"message":"no"}'),
        ({"kind": "denied", "text": "not today"}, "denied", "not today"),
    ],
)
def test_a_tool_result_made_by_hand_says_what_it_holds(options, kind, text):
    agent, outcome = waiting(asking(), "done")
    done = agent.resume(outcome, [ToolResult(outcome.pending[0], **options)])
    assert answers(done) == [(ids(outcome)[0], kind, text)]


def test_a_result_too_long_for_a_model_is_cut():
    agent, outcome = waiting(asking(), "done", limits=Limits(max_result_chars=100))
    done = agent.resume(outcome, {ids(outcome)[0]: "x" * 10_000})
    assert len(done.messages[-2].content) < 200


@pytest.mark.anyio
async def test_a_run_goes_on_in_async_code_too():
    agent = Agent(ScriptedEngine([asking(), "done"]), [ask])
    outcome = await agent.arun("go")
    assert (await agent.aresume(outcome, {ids(outcome)[0]: "Oslo"})).text() == "done"


def test_a_run_may_wait_more_than_once():
    agent, outcome = waiting(asking("1?"), asking("2?"), "done")
    second = agent.resume(outcome, {ids(outcome)[0]: "one"})
    assert [call.arguments for call in second.pending] == [{"question": "2?"}]
    done = agent.resume(second, {ids(second)[0]: "two"})
    assert [text for *_, text in answers(done)] == ["one", "two"]
    assert (done.ok, done.metadata.turns) == (True, 3)


def test_turns_costs_and_time_go_on_from_where_they_were():
    call = (ToolCall("1", "ask_user", {"question": "?"}),)
    replies = [Reply("", call, Usage(10, 1, 0.5)), Reply("done", usage=Usage(20, 2, 0.25))]
    agent, outcome = waiting(*replies)
    done = agent.resume(outcome, {"1": "x"})
    assert done.metadata.run_id == outcome.metadata.run_id
    assert done.metadata.usage == Usage(30, 3, 0.75)
    assert done.metadata.turns == 2
    assert done.metadata.latency_ms > outcome.metadata.latency_ms


def test_what_nested_runs_took_before_and_after_is_kept():
    helper = Agent(ScriptedEngine([Reply(t, usage=Usage(0, 0, 1.0)) for t in "ab"]), name="helper")
    turn = [("helper", {"task": "?"})]
    agent, outcome = waiting([*turn, *asking()], turn, "done", tools=[ask, helper])
    done = agent.resume(outcome, {ids(outcome)[0]: "x"})
    assert done.metadata.cost_usd == 2.0
    assert len(done.metadata.nested) == 2


def test_a_result_that_is_an_agents_outcome_counts():
    agent, outcome = waiting(asking(), "done")
    answer = Envelope("Oslo", RunMetadata(run_id="elsewhere", usage=Usage(1, 1, 0.5)))
    done = agent.resume(outcome, {ids(outcome)[0]: answer})
    assert answers(done)[0][2] == "Oslo"
    assert done.metadata.cost_usd == 0.5


def test_the_turns_of_the_whole_run_are_bounded():
    agent, outcome = waiting(asking(), asking(), limits=Limits(max_turns=2))
    done = agent.resume(outcome, {ids(outcome)[0]: "x"})
    assert done.error
    assert done.error.type == "max_turns"


def test_the_rest_of_a_run_may_have_tools_and_deps_of_its_own():
    def whoami(context: ToolContext[str]) -> str:
        return context.deps

    agent, outcome = waiting(asking(), [("whoami", {})], "done")
    done = agent.resume(outcome, {ids(outcome)[0]: "x"}, tools=[whoami], deps="ada")
    assert answers(done)[-1][2] == "ada"


def test_async_functions_can_be_refused_on_resume_too():
    async def look() -> str:
        return "seen"

    agent, outcome = waiting(asking(), [("look", {})], tools=[ask, look], async_tools="raise")
    with pytest.raises(ValueError, match="'look' is an async function"):
        agent.resume(outcome, {ids(outcome)[0]: "x"})


def test_listeners_hear_that_the_pending_calls_were_answered():
    heard: list[Event] = []
    agent, outcome = waiting(asking(), "done")
    agent.on_event = heard.append
    agent.resume(outcome, {ids(outcome)[0]: "Oslo"})
    assert isinstance(heard[0], RunStarted)
    assert heard[0].prompt == ""
    assert isinstance(heard[1], ToolFinished)
    assert heard[1].result.text == "Oslo"
    assert {event.run_id for event in heard} == {outcome.metadata.run_id}


def test_an_envelope_stays_as_it_is_and_may_be_resumed_again():
    agent, outcome = waiting(asking(), "one", "two")
    assert agent.resume(outcome, {ids(outcome)[0]: "a"}).text() == "one"
    assert agent.resume(outcome, {ids(outcome)[0]: "b"}).text() == "two"
    assert len(outcome.messages) == 2


# -- results that do not fit


@pytest.mark.parametrize(
    ("results", "words"),
    [
        ({}, "no result for 'call_1_1', 'call_1_2'"),
        ({"call_1_1": "x"}, "no result for 'call_1_2'"),
        ({"call_1_1": "x", "call_1_2": "x", "other": "x"}, "no pending call 'other'"),
        ({"call_1_1": "x", "other": "x"}, "no result for 'call_1_2'; no pending call 'other'"),
        ([], "no result for"),
        ([ToolResult(ToolCall("call_1_1", "ask_user"))] * 2, "two results for call 'call_1_1'"),
    ],
)
def test_there_is_one_result_for_each_pending_call(results, words):
    agent, outcome = waiting([*asking(), *asking()], "done")
    with pytest.raises(ValueError, match=words):
        agent.resume(outcome, results)
    assert len(agent.engine.requests) == 1


@pytest.mark.parametrize(
    "results", ["Oslo", None, 3, ["Oslo"], [ToolResponse(success=True)], ToolResult(ToolCall("1", "x"))]
)
def test_results_of_another_kind_are_refused(results):
    agent, outcome = waiting(asking(), "done")
    with pytest.raises(TypeError, match=r"results"):
        agent.resume(outcome, results)


def test_an_outcome_that_does_not_wait_cannot_be_resumed():
    agent, outcome = waiting("done")
    with pytest.raises(ValueError, match="no pending calls"):
        agent.resume(outcome, {})


@pytest.mark.parametrize("messages", [(), (Message("user", "go"),), (Message("assistant", "", (ToolCall("2", "x"),)),)])
def test_an_envelope_without_the_conversation_cannot_be_resumed(messages):
    agent = Agent(ScriptedEngine([]))
    outcome = Envelope("", pending=(ToolCall("1", "ask_user"),), messages=messages)
    with pytest.raises(ValueError, match="messages do not end with its pending calls"):
        agent.resume(outcome, {"1": "x"})


# -- elsewhere


def test_an_envelope_may_be_resumed_by_another_agent_in_another_process():
    turn = [("add", {"a": 1, "b": 1}), *asking()]
    _, outcome = waiting(turn, on_event=lambda _: None)
    there = pickle.loads(pickle.dumps(outcome))  # noqa: S301  our own
    other = Agent(ScriptedEngine(["done"]), [ask])
    done = other.resume(there, {ids(there)[0]: "Oslo"})
    assert [m["content"] for m in shown(other)] == ["go", "", "2", "Oslo"]
    assert done.metadata.turns == 2


def test_an_envelope_made_of_plain_data_may_be_resumed():
    call = ToolCall("1", "ask_user", '{"question": "?"}')
    messages = (Message("system", "Be brief."), Message("user", "go"), Message("assistant", "", (call,)))
    agent = Agent(ScriptedEngine(["done"]), system="Be long.")
    done = agent.resume(Envelope("", pending=(call,), messages=messages), {"1": "Oslo"})
    assert [m["content"] for m in shown(agent)] == ["Be brief.", "go", "", "Oslo"]
    assert done.ok


# -- conversations


@pytest.mark.parametrize("surface", ["sync", "async"])
def test_a_conversation_goes_on_with_its_turn(surface):
    agent = Agent(ScriptedEngine([asking(), "Oslo it is.", "Bye."]), [ask])
    outcome = agent.chat("Where to?")
    results = {ids(outcome)[0]: "Oslo"}
    done = agent.resume(outcome, results) if surface == "sync" else asyncio.run(agent.aresume(outcome, results))
    assert agent.messages == done.messages
    agent.chat("Thanks.")
    assert [m["content"] for m in shown(agent)] == ["Where to?", "", "Oslo", "Oslo it is.", "Thanks."]


def test_a_conversation_that_waits_takes_no_other_turn():
    agent = Agent(ScriptedEngine([asking(), "Hello."]), [ask], name="guide")
    agent.chat("Where to?")
    for chat in (agent.chat, lambda prompt: asyncio.run(agent.achat(prompt))):
        with pytest.raises(RuntimeError, match="the last turn of 'guide' waits for the results of ask_user"):
            chat("Never mind.")
    agent.reset()
    assert agent.chat("Hi.").ok


def test_a_run_that_is_resumed_leaves_the_conversation_alone():
    agent = Agent(ScriptedEngine(["Hello.", asking(), "done"]), [ask])
    agent.chat("Hi.")
    outcome = agent.run("go")
    agent.resume(outcome, {ids(outcome)[0]: "x"})
    assert [m.content for m in agent.messages] == ["Hi.", "Hello."]


# -- agents as tools


def test_an_agent_that_would_wait_as_a_tool_has_failed_and_says_so():
    helper = Agent(
        ScriptedEngine([Reply("", (ToolCall("1", "ask_user", {"question": "?"}),), Usage(0, 0, 1.0))]), [ask]
    )
    _, outcome = waiting([("agent", {"task": "?"})], "I could not.", tools=[helper])
    assert (outcome.ok, outcome.pending) == (True, ())
    [(_, kind, text)] = answers(outcome)
    assert kind == "failed"
    assert "ask_user" in text
    assert outcome.metadata.cost_usd == 1.0


def test_an_agent_that_would_wait_has_no_answer_to_judge():
    helper = Agent(ScriptedEngine([asking()]), [ask])
    judged: list[str] = []
    outcome = asyncio.run(helper.as_tool(verify=judged.append).acall({"task": "?"}))
    assert (len(outcome.pending), outcome.metadata.verified, judged) == (1, None, [])
