"""The client of a gateway that speaks plain JSON over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import from_json, to_json

from toolcrib._http import Received
from toolcrib._portal import portal
from toolcrib._secrets import Secret, without_secrets
from toolcrib.errors import ExternalToolError
from toolcrib.events import ToolProgress
from toolcrib.limits import MAX_PIECES
from toolcrib.sources._rest import Rest, json_of, plain, segment
from toolcrib.types import ToolResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["JsonHttpExternalToolClient"]

_GATEWAY = "External tool gateway"


class JsonHttpExternalToolClient:
    """A gateway that lists its tools at `GET {base_url}/tools` and runs them at `POST {base_url}/tools/{name}/call`.

    It may be used from any event loop and from sync code; the sync methods block a loop they are called in.
    Every failure is an ExternalToolError. Redirects are followed within the host only.

    Args:
        base_url: Where the gateway is; a trailing slash is dropped.
        api_key: Sent as `Authorization: Bearer ...`, unless `headers` has an Authorization of its own.
        headers: Sent with every request.
        timeout: Seconds one request may take in all; None for no end.
        tools_path: Where the tools are listed.
        call_path_template: Where a tool is called; `{name}` becomes its name as one escaped segment.
        allow_insecure: Whether credentials may be sent over plain http to another machine.

    Raises:
        ValueError: An address, a header or a timeout that is none, or credentials over plain http.
        MissingExtraError: The `http` extra is not installed.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | Secret | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = 30.0,
        tools_path: str = "/tools",
        call_path_template: str = "/tools/{name}/call",
        allow_insecure: bool = False,
    ) -> None:
        if "{name}" not in call_path_template:
            raise ValueError(f"call_path_template must contain {{name}}, unlike {call_path_template!r:.200}")
        key = (api_key.reveal() if isinstance(api_key, Secret) else api_key or "").strip()
        self._rest = Rest(
            base_url,
            title=_GATEWAY,
            wanted_by="JsonHttpExternalToolClient",
            headers=headers,
            api_key=("authorization", f"Bearer {key}") if key else None,
            timeout=timeout,
            allow_insecure=allow_insecure,
        )
        #: Where the gateway is, without user name, password and path.
        self.name = self._rest.name
        self._tools_path = f"/{tools_path.lstrip('/')}"
        self._call_path = f"/{call_path_template.lstrip('/')}"

    def __repr__(self) -> str:
        """Return a text with the address, without credentials."""
        return f"JsonHttpExternalToolClient({self._rest.base_url!r})"

    def list_tools(self) -> list[Mapping[str, Any]]:
        """Return what the gateway says of its tools.

        Raises:
            ExternalToolError: It cannot be reached, or did not answer with a list of tools.
        """
        answer = portal().call(self._whole, "GET", self._tools_path, None)
        listed = answer
        if isinstance(answer, Mapping):
            listed = cast("Mapping[str, Any]", answer).get("tools")
        if not isinstance(listed, list):
            problem = f"{_GATEWAY} registry must return a list or {{'tools': list}}"
            raise ExternalToolError(problem, body=without_secrets(answer))
        return cast("list[Mapping[str, Any]]", listed)

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return the JSON that the gateway answers a call with; of a streamed answer all its values.

        Args:
            name: The tool's name there.
            arguments: Sent as they are.

        Raises:
            ExternalToolError: It cannot be reached, or answered with a failure or with no JSON.
        """
        return portal().call(self._whole, "POST", self._path_of(name), _content(name, arguments))

    async def acall_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return the JSON that the gateway answers a call with, or an async iterator if it streams its answer.

        The iterator gives the values of an NDJSON answer, or of the `message` events of a server-sent one;
        `progress` events become ToolProgress, and a `result` event a ToolResponse, which is the last.

        Args:
            name: The tool's name there.
            arguments: Sent as they are.

        Raises:
            ExternalToolError: It cannot be reached, or answered with a failure or with no JSON.
        """
        path, content = self._path_of(name), _content(name, arguments)
        loop, news = asyncio.get_running_loop(), asyncio.Queue[Any]()

        def tell(piece: Any) -> None:
            loop.call_soon_threadsafe(news.put_nowait, piece)

        task = asyncio.create_task(portal().acall(self._exchange, "POST", path, content, tell))
        task.add_done_callback(lambda task: (task.cancelled() or task.exception(), news.put_nowait(_END)))
        try:
            first = await news.get()
        except BaseException:
            task.cancel()
            raise
        return _pieces(first, news, task) if first is not _END else task.result()

    # -- on the background loop

    async def _whole(self, method: str, path: str, content: bytes | None) -> Any:
        pieces = list[Any]()
        value = await self._exchange(method, path, content, pieces.append)
        values = [piece for piece in pieces if not isinstance(piece, ToolProgress | _Begun)]
        if not pieces:
            return value
        if values and isinstance(values[-1], ToolResponse):
            return values[-1].data
        return "".join(values) if values and all(isinstance(piece, str) for piece in values) else values

    async def _exchange(self, method: str, path: str, content: bytes | None, tell: Callable[[Any], None]) -> Any:
        """Return the JSON that a request is answered with, or tell its pieces one by one and return None."""
        what = f"{method} {path.partition('?')[0]}"
        async with self._rest.open(method, path, content) as received:
            streamed = _STREAMS.get(received.content_type)
            if streamed is None or received.status == _NO_CONTENT:
                return await self._rest.read(received, what)
            await _tell_all(streamed(received, what), tell, what)
        return None

    def _path_of(self, name: str) -> str:
        return self._call_path.replace("{name}", segment(name, _GATEWAY))


