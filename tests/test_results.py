import asyncio
import base64
import enum
import json
import math
import time
from collections import OrderedDict, UserDict, defaultdict, deque, namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from toolcrib import results
from toolcrib.errors import (
    NotSerializableError,
    ToolArgumentError,
    ToolDeniedError,
    ToolExecutionError,
    ToolNotFoundError,
    ToolTimeoutError,
)
from toolcrib.limits import Limits
from toolcrib.results import clean
from toolcrib.types import Envelope, RunError, Secret, ToolResponse

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
Pair = namedtuple("Pair", "a b")  # noqa: PYI024  # what old code returns


class Told(NamedTuple):
    """An answer with names for its members."""

    kind: str
    text: str
    parts: tuple = ()
    response: ToolResponse | None = None


def answer_to(*args):
    return Told(*results.answer_to(*args))


def failure(*args):
    return Told(*results.failure(*args))


class Colour(enum.Enum):
    RED = "red"


class Word(str, enum.Enum):  # noqa: UP042  # unlike a StrEnum, its text is `Word.RED`
    RED = "red"


class Plain(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@dataclass
class Point:
    x: int
    y: Any = None


@dataclass(slots=True, frozen=True)
class Slotted:
    x: Any


class Model(BaseModel):
    name: str
    inner: Any = None


class Text(str):  # noqa: SLOT000  # a hostile one
    def __str__(self):
        raise RuntimeError("no")

    def __len__(self):
        return 0


def ones():
    while True:
        yield 1


async def endless():
    while True:
        yield 1


class Evil:
    @property
    def __class__(self):
        raise RuntimeError("no class")

    def __repr__(self):
        raise RuntimeError("no repr")

    __str__ = __repr__

    def __getattr__(self, name: str):
        raise RuntimeError("no attribute")


class Exiting:
    def __iter__(self):
        raise SystemExit

    __str__ = __repr__ = __len__ = __bool__ = __iter__


# -- values


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", ""),
        ("as it is\n{}", "as it is\n{}"),
        ("ünï 漢字 😀", "ünï 漢字 😀"),
        (Text("word"), "word"),
        (Word.RED, "red"),
        (Plain.RED, "red"),
        (None, "null"),
        (True, "true"),
        (0, "0"),
        (1.5, "1.5"),
        (10**30, str(10**30)),
        (math.nan, '"NaN"'),
        ([1, "a", None], '[1,"a",null]'),
        ((1, 2), "[1,2]"),
        (Pair(1, 2), "[1,2]"),
        (deque([1]), "[1]"),
        ({"a": {"b": []}}, '{"a":{"b":[]}}'),
        ({1: "a"}, '{"1":"a"}'),
        ({"x": math.inf}, '{"x":"Infinity"}'),
        (OrderedDict(a=1), '{"a":1}'),
        (defaultdict(list, a=[1]), '{"a":[1]}'),
        ({5}, "[5]"),
        (frozenset(), "[]"),
        (Colour.RED, '"red"'),
        ([Word.RED, Level.HIGH], '["red",3]'),
        (Point(1, Point(2)), '{"x":1,"y":{"x":2,"y":null}}'),
        (Slotted([1]), '{"x":[1]}'),
        (Model(name="a", inner=Point(1)), '{"name":"a","inner":{"x":1,"y":null}}'),
        ([Model(name="a")], '[{"name":"a","inner":null}]'),
        (datetime(2026, 1, 2, tzinfo=UTC), '"2026-01-02T00:00:00Z"'),
        ({"d": date(2026, 1, 2), "t": timedelta(seconds=90)}, '{"d":"2026-01-02","t":"PT1M30S"}'),
        (Decimal("1.10"), '"1.10"'),
        (UUID(int=0), '"00000000-0000-0000-0000-000000000000"'),
        (Path("a/b"), '"a/b"'),
        ({"key": Secret("hunter2")}, '{"key":"***"}'),
        (Secret("hunter2"), '"***"'),
        ({"key": SecretStr("hunter2")}, '{"key":"**********"}'),
        ({"type": ["string", "null"]}, '{"type":["string","null"]}'),
        ({"type": "resource", "resource": "pods"}, '{"type":"resource","resource":"pods"}'),
        ({"type": "image", "data": 5, "mimeType": "x"}, '{"type":"image","data":5,"mimeType":"x"}'),
        ({"type": "resource", "resource": {"uri": "x"}}, '{"type":"resource","resource":{"uri":"x"}}'),
    ],
)
def test_a_value_is_shown_as_text_or_json(value, text):
    answer = answer_to(value)
    assert (answer.kind, answer.text, answer.parts) == ("ok", text, ())
    assert type(answer.text) is str


