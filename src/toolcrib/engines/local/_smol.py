"""How a model of 135 million parameters is led to a call: it can neither choose nor copy freely.

The tool is the one whose description makes the request's words likeliest, and with a single tool there
is no choice: it is called. Texts can only be words of the request, numbers only its numbers. Results are
stated, since it retells them wrongly.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolcrib.engines.local._chooser import Chooser, Wanted
from toolcrib.engines.local._conversation import cut, turn
from toolcrib.engines.local._examples import resolved
from toolcrib.engines.local._grammar import literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcrib.engines.local._conversation import Conversation
    from toolcrib.engines.local._llama import Completion, Llama
    from toolcrib.tools import Tool
    from toolcrib.toolset import Toolset

__all__ = ["Smol", "stated"]

_LONGEST_REQUEST = 400  # characters; the rest of a longer one is not looked at
_LONGEST_SPAN = 6  # words
_TOKENS = 256
_EDGES = " \t\n.,;:!?'\""
_KINDS = {"string": "text", "integer": "number", "number": "number", "boolean": "truth"}


@dataclass(frozen=True, slots=True)
class Smol:
    """Asks the smallest model for a call.

    Args:
        llama: The model.
        spent: Told of every completion.
    """

    llama: Llama
    spent: Callable[[Completion], None]

    def next_call(self, conversation: Conversation, tools: Toolset) -> Wanted | None:
        """Return a call, or None: one call answers a request, since the model would only repeat it."""
        if conversation.now.calls:
            return None
        request = cut(conversation.now.request, _LONGEST_REQUEST)
        name = tools.names[0] if len(tools) == 1 else self._likeliest(request, tools)
        return None if name is None else Wanted(name, self._arguments(request, tools[name]))

    def _likeliest(self, request: str, tools: Toolset) -> str | None:
        said = "\nWhat the user says: "
        surprise: dict[str | None, float] = {
            tool.name: self._surprise(f"Someone wants this done: {tool.description}{said}", request) for tool in tools
        }
        surprise[None] = self._surprise(f"Someone makes small talk, or asks about the world.{said}", request)
        return min(surprise, key=lambda name: surprise[name])

    def _surprise(self, prompt: str, words: str) -> float:
        grammar = f"root ::= {literal(words)}"
        completion = self.llama.complete(prompt, 2 * _LONGEST_REQUEST, grammar=grammar, weigh=True)
        self.spent(completion)
        return completion.surprise

    def _arguments(self, request: str, tool: Tool) -> dict[str, Any] | str:
        wanted = _plain_parameters(tool)
        prompt = _prompt(request, tool)
        if wanted is None:  # objects and lists: the grammar of the schema is all that helps
            return Chooser(self.llama, self.spent).arguments(prompt, tool.input_schema)
        if not wanted:
            return {}
        completion = self.llama.complete(prompt, _TOKENS, grammar=_span_grammar(wanted, request))
        self.spent(completion)
        try:
            return json.loads(completion.text.removesuffix("}"))
        except ValueError:
            return completion.text


def _plain_parameters(tool: Tool) -> dict[str, dict[str, Any]] | None:
    schema = tool.input_schema
    wanted = {name: resolved(schema["properties"][name], schema) for name in schema.get("required", ())}
    return wanted if all("enum" in member or member.get("type") in _KINDS for member in wanted.values()) else None


def _prompt(request: str, tool: Tool) -> str:
    schema = tool.input_schema
    wanted = {name: resolved(schema["properties"][name], schema) for name in schema.get("required", ())}
    kinds = ", ".join(
        f"{name}: {'|'.join(map(str, member['enum'])) if 'enum' in member else member.get('type', 'any')}"
        for name, member in wanted.items()
    )
    about = (
        f"Here is what you can call:\n- {tool.name}({kinds}): {cut(tool.description, _LONGEST_REQUEST)}\n"
        'Write one JSON object and nothing else: {"tool": name, "arguments": {...}}.'
    )
    head = f'<|im_start|>assistant\n{{"tool": {json.dumps(tool.name, ensure_ascii=False)}, "arguments": '
    return turn("system", about) + turn("user", request) + head


def _span_grammar(wanted: Mapping[str, dict[str, Any]], request: str) -> str:
    members = [
        f"{literal((', ' if number else '') + literal(name) + ': ')} {_rule(member)}"
        for number, (name, member) in enumerate(wanted.items())
    ]
    texts = " | ".join(literal(json.dumps(span, ensure_ascii=False)) for span in _spans(request)) or '"\\"\\""'
    numbers = dict.fromkeys(re.findall(r"(?<![\w:.-])\d+(?:\.\d+)?(?![\w:-])", request))
    return "\n".join(
        (
            f'root ::= "{{" {" ".join(members)} "}}" "}}"',
            f"text ::= {texts}",
            f"number ::= {' | '.join(map(literal, numbers)) or '[0-9] [0-9]? [0-9]?'}",
            'truth ::= "true" | "false"',
        )
    )


def _rule(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "(" + " | ".join(literal(json.dumps(value, ensure_ascii=False)) for value in schema["enum"]) + ")"
    return _KINDS[schema["type"]]


def _spans(request: str) -> dict[str, None]:
    words = [stripped for word in request.split() if (stripped := word.strip(_EDGES))]
    lengths = range(1, _LONGEST_SPAN + 1)
    return dict.fromkeys(
        " ".join(words[start : start + length]) for length in lengths for start in range(len(words) - length + 1)
    )


def stated(conversation: Conversation) -> str:
    """Return the results of the calls as they are, one per line."""
    return "\n".join(f"{done.name}: {done.text}" for done in conversation.now.calls)