_END = object()
_NO_CONTENT = 204


def _content(name: str, arguments: Mapping[str, Any]) -> bytes:
    return to_json({"arguments": plain(name, arguments, _GATEWAY)})


# -- what comes back


async def _tell_all(pieces: AsyncIterator[Any], tell: Callable[[Any], None], what: str) -> None:
    tell(_Begun())
    told = 0
    async for piece in pieces:
        told += 1
        if told > MAX_PIECES:
            raise ExternalToolError(f"{_GATEWAY} streamed more than {MAX_PIECES:,} values for {what}")
        tell(piece)


class _Begun:
    """Told before the first piece: the answer is a stream, even if it holds nothing."""


async def _ndjson(received: Received, what: str) -> AsyncIterator[Any]:
    async for line in received.lines():
        if line.strip():
            yield json_of(line, what, received.status, _GATEWAY)


async def _server_sent(received: Received, what: str) -> AsyncIterator[Any]:
    async for name, data in received.events():
        if data == b"[DONE]":
            return
        if name == "error":
            told = without_secrets(_json_or_text(data))
            raise ExternalToolError(f"{_GATEWAY} reported a failure for {what}", status=received.status, body=told)
        if name == "result":
            yield ToolResponse(success=True, data=json_of(data, what, received.status, _GATEWAY))
            return
        if name == "progress":
            yield _progress(_json_or_text(data))
        elif name == "message":
            yield _json_or_text(data)


_STREAMS: Mapping[str, Callable[[Received, str], AsyncIterator[Any]]] = {
    "application/x-ndjson": _ndjson,
    "application/ndjson": _ndjson,
    "application/jsonl": _ndjson,
    "text/event-stream": _server_sent,
}


def _json_or_text(data: bytes) -> Any:
    try:
        return from_json(data, allow_inf_nan=False)
    except ValueError:
        return data.decode("utf-8", "replace")


def _progress(told: Any) -> ToolProgress:
    members: Mapping[str, Any] = cast("Mapping[str, Any]", told) if isinstance(told, Mapping) else {"message": told}
    progress, total, message = (members.get(key) for key in ("progress", "total", "message"))
    return ToolProgress(
        "",
        "",
        float(progress) if isinstance(progress, int | float) else 0.0,
        float(total) if isinstance(total, int | float) else None,
        message if isinstance(message, str) else None,
    )


async def _pieces(first: Any, news: asyncio.Queue[Any], task: asyncio.Task[Any]) -> AsyncGenerator[Any]:
    try:
        piece = first
        while piece is not _END:
            if not isinstance(piece, _Begun):
                yield piece
            piece = await news.get()
        task.result()
    finally:
        task.cancel()
