"""The values of a generator tool, gathered into one answer while each is reported as progress."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncGenerator, Generator
from typing import TYPE_CHECKING, Any

from toolcrib.errors import ToolExecutionError, ToolTimeoutError
from toolcrib.limits import MAX_PIECES, MAX_PIECES_CHARS

if TYPE_CHECKING:
    from toolcrib.types import ToolContext

__all__ = ["gathered", "gathered_async"]


def gathered(pieces: Generator[Any, Any, Any], context: ToolContext[Any] | None) -> Any:
    """Run a generator to its end: texts are joined, other values become a list.

    Args:
        pieces: The generator.
        context: Who hears of each piece, and when to give up.

    Raises:
        ToolTimeoutError: The deadline passed between two pieces, so the thread is free again.
        ToolExecutionError: It yields without end.
    """
    so_far = _Gathered(context)
    with contextlib.closing(pieces):
        for piece in pieces:
            so_far.add(piece)
    return so_far.answer()


async def gathered_async(pieces: AsyncGenerator[Any, Any], context: ToolContext[Any] | None) -> Any:
    """Run an async generator to its end; see `gathered`."""
    so_far = _Gathered(context)
    async with contextlib.aclosing(pieces):
        async for piece in pieces:
            so_far.add(piece)
    return so_far.answer()


class _Gathered:
    def __init__(self, context: ToolContext[Any] | None) -> None:
        self._context = context
        self._pieces: list[Any] = []
        self._length = 0

    def add(self, piece: Any) -> None:
        self._pieces.append(piece)
        if len(self._pieces) > MAX_PIECES:
            raise ToolExecutionError(f"it yielded more than {MAX_PIECES:,} values")
        self._length += len(piece) if isinstance(piece, (str, bytes, bytearray)) else 0
        if self._length > MAX_PIECES_CHARS:
            raise ToolExecutionError(f"it yielded more than {MAX_PIECES_CHARS:,} characters")
        if self._context is None:
            return
        if self._context.deadline is not None and time.monotonic() > self._context.deadline:
            raise ToolTimeoutError(f"no end within {self._context.timeout:g} seconds")
        self._context.progress(len(self._pieces), None, piece if isinstance(piece, str) else None)

    def answer(self) -> Any:
        only_texts = self._pieces and all(isinstance(piece, str) for piece in self._pieces)
        return "".join(self._pieces) if only_texts else self._pieces
