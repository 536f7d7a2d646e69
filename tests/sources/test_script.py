import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
from dataclasses import dataclass
from typing import Literal

import pytest
from pydantic import BaseModel

from toolcrib import (
    Agent,
    ApprovalExecutor,
    Limits,
    ScriptedEngine,
    ScriptLimits,
    ScriptTool,
    Secret,
    Tool,
    ToolArgumentError,
    ToolCall,
    ToolContext,
    ToolExecutionError,
    ToolFinished,
    ToolResponse,
    Toolset,
    ToolTimeoutError,
    acall_tools,
    call_tools,
)


class Order(BaseModel):
    id: int
    lines: list[str] = []


@dataclass
class Weather:
    city: str
    degrees: float


def get_weather(city: str, unit: Literal["c", "f"] = "c") -> Weather:
    """Get the weather.

    Args:
        city: The city, such as Paris.
    """
    if city == "Atlantis":
        raise LookupError("no such city")
    return Weather(city, 14.0 if unit == "c" else 57.2)


async def fetch(id: int) -> Order:  # noqa: A002  # what the API calls it
    """Fetch an order."""
    return Order(id=id, lines=["line"] * id)


def place(order: Order) -> int:
    """Place an order."""
    return order.id


SHOP = [get_weather, fetch, place]


def answer(code, tools=SHOP, limits=None, **options):
    script = ScriptTool(tools, limits=limits)
    (result,) = call_tools([ToolCall("1", "run_script", {"code": code})], Toolset([script]), **options)
    return result


# -- what the model is shown


def test_the_toolset_is_shown_as_typed_stubs_that_stay_the_same():
    (run,) = ScriptTool(SHOP).as_tools()
    assert run.name == "run_script"
    assert run.description.endswith(
        "class GetWeatherResult(TypedDict): city: str; degrees: float\n"
        "class FetchResult(TypedDict): id: int; lines: NotRequired[list[str]]\n"
        "class PlaceOrder(TypedDict): id: int; lines: NotRequired[list[str]]\n"
        'def get_weather(city: str, unit: Literal["c", "f"] = \'c\') -> GetWeatherResult:'
        ' "Get the weather. city: The city, such as Paris."\n'
        'async def fetch(id: int) -> FetchResult: "Fetch an order."\n'
        'def place(order: PlaceOrder) -> int: "Place an order."'
    )
    assert ScriptTool(SHOP).as_tools()[0].description == run.description


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("fs.read_file", "fs_read_file"),
        ("list", "list_"),
        ("class", "class_"),
        ("1st", "tool_1st"),
        ("_x", "tool_x"),
        ("result", "result_"),
    ],
)
def test_every_tool_has_a_legal_name_that_leads_back_to_it(name, function):
    assert answer(f"{function}(a=2)", [Tool(lambda a=1: a, name=name)]).value == 2


def test_names_that_come_to_the_same_stay_apart():
    tools = [Tool(lambda: "dot", name="a.b"), Tool(lambda: "dash", name="a-b"), Tool(lambda: "low", name="a_b")]
    functions = dict(zip(ScriptTool(tools).stubs.replace("def ", "").split("\n"), tools, strict=True))
    assert len({line.partition("(")[0] for line in functions}) == 3
    for line, tool in functions.items():
        assert answer(f"{line.partition('(')[0]}()", tools).value == tool.call()


def test_parameters_that_are_no_names_in_python_reach_the_tool_under_their_own():
    schema = {
        "type": "object",
        "properties": {"user-id": {"type": "integer"}, "class": {"type": "object", "properties": {"a b": {}}}},
        "required": ["user-id"],
    }
    told = Tool.from_schema("tell", "", schema, lambda **given: given)
    assert answer('tell(7, class_={"a b": 1})', [told]).value == {"user-id": 7, "class": {"a b": 1}}


def test_a_schema_that_leads_to_itself_is_told_and_checked():
    node = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/N"}}}}
    schema = {"type": "object", "properties": {"tree": {"$ref": "#/$defs/N"}}, "$defs": {"N": node}}
    grow = Tool.from_schema("grow", "", schema, lambda tree: len(tree["kids"]))
    assert answer('grow({"kids": [{}, {"kids": []}]})', [grow]).value == 2
    assert answer('grow({"kids": [1]})', [grow]).kind == "invalid_arguments"


def test_a_hostile_description_stays_inside_its_string():
    hostile = Tool.from_schema("f", '"\nimport os\n"""\\', {"type": "object"}, lambda: 1)
    assert answer("f()", [hostile]).value == 1
    assert len(ScriptTool([hostile]).stubs.splitlines()) == 1


