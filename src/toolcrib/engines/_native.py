"""Tools that run at the provider: which an agent wants, which a model has, and what pydantic-ai calls them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from toolcrib.errors import warn
from toolcrib.types import NativeTool

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.native_tools import AbstractNativeTool

__all__ = ["KINDS", "combinable", "definitions", "offered", "supported", "wanted"]

#: What pydantic-ai calls each of them. It has none for the missing: a model's mouse and keyboard are on this
#: side, so computer use is for ordinary tools, and no provider's maps are within its reach.
KINDS = {
    NativeTool.WEB_SEARCH: "web_search",
    NativeTool.WEB_FETCH: "web_fetch",
    NativeTool.CODE_EXECUTION: "code_execution",
    NativeTool.IMAGE_GENERATION: "image_generation",
    NativeTool.FILE_SEARCH: "file_search",
}

_DANGEROUS = (NativeTool.CODE_EXECUTION, NativeTool.COMPUTER_USE)


# -- for an agent


def wanted(given: Iterable[NativeTool | str], *, allow_dangerous: bool) -> tuple[NativeTool, ...]:
    """Return what was given as native tools, each once.

    Args:
        given: Native tools, or their values; one alone may stand for itself.
        allow_dangerous: Whether there may be some that act, rather than look things up.

    Raises:
        ValueError: One that is unknown, or dangerous and not allowed.
    """
    entries = (given,) if isinstance(given, str) else given
    tools = tuple(dict.fromkeys(_native_tool(entry) for entry in entries))
    dangerous = ", ".join(tool.value for tool in tools if tool in _DANGEROUS)
    if dangerous and not allow_dangerous:
        raise ValueError(f"{dangerous} can do harm: pass allow_dangerous_native_tools=True if that is what you want")
    return tools


def _native_tool(entry: NativeTool | str) -> NativeTool:
    try:
        return NativeTool(entry)
    except ValueError:
        known = ", ".join(tool.value for tool in NativeTool)
        raise ValueError(f"unknown native tool {entry!r:.100}; there are {known}") from None


def offered(engine: Any, tools: Sequence[NativeTool]) -> tuple[NativeTool, ...]:
    """Return those of the tools that an engine has, and warn of the others.

    Args:
        engine: Any engine; one that has native tools says which in its `native_tools`.
        tools: What is wanted of it.
    """
    if not tools:
        return ()
    has = cast("frozenset[NativeTool]", getattr(engine, "native_tools", frozenset[NativeTool]()))
    missing = [tool for tool in tools if tool not in has]
    if missing:
        hint = "; file_search needs LLMEngine(..., file_stores=[...])" if NativeTool.FILE_SEARCH in missing else ""
        warn(f"{engine.model} has no native {', '.join(missing)}, so it is left out{hint}")
    return tuple(tool for tool in tools if tool in has)


# -- for a model of pydantic-ai


def supported(model: Model, file_stores: Sequence[str]) -> frozenset[NativeTool]:
    """Return the native tools a model has.

    Args:
        model: The model.
        file_stores: Where it may search; without any it has no file search.
    """
    try:
        profile = model.profile
    except NotImplementedError:  # one that only passes on to others
        return frozenset()
    kinds = {known.kind for known in profile.get("supported_native_tools", ())}
    tools = {tool for tool, kind in KINDS.items() if kind in kinds}
    return frozenset(tools if file_stores else tools - {NativeTool.FILE_SEARCH})


def definitions(tools: Sequence[NativeTool], file_stores: Sequence[str]) -> list[AbstractNativeTool]:
    """Return the tools as pydantic-ai's own, with the providers' defaults.

    Args:
        tools: What is wanted, all of it supported.
        file_stores: Where file search looks.
    """
    from pydantic_ai.native_tools import NATIVE_TOOL_TYPES

    options: dict[NativeTool, dict[str, Any]] = {NativeTool.FILE_SEARCH: {"file_store_ids": list(file_stores)}}
    types = cast("dict[str, Callable[..., AbstractNativeTool]]", NATIVE_TOOL_TYPES)
    return [types[KINDS[tool]](**options.get(tool, {})) for tool in tools]


def combinable(model: Model, tools: Sequence[NativeTool]) -> tuple[NativeTool, ...]:
    """Return the tools that may stand in one request with tools of the agent, and warn of the others.

    Args:
        model: The model; Gemini before 3 takes either kind.
        tools: What is wanted beside them.
    """
    if not tools or not model.system.startswith("google"):
        return tuple(tools)
    if cast("Mapping[str, Any]", model.profile).get("google_supports_tool_combination"):
        return tuple(tools)
    warn(
        f"{model.model_name} takes no native tools beside others, so {', '.join(tools)} is left out where it has tools"
    )
    return ()
