"""Real documents of up to 1,223 operations: nothing is lost silently, and what is shown stays small."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from openapi_documents import NotHereError, documents
from pydantic_core import from_json, to_json

from toolcrib import OpenAPI, Toolset
from toolcrib.formats import FORMATS
from toolcrib.limits import MAX_OPERATION_SCHEMA_CHARS

METHODS = {"get", "head", "options", "trace", "put", "delete", "post", "patch"}

#: Operations, and those of them that are no tools.
COUNTS = {
    "box": 260,
    "digitalocean": 290,
    "docusign": 402,
    "github": 1223,
    "kubernetes": 845,
    "linode": 350,
    "slack": 174,
    "square": 200,
    "stripe": 452,
}


@pytest.fixture(scope="session")
def real() -> dict[str, Path]:
    try:
        return documents()
    except NotHereError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", COUNTS)
def test_every_operation_is_a_tool_or_a_line_of_the_report(real, name):
    paths = from_json(real[name].read_bytes())["paths"]
    operations = sorted(f"{m.upper()} {path}" for path, item in paths.items() for m in item if m in METHODS)
    assert len(operations) == COUNTS[name]
    source = OpenAPI(real[name])
    tools = source.as_tools()
    report = source.report
    assert report.imported == tuple(tool.name for tool in tools)
    assert report.skipped == ()
    assert len(set(report.imported)) == len(operations)
    assert all(len(to_json(tool.input_schema)) < MAX_OPERATION_SCHEMA_CHARS * 2.5 for tool in tools)


@pytest.mark.parametrize("name", ["stripe", "box"])
def test_every_format_can_show_every_tool(real, name):
    toolset = Toolset([OpenAPI(real[name])])
    for form in FORMATS.values():
        shown = form.tools(toolset)
        if isinstance(shown, list) and len(shown) > 1:
            assert len(shown) == len(toolset)


MEASURE = r"""
import json, re, sys, time
from toolcrib import OpenAPI, Toolset
begun = time.process_time()
tools = Toolset([OpenAPI(sys.argv[1])])
schemas = [tool.input_schema for tool in tools]
spent = time.process_time() - begun
rss = int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1]) / 1024
sizes = [len(json.dumps(schema, separators=(",", ":"), ensure_ascii=False).encode()) for schema in schemas]
print(json.dumps({"tools": len(tools), "cpu": spent, "rss": rss, "total": sum(sizes), "largest": max(sizes)}))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_githubs_document_is_read_and_listed_within_its_bounds(real):
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(real["github"])], check=True, capture_output=True, text=True, timeout=120
    )
    found = json.loads(done.stdout)
    assert found["tools"] == 1223
    assert found["cpu"] <= 3
    assert found["rss"] <= 200
    assert found["total"] <= 1_100_000
    assert found["largest"] <= 30_000
