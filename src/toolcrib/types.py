"""The plain values that travel: what a tool takes, what a model asked for, what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Generic, Literal, TypeAlias, get_args

from pydantic_core import to_json, to_jsonable_python
from typing_extensions import TypeVar

from toolcrib._json import first_unsafe
from toolcrib._secrets import Secret, any_secrets, without_secrets
from toolcrib._xml import Element
from toolcrib.errors import NotSerializableError

__all__ = [
    "Effect",
    "Envelope",
    "Kind",
    "Message",
    "NativeTool",
    "Reply",
    "Role",
    "RunError",
    "RunMetadata",
    "Secret",
    "ToolCall",
    "ToolContext",
    "ToolParameter",
    "ToolResponse",
    "ToolResult",
    "Usage",
]

Effect: TypeAlias = Literal["read", "idempotent", "write", "destructive"]
Kind: TypeAlias = Literal["ok", "not_found", "invalid_arguments", "failed", "timed_out", "denied", "cancelled"]
Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
_Source: TypeAlias = Literal["context", "history", "all"]

_Deps = TypeVar("_Deps", default=Any)


def _json_text(value: Any, path: str) -> str:
    if bad := first_unsafe(value, path):
        raise NotSerializableError(*bad)
    return to_json(value).decode()


def _text(value: Any, path: str) -> str:
    return value if isinstance(value, str) else _json_text(value, path)


# -- what a tool takes


@dataclass(frozen=True, slots=True)
class ToolParameter:
    """One parameter of a tool, as its author describes it.

    Args:
        name: The parameter's real name.
        type: Its type as shown to the model, such as `int` or `list[str]`.
        description: What it means.
        default: The value used when the model leaves it out.
        required: Whether the model must give it.
        options: The only values allowed.
        examples: Values that would be right.
        source: Where the model should take the value from: `context`, `history` or `all`.
        display_name: What people are shown in place of the name.

    Raises:
        ValueError: `source` is none of the three.
    """

    name: str
    type: str = "any"
    description: str | None = None
    default: Any = None
    required: bool = False
    options: list[Any] | None = None
    examples: list[Any] | None = None
    source: _Source = "all"
    display_name: str | None = None

    def __post_init__(self) -> None:
        if self.source not in get_args(_Source):
            raise ValueError(f"source of parameter {self.name!r} must be context, history or all, not {self.source!r}")

    def build_prompt(self) -> str:
        """Return the parameter as an XML element for a system prompt."""
        return self.element().render()

    def element(self) -> Element:
        """Return the parameter as an XML element that can stand in a larger one."""
        children = [Element(tag, content=_text(value, tag)) for tag, value in self._facts() if value is not None]
        if self.examples:
            examples = [Element("example", content=_text(value, "examples")) for value in self.examples]
            children.append(Element("examples", content=examples))
        return Element("parameter", {"name": self.name, "type": self.type, "required": str(self.required)}, children)

    def _facts(self) -> tuple[tuple[str, Any], ...]:
        return (
            ("description", self.description),
            ("default", self.default),
            ("options", self.options),
            ("source", None if self.source == "all" else self.source),
            ("display_name", self.display_name),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the parameter as plain JSON data.

        Raises:
            NotSerializableError: A default, option or example is not JSON data; the message has its path.
        """
        return _plain({name: getattr(self, name) for name in self.__dataclass_fields__})


# -- what a model asks and what comes of it


