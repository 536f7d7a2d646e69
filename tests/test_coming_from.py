"""What `docs/coming-from.md` says toolcrib does, row by row."""

from __future__ import annotations

import functools
import threading
import warnings

import pytest

from toolcrib import (
    Agent,
    NotSerializableError,
    ProcessExecutor,
    ScriptedEngine,
    ScriptTool,
    Tool,
    ToolArgumentError,
    ToolCall,
    ToolContext,
    ToolcribWarning,
    ToolExecutionError,
    ToolNameError,
    ToolParameter,
    ToolResponse,
    Toolset,
    ToolSignatureError,
    builtin,
    call_tools,
    read_docs_tools,
    tool,
    tool_from_function,
)
from toolcrib.formats import openai_chat, xml


def answer(func, arguments="{}", **options):
    (result,) = call_tools([ToolCall("1", "f", arguments)], Toolset([Tool(func, name="f", **options)]))
    return result


# -- LazyBridge


def test_a_tool_without_a_function_is_shown_but_not_called():
    declared = Tool(name="far", description="Elsewhere.")
    assert declared.definition()["name"] == "far"
    with pytest.raises(ToolExecutionError, match="declared"):
        declared.call({})


def test_the_description_ends_at_the_first_section_of_the_docstring():
    def f(a: int) -> int:
        """Do it.

        At length.

        Args:
            a: A number.
        """
        return a

    assert Tool(f).description == "Do it.\n\nAt length."


def test_a_function_without_hints_is_shown_with_a_warning_that_names_the_parameter():
    def f(a, b=1): ...

    with pytest.warns(ToolcribWarning, match="'a'"):
        made = Tool(f)
    assert set(made.input_schema["properties"]) == {"a", "b"}
    with pytest.raises(ToolSignatureError, match="'a'"):
        tool(f)


def test_optional_arguments_survive_strict_mode():
    def f(a: int, b: int = 2) -> int:
        return a + b

    tools = Toolset([Tool(f, name="f", strict=True)])
    function = openai_chat.tools(tools)[0]["function"]
    assert function["parameters"]["required"] == ["a", "b"]
    reply = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1, "b": null}'}}]
    assert call_tools(openai_chat.calls(reply, tools), tools)[0].value == 3


def test_the_later_of_two_tools_wins_with_a_warning():
    first, second = Tool(lambda: 1, name="f"), Tool(lambda: 2, name="f")
    with pytest.warns(ToolcribWarning, match="'f'"):
        tools = Toolset([first, second])
    assert tools["f"] is second


def test_a_value_that_is_no_envelope_is_taken_as_any_other():
    engine = ScriptedEngine([[("f", {})], "done"])
    outcome = Agent(engine, [Tool(lambda: {"a": 1}, name="f", returns_envelope=True)]).run("x")
    assert outcome.ok
    assert outcome.messages[-2].content == '{"a":1}'


def test_defaults_of_a_foreign_schema_are_not_filled_in():
    schema = {"type": "object", "properties": {"unit": {"enum": ["c", "f"], "default": "c"}}}
    assert Tool.from_schema("f", "", schema, lambda **given: given).call({}) == {}


@pytest.mark.parametrize("mode", ["auto", "llm", "hybrid"])
def test_modes_that_do_not_exist_or_have_no_model_are_refused(mode):
    with pytest.raises(ValueError, match=mode):
        Tool(lambda: 1, name="f", mode=mode)


# -- mirai


def test_sync_functions_run_in_worker_threads():
    assert answer(lambda: threading.current_thread() is threading.main_thread()).value is False


def test_a_decorated_method_works_through_its_instance():
    class Weather:
        def __init__(self, key: str) -> None:
            self.key = key

        @tool
        def current(self, city: str) -> str:
            """Get the weather."""
            return f"{city} by {self.key}"

    made = Tool.wrap(Weather("k").current)
    assert list(made.input_schema["properties"]) == ["city"]
    assert made.call({"city": "Oslo"}) == "Oslo by k"


