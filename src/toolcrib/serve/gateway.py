"""A Toolset as an HTTP tool gateway: the mirror of `sources.gateway`."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import quote

from pydantic_core import PydanticSerializationError, from_json, to_json

from toolcrib import dispatch
from toolcrib.arguments import parse
from toolcrib.errors import MissingExtraError, ToolArgumentError, ToolSignatureError, warn
from toolcrib.events import Event, ToolProgress
from toolcrib.limits import DEFAULT_LIMITS, Limits
from toolcrib.results import answer_to
from toolcrib.schema._walk import mapped
from toolcrib.serve._guard import LOOPBACK_HOSTS, Guard, secret_token
from toolcrib.serve._listen import check_exposure, default_hosts, listen, most_bytes
from toolcrib.tools import Tool
from toolcrib.toolset import Toolset
from toolcrib.types import Envelope, Kind, Secret, ToolCall, ToolResponse, ToolResult

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from toolcrib.protocols import Executor

__all__ = ["gateway_app", "serve_gateway"]

T = TypeVar("T")
_STATUS: Mapping[Kind, int] = {
    "not_found": 404,
    "invalid_arguments": 422,
    "denied": 403,
    "timed_out": 504,
    "failed": 500,
    "cancelled": 503,
}
_BODY_SECONDS = 30.0
_MOST_WAITING = 1_000  # events for a reader that is slower than its tool; progress beyond is not told
_GONE = 499  # nobody reads it


def gateway_app(
    tools: Any,
    *,
    token: str | Secret | None = None,
    hosts: Iterable[str] = LOOPBACK_HOSTS,
    origins: Iterable[str] = (),
    limits: Limits | None = None,
    executor: Executor | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> Starlette:
    """Return an ASGI application that serves tools as plain JSON over HTTP.

    `GET /tools` lists them, `POST /tools/{name}/call` with `{"arguments": {...}}` runs one, `GET /openapi.json`
    describes both, `GET /health` says that it is there. A caller that accepts `text/event-stream` is told
    progress on the way. A caller that hangs up cancels its call.

    Args:
        tools: A Toolset, or what one is made of.
        token: What callers must send as `Authorization: Bearer ...`; None lets everybody call.
        hosts: Names the server may be addressed by, without port; `*` for any.
        origins: Web origins whose pages may call besides the server's own.
        limits: Bounds for the calls, in place of the toolset's own.
        executor: What runs calls of tools that name no executor themselves.
        on_event: Called when a call starts, reports progress and is answered.

    Raises:
        MissingExtraError: The `serve` extra is not installed.
        ValueError: The token is empty.
    """
    try:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.middleware import Middleware
        from starlette.middleware.cors import CORSMiddleware
        from starlette.routing import Route
    except ImportError:
        raise MissingExtraError("serve", "gateway_app") from None
    secret = secret_token(token)
    gateway = _Gateway(tools, limits, executor, on_event, has_token=secret is not None)
    routes = [
        Route("/tools", gateway.list_tools),
        Route("/tools/{name:path}/call", gateway.call, methods=["POST"]),
        Route("/openapi.json", gateway.describe),
        Route("/health", gateway.health),
    ]
    origins = tuple(origins)
    methods, headers = ["GET", "POST"], ["authorization", "content-type"]
    cors = Middleware(CORSMiddleware, allow_origins=origins, allow_methods=methods, allow_headers=headers)
    guard = Middleware(Guard, token=secret, hosts=tuple(hosts), origins=origins, public=("/health",))
    return Starlette(routes=routes, middleware=[cors, guard], exception_handlers={HTTPException: _no_such_place})


def serve_gateway(
    tools: Any,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | Secret | None = None,
    hosts: Iterable[str] | None = None,
    on_start: Callable[[str], None] | None = None,
    **options: Any,
) -> None:
    """Serve tools as plain JSON over HTTP until the process is told to stop.

    Args:
        tools: A Toolset, or what one is made of.
        host: The address to listen on; one that other machines reach needs a token.
        port: The port; 0 takes a free one.
        token: What callers must send as `Authorization: Bearer ...`.
        hosts: Names the server may be addressed by; by default those of `host`.
        on_start: Told the server's URL once it listens.
        **options: Any other option of gateway_app.

    Raises:
        ValueError: Other machines could call the tools without a token, or the port is none.
        OSError: The address is taken, or none of this machine's.
        MissingExtraError: The `serve` extra is not installed.
    """
    secret = secret_token(token)
    check_exposure(host, has_token=secret is not None)
    app = gateway_app(tools, token=secret, hosts=default_hosts(host) if hosts is None else hosts, **options)
    listen(app, host, port, on_start, wanted_by="serve_gateway")


class _Gateway:
    """The answers to requests that were let through."""

    def __init__(
        self,
        tools: Any,
        limits: Limits | None,
        executor: Executor | None,
        on_event: Callable[[Event], None] | None,
        *,
        has_token: bool,
    ) -> None:
        self._toolset = tools if isinstance(tools, Toolset) else Toolset(tools)
        self._limits = limits or self._toolset.limits or DEFAULT_LIMITS
        self._executor = executor
        self._on_event = on_event
        self._has_token = has_token

    async def list_tools(self, _request: Request) -> Response:
        await self._toolset.prepare()
        return _json(self._toolset.cached(("gateway", "tools"), lambda: _catalogue(self._toolset)))

    async def describe(self, _request: Request) -> Response:
        key = ("gateway", "openapi", self._has_token)
        await self._toolset.prepare()
        return _json(self._toolset.cached(key, lambda: _description(self._toolset, has_token=self._has_token)))

    async def health(self, _request: Request) -> Response:
        return _json(b'{"status":"ok"}')

    async def call(self, request: Request) -> Response:
        from starlette.requests import ClientDisconnect
        from starlette.responses import StreamingResponse

        name = request.path_params["name"]
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                body = await _body(request, self._limits)
            arguments = _arguments(name, body, self._limits)
        except ToolArgumentError as error:
            return _error(_STATUS["invalid_arguments"], "invalid_arguments", str(error))
        except (TimeoutError, ClientDisconnect):
            return _error(408, "invalid_arguments", f"the request did not arrive within {_BODY_SECONDS:g} seconds")
        except OverflowError as error:
            return _error(413, "invalid_arguments", str(error))
        call = ToolCall(uuid.uuid4().hex, name, arguments)
        if "text/event-stream" in request.headers.get("accept", ""):
            return StreamingResponse(self._told(request, call), media_type="text/event-stream")
        result = await _while_there(request, self._answer(call, self._on_event))
        return _json(b"", _GONE) if result is None else _answered(result, self._limits)

    def _answer(self, call: ToolCall, on_event: Callable[[Event], None] | None) -> Coroutine[Any, Any, ToolResult]:
        return dispatch.acall(call, self._toolset, limits=self._limits, executor=self._executor, on_event=on_event)

    async def _told(self, request: Request, call: ToolCall) -> AsyncGenerator[bytes]:
        loop, news = asyncio.get_running_loop(), asyncio.Queue[Event | None]()

        def hear(event: Event) -> None:
            if self._on_event is not None:
                self._on_event(event)
            if isinstance(event, ToolProgress) and news.qsize() < _MOST_WAITING:
                loop.call_soon_threadsafe(news.put_nowait, event)

        task = asyncio.create_task(_while_there(request, self._answer(call, hear)))
        task.add_done_callback(lambda _: news.put_nowait(None))
        try:
            while isinstance(event := await news.get(), ToolProgress):
                facts = {"progress": event.progress, "total": event.total, "message": event.message}
                yield _event("progress", to_json(facts, inf_nan_mode="null"))
            result = await task
        finally:
            task.cancel()
        if result is not None:
            response = _answered(result, self._limits)
            yield _event("result" if result.ok else "error", bytes(response.body))


# -- requests


async def _body(request: Request, limits: Limits) -> bytes:
    """Return the body of a request.

    Raises:
        OverflowError: It is longer than any arguments may be.
    """
    most = most_bytes(limits)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise OverflowError(f"the request has more than {most:,} bytes")
    return bytes(body)


_AROUND = 1_000  # what stands around the arguments


def _arguments(name: str, body: bytes, limits: Limits) -> Mapping[str, Any]:
    """Return the arguments in the body of a request.

    Raises:
        ToolArgumentError: There are none, or the body is no JSON that can be accepted.
    """
    room = limits.replace(
        max_argument_chars=limits.max_argument_chars + _AROUND, max_argument_depth=limits.max_argument_depth + 1
    )
    try:
        asked = parse(name, body.decode(), room)
    except UnicodeDecodeError:
        raise ToolArgumentError("the body of the request is not UTF-8") from None
    arguments = asked.get("arguments", {})
    if not isinstance(arguments, dict):
        raise ToolArgumentError('the body of the request must be {"arguments": {...}}, with an object of arguments')
    return cast("dict[str, Any]", arguments)


async def _while_there(request: Request, work: Coroutine[Any, Any, T]) -> T | None:
    """Await work for as long as the caller is there; None when it left."""
    task, gone = asyncio.create_task(work), asyncio.create_task(_left(request))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.wait((task, gone))


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


# -- answers


def _json(body: bytes, status: int = 200) -> Response:
    from starlette.responses import Response

    return Response(body, status, media_type="application/json")


def _error(status: int, kind: str, message: str) -> Response:
    return _json(to_json({"error": {"kind": kind, "message": message}}), status)


async def _no_such_place(_request: Request, error: Any) -> Response:
    return _error(error.status_code, "not_found", f"{error.detail}: there are GET /tools and POST /tools/{{name}}/call")


def _answered(result: ToolResult, limits: Limits) -> Response:
    if not result.ok:
        return _error(_STATUS[result.kind], result.kind, result.response.message or result.text)
    try:
        body = to_json(_value(result, limits))
    except PydanticSerializationError:
        body = b""
    small = 0 < len(body) <= limits.max_result_bytes * _MOST_PARTS
    return _json(body if small else to_json(result.text))


_MOST_PARTS = 4  # images of the full size in one answer


def _value(result: ToolResult, limits: Limits) -> Any:
    """Return a result as JSON data: each part in its place, of an agent's run the words."""
    value: object = result.value
    if result.parts and isinstance(value, list | tuple):
        return [_piece(item, limits) for item in cast("Iterable[Any]", value)]
    if result.parts:
        return result.parts[0]
    if isinstance(value, str | Envelope):
        return result.text
    try:
        return from_json(result.text)
    except ValueError:  # cut, since it was too long for a model
        return result.text if isinstance(value, ToolResponse) else result.response.data


