"""The HTTP client of a gateway, before servers that are right, wrong, hostile, slow and silent."""

from __future__ import annotations

import asyncio
import gc
import gzip
import socket
import threading

import httpx2
import pytest
from raw_server import RawServer, reply

from toolcrib import (
    ExternalToolClient,
    ExternalToolError,
    ExternalToolProvider,
    JsonHttpExternalToolClient,
    Secret,
    ToolCall,
    ToolcribError,
    ToolProgress,
    Toolset,
    acall_tools,
    call_tools,
)
from toolcrib._http import _objection
from toolcrib.limits import MAX_HTTP_BYTES, MAX_PIECES, MAX_REDIRECTS
from toolcrib.types import ToolResponse

KEY = "sk-very-secret-key"


def client(server, **options):
    return JsonHttpExternalToolClient(server.url, **{"timeout": 5.0, **options})


def refusal(server, answer, **options) -> ExternalToolError:
    """What a call raises when the server answers so."""
    server.say(answer)
    with pytest.raises(ExternalToolError) as raised:
        client(server, **options).call_tool("boom", {})
    return raised.value


# -- what is asked


def test_the_catalogue_is_a_get_of_tools_with_accept_and_bearer(server):
    server.say([{"name": "a"}])
    assert client(server, api_key=KEY).list_tools() == [{"name": "a"}]
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("GET", "/tools")
    assert asked.headers["accept"] == "application/json"
    assert asked.headers["authorization"] == f"Bearer {KEY}"


def test_the_catalogue_may_be_an_object_with_tools(server):
    server.say({"tools": [{"name": "a"}]})
    assert client(server).list_tools() == [{"name": "a"}]


def test_a_call_posts_its_arguments_and_passes_the_json_through_unmodified(server):
    answer = {"rows": [1, 2.5, None, {"deep": [True, "ü"]}], "big": 2**70}
    server.say(answer)
    assert client(server).call_tool("search", {"q": "ü", "n": 3}) == answer
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/tools/search/call")
    assert asked.json == {"arguments": {"q": "ü", "n": 3}}
    assert asked.headers["content-type"] == "application/json"


def test_an_answer_without_content_is_none(server):
    server.say(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
    assert client(server).call_tool("a", {}) is None


def test_trailing_slashes_of_the_address_are_dropped_and_a_path_is_kept(server):
    server.say([])
    JsonHttpExternalToolClient(f"{server.url}/v1//").list_tools()
    assert server.asked[0].path == "/v1/tools"


def test_both_paths_can_be_changed(server):
    server.say([])
    both = client(server, tools_path="registry", call_path_template="/run/{name}?v=2")
    both.list_tools()
    both.call_tool("a", {})
    assert [asked.path for asked in server.asked] == ["/registry", "/run/a?v=2"]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a/b c?", "a%2Fb%20c%3F"),
        ("../admin", "..%2Fadmin"),
        ("%2e%2e", "%252e%252e"),
        ("fs.read", "fs.read"),
        ("größe", "gr%C3%B6%C3%9Fe"),
        ("a#b", "a%23b"),
    ],
)
def test_a_name_is_escaped_as_one_segment(server, name, path):
    server.say({})
    client(server).call_tool(name, {})
    assert server.asked[0].path == f"/tools/{path}/call"


@pytest.mark.parametrize("name", [".", "..", "", "\ud800"])
def test_a_name_no_address_can_have_is_refused_before_anything_is_sent(server, name):
    server.say({})
    with pytest.raises(ExternalToolError, match="cannot be asked for"):
        client(server).call_tool(name, {})
    assert server.asked == []


def test_arguments_that_json_cannot_carry_are_refused_with_their_path(server):
    with pytest.raises(ExternalToolError, match=r"arguments\.rows\[0\]"):
        client(server).call_tool("a", {"rows": [object()]})


@pytest.mark.parametrize("name", ["Authorization", "authorization", "AUTHORIZATION"])
def test_an_authorization_of_the_callers_own_wins_over_the_api_key(server, name):
    server.say([])
    client(server, api_key=KEY, headers={name: "Token other", "X-Team": "blue"}).list_tools()
    assert server.asked[0].headers["authorization"] == "Token other"
    assert server.asked[0].headers["x-team"] == "blue"


