import asyncio
import contextlib
import gc
import time
import types

import anyio
import pytest

from toolcrib._deadline import within
from toolcrib.errors import ToolTimeoutError

pytestmark = pytest.mark.anyio

SHORT = 0.05


def assert_nothing_is_left_of_it():
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def hang():
    await asyncio.Event().wait()


@pytest.mark.parametrize("seconds", [None, 0, 5])
async def test_a_value_that_needs_no_waiting_is_returned(seconds):
    async def value():
        return "done"

    assert await within(value(), seconds) == "done"


@pytest.mark.parametrize("seconds", [None, 5])
async def test_a_value_that_needs_waiting_is_returned(seconds):
    async def value():
        await asyncio.sleep(0)
        await asyncio.sleep(0.001)
        return "done"

    assert await within(value(), seconds) == "done"
    assert_nothing_is_left_of_it()


@pytest.mark.parametrize("seconds", [None, 5])
@pytest.mark.parametrize("waits", [False, True])
async def test_an_error_comes_out_as_it_is(seconds, waits):
    async def fail():
        if waits:
            await asyncio.sleep(0)
        raise KeyError("k")

    with pytest.raises(KeyError, match="k"):
        await within(fail(), seconds)
    assert_nothing_is_left_of_it()


@pytest.mark.parametrize("seconds", [0, SHORT])
async def test_what_hangs_is_given_up_at_the_deadline(seconds):
    started = time.monotonic()
    with pytest.raises(ToolTimeoutError, match=f"no answer within {seconds:g} seconds"):
        await within(hang(), seconds)
    assert seconds <= time.monotonic() - started < 20
    assert_nothing_is_left_of_it()


async def test_what_hangs_hears_of_it_and_may_clean_up():
    heard = []

    async def tidy():
        try:
            await hang()
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)
            heard.append("cleaned up")
            raise

    with pytest.raises(ToolTimeoutError):
        await within(tidy(), SHORT)
    assert heard == ["cleaned up"]


async def test_a_cancellation_that_is_swallowed_does_not_keep_it_alive():
    resumed = []

    async def stubborn():
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await hang()
            resumed.append(1)

    started = time.monotonic()
    with pytest.raises(ToolTimeoutError):
        await within(stubborn(), SHORT)
    assert time.monotonic() - started < 20
    assert resumed == [1]
    assert_nothing_is_left_of_it()


async def test_one_that_swallows_everything_is_driven_no_further():
    running = True

    async def immortal():
        while running:
            try:
                await hang()
            except BaseException:  # noqa: BLE001, S112  # as bad as a tool can be
                continue

    coroutine = immortal()
    with pytest.raises(ToolTimeoutError):
        await within(coroutine, SHORT)
    running = False
    coroutine.close()
    assert_nothing_is_left_of_it()


async def test_slow_cleanup_is_cut_off():
    async def slow():
        try:
            await hang()
        finally:
            await asyncio.sleep(60)

    started = time.monotonic()
    with pytest.raises(ToolTimeoutError):
        await within(slow(), SHORT)
    assert time.monotonic() - started < 20
    assert_nothing_is_left_of_it()


async def test_an_error_in_cleanup_is_still_a_timeout():
    async def clumsy():
        try:
            await hang()
        finally:
            raise ValueError("while cleaning up")

    with pytest.raises(ToolTimeoutError):
        await within(clumsy(), SHORT)


async def test_a_value_that_comes_too_late_counts_as_none():
    async def late():
        with contextlib.suppress(asyncio.CancelledError):
            await hang()
        return "late"

    with pytest.raises(ToolTimeoutError):
        await within(late(), SHORT)
    assert_nothing_is_left_of_it()


async def test_timeouts_of_its_own_are_its_own():
    async def patient():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await hang()
        with anyio.move_on_after(0.01):
            await hang()
        await asyncio.sleep(0.15)  # longer than the grace, which must not have begun
        return "done"

    assert await within(patient(), 5) == "done"
    with pytest.raises(TimeoutError) as caught:
        await within(asyncio.wait_for(hang(), 0.01), 5)
    assert not isinstance(caught.value, ToolTimeoutError)
    assert_nothing_is_left_of_it()


async def test_task_groups_inside_end_with_it():
    ended = []

    async def member():
        try:
            await hang()
        finally:
            ended.append(1)

    async def groups():
        async with asyncio.TaskGroup() as group, anyio.create_task_group() as other:
            group.create_task(member())
            other.start_soon(member)

    with pytest.raises(ToolTimeoutError):
        await within(groups(), SHORT)
    assert ended == [1, 1]
    assert_nothing_is_left_of_it()


@pytest.mark.parametrize(("outer", "inner"), [(SHORT, 5), (5, SHORT), (SHORT, SHORT)])
async def test_deadlines_nest(outer, inner):
    with pytest.raises(ToolTimeoutError, match=f"within {SHORT}"):
        await within(within_again(inner), outer)
    assert_nothing_is_left_of_it()


async def within_again(seconds):
    return await within(hang(), seconds)


async def test_a_caller_who_cancels_is_obeyed():
    started, stopped = asyncio.Event(), []

    async def tool():
        started.set()
        try:
            await hang()
        finally:
            stopped.append(1)

    async def call():
        await within(tool(), 5)

    task = asyncio.create_task(call())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped == [1]


async def test_a_timeout_of_the_caller_is_the_callers():
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(0.02):
            await within(hang(), 5)
    assert not isinstance(caught.value, ToolTimeoutError)
    assert_nothing_is_left_of_it()


async def test_a_caller_who_cancels_in_the_same_moment_is_obeyed():
    async def call():
        await within(hang(), 0.02)

    task = asyncio.create_task(call())
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(0.02, task.cancel)
    with pytest.raises((asyncio.CancelledError, ToolTimeoutError)):
        await task


async def test_a_cancellation_of_the_caller_that_is_swallowed_is_bounded_by_the_deadline():
    started = asyncio.Event()

    async def stubborn():
        started.set()
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await hang()

    async def call():
        await within(stubborn(), 0.1)

    task = asyncio.create_task(call())
    await started.wait()
    task.cancel()
    with pytest.raises((asyncio.CancelledError, ToolTimeoutError)):
        async with asyncio.timeout(2):
            await task


async def test_a_tool_that_never_really_waits_is_stopped_as_well():
    async def busy():
        while True:  # noqa: ASYNC110  # as a careless author polls
            await asyncio.sleep(0)

    with pytest.raises(ToolTimeoutError):
        await within(busy(), SHORT)


async def test_old_style_coroutines_are_driven_too():
    @types.coroutine
    def inner():
        yield
        return 5

    async def tool():
        return await inner()

    assert await within(tool(), 1) == 5


async def test_closing_it_closes_what_it_drives():
    closed = []

    async def tool():
        try:
            await hang()
        finally:
            closed.append(1)

    async def call():
        await within(tool(), 5)

    coroutine = call()
    coroutine.send(None)
    coroutine.close()
    assert closed == [1]
    gc.collect()