SHOWN_OR_REFUSED = {
    "object": object,
    "deep object": lambda: {"deep": [{"conn": object()}]},
    "namespace": lambda: SimpleNamespace(a=1),
    "function": lambda: asyncio.run,
    "class": lambda: int,
    "fraction": lambda: Fraction(1, 2),
    "proxy": lambda: MappingProxyType({1: 2}),
    "user dict": lambda: UserDict(a=1),
    "nested bytes": lambda: {"b": b"\xff\xfe"},
    "surrogate": lambda: "\ud800 is no text",
    "nested surrogate": lambda: {"k": "\ud800"},
    "surrogate key": lambda: {"\udfff": 1},
    "object beside NaN": lambda: [[math.nan], object()],
    "tuple key": lambda: {("a", 1): 1},
    "object key": lambda: {object(): 1},
    "evil": Evil,
    "evil in a list": lambda: [Evil()],
    "evil in a dict": lambda: {"a": Evil()},
    "exiting": Exiting,
    "exiting in a list": lambda: [Exiting()],
    "model of an object": lambda: Model.model_construct(name=object()),
    "dataclass of an object": lambda: Point(1, object()),
    "module": lambda: asyncio,
    "error": lambda: ValueError("not raised but returned"),
    "range": lambda: range(3),
    "iterator": lambda: iter([1]),
}


@pytest.mark.parametrize("make", SHOWN_OR_REFUSED.values(), ids=SHOWN_OR_REFUSED.keys())
def test_any_value_has_an_answer_without_a_repr(make):
    answer = answer_to(make())
    assert answer.kind in ("ok", "failed")
    assert len(answer.text) < 1_000
    assert " object at 0x" not in answer.text
    answer.text.encode()


@pytest.mark.parametrize("make", [ones, endless])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda g: g,
        lambda g: [g],
        lambda g: {"rows": {"deep": (1, [g])}},
        lambda g: {"a": deque([g])},
        Point,
        Slotted,
        lambda g: [Model(name="a", inner=g)],
        lambda g: ToolResponse(success=True, data={"rows": g}),
        lambda g: OrderedDict(a=[g]),
        lambda g: [b"bytes", g],
    ],
)
def test_a_generator_is_refused_wherever_it_is_and_never_run(make, wrap):
    answer = answer_to(wrap(make()))
    assert answer.kind == "failed"
    assert "generator is not a value" in answer.text


def test_a_coroutine_is_refused():
    async def value(): ...

    coroutine = value()
    assert answer_to({"a": coroutine}).kind == "failed"
    coroutine.close()


def test_circular_and_deep_values_are_refused():
    circular: list[Any] = []
    circular.append({"a": circular, "b": circular})
    deep: Any = []
    for _ in range(5_000):
        deep = [deep]
    model = Model(name="a")
    model.inner = model
    for value in (circular, deep, model, {"a": circular}):
        assert answer_to(value).kind == "failed"


def test_huge_numbers_are_bounded():
    assert len(answer_to(10**5_000).text) == 5_001
    assert len(answer_to([10**4_000] * 100).text) <= 100_100


def test_huge_text_is_cut_soon():
    started = time.process_time()
    answer = answer_to("é\x1b[3m text" * 4_800_000)
    assert len(answer.text) < 101_000
    assert len(answer_to(["x" * 48_000_000]).text) < 101_000
    assert time.process_time() - started < 10


def test_a_large_value_is_written_about_as_soon_as_it_can_be():
    rows = [{"id": i, "tags": ["a"]} for i in range(50_000)]
    started = time.process_time()
    assert answer_to(rows).kind == "ok"
    assert time.process_time() - started < 5


def test_a_response_of_the_author_is_kept():
    response = ToolResponse(success=True, message="found", data={"n": 0})
    answer = answer_to(response)
    assert (answer.kind, json.loads(answer.text)) == ("ok", {"success": True, "message": "found", "data": {"n": 0}})
    assert answer.response is response
    failed = answer_to(ToolResponse(success=False, message="no stock"))
    assert (failed.kind, json.loads(failed.text)) == ("failed", {"success": False, "message": "no stock"})


@pytest.mark.parametrize("data", [0, [], {}, "", False])
def test_falsy_data_of_a_response_is_shown(data):
    assert json.loads(answer_to(ToolResponse(success=True, data=data)).text)["data"] == data