def test_user_and_password_of_the_address_are_sent_as_a_header_and_shown_nowhere(server):
    server.say(reply({"you": "ada:correct-horse"}, "403 Forbidden"))
    made = JsonHttpExternalToolClient(server.url.replace("//", "//ada:correct-horse@"))
    assert "correct-horse" not in f"{made!r} {made.name}"
    with pytest.raises(ExternalToolError) as raised:
        made.list_tools()
    assert server.asked[0].headers["authorization"].startswith("Basic ")
    assert "correct-horse" not in f"{raised.value} {raised.value.body}"


def test_cookies_are_not_kept(server):
    server.say(reply([], "200 OK", "Set-Cookie: session=1; Path=/"))
    one = client(server)
    one.list_tools()
    one.list_tools()
    assert "cookie" not in server.asked[1].headers


# -- credentials


def test_the_key_is_in_no_repr_error_and_answer(server):
    made = client(server, api_key=Secret(KEY))
    assert KEY not in repr(made)
    server.say(reply({"error": f"bad key {KEY}"}, "401 Unauthorized"), reply({"echo": f"Bearer {KEY}"}))
    with pytest.raises(ExternalToolError) as raised:
        made.call_tool("a", {})
    assert raised.value.body == {"error": "bad key ***"}
    assert KEY not in str(raised.value)
    (result,) = call_tools([ToolCall("1", "a")], Toolset([ExternalToolProvider(made, specs=[{"name": "a"}])]))
    assert result.text == '{"echo":"Bearer ***"}'


@pytest.mark.parametrize("options", [{"api_key": KEY}, {"headers": {"authorization": f"Bearer {KEY}"}}])
def test_credentials_over_plain_http_to_another_machine_are_refused(options):
    with pytest.raises(ValueError, match=r"plain http to gateway\.example.*allow_insecure=True") as raised:
        JsonHttpExternalToolClient("http://gateway.example", **options)
    assert KEY not in str(raised.value)
    JsonHttpExternalToolClient("http://gateway.example", allow_insecure=True, **options)
    JsonHttpExternalToolClient("https://gateway.example", **options)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "[::1]", "x.localhost"])
def test_credentials_over_plain_http_stay_allowed_on_this_machine(host):
    assert JsonHttpExternalToolClient(f"http://{host}:1", api_key=KEY)


def test_a_key_that_no_header_can_carry_is_refused_and_not_shown():
    with pytest.raises(ValueError, match="api_key has characters") as raised:
        JsonHttpExternalToolClient("https://gateway.example", api_key="ab\r\nX-Evil: 1")
    assert "Evil" not in str(raised.value)


@pytest.mark.parametrize(
    "address", ["", "gateway.example", "ftp://x", "http://", "http://x?y=1", "http://x:99999", None]
)
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(ValueError, match="base_url must be"):
        JsonHttpExternalToolClient(address)


@pytest.mark.parametrize("options", [{"timeout": 0}, {"timeout": float("nan")}, {"call_path_template": "/run"}])
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(ValueError, match=r"timeout|call_path_template"):
        JsonHttpExternalToolClient("https://gateway.example", **options)


# -- failures


def test_a_failure_carries_status_and_parsed_body(server):
    error = refusal(server, reply({"code": 7}, "500 Internal Server Error"))
    assert str(error) == "External tool gateway returned HTTP 500 for POST /tools/boom/call"
    assert (error.status, error.body) == (500, {"code": 7})
    assert isinstance(error, RuntimeError)
    assert isinstance(error, ToolcribError)


@pytest.mark.parametrize("status", [400, 404, 429, 503])
def test_every_status_of_failure_is_the_same_error_with_the_raw_text(server, status):
    error = refusal(server, reply(b"<h1>no</h1>", f"{status} No"))
    assert (error.status, error.body) == (status, "<h1>no</h1>")


def test_the_error_of_the_catalogue_names_its_request(server):
    server.say(reply(b"", "502 Bad Gateway"))
    with pytest.raises(ExternalToolError, match=r"returned HTTP 502 for GET /tools$"):
        client(server).list_tools()


