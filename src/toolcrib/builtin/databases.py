"""A SQLite or DuckDB database that a model may read: its tables, and queries, which change nothing and end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pydantic
from typing_extensions import TypedDict

from toolcrib.builtin import _query
from toolcrib.errors import MissingExtraError, ToolExecutionError
from toolcrib.limits import MAX_QUERY_BYTES, MAX_QUERY_CHARS, MAX_QUERY_VALUE_BYTES, QUERY_SECONDS
from toolcrib.tools import Tool, tool

__all__ = ["Rows", "sql_tools"]

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
        kind = _DUCKDB
    elif begins in (b"", b"SQLite format 3\0"):
        kind = _SQLITE
    else:
        raise ValueError(f"{path.name} is neither a SQLite nor a DuckDB database")
    if kind is _DUCKDB and find_spec("duckdb") is None:
        raise MissingExtraError("sql", "reading a DuckDB database")
    tables = _Database(kind, path, timeout)
    return [Tool.wrap(method) for method in (tables.list_tables, tables.describe_table, tables.query_database)]


class _Kind(NamedTuple):
    """A kind of database, and what it is asked about itself."""

    name: str
    tables: str
    definition: str


_SQLITE = _Kind(
    "sqlite",
    "SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT GLOB 'sqlite_*' ORDER BY name",
    "SELECT sql FROM sqlite_schema WHERE tbl_name = ? COLLATE NOCASE AND sql IS NOT NULL ORDER BY type DESC",
)
_DUCKDB = _Kind(
    "duckdb",
    "SELECT table_name AS name, CASE table_type WHEN 'VIEW' THEN 'view' ELSE 'table' END AS type "
    "FROM information_schema.tables ORDER BY name",
    "SELECT sql FROM duckdb_tables() WHERE table_name = $1 "
    "UNION ALL SELECT sql FROM duckdb_views() WHERE view_name = $1",
)


class _Database:
    def __init__(self, kind: _Kind, path: Path, timeout: float) -> None:
        self._kind = kind
        self._path = path
        self._timeout = timeout

    @tool(effect="read")
    def list_tables(self) -> Rows:
        """List the tables and views of the database."""
        return self._ask(self._kind.tables, (), _MOST_TABLES)

    @tool(effect="read")
    def describe_table(
        self, table: Annotated[str, pydantic.Field(min_length=1, max_length=200, examples=["customers"])]
    ) -> str:
        """Return the statement that made a table or view: its columns, their types and keys.

        Args:
            table: Its name, as list_tables tells it.
        """
        rows = self._ask(self._kind.definition, (table,), 20)["rows"]
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
        return self._ask(query, (), limit)

    def _ask(self, query: str, values: Sequence[str], limit: int) -> Rows:
        asked = {
            "kind": self._kind.name,
            "file": str(self._path),
            "uri": self._path.as_uri(),
            "query": query,
            "values": values,
            "limit": limit,
            "seconds": self._timeout + _SPARE_SECONDS,
            "value_bytes": MAX_QUERY_VALUE_BYTES,
            "query_bytes": MAX_QUERY_BYTES,
            "process_bytes": MAX_QUERY_BYTES * 2,
            "path": [str(place) for place in sys.path],
        }
        try:
            ended = subprocess.run(  # noqa: S603  # our own interpreter
                [sys.executable, "-I", "-S", _query.__file__],
                input=json.dumps(asked).encode(),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=self._timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ToolExecutionError(f"the query took longer than {self._timeout:g} seconds") from None
        answer: Any = json.loads(ended.stdout) if ended.returncode == 0 else {"error": ""}
        if "error" not in answer:
            return answer
        raise ToolExecutionError(answer["error"].replace(str(self._path), self._path.name) or _TOO_MUCH)


_SPARE_SECONDS = 1.0  # after which a query ends by itself, whose parent cannot end it any more
_TOO_MUCH = f"the query took more memory than the {MAX_QUERY_BYTES // 1_000_000} MB it may: ask for less at once"
