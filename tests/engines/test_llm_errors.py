from __future__ import annotations

import asyncio
import socket

import pytest
from model_server import KEY

from toolcrib import EngineError, Message
from toolcrib.engines.llm import LLMEngine
from toolcrib.toolset import Toolset

HELLO = [Message("user", "hello")]
NONE = Toolset()


def once(server, name="openai:gpt-5.4-mini", **settings):
    """Return an engine whose client does not try again by itself."""
    return LLMEngine(name, base_url=server.base_url, api_key=KEY, settings={"max_retries": 0, **settings})


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "retryable"), [(400, False), (401, False), (404, False), (429, True), (500, True), (503, True)]
)
@pytest.mark.parametrize("stream", [False, True])
async def test_an_http_error_says_its_status_and_whether_to_try_again(server, status, retryable, stream):
    server.fail(status, {"error": {"message": "out of luck", "type": "x", "code": "y"}})
    with pytest.raises(EngineError, match=rf"(?s)openai:gpt-5.4-mini.*{status}.*out of luck") as caught:
        await (streamed(once(server)) if stream else once(server).acomplete(HELLO, NONE))
    assert caught.value.retryable is retryable


@pytest.mark.anyio
async def test_a_page_in_place_of_an_error_is_cut(server):
    server.fail(502, b"<html>" + b"x" * 1_000_000)
    with pytest.raises(EngineError, match="502") as caught:
        await once(server).acomplete(HELLO, NONE)
    assert len(str(caught.value)) < 3_000


@pytest.mark.anyio
async def test_a_passing_error_is_tried_again_by_itself(server, engine):
    server.fail(503)
    server.say("Better now.")
    assert (await engine.acomplete(HELLO, NONE)).text == "Better now."


@pytest.mark.anyio
async def test_an_empty_account_is_not_worth_trying_again(server):
    server.fail(429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}})
    with pytest.raises(EngineError) as caught:
        await once(server).acomplete(HELLO, NONE)
    assert not caught.value.retryable


@pytest.mark.anyio
async def test_a_server_that_is_not_there_is_an_error_that_may_be_tried_again():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    engine = LLMEngine("openai:gpt-5.4-mini", base_url=url, settings={"max_retries": 0})
    with pytest.raises(EngineError, match="onnect") as caught:
        await engine.acomplete(HELLO, NONE)
    assert caught.value.retryable


@pytest.mark.anyio
@pytest.mark.parametrize("bound", ["timeout", "request_timeout"])
async def test_a_model_that_never_answers_is_given_up_at_the_time_set(server, bound):
    server.hang()
    with pytest.raises(EngineError, match=r"(?i)time") as caught:
        await once(server, **{bound: 0.2}).acomplete(HELLO, NONE)
    assert caught.value.retryable


@pytest.mark.anyio
@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"choices": []}', b'{"choices": [{"message": 3}]}'])
async def test_a_body_that_is_no_answer_is_an_error(server, body):
    server.send(body)
    with pytest.raises(EngineError, match=r"openai:gpt-5\.4-mini"):
        await once(server).acomplete(HELLO, NONE)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"finish": "content_filter"}, "content filter"),
        ({"refusal": "I will not."}, "content filter.*I will not"),
        ({"finish": "length"}, "max_tokens"),
    ],
)
async def test_an_answer_that_was_withheld_is_an_error(server, engine, options, words):
    server.say("", **options)
    with pytest.raises(EngineError, match=words) as caught:
        await engine.acomplete(HELLO, NONE)
    assert not caught.value.retryable


@pytest.mark.anyio
async def test_words_before_the_filter_closed_in_are_kept(server, engine):
    server.say("So far so good", finish="content_filter")
    assert (await engine.acomplete(HELLO, NONE)).text == "So far so good"


@pytest.mark.anyio
async def test_a_key_a_server_repeats_is_in_no_error(server):
    server.fail(401, {"error": {"message": f"Incorrect API key: {KEY}", "code": "invalid_api_key"}})
    with pytest.raises(EngineError) as caught:
        await once(server).acomplete(HELLO, NONE)
    assert "Incorrect API key" in str(caught.value)
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.anyio
async def test_a_key_with_a_line_end_works_and_is_not_quoted(server):
    server.say("ok")
    engine = LLMEngine("openai:gpt-5.4-mini", base_url=server.base_url, api_key=f"{KEY}\n")
    await engine.acomplete(HELLO, NONE)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.anyio
async def test_cancelling_the_caller_cancels_the_request(server, engine):
    server.hang()
    task = asyncio.create_task(engine.acomplete(HELLO, NONE))
    await asyncio.to_thread(server.arrived.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.anyio
async def test_a_stream_that_breaks_off_is_an_error_that_may_be_tried_again(server):
    server.say("Hello, world.", cut=True)
    stream = once(server).astream(HELLO, NONE)
    words = [await anext(stream), await anext(stream)]
    with pytest.raises(EngineError) as caught:
        await anext(stream)
    assert words == ["Hello,", " world."]
    assert caught.value.retryable


async def streamed(engine) -> list:
    return [piece async for piece in engine.astream(HELLO, NONE)]
