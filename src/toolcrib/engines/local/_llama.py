"""A model in this process: llama.cpp through xllamacpp, one request at a time on a thread of its own.

The binding starts an HTTP server beside every model. Where the system has Unix sockets it is given one in
a private directory that is gone a moment later, so nothing can reach it; elsewhere, it listens on loopback
and wants a key nobody has.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import secrets
import socket
import tempfile
import threading
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from toolcrib.engines.local._catalogue import Weights
from toolcrib.engines.local._weights import OnDownload, fetch
from toolcrib.errors import EngineError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["CONTEXT", "Completion", "Llama", "PromptTooLongError", "StoppedError", "shared"]

CONTEXT = 4096  # tokens a prompt and what is written after it may take

_SLOTS = 2  # conversations kept warm at once: the one with the tools, and the one that words answers
_BATCH = 128  # prompt tokens between two looks at whether somebody still waits; larger ones are no faster
_PROMPT_CACHE = 256  # megabytes of prompts of other toolsets kept to be taken up again
_THREADS = 4  # more bring nothing for models this small
_LONGEST_ADDRESS = 100  # bytes of a Unix socket's path that every system takes
_PATIENCE = 30.0  # seconds the end of the process waits for the batch that is being computed

# Progress comes at once and after every batch, so there is always a chunk to end the computation at.
_LIKELIEST = {"temperature": 0, "cache_prompt": True, "stream": True, "return_progress": True}

_T = TypeVar("_T")
_Source: TypeAlias = "Weights | Path"


class PromptTooLongError(EngineError):
    """The prompt and what is to be written do not fit the model's context."""


class StoppedError(EngineError):
    """Nobody waits for the answer any more."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What the model wrote.

    Args:
        text: Its words.
        read: Tokens of the prompt.
        written: Tokens it wrote.
        cut: Whether it was stopped by the limit.
        surprise: The negative log-likelihood of the text, where it was asked for.
    """

    text: str
    read: int
    written: int
    cut: bool
    surprise: float = 0.0


class Llama:
    """A model that loads itself when it is first needed and stays for the life of the process.

    Args:
        source: Weights of the catalogue, fetched if need be, or the path of a GGUF file.
        threads: Threads to compute with; None for as many as there are processors, up to four.
    """

    def __init__(self, source: _Source, threads: int | None) -> None:
        self._source = source
        self._threads = threads or max(1, min(_THREADS, os.cpu_count() or 1))
        self._server: Any = None
        self._stop = threading.Event()
        self._closing = False
        self._jobs: SimpleQueue[tuple[Callable[[], Any], threading.Event, Future[Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="toolcrib-llama", daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[], _T], stop: threading.Event) -> Future[_T]:
        """Run `job` on the model's thread, after those before it; `stop` ends it early."""
        future: Future[_T] = Future()
        self._jobs.put((job, stop, future))
        return future

    def _work(self) -> None:
        while task := self._jobs.get():
            job, self._stop, future = task
            if self._closing:
                future.cancel()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(job())
            except BaseException as error:  # noqa: BLE001  # whoever waits gets it, whatever it is
                future.set_exception(error)

    def ready(self, on_download: OnDownload | None = None) -> None:
        """Load the model unless it is loaded; call it on the model's thread.

        Args:
            on_download: Told how far the weights are, if they have to be fetched.

        Raises:
            WeightsError: They could not be had.
            MissingExtraError: xllamacpp is not installed.
            EngineError: The file is no model llama.cpp can load.
        """
        if self._server is None:
            path = fetch(self._source, on_download, self._stop) if isinstance(self._source, Weights) else self._source
            if not path.is_file():
                raise EngineError(f"there is no file {path}: local:path/to/file.gguf needs one")
            self._server = _loaded(path, self._threads)

    def complete(
        self,
        prompt: str,
        limit: int,
        *,
        grammar: str = "",
        bias: Mapping[str, float] | None = None,
        weigh: bool = False,
        on_text: Callable[[str], None] | None = None,
    ) -> Completion:
        """Return what the model writes after `prompt`, the likeliest words; call it on the model's thread.

        Args:
            prompt: The text so far.
            limit: Tokens it may write.
            grammar: What it may write, as GBNF or llguidance.
            bias: Texts it is to write more or less readily, with what is added to their tokens' logits.
            weigh: Whether to sum up how unlikely its text was to the model.
            on_text: Told each piece of text as it comes.

        Raises:
            PromptTooLongError: The prompt leaves no room for `limit` tokens.
            EngineError: The model failed.
        """
        request = {
            "prompt": prompt.encode(errors="replace").decode(),
            "n_predict": limit,
            "temperature": 0,
            "stream": True,
            "return_progress": True,
            "cache_prompt": True,
            "logit_bias": [[text, added] for text, added in (bias or {}).items()],
            **({"grammar": grammar} if grammar else {}),
            **({"n_probs": 1} if weigh else {}),
        }
        answer = _Answer(limit, self._stop, on_text)
        self._server.handle_completions(request, answer)
        return answer.completion()

    @property
    def is_loaded(self) -> bool:
        """Whether it is in memory."""
        return self._server is not None

    def close(self) -> None:
        """End what is being computed and free the model."""
        self._closing = True
        self._stop.set()
        self._jobs.put(None)
        self._thread.join(_PATIENCE)
        if self._thread.is_alive() or _forked:
            self.abandon()
        self._server = None

    def abandon(self) -> None:
        """Never free the model: its threads are not there to answer, so freeing would wait for ever."""
        if self._server is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._server))


