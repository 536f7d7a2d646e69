from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest
from typer.testing import CliRunner

from toolcrib import cli
from toolcrib.formats import FORMATS

KIT = """
    import asyncio, time
    from dataclasses import dataclass
    from typing import Literal
    from toolcrib.engines.scripted import ScriptedEngine
    from toolcrib.tools import Tool
    from toolcrib.types import ToolParameter

    @dataclass
    class Order:
        name: str
        guests: int = 1

    async def weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
        "Get the weather.\\n\\nAnywhere."
        return f"14 {unit} in {city}"

    def add(a: int, b: int = 1) -> int:
        "Add."
        return a + b

    def book(order: Order, tags: list[str] = []) -> dict:
        return {"name": order.name, "guests": order.guests, "tags": tags}

    def fail(why: str) -> str:
        raise RuntimeError(why)

    find = Tool(lambda a: a, name="find", parameters=[ToolParameter("a", "int", required=True, display_name="Order")])
    finds = ScriptedEngine([[("find", {"a": 7})], "Found."] * 2)

    def _wait() -> None:
        time.sleep(30)

    waits = Tool(_wait, name="waits", timeout=0.05)
    nothing = Tool(lambda: object(), name="nothing")

    two_calls = ScriptedEngine([
        [("weather", {"city": "Paris"}), ("add", '{"a": "many"}'), ("nowhere", {})],
        "It rains in \\x1b[31mParis.",
    ])
    fails = ScriptedEngine([[("fail", {"why": "no key"})], RuntimeError("the model is gone")])
    endless = ScriptedEngine([[("add", {"a": 1})]] * 9)
    talks = ScriptedEngine(["Hello."])
"""


