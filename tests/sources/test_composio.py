"""Composio's own ways: versions, toolkits, failures inside an answer, auth configs."""

from __future__ import annotations

import pytest
from hosted_servers import KEY, Composio

from toolcrib import AuthorizationNeededError, ComposioClient, ExternalToolError, ExternalToolProvider


@pytest.fixture
def composio(running):
    server = Composio()
    server.url = running(server.app)
    return server


def client(server, **options) -> ComposioClient:
    return ComposioClient(KEY, **{"user_id": "ada", "toolkits": ["github"], "base_url": server.url, **options})


def test_a_tool_has_composios_own_schema_and_its_claims(composio):
    tools = {tool.name: tool for tool in ExternalToolProvider(client(composio)).as_tools()}
    star = tools["GITHUB_STAR"]
    assert star.input_schema == composio.tools[0]["input_parameters"]
    assert (star.description, star.effect) == ("Does GITHUB_STAR.", "read")
    assert tools["GITHUB_DELETE"].effect == "destructive"


def test_single_tools_are_listed_by_their_slugs(composio):
    listed = client(composio, toolkits=(), tools=["GITHUB_LIST", "GITHUB_STAR"]).list_tools()
    assert [spec["name"] for spec in listed] == ["GITHUB_STAR", "GITHUB_LIST"]
    assert composio.bodies("/api/v3.1/tools")[0]["tool_slugs"] == "GITHUB_LIST,GITHUB_STAR"


def test_everything_there_is_is_never_listed():
    with pytest.raises(ValueError, match="name the toolkits or the tools"):
        ComposioClient(KEY, user_id="ada")


@pytest.mark.parametrize(
    ("version", "listed", "ran"),
    [
        (None, {"toolkit_versions": "latest"}, "20260101_00"),
        ("20250101_00", {"toolkit_versions": "20250101_00"}, "20250101_00"),
        ({"github": "20250303_00"}, {"toolkit_versions[github]": "20250303_00"}, "20250303_00"),
        ({"gmail": "20250303_00"}, {"toolkit_versions[gmail]": "20250303_00"}, "20260101_00"),
    ],
)
def test_the_version_that_was_listed_or_pinned_is_the_one_that_runs(composio, version, listed, ran):
    asking = client(composio, version=version)
    asking.list_tools()
    asking.call_tool("GITHUB_STAR", {"repo": "a/b"})
    assert listed.items() <= composio.bodies("/api/v3.1/tools")[0].items()
    assert composio.bodies("/api/v3.1/tools/execute/GITHUB_STAR") == [
        {"arguments": {"repo": "a/b"}, "user_id": "ada", "version": ran}
    ]


def test_a_failure_inside_an_answer_is_one(composio):
    composio.outcome = {"data": {}, "error": f"rate limit of {KEY}", "successful": False}
    with pytest.raises(ExternalToolError, match=r"Composio could not run GITHUB_STAR: rate limit of \*\*\*") as raised:
        client(composio).call_tool("GITHUB_STAR", {"repo": "a/b"})
    assert raised.value.body["successful"] is False
    assert KEY not in str(raised.value.body)


@pytest.mark.parametrize("status", [200, 400, 404])
@pytest.mark.parametrize(
    "outcome",
    [
        {"data": {}, "successful": False, "error": "No connected account found for user"},
        {"error": {"message": "No active connection found for toolkit", "slug": "ToolRouterV2_NoActiveConnection"}},
        {"error": {"name": "ActionExecute_ConnectedAccountNotFound", "error_code": 1810, "message": "gone"}},
    ],
)
def test_a_missing_account_is_known_by_any_of_its_names(composio, status, outcome):
    if status == 200:
        outcome = {"data": {}, "successful": False, "error": "No connected account found"}
    elif "successful" in outcome:
        outcome = {"error": {"message": outcome["error"]}}
    composio.status, composio.outcome = status, outcome
    with pytest.raises(AuthorizationNeededError, match="allow access to github") as raised:
        client(composio).call_tool("GITHUB_STAR", {"repo": "a/b"})
    assert raised.value.url == "https://connect.composio.example/link/ac_new/ada"


def test_an_account_is_connected_with_the_auth_config_that_was_named(composio):
    with pytest.raises(AuthorizationNeededError) as raised:
        client(composio, user_id="bob", auth_configs={"github": "ac_mine"}).call_tool("GITHUB_STAR", {"repo": "a/b"})
    assert raised.value.url == "https://connect.composio.example/link/ac_mine/bob"
    assert composio.bodies("/api/v3.1/auth_configs") == []


def test_without_an_auth_config_none_is_made_and_the_developer_is_told(composio):
    composio.configs = []
    with pytest.raises(ExternalToolError, match="no auth config to connect 'bob' with github") as raised:
        client(composio, user_id="bob").call_tool("GITHUB_STAR", {"repo": "a/b"})
    assert not isinstance(raised.value, AuthorizationNeededError)


def test_another_404_is_just_that(composio):
    with pytest.raises(ExternalToolError, match="HTTP 404") as raised:
        client(composio).call_tool("GITHUB_NONE", {})
    assert not isinstance(raised.value, AuthorizationNeededError)
