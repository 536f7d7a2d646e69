from __future__ import annotations

import sys
import textwrap
import uuid
from pathlib import Path

import pytest

from toolcrib import targets
from toolcrib.errors import TargetError, ToolcribWarning
from toolcrib.targets import resolve, resolve_all


@pytest.fixture(autouse=True)
def _imports_are_forgotten():
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if "site-packages" not in repr(sys.modules[name]) and name.partition(".")[0] not in sys.stdlib_module_names:
            del sys.modules[name]


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Write a Python file into the current directory and return its path."""
    monkeypatch.chdir(tmp_path)

    def write(code: str, name: str = "kit.py") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(code), encoding="utf-8")
        return path

    return write


# -- gateways


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("http://ada:pw@127.0.0.1:1", r"^http://127\.0\.0\.1:1: ExternalToolError: .*could not be reached"),
        ("https://gateway.example/?x=1", "base_url must be"),
        ("http://", "base_url must be"),
    ],
)
def test_a_url_where_no_gateway_is_is_told_without_its_password(target, said):
    with pytest.raises(TargetError, match=said) as raised:
        resolve(target)
    assert "pw" not in str(raised.value)


# -- what is taken from a file


def test_a_file_gives_its_public_functions_in_their_order(written):
    written("""
        async def weather(city: str) -> str:
            "Get the weather."
            return f"rain in {city}"

        def add(a: int, b: int = 1) -> int:
            "Add."
            return a + b
        """)
    tools = resolve("kit.py")
    assert tools.names == ("weather", "add")
    assert tools["add"].call('{"a": 2}') == 3
    assert tools["add"].description == "Add."


def test_imported_names_underscore_names_and_classes_are_not_taken(written):
    written("def helped(a: int) -> int: return a", "helper.py")
    written("""
        from os.path import join
        from helper import helped
        from dataclasses import dataclass

        @dataclass
        class Point:
            x: int

        def _private(a: int): ...

        def public(a: int): ...
        """)
    assert resolve("kit.py").names == ("public",)


def test_tools_agents_skills_and_providers_of_a_file_are_taken(written):
    written("""
        from toolcrib.agent import Agent
        from toolcrib.engines.scripted import ScriptedEngine
        from toolcrib.sources.skill import BaseSkill
        from toolcrib.tools import Tool, tool, tool_from_function
        from toolcrib.toolset import Toolset

        def _one(a: int): ...

        class Notes(BaseSkill):
            def add_note(self, text: str) -> str: return text
            def get_tools(self): return [tool_from_function(self.add_note)]

        @tool(name="kit.marked")
        def marked(a: int): ...

        single = Tool(_one, name="single")
        notes = Notes()
        helper = Agent(ScriptedEngine([]), name="helper")
        more = Toolset([Tool(_one, name="more_of_it")])
        """)
    assert resolve("kit.py").names == ("kit.marked", "single", "add_note", "helper", "more_of_it")


def test_a_tool_imported_from_elsewhere_is_not_taken(written):
    written("from toolcrib.tools import Tool\ndef f(a: int): ...\nshared = Tool(f, name='shared')", "other.py")
    written("from other import shared\nif shared:\n    def own(a: int): ...")
    assert resolve("kit.py").names == ("own",)


def test_an_object_that_answers_to_any_name_is_not_mistaken_for_tools(written):
    written("""
        class Anything:
            def __getattr__(self, name): return lambda *args: []

        client = Anything()
        def own(a: int): ...
        """)
    assert resolve("kit.py").names == ("own",)


def test_a_list_named_tools_decides(written):
    written("""
        def one(a: int): ...
        def two(a: int): ...
        def _three(a: int): ...
        TOOLS = [two, [_three]]
        """)
    assert resolve("kit.py").names == ("two", "_three")


def test_the_names_a_module_exports_decide(written):
    written("def helped(a: int): ...", "helper.py")
    written("""
        from helper import helped
        class Shape: ...
        def one(a: int): ...
        def two(a: int): ...
        LIMIT = 3
        __all__ = ["LIMIT", "Shape", "helped", "two"]
        """)
    assert resolve("kit.py").names == ("helped", "two")


def test_the_main_block_of_a_file_does_not_run(written):
    written("def f(a: int): ...\nif __name__ == '__main__':\n    raise SystemExit('ran')")
    assert resolve("kit.py").names == ("f",)


def test_postponed_annotations_and_dataclasses_of_the_file_work(written):
    written("""
        from __future__ import annotations
        from dataclasses import dataclass

        def move(point: Point, by: float = 1.0) -> float:
            return point.x + by

        @dataclass
        class Point:
            x: float
        """)
    assert resolve("kit.py")["move"].call('{"point": {"x": 2}}') == 3.0


def test_a_file_may_import_its_neighbours(written, tmp_path, monkeypatch):
    written("FACTOR = 3", "deep/neighbour.py")
    written("from neighbour import FACTOR\ndef triple(a: int) -> int: return a * FACTOR", "deep/kit.py")
    monkeypatch.chdir(Path(__file__).parent)
    assert resolve(str(tmp_path / "deep" / "kit.py"))["triple"].call({"a": 2}) == 6


def test_a_file_is_loaded_once(written):
    written("loaded = []\ndef count(a: int) -> int:\n    loaded.append(a)\n    return len(loaded)")
    first, second = resolve("kit.py"), resolve("./kit.py:count")
    assert [first["count"].call({"a": 1}), second["count"].call({"a": 1})] == [1, 2]


# -- modules and attributes


def test_a_module_of_the_current_directory_can_be_named(written):
    written("", "pack_a/__init__.py")
    written("def f(a: int): ...", "pack_a/kit.py")
    assert resolve("pack_a.kit").names == ("f",)


def test_an_attribute_may_be_any_entry_of_a_toolset(written):
    written("""
        class Box:
            pass

        def one(a: int): ...
        def two(a: int): ...
        box = Box()
        box.several = [one, [two]]
        """)
    assert resolve("kit:one").names == ("one",)
    assert resolve("kit.py:box.several").names == ("one", "two")


def test_a_submodule_may_stand_as_an_attribute(written):
    written("from pack_b import kit", "pack_b/__init__.py")
    written("def f(a: int): ...", "pack_b/kit.py")
    assert resolve("pack_b:kit").names == ("f",)


def test_several_targets_make_one_toolset_in_their_order(written):
    written("def one(a: int): ...", "first.py")
    written("def two(a: int): ...", "second.py")
    assert resolve_all(["second.py", "first"]).names == ("two", "one")
    assert len(resolve_all([])) == 0


def test_a_function_that_two_targets_name_is_no_collision(written):
    written("def one(a: int): ...")
    assert resolve_all(["kit.py", "kit.py:one"]).names == ("one",)


def test_a_kind_of_target_can_be_added(monkeypatch):
    def load(target: str) -> list[object]:
        def greet() -> str:
            return target

        return [greet]

    kind = targets.TargetKind("hello:name", lambda target: target.startswith("hello:"), load)
    monkeypatch.setattr(targets, "KINDS", [kind, *targets.KINDS])
    assert resolve("hello:world")["greet"].call() == "hello:world"


# -- what cannot be a tool


@pytest.mark.parametrize(
    "bad",
    ["def bad(*values: int): ...", "def bad(**options: int): ...", "def bad(a, /): ...", "def bad(a: Nowhere): ..."],
)
def test_a_function_that_cannot_be_a_tool_is_left_out_with_a_warning_that_names_it(written, bad):
    written(f"from __future__ import annotations\n{bad}\ndef good(a: int): ...")
    with pytest.warns(ToolcribWarning, match=r"kit\.py: bad is left out: "):
        assert resolve("kit.py").names == ("good",)


def test_a_function_without_annotations_is_taken_with_a_warning(written):
    written("def add(a, b=1): return a + b")
    with pytest.warns(ToolcribWarning, match="'a' of add"):
        assert resolve("kit.py").names == ("add",)


def test_a_function_named_explicitly_may_take_any_options(written):
    written("def f(a: int, **options: int): return a")
    with pytest.warns(ToolcribWarning, match=r"\*\*options"):
        assert resolve("kit:f")["f"].call({"a": 1}) == 1


def test_when_nothing_can_be_a_tool_the_reasons_are_the_error(written):
    written("def bad(*values: int): ...")
    with pytest.raises(TargetError, match=r"kit\.py holds no tools: bad is left out: it takes \*values"):
        resolve("kit.py")


def test_an_entry_that_is_no_tool_is_an_error(written):
    written("TOOLS = [42]")
    with pytest.raises(TargetError, match=r"kit\.py: int is not a tool"):
        resolve("kit.py")


def test_a_provider_that_fails_is_told_in_one_line(written):
    written("""
        class Remote:
            def as_tools(self): raise ConnectionError("the server is gone")

        remote = Remote()
        """)
    with pytest.raises(TargetError, match=r"^kit\.py: ConnectionError: the server is gone$"):
        resolve("kit.py")


# -- errors


def test_a_missing_file_is_told_with_its_nearest_neighbours(written):
    written("")
    with pytest.raises(TargetError, match=r"there is no file kti\.py; did you mean kit\.py\?"):
        resolve("kti.py")
    with pytest.raises(TargetError, match=r"there is no file no_such_folder/kit\.py$"):
        resolve("no_such_folder/kit.py")


def test_a_missing_module_is_told_with_the_nearest_ones(written):
    written("", f"pack_{uuid.uuid4().hex}/__init__.py")
    written("", "inventory.py")
    with pytest.raises(TargetError, match="there is no module inventori; did you mean inventory"):
        resolve("inventori")
    with pytest.raises(TargetError, match=r"there is no module email\.massage; did you mean .*message"):
        resolve("email.massage")


def test_a_missing_attribute_is_told_with_the_nearest_ones(written):
    written("def weather(city: str): ...")
    with pytest.raises(TargetError, match=r"kit\.py:wether: there is no 'wether' in kit\.py; did you mean weather\?"):
        resolve("kit.py:wether")


def test_a_missing_exported_name_is_told(written):
    written("def weather(city: str): ...\n__all__ = ['wether']")
    with pytest.raises(TargetError, match=r"names 'wether', which is not there; did you mean weather\?"):
        resolve("kit.py")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = 1\nraise RuntimeError('no key\\nset one')", r"RuntimeError: no key \(line 2 of kit\.py\)$"),
        ("x = 1\nimport no_such_library", r"ModuleNotFoundError: No module named 'no_such_library' \(line 2 of kit"),
        ("def f(:", r"SyntaxError: invalid syntax \(kit\.py, line 1\)$"),
        ("import sys\nsys.exit(3)", r"SystemExit: 3 \(line 2 of kit\.py\)$"),
        ("from .other import f", r"ImportError: .*package.*name it as package\.module instead$"),
        ("import json\njson.loads('{')", r"JSONDecodeError: .* \(line 2 of kit\.py\)$"),
        ("x = '\ud800'", r"could not be loaded: "),
    ],
)
def test_what_a_module_raises_is_told_in_one_line(written, tmp_path, code, said):
    (tmp_path / "kit.py").write_bytes(code.encode(errors="surrogatepass"))
    for target in ("kit.py", "kit"):
        with pytest.raises(TargetError, match=said) as raised:
            resolve(target)
        assert "\n" not in str(raised.value)


def test_a_file_that_failed_can_be_loaded_once_it_is_mended(written):
    written("raise ValueError")
    with pytest.raises(TargetError):
        resolve("kit.py")
    written("def f(a: int): ...")
    assert resolve("kit.py").names == ("f",)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (
            "",
            "'' names no tools: write one of openapi.yaml@https://api.example, ",
        ),
        ("two words", "names no tools: write one of"),
        ("folder", "holds no tools"),
        ("bare", "is a folder without __init__.py: name a Python file in it"),
        ("folder/", "is a folder: name a Python file in it"),
        ("notes.txt", "is not a Python file: its name must end in .py"),
        ("empty.py", "holds no tools: imported names, classes and names that begin with an underscore"),
        ("empty.py:Shape", "is a class: name an instance"),
        ("empty.py:SIZE", "empty.py:SIZE: int is not a tool"),
        ("listed.py", "must be a list of tools, not int"),
    ],
)
def test_a_target_without_tools_is_told_what_would_be_right(written, target, said):
    written("", "folder/__init__.py")
    written("", "bare/kit.py")
    written("", "notes.txt")
    written("class Shape: ...\nSIZE = 3", "empty.py")
    written("TOOLS = 3", "listed.py")
    with pytest.raises(TargetError) as raised:
        resolve(target)
    assert said in str(raised.value)


# -- kits and skills


@pytest.mark.parametrize(
    ("target", "tools"),
    [
        ("builtin", {"calculate", "current_time", "fetch_page", "search_web"}),
        ("builtin:math", {"calculate"}),
        ("builtin:time", {"current_time", "convert_time", "shift_time", "time_between"}),
        ("builtin:files", {"list_files", "read_file"}),
        ("builtin:files=.", {"list_files", "read_file"}),
        ("builtin:docs=.", {"list_documents", "read_document"}),
    ],
)
def test_a_kit_is_named_with_the_place_it_is_for(target, tools):
    assert set(resolve(target).names) >= tools


def test_a_database_is_named_as_the_place_of_its_kit(tmp_path):
    (tmp_path / "a=b.db").touch()
    assert "query_database" in resolve(f"builtin:sql={tmp_path / 'a=b.db'}")


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("builtin:maths", "there are docs, files, math, time, web, sql"),
        ("builtin:math=3", "takes no place"),
        ("builtin:sql", "sql=FILE"),
        ("builtin:sql=none.db", "no file none.db"),
        ("builtin:files=none", "none is not a folder"),
    ],
)
def test_a_kit_that_is_none_or_has_no_such_place_is_told(target, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TargetError, match=reason):
        resolve(target)


def test_a_folder_of_skills_or_of_one_skill_is_a_target(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "skills/forms").mkdir(parents=True)
    (tmp_path / "skills/forms/SKILL.md").write_text("---\nname: forms\ndescription: Fills in forms.\n---\n")
    for target in ("skills", "skills/", str(tmp_path / "skills/forms")):
        tools = resolve(target)
        assert tools.names == ("read_skill", "read_skill_file")
        assert "forms: Fills in forms." in tools.instructions[0]


def test_a_folder_that_holds_no_skills_is_no_target_still(tmp_path):
    with pytest.raises(TargetError, match="is a folder"):
        resolve(str(tmp_path))