class Done(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def kit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, modules = list(sys.path), set(sys.modules)
    (tmp_path / "kit.py").write_text(textwrap.dedent(KIT), encoding="utf-8")
    yield tmp_path / "kit.py"
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if "kit" in name:
            del sys.modules[name]


@pytest.fixture
def command(kit, monkeypatch, capsys):
    """Run the command line in this process."""

    def run(*words: str, given: str = "") -> Done:
        monkeypatch.setattr(sys, "argv", ["toolcrib", *words])
        monkeypatch.setattr(sys, "stdin", io.StringIO(given))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return Done(ended.value.code, captured.out, captured.err)

    return run


def started(*words: str, cwd: Path, **options) -> subprocess.Popen[str]:
    """Start the command line in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "NO_COLOR")}
    return subprocess.Popen(
        [sys.executable, "-m", "toolcrib", *words],
        cwd=cwd,
        env=environment,
        text=True,
        encoding="utf-8",
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **options},
    )


def finished(*words: str, cwd: Path) -> Done:
    process = started(*words, cwd=cwd)
    out, err = process.communicate(timeout=60)
    return Done(process.returncode, out, err)


# -- serve


def test_serve_offers_the_tools_at_a_url_that_is_a_target(kit, command):
    process = started("serve", "kit.py:add", "--gateway", "--port", "0", cwd=kit.parent)
    try:
        [url] = re.findall(r"^1 tool at (http://127\.0\.0\.1:\d+)/tools$", process.stderr.readline())
        assert command("list", url).out == "add\ta: int, b: int = 1\tAdd.\n"
        assert command("call", url, "add", "a=2", "b=3").out == "5\n"
        assert command("call", url, "add", "a=x").status == 2
    finally:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "")


def test_serve_wants_its_own_token_of_the_environment(kit, command, monkeypatch):
    monkeypatch.setenv("TOOLCRIB_SERVE_TOKEN", "a-secret-token")
    process = started("serve", "kit.py:add", "--gateway", "--port", "0", cwd=kit.parent)
    try:
        [url] = re.findall(r"(http://\S+)/tools$", process.stderr.readline())
        monkeypatch.setenv("TOOLCRIB_TOKEN", "a-secret-token")
        assert command("call", url, "add", "a=2").out == "3\n"
        monkeypatch.setenv("TOOLCRIB_TOKEN", "another-token")
        refused = command("list", url)
        assert (refused.status, "returned HTTP 401" in refused.err) == (2, True)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "say how: --mcp stdio"),
        (["--mcp", "stdio", "--gateway"], "say how: --mcp stdio"),
        (["--mcp", "carrier"], "say how: --mcp stdio"),
        (["--mcp", "http", "--host", "0.0.0.0"], "refusing to serve on 0.0.0.0 without a token"),  # noqa: S104  # which is refused
        (["--mcp", "http", "--gateway", "--host", "0.0.0.0"], "without a token"),  # noqa: S104  # which is refused
        (["--gateway", "--host", "0.0.0.0"], "refusing to serve on 0.0.0.0 without a token"),  # noqa: S104  # which is refused
        (["--gateway", "--host", "192.0.2.1", "--token", "x"], "cannot listen on 192.0.2.1:8000"),
        (["--gateway", "--port", "70000"], "a port is a number from 0 to 65535, not 70000"),
    ],
)
def test_serve_says_what_is_missing(command, words, said):
    done = command("serve", "kit.py:add", *words)
    assert done.status == 2
    assert said in " ".join(done.err.replace("│", " ").split())


@pytest.mark.parametrize(
    ("options", "places"),
    [(["--mcp", "http"], ["mcp"]), (["--mcp", "http", "--gateway"], ["tools", "mcp"])],
)
def test_serve_offers_the_tools_over_mcp(kit, command, monkeypatch, options, places):
    monkeypatch.setenv("TOOLCRIB_SERVE_TOKEN", "a-secret-token")
    words = ["--prefix", "kit.", "--allow", "kit.a*", "--allow", "kit.book", "--deny", "*.book"]
    process = started("serve", "kit.py", *options, "--port", "0", *words, cwd=kit.parent)
    try:
        said = process.stderr.readline()
        [base] = set(re.findall(r"http://127\.0\.0\.1:\d+", said))
        assert said == f"1 tool at {' and '.join(f'{base}/{place}' for place in places)}\n"
        ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": MODERN}
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28"}
        headers = {**headers, "mcp-method": "tools/list", "authorization": "Bearer a-secret-token"}
        answer = httpx2.post(f"{base}/mcp", json=ask, headers=headers).json()
        assert [tool["name"] for tool in answer["result"]["tools"]] == ["kit.add"]
        assert httpx2.post(f"{base}/mcp", json=ask, headers={**headers, "authorization": ""}).status_code == 401
        if "tools" in places:
            monkeypatch.setenv("TOOLCRIB_TOKEN", "a-secret-token")
            assert command("call", base, "kit.add", "a=2").out == "3\n"
            assert httpx2.get(f"{base}/health").status_code == 200
    finally:
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (143, "")


MODERN = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}


def test_serve_ends_at_once_while_clients_listen(kit):
    process = started("serve", "kit.py", "--mcp", "http", "--port", "0", cwd=kit.parent)
    try:
        [url] = re.findall(r"http://\S+", process.stderr.readline())
        listen = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen"}
        listen["params"] = {**MODERN, "notifications": {"toolsListChanged": True}}
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28"}
        headers["mcp-method"] = "subscriptions/listen"
        with httpx2.stream("POST", url, json=listen, headers=headers, timeout=20) as response:
            lines = response.iter_lines()
            assert any("acknowledged" in line for line in lines)
            begun = time.monotonic()
            process.terminate()
            assert any('"result"' in line for line in lines)
        process.wait(20)
        assert time.monotonic() - begun < 4
    finally:
        process.kill()
        process.communicate()


# -- list


def test_list_prints_a_line_with_tabs_for_each_tool(command):
    done = command("list", "kit.py:add", "kit:weather")
    assert done.status == 0
    assert done.out.splitlines() == [
        "add\ta: int, b: int = 1\tAdd.",
        'weather\tcity: str, unit: "celsius" | "fahrenheit" = "celsius"\tGet the weather.',
    ]


def test_list_prints_definitions_as_json(command):
    [definition] = json.loads(command("list", "kit.py:add", "--json").out)
    assert (definition["name"], definition["description"], definition["strict"]) == ("add", "Add.", False)
    assert definition["parameters"]["required"] == ["a"]


def test_what_is_left_out_is_one_line_on_standard_error(kit):
    kit.write_text("def bad(*values: int): ...\ndef good(a: int): ...", encoding="utf-8")
    done = finished("list", "kit.py", cwd=kit.parent)
    assert done.out == "good\ta: int\t\n"
    assert re.fullmatch(r"toolcrib: warning: kit\.py: bad is left out: .*\n", done.err)


def test_a_target_without_tools_is_a_misuse_told_in_one_line(command):
    assert command("list", "kti.py") == (2, "", "toolcrib: there is no file kti.py; did you mean kit.py?\n")


def test_a_table_on_a_terminal_is_aligned_and_the_calls_of_a_run_are_in_colour(kit):
    terminal = pytest.importorskip("pty", reason="there are no pseudo-terminals here")
    shown = []
    for words in (["list", "kit.py:add"], ["run", "x", "kit.py", "--model", "kit.py:two_calls"]):
        ours, theirs = terminal.openpty()
        process = started(*words, cwd=kit.parent, stdout=theirs, stderr=theirs)
        os.close(theirs)
        shown.append(_everything(ours))
        process.wait(timeout=60)
    assert re.search(r"name +parameters +description", re.sub(r"\x1b\[[\d;]*m", "", shown[0]))
    assert re.search(r"\x1b\[31m← nowhere not_found", shown[1])
    assert re.search(r"\x1b\[32m← weather ok", shown[1])
    assert "\x1b[31mParis" not in shown[1]


def _everything(descriptor: int) -> str:
    read = b""
    try:
        while piece := os.read(descriptor, 65536):
            read += piece
    except OSError:  # how Linux says that the other end of a terminal is closed
        pass
    os.close(descriptor)
    return read.decode()


# -- show


def test_show_prints_the_schema_unless_told_otherwise(command):
    assert json.loads(command("show", "kit.py", "add").out)["properties"]["b"] == {"default": 1, "type": "integer"}


@pytest.mark.parametrize("name", FORMATS)
def test_show_prints_a_tool_in_every_format(command, name):
    done = command("show", "kit.py", "weather", "--format", name)
    assert done.status == 0
    assert "weather" in done.out
    assert "celsius" in done.out
    assert "<tool " in done.out if name == "xml" else json.loads(done.out)


def test_show_names_the_formats_there_are(command):
    done = command("show", "kit.py", "weather", "--format", "yaml")
    assert done.status == 2
    assert "there is no format 'yaml': write one of schema, anthropic, gemini" in done.err


@pytest.mark.parametrize("words", [["show", "kit.py", "wether"], ["call", "kit.py", "wether", "city=Paris"]])
def test_an_unknown_tool_is_a_misuse_told_with_the_nearest_names(command, words):
    done = command(*words)
    assert (done.status, done.out) == (2, "")
    assert "Tool 'wether' not found" in done.err
    assert "'weather'" in done.err


# -- call


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["add", "a=2"], "3"),
        (["add", '{"a": 2, "b": 3}'], "5"),
        (["weather", "city=5", "unit=fahrenheit"], "14 fahrenheit in 5"),
        (["book", "order.name=7", "order.guests=7"], '{"name":"7","guests":7,"tags":[]}'),
        (["book", 'order={"name": "Ada"}', "tags=1", "tags=b"], '{"name":"Ada","guests":1,"tags":["1","b"]}'),
    ],
)
def test_call_prints_the_result(command, words, text):
    assert command("call", "kit.py", *words) == (0, f"{text}\n", "")


def test_call_reads_json_from_standard_input(command):
    assert command("call", "kit.py", "add", "-", given='{"a": 2, "b": 3}').out == "5\n"


@pytest.mark.parametrize(
    ("given", "said"),
    [("x" * 1_000_001, "standard input is longer than 1,000,000 characters"), ("[1", "not valid JSON")],
)
def test_bad_standard_input_is_a_misuse(command, given, said):
    done = command("call", "kit.py", "add", "-", given=given)
    assert (done.status, done.out) == (2, "")
    assert said in done.err


def test_standard_input_that_is_no_text_is_a_misuse(kit):
    process = started("call", "kit.py", "add", "-", cwd=kit.parent, stdin=subprocess.PIPE)
    process.stdin.buffer.write(b"\xff\xfe")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert re.search("standard input is not text|lone surrogate", err)  # by locale


def test_a_tool_that_fails_ends_with_1_and_its_message_on_standard_error(command):
    done = command("call", "kit.py", "fail", "why=no key")
    assert (done.status, done.out) == (1, "")
    assert "no key" in done.err
    assert "Traceback" not in done.err


def test_call_has_the_deadline_of_the_tool(command):
    done = command("call", "kit.py", "waits", "--json")
    assert (done.status, json.loads(done.out)["kind"]) == (1, "timed_out")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["add"], "a: required, but missing"),
        (["add", "a=many"], "a: "),
        (["add", "a=2", "c=3"], "c: not a parameter"),
        (["add", '{"a": 1, "a": 2}'], "duplicate key"),
        (["add", '{"a": 1'], "not valid JSON"),
        (["add", "2"], "'2' is no argument: write name=value"),
    ],
)
def test_arguments_that_do_not_fit_are_a_misuse(command, words, said):
    done = command("call", "kit.py", *words)
    assert (done.status, done.out) == (2, "")
    assert said in done.err


def test_call_prints_the_outcome_as_json(command):
    outcome = json.loads(command("call", "kit.py", "book", "order.name=Ada", "--json").out)
    assert outcome.pop("duration") >= 0
    value = {"name": "Ada", "guests": 1, "tags": []}
    assert outcome == {"kind": "ok", "text": '{"name":"Ada","guests":1,"tags":[]}', "value": value}


def test_call_prints_a_failure_as_json_without_a_value(command):
    done = command("call", "kit.py", "nothing", "--json")
    outcome = json.loads(done.out)
    assert (done.status, outcome["kind"], set(outcome)) == (1, "failed", {"kind", "text", "duration"})


# -- run


def test_run_prints_the_answer_and_tells_every_call_on_standard_error(command):
    done = command("run", "Weather?", "--tools", "kit.py", "--model", "kit.py:two_calls")
    assert done.status == 0
    assert done.out == "It rains in [31mParis.\n"
    lines = [re.sub(r"in \d+ ms", "in N ms", line) for line in done.err.splitlines()]
    assert '→ weather(city="Paris")' in lines
    assert "← weather ok in N ms: 14 celsius in Paris" in lines
    assert '→ add(a="many")' in lines
    assert any(line.startswith("← add invalid_arguments in N ms: Invalid arguments for 'add'") for line in lines)
    assert "→ nowhere()" in lines
    assert any(line.startswith("← nowhere not_found in N ms: Tool 'nowhere' not found.") for line in lines)


def test_run_shows_people_the_names_that_are_meant_for_them(command):
    assert "→ find(Order=7)" in command("run", "?", "kit.py:find", "-m", "kit.py:finds").err
    done = command("run", "?", "kit.py:find", "-m", "kit.py:finds", "--json")
    (start,) = [json.loads(line) for line in done.out.splitlines() if '"tool_started"' in line]
    assert (start["call"]["arguments"], start["display_names"]) == ({"a": 7}, {"a": "Order"})


def test_run_takes_more_targets_after_the_prompt(command):
    done = command("run", "Weather?", "kit.py:weather", "kit.py:add", "-m", "kit.py:two_calls", "--json")
    results = [json.loads(line) for line in done.out.splitlines() if '"tool_finished"' in line]
    assert {(result["call"]["name"], result["kind"]) for result in results} == {
        ("weather", "ok"),
        ("add", "invalid_arguments"),
        ("nowhere", "not_found"),
    }


def test_run_prints_a_line_of_json_for_every_event(command):
    done = command("run", "Weather?", "-t", "kit.py:weather", "-m", "kit.py:two_calls", "--json")
    events = [json.loads(line) for line in done.out.splitlines()]
    assert done.err == ""
    assert [event["event"] for event in events][:2] == ["run_started", "model_replied"]
    assert {event["run_id"] for event in events} == {events[0]["run_id"]}
    assert events[0]["prompt"] == "Weather?"
    assert events[1]["calls"][0] == {"id": "call_1_1", "name": "weather", "arguments": {"city": "Paris"}}
    assert "".join(event["text"] for event in events if event["event"] == "text_delta") == events[-1]["text"]
    assert (events[-1]["event"], events[-1]["ok"], events[-1]["error"]) == ("run_finished", True, None)
    assert events[-1]["metadata"]["turns"] == 2


def test_a_run_that_fails_ends_with_1_and_says_why(command):
    done = command("run", "x", "kit.py", "-m", "kit.py:fails")
    assert done.status == 1
    assert re.search(r"^← fail failed in .*no key$", done.err, re.MULTILINE)
    assert done.err.splitlines()[-1] == "RuntimeError: the model is gone"


def test_a_run_ends_after_the_turns_it_is_given(command):
    done = command("run", "x", "kit.py", "-m", "kit.py:endless", "--max-turns", "2")
    assert done.status == 1
    assert "max_turns: The model still asked for tools after 2 turns" in done.err


def test_run_needs_no_tools_and_reads_the_prompt_from_standard_input(command):
    done = command("run", "-", "-m", "kit.py:talks", "--json", given="Good morning\n")
    assert json.loads(done.out.splitlines()[0])["prompt"] == "Good morning\n"
    assert done.status == 0


def test_characters_that_the_output_cannot_carry_are_escaped(kit):
    kit.write_text("def name() -> str: return 'Zoë \u2192 \U0001f9f0'", encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    words = [sys.executable, "-m", "toolcrib", "call", "kit.py", "name"]
    for option, out in ([], "Zo\\xeb \\u2192 \\U0001f9f0\n"), (["--json"], "Zoë → 🧰"):
        done = subprocess.run(
            [*words, *option], cwd=kit.parent, env=environment, capture_output=True, check=True
        )  # our own interpreter
        assert (json.loads(done.stdout)["value"] if option else done.stdout.decode("ascii")) == out


def test_run_passes_the_system_message_on(command, kit):
    code = """
        from toolcrib.types import Reply
        class Echo:
            model = "echo"
            async def acomplete(self, messages, tools):
                return Reply(" ".join(f"{message.role}: {message.content}" for message in messages))
        engine = Echo()
        """
    (kit.parent / "kit_echo.py").write_text(textwrap.dedent(code), encoding="utf-8")
    done = command("run", "Hi.", "--system", "Be brief.", "-m", "kit_echo:engine")
    assert done.out == "system: Be brief. user: Hi.\n"


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("local:9b", "no local model 'local:9b'"),
        ("no-such-provider:model", "unknown model 'no-such-provider:model'"),
        ("kit.py:add", "kit.py:add is no engine: it has no acomplete()"),
        ("kit.py:talk", "did you mean talks?"),
    ],
)
def test_a_model_that_does_not_exist_is_a_misuse(command, model, said):
    done = command("run", "x", "-m", model)
    assert (done.status, done.out) == (2, "")
    assert said in done.err


# -- the command itself


def test_the_help_names_every_command():
    shown = CliRunner().invoke(cli.app(), ["--help"])
    assert shown.exit_code == 0
    assert {"run", "list", "show", "call"} <= set(shown.output.split())


@pytest.mark.parametrize("name", ["run", "list", "show", "call"])
def test_every_command_has_help_and_refuses_what_it_does_not_know(command, name):
    assert command(name, "--help").out.startswith(f"Usage: toolcrib {name} ")
    done = command(name, "--no-such-option")
    assert (done.status, done.out) == (2, "")


def test_python_m_toolcrib_is_the_command(kit):
    assert finished("--version", cwd=kit.parent).out.startswith("toolcrib 0.")
    assert finished("call", "kit.py", "fail", "why=x", cwd=kit.parent).status == 1
    assert finished("list", "nowhere.py", cwd=kit.parent) == (2, "", "toolcrib: there is no file nowhere.py\n")


def test_without_typer_one_line_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; from toolcrib.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )  # our own interpreter
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "toolcrib: the command line needs an optional dependency: pip install 'toolcrib[cli]'\n"


def test_listing_tools_loads_no_model_library(kit):
    code = "import sys, toolcrib.cli as cli\ntry: cli.main()\nfinally: print(*sys.modules, file=sys.stderr)"
    words = [sys.executable, "-c", code, "list", "kit.py:add"]
    done = subprocess.run(words, cwd=kit.parent, capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert "typer" in loaded
    assert not loaded & {"pydantic_ai", "openai", "anthropic", "google", "xllamacpp", "mcp", "griffe"}


def test_a_reader_who_leaves_early_is_no_error(kit):
    kit.write_text("\n".join(f"def f{n}(a: int): ..." for n in range(3000)), encoding="utf-8")
    process = started("list", "kit.py", cwd=kit.parent)
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=60) == 1
    process.stderr.close()


WAITING = """
    import asyncio, sys, time
    from toolcrib.engines.scripted import ScriptedEngine

    def sync_wait() -> None:
        print("waiting", file=sys.stderr, flush=True)
        time.sleep(60)

    async def async_wait() -> None:
        print("waiting", file=sys.stderr, flush=True)
        await asyncio.sleep(60)

    calls_sync = ScriptedEngine([[("sync_wait", {})]])
    calls_async = ScriptedEngine([[("async_wait", {})]])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent otherwise there")
@pytest.mark.parametrize(
    "words",
    [
        ["call", "kit.py", "sync_wait"],
        ["call", "kit.py", "async_wait"],
        ["run", "x", "kit.py", "-m", "kit.py:calls_sync"],
        ["run", "x", "kit.py", "-m", "kit.py:calls_async"],
    ],
)
def test_ctrl_c_ends_at_once_with_130_and_without_a_traceback(kit, words):
    kit.write_text(textwrap.dedent(WAITING), encoding="utf-8")
    process = started(*words, cwd=kit.parent)
    while "waiting" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
