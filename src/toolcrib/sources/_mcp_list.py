"""What an MCP server says of its tools, read without trust, and what it answers a call with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, cast

from toolcrib.errors import ToolExecutionError
from toolcrib.limits import MAX_LIST_PAGES, MAX_NAME_CHARS, MAX_TOOLS
from toolcrib.results import clean
from toolcrib.schema.jsonschema import compiled
from toolcrib.sources._annotations import effect_of
from toolcrib.tools import Tool

__all__ = ["Listing", "listed", "tool_of", "value_of"]

_Ask = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


# -- the list


class Listing(NamedTuple):
    """The tools of a server as it describes them, by name, and what was wrong with its list."""

    tools: dict[str, dict[str, Any]]
    problems: list[str]


async def listed(ask: _Ask) -> Listing:
    """Return what a server lists, page after page, for as long as that gets anywhere.

    Args:
        ask: Sends one `tools/list` with these parameters and returns its raw result.

    Raises:
        ToolExecutionError: What it answers is no list.
    """
    listing, cursor, seen = Listing({}, []), None, set[str]()
    for _ in range(MAX_LIST_PAGES):
        page = await ask({} if cursor is None else {"cursor": cursor})
        _take(page, listing)
        cursor = page.get("nextCursor")
        if cursor is None or len(listing.tools) >= MAX_TOOLS:
            break
        if not isinstance(cursor, str) or cursor in seen:
            listing.problems.append("the rest of its list, which leads back to where it began")
            break
        seen.add(cursor)
    else:
        listing.problems.append(f"what its list has after {MAX_LIST_PAGES:,} pages")
    return listing


def _take(page: Mapping[str, Any], listing: Listing) -> None:
    tools = page.get("tools")
    if not isinstance(tools, list):
        raise ToolExecutionError("the answer to tools/list has no list of tools")
    for raw in cast("list[Any]", tools)[: MAX_TOOLS - len(listing.tools)]:
        tool: dict[str, Any] = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
        name = tool.get("name")
        if not isinstance(name, str) or not name.strip():
            listing.problems.append("a tool without a name")
        elif len(name) > MAX_NAME_CHARS:
            listing.problems.append(f"{name[:50]!r}... (its name has more than {MAX_NAME_CHARS:,} characters)")
        elif name in listing.tools:
            listing.problems.append(f"a second {name!r}")
        else:
            listing.tools[name] = tool


def tool_of(raw: Mapping[str, Any], prefix: str, func: Callable[..., Any], *, validate: bool) -> Tool:
    """Return one listed tool as a Tool, its schema verbatim.

    Args:
        raw: How the server describes it.
        prefix: What comes before its name.
        func: What calls it.
        validate: Whether arguments are checked against its schema.

    Raises:
        ValueError: It cannot be made a tool.
        TypeError: The same.
    """
    name, schema, output = raw["name"], raw.get("inputSchema"), raw.get("outputSchema")
    if not isinstance(schema, Mapping):
        raise TypeError("it has no inputSchema")
    told = next((text for key in ("description", "title") if isinstance(text := raw.get(key), str) and text), None)
    tool = Tool.from_schema(
        f"{prefix}{name}",
        clean(told or f"Call MCP tool {name}."),
        cast("Mapping[str, Any]", schema),
        func,
        effect=effect_of(raw.get("annotations")),
        validate=validate,
    )
    if validate:
        compiled(tool.input_schema)  # which refuses what is no schema, before a model is shown it
    return tool.replace(original_name=name, output_schema=output if isinstance(output, dict) else None)


# -- results


def value_of(result: Mapping[str, Any]) -> Any:
    """Return what a call gave: the structured value, the text, or a list of texts and parts.

    Raises:
        ToolExecutionError: The tool says that it failed, or its answer cannot be read.
    """
    content = result.get("content", [])
    if not isinstance(content, list):
        raise ToolExecutionError("the server's answer has no content that can be read")
    blocks = [_block(block) for block in cast("list[Any]", content)]
    if result.get("isError") is True:
        texts = [block for block in blocks if isinstance(block, str)]
        raise ToolExecutionError("\n".join(texts) or "the server does not say why")
    if not all(isinstance(block, str) for block in blocks):
        return blocks
    if result.get("structuredContent") is not None:
        return result["structuredContent"]
    return "\n".join(cast("list[str]", blocks))


def _block(block: Any) -> Any:
    """Return text as such, an image, sound or resource as the part it is, and anything else in words."""
    members: dict[str, Any] = cast("dict[str, Any]", block) if isinstance(block, dict) else {}
    kind = members.get("type")
    if kind == "text" and isinstance(members.get("text"), str):
        return members["text"]
    if kind in _PARTS:
        return members
    if kind == "resource_link":
        words = (members.get("title") or members.get("name"), members.get("uri"), members.get("description"))
        return f"[resource: {', '.join(str(word) for word in words if word)}]"
    return f"[content of a type that is not known: {str(kind)[:100]}]"


_PARTS = frozenset({"image", "audio", "resource"})
