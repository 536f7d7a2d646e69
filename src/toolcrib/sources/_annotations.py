"""What remote tools say of themselves, in the words of MCP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from toolcrib.types import Effect

__all__ = ["effect_of"]


def effect_of(annotations: Any) -> Effect | None:
    """Return what a server claims that a call does to the world; None where it does not say."""
    hints: Mapping[str, Any] = cast("Mapping[str, Any]", annotations) if isinstance(annotations, Mapping) else {}
    if hints.get("readOnlyHint") is True:
        return "read"
    if hints.get("destructiveHint") is True:
        return "destructive"
    if hints.get("idempotentHint") is True:
        return "idempotent"
    return "write" if hints.get("destructiveHint") is False else None
