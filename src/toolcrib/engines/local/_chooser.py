"""How a model of half a billion parameters and up is led to a call, or to an answer in words.

It chooses among the tools and `answer` under a grammar, after demonstrations made from the tools' own
schemas; without those it never chooses to answer. The arguments follow under the chosen tool's schema.
The words come from a prompt without any tools: with them in sight small models go on calling.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from toolcrib.engines.local._asked import first_clause, is_grounded, only_asked, rest_of
from toolcrib.engines.local._conversation import Conversation, Done, Exchange, cut, turn
from toolcrib.engines.local._examples import example_arguments, resolved
from toolcrib.engines.local._grammar import answer_grammar, arguments_grammar, choice_grammar
from toolcrib.engines.local._llama import PromptTooLongError, StoppedError
from toolcrib.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcrib.engines.local._llama import Completion, Llama
    from toolcrib.tools import Tool
    from toolcrib.toolset import Toolset

__all__ = ["Chooser", "Wanted", "word_answer"]

_ANSWERS = ("answer", "reply", "speak", "answer_in_words", "no_tool_at_all")
_CHAT = ("Hello!", "What do you think about love?", "Who built the pyramids?", "Tell me a fairy tale.")
# Small models rather talk than act. Measured on a new request, this much turns one wrong answer in twenty
# into a call, and is less than half of what it would take to turn small talk into one.
_RELUCTANCE = 1.0
_ARGUMENT_TOKENS = 400
_ANSWER_TOKENS = 400
_JSON_TOKENS = 700
# Characters of a system prompt that may take part in choosing. A longer one says how to answer by itself: tools in it
# are for calls, which a model that is told to be brief does not write.
_SHORT_SYSTEM = 400
_HEAD = '<|im_start|>assistant\n{"tool": '
_NO_BIAS: MappingProxyType[str, float] = MappingProxyType({})
_ANY_OBJECT: dict[str, Any] = {"type": "object", "additionalProperties": True}


class Wanted(NamedTuple):
    """A call the model wants made; raw text where it wrote no JSON object."""

    name: str
    arguments: dict[str, Any] | str


class _Room(NamedTuple):
    """How much of everything is put into a prompt."""

    past: int | None  # exchanges that are over; None for all
    result: int  # characters of a result
    demonstrate: bool = True  # whether each tool is shown in use
    system: int = 12_000  # characters of the system prompt


# Tried in this order until the prompt fits the model's context.
_ROOMS = (
    _Room(None, 2000),
    _Room(4, 1000),
    _Room(1, 500),
    _Room(0, 300),
    _Room(0, 300, demonstrate=False, system=4000),
)


def _in_some_room(ask: Callable[[_Room], Any]) -> Any:
    for room in _ROOMS[:-1]:
        try:
            return ask(room)
        except PromptTooLongError:
            continue
    return ask(_ROOMS[-1])


def _kept(conversation: Conversation, room: _Room) -> tuple[Exchange, ...]:
    past = conversation.past
    return past if room.past is None else past[max(0, len(past) - room.past) :]


# -- choosing


@dataclass(frozen=True, slots=True)
class Chooser:
    """Asks one model for its next call.

    Args:
        llama: The model.
        spent: Told of every completion.
        may_go_on: Whether the model can be asked for a further call when nothing in the request's words
            is left for one; the smallest make up calls then.
    """

    llama: Llama
    spent: Callable[[Completion], None]
    may_go_on: bool = True

    def next_call(self, conversation: Conversation, tools: Toolset) -> Wanted | None:
        """Return the call the model makes next, or None when it would rather answer.

        Raises:
            PromptTooLongError: The tools and the request do not fit the context.
        """
        if not self.may_go_on and _is_used_up(conversation.now):
            return None
        now = conversation.now
        first = first_clause(now.request)
        if first != now.request and not now.calls:
            only_first = replace(conversation, now=Exchange(first))
            if call := _in_some_room(lambda room: self._next_call(only_first, tools, room)):
                return call
        return _in_some_room(lambda room: self._next_call(conversation, tools, room))

    def _next_call(self, conversation: Conversation, tools: Toolset, room: _Room) -> Wanted | None:
        prompt = _choosing_prompt(conversation, tools, room) + _HEAD
        name = self._name(prompt, tools, -_RELUCTANCE if _has_more_to_do(conversation.now) else 0.0)
        if name not in tools:
            return None
        schema = tools[name].input_schema
        wanted = self.arguments(f'{prompt}{json.dumps(name, ensure_ascii=False)}, "arguments": ', schema)
        if isinstance(wanted, dict):
            wanted = only_asked(wanted, schema, conversation.now.request)
        call = Wanted(name, wanted)
        return call if _is_new(call, conversation.now) else None

    def _name(self, prompt: str, tools: Toolset, answer_bias: float) -> str:
        answer = _answer_name(tools)
        names = [*tools.names, answer]
        longest = max(len(json.dumps(name).encode()) for name in names)
        written = self._complete(prompt + '"', longest, choice_grammar(names), {answer: answer_bias})
        return str(json.loads(f'"{written}'))

    def arguments(self, prompt: str, schema: Mapping[str, Any]) -> dict[str, Any] | str:
        """Return the arguments the model writes under a schema; raw text where it wrote no object."""
        written = ""
        for shape in (schema, _ANY_OBJECT):
            try:
                written = self._complete(prompt, _ARGUMENT_TOKENS, arguments_grammar(shape))
                arguments = json.loads(written.strip().removesuffix("}"))
            except (PromptTooLongError, StoppedError):
                raise
            except (ValueError, RecursionError, EngineError):
                continue  # the grammar could not be built, or was lost: any object will do for validation
            if isinstance(arguments, dict):
                return cast("dict[str, Any]", arguments)
        return written

    def _complete(self, prompt: str, limit: int, grammar: str, bias: Mapping[str, float] = _NO_BIAS) -> str:
        completion = self.llama.complete(prompt, limit, grammar=grammar, bias=bias)
        self.spent(completion)
        return completion.text


def _has_more_to_do(now: Exchange) -> bool:
    return not now.calls or rest_of(now.request, now.calls).joined


def _is_used_up(now: Exchange) -> bool:
    return bool(now.calls) and now.calls[-1].ok and not rest_of(now.request, now.calls).text


def _is_new(call: Wanted, now: Exchange) -> bool:
    if any(done.name == call.name and done.arguments == call.arguments for done in now.calls):
        return False
    rest = rest_of(now.request, now.calls)
    if not rest.text or isinstance(call.arguments, str):
        return True
    return is_grounded(call.arguments, rest, [done.text for done in now.calls])


def _answer_name(tools: Toolset) -> str:
    return next(name for name in (*_ANSWERS, *(f"answer{number}" for number in range(len(tools)))) if name not in tools)


# -- the prompt with the tools


def _choosing_prompt(conversation: Conversation, tools: Toolset, room: _Room) -> str:
    prefix = tools.cached(("local", room.demonstrate), lambda: _prefix(tools, demonstrate=room.demonstrate))
    system = turn("system", conversation.system) if 0 < len(conversation.system) <= _SHORT_SYSTEM else ""
    past = _kept(conversation, room)
    known = f"(Last result: {cut(past[-1].calls[-1].text, room.result // 4)}) " if past and past[-1].calls else ""
    return prefix + system + _past(past, room, _answer_name(tools)) + _now(conversation.now, room, known)


def _prefix(tools: Toolset, *, demonstrate: bool) -> str:
    answer = _answer_name(tools)
    listed = "\n".join(f"- {_signature(tool)}: {_first_words(tool, 200 if demonstrate else 80)}" for tool in tools)
    about = (
        f"You can use these tools:\n{listed}\n- {answer}(): Say something to the user."
        " For greetings, jokes, opinions and general knowledge, or when everything is done.\n"
        'Reply with exactly one JSON object: {"tool": name, "arguments": {...}}.'
    )
    shown = [turn("system", about), turn("user", _CHAT[0]), turn("assistant", _call_text(answer))]
    for number, tool in enumerate(tools if demonstrate else ()):
        shown += _demonstration(tool, number)
        shown += [turn("user", _CHAT[1 + number % 3]), turn("assistant", _call_text(answer))]
    return "".join(shown)


def _demonstration(tool: Tool, number: int) -> list[str]:
    arguments = example_arguments(tool.input_schema, number)
    values = ", ".join(f"{name.replace('_', ' ')} {_plain(value)}" for name, value in arguments.items())
    asked = _first_words(tool, 120).rstrip(".") + (f": {values}." if values else ".")
    return [turn("user", asked), turn("assistant", _call_text(tool.name, arguments))]


def _call_text(name: str, arguments: Any = None) -> str:
    call = {"tool": name} if arguments is None else {"tool": name, "arguments": arguments}
    return json.dumps(call, ensure_ascii=False)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _first_words(tool: Tool, longest: int) -> str:
    first = " ".join(tool.description.strip().partition("\n\n")[0].split())
    return cut(first, longest) if first else tool.name.replace("_", " ")


def _signature(tool: Tool) -> str:
    return f"{tool.name}{_members(tool.input_schema, tool.input_schema, '()', 0)}"


def _members(schema: Mapping[str, Any], root: Mapping[str, Any], brackets: str, depth: int) -> str:
    required = schema.get("required", ())
    properties: Mapping[str, Any] = schema.get("properties") or {}
    members = (
        f"{name}{'' if name in required else '?'}: {_kind(member, root, depth + 1)}"
        for name, member in properties.items()
    )
    return f"{brackets[0]}{', '.join(members)}{brackets[1]}"


def _kind(schema: Any, root: Mapping[str, Any], depth: int) -> str:
    schema = resolved(schema, root)
    if "enum" in schema:
        return "|".join(map(_plain, schema["enum"]))
    if branches := schema.get("anyOf") or schema.get("oneOf"):
        return "|".join(dict.fromkeys(_kind(branch, root, depth) for branch in branches))
    kind: Any = schema.get("type", "object" if "properties" in schema else "any")
    if kind == "array" and depth < 3:  # noqa: PLR2004  # deeper ones would fill the prompt
        return f"[{_kind(schema.get('items'), root, depth + 1)}]"
    if kind == "object" and schema.get("properties") and depth < 3:  # noqa: PLR2004  # as above
        return _members(schema, root, "{}", depth)
    return schema.get("format") or ("|".join(cast("list[str]", kind)) if isinstance(kind, list) else str(kind))


def _past(exchanges: tuple[Exchange, ...], room: _Room, answer: str) -> str:
    """Show earlier requests as the demonstrations do: each with its calls, or answered, and nothing between."""
    shown: list[str] = []
    for exchange in exchanges:
        shown.append(turn("user", cut(exchange.request, room.result)))
        calls = [_call_text(done.name, done.arguments) for done in exchange.calls] or [_call_text(answer)]
        shown += [turn("assistant", call) for call in calls]
    return "".join(shown)


def _now(exchange: Exchange, room: _Room, known: str) -> str:
    shown = [turn("user", known + cut(exchange.request, 6000))]
    for count, done in enumerate(exchange.calls, 1):
        shown.append(turn("assistant", _call_text(done.name, done.arguments)))
        shown.append(turn("user", _after(exchange, done, count, room)))
    return "".join(shown)


def _after(exchange: Exchange, done: Done, count: int, room: _Room) -> str:
    rest = rest_of(exchange.request, exchange.calls[:count]).text
    then = f"Now {rest}" if rest else "If my request needs another call, make it; if not, answer."
    return f"Result of {done.name}: {cut(done.text, room.result)}. {then}"


# -- the words


def word_answer(
    llama: Llama,
    conversation: Conversation,
    on_text: Callable[[str], None] | None,
    schema: Mapping[str, Any] | None = None,
) -> Completion:
    """Return the model's answer in words.

    Args:
        llama: The model.
        conversation: What was said and done.
        on_text: Told each piece as it comes.
        schema: What JSON the answer is to be; None for words.

    Raises:
        PromptTooLongError: The request does not fit the context.
    """
    if schema is not None:
        grammar = answer_grammar(schema)
        return _in_some_room(
            lambda room: llama.complete(_wording_prompt(conversation, room), _JSON_TOKENS, grammar=grammar)
        )
    limit = _ANSWER_TOKENS if len(conversation.system) <= _SHORT_SYSTEM else _JSON_TOKENS
    return _in_some_room(lambda room: llama.complete(_wording_prompt(conversation, room), limit, on_text=on_text))


def _wording_prompt(conversation: Conversation, room: _Room) -> str:
    system = conversation.system
    how = "Answer briefly." if len(system) <= _SHORT_SYSTEM else ""
    if conversation.now.calls:
        how = "Answer in one short sentence. Use only the given results."
    shown = [turn("system", "\n".join(filter(None, (cut(system, room.system), how))))]
    for exchange in [*_kept(conversation, room), conversation.now]:
        shown.append(turn("user", cut(exchange.request, 6000) + _facts(exchange, room)))
        if exchange.answer:
            shown.append(turn("assistant", cut(exchange.answer, room.result)))
    return "".join(shown) + "<|im_start|>assistant\n"


def _facts(exchange: Exchange, room: _Room) -> str:
    if not exchange.calls:
        return ""
    facts = "".join(
        f"\n{done.name}({_spoken(done.arguments)}) = {cut(done.text, room.result)}" for done in exchange.calls
    )
    return f"\n\nResults:{facts}"


def _spoken(arguments: Mapping[str, Any] | str) -> str:
    if isinstance(arguments, str):
        return arguments
    return ", ".join(f"{name}={_plain(value)}" for name, value in arguments.items())