def _piece(item: Any, limits: Limits) -> Any:
    _, text, parts, _ = answer_to(item, limits)
    return parts[0] if parts else text


def _event(name: str, data: bytes) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)


# -- what it says of itself


def _catalogue(toolset: Toolset) -> bytes:
    return to_json({"tools": [_definition(tool) for tool in _usable(toolset)]})


def _definition(tool: Tool) -> dict[str, Any]:
    definition = tool.definition()
    if tool.effect is not None:
        definition["effect"] = tool.effect
    if tool.output_schema is not None:
        definition["output_schema"] = tool.output_schema
    return definition


def _usable(toolset: Toolset) -> list[Tool]:
    usable = list[Tool]()
    for tool in toolset:
        try:
            _ = tool.input_schema
        except ToolSignatureError as error:
            warn(f"{tool.name} is not served: {error}")
        else:
            usable.append(tool)
    return usable


def _description(toolset: Toolset, *, has_token: bool) -> bytes:
    paths: dict[str, Any] = {"/tools": {"get": {"operationId": "list_tools", "responses": {"200": _OK}}}}
    schemas: dict[str, Any] = {}
    for tool in _usable(toolset):
        key = _free(re.sub(r"[^\w.-]", "_", tool.name, flags=re.ASCII), schemas)
        schemas[key] = _moved(tool.input_schema, f"#/components/schemas/{key}")
        paths[f"/tools/{quote(tool.name, safe='')}/call"] = {"post": _operation(tool, key)}
    components: dict[str, Any] = {"schemas": schemas}
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "Tools", "version": "1"},
        "paths": paths,
        "components": components,
    }
    if has_token:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    return to_json(document)


_OK: dict[str, Any] = {"description": "JSON", "content": {"application/json": {"schema": {}}}}


def _operation(tool: Tool, key: str) -> dict[str, Any]:
    asked = {
        "type": "object",
        "properties": {"arguments": {"$ref": f"#/components/schemas/{key}"}},
        "required": ["arguments"],
    }
    return {
        "operationId": key,
        "summary": tool.name,
        "description": tool.description,
        "requestBody": {"required": True, "content": {"application/json": {"schema": asked}}},
        "responses": {"200": _OK, "default": {"description": '{"error": {"kind", "message"}}'}},
    }


def _free(wanted: str, taken: Mapping[str, Any]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def _moved(node: Any, place: str) -> Any:
    """Return a schema whose references lead where they led, now that it stands somewhere inside a document."""
    if not isinstance(node, dict) or "$id" in node:
        return cast("Any", node)
    schema = mapped(cast("dict[str, Any]", node), lambda child: _moved(child, place))
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        schema["$ref"] = place + reference[1:]
    return schema
