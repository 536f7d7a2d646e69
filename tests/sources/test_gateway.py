"""Specs and the provider, with clients of all shapes."""

from __future__ import annotations

import asyncio
import sys
import threading
import warnings

import pytest

from toolcrib import (
    Agent,
    ExternalToolClient,
    ExternalToolError,
    ExternalToolProvider,
    ExternalToolSpec,
    JsonHttpExternalToolClient,
    MissingExtraError,
    ScriptedEngine,
    ToolCall,
    ToolContext,
    ToolcribWarning,
    ToolProgress,
    ToolResponse,
    Toolset,
    acall_tools,
    call_tools,
    dispatch,
    gateway_app,
)
from toolcrib.limits import MAX_NAME_CHARS

EMPTY = {"type": "object", "properties": {}}
QUERY = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}


class Catalogue:
    """A client that answers every call with what it was asked."""

    def __init__(self, *specs) -> None:
        self.specs = specs
        self.listed = 0

    def list_tools(self):
        self.listed += 1
        return list(self.specs)

    def call_tool(self, name, arguments):
        return {"name": name, "arguments": dict(arguments)}


def named(*names) -> Catalogue:
    return Catalogue(*({"name": name, "parameters": QUERY} for name in names))


def names(client, **options) -> list[str]:
    return [tool.name for tool in ExternalToolProvider(client, **options).as_tools()]


def answer(client, name="a", arguments="{}", **options):
    tools = Toolset([ExternalToolProvider(client, **{"specs": [{"name": "a"}], **options})])
    (result,) = call_tools([ToolCall("1", name, arguments)], tools)
    return result


# -- specs


@pytest.mark.parametrize("wrap", [lambda flat: flat, lambda flat: {"type": "function", "function": flat}])
def test_a_spec_is_read_flat_and_in_openais_shape(wrap):
    raw = {"name": "search", "description": "Find.", "parameters": QUERY, "strict": True}
    assert ExternalToolSpec.from_mapping(wrap(raw)) == ExternalToolSpec("search", "Find.", QUERY, strict=True)


def test_what_a_spec_leaves_out_has_defaults():
    for spec in (ExternalToolSpec.from_mapping({"name": "a", "description": None}), ExternalToolSpec("a")):
        assert (spec.description, spec.strict) == ("Call external tool a.", False)
        assert spec.parameters == EMPTY


def test_a_schema_under_mcps_name_is_read_too():
    assert ExternalToolSpec.from_mapping({"name": "a", "inputSchema": QUERY}).parameters == QUERY


@pytest.mark.parametrize("raw", [{}, {"name": ""}, {"name": "  "}, {"name": 3}, {"function": {}}, {"name": None}])
def test_a_spec_without_a_name_is_a_value_error(raw):
    with pytest.raises(ValueError, match="must include a non-empty string name"):
        ExternalToolSpec.from_mapping(raw)


@pytest.mark.parametrize(
    "raw", [{"description": 1}, {"parameters": [1]}, {"strict": "yes"}, {"output_schema": "x"}, {"parameters": "{}"}]
)
def test_a_spec_that_holds_something_else_is_a_value_error(raw):
    with pytest.raises(ValueError, match="of external tool 'a' must be"):
        ExternalToolSpec.from_mapping({"name": "a", **raw})


def test_what_is_no_mapping_is_a_value_error():
    with pytest.raises(ValueError, match="must be a mapping, not str"):
        ExternalToolSpec.from_mapping("search")


@pytest.mark.parametrize(
    ("raw", "effect"),
    [
        ({}, None),
        ({"effect": "read"}, "read"),
        ({"effect": "nonsense"}, None),
        ({"annotations": {"readOnlyHint": True}}, "read"),
        ({"annotations": {"destructiveHint": True}}, "destructive"),
        ({"annotations": {"destructiveHint": False, "idempotentHint": True}}, "idempotent"),
        ({"annotations": {"destructiveHint": False}}, "write"),
        ({"annotations": "x"}, None),
    ],
)
def test_the_effect_is_what_the_catalogue_claims(raw, effect):
    assert ExternalToolSpec.from_mapping({"name": "a", **raw}).effect == effect


