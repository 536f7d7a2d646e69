"""Functions behind walls that take and give more than plain data."""

from __future__ import annotations

from dataclasses import dataclass

from toolcrib import ToolContext, ToolExecutionError, ToolResponse


async def aadd(a: int, b: int = 0) -> int:
    return a + b


def words():
    yield "one "
    yield "two"


async def numbers():
    yield 1
    yield 2


def image() -> bytes:
    return b"\x89PNG"


@dataclass
class Place:
    city: str
    degrees: float = 14.0


def weather(place: Place) -> Place:
    assert isinstance(place, Place)
    return place


def told(context: ToolContext):
    return {"call_id": context.call_id, "deps": context.deps}


def soft():
    return ToolResponse(success=False, message="not today", data={"tried": 1})


def rows():
    return {"rows": [1, 2, 3, {"conn": object()}]}


def any_way(conn=None):
    return conn


def said() -> None:
    raise ToolExecutionError("the words of its author")


class Skill:
    def method(self) -> None: ...
