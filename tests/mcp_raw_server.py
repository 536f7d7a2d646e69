"""An MCP server over pipes without any library: what it says and how it misbehaves is given as JSON in its argument."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

OPTIONS = json.loads(sys.argv[1]) if __name__ == "__main__" and len(sys.argv) > 1 else {}
READ = {"readOnlyHint": True}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def entry(**options):
    """Return what starts this server, as a configuration has it."""
    return {"command": sys.executable, "args": [__file__, json.dumps(options)]}


def tool(name, *, annotations=None, **more):
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return {"name": name, "description": f"Do {name}.", "inputSchema": schema, "annotations": annotations or {}, **more}


TOOLS = [
    tool("echo", annotations=READ),
    tool("pid", annotations=READ),
    tool("env", annotations=READ),
    tool("fail"),
    tool("refuse"),
    tool("hang", annotations=READ),
    tool("deaf"),
    tool("endless"),
    tool("die"),
    tool("die_once", annotations=READ),
    tool("structured", outputSchema={"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"]}),
    tool("mixed"),
    tool("giant", annotations={"destructiveHint": True}),
    tool("giant_backwards", annotations={"idempotentHint": True}),
    tool("deep"),
    tool("noise"),
    tool("bad_bytes"),
    tool("flood", annotations={"destructiveHint": False}),
    tool("strange"),
    tool("steps"),
    tool("cancelled", annotations=READ),
]


def say(message):
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    sys.stdout.buffer.flush()


def answer(request, result):
    say({"id": request["id"], "result": result})


def text(request, words):
    answer(request, {"content": [{"type": "text", "text": words}]})


def raw(line):
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


CANCELLED = []


def call(request):  # noqa: C901, PLR0912, PLR0915  # a table of ways to answer
    name, arguments, number = request["params"]["name"], request["params"].get("arguments", {}), request["id"]
    if name == "echo":
        text(request, arguments.get("text", ""))
    elif name == "pid":
        text(request, str(os.getpid()))
    elif name == "env":
        text(request, json.dumps({"env": dict(os.environ), "cwd": str(Path.cwd())}))
    elif name == "fail":
        answer(request, {"content": [{"type": "text", "text": "the disk is full"}], "isError": True})
    elif name == "refuse":
        say({"id": number, "error": {"code": -32602, "message": "no such thing"}})
    elif name == "hang":
        pass
    elif name == "deaf":
        time.sleep(600)
    elif name == "endless":
        while True:
            sys.stdout.buffer.write(b"x" * 1_000_000)
    elif name == "die" or (name == "die_once" and not Path(arguments["text"]).exists()):
        if name == "die_once":
            Path(arguments["text"]).touch()
        os._exit(3)
    elif name == "die_once":
        text(request, "the second time")
    elif name == "structured":
        answer(request, {"content": [], "structuredContent": {"n": 5}})
    elif name == "mixed":
        blocks = [
            {"type": "text", "text": "look:"},
            {"type": "image", "data": PNG, "mimeType": "image/png"},
            {"type": "audio", "data": PNG, "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "inside"}},
            {"type": "resource_link", "uri": "file:///b.txt", "name": "b", "description": "another"},
        ]
        answer(request, {"content": blocks})
    elif name == "giant":
        raw(
            b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % number
            + b"x" * 21_000_000
            + b'"}]}}'
        )
    elif name == "giant_backwards":
        raw(
            b'{"result":{"content":[{"type":"text","text":"'
            + b"x" * 21_000_000
            + b'"}]},"jsonrpc":"2.0","id":%d}' % number
        )
    elif name == "deep":
        raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":' % number + b"[" * 5_000 + b"]" * 5_000 + b"}}")
    elif name == "noise":
        raw(b"debug: about to answer")
        raw(b"")
        raw(b'{"jsonrpc": "2.0", "id": 999999, "result": {"content": []}}')
        raw(b'{"jsonrpc": "2.0", "id": "nobody", "result": {"content": []}}')
        raw(b'{"jsonrpc": "2.0", "method": "notifications/unheard_of"}')
        raw(b"[1, 2")
        text(request, "the answer")
    elif name == "bad_bytes":
        raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"a\xff\xfeb"}]}}' % number)
    elif name == "flood":
        for _ in range(2_000):
            sys.stderr.write("flood " * 200 + "\n")
        text(request, "after the flood")
    elif name == "strange":
        answer(request, {"content": [{"type": "hologram"}, "words", {"type": "text"}], "isError": "no", "more": 1})
    elif name == "steps":
        token = request["params"].get("_meta", {}).get("progressToken")
        for step in (1, 2):
            params = {"progressToken": token, "progress": step, "total": 2, "message": f"step {step}"}
            say({"method": "notifications/progress", "params": params})
        text(request, f"token {token}")
    elif name == "changed":
        say({"method": "notifications/tools/list_changed"})
        text(request, "told")
    elif name == "cancelled":
        text(request, json.dumps(CANCELLED))
    else:
        say({"id": number, "error": {"code": -32602, "message": f"Unknown tool: {name}"}})


def page(request):
    cursor = request["params"].get("cursor") if "params" in request else None
    number = int(cursor or 0)
    kind = OPTIONS.get("pages")
    if kind == "endless":
        return {"tools": [tool(f"t{number}")], "nextCursor": str(number + 1)}
    if kind == "loop":
        return {"tools": [tool(f"t{number}")], "nextCursor": str((number + 1) % 3)}
    if kind == "two":
        return {"tools": [tool(f"t{number}")], **({"nextCursor": "1"} if number == 0 else {})}
    if kind == "none":
        return {"things": []}
    if kind == "file":
        return {"tools": [tool(name) for name in Path(OPTIONS["names"]).read_text(encoding="utf-8").split()]}
    return {"tools": OPTIONS.get("tools") or TOOLS}


def handle(request):
    method = request.get("method")
    if "id" not in request:
        if method == "notifications/cancelled":
            CANCELLED.append(request["params"]["requestId"])
    elif method == "initialize":
        if OPTIONS.get("mute"):
            return
        answer(
            request,
            {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "raw", "version": "1"},
            },
        )
    elif method == "tools/list":
        answer(request, page(request))
    elif method == "tools/call":
        call(request)
    elif method == "ping":
        answer(request, {})
    elif method == "server/discover" and OPTIONS.get("mute"):
        pass
    elif method == "server/discover" and OPTIONS.get("dies_of_news"):
        sys.exit("expected initialize")
    else:
        say({"id": request["id"], "error": {"code": -32601, "message": "Method not found"}})


def main():
    if OPTIONS.get("dies"):
        sys.stdout.write("usage: give me a key\n")
        sys.exit(OPTIONS["dies"])
    if (away := OPTIONS.get("away")) and Path(away).exists():
        sys.exit("away")
    if OPTIONS.get("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if where := OPTIONS.get("pids"):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        Path(where).write_text(f"{os.getpid()} {child.pid}", encoding="utf-8")
    for line in sys.stdin.buffer:
        if line.strip():
            handle(json.loads(line))
    while OPTIONS.get("stubborn"):
        time.sleep(1)


if __name__ == "__main__":
    main()
