"""What holds of every store, and the faults that files and servers bring."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from toolcrib import InMemoryArtifactStore, MissingExtraError, RedisArtifactStore, SQLiteArtifactStore, Tool
from toolcrib._callables import is_async

REDIS = shutil.which("redis-server")
VALUES = [{"a": [1, 2.5, None, True, "ü\u2028\x00"]}, [], "text", 0, {}, "x" * 300_000]


@pytest.fixture(scope="module")
def redis_url():
    """A server of our own, which only this user can reach and which keeps nothing."""
    if REDIS is None:
        pytest.skip("redis-server is not installed")
    with tempfile.TemporaryDirectory(prefix="toolcrib-") as folder:
        address = str(Path(folder, "redis.sock"))
        options = ["--port", "0", "--unixsocket", address, "--save", "", "--appendonly", "no", "--dir", folder]
        server = subprocess.Popen([REDIS, *options], stdout=subprocess.DEVNULL)
        try:
            wait_for(address, server)
            yield f"unix://{address}"
        finally:
            server.terminate()
            server.wait()


def wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    over = time.monotonic() + 20
    while time.monotonic() < over and server.poll() is None:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as one:
            one.connect(address)
            return
        threading.Event().wait(0.02)
    pytest.fail("redis-server did not come up")


@pytest.fixture(params=["memory", "redis", "sqlite"])
def store(request, tmp_path):
    match request.param:
        case "sqlite":
            return SQLiteArtifactStore(tmp_path / "new folder" / "schemas.db")
        case "redis":
            return RedisArtifactStore(request.getfixturevalue("redis_url"), prefix=f"{tmp_path}:")
        case _:
            return InMemoryArtifactStore()


async def done(method, *args):
    return await method(*args) if is_async(method) else method(*args)


@pytest.mark.anyio
@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
async def test_a_value_comes_back_as_it_was_put(store, value):
    assert await done(store.get, "a key") is None
    await done(store.put, "a key", value)
    assert await done(store.get, "a key") == value
    assert await done(store.get, "another") is None


@pytest.mark.anyio
async def test_the_last_value_is_the_one_that_is_kept_and_nobody_else_can_change_it(store):
    value = {"a": [1]}
    await done(store.put, "k", "first")
    await done(store.put, "k", value)
    value["a"].append(2)
    (await done(store.get, "k"))["a"].append(3)
    assert await done(store.get, "k") == {"a": [1]}


@pytest.mark.anyio
async def test_a_claim_is_for_one_until_it_expires_or_is_given_back(store):
    assert await done(store.claim, "k", 60)
    assert not await done(store.claim, "k", 60)
    assert await done(store.claim, "other", 60)
    await done(store.release, "k")
    assert await done(store.claim, "k", 0.001)
    over = time.monotonic() + 10
    while not await done(store.claim, "k", 60):
        assert time.monotonic() < over


@pytest.mark.anyio
async def test_a_claim_touches_no_value(store):
    await done(store.put, "k", 1)
    await done(store.claim, "k", 60)
    await done(store.release, "k")
    assert await done(store.get, "k") == 1


@pytest.mark.anyio
async def test_memory_keeps_so_many_and_forgets_the_oldest():
    store = InMemoryArtifactStore(most=2)
    for key in "abca":
        await store.put(key, key)
    assert [await store.get(key) for key in "abc"] == ["a", None, "c"]
    assert len(store) == 2


def test_threads_share_one_sqlite_store_without_lock_errors(tmp_path):
    store = SQLiteArtifactStore(tmp_path / "schemas.db")
    won: list[int] = []

    def work(number: int) -> None:
        if store.claim("k", 60):
            won.append(number)
        for turn in range(5):
            store.put(f"{number}-{turn}", number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert [store.get(f"{number}-4") for number in range(8)] == list(range(8))


KILLED = """
import sys, toolcrib
store = toolcrib.SQLiteArtifactStore(sys.argv[1])
store.put("first", 1)
print("ready", flush=True)
number = 0
while True:
    store.put(f"k{number % 50}", {"number": number, "filler": "x" * 20_000})
    number += 1
