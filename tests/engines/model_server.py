"""A real HTTP server on loopback that speaks the providers' wire formats from a script."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

KEY = "sk-very-secret-key"

CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
MESSAGES = "/v1/messages"
GEMINI = "/v1beta/models/gemini-2.5-flash:generateContent"


@dataclass
class Answer:
    """What the server does with one request: a model's answer, or raw bytes under a status."""

    text: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    model: str = "local-model"
    usage: tuple[int, int] | None = (100, 10)
    finish: str | None = None
    refusal: str | None = None
    status: int = 200
    body: bytes | None = None
    cut: bool = False
    hang: bool = False
    output: tuple[dict[str, Any], ...] = ()


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: dict[str, Any] = field(default_factory=dict)
    raw: bytes = b""
    peer: tuple[str, int] = ("", 0)


class ModelServer:
    """Answers requests from `script` in order; the last answer repeats."""

    def __init__(self) -> None:
        self.script: deque[Answer] = deque()
        self.requests: list[Request] = []
        self.arrived = threading.Event()
        self.stopped = threading.Event()
        self._connections = 0
        self._changed = threading.Condition()
        self._server = _Listener(("127.0.0.1", 0), _Handler)
        self._server.model = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def root(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host}:{port}"

    @property
    def base_url(self) -> str:
        return f"{self.root}/v1"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [request.body for request in self.requests]

    def say(self, text: str, **options: Any) -> None:
        self.script.append(Answer(text, **options))

    def ask(self, *calls: tuple[str, str, str], **options: Any) -> None:
        self.script.append(Answer(calls=calls, **options))

    def fail(self, status: int, body: bytes | dict[str, Any] = b"{}") -> None:
        self.script.append(Answer(status=status, body=body if isinstance(body, bytes) else json.dumps(body).encode()))

    def send(self, body: bytes) -> None:
        self.script.append(Answer(body=body))

    def hang(self) -> None:
        self.script.append(Answer(hang=True))

    def connected(self, change: int) -> None:
        with self._changed:
            self._connections += change
            self._changed.notify_all()

    def wait_until_left(self) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._connections == 0, timeout=10)

    def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        self.arrived.set()
        return self.script.popleft() if len(self.script) > 1 else self.script[0]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Listener(ThreadingHTTPServer):
    model: ModelServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener

    def setup(self) -> None:
        super().setup()
        self.server.model.connected(+1)

    def finish(self) -> None:
        super().finish()
        self.server.model.connected(-1)

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:  # the name http.server calls
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.path.partition("?")[0], headers, json.loads(raw), raw, self.client_address)
        answer = self.server.model.answer(request)
        if answer.hang:
            self.server.model.stopped.wait()
            self.close_connection = True
        elif answer.body is not None:
            self._send(answer.status, answer.body)
        elif request.body.get("stream"):
            self._stream(_EVENTS[request.path](answer), answer)
        else:
            self._send(200, json.dumps(_BODIES[request.path](answer)).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("retry-after-ms", "1")
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, events: Iterable[tuple[str, Any]], answer: Answer) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for name, data in events:
            text = data if isinstance(data, str) else json.dumps(data)
            line = f"event: {name}\ndata: {text}\n\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
        if answer.cut:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")


# -- OpenAI Chat Completions


def _chat(answer: Answer) -> dict[str, Any]:
    calls = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id_, name, arguments in answer.calls
    ]
    message = {
        "role": "assistant",
        "content": answer.text or None,
        "refusal": answer.refusal,
        **({"tool_calls": calls} if calls else {}),
    }
    finish = answer.finish or ("tool_calls" if calls else "stop")
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": answer.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        **({"usage": _chat_usage(answer.usage)} if answer.usage else {}),
    }


def _chat_usage(usage: tuple[int, int]) -> dict[str, int]:
    return {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}


def _halves(text: str) -> tuple[str, str]:
    middle = len(text) // 2
    return text[:middle], text[middle:]