def test_an_envelope_is_its_answer_or_its_error():
    assert answer_to(Envelope("done")).text == "done"
    failed = answer_to(Envelope("so far", error=RunError("max_turns", "16 turns")))
    assert (failed.kind, failed.text) == ("failed", "max_turns: 16 turns")


# -- images and files


def test_png_bytes_are_an_image_part():
    answer = answer_to(PNG)
    assert answer.parts == ({"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"},)
    assert answer.text == f"[image/png, {len(PNG)} bytes]"


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (b"\xff\xd8\xff\xe0 jpeg", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"%PDF-1.7", "application/pdf"),
        (b"plain", "application/octet-stream"),
        (bytearray(PNG), "image/png"),
        (memoryview(PNG), "image/png"),
        (b"", "application/octet-stream"),
        (b"RIFF", "application/octet-stream"),
    ],
)
def test_bytes_are_parts_by_what_they_hold(data, mime):
    (part,) = answer_to(data).parts
    resource = part.get("resource", part)
    assert resource["mimeType"] == mime
    assert base64.b64decode(resource.get("data") or resource.get("blob") or "") == bytes(data)


def test_text_and_images_may_stand_in_one_list():
    answer = answer_to(["a chart:", PNG, {"points": 3}])
    assert [part["type"] for part in answer.parts] == ["image"]
    assert answer.text == f'a chart:\n[image/png, {len(PNG)} bytes]\n{{"points":3}}'


def test_too_many_bytes_are_left_out_with_a_note():
    limits = Limits(max_result_bytes=60)
    assert answer_to(PNG, limits) == ("ok", f"[image/png, {len(PNG)} bytes: too large to show]", (), None)
    ready = {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}
    assert answer_to(ready, limits).parts == ()
    assert "too large to show" in answer_to(ready, limits).text


def test_a_ready_part_passes_as_it_is():
    part = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav", "annotations": {"audience": ["user"]}}
    assert answer_to(part).parts == (part,)
    assert answer_to([part, "words"]).text.endswith("\nwords")


def test_a_ready_part_that_json_cannot_carry_is_a_failure():
    answer = answer_to({"type": "image", "data": "AAAA", "mimeType": "image/png", "extra": [object()]})
    assert answer.kind == "failed"
    assert "result.extra[0]" in answer.text


# -- failures


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (ValueError("no such city"), "failed", "Tool 't' failed: ValueError: no such city"),
        (ValueError(), "failed", "Tool 't' failed: ValueError"),
        (KeyError("k"), "failed", "Tool 't' failed: KeyError: 'k'"),
        (ToolExecutionError("my own words"), "failed", "Tool 't' failed: my own words"),
        (ToolTimeoutError("no answer within 5 seconds"), "timed_out", "Tool 't' timed out: no answer within 5 seconds"),
        (ToolDeniedError("a person said no"), "denied", "Tool 't' was denied: a person said no"),
        (ToolArgumentError("a: wrong"), "invalid_arguments", "a: wrong"),
        (ToolNotFoundError("Tool 't' not found."), "not_found", "Tool 't' not found."),
        (NotSerializableError("data.x", "set"), "failed", "Tool 't' failed: NotSerializableError: data.x: set"),
        (SystemExit(3), "failed", "Tool 't' failed: SystemExit: 3"),
        (TimeoutError(), "failed", "Tool 't' failed: TimeoutError"),
        (
            FileNotFoundError(2, "No such file or directory", "/home/ann/secret/notes.txt"),
            "failed",
            "Tool 't' failed: FileNotFoundError: No such file or directory: notes.txt",
        ),
        (
            RuntimeError("see /usr/lib/python3.11/site-packages/x.py"),
            "failed",
            "Tool 't' failed: RuntimeError: see x.py",
        ),
        (
            RuntimeError("GET https://a.example/b/c/d 404"),
            "failed",
            "Tool 't' failed: RuntimeError: GET https://a.example/b/c/d 404",
        ),
    ],
)
def test_a_failure_is_told_in_one_line(error, kind, text):
    answer = failure("t", error)
    assert (answer.kind, answer.text, answer.parts) == (kind, text, ())


class _Mute(Exception):  # noqa: N818
    def __str__(self):
        raise SystemExit


class _Loud(Exception):  # noqa: N818
    def __str__(self):
        return "\x1b[31m" + "x" * 10_000_000 + "\ud800"


