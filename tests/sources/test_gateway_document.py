"""What LazyTools documents of its external tool gateway, line by line, over HTTP and through an agent."""

from __future__ import annotations

import inspect
import subprocess
import sys
import threading

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from toolcrib import (
    Agent,
    ExternalToolClient,
    ExternalToolError,
    ExternalToolProvider,
    ExternalToolSpec,
    JsonHttpExternalToolClient,
    RunFinished,
    ScriptedEngine,
    Tool,
    ToolcribWarning,
    ToolFinished,
    Toolset,
    ToolStarted,
)

KEY = "sk-key-of-the-gateway"
NAMES = ["search", "fetch", "summarise", "delete_user", "drop_table", "query_rows", "query_count"]
QUERY = {
    "type": "object",
    "properties": {
        "filter": {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}}}}
    },
}


@pytest.fixture
def gateway(running):
    """A gateway of seven tools that answers with what it was asked; `both` waits for two calls at once."""
    both = threading.Barrier(2)

    async def tools(request):
        wanted = request.headers.get("authorization") == f"Bearer {KEY}"
        listed = [
            {"name": name, "description": f"Does {name}.", "parameters": QUERY} for name in [*NAMES, "both", "fails"]
        ]
        return JSONResponse(listed) if wanted else JSONResponse({"error": "who are you?"}, 401)

    def call(request):
        if request.path_params["name"] == "both":
            both.wait(timeout=10)
        if request.path_params["name"] == "fails":
            return JSONResponse({"error": "out of order"}, 503)
        return JSONResponse({"tool": request.path_params["name"], "key": request.headers["authorization"]})

    routes = [Route("/tools", tools), Route("/tools/{name}/call", call, methods=["POST"])]
    return running(Starlette(routes=routes))


def client(gateway, **options) -> JsonHttpExternalToolClient:
    return JsonHttpExternalToolClient(gateway, **{"api_key": KEY, **options})


def exposed(gateway, **options) -> list[str]:
    return list(Toolset([ExternalToolProvider(client(gateway), **options)]).names)


# -- what it is made of


@pytest.mark.parametrize(
    ("made", "documented"),
    [
        (ExternalToolSpec, {"name": ..., "description": ..., "parameters": ..., "strict": False}),
        (
            JsonHttpExternalToolClient,
            {
                "base_url": ...,
                "api_key": None,
                "headers": None,
                "timeout": 30.0,
                "tools_path": "/tools",
                "call_path_template": "/tools/{name}/call",
            },
        ),
        (
            ExternalToolProvider,
            {"client": ..., "specs": None, "include": None, "exclude": (), "name_prefix": "", "strict": None},
        ),
    ],
)
def test_the_documented_parameters_and_defaults_are_there(made, documented):
    parameters = inspect.signature(made).parameters
    assert [name for name in parameters if name in documented] == list(documented)
    assert {name: parameters[name].default for name, default in documented.items() if default is not ...} == {
        name: default for name, default in documented.items() if default is not ...
    }


def test_a_spec_may_be_made_of_three_words():
    assert ExternalToolSpec("a", "Does a.", {"type": "object"}).strict is False


def test_the_error_is_a_runtime_error_with_status_and_body():
    error = ExternalToolError("no", status=503, body={"error": "no"})
    assert isinstance(error, RuntimeError)
    assert (error.status, error.body) == (503, {"error": "no"})


def test_the_core_does_not_load_it():
    code = "import sys, toolcrib; print([m for m in sys.modules if 'gateway' in m or 'hosted' in m or 'httpx' in m])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_no_marker_is_needed_to_be_a_client():
    class Two:
        def list_tools(self):
            yield ExternalToolSpec("a")

        def call_tool(self, name, arguments):
            return name

    assert isinstance(Two(), ExternalToolClient)
    (tool,) = ExternalToolProvider(Two()).as_tools()
    assert isinstance(tool, Tool)


# -- which tools


