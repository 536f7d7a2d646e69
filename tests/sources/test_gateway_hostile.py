"""A gateway that means harm: redirects that lead away, floods, numbers and nesting without end, half sentences."""

from __future__ import annotations

import asyncio
import gzip
import time

import pytest
from raw_server import RawServer, reply

from toolcrib import ExternalToolError, ExternalToolProvider, JsonHttpExternalToolClient, ToolCall, Toolset, call_tools
from toolcrib._portal import portal
from toolcrib.limits import MAX_HTTP_LINES, MAX_REDIRECTS

KEY = "sk-very-secret-key"


def client(server, **options):
    return JsonHttpExternalToolClient(server.url, **{"timeout": 5.0, "api_key": KEY, **options})


def failing(server, **options) -> ExternalToolError:
    with pytest.raises(ExternalToolError) as raised:
        client(server, **options).call_tool("boom", {"password": "hunter22"})
    return raised.value


# -- redirects


@pytest.fixture
def elsewhere():
    with RawServer() as running:
        running.say({"stolen": True})
        yield running


@pytest.mark.parametrize(
    "to",
    [
        "http://127.0.0.1:{evil}/",
        "http://localhost:{evil}/",
        "http://localhost:{own}/",
        "//127.0.0.1:{evil}/",
        "///127.0.0.1:{evil}/",
        "\\\\127.0.0.1:{evil}\\",
        "/\\127.0.0.1:{evil}/",
        "http:\\\\127.0.0.1:{evil}/",
        "http:127.0.0.1:{evil}/",
        "http:///127.0.0.1:{evil}/",
        "http://127.0.0.1:{own}@127.0.0.1:{evil}/",
        "http://127.0.0.1:{evil}#@127.0.0.1:{own}/",
        "http://127.0.0.1:{evil}?@127.0.0.1:{own}/",
        "http://127.0.0.1:{evil}\\@127.0.0.1:{own}/",
        "http://127.1:{own}/",
        "http://2130706433:{own}/",
        "http://127.0.0.1.:{own}/",
        "http://[::ffff:127.0.0.1]:{own}/",
        "http://127.0.0.1:{own}.evil.example/",
        "http://127.0.0.1:{evil}0/",
        "https://127.0.0.1.evil.example/",
        "http://①27.0.0.1:{evil}/",
        "http://127.0.0.1%2f:{evil}/",
        " http://127.0.0.1:{evil}/",
        "http://127.0.0.1:{evil}/, http://127.0.0.1:{own}/",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:application/json,1",
        "ftp://127.0.0.1:{evil}/",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:-1/",
        "",
        "\x01",
    ],
)
@pytest.mark.parametrize("status", ["307 Temporary Redirect", "302 Found"])
def test_no_redirect_takes_a_call_or_its_credentials_away(server, elsewhere, to, status):
    location = to.format(evil=elsewhere.port, own=server.port)
    answer = reply(b"", status, "Location: {}").replace(b"{}", location.encode())
    server.say(*[answer] * (MAX_REDIRECTS + 1))
    error = failing(server)
    assert elsewhere.asked == []
    assert all(asked.method == "POST" for asked in server.asked)
    assert KEY not in str(error)


def test_a_redirect_cannot_change_what_is_asked(server):
    server.say(reply(b"", "307 Temporary Redirect", "Location: /other#frag"), {"ok": 1})
    assert client(server).call_tool("a", {"x": 1}) == {"ok": 1}
    assert [(asked.method, asked.path, asked.json) for asked in server.asked] == [
        ("POST", "/tools/a/call", {"arguments": {"x": 1}}),
        ("POST", "/other", {"arguments": {"x": 1}}),
    ]


# -- floods


@pytest.mark.parametrize("kind", ["application/x-ndjson", "text/event-stream"])
def test_a_flood_of_lines_is_given_up_and_holds_up_nobody_else(server, kind):
    gaps = [0.0]

    async def watch() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            gaps.append(time.monotonic() - before)

    flood = gzip.compress(b"\n" * (MAX_HTTP_LINES + 2), 1)
    server.say(reply(flood, "200 OK", f"Content-Type: {kind}", "Content-Encoding: gzip"))
    watching = asyncio.run_coroutine_threadsafe(watch(), portal().loop())
    error = failing(server, timeout=60.0)
    watching.cancel()
    assert f"more than {MAX_HTTP_LINES:,} lines" in str(error)
    assert len(gaps) > 10  # many turns for others while a million lines were read


