"""Write the table of native tools in docs/native-tools.md: what each engine of toolcrib offers of its providers' own.

python scripts/native_tools.py
"""

from __future__ import annotations

import re
from pathlib import Path

from pydantic_ai.models import known_model_names

from toolcrib import LLMEngine, LocalEngine, NativeTool, ScriptedEngine

PAGE = Path(__file__).parents[1] / "docs" / "native-tools.md"
BLOCK = re.compile(r"(?<=<!-- native tools -->\n).*?(?=<!-- end -->)", re.DOTALL)

# What LLMEngine calls each provider, whose models those are, and models that are not among the known.
PROVIDERS = {
    "openai-responses": ("openai", ()),
    "openai": ("openai", ("gpt-4o-search-preview",)),
    "anthropic": ("anthropic", ()),
    "google": ("google", ()),
}


def table() -> str:
    """Return the table, one row per native tool and one column per provider or engine."""
    columns = {f"`{name}:`": _offers(name, *models) for name, models in PROVIDERS.items()}
    for engine in (LocalEngine, ScriptedEngine):
        columns[f"`{engine.__name__}`"] = [getattr(engine, "native_tools", frozenset())]
    rows = [["", *columns], ["---"] * (len(columns) + 1)]
    rows += [[f"`{tool.value}`", *(_cell(tool, offers) for offers in columns.values())] for tool in NativeTool]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _offers(name: str, owner: str, also: tuple[str, ...]) -> list[frozenset[NativeTool]]:
    """Return what each model of a provider offers."""
    known = [model.partition(":")[2] for model in known_model_names() if model.startswith(f"{owner}:")]
    return [LLMEngine(f"{name}:{model}", api_key="no-key", file_stores=["a"]).native_tools for model in [*known, *also]]


def _cell(tool: NativeTool, offers: list[frozenset[NativeTool]]) -> str:
    having = sum(tool in offered for offered in offers)
    if not having:
        return ""
    return "yes" if having == len(offers) else "some models"


if __name__ == "__main__":
    PAGE.write_text(BLOCK.sub(lambda _: table(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