"""


def test_a_process_killed_in_the_middle_of_a_put_leaves_a_store_that_can_be_read_and_written(tmp_path):
    path = tmp_path / "schemas.db"
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE)
        assert writer.stdout.readline() == b"ready\n"
        before = time.monotonic()
        while time.monotonic() - before < 0.05:
            SQLiteArtifactStore(path).get("k0")
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        store = SQLiteArtifactStore(path)
        assert store.get("first") == 1
        values = [store.get(f"k{number}") for number in range(50)]
        assert all(value is None or len(value["filler"]) == 20_000 for value in values)
        store.put("after", 2)
        assert store.get("after") == 2
        with contextlib.closing(sqlite3.connect(path)) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_file_that_is_no_database_is_an_error_and_is_not_touched(tmp_path):
    path = tmp_path / "schemas.db"
    path.write_bytes(b"my own notes, and not a database at all" * 100)
    with pytest.raises(sqlite3.DatabaseError):
        SQLiteArtifactStore(path).get("k")
    assert path.read_bytes().startswith(b"my own notes")


def test_reading_makes_no_file(tmp_path):
    assert SQLiteArtifactStore(tmp_path / "none.db").get("k") is None
    assert list(tmp_path.iterdir()) == []


def test_a_value_that_is_no_json_is_an_error(tmp_path):
    store = SQLiteArtifactStore(tmp_path / "schemas.db")
    store.put("k", 1)
    with contextlib.closing(sqlite3.connect(tmp_path / "schemas.db")) as db:
        db.execute("UPDATE artifacts SET value = '{half'")
        db.commit()
    with pytest.raises(ValueError, match="key must be a string"):
        store.get("k")


def test_redis_values_are_plain_json_under_a_prefix(redis_url):
    import redis

    client = redis.Redis.from_url(redis_url)
    store = RedisArtifactStore(client, prefix="mine:")
    store.put("k", {"a": 1})
    assert json.loads(client.get("mine:k")) == {"a": 1}
    assert store.claim("k", 60)
    assert 0 < client.pttl("mine:claim:k") <= 60_000
    client.close()


def test_redis_that_is_not_there_is_its_own_error(tmp_path):
    import redis

    with pytest.raises(redis.RedisError):
        RedisArtifactStore(f"unix://{tmp_path}/nobody.sock").get("k")


def test_redis_without_its_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(MissingExtraError, match=r"toolcrib\[redis\]"):
        RedisArtifactStore("redis://localhost")


def test_the_store_module_works_in_a_forked_child(tmp_path):
    store = SQLiteArtifactStore(tmp_path / "schemas.db")
    store.put("parent", 1)
    script = (
        "import os, sys, toolcrib\n"
        "store = toolcrib.SQLiteArtifactStore(sys.argv[1])\n"
        "store.get('parent')\n"
        "child = os.fork()\n"
        "store.put('child' if child == 0 else 'both', store.get('parent'))\n"
        "os._exit(0) if child == 0 else sys.exit(os.waitpid(child, 0)[1])\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "schemas.db")], check=True)
    assert (store.get("child"), store.get("both")) == (1, 1)
    assert os.listdir(tmp_path) == ["schemas.db"]  # noqa: PTH208  the names are what matters


class Bucket:
    """The two calls of boto3's S3 client that the recipe makes, and the error it knows."""

    class exceptions:  # noqa: N801  boto3's own name
        class NoSuchKey(Exception):  # noqa: N818
            pass

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], bytes] = {}

    def get_object(self, *, Bucket: str, Key: str):  # noqa: N803
        if (Bucket, Key) not in self.objects:
            raise self.exceptions.NoSuchKey
        return {"Body": io.BytesIO(self.objects[Bucket, Key])}

    def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> None:  # noqa: N803
        self.objects[Bucket, Key] = bytes(Body)


def test_the_recipe_for_s3_is_short_and_keeps_what_a_model_said():
    page = Path(__file__).parents[2].joinpath("docs", "schemas.md").read_text(encoding="utf-8")
    recipe = next(block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "S3ArtifactStore" in block)
    lines = recipe[recipe.index("class ") :].strip().splitlines()
    assert len([line for line in lines if line.strip()]) <= 15
    namespace: dict[str, type] = {}
    exec(recipe, namespace)
    store, asked = namespace["S3ArtifactStore"](Bucket(), "schemas"), []

    def model(_: str) -> dict[str, object]:
        asked.append(1)
        return {"description": "Double it.", "parameters": {"properties": {"x": {"description": "A number."}}}}

    def double(x: int) -> int:
        return 2 * x

    for _ in range(2):
        tool = Tool(double, mode="hybrid", schema_llm=model, store=store)
        assert tool.description == "Double it."
    assert len(asked) == 1
