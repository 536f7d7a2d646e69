from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from toolcrib import Limits, ToolCall, ToolExecutionError, Toolset, call_tools
from toolcrib._folder import Folder
from toolcrib.builtin import file_tools
from toolcrib.limits import MAX_FILE_BYTES, MAX_FOLDER_ENTRIES, MAX_LINKS

SECRET = "the key of the safe"  # noqa: S105  what no test may ever read


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with everything in it that could lead out, beside a file that must never be read."""
    (tmp_path / "secret.txt").write_text(SECRET)
    (tmp_path / "inside_too").mkdir()
    (tmp_path / "inside_too" / "secret.txt").write_text(SECRET)
    (tmp_path / "inside_too" / "notes").mkdir()
    (tmp_path / "inside_too" / "notes" / "today.txt").write_text(SECRET)
    root = tmp_path / "inside"
    (root / "notes" / "deep").mkdir(parents=True)
    (root / "notes" / "today.txt").write_text("milk\nbread\n")
    (root / "notes" / "deep" / "Über uns.md").write_text("# Über uns\n")
    (root / ".env").write_text(SECRET)
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text(SECRET)
    (root / "back\\slash").write_text("a name like any other")
    (root / "...").write_text(SECRET)
    links = {
        "out": "../secret.txt",
        "out_absolute": str(tmp_path / "secret.txt"),
        "out_folder": "..",
        "out_root": "/",
        "out_proc": "/proc/self/root",
        "out_cwd": "/proc/self/cwd",
        "out_fd": "/proc/self/fd/0",
        "out_prefix": str(tmp_path / "inside_too" / "secret.txt"),
        "out_alike": str(tmp_path / "inside_too" / "notes" / "today.txt"),
        "out_through": "notes/../../secret.txt",
        "out_twice": "out_folder/secret.txt",
        "loop": "loop",
        "loop_a": "loop_b",
        "loop_b": "loop_a",
        "nowhere": "no such file",
        "in": "notes/today.txt",
        "in_absolute": str(root / "notes" / "today.txt"),
        "in_folder": "notes",
        "in_around": "notes/deep/../today.txt",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    (root / "notes" / "up").symlink_to("../notes/today.txt")
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(root)
        server.bind("socket")
    return root


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


REFUSED = [
    "../secret.txt",
    "notes/../../secret.txt",
    "notes/deep/../../../secret.txt",
    "./../secret.txt",
    "..",
    "../inside/../secret.txt",
    "/etc/passwd",
    "//etc/passwd",
    "/proc/self/environ",
    "~/secret.txt",
    "~root/.ssh/id_rsa",
    "out",
    "out_absolute",
    "out_folder/secret.txt",
    "out_folder/inside/notes/today.txt",
    "out_root/etc/passwd",
    "out_proc/etc/passwd",
    "out_cwd/secret.txt",
    "out_fd",
    "out_prefix",
    "out_alike",
    "out_through",
    "out_twice",
    "loop",
    "loop_a",
    "nowhere",
    "pipe",
    "socket",
    ".env",
    ".git/config",
    "notes/../.env",
    "...",
    "notes",
    "notes/today.txt/../../../secret.txt",
    "notes/today.txt/more",
    "no/such/file",
    "notes\0/today.txt",
    "../secret.txt\0.txt",
    "\ud800",
    "a" * 5_000,
    "a" * 300,
    "",
    ".",
    "..\\secret.txt",
    "%2e%2e/secret.txt",
    "file:///etc/passwd",
    "C:\\Windows\\win.ini",
    "CON",
    "notes/today.txt::$DATA",
    "NOTES\u2044..\u2044secret.txt",
    "$HOME/secret.txt",
    "`cat ../secret.txt`",
]

ACCEPTED = [
    "notes/today.txt",
    "./notes//today.txt",
    "notes/deep/../today.txt",
    "in",
    "in_absolute",
    "in_folder/today.txt",
    "in_around",
    "notes/up",
    "in_folder/../notes/today.txt",
]


def answer(tools, name, **arguments):
    (result,) = call_tools([ToolCall("1", name, arguments)], Toolset(tools))
    return result


@pytest.mark.parametrize("path", REFUSED)
def test_a_path_that_leads_out_or_to_no_file_is_refused(root, path):
    for name, more in (("read_file", {}), ("edit_file", {"old": "key", "new": "x"})):
        result = answer(file_tools(root, writable=True), name, path=path, **more)
        assert result.kind in {"failed", "invalid_arguments"}
        assert SECRET not in result.text
        assert str(root) not in result.text.replace(path, "")
    assert (root.parent / "secret.txt").read_text() == SECRET


@pytest.mark.parametrize("path", ACCEPTED)
def test_a_path_that_stays_inside_is_read_links_included(root, path):
    assert answer(file_tools(root), "read_file", path=path).text == "milk\nbread\n"


@pytest.mark.parametrize(
    "path",
    [path for path in REFUSED if path not in {"nowhere", "loop", "loop_a", "no/such/file"} and "secret" in path],
)
def test_nothing_is_written_outside(root, path):
    before = sorted(root.parent.rglob("*"))
    answer(file_tools(root, writable=True), "write_file", path=path, text="mine", overwrite=True)
    assert (root.parent / "secret.txt").read_text() == SECRET
    outside = {found for found in root.parent.rglob("*") if not found.is_relative_to(root)}
    assert outside == {found for found in before if not found.is_relative_to(root)}


def test_a_file_is_written_whole_with_the_folders_it_is_in(root):
    tools = file_tools(root, writable=True)
    assert "is new" in answer(tools, "write_file", path="new/deep/file.txt", text="one").text
    assert (root / "new/deep/file.txt").read_text() == "one"
    assert "is there already" in answer(tools, "write_file", path="new/deep/file.txt", text="two").text
    assert answer(tools, "write_file", path="new/deep/file.txt", text="two", overwrite=True).ok
    assert (root / "new/deep/file.txt").read_text() == "two"
    assert list((root / "new/deep").iterdir()) == [root / "new/deep/file.txt"]


def test_writing_through_a_link_inside_changes_what_it_leads_to(root):
    answer(file_tools(root, writable=True), "write_file", path="in", text="eggs", overwrite=True)
    assert (root / "in").is_symlink()
    assert (root / "notes/today.txt").read_text() == "eggs"


def test_a_file_keeps_its_mode_when_it_is_replaced(root):
    (root / "notes/today.txt").chmod(0o640)
    answer(file_tools(root, writable=True), "write_file", path="notes/today.txt", text="eggs", overwrite=True)
    assert stat.S_IMODE((root / "notes/today.txt").stat().st_mode) == 0o640


def test_there_is_nothing_to_write_with_unless_that_is_allowed(root):
    assert Toolset(file_tools(root)).names == ("list_files", "find_files", "read_file", "search_files")
    assert [tool.effect for tool in file_tools(root)] == ["read"] * 4


def test_a_piece_of_a_file_is_replaced_where_it_occurs_once(root):
    tools = file_tools(root, writable=True)
    assert answer(tools, "edit_file", path="notes/today.txt", old="milk", new="oats").ok
    assert (root / "notes/today.txt").read_text() == "oats\nbread\n"
    assert "does not have" in answer(tools, "edit_file", path="notes/today.txt", old="milk", new="x").text
    assert "more of what is around" in answer(tools, "edit_file", path="notes/today.txt", old="a", new="x").text
    assert answer(tools, "edit_file", path="notes/today.txt", old="a", new="A", everywhere=True).ok
    assert (root / "notes/today.txt").read_text() == "oAts\nbreAd\n"


def test_hidden_files_may_be_allowed(root):
    assert answer(file_tools(root, hidden=True), "read_file", path=".env").text == SECRET
    assert ".env" in answer(file_tools(root, hidden=True), "list_files").text
    assert ".env" not in answer(file_tools(root), "list_files").text


def test_a_folder_is_listed_with_what_its_entries_are(root):
    lines = answer(file_tools(root), "list_files").text.splitlines()
    assert "notes/" in lines
    assert "in (link)" in lines
    assert "pipe (neither file nor folder)" in lines
    assert answer(file_tools(root), "list_files", path="notes").text.splitlines() == [
        "deep/",
        "today.txt (11 bytes)",
        "up (link)",
    ]


def test_a_name_with_a_line_end_cannot_pass_for_two_files(root):
    (root / "notes/a\nb.txt").write_text("")
    assert "'a\\nb.txt'" in answer(file_tools(root), "list_files", path="notes").text


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.txt", ["notes/today.txt"]),
        ("*.md", ["notes/deep/Über uns.md"]),
        ("notes/*.txt", ["notes/today.txt"]),
        ("**/*.txt", ["notes/today.txt"]),
        ("*.py", ["No file matches *.py."]),
        ("*config", ["No file matches *config."]),
    ],
)
def test_files_are_found_by_name_and_never_hidden_ones(root, pattern, found):
    assert answer(file_tools(root), "find_files", pattern=pattern).text.splitlines() == found


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"pattern": "MILK"}, "notes/today.txt:1: milk"),
        ({"pattern": "MILK", "ignore_case": False}, "No line matches."),
        ({"pattern": "^b.*d$", "regex": True}, "notes/today.txt:2: bread"),
        ({"pattern": "key of"}, "No line matches."),
        ({"pattern": "uns", "files": "*.md"}, "notes/deep/Über uns.md:1: # Über uns"),
    ],
)
def test_text_is_searched(root, arguments, found):
    assert answer(file_tools(root), "search_files", **arguments).text == found


def test_a_regular_expression_cannot_run_away_and_a_wrong_one_is_explained(root):
    (root / "notes/long.txt").write_text("a" * 200_000 + "b")
    assert answer(file_tools(root), "search_files", pattern="(a+)+$", regex=True).text == "No line matches."
    assert "unclosed group" in answer(file_tools(root), "search_files", pattern="(a", regex=True).text
    assert not answer(file_tools(root), "search_files", pattern="((a{1000}){1000}){1000}", regex=True).ok


def test_a_long_file_is_read_in_parts(root):
    (root / "long.txt").write_text("".join(f"line {number}\n" for number in range(1, 5_001)))
    first = answer(file_tools(root), "read_file", path="long.txt", max_lines=10).text
    assert first.endswith("line 10\n[lines 1 to 10 of 5000; go on with start_line=11]")
    last = answer(file_tools(root), "read_file", path="long.txt", start_line=5_000).text
    assert last == "line 5000\n[lines 5000 to 5000 of 5000]"
    assert "only 5000 lines" in answer(file_tools(root), "read_file", path="long.txt", start_line=6_000).text


def test_a_line_that_is_too_long_is_cut(root):
    (root / "line.txt").write_text("x" * 90_000)
    assert len(answer(file_tools(root), "read_file", path="line.txt").text) < 60_000


def test_what_is_not_text_and_what_is_too_large_is_refused(root):
    (root / "binary").write_bytes(b"\x7fELF\0\0")
    assert "not text" in answer(file_tools(root), "read_file", path="binary").text
    with (root / "huge").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    assert "larger than" in answer(file_tools(root), "read_file", path="huge").text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_is_read_in_the_encodings_that_say_so(root, encoding):
    (root / "text").write_text("Ünï", encoding=encoding)
    assert answer(file_tools(root), "read_file", path="text").text == "Ünï"


def test_a_search_ends_before_its_call_does(root):
    (result,) = call_tools(
        [ToolCall("1", "search_files", {"pattern": "milk"})], Toolset(file_tools(root)), limits=Limits(deadline=1)
    )
    assert "no time to search the rest" in result.text


def test_what_was_found_before_a_tree_became_too_large_is_told(root, monkeypatch):
    (root / "found.txt").write_text("milk")
    monkeypatch.setattr("toolcrib._folder.MAX_FOLDER_ENTRIES", len(list(root.iterdir())))
    lines = answer(file_tools(root), "search_files", pattern="milk").text.splitlines()
    assert lines[0] == "found.txt:1: milk"
    assert "perhaps more: there are more than" in lines[-1]


def test_a_tree_that_is_too_large_is_given_up(root, monkeypatch):
    monkeypatch.setattr("toolcrib._folder.MAX_FOLDER_ENTRIES", 5)
    assert "more than" in answer(file_tools(root), "find_files", pattern="*").text
    assert MAX_FOLDER_ENTRIES > 5


def test_a_chain_of_links_is_followed_only_so_far(root):
    for number in range(MAX_LINKS + 1):
        (root / f"chain{number}").symlink_to(f"chain{number + 1}")
    (root / f"chain{MAX_LINKS + 1}").write_text("the end")
    assert "too many links" in answer(file_tools(root), "read_file", path="chain0").text
    assert answer(file_tools(root), "read_file", path="chain5").text == "the end"


def test_a_device_is_refused_wherever_it_lies():
    with pytest.raises(ToolExecutionError, match="a device"):
        Folder("/dev").read("null")


@pytest.mark.parametrize(
    ("swapped", "target", "looks"),
    [("race", "..", 1), ("secret.txt", "../../secret.txt", 1), ("secret.txt", "../../secret.txt", 2)],
)
def test_a_link_that_takes_a_place_between_looking_and_opening_is_not_followed(
    root, monkeypatch, swapped, target, looks
):
    (root / "race").mkdir()
    (root / "race/secret.txt").write_text("harmless")
    folder, look = Folder(root), os.stat
    place = root / "race" if swapped == "race" else root / "race/secret.txt"
    seen = list[str]()

    def look_then_swap(path, **options):
        found = look(path, **options)
        if path == swapped:
            seen.append(path)
            if len(seen) == looks:
                place.rename(root / "aside")
                place.symlink_to(target)
        return found

    monkeypatch.setattr(os, "stat", look_then_swap)
    with pytest.raises(ToolExecutionError):
        folder.read("race/secret.txt")
    monkeypatch.undo()
    assert place.is_symlink()


def test_no_file_descriptor_is_left_open(root):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in [*REFUSED, *ACCEPTED]:
        answer(file_tools(root), "read_file", path=path)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 2  # what the worker threads opened for themselves


def test_no_folder_means_the_current_one_at_each_call(root, monkeypatch):
    tools = file_tools()
    monkeypatch.chdir(root)
    assert answer(tools, "read_file", path="notes/today.txt").ok
    monkeypatch.chdir(root / "notes")
    assert answer(tools, "read_file", path="today.txt").ok


def test_a_root_that_is_no_folder_is_refused_when_the_tools_are_made(root):
    with pytest.raises(NotADirectoryError, match="is not a folder"):
        file_tools(root / "notes/today.txt")
