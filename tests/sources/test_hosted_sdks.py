"""The companies' own SDKs before our stand-ins of their servers: they are answered, and ask as our clients do."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import hosted_servers
import pytest
from hosted_servers import KEY, Arcade, Composio, Pipedream

from toolcrib import ArcadeClient, ComposioClient, PipedreamClient

SDKS = ["composio-client>=2.0.0rc19,<3", "arcadepy>=1.10,<2", "pipedream>=2.3,<3"]
CACHE = Path(__file__).parents[2] / ".peers" / "hosted-sdks"

COMPOSIO = """
from composio_client import Composio
from composio_client._auth import ProjectAuth
client = Composio(auth=ProjectAuth(key), base_url=url)
page = client.tools.list(toolkit_slug="github", toolkit_versions={"github": "1"}, limit=200)
page = client.tools.list(toolkit_slug="github", toolkit_versions={"github": "1"}, limit=200, cursor=page.next_cursor)
assert [tool.slug for tool in page.items] == ["GITHUB_DELETE"]
assert client.tools.retrieve("GITHUB_STAR").slug == "GITHUB_STAR"
assert client.tools.execute("GITHUB_STAR", arguments={"repo": "a/b"}, user_id="ada", version="1").successful
assert client.auth_configs.list(toolkit_slug="github").items
assert client.link.create(auth_config_id="ac_new", user_id="bob").redirect_url
"""
ARCADE = """
from arcadepy import Arcade
client = Arcade(api_key=key, base_url=url)
assert len(list(client.tools.list(toolkit="Github", limit=100))) == 141
ran = client.tools.execute(tool_name="Github.Star", input={"repo": "a/b"}, user_id="ada", tool_version="1.2.0")
assert ran.output.value == {"starred": True}
assert client.tools.execute(tool_name="Github.Star", input={}, user_id="bob").output.authorization.url
assert client.tools.authorize(tool_name="Github.Star", user_id="bob", tool_version="1.2.0").status == "pending"
"""
PIPEDREAM = """
from pipedream import Pipedream
project = {"project_id": "proj_1", "project_environment": "production"}
client = Pipedream(**project, client_id="id", client_secret=key, base_url=url)
assert [action.key for action in client.actions.list(app="slack", limit=100)] == ["slack-send"]
assert [account.id for account in client.accounts.list(external_user_id="ada", app="slack")]
props = {"text": "hi", "times": 1, "slack": {"authProvisionId": "apn_new"}}
ran = client.actions.run(id="slack-send", version="0.3.1", external_user_id="ada", configured_props=props)
assert ran.ret == {"ok": True}
props = {"sheet": "s1", "google": {"authProvisionId": "apn_new"}}
more = client.actions.reload_props(id="sheets-add", version="1.0.0", external_user_id="ada", configured_props=props)
assert more.dynamic_props.id == "dyp_1"
assert client.tokens.create(external_user_id="bob").connect_link_url
"""


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def python() -> Path:
    """A Python with the SDKs, made once and kept in `.peers`."""
    made = CACHE / "bin" / "python"
    if not (CACHE / "complete").exists():
        run(sys.executable, "-m", "venv", "--clear", CACHE)
        installed = run(made, "-m", "pip", "install", "-q", "--disable-pip-version-check", *SDKS)
        if installed.returncode:
            pytest.skip(f"the SDKs cannot be installed here: {installed.stderr.strip()[-200:]}")
        (CACHE / "complete").touch()
    return made


def asked_by_sdk(python: Path, running: Any, server: Any, script: str) -> list[Any]:
    """What an SDK asks; kept while neither the script nor the servers change, since SDKs are slow to import."""
    digest = hashlib.sha256(f"{SDKS}{script}{Path(hosted_servers.__file__).read_text(encoding='utf-8')}".encode())
    kept = CACHE / f"{digest.hexdigest()}.json"
    if not kept.exists():
        ran = run(python, "-c", f"url, key = {running(server.app)!r}, {KEY!r}\n{script}")
        assert not ran.returncode, ran.stderr
        kept.write_text(json.dumps(server.asked), encoding="utf-8")
    return json.loads(kept.read_text(encoding="utf-8"))


def bodies(asked: list[Any], path: str) -> list[Any]:
    return [body for method, there, body in asked if there == path and method == "POST"]


def places(asked: list[Any]) -> set[tuple[str, str]]:
    return {(method, path) for method, path, _ in asked}


def test_composio_is_asked_as_by_its_own_client(python, running):
    theirs, ours = asked_by_sdk(python, running, Composio(), COMPOSIO), Composio()
    options = {"toolkits": "github", "version": {"github": "1"}, "base_url": running(ours.app)}
    client = ComposioClient(KEY, user_id="ada", **options)
    client.list_tools()
    client.call_tool("GITHUB_STAR", {"repo": "a/b"})
    stranger = ComposioClient(KEY, user_id="bob", **options)
    with pytest.raises(Exception, match="allow access to github"):
        stranger.call_tool("GITHUB_STAR", {})
    assert places(ours.asked) == places(theirs)
    assert [query for _, path, query in ours.asked if path == "/api/v3.1/tools"] == [
        query for _, path, query in theirs if path == "/api/v3.1/tools"
    ]
    for path in ("/api/v3.1/tools/execute/GITHUB_STAR", "/api/v3.1/connected_accounts/link"):
        assert bodies(ours.asked, path)[0] == bodies(theirs, path)[0]


def test_arcade_is_asked_as_by_its_own_client(python, running):
    theirs, ours = asked_by_sdk(python, running, Arcade(), ARCADE), Arcade()
    ours.refusal = 403
    options = {"toolkits": "Github", "base_url": running(ours.app)}
    client = ArcadeClient(KEY, user_id="ada", **options)
    client.list_tools()
    client.call_tool("Github.Star", {"repo": "a/b"})
    stranger = ArcadeClient(KEY, user_id="bob", **options)
    stranger.list_tools()
    with pytest.raises(Exception, match="allow access to github"):
        stranger.call_tool("Github.Star", {})
    assert places(ours.asked) == places(theirs)
    for path in ("/v1/tools/execute", "/v1/tools/authorize"):
        assert bodies(ours.asked, path)[0] == bodies(theirs, path)[0]


def test_pipedream_is_asked_as_by_its_own_client(python, running):
    theirs, ours = asked_by_sdk(python, running, Pipedream(), PIPEDREAM), Pipedream()
    options = {"project_id": "proj_1", "apps": ["slack", "sheets"], "base_url": running(ours.app)}
    client = PipedreamClient("id", KEY, user_id="ada", **options)
    client.list_tools()
    client.call_tool("slack-send", {"text": "hi"})
    with pytest.raises(Exception, match="needs more arguments"):
        client.call_tool("sheets-add", {"sheet": "s1"})
    stranger = PipedreamClient("id", KEY, user_id="bob", **options)
    stranger.list_tools()
    with pytest.raises(Exception, match="allow access to slack"):
        stranger.call_tool("slack-send", {"text": "hi"})
    assert places(ours.asked) == places(theirs)
    for path in (
        "/v1/oauth/token",
        *(f"/v1/connect/proj_1/{tail}" for tail in ("actions/run", "actions/props", "tokens")),
    ):
        assert bodies(ours.asked, path)[0] == bodies(theirs, path)[0]
