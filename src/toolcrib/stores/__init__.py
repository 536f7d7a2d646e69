"""Where schemas that a model wrote are kept: one module each."""

from __future__ import annotations

from collections.abc import Callable

from toolcrib.protocols import ArtifactStore
from toolcrib.stores.memory import InMemoryArtifactStore
from toolcrib.stores.redis import RedisArtifactStore
from toolcrib.stores.sqlite import SQLiteArtifactStore

__all__ = ["STORES", "InMemoryArtifactStore", "RedisArtifactStore", "SQLiteArtifactStore"]

STORES: dict[str, Callable[..., ArtifactStore]] = {
    "memory": InMemoryArtifactStore,
    "redis": RedisArtifactStore,
    "sqlite": SQLiteArtifactStore,
}
