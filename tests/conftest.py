from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A shared machine may take its time; a property holds all the same.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

# Libraries read it when they are imported, so it is set before any test module is.
os.environ["HF_HUB_OFFLINE"] = "1"

ROOT = Path(__file__).parents[1]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    path = ROOT.parent / "shared" / "data"
    if not path.is_dir():
        pytest.skip("the third-party test data (shared/data beside the project) is not here")
    return path