# -- tools


def test_each_remote_tool_is_a_tool_with_its_own_schema_and_origin():
    (tool,) = ExternalToolProvider(named("search"), name_prefix="ext.").as_tools()
    assert (tool.name, tool.original_name, tool.origin) == ("ext.search", "search", "gateway:Catalogue")
    assert tool.input_schema == QUERY
    assert tool.is_async
    assert tool.call({"q": "x"}) == {"name": "search", "arguments": {"q": "x"}}


def test_the_origin_of_an_http_gateway_is_its_host():
    client = JsonHttpExternalToolClient("https://ada:pw@gateway.example:8443/v1")
    assert ExternalToolProvider(client, specs=[]).origin == "gateway:gateway.example:8443"


@pytest.mark.parametrize(("strict", "expected"), [(None, [True, False]), (True, [True, True]), (False, [False, False])])
def test_strict_is_each_specs_own_unless_it_is_given(strict, expected):
    client = Catalogue({"name": "a", "strict": True}, {"name": "b"})
    tools = ExternalToolProvider(client, strict=strict).as_tools()
    assert [tool.strict for tool in tools] == expected
    assert [tool.input_schema.get("additionalProperties") is False for tool in tools] == expected


def test_given_specs_are_used_without_asking_the_client():
    client = named("other")
    assert names(client, specs=(spec for spec in [ExternalToolSpec("a"), {"name": "b"}])) == ["a", "b"]
    assert client.listed == 0


def test_a_given_spec_without_a_name_is_a_value_error():
    with pytest.raises(ValueError, match="non-empty string name"):
        ExternalToolProvider(named(), specs=[{}])


def test_the_tools_are_a_snapshot_until_somebody_refreshes():
    client = named("a")
    tools = Toolset([ExternalToolProvider(client)])
    client.specs = ({"name": "a", "description": "New."}, {"name": "b"})
    assert tools.names == ("a",)
    changes = tools.refresh()
    assert (changes.added, changes.changed) == (("b",), ("a",))


def test_malformed_tools_are_left_out_with_one_warning_and_the_rest_come():
    client = Catalogue(
        {"name": "a"},
        {"no": "name"},
        "text",
        {"name": "list", "parameters": {"type": "array"}},
        {"name": "wrong", "parameters": {"type": "object", "properties": {"x": {"type": "strin"}}}},
        {"name": "n" * (MAX_NAME_CHARS + 1)},
        {"name": "b"},
    )
    with pytest.warns(ToolcribWarning, match=r"gateway:Catalogue: left out a nameless tool") as warned:
        assert names(client) == ["a", "b"]
    assert len(warned) == 1
    assert "'wrong'" in str(warned[0].message)


def test_a_description_cannot_steer_a_terminal_or_hide_text():
    client = Catalogue({"name": "a", "description": "Fi\x1b[31mnd\U000e0041.", "parameters": QUERY})
    assert ExternalToolProvider(client).as_tools()[0].description == "Find."


# -- filters


def test_include_and_exclude_are_exact_on_original_names_before_the_prefix():
    client = named("search", "fetch", "summarise", "delete_user", "drop_table")
    options = {"include": ["search", "fetch", "summarise"], "exclude": ["delete_user", "drop_table"]}
    assert names(client, name_prefix="ext.", **options) == ["ext.search", "ext.fetch", "ext.summarise"]


def test_exclude_wins_over_include():
    assert names(named("a", "b"), include=["a", "b"], exclude=["b"]) == ["a"]


def test_an_empty_include_exposes_nothing_and_none_everything():
    assert names(named("a"), include=[]) == []
    assert names(named("a"), include=None, exclude=None) == ["a"]


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"exclude": ["delete_*"]}, "looks like a glob: use deny= for patterns"),
        ({"include": ["ext.delete_user"], "name_prefix": "ext."}, "is the original name of no tool"),
    ],
)
def test_a_filter_that_means_something_else_warns(options, hint):
    with pytest.warns(ToolcribWarning, match=hint):
        names(named("delete_user"), **options)


