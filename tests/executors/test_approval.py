import asyncio

import pytest

from toolcrib import ApprovalExecutor, Limits, Tool, ToolCall, Toolset, acall_tools, call_tools

pytestmark = pytest.mark.anyio


class Shop:
    def __init__(self):
        self.sent = []

    def send(self, to: str, amounts: list[int]) -> str:
        """Send money."""
        self.sent.append((to, amounts))
        return f"sent to {to}"


def asked(verdict, *, arguments='{"to": "Ann", "amounts": [5]}', effect="write", **options):
    shop = Shop()
    toolset = Toolset([Tool(shop.send, effect=effect)])
    executor = ApprovalExecutor(verdict, **options)
    return shop, call_tools([ToolCall("1", "send", arguments)], toolset, executor=executor)[0]


def test_an_approved_call_runs():
    shop, result = asked(lambda tool, arguments, call: (tool.name, arguments["to"], call.id) == ("send", "Ann", "1"))
    assert result.text == "sent to Ann"
    assert shop.sent == [("Ann", [5])]


def test_an_async_answer_is_awaited():
    async def ask(tool, arguments, call):
        await asyncio.sleep(0)
        return True

    assert asked(ask)[1].ok
    assert asked(lambda *asked: ask(*asked))[1].ok  # noqa: PLW0108  # a sync function that returns an awaitable


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        (False, "it was not approved"),
        (None, "it was not approved"),
        ("", "it was not approved"),
        ("too much", "too much"),
    ],
)
def test_a_denied_call_never_runs_and_the_model_is_told_why(verdict, reason):
    shop, result = asked(lambda *_: verdict)
    assert (result.kind, result.text) == ("denied", f"Tool 'send' was denied: {reason}")
    assert shop.sent == []


@pytest.mark.parametrize("verdict", [1, object(), ["yes"]])
def test_only_true_itself_approves(verdict):
    assert asked(lambda *_: verdict)[1].kind == "denied"


def test_a_failing_question_denies():
    def ask(*_):
        raise RuntimeError("no terminal")

    shop, result = asked(ask)
    assert result.kind == "denied"
    assert shop.sent == []


def test_edited_arguments_are_validated_and_are_what_runs():
    shop, result = asked(lambda *_: {"to": "Bob", "amounts": ["7"]})
    assert result.ok
    assert shop.sent == [("Bob", [7])]
    shop, result = asked(lambda *_: {"to": "Bob", "sum": 7})
    assert result.kind == "invalid_arguments"
    assert shop.sent == []


def test_what_asking_does_to_the_arguments_it_was_shown_changes_nothing():
    def ask(tool, arguments, call):
        arguments["amounts"].append(1_000)
        arguments["to"] = "Eve"
        return True

    assert asked(ask)[0].sent == [("Ann", [5])]


def test_invalid_arguments_are_answered_without_asking():
    questions = []
    _, result = asked(lambda *_: questions.append(1), arguments='{"to": 5}')
    assert result.kind == "invalid_arguments"
    assert questions == []


@pytest.mark.parametrize(
    ("effect", "is_asked"), [("read", False), ("idempotent", True), ("destructive", True), (None, True)]
)
def test_reading_needs_no_approval_unless_it_is_asked_for(effect, is_asked):
    assert asked(lambda *_: False, effect=effect)[1].ok is not is_asked
    assert asked(lambda *_: False, effect=effect, effects=("read",))[1].ok is (effect != "read")


async def test_waiting_for_a_person_does_not_time_the_tool_out():
    decided = asyncio.Event()

    async def ask(tool, arguments, call):
        await decided.wait()
        return True

    async def quick() -> str:
        await asyncio.sleep(0)
        return "done"

    run = asyncio.create_task(
        acall_tools(
            [ToolCall("1", "quick")], Toolset([quick]), executor=ApprovalExecutor(ask), limits=Limits(deadline=0.02)
        )
    )
    await asyncio.sleep(0.06)  # well past the tool's own deadline
    decided.set()
    assert (await run)[0].text == "done"


async def test_an_answer_that_never_comes_denies_the_call_in_bounded_time():
    async def ask(*_):
        await asyncio.Event().wait()

    def tool() -> None: ...

    executor = ApprovalExecutor(ask, timeout=0.02)
    [result] = await acall_tools([ToolCall("1", "tool")], Toolset([tool]), executor=executor)
    assert result.text == "Tool 'tool' was denied: nobody approved it within 0.02 seconds"
