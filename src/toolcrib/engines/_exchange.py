"""One request to a model: our conversation and tools in pydantic-ai's words, and its answer in ours."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from toolcrib.engines._native import combinable, definitions
from toolcrib.engines._wire import Wire
from toolcrib.errors import EngineError
from toolcrib.formats._images import images
from toolcrib.types import Message, NativeTool, Reply, ToolCall, ToolResult, Usage

if TYPE_CHECKING:
    from pydantic_ai.messages import BinaryContent, ModelMessage, ModelRequestPart, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse

    from toolcrib.toolset import Toolset

__all__ = ["Exchange"]

_EMPTY = {
    "content_filter": "the provider's content filter withheld the answer",
    "length": "the answer ran out of tokens before it said anything; raise max_tokens",
    "error": "the provider broke off with an error",
}


# A provider may pause between the steps of its own tools; after so many pauses in one answer it is given up.
_MOST_PAUSES = 20


class Exchange:
    """What goes out and comes back until the model has answered: one request, but for a provider that pauses.

    Args:
        model: The model.
        tools: What it may call.
        native_tools: The provider's own tools it may use.
        file_stores: Where file search looks.
        as_json: Whether the provider is to hold the model to JSON.
    """

    def __init__(
        self,
        model: Model,
        tools: Toolset,
        native_tools: Sequence[NativeTool] = (),
        file_stores: Sequence[str] = (),
        *,
        as_json: bool = False,
    ) -> None:
        self._model = model
        self._wire = Wire(model.system, tools)
        self._native = definitions(combinable(model, native_tools) if len(tools) else native_tools, file_stores)
        self._response: ModelResponse | None = None
        self._pauses = 0
        self._as_json = as_json

    def parameters(self) -> ModelRequestParameters:
        """Return the tools, under their wire names and with the schemas of the provider's dialect, and its own."""
        from pydantic_ai.models import ModelRequestParameters

        made = ModelRequestParameters(function_tools=self._wire.definitions(), native_tools=self._native)
        # "prompted" is JSON without a schema, which no provider's strict mode can have for any schema there is.
        return replace(made, output_mode="prompted", prompted_output_template=False) if self._as_json else made

    # -- going out

    def history(self, messages: Sequence[Message]) -> list[ModelMessage]:
        """Return the conversation; what comes between two answers of the model is one message.

        The part of the answer that is there already, when the provider paused, stands at the end.
        """
        from pydantic_ai.messages import ModelRequest

        history: list[ModelMessage] = []
        pending: list[ModelRequestPart] = []
        for message in messages:
            if message.role != "assistant":
                pending.append(self._part(message))
                continue
            if pending:
                history.append(ModelRequest(parts=pending))
                pending = []
            history.append(self._said(message))
        if pending:
            history.append(ModelRequest(parts=pending))
        return history if self._response is None else [*history, self._response]

    def _part(self, message: Message) -> ModelRequestPart:
        from pydantic_ai.messages import SystemPromptPart, ToolReturnPart, UserPromptPart

        if message.role == "system":
            return SystemPromptPart(message.content)
        if message.result is None:
            return UserPromptPart(message.content)
        call = message.result.call
        # To a provider with no mark for it, pydantic-ai would tell a failure in words of its own.
        failed = not message.result.ok and self._wire.tells_failure
        return ToolReturnPart(
            tool_name=self._wire.name(call.name),
            content=self._content(message.content, message.result),
            tool_call_id=call.id,
            outcome="failed" if failed else "success",
        )

    def _content(self, text: str, result: ToolResult) -> Any:
        """Return the text, and the images of a success for a model that sees; a blank text is none at all."""
        files = self._images(result) if result.ok else []
        if text.strip() and not files:
            return text
        return [*([text] if text.strip() else []), *files]

    def _images(self, result: ToolResult) -> list[BinaryContent]:
        from pydantic_ai.messages import BinaryContent

        found: list[BinaryContent] = []
        for image in images(result) if _sees(self._model) else ():
            with suppress(binascii.Error):
                found.append(BinaryContent(base64.b64decode(image.data, validate=True), media_type=image.media_type))
        return found

    def _said(self, message: Message) -> ModelResponse:
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

        if isinstance(message.native, ModelResponse):
            return self._renamed(message.native, message.calls)
        calls = [
            ToolCallPart(self._wire.name(call.name), _arguments(call), tool_call_id=call.id) for call in message.calls
        ]
        return ModelResponse(parts=[*([TextPart(message.content)] if message.content else []), *calls])

    def _renamed(self, response: ModelResponse, calls: Sequence[ToolCall]) -> ModelResponse:
        """Return a response with the wire names of today: tools may have come since, and names may be invented."""
        from pydantic_ai.messages import ToolCallPart

        names = {call.id: self._wire.name(call.name) for call in calls}
        parts = [
            replace(part, tool_name=names.get(part.tool_call_id, part.tool_name))
            if isinstance(part, ToolCallPart)
            else part
            for part in response.parts
        ]
        return replace(response, parts=parts)

    # -- coming back

    @property
    def complete(self) -> bool:
        """Whether the whole answer is there."""
        return self._response is not None and self._response.state != "suspended"

    def take(self, response: ModelResponse) -> None:
        """Take what came back, in continuation of what there is.

        Raises:
            EngineError: The provider paused too often.
        """
        before, self._response = self._response, response
        if before is not None:
            usage = before.usage + response.usage
            self._response = replace(response, parts=[*before.parts, *response.parts], usage=usage)
        self._pauses += not self.complete
        if self._pauses > _MOST_PAUSES:
            raise EngineError(f"the provider paused {self._pauses} times without an answer", retryable=True)

    async def words(self, stream: StreamedResponse) -> AsyncIterator[str]:
        """Yield the pieces of text, which add up to the text of the reply."""
        from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

        parts = self._response.parts if self._response is not None else ()
        begun = any(isinstance(part, TextPart) for part in parts)
        last = parts[-1].part_kind if parts else None
        async for event in stream:
            piece = ""
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                apart = begun and (event.previous_part_kind or last) != "text"
                piece, begun = ("\n\n" if apart else "") + event.part.content, True
            elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                piece = event.delta.content_delta
            if piece:
                yield piece

    def reply(self) -> Reply:
        """Return what the model answered.

        Raises:
            EngineError: Nothing, for a reason the provider gave.
        """
        response = self._response
        if response is None:
            raise EngineError("there is no answer yet")
        text, calls = response.text or "", self._wire.calls(response.tool_calls)
        if not text and not calls and response.finish_reason in _EMPTY:
            refusal = (response.provider_details or {}).get("refusal")
            raise EngineError(_EMPTY[response.finish_reason] + (f": {refusal}" if refusal else ""))
        return Reply(text, calls, _usage(response), response.model_name or self._model.model_name, response)


def _arguments(call: ToolCall) -> str | dict[str, Any]:
    return call.arguments if isinstance(call.arguments, str) else dict(call.arguments)


def _sees(model: Model) -> bool:
    try:
        return model.profile.get("supports_image_input", True)
    except NotImplementedError:  # one that only passes on to others
        return False


def _usage(response: ModelResponse) -> Usage:
    used = response.usage
    return Usage(used.input_tokens, used.output_tokens, _price(response))


def _price(response: ModelResponse) -> float | None:
    if not response.usage.has_values():
        return None
    try:
        return float(response.cost().total_price)
    except Exception:  # noqa: BLE001  # whatever the price list lacks, the answer is there and its price is not known
        return None