def test_allow_and_deny_are_globs_on_the_exposed_name():
    client = named("query_a", "query_b", "delete_user")
    options = {"name_prefix": "pipedream.", "allow": "pipedream.query_*", "deny": ["*_b"]}
    assert names(client, **options) == ["pipedream.query_a"]


# -- calls


@pytest.mark.parametrize("arguments", ['{"q": 1}', "{}"])
def test_arguments_are_checked_here_before_anything_is_sent(arguments):
    client = named("a")
    client.call_tool = lambda *_: pytest.fail("it was sent")
    assert answer(client, arguments=arguments, specs=None).kind == "invalid_arguments"


def test_arguments_are_sent_as_they_are_where_checking_is_off():
    result = answer(named("a"), arguments='{"q": 1, "more": true}', specs=None, validate=False)
    assert result.value == {"name": "a", "arguments": {"q": 1, "more": True}}


def test_an_argument_may_have_any_name():
    arguments = {"self": 1, "name": 2, "context": 3, "class": 4, "a-b": 5, "client": 6}
    client = Catalogue({"name": "a"})
    assert ExternalToolProvider(client).as_tools()[0].call(arguments)["arguments"] == arguments


def test_a_failure_of_the_gateway_is_an_answer_with_its_words():
    class Failing(Catalogue):
        def call_tool(self, name, arguments):
            raise ExternalToolError("returned HTTP 500", status=500, body={"error": {"message": "no such row"}})

    result = answer(Failing())
    assert (result.kind, result.text) == ("failed", "Tool 'a' failed: returned HTTP 500: no such row")


def test_a_caller_of_the_tool_gets_status_and_body_of_the_failure():
    class Failing(Catalogue):
        def call_tool(self, name, arguments):
            raise ExternalToolError("returned HTTP 404", status=404, body="gone")

    (tool,) = ExternalToolProvider(Failing(), specs=[{"name": "a"}]).as_tools()
    with pytest.raises(ExternalToolError, match="returned HTTP 404: gone") as raised:
        tool.call({})
    assert (raised.value.status, raised.value.body) == (404, "gone")


def test_a_broken_catalogue_is_an_error_when_the_toolset_is_made():
    class Broken(Catalogue):
        def list_tools(self):
            raise ExternalToolError("the registry is gone")

    with pytest.raises(ExternalToolError, match="the registry is gone"):
        Toolset([ExternalToolProvider(Broken())])


# -- clients of all shapes


def test_list_tools_may_be_a_generator_async_or_an_async_generator():
    class Yields(Catalogue):
        def list_tools(self):
            yield {"name": "a"}
            yield ExternalToolSpec("b")

    class Async(Catalogue):
        async def list_tools(self):
            await asyncio.sleep(0)
            return [{"name": "a"}, {"name": "b"}]

    class AsyncYields(Catalogue):
        async def list_tools(self):
            yield {"name": "a"}
            yield {"name": "b"}

    for kind in (Yields, Async, AsyncYields):
        assert names(kind()) == ["a", "b"]


@pytest.mark.anyio
async def test_an_async_call_is_preferred_and_runs_on_the_callers_loop():
    loops = []

    class Both(Catalogue):
        async def acall_tool(self, name, arguments):
            loops.append(asyncio.get_running_loop())
            return "async"

    tools = Toolset([ExternalToolProvider(Both(), specs=[{"name": "a"}])])
    (result,) = await acall_tools([ToolCall("1", "a")], tools)
    assert result.text == "async"
    assert loops == [asyncio.get_running_loop()]


@pytest.mark.anyio
async def test_a_sync_call_stays_off_the_callers_loop():
    threads = []

    class Sync(Catalogue):
        def call_tool(self, name, arguments):
            threads.append(threading.current_thread())
            return "sync"

    tools = Toolset([ExternalToolProvider(Sync(), specs=[{"name": "a"}])])
    assert (await dispatch.acall(ToolCall("1", "a"), tools)).text == "sync"
    assert threads != [threading.current_thread()]


def test_an_async_call_tool_works_without_an_acall_tool():
    class Async(Catalogue):
        async def call_tool(self, name, arguments):
            return name

    assert answer(Async()).text == "a"


