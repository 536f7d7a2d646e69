"""Everything shown as code in the documents and docstrings runs and says what it is said to say.

The python blocks of one file share a namespace, from top to bottom, and may await at the top level. Lines that begin
with `# ->` after a `print` are the block's whole output. Blocks marked as `console` run too: lines that begin
with `$ toolcrib` are run, the others must occur in what they print, in order, where `...` stands for anything.
A comment right before a block changes this: `<!-- not run: why -->`, `<!-- alone -->` (an empty namespace), or
`<!-- the model calls NAME {ARGUMENTS} and says WORDS -->`: what the stand-in for a provider's server answers.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import doctest
import importlib
import inspect
import io
import pkgutil
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from model_server import ModelServer

import toolcrib

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(
    r"(?:^[ ]*<!-- (?P<mark>[^\n]*?) -->\n\s*)?"
    r"^(?P<indent>[ ]*)```(?P<language>\w*)[^\n]*\n"
    r"(?P<code>.*?)^(?P=indent)```[ ]*$",
    re.DOTALL | re.MULTILINE,
)
OUTPUT = "# ->"
SCRIPT = re.compile(r"the model calls (?P<name>\S+) (?P<arguments>\{.*\}) and says (?P<words>.*)")
AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


class Block(NamedTuple):
    language: str
    code: str
    line: int
    mark: str


def blocks_of(text: str) -> Iterator[Block]:
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("code")) + 1
        # Fences in lists and docstrings are indented, and so is what they hold; blank lines keep the count of lines.
        code = re.sub(rf"^{found['indent']}", "", found["code"], flags=re.MULTILINE)
        yield Block(found["language"], code, line, found["mark"] or "")


def run_python(block: Block, namespace: dict[str, Any], file: str) -> None:
    # The blank lines before it give errors, and whoever reads the source of a function, the document's own lines.
    source = "\n" * (block.line - 1) + block.code
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = compile(source, file, "exec", flags=AWAIT, dont_inherit=True)
        value = eval(code, namespace)  # noqa: S307  the documents are ours
        if inspect.isawaitable(value):
            asyncio.run(value)
    shown = (line.removeprefix(OUTPUT) for line in block.code.splitlines() if line.startswith(OUTPUT))
    expected = [line.removeprefix(" ").rstrip() for line in shown]
    if expected:
        assert [line.rstrip() for line in printed.getvalue().splitlines()] == expected, f"{file}:{block.line}"


def run_console(block: Block, file: str) -> None:
    for command, *expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.code, re.MULTILINE):
        words = shlex.split(command)
        if words[0] != "toolcrib":
            continue
        done = subprocess.run(
            [sys.executable, "-m", *words],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        parts = (part.strip() for part in re.split(r"\n|\.\.\.", expected[0]))
        wanted = ".*".join(re.escape(part) for part in parts if part)
        assert re.search(wanted, done.stdout, re.DOTALL), f"{file}:{block.line}: {command}\n{done.stdout}"


def is_left_out(block: Block) -> bool:
    if block.mark.startswith("not run"):
        _, _, reason = block.mark.partition(": ")
        assert len(reason.split()) > 1, f"line {block.line} is not run and does not say why"
        return True
    assert block.mark in {"", "alone"} or SCRIPT.fullmatch(block.mark), (
        f"line {block.line}: what is meant by {block.mark!r}?"
    )
    return False


def module_for(name: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A real module's namespace: annotations are resolved through `sys.modules`."""
    module = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    return vars(module)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where examples run: an empty folder with the project's examples in it, and no keys in the environment."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    return tmp_path


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """What `OpenAI()` and `LLMEngine("openai:...")` reach: a server that answers as a document says."""
    with ModelServer() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        yield server


def instruct(server: ModelServer, mark: str) -> None:
    if script := SCRIPT.fullmatch(mark):
        server.script.clear()
        server.ask(("call_1", script["name"], script["arguments"]))
        server.say(script["words"])


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_block_of_a_document_runs(document, server, monkeypatch):
    namespace = module_for("a_document", monkeypatch)
    for block in blocks_of(document.read_text(encoding="utf-8")):
        if block.language not in {"python", "console"} or is_left_out(block):
            continue
        if block.mark == "alone":
            namespace = module_for("a_document", monkeypatch)
        instruct(server, block.mark)
        if block.language == "python":
            run_python(block, namespace, str(document))
        else:
            run_console(block, str(document))


def modules() -> list[str]:
    found = pkgutil.walk_packages(toolcrib.__path__, "toolcrib.")
    return ["toolcrib", *(module.name for module in found if not module.name.endswith("__main__"))]


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("name", modules())
def test_every_example_in_a_docstring_runs(name):
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for example in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        report = io.StringIO()
        runner.run(example, out=report.write)
        assert runner.failures == 0, report.getvalue()
    for docstring in docstrings_of(module):
        namespace = dict(vars(module))
        for block in blocks_of(docstring):
            if block.language == "python" and not is_left_out(block):
                run_python(block, namespace, name)


def docstrings_of(module: ModuleType) -> Iterator[str]:
    tree = ast.parse(inspect.getsource(module))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and (docstring := ast.get_docstring(node)):
            yield docstring


def test_an_example_that_prints_something_else_is_noticed():
    (block,) = blocks_of("```python\nprint(1 + 1)\n# -> 3\n```\n")
    with pytest.raises(AssertionError):
        run_python(block, {}, "here")


def test_an_example_that_raises_is_noticed_with_the_line_of_the_document():
    (block,) = blocks_of("# Title\n\n```python\nx = 1\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as raised:
        run_python(block, {}, "here")
    assert raised.traceback[-1].lineno + 1 == 5


def test_an_example_may_await():
    (block,) = blocks_of("```python\nimport asyncio\nprint(await asyncio.sleep(0, 'slept'))\n# -> slept\n```\n")
    run_python(block, {}, "here")


@pytest.mark.usefixtures("place")
def test_a_command_that_prints_something_else_is_noticed():
    (block,) = blocks_of("```console\n$ toolcrib --help\nno such line\n```\n")
    with pytest.raises(AssertionError, match="toolcrib --help"):
        run_console(block, "here")


def test_a_block_is_left_out_only_with_a_reason():
    (block,) = blocks_of("<!-- not run -->\n```python\n1 / 0\n```\n")
    with pytest.raises(AssertionError, match="does not say why"):
        is_left_out(block)


def test_an_indented_block_is_found_and_unindented():
    (block,) = blocks_of("- point\n\n  ```python\n  if True:\n      x = 1\n  ```\n")
    assert block.code == "if True:\n    x = 1\n"