def test_a_large_toolset_is_searched():
    def made(number):
        return Tool(lambda: number, name=f"get_thing_{number}", description=f"Get thing {number} of the zoo.")

    whale = Tool(lambda: "blow", name="feed_whale", description="Feed the whale.")
    script = ScriptTool([*map(made, range(60)), whale])
    run, find = script.as_tools()
    assert "find_tools(query: str)" in run.description
    assert "Feed the whale" not in run.description
    assert find.call({"query": "whales"}) == 'def feed_whale() -> Any: "Feed the whale."'
    (result,) = call_tools(
        [ToolCall("1", "run_script", {"code": 'print(find_tools("whale"))\nfeed_whale()'})], Toolset([script])
    )
    assert result.text == 'def feed_whale() -> Any: "Feed the whale."\nresult: "blow"'.replace('"blow"', "blow")


# -- what comes of a script


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("1 + 1", "2"),
        ('get_weather("Oslo")["degrees"]', "14.0"),
        ('result = [get_weather(city)["city"] for city in ("Oslo", "Rome")]', '["Oslo","Rome"]'),
        ('result = 1\nprint("so")', "so\nresult: 1"),
        ('print("only this")', "only this\n"),
        ("x = 1", "The script ended without a result, and printed nothing."),
        ('{"a": (1, 2), "when": __import__}', None),
        ("place({'id': 3})", "3"),
        ("f = get_weather\nf('Rome')['city']", "Rome"),
        ("import datetime\ndatetime.date(2026, 11, 22)", "2026-11-22"),
    ],
)
def test_the_answer_is_the_last_expression_or_result_after_what_was_printed(code, text):
    result = answer(code)
    assert (result.text if result.ok else None) == text


def test_async_tools_are_awaited_and_run_at_the_same_time():
    meeting = threading.Barrier(3)

    async def meet(n: int) -> int:
        await asyncio.to_thread(meeting.wait, 10)
        return n

    code = "import asyncio\nsum(await asyncio.gather(*[meet(i) for i in range(3)]))"
    assert answer(code, [meet]).value == 3


def test_writing_tools_keep_their_order_when_they_are_gathered():
    order = []

    async def write(n: int) -> None:
        for _ in range(3 - n):
            await asyncio.sleep(0)
        order.append(n)

    answer("import asyncio\nawait asyncio.gather(*[write(i) for i in range(3)])", [Tool(write, effect="write")])
    assert order == [0, 1, 2]


def test_what_a_tool_returns_reaches_the_script_as_data():
    key = Secret("s3cret")
    tools = [
        Tool(lambda: ToolResponse(success=True, message="done", data={"n": 1}), name="respond"),
        Tool(lambda: {1: {2}}, name="keys"),
        Tool(lambda: f"key {key.reveal()}", name="leak"),
        Agent(ScriptedEngine(["from an agent"]), name="helper"),
    ]
    code = 'result = [respond(), keys(), leak(), await helper(task="x")]'
    assert answer(code, tools).value == [{"n": 1}, {"1": [2]}, "key ***", "from an agent"]


def test_every_call_inside_is_told_validated_and_numbered():
    events = []
    answer('get_weather("Oslo")\nget_weather(city="Rome")', on_event=events.append)
    finished = [event.result for event in events if isinstance(event, ToolFinished)]
    assert [result.call.id for result in finished] == ["1.1", "1.2", "1"]
    assert finished[0].call.arguments == {"city": "Oslo"}


def test_calls_inside_find_the_deps_of_the_run():
    def who(context: ToolContext[str]) -> str:
        return context.deps

    agent = Agent(ScriptedEngine([[("run_script", {"code": "who()"})], "done"]), [ScriptTool([who])])
    outcome = agent.run("?", deps="Ada")
    assert outcome.messages[-2].content == "Ada"


# -- what goes wrong


def test_types_are_checked_before_anything_runs():
    ran = []
    result = answer('note(1)\nnote("x")\nget_weather(2)', [Tool(lambda n=0: ran.extend([n]), name="note"), get_weather])
    assert result.kind == "invalid_arguments"
    assert "- line 3: Argument to function `get_weather` is incorrect: Expected `str`, found" in result.text
    assert "\n    get_weather(2)" in result.text
    assert ran == []


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("x = (", "line 1: unexpected EOF while parsing"),
        ("def f():\n    yield 1", "line 2: yield"),
        ("import subprocess", "line 1: Cannot resolve imported module `subprocess`"),
        ('open("x")', "line 1: Name `open` used when not defined"),
        ("fetch(1)", "line 1: Object of type `CoroutineType[Any, Any, FetchResult]` is not awaited"),
        ('get_weather("x")["wind"]', 'line 1: Unknown key "wind" for TypedDict `GetWeatherResult`'),
        ("x" * 60_000, "longer than 50,000 characters"),
    ],
)
def test_what_cannot_run_is_told_with_its_line(code, problem):
    result = answer(code)
    assert result.kind == "invalid_arguments"
    assert problem in result.text


