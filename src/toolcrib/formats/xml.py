"""Tools in a prompt, for models without tool calling of their own: XML to show them, tagged JSON to call them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from toolcrib.errors import NotSerializableError, warn
from toolcrib.formats._prose import calls_in
from toolcrib.limits import DEFAULT_LIMITS
from toolcrib.results import clean
from toolcrib.types import ToolCall, ToolResponse, ToolResult

if TYPE_CHECKING:
    from toolcrib.toolset import Toolset

__all__ = ["calls", "results", "tools"]

# The tools come first: small models do what they read last, and otherwise go on with the answer's element.
_HOW = """\
To call a tool, write its name and its arguments as JSON in a tool_call element, such as
<tool_call>{"name": "NAME", "arguments": {"PARAMETER": "VALUE"}}</tool_call>
To call several, write one such element after the other. Then stop, and wait: you will be told their answers, in \
tool_response elements, in the order of the calls. What can be done with a tool, do with a call."""
_UNCUT = DEFAULT_LIMITS.replace(max_result_chars=1 << 60)
_MOST_PER_CHAR = 8  # what escaping and JSON can make of one character


def tools(toolset: Toolset) -> str:
    """Return the block for a system prompt that shows the tools and says how to call them; empty without tools."""
    return toolset.cached(("xml",), lambda: _prompt(toolset))


def calls(reply: Any, toolset: Toolset) -> list[ToolCall]:
    """Return the calls written into a text, with ids `call_1`, `call_2`, ... in their order.

    A call is a `<tool_call>` element, or a JSON object or list of them that stands on lines of its own or in a JSON
    code block and names one of the tools. Thoughts (`<think>`) and other code blocks are skipped. What is malformed
    in a `<tool_call>` is passed on as the raw arguments of the tool it names.

    Args:
        reply: The text a model wrote.
        toolset: The tools it was shown.

    Raises:
        TypeError: It is not text.
    """
    if not isinstance(reply, str):
        raise TypeError(f"calls() takes the text a model wrote, not {type(reply).__name__}")
    found = calls_in(reply, lambda name: name in toolset)
    return [ToolCall(f"call_{n}", call.name, call.arguments) for n, call in enumerate(found, 1)]


def results(results: Sequence[ToolResult]) -> list[str]:
    """Return one `<tool_response>` element per answer, in order."""
    return [_answer(result) for result in results]


def _prompt(toolset: Toolset) -> str:
    shown = "\n".join(_shown(toolset))
    return f"You can call these tools:\n\n<tools>\n{shown}\n</tools>\n\n{_HOW}" if shown else ""


def _shown(toolset: Toolset) -> Iterator[str]:
    for tool in toolset:
        try:
            yield tool.build_prompt()
        except (TypeError, ValueError, RecursionError) as error:
            warn(f"the prompt does not show the tool {tool.name!r}: {error}")


def _answer(result: ToolResult) -> str:
    try:
        prompt = "" if _says_less(result) else result.response.build_prompt()
    except NotSerializableError:
        prompt = ""
    # the text is bounded, the author's own response is not
    if not prompt or len(prompt) > _MOST_PER_CHAR * len(result.text) + 1_000:
        prompt = _of_text(result).build_prompt()
    return clean(prompt, _UNCUT)


def _says_less(result: ToolResult) -> bool:
    """Return whether an answer's text is all there is to it, as when its value was not kept."""
    response = result.response
    return response.message is None and response.data is None and result.text not in ("", "null")


def _of_text(result: ToolResult) -> ToolResponse:
    if result.ok:
        return ToolResponse(success=True, data=result.text)
    return ToolResponse(success=False, message=result.text or result.kind)
