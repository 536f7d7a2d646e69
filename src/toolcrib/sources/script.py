"""Code mode: a model writes one script that makes many calls, and reads only what comes out of it."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pydantic_core import to_json

from toolcrib._portal import off_loop, portal
from toolcrib.errors import ToolArgumentError, ToolcribError, ToolExecutionError, ToolTimeoutError
from toolcrib.limits import DEFAULT_LIMITS, ScriptLimits
from toolcrib.results import answer_to
from toolcrib.sources._find import Finder
from toolcrib.sources._interpreter import LACKS, Interpreter, check_installed, explained
from toolcrib.sources._script_run import Around, Interrupted, ScriptCalls, plain
from toolcrib.sources._script_state import ScriptState
from toolcrib.sources._stubs import Stubs
from toolcrib.tools import Tool
from toolcrib.toolset import Toolset
from toolcrib.types import ToolCall, ToolContext

__all__ = ["ScriptOutcome", "ScriptTool"]

_ABOUT = """\
Run a Python script that calls the functions below; get its last expression, or its variable `result`, and its prints.
Do a whole task in one script, with loops and conditions, and let only the answer come out. `async def` functions are
awaited, many at once with asyncio.gather. A failed call raises RuntimeError (ValueError: wrong arguments; TimeoutError;
PermissionError: not approved), which may be caught.
"""
_FINDER = 'def find_tools(query: str) -> str: "Get stubs of functions by what they do; look before you call."'
_CODE = {
    "type": "object",
    "properties": {"code": {"type": "string", "description": "The script."}},
    "required": ["code"],
    "additionalProperties": False,
}
_QUERY = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What the functions should do, in a few words."}},
    "required": ["query"],
    "additionalProperties": False,
}
_FIND = "Find functions for run_script by what they do, and get their Python stubs. Scripts may call it as well."
_MOST_MADE = 12


class ScriptOutcome(NamedTuple):
    """What came of a script.

    Args:
        value: Its last expression, or its variable `result`, as JSON data.
        printed: What it printed.
        calls: How many calls it made.
        pending: The call of a declared tool that it waits for; empty when it is over.
        snapshot: What `resume` goes on from; empty when it is over. Load only your own: it is trusted.
    """

    value: Any
    printed: str
    calls: int
    pending: tuple[ToolCall, ...] = ()
    snapshot: bytes = b""


class ScriptTool:
    """Tools as the functions of a script that a model writes; to the model it is one tool, `run_script(code)`.

    The script runs in pydantic-monty, an interpreter that has no files, no network and no modules of the
    system. Its only way out are the tools, and each call it makes is answered like any other: validated, under
    a deadline, approved, told to listeners, with an id of its own (`call_1.2` is the second call of `call_1`).
    Types are checked before anything runs.

    Args:
        tools: Whatever a Toolset takes.
        limits: What one script may take.
        name: What the model calls it.
        check_types: Whether a script is checked against the stubs before it runs.
        store: Keeps where each script stands, under the id of its call, with `get(key)` and `put(key, value)`, sync
            or async: the same call made again, by another process too, goes on from there and repeats nothing
            that had finished. A call under way when the process ended is made again, with the same id.

    Raises:
        MissingExtraError: The `script` extra is not installed.
        TypeError: An entry that cannot be a tool.
    """

    def __init__(
        self,
        tools: Any,
        *,
        limits: ScriptLimits | None = None,
        name: str = "run_script",
        check_types: bool = True,
        store: Any = None,
    ) -> None:
        check_installed()
        self.toolset = tools if isinstance(tools, Toolset) else Toolset(tools)
        self.limits = limits or ScriptLimits()
        self.name = name
        self._check_types = check_types
        self._store = store

    def __repr__(self) -> str:
        return f"ScriptTool({self.toolset!r})"

    # -- what it shows

    def as_tools(self) -> list[Tool]:
        """Return `run_script` and, for a large toolset, `find_tools`."""
        run = Tool.from_schema(self.name, self._description(), _CODE, self._run, executor=_Patient())
        run = run.replace(origin="script")
        if not self._is_large:
            return [run]
        return [run, Tool.from_schema("find_tools", _FIND, _QUERY, self._find, effect="read")]

    @property
    def stubs(self) -> str:
        """The toolset as Python stubs, as the model reads them; of a large toolset only the names."""
        return self.toolset.cached(("script.text",), self._shown)

    @property
    def _is_large(self) -> bool:
        return len(self.toolset) > self.limits.shown_tools

    @property
    def _stubs(self) -> Stubs:
        return self.toolset.cached(("script.stubs",), lambda: Stubs(self.toolset))

    def _description(self) -> str:
        return f"{_ABOUT}{LACKS}\n\n{self.stubs}"

    def _shown(self) -> str:
        if not self._is_large:
            return self._stubs.text(self._stubs.functions)
        names = " ".join(self._stubs.functions)
        cut = names if len(names) <= _MOST_NAMES else f"{names[:_MOST_NAMES].rpartition(' ')[0]} …"
        return f"{_FINDER}\n# {cut}"

    def _find(self, query: str) -> str:
        stubs = self._stubs
        finder = self.toolset.cached(
            ("script.finder",), lambda: Finder((name, self.toolset[tool]) for name, tool in stubs.functions.items())
        )
        return stubs.text(finder.best(query)) or f"No function is about {query[:100]!r}; try other words."

    # -- what it does

    async def arun(self, code: str, *, context: ToolContext[Any] | None = None) -> ScriptOutcome:
        """Run a script and return what came of it.

        A call of a declared tool ends it early: the outcome has the call as `pending`, and `aresume` goes on.

        Args:
            code: The script.
            context: What its calls find in theirs: the run's id and `deps`.

        Raises:
            ToolArgumentError: It was not run: it is no Python, its types do not fit, or it is too long.
            ToolTimeoutError: It computed for too long.
            ToolExecutionError: It raised; the message has the line.
        """
        return await self._outcome(ScriptState(code), context or ToolContext(call_id="script"), pauses=True)

    def run(self, code: str, *, context: ToolContext[Any] | None = None) -> ScriptOutcome:
        """Run a script from sync code; see `arun`."""
        return portal().call(self.arun, code, context=context)

    async def aresume(
        self, snapshot: bytes, results: Mapping[str, Any], *, context: ToolContext[Any] | None = None
    ) -> ScriptOutcome:
        """Go on with a script that waits, in this process or another.

        Args:
            snapshot: The `snapshot` of its outcome; one from somebody else must not be loaded.
            results: What came of its pending call: the value by the call's id; an exception is raised in the script.
            context: What its further calls find in theirs.

        Raises:
            ValueError: It is no snapshot, or there is no result for its pending call.
            ToolExecutionError: As in `arun`.
        """
        state = ScriptState.unpacked(snapshot)
        context = context or ToolContext(call_id="script")
        for number, asked in state.asked.items():
            call_id = f"{context.call_id}.{asked.number}"
            if call_id in results:
                state.settled[number] = _settled(results[call_id])
        if not results or not state.settled:
            raise ValueError("a script that waits needs the result of its pending call: {call.id: value}")
        return await self._outcome(state, context, pauses=True)

    def resume(
        self, snapshot: bytes, results: Mapping[str, Any], *, context: ToolContext[Any] | None = None
    ) -> ScriptOutcome:
        """Go on with a script that waits, from sync code; see `aresume`."""
        return portal().call(self.aresume, snapshot, results, context=context)

    async def _run(self, code: str, context: ToolContext[Any]) -> Any:
        """Answer the model's call."""
        key = _key(code, context)
        kept = await _asked(self._store.get, key) if self._store is not None else None
        state = ScriptState.unpacked(kept) if kept else ScriptState(code)
        try:
            outcome = await self._outcome(state, context, key=key)
        except ToolcribError as error:
            raise _with_what_was_done(error, state) from error
        return _told(outcome)

    async def _outcome(
        self, state: ScriptState, context: ToolContext[Any], *, key: str = "", pauses: bool = False
    ) -> ScriptOutcome:
        if len(state.code) > self.limits.code_chars:
            raise ToolArgumentError(f"The script was not run: it is longer than {self.limits.code_chars:,} characters")
        around = self._around(context, key, pauses=pauses)
        stubs = self._checked(state.code) if self._check_types and not state.snapshot else None
        try:
            async with Interpreter(self.limits, stubs) as interpreter:
                value = await self._value(interpreter, ScriptCalls(around, state, interpreter.kill), state)
        except Interrupted:
            return _waiting(state, context, self._stubs)
        except ToolcribError:
            raise
        except Exception as error:
            told = explained(error, state.code, self.limits)
            if told is error:
                raise
            raise told from error
        if self._store is not None and key:
            await _asked(self._store.put, key, None)
        return ScriptOutcome(plain(value, "result"), _printed(state), state.count)

    def _checked(self, code: str) -> str:
        return self._stubs.checked_text(code) + (_FINDER if self._is_large else "")

    def _around(self, context: ToolContext[Any], key: str, *, pauses: bool) -> Around:
        limits = self.toolset.limits or (context.line[0] if context.line else None) or DEFAULT_LIMITS

        async def keep(state: ScriptState) -> None:
            await _asked(self._store.put, key, state.packed().decode())

        return Around(
            self.toolset,
            self._stubs,
            self.limits,
            limits.replace(max_result_chars=self.limits.value_chars),
            context,
            self._find if self._is_large else None,
            pauses,
            keep if self._store is not None and key else None,
        )

    async def _value(self, interpreter: Interpreter, calls: ScriptCalls, state: ScriptState) -> Any:
        def print_(_stream: str, text: str) -> None:
            room = max(0, self.limits.printed_chars - len(state.printed))
            state.printed += text[:room]
            state.dropped += len(text[room:])

        if state.snapshot:
            value = await calls.answered(interpreter.load, state.snapshot, print_)
        else:
            value = await calls.answered(interpreter.start, state.code, print_)
        return await interpreter.variable("result") if value is None and "result" in state.code else value


