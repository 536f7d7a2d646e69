"""An agent's answer before a judge: ask, have it judged, and ask again until it is approved."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from inspect import isawaitable
from time import perf_counter
from typing import Any, NamedTuple

from toolcrib._callables import is_async
from toolcrib._portal import off_loop
from toolcrib.results import answer_to, clean, failure
from toolcrib.types import Envelope, Message, RunMetadata

__all__ = ["approves", "check_judge", "judged"]

_Ask = Callable[[str, tuple[Message, ...]], Awaitable[Envelope]]


class _Verdict(NamedTuple):
    approved: bool
    words: str
    run: RunMetadata | None = None


def check_judge(judge: Any, most: int) -> None:
    """Refuse what cannot judge, and a number of answers of which none could be judged.

    Raises:
        TypeError: The judge is neither an agent nor callable.
        ValueError: There is to be no answer at all.
    """
    if judge is not None and not callable(judge) and not _is_agent(judge):
        raise TypeError(f"verify must be an agent or a function that takes the answer, not {type(judge).__name__}")
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may not type-check
        raise ValueError(f"max_verify is the number of answers, at least 1, not {most!r}")


async def judged(ask: _Ask, task: str, judge: Any, most: int, deps: Any = None) -> Envelope:
    """Return the first answer that the judge approves of, or else the last, and what was said of each.

    A run that fails, or waits for results, has no answer to judge and is returned at once.

    Args:
        ask: Runs an agent with a prompt, going on from a conversation.
        task: The first prompt.
        judge: An agent, or a function of the answer's text, sync or async.
        most: The answers there may be, the first included.
        deps: What a judging agent's tools find in their `ToolContext`.
    """
    started = perf_counter()
    rejected: list[RunMetadata] = []
    verdicts: list[_Verdict] = []
    envelope = await ask(task, ())
    while envelope.ok:
        verdicts.append(await _verdict(judge, envelope.text(), deps))
        if verdicts[-1].approved or len(verdicts) == most:
            break
        rejected.append(envelope.metadata)
        envelope = await ask(_again(verdicts[-1].words), envelope.messages)
    metadata = _whole(envelope.metadata, rejected, verdicts, (perf_counter() - started) * 1000)
    return envelope.replace(metadata=metadata)


def _again(words: str) -> str:
    return f"Your answer was rejected:\n\n{words}\n\nGive a new answer to the task, in full."


def _whole(
    last: RunMetadata, rejected: Sequence[RunMetadata], verdicts: Sequence[_Verdict], latency_ms: float
) -> RunMetadata:
    others = [*rejected, *(verdict.run for verdict in verdicts if verdict.run is not None)]
    return replace(
        last,
        usage=sum((run.usage for run in others), last.usage),
        latency_ms=latency_ms,
        nested=(*last.nested, *others),
        verified=verdicts[-1].approved if verdicts else None,
        verdicts=tuple(verdict.words for verdict in verdicts),
    )


# -- the judge


def _is_agent(judge: Any) -> bool:
    return callable(getattr(judge, "arun", None))


async def _verdict(judge: Any, answer: str, deps: Any) -> _Verdict:
    try:
        return await _read(await _said(judge, answer, deps))
    except Exception as error:  # noqa: BLE001  # a judge that raises has rejected, and its words say why
        _, text, *_ = failure("judge", error)
        return _Verdict(approved=False, words=text.removeprefix("Tool 'judge' failed: "))


async def _said(judge: Any, answer: str, deps: Any) -> Any:
    if _is_agent(judge):
        said = judge.arun(answer, deps=deps)
    elif is_async(judge):
        said = judge(answer)
    else:
        said = await off_loop(judge, answer)
    return await said if isawaitable(said) else said


async def _read(said: Any) -> _Verdict:
    if said is True:
        return _Verdict(approved=True, words="approved")
    if said is False or said is None:
        return _Verdict(approved=False, words="rejected")
    run = said.metadata if isinstance(said, Envelope) and said.metadata != RunMetadata() else None
    if isinstance(said, Envelope) and not said.ok:
        return _Verdict(approved=False, words=_told(said), run=run)
    text = said.text() if callable(getattr(said, "text", None)) else said
    text = await text if isawaitable(text) else text
    if not isinstance(text, str):
        return _Verdict(approved=False, words=_told(text))
    return _Verdict(approves(text), clean(text).strip() or "rejected", run)


def _told(value: Any) -> str:
    _, text, *_ = answer_to(value)
    return text


# -- its words

#: Quotes, bullets, headings, emphasis, code, brackets and ticks; numbers of a list; fences with their language.
_MARKS = (
    r"(?:[\s*_#>+\-\u2013\u2014\u2022\"'\u201c\u201d\u2018\u2019\u00ab\u00bb(\[\u2705\u2714\u2611\ufe0f]"
    r"|`{3,9}\w{0,20}\n|`|\d{1,3}[.)]\s)*+"
)
_APPROVING = r"(?:approv(?:e|es|ed|ing)|accept(?:s|ed|ing|able)?|ok(?:s|ed|ay|ays|ayed)?|yes|pass(?:es|ed|ing)?)"
_APPROVAL = re.compile(rf"{_MARKS}{_APPROVING}(?![^\W_]|[-/'\u2019][^\W_])", re.IGNORECASE)


def approves(words: str) -> bool:
    """Whether a judge's words begin with approve, accept, ok, yes or pass, in any form; markdown is ignored.

    Args:
        words: What the judge said.
    """
    return _APPROVAL.match(words) is not None