@dataclass(slots=True)
class ToolCall:
    """What a model asked for: not validated. Treat it as a value; frozen, it would cost each call three times as much.

    Args:
        id: The provider's id of the call; every answer carries it.
        name: The tool's canonical name.
        arguments: Raw JSON text, or a mapping already parsed by an SDK.
        context: What is known about the run while the call is being answered; set by dispatch.
    """

    id: str
    name: str
    arguments: str | Mapping[str, Any] = "{}"
    context: ToolContext[Any] | None = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the context behind when the call goes to another process: what it leads to lives in this one."""
        return ToolCall, (self.id, self.name, self.arguments)


@dataclass(frozen=True, slots=True)
class ToolResponse:
    """What came of a call, in the author's words; a tool may return one.

    Args:
        success: Whether the tool did what was asked.
        message: What to tell the model; required when `success` is False.
        data: The payload, plain JSON data.

    Raises:
        ValueError: A failure without a message.
    """

    success: bool
    message: str | None = None
    data: Any = None

    def __post_init__(self) -> None:
        if not self.success and not self.message:
            raise ValueError("a ToolResponse with success=False needs a message")

    def build_prompt(self) -> str:
        """Return the response as an XML element for a prompt; `data` is JSON.

        Raises:
            NotSerializableError: `data` is not JSON data; the message has the offender's path.
        """
        children: list[Element] = []
        if self.message is not None:
            children.append(Element("message", content=self.message))
        if self.data is not None:
            children.append(Element("data", content=_json_text(self.data, "data")))
        return Element("tool_response", {"success": str(self.success)}, children).render()

    def to_dict(self) -> dict[str, Any]:
        """Return the response as plain JSON data.

        Raises:
            NotSerializableError: `data` is not JSON data; the message has the offender's path.
        """
        return _plain({"success": self.success, "message": self.message, "data": self.data})


def _plain(members: dict[str, Any]) -> dict[str, Any]:
    for name, value in members.items():
        if bad := first_unsafe(value, name):
            raise NotSerializableError(*bad)
    return members


class ToolResult:
    """The one answer to one call.

    Args:
        call: The call it answers.
        response: Success, message and data; made from the rest when it is None.
        kind: `ok`, or what went wrong.
        value: What the function returned, unchanged; None when it did not return.
        text: What the model reads.
        parts: Images and files beside the text, as MCP content blocks.
        duration: Seconds from dispatch to answer.
    """

    __slots__ = ("_response", "call", "duration", "kind", "parts", "text", "value")

    def __init__(
        self,
        call: ToolCall,
        response: ToolResponse | None = None,
        kind: Kind = "ok",
        value: Any = None,
        text: str = "",
        parts: tuple[dict[str, Any], ...] = (),
        duration: float = 0.0,
    ) -> None:
        self.call = call
        self.kind: Kind = kind
        self.value = value
        self.text = text
        self.parts = parts
        self.duration = duration
        self._response = response

    @property
    def ok(self) -> bool:
        """Whether the tool did what was asked."""
        return self.kind == "ok"

    @property
    def response(self) -> ToolResponse:
        """Success, message and data, as the author put it, or else as dispatch found it."""
        if self._response is None:
            self._response = self._made_response()
        return self._response

    def _made_response(self) -> ToolResponse:
        if not self.ok:
            return ToolResponse(success=False, message=self.text or self.kind)
        if isinstance(self.value, (str, bytes, bytearray, memoryview)) or self.parts:
            return ToolResponse(success=True, data=self.text)
        try:
            data = to_jsonable_python(self.value, inf_nan_mode="strings")
        except (ValueError, RecursionError):
            data = self.text
        if first_unsafe(data, "data"):
            data = self.text
        return ToolResponse(success=True, data=without_secrets(data) if any_secrets() else data)

    def __repr__(self) -> str:
        """Return what was called and how it ended; not the values, which may be large or private."""
        return f"<ToolResult {self.call.name!r} {self.call.id!r} {self.kind} in {self.duration * 1000:.1f} ms>"


@dataclass(slots=True)
class ToolContext(Generic[_Deps]):
    """What a tool may know about the call it is answering; injected, never shown to the model.

    Args:
        call_id: The provider's id of the call.
        run_id: The agent run it belongs to, or an empty string outside one.
        deadline: The `time.monotonic()` moment at which the call is given up; None for never, or not yet begun.
        deps: Whatever the caller of the run passed as `deps`.
        on_progress: Who hears of progress: `(call_id, progress, total, message)`.
        timeout: Seconds the call may run; its deadline is set when it begins.
        line: The limits, listener and executor of the line the call came down, for an executor that makes
            calls of its own; None where the tool names no executor.
    """

    call_id: str = ""
    run_id: str = ""
    deadline: float | None = None
    deps: _Deps = None  # type: ignore[assignment]  # without deps there is nothing to inject
    on_progress: Callable[[str, float, float | None, str | None], None] | None = None
    timeout: float | None = None
    line: Any = field(default=None, compare=False, repr=False)

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report how far the call has come; safe from any thread, and free when nobody listens.

        Args:
            progress: How much is done, in any unit that only grows.
            total: How much there is in all, in the same unit, if known.
            message: A line for people.
        """
        if self.on_progress is not None:
            self.on_progress(self.call_id, progress, total, message)

    @property
    def remaining(self) -> float | None:
        """Seconds until the deadline, never below zero; None when there is none."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())


# -- what a model is told and says


class NativeTool(StrEnum):
    """A tool that runs at the model's provider, not here; which providers have it is in the documentation."""

    WEB_SEARCH = "web_search"
    WEB_FETCH = "web_fetch"
    CODE_EXECUTION = "code_execution"
    COMPUTER_USE = "computer_use"
    IMAGE_GENERATION = "image_generation"
    FILE_SEARCH = "file_search"
    MAPS = "maps"


