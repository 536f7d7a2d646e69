"""A server that answers with whatever bytes a test wants, right or wrong, and remembers what it was asked."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def reply(body: bytes | Any, status: str = "200 OK", *headers: str, length: int | None = None) -> bytes:
    """A whole answer; data that is not bytes is written as JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    length = len(content) if length is None else length
    head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {length}", "Connection: close", *headers])
    return head.encode() + b"\r\n\r\n" + content


class RawServer:
    """Answers connections one request each, from `script`; the last answer repeats."""

    def __init__(self) -> None:
        self.script: deque[bytes | Callable[[socket.socket], None]] = deque()
        self.asked: list[Asked] = []
        self.hung_up = threading.Event()
        self.stopped = threading.Event()
        self.arrived = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)

    @property
    def port(self) -> int:
        return self._socket.getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def say(self, *answers: Any) -> None:
        """Answer with these, in order: bytes as they are, functions of the connection, other data as JSON."""
        self.script.extend(one if isinstance(one, bytes) or callable(one) else reply(one) for one in answers)

    def mute(self, connection: socket.socket) -> None:
        """Say nothing until the other side hangs up or the test is over."""
        connection.settimeout(0.05)
        while not self.stopped.is_set():
            with contextlib.suppress(TimeoutError):
                if not connection.recv(1):
                    self.hung_up.set()
                    return

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for thread in (self._thread, *self._threads):
            thread.join(5)

    def _accept(self) -> None:
        while not self.stopped.is_set():
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            asked = _read(connection)
            if asked is None:
                return
            self.asked.append(asked)
            self.arrived.set()
            answer = self.script.popleft() if len(self.script) > 1 else self.script[0]
            if callable(answer):
                answer(connection)
            else:
                connection.sendall(answer)


def _read(connection: socket.socket) -> Asked | None:
    stream = connection.makefile("rb")
    first = stream.readline().decode().split()
    if not first:
        return None
    headers: dict[str, str] = {}
    while line := stream.readline().decode("latin-1").strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return Asked(first[0], first[1], headers, stream.read(int(headers.get("content-length", 0))))
