"""For whoever reviews schemas: those a model would write, and whether pinned ones still fit their functions."""

from __future__ import annotations

import asyncio
import functools
import warnings
from collections.abc import Callable
from typing import Any

from toolcrib import targets
from toolcrib._terminal import printable, write_line
from toolcrib.errors import TargetError, ToolcribWarning, ToolSignatureError
from toolcrib.protocols import ArtifactStore, Engine
from toolcrib.schema.inquiry import Inquiry
from toolcrib.schema.pinned import difference, drifted
from toolcrib.schema.signature import read_signature
from toolcrib.stores.redis import RedisArtifactStore
from toolcrib.stores.sqlite import SQLiteArtifactStore
from toolcrib.tools import Mode, Tool
from toolcrib.toolset import Toolset

__all__ = ["checked", "drafted", "write_differences"]

_SERVERS = ("redis://", "rediss://", "unix://")
_AT_ONCE = 8


# -- schemas a model would write


def drafted(
    target: str,
    mode: Mode,
    model: Engine | None,
    store: str | None,
    *,
    only: Callable[[Toolset], Tool] | None = None,
) -> tuple[Toolset, int]:
    """Return the tools of a target, their schemas ready, and the exit status; progress goes to standard error.

    Args:
        target: What names the tools.
        mode: The mode that those read from functions are to have.
        model: The model that is to describe them; None leaves them as they are.
        store: Where its answers are kept: a file, or the address of a Redis server.
        only: Picks the one tool that is wanted; None wants them all.

    Raises:
        TargetError: The target names no tools.
    """
    asked: dict[str, Any] = {"mode": mode, "schema_llm": model, "store": _store_at(store)}
    tools = targets.resolve(target, functools.partial(Tool, **asked) if model else None)
    tools = tools if only is None else Toolset([only(tools)])
    if model is not None:
        tools = Toolset([tool.replace(**asked) if _is_open(tool) else tool for tool in tools])
    return tools, asyncio.run(_prepared(tools))


def _store_at(place: str | None) -> ArtifactStore | None:
    if place is None:
        return None
    return RedisArtifactStore(place) if place.startswith(_SERVERS) else SQLiteArtifactStore(place)


def _is_open(tool: Tool) -> bool:
    """Whether its schema is read from its signature, and may as well be written by a model."""
    return not (tool.func is None or tool.is_verbatim or tool.inquiry or tool.effect == "destructive" or tool.origin)


async def _prepared(tools: Toolset) -> int:
    unread = [(tool, tool.inquiry) for tool in tools if tool.inquiry is not None]
    places, failures = asyncio.Semaphore(_AT_ONCE), list[bool]()

    async def prepare(tool: Tool, inquiry: Inquiry) -> None:
        async with places:
            outcome = await inquiry.ready()
        failures.append(outcome.failure is not None)
        how = "not described" if outcome.failure else "described" if outcome.asked else "from the store"
        write_line(f"{len(failures)}/{len(unread)} {printable(tool.name)}: {how}", stderr=True)

    await asyncio.gather(*(prepare(*one) for one in unread))
    return int(any(failures))


def write_differences(tools: Toolset) -> None:
    """Write what a model made of each tool, as a diff against what its signature and docstring say."""
    for text in filter(None, map(_against_signature, tools)):
        write_line(printable(text))


def _against_signature(tool: Tool) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ToolcribWarning)
        plain = tool.replace(mode="signature") if tool.inquiry else tool
    before, after = ({"description": one.description, "parameters": one.input_schema} for one in (plain, tool))
    return difference(before, after, (f"{tool.name}, by its signature", f"{tool.name}, by the model"))


# -- pinned schemas


def checked(tools: Toolset, target: str) -> int:
    """Write how pinned tools differ from the functions they call, and return the exit status.

    Raises:
        TargetError: None of them is pinned.
    """
    own = [tool for tool in tools if tool.is_verbatim and tool.origin is None]
    pinned = {tool.name: _drift(tool, tool.func) for tool in own if tool.func is not None}
    if not pinned:
        raise TargetError(f"{target} has no pinned tool: one made by Tool.from_schema, with its function")
    changed = [text for text in pinned.values() if text]
    for text in changed:
        write_line(printable(text))
    write_line(f"{len(pinned) - len(changed)} of {len(pinned)} pinned tools fit their functions", stderr=True)
    return int(bool(changed))


def _drift(tool: Tool, func: Callable[..., Any]) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ToolcribWarning)
            own = Tool(func, name=tool.name).input_schema
        current = drifted(tool.input_schema, own, takes_any=read_signature(func).takes_any)
    except ToolSignatureError as error:
        return f"{tool.name}: {error}"
    return difference(tool.input_schema, current, (f"{tool.name}, pinned", f"{tool.name}, by its function"))
