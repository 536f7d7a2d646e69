from __future__ import annotations

import asyncio
from typing import Any

import pytest

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
