"""When a model is asked, how often, and what is kept of its answer."""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import json
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
from model_server import CHAT, KEY, ModelServer

from toolcrib import (
    Agent,
    EngineError,
    InMemoryArtifactStore,
    LLMEngine,
    LocalEngine,
    Reply,
    ScriptedEngine,
    SQLiteArtifactStore,
    Tool,
    ToolCall,
    ToolcribWarning,
    Toolset,
    call_tools,
)
from toolcrib.dispatch import acall
from toolcrib.engines.local._weights import cache_dir
from toolcrib.formats import openai_chat
from toolcrib.schema.artifacts import fingerprint, model_id
from toolcrib.schema.inferred import prompt_for
from toolcrib.schema.jsonschema import compiled


def greet(name, *, loud=False):
    """Say hello."""
    return f"hello {name}{'!' if loud else ''}"


def hinted(name: str, *, loud: bool = False) -> str:
    """Say hello."""
    return greet(name, loud=loud)


PROPERTIES = {"name": {"type": "string", "description": "Who."}, "loud": {"type": "boolean", "description": "Whether."}}
GOOD = {"description": "Greet.", "parameters": {"type": "object", "properties": PROPERTIES, "required": ["name"]}}
GOOD_TEXT = json.dumps(GOOD)


def engine(*turns):
    return ScriptedEngine(turns or [GOOD_TEXT])


def key_of(tool):
    return fingerprint(model_id(tool.schema_llm), "\n".join(prompt_for(tool._question)))


# -- when and how often


def test_a_model_is_asked_on_first_use_and_once():
    model = engine()
    tool = Tool(greet, mode="llm", schema_llm=model)
    repr(tool), tool.name, Toolset([tool]).names, tool.replace(timeout=1)
    assert model.requests == []
    assert tool.description == "Greet."
    _ = (
        tool.input_schema,
        tool.parameters,
        tool.definition(),
        tool.build_prompt(),
        tool.explain(),
        tool.call({"name": 1}),
    )
    assert len(model.requests) == 1


def test_renamed_copies_share_the_answer_whichever_is_used_first():
    model = engine()
    tool = Tool(greet, mode="llm", schema_llm=model)
    copies = [tool.replace(name="a"), *Toolset([tool]).prefixed("x."), tool.replace(timeout=3)]
    assert {copy.description for copy in [*copies, tool]} == {"Greet."}
    assert len(model.requests) == 1


def test_one_call_serves_every_thread_that_asks_at_the_same_time():
    asked, everybody = [], threading.Barrier(9)
    tool = Tool(greet, mode="llm", schema_llm=lambda _: (asked.append(1), threading.Event().wait(0.05), GOOD)[2])
    seen = []

    def use() -> None:
        everybody.wait()
        seen.append(tool.input_schema)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    everybody.wait()
    for thread in threads:
        thread.join()
    assert len(asked) == 1
    assert all(schema == seen[0] for schema in seen)


@pytest.mark.anyio
async def test_one_call_serves_every_task_and_the_loop_stays_free():
    asked, begun, released = [], asyncio.Event(), asyncio.Event()

    async def model(_: str) -> dict:
        asked.append(asyncio.get_running_loop())
        begun.set()
        await released.wait()
        return GOOD

    tool = Tool(greet, mode="llm", schema_llm=model)
    waiting = [asyncio.create_task(tool.prepare()) for _ in range(5)]
    waiting += [asyncio.create_task(tool.acall({"name": "Ada"}))]
    await begun.wait()
    released.set()
    await asyncio.gather(*waiting)
    assert asked == [asyncio.get_running_loop()]
    assert waiting[-1].result() == "hello Ada"


@pytest.mark.anyio
async def test_whoever_gives_up_waiting_takes_the_answer_from_nobody():
    started, released, asked = asyncio.Event(), asyncio.Event(), []

    async def model(_: str) -> dict:
        asked.append(1)
        started.set()
        await released.wait()
        return GOOD

    tool = Tool(greet, mode="llm", schema_llm=model)
    first = asyncio.create_task(tool.prepare())
    await started.wait()
    second, third = asyncio.create_task(tool.prepare()), asyncio.create_task(tool.prepare())
    await asyncio.sleep(0)
    second.cancel()
    started.clear()
    first.cancel()
    await started.wait()
    released.set()
    await third
    assert len(asked) == 2
    assert first.cancelled()
    assert second.cancelled()


