from __future__ import annotations

import json
import subprocess
import sys

import pytest
from model_server import KEY
from pydantic_ai.models.function import FunctionModel

from toolcrib import EngineError, Message, Secret
from toolcrib.engines.llm import LLMEngine
from toolcrib.toolset import Toolset

HELLO = [Message("user", "hello")]
NONE = Toolset()


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("openai:gpt-5.4-mini", "openai:gpt-5.4-mini"),
        ("gpt-5.4-mini", "openai:gpt-5.4-mini"),
        ("o3-mini", "openai:o3-mini"),
        ("claude-haiku-4-5", "anthropic:claude-haiku-4-5"),
        ("gemini-2.5-flash", "google:gemini-2.5-flash"),
        ("google-gla:gemini-2.5-flash", "google-gla:gemini-2.5-flash"),
        ("openai-responses:gpt-5.4", "openai-responses:gpt-5.4"),
    ],
)
def test_a_name_tells_its_provider(name, model):
    assert LLMEngine(name, api_key=KEY).model == model


@pytest.mark.parametrize("name", ["qwen3-0.6b", "qwen3:0.6b", "openai:qwen3-0.6b", "meta-llama/Llama-3.1-8B"])
@pytest.mark.anyio
async def test_a_server_of_ones_own_is_asked_for_any_name_without_a_key(server, monkeypatch, name):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.say("Hi.")
    assert (await LLMEngine(name, base_url=server.base_url).acomplete(HELLO, NONE)).text == "Hi."
    assert server.bodies[0]["model"] == name.removeprefix("openai:")
    assert KEY not in server.requests[0].headers["authorization"]


@pytest.mark.parametrize("name", ["", "some-model", "nobody:some-model", "openai:", ":gpt-5.4-mini"])
def test_a_name_that_says_no_provider_is_refused_with_examples(name):
    with pytest.raises(ValueError, match="anthropic:claude-haiku-4-5"):
        LLMEngine(name)


def test_a_name_that_is_nearly_known_is_answered_with_the_known_one():
    with pytest.raises(ValueError, match="did you mean 'mistral-large-latest'"):
        LLMEngine("mistral-larg-latest")


def test_what_is_neither_name_nor_model_is_refused():
    with pytest.raises(TypeError, match="not 3"):
        LLMEngine(3)
    with pytest.raises(ValueError, match="base_url"):
        LLMEngine(FunctionModel(lambda *_: None), base_url="http://127.0.0.1")


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai:gpt-5.4-mini", "OPENAI_API_KEY"),
        ("openai-responses:gpt-5.4-mini", "OPENAI_API_KEY"),
        ("anthropic:claude-haiku-4-5", "ANTHROPIC_API_KEY"),
        ("google:gemini-2.5-flash", "GOOGLE_API_KEY"),
        ("deepseek:deepseek-chat", "DEEPSEEK_API_KEY"),
    ],
)
def test_a_missing_key_names_its_environment_variable(monkeypatch, name, variable):
    for each in (variable, "GEMINI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(each, raising=False)
    with pytest.raises(EngineError, match=f"set the environment variable {variable} or pass api_key="):
        LLMEngine(name)


def test_a_key_is_never_shown(server):
    engine = LLMEngine("gpt-5.4-mini", base_url="http://me:hidden-word@127.0.0.1:1/v1", api_key=Secret(KEY))
    assert repr(engine) == "LLMEngine('openai:gpt-5.4-mini', base_url='http://127.0.0.1:1/v1')"


@pytest.mark.anyio
async def test_a_key_may_be_a_secret(server):
    server.say("Hi.")
    await LLMEngine("gpt-5.4-mini", base_url=server.base_url, api_key=Secret(KEY)).acomplete(HELLO, NONE)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def run_fresh(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_importing_the_engine_does_not_import_pydantic_ai():
    assert run_fresh("import sys, toolcrib.engines.llm; print('pydantic_ai' in sys.modules)") == "False"


@pytest.mark.parametrize(
    ("missing", "extras"),
    [
        (
            ["openai", "anthropic", "google.genai"],
            {
                "openai:gpt-5.4-mini": "openai",
                "deepseek:deepseek-chat": "openai",
                "claude-haiku-4-5": "anthropic",
                "google:gemini-2.5-flash": "google",
            },
        ),
        (["pydantic_ai"], {"anthropic:claude-haiku-4-5": "anthropic", "gpt-5.4-mini": "openai", "what": "openai"}),
    ],
)
def test_a_missing_package_names_the_extra_that_brings_it(missing, extras):
    code = f"""
import json, sys
sys.modules.update(dict.fromkeys({missing}))
from toolcrib import MissingExtraError
from toolcrib.engines.llm import LLMEngine
found = {{}}
for name in {list(extras)}:
    try:
        LLMEngine(name, api_key="k")
    except MissingExtraError as error:
        found[name] = error.extra
print(json.dumps(found))
"""
    assert json.loads(run_fresh(code)) == extras