class _Answer:
    """Collects the chunks of one answer; returning True from a chunk ends the computation."""

    def __init__(self, limit: int, stop: threading.Event, on_text: Callable[[str], None] | None) -> None:
        self._limit = limit
        self._stop = stop
        self._on_text = on_text
        self._pieces: list[str] = []
        self._surprise = 0.0
        self._last: Mapping[str, Any] = {}
        self._error: BaseException | None = None

    def __call__(self, chunk: Mapping[str, Any]) -> bool:
        # The binding swallows what a callback raises.
        try:
            self._take(chunk)
        except Exception as error:  # noqa: BLE001  # raised again by completion()
            self._error = error
        return self._error is not None

    def _take(self, chunk: Mapping[str, Any]) -> None:
        if self._stop.is_set():
            raise StoppedError("the request was cancelled", retryable=True)
        if error := chunk.get("error"):
            kind = PromptTooLongError if error.get("type") == "exceed_context_size_error" else EngineError
            raise kind(f"the local model failed: {error.get('message', error)}")
        if chunk.get("prompt_progress", {}).get("total", 0) + self._limit > CONTEXT:
            raise PromptTooLongError(f"the prompt leaves no room for {self._limit} of {CONTEXT} tokens")
        self._last = chunk
        choice = chunk["choices"][0]
        if weighed := choice.get("logprobs"):
            self._surprise -= sum(token["logprob"] for token in weighed["content"])
        if text := choice["text"]:
            self._pieces.append(text)
            if self._on_text:
                self._on_text(text)

    def completion(self) -> Completion:
        """Return the whole, or raise what went wrong."""
        if self._error:
            raise self._error
        if "usage" not in self._last:
            raise EngineError("the local model ended without an answer", retryable=True)
        usage, cut = self._last["usage"], self._last["choices"][0]["finish_reason"] == "length"
        text = "".join(self._pieces)
        return Completion(text, usage["prompt_tokens"], usage["completion_tokens"], cut, self._surprise)


# -- loading


def _loaded(path: Path, threads: int) -> Any:
    library = _library()
    settings = library.CommonParams()
    settings.model.path = str(path)
    settings.n_ctx, settings.n_parallel = CONTEXT * _SLOTS, _SLOTS
    settings.n_batch = settings.n_ubatch = _BATCH
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    settings.cache_ram_mib, settings.n_threads_http = _PROMPT_CACHE, 1
    settings.warmup, settings.verbosity = False, -1
    settings.api_keys = [secrets.token_hex(32)]
    with tempfile.TemporaryDirectory(prefix="toolcrib-", ignore_cleanup_errors=True) as private:
        address = str(Path(private, "llama.sock"))
        if hasattr(socket, "AF_UNIX") and os.name == "posix" and len(os.fsencode(address)) < _LONGEST_ADDRESS:
            settings.hostnames = [address]
        try:
            return library.Server(settings)
        except RuntimeError as error:
            raise EngineError(f"llama.cpp cannot load {path}: is it a whole GGUF model?") from error


def _library() -> Any:
    # Threads that spin while they wait make two threads several times slower than one on a busy machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("GOMP_SPINCOUNT", "0")
    try:
        import xllamacpp  # pyright: ignore[reportMissingTypeStubs]  # it ships none
    except ModuleNotFoundError as error:
        raise MissingExtraError("local", "LocalEngine") from error
    except ImportError as error:
        hint = "; install it: apt-get install libgomp1" if "libgomp" in str(error) else ""
        raise EngineError(f"xllamacpp is installed but does not load: {error}{hint}") from error
    return xllamacpp


# -- one model, many engines

_models: dict[tuple[str, int | None], Llama] = {}
_guard = threading.Lock()
_forked = False  # whether this process was forked off one that had loaded a model


def shared(source: _Source, threads: int | None) -> Llama:
    """Return the process's one copy of a model."""
    place = source.sha256 if isinstance(source, Weights) else str(source.resolve())
    with _guard:
        return _models.setdefault((place, threads), _models.get((place, threads)) or Llama(source, threads))


@atexit.register
def _close() -> None:
    # A computation still running while the interpreter is torn down would crash the process.
    for model in _models.values():
        model.close()


def _forget() -> None:
    """Let a forked child start afresh: it has the memory of its parent's models but not their threads."""
    global _forked, _guard  # noqa: PLW0603  # the one place where the state of the process changes
    _guard = threading.Lock()  # another thread of the parent may have held it
    loaded = [model for model in _models.values() if model.is_loaded]
    _models.clear()
    if loaded:
        _forked = True
        for model in loaded:
            model.abandon()
        _skip_native_cleanup()


def _skip_native_cleanup() -> None:
    # llama.cpp's own clean-up at the end of a process waits for threads that only the parent has. What
    # is registered last runs first, and ends the process with its status.
    with suppress(AttributeError, OSError):  # not every C library has on_exit
        library = ctypes.CDLL(None)
        library.on_exit(library._exit, None)  # noqa: SLF001  # the C function


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
