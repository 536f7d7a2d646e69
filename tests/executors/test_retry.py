import pytest

from toolcrib import (
    ExternalToolError,
    Limits,
    RetryExecutor,
    Tool,
    ToolCall,
    ToolDeniedError,
    ToolResponse,
    Toolset,
    call_tools,
)


class Flaky:
    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)

    def look(self, n: int = 0) -> object:
        """Look."""
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


def answer(flaky, effect, **options):
    toolset = Toolset([Tool(flaky.look, effect=effect)])
    return call_tools([ToolCall("1", "look")], toolset, executor=RetryExecutor(wait=0, **options))[0]


@pytest.mark.parametrize("effect", ["read", "idempotent"])
def test_a_harmless_call_is_tried_again_until_it_succeeds(effect):
    flaky = Flaky(OSError("down"), OSError("down"), "up", "never asked")
    assert answer(flaky, effect).text == "up"
    assert flaky.outcomes == ["never asked"]


@pytest.mark.parametrize("effect", ["write", "destructive", None])
def test_a_call_that_may_do_harm_runs_once(effect):
    flaky = Flaky(OSError("down"), "up")
    assert answer(flaky, effect).kind == "failed"
    assert flaky.outcomes == ["up"]


@pytest.mark.parametrize(("retryable", "text"), [(True, "up"), (None, "up"), (False, "Tool 'look' failed: no")])
def test_a_gateway_that_says_it_is_no_use_is_believed(retryable, text):
    assert answer(Flaky(ExternalToolError("no", retryable=retryable), "up"), "read").text == text


def test_what_is_worth_another_attempt_may_be_chosen():
    flaky = Flaky(ExternalToolError("no", retryable=False), "up")
    assert answer(flaky, "read", retries=lambda error: isinstance(error, ExternalToolError)).text == "up"


def test_the_last_error_is_the_answer():
    assert answer(Flaky(OSError("1"), OSError("2"), OSError("3")), "read").text == "Tool 'look' failed: OSError: 3"


def test_an_error_not_worth_it_and_a_denial_end_the_attempts():
    flaky = Flaky(KeyError("gone"), "up")
    assert answer(flaky, "read", retries=lambda error: not isinstance(error, KeyError)).kind == "failed"
    assert answer(Flaky(ToolDeniedError("no"), "up"), "read").kind == "denied"


def test_a_soft_failure_is_an_answer_and_not_tried_again():
    flaky = Flaky(ToolResponse(success=False, message="no such order"), "up")
    assert answer(flaky, "read").kind == "failed"
    assert flaky.outcomes == ["up"]


def test_each_attempt_has_the_whole_deadline():
    seen = []

    class Hanging:
        async def run(self, tool, arguments, call):
            seen.append(call.context.timeout)
            raise TimeoutError

    def look() -> None: ...

    executor = RetryExecutor(Hanging(), attempts=2, wait=0)
    call_tools(
        [ToolCall("1", "look")], Toolset([Tool(look, effect="read")]), executor=executor, limits=Limits(deadline=9)
    )
    assert seen == [9, 9]


@pytest.mark.parametrize("options", [{"attempts": 0}, {"wait": -1}])
def test_nonsense_is_refused_when_it_is_built(options):
    with pytest.raises(ValueError, match="attempts must be"):
        RetryExecutor(**options)
