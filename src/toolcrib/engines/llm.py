"""Models of every provider, through the model layer of pydantic-ai."""

from __future__ import annotations

import asyncio
import copy
import difflib
import os
import re
import threading
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit, urlunsplit

from toolcrib.engines._exchange import Exchange
from toolcrib.engines._native import supported
from toolcrib.errors import EngineError, MissingExtraError
from toolcrib.limits import MODEL_REQUEST_SECONDS
from toolcrib.types import Message, NativeTool, Reply, Secret

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider

    from toolcrib.toolset import Toolset

__all__ = ["LLMEngine"]

_EXAMPLES = "'openai:gpt-5.4-mini', 'anthropic:claude-haiku-4-5' or 'google:gemini-2.5-flash'"

# A name without a provider, by how each of them calls its own models.
_OWN_NAMES = (
    (re.compile(r"(gpt|chatgpt|codex|o\d)(-|$)"), "openai-chat"),
    (re.compile(r"claude-"), "anthropic"),
    (re.compile(r"gemini-"), "google"),
)
_PROVIDERS = {
    "openai": "openai-chat",
    "gemini": "google",
    "google-gla": "google",
    "google-vertex": "google-cloud",
}
_OPENAI_APIS = ("openai-chat", "openai-responses")
_KEY_VARIABLES = {
    "openai-chat": ("OPENAI_API_KEY",),
    "openai-responses": ("OPENAI_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
}
_EXTRAS = ("openai", "anthropic", "google")
_NO_KEY = "no-key-needed"  # what a server of one's own is sent; the real key of a provider is not
_PASSING_STATUS = {408, 409, 425, 429, *range(500, 600)}
_LONGEST_ERROR = 2_000  # characters; some servers answer with a page
_SHORTEST_SECRET = 6  # blanking out anything shorter would garble ordinary words


class LLMEngine:
    """A language model of any provider: OpenAI, Anthropic, Google, or a server that speaks like one of them.

    One engine may be used from several event loops and threads; each loop has its own connections.

    Args:
        name: `"provider:model"`, such as `"openai:gpt-5.4-mini"`, `"anthropic:claude-haiku-4-5"` or
            `"google:gemini-2.5-flash"`; a provider's own model name alone, such as `"gpt-5.4-mini"`; or
            a pydantic-ai `Model`. `openai:` means Chat Completions, `openai-responses:` the Responses API.
        base_url: The address of a server of your own, such as `http://127.0.0.1:8080/v1` for llama.cpp or vLLM.
            A name without a known provider is then asked for by Chat Completions.
        api_key: The key, as text or `Secret`. When None it is taken from the provider's environment
            variable, such as `OPENAI_API_KEY`; never for a `base_url`, so no key goes to another server.
        settings: pydantic-ai's model settings, such as `temperature`, `max_tokens`, `timeout`,
            `request_timeout` (the whole request, in seconds) or `max_retries`.
        file_stores: Where `NativeTool.FILE_SEARCH` looks: the ids of OpenAI's vector stores, or the names of
            Google's file search stores.

    Raises:
        ValueError: The name says no provider that is known, or a `Model` is given with `base_url` or `api_key`.
        TypeError: The name is neither text nor a `Model`.
        MissingExtraError: The provider's package is not installed.
        EngineError: The API key is missing; the message names the environment variable.
    """

    def __init__(
        self,
        name: str | Model,
        *,
        base_url: str | None = None,
        api_key: str | Secret | None = None,
        settings: Mapping[str, Any] | None = None,
        file_stores: Sequence[str] = (),
    ) -> None:
        key = _key(api_key)
        if isinstance(name, str):
            provider, model_name = _parsed(name, base_url)
            self._secrets = _secrets(provider, base_url, key)
            self._name = name if ":" in name else f"{provider.removesuffix('-chat')}:{model_name}"
            self._models: _PerLoop | _Given = _PerLoop(lambda: _built(provider, model_name, base_url, key))
        else:
            _check_model(name, base_url, key)
            self._secrets = ()
            self._name = name.model_name
            self._models = _Given(_untransformed(name))
        self._base_url = base_url
        self._settings = _with_end(self._models.first, settings or {})
        self._file_stores = (file_stores,) if isinstance(file_stores, str) else tuple(file_stores)

    @property
    def model(self) -> str:
        """The model's name, with its provider."""
        return self._name

    @cached_property
    def native_tools(self) -> frozenset[NativeTool]:
        """The tools of its provider that the model can use."""
        return supported(self._models.first, self._file_stores)

    def __repr__(self) -> str:
        """Return a text with the model and the server, without key, user name and password."""
        server = f", base_url={_without_login(self._base_url)!r}" if self._base_url else ""
        return f"LLMEngine({self._name!r}{server})"

    @cached_property
    def answers_json(self) -> bool:
        """Whether its provider can hold it to JSON."""
        try:
            return self._models.first.profile.get("supports_json_object_output", False)
        except NotImplementedError:  # one that only passes on to others
            return False

    async def acomplete(
        self,
        messages: Sequence[Message],
        tools: Toolset,
        *,
        native_tools: Sequence[NativeTool] = (),
        answer_schema: Mapping[str, Any] | None = None,
    ) -> Reply:
        """Return the model's next message.

        Args:
            messages: The conversation.
            tools: What the model may call.
            native_tools: What it may use at its provider.
            answer_schema: What JSON is wanted; its words are then a JSON object, of whatever shape it was told.

        Raises:
            EngineError: The model could not be reached, refused, or answered nothing that can be used.
        """
        from pydantic_ai.direct import model_request

        with self._errors():
            async with self._models.opened() as model:
                exchange = Exchange(
                    model,
                    tools,
                    native_tools,
                    self._file_stores,
                    as_json=answer_schema is not None and self.answers_json,
                )
                while not exchange.complete:
                    response = await model_request(
                        model,
                        exchange.history(messages),
                        model_settings=self._settings,
                        model_request_parameters=exchange.parameters(),
                    )
                    exchange.take(response)
            return exchange.reply()

    async def astream(
        self, messages: Sequence[Message], tools: Toolset, *, native_tools: Sequence[NativeTool] = ()
    ) -> AsyncIterator[str | Reply]:
        """Yield the model's words as they come and, last, the whole Reply.

        Args:
            messages: The conversation.
            tools: What the model may call.
            native_tools: What it may use at its provider.

        Raises:
            EngineError: The model could not be reached, refused, broke off, or answered nothing that can be used.
        """
        from pydantic_ai.direct import model_request_stream

        with self._errors():
            async with self._models.opened() as model:
                exchange = Exchange(model, tools, native_tools, self._file_stores)
                while not exchange.complete:
                    async with model_request_stream(
                        model,
                        exchange.history(messages),
                        model_settings=self._settings,
                        model_request_parameters=exchange.parameters(),
                    ) as stream:
                        async for piece in exchange.words(stream):
                            yield piece
                        exchange.take(stream.get())
                yield exchange.reply()

    @contextmanager
    def _errors(self) -> Generator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001  # raised again, as what the protocol says
            text, clean = _redacted(f"{self._name}: {_said(error)}", self._secrets)
            text = text if len(text) <= _LONGEST_ERROR else f"{text[:_LONGEST_ERROR]} ..."
            # A traceback prints the cause too, so one that holds a secret is left behind.
            raise EngineError(text, retryable=_may_succeed_later(error)) from (error if clean else None)


# -- which model a name means


def _parsed(name: str, base_url: str | None) -> tuple[str, str]:
    """Return pydantic-ai's provider and the model's own name."""
    provider, colon, model_name = name.partition(":")
    provider = _PROVIDERS.get(provider, provider)
    if colon and model_name and _is_provider(provider):
        return provider, model_name
    if not colon and (found := _owner(name)):
        return found, name
    if base_url and name and not name.endswith(":"):
        return "openai-chat", name
    raise ValueError(
        f"unknown model {name!r}: write its provider before it, as in {_EXAMPLES}, "
        f"or give the base_url of a server of your own{_near(name)}"
    )


def _owner(name: str) -> str | None:
    for pattern, provider in _OWN_NAMES:
        if pattern.match(name):
            return provider
    owners = [provider for provider, _, model in _known() if model == name and not provider.startswith("gateway/")]
    return _PROVIDERS.get(owners[0], owners[0]) if owners else None


def _near(name: str) -> str:
    names = [f"{provider}:{model}" for provider, _, model in _known() if not provider.startswith("gateway/")]
    near = difflib.get_close_matches(name, [*names, *(known.partition(":")[2] for known in names)], n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _known() -> list[tuple[str, str, str]]:
    with _extras("openai"):
        from pydantic_ai.models import known_model_names
    return [name.partition(":") for name in known_model_names() if ":" in name]


def _is_provider(name: str) -> bool:
    with _extras(name):
        from pydantic_ai.providers import infer_provider_class
    try:
        infer_provider_class(name)
    except ValueError:
        return False
    except ImportError:  # a known one whose package is missing, which is told when it is built
        return True
    return True


# -- from a name to a model


def _built(provider: str, model_name: str, base_url: str | None, key: str | None) -> Model:
    with _extras(provider):
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import infer_model

        try:
            model = infer_model(f"{provider}:{model_name}", lambda name: _provider(name, base_url, key))
        except UserError as error:
            raise EngineError(_unusable(provider, model_name, error.message)) from None
    return _untransformed(model)


def _provider(name: str, base_url: str | None, key: str | None) -> Provider[Any]:
    from pydantic_ai.providers import infer_provider, infer_provider_class

    if base_url is not None and name in _OPENAI_APIS:
        from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

        return OpenAICompatibleProvider("openai-compatible", base_url=base_url, api_key=key or _NO_KEY)
    if base_url is None and key is None:
        return infer_provider(name)
    address = {} if base_url is None else {"base_url": base_url}
    make = cast("Callable[..., Provider[Any]]", infer_provider_class(name))
    try:
        return make(api_key=key or _NO_KEY, **address)
    except TypeError:
        raise ValueError(f"{name} takes no api_key or base_url here; give a pydantic-ai Model instead") from None


def _unusable(provider: str, model_name: str, reason: str) -> str:
    variables = re.findall(r"`([A-Z][A-Z0-9_]*_KEY)`", reason)
    if not variables:
        return f"{provider}:{model_name} cannot be used: {reason}"
    return f"{provider}:{model_name} needs an API key: set the environment variable {variables[0]} or pass api_key="


def _untransformed(model: Model) -> Model:
    """Return the model with pydantic-ai's schema transformers off, so that our dialect's schema is what is sent."""
    try:
        profile = model.profile
    except NotImplementedError:  # one that only passes on to others
        return model
    if profile.get("json_schema_transformer") is None:
        return model
    plain = copy.copy(model)
    try:
        plain.profile = {**profile, "json_schema_transformer": None}
    except AttributeError:  # a wrapper, whose profile is that of the model inside
        return model
    return plain


@contextmanager
def _extras(provider: str) -> Generator[None]:
    """Turn a missing package into the extra that brings it."""
    try:
        yield
    except ImportError as error:
        named = re.search(r"pydantic-ai-slim\[([\w-]+)\]", str(error))
        extra = named[1] if named else provider.partition("-")[0]
        if named and extra not in _EXTRAS:
            raise EngineError(f"{provider} models need a package: pip install 'pydantic-ai-slim[{extra}]'") from error
        wanted = extra if extra in _EXTRAS else "openai"
        raise MissingExtraError(wanted, f"LLMEngine for {provider} models") from error


def _check_model(model: object, base_url: str | None, key: str | None) -> None:
    with _extras("openai"):
        from pydantic_ai.models import Model
    if not isinstance(model, Model):
        raise TypeError(f"an LLMEngine takes a name such as {_EXAMPLES}, or a pydantic-ai Model, not {model!r}")
    if base_url is not None or key is not None:
        raise ValueError("a pydantic-ai Model has its own server and key; leave out base_url and api_key")


def _with_end(model: Model, settings: Mapping[str, Any]) -> Any:
    """Return the settings with an end to every request, unless the model already has one of its own."""
    own: Mapping[str, Any] = cast("Mapping[str, Any]", model.settings or {})
    return {**({} if "request_timeout" in own else {"request_timeout": MODEL_REQUEST_SECONDS}), **settings}


# -- connections


class _PerLoop:
    """A model with connections of its own for every event loop, since a connection belongs to the loop it opened on."""

    def __init__(self, make: Callable[[], Model]) -> None:
        self.first = make()
        self._make = make
        self._unused = [self.first]
        self._open: dict[AbstractEventLoop, tuple[Model, AsyncGenerator[None]]] = {}
        self._lock = threading.Lock()
        weakref.finalize(self, _leave, self._open).atexit = False

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Model]:
        loop = asyncio.get_running_loop()
        if loop not in self._open:
            await anext(self._add(loop))
        yield self._open[loop][0]

    def _add(self, loop: AbstractEventLoop) -> AsyncGenerator[None]:
        with self._lock:
            for gone in [known for known in self._open if known.is_closed()]:
                del self._open[gone]
            model = self._unused.pop() if self._unused else self._make()
            held = _held_open(model)
            self._open[loop] = model, held
        return held


async def _held_open(model: Model) -> AsyncGenerator[None]:
    """Keep the connections until the loop ends: a loop closes the generators begun on it before it stops."""
    async with model:
        yield


# An engine often goes with the last task of its loop, and a loop that ends cancels tasks, also one that closes.
_LINGER_SECONDS = 0.2
_left: dict[AsyncGenerator[None], AbstractEventLoop] = {}
_closing: set[asyncio.Task[None]] = set()


def _leave(opened: Mapping[AbstractEventLoop, tuple[Model, AsyncGenerator[None]]]) -> None:
    """Close the connections of an engine that is gone, on their loops; one that does not run closes them as it ends."""
    for held in [held for held, loop in _left.items() if loop.is_closed()]:
        del _left[held]
    for loop, (_, held) in opened.items():
        if not loop.is_closed():
            _left[held] = loop
        if loop.is_running():
            with suppress(RuntimeError):  # it closed just now
                loop.call_soon_threadsafe(loop.call_later, _LINGER_SECONDS, _close_soon, held)


def _close_soon(held: AsyncGenerator[None]) -> None:
    task = asyncio.ensure_future(_close(held))
    _closing.add(task)
    task.add_done_callback(_closing.discard)


async def _close(held: AsyncGenerator[None]) -> None:
    await held.aclose()
    _left.pop(held, None)


class _Given:
    """A model somebody else made; entered for each request, so that its connections are those of the running loop."""

    def __init__(self, model: Model) -> None:
        self.first = model

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Model]:
        async with self.first as model:
            yield model


