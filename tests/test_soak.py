import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[1] / "benchmarks" / "soak.py"


@pytest.fixture(scope="module")
def soak():
    spec = importlib.util.spec_from_file_location("soak", SOAK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_thousands_of_calls_with_faults_leave_nothing_behind():
    command = [sys.executable, "-W", "ignore", SOAK, "--calls", "2000"]  # a person may be warned of slow threads
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (run.returncode, run.stderr) == (0, ""), run.stdout + run.stderr
    assert run.stdout.startswith("2,040 calls")
    assert "every answer was right" in run.stdout


@pytest.mark.parametrize("figure", ["rss_mb", "threads", "files", "tasks"])
def test_a_figure_that_grows_beyond_its_bound_is_told(soak, figure):
    before = soak.Figures(40.0, 10, 9, 0)
    bound = getattr(soak.BOUNDS, figure)
    assert soak.grown(before, before._replace(**{figure: getattr(before, figure) + bound})) == []
    [told] = soak.grown(before, before._replace(**{figure: getattr(before, figure) + bound + 1}))
    assert told.startswith(f"{figure}: ")


def test_threads_are_too_many_however_many_there_were_before(soak):
    figures = soak.Figures(40.0, soak.MOST_THREADS + 1, 9, 0)
    assert soak.grown(figures, figures)


def test_a_wrong_answer_is_told(soak):
    calls = [(soak.ToolCall("1", "add", '{"a": 1}'), "ok"), (soak.ToolCall("2", "fail"), "failed")]
    results = soak.as_a_turn([call for call, _ in calls])
    assert list(soak.mistakes("way", calls, results)) == []
    assert list(soak.mistakes("way", calls, results[::-1]))
    assert list(soak.mistakes("way", calls, results[:1]))
