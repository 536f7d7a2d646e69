"""Arcade's own ways: value schemas, offsets, errors with hints, consent."""

from __future__ import annotations

import pytest
from hosted_servers import KEY, Arcade

from toolcrib import ArcadeClient, AuthorizationNeededError, ExternalToolError, ExternalToolProvider
from toolcrib.sources.arcade import _value_schema


@pytest.fixture
def arcade(running):
    server = Arcade()
    server.url = running(server.app)
    return server


def client(server, **options) -> ArcadeClient:
    return ArcadeClient(KEY, **{"user_id": "ada", "base_url": server.url, **options})


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ({"val_type": "string"}, {"type": "string"}),
        ({"val_type": "string", "enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"val_type": "string", "enum": None}, {"type": "string"}),
        ({"val_type": "integer"}, {"type": "integer"}),
        ({"val_type": "integer", "enum": ["1"]}, {"type": "integer"}),
        ({"val_type": "number"}, {"type": "number"}),
        ({"val_type": "boolean"}, {"type": "boolean"}),
        ({"val_type": "json"}, {"type": "object"}),
        ({"val_type": "array", "inner_val_type": "integer"}, {"type": "array", "items": {"type": "integer"}}),
        (
            {"val_type": "array", "inner_val_type": "string", "enum": ["a"]},
            {"type": "array", "items": {"type": "string", "enum": ["a"]}},
        ),
        ({"val_type": "array", "inner_val_type": "json"}, {"type": "array", "items": {"type": "object"}}),
        ({"val_type": "array"}, {"type": "array"}),
        ({"val_type": "something new"}, {}),
        ({"val_type": 5}, {}),
        ({}, {}),
    ],
)
def test_a_value_schema_becomes_json_schema(value, schema):
    assert _value_schema(value) == schema


def test_a_tool_has_a_schema_of_its_parameters(arcade):
    provider = ExternalToolProvider(client(arcade), include=["Github.Star"])
    (tool,) = provider.as_tools()
    assert tool.input_schema == {
        "type": "object",
        "properties": {
            "repo": {"type": "string", "description": "Which one."},
            "labels": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["repo"],
    }
    assert [query["offset"] for query in arcade.bodies("/v1/tools")] == ["0", "100"]


def test_toolkits_are_listed_one_by_one(arcade):
    assert client(arcade, toolkits=["Slack"]).list_tools() == []
    assert client(arcade, toolkits=()).list_tools() == []
    assert [query["toolkit"] for query in arcade.bodies("/v1/tools")] == ["Slack"]


@pytest.mark.parametrize(("version", "ran"), [(None, "1.2.0"), ("1.1.0", "1.1.0")])
def test_the_version_that_was_listed_or_pinned_is_the_one_that_runs(arcade, version, ran):
    client(arcade, version=version).call_tool("Github.Star", {"repo": "a/b"})
    assert arcade.bodies("/v1/tools/execute") == [
        {"tool_name": "Github.Star", "user_id": "ada", "tool_version": ran, "input": {"repo": "a/b"}}
    ]


def test_a_failure_says_what_to_do_and_when(arcade):
    arcade.success = False
    arcade.output = {
        "error": {
            "message": "too many stars",
            "kind": "UPSTREAM_RUNTIME_RATE_LIMIT",
            "can_retry": True,
            "retry_after_ms": 1500,
            "additional_prompt_content": "star fewer",
            "stacktrace": None,
        }
    }
    with pytest.raises(ExternalToolError) as raised:
        client(arcade).call_tool("Github.Star", {"repo": "a/b"})
    assert str(raised.value) == (
        "Arcade could not run Github.Star: too many stars; star fewer; it may be called again in 1.5 seconds"
    )
    assert (raised.value.retryable, raised.value.retry_after) == (True, 1.5)


@pytest.mark.parametrize("by_status", [True, False])
def test_consent_is_asked_for_however_its_lack_is_told(arcade, by_status):
    arcade.refuses_by_status = by_status
    with pytest.raises(AuthorizationNeededError, match="allow access to github") as raised:
        client(arcade, user_id="bob").call_tool("Github.Star", {"repo": "a/b"})
    assert raised.value.url == "https://arcade.example/consent/bob"


def test_a_refusal_that_no_consent_would_lift_stays_what_it_is(arcade):
    arcade.success, arcade.output = False, {"error": {"message": "no", "kind": "TOOL_REQUIREMENTS_NOT_MET"}}
    with pytest.raises(ExternalToolError, match=r"could not run Github\.Star: no") as raised:
        client(arcade).call_tool("Github.Star", {"repo": "a/b"})
    assert not isinstance(raised.value, AuthorizationNeededError)