def test_an_error_inside_is_told_with_its_line_and_what_was_done():
    result = answer('def f(city):\n    return get_weather(city)\n\nprint("on")\nf("Rome")\nf("Atlantis")')
    assert result.kind == "failed"
    assert result.text == (
        "Tool 'run_script' failed: RuntimeError: Tool 'get_weather' failed: LookupError: no such city\n"
        'line 6\n    f("Atlantis")\nline 2: in f\n    return get_weather(city)\n'
        "By then it had called: get_weather (2 times).\nIt had printed:\non"
    )


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ('get_weather("Atlantis")', "RuntimeError"),
        ("get_weather()", "ValueError"),
        ("get_weather(1, 2, 3)", "TypeError"),
        ("slow()", "TimeoutError"),
        ("gated()", "PermissionError"),
        ("nothing()", "NameError"),
    ],
)
def test_a_failed_call_is_an_exception_that_the_script_may_catch(call, error):
    async def slow() -> None:
        await asyncio.sleep(60)

    tools = [get_weather, Tool(slow, timeout=0.01), Tool(lambda: 1, name="gated", effect="write")]
    code = f"try:\n    {'await ' if 'slow' in call else ''}{call}\nexcept {error} as e:\n    result = str(e)"
    script = ScriptTool(tools, check_types=False)
    executor = ApprovalExecutor(lambda *_: "not today", effects=("write",))
    (result,) = call_tools([ToolCall("1", "run_script", {"code": code})], Toolset([script]), executor=executor)
    assert result.ok, result.text
    assert isinstance(result.value, str)


@pytest.mark.parametrize(
    ("code", "limits", "kind", "text"),
    [
        ("while True: pass", {"seconds": 0.2}, "timed_out", "computed for more than 0.2 seconds"),
        ("[0] * 10**8", {"memory_bytes": 10_000_000}, "failed", "MemoryError"),
        ("def f(n): return f(n + 1)\nf(0)", {}, "failed", "RecursionError"),
        (
            "for _ in range(9): place({'id': 1})",
            {"calls": 5},
            "failed",
            "more than 5 calls\nBy then it had called: place (5 times).",
        ),
        ("try:\n  for _ in range(9): place({'id': 1})\nexcept Exception: 1", {"calls": 5}, "failed", "than 5 calls"),
        ("for _ in range(10): print('x' * 100)", {"printed_chars": 250}, "ok", "760 more characters"),
        ("len(big())", {"value_chars": 1_000}, "failed", "it returned 5,000 characters; at most 1,000 fit"),
    ],
)
def test_a_script_is_bounded(code, limits, kind, text):
    def big() -> str:
        return "x" * 5_000

    result = answer(code, [*SHOP, big], ScriptLimits(**limits))
    assert result.kind == kind
    assert text in result.text


def test_a_late_function_is_an_exception_in_the_script_which_goes_on_without_it():
    events, let_go = [], threading.Event()

    def slow() -> str:
        let_go.wait(20)
        return "late"

    code = "try:\n    slow()\nexcept TimeoutError as e:\n    print(e)\nget_weather('Oslo')['city']"
    result = answer(code, [get_weather, Tool(slow, timeout=0.1)], on_event=events.append)
    let_go.set()
    assert result.text == "Tool 'slow' timed out: no answer within 0.1 seconds\nresult: Oslo"
    finished = [event.result for event in events if isinstance(event, ToolFinished)]
    assert [(one.call.id, one.kind) for one in finished] == [("1.1", "timed_out"), ("1.2", "ok"), ("1", "ok")]


def test_a_script_under_a_short_deadline_may_wait_for_approval_as_long_as_it_takes():
    tools = [Tool(lambda: "written", name="write", effect="write")]

    async def ask(*_):
        await asyncio.sleep(0.1)
        return True

    assert answer("write()", tools, executor=ApprovalExecutor(ask), limits=ScriptLimits()).text == "written"
    script = Toolset([ScriptTool(tools)], limits=Limits(deadline=0.05))
    (result,) = call_tools([ToolCall("1", "run_script", {"code": "write()"})], script, executor=ApprovalExecutor(ask))
    assert result.text == "written"


@pytest.mark.anyio
async def test_a_script_that_is_cancelled_leaves_its_interpreter_and_calls_behind_in_good_order():
    started, ended = asyncio.Event(), []

    async def hang() -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("hang")

    tools = Toolset([ScriptTool([hang])])
    for code in ("await hang()", "while True: pass"):
        run = asyncio.create_task(acall_tools([ToolCall("1", "run_script", {"code": code})], tools))
        await (started.wait() if "hang" in code else asyncio.sleep(0.1))
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
    assert ended == ["hang"]
    assert (await ScriptTool([]).arun("1 + 1")).value == 2