def test_a_flood_of_lines_ends_at_the_deadline(server):
    endless = gzip.compress(b": still here\n" * 900_000, 1)
    server.say(reply(endless, "200 OK", "Content-Type: text/event-stream", "Content-Encoding: gzip"))
    started = time.monotonic()
    error = failing(server, timeout=0.1)
    assert "did not answer within 0.1 seconds" in str(error)
    assert time.monotonic() - started < 5


def test_a_flood_of_interim_answers_ends_at_the_deadline(server):
    def interim(connection) -> None:
        while not server.stopped.is_set():
            connection.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 100)

    server.say(interim)
    assert "did not answer within 0.3 seconds" in str(failing(server, timeout=0.3))


def test_headers_that_never_end_are_given_up(server):
    def headers(connection) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while not server.stopped.is_set():
            connection.sendall(b"X-More: " + b"x" * 1_000 + b"\r\n")

    server.say(headers)
    assert "External tool gateway" in str(failing(server))


def test_a_body_packed_many_times_over_is_given_up(server):
    bomb = gzip.compress(gzip.compress(b" " * 100_000_000))
    server.say(reply(bomb, "200 OK", "Content-Encoding: gzip, gzip"))
    assert "more than 20,000,000 bytes" in str(failing(server))


# -- half sentences and nonsense


@pytest.mark.parametrize(
    "body",
    [
        b"9" * 1_000_000,
        b"[" * 1_000_000,
        b'{"a":' * 100_000,
        b'"\\ud800"',
        b'{"a":1}{"b":2}',
        b"\xff\xfe",
        b"NaN",
        b"\x00",
    ],
)
def test_json_without_sense_or_end_is_an_error_and_never_a_crash(server, body):
    server.say(reply(body))
    assert "returned invalid JSON" in str(failing(server))


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/x-ndjson", b'{"a": 1}\n\xff\xfe\n'),
        ("application/x-ndjson", b'{"a": 1}\n{"b":'),
        ("text/event-stream", b"data: \xff\xfe\n\n"),
        ("text/event-stream", b"event: result\ndata: {\n\n"),
        ("text/event-stream", b"event: result\ndata: \xff\n\n"),
    ],
)
def test_a_stream_that_is_no_text_or_breaks_off_is_an_error(server, kind, body):
    server.say(reply(body, "200 OK", f"Content-Type: {kind}"))
    assert failing(server).status == 200


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: application/x-ndjson\r\n\r\n3\r\n1\n2\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n[1]",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n[1]\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n[1]",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n[1]",
        b"HTTP/1.1 999 What\r\nContent-Length: 3\r\n\r\n[1]",
        b"",
    ],
)
def test_an_answer_that_breaks_the_rules_of_http_is_an_error_of_the_gateway(server, answer):
    server.say(answer)
    assert "External tool gateway" in str(failing(server))


# -- names


@pytest.mark.parametrize(
    "name",
    [
        "../../admin",
        "..%2fadmin",
        "..\\admin",
        "a/../../admin",
        "tools/x",
        "a?admin=1",
        "a#b",
        "a;b",
        "a\r\nX: y",
        "\u2024\u2024",
        "%00",
        " ",
    ],
)
def test_no_name_leads_out_of_its_segment(server, name):
    server.say({"ok": 1})
    client(server).call_tool(name, {})
    (asked,) = server.asked
    head, segment, tail = asked.path[1:].split("/")
    assert (head, tail) == ("tools", "call")
    assert segment not in (".", "..")
    assert set(segment) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%._-~")


def test_a_hostile_name_is_a_tool_like_any_other_or_left_out(server):
    server.say({"tools": [{"name": "../../admin"}, {"name": "x" * 5_000}]}, {"ok": 1})
    with pytest.warns(UserWarning, match="left out"):
        tools = Toolset([ExternalToolProvider(client(server))])
    (result,) = call_tools([ToolCall("1", "../../admin", {})], tools)
    assert (tools.names, result.value, server.asked[-1].path) == (
        ("../../admin",),
        {"ok": 1},
        "/tools/..%2F..%2Fadmin/call",
    )


def test_an_error_that_repeats_the_key_is_told_without_it(server):
    server.say(reply({"error": {"message": f"bad token {KEY}", KEY: 1}}, "403 Forbidden"))
    error = failing(server)
    assert KEY not in f"{error} {error.body!r} {error!r}"
