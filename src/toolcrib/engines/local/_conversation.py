"""A conversation as a small model needs it: what was asked, which calls answered it, what was said."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolcrib.types import Message, ToolCall

__all__ = ["Conversation", "Done", "Exchange", "cut", "read", "turn"]


@dataclass(frozen=True, slots=True)
class Done:
    """A call and what came of it.

    Args:
        name: The tool's name.
        arguments: What it was called with; raw text where that is no JSON object.
        text: What it answered.
        ok: Whether it did what was asked.
    """

    name: str
    arguments: Mapping[str, Any] | str
    text: str
    ok: bool


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and what was done about it.

    Args:
        request: The user's words.
        calls: The calls made for it, in order.
        answer: What was said at the end; empty while that is to come.
    """

    request: str
    calls: tuple[Done, ...] = ()
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Conversation:
    """The whole of it.

    Args:
        system: What the system messages say.
        past: The exchanges that are over, oldest first.
        now: The one to go on with.
    """

    system: str
    past: tuple[Exchange, ...]
    now: Exchange


def read(messages: Sequence[Message]) -> Conversation:
    """Return the conversation the messages make."""
    system = "\n".join(message.content for message in messages if message.role == "system")
    exchanges = [_exchange(part) for part in _parts(messages)] or [Exchange("")]
    return Conversation(system, tuple(exchanges[:-1]), exchanges[-1])


def _parts(messages: Sequence[Message]) -> list[list[Message]]:
    parts: list[list[Message]] = []
    for message in messages:
        if message.role == "user" or (message.role != "system" and not parts):
            parts.append([])
        if message.role != "system":
            parts[-1].append(message)
    return parts


def _exchange(part: list[Message]) -> Exchange:
    request = part[0].content if part[0].role == "user" else ""
    waiting: list[ToolCall] = []
    done: list[Done] = []
    answer = ""
    for message in part:
        if message.role == "assistant":
            waiting.extend(message.calls)
            answer = message.content
        elif message.role == "tool":
            call = message.result.call if message.result else next(iter(waiting), None)
            waiting = [other for other in waiting if call is None or other.id != call.id]
            if call is not None:
                done.append(_done(call, message))
    return Exchange(request, tuple(done), answer)


def _done(call: ToolCall, message: Message) -> Done:
    return Done(call.name, _arguments(call.arguments), message.content, message.result.ok if message.result else True)


def _arguments(raw: str | Mapping[str, Any]) -> Mapping[str, Any] | str:
    if not isinstance(raw, str):
        return raw
    try:
        parsed = json.loads(raw)
    except (ValueError, RecursionError):
        return raw
    return cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else raw


def turn(role: str, text: str) -> str:
    """Return a turn in ChatML; marks of that format inside the text lose their meaning."""
    return f"<|im_start|>{role}\n{text.replace('<|', '< |')}<|im_end|>\n"


def cut(text: str, longest: int) -> str:
    """Return `text`, its middle left out where it is longer than `longest` characters."""
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]} [...] {text[-half:]}"
