from __future__ import annotations

import asyncio
from typing import Any

import pytest

from toolcrib.agent import Agent
from toolcrib.engines.scripted import ScriptedEngine
from toolcrib.sources.skill import BaseSkill
from toolcrib.tools import Tool, tool_from_function
from toolcrib.toolset import Toolset


class Weather(BaseSkill):
    instructions = "Ask before you guess a city."

    def __init__(self, provider: dict[str, str]) -> None:
        self.provider = provider

    async def _lookup_current(self, city: str) -> dict[str, Any]:
        """Return the weather of `city` as it is now.

        Args:
            city: A city's name.
        """
        return {"city": city, "weather": self.provider.get(city, "unknown")}

    def get_tools(self) -> list[Tool]:
        return [tool_from_function(self._lookup_current)]


def test_a_methods_tool_keeps_its_underscore_and_leaves_self_out():
    [tool] = Weather({}).get_tools()
    assert tool.name == "_lookup_current"
    assert tool.description == "Return the weather of `city` as it is now."
    assert list(tool.input_schema["properties"]) == ["city"]
    assert tool.input_schema["required"] == ["city"]


@pytest.mark.anyio
async def test_a_method_is_tested_by_calling_it():
    assert await Weather({"Oslo": "snow"})._lookup_current("Oslo") == {"city": "Oslo", "weather": "snow"}


def test_a_tool_runs_with_the_state_of_its_own_instance():
    first, second = Weather({"Oslo": "snow"}), Weather({"Oslo": "rain"})
    answers = [asyncio.run(skill.get_tools()[0].acall({"city": "Oslo"}))["weather"] for skill in (first, second)]
    assert answers == ["snow", "rain"]


def test_a_skill_and_its_tools_fill_a_toolset_alike():
    skill = Weather({})
    assert Toolset([skill]).names == Toolset([*skill.get_tools()]).names == ("_lookup_current",)


def test_instructions_are_the_class_attribute_and_empty_unless_set():
    assert Weather.instructions == "Ask before you guess a city."
    assert BaseSkill.instructions == ""


def test_a_skill_without_get_tools_says_what_is_missing():
    class Forgetful(BaseSkill):
        pass

    with pytest.raises(NotImplementedError, match=r"Forgetful must define get_tools\(self\)"):
        Forgetful().as_tools()


# -- instructions


class Notes(BaseSkill):
    instructions = "Look at the notes first."

    def read_notes(self) -> str:
        """Read the notes."""
        return "none"

    def get_tools(self) -> list[Tool]:
        return [tool_from_function(self.read_notes)]


class Manners(BaseSkill):
    instructions = "Be polite."

    def get_tools(self) -> list[Tool]:
        return []


def system_of(agent: Agent, prompt: str = "hello", **options: Any) -> str:
    first = agent.run(prompt, **options).messages[0]
    return first.content if first.role == "system" else ""


def agent_with(*tools: Any, system: str = "") -> Agent:
    return Agent(ScriptedEngine(["hello"] * 4), list(tools), system=system)


def test_a_skills_instructions_join_the_system_prompt_in_the_order_of_the_skills():
    agent = agent_with(Notes(), [Weather({}), Manners()], system="You are Ada.")
    assert system_of(agent) == (
        "You are Ada.\n\nLook at the notes first.\n\nAsk before you guess a city.\n\nBe polite."
    )


def test_a_skill_given_twice_speaks_once():
    notes = Notes()
    assert system_of(agent_with(notes, [notes], Toolset([notes]))) == "Look at the notes first."


def test_instructions_go_with_the_tools_of_one_run():
    agent = agent_with(Notes(), system="You are Ada.")
    assert system_of(agent, tools=[Weather({})]) == "You are Ada.\n\nAsk before you guess a city."
    assert system_of(agent, tools=[]) == "You are Ada."
    assert system_of(agent) == "You are Ada.\n\nLook at the notes first."


def test_a_turn_of_a_conversation_has_the_instructions_of_its_own_tools():
    agent = agent_with(Notes())
    assert agent.chat("one").messages[0].content == "Look at the notes first."
    assert agent.chat("two", tools=[]).messages[0].role == "user"
    third = agent.chat("three").messages
    assert [message.role for message in third] == ["system", *["user", "assistant"] * 3]


@pytest.mark.parametrize(
    "view",
    [
        lambda tools: tools.prefixed("x."),
        lambda tools: tools.renamed({"read_notes": "notes.read"}),
        lambda tools: Toolset([Toolset([tools])]),
    ],
)
def test_instructions_stay_with_the_tools_under_other_names(view):
    assert view(Toolset([Notes()])).instructions == ("Look at the notes first.",)


def test_instructions_leave_with_the_last_of_their_tools():
    tools = Toolset([Notes(), Weather({}), Manners()])
    assert tools.select(deny="read_notes").instructions == ("Ask before you guess a city.", "Be polite.")


def test_only_text_is_taken_as_instructions():
    class Odd(Notes):
        instructions: Any = 5

    class Blank(Weather):
        instructions = "  "

    assert Toolset([Odd(), Blank({})]).instructions == ()


def test_an_agent_among_the_tools_keeps_its_system_message_to_itself():
    inner = Agent(ScriptedEngine([]), [Notes()], name="inner", system="Be inner.")
    assert Toolset([inner]).instructions == ()