@pytest.mark.parametrize("colour", ["sync", "async", "acall_tool"])
def test_a_call_method_with_a_context_parameter_is_given_the_context(colour):
    class Sync(Catalogue):
        def call_tool(self, name, arguments, *, context=None):
            return {"user": context.deps, "id": context.call_id}

    class Async(Catalogue):
        async def call_tool(self, name, arguments, context):
            return {"user": context.deps, "id": context.call_id}

    class Preferred(Catalogue):
        async def acall_tool(self, name, arguments, *, context=None):
            return {"user": context.deps, "id": context.call_id}

    client = {"sync": Sync, "async": Async, "acall_tool": Preferred}[colour]({"name": "a"})
    tools = Toolset([ExternalToolProvider(client)])
    (result,) = call_tools([ToolCall("7", "a")], tools, context=ToolContext(deps="ada"))
    assert result.value == {"user": "ada", "id": "7"}


def test_a_tool_that_takes_an_argument_named_context_is_not_given_another():
    catalogue = Catalogue({"name": "a", "parameters": {"type": "object", "properties": {"context": {}}}})
    assert answer(catalogue, arguments='{"context": 1}').value == {"name": "a", "arguments": {"context": 1}}


def test_a_client_that_yields_tells_progress():
    class Yields(Catalogue):
        def call_tool(self, name, arguments):
            yield "one "
            yield "two"

    class AsyncYields(Catalogue):
        async def acall_tool(self, name, arguments):
            yield "one "
            yield ToolProgress("", "", 5, 10, "half")
            yield "two"

    for kind, told in ((Yields, ["one ", "two"]), (AsyncYields, ["one ", "half", "two"])):
        events = []
        tools = Toolset([ExternalToolProvider(kind(), specs=[{"name": "a"}])])
        (result,) = call_tools([ToolCall("1", "a")], tools, on_event=events.append)
        assert result.text == "one two"
        assert [event.message for event in events if isinstance(event, ToolProgress)] == told


def test_a_response_among_yielded_values_is_the_outcome():
    class Ends(Catalogue):
        def __init__(self, response):
            self.response = response

        async def acall_tool(self, name, arguments):
            yield "working"
            yield self.response
            pytest.fail("it went on")

    assert answer(Ends(ToolResponse(success=True, data={"n": 1}))).value == {"n": 1}
    failed = answer(Ends(ToolResponse(success=False, message="no rows")))
    assert (failed.kind, failed.text) == ("failed", "Tool 'a' failed: no rows")


def test_a_client_needs_only_the_two_methods():
    assert isinstance(named(), ExternalToolClient)
    with pytest.raises(TypeError, match=r"needs list_tools and call_tool\(\), which object has not"):
        ExternalToolProvider(object())


# -- with an agent


def test_an_agent_takes_a_gateway_among_its_tools_and_asks_it_once():
    client = named("search")
    engine = ScriptedEngine([[("ext.search", {"q": "x"}), ("ext.search", {"q": "y"})], "Done."])
    agent = Agent(engine, tools=[ExternalToolProvider(client, name_prefix="ext.")])
    outcome = agent.run("Go.")
    assert outcome.ok
    assert outcome.text() == "Done."
    assert client.listed == 1
    shown = [message.content for message in outcome.messages if message.role == "tool"]
    assert shown == ['{"name":"search","arguments":{"q":"x"}}', '{"name":"search","arguments":{"q":"y"}}']


def test_two_gateways_with_the_same_tool_do_not_replace_each_other_silently():
    class Other(Catalogue):
        name = "other"

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="gateway:Catalogue, one of gateway:other"):
            Toolset([ExternalToolProvider(named("a")), ExternalToolProvider(Other({"name": "a"}))])


def test_a_missing_package_is_an_error_that_names_its_extra(monkeypatch):
    for package in ("httpx2", "starlette", "starlette.applications"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"toolcrib\[http\]"):
        JsonHttpExternalToolClient("https://gateway.example")
    with pytest.raises(MissingExtraError, match=r"toolcrib\[serve\]"):
        gateway_app([])