@pytest.mark.anyio
async def test_reading_a_schema_inside_a_loop_never_hangs_even_while_that_loop_is_asking():
    started = asyncio.Event()

    async def model(_: str) -> dict:
        started.set()
        await asyncio.sleep(0.01)
        return GOOD

    tool = Tool(greet, mode="llm", schema_llm=model)
    asking = asyncio.create_task(tool.prepare())
    await started.wait()
    assert tool.input_schema["required"] == ["name"]
    await asking


def test_sync_code_may_have_an_async_model():
    async def model(_: str) -> str:
        await asyncio.sleep(0)
        return GOOD_TEXT

    assert Tool(hinted, mode="hybrid", schema_llm=model).description == "Greet."


# -- the paths of a run


@pytest.mark.anyio
async def test_every_async_path_asks_before_anything_would_block_the_loop():
    loops = []

    async def model(_: str) -> dict:
        loops.append(asyncio.get_running_loop())
        return GOOD

    here = asyncio.get_running_loop()
    made = functools.partial(Tool, greet, mode="llm", schema_llm=model, store=_Forgetful())
    assert (await acall(ToolCall("1", "greet", '{"name": "Ada"}'), Toolset([made()]))).text == "hello Ada"
    assert await made().acall({"name": "Ada"}) == "hello Ada"
    agent = Agent(ScriptedEngine([[("greet", {"name": "Ada"})], "done"]), [made()])
    assert (await agent.arun("greet Ada")).ok
    assert loops == [here] * 3


@pytest.mark.anyio
async def test_a_toolset_makes_all_its_schemas_ready_side_by_side():
    asked, both = [], asyncio.Event()

    async def model(_: str) -> dict:
        asked.append(1)
        if len(asked) == 2:
            both.set()
        await both.wait()
        return GOOD

    tools = Toolset([Tool(func, mode="llm", schema_llm=model) for func in (greet, hinted)])
    await asyncio.wait_for(tools.prepare(), 30)
    await tools.prepare()
    assert [tool.description for tool in tools] == ["Greet.", "Greet."]
    assert len(asked) == 2


def test_a_sync_run_asks_once_and_calls_with_what_came_of_it():
    model = engine()
    tool = Tool(greet, mode="llm", schema_llm=model)
    outcome = Agent(ScriptedEngine([[("greet", {"name": "Ada"})], "done"]), [tool]).run("greet Ada")
    assert [m.content for m in outcome.messages if m.role == "tool"] == ["hello Ada"]
    assert openai_chat.tools(Toolset([tool]))[0]["function"]["description"] == "Greet."
    assert call_tools([ToolCall("1", "greet", {"name": "B"})], Toolset([tool]))[0].text == "hello B"
    assert len(model.requests) == 1


class _Forgetful:
    async def get(self, key: str) -> None: ...

    async def put(self, key: str, value: object) -> None: ...


# -- a model that fails


def raising(error):
    def model(_: str) -> str:
        raise error

    return model


@pytest.mark.parametrize(
    "model",
    [
        ScriptedEngine([EngineError("no server")]),
        raising(KeyError("no server")),
        raising(TimeoutError("no server")),
        lambda _: 5,
        lambda _: None,
        lambda _: {1: "no server"},
    ],
)
def test_a_model_that_fails_leaves_the_signatures_schema_and_one_warning(model):
    store = InMemoryArtifactStore()
    tool = Tool(greet, mode="llm", schema_llm=model, store=store)
    with pytest.warns(ToolcribWarning, match="the signature's own") as told:
        assert tool.input_schema["required"] == ["name"]
    assert len(told) == 1
    assert "'name'" in str(told[0].message)
    assert told[0].filename == __file__
    assert len(store) == 0
    assert tool.call({"name": "Ada"}) == "hello Ada"


def test_a_model_that_takes_too_long_is_given_up(monkeypatch):
    monkeypatch.setattr("toolcrib.schema.inquiry.SCHEMA_SECONDS", 0.05)

    async def model(_: str) -> dict:
        await asyncio.Event().wait()
        return GOOD

    with pytest.warns(ToolcribWarning, match="no answer within"):
        assert Tool(hinted, mode="hybrid", schema_llm=model).description == "Say hello."


# -- what is kept


