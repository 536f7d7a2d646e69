from __future__ import annotations

import pytest
from model_server import KEY, ModelServer

from toolcrib.engines.llm import LLMEngine


@pytest.fixture
def server():
    with ModelServer() as running:
        yield running


@pytest.fixture
def engine(server):
    return LLMEngine("openai:gpt-5.4-mini", base_url=server.base_url, api_key=KEY)


@pytest.fixture
def claude(server):
    return LLMEngine("anthropic:claude-haiku-4-5", base_url=server.root, api_key=KEY)
