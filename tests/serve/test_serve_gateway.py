"""A Toolset served over a real server, read back through its source, and asked by strangers."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import socket
import threading
from collections.abc import Iterator

import httpx2
import pytest
import served_tools
from served_tools import TOKEN, add, depth

from toolcrib import (
    ApprovalExecutor,
    ExternalToolError,
    ExternalToolProvider,
    JsonHttpExternalToolClient,
    Limits,
    Secret,
    Tool,
    ToolCall,
    ToolContext,
    ToolProgress,
    ToolResponse,
    Toolset,
    acall_tools,
    call_tools,
)
from toolcrib.schema._walk import resolve
from toolcrib.serve._listen import default_hosts
from toolcrib.serve.gateway import gateway_app, serve_gateway


def agreed() -> ToolResponse:
    return ToolResponse(success=True, data={"n": 1})


async def slow() -> None:
    await asyncio.sleep(60)


TOOLS = [*served_tools.TOOLS, agreed, Tool(slow, timeout=0.05)]
CALLS = [
    ToolCall("1", "math.add", '{"a": 2}'),
    ToolCall("2", "a/b ç?/call", '{"a": 2, "b": "5"}'),
    ToolCall("3", "foreign", '{"x": 2, "self": {"x": 1}, "y": "ü\\u001b"}'),
    ToolCall("4", "depth", '{"node": {"name": "r", "children": [{"name": "l"}]}}'),
    ToolCall("5", "picture"),
    ToolCall("6", "mixed"),
    ToolCall("7", "record"),
    ToolCall("8", "words"),
    ToolCall("9", "agreed"),
]


def back(url, **options) -> Toolset:
    return Toolset([ExternalToolProvider(JsonHttpExternalToolClient(url, **{"timeout": 10.0, **options}))])


# -- there and back


def test_the_tools_read_back_are_the_tools_that_were_served(serve):
    served = Toolset(TOOLS)
    read = back(serve(served))
    assert [tool.definition() for tool in read] == [tool.definition() for tool in served]
    assert [tool.effect for tool in read] == [tool.effect for tool in served]
    assert {tool.origin.partition(":")[0] for tool in read} == {"gateway"}


def test_calls_through_the_gateway_are_answered_as_here_in_sync(serve):
    served = Toolset(TOOLS)
    far, near = call_tools(CALLS, back(serve(served))), call_tools(CALLS, served)
    assert [(result.kind, result.text, result.parts) for result in far] == [
        (result.kind, result.text, result.parts) for result in near
    ]


@pytest.mark.anyio
async def test_calls_through_the_gateway_are_answered_as_here_in_async(serve):
    served = Toolset(TOOLS)
    far, near = await acall_tools(CALLS, back(serve(served))), await acall_tools(CALLS, served)
    assert [(result.kind, result.text, result.parts) for result in far] == [
        (result.kind, result.text, result.parts) for result in near
    ]
    assert far[4].parts[0]["mimeType"] == "image/png"


def test_progress_comes_through_where_the_caller_accepts_a_stream(serve):
    read = back(serve(TOOLS), headers={"Accept": "text/event-stream"})
    events = []
    words, picture, failed = call_tools(
        [ToolCall("1", "words"), ToolCall("2", "picture"), ToolCall("3", "fail")], read, on_event=events.append
    )
    assert words.text == "one two"
    assert [event.message for event in events if isinstance(event, ToolProgress)] == ["one ", "two"]
    assert picture.parts[0]["mimeType"] == "image/png"
    assert "no such row" in failed.text


def test_a_changed_toolset_is_served_as_it_is_now(serve):
    listed = [add]

    class Kit:
        def as_tools(self):
            return [Tool(one) for one in listed]

    served = Toolset([Kit()])
    read = back(serve(served))
    listed.append(depth)
    served.refresh()
    assert read.refresh().added == ("depth",)


# -- failures


@pytest.mark.parametrize(
    ("name", "arguments", "status", "kind", "words"),
    [
        ("nowhere", {}, 404, "not_found", "Tool 'nowhere' not found."),
        ("math.add", {"a": "many"}, 422, "invalid_arguments", "Expected: math.add(a: int"),
        ("math.add", {}, 422, "invalid_arguments", "a: required, but missing"),
        ("fail", {}, 500, "failed", "no such row"),
        ("refused", {}, 500, "failed", "not today"),
        ("slow", {}, 504, "timed_out", "no answer within 0.05 seconds"),
    ],
)
def test_a_failure_is_told_by_status_and_body(serve, name, arguments, status, kind, words):
    client = JsonHttpExternalToolClient(serve(TOOLS), timeout=10)
    with pytest.raises(ExternalToolError) as raised:
        client.call_tool(name, arguments)
    assert raised.value.status == status
    assert raised.value.body["error"]["kind"] == kind
    assert words in raised.value.body["error"]["message"]


def test_a_call_that_nobody_approves_is_forbidden(serve):
    guarded = ApprovalExecutor(lambda *_: False)
    client = JsonHttpExternalToolClient(serve([Tool(add, effect="destructive")], executor=guarded))
    with pytest.raises(ExternalToolError) as raised:
        client.call_tool("add", {"a": 1})
    assert raised.value.status == 403


def post(url, content=b"{}", name="math.add", **headers):
    return httpx2.post(f"{url}/tools/{name}/call", content=content, headers=headers, trust_env=False)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{not json", "not valid JSON"),
        (b"[1]", "must be a JSON object"),
        (b'{"arguments": [1]}', "with an object of arguments"),
        (b'{"arguments": {"a": 1, "a": 2}}', "duplicate key"),
        (b'{"arguments": {"a": NaN}}', "not valid JSON"),
        (b'{"arguments": "\xff"}', "not UTF-8"),
        (b'{"arguments": {"a": ' + b"[" * 500 + b"]" * 500 + b"}}", ""),
        (b"", "required, but missing"),
    ],
)
def test_a_body_that_cannot_be_used_is_told_so(serve, content, words):
    answer = post(serve(TOOLS), content)
    assert answer.status_code == 422
    assert words in answer.json()["error"]["message"]


def test_a_body_that_is_too_long_is_refused(serve):
    answer = post(serve(TOOLS, limits=Limits(max_argument_chars=1000)), b" " * 10_000)
    assert answer.status_code == 413
    assert "more than 5,000 bytes" in answer.json()["error"]["message"]


def test_places_that_do_not_exist_and_other_methods_are_told_as_json(serve):
    url = serve(TOOLS)
    assert httpx2.get(f"{url}/nowhere", trust_env=False).json()["error"]["kind"] == "not_found"
    assert httpx2.get(f"{url}/tools/add/call", trust_env=False).status_code == 405


def test_a_result_that_is_too_long_is_cut(serve):
    limits = Limits(max_result_chars=1_000, max_result_bytes=1_000)
    answer = post(serve([Tool(lambda: list(range(10_000)), name="many")], limits=limits), name="many")
    assert "characters left out" in answer.json()


# -- a caller that leaves


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_a_caller_that_hangs_up_cancels_its_call(serve, accept):
    began, ended = threading.Event(), threading.Event()

    async def wait() -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    url = httpx2.URL(serve([wait]))
    with socket.create_connection((url.host, url.port)) as connection:
        headers = f"Host: {url.host}\r\nAccept: {accept}\r\nContent-Length: 2"
        connection.sendall(f"POST /tools/wait/call HTTP/1.1\r\n{headers}\r\n\r\n{{}}".encode())
        assert began.wait(10)
    assert ended.wait(10)


def test_cancelling_the_call_here_cancels_it_there(serve):
    began, ended = threading.Event(), threading.Event()

    async def wait(context: ToolContext) -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    read = back(serve([wait]))
    (result,) = call_tools([ToolCall("1", "wait")], read, limits=Limits(deadline=0.5))
    assert result.kind == "timed_out"
    assert began.is_set()
    assert ended.wait(10)


# -- who may ask


def test_a_token_is_wanted_and_compared_as_a_whole(serve):
    url = serve(TOOLS, token=Secret(TOKEN))
    assert len(back(url, api_key=TOKEN)) == len(TOOLS)
    for wrong in (None, "", TOKEN[:-1], f"{TOKEN}x", TOKEN.upper(), "ü"):
        with pytest.raises(ExternalToolError) if wrong != "ü" else pytest.raises(ValueError, match="api_key"):
            JsonHttpExternalToolClient(url, api_key=wrong).list_tools()
    answer = httpx2.get(f"{url}/tools", headers={"Authorization": f"Basic {TOKEN}"}, trust_env=False)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")


def test_two_authorizations_are_none(serve):
    headers = [("Authorization", f"Bearer {TOKEN}"), ("Authorization", f"Bearer {TOKEN}")]
    assert httpx2.get(f"{serve(TOOLS, token=TOKEN)}/tools", headers=headers, trust_env=False).status_code == 401


def test_health_needs_no_token(serve):
    answer = httpx2.get(f"{serve(TOOLS, token=TOKEN)}/health", trust_env=False)
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_no_answer_shows_the_token(serve):
    def leak() -> str:
        return f"the token is {TOKEN}"

    read = JsonHttpExternalToolClient(serve([leak], token=TOKEN), api_key=TOKEN)
    assert read.call_tool("leak", {}) == "the token is ***"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "localhost.evil", "[::2]"]
)
def test_a_request_for_another_host_is_refused(serve, host):
    answer = httpx2.get(f"{serve(TOOLS)}/tools", headers={"Host": host}, trust_env=False)
    assert answer.status_code == 421
    assert answer.json()["error"]["kind"] == "denied"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:80", "[::1]:80", "localhost."])
def test_a_request_for_this_machine_is_answered(serve, host):
    assert httpx2.get(f"{serve(TOOLS)}/tools", headers={"Host": host}, trust_env=False).status_code == 200


def test_other_hosts_may_be_allowed(serve):
    for hosts in (["tools.example"], ["*"]):
        url = serve(TOOLS, hosts=hosts)
        assert httpx2.get(f"{url}/tools", headers={"Host": "tools.example"}, trust_env=False).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", "http://127.0.0.1:1", "https://localhost"])
def test_a_page_of_another_origin_is_refused(serve, origin):
    assert post(serve(TOOLS), Origin=origin).status_code == 403


def test_the_servers_own_origin_and_those_that_are_named_may_ask(serve):
    url = serve(TOOLS, origins=["https://app.example"])
    content = b'{"arguments": {"a": 1}}'
    assert post(url, content, Origin=url).json() == 2
    answer = post(url, content, Origin="https://app.example")
    assert answer.headers["access-control-allow-origin"] == "https://app.example"


def test_a_browser_may_ask_beforehand_without_the_token(serve):
    url = serve(TOOLS, origins=["https://app.example"], token=TOKEN)
    headers = {
        "Origin": "https://app.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    assert httpx2.request("OPTIONS", f"{url}/tools/a/call", headers=headers, trust_env=False).status_code == 200


def test_an_empty_token_is_refused():
    with pytest.raises(ValueError, match="a token must not be empty"):
        gateway_app(TOOLS, token=" ")  # noqa: S106  # it is none


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", ""])  # noqa: S104  # which is what is refused
def test_other_machines_are_not_served_without_a_token(host):
    with pytest.raises(
        ValueError, match=r"without a token.*pass token=.*TOOLCRIB_SERVE_TOKEN.*127\.0\.0\.1 behind a proxy"
    ):
        serve_gateway(TOOLS, host=host)


def test_a_server_answers_to_the_names_of_where_it_listens():
    assert default_hosts("0.0.0.0") == ("*",)  # noqa: S104
    assert "10.0.0.5" in default_hosts("10.0.0.5")
    assert "*" not in default_hosts("127.0.0.1")


# -- what it says of itself


def test_it_describes_itself_with_references_that_lead_somewhere(serve):
    document = httpx2.get(f"{serve(TOOLS)}/openapi.json", trust_env=False).json()
    assert document["openapi"] == "3.1.0"
    assert "/tools/math.add/call" in document["paths"]
    assert "/tools/a%2Fb%20%C3%A7%3F%2Fcall/call" in document["paths"]
    references = list(references_in(document))
    assert len(references) > len(TOOLS)
    assert all(resolve(reference, document) is not None for reference in references)
    foreign = document["components"]["schemas"]["foreign"]
    assert foreign["properties"]["self"] == {"$ref": "#/components/schemas/foreign"}
    assert "security" not in document


def references_in(node) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for child in node.values():
            yield from references_in(child)
    elif isinstance(node, list):
        for child in node:
            yield from references_in(child)


def test_it_says_that_it_wants_a_token(serve):
    url = serve(TOOLS, token=TOKEN)
    answer = httpx2.get(f"{url}/openapi.json", headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False)
    assert answer.json()["security"] == [{"token": []}]


def test_listeners_hear_of_calls_from_outside(serve):
    events = []
    url = serve(TOOLS, on_event=events.append)
    post(url, json.dumps({"arguments": {"a": 1}}).encode())
    assert [type(event).__name__ for event in events] == ["ToolStarted", "ToolFinished"]


def test_dataclasses_and_numbers_without_end_are_json(serve):
    @dataclasses.dataclass
    class Row:
        n: float

    def rows() -> list:
        return [Row(1.5), Row(float("inf"))]

    assert JsonHttpExternalToolClient(serve([rows])).call_tool("rows", {}) == [{"n": 1.5}, {"n": "Infinity"}]