@dataclass(frozen=True, slots=True)
class Usage:
    """What a model call took.

    Args:
        input_tokens: Tokens the model read.
        output_tokens: Tokens it wrote.
        cost_usd: The price in US dollars; None when it is not known.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0

    def __add__(self, other: Usage) -> Usage:
        """Return both together; an unknown price makes the sum unknown."""
        unknown = self.cost_usd is None or other.cost_usd is None
        cost = None if unknown else (self.cost_usd or 0.0) + (other.cost_usd or 0.0)
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens, cost)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    Args:
        role: Who speaks; `tool` messages answer one call each.
        content: The text.
        calls: The calls an assistant message asks for.
        result: The answer a `tool` message carries.
        native: The engine's own object for this message, which it gets back unchanged.
    """

    role: Role
    content: str
    calls: tuple[ToolCall, ...] = ()
    result: ToolResult | None = None
    native: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered.

    Args:
        text: Its words; may be empty when it only calls.
        calls: What it wants called, in its order, by canonical names.
        usage: Tokens and price.
        model: The model that answered.
        native: The engine's own object, kept for the next turn.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    model: str = ""
    native: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RunMetadata:
    """Where a run's outcome came from and what it took, nested runs included.

    Args:
        run_id: The run.
        agent: The agent's name.
        model: The model that answered.
        turns: How often the model was asked, nested runs not counted.
        usage: Tokens and price of this run and every run nested in it.
        latency_ms: Milliseconds from start to outcome.
        nested: The metadata of the agent runs this run called as tools, of its judge's, and of the answers
            that were rejected before this one.
        verified: Whether a judge approved of the answer; None when none was asked.
        verdicts: What the judge said of each answer, the last one's last.
    """

    run_id: str = ""
    agent: str = ""
    model: str = ""
    turns: int = 0
    usage: Usage = Usage()
    latency_ms: float = 0.0
    nested: tuple[RunMetadata, ...] = ()
    verified: bool | None = None
    verdicts: tuple[str, ...] = ()

    @property
    def cost_usd(self) -> float | None:
        """The price of the run in US dollars, nested runs included; None when it is not known."""
        return self.usage.cost_usd

    @property
    def input_tokens(self) -> int:
        """Tokens the models read."""
        return self.usage.input_tokens

    @property
    def output_tokens(self) -> int:
        """Tokens the models wrote."""
        return self.usage.output_tokens


@dataclass(frozen=True, slots=True)
class RunError:
    """Why a run did not end well.

    Args:
        type: The kind of error, such as `EngineError` or `max_turns`.
        message: What happened.
        retryable: Whether the same run may succeed later.
    """

    type: str
    message: str
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class Envelope:
    """The outcome of an agent run: an answer, an error, or calls that wait for their results.

    Args:
        payload: The answer.
        metadata: Where it came from and what it took.
        error: Why the run stopped early, or None.
        messages: The whole conversation of the run, also when it failed.
        pending: Calls of declared tools, with validated arguments, that wait for `agent.resume`.
    """

    payload: Any
    metadata: RunMetadata = RunMetadata()
    error: RunError | None = None
    messages: tuple[Message, ...] = field(default=(), repr=False)
    pending: tuple[ToolCall, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the run ended well; one that waits for results has not ended, and has no error either."""
        return self.error is None and not self.pending

    def text(self) -> str:
        """Return the answer as text."""
        if isinstance(self.payload, str):
            return self.payload
        if self.payload is None:
            return ""
        return to_json(self.payload, fallback=lambda value: type(value).__name__).decode()

    def replace(self, **changes: Any) -> Envelope:
        """Return the same outcome but for the changes."""
        return replace(self, **changes)
