from __future__ import annotations

import resource
import sqlite3
from pathlib import Path

import duckdb
import pytest

from toolcrib import ToolCall, Toolset, call_tools, sql_tools

SCHEMA = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customers(id), total REAL);
CREATE VIEW big AS SELECT id, customer FROM orders WHERE total > 100;
INSERT INTO customers VALUES (1, 'Ada'), (2, 'Grace'), (3, NULLIF('Zoë', ''));
INSERT INTO orders VALUES (1, 1, 12.5), (2, 1, 250), (3, 2, NULL);
"""


def sqlite_shop(path: Path) -> Path:
    with sqlite3.connect(path) as connection:
        connection.executescript(SCHEMA)
    connection.close()
    return path


def duckdb_shop(path: Path) -> Path:
    with duckdb.connect(str(path)) as connection:
        connection.execute(SCHEMA)
    return path


@pytest.fixture(params=[sqlite_shop, duckdb_shop], ids=["sqlite", "duckdb"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return request.param(tmp_path / ("a shop?#.db" if request.param is sqlite_shop else "a shop.db"))


@pytest.fixture
def sqlite(tmp_path: Path) -> Path:
    return sqlite_shop(tmp_path / "shop.db")


def answer(shop: Path, name: str, timeout: float = 10, **arguments):
    (result,) = call_tools([ToolCall("1", name, arguments)], Toolset(sql_tools(shop, timeout=timeout)))
    return result


def query(shop: Path, text: str, timeout: float = 10, **more):
    return answer(shop, "query_database", timeout, query=text, **more)


# -- reading


def test_tables_and_views_are_listed(shop):
    assert answer(shop, "list_tables").value == {
        "columns": ["name", "type"],
        "rows": [["big", "view"], ["customers", "table"], ["orders", "table"]],
        "more": False,
    }


def test_a_table_is_described_by_what_made_it(shop):
    text = answer(shop, "describe_table", table="orders").text
    assert text.startswith("CREATE TABLE orders")
    assert "customer" in text
    assert "CREATE VIEW" in answer(shop, "describe_table", table="big").text
    assert "list_tables" in answer(shop, "describe_table", table="nothing' OR 1=1 --").text


def test_a_query_gives_columns_and_rows(shop):
    found = query(
        shop,
        "SELECT name, sum(total) AS total FROM customers JOIN orders ON customer = customers.id GROUP BY 1 ORDER BY 1",
    )
    assert found.value == {"columns": ["name", "total"], "rows": [["Ada", 262.5], ["Grace", None]], "more": False}


def test_more_rows_than_wanted_are_told(shop):
    assert query(shop, "SELECT id FROM customers ORDER BY id;", limit=2).value == {
        "columns": ["id"],
        "rows": [[1], [2]],
        "more": True,
    }


def test_values_that_are_no_text_or_too_long_are_told_in_short(sqlite):
    value = query(sqlite, "SELECT x'00ff' AS a, printf('%.*c', 100000, 'x') AS b").value["rows"][0]
    assert value[0] == "[2 bytes]"
    assert value[1].endswith("... [100,000 characters]")


def test_a_table_with_large_files_in_it_can_be_read(sqlite):
    with sqlite3.connect(sqlite) as connection:
        connection.execute("CREATE TABLE photos AS SELECT 1 AS id, zeroblob(3000000) AS data")
    connection.close()
    assert query(sqlite, "SELECT * FROM photos").value["rows"] == [[1, "[3,000,000 bytes]"]]


def test_text_that_is_no_utf_8_is_told_as_far_as_it_is(sqlite):
    assert query(sqlite, "SELECT CAST(x'61ff62' AS TEXT)").value["rows"] == [["a\ufffdb"]]


def test_rows_end_when_their_text_is_enough(shop):
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT "
    text = "'" + "x" * 1_000 + "'"
    found = query(shop, f"{many} i, {text} FROM n", limit=1_000).value
    assert found["more"]
    assert len(found["rows"]) < 100


@pytest.mark.parametrize(
    ("text", "reason"),
    [("SELECT * FROM nothing", "nothing"), ("SELEC 1", "SELEC"), ("SELECT nope FROM customers", "nope")],
)
def test_a_wrong_query_is_told_in_the_databases_words(shop, text, reason):
    result = query(shop, text)
    assert result.kind == "failed"
    assert reason in result.text
    assert str(shop.parent) not in result.text


# -- what may not be

EITHER = [
    "INSERT INTO customers VALUES (9, 'Eve')",
    "UPDATE customers SET name = 'Eve'",
    "DELETE FROM customers",
    "DROP TABLE customers",
    "CREATE TABLE more (id INTEGER)",
    "CREATE TEMP TABLE more (id INTEGER)",
    "WITH x AS (SELECT 1) DELETE FROM customers",
    "ATTACH '{outside}' AS other",
    "VACUUM",
    "SELECT * FROM '/etc/passwd'",
    "SELECT 1; DELETE FROM customers",
    "SELECT 1; SELECT 2",
    "-- nothing",
    ";",
    "SELECT 1 /* \0 */ FROM",
]
ONLY = {
    sqlite_shop: [
        "ALTER TABLE customers ADD COLUMN more TEXT",
        "REPLACE INTO customers VALUES (1, 'Eve')",
        "ATTACH ':memory:' AS other",
        "DETACH main",
        "VACUUM INTO '{outside}'",
        "SELECT load_extension('{outside}')",
        "SELECT readfile('/etc/passwd')",
        "SELECT writefile('{outside}', 'x')",
        "SELECT fts3_tokenizer('simple', x'00')",
        "PRAGMA query_only = OFF",
        "PRAGMA writable_schema = ON",
        "PRAGMA journal_mode = WAL",
        "PRAGMA database_list",
        "BEGIN IMMEDIATE",
    ],
    duckdb_shop: [
        "COPY customers TO '{outside}'",
        "EXPORT DATABASE '{outside}'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM glob('/*')",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
    ],
}
HOSTILE = [(made, text) for made, only in ONLY.items() for text in [*EITHER, *only]]


@pytest.mark.parametrize(("made", "text"), HOSTILE, ids=[f"{made.__name__}-{text}" for made, text in HOSTILE])
def test_a_query_that_would_do_more_than_read_is_refused(made, text, tmp_path):
    shop = made(tmp_path / "shop.db")
    before, outside = shop.read_bytes(), shop.parent / "outside"
    result = query(shop, text.format(outside=outside))
    assert result.kind == "failed", result.text
    assert "root:" not in result.text
    assert shop.read_bytes() == before
    assert [path.name for path in shop.parent.iterdir()] == [shop.name]


ENDLESS = [
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
]


@pytest.mark.parametrize("text", ENDLESS)
def test_a_query_that_never_ends_is_ended(shop, text):
    result = query(shop, text, timeout=0.3)
    assert "longer than 0.3 seconds" in result.text
    assert result.duration < 20


HUGE = [
    "SELECT repeat('a', 1000000000)",
    "SELECT length(repeat('a', 300000000))",
    "SELECT max(len(l)) FROM (SELECT list(i) AS l FROM range(200000000) t(i))",
]


@pytest.mark.parametrize("text", HUGE)
def test_a_value_that_duckdb_makes_in_one_go_takes_neither_this_processs_memory_nor_its_time(tmp_path, text):
    shop = duckdb_shop(tmp_path / "shop.db")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = query(shop, text, timeout=5)
    assert result.kind == "failed"
    assert "more memory than" in result.text or "longer than 5 seconds" in result.text
    assert result.duration < 8
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000_000 // 1024


SLOW_AT_ONCE = {
    sqlite_shop: "SELECT " + " + ".join(["instr({long} || {long}, {long} || 'b')"] * 50),
    duckdb_shop: "SELECT levenshtein(repeat('a', 90000), repeat('b', 90000))",
}


@pytest.mark.parametrize("made", SLOW_AT_ONCE)
def test_a_query_ends_on_time_in_the_middle_of_one_value(made, tmp_path):
    slow = SLOW_AT_ONCE[made].format(long="replace(hex(zeroblob(240000)), '0', 'a')")
    result = query(made(tmp_path / "shop.db"), slow, 1)
    assert "longer than 1 seconds" in result.text
    assert result.duration < 3


def test_what_a_process_for_a_query_says_of_itself_stays_there(shop, capfd):
    assert query(shop, "SELECT 9e999 AS i, 'é' AS t").ok
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "text",
    ["SELECT zeroblob(1000000000)", "SELECT hex(zeroblob(90000000))", f"SELECT {'(' * 5_000}1{')' * 5_000}"],
    ids=["blob", "text", "depth"],
)
def test_a_value_or_a_query_without_bounds_is_refused(sqlite, text):
    assert query(sqlite, text).kind == "failed"


def test_a_query_that_is_too_long_does_not_fit(shop):
    assert query(shop, "SELECT " + "1, " * 10_000 + "1").kind == "invalid_arguments"


def test_functions_in_a_hostile_file_cannot_be_called_behind_a_view(tmp_path):
    path = tmp_path / "evil.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE VIEW v AS SELECT load_extension('x')")
    connection.close()
    assert query(path, "SELECT * FROM v").kind == "failed"


# -- files


def test_a_file_that_is_no_database_is_refused_when_the_tools_are_made(tmp_path):
    (tmp_path / "text").write_text("just some words in a file")
    with pytest.raises(ValueError, match="neither a SQLite nor a DuckDB"):
        sql_tools(tmp_path / "text")
    with pytest.raises(FileNotFoundError):
        sql_tools(tmp_path / "nothing.db")
    assert list(tmp_path.iterdir()) == [tmp_path / "text"]


def test_a_broken_database_is_a_failure_with_its_reason(tmp_path):
    (tmp_path / "broken.db").write_bytes(b"SQLite format 3\0" + b"\1" * 5_000)
    result = answer(tmp_path / "broken.db", "list_tables")
    assert result.kind == "failed"
    assert str(tmp_path) not in result.text


def test_a_database_that_grows_is_read_as_it_is(sqlite):
    tools = Toolset(sql_tools(sqlite))
    with sqlite3.connect(sqlite) as connection:
        connection.execute("INSERT INTO customers VALUES (4, 'Eve')")
    connection.close()
    (result,) = call_tools([ToolCall("1", "query_database", {"query": "SELECT count(*) FROM customers"})], tools)
    assert result.value["rows"] == [[4]]
