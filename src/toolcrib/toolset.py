"""Toolset: what `tools=[...]` becomes."""

from __future__ import annotations

import asyncio
import difflib
import fnmatch
import functools
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar, cast, get_args

from toolcrib.entries import Said, Walk, cut, identity, settled_entries
from toolcrib.errors import ToolNameError, ToolNotFoundError, warn
from toolcrib.limits import DEFAULT_LIMITS, MAX_NAME_CHARS
from toolcrib.tools import Tool

if TYPE_CHECKING:
    from toolcrib.limits import Limits

__all__ = ["OnCollision", "Toolset", "ToolsetChanges"]

T = TypeVar("T")
OnCollision: TypeAlias = Literal["warn", "raise", "replace", "prefix"]

_MISSING = object()


class ToolsetChanges(NamedTuple):
    """What a refresh changed; false when that is nothing.

    Args:
        added: str | Iterable[str] that are new.
        removed: str | Iterable[str] that are gone.
        changed: str | Iterable[str] that stayed, with another description, schema, strictness or effect.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]

    def __bool__(self) -> bool:
        return any(self)


class _Snapshot(NamedTuple):
    tools: dict[str, Tool]
    said: tuple[Said, ...]
    cache: dict[Hashable, Any]


class Toolset:
    """Tools in a fixed order, found by name.

    What it holds does not change until `refresh`. When two entries have the same name, the later one
    wins and takes the place of the first in the order. The same tool or function given twice is no
    collision. A remote tool never replaces a tool of another origin unless `on_collision` says so.

    Args:
        tools: Functions, Tools, agents, providers (`as_tools()`), skills (`get_tools()`), other Toolsets,
            and lists of these, nested as you like; or a single one of them.
        on_collision: What to do about two tools of one name: `warn` and let the later win, `raise`,
            `replace` silently, or `prefix` the later with where it comes from.
        limits: Bounds for the calls made through this toolset; those of nested toolsets are not used.

    Raises:
        TypeError: An entry that cannot be a tool.
        ToolNameError: A name that is no name, or a collision that is not allowed.
        ValueError: An unknown `on_collision`, or entries that never end.
    """

    __slots__ = ("_entries", "_known", "_on_collision", "_snapshot", "_warned", "_watchers", "limits")

    def __init__(
        self,
        tools: Any = (),
        *,
        on_collision: OnCollision = "warn",
        limits: Limits | None = None,
    ) -> None:
        if on_collision not in get_args(OnCollision):
            raise ValueError(f"on_collision must be warn, raise, replace or prefix, not {on_collision!r:.100}")
        self.limits = limits
        self._on_collision: OnCollision = on_collision
        self._entries = settled_entries(tools)
        self._known: dict[Hashable, tuple[Any, Any]] = {}
        self._warned: set[str] = set()
        self._watchers: dict[object, Callable[[ToolsetChanges], object]] = {}
        self._snapshot = self._collected()

    # -- what it holds

    def __len__(self) -> int:
        return len(self._snapshot.tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._snapshot.tools.values())

    def __contains__(self, tool: object) -> bool:
        if isinstance(tool, Tool):
            return self._snapshot.tools.get(tool.name) is tool
        return isinstance(tool, str) and tool in self._snapshot.tools

    def __getitem__(self, name: str) -> Tool:
        """Return the tool of that name.

        Raises:
            ToolNotFoundError: There is none; the message has the nearest names.
        """
        tool = self.get(name)
        if tool is None:
            raise ToolNotFoundError(_not_found(name, self._snapshot.tools))
        return tool

    def __repr__(self) -> str:
        first = [cut(name, 40) for name in islice(self._snapshot.tools, 3)]
        listed = ", ".join([*first, "..."] if len(self) > len(first) else first)
        return f"<Toolset of {len(self)} tool{'' if len(self) == 1 else 's'}{': ' if listed else ''}{listed}>"

    def get(self, name: str) -> Tool | None:
        """Return the tool of that name, or None."""
        return self._snapshot.tools.get(name) if isinstance(name, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]  # a model's word

    @property
    def names(self) -> tuple[str, ...]:
        """The tools' names, in order."""
        return tuple(self._snapshot.tools)

    @property
    def entries(self) -> tuple[Any, ...]:
        """What the toolset was made of, as given; `Toolset(toolset.entries)` has the same tools."""
        return self._entries

    def as_tools(self) -> list[Tool]:
        """Return the tools as a list."""
        return list(self)

    @property
    def instructions(self) -> tuple[str, ...]:
        """What its skills say to a model, in order, each once; without those whose tools are all left out."""
        there = {identity(tool.func or tool) for tool in self}
        return tuple(dict.fromkeys(said.text for said in self.said if not said.functions or said.functions & there))

    @property
    def said(self) -> tuple[Said, ...]:
        """What its providers say, each with the functions of the tools it is about."""
        return self._snapshot.said

    async def prepare(self) -> None:
        """Make every schema ready that a model writes, some at a time, so that nothing that follows blocks."""
        unread = self.cached("unread schemas", lambda: [tool for tool in self if tool.mode != "signature"])
        if not unread:
            return
        places = asyncio.Semaphore((self.limits or DEFAULT_LIMITS).max_parallel)

        async def prepare(tool: Tool) -> None:
            async with places:
                await tool.prepare()

        tasks = [asyncio.create_task(prepare(tool)) for tool in unread]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` returned the first time for this key; forgotten when the tools change.

        Threads that ask at the same time may both make it, but all of them get the same object.

        Args:
            key: What it is, such as `("openai_chat", strict)`.
            make: Computes it, from the toolset as it is then.
        """
        cache = self._snapshot.cache
        found = cache.get(key, _MISSING)
        return cast("T", cache.setdefault(key, make()) if found is _MISSING else found)

    # -- other toolsets from this one

    def select(
        self,
        include: str | Iterable[str] | None = None,
        exclude: str | Iterable[str] = (),
        allow: str | Iterable[str] | None = None,
        deny: str | Iterable[str] = (),
    ) -> Toolset:
        """Return a toolset of some of the tools; deny and exclude win over allow and include.

        Args:
            include: The only tools to keep, by exact original name; an empty list keeps none.
            exclude: Tools to leave out, by exact original name.
            allow: The only tools to keep, by glob on the name they are shown under; an empty list keeps none.
            deny: Tools to leave out, by glob on the name they are shown under.
        """
        included = None if include is None else _exact("include", include, self)
        excluded = _exact("exclude", exclude, self)
        allowed = None if allow is None else _globs("allow", allow)
        denied = _globs("deny", deny)

        def kept(tool: Tool) -> bool:
            original = tool.original_name or tool.name
            return (
                (included is None or original in included)
                and original not in excluded
                and (allowed is None or any(matches(tool.name) for matches in allowed))
                and not any(matches(tool.name) for matches in denied)
            )

        return self._derived(lambda tools: [tool for tool in tools if kept(tool)])

    def prefixed(self, prefix: str) -> Toolset:
        """Return a toolset of the same tools with the prefix before each name, as in `fs.read`.

        Args:
            prefix: What to put before the names, separator included.

        Raises:
            TypeError: The prefix is not text.
        """
        if not isinstance(prefix, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # often from a configuration
            raise TypeError(f"a prefix is text such as 'fs.', not {type(prefix).__name__}")
        return self._derived(lambda tools: [_renamed(tool, prefix + tool.name) for tool in tools])

    def renamed(self, names: Mapping[str, str]) -> Toolset:
        """Return a toolset with some of the tools under other names.

        Args:
            names: The new name by the old one; all are changed at once, so two may be swapped.

        Raises:
            ToolNameError: There is no tool of an old name, or a new one is no name or not free.
        """
        new_names = dict(names)
        for name in new_names:
            if name not in self:
                raise ToolNameError(f"{_not_found(name, self._snapshot.tools)} It cannot be renamed.")
        return self._derived(lambda tools: [_renamed(tool, new_names.get(tool.name, tool.name)) for tool in tools])

    def _derived(self, change: Callable[[Iterable[Tool]], list[Tool]]) -> Toolset:
        return Toolset([_View(self, change)], on_collision=self._on_collision, limits=self.limits)

    # -- from entries to tools

    def refresh(self) -> ToolsetChanges:
        """Ask every entry for its tools again and return what changed.

        Toolsets that this one is made of are refreshed too. An entry that fails leaves this toolset as
        it was.
        """
        return self._refreshed(set())

    def _refreshed(self, done: set[int]) -> ToolsetChanges:
        if id(self) in done:
            return ToolsetChanges((), (), ())
        done.add(id(self))
        collected = self._collected(lambda provider: _refresh_within(provider, done))
        before, after = self._snapshot.tools, collected.tools
        changes = ToolsetChanges(
            added=tuple(name for name in after if name not in before),
            removed=tuple(name for name in before if name not in after),
            changed=tuple(name for name, tool in after.items() if name in before and not _alike(before[name], tool)),
        )
        self._snapshot = collected
        if changes:
            for tell in tuple(self._watchers.values()):
                tell(changes)
        return changes

    def watch(self, tell: Callable[[ToolsetChanges], object]) -> Callable[[], None]:
        """Have a function called after every refresh that changed something; return what ends that.

        Args:
            tell: Called in the thread of the refresh, with what changed; it must not raise.
        """
        key = object()
        self._watchers[key] = tell

        def end() -> None:
            self._watchers.pop(key, None)

        return end

    def _collected(self, prepare: Callable[[Any], None] | None = None) -> _Snapshot:
        walk = Walk(self._known, prepare)
        named = _Named(self._on_collision, self._warned)
        for tool in walk.tools(self._entries):
            named.add(tool)
        self._known = walk.met
        return _Snapshot(named.tools, walk.said, {})


class _Named:
    """Tools put under their names one by one.

    Args:
        on_collision: What to do when a name is taken.
        warned: The collisions that were warned of before, which is enough.
    """

    def __init__(self, on_collision: OnCollision, warned: set[str]) -> None:
        self.on_collision = on_collision
        self.warned = warned
        self.tools: dict[str, Tool] = {}
        self.moved: dict[Hashable, str] = {}
        self.numbers: dict[str, int] = {}

    def add(self, tool: Tool) -> None:
        _check_name(tool.name)
        held = self.tools.setdefault(tool.name, tool)
        if _same(held, tool):
            return
        if self.on_collision == "prefix":
            self._add_prefixed(tool)
            return
        if self.on_collision != "replace":
            self._object(held, tool)
        self.tools[tool.name] = tool

    def _add_prefixed(self, tool: Tool) -> None:
        key = tool.name, identity(tool.func or tool)
        moved = self.moved.get(key)
        if moved is None or not _same(self.tools[moved], tool):
            name = self.moved[key] = self._free_name(f"{_prefix_of(tool)}.{tool.name}")
            self.tools[name] = _renamed(tool, name)

    def _free_name(self, wanted: str) -> str:
        name = wanted
        while name in self.tools:
            number = self.numbers[wanted] = self.numbers.get(wanted, 1) + 1
            name = f"{wanted}_{number}"
        return name

    def _object(self, held: Tool, tool: Tool) -> None:
        clash = f"two tools are named {cut(tool.name)!r}: one of {_whence(held)}, one of {_whence(tool)}"
        if self.on_collision == "raise":
            raise ToolNameError(f"{clash}; rename one, or choose on_collision='prefix'")
        if tool.origin is not None and tool.origin != held.origin:
            raise ToolNameError(
                f"{clash}; a remote tool replaces no other silently: rename or prefix one of them, "
                "or choose on_collision='replace' or 'prefix'"
            )
        if clash not in self.warned:
            self.warned.add(clash)
            warn(f"{clash}; the later is used")


class _View:
    """The tools of a toolset after a change, as an entry of another toolset."""

    __slots__ = ("change", "toolset")

    def __init__(self, toolset: Toolset, change: Callable[[Iterable[Tool]], list[Tool]]) -> None:
        self.toolset = toolset
        self.change = change

    @property
    def said(self) -> tuple[Said, ...]:
        return self.toolset.said

    def as_tools(self) -> list[Tool]:
        return self.change(self.toolset)


def _refresh_within(provider: Any, done: set[int]) -> None:
    inner = provider.toolset if isinstance(provider, _View) else provider
    if isinstance(inner, Toolset):
        inner._refreshed(done)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # the same module


# -- whether two tools are the same


_OPTIONS = ("origin", "mode", "strict", "effect", "timeout", "executor", "thread", "returns_envelope", "validate")


def _same(held: Tool, tool: Tool) -> bool:
    """Whether one of two tools of a name can be left out without losing anything."""
    if held is tool:
        return True
    same_function = held.func is not None and identity(held.func) == identity(tool.func)
    same_options = all(getattr(held, option) == getattr(tool, option) for option in _OPTIONS)
    return same_function and same_options and _alike(held, tool)


def _alike(before: Tool, after: Tool) -> bool:
    """Whether a model is told the same of two tools."""
    if before is after:
        return True
    if (before.description, before.strict, before.effect) != (after.description, after.strict, after.effect):
        return False
    if (before.mode, after.mode) != ("signature", "signature"):  # a model may have to be asked for the schema
        return before.func is after.func
    return before.input_schema == after.input_schema and before.output_schema == after.output_schema


# -- names


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name.strip():
        raise ToolNameError(f"a tool needs a name, not {name!r:.100}")
    if len(name) > MAX_NAME_CHARS:
        raise ToolNameError(f"a tool's name has {len(name)} characters, more than {MAX_NAME_CHARS}: {cut(name)!r}")


def _renamed(tool: Tool, name: str) -> Tool:
    _check_name(name)
    return tool if name == tool.name else tool.replace(name=name, original_name=tool.original_name or tool.name)


def _prefix_of(tool: Tool) -> str:
    source = tool.origin.partition(":")[2] or tool.origin if tool.origin else _module_of(tool).rpartition(".")[2]
    return re.sub(r"[^\w.-]+", "_", source)[:64].strip("_.") or "other"


def _function_in(tool: Tool) -> Any:
    func: Any = tool.func
    while isinstance(func, functools.partial):
        func = cast("functools.partial[Any]", func).func
    return func if func is None or hasattr(func, "__qualname__") else cast("object", type(func))


def _module_of(tool: Tool) -> str:
    return getattr(_function_in(tool), "__module__", None) or ""


def _whence(tool: Tool) -> str:
    if tool.origin:
        return cut(tool.origin)
    func = _function_in(tool)
    return "a declaration" if func is None else f"{_module_of(tool)}.{func.__qualname__}"


def _not_found(name: Any, names: Iterable[str]) -> str:
    if not isinstance(name, str):
        return f"Tool {name!r:.100} not found. Names are text."
    return f"Tool {cut(name)!r} not found.{_meant(_nearest(name, names)) or _listed(names)}"


def _listed(names: Iterable[str]) -> str:
    first = [cut(name) for name in islice(names, _MOST_LISTED + 1)]
    return (
        f" There are: {', '.join(first[:_MOST_LISTED])}{', ...' if len(first) > _MOST_LISTED else ''}." if first else ""
    )


_MOST_LISTED = 20


def _meant(near: list[str]) -> str:
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


def _nearest(name: str, names: Iterable[str]) -> list[str]:
    return difflib.get_close_matches(name[:100], [candidate[:100] for candidate in names], n=3)


# -- filters


def _texts(option: str, names: str | Iterable[str]) -> tuple[str, ...]:
    texts = (names,) if isinstance(names, str) else tuple(names)
    if wrong := [text for text in texts if not isinstance(text, str)]:  # pyright: ignore[reportUnnecessaryIsInstance]  # often from a configuration
        raise TypeError(f"{option} takes names, not {type(wrong[0]).__name__}")
    return texts


def _globs(option: str, patterns: str | Iterable[str]) -> list[Callable[[str], Any]]:
    return [re.compile(fnmatch.translate(pattern)).match for pattern in _texts(option, patterns)]


def _exact(option: str, names: str | Iterable[str], toolset: Toolset) -> frozenset[str]:
    texts = _texts(option, names)
    originals = {tool.original_name or tool.name: None for tool in toolset}
    if globs := [text for text in texts if any(character in text for character in "*?[")]:
        patterns = "allow" if option == "include" else "deny"
        warn(f"{option} takes exact names, but {_shown(globs)} looks like a glob: use {patterns}= for patterns")
    if missing := [text for text in texts if text not in originals and text not in globs]:
        renamed = toolset.get(missing[0])
        near = [renamed.original_name or renamed.name] if renamed else _nearest(missing[0], originals)
        warn(f"{option} names {_shown(missing)}, which is the original name of no tool here.{_meant(near)}")
    return frozenset(texts)


def _shown(names: list[str]) -> str:
    shown = [repr(cut(name)) for name in names[:5]]
    return ", ".join(shown if len(shown) == len(names) else [*shown, "..."])
