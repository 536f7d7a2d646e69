"""Answer very many calls, one in twenty of them a fault, and see that nothing is left of them.

    python benchmarks/soak.py                  # 100,000 calls, a few minutes
    python benchmarks/soak.py --calls 10000    # fewer

Calls come by every surface: one by one and as turns, sync and async, and through agents. The faults are
tools that raise, exit, hang in their thread or on the loop, or return what nobody can show, models that
write broken JSON or unknown names, and callers who cancel. Every answer is checked. Memory, threads, open
files and tasks are counted after a warm-up and at the end; the exit status is 1 when one has grown beyond
its bound or an answer was wrong. Memory and files are read from /proc, so they are counted on Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from toolcrib import Agent, Limits, Reply, ScriptedEngine, Tool, ToolCall, ToolResult, Toolset, dispatch
from toolcrib._portal import portal

SOON = 0.01  # the deadline of what hangs
LONG = 0.2  # how long a thread is held at most; on a busy machine an answer may be late, and still in time
FAULTS = 0.05
WARM_UP = 2_000
LIMITS = Limits(max_parallel=16)


class Figures(NamedTuple):
    """What the process holds at one moment."""

    rss_mb: float
    threads: int
    files: int
    tasks: int


#: How much each figure may have grown at the end.
BOUNDS = Figures(rss_mb=16, threads=16, files=2, tasks=0)
MOST_THREADS = 2 * LIMITS.max_parallel + 3  # the main thread, the background loop and its watch


# -- what is called


def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


async def greet(name: str) -> str:
    """Greet."""
    await asyncio.sleep(0)
    return f"hello {name}"


def rows(n: int) -> list[dict[str, Any]]:
    """Give rows."""
    return [{"n": i, "text": "x" * 100} for i in range(n)]


def fail() -> None:
    """Fail."""
    raise ValueError("x" * 10_000)


async def leave() -> None:
    """Exit."""
    raise SystemExit


def lock() -> Any:
    """Return what JSON has not."""
    return {"lock": threading.Lock(), "rows": rows(100)}


def oversleep() -> None:
    """Hold a thread for longer than the deadline."""
    time.sleep(LONG)


async def hang() -> None:
    """Hang."""
    await asyncio.Event().wait()


async def cling() -> None:
    """Hang, and hold on."""
    for _ in range(3):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


TOOLS = Toolset(
    [add, greet, rows, fail, leave, lock, *(Tool(func, timeout=SOON) for func in (oversleep, hang, cling))],
    limits=LIMITS,
)
HEALTHY = [("add", '{"a": 1, "b": "2"}'), ("greet", {"name": "Ann"}), ("rows", '{"n": 20}')]
FAULTY = {
    ("fail", "{}"): "failed",
    ("leave", "{}"): "failed",
    ("lock", "{}"): "failed",
    ("oversleep", "{}"): "timed_out",
    ("hang", "{}"): "timed_out",
    ("cling", "{}"): "timed_out",
    ("add", '{"a": 1,'): "invalid_arguments",
    ("add", '{"a": 1, "a": 2}'): "invalid_arguments",
    ("add", '{"a": {"b": [1]}}'): "invalid_arguments",
    ("ad", "{}"): "not_found",
    ("x" * 10_000, "{}"): "not_found",
}


# -- how they are called


def one_by_one(calls: Sequence[ToolCall]) -> list[ToolResult]:
    return [dispatch.call(call, TOOLS) for call in calls]


def as_a_turn(calls: Sequence[ToolCall]) -> list[ToolResult]:
    return dispatch.call_tools(calls, TOOLS)


def one_by_one_async(calls: Sequence[ToolCall]) -> list[ToolResult]:
    async def main() -> list[ToolResult]:
        return [await dispatch.acall(call, TOOLS) for call in calls]

    return asyncio.run(main())


def as_a_turn_async(calls: Sequence[ToolCall]) -> list[ToolResult]:
    async def main() -> list[ToolResult]:
        await cancelled()
        return await dispatch.acall_tools(calls, TOOLS)

    return asyncio.run(main())


async def cancelled() -> None:
    """Ask for what hangs, in a thread and on the loop, and think better of it."""
    calls = [ToolCall(name, name) for name in ("hang", "oversleep", "cling")]
    task = asyncio.create_task(dispatch.acall_tools(calls, TOOLS))
    await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.wait([task])


def by_an_agent(calls: Sequence[ToolCall]) -> list[ToolResult]:
    return answers(Agent(script(calls), TOOLS).run("go"))


def by_an_agent_async(calls: Sequence[ToolCall]) -> list[ToolResult]:
    async def main() -> list[ToolResult]:
        return answers(await Agent(script(calls), TOOLS).arun("go"))

    return asyncio.run(main())


def script(calls: Sequence[ToolCall]) -> ScriptedEngine:
    half = len(calls) // 2
    return ScriptedEngine([Reply("", tuple(calls[:half])), Reply("", tuple(calls[half:])), "done"])


def answers(envelope: Any) -> list[ToolResult]:
    return [message.result for message in envelope.messages if message.result is not None]


WAYS: list[Callable[[Sequence[ToolCall]], list[ToolResult]]] = [
    one_by_one,
    as_a_turn,
    one_by_one_async,
    as_a_turn_async,
    by_an_agent,
    by_an_agent_async,
]
AT_ONCE = 20


def soak(most: int, chance: random.Random) -> tuple[Counter[str], list[str]]:
    """Answer so many calls; return how many answers of each kind there were, and what was wrong."""
    kinds, wrong, done = Counter[str](), list[str](), 0
    while done < most:
        for way in WAYS:
            calls = [call_number(done + n, chance) for n in range(AT_ONCE)]
            results = way([call for call, _ in calls])
            kinds.update(result.kind for result in results)
            wrong += mistakes(way.__name__, calls, results)
            done += len(calls)
    return kinds, wrong


def call_number(number: int, chance: random.Random) -> tuple[ToolCall, str]:
    """Return a call, and the kind of answer it must have."""
    if chance.random() < FAULTS:
        (name, arguments), kind = chance.choice(list(FAULTY.items()))
        return ToolCall(f"call {number}", name, arguments), kind
    name, arguments = chance.choice(HEALTHY)
    return ToolCall(f"call {number}", name, arguments), "ok"


def mistakes(way: str, calls: Sequence[tuple[ToolCall, str]], results: Sequence[ToolResult]) -> Iterable[str]:
    expected = [(call.id, kind) for call, kind in calls]
    answered = [(result.call.id, result.kind) for result in results]
    if answered != expected:
        yield f"{way}: {sorted(set(answered) ^ set(expected))[:4]}"


# -- what is left of it


def settled() -> Figures:
    """Return the figures once threads that overslept have come back."""
    end = time.monotonic() + 5
    tasks = len(asyncio.all_tasks(portal().loop()))
    while tasks and time.monotonic() < end:
        time.sleep(0.01)
        tasks = len(asyncio.all_tasks(portal().loop()))
    time.sleep(2 * LONG)
    gc.collect()
    proc = Path("/proc/self")
    pages = int((proc / "statm").read_text().split()[1]) if proc.exists() else 0
    files = len(list((proc / "fd").iterdir())) if proc.exists() else 0
    rss = pages * os.sysconf("SC_PAGE_SIZE") / 1e6 if pages else 0.0
    return Figures(rss, threading.active_count(), files, tasks)


def grown(before: Figures, after: Figures) -> list[str]:
    """Return which figures have grown beyond their bounds."""
    over = [
        f"{name}: {then:,.1f} before, {now:,.1f} after, {bound:,.1f} more are allowed"
        for name, then, now, bound in zip(Figures._fields, before, after, BOUNDS, strict=True)
        if now - then > bound
    ]
    if after.threads > MOST_THREADS:
        over.append(f"threads: {after.threads} are more than {MOST_THREADS}")
    return over


def print_table(before: Figures, after: Figures) -> None:
    print(f"\n{'':12}{'before':>10}{'after':>10}{'grown':>10}{'bound':>10}")
    for name, then, now, bound in zip(Figures._fields, before, after, BOUNDS, strict=True):
        print(f"{name:12}{then:10,.1f}{now:10,.1f}{now - then:10,.1f}{bound:10,.1f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=100_000, help="how many calls (%(default)s)")
    most = parser.parse_args().calls
    chance = random.Random(0)  # noqa: S311  # the same calls every time
    soak(min(WARM_UP, most // 2), chance)
    before, started = settled(), time.perf_counter()
    kinds, wrong = soak(most, chance)
    seconds, after = time.perf_counter() - started, settled()
    print(f"{kinds.total():,} calls in {seconds:.0f} s, {kinds.total() / seconds:,.0f} a second")
    print(", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common()))
    print_table(before, after)
    problems = [*wrong[:10], *grown(before, after)]
    print("\n".join(["", *problems]) if problems else "\nevery answer was right and nothing is left behind")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
