"""A skill: an object whose methods are tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from toolcrib.tools import Tool

__all__ = ["BaseSkill"]


class BaseSkill:
    """A handful of tools that share state, such as a client or an API key.

    A subclass sets `instructions`, which join the system prompt of an agent that has the skill, and returns its methods
    from `get_tools`, each wrapped with `tool_from_function`. The methods stay ordinary methods, tested by calling them.
    """

    instructions: ClassVar[str] = ""

    def get_tools(self) -> list[Tool]:
        """Return the skill's tools.

        Raises:
            NotImplementedError: The subclass does not say which they are.
        """
        raise NotImplementedError(f"{type(self).__name__} must define get_tools(self) -> list[Tool]")

    def as_tools(self) -> list[Tool]:
        """Return the same tools, so that the skill itself can stand in `tools=[...]`."""
        return self.get_tools()
