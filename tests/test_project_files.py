"""What holds of the files of the project as a whole."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import toolcrib

ROOT = Path(__file__).parents[1]
REGISTRY = re.compile(r"\b(pypi|pythonhosted|npmjs|anaconda|crates)\.(org|com|io)\b")
MACHINE_PATH = re.compile(r"(?<![\w.~/-])/(root|work|Users)/\w")


def project_files() -> list[Path]:
    """What git holds or would take; without git, everything that is not hidden or made."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True)  # noqa: PLW1510  there may be no git
    if done.returncode == 0 and done.stdout:
        paths = [ROOT / name for name in done.stdout.splitlines()]
    else:
        paths = [
            path for path in ROOT.rglob("*") if not re.search(r"/(\.(?!ci)|site/|dist/)", f"/{path.relative_to(ROOT)}")
        ]
    return [path for path in paths if path.is_file()]


def texts() -> dict[str, str]:
    found: dict[str, str] = {}
    for path in project_files():
        try:
            found[str(path.relative_to(ROOT))] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    return found


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return texts()


def lines_with(pattern: re.Pattern[str], files: dict[str, str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in files.items()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_no_file_names_a_package_registry(files):
    assert lines_with(REGISTRY, files) == []


def test_no_file_names_a_path_of_somebodys_machine(files):
    home = re.compile(re.escape(f"{Path.home()}/"))
    assert lines_with(MACHINE_PATH, files) == []
    assert lines_with(home, files) == []


def test_no_file_carries_download_addresses_of_packages(files):
    assert not {name for name in files if name.endswith((".lock", "lock.json")) and "://" in files[name]}
    assert re.search(r"://|--hash", files["constraints.txt"]) is None


def test_the_patterns_find_what_they_are_for():
    text = "see https://" + "pypi" + ".org/project/x\nopen('" + "/wo" + "rk/data')"
    assert lines_with(REGISTRY, {"a": text}) == ["a:1: see https://" + "pypi" + ".org/project/x"]
    assert len(lines_with(MACHINE_PATH, {"a": text})) == 1


def test_the_versions_agree_and_the_changelog_has_it(files):
    version = project()["version"]
    assert toolcrib.__version__ == version
    assert re.search(rf"^## \[{re.escape(str(version))}\]", files["CHANGELOG.md"], re.MULTILINE)


def test_every_extra_that_is_named_exists(files):
    extras = project()["optional-dependencies"]
    written = {name: text for name, text in files.items() if name.endswith((".py", ".md", ".sh")) or name == "Makefile"}
    named = {
        extra
        for text in written.values()
        for extra in re.findall(r"MissingExtraError\(\s*\"(\w+)\"", text)
        + [one for group in re.findall(r"(?:toolcrib|-e '\.)\[([a-z,]+)\]", text) for one in group.split(",")]
    }
    assert named - {"extra"} <= set(extras)


def test_the_table_of_extras_has_every_one_in_a_row_and_no_other(files):
    table = files["docs/index.md"].partition("| extra | brings |")[2]
    cells = re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE)
    assert sorted(re.findall(r"`([^`]+)`", " ".join(cells))) == sorted(project()["optional-dependencies"])


def test_every_link_between_documents_leads_somewhere(files):
    broken = [
        f"{name}: {target}"
        for name, text in files.items()
        if name.endswith(".md")
        for target in re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", text)
        if not (ROOT / name).parent.joinpath(target).exists()
    ]
    assert broken == []
