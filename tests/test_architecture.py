"""The habits of the code, held by reading it: layers, imports, sizes, `__all__`."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

SRC = Path(__file__).parents[1] / "src" / "toolcrib"
MAP = (SRC.parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8")

# A room is a file or a folder of src/toolcrib. Each imports only from rows above its own.
LAYERS = (
    "errors limits _xml _addresses",
    "_json _secrets",
    "types",
    "events _http _portal _deadline _callables _folder _marks _options _terminal _words",
    "protocols",
    "stores",
    "schema",
    "arguments",
    "tools",
    "entries",
    "toolset results",
    "formats executors builtin",
    "dispatch search lock",
    "sources",
    "loop engines _modules _pending _remote _steps _verdicts",
    "agent durable",
    "targets",
    "serve _review _transcript",
    "cli __init__",
    "__main__",
)
ROW = {room: number for number, row in enumerate(LAYERS) for room in row.split()}

# Everything else is optional, or slow to import, and is imported where it is first used.
AT_MODULE_LEVEL = {*sys.stdlib_module_names, "__future__", "toolcrib", "jiter", "pydantic_core", "typing_extensions"}
ALSO_IN = {"cli": {"typer", "rich"}}

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60


class Import(NamedTuple):
    module: str
    names: tuple[str, ...]
    line: int
    in_function: bool


def sources() -> list[Path]:
    return sorted(SRC.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def imports_of(tree: ast.AST, *, in_function: bool = False) -> Iterator[Import]:
    """Every import that happens when the code runs; those under TYPE_CHECKING never do."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from imports_of(ast.Module(node.orelse, []), in_function=in_function)
        elif isinstance(node, ast.Import):
            yield from (Import(alias.name, (), node.lineno, in_function) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or "" if node.level == 0 else "toolcrib"
            yield Import(module, tuple(alias.name for alias in node.names), node.lineno, in_function)
        else:
            inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from imports_of(node, in_function=inside)


def rooms_imported(item: Import) -> set[str]:
    """`from toolcrib import formats` names rooms; `from toolcrib import Tool` takes from the package itself."""
    package, _, rest = item.module.partition(".")
    if package != "toolcrib":
        return set()
    if rest:
        return {rest.partition(".")[0]}
    return {name if name in ROW else "__init__" for name in item.names} or {"__init__"}


def layer_breaks(room: str, tree: ast.AST) -> list[str]:
    return [
        f"line {item.line}: {room} imports {other}"
        for item in imports_of(tree)
        for other in rooms_imported(item)
        if other != room and ROW.get(other, len(LAYERS)) >= ROW[room]
    ]


def hidden_imports(tree: ast.AST) -> list[str]:
    hidden = (item for item in imports_of(tree) if item.in_function and rooms_imported(item))
    return [f"line {item.line}: {item.module}" for item in hidden]


def named_modules(tree: ast.AST) -> list[str]:
    """Own modules named in strings: what an import by name, hidden from the rule above, would need."""
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return [f"line {node.lineno}: {node.value}" for node in texts if is_own_module(node.value)]


def is_own_module(text: str) -> bool:
    package, *rest = text.split(".")
    if package != "toolcrib" or not rest or not all(part.isidentifier() for part in rest):
        return False
    path = SRC.joinpath(*rest)
    return path.is_dir() or path.with_suffix(".py").is_file()


def costly_imports(room: str, tree: ast.AST) -> list[str]:
    allowed = AT_MODULE_LEVEL | ALSO_IN.get(room, set())
    return [
        f"line {item.line}: {item.module}"
        for item in imports_of(tree)
        if not item.in_function and item.module.partition(".")[0] not in allowed and not is_lazy_shell(item)
    ]


def is_lazy_shell(item: Import) -> bool:
    # `import pydantic` loads next to nothing until an attribute is asked for.
    return item.module == "pydantic" and not item.names


def long_functions(tree: ast.AST) -> list[str]:
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    sizes = ((node, (node.end_lineno or node.lineno) - node.lineno + 1) for node in functions)
    return [f"line {node.lineno}: {node.name} has {size} lines" for node, size in sizes if size > MAX_FUNCTION_LINES]


def exported(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    return []


def defined(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign) and not is_type_variable(node.value):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return {name for name in names if not name.startswith("_")}


def is_type_variable(value: ast.expr) -> bool:
    # A module that is generic in something needs it at its top level; nobody imports it.
    return isinstance(value, ast.Call) and ast.unparse(value.func) in {"TypeVar", "ParamSpec", "TypeVarTuple"}


def in_order(names: list[str]) -> list[str]:
    """CONSTANTS, then Classes, then functions, as the linter sorts them."""
    return sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))


