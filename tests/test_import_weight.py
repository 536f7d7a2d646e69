"""What `import toolcrib` costs, held by what it loads: a timing would swing, a set of modules does not."""

from __future__ import annotations

import subprocess
import sys

import pytest

NOT_LOADED = (
    "anyio",
    "google.genai",
    "griffe",
    "httpx2",
    "importlib.metadata",
    "jsonschema_rs",
    "mcp",
    "openai",
    "opentelemetry",
    "pydantic.main",
    "pydantic_ai",
    "rich",
    "toolcrib.stores.redis",
    "toolcrib.stores.sqlite",
    "typer",
    "xllamacpp",
)


def modules_after(code: str) -> set[str]:
    script = f"import sys; before = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    return modules_after("import toolcrib")


@pytest.mark.parametrize("module", NOT_LOADED)
def test_importing_the_package_does_not_load(module, loaded):
    assert not {name for name in loaded if name == module or name.startswith(f"{module}.")}


def test_the_package_itself_is_among_what_was_loaded(loaded):
    assert "toolcrib" in loaded