@pytest.mark.parametrize("mode", ["hybrid", "llm"])
def test_a_second_process_finds_the_answer_in_the_store(tmp_path, mode):
    path, first, second = tmp_path / "schemas.db", engine(), ScriptedEngine([])
    one = Tool(hinted, mode=mode, schema_llm=first, store=SQLiteArtifactStore(path))
    two = Tool(hinted, mode=mode, schema_llm=second, store=SQLiteArtifactStore(path))
    assert one.definition() == two.definition()
    assert one.explain() == two.explain()
    assert (len(first.requests), len(second.requests)) == (1, 0)


def test_tools_of_one_model_share_its_answers_and_another_of_its_name_does_not():
    first, second = engine(), engine(GOOD_TEXT.replace("Greet.", "Other."))
    assert Tool(greet, mode="llm", schema_llm=first).description == "Greet."
    assert Tool(greet, mode="llm", schema_llm=first).description == "Greet."
    assert Tool(greet, mode="llm", schema_llm=second).description == "Other."


def other(name, *, loud=False):
    """Say hello."""
    return f"hello {name}{'?' if loud else ''}"


def renamed(name, *, loud=True):
    """Say hello."""
    return f"hello {name}{'!' if loud else ''}"


@pytest.mark.filterwarnings("ignore:parameter 'name'")
@pytest.mark.parametrize(
    ("func", "options"),
    [
        (greet, {"name": "other"}),
        (greet, {"description": "Mine."}),
        (greet, {"mode": "hybrid"}),
        (greet, {"strict": True}),
        (greet, {"schema_llm": lambda _: GOOD}),
        (other, {"name": "greet"}),
        (renamed, {"name": "greet"}),
        (functools.partial(greet, loud=True), {}),
    ],
)
def test_whatever_could_change_the_answer_changes_the_key(func, options):
    plain = {"mode": "llm", "schema_llm": ScriptedEngine([])}
    assert key_of(Tool(func, **{**plain, **options})) != key_of(Tool(greet, **plain))


@pytest.mark.parametrize(
    "options",
    [{"timeout": 3}, {"effect": "read"}, {"thread": False}, {"store": _Forgetful()}, {"returns_envelope": True}],
)
def test_nothing_else_does(options):
    plain = {"mode": "llm", "schema_llm": ScriptedEngine([])}
    assert key_of(Tool(greet, **plain, **options)) == key_of(Tool(greet, **plain))
    assert key_of(Tool(greet, **plain).replace(name="x")) != ""


def test_a_key_is_the_same_in_every_process(tmp_path):
    Path(tmp_path, "strange.py").write_text(
        "import enum\nclass Kind(enum.Enum):\n    A = 'a'\n"
        "def f(x: Kind, items=frozenset('abcdefgh'), made=object(), call=print, *, y: 'list[int] | None' = None): ...\n"
    )
    script = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "import strange; from toolcrib import Tool\nfrom toolcrib.schema.artifacts import *\n"
        "from toolcrib.schema.inferred import prompt_for\n"
        "for mode in ('hybrid', 'llm'):\n"
        "    t = Tool(strange.f, mode=mode, schema_llm=print)\n"
        "    u = Tool(eval('lambda x=frozenset(\"abcdefgh\"), y=object(): x'), name='u', mode=mode, schema_llm=print)\n"
        "    for one in (t, u): print(fingerprint(model_id(print), str(prompt_for(one._question))))\n"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=tmp_path,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "123"
    }
    assert len(seen) == 1


class Callable:
    def __call__(self, prompt: str) -> dict:
        return GOOD


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (engine(), "scripted"),
        (greet, f"{__name__}.greet"),
        (Callable(), f"{__name__}.Callable"),
        (json.loads, "json.loads"),
    ],
)
def test_a_model_is_known_by_its_name(model, name):
    assert model_id(model) == name


@pytest.mark.parametrize(
    ("kept", "problem"),
    [
        ("foreign", "no artifact but str"),
        ({"description": "evil"}, "no artifact of this tool"),
        ({"toolcrib": 1, "key": "another", "answer": GOOD}, "no artifact of this tool"),
        ({"toolcrib": 1, "key": None, "answer": {"description": 5}}, "must be text"),
        ({"toolcrib": 99, "key": None, "answer": GOOD}, "no artifact of this tool"),
        ({"toolcrib": 1, "key": None, "answer": "```"}, "one JSON object"),
    ],
)
def test_a_foreign_or_broken_entry_is_a_miss_with_a_warning_and_is_replaced(kept, problem):
    model, store = engine(), InMemoryArtifactStore()
    tool = Tool(greet, mode="llm", schema_llm=model, store=store)
    key = key_of(tool)
    kept = {**kept, "key": kept["key"] or key} if isinstance(kept, dict) and "key" in kept else kept
    asyncio.run(store.put(key, kept))
    with pytest.warns(ToolcribWarning, match=problem) as told:
        assert tool.description == "Greet."
    assert (len(told), len(model.requests)) == (1, 1)
    assert asyncio.run(store.get(key))["answer"] == GOOD


