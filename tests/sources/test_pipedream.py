"""Pipedream's own ways: props, accounts, props that depend on others, access tokens."""

from __future__ import annotations

import pytest
from hosted_servers import KEY, Pipedream

from toolcrib import AuthorizationNeededError, ExternalToolError, ExternalToolProvider, PipedreamClient
from toolcrib.sources._pipedream_props import configured, schema_of


@pytest.fixture
def pipedream(running):
    server = Pipedream()
    server.url = running(server.app)
    return server


def client(server, **options) -> PipedreamClient:
    given = {"user_id": "ada", "apps": "slack", "project_id": "proj_1", "base_url": server.url, **options}
    return PipedreamClient("id", KEY, **given)


LABELLED = {"label": "Red", "value": "r"}


@pytest.mark.parametrize(
    ("prop", "schema"),
    [
        ({"type": "string"}, {"type": "string"}),
        ({"type": "string", "label": "L", "description": "D."}, {"type": "string", "description": "L. D"}),
        ({"type": "string", "options": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"type": "string", "options": [LABELLED]}, {"type": "string", "enum": ["r"], "description": "r: Red"}),
        (
            {"type": "string", "options": [{"__lv": LABELLED}]},
            {"type": "string", "enum": ["r"], "description": "r: Red"},
        ),
        ({"type": "string", "options": ["a"], "remoteOptions": True}, {"type": "string"}),
        ({"type": "integer", "default": 3}, {"type": "integer", "default": 3}),
        ({"type": "boolean"}, {"type": "boolean"}),
        ({"type": "object"}, {"type": "object"}),
        ({"type": "any"}, {}),
        ({"type": "sql"}, {"type": "string"}),
        ({"type": "string[]"}, {"type": "array", "items": {"type": "string"}}),
        ({"type": "string[]", "options": ["a"]}, {"type": "array", "items": {"type": "string", "enum": ["a"]}}),
        ({"type": "integer[]"}, {"type": "array", "items": {"type": "integer"}}),
        ({"type": "http_request"}, {"type": "object"}),
        ({"type": "$.airtable.baseId"}, {"type": "string"}),
        ({"type": "$.discord.channel[]"}, {"type": "array", "items": {"type": "string"}}),
    ],
)
def test_a_prop_becomes_json_schema(prop, schema):
    made = schema_of([{"name": "p", **prop}])
    assert made["properties"] == {"p": schema}
    assert made["required"] == ([] if "default" in prop else ["p"])


@pytest.mark.parametrize(
    "prop",
    [
        {"type": "app", "app": "slack"},
        {"type": "alert"},
        {"type": "dir"},
        {"type": "$.service.db"},
        {"type": "$.interface.timer"},
        {"type": "data_store"},
        {"type": "something new"},
        {"type": "string", "hidden": True},
        {"type": "string", "disabled": True},
        {"type": "string", "readOnly": True},
        {"type": "string", "secret": True},
        {"type": 5},
        {},
    ],
)
def test_what_is_not_for_a_model_is_not_shown_to_one(prop):
    assert schema_of([{"name": "p", **prop}]) == {"type": "object", "properties": {}, "required": []}


def test_a_prop_that_others_depend_on_leaves_the_object_open():
    assert schema_of([{"name": "p", "type": "string", "reloadProps": True}])["additionalProperties"] is True


@pytest.mark.parametrize(
    ("prop", "given", "sent"),
    [
        ({"type": "string"}, {"p": "a"}, {"p": "a"}),
        ({"type": "integer", "default": 3}, {}, {"p": 3}),
        ({"type": "integer", "default": 3}, {"p": 4}, {"p": 4}),
        ({"type": "alert", "default": "x"}, {}, {}),
        ({"type": "string", "withLabel": True}, {"p": "a"}, {"p": {"__lv": {"label": "a", "value": "a"}}}),
        ({"type": "string", "withLabel": True, "options": [LABELLED]}, {"p": "r"}, {"p": {"__lv": LABELLED}}),
        ({"type": "string", "withLabel": True, "default": {"__lv": LABELLED}}, {}, {"p": {"__lv": LABELLED}}),
        ({"type": "string[]", "withLabel": True}, {"p": ["a"]}, {"p": [{"__lv": {"label": "a", "value": "a"}}]}),
        (
            {"type": "sql"},
            {"p": "select 1"},
            {"p": {"value": "select 1", "query": "select 1", "params": [], "usePreparedStatements": False}},
        ),
    ],
)
def test_arguments_are_sent_in_the_form_of_their_props(prop, given, sent):
    assert configured([{"name": "p", **prop}], given) == sent


def test_an_action_is_run_with_the_newest_healthy_account_and_its_defaults(pipedream):
    assert client(pipedream).call_tool("slack-send", {"text": "hi"}) == {"ok": True}
    (ran,) = pipedream.bodies("/v1/connect/proj_1/actions/run")
    assert ran == {
        "id": "slack-send",
        "version": "0.3.1",
        "external_user_id": "ada",
        "configured_props": {"text": "hi", "times": 1, "slack": {"authProvisionId": "apn_new"}},
    }


