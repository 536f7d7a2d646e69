"""Every way to extend toolcrib, on one page. Nothing here is subclassed: any object of the shape will do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from toolcrib.types import Message, Reply, ToolCall, ToolResult

if TYPE_CHECKING:
    from toolcrib.sources.gateway import ExternalToolSpec
    from toolcrib.tools import Tool
    from toolcrib.toolset import Toolset

__all__ = ["ArtifactStore", "Engine", "Executor", "ExternalToolClient", "Format", "StreamingEngine", "ToolProvider"]


@runtime_checkable
class ToolProvider(Protocol):
    """Whatever has tools: a source, a kit, a toolset."""

    def as_tools(self) -> Iterable[Tool]:
        """Return the tools as they are now."""
        ...


@runtime_checkable
class ExternalToolClient(Protocol):
    """A catalogue of tools that run elsewhere; `ExternalToolProvider` makes Tools of them.

    Either method may be async. `list_tools` may be a generator. An `async acall_tool`, of the same shape
    as `call_tool`, is preferred when there is one. What a call returns may be an iterator, sync or async:
    each value is then told as progress, and all of them together are the result. A method with a keyword
    parameter `context` is given the ToolContext of the call, with the `deps` of its run.
    """

    def list_tools(self) -> Iterable[ExternalToolSpec | Mapping[str, Any]]:
        """Return the tools as specs, or as mappings that `ExternalToolSpec.from_mapping` reads."""
        ...

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return the result of one call as JSON data; raises ExternalToolError when there is none."""
        ...


class Format(Protocol):
    """How one provider is shown tools, asks for calls and takes results; a module will do."""

    def tools(self, toolset: Toolset) -> Any:
        """Return the definitions in the provider's dialect, cached on the toolset."""
        ...

    def calls(self, reply: Any, toolset: Toolset) -> list[ToolCall]:
        """Return what a reply asks for, by canonical names; the reply is the SDK's object or a dict."""
        ...

    def results(self, results: Sequence[ToolResult]) -> list[Any]:
        """Return the answers as the provider's messages."""
        ...


class Engine(Protocol):
    """A model: reads a conversation and the tools it may call, and replies.

    One whose provider runs tools of its own says so in a `native_tools`, a frozenset of NativeTool. Those
    an agent wants of them are then passed to `acomplete` and `astream` as the keyword `native_tools`, a
    sequence; there is no such keyword when there are none. One whose words can be held to JSON has a true
    `answers_json`, and is passed the keyword `answer_schema`, a JSON Schema, where JSON is wanted. One of a model
    without tool calling says so with a `calls_tools` that is False.
    """

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    async def acomplete(self, messages: Sequence[Message], tools: Toolset) -> Reply:
        """Return the model's next message; raises EngineError when there is none."""
        ...


@runtime_checkable
class StreamingEngine(Engine, Protocol):
    """An engine that can also say its words as they come."""

    def astream(self, messages: Sequence[Message], tools: Toolset) -> AsyncIterator[str | Reply]:
        """Yield pieces of text and, last, the whole Reply."""
        ...


class Executor(Protocol):
    """Whatever runs a validated call, and any concern around it: approval, retry, cache, trace.

    One that wraps another holds it and awaits its `run`. The innermost one keeps the deadline of
    `call.context`.
    """

    async def run(self, tool: Tool, arguments: Mapping[str, Any], call: ToolCall) -> Any:
        """Return what the tool returned, or raise what it raised."""
        ...


class ArtifactStore(Protocol):
    """Where schemas that a model wrote are kept between processes; the methods may be async.

    Two more methods are used where there are any. `claim(key, seconds) -> bool` is true for one caller at a
    time, who then writes what belongs to the key, and expires after so many seconds; `release(key)` ends
    the claim earlier. With them, processes that start together ask a model once and not once each.
    """

    def get(self, key: str) -> Any:
        """Return the JSON value kept under a key, or None."""
        ...

    def put(self, key: str, value: Any) -> Any:
        """Keep a JSON value under a key, in place of any other."""
        ...
