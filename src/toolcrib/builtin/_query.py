"""One query of a database, in a process of its own, which can be ended in the middle of a value.

A function such as `repeat` or `instr` does its work in one go: there it hears no interrupt, and DuckDB's asks for
memory past DuckDB's own limit. This file is run by its path, and imports only the standard library and DuckDB.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module

TYPE_CHECKING = False  # what `typing` would say, without the time it takes
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["TYPE_CHECKING", "main"]

_MOST_CHARS = 50_000
_MOST_CELL_CHARS = 2_000


def main() -> None:
    """Answer one query from standard input on standard output, and end without clearing up."""
    asked = json.load(sys.stdin)
    _bound(asked["seconds"], asked["process_bytes"])
    sys.path[:] = asked["path"]
    answer = {"sqlite": _sqlite, "duckdb": _duckdb}[asked["kind"]]
    try:
        told = answer(asked)
    except MemoryError:
        told = {"error": ""}
    json.dump(told, sys.stdout)
    sys.stdout.flush()
    os._exit(0)


def _bound(seconds: float, memory: int) -> None:
    """Have the system end this process, also when nobody is there any longer to do it."""
    if sys.platform == "win32":
        return
    import resource
    import signal

    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    memory = memory if most == resource.RLIM_INFINITY else min(memory, most)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _rows(columns: list[str], fetch: Callable[[], Any], limit: int) -> dict[str, Any]:
    """Take rows one by one, until there are enough of them or of their text."""
    rows: list[list[Any]] = []
    chars = 0
    while (row := fetch()) is not None:
        if len(rows) == limit or chars > _MOST_CHARS:
            return {"columns": columns, "rows": rows, "more": True}
        rows.append([_cell(value) for value in row])
        chars += sum(len(str(value)) + 2 for value in rows[-1])
    return {"columns": columns, "rows": rows, "more": False}


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, bytes):
        return f"[{len(value):,} bytes]"
    text = str(value)
    return text if len(text) <= _MOST_CELL_CHARS else f"{text[:_MOST_CELL_CHARS]}... [{len(text):,} characters]"


# -- SQLite


def _sqlite(asked: dict[str, Any]) -> dict[str, Any]:
    import sqlite3

    try:
        connection = sqlite3.connect(f"{asked['uri']}?mode=ro", uri=True, isolation_level=None)
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA trusted_schema = OFF")  # the file itself may be hostile
        connection.text_factory = _text
        for bound, value in {
            sqlite3.SQLITE_LIMIT_LENGTH: asked["value_bytes"],
            sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
            sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 100,
            sqlite3.SQLITE_LIMIT_ATTACHED: 0,
        }.items():
            connection.setlimit(bound, value)
        connection.set_authorizer(_authorized)
        cursor = connection.execute(asked["query"], asked["values"])
        if cursor.description is None:
            return {"error": "that is no query: only a SELECT statement can be run"}
        return _rows([column[0] for column in cursor.description], cursor.fetchone, asked["limit"])
    except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
        hint = ": a query may only read" if "authoriz" in str(error) or "prohibited" in str(error) else ""
        return {"error": f"{error}{hint}"}


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


_FACTS = {"table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list"}
_FORBIDDEN = {"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"}


def _authorized(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    import sqlite3

    if action in {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_DENY if (second or "").lower() in _FORBIDDEN else sqlite3.SQLITE_OK
    tells = action == sqlite3.SQLITE_PRAGMA and (first or "").lower() in _FACTS
    return sqlite3.SQLITE_OK if tells else sqlite3.SQLITE_DENY


# -- DuckDB

#: Nothing but the database itself can be read, and no query can change that.
_CLOSED = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "temp_directory": "",
    "threads": "2",
    "lock_configuration": "true",
}


def _duckdb(asked: dict[str, Any]) -> dict[str, Any]:
    duckdb: Any = import_module("duckdb")
    config = {**_CLOSED, "memory_limit": f"{asked['query_bytes']}B"}
    try:
        connection = duckdb.connect(asked["file"], read_only=True, config=config)
        statements = connection.extract_statements(asked["query"])
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            return {"error": "that is not one SELECT statement: a query may only read"}
        connection.execute(asked["query"], asked["values"])
        return _rows([column[0] for column in connection.description], connection.fetchone, asked["limit"])
    except duckdb.OutOfMemoryException:
        return {"error": ""}
    except duckdb.Error as error:
        return {"error": str(error)}


if __name__ == "__main__":
    main()
