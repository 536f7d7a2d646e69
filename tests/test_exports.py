from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import toolcrib

ROOT = Path(__file__).parents[1]

# The rooms whose every name is public; of the others, single names are.
PUBLIC = ("errors", "events", "protocols", "types", "tools", "toolset", "agent")
NOT_PUBLIC = {"Mode", "OnCollision", "Parameters", "Source", "warn"}


def in_order(names: list[str]) -> list[str]:
    return sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))


def test_the_public_names_are_in_order():
    assert toolcrib.__all__ == in_order(list(set(toolcrib.__all__)))


@pytest.mark.parametrize("name", toolcrib.__all__)
def test_every_public_name_can_be_imported(name):
    assert getattr(toolcrib, name) is not None


@pytest.mark.parametrize("room", PUBLIC)
def test_every_name_of_a_public_room_is_exported(room):
    module = importlib.import_module(f"toolcrib.{room}")
    assert {name for name in module.__all__ if not hasattr(toolcrib, name)} <= NOT_PUBLIC


def test_the_reference_documents_every_public_name_and_no_other():
    reference = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    documented = re.findall(r"^::: toolcrib\.(\w+)$", reference, re.MULTILINE)
    assert sorted(documented) == sorted(
        name for name in toolcrib.__all__ if name not in {"__version__", "builtin", "formats"}
    )


def test_nothing_public_is_only_there_by_accident():
    there = {name for name, value in vars(toolcrib).items() if not isinstance(value, ModuleType)}
    accidents = {name for name in there if not name.startswith("_")} - set(toolcrib.__all__)
    assert accidents <= {"TYPE_CHECKING", "Any", "annotations"}


def test_a_name_that_is_imported_late_is_listed_and_found():
    code = "import toolcrib; assert 'LLMEngine' in dir(toolcrib); print(toolcrib.LLMEngine.__module__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "toolcrib.engines.llm"


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Toool'"):
        toolcrib.Toool  # noqa: B018  reading it is what is tested


def test_the_formats_are_a_room_of_their_own():
    from toolcrib import formats

    assert set(formats.FORMATS) >= {"openai_chat", "openai_responses", "anthropic", "gemini", "mcp", "xml"}
