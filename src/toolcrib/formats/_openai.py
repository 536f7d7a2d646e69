"""What the two OpenAI formats share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.errors import ToolSignatureError, warn
from toolcrib.formats._definitions import Shown
from toolcrib.formats._undo import Undo
from toolcrib.schema.dialects import openai, openai_strict

if TYPE_CHECKING:
    from toolcrib.tools import Tool

__all__ = ["dialect"]


def dialect(tool: Tool) -> Shown:
    """Return the tool's schema, strict where it asks for it and can be; warns when it cannot.

    Raises:
        ToolSignatureError: It cannot be expressed at all.
    """
    if tool.strict:
        try:
            parameters, _ = openai_strict(tool.input_schema)
            return Shown(parameters, strict=True, undo=Undo(tool.input_schema, {}, nulls=True))
        except ToolSignatureError as error:
            reason = error
        parameters, _ = openai(tool.input_schema)
        warn(f"OpenAI is shown the tool {tool.name!r} without strict mode: {reason}")
        return Shown(parameters)
    return Shown(openai(tool.input_schema)[0])
