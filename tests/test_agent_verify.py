from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from toolcrib._verdicts import approves
from toolcrib.agent import Agent
from toolcrib.engines.scripted import ScriptedEngine
from toolcrib.errors import EngineError
from toolcrib.limits import Limits
from toolcrib.tools import Tool
from toolcrib.types import Envelope, Reply, ToolContext, ToolResponse, Usage

TASK = {"task": "Write a line."}


def writer(*answers: Any, **options: Any) -> Agent:
    return Agent(ScriptedEngine(answers), name="writer", **options)


def taken(agent: Agent, judge: Any, **options: Any) -> Envelope:
    return asyncio.run(agent.as_tool(verify=judge, **options).acall(TASK))


def read_by_caller(tool: Tool) -> tuple[str, Envelope]:
    """What the calling model reads of the tool, and the outcome of its run."""
    engine = ScriptedEngine([[(tool.name, TASK)], "done"])
    outcome = Agent(engine, [tool]).run("go")
    return engine.requests[1]["messages"][-1]["content"], outcome


def prompts(agent: Agent) -> list[str]:
    return [request["messages"][-1]["content"] for request in agent.engine.requests]


# -- approval


def test_an_approved_answer_is_returned_as_verified():
    heard: list[str] = []

    def judge(answer: str) -> bool:
        heard.append(answer)
        return True

    outcome = taken(writer("Snow falls."), judge)
    assert heard == ["Snow falls."]
    assert (outcome.ok, outcome.text()) == (True, "Snow falls.")
    assert (outcome.metadata.verified, outcome.metadata.verdicts) == (True, ("approved",))


def test_without_a_judge_an_answer_is_neither_verified_nor_unverified():
    outcome = asyncio.run(writer("Snow falls.").as_tool().acall(TASK))
    assert (outcome.metadata.verified, outcome.metadata.verdicts) == (None, ())


def test_the_calling_model_reads_an_approved_answer_as_it_is():
    text, outcome = read_by_caller(writer("Snow falls.").as_tool(verify=lambda _: "yes"))
    assert text == "Snow falls."
    assert outcome.metadata.nested[0].verified is True


@pytest.mark.parametrize(
    "words",
    [
        "approve", "Approved.", "APPROVES", "accept", "Accepted: well done", "acceptable", "ok", "OK!", "Okay, fine",
        "ok - good", "yes", "Yes, but shorter next time", "pass", "Passes", "PASSED\nAll checks.",
        "**Approved**", "> yes", "# OK", '"yes"', "\u201cyes\u201d", "- pass", "* ok", "1. Accepted", "`ok`", "__Yes__",
        "_ok_", "***approved***", "\n\n  ok", "```\napproved\n```", "```text\napproved\n```", "> **Yes** - good",
        "[APPROVED]", "(ok)", "\u2705 Approved", "yes\u2014good",
    ],
)  # fmt: skip
def test_words_of_approval_approve(words):
    assert approves(words)


@pytest.mark.parametrize(
    "words",
    [
        "", " ", "okra", "yesterday", "not ok", "No.", "rejected", "password", "passport", "passive",
        "acceptance is low",
        "approximately", "oklahoma", "approval denied", "disapproved", "unacceptable", "It passes", "**Not approved**",
        "~~approved~~", "[ ] approved", "pass/fail: fail", "yes/no", "ok-ish", "**", "```", "okay1", "ok2", "y", "n",
        "Verdict: approved", "yes\u00e9",
    ],
)  # fmt: skip
def test_every_other_words_reject(words):
    assert not approves(words)


@pytest.mark.parametrize("piece", ["```\n", "```a\n", "*", "1. ", "> ", "`", "1", "``a"])
def test_a_hostile_verdict_is_read_in_no_time(piece):
    started = time.process_time()
    assert not approves(piece * 100_000 + "x")
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (False, "rejected"),
        (None, "rejected"),
        ("", "rejected"),
        (1, "1"),
        ("True", "True"),
        ({"approved": True}, '{"approved":true}'),
        (ToolResponse(success=True), '{"success":true}'),
        (Envelope("no rhyme"), "no rhyme"),
    ],
)
def test_everything_that_is_no_approval_rejects(said, words):
    outcome = taken(writer("a"), lambda _: said, max_verify=1)
    assert (outcome.metadata.verified, outcome.metadata.verdicts) == (False, (words,))


class Said:
    """What another library's model says."""

    def text(self) -> str:
        return "Accepted."


class SaidLater:
    async def text(self) -> str:
        return "Accepted."


@pytest.mark.parametrize("said", [True, "ok", Envelope("Yes."), Said(), SaidLater()])
def test_a_judge_may_approve_in_its_own_way(said):
    assert taken(writer("a"), lambda _: said).metadata.verified is True


# -- rejection


