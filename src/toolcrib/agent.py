"""An agent: an engine, tools, and the loop between them."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, contextmanager
from functools import partial
from inspect import iscoroutinefunction
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

from toolcrib._pending import Results, continued, unanswered
from toolcrib._portal import portal
from toolcrib._steps import steps
from toolcrib._verdicts import check_judge, judged
from toolcrib.engines._native import offered, wanted
from toolcrib.engines.calling import CALLING, Calling, called
from toolcrib.engines.llm import LLMEngine
from toolcrib.engines.local import LocalEngine
from toolcrib.errors import warn
from toolcrib.events import Event, RunFinished
from toolcrib.loop import run_turns
from toolcrib.tools import Tool
from toolcrib.toolset import Toolset
from toolcrib.types import Envelope, Message, NativeTool, ToolContext

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterable

    from toolcrib.limits import Limits
    from toolcrib.protocols import Engine, Executor

__all__ = ["Agent"]

_TASK = {
    "type": "object",
    "properties": {"task": {"type": "string", "description": "The task, in full: nothing else is passed on."}},
    "required": ["task"],
}


class Agent:
    """A model with tools, which works on a task until it has an answer.

    `run`, `chat` and `stream` are for ordinary code and work inside a running event loop too, which they
    block; `arun`, `achat` and `astream` are for async code and run on its own loop. One agent may run
    any number of tasks at the same time; a conversation is one turn at a time.

    Args:
        engine: The model: an object with `acomplete`, or a name, such as `local` or
            `"openai:gpt-5.4-mini"`.
        tools: Functions, Tools, other agents, providers, skills and lists of these, or a Toolset.
        name: What the agent is called, also as a tool of another agent.
        description: What it is good for, as told to an agent that has it as a tool.
        system: The system message; what skills among the tools say is added to it.
        limits: Bounds of its runs and their calls.
        executor: What runs the calls.
        on_event: Called with every event of every run, on the thread of that run; it must not block.
        async_tools: `"run"`, or `"raise"` to refuse the author's own `async def` functions on `run`,
            `chat` and `stream`: a ValueError when the model calls one. Tools of a source and agents
            as tools are not meant.
        calling: How the model calls: `"native"` through its provider; `"xml"` and `"script"` for a model without tool
            calling, shown the tools in the prompt and read for calls, or for one script that makes them (the
            `script` extra); `"auto"`, `"xml"` for an engine with `calls_tools = False` and native for every other.
        native_tools: Tools of the provider that the model may use, as `NativeTool` or its value, such as
            `"web_search"`. They run there, cost what the provider says, and are no tools of the agent: no
            executor, approval or limit of it sees them. What the engine does not offer is left out, with a warning.
        allow_dangerous_native_tools: Whether `native_tools` may have code execution and computer use.

    Raises:
        ValueError: `async_tools` or `calling` is unknown; the name cannot be a tool's; tools collide under a strict
            policy; a native tool is unknown, or dangerous and not allowed.
        EngineError: The model of that name needs an API key, and there is none.
        TypeError: The engine is none, `on_event` cannot be called as it must, or an entry of `tools` is no tool.
    """

    def __init__(
        self,
        engine: Engine | str,
        tools: Any = (),
        *,
        name: str = "agent",
        description: str = "",
        system: str = "",
        limits: Limits | None = None,
        executor: Executor | None = None,
        on_event: Callable[[Event], object] | None = None,
        async_tools: Literal["run", "raise"] = "run",
        calling: Calling = "native",
        native_tools: Iterable[NativeTool | str] = (),
        allow_dangerous_native_tools: bool = False,
    ) -> None:
        if async_tools not in ("run", "raise"):
            raise ValueError(f'async_tools must be "run" or "raise", not {async_tools!r}')
        if calling not in CALLING:
            raise ValueError(f"calling must be one of {', '.join(CALLING)}, not {calling!r}")
        if on_event is not None and (not callable(on_event) or iscoroutinefunction(on_event)):
            raise TypeError("on_event must be a plain function that takes an event")
        self.engine = _engine(engine)
        self.name = name
        self.description = description
        self.system = system
        self.limits = limits
        self.executor = executor
        self.on_event = on_event
        self.async_tools = async_tools
        self.calling: Calling = calling
        self._native_tools = wanted(native_tools, allow_dangerous=allow_dangerous_native_tools)
        self._offered = self.engine, offered(self.engine, self._native_tools)
        self._warned = False
        self._messages: tuple[Message, ...] = ()
        self._chatting = Lock()
        self.as_tool()  # refuses a name that cannot be a tool's
        self.tools = tools

    def __repr__(self) -> str:
        return f"Agent({self.name!r}, engine={self.engine.model!r}, tools={len(self._tools)})"

    # -- tools

    @property
    def tools(self) -> list[Any]:
        """The entries as given; a change is seen by the next run, never by one under way."""
        return self._tools

    @tools.setter
    def tools(self, entries: Any) -> None:
        self._normal = _normalised(entries)
        self._tools = list(self._normal[0])

    def _unchanged(self) -> bool:
        known = self._normal[0]
        return len(self._tools) == len(known) and all(new is old for new, old in zip(self._tools, known, strict=False))

    def _chosen(self, tools: Any) -> Toolset:
        if tools is not None:
            return _normalised(tools)[1]
        if self._unchanged():
            return self._normal[1]
        normal = self._normal = _normalised(tuple(self._tools))
        return normal[1]

    async def _achosen(self, tools: Any) -> Toolset:
        if tools is None and self._unchanged():
            return self._normal[1]
        # a provider may have to ask its server what it has, and that must not block the loop
        return await asyncio.to_thread(self._chosen, tools)

    @property
    def native_tools(self) -> tuple[NativeTool, ...]:
        """The provider's tools the agent was given, offered by its engine or not."""
        return self._native_tools

    def _native(self) -> tuple[NativeTool, ...]:
        if self._offered[0] is not self.engine:  # which may be set
            self._offered = self.engine, offered(self.engine, self._native_tools)
        return self._offered[1]

    def as_tool(
        self,
        name: str | None = None,
        description: str | None = None,
        *,
        verify: Callable[[str], Any] | None = None,
        max_verify: int = 3,
    ) -> Tool:
        """Return the agent as a tool that takes a task and gives an Envelope.

        The tool's runs have the `deps` of the run that calls it, and count in that run's metadata.

        With a judge, each answer is approved or goes back to this agent with the judge's words. The
        Envelope's metadata says whether the last answer was approved (`verified`) and what was said of
        each (`verdicts`); the model that called the tool reads that an answer is unverified. One deadline,
        that of the call, is for all of it.

        Args:
            name: The tool's name; the agent's when None.
            description: The tool's description; the agent's when None.
            verify: The judge: an agent, or a function of the answer's text, sync or async. It approves
                with True or with words that begin with approve, accept, ok, yes or pass; everything
                else rejects, an exception too.
            max_verify: The answers there may be, the first included.

        Raises:
            ValueError: `max_verify` is less than 1.
            TypeError: `verify` is neither an agent nor a function.
        """
        check_judge(verify, max_verify)

        async def take_on(task: str, context: ToolContext[Any]) -> Envelope:
            attempt = partial(self._attempt, context.deps)
            if verify is None:
                return await attempt(task)
            return await judged(attempt, task, verify, max_verify, context.deps)

        described = description or self.description or f"Hand a task to {self.name}."
        return Tool.from_schema(name or self.name, described, _TASK, take_on, returns_envelope=True)

    async def _attempt(self, deps: Any, prompt: str, history: tuple[Message, ...] = ()) -> Envelope:
        return await _outcome(self._turns(prompt, await self._achosen(None), deps, history=history))

    # -- one task

    def run(self, prompt: str, *, tools: Any = None, deps: Any = None) -> Envelope:
        """Run one task and return its outcome.

        Async tools run on a background loop: one that needs something of the caller's own loop belongs
        to `arun`.

        Args:
            prompt: The task.
            tools: The tools of this run alone; none with `[]`, the agent's own with None.
            deps: What tools find in their `ToolContext`.

        Raises:
            TypeError: The prompt is not text, or an entry of `tools` is no tool.
            ValueError: The model called an `async def` function and `async_tools` is `"raise"`.
        """
        return portal().call(_outcome, self._turns(prompt, self._chosen(tools), deps, sync=True))

    __call__ = run

    async def arun(self, prompt: str, *, tools: Any = None, deps: Any = None) -> Envelope:
        """Run one task and return its outcome.

        Args:
            prompt: The task.
            tools: The tools of this run alone; none with `[]`, the agent's own with None.
            deps: What tools find in their `ToolContext`.

        Raises:
            TypeError: The prompt is not text, or an entry of `tools` is no tool.
        """
        return await _outcome(self._turns(prompt, await self._achosen(tools), deps))

    # -- a run that waits

    def resume(self, envelope: Envelope, results: Results, *, tools: Any = None, deps: Any = None) -> Envelope:
        """Go on with a run whose outcome has pending calls, and return its next outcome.

        The run is the same one: its turns, costs and time go on from where they were. When it is the
        agent's own latest turn of `chat`, the conversation goes on with it.

        Args:
            envelope: The outcome with the pending calls, of this agent or of another.
            results: What came of them: a mapping of call ids to values (a text, a ToolResponse, anything
                a tool may return), or ToolResults.
            tools: The tools of the rest of the run; none with `[]`, the agent's own with None.
            deps: What tools find in their `ToolContext`.

        Raises:
            TypeError: The results are neither, or an entry of `tools` is no tool.
            ValueError: Nothing is pending, or the results are not one for each pending call; or the model
                called an `async def` function and `async_tools` is `"raise"`.
            RuntimeError: Another turn of the conversation is under way.
        """
        turns = self._resumed(envelope, results, self._chosen(tools), deps, sync=True)
        with self._conversation_of(envelope) as keep:
            return keep(portal().call(_outcome, turns))

    async def aresume(self, envelope: Envelope, results: Results, *, tools: Any = None, deps: Any = None) -> Envelope:
        """Go on with a run whose outcome has pending calls, and return its next outcome; see `resume`.

        Args:
            envelope: The outcome with the pending calls, of this agent or of another.
            results: What came of them: a mapping of call ids to values, or ToolResults.
            tools: The tools of the rest of the run; none with `[]`, the agent's own with None.
            deps: What tools find in their `ToolContext`.

        Raises:
            TypeError: The results are neither, or an entry of `tools` is no tool.
            ValueError: Nothing is pending, or the results are not one for each pending call.
            RuntimeError: Another turn of the conversation is under way.
        """
        turns = self._resumed(envelope, results, await self._achosen(tools), deps)
        with self._conversation_of(envelope) as keep:
            return keep(await _outcome(turns))

    @contextmanager
    def _conversation_of(self, envelope: Envelope) -> Generator[Callable[[Envelope], Envelope]]:
        """Hold the conversation if the envelope is its latest turn, and give what keeps the next."""
        if envelope.messages is not self._messages:
            yield lambda outcome: outcome
            return
        with self._conversation():
            yield self._keep

    def _keep(self, outcome: Envelope) -> Envelope:
        self._messages = outcome.messages
        return outcome

    # -- a conversation

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation of `chat` and `achat` so far, system message first; empty before the first turn."""
        return self._messages

    def reset(self) -> None:
        """Forget the conversation.

        Raises:
            RuntimeError: A turn of it is under way.
        """
        with self._conversation():
            self._messages = ()

    def chat(self, prompt: str, *, tools: Any = None, deps: Any = None) -> Envelope:
        """Take the next turn of the conversation and return its outcome.

        A turn that ends in an error is kept as far as it went; one that is cancelled is forgotten.

        Args:
            prompt: What to say.
            tools: The tools of this turn alone; none with `[]`, the agent's own with None.
            deps: What tools find in their `ToolContext`.

        Raises:
            TypeError: The prompt is not text, or an entry of `tools` is no tool.
            ValueError: The model called an `async def` function and `async_tools` is `"raise"`.
            RuntimeError: Another turn is under way, or the last one waits for results.
        """
        with self._conversation():
            turns = self._turns(prompt, self._chosen(tools), deps, history=self._history(), sync=True)
            return self._keep(portal().call(_outcome, turns))

    async def achat(self, prompt: str, *, tools: Any = None, deps: Any = None) -> Envelope:
        """Take the next turn of the conversation and return its outcome.

        A turn that ends in an error is kept as far as it went; one that is cancelled is forgotten.

        Args:
            prompt: What to say.
            tools: The tools of this turn alone; none with `[]`, the agent's own with None.
            deps: What tools find in their `ToolContext`.

        Raises:
            TypeError: The prompt is not text, or an entry of `tools` is no tool.
            RuntimeError: Another turn is under way, or the last one waits for results.
        """
        with self._conversation():
            turns = self._turns(prompt, await self._achosen(tools), deps, history=self._history())
            return self._keep(await _outcome(turns))

    def _history(self) -> tuple[Message, ...]:
        if waiting := unanswered(self._messages):
            names = ", ".join(call.name for call in waiting)
            raise RuntimeError(
                f"the last turn of {self.name!r} waits for the results of {names}: resume its envelope, or reset()"
            )
        return self._messages

    @contextmanager
    def _conversation(self) -> Generator[None]:
        if not self._chatting.acquire(blocking=False):
            raise RuntimeError(
                f"{self.name!r} is in the middle of a chat turn: wait for it, or use run/arun for independent tasks"
            )
        try:
            yield
        finally:
            self._chatting.release()

    # -- events

    def stream(self, prompt: str, *, tools: Any = None, deps: Any = None) -> Generator[Event, None, None]:
        """Run one task and yield its events as they happen; the last is `RunFinished` with the outcome.

        Leaving the loop early cancels the run.

        Args:
            prompt: The task.
            tools: The tools of this run alone; none with `[]`, the agent's own with None.
            deps: What tools find in their `ToolContext`.

        Raises:
            TypeError: The prompt is not text, or an entry of `tools` is no tool.
            ValueError: The model called an `async def` function and `async_tools` is `"raise"`.
        """
        return steps(self._turns(prompt, self._chosen(tools), deps, stream=True, sync=True))

    async def astream(self, prompt: str, *, tools: Any = None, deps: Any = None) -> AsyncGenerator[Event, None]:
        """Run one task and yield its events as they happen; the last is `RunFinished` with the outcome.

        Leaving the loop early cancels the run; `contextlib.aclosing` waits until it is gone.

        Args:
            prompt: The task.
            tools: The tools of this run alone; none with `[]`, the agent's own with None.
            deps: What tools find in their `ToolContext`.

        Raises:
            TypeError: The prompt is not text, or an entry of `tools` is no tool.
        """
        async with aclosing(self._turns(prompt, await self._achosen(tools), deps, stream=True)) as events:
            async for event in events:
                yield event

    # -- the one way into the loop

    def _turns(
        self,
        prompt: str,
        toolset: Toolset,
        deps: Any,
        *,
        history: tuple[Message, ...] = (),
        stream: bool = False,
        sync: bool = False,
    ) -> AsyncGenerator[Event, None]:
        if not isinstance(prompt, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may not type-check
            raise TypeError(f"a prompt is text, not {type(prompt).__name__}")
        said = [text for text in (self.system, *toolset.instructions) if text]
        system = (Message("system", "\n\n".join(said)),) if said else ()
        so_far = tuple(message for message in history if message.role != "system")
        return self._run_turns(prompt, toolset, deps, sync=sync, history=(*system, *so_far), stream=stream)

    def _resumed(
        self, envelope: Envelope, results: Results, toolset: Toolset, deps: Any, *, sync: bool = False
    ) -> AsyncGenerator[Event, None]:
        messages, answers = continued(envelope, results, self.limits or toolset.limits)
        going_on = {"history": messages, "results": answers, "before": envelope.metadata}
        return self._run_turns(None, toolset, deps, sync=sync, **going_on)

    def _run_turns(
        self, prompt: str | None, toolset: Toolset, deps: Any, *, sync: bool, **options: Any
    ) -> AsyncGenerator[Event, None]:
        engine, toolset = called(self.engine, toolset, self.calling)
        return self._heard(
            run_turns(
                engine,
                toolset,
                prompt,
                agent=self.name,
                limits=self.limits,
                executor=self.executor,
                deps=deps,
                check=_refuse_async if sync and self.async_tools == "raise" else None,
                native_tools=self._native(),
                **options,
            )
        )

    async def _heard(self, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
        async with aclosing(events):
            async for event in events:
                self._tell(event)
                yield event

    def _tell(self, event: Event) -> None:
        if self.on_event is None:
            return
        try:
            self.on_event(event)
        except Exception as error:  # noqa: BLE001  # a listener must not sink the run
            if not self._warned:
                self._warned = True
                warn(f"on_event of agent {self.name!r} raised {type(error).__name__}: {error}; the run goes on")


def _engine(engine: Engine | str) -> Engine:
    if isinstance(engine, str):
        return LocalEngine(engine) if engine.partition(":")[0] == "local" else LLMEngine(engine)
    if not callable(getattr(engine, "acomplete", None)):
        raise TypeError(f"engine must have acomplete(messages, tools); {engine!r} has not")
    return engine


def _normalised(tools: Any) -> tuple[tuple[Any, ...], Toolset]:
    """Return the entries, and their tools: of a lone Toolset, itself, with its limits and its own policy."""
    if not isinstance(tools, Toolset):
        whole = Toolset(tools)
        if len(whole.entries) != 1 or not isinstance(whole.entries[0], Toolset):
            return whole.entries, whole
        tools = whole.entries[0]
    return (tools,), tools


def _refuse_async(tool: Tool) -> None:
    if tool.is_async and tool.origin is None and not tool.returns_envelope:
        raise ValueError(f'Tool {tool.name!r} is an async function; use arun/achat/astream, or async_tools="run"')


async def _outcome(events: AsyncGenerator[Event, None]) -> Envelope:
    async with aclosing(events):
        async for event in events:
            if isinstance(event, RunFinished):
                return event.envelope
    raise AssertionError("a run ends with RunFinished")
