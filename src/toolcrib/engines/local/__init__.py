"""A model that runs in this process: no key, no server, no network once its weights are here."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from toolcrib.engines.local._catalogue import named
from toolcrib.engines.local._chooser import Chooser, word_answer
from toolcrib.engines.local._conversation import read
from toolcrib.engines.local._llama import CONTEXT, PromptTooLongError, shared
from toolcrib.engines.local._smol import Smol, stated
from toolcrib.errors import EngineError
from toolcrib.types import Message, Reply, ToolCall, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from toolcrib.engines.local._llama import Completion, Llama
    from toolcrib.engines.local._weights import OnDownload
    from toolcrib.toolset import Toolset

__all__ = ["LocalEngine"]


class LocalEngine:
    """A small model in this process, for demonstrations, tests and work without a network.

    The first request fetches the weights, once, into `toolcrib` in $XDG_CACHE_HOME or ~/.cache (or into
    $TOOLCRIB_CACHE) and loads them. Engines of one model share one copy, which stays for the life of the
    process and answers one request at a time. Every call names a tool that was offered and follows its
    schema, as far as the schema can be a grammar; whether it is the right one is up to the model. A reply
    asks for one call at most.

    Args:
        model: `local` (0.5 billion parameters, 491 MB: single calls, often two), `local:1.5b` (1.1 GB: also
            several calls in a row), `local:135m` (98 MB: for tests; one call to a fitting tool), or
            `local:path/to/file.gguf`, a chat model whose turns are marked as in ChatML.
        threads: Threads to compute with; None for as many as there are processors, up to four.
        on_download: Told `(bytes so far, bytes in all)` while weights are fetched, on another thread; without
            it, a bar is shown on standard error.

    Raises:
        ValueError: There is no such model, or `threads` is less than one.
    """

    def __init__(
        self, model: str = "local", *, threads: int | None = None, on_download: OnDownload | None = None
    ) -> None:
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be at least 1, not {threads}")
        self._source = named(model)
        self._model = model
        self._threads = threads
        self._on_download = on_download

    @property
    def model(self) -> str:
        """The model's name."""
        return self._model

    answers_json = True

    async def acomplete(
        self, messages: Sequence[Message], tools: Toolset, *, answer_schema: Mapping[str, Any] | None = None
    ) -> Reply:
        """Return the model's next message: one call, or words. Cancelling it ends the computation.

        Args:
            messages: The conversation. What does not fit the model's context is left out, oldest first.
            tools: The tools on offer.
            answer_schema: What JSON is wanted in place of words; without tools.

        Raises:
            WeightsError: The weights could not be had.
            MissingExtraError: The `local` extra is not installed.
            EngineError: The model failed, or the request and the tools do not fit its context.
        """
        return await self._reply(messages, tools, None, answer_schema)

    async def astream(self, messages: Sequence[Message], tools: Toolset) -> AsyncGenerator[str | Reply]:
        """Yield the words as they come and, last, the whole Reply.

        Args:
            messages: As for `acomplete`.
            tools: As for `acomplete`.
        """
        loop = asyncio.get_running_loop()
        heard: asyncio.Queue[str | None] = asyncio.Queue()
        say = _Trimmed(lambda piece: loop.call_soon_threadsafe(heard.put_nowait, piece))
        reply = asyncio.ensure_future(self._reply(messages, tools, say))
        reply.add_done_callback(lambda _: heard.put_nowait(None))
        try:
            while (piece := await heard.get()) is not None:
                yield piece
            yield await reply
        finally:
            reply.cancel()
            await asyncio.gather(reply, return_exceptions=True)

    async def _reply(
        self,
        messages: Sequence[Message],
        tools: Toolset,
        say: Callable[[str], None] | None,
        answer_schema: Mapping[str, Any] | None = None,
    ) -> Reply:
        llama = shared(self._source, self._threads)
        stop = threading.Event()
        turn = _Turn(llama, self._model, say)

        def run() -> Reply:
            llama.ready(self._on_download)
            return turn.reply(messages, tools, answer_schema)

        try:
            return await asyncio.wrap_future(llama.submit(run, stop))
        except PromptTooLongError as error:
            raise EngineError(
                f"the request and the {len(tools)} tools do not fit the {CONTEXT} tokens {self._model} can read:"
                " offer fewer tools, or ask more briefly"
            ) from error
        finally:
            stop.set()


class _Turn:
    """One reply in the making, on the model's thread."""

    def __init__(self, llama: Llama, model: str, say: Callable[[str], None] | None) -> None:
        self._llama = llama
        self._model = model
        self._say = say
        self._usage = Usage()

    def reply(
        self, messages: Sequence[Message], tools: Toolset, answer_schema: Mapping[str, Any] | None = None
    ) -> Reply:
        conversation = read(messages)
        if len(tools) and (wanted := self._chooser().next_call(conversation, tools)):
            call = ToolCall(f"call_{uuid4().hex[:12]}", wanted.name, wanted.arguments)
            return self._made("", (call,))
        if self._model == "local:135m" and conversation.now.calls:
            return self._made(self._told(stated(conversation)))
        completion = word_answer(self._llama, conversation, self._say, answer_schema)
        self._spent(completion)
        return self._made(completion.text.strip())

    def _chooser(self) -> Smol | Chooser:
        if self._model == "local:135m":
            return Smol(self._llama, self._spent)
        return Chooser(self._llama, self._spent, may_go_on=self._model != "local")

    def _told(self, text: str) -> str:
        if self._say:
            self._say(text)
        return text

    def _spent(self, completion: Completion) -> None:
        self._usage += Usage(completion.read, completion.written)

    def _made(self, text: str, calls: tuple[ToolCall, ...] = ()) -> Reply:
        return Reply(text, calls, self._usage, self._model)


class _Trimmed:
    """Passes pieces on without the blanks before the first word and after the last."""

    def __init__(self, say: Callable[[str], Any]) -> None:
        self._say = say
        self._blanks: str | None = None

    def __call__(self, piece: str) -> None:
        whole = piece.lstrip() if self._blanks is None else self._blanks + piece
        said = whole.rstrip()
        if said:
            self._say(said)
            self._blanks = whole[len(said) :]
        elif self._blanks is not None:
            self._blanks = whole
