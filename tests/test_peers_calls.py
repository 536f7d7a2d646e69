"""What users of other tool layers complain about: arguments, errors and time, one row an issue; see `test_peers.py`."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import pytest
from pydantic import BaseModel

from toolcrib import (
    Agent,
    Limits,
    RetryExecutor,
    ScriptedEngine,
    Secret,
    Tool,
    ToolCall,
    ToolExecutionError,
    ToolFinished,
    ToolResponse,
    Toolset,
    acall_tools,
    call_tools,
)

TOLD: set[str] = set()


def table(names, rows):
    """Run a test for each row; rows are named by the issue they answer."""
    TOLD.update(rows)
    return pytest.mark.parametrize(names, list(rows.values()), ids=list(rows))


def answer(made, arguments="{}", **options):
    arguments = arguments if isinstance(arguments, str) else json.dumps(arguments)
    (result,) = call_tools([ToolCall("1", made.name, arguments)], Toolset([made]), **options)
    return result


def obj(**properties):
    return {"type": "object", "properties": properties}


def declared(schema):
    return Tool.from_schema("t", "", schema, lambda **given: given)


def taking(hint):
    def t(x):
        return x

    t.__annotations__ = {"x": hint}
    return Tool(t)


# -- 3: arguments


class User(BaseModel):
    name: str
    age: int | None = None


STRINGS = {"type": "array", "items": {"type": "string"}}


@table(
    ("made", "sent", "received"),
    {
        "fastmcp#932": (taking(User), {"x": '{"name": "ann", "age": 25}'}, User(name="ann", age=25)),
        "fastmcp#4784": (taking(list[int]), {"x": "[1, 2]"}, [1, 2]),
        "apple-mail-fast-mcp#311": (
            declared(obj(to=STRINGS, cc=STRINGS, limit={"type": "integer"})),
            {"to": '["a@b.example"]', "cc": "[]", "limit": "10"},
            {"to": ["a@b.example"], "cc": [], "limit": 10},
        ),
        "hindsight#899": (taking(list[str] | None), {"x": '["tag"]'}, ["tag"]),
        "pocketpaw#1636": (
            declared(obj(spec=obj(hints={"type": "object"}), ops={"type": "array"})),
            {"spec": {"hints": '{"name": "x"}'}, "ops": '[{"op": "add"}]'},
            {"spec": {"hints": {"name": "x"}}, "ops": [{"op": "add"}]},
        ),
        "ogham-mcp#34": (taking(dict[str, Any]), {"x": '{"a": "[1]"}'}, {"a": "[1]"}),
        "code_puppy#506": (
            declared(obj(deep={"type": "boolean"}, limit={"type": "integer"})),
            {"deep": "false", "limit": "100"},
            {"deep": False, "limit": 100},
        ),
    },
)
def test_a_list_or_object_that_a_host_sent_as_a_string_arrives_as_itself(made, sent, received):
    assert answer(made, sent).value == received


@table(
    ("made", "sent"),
    {
        "fastmcp#341": (taking(str), {"x": '{"a": [1, 2]}'}),
        "fastmcp#3931": (taking(str | list[str] | None), {"x": '["a", "b"]'}),
    },
)
def test_a_string_that_looks_like_json_stays_a_string(made, sent):
    assert answer(made, sent).value == sent["x"]
    assert answer(declared(obj(x={"type": ["string", "array", "null"]})), sent).value == sent


def test_a_remote_tool_gets_only_what_fits_its_schema():
    seen: list[Any] = []
    made = Tool.from_schema("t", "", obj(n={"type": "integer"}), lambda **given: seen.append(given))
    for wrong in ("ten", "1.5", True, None, [1]):
        assert answer(made.replace(origin="mcp:x"), {"n": wrong}).kind == "invalid_arguments"
    assert seen == []


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@table(
    ("text", "problem"),
    {
        "llama_index#11921": ("{'a': 1, 'b': 2}", "key must be a string at line 1 column 2"),
        "pydantic-ai#4027": ('{"a": 1, "b": 2,}', "trailing comma at line 1 column 17"),
        "mastra#12823": ('{"a": 1, "b"', "EOF while parsing an object at line 1 column 12"),
        "openai-agents-js#887": ('{"{"a": 1}', "expected `:` at line 1 column 5"),
        "clawbolt#291": ('{"a": 1}{"b": 2}', "trailing characters at line 1 column 9"),
        "tinyagents#68": ('{"a": 1, "b": 2}}', "trailing characters at line 1 column 17"),
    },
)
def test_malformed_json_is_one_answer_that_says_where_and_the_other_calls_run(text, problem):
    turn = [("add", text), ("add", '{"a": 1, "b": 2}')]
    envelope = Agent(ScriptedEngine([turn, "Sorry."]), [add]).run("go")
    first, second = [message.result for message in envelope.messages if message.result]
    assert (first.kind, first.text) == ("invalid_arguments", f"Arguments for 'add' are not valid JSON: {problem}")
    assert (second.kind, second.value) == ("ok", 3)
    assert envelope.text() == "Sorry."


@table("made", {"smolagents#483": taking(list[str])})
def test_a_single_item_where_a_list_is_wanted_is_not_taken_for_its_characters(made):
    result = answer(made, {"x": "abc"})
    assert result.kind == "invalid_arguments"
    assert "- x: input should be a valid " in result.text
    assert 'not "abc"\n' in result.text


# -- 4: errors


@table("password", {"openai-agents#5112": "hunter2-hunter2"})
def test_a_secret_in_an_exception_reaches_neither_the_model_nor_a_listener(password):
    secret = Secret(password)

    def connect() -> str:
        raise ConnectionError(f"postgres://ann:{secret.reveal()}@db.example refused; see /home/ann/app/db/settings.py")

    events: list[Any] = []
    result = answer(Tool(connect), on_event=events.append)
    assert result.kind == "failed"
    assert (
        result.text == "Tool 'connect' failed: ConnectionError: postgres://ann:***@db.example refused; see settings.py"
    )
    told = [event.result for event in events if isinstance(event, ToolFinished)]
    assert password not in repr([(one.text, one.response, one.value) for one in [result, *told]])
    assert len(told) == 1


@table("failing", {"pydantic-ai#5585": ToolResponse(success=False, message="The shop is closed on Sundays.")})
def test_a_failure_in_the_authors_words_is_told_and_not_tried_again(failing):
    runs: list[int] = []

    def buy() -> ToolResponse:
        runs.append(1)
        return failing

    result = answer(Tool(buy, effect="read"), executor=RetryExecutor(attempts=3, wait=0))
    assert (result.kind, len(runs)) == ("failed", 1)
    assert failing.message in result.text


@table(
    ("error", "text"),
    {
        "autogen#5274": (ToolExecutionError("Ask for a smaller page."), "Tool 'f' failed: Ask for a smaller page."),
        "langchain-mcp-adapters#332": (KeyError("id"), "Tool 'f' failed: KeyError: 'id'"),
    },
)
def test_an_error_is_an_answer_for_a_model_and_raises_for_a_caller(error, text):
    def f():
        raise error

    made = Tool(f)
    result = answer(made)
    assert (result.kind, result.text) == ("failed", text)
    with pytest.raises(type(error)) as caught:
        made.call({})
    assert caught.value is error


@table("error", {"inspect_ai#484": TypeError("unsupported operand type(s)")})
def test_a_type_error_in_the_code_of_a_tool_is_its_failure_and_not_the_models(error):
    def f(x: int) -> int:
        raise error

    assert answer(Tool(f), {"x": "wrong"}).kind == "invalid_arguments"
    assert answer(Tool(f), {"x": 1}).text == f"Tool 'f' failed: TypeError: {error}"
    with pytest.raises(TypeError, match="unsupported"):
        Tool(f).call({"x": 1})


async def aadd(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@table("run", {"simonw/llm#1104": Agent.run, "simonw/llm#1483": lambda agent, task: asyncio.run(agent.arun(task))})
def test_an_unknown_name_is_answered_and_the_results_of_the_others_are_kept(run):
    turn = [("aadd", {"a": 1, "b": 2}), ("ad", {}), ("add", {"a": 3, "b": 4})]
    envelope = run(Agent(ScriptedEngine([turn, "Done."]), [add, aadd]), "go")
    results = [message.result for message in envelope.messages if message.result]
    assert [(result.kind, result.value) for result in results] == [("ok", 3), ("not_found", None), ("ok", 7)]
    assert results[1].text.startswith("Tool 'ad' not found. Did you mean 'add'")
    assert envelope.text() == "Done."


@table("limits", {"langchain#34506": Limits(max_turns=2)})
def test_a_limit_answers_every_call_that_waits(limits):
    calls = [("add", {"a": 1, "b": 2})]
    envelope = Agent(ScriptedEngine([calls, calls * 3]), [add], limits=limits).run("go")
    assert envelope.error is not None
    assert envelope.error.type == "max_turns"
    asked = [call.id for message in envelope.messages for call in message.calls]
    assert [message.result.call.id for message in envelope.messages if message.result] == asked
    assert len(set(asked)) == 4


# -- 5: time, threads and order


@table(
    "count",
    {
        "openai-agents#2386": 1,
        "openai-agents#820": 3,
        "openai-agents#2387": 8,
        "python-sdk#1646": 2,
        "agentscope#2361": 5,
    },
)
@pytest.mark.anyio
async def test_sync_tools_run_beside_the_loop_and_beside_each_other(count):
    meeting = threading.Barrier(count + 1)

    def meet() -> int:
        return meeting.wait(10)

    running = asyncio.create_task(acall_tools([ToolCall(str(n), "meet") for n in range(count)], Toolset([meet])))
    await asyncio.to_thread(meeting.wait, 10)  # nobody would come here if a tool kept the loop
    assert [result.kind for result in await running] == ["ok"] * count


@table("thread", {"fastmcp#4010": False})
@pytest.mark.anyio
async def test_a_tool_that_needs_the_calling_thread_has_it(thread):
    def where() -> int:
        return threading.get_ident()

    tools = Toolset([where, Tool(where, name="here", thread=thread)])
    elsewhere, here = await acall_tools([ToolCall("1", "where"), ToolCall("2", "here")], tools)
    assert here.value == threading.get_ident() != elsewhere.value
    assert Tool(where, thread=thread).call({}) == threading.get_ident()


@table(
    ("is_async", "limits"),
    {
        "gaia#1591": (False, Limits()),
        "hive#5142": (True, Limits()),
        "openai-agents#1425": (False, Limits(deadline=None)),
        "pi#2579": (True, Limits(deadline=None)),
    },
)
def test_a_tool_that_hangs_is_answered_at_its_own_timeout_and_the_others_are_not_held_up(is_async, limits):
    release = threading.Event()

    async def hang_async() -> None:
        await asyncio.Event().wait()

    hanging = Tool(hang_async if is_async else release.wait, name="hang", timeout=0.05)
    calls = [ToolCall("1", "hang"), ToolCall("2", "add", '{"a": 1, "b": 2}')]
    started = time.monotonic()
    try:
        hung, added = call_tools(calls, Toolset([hanging, add]), limits=limits)
    finally:
        release.set()
    assert (hung.kind, added.value) == ("timed_out", 3)
    assert hung.text.startswith("Tool 'hang' timed out")
    assert time.monotonic() - started < 10


class Log:
    """Tools that note when they begin and end, and that end in the opposite order when they may."""

    def __init__(self, effects):
        self.seen: list[str] = []
        self.begun = {name: asyncio.Event() for name in effects}
        self.effects = effects

    def tools(self):
        return Toolset([Tool(self.made(name), name=name, effect=effect) for name, effect in self.effects.items()])

    def made(self, name):
        async def run() -> str:
            self.seen.append(f"{name} begins")
            self.begun[name].set()
            free = [other for other, effect in self.effects.items() if effect is None]
            if name in free and name != free[-1]:
                await self.begun[free[-1]].wait()
            await asyncio.sleep(0)
            self.seen.append(f"{name} ends")
            return name

        return run


@table(
    "effects",
    {
        "pydantic-ai#2628": {"a": None, "b": None, "c": None},
        "pydantic-ai#2718": {"a": "write", "b": "write", "c": "destructive"},
        "pydantic-ai#3791": {"a": None, "final": "write", "b": None},
        "pydantic-ai#5339": {"a": "write", "b": None, "c": "write", "d": None},
        "agent-framework#7386": {"write": "write", "read_back": "write"},
    },
)
@pytest.mark.anyio
async def test_answers_are_in_the_order_of_the_calls_and_tools_marked_write_run_in_it(effects):
    log = Log(effects)
    results = await acall_tools([ToolCall(name, name) for name in effects], log.tools())
    assert [result.value for result in results] == list(effects)
    ordered = [name for name, effect in effects.items() if effect is not None]
    assert [entry for entry in log.seen if entry.split()[0] in ordered] == [
        entry for name in ordered for entry in (f"{name} begins", f"{name} ends")
    ]
    free = [name for name, effect in effects.items() if effect is None]
    begun = [entry.split()[0] for entry in log.seen if entry.endswith("begins")]
    assert [name for name in begun if name in free] == free


class Connection:
    """What a client library keeps: a lock that belongs to the loop where it was first used."""

    def __init__(self):
        self.lock = asyncio.Lock()
        self.loops: set[Any] = set()

    async def query(self, n: int) -> int:
        """Ask it."""
        async with self.lock:
            self.loops.add(asyncio.get_running_loop())
            await asyncio.sleep(0)
            return n


@table("times", {"automagik-hive#58": 3})
def test_sync_calls_of_async_tools_share_one_loop_that_is_never_closed_under_them(times):
    connection = Connection()
    tools = Toolset([connection.query])
    found: list[Any] = []

    def turn() -> None:
        calls = [ToolCall(str(n), "query", json.dumps({"n": n})) for n in range(2)]
        found.extend(result.value for result in call_tools(calls, tools))

    for _ in range(times):
        thread = threading.Thread(target=turn)
        thread.start()
        thread.join(10)
    assert found == [0, 1] * times
    (loop,) = connection.loops
    assert not loop.is_closed()


# -- whether every issue has its row

ISSUES = """
    fastmcp#932 fastmcp#4784 apple-mail-fast-mcp#311 hindsight#899 pocketpaw#1636 ogham-mcp#34 fastmcp#341 fastmcp#3931
    code_puppy#506 llama_index#11921 pydantic-ai#4027 mastra#12823 openai-agents-js#887 clawbolt#291 tinyagents#68
    smolagents#483

    openai-agents#5112 pydantic-ai#5585 autogen#5274 langchain-mcp-adapters#332 inspect_ai#484 simonw/llm#1104
    simonw/llm#1483 langchain#34506 mcp-context-forge#4204

    openai-agents#2386 openai-agents#820 openai-agents#2387 python-sdk#1646 agentscope#2361 fastmcp#4010 gaia#1591
    hive#5142 openai-agents#1425 pi#2579 pydantic-ai#2628 pydantic-ai#2718 pydantic-ai#3791 pydantic-ai#5339
    agent-framework#7386 automagik-hive#58
"""
NOT_OURS_YET = {
    "mcp-context-forge#4204": "whether a failure is held against outputSchema is decided by a source of remote tools",
}


def test_every_issue_is_a_row_or_has_a_reason_not_to_be_one():
    assert set(ISSUES.split()) == TOLD | NOT_OURS_YET.keys()
    assert not TOLD & NOT_OURS_YET.keys()