def test_a_rejected_answer_goes_back_with_the_words_of_the_judge():
    agent = writer("one", "two", "three", system="Write verse.")
    verdicts = iter(["No rhyme.", "Too short.", "approved"])
    outcome = taken(agent, lambda _: next(verdicts))
    assert outcome.text() == "three"
    assert outcome.metadata.verified is True
    assert outcome.metadata.verdicts == ("No rhyme.", "Too short.", "approved")
    first, second, third = prompts(agent)
    assert first == TASK["task"]
    assert "No rhyme." in second
    assert "Too short." in third
    assert [message.role for message in outcome.messages] == ["system", *["user", "assistant"] * 3]


@pytest.mark.parametrize("most", [1, 2, 5])
def test_max_verify_counts_the_answers_the_first_included(most):
    heard: list[str] = []
    agent = writer(*[f"answer {number}" for number in range(1, 9)])
    outcome = taken(agent, heard.append, max_verify=most)
    assert heard == [f"answer {number}" for number in range(1, most + 1)]
    assert outcome.text() == heard[-1]
    assert (outcome.ok, outcome.metadata.verified) == (True, False)
    assert outcome.metadata.verdicts == ("rejected",) * most


def test_three_answers_are_judged_when_nothing_else_is_said():
    assert len(taken(writer("1", "2", "3", "4"), lambda _: False).metadata.verdicts) == 3


def test_the_calling_model_reads_that_an_answer_is_unverified_and_why():
    tool = writer("one", "two").as_tool(verify=lambda _: "No rhyme.", max_verify=2)
    text, outcome = read_by_caller(tool)
    assert text.startswith("two\n")
    assert "Unverified" in text
    assert "No rhyme." in text
    [nested] = outcome.metadata.nested
    assert (nested.verified, nested.verdicts) == (False, ("No rhyme.", "No rhyme."))


def test_a_long_verdict_does_not_crowd_out_the_answer():
    tool = writer("two").as_tool(verify=lambda _: "no " * 100_000, max_verify=1)
    text, _ = read_by_caller(tool)
    assert text.startswith("two\n")
    assert len(text) < 1000


@pytest.mark.parametrize("most", [0, -1, 1.5, "3", None, True])
def test_there_is_at_least_one_answer(most):
    with pytest.raises(ValueError, match="max_verify"):
        writer().as_tool(verify=lambda _: True, max_verify=most)


@pytest.mark.parametrize("judge", [3, "yes", ["ok"], False])
def test_what_cannot_judge_is_refused(judge):
    with pytest.raises(TypeError, match="verify must be"):
        writer().as_tool(verify=judge)


# -- judges


def test_a_judge_may_be_async_and_runs_on_the_loop_of_the_call():
    async def run() -> Envelope:
        here = asyncio.get_running_loop()

        async def judge(answer: str) -> bool:
            return asyncio.get_running_loop() is here and answer == "a"

        return await writer("a").as_tool(verify=judge).acall(TASK)

    assert asyncio.run(run()).metadata.verified is True


def test_a_sync_judge_does_not_block_the_loop():
    async def run() -> Envelope:
        free = threading.Event()
        asyncio.get_running_loop().call_later(0, free.set)
        return await writer("a").as_tool(verify=lambda _: free.wait(10)).acall(TASK)

    assert asyncio.run(run()).metadata.verified is True


def test_a_judge_may_be_a_function_that_gives_an_awaitable():
    async def later(answer: str) -> str:
        return f"ok: {answer}"

    def judge(answer: str) -> Any:
        return later(answer)

    assert taken(writer("a"), judge).metadata.verified is True


def test_an_agent_judges_the_text_of_the_answer():
    judge = Agent(ScriptedEngine(["Too plain.", "**Approved**"]), name="critic", system="Be strict.")
    outcome = taken(writer("one", "two"), judge)
    assert prompts(judge) == ["one", "two"]
    assert outcome.text() == "two"
    assert outcome.metadata.verdicts == ("Too plain.", "**Approved**")


def test_the_tools_of_a_judge_find_the_deps_of_the_run():
    def rule(context: ToolContext[str]) -> str:
        return context.deps

    judge = Agent(ScriptedEngine([[("rule", {})], "ok"]), [rule], name="critic")
    engine = ScriptedEngine([[("writer", TASK)], "done"])
    Agent(engine, [writer("a").as_tool(verify=judge)]).run("go", deps="rhyme")
    assert judge.engine.requests[1]["messages"][-1]["content"] == "rhyme"


def test_a_judge_that_raises_rejects_in_its_words():
    def judge(answer: str) -> bool:
        if "snow" not in answer:
            raise ValueError("it must mention snow")
        return True

    agent = writer("rain", "snow")
    outcome = taken(agent, judge)
    assert outcome.metadata.verdicts == ("ValueError: it must mention snow", "approved")
    assert "it must mention snow" in prompts(agent)[1]