def test_an_interpreter_that_dies_is_one_error_answer_and_the_next_script_runs():
    def kill() -> None:
        found = subprocess.run(["pgrep", "-P", str(os.getpid()), "monty"], capture_output=True, text=True, check=False)  # noqa: S607  # procps
        for pid in found.stdout.split():
            os.kill(int(pid), signal.SIGKILL)

    result = answer("kill()", [kill])
    assert result.kind == "failed"
    assert "broke its interpreter" in result.text
    assert answer("1 + 1").value == 2


# -- scripts that wait


def declared():
    return Tool(name="sign", description="Have it signed.", parameters={"type": "object", "properties": {"n": {}}})


def test_a_script_waits_for_a_declared_tool_and_goes_on_without_repeating_anything():
    made = []

    def step(n: int) -> int:
        made.append(n)
        return n

    async def side(n: int) -> int:
        made.append(n)
        return n

    code = """
        import asyncio
        print("before")
        a = step(1)
        async def signed():
            return sign(n=a)
        b, c = await asyncio.gather(side(2), signed())
        [a, b, c, step(3)]
    """
    script = ScriptTool([step, side, declared()])
    outcome = script.run(textwrap.dedent(code))
    assert [(call.id, call.name, call.arguments) for call in outcome.pending] == [("script.3", "sign", {"n": 1})]
    assert outcome.printed == "before\n"
    again = script.resume(outcome.snapshot, {"script.3": "Ada"})
    assert (again.value, again.printed, again.calls, again.pending) == ([1, 2, "Ada", 3], "before\n", 4, ())
    assert sorted(made) == [1, 2, 3]


def test_a_waiting_script_may_be_told_of_a_failure():
    script = ScriptTool([declared()])
    outcome = script.run("try:\n    sign(n=1)\nexcept RuntimeError as e:\n    result = str(e)")
    assert script.resume(outcome.snapshot, {"script.1": ToolExecutionError("nobody there")}).value == "nobody there"


def test_resuming_needs_a_snapshot_and_its_result():
    script = ScriptTool([declared()])
    with pytest.raises(ValueError, match="no snapshot"):
        script.resume(b"{}", {"script.1": 1})
    with pytest.raises(ValueError, match="needs the result"):
        script.resume(script.run("sign(n=1)").snapshot, {"other": 1})


DYING = """
import asyncio, os, pathlib
from toolcrib import ScriptTool, ToolCall, Toolset, call_tools
folder = pathlib.Path({folder!r})

class Folder:
    def __init__(self, path):
        self.path = path

    def get(self, key):
        file = self.path / key.replace(":", "_")
        return file.read_text() if file.exists() else None

    def put(self, key, value):
        file = self.path / key.replace(":", "_")
        file.write_text(value) if value is not None else file.unlink(missing_ok=True)

def step(n: int) -> int:
    with (folder / "log").open("a") as log:
        log.write(f"{{n}} ")
    if n == 3 and not (folder / "died").exists():
        (folder / "died").touch()
        os._exit(9)
    return n

async def side(n: int) -> int:
    return step(n)

code = "import asyncio\\na = step(1)\\nb = await side(2)\\nc = sum(await asyncio.gather(side(5), side(6)))"
code += "\\n[a, b, c, step(3)]"
tools = Toolset([ScriptTool([step, side], store=Folder(folder))])
print(call_tools([ToolCall("call_7", "run_script", {{"code": code}})], tools)[0].text)
"""


def test_a_script_whose_process_died_goes_on_where_it_was(tmp_path):
    code = DYING.format(folder=str(tmp_path))

    def run():
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert run().returncode == 9
    assert run().stdout == "[1,2,11,3]\n"
    assert sorted((tmp_path / "log").read_text().split()) == ["1", "2", "3", "3", "5", "6"]
    assert {file.name for file in tmp_path.iterdir()} == {"log", "died"}


# -- using it directly


def test_a_script_run_directly_raises():
    script = ScriptTool(SHOP, limits=ScriptLimits(seconds=0.1))
    assert script.run("1").value == 1
    for code, error in (("1 +", ToolArgumentError), ("1 / 0", ToolExecutionError), ("while True: 1", ToolTimeoutError)):
        with pytest.raises(error):
            script.run(code)


@pytest.mark.parametrize("limits", [{"seconds": 0}, {"memory_bytes": 10}, {"code_chars": 0}])
def test_limits_under_which_nothing_could_run_are_refused(limits):
    with pytest.raises(ValueError, match="a script needs"):
        ScriptLimits(**limits)
