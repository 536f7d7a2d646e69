"""How a model is shown tools and read for calls: by its provider, as XML in the prompt, or as a script it writes."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol
from uuid import uuid4

from pydantic_core import to_json

from toolcrib.formats import xml
from toolcrib.protocols import Engine, StreamingEngine
from toolcrib.sources.script import ScriptTool
from toolcrib.toolset import Toolset
from toolcrib.types import Message, Reply, ToolCall

if TYPE_CHECKING:
    from toolcrib.tools import Tool

__all__ = ["CALLING", "Calling", "PromptedEngine", "called"]

Calling = Literal["native", "xml", "script", "auto"]
CALLING: tuple[Calling, ...] = ("native", "xml", "script", "auto")


def called(engine: Engine, tools: Toolset, calling: Calling) -> tuple[Engine, Toolset]:
    """Return the engine and the tools that let a model call in a style.

    Args:
        engine: The model.
        tools: What it may call.
        calling: `native` leaves both as they are; `auto` is `xml` for an engine whose `calls_tools` is False,
            and `native` for every other.
    """
    if calling == "auto":
        calling = "native" if getattr(engine, "calls_tools", True) else "xml"
    if calling == "native" or not len(tools):
        return engine, tools
    if calling == "xml":
        return PromptedEngine(engine, _XML), tools
    scripts = tools.cached(("calling.script",), lambda: Toolset([ScriptTool(tools)], limits=tools.limits))
    return PromptedEngine(engine, _SCRIPT), scripts


class _Style(Protocol):
    """How tools stand in a prompt, and calls in a text."""

    @property
    def marks(self) -> tuple[str, ...]: ...

    def prompt(self, tools: Toolset) -> str: ...

    def calls(self, text: str, tools: Toolset) -> list[ToolCall]: ...

    def written(self, call: ToolCall) -> str: ...


class _Xml:
    marks = ("<tool_call",)

    def prompt(self, tools: Toolset) -> str:
        return xml.tools(tools)

    def calls(self, text: str, tools: Toolset) -> list[ToolCall]:
        return xml.calls(text, tools)

    def written(self, call: ToolCall) -> str:
        arguments = call.arguments if isinstance(call.arguments, str) else to_json(dict(call.arguments)).decode()
        return f'<tool_call>{{"name": {to_json(call.name).decode()}, "arguments": {arguments}}}</tool_call>'


class _Script:
    marks = ("```python", "```py\n")

    def prompt(self, tools: Toolset) -> str:
        return f"{_HOW}\n\n{next(iter(tools)).description}"

    def calls(self, text: str, tools: Toolset) -> list[ToolCall]:
        """Return the first script; what a model writes after it, it has imagined."""
        found = _BLOCK.search(_THOUGHT.sub("", text))
        return [ToolCall("", _name(tools), {"code": found[1]})] if found else []

    def written(self, call: ToolCall) -> str:
        code = call.arguments.get("code", "") if not isinstance(call.arguments, str) else call.arguments
        return f"```python\n{code}\n```"


_HOW = """\
To use the functions below, write one script in a block that begins with ```python, and stop there: what comes of it \
is told to you in a tool_response element. When you know the answer, say it without a block."""
_BLOCK = re.compile(r"```(?:python|py)[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", re.DOTALL)
_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_IMAGINED = re.compile(r"<tool_response[\s>]")
_XML, _SCRIPT = _Xml(), _Script()


def _name(tools: Toolset) -> str:
    first: Tool = next(iter(tools))
    return first.name


@dataclass(frozen=True)
class PromptedEngine:
    """An engine that shows tools in the system prompt and reads calls from the text; the model need not know of them.

    Args:
        engine: The model.
        style: How tools and calls are written.
    """

    engine: Engine
    style: _Style

    @property
    def model(self) -> str:
        """The model's name."""
        return self.engine.model

    async def acomplete(self, messages: Sequence[Message], tools: Toolset, **options: Any) -> Reply:
        """Return the model's next message, with the calls it wrote.

        Args:
            messages: The conversation.
            tools: What it may call.
            **options: What else the engine takes.

        Raises:
            EngineError: There is no answer.
        """
        return self._read(await self.engine.acomplete(self._plain(messages, tools), _NONE, **options), tools)

    async def astream(self, messages: Sequence[Message], tools: Toolset, **options: Any) -> AsyncIterator[str | Reply]:
        """Yield the words before the first call as they come and, last, the whole Reply.

        Args:
            messages: The conversation.
            tools: What it may call.
            **options: What else the engine takes.

        Raises:
            EngineError: There is no answer.
        """
        if not isinstance(self.engine, StreamingEngine):
            yield await self.acomplete(messages, tools, **options)
            return
        shown = _Shown(self.style.marks)
        pieces: Any = self.engine.astream(self._plain(messages, tools), _NONE, **options)
        async with aclosing(pieces):
            async for piece in pieces:
                if isinstance(piece, Reply):
                    reply = self._read(piece, tools)
                    if rest := "" if reply.calls else shown.rest():
                        yield rest
                    yield reply
                elif words := shown.more(piece):
                    yield words

    def _read(self, reply: Reply, tools: Toolset) -> Reply:
        imagined = _IMAGINED.search(reply.text)
        text = (reply.text[: imagined.start()].strip() if imagined else "") or reply.text
        calls = tuple(
            ToolCall(f"call_{uuid4().hex[:12]}", call.name, call.arguments) for call in self.style.calls(text, tools)
        )
        return Reply(text, (*reply.calls, *calls), reply.usage, reply.model, None if imagined else reply.native)

    def _plain(self, messages: Sequence[Message], tools: Toolset) -> list[Message]:
        """Return the conversation as one of mere words, the tools in its system message."""
        system = "\n\n".join(message.content for message in messages if message.role == "system")
        plain = [Message("system", f"{system}\n\n{self.style.prompt(tools)}".strip())]
        for message in messages:
            if message.role == "tool" and message.result is not None:
                _add_answer(plain, xml.results([message.result])[0])
            elif message.role == "assistant":
                plain.append(Message("assistant", self._written(message, tools), native=message.native))
            elif message.role != "system":
                plain.append(message)
        return plain

    def _written(self, message: Message, tools: Toolset) -> str:
        if not message.calls or self.style.calls(message.content, tools):
            return message.content
        return "\n".join([*([message.content] if message.content else []), *map(self.style.written, message.calls)])


_NONE = Toolset(())


def _add_answer(plain: list[Message], answer: str) -> None:
    """Add an answer; those of one turn are one message."""
    if plain[-1].role == "user" and plain[-1].content.startswith("<tool_response"):
        answer = f"{plain.pop().content}\n{answer}"
    plain.append(Message("user", answer))


class _Shown:
    """The words of a stream that may be shown: all before the first mark of a call.

    Args:
        marks: What calls begin with.
    """

    def __init__(self, marks: tuple[str, ...]) -> None:
        self._marks = marks
        self._held = ""
        self._over = False

    def more(self, piece: str) -> str:
        """Return what can be shown now that a piece has come."""
        if self._over:
            return ""
        self._held += piece
        found = [at for mark in self._marks if (at := self._held.find(mark)) >= 0]
        self._over = bool(found)
        end = min(found) if found else len(self._held) - self._begun()
        shown, self._held = self._held[:end], self._held[end:]
        return shown

    def rest(self) -> str:
        """Return what was held back and turned out to be no call."""
        return self._held

    def _begun(self) -> int:
        """Return how many of the last characters may be the beginning of a mark."""
        lengths = range(max(map(len, self._marks)), 0, -1)
        return next((n for n in lengths if any(m.startswith(self._held[-n:]) for m in self._marks) and self._held), 0)
