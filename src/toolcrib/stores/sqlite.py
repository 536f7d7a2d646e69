"""Artifacts in one SQLite file, for any number of processes and threads at once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic_core import from_json, to_json

from toolcrib.limits import STORE_SECONDS

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = ["SQLiteArtifactStore"]

T = TypeVar("T")

_TABLES = """
CREATE TABLE IF NOT EXISTS artifacts (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, until REAL NOT NULL) WITHOUT ROWID;
"""
# What SQLite says at once, without waiting, while another process sets up or recovers the file.
_PASSING = ("locked", "busy", "no such table")
_PAUSE_SECONDS = 0.01


class SQLiteArtifactStore:
    """Keeps artifacts in one file, which many processes and threads may use at once.

    Each operation is a transaction on a connection of its own, so the store survives forks, and a process
    that is killed in the middle of one loses that one and nothing else.

    Args:
        path: The file; it is made, with its folder, at the first use.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._path)!r})"

    def get(self, key: str) -> Any:
        """Return the value kept under a key, or None.

        Raises:
            sqlite3.Error: The file cannot be used.
            ValueError: What is kept there is no JSON.
        """
        if not self._path.exists():
            return None
        asked = "SELECT value FROM artifacts WHERE key = ?"
        row = self._in_transaction(lambda db: db.execute(asked, (key,)).fetchone(), begin="BEGIN")
        return None if row is None else from_json(row[0])

    def put(self, key: str, value: Any) -> None:
        """Keep a JSON value under a key.

        Raises:
            sqlite3.Error: The file cannot be written.
        """
        text = to_json(value).decode()
        self._in_transaction(lambda db: db.execute("INSERT OR REPLACE INTO artifacts VALUES (?, ?)", (key, text)))

    def claim(self, key: str, seconds: float) -> bool:
        """Return whether the key is the caller's to write: for one at a time, for so many seconds.

        Raises:
            sqlite3.Error: The file cannot be written.
        """
        now = time.time()

        def take(db: Connection) -> bool:
            db.execute("DELETE FROM claims WHERE until <= ?", (now,))
            return db.execute("INSERT OR IGNORE INTO claims VALUES (?, ?)", (key, now + seconds)).rowcount == 1

        return self._in_transaction(take)

    def release(self, key: str) -> None:
        """End a claim.

        Raises:
            sqlite3.Error: The file cannot be written.
        """
        self._in_transaction(lambda db: db.execute("DELETE FROM claims WHERE key = ?", (key,)))

    def _in_transaction(self, work: Callable[[Connection], T], begin: str = "BEGIN IMMEDIATE") -> T:
        from sqlite3 import OperationalError

        over = time.monotonic() + STORE_SECONDS
        while True:
            try:
                with self._opened() as db:
                    db.execute(begin)
                    value = work(db)
                    db.execute("COMMIT")
                    return value
            except OperationalError as error:
                if time.monotonic() > over or not any(word in str(error) for word in _PASSING):
                    raise
            time.sleep(_PAUSE_SECONDS * (1 + os.urandom(1)[0] / 256))  # so that they do not all come back at once

    @contextmanager
    def _opened(self) -> Generator[Connection]:
        import sqlite3

        is_new = not self._path.exists()
        if is_new:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self._path, timeout=STORE_SECONDS, isolation_level=None)
        try:
            if is_new or not _has_tables(db):
                db.execute("PRAGMA journal_mode=WAL")
                db.executescript(_TABLES)
            db.execute("PRAGMA synchronous=NORMAL")
            yield db
        finally:
            db.close()


def _has_tables(db: Connection) -> bool:
    return db.execute("SELECT 1 FROM sqlite_master WHERE name = 'claims'").fetchone() is not None