def test_an_agent_that_cannot_judge_rejects():
    judge = Agent(ScriptedEngine([EngineError("no route")]), name="critic")
    outcome = taken(writer("a"), judge, max_verify=1)
    assert outcome.ok
    assert outcome.metadata.verdicts == ("EngineError: no route",)


def test_a_judge_that_never_answers_is_ended_by_the_deadline_of_the_call():
    async def judge(_: str) -> bool:
        return await asyncio.Event().wait()

    tool = writer(Reply("a", usage=Usage(1, 2, 0.5))).as_tool(verify=judge).replace(timeout=0.05)
    engine = ScriptedEngine([[("writer", TASK)], "done"])
    outcome = Agent(engine, [tool]).run("go")
    assert outcome.ok
    assert "timed out" in outcome.messages[-2].content
    assert outcome.metadata.usage == Usage(1, 2, 0.5)


def test_a_run_that_fails_has_no_answer_to_judge():
    judged: list[str] = []
    outcome = taken(writer(EngineError("no route")), judged.append)
    assert (outcome.ok, outcome.metadata.verified, judged) == (False, None, [])


def test_a_run_that_fails_after_a_rejection_keeps_what_was_said_and_spent():
    agent = writer(Reply("one", usage=Usage(1, 1, 0.5)), EngineError("no route"))
    outcome = taken(agent, lambda _: "no")
    assert outcome.error
    assert outcome.error.message == "no route"
    assert (outcome.metadata.verified, outcome.metadata.verdicts) == (False, ("no",))
    assert outcome.metadata.cost_usd == 0.5


# -- what it takes


def test_every_answer_and_every_judging_counts_once_in_the_callers_run():
    answers = [Reply(text, usage=Usage(10, 1, 1.0)) for text in ("one", "two")]
    verdicts = [Reply(text, usage=Usage(100, 10, 0.25)) for text in ("no", "ok")]
    judge = Agent(ScriptedEngine(verdicts), name="critic")
    tool = writer(*answers).as_tool(verify=judge)
    engine = ScriptedEngine([[("writer", TASK)], Reply("done", usage=Usage(1000, 100, 0.5))])
    outcome = Agent(engine, [tool]).run("go")
    assert outcome.metadata.usage == Usage(1220, 122, 3.0)
    [nested] = outcome.metadata.nested
    assert nested.usage == Usage(220, 22, 2.5)
    assert sorted(run.agent for run in nested.nested) == ["critic", "critic", "writer"]
    assert nested.latency_ms >= sum(run.latency_ms for run in nested.nested)
    assert outcome.metadata.latency_ms >= nested.latency_ms


def test_a_verified_agent_called_twice_counts_twice():
    answers = [Reply(text, usage=Usage(0, 0, 1.0)) for text in ("one", "two")]
    tool = writer(*answers).as_tool(verify=lambda _: True)
    engine = ScriptedEngine([[("writer", TASK), ("writer", TASK)], "done"])
    outcome = Agent(engine, [tool]).run("go")
    assert outcome.metadata.cost_usd == 2.0
    assert len(outcome.metadata.nested) == 2


def test_an_agent_that_a_judging_function_asks_counts_too():
    critic = Agent(ScriptedEngine([Reply("ok", usage=Usage(0, 0, 0.25))]), name="critic")

    async def judge(answer: str) -> str:
        return (await critic.arun(answer)).text()

    tool = writer(Reply("one", usage=Usage(0, 0, 1.0))).as_tool(verify=judge)
    _, outcome = read_by_caller(tool)
    assert outcome.metadata.cost_usd == 1.25


def test_verified_agents_within_verified_agents_count_once():
    inner = writer(*[Reply(text, usage=Usage(0, 0, 1.0)) for text in ("1", "2")])
    verdicts = iter([False, True, False, True])
    tool = inner.as_tool(verify=lambda _: next(verdicts))
    script = [[("writer", TASK)], Reply("a", usage=Usage(0, 0, 0.5)), Reply("b", usage=Usage(0, 0, 0.5))]
    middle = Agent(ScriptedEngine(script), [tool], name="middle")
    _, outcome = read_by_caller(middle.as_tool(verify=lambda _: next(verdicts)))
    assert outcome.metadata.cost_usd == 3.0


def test_attempts_are_no_deeper_than_the_tool_itself():
    agent = writer("one", "two", "three", limits=Limits(max_depth=2))
    text, _ = read_by_caller(agent.as_tool(verify=lambda answer: answer == "three"))
    assert text == "three"


def test_a_judged_agent_can_be_renamed_and_described():
    tool = writer().as_tool("poet", "Writes.", verify=lambda _: True)
    assert (tool.name, tool.description, tool.returns_envelope) == ("poet", "Writes.", True)
    assert tool.input_schema == writer().as_tool().input_schema