def test_an_entry_with_an_answer_of_somebody_else_breaks_no_more_than_a_model_can():
    store, model = InMemoryArtifactStore(), ScriptedEngine([])
    tool = Tool(greet, mode="llm", schema_llm=model, store=store)
    evil = {
        "description": "Greet.",
        "parameters": {"properties": {"name": {"type": "null"}, "x": {}}, "required": ["x"]},
    }
    asyncio.run(store.put(key_of(tool), {"toolcrib": 1, "key": key_of(tool), "answer": evil}))
    with pytest.warns(ToolcribWarning, match="no parameter 'x'"):
        assert tool.input_schema["required"] == ["name"]


class Broken:
    def __init__(self, *methods: str) -> None:
        self._methods = methods

    def __getattr__(self, name: str):
        if name not in self._methods:
            raise AttributeError(name)

        def method(*_: object) -> None:
            raise OSError(f"{name} is broken")

        return method


def test_a_store_that_fails_is_told_of_and_does_without():
    model = engine()
    tool = Tool(greet, mode="llm", schema_llm=model, store=Broken("get", "put", "claim", "release"))
    with pytest.warns(ToolcribWarning, match="get failed: OSError: get is broken") as told:
        assert tool.description == "Greet."
    assert (len(told), len(model.requests)) == (1, 1)


def test_a_file_that_is_no_store_is_told_of_and_does_without(tmp_path):
    path = tmp_path / "schemas.db"
    path.write_text("not a database " * 200)
    with pytest.warns(ToolcribWarning, match="not a database"):
        assert Tool(greet, mode="llm", schema_llm=engine(), store=SQLiteArtifactStore(path)).description == "Greet."


@pytest.mark.anyio
async def test_two_that_start_together_on_one_store_ask_once():
    store, models = InMemoryArtifactStore(), [engine() for _ in range(4)]
    tools = [Tool(greet, mode="llm", schema_llm=model, store=store) for model in models]
    await asyncio.gather(*(tool.prepare() for tool in tools))
    assert sum(len(model.requests) for model in models) == 1
    assert {tool.description for tool in tools} == {"Greet."}


@pytest.mark.anyio
async def test_one_who_fails_leaves_the_question_to_the_next():
    store = InMemoryArtifactStore()
    failing = ScriptedEngine([EngineError("down")])
    tools = [Tool(greet, mode="llm", schema_llm=model, store=store) for model in (failing, engine())]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        await asyncio.wait_for(asyncio.gather(*(tool.prepare() for tool in tools)), 20)
    assert [tool.description for tool in tools] == ["Say hello.", "Greet."]


@pytest.mark.anyio
async def test_a_claim_of_one_who_died_is_waited_for_only_so_long(monkeypatch):
    monkeypatch.setattr("toolcrib.schema.inquiry.SCHEMA_LEASE_SECONDS", 0.1)
    store = InMemoryArtifactStore()
    tool = Tool(greet, mode="llm", schema_llm=engine(), store=store)
    await store.claim(key_of(tool), 1000)
    await tool.prepare()
    assert tool.description == "Greet."


MANY = """
import os, sys, time, toolcrib
folder = sys.argv[1]

def model(prompt):
    with open(os.path.join(folder, "asked"), "a") as file:
        file.write("x")
    time.sleep(0.05)
    return {"description": "D.", "parameters": {"properties": {"a": {"type": "string", "description": "d"}}}}

def one(a): ...
def two(a): ...

def child(number):
    store = toolcrib.SQLiteArtifactStore(os.path.join(folder, "schemas.db"))
    while not os.path.exists(os.path.join(folder, "go")):
        time.sleep(0.005)
    for func in (one, two):
        tool = toolcrib.Tool(func, mode="llm", schema_llm=model, store=store)
        assert tool.description == "D.", tool.description
    store.put(f"own-{number}", number)

children = []
for number in range(50):
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            import warnings
            warnings.simplefilter("error")
            child(number)
            status = 0
        finally:
            os._exit(status)
    children.append(pid)
open(os.path.join(folder, "go"), "w").close()
sys.exit(sum(os.waitpid(pid, 0)[1] != 0 for pid in children))
"""


