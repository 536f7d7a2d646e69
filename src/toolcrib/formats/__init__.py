"""How each provider is shown tools, asks for calls and takes results: one module each."""

from __future__ import annotations

from toolcrib.formats import anthropic, gemini, mcp, openai_chat, openai_responses, xml
from toolcrib.protocols import Format

__all__ = ["FORMATS", "anthropic", "gemini", "mcp", "openai_chat", "openai_responses", "xml"]

FORMATS: dict[str, Format] = {
    "anthropic": anthropic,
    "gemini": gemini,
    "mcp": mcp,
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "xml": xml,
}