# -- keys and errors


def _key(api_key: str | Secret | None) -> str | None:
    key = api_key.reveal() if isinstance(api_key, Secret) else api_key
    # A line end copied along makes an illegal header, and the error about it would quote the key.
    return (key or "").strip() or None


def _secrets(provider: str, base_url: str | None, key: str | None) -> tuple[str, ...]:
    variables = _KEY_VARIABLES.get(provider, (f"{provider.upper().replace('-', '_')}_API_KEY",))
    login = urlsplit(base_url).password if base_url else None
    found = (key, login, *(os.environ.get(variable) for variable in variables))
    return tuple(secret for secret in found if secret and len(secret) >= _SHORTEST_SECRET)


def _redacted(text: str, secrets: Sequence[str]) -> tuple[str, bool]:
    clean = text
    for secret in secrets:
        clean = clean.replace(secret, "***")
    return clean, clean == text


def _without_login(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _said(error: Exception) -> str:
    text = str(error)
    return text if text and isinstance(error, EngineError) else f"{type(error).__name__}: {text}"


def _may_succeed_later(error: Exception) -> bool:
    if isinstance(error, EngineError):
        return error.retryable
    from pydantic_ai import exceptions as known

    if isinstance(error, known.ModelQuotaExceededError):
        return False
    if isinstance(error, known.ModelHTTPError):
        return error.status_code in _PASSING_STATUS
    passing = (
        known.ModelRateLimitError,
        known.ModelUnavailableError,
        known.ModelServerError,
        known.ModelConnectionError,
        known.ModelRequestTimeout,
    )
    return isinstance(error, passing)
