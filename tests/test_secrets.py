import copy
import gc
import json
import pickle

import pytest

from toolcrib import (
    Secret,
    ToolCall,
    ToolContext,
    ToolExecutionError,
    ToolProgress,
    ToolResponse,
    Toolset,
    acall_tools,
    dispatch,
    formats,
)

pytestmark = pytest.mark.anyio
KEY = 'sk-"7f\\&<9>'


class Deps:
    def __init__(self):
        self.key = Secret(KEY)


def as_text(context: ToolContext[Deps]) -> str:
    return f"used {context.deps.key.reveal()} twice: {context.deps.key.reveal()}"


def as_data(context: ToolContext[Deps]) -> dict[str, object]:
    return {"auth": [context.deps.key.reveal()], context.deps.key.reveal(): 1, "whole": context.deps.key}


def as_response(context: ToolContext[Deps]) -> ToolResponse:
    return ToolResponse(success=True, message=context.deps.key.reveal(), data={"key": context.deps.key.reveal()})


def as_failure(context: ToolContext[Deps]) -> ToolResponse:
    return ToolResponse(success=False, message=f"bad key {context.deps.key.reveal()}")


def as_error(context: ToolContext[Deps]) -> None:
    raise ToolExecutionError(f"401 for {context.deps.key.reveal()}")


def as_os_error(context: ToolContext[Deps]) -> None:
    raise OSError(2, "no such key", context.deps.key.reveal())


def as_progress(context: ToolContext[Deps]) -> str:
    context.progress(1, None, f"trying {context.deps.key.reveal()}")
    return "done"


def in_the_cut(context: ToolContext[Deps]) -> str:
    return "x" * 66_660 + context.deps.key.reveal() * 4_000


def torn_by_an_escape(context: ToolContext[Deps]) -> str:
    key = context.deps.key.reveal()
    return f"{key[:3]}\x1b[0m{key[3:]}"


def leaking_object(context: ToolContext[Deps]) -> object:
    return context.deps


TOOLS = [
    as_text,
    as_data,
    as_response,
    as_failure,
    as_error,
    as_os_error,
    as_progress,
    in_the_cut,
    torn_by_an_escape,
    leaking_object,
]


def everything_shown(results, events):
    shown = [repr(results), repr(events)]
    for result in results:
        shown += [result.text, repr(result.value), repr(result.parts), repr(result.response)]
    for name, module in formats.FORMATS.items():
        shown.append(f"{name}: {json.dumps(module.results(results), default=repr)}")
    shown += [event.message for event in events if isinstance(event, ToolProgress)]
    return "\n".join(shown)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.__name__)
@pytest.mark.parametrize("colour", ["sync", "async"])
async def test_a_secret_of_the_context_reaches_neither_model_nor_listener(tool, colour):
    events = []
    call, toolset, context = ToolCall("1", tool.__name__), Toolset([tool]), ToolContext(deps=Deps())
    if colour == "sync":
        results = [dispatch.call(call, toolset, context=context, on_event=events.append)]
    else:
        results = await acall_tools([call], toolset, context=context, on_event=events.append)
    shown = everything_shown(results, events)
    for spelling in (KEY, json.dumps(KEY)[1:-1], json.dumps(json.dumps(KEY)[1:-1])[1:-1], KEY.replace("&", "&amp;")):
        assert spelling not in shown
    assert "sk-" not in shown.replace(KEY, "")


def test_a_value_without_a_secret_is_kept_as_it_is():
    held = Secret("never-shown")
    value = {"a": [1]}
    result = dispatch.call(ToolCall("1", "give"), Toolset([named_give(value)]))
    assert result.value is value
    assert held.reveal() == "never-shown"


def named_give(value):
    def give() -> object:
        return value

    return give


def test_a_secret_never_shows_itself():
    secret = Secret("hunter22")
    assert "hunter22" not in f"{secret} {secret!r} {[secret]} {copy.deepcopy([secret])}"
    assert copy.copy(secret).reveal() == "hunter22"
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    with pytest.raises(TypeError, match=r"^a secret is text$"):
        Secret(b"hunter22")


def test_a_secret_that_is_gone_hides_nothing_more():
    def say() -> str:
        return "open sesame"

    held = Secret("sesame")
    assert dispatch.call(ToolCall("1", "say"), Toolset([say])).text == "open ***"
    del held
    gc.collect()
    assert dispatch.call(ToolCall("1", "say"), Toolset([say])).text == "open sesame"


def test_a_very_short_secret_does_not_tear_words_apart():
    held = Secret("a")
    assert dispatch.call(ToolCall("1", "give"), Toolset([named_give("banana")])).text == "banana"
    assert held.reveal() == "a"
