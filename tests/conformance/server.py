"""A server with the tools that the conformance suite calls: `python tests/conformance/server.py PORT`.

Everything that is about tools is toolcrib's own; what a scenario wants beyond tools is not here, and is listed
in server-expected-failures.yml.
"""

from __future__ import annotations

import asyncio
import base64
import struct
import sys
import threading
import zlib
from typing import Any

from toolcrib import Tool, ToolContext, ToolExecutionError, Toolset, serve_mcp


def test_simple_text() -> str:
    """Say something."""
    return "This is a simple text response for testing."


def test_image_content() -> bytes:
    """Return an image."""
    return _red_pixel()


def test_audio_content() -> dict[str, str]:
    """Return a sound."""
    return {"type": "audio", "data": base64.b64encode(_silence()).decode(), "mimeType": "audio/wav"}


def test_embedded_resource() -> dict[str, Any]:
    """Return a resource."""
    return _resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")


def test_multiple_content_types() -> list[Any]:
    """Return a text, an image and a resource."""
    resource = _resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
    return ["Multiple content types test:", _red_pixel(), resource]


def test_error_handling() -> str:
    """Fail."""
    raise ToolExecutionError("This tool intentionally returns an error for testing")


async def test_tool_with_progress(context: ToolContext) -> str:
    """Report progress."""
    for progress in (0, 50, 100):
        context.progress(progress, 100, f"{progress} of 100")
        await asyncio.sleep(0.05)
    return "The tool reported its progress."


async def test_streaming_elicitation(context: ToolContext) -> str:
    """Report progress, and ask nobody anything."""
    return await test_tool_with_progress(context)


def test_logging_tool() -> str:
    """Write no log."""
    return "Nothing was logged."


class Changing:
    """A source whose tools change when one of them is called."""

    def __init__(self) -> None:
        self._count = 0
        self.toolset: Toolset | None = None

    def as_tools(self) -> list[Tool]:
        more = [Tool(test_simple_text, name=f"more_{number}") for number in range(self._count)]
        return [Tool(self.test_trigger_tool_change), *more]

    def test_trigger_tool_change(self) -> str:
        """Add a tool."""
        self._count += 1
        assert self.toolset is not None
        threading.Thread(target=self.toolset.refresh).start()
        return "There is another tool."


SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


MIRRORED = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    "required": ["region"],
}


def _resource(uri: str, mime_type: str, text: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": text}}


def _red_pixel() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header, pixel = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0), zlib.compress(b"\0\xff\0\0")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")


def _silence() -> bytes:
    sound = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 8000, 1, 8) + struct.pack("<4sI", b"data", 0)
    return struct.pack("<4sI4s", b"RIFF", 4 + len(sound), b"WAVE") + sound


def tools() -> Toolset:
    """Return the tools that the suite calls."""
    changing = Changing()
    changing.toolset = Toolset(
        [
            test_simple_text,
            test_image_content,
            test_audio_content,
            test_embedded_resource,
            test_multiple_content_types,
            test_error_handling,
            test_tool_with_progress,
            test_streaming_elicitation,
            test_logging_tool,
            changing,
            Tool.from_schema("test_mirrored_header", "Repeat what it is given.", MIRRORED, lambda **given: given),
            Tool.from_schema(
                "json_schema_2020_12_tool",
                "Tool with JSON Schema 2020-12 features",
                SCHEMA_2020_12,
                lambda **given: given,
            ),
        ]
    )
    return changing.toolset


def _say(url: str) -> None:
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    serve_mcp(tools(), transport="http", port=int(sys.argv[1]), on_start=_say)