def test_a_tool_shows_neither_accounts_nor_notes(pipedream):
    (tool,) = ExternalToolProvider(client(pipedream)).as_tools()
    assert list(tool.input_schema["properties"]) == ["text", "times"]
    assert (tool.name, tool.effect) == ("slack-send", "write")


def test_everything_there_is_is_never_listed(pipedream):
    with pytest.raises(ValueError, match="name the apps to take, or search"):
        client(pipedream, apps=())
    assert [spec["name"] for spec in client(pipedream, apps=(), search="now").list_tools()] == ["plain-now"]


def test_a_user_without_an_account_is_sent_to_connect_that_app(pipedream):
    with pytest.raises(AuthorizationNeededError, match="allow access to slack") as raised:
        client(pipedream, user_id="bob").call_tool("slack-send", {"text": "hi"})
    assert raised.value.url.endswith("?token=ctok_bob&connectLink=true&app=slack")


@pytest.mark.parametrize("key", ["slack", "hint"])
def test_a_call_cannot_choose_an_account_or_set_what_is_not_shown(pipedream, key):
    with pytest.raises(ExternalToolError, match=f"does not let {key} of slack-send be set by a call"):
        client(pipedream).call_tool("slack-send", {"text": "hi", key: {"authProvisionId": "apn_of_somebody_else"}})
    assert pipedream.bodies("/v1/connect/proj_1/actions/run") == []


def test_accounts_that_no_longer_work_count_as_none(pipedream):
    pipedream.accounts = [{"id": "a", "dead": True}, {"id": "b", "healthy": False}, {"id": None}]
    with pytest.raises(AuthorizationNeededError):
        client(pipedream).call_tool("slack-send", {"text": "hi"})


def test_an_error_among_the_observations_is_a_failure(pipedream):
    observed = [
        {"k": "console.log", "msg": "x", "ts": 1},
        {"k": "error", "err": {"name": "E", "message": "no channel"}},
    ]
    pipedream.outcome = {"os": observed, "ret": None}
    with pytest.raises(ExternalToolError, match="Pipedream could not run slack-send: no channel"):
        client(pipedream).call_tool("slack-send", {"text": "hi"})


def test_an_action_that_returns_nothing_gives_what_it_exported(pipedream):
    pipedream.outcome = {"exports": {"$summary": "sent"}, "os": [], "ret": None}
    assert client(pipedream).call_tool("slack-send", {"text": "hi"}) == {"$summary": "sent"}


# -- props that depend on others


def test_props_that_depend_on_one_are_looked_up_and_asked_for(pipedream):
    with pytest.raises(ExternalToolError, match=r"needs more arguments for sheets-add: colA \(Column A\)$"):
        client(pipedream).call_tool("sheets-add", {"sheet": "s1"})
    assert pipedream.bodies("/v1/connect/proj_1/actions/run") == []


def test_props_that_depend_on_one_are_sent_with_the_id_they_belong_to(pipedream):
    client(pipedream).call_tool("sheets-add", {"sheet": "s1", "colA": "x"})
    (ran,) = pipedream.bodies("/v1/connect/proj_1/actions/run")
    assert ran["dynamic_props_id"] == "dyp_1"
    assert ran["configured_props"] == {"sheet": "s1", "colA": "x", "google": {"authProvisionId": "apn_new"}}


def test_props_that_cannot_be_looked_up_are_a_failure(pipedream):
    with pytest.raises(ExternalToolError, match=r"could not prepare sheets-add: .*no such sheet"):
        client(pipedream).call_tool("sheets-add", {"sheet": "gone"})


# -- tokens


def test_a_token_serves_many_calls(pipedream):
    asking = client(pipedream)
    for _ in range(3):
        asking.call_tool("plain-now", {})
    assert pipedream.tokens == 1


def test_a_token_that_was_taken_back_is_replaced_once(pipedream):
    asking = client(pipedream)
    asking.call_tool("plain-now", {})
    pipedream.taken_back.add("Bearer token-number-1")
    assert asking.call_tool("plain-now", {}) == {"ok": True}
    assert pipedream.tokens == 2
    pipedream.taken_back |= {"Bearer token-number-2", "Bearer token-number-3"}
    with pytest.raises(ExternalToolError, match="HTTP 401"):
        asking.call_tool("plain-now", {})


def test_no_token_is_an_error_that_shows_no_secret(server):
    server.say({"access_token": None})
    with pytest.raises(ExternalToolError, match="gave no access token") as raised:
        client(server).list_tools()
    assert KEY not in str(raised.value)


def test_a_pinned_version_is_run_in_place_of_the_listed_one(pipedream):
    client(pipedream, version="0.2.0").call_tool("slack-send", {"text": "hi"})
    assert pipedream.bodies("/v1/connect/proj_1/actions/run")[0]["version"] == "0.2.0"