def _chat_deltas(answer: Answer) -> Iterable[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    if answer.text:
        yield from ({"content": piece} for piece in _halves(answer.text))
    for index, (id_, name, arguments) in enumerate(answer.calls):
        first, second = _halves(arguments)
        head = {"name": name, "arguments": first}
        yield {"tool_calls": [{"index": index, "id": id_, "type": "function", "function": head}]}
        yield {"tool_calls": [{"index": index, "function": {"arguments": second}}]}


def _chat_events(answer: Answer) -> Iterable[tuple[str, Any]]:
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_790_000_000, "model": answer.model}
    for delta in _chat_deltas(answer):
        yield "message", {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    if answer.cut:
        return
    finish = answer.finish or ("tool_calls" if answer.calls else "stop")
    yield "message", {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
    if answer.usage:
        yield "message", {**base, "choices": [], "usage": _chat_usage(answer.usage)}
    yield "message", "[DONE]"


# -- OpenAI Responses


def _responses(answer: Answer) -> dict[str, Any]:
    text = {"type": "output_text", "text": answer.text, "annotations": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
    calls = [
        {
            "type": "function_call",
            "id": f"fc_{id_}",
            "call_id": id_,
            "name": name,
            "arguments": arguments,
            "status": "completed",
        }
        for id_, name, arguments in answer.calls
    ]
    read, wrote = answer.usage or (0, 0)
    usage = {
        "input_tokens": read,
        "output_tokens": wrote,
        "total_tokens": read + wrote,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_790_000_000,
        "status": "completed",
        "model": answer.model,
        "output": [*answer.output, *([message] if answer.text else []), *calls],
        "usage": usage,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


# -- Anthropic Messages


def _messages(answer: Answer) -> dict[str, Any]:
    calls = [
        {"type": "tool_use", "id": id_, "name": name, "input": json.loads(arguments)}
        for id_, name, arguments in answer.calls
    ]
    return {
        **_messages_head(answer),
        "content": [*([{"type": "text", "text": answer.text}] if answer.text else []), *calls],
        "stop_reason": answer.finish or ("tool_use" if calls else "end_turn"),
    }


def _messages_head(answer: Answer) -> dict[str, Any]:
    read, wrote = answer.usage or (0, 0)
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": read, "output_tokens": wrote},
    }


def _messages_events(answer: Answer) -> Iterable[tuple[str, Any]]:
    yield _named("message_start", message=_messages_head(answer))
    for index, (block, deltas) in enumerate(_blocks(answer)):
        yield _named("content_block_start", index=index, content_block=block)
        for delta in deltas:
            yield _named("content_block_delta", index=index, delta=delta)
        yield _named("content_block_stop", index=index)
    stop = answer.finish or ("tool_use" if answer.calls else "end_turn")
    wrote = answer.usage[1] if answer.usage else 0
    yield _named("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage={"output_tokens": wrote})
    yield _named("message_stop")


def _blocks(answer: Answer) -> Iterable[tuple[dict[str, Any], list[dict[str, Any]]]]:
    if answer.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in _halves(answer.text)]
    for id_, name, arguments in answer.calls:
        pieces = [{"type": "input_json_delta", "partial_json": piece} for piece in _halves(arguments)]
        yield {"type": "tool_use", "id": id_, "name": name, "input": {}}, pieces


# -- Gemini


def _gemini(answer: Answer) -> dict[str, Any]:
    calls = [{"functionCall": {"id": id_, "name": name, "args": json.loads(args)}} for id_, name, args in answer.calls]
    read, wrote = answer.usage or (0, 0)
    return {
        "candidates": [
            {
                "index": 0,
                "finishReason": answer.finish or "STOP",
                "content": {"role": "model", "parts": [*([{"text": answer.text}] if answer.text else []), *calls]},
            }
        ],
        "modelVersion": answer.model,
        "usageMetadata": {
            "promptTokenCount": read,
            "candidatesTokenCount": wrote,
            "totalTokenCount": read + wrote,
        },
    }


def _named(name: str, **data: Any) -> tuple[str, Any]:
    return name, {"type": name, **data}


_BODIES = {CHAT: _chat, RESPONSES: _responses, MESSAGES: _messages, GEMINI: _gemini}
_EVENTS = {CHAT: _chat_events, MESSAGES: _messages_events}
