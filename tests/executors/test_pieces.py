import asyncio
import itertools

import pytest

from toolcrib import Limits, Tool, ToolCall, ToolProgress, Toolset, acall_tools, dispatch
from toolcrib.limits import MAX_PIECES

pytestmark = pytest.mark.anyio


def words():
    """Say three words."""
    yield from ("one ", "two ", "three")


async def awords():
    """Say three words."""
    for word in words():
        await asyncio.sleep(0)
        yield word


def rows():
    """Give rows."""
    yield {"n": 1}
    yield {"n": 2}


def nothing():
    """Give nothing."""
    yield from ()


def broken():
    """Fail half way."""
    yield "some"
    raise OSError("disk gone")


ANSWERS = [
    (words, "ok", "one two three"),
    (awords, "ok", "one two three"),
    (rows, "ok", '[{"n":1},{"n":2}]'),
    (nothing, "ok", "[]"),
    (broken, "failed", "Tool 'broken' failed: OSError: disk gone"),
    (lambda: (n for n in range(3)), "ok", "[0,1,2]"),
]


@pytest.mark.parametrize(("func", "kind", "text"), ANSWERS)
@pytest.mark.parametrize("thread", [True, False])
async def test_a_generators_values_become_one_answer(func, kind, text, thread):
    toolset = Toolset([Tool(func, thread=thread)])
    [name] = toolset.names
    [result] = await acall_tools([ToolCall("1", name)], toolset)
    assert (result.kind, result.text) == (kind, text.replace("broken", name))
    same = await asyncio.to_thread(dispatch.call, ToolCall("1", name), toolset)
    assert (same.kind, same.text) == (result.kind, result.text)


@pytest.mark.parametrize("func", [words, awords])
async def test_each_piece_is_reported_as_it_comes(func):
    events = []
    await acall_tools([ToolCall("1", func.__name__)], Toolset([func]), on_event=events.append)
    pieces = [(event.progress, event.message) for event in events if isinstance(event, ToolProgress)]
    assert pieces == [(1, "one "), (2, "two "), (3, "three")]


async def endless_naps():
    """Never end."""
    while True:
        await asyncio.sleep(0.001)
        yield "."


def endless_spin():
    """Never end."""
    stop.clear()
    try:
        for _ in itertools.count():
            yield None
    finally:
        stop.append("closed")


stop = []


async def test_an_endless_generator_ends_at_its_deadline_and_is_closed():
    [result] = await acall_tools([ToolCall("1", "endless_naps")], Toolset([endless_naps]), limits=Limits(deadline=0.05))
    assert result.kind == "timed_out"
    unbounded = Limits(deadline=None)
    [result] = await acall_tools([ToolCall("1", "endless_spin")], Toolset([endless_spin]), limits=unbounded)
    assert result.text == f"Tool 'endless_spin' failed: it yielded more than {MAX_PIECES:,} values"
    assert stop == ["closed"]
