"""Artifacts in the memory of this process."""

from __future__ import annotations

import threading
import time
from typing import Any

from pydantic_core import from_json, to_json

from toolcrib.limits import MAX_ARTIFACTS

__all__ = ["InMemoryArtifactStore"]


class InMemoryArtifactStore:
    """Keeps artifacts as long as the process lives; any number of threads and loops may share it.

    Args:
        most: Artifacts to keep; the oldest make room for new ones.
    """

    def __init__(self, *, most: int = MAX_ARTIFACTS) -> None:
        self._most = most
        self._texts: dict[str, bytes] = {}
        self._claims: dict[str, float] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._texts)

    async def get(self, key: str) -> Any:
        """Return the value kept under a key, or None."""
        text = self._texts.get(key)
        return None if text is None else from_json(text)

    async def put(self, key: str, value: Any) -> None:
        """Keep a JSON value under a key."""
        text = to_json(value)
        with self._lock:
            self._texts.pop(key, None)
            self._texts[key] = text
            while len(self._texts) > self._most:
                del self._texts[next(iter(self._texts))]

    async def claim(self, key: str, seconds: float) -> bool:
        """Return whether the key is the caller's to write: for one at a time, for so many seconds."""
        now = time.monotonic()
        with self._lock:
            self._claims = {held: until for held, until in self._claims.items() if until > now}
            if key in self._claims:
                return False
            self._claims[key] = now + seconds
            return True

    async def release(self, key: str) -> None:
        """End a claim."""
        with self._lock:
            self._claims.pop(key, None)