@pytest.fixture(params=sources(), ids=lambda path: str(path.relative_to(SRC)))
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_every_room_has_a_place_in_the_layers(path):
    assert room_of(path) in ROW


def test_a_room_imports_only_from_layers_before_its_own(path, tree):
    assert layer_breaks(room_of(path), tree) == []


def test_no_function_imports_our_own_package(tree):
    assert hidden_imports(tree) == []


def test_only_the_package_itself_names_modules_to_import_later(path, tree):
    assert path == SRC / "__init__.py" or named_modules(tree) == []


def test_optional_and_slow_packages_are_imported_where_they_are_used(path, tree):
    assert costly_imports(room_of(path), tree) == []


def test_files_stay_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) < MAX_FILE_LINES


def test_functions_stay_short(tree):
    assert long_functions(tree) == []


def test_what_a_module_exports_is_in_order(tree):
    assert exported(tree) == in_order(exported(tree))


def test_what_a_module_defines_without_an_underscore_is_exported(tree):
    assert defined(tree) <= set(exported(tree))


def test_the_map_names_every_room_and_no_other():
    drawing = re.search(r"src/toolcrib/\n(.*?)```", MAP, re.DOTALL)
    rooms = {path.name for path in SRC.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert set(re.findall(r"(?<=\s)(\w+(?:\.py|(?=/)))", drawing[1])) == rooms


def test_the_map_shows_the_layers_in_their_order():
    drawn = re.search(r"## Layers.*?```text\n(.*?)```", MAP, re.DOTALL)
    there = {room_of(path) for path in sources()}
    rows = [[room for room in row.split() if room in there] for row in LAYERS]
    assert [row.split() for row in drawn[1].splitlines()] == [row for row in rows if row]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("from toolcrib.agent import Agent", ["line 1: tools imports agent"]),
        ("import toolcrib.toolset", ["line 1: tools imports toolset"]),
        ("from toolcrib import dispatch", ["line 1: tools imports dispatch"]),
        ("from toolcrib import Agent", ["line 1: tools imports __init__"]),
        ("from . import dispatch", ["line 1: tools imports dispatch"]),
        ("from toolcrib.types import ToolCall", []),
        ("if TYPE_CHECKING:\n    from toolcrib.agent import Agent", []),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    import toolcrib.agent", ["line 4: tools imports agent"]),
    ],
)
def test_an_import_from_a_later_layer_is_found(code, found):
    assert layer_breaks("tools", ast.parse(code)) == found


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("def f():\n    from toolcrib.types import ToolCall", ["line 2: toolcrib.types"]),
        ("class A:\n    def f(self):\n        import toolcrib", ["line 3: toolcrib"]),
        ("def f():\n    if TYPE_CHECKING:\n        from toolcrib.types import ToolCall", []),
        ("def f():\n    import openai", []),
    ],
)
def test_an_own_import_inside_a_function_is_found(code, found):
    assert hidden_imports(ast.parse(code)) == found


def test_a_module_named_in_a_string_is_found():
    code = "load('toolcrib.types')\nload('toolcrib.no_such_room')\nlog('toolcrib')"
    assert named_modules(ast.parse(code)) == ["line 1: toolcrib.types"]


@pytest.mark.parametrize(
    ("room", "code", "found"),
    [
        ("tools", "import anyio", ["line 1: anyio"]),
        ("tools", "from pydantic import BaseModel", ["line 1: pydantic"]),
        ("tools", "import typer", ["line 1: typer"]),
        ("cli", "import typer", []),
        ("tools", "import pydantic", []),
        ("tools", "def f():\n    import anyio", []),
    ],
)
def test_a_costly_import_at_module_level_is_found(room, code, found):
    assert costly_imports(room, ast.parse(code)) == found


def test_a_long_function_is_found():
    code = "def f():\n" + "    pass\n" * MAX_FUNCTION_LINES
    assert long_functions(ast.parse(code)) == [f"line 1: f has {MAX_FUNCTION_LINES + 1} lines"]


def test_a_public_definition_is_seen_however_it_is_made():
    code = "A = 1\nb: int = 2\nclass C: ...\ndef d(): ...\nasync def e(): ...\n_f = 3\nimport g\nT = TypeVar('T')"
    assert defined(ast.parse(code)) == {"A", "b", "C", "d", "e"}
