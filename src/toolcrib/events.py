"""What happens during a run, as values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from toolcrib.types import Envelope, Reply, ToolCall, ToolResult

__all__ = [
    "Event",
    "ModelReplied",
    "RunFinished",
    "RunStarted",
    "TextDelta",
    "ToolFinished",
    "ToolProgress",
    "ToolStarted",
]


class RunStarted(NamedTuple):
    """An agent took on a task, or goes on with one that waited; the prompt is empty then."""

    run_id: str
    agent: str
    prompt: str


class TextDelta(NamedTuple):
    """A piece of the model's words, as they come."""

    run_id: str
    text: str


class ModelReplied(NamedTuple):
    """The model finished a turn; `turn` counts from 1."""

    run_id: str
    turn: int
    reply: Reply


class ToolStarted(NamedTuple):
    """A call was found and validated and is about to run; `display_names` are those of its parameters that have one."""

    run_id: str
    call: ToolCall
    display_names: Mapping[str, str] = {}


class ToolProgress(NamedTuple):
    """A running tool told how far it has come."""

    run_id: str
    call_id: str
    progress: float
    total: float | None
    message: str | None


class ToolFinished(NamedTuple):
    """A call was answered; also when it never ran."""

    run_id: str
    result: ToolResult


class RunFinished(NamedTuple):
    """An agent's run is over, or waits for the results of calls that are `pending` in its envelope."""

    run_id: str
    envelope: Envelope


Event: TypeAlias = RunStarted | TextDelta | ModelReplied | ToolStarted | ToolProgress | ToolFinished | RunFinished
