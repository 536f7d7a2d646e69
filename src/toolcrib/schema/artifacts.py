"""What is kept of a model's answer, under which key, and a store as its user sees it: never in the way.

An artifact is the model's answer and not the schema made of it: what a store gives back is merged with the
function's signature by the same rules, so that an artifact can break no more than a model can.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import to_json

from toolcrib._callables import is_async
from toolcrib._portal import off_loop
from toolcrib.limits import SCHEMA_LEASE_SECONDS, STORE_SECONDS

if TYPE_CHECKING:
    from toolcrib.protocols import ArtifactStore

__all__ = ["Shelf", "fingerprint", "model_id", "packed", "unpacked"]

#: Raised when an artifact of an older toolcrib would be read wrongly.
_VERSION = 1


def model_id(model: Any) -> str:
    """Return what a model is known by: an engine's name, a function's qualified name, or that of an object's type."""
    named = getattr(model, "model", None) if hasattr(model, "acomplete") else None
    if isinstance(named, str):
        return named
    owner = model if inspect.isroutine(model) else cast("type[Any]", type(model))
    return f"{owner.__module__}.{owner.__qualname__}"


def fingerprint(model: str, prompt: str) -> str:
    """Return the key of an answer.

    The prompt has the source, the signature, the name, the description, the mode and the strictness, in the
    words of this version: whatever could change the answer changes the prompt, and nothing else does.
    """
    import hashlib  # which loads OpenSSL, and few programs need it

    return hashlib.sha256(to_json([_VERSION, model, prompt])).hexdigest()


def packed(key: str, model: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the artifact of an answer."""
    return {"toolcrib": _VERSION, "key": key, "model": model, "answer": answer}


def unpacked(key: str, artifact: Any) -> Any:
    """Return the answer of an artifact.

    Raises:
        ValueError: It is no artifact, or that of another key.
    """
    if not isinstance(artifact, Mapping):
        raise ValueError(f"it is no artifact but {type(artifact).__name__}")  # noqa: TRY004  # read like every other fault
    members = cast("Mapping[str, Any]", artifact)
    if members.get("toolcrib") != _VERSION or members.get("key") != key or "answer" not in members:
        raise ValueError("it is no artifact of this tool")
    return members["answer"]


class Shelf:
    """One key of a store, for one who wants an answer whatever the store does: what fails is told in `problems`.

    Args:
        store: The store.
        key: The key.
    """

    def __init__(self, store: ArtifactStore, key: str) -> None:
        self.problems: dict[str, None] = {}
        self._store = store
        self._key = key

    async def get(self) -> Any:
        """Return the answer that is kept, or None."""
        artifact = await self._done("get")
        if artifact is None:
            return None
        try:
            return unpacked(self._key, artifact)
        except ValueError as error:
            self.refuse(error)
            return None

    def refuse(self, error: Exception) -> None:
        """Tell that what is kept cannot be used."""
        self._tell(f"what the store holds for it is not used: {error}")

    async def put(self, model: str, answer: Mapping[str, Any]) -> None:
        """Keep an answer."""
        await self._done("put", packed(self._key, model, answer))

    async def claim(self) -> bool:
        """Return whether the answer is ours to make; a store that cannot say leaves it to everybody."""
        return not hasattr(self._store, "claim") or await self._done("claim", SCHEMA_LEASE_SECONDS, failed=True)

    async def release(self) -> None:
        """Let others make the answer."""
        if hasattr(self._store, "release"):
            await self._done("release")

    async def _done(self, name: str, *args: Any, failed: Any = None) -> Any:
        method = getattr(self._store, name)
        try:
            if not is_async(method):
                value = await off_loop(method, self._key, *args, timeout=STORE_SECONDS)
                return await value if inspect.isawaitable(value) else value
            async with asyncio.timeout(STORE_SECONDS):
                return await method(self._key, *args)
        except Exception as error:  # noqa: BLE001  # a store of any kind fails in any way
            self._tell(f"the store's {name} failed: {type(error).__name__}: {error}")
            return failed

    def _tell(self, problem: str) -> None:
        self.problems[problem] = None
