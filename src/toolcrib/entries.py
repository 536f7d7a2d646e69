"""What may stand in `tools=[...]`, and the Tools that each entry becomes."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from toolcrib.limits import MAX_TOOLS
from toolcrib.tools import Tool

__all__ = ["Said", "Walk", "cut", "identity", "settled_entries"]

T = TypeVar("T")
_Memory: TypeAlias = dict[Hashable, tuple[Any, Any]]

_MAX_NESTING = 64
_MAX_SHOWN_CHARS = 80
_ACCEPTED = "functions, Tools, agents, objects with as_tools() or get_tools(), and lists of these"


class Said(NamedTuple):
    """What a provider, such as a skill, says to a model about its tools.

    Args:
        text: Its instructions.
        functions: The functions of its tools, by identity; none for words that stand without tools.
    """

    text: str
    functions: frozenset[Hashable]


class Walk:
    """One pass over entries: each becomes Tools, and remembers them for the next pass.

    Args:
        known: What the last pass met, by identity: the same function is the same Tool again.
        prepare: Called with each provider before it is asked for its tools.
    """

    def __init__(self, known: _Memory, prepare: Callable[[Any], None] | None = None) -> None:
        self.known = known
        self.prepare = prepare
        self.met: _Memory = {}
        self.visited = 0
        self._said: dict[int, tuple[Said, ...]] = {}

    @property
    def said(self) -> tuple[Said, ...]:
        """What the providers say about their tools, in order; each provider once."""
        return tuple(chain.from_iterable(self._said.values()))

    def tools(self, entries: Iterable[Any], inside: tuple[int, ...] = ()) -> Iterator[Tool]:
        """Yield the tools of the entries, in order.

        Raises:
            TypeError: An entry that is no tool and has none.
            ValueError: Entries that never end, or contain themselves.
        """
        for entry in entries:
            self._count()
            if isinstance(entry, Tool):
                yield entry
            else:
                yield from self._tools_of(entry, inside)

    def _tools_of(self, entry: Any, inside: tuple[int, ...]) -> Iterator[Tool]:
        try:
            made = self._made(entry)
            if isinstance(made, Tool):
                yield made
            else:
                yield from self._heard(entry, self.tools(made, self._deeper(entry, inside)))
        except Exception as error:
            if _listing_method(entry) is not None:
                error.add_note(f"while {_shown(entry)} was asked for its tools")
            raise

    def _heard(self, entry: Any, tools: Iterator[Tool]) -> Iterator[Tool]:
        """Yield the tools of an entry, and keep what it says about them."""
        if id(entry) in self._said or _listing_method(entry) is None:
            yield from tools
            return
        self._said[id(entry)] = ()  # its place in the order
        functions = set[Hashable]()
        for tool in tools:
            functions.add(identity(tool.func or tool))
            yield tool
        self._said[id(entry)] = _said_by(entry, frozenset(functions))

    def _count(self) -> None:
        self.visited += 1
        if self.visited > MAX_TOOLS:
            raise ValueError(f"more than {MAX_TOOLS:,} entries: does one of them never end?")

    def _deeper(self, entry: Any, inside: tuple[int, ...]) -> tuple[int, ...]:
        if id(entry) in inside:
            raise ValueError(f"{_shown(entry)} contains itself")
        if len(inside) >= _MAX_NESTING:
            raise ValueError(f"tools are nested more than {_MAX_NESTING} deep")
        return (*inside, id(entry))

    def _made(self, entry: Any) -> Tool | Iterable[Any]:
        """Return the one tool that an entry is, or the entries in it."""
        if isinstance(entry, (types.FunctionType, types.MethodType)):  # what most entries are
            return self._remembered(cast("object", entry), Tool.wrap, self.met, self.known)
        _refuse_what_has_no_tools(entry)
        if callable(getattr(entry, "as_tool", None)):
            return self._remembered(entry, _agent_tool, self.met)
        if (listing := _listing_method(entry)) is not None:
            return self._listed(entry, listing)
        if callable(entry):
            return self._remembered(entry, Tool.wrap, self.met, self.known)
        if isinstance(entry, Iterator):  # can be read once, and the next pass reads it again
            return self._remembered(cast("Iterator[Any]", entry), _bounded, self.met, self.known)
        if isinstance(entry, Iterable):
            return cast("Iterable[Any]", entry)
        raise TypeError(f"{_shown(entry)} is not a tool; tools may be {_ACCEPTED}")

    def _listed(self, provider: Any, method: str) -> Iterable[Any]:
        if id(provider) in self.met:  # it has given its tools to this pass: the same twice is no collision
            return ()
        self.met[id(provider)] = provider, None
        if self.prepare is not None:
            self.prepare(provider)
        return _bounded(_iterable(getattr(provider, method)(), method))

    def _remembered(self, entry: T, make: Callable[[T], Any], *memories: _Memory) -> Any:
        key = identity(entry)
        for memory in memories:
            if key in memory:
                held = memory[key]
                break
        else:
            held = entry, make(entry)
        self.met[key] = held
        return held[1]


def settled_entries(tools: Any) -> tuple[Any, ...]:
    """Return what `tools=` was given as entries that can be read again and again."""
    if isinstance(tools, (list, tuple)):
        return tuple(_settled(entry) for entry in cast("Iterable[Any]", tools))
    settled = _settled(tools)
    return (tools,) if settled is tools else settled


def _settled(entry: Any) -> Any:
    if isinstance(entry, Iterator) and _listing_method(cast("object", entry)) is None:
        return _bounded(cast("Iterator[Any]", entry))
    return cast("object", entry)


def _bounded(entries: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(islice(entries, MAX_TOOLS + 1))


def identity(entry: Any) -> Hashable:
    """Return what tells an entry from all others that exist; a bound method is looked up anew each time."""
    if isinstance(entry, types.MethodType):
        return id(entry.__self__), id(entry.__func__)
    return id(entry)


def _listing_method(entry: Any) -> str | None:
    return next((name for name in ("as_tools", "get_tools") if callable(getattr(entry, name, None))), None)


def _said_by(provider: Any, functions: frozenset[Hashable]) -> tuple[Said, ...]:
    of_parts = getattr(provider, "said", None)  # of a toolset, whose tools are those of several providers
    if isinstance(of_parts, tuple):
        return tuple(said for said in cast("tuple[object, ...]", of_parts) if isinstance(said, Said))
    text = getattr(provider, "instructions", None)
    return (Said(text, functions),) if isinstance(text, str) and text.strip() else ()


def _refuse_what_has_no_tools(entry: Any) -> None:
    hint = ""
    if isinstance(entry, (str, bytes, bytearray)):
        hint = "names are not looked up: pass the function itself"
    elif isinstance(entry, Mapping):
        hint = "a definition becomes a tool with Tool.from_schema, a mapping of functions with list(mapping.values())"
    elif isinstance(entry, (set, frozenset)):
        hint = "a set has no order, and tools need one: pass a list"
    elif isinstance(entry, type):
        hint = f"it is a class: pass an instance, as in {entry.__name__}(), or a function that makes one"
    if hint:
        raise TypeError(f"{_shown(entry)} is not a tool ({hint}); tools may be {_ACCEPTED}")


def _agent_tool(agent: Any) -> Tool:
    made = agent.as_tool()
    if not isinstance(made, Tool):
        raise TypeError(f"as_tool() of {_shown(agent)} returned {_kind(made)}, not a Tool")
    return made


def _iterable(listed: Any, method: str) -> Iterable[Any]:
    if not isinstance(listed, Iterable) or isinstance(listed, (str, bytes, Mapping)):
        raise TypeError(f"{method}() returned {_kind(listed)}, not a list of tools")
    return cast("Iterable[Any]", listed)


def _kind(value: Any) -> str:
    if inspect.iscoroutine(value):
        value.close()
        return "a coroutine (the method must not be async)"
    return f"{type(cast('object', value)).__name__}"


def _shown(entry: Any) -> str:
    """Return words for an entry that give away nothing it keeps."""
    if isinstance(entry, (str, type)):
        return cut(repr(entry))
    name = getattr(entry, "name", None) or getattr(entry, "__name__", None)
    return f"{type(entry).__name__}{f' {cut(name)!r}' if isinstance(name, str) else ''}"


def cut(text: str, chars: int = _MAX_SHOWN_CHARS) -> str:
    """Return the text, or its beginning when it is too long for a message."""
    return text if len(text) <= chars else f"{text[: chars - 3]}..."
