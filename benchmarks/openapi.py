"""Read real OpenAPI documents, each in a process of its own: seconds, memory, and what the schemas weigh.

    python benchmarks/openapi.py                # the documents the tests use, fetched with npm once
    python benchmarks/openapi.py my/openapi.yaml

Seconds are processor time of the whole process, imports included, to a Toolset whose schemas are all made. Memory is
its peak. Sizes are of the schemas as compact JSON, in bytes.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

MEASURE = r"""
import json, re, sys, time, warnings
warnings.simplefilter("ignore")
from toolcrib import OpenAPI, Toolset
source = OpenAPI(sys.argv[1])
tools = Toolset([source])
sizes = [len(json.dumps(tool.input_schema, separators=(",", ":"), ensure_ascii=False).encode()) for tool in tools]
report = source.report
print(json.dumps({
    "tools": len(tools), "skipped": len(report.skipped), "notes": len(report.notes),
    "seconds": round(time.process_time(), 2),
    "MB": int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1]) // 1024,
    "bytes": sum(sizes), "largest": max(sizes),
}))
"""


def main() -> None:
    if sys.argv[1:]:
        found = {Path(name).stem: Path(name) for name in sys.argv[1:]}
    else:
        sys.path.append(str(Path(__file__).parents[1] / "tests"))
        found = importlib.import_module("openapi_documents").documents()
    print(f"{'document':<14}{'MB read':>8}{'tools':>7}{'skipped':>9}{'notes':>7}{'s':>7}{'MB':>6}", end="")
    print(f"{'bytes':>11}{'largest':>9}")
    for name, path in sorted(found.items()):
        done = subprocess.run(  # noqa: S603  # our own interpreter
            [sys.executable, "-c", MEASURE, str(path)], check=True, capture_output=True, text=True
        )
        row = json.loads(done.stdout)
        print(
            f"{name:<14}{path.stat().st_size / 1e6:>8.1f}{row['tools']:>7}{row['skipped']:>9}{row['notes']:>7}"
            f"{row['seconds']:>7.2f}{row['MB']:>6}{row['bytes']:>11,}{row['largest']:>9,}"
        )


if __name__ == "__main__":
    main()