class _Wrong(Exception):  # noqa: N818
    def __str__(self):
        return 5  # noqa: PLE0307


@pytest.mark.parametrize("error", [_Mute(), _Loud(), _Wrong(), BaseExceptionGroup("g", [SystemExit()])])
def test_any_error_has_a_short_text(error):
    answer = failure("t", error)
    assert answer.kind == "failed"
    assert len(answer.text) < 5_000
    assert "\x1b" not in answer.text
    answer.text.encode()


def test_a_traceback_is_never_told():
    error = ValueError("inner")
    error.__cause__ = RuntimeError("hidden")
    error.add_note("also hidden")
    assert failure("t", error).text == "Tool 't' failed: ValueError: inner"


# -- text


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;https://evil.example\x07link\x1b]8;;\x07", "link"),
        ("\x1b]0;title\x1b\\text", "text"),
        ("\x1b]0;never ended", ""),
        ("a\x1b", "a"),
        ("\x1b\x1b[31m[31m", "[31m"),
        ("\x9b31mé", "31mé"),
        ("é\x1b[1m", "é"),
        ("\x1bPdevice\x1b\\ control", "device control"),
        ("hi\U000e0049\U000e0067\U000e006e", "hi"),
        ("a\ud800b", "a?b"),
        ("tabs\tand\r\nlines\n", "tabs\tand\r\nlines\n"),
        ("👩‍👩‍👧 é́ עברית", "👩‍👩‍👧 é́ עברית"),
    ],
)
def test_what_steers_a_terminal_or_hides_is_removed(text, cleaned):
    assert clean(text) == cleaned
    assert answer_to(text).text == cleaned


def test_hidden_characters_in_json_are_removed():
    assert answer_to({"k": "hi\U000e0049"}).text == '{"k":"hi"}'


@pytest.mark.parametrize("introducer", ["\x90", "\x98", "\x9b", "\x9d", "\x9e", "\x9f"])
def test_eight_bit_escapes_are_removed(introducer):
    assert introducer not in clean(f"é{introducer}31m")


def test_long_text_is_cut_in_the_middle_with_a_note():
    text = "a" * 60 + "b" * 1_000 + "c" * 60
    cut = answer_to(text, Limits(max_result_chars=90)).text
    assert cut == "a" * 60 + "\n[… 1,030 characters left out …]\n" + "c" * 30
    assert answer_to("x" * 90, Limits(max_result_chars=90)).text == "x" * 90


def test_a_cut_never_leaves_an_escape_or_half_a_character():
    for size in range(20, 60):
        cut = answer_to("\x1b[31m😀\ud83d" * 100, Limits(max_result_chars=size)).text
        assert "\x1b" not in cut
        cut.encode()


# -- anything at all

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.binary(max_size=5) | st.datetimes() | st.decimals()
)
TEXTS = st.text(st.characters(exclude_categories=()), max_size=10)
HOSTILE = st.builds(Evil) | st.builds(Exiting) | st.builds(object) | st.builds(ones) | st.builds(Secret, TEXTS)
VALUES = st.recursive(
    SCALARS | TEXTS | HOSTILE,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(TEXTS | st.integers() | st.tuples(TEXTS, st.integers()), inner, max_size=4)
        | st.builds(Point, st.integers(), inner)
        | st.builds(lambda value: Model(name="m", inner=value), inner)
        | st.builds(lambda value: ToolResponse(success=True, data=value), inner)
    ),
    max_leaves=10,
)


@given(VALUES, st.integers(1, 200))
def test_an_answer_is_always_made_and_always_encodable(value, most):
    answer = answer_to(value, Limits(max_result_chars=most))
    assert answer.kind in ("ok", "failed")
    assert type(answer.text) is str
    assert len(answer.text) < most + 60
    assert "\x1b" not in answer.text
    answer.text.encode()
    json.dumps(answer.parts, allow_nan=False).encode()


@given(TEXTS, st.integers(1, 50))
def test_cleaning_is_total_and_done_after_once(text, most):
    cleaned = clean(text, Limits(max_result_chars=most))
    cleaned.encode()
    assert clean(cleaned) == cleaned


def test_what_json_cannot_carry_is_told_with_its_path():
    unfit = {"rows": [{"conn": object()}]}
    assert answer_to(unfit).text.endswith("cannot be shown: result.rows[0].conn: object is not JSON data")
    response = ToolResponse(success=True, data=unfit)
    assert answer_to(response).text.endswith("cannot be shown: data.rows[0].conn: object is not JSON data")
