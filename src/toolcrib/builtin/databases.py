"""A SQLite or DuckDB database that a model may read: its tables, and queries, which change nothing and end."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Protocol

import pydantic
from typing_extensions import TypedDict

from toolcrib.errors import MissingExtraError, ToolExecutionError
from toolcrib.limits import MAX_QUERY_CHARS, MAX_QUERY_VALUE_BYTES, QUERY_SECONDS
from toolcrib.tools import Tool, tool

__all__ = ["Rows", "sql_tools"]

_MOST_CHARS = 50_000
_MOST_CELL_CHARS = 2_000
_MOST_TABLES = 1_000


class Rows(TypedDict):
    """What a query found; `more` tells whether there are rows that are not shown."""

    columns: list[str]
    rows: list[list[Any]]
    more: bool


def sql_tools(database: str | os.PathLike[str], *, timeout: float = QUERY_SECONDS) -> list[Tool]:
    """Return tools that list and describe the tables of a database, and query it; nothing can be changed by them.

    Args:
        database: A SQLite or DuckDB file; which of them it is, is read from the file.
        timeout: Seconds one query may run.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is neither.
        MissingExtraError: It is a DuckDB file, and the `sql` extra is not installed.
    """
    path = Path(database).expanduser().resolve()
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {database}")
    with path.open("rb") as file:
        begins = file.read(16)
    if begins[8:12] == b"DUCK":
        kind: _Kind = _DuckDb(path, timeout)
    elif begins in (b"", b"SQLite format 3\0"):
        kind = _Sqlite(path, timeout)
    else:
        raise ValueError(f"{path.name} is neither a SQLite nor a DuckDB database")
    tables = _Database(kind)
    return [Tool.wrap(method) for method in (tables.list_tables, tables.describe_table, tables.query_database)]


class _Kind(Protocol):
    """A kind of database: how it is asked, and what it says of itself."""

    tables: str
    definition: str

    def ask(self, query: str, values: Sequence[str], limit: int) -> Rows: ...


class _Database:
    def __init__(self, kind: _Kind) -> None:
        self.kind = kind

    @tool(effect="read")
    def list_tables(self) -> Rows:
        """List the tables and views of the database."""
        return self.kind.ask(self.kind.tables, (), _MOST_TABLES)

    @tool(effect="read")
    def describe_table(
        self, table: Annotated[str, pydantic.Field(min_length=1, max_length=200, examples=["customers"])]
    ) -> str:
        """Return the statement that made a table or view: its columns, their types and keys.

        Args:
            table: Its name, as list_tables tells it.
        """
        rows = self.kind.ask(self.kind.definition, (table,), 20)["rows"]
        if not rows:
            raise ToolExecutionError(f"there is no table {table!r}: list_tables tells their names")
        return ";\n".join(str(row[0]) for row in rows)

    @tool(effect="read")
    def query_database(
        self,
        query: Annotated[
            str,
            pydantic.Field(min_length=1, max_length=MAX_QUERY_CHARS, examples=["SELECT count(*) FROM customers"]),
        ],
        limit: Annotated[int, pydantic.Field(ge=1, le=1_000)] = 100,
    ) -> Rows:
        """Run one SELECT statement and return its rows.

        Args:
            query: The statement, in the database's own dialect. It may only read.
            limit: How many rows to return at most; say LIMIT, or count and sum up in the query itself, for less.
        """
        return self.kind.ask(query, (), limit)


def _rows(columns: list[str], fetch: Callable[[], Any], limit: int) -> Rows:
    """Take rows one by one, until there are enough of them or of their text."""
    rows, chars = list[list[Any]](), 0
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


class _Sqlite:
    tables = (
        "SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT GLOB 'sqlite_*' "
        "ORDER BY name"
    )
    definition = (
        "SELECT sql FROM sqlite_schema WHERE tbl_name = ? COLLATE NOCASE AND sql IS NOT NULL ORDER BY type DESC"
    )

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        self.timeout = timeout

    def ask(self, query: str, values: Sequence[str], limit: int) -> Rows:
        with self._connected() as connection:
            cursor = connection.execute(query, values)
            if cursor.description is None:
                raise ToolExecutionError("that is no query: only a SELECT statement can be run")
            return _rows([column[0] for column in cursor.description], cursor.fetchone, limit)

    @contextmanager
    def _connected(self) -> Generator[sqlite3.Connection]:
        ends = time.monotonic() + self.timeout
        try:
            place = f"{self.path.as_uri()}?mode=ro"
            with contextlib.closing(sqlite3.connect(place, uri=True, isolation_level=None)) as connection:
                connection.execute("PRAGMA query_only = ON")
                connection.execute("PRAGMA trusted_schema = OFF")  # the file itself may be hostile
                for bound, value in _BOUNDS.items():
                    connection.setlimit(bound, value)
                connection.set_authorizer(_authorized)
                connection.set_progress_handler(lambda: time.monotonic() > ends, 10_000)
                yield connection
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
            if time.monotonic() > ends:
                raise ToolExecutionError(f"the query took longer than {self.timeout:g} seconds") from None
            hint = ": a query may only read" if "authoriz" in str(error) or "prohibited" in str(error) else ""
            raise ToolExecutionError(f"{error}{hint}") from None


_BOUNDS = {
    sqlite3.SQLITE_LIMIT_LENGTH: MAX_QUERY_VALUE_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: MAX_QUERY_CHARS * 4,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 100,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
}
_READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}
_FACTS = {"table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list"}
_FORBIDDEN = {"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"}


def _authorized(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    if action in _READING:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_DENY if (second or "").lower() in _FORBIDDEN else sqlite3.SQLITE_OK
    tells = action == sqlite3.SQLITE_PRAGMA and (first or "").lower() in _FACTS
    return sqlite3.SQLITE_OK if tells else sqlite3.SQLITE_DENY


# -- DuckDB


class _DuckDb:
    tables = (
        "SELECT table_name AS name, CASE table_type WHEN 'VIEW' THEN 'view' ELSE 'table' END AS type "
        "FROM information_schema.tables ORDER BY name"
    )
    definition = (
        "SELECT sql FROM duckdb_tables() WHERE table_name = $1 "
        "UNION ALL SELECT sql FROM duckdb_views() WHERE view_name = $1"
    )

    def __init__(self, path: Path, timeout: float) -> None:
        try:
            self.duckdb: Any = import_module("duckdb")
        except ImportError:
            raise MissingExtraError("sql", "reading a DuckDB database") from None
        self.path = path
        self.timeout = timeout

    def ask(self, query: str, values: Sequence[str], limit: int) -> Rows:
        over = threading.Event()
        try:
            with contextlib.closing(self.duckdb.connect(str(self.path), read_only=True, config=_CLOSED)) as connection:
                self._check(connection, query)

                def stop() -> None:
                    over.set()
                    connection.interrupt()

                timer = threading.Timer(self.timeout, stop)
                timer.daemon = True
                timer.start()
                try:
                    connection.execute(query, list(values))
                    return _rows([column[0] for column in connection.description], connection.fetchone, limit)
                finally:
                    timer.cancel()
                    timer.join()
        except self.duckdb.Error as error:
            if over.is_set():
                raise ToolExecutionError(f"the query took longer than {self.timeout:g} seconds") from None
            raise ToolExecutionError(str(error).replace(str(self.path), self.path.name)) from None

    def _check(self, connection: Any, query: str) -> None:
        statements = connection.extract_statements(query)
        if len(statements) != 1 or statements[0].type != self.duckdb.StatementType.SELECT:
            raise ToolExecutionError("that is not one SELECT statement: a query may only read")


#: Nothing but the database itself can be read, and no query can change that.
_CLOSED = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "temp_directory": "",
    "memory_limit": "512MB",
    "threads": "2",
    "lock_configuration": "true",
}
