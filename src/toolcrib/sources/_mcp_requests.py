"""What an MCP server may ask its client: something of the user, or the words of a model."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from toolcrib._portal import off_loop
from toolcrib.errors import warn
from toolcrib.sources._mcp_connection import Handlers

__all__ = ["Callbacks", "MCPElicitation", "MCPSampling"]


class MCPElicitation(NamedTuple):
    """Something a server wants to know from the user, or a page it wants the user to open.

    Args:
        server: The server's name.
        message: What to show the user.
        schema: The JSON Schema of the answer, an object of plain values; None when a page is to be opened.
        url: The page to open, if that is what is wanted.
    """

    server: str
    message: str
    schema: dict[str, Any] | None = None
    url: str | None = None


class MCPSampling(NamedTuple):
    """Something a server wants a model of ours to say.

    Args:
        server: The server's name.
        messages: The conversation, as the protocol writes it: `role` and `content`.
        system: The system prompt it would like.
        max_tokens: The longest answer it wants.
        params: Everything it said, as the protocol writes it: temperature, model preferences, tools.
    """

    server: str
    messages: list[dict[str, Any]]
    system: str | None
    max_tokens: int
    params: dict[str, Any]


class Callbacks:
    """What a client was given to answer its servers with.

    Args:
        on_elicit: Asks the user.
        on_sample: Asks a model.
        on_change: Is told that the tools of a server have changed.
    """

    def __init__(
        self,
        on_elicit: Callable[[MCPElicitation], Any] | None,
        on_sample: Callable[[MCPSampling], Any] | None,
        on_change: Callable[[], Any] | None,
    ) -> None:
        self._on_elicit = on_elicit
        self._on_sample = on_sample
        self._on_change = on_change
        self._telling: asyncio.Task[None] | None = None
        self._is_news = False

    def handlers(self, server: str) -> Handlers:
        """Return them as a connection takes them.

        Args:
            server: The name of its server.
        """
        return Handlers(
            None if self._on_elicit is None else _elicitation(server, self._on_elicit),
            None if self._on_sample is None else _sampling(server, self._on_sample),
            None if self._on_change is None else self._changed,
        )

    def _changed(self) -> None:
        """Tell of a change; those that come meanwhile are told together, after."""
        self._is_news = True
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        while self._is_news and self._on_change is not None:
            self._is_news = False
            try:
                await off_loop(self._on_change)
            except Exception as error:  # noqa: BLE001  # a listener must not sink the connection
                warn(f"on_change failed: {type(error).__name__}: {error}")


def _elicitation(server: str, ask: Callable[[MCPElicitation], Any]) -> Any:
    """Return the SDK's callback for elicitation around one of ours.

    Args:
        server: The server's name.
        ask: Gives the answer as a mapping, True for an opened page, or None when the user does not want to say.
    """

    async def handle(_context: Any, params: Any) -> Any:
        from mcp_types import ElicitResult

        schema, url = getattr(params, "requested_schema", None), getattr(params, "url", None)
        said = await _said(ask, MCPElicitation(server, params.message, schema, url))
        if isinstance(said, Mapping):
            return ElicitResult(action="accept", content={**_defaults(schema), **cast("Mapping[str, Any]", said)})
        if said is True:
            return ElicitResult(action="accept", content=_defaults(schema) if url is None else None)
        return ElicitResult(action="decline")

    return handle


def _sampling(server: str, sample: Callable[[MCPSampling], Any]) -> Any:
    """Return the SDK's callback for sampling around one of ours.

    Args:
        server: The server's name.
        sample: Gives the model's words as text, or an answer as the protocol writes it.
    """

    async def handle(_context: Any, params: Any) -> Any:
        from mcp_types import CreateMessageResult, CreateMessageResultWithTools, TextContent

        raw = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        asked = MCPSampling(server, raw["messages"], params.system_prompt, params.max_tokens, raw)
        said = await _said(sample, asked)
        if isinstance(said, Mapping):
            kind = CreateMessageResultWithTools if params.tools else CreateMessageResult
            return kind.model_validate({"role": "assistant", "model": "unknown", **cast("Mapping[str, Any]", said)})
        if not isinstance(said, str):
            return _refusal(f"nobody answers for the model: {type(said).__name__} is no answer")
        return CreateMessageResult(role="assistant", content=TextContent(type="text", text=said), model="unknown")

    return handle


async def _said(ask: Callable[[Any], Any], request: Any) -> Any:
    """Return what a callback answers: an async one runs on the portal's loop, any other in a worker thread."""
    said = ask(request) if inspect.iscoroutinefunction(ask) else await off_loop(ask, request)
    return await said if inspect.isawaitable(said) else said


def _refusal(reason: str) -> Any:
    from mcp_types import INVALID_REQUEST, ErrorData

    return ErrorData(code=INVALID_REQUEST, message=reason)


def _defaults(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    properties = (schema or {}).get("properties")
    members: Mapping[str, Any] = cast("Mapping[str, Any]", properties) if isinstance(properties, Mapping) else {}
    given = {name: cast("Mapping[str, Any]", part) for name, part in members.items() if isinstance(part, Mapping)}
    return {name: part["default"] for name, part in given.items() if "default" in part}