class _Patient:
    """Runs scripts without the deadline of a call: the script has bounds of its own, and so has each of its calls."""

    async def run(self, tool: Tool, arguments: Mapping[str, Any], call: ToolCall) -> Any:
        return await tool.invoke(arguments, call.context)


# -- words


_MOST_NAMES = 8_000


def _told(outcome: ScriptOutcome) -> Any:
    """Return what the model reads: the value alone, or after what was printed."""
    if not outcome.printed:
        return outcome.value if outcome.value is not None else "The script ended without a result, and printed nothing."
    if outcome.value is None:
        return outcome.printed
    return f"{outcome.printed.rstrip()}\nresult: {answer_to(outcome.value)[1]}"


def _printed(state: ScriptState) -> str:
    return state.printed + (f"\n[… {state.dropped:,} more characters …]" if state.dropped else "")


def _with_what_was_done(error: ToolcribError, state: ScriptState) -> ToolcribError:
    """Return the error with what the script had done by then, so that the next one does not do it again."""
    if not state.made and not state.printed:
        return error
    listed = [f"{name} ({times} times)" if times > 1 else name for name, times in state.made.items()][:_MOST_MADE]
    done = f"\nBy then it had called: {', '.join(listed)}." if listed else ""
    printed = f"\nIt had printed:\n{_printed(state).rstrip()}" if state.printed else ""
    kind = type(error) if isinstance(error, (ToolTimeoutError, ToolArgumentError)) else ToolExecutionError
    return kind(f"{error}{done}{printed}")


def _waiting(state: ScriptState, context: ToolContext[Any], stubs: Stubs) -> ScriptOutcome:
    calls: Iterable[ToolCall] = (
        ToolCall(f"{context.call_id}.{asked.number}", stubs.functions[asked.function], asked.arguments)
        for number, asked in state.asked.items()
        if number not in state.settled
    )
    return ScriptOutcome(None, _printed(state), state.count, tuple(calls), state.packed())


def _settled(value: Any) -> dict[str, Any]:
    if isinstance(value, BaseException):
        return {"exc_type": "RuntimeError", "message": str(value)}
    return {"return_value": plain(value, "results")}


def _key(code: str, context: ToolContext[Any]) -> str:
    told = to_json([context.run_id, context.call_id, code])
    return f"script:{hashlib.blake2s(told).hexdigest()}"


async def _asked(method: Any, *args: Any) -> Any:
    if inspect.iscoroutinefunction(method):
        return await method(*args)
    answer = await off_loop(method, *args)
    return await answer if inspect.isawaitable(answer) else answer
