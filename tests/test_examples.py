from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolcrib.engines.local._weights import cache_dir

ROOT = Path(__file__).parents[1]
HAS_WEIGHTS = any(cache_dir().glob("*/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"))
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))

#: What an example prints when it does what it says; every example is here.
PRINTS = {
    "agent_with_script": ["It rains in Paris, and the sum is 1625.", "3 turns, 0.0 dollars, ok: True", "- ok: 1625.0"],
    "builtin_tools": [
        "calculate: ok: 1639",
        "too large",
        "32 days, 18 hours",
        "Europe/Oslo?",
        "leads out of this folder",
    ],
    "agents_as_tools": ["72.73 euros", "- weather_desk took 2 turns", "- money_desk took 2 turns"],
    "code_mode": [
        "async def count(part: str) -> int",
        '["92 of nut ordered","100 of washer ordered"]',
        "I ordered nuts",
    ],
    "crash_proof": [
        "0 ok: 3",
        "1 failed: Tool 'parse' failed: its process was ended by SIGABRT",
        "2 timed_out",
        "3 ok: 2",
    ],
    "every_call_answered": [
        "ZeroDivisionError",
        "not valid JSON",
        "c: not a parameter",
        "timed_out",
        "cannot be shown",
    ],
    "foreign_schema": ['ok: {"forecast":"rain"', "greater than the maximum of 14", "duplicate key"],
    "http_api": ['ok: ["Tom","Kit"]', "HTTP 404", "would lead to another path"],
    "legacy": [
        "stock_level: Return how many",
        "sku.required: yes (signature)",
        "2 of AB-12 reserved",
        "Tool.from_schema(",
    ],
    "loopback": [],
    "mcp_server": ["tools: shelf.find_book", "ok: A Field Guide to Hammers", "invalid_arguments:", "not_found:"],
    "own_engine": ["The answer is 1625.0.", "I can only add."],
    "own_executor": ["denied: Tool 'book_table' was denied", "ok: A table for 3 on Friday"],
    "quickstart": ['<tool name="book_table">', "convert_currency: ok: 275.0", "Did you mean 'get_weather'?"],
    "serve_over_mcp": [
        "['stock', 'reorder']",
        "2 of 2: crate 2",
        "2 crates of nails",
        "Invalid arguments for 'reorder'",
    ],
    "skill_folder": ["- greetings: Greets people.", "Greet by name", "A very good morning, Ada!", "assistant: Done."],
    "skill": ["Note 1 added.", "failed:", 'ok: ["buy milk"]'],
    "tool_filters": ["prefixed:     demo.get_weather", "together:     maths.add get_weather"],
    "with_anthropic_sdk": ["A table for 3 on Friday, in the name of Ada", "is booked, Ada."],
    "with_openai_sdk": ["light rain in Paris", "-> 275.0", "250 euros are 275 dollars"],
    "xml_for_prompt_models": ['<tool name="get_weather">', "A table for 2 on Friday, in the name of A &amp; B"],
}
NEEDS = {"with_anthropic_sdk": "anthropic", "with_openai_sdk": "openai"}


def printed_by(name: str, timeout: float = 60) -> str:
    keys = {"ANTHROPIC_API_KEY", "OPENAI_API_KEY"}  # no example may ask a real provider here
    environment = {variable: value for variable, value in os.environ.items() if variable not in keys}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / f"{name}.py")],
        env={**environment, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "demo"])
def test_an_example_does_what_it_says(name):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    output = printed_by(name)
    assert [text for text in PRINTS[name] if text not in output] == []


@pytest.mark.model
@pytest.mark.skipif(not HAS_WEIGHTS, reason="the demo's model (491 MB) is fetched by `make demo` alone")
def test_the_demo_shows_every_call_and_says_what_the_model_missed():
    output = printed_by("demo", timeout=600)
    assert "get_weather(" in output
    assert "Paris" in output
    assert "expected calls" in output