def test_fifty_processes_on_one_store_ask_once_per_tool_and_lose_nothing(tmp_path):
    script = tmp_path / "many.py"
    script.write_text(MANY)
    done = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "asked").read_text() == "xx"
    store = SQLiteArtifactStore(tmp_path / "schemas.db")
    assert [store.get(f"own-{number}") for number in range(50)] == list(range(50))


# -- a real provider's client


@pytest.mark.parametrize("mode", ["hybrid", "llm"])
def test_the_openai_client_is_asked_once_and_shown_the_source(mode):
    with ModelServer() as server:
        server.say(f"```json\n{GOOD_TEXT}\n```")
        model = LLMEngine("openai:gpt-5.4-mini", base_url=server.base_url, api_key=KEY)
        tool = Tool(hinted, mode=mode, schema_llm=model)
        assert tool.description == "Greet."
        assert tool.input_schema["properties"]["name"]["description"] == "Who."
        assert [request.path for request in server.requests] == [CHAT]
        (body,) = server.bodies
        assert "tools" not in body
        assert [message["role"] for message in body["messages"]] == ["system", "user"]
        assert body["response_format"] == {"type": "json_object"}
        assert "return greet(name, loud=loud)" in body["messages"][1]["content"]


def test_a_provider_that_cannot_be_held_to_json_is_instructed():
    with ModelServer() as server:
        server.say(GOOD_TEXT)
        model = LLMEngine("anthropic:claude-haiku-4-5", base_url=server.root, api_key=KEY)
        assert Tool(greet, mode="llm", schema_llm=model).description == "Greet."
        assert not model.answers_json
        assert "one JSON object" in json.dumps(server.bodies[0]["system"])


def test_an_engine_that_can_be_held_to_json_is_shown_the_shape_of_a_good_answer():
    seen = []

    class Held:
        model = "held"
        answers_json = True

        async def acomplete(self, messages, tools, *, answer_schema):
            seen.append(answer_schema)
            return Reply(GOOD_TEXT)

    for mode, func in (("hybrid", hinted), ("llm", greet), ("llm", lambda **_: 1)):
        assert Tool(func, name="f", mode=mode, schema_llm=Held()).description == "Greet."
    plain = {"type": "object", "properties": PROPERTIES}
    bare = {"type": "object", "properties": {n: {"description": node["description"]} for n, node in PROPERTIES.items()}}
    answers = [{"description": "Greet.", "parameters": parameters} for parameters in (bare, plain, GOOD["parameters"])]
    accepted = [[compiled(schema).is_valid(answer) for answer in answers] for schema in seen]
    assert accepted == [[True, False, False], [False, True, False], [False, False, True]]


@pytest.mark.model
@pytest.mark.skipif(not any(cache_dir().glob("*/SmolLM*")), reason="the small model's weights are not here")
def test_whatever_a_real_model_writes_for_legacy_code_the_signature_holds():
    spec = importlib.util.spec_from_file_location("legacy", Path(__file__).parents[2] / "examples" / "legacy.py")
    legacy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(legacy)
    tool = Tool(legacy.stock_level, mode="llm", schema_llm=LocalEngine("local:135m"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schema = tool.input_schema
    assert schema["required"] == ["sku"]
    assert list(schema["properties"]) == ["sku", "warehouse", "min_level"]
    assert schema["properties"]["warehouse"]["default"] == "main"
    assert tool.inquiry.now().asked
    assert tool.call({"sku": "AB-12"}) == 7
    compiled(schema)


def test_a_provider_that_is_down_leaves_the_signature():
    with ModelServer() as server:
        server.fail(401, {"error": {"message": f"bad key {KEY}"}})
        model = LLMEngine("openai:gpt-5.4-mini", base_url=server.base_url, api_key=KEY)
        with pytest.warns(ToolcribWarning, match="401") as told:
            assert Tool(greet, mode="llm", schema_llm=model).description == "Say hello."
        assert KEY not in str(told[0].message)
