"""Tools as Python code, and what changes in a function after its tool was pinned."""

from __future__ import annotations

import importlib.util
import inspect
import json
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Tool
from toolcrib.schema.pinned import difference, drifted

RUFF = [sys.executable, "-m", "ruff"]
AWKWARD = [
    "",
    "it's",
    'say "x"',
    "it's \"both\" and 'more'",
    "back\\slash \\' \\\" \\n",
    "line\nline\r\n\tend\n",
    "\x00\x1b\x7f\u2028\ue000\U0001f600 ünï",
    "word " * 60,
    "no-blank" * 40,
    'quoted "words" ' * 20,
    "A line.\n\nAnother one, which is a good deal longer than the first and does not fit on it.\n" * 2,
]


def find(sku: str, count: int = 1):
    """Find an article."""
    return f"{count} of {sku}"


def rebuilt(code: str, **names: object) -> Tool:
    namespace = dict(names)
    exec(compile(code, "<pinned>", "exec"), namespace)
    (tool,) = (value for value in namespace.values() if isinstance(value, Tool))
    return tool


def ruff(*arguments: str, code: str) -> None:
    done = subprocess.run([*RUFF, *arguments, "-"], input=code, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr + code


def test_pinned_code_makes_the_same_tool_without_a_model():
    said = {"description": "Find it.", "parameters": {"properties": {"sku": {"description": "The number."}}}}
    tool = Tool(
        find,
        mode="hybrid",
        schema_llm=lambda _: {
            **said,
            "parameters": {"properties": {name: {"description": "d"} for name in ("sku", "count")}},
        },
        effect="read",
        timeout=2.5,
        strict=True,
    )
    again = rebuilt(tool.pin())
    assert again.definition() == tool.definition()
    assert json.dumps(again.definition()) == json.dumps(tool.definition())
    assert (again.func, again.effect, again.timeout, again.mode) == (find, "read", 2.5, "signature")
    assert again.call({"sku": "A"}) == "1 of A"
    assert rebuilt(again.pin()).definition() == tool.definition()


SCHEMA = {
    "type": "object",
    "properties": {
        f"p{number}": {"type": "string", "description": text, "enum": [text, None, 1, 2.5e300, -1e-7, True]}
        for number, text in enumerate(AWKWARD)
    }
    | {text: {"default": {"a": [], "b": {}, "c": [[]]}} for text in AWKWARD[1:6]},
    "required": ["p1"],
}


def test_pinned_code_passes_the_linter_and_the_formatter_whatever_the_texts(tmp_path):
    codes = [Tool.from_schema("a.b-c", text, SCHEMA, find, strict=text == "").pin() for text in AWKWARD]
    for number, code in enumerate(codes):
        Path(tmp_path, f"pinned_{number}.py").write_text(code, encoding="utf-8")
        assert rebuilt(code).input_schema == Tool.from_schema("x", "", SCHEMA, strict=number == 0).input_schema
        assert rebuilt(code).description == AWKWARD[number]
    for options in (
        ["check", "--isolated"],
        ["check", "--isolated", "--line-length=120", "--select=ALL", "--ignore=D100,INP001,CPY001,E501"],
        ["format", "--check", "--isolated"],
        ["format", "--check", "--isolated", "--line-length=120"],
    ):
        done = subprocess.run([*RUFF, *options, str(tmp_path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    ),
    st.text(min_size=1).filter(str.strip),
    st.text(),
)
def test_any_literal_comes_back_exactly(value, name, description):
    schema = {"type": "object", "properties": {"a": {"default": value}}}
    again = rebuilt(Tool.from_schema(name, description, schema).pin())
    assert json.dumps([again.name, again.description, again.input_schema]) == json.dumps([name, description, schema])


def test_functions_that_cannot_be_imported_are_named_all_the_same():
    def local(x: int): ...

    assert "import local" not in Tool(local).pin()
    assert rebuilt(Tool(local).pin(), local=local).func is local
    code = Tool(lambda x=1: x, name="twice").pin()
    assert "\n    twice,\n" in code
    assert rebuilt(code, twice=find).func is find


def test_a_function_of_a_file_is_imported_by_the_files_own_name(tmp_path, monkeypatch):
    assert Tool(find).pin().startswith(f"from toolcrib import Tool\n\n# isort: split\nfrom {__name__} import find\n")
    path = tmp_path / "shop.py"
    path.write_text("def sell(x: int): ...\n")
    spec = importlib.util.spec_from_file_location("shop_0123", path)
    shop = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "shop_0123", shop)
    spec.loader.exec_module(shop)
    assert "\nfrom shop import sell\n" in Tool(shop.sell).pin()


def test_a_declared_tool_is_pinned_without_a_function():
    tool = Tool(name="far", description="Elsewhere.")
    assert rebuilt(tool.pin()).definition() == tool.definition()


# -- drift


def drift(pinned: dict, func) -> str:
    own = Tool(func).input_schema
    takes_any = any(p.kind is p.VAR_KEYWORD for p in inspect.signature(func).parameters.values())
    return difference(pinned, drifted(pinned, own, takes_any=takes_any), ("pinned", "now"))


def f_new(sku: str, count: int = 1, *, loud: bool = False): ...
def f_needs(sku: str, shop: str, count: int = 1): ...
def f_gone(sku: str): ...
def f_type(sku: int, count: int = 1): ...
def f_default(sku: str, count: int = 2): ...
def f_required(sku: str, count: int): ...
def f_renamed(article: str, count: int = 1): ...
def f_same(sku: str, count: int = 1, *_): ...


PINNED = Tool(find).input_schema


@pytest.mark.filterwarnings("ignore:f_same takes")
@pytest.mark.parametrize(
    ("func", "changed"),
    [
        (find, []),
        (f_same, []),
        (f_new, ['+    "loud": {']),
        (f_needs, ['+    "shop": {', '+    "shop"']),
        (f_gone, ['-    "count": {']),
        (f_type, ['-      "type": "string"', '+      "type": "integer"']),
        (f_default, ['-      "default": 1', '+      "default": 2']),
        (f_required, ['+    "count"']),
        (f_renamed, ['-    "sku": {', '+    "article": {']),
    ],
)
def test_a_function_that_has_changed_is_told_as_a_diff(func, changed):
    text = drift(PINNED, func)
    assert [line for line in changed if line not in text] == []
    assert bool(text) == bool(changed)


@pytest.mark.parametrize(
    "edited",
    [
        {"description": "In other words."},
        {"pattern": "^[A-Z]+$", "maxLength": 9},
        {"enum": ["A", "B"], "title": "SKU", "examples": ["A"]},
    ],
)
def test_a_person_may_narrow_and_describe_what_is_pinned(edited):
    properties = {**PINNED["properties"], "sku": {"type": "string", **edited}}
    schema = {**PINNED, "properties": properties, "required": ["sku", "count"], "description": "Mine."}
    assert drift(schema, find) == ""


def test_types_of_a_model_are_no_drift_where_the_function_has_no_hints():
    def loose(sku, count=None): ...

    said = {"sku": {"type": "string"}, "count": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}}
    with pytest.warns(UserWarning, match="sku"):
        assert drift({"type": "object", "properties": said, "required": ["sku"]}, loose) == ""


def test_a_function_of_any_keywords_has_no_drift_in_them():
    def anything(sku: str, **more): ...

    schema = {"type": "object", "properties": {"sku": {"type": "string"}, "x": {}}, "required": ["sku", "x"]}
    with pytest.warns(UserWarning, match=r"\*\*more"):
        assert drift(schema, anything) == ""


def test_nested_types_are_compared_with_their_definitions():
    def before(day: date, also: list[int]): ...
    def after(day: date, also: list[str]): ...

    pinned = Tool(before).input_schema
    assert drift(pinned, before) == ""
    assert '"type": "string"' in drift(pinned, after)
