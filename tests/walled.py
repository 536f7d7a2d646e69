"""Functions that behave and misbehave behind walls."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time


def add(a: int, b: int = 0) -> int:
    """Add."""
    return a + b


def pid() -> int:
    return os.getpid()


def die(code: int = 3) -> None:
    os._exit(code)


def segfault() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def sleep(seconds: float) -> str:
    time.sleep(seconds)
    return "slept"


def hog(n: int) -> int:
    return len(bytearray(n))


def fail(text: str) -> None:
    raise ValueError(text)


def leave() -> None:
    sys.exit(4)


def daemonize(seconds: float = 300.0) -> int:
    """Leave a process behind that is in a session of its own."""
    program = f"import time; time.sleep({seconds})"
    child = subprocess.Popen([sys.executable, "-S", "-c", program], start_new_session=True)
    return child.pid


def fork_many(count: int) -> None:
    for _ in range(count):
        if os.fork() == 0:
            time.sleep(300)
    time.sleep(300)


def maybe(n: int) -> int:
    if n % 20 == 7:
        os._exit(1)
    return n


def note_and_sleep(path: str) -> None:
    child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(300)"], start_new_session=True)
    with open(path, "w") as file:  # noqa: PTH123  # nothing heavy is imported here
        file.write(f"{os.getpid()} {child.pid}\n")
    time.sleep(300)
