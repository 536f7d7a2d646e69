"""The images of an answer that models can see."""

from __future__ import annotations

from typing import NamedTuple

from toolcrib.types import ToolResult

__all__ = ["Image", "images"]

_SEEN = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


class Image(NamedTuple):
    """One image.

    Args:
        media_type: Such as `image/png`.
        data: The bytes, in base64.
    """

    media_type: str
    data: str


def images(result: ToolResult) -> list[Image]:
    """Return the images among an answer's parts that every provider with images takes."""
    return [
        Image(part["mimeType"], part["data"])
        for part in result.parts
        if part.get("type") == "image" and part.get("mimeType") in _SEEN and isinstance(part.get("data"), str)
    ]
