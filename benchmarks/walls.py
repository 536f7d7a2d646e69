"""What walls and scripts cost, each beside its floor.

    python benchmarks/walls.py

A warm call of a ProcessExecutor in milliseconds; a call behind bubblewrap, in times of bare bwrap starting Python; a
call inside a script, in times of a bare host call of Monty. Medians; what cannot run here is left out.
"""

from __future__ import annotations

import asyncio
import colorsys
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from pydantic_monty import Monty, MontyComplete

from toolcrib import BubblewrapExecutor, ProcessExecutor, ScriptTool, Tool, ToolCall, ToolParameter, Toolset, WallError
from toolcrib.dispatch import acall

CALLS = 200
#: A function whose module imports nothing, so that what is measured is the way there and back.
COLOUR = Tool(colorsys.rgb_to_hsv, parameters=[ToolParameter(name, type="float", required=True) for name in "rgb"])


def median(measure: Callable[[], float], times: int) -> float:
    return statistics.median(measure() for _ in range(times))


def one_call(tools: Toolset) -> Callable[[], float]:
    call = ToolCall("1", "rgb_to_hsv", {"r": 0.1, "g": 0.2, "b": 0.3})

    async def timed() -> float:
        started = time.perf_counter()
        result = await acall(call, tools)
        if not result.ok:
            raise SystemExit(result.text)
        return time.perf_counter() - started

    return lambda: asyncio.run(timed())


def process() -> None:
    with ProcessExecutor(workers=1) as executor:
        tools = Toolset(executor.tools([COLOUR]))
        one_call(tools)()
        print(f"process, warm call: {median(one_call(tools), 50) * 1000:.2f} ms")


def bare_bwrap() -> float:
    bwrap = shutil.which("bwrap") or "bwrap"
    binds = [word for path in dict.fromkeys([sys.prefix, sys.base_prefix]) for word in ("--ro-bind", path, path)]
    system = ["--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"]
    python = [sys.executable, "-I", "-S", "-c", "pass"]
    started = time.perf_counter()
    subprocess.run([bwrap, "--unshare-all", *system, *binds, *python], check=True)  # noqa: S603  # what the wall is made of
    return time.perf_counter() - started


def bubblewrap() -> None:
    try:
        executor = BubblewrapExecutor()
    except WallError as error:
        print(f"bubblewrap: left out ({error})")
        return
    with executor:
        tools = Toolset(executor.tools([COLOUR]))
        pairs = [(one_call(tools)(), bare_bwrap()) for _ in range(15)]
    call, bare = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"bubblewrap, a call: {call * 1000:.0f} ms, {call / bare:.1f} x bare bwrap and Python")


def bare_monty() -> float:
    with Monty() as pool, pool.checkout() as session:
        started = time.perf_counter()
        snapshot = session.feed_start(f"for i in range({CALLS}): f(i)")
        while not isinstance(snapshot, MontyComplete):
            snapshot = snapshot.resume({"return_value": 1})  # pyright: ignore[reportCallIssue, reportArgumentType]  # calls alone
        return (time.perf_counter() - started) / CALLS


def in_script() -> float:
    def f(i: int) -> int:
        return i

    script = ScriptTool([f], check_types=False)

    async def timed() -> float:
        await script.arun("f(0)")  # which reads the function's signature
        started = time.perf_counter()
        await script.arun("1")
        floor = time.perf_counter() - started
        started = time.perf_counter()
        await script.arun(f"for i in range({CALLS}): f(i)")
        return (time.perf_counter() - started - floor) / CALLS

    return asyncio.run(timed())


def scripts() -> None:
    in_script()
    pairs = [(in_script(), bare_monty()) for _ in range(7)]
    call, bare = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"script, a call inside: {call * 1e6:.0f} us, {call / bare:.1f} x a bare host call of Monty")


if __name__ == "__main__":
    process()
    bubblewrap()
    scripts()