def test_a_context_parameter_is_injected_and_hidden():
    def f(context: ToolContext) -> str:
        return context.call_id

    assert Tool(f).input_schema["properties"] == {}
    assert answer(f).value == "1"


def test_a_function_wrapped_by_its_author_keeps_its_schema():
    def logged(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            return fn(*args, **kwargs)

        return wrapper

    @logged
    def f(a: int) -> int:
        return a

    assert tool_from_function(f).input_schema["properties"] == {"a": {"type": "integer"}}


def test_the_instructions_of_a_skill_join_the_system_prompt_with_its_tools():
    class Notes:
        instructions = "Write it down."

        def get_tools(self) -> list[Tool]:
            return [Tool(lambda: 1, name="note")]

    agent = Agent(ScriptedEngine(["yes"] * 2), [Notes()], system="You are Ada.")
    assert agent.run("x").messages[0].content == "You are Ada.\n\nWrite it down."
    assert agent.run("x", tools=Toolset([Notes()]).select(deny="note")).messages[0].content == "You are Ada."


def test_documents_are_listed_read_and_searched_by_three_tools(tmp_path):
    assert Toolset(read_docs_tools(tmp_path)).names == ("list_documents", "read_document", "search_documents")


# -- jazzmine


def test_the_function_is_the_only_positional_argument():
    with pytest.raises(TypeError):
        Tool("name", "description", [])  # type: ignore[arg-type, misc]  # what is tested


def test_a_tool_need_not_return_a_response():
    assert answer(lambda: 5).text == "5"


def test_a_failure_needs_a_message():
    with pytest.raises(ValueError, match="message"):
        ToolResponse(success=False)


def test_a_source_is_one_of_three():
    with pytest.raises(ValueError, match="source"):
        ToolParameter("a", "int", source="sky")


def test_text_in_the_prompt_is_escaped():
    assert "a &lt; b" in Tool(name="f", description="a < b").build_prompt()


def test_a_response_is_xml_in_a_prompt_and_json_elsewhere():
    result = answer(lambda: ToolResponse(success=False, message="No stock."))
    assert result.kind == "failed"
    assert openai_chat.results([result])[0]["content"] == '{"success":false,"message":"No stock."}'
    assert xml.results([result])[0].startswith('<tool_response success="False">\n  <message>No stock.</message>')


def test_data_that_is_not_json_is_told_with_its_path_and_in_a_call_answered():
    response = ToolResponse(success=True, data={"rows": [1, object()]})
    with pytest.raises(NotSerializableError, match=r"data\.rows\[1\]"):
        response.to_dict()
    assert answer(lambda: response).kind == "failed"


def test_the_functions_own_default_is_what_is_used():
    declared = [ToolParameter("warehouse", "str", default="New York")]
    assert Tool(lambda **given: given, name="f", parameters=declared).call({}) == {}


def test_tools_behind_one_wall_have_names_of_their_own():
    with ProcessExecutor() as wall, pytest.raises(ToolNameError, match="two tools are named"):
        wall.tools(
            [Tool(called, name="f", parameters={"type": "object"}) for called in (functools.reduce, functools.wraps)]
        )


def test_a_script_calls_tools_and_its_last_expression_is_its_answer():
    script = ScriptTool([Tool(lambda a=1: a + 1, name="more")])
    assert script.run("[more(a=n) for n in range(3)]").value == [1, 2, 3]


def test_source_and_display_name_are_told_in_a_prompt_and_to_no_provider():
    facts = [ToolParameter("a", source="history", display_name="Number", examples=[3])]
    made = Tool(lambda a=1: a, name="f", parameters=facts)
    assert "<source>history</source>" in made.build_prompt()
    assert "<display_name>Number</display_name>" in made.build_prompt()
    assert [(p.source, p.display_name, p.examples) for p in made.parameters] == [("history", "Number", [3])]
    assert "Number" not in str(openai_chat.tools(Toolset([made])))
    assert "history" not in str(openai_chat.tools(Toolset([made])))


def test_options_are_enforced():
    declared = [ToolParameter("size", "str", options=["S", "M"], required=True)]
    with pytest.raises(ToolArgumentError, match="size"):
        Tool(lambda size: size, name="f", parameters=declared).call({"size": "XL"})


@pytest.mark.parametrize(
    ("text", "schema"),
    [("int", {"type": "integer"}), ("List[str]", {"type": "array", "items": {"type": "string"}}), ("a colour", {})],
)
def test_a_type_that_reads_as_one_is_enforced_and_any_other_is_any(text, schema):
    assert Tool(name="f", parameters=[ToolParameter("a", text)]).input_schema["properties"]["a"] == schema


# -- AIMU


def test_a_decorated_function_stays_itself():
    def f(a: int) -> int:
        return a

    assert tool(name="other")(f) is f
    assert Toolset([f]).names == ("other",)


def test_an_unknown_tool_is_told_with_the_nearest_names():
    (result,) = call_tools([ToolCall("1", "letter_count", "{}")], Toolset([Tool(lambda: 1, name="letter_counter")]))
    assert result.text.startswith("Tool 'letter_count' not found.")
    assert "letter_counter" in result.text


def test_every_problem_has_a_line_of_its_own():
    def f(a: int, b: int) -> int:
        return a + b

    with pytest.raises(ToolArgumentError) as raised:
        Tool(f).call({"a": "five", "zz": 1})
    assert len(raised.value.problems) == 3


def test_plain_functions_are_validated_too():
    def f(a: int) -> int:
        return a

    assert answer(f, '{"a": "five"}').kind == "invalid_arguments"


def test_positional_only_parameters_are_refused():
    def f(a: int, /) -> int:
        return a

    with pytest.raises(ToolSignatureError, match="position"):
        tool(f)


def test_an_async_tool_runs_on_the_sync_surface_unless_that_is_refused():
    async def f() -> str:
        return "done"

    def script():
        return ScriptedEngine([[("f", {})], "done"])

    assert Agent(script(), [f]).run("x").messages[-2].content == "done"
    with pytest.raises(ValueError, match="arun"):
        Agent(script(), [f], async_tools="raise").run("x")


def test_tools_of_one_run_leave_the_agents_own_alone():
    own = [Tool(lambda: 1, name="own")]
    engine = ScriptedEngine(["a", "b", "c"])
    agent = Agent(engine, own)
    agent.run("x", tools=[Tool(lambda: 2, name="other")])
    agent.run("x", tools=[])
    agent.run("x")
    assert [request["tools"] for request in engine.requests] == [["other"], [], ["own"]]
    assert agent.tools == own


def test_calls_of_one_turn_run_at_the_same_time():
    both = threading.Barrier(2)
    tools = Toolset([Tool(lambda: both.wait(timeout=10) >= 0, name="f")])
    results = call_tools([ToolCall("1", "f"), ToolCall("2", "f")], tools)
    assert [result.value for result in results] == [True, True]


def test_a_failure_leaves_the_other_calls_alone():
    def fails() -> None:
        raise ValueError("kaput")

    calls = [ToolCall("1", "fails"), ToolCall("2", "works")]
    results = call_tools(calls, Toolset([fails, Tool(lambda: 1, name="works")]))
    assert [result.kind for result in results] == ["failed", "ok"]


def test_containers_are_json():
    assert answer(lambda: {"a": (1, None)}).text == '{"a":[1,null]}'


def test_the_same_function_twice_is_no_collision():
    def f() -> None: ...

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(Toolset([f, f])) == 1


def test_all_tools_reach_nothing_of_this_machine():
    assert not set(Toolset([builtin.docs, builtin.files]).names) & set(Toolset(builtin.ALL_TOOLS).names)
    assert {tool.effect for tool in Toolset(builtin.ALL_TOOLS)} == {"read"}