@pytest.mark.parametrize("body", [b"{not json", b"", b"NaN", b"[1] [2]", b'"\xff\xfe"', b'"\\ud800"', b"[" * 100_000])
def test_a_body_that_is_no_json_is_said_to_be_invalid(server, body):
    error = refusal(server, reply(body))
    assert "returned invalid JSON for POST /tools/boom/call" in str(error)
    assert error.status == 200


@pytest.mark.parametrize("body", [{}, {"tools": {}}, {"tools": None}, "tools", 3, None])
def test_a_catalogue_that_is_no_list_is_refused(server, body):
    server.say(reply(body))
    with pytest.raises(ExternalToolError, match=r"registry must return a list or \{'tools': list\}"):
        client(server).list_tools()


def test_nobody_at_the_address_is_an_error_of_the_gateway():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ExternalToolError, match="could not be reached for GET /tools") as raised:
        JsonHttpExternalToolClient(f"http://127.0.0.1:{port}").list_tools()
    assert raised.value.status is None


def test_a_body_shorter_than_announced_is_an_error(server):
    assert "broke off for POST" in str(refusal(server, reply(b"[1", length=10)))


def test_a_body_longer_than_announced_is_cut_where_it_was_announced(server):
    server.say(reply(b"[1][2]", length=3))
    assert client(server).call_tool("a", {}) == [1]


