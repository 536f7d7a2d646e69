"""One question to a model about one tool: asked when the answer is first needed, and never twice at a time."""

from __future__ import annotations

import asyncio
import inspect
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from toolcrib._callables import is_async
from toolcrib._deadline import within
from toolcrib._portal import off_loop, portal
from toolcrib.errors import warn
from toolcrib.limits import SCHEMA_LEASE_SECONDS, SCHEMA_SECONDS
from toolcrib.schema._answers import NOTHING, Answer, read_answer
from toolcrib.schema.artifacts import Shelf, fingerprint, model_id
from toolcrib.schema.inferred import Inferred, Question, answer_schema, composed, prompt_for
from toolcrib.stores.memory import InMemoryArtifactStore
from toolcrib.types import Message, Reply

if TYPE_CHECKING:
    from toolcrib.protocols import ArtifactStore

__all__ = ["Inquiry", "Outcome"]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5  # seconds between two looks at what another process is making
_LONGEST_REASON = 500


class Outcome(NamedTuple):
    """What came of a question.

    Args:
        inferred: The schema; that of the signature where no model helped.
        asked: Whether a model was asked here, and not a store.
        failure: Why the model's answer could not be used, if so.
    """

    inferred: Inferred
    asked: bool
    failure: str | None = None


class Inquiry:
    """A question about a tool, and its outcome once it was asked.

    Args:
        question: Makes the question.
        model: An engine, or a callable `prompt -> dict | str`, sync or async.
        store: Where answers are kept; None for this process, and this very model.
    """

    def __init__(self, question: Callable[[], Question], model: Any, store: ArtifactStore | None) -> None:
        self._question = question
        self._model = model
        self._store = _own_store(model) if store is None else store
        self._lock = threading.Lock()
        self._flight: Future[None] | None = None
        self._outcome: Outcome | None = None
        self._untold: str | None = None

    def now(self) -> Outcome:
        """Return the outcome; where there is none yet, this thread waits for it.

        Inside a running loop that loop stands still meanwhile, and what others have asked is not waited for,
        since they may need that very loop.
        """
        if self._outcome is None:
            portal().call(self._fetched, waits=not _in_loop())
        return self._told()

    async def ready(self) -> Outcome:
        """Return the outcome; whoever comes first asks, on their own loop, and all others wait."""
        if self._outcome is None:
            await self._fetched(waits=True)
        return self._told()

    async def _fetched(self, *, waits: bool) -> None:
        while self._outcome is None:
            mine: Future[None] = Future()
            mine.set_running_or_notify_cancel()  # so that nobody who gives up waiting can cancel it for the others
            with self._lock:
                flight = self._flight if waits else None
                self._flight = flight or mine
            if flight is not None:
                await asyncio.wrap_future(flight)
                continue
            try:
                self._settle(*await self._made(waits=waits))
            finally:
                with self._lock:
                    self._flight = None if self._flight is mine else self._flight
                mine.set_result(None)

    def _settle(self, outcome: Outcome, untold: str | None) -> None:
        with self._lock:
            if self._outcome is None:  # or somebody who could not wait was quicker
                self._outcome, self._untold = outcome, untold

    def _told(self) -> Outcome:
        with self._lock:
            untold, self._untold = self._untold, None
        if untold is not None:
            warn(untold)
        return cast("Outcome", self._outcome)

    # -- how the answer is had

    async def _made(self, *, waits: bool) -> tuple[Outcome, str | None]:
        question, model = self._question(), model_id(self._model)
        prompt = prompt_for(question)
        shelf = Shelf(self._store, fingerprint(model, "\n".join(prompt)))
        types, failure = question.mode == "llm", None
        answer = await self._kept(shelf, types=types)
        if answer is None and waits:
            answer = await self._awaited(shelf, types=types)
        asked = answer is None
        if answer is None:
            try:
                answer = await within(self._asked(question, prompt), SCHEMA_SECONDS)
                await shelf.put(model, answer.data())
            except Exception as error:  # noqa: BLE001  # a model of any kind fails in any way; the signature is there
                failure = _reason(error)
            finally:
                if waits:
                    await asyncio.shield(shelf.release())
        inferred = composed(question, answer or NOTHING)
        failed = [f"it is the signature's own, since {failure}"] if failure else []
        problems = "; ".join([*failed, *shelf.problems, *inferred.problems])
        untold = f"the schema of {question.name!r}, by {model}: {problems}" if problems else None
        return Outcome(inferred, asked, failure), untold

    async def _kept(self, shelf: Shelf, *, types: bool) -> Answer | None:
        kept = await shelf.get()
        try:
            return None if kept is None else read_answer(kept, types=types)
        except ValueError as error:
            shelf.refuse(error)
            return None

    async def _awaited(self, shelf: Shelf, *, types: bool) -> Answer | None:
        """Return what another process makes meanwhile; None when it is ours to make."""
        loop = asyncio.get_running_loop()
        over, pause = loop.time() + SCHEMA_LEASE_SECONDS, _FIRST_PAUSE
        while not await shelf.claim():
            if loop.time() > over:
                return None
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
            if (answer := await self._kept(shelf, types=types)) is not None:
                return answer
        # Another may have put its answer between our look and our claim.
        if (answer := await self._kept(shelf, types=types)) is not None:
            await shelf.release()
        return answer

    async def _asked(self, question: Question, prompt: tuple[str, str]) -> Answer:
        instructions, facts = prompt
        types, shape = question.mode == "llm", answer_schema(question)
        said = await self._said(instructions, facts, shape)
        try:
            return read_answer(said, types=types)
        except ValueError as error:
            again = f"{facts}\nYour last answer could not be used: {_reason(error)}. Answer again: one JSON object."
            return read_answer(await self._said(instructions, again, shape), types=types)

    async def _said(self, instructions: str, facts: str, shape: Mapping[str, Any]) -> Any:
        model = self._model
        if hasattr(model, "acomplete"):
            messages = [Message("system", instructions), Message("user", facts)]
            wanted = {"answer_schema": shape} if getattr(model, "answers_json", False) is True else {}
            reply = await model.acomplete(messages, _NO_TOOLS, **wanted)
            return reply.text if isinstance(reply, Reply) else reply
        prompt = f"{instructions}\n{facts}"
        said = await (model(prompt) if is_async(model) else off_loop(model, prompt))
        return await said if inspect.isawaitable(said) else said


def _reason(error: Exception) -> str:
    text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"


def _in_loop() -> bool:
    return asyncio._get_running_loop() is not None  # noqa: SLF001  # the public one raises where there is none


# -- answers of this process

_stores: weakref.WeakKeyDictionary[Any, InMemoryArtifactStore] = weakref.WeakKeyDictionary()
_stores_lock = threading.Lock()


def _own_store(model: Any) -> InMemoryArtifactStore:
    """Return this process's store for one model: two of the same name need not answer the same."""
    try:
        with _stores_lock:
            return _stores.setdefault(model, InMemoryArtifactStore())
    except TypeError:  # it can be neither hashed nor referred to weakly
        return InMemoryArtifactStore()


class _NoTools(Mapping[str, Any]):
    """What an engine is shown that may call nothing: an empty Toolset, by shape."""

    limits: Any = None
    names: tuple[str, ...] = ()
    entries: tuple[Any, ...] = ()

    def __getitem__(self, name: str) -> Any:
        raise KeyError(name)

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def as_tools(self) -> list[Any]:
        return []

    def cached(self, key: Any, make: Callable[[], Any]) -> Any:  # noqa: ARG002  # nothing is worth keeping
        return make()


_NO_TOOLS: Any = _NoTools()
