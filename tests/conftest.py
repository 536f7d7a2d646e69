from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A shared machine may take its time; a property holds all the same.
settings.register_profile("quick", max_examples=50, deadline=None)
settings.register_profile("nightly", max_examples=10_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

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
