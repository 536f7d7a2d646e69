"""A model that says what it was told to say, for tests and documentation."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from toolcrib.errors import EngineError
from toolcrib.types import Message, Reply, ToolCall

if TYPE_CHECKING:
    from toolcrib.toolset import Toolset

__all__ = ["ScriptedEngine", "Turn"]

Turn: TypeAlias = str | Sequence[tuple[str, Mapping[str, Any] | str]] | Reply | Exception

_WORD = re.compile(r"\s*\S+\s*|\s+")


class ScriptedEngine:
    """An engine that plays prepared turns in order and keeps what it was shown.

    Runs may share one, also at the same time: whoever asks next gets the next turn.

    Args:
        turns: What to answer, one per request: a text, a list of calls `[("name", {...}), ...]`
            whose arguments are a mapping or raw JSON text, a whole `Reply`, or an exception to raise.

    Attributes:
        requests: What the model was shown, one entry per request, as plain data:
            `{"tools": [names], "messages": [{"role", "content"}]}`.

    Raises:
        TypeError: A turn is none of these.
    """

    model: str = "scripted"

    def __init__(self, turns: Iterable[Turn]) -> None:
        self.requests: list[dict[str, Any]] = []
        self._turns = [_outcome(turn, number) for number, turn in enumerate(turns, 1)]
        self._lock = Lock()

    async def acomplete(self, messages: Sequence[Message], tools: Toolset) -> Reply:
        """Return the next turn.

        Args:
            messages: The conversation, kept in `requests`.
            tools: The tools on offer, whose names are kept in `requests`.

        Raises:
            EngineError: No turn is left.
            Exception: The turn is an exception.
        """
        request = {
            "tools": [tool.name for tool in tools],
            "messages": [{"role": message.role, "content": message.content} for message in messages],
        }
        with self._lock:
            number = len(self.requests)
            self.requests.append(request)
        if number >= len(self._turns):
            raise EngineError(
                f"the script has {len(self._turns)} turns and was asked for one more; add a turn to ScriptedEngine"
            )
        outcome = self._turns[number]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def astream(self, messages: Sequence[Message], tools: Toolset) -> AsyncIterator[str | Reply]:
        """Yield the next turn's words one by one and, last, the whole Reply.

        Args:
            messages: The conversation, kept in `requests`.
            tools: The tools on offer, whose names are kept in `requests`.

        Raises:
            EngineError: No turn is left.
            Exception: The turn is an exception.
        """
        reply = await self.acomplete(messages, tools)
        for word in _WORD.findall(reply.text):
            yield word
        yield reply


def _outcome(turn: object, number: int) -> Reply | Exception:
    if isinstance(turn, (Reply, Exception)):
        return turn
    if isinstance(turn, str):
        return Reply(text=turn, model=ScriptedEngine.model)
    if not isinstance(turn, (list, tuple)):
        raise TypeError(f"turn {number} must be a text, a list of calls, a Reply or an exception, not {turn!r}")
    calls = enumerate(cast("Sequence[object]", turn), 1)
    return Reply(
        text="", calls=tuple(_call(call, f"call_{number}_{i}") for i, call in calls), model=ScriptedEngine.model
    )


def _call(call: object, call_id: str) -> ToolCall:
    match call:
        case (str(name), str(arguments)) if isinstance(call, tuple):
            return ToolCall(call_id, name, arguments)
        case (str(name), Mapping()) if isinstance(call, tuple):
            return ToolCall(call_id, name, cast("Mapping[str, Any]", call[1]))
        case _:
            raise TypeError(f'a call is ("name", {{arguments}}) with a mapping or JSON text, not {call!r}')
