"""A run as a command line tells it: in words to a person, or record by record to a program."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

from pydantic_core import from_json, to_jsonable_python

from toolcrib._terminal import brief, console, json_text, printable, seconds, write_line
from toolcrib.events import (
    Event,
    ModelReplied,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)
from toolcrib.types import ToolCall, ToolResult

__all__ = ["Transcript", "outcome_of", "write_record"]


# -- what a person reads


class Transcript:
    """Writes a run for a person: the words to standard output, the calls to standard error."""

    def __init__(self) -> None:
        self._calls = console(stderr=True)
        self._begun: set[str] = set()
        self._heard = False
        self._in_line = False

    def __call__(self, event: Event) -> None:
        """Write what is new."""
        match event:
            case TextDelta(text=text):
                self._say(text)
            case ModelReplied(reply=reply):
                if not self._heard:  # an engine that does not stream
                    self._say(reply.text)
                self._heard = False
                self._end_line()
            case ToolStarted(call=call, display_names=names):
                self._begin(call, names)
            case ToolProgress(progress=progress, total=total, message=message):
                self._line(f"  {progress:g}{'' if total is None else f' of {total:g}'} {message or ''}".rstrip(), "dim")
            case ToolFinished(result=result):
                self._finish(result)
            case RunFinished(envelope=envelope) if envelope.error is not None:
                self._line(f"{envelope.error.type}: {envelope.error.message}", "red")
            case _:
                pass

    def _say(self, text: str) -> None:
        if text:
            sys.stdout.write(printable(text))
            sys.stdout.flush()
            self._heard = True
            self._in_line = not text.endswith("\n")

    def _end_line(self) -> None:
        if self._in_line:
            write_line("")
        self._in_line = False

    def _begin(self, call: ToolCall, names: Mapping[str, str]) -> None:
        self._begun.add(call.id)
        self._line(f"→ {call.name}({brief(_shown_arguments(call, names))})", "cyan")

    def _finish(self, result: ToolResult) -> None:
        if result.call.id not in self._begun:
            self._begin(result.call, {})
        outcome = f"← {result.call.name} {result.kind} in {seconds(result.duration)}: {brief(result.text)}"
        self._line(outcome, "green" if result.ok else "red")

    def _line(self, text: str, style: str) -> None:
        self._end_line()
        self._calls.print(printable(text), style=style)


def _shown_arguments(call: ToolCall, names: Mapping[str, str]) -> str:
    arguments = _parsed(call)
    if not isinstance(arguments, Mapping):
        return str(arguments)
    given = cast("Mapping[str, Any]", arguments)
    return ", ".join(f"{names.get(name, name)}={json_text(value)}" for name, value in given.items())


def _parsed(call: ToolCall) -> Any:
    """Return the arguments as data; text that is no JSON stays as the model wrote it."""
    if isinstance(call.arguments, str):
        with suppress(ValueError):
            return from_json(call.arguments or "{}", allow_inf_nan=False)
        return call.arguments
    return to_jsonable_python(call.arguments, fallback=str)


# -- what a program reads


def write_record(event: Event) -> None:
    """Write an event as one line of JSON."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(event).__name__).lower()
    write_line(json_text({"event": name, "run_id": event.run_id, **_facts(event)}))


def _facts(event: Event) -> dict[str, Any]:
    match event:
        case ModelReplied(turn=turn, reply=reply):
            usage = to_jsonable_python(reply.usage)
            calls = [_call_facts(call) for call in reply.calls]
            return {"turn": turn, "text": reply.text, "calls": calls, "model": reply.model, "usage": usage}
        case ToolStarted(call=call, display_names=names):
            return {"call": _call_facts(call), **({"display_names": dict(names)} if names else {})}
        case ToolFinished(result=result):
            return {"call": _call_facts(result.call), **outcome_of(result)}
        case RunFinished(envelope=envelope):
            facts = {"metadata": envelope.metadata, "error": envelope.error}
            return {"ok": envelope.ok, "text": envelope.text(), **to_jsonable_python(facts)}
        case RunStarted() | TextDelta() | ToolProgress():
            return event._asdict()


def _call_facts(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "arguments": _parsed(call)}


def outcome_of(result: ToolResult) -> dict[str, Any]:
    """Return how a call ended, as JSON data."""
    outcome: dict[str, Any] = {"kind": result.kind, "text": result.text, "duration": result.duration}
    if result.ok:
        with suppress(ValueError):  # a value that JSON cannot carry is told by its text alone
            outcome["value"] = to_jsonable_python(result.value)
    return outcome
