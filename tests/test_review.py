"""Schemas under review on the command line: drafted by a model, compared, explained, pinned, checked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from toolcrib import cli

ROOT = Path(__file__).parents[1]
CLERK = f"{ROOT}/examples/legacy.py:clerk"
LEGACY = f"{ROOT}/examples/legacy.py"
KIT = """
from toolcrib import Tool, tool
def add(a: int, b=1):
    "Add."
    return a + b
@tool(effect="destructive")
def wipe(disk: str):
    "Wipe it."
@tool
def marked(x: int):
    "Marked."
given = Tool.from_schema("given", "Given.", {"type": "object", "properties": {}}, lambda: 1)

class Model:
    model = "kit"
    asked = 0
    async def acomplete(self, messages, tools):
        from toolcrib import EngineError, Reply
        Model.asked += 1
        if "fails" in messages[-1].content or DOWN:
            raise EngineError("the model is \\x1b[31mdown")
        return Reply('{"description": "By a model.", "parameters": {"properties": {}}}')
DOWN = False
model = Model()
def fails(y: int = 1):
    "Fails."
"""


@pytest.fixture
def kit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, modules = list(sys.path), set(sys.modules)
    (tmp_path / "kit.py").write_text(KIT, encoding="utf-8")
    yield tmp_path / "kit.py"
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def run(*words: object):
    done = CliRunner().invoke(cli.app(), [str(word) for word in words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.usefixtures("kit")
def test_a_diff_shows_what_the_model_changes_and_a_store_makes_it_go_on():
    words = ("schema", LEGACY, "--mode", "llm", "--model", CLERK, "--diff", "--store", "kept.db")
    status, out, err = run(*words)
    assert status == 0
    assert '-  "description": "Return the price of an article.",' in out
    assert '+      "sku": {' in out
    assert err.count("described") == 2
    status, again, err = run(*words)
    assert (status, again) == (0, out)
    assert [line[:4] for line in err.splitlines()] == ["1/2 ", "2/2 "]
    # They are read side by side, and whichever is there first is told first.
    assert {line[4:] for line in err.splitlines()} == {"reserve: from the store", "stock_level: from the store"}


@pytest.mark.filterwarnings("ignore::toolcrib.ToolcribWarning")
def test_only_functions_whose_words_a_model_may_write_are_shown_to_it(kit):
    status, out, err = run("schema", kit, "--mode", "llm", "--model", f"{kit}:model")
    described = {tool["name"]: tool["description"] for tool in json.loads(out)}
    assert described == {
        "add": "By a model.",
        "wipe": "Wipe it.",
        "marked": "By a model.",
        "given": "Given.",
        "fails": "Fails.",
    }
    assert status == 1
    assert "fails: not described" in err
    assert "\x1b" not in err


@pytest.mark.filterwarnings("ignore::toolcrib.ToolcribWarning")
def test_what_was_done_before_a_failure_is_not_asked_for_again(kit):
    words = ("schema", kit, "--mode", "hybrid", "--model", f"{kit}:model", "--store", "kept.db")
    assert run(*words)[0] == 1
    model = next(module for name, module in sys.modules.items() if name.startswith("kit_")).Model
    before = model.asked
    _, _, err = run(*words)
    assert model.asked == before + 1
    assert err.count("from the store") == 2


def test_schemas_without_a_model_are_those_of_the_signatures():
    status, out, err = run("schema", f"{ROOT}/examples/quickstart.py")
    assert (status, err) == (0, "")
    assert [tool["name"] for tool in json.loads(out)] == ["get_weather", "convert_currency", "add", "book_table"]
    assert run("schema", f"{ROOT}/examples/quickstart.py", "--diff") == (0, "", "")


def test_explanations_are_a_table_of_parts():
    status, out, _ = run("show", f"{ROOT}/examples/quickstart.py", "add", "--explain")
    assert status == 0
    assert out.splitlines()[:2] == ["description\tdocstring\tAdd two numbers.\t", "a.type\tsignature\tfloat\t"]


@pytest.mark.usefixtures("kit")
def test_a_pinned_tool_runs_from_its_file_and_is_checked_against_its_function(tmp_path):
    old = tmp_path / "old.py"
    old.write_text(Path(LEGACY).read_text(encoding="utf-8"), encoding="utf-8")
    status, code, _ = run("pin", old, "stock_level", "--mode", "llm", "--model", CLERK)
    assert status == 0
    (tmp_path / "pinned.py").write_text(code, encoding="utf-8")

    def toolcrib(*words: str) -> tuple[int, str]:
        done = subprocess.run([sys.executable, "-m", "toolcrib", *words], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    assert toolcrib("call", "pinned.py", "stock_level", "sku=AB-12") == (0, "7\n")
    assert toolcrib("call", "pinned.py", "stock_level", "sku=AB-12", 'min_level="much"')[0] == 2
    assert toolcrib("pin", "pinned.py", "--check") == (0, "1 of 1 pinned tools fit their functions\n")
    assert toolcrib("pin", "pinned.py", "stock_level")[1] == code
    old.write_text(old.read_text(encoding="utf-8").replace("min_level=None", "min_level=0, day=None"), encoding="utf-8")
    status, out = toolcrib("pin", "pinned.py", "--check")
    assert status == 1
    assert [
        line for line in ('+    "day": {', '-      "default": null,', '+      "default": 0,') if line not in out
    ] == []
    assert "0 of 1 pinned tools fit" in out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("schema", LEGACY, "--mode", "auto"), "'auto' is not one of"),
        (("schema", LEGACY, "--mode", "llm", "--model", f"{LEGACY}:STOCK"), "is no engine"),
        (("pin", f"{ROOT}/examples/quickstart.py"), "say which tool"),
        (("pin", f"{ROOT}/examples/quickstart.py", "ad"), "Did you mean 'add'?"),
    ],
)
def test_a_command_that_makes_no_sense_is_told_so(words, problem):
    status, _, err = run(*words)
    assert status == 2
    assert problem in " ".join(err.replace("│", " ").split())


def test_nothing_pinned_is_an_error_and_not_a_pass():
    done = subprocess.run(
        [sys.executable, "-m", "toolcrib", "pin", f"{ROOT}/examples/quickstart.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "no pinned tool" in done.stderr) == (2, True)
