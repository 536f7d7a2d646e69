"""Artifacts in Redis, for processes on many machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_core import from_json, to_json

from toolcrib.errors import MissingExtraError
from toolcrib.limits import STORE_SECONDS

if TYPE_CHECKING:
    from redis import Redis

__all__ = ["RedisArtifactStore"]


class RedisArtifactStore:
    """Keeps artifacts in a Redis server, or one that speaks like it.

    Args:
        url: Where it is, such as `redis://localhost:6379/0` or `unix:///run/redis.sock`; or a client of redis-py.
        prefix: What its keys begin with.

    Raises:
        MissingExtraError: The `redis` extra is not installed.
        ValueError: The address is none.
    """

    def __init__(self, url: str | Redis, *, prefix: str = "toolcrib:") -> None:
        self._client = _client(url) if isinstance(url, str) else url
        self._prefix = prefix

    def get(self, key: str) -> Any:
        """Return the value kept under a key, or None.

        Raises:
            redis.RedisError: The server cannot be reached.
            ValueError: What is kept there is no JSON.
        """
        text = self._client.get(self._prefix + key)
        return None if text is None else from_json(text)

    def put(self, key: str, value: Any) -> None:
        """Keep a JSON value under a key.

        Raises:
            redis.RedisError: The server cannot be reached.
        """
        self._client.set(self._prefix + key, to_json(value))

    def claim(self, key: str, seconds: float) -> bool:
        """Return whether the key is the caller's to write: for one at a time, for so many seconds.

        Raises:
            redis.RedisError: The server cannot be reached.
        """
        return bool(self._client.set(self._claim(key), b"1", nx=True, px=max(1, round(seconds * 1000))))

    def release(self, key: str) -> None:
        """End a claim.

        Raises:
            redis.RedisError: The server cannot be reached.
        """
        self._client.delete(self._claim(key))

    def _claim(self, key: str) -> str:
        return f"{self._prefix}claim:{key}"


def _client(url: str) -> Redis:
    try:
        import redis
    except ImportError:
        raise MissingExtraError("redis", "RedisArtifactStore") from None
    made: Any = redis.Redis  # whose from_url has no hints
    return made.from_url(url, socket_timeout=STORE_SECONDS, socket_connect_timeout=STORE_SECONDS)