def test_the_documented_example_of_filters_and_prefix(gateway):
    filters = {"include": ["search", "fetch", "summarise"], "exclude": ["delete_user", "drop_table"]}
    assert exposed(gateway, name_prefix="ext.", **filters) == ["ext.search", "ext.fetch", "ext.summarise"]


def test_the_surface_is_scoped_to_queries_under_a_prefix(gateway):
    assert exposed(gateway, name_prefix="pipedream.", allow="pipedream.query_*") == [
        "pipedream.query_rows",
        "pipedream.query_count",
    ]


def test_a_pattern_in_an_exact_filter_blocks_nothing_and_says_so(gateway):
    with pytest.warns(ToolcribWarning, match=r"delete_\*"):
        assert "delete_user" in exposed(gateway, exclude=["delete_*"])


def test_an_exact_filter_matches_before_the_prefix(gateway):
    assert exposed(gateway, include=["search"], name_prefix="ext.") == ["ext.search"]
    with pytest.warns(ToolcribWarning, match=r"ext\.search"):
        assert exposed(gateway, include=["ext.search"], name_prefix="ext.") == []


# -- in an agent


def run(gateway, script):
    agent = Agent(ScriptedEngine(script), tools=[ExternalToolProvider(client(gateway), name_prefix="ext.")])
    return agent.run("Go.")


def test_an_agent_of_a_gateway_answers(gateway):
    agent = Agent(ScriptedEngine([[("search", {})], "Found."]), tools=[ExternalToolProvider(client(gateway))])
    assert agent.run("Go.").text() == "Found."


def test_remote_calls_of_one_turn_run_side_by_side(gateway):
    outcome = run(gateway, [[("ext.both", {}), ("ext.both", {})], "Done."])
    assert outcome.ok
    assert [message.content for message in outcome.messages if message.role == "tool"] == [
        '{"tool":"both","key":"Bearer ***"}'
    ] * 2


def test_structured_arguments_arrive_and_wrong_ones_are_told(gateway):
    right, wrong = {"filter": {"tags": ["a"]}}, {"filter": {"tags": [1]}}
    outcome = run(gateway, [[("ext.search", right), ("ext.search", wrong)], "Done."])
    told = [message.content for message in outcome.messages if message.role == "tool"]
    assert told[0].startswith('{"tool":"search"')
    assert "filter.tags[0]" in told[1]


def test_remote_calls_are_counted_and_told_as_events(gateway):
    events = []
    agent = Agent(
        ScriptedEngine([[("search", {}), ("fails", {})], "Done."]),
        tools=[ExternalToolProvider(client(gateway))],
        on_event=events.append,
    )
    outcome = agent.run("Go.")
    assert outcome.metadata.cost_usd == 0.0
    assert [event.call.name for event in events if isinstance(event, ToolStarted)] == ["search", "fails"]
    assert {event.result.call.name: event.result.kind for event in events if isinstance(event, ToolFinished)} == {
        "search": "ok",
        "fails": "failed",
    }
    assert isinstance(events[-1], RunFinished)


def test_a_failure_takes_the_usual_path_of_the_agent(gateway):
    outcome = run(gateway, [[("ext.fails", {})], "Then not."])
    assert outcome.text() == "Then not."
    (told,) = [message.content for message in outcome.messages if message.role == "tool"]
    assert "HTTP 503" in told
    assert "out of order" in told


def test_the_credential_stays_with_the_client(gateway):
    made = client(gateway)
    provider = ExternalToolProvider(made)
    events = []
    engine = ScriptedEngine([[("search", {})], "Done."])
    outcome = Agent(engine, tools=[provider], on_event=events.append).run("Go.")
    tools = provider.as_tools()
    definitions = [tool.definition() for tool in tools]
    shown = f"{made!r} {provider!r} {tools!r} {definitions} {engine.requests} {events} {outcome!r}"
    assert KEY not in shown


def test_a_program_gets_the_json_as_it_came(gateway):
    assert client(gateway).call_tool("search", {}) == {"tool": "search", "key": f"Bearer {KEY}"}
