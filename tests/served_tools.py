"""Tools of every kind, to be served and read back."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from pydantic import BaseModel

from toolcrib import Tool, ToolContext, ToolResponse

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
IMAGE = {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}
TOKEN = "a-very-secret-token"  # noqa: S105  # of these tests


class Node(BaseModel):
    name: str
    children: list[Node] = []


def add(a: int, b: int = 1) -> int:
    """Add ünïcode numbers 🎉."""
    return a + b


def depth(node: Node) -> int:
    """Tell how deep a tree is."""
    return 1 + max(map(depth, node.children), default=0)


def picture() -> bytes:
    """Draw."""
    return PNG


def mixed() -> list:
    """Draw, and say something."""
    return ["hello", PNG, {"n": 1}]


async def record() -> Node:
    """Return a record."""
    return Node(name="root", children=[Node(name="leaf")])


def numbers() -> list[int]:
    """Return a list."""
    return [1, 2]


def words() -> Iterator[str]:
    """Say words one by one."""
    yield "one "
    yield "two"


def fail() -> str:
    """Fail."""
    raise RuntimeError("no such row")


def refused() -> ToolResponse:
    """Refuse."""
    return ToolResponse(success=False, message="not today")


def steps(context: ToolContext) -> str:
    """Report progress from a thread."""
    for step in (1, 2, 2, 3, float("nan")):
        context.progress(step, 3, f"step {step}")
    return "done"


FOREIGN = {
    "type": "object",
    "properties": {"x": {"$ref": "#/$defs/X"}, "self": {"$ref": "#"}},
    "$defs": {"X": {"enum": [1, 2]}},
}
TOOLS = [
    Tool(add, name="math.add", effect="read"),
    Tool(add, name="a/b ç?/call", strict=True),
    Tool.from_schema("foreign", "Ein fremdes Schema.", FOREIGN, lambda **arguments: arguments, effect="destructive"),
    depth,
    picture,
    mixed,
    record,
    numbers,
    words,
    fail,
    refused,
    steps,
]