@pytest.mark.parametrize("answer", [b"garbage\r\n\r\n", b"", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"])
def test_what_is_not_http_is_an_error_of_the_gateway(server, answer):
    assert "could not be reached" in str(refusal(server, answer))


def test_an_endless_body_is_given_up_at_its_bound(server):
    def endless(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n[")
        while True:
            connection.sendall(b"1," * 100_000)

    assert f"more than {MAX_HTTP_BYTES:,} bytes" in str(refusal(server, endless, timeout=60))


def test_an_endless_body_of_a_failure_is_cut(server):
    def endless(connection):
        connection.sendall(b"HTTP/1.1 500 Oh\r\n\r\n")
        while True:
            connection.sendall(b"x" * 1_000_000)

    error = refusal(server, endless, timeout=60)
    assert error.status == 500
    assert len(error.body) == MAX_HTTP_BYTES


def test_a_small_body_that_unpacks_to_a_huge_one_is_refused(server):
    bomb = gzip.compress(b" " * (MAX_HTTP_BYTES + 1), 9)
    twice = gzip.compress(bomb)
    assert len(bomb) < 30_000
    server.say(reply(bomb, "200 OK", "Content-Encoding: gzip"), reply(twice, "200 OK", "Content-Encoding: gzip, gzip"))
    for _ in range(2):
        with pytest.raises(ExternalToolError, match="more than"):
            client(server).call_tool("a", {})


def test_a_body_that_is_not_packed_as_it_says_is_an_error(server):
    assert "broke off" in str(refusal(server, reply(b"not gzip", "200 OK", "Content-Encoding: gzip")))


def test_a_silent_server_is_given_up_after_the_timeout(server):
    assert "did not answer within 0.2 seconds for POST" in str(refusal(server, server.mute, timeout=0.2))
    assert server.hung_up.wait(5)


def test_a_body_that_drips_is_given_up_after_the_timeout(server):
    def drip(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while not server.stopped.wait(0.02):
            connection.sendall(b" ")

    error = refusal(server, drip, timeout=0.3)
    assert "did not answer within 0.3 seconds" in str(error)
    assert error.status == 200


# -- redirects


def redirect(to: str, status: int = 302) -> bytes:
    return reply(b"", f"{status} Elsewhere", f"Location: {to}")


def test_a_redirect_to_another_host_is_refused_and_nothing_is_sent_there(server):
    with RawServer() as other:
        other.say([])
        server.say(redirect(f"http://localhost:{other.port}/tools"))
        with pytest.raises(ExternalToolError, match="refusing redirect to different host 'localhost'") as raised:
            client(server, api_key=KEY).list_tools()
        assert raised.value.status == 302
        assert other.asked == []


def test_another_port_is_another_host(server):
    with RawServer() as other:
        other.say([])
        server.say(redirect(f"{other.url}/tools"))
        with pytest.raises(ExternalToolError, match="refusing redirect to different host"):
            client(server, api_key=KEY).list_tools()
        assert other.asked == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_within_the_host_is_followed_for_the_catalogue(server, status):
    server.say(redirect("/other?x=1", status), [{"name": "a"}])
    assert client(server, api_key=KEY).list_tools() == [{"name": "a"}]
    assert server.asked[1].path == "/other?x=1"
    assert server.asked[1].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("status", [307, 308])
def test_a_call_is_repeated_with_its_body_where_the_redirect_keeps_the_method(server, status):
    server.say(redirect("/v2/call", status), {"ok": True})
    assert client(server).call_tool("a", {"n": 1}) == {"ok": True}
    assert (server.asked[1].method, server.asked[1].json) == ("POST", {"arguments": {"n": 1}})


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_call_is_never_turned_into_a_get(server, status):
    error = refusal(server, redirect("/v2/call", status))
    assert "refusing redirect that would turn POST into GET" in str(error)
    assert error.status == status
    assert len(server.asked) == 1


def test_redirects_in_a_circle_end(server):
    server.say(redirect("/tools"))
    with pytest.raises(ExternalToolError, match=f"redirected more than {MAX_REDIRECTS} times"):
        client(server).list_tools()
    assert len(server.asked) == MAX_REDIRECTS + 1


def test_a_login_in_a_redirect_does_not_replace_the_credentials(server):
    server.say(redirect(f"http://evil:pw@127.0.0.1:{server.port}/x"), [])
    client(server, api_key=KEY).list_tools()
    assert server.asked[1].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("to", ["ftp://127.0.0.1/x", "http://[", "javascript:alert(1)"])
def test_a_redirect_to_what_is_no_web_address_is_refused(server, to):
    server.say(redirect(to))
    with pytest.raises(ExternalToolError, match="refusing redirect to"):
        client(server).list_tools()


def test_a_redirect_without_a_place_is_a_failure(server):
    error = refusal(server, reply(b"", "302 Found"))
    assert "returned HTTP 302" in str(error)


@pytest.mark.parametrize(
    ("old", "new", "objection"),
    [
        ("https://g.example/a", "http://g.example/a", "from https to http"),
        ("http://g.example/a", "https://g.example/a", ""),
        ("http://g.example:8080/a", "https://g.example:8443/a", ""),
        ("https://g.example/a", "https://g.example:443/b", ""),
        ("https://g.example/a", "https://g.example:444/b", "to different host 'g.example:444'"),
        ("https://g.example/a", "https://G.EXAMPLE/b", ""),
        ("https://g.example/a", "https://g.example.evil/b", "to different host 'g.example.evil'"),
    ],
)
def test_where_a_redirect_may_lead(old, new, objection):
    assert _objection(httpx2.URL(old), httpx2.URL(new)) == objection


# -- streams

EVENTS = b'event: progress\ndata: {"progress": 1, "total": 2, "message": "half"}\n\nevent: result\ndata: {"n": 1}\n\n'


def stream(body: bytes, kind: str) -> bytes:
    return reply(body, "200 OK", f"Content-Type: {kind}")


def offered(server, **options):
    return Toolset([ExternalToolProvider(client(server, **options), specs=[{"name": "a"}])])


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("kind", "body", "text", "messages"),
    [
        ("application/x-ndjson", b'"one "\n\n"two"\n', "one two", ["one ", "two"]),
        ("application/x-ndjson", b'{"n": 1}\r\n{"n": 2}', '[{"n":1},{"n":2}]', [None, None]),
        ("application/x-ndjson", b"", "[]", []),
        ("text/event-stream; charset=utf-8", EVENTS, '{"n":1}', ["half"]),
        ("text/event-stream", b": hi\ndata: one\n\ndata: two\n\ndata: [DONE]\n\ndata: x\n\n", "onetwo", ["one", "two"]),
    ],
)
async def test_a_streamed_answer_is_progress_and_then_the_value(server, kind, body, text, messages):
    server.say(stream(body, kind))
    events = []
    (result,) = await acall_tools([ToolCall("1", "a")], offered(server), on_event=events.append)
    assert (result.kind, result.text) == ("ok", text)
    assert [event.message for event in events if isinstance(event, ToolProgress)] == messages


@pytest.mark.anyio
async def test_values_are_told_before_the_stream_ends(server):
    go_on = threading.Event()

    def slowly(connection):
        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nConnection: close\r\n\r\n"one"\n')
        assert go_on.wait(5)
        connection.sendall(b'"two"\n')

    server.say(slowly)
    pieces = await client(server).acall_tool("a", {})
    assert await anext(pieces) == "one"
    go_on.set()
    assert [piece async for piece in pieces] == ["two"]


@pytest.mark.anyio
async def test_a_stream_that_is_left_early_is_closed(server):
    def first(connection):
        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n"one"\n')
        server.mute(connection)

    server.say(first)
    pieces = await client(server).acall_tool("a", {})
    assert await anext(pieces) == "one"
    await pieces.aclose()
    assert await asyncio.to_thread(server.hung_up.wait, 5)


def test_a_stream_is_gathered_for_a_sync_caller(server):
    server.say(stream(b'"one "\n"two"\n', "application/x-ndjson"), stream(EVENTS, "text/event-stream"))
    assert client(server).call_tool("a", {}) == "one two"
    assert client(server).call_tool("a", {}) == {"n": 1}


def test_a_failure_in_a_stream_is_an_error_with_its_words(server):
    server.say(stream(b'event: error\ndata: {"error": {"message": "no rows"}}\n\n', "text/event-stream"))
    (result,) = call_tools([ToolCall("1", "a")], offered(server))
    assert result.kind == "failed"
    assert "reported a failure for POST /tools/a/call: no rows" in result.text


def test_a_line_that_is_no_json_ends_a_stream_with_an_error(server):
    server.say(stream(b'"one"\n{oops\n', "application/x-ndjson"))
    (result,) = call_tools([ToolCall("1", "a")], offered(server))
    assert "invalid JSON" in result.text


def test_a_stream_of_too_many_values_is_given_up(server):
    server.say(stream(b"1\n" * (MAX_PIECES + 1), "application/x-ndjson"))
    with pytest.raises(ExternalToolError, match="streamed more than"):
        client(server, timeout=60).call_tool("a", {})


@pytest.mark.anyio
async def test_an_iterator_of_the_client_gives_progress_and_the_outcome_as_values(server):
    server.say(stream(EVENTS, "text/event-stream"))
    pieces = [piece async for piece in await client(server).acall_tool("a", {})]
    assert pieces == [ToolProgress("", "", 1.0, 2.0, "half"), ToolResponse(success=True, data={"n": 1})]


# -- loops and threads


def test_it_is_a_client():
    assert isinstance(JsonHttpExternalToolClient("https://gateway.example"), ExternalToolClient)


def test_one_client_serves_many_loops_threads_and_sync_callers(server):
    server.say({"ok": True})
    one = client(server)
    answers = [asyncio.run(one.acall_tool("a", {})) for _ in range(2)]
    threads = [threading.Thread(target=lambda: answers.append(asyncio.run(one.acall_tool("a", {})))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    answers.append(one.call_tool("a", {}))
    assert answers == [{"ok": True}] * 6


def test_a_client_that_nobody_holds_any_more_hangs_up(server):
    def keep(connection):
        connection.sendall(reply([]).replace(b"Connection: close", b"Connection: keep-alive"))
        server.mute(connection)

    server.say(keep)
    client(server).list_tools()
    gc.collect()
    assert server.hung_up.wait(5)


@pytest.mark.anyio
async def test_the_sync_methods_work_inside_a_loop(server):
    server.say([{"name": "a"}])
    assert client(server).list_tools() == [{"name": "a"}]


@pytest.mark.anyio
async def test_a_cancelled_call_hangs_up(server):
    server.say(server.mute)
    task = asyncio.create_task(client(server).acall_tool("a", {}))
    assert await asyncio.to_thread(server.arrived.wait, 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.hung_up.wait, 5)


@pytest.mark.anyio
async def test_calls_run_side_by_side_and_take_no_worker_threads(server):
    together = threading.Barrier(20)

    def answer(connection):
        together.wait(10)
        connection.sendall(reply({"ok": True}))

    server.say(answer)
    before = workers()
    results = await acall_tools([ToolCall(str(n), "a") for n in range(20)], offered(server))
    assert {result.text for result in results} == {'{"ok":true}'}
    assert workers() <= before


def workers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "toolcrib worker"}
