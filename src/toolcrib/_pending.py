"""A run that waits for results: what it waits for, and its conversation once they are there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from toolcrib.limits import DEFAULT_LIMITS, Limits
from toolcrib.results import answer_to, clean
from toolcrib.types import Envelope, Message, ToolCall, ToolResult

__all__ = ["Results", "continued", "unanswered"]

#: What `resume` takes: values by the ids of their calls, or results that carry their calls.
Results: TypeAlias = Mapping[str, Any] | Iterable[ToolResult]


def unanswered(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """Return the calls a conversation ends with that have no answer yet."""
    start = _last_asking(messages)
    if start is None:
        return ()
    answered = {message.result.call.id for message in messages[start:] if message.result is not None}
    return tuple(call for call in messages[start].calls if call.id not in answered)


def continued(
    envelope: Envelope, results: Results, limits: Limits | None = None
) -> tuple[tuple[Message, ...], list[ToolResult]]:
    """Return the conversation with every call answered, in the order of the calls, and the new answers.

    Args:
        envelope: The outcome that waits.
        results: What came of its pending calls.
        limits: How long an answer may be.

    Raises:
        TypeError: The results are neither a mapping nor ToolResults.
        ValueError: It does not wait, or there is not exactly one result for each pending call.
    """
    _check(envelope)
    given = _by_id(results)
    _check_ids([call.id for call in envelope.pending], given)
    new = [_result(call, given[call.id], limits or DEFAULT_LIMITS) for call in envelope.pending]
    messages, start = envelope.messages, _last_asking(envelope.messages) or 0
    known = {message.result.call.id: message.result for message in messages[start:] if message.result is not None}
    answers = known | {result.call.id: result for result in new}
    told = [Message("tool", answers[call.id].text, result=answers[call.id]) for call in messages[start].calls]
    return (*messages[: start + 1], *told), new


def _last_asking(messages: Sequence[Message]) -> int | None:
    """Return where the last message is that calls, if nothing but answers follow it."""
    last = next((place for place in reversed(range(len(messages))) if messages[place].role != "tool"), None)
    return last if last is not None and messages[last].calls else None


# -- what is given


def _check(envelope: Envelope) -> None:
    if not envelope.pending:
        raise ValueError("nothing to resume: the envelope has no pending calls")
    if {call.id for call in unanswered(envelope.messages)} != {call.id for call in envelope.pending}:
        raise ValueError("cannot resume: the envelope's messages do not end with its pending calls")


def _by_id(results: Results) -> dict[str, Any]:
    if isinstance(results, Mapping):
        return dict(cast("Mapping[str, Any]", results))
    if isinstance(results, (str, bytes, ToolResult)) or not isinstance(results, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may not type-check
        raise TypeError(f"results are a mapping of call ids to values, or a list of ToolResults, not {results!r:.100}")
    given: dict[str, Any] = {}
    for result in results:
        if not isinstance(result, ToolResult):  # pyright: ignore[reportUnnecessaryIsInstance]  # the same
            raise TypeError(f"a list of results holds ToolResults, not {result!r:.100}; or give {{call id: value}}")
        if result.call.id in given:
            raise ValueError(f"there are two results for call {result.call.id!r}")
        given[result.call.id] = result
    return given


def _check_ids(pending: Sequence[str], given: Mapping[str, Any]) -> None:
    missing = [call_id for call_id in pending if call_id not in given]
    unknown = [call_id for call_id in given if call_id not in pending]
    problems = [
        f"{what} {', '.join(map(repr, ids))}"
        for what, ids in (("no result for", missing), ("no pending call", unknown))
        if ids
    ]
    if problems:
        waiting = ", ".join(map(repr, pending))
        raise ValueError(f"cannot resume: {'; '.join(problems)}. One result is needed for each of {waiting}")


def _result(call: ToolCall, given: Any, limits: Limits) -> ToolResult:
    """Return the answer to a call, under the call the run knows."""
    if not isinstance(given, ToolResult):
        kind, text, parts, response = answer_to(given, limits)
        return ToolResult(call, response, kind, given, text, parts)
    kind, text, parts = given.kind, given.text, given.parts
    if not text and not parts and given.value != "":  # made by hand, without the text a model reads
        read, text, parts, _ = answer_to(given.response if given.value is None else given.value, limits)
        kind = read if given.ok else kind
    return ToolResult(call, given.response, kind, given.value, clean(text, limits), parts, given.duration)
