"""The text of documents: JSON, and YAML by the rules of 1.2."""

from __future__ import annotations

import datetime as dt

import pytest

from toolcrib.sources._openapi_text import parsed, plain


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ('{"a": [1, 2.5, true, null, "x"]}', {"a": [1, 2.5, True, None, "x"]}),
        ('\ufeff{"a": 1}', {"a": 1}),
        ("{a: 1, b: [x]}", {"a": 1, "b": ["x"]}),
        ("200: ok\n404: no", {"200": "ok", "404": "no"}),
        (
            "0x1F: a\n010: b\n1e3: c\ntrue: d\nnull: e\non: f",
            dict(zip(["0x1F", "010", "1e3", "true", "null", "on"], "abcdef", strict=True)),
        ),
        ("[yes, no, on, off, y, n, Yes, NO]", ["yes", "no", "on", "off", "y", "n", "Yes", "NO"]),
        ("[true, True, FALSE, ~, null, '']", [True, True, False, None, None, ""]),
        ("a:", {"a": None}),
        ("[2020-01-01, 2020-01-01T00:00:00Z, 12:30:45]", ["2020-01-01", "2020-01-01T00:00:00Z", "12:30:45"]),
        ("[1, -1, +1, 007, 1_000, 0b1, 0o7]", [1, -1, 1, 7, "1_000", "0b1", "0o7"]),
        ("[1.0, .5, -2e3, 1., 1e999, .inf, .nan, 3.0.1]", [1.0, 0.5, -2000.0, 1.0, "1e999", ".inf", ".nan", "3.0.1"]),
        ("['1', \"2\", !!str 3, !!int '4']", ["1", "2", "3", "4"]),
        ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
        (
            "a: &x {b: 1, c: 2}\nd: {<<: *x, b: 3}\ne: {b: 4, <<: [*x, {f: 5}]}",
            {"a": {"b": 1, "c": 2}, "d": {"b": 3, "c": 2}, "e": {"b": 4, "c": 2, "f": 5}},
        ),
        ("'<<': 1", {"<<": 1}),
        ("a: |\n  x\n  y\nb: >\n  x\n  y\n", {"a": "x\ny\n", "b": "x y\n"}),
        ("a: 1\na: 2", {"a": 2}),
        ("", None),
        ("word", "word"),
    ],
)
def test_a_text_is_read_as_what_it_says(text, data):
    found = parsed(text.encode(), "x")
    assert found == data
    assert repr(found) == repr(data)


def test_data_of_another_reader_becomes_plain():
    given = {200: (1, 2), True: dt.date(2020, 1, 1), "a": {None: 1.5}}
    assert plain(given, "x") == {"200": [1, 2], "true": "2020-01-01", "a": {"None": 1.5}}
