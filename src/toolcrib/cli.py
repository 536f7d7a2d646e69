"""The command line: `toolcrib run`, `list`, `show`, `call` and `serve`."""

from __future__ import annotations

import asyncio
import io
import os
import re
import sys
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import aclosing, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, cast

from pydantic_core import from_json, to_jsonable_python

from toolcrib import dispatch, targets
from toolcrib._terminal import brief, console, json_text, print_table, printable, seconds, write_line
from toolcrib._words import json_of
from toolcrib.agent import Agent
from toolcrib.arguments import expected_call
from toolcrib.engines.llm import LLMEngine
from toolcrib.engines.local import LocalEngine
from toolcrib.errors import MissingExtraError, TargetError, ToolcribError, ToolNotFoundError
from toolcrib.events import (
    Event,
    ModelReplied,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)
from toolcrib.formats import FORMATS
from toolcrib.limits import DEFAULT_LIMITS
from toolcrib.protocols import Engine
from toolcrib.serve.gateway import serve_gateway
from toolcrib.tools import Tool
from toolcrib.toolset import Toolset
from toolcrib.types import Envelope, ToolCall, ToolResult

if TYPE_CHECKING:
    import typer

__all__ = ["app", "main"]

_FAILED, _MISUSED, _INTERRUPTED = 1, 2, 130
_MISUSES = {"not_found", "invalid_arguments"}
_FORMATS = ", ".join(("schema", *FORMATS))


def main() -> NoReturn:
    """Run the command line and end the process with its exit status.

    0 when all went well, 1 when a tool or a run failed, 2 when the command makes no sense, 130 on Ctrl-C.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # models write any character, terminals may not
    sys.exit(_quietly(_status))


def _quietly(work: Callable[[], int]) -> int:
    """Return the status of `work`; a reader who left, or Ctrl-C, is not worth a traceback."""
    try:
        try:
            return work()
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Python flushes both once more at exit, and must find something that takes it.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nowhere, stream)
        return _FAILED


def _status() -> int:
    try:
        command = app()
        with _plain_warnings():
            command(prog_name="toolcrib")
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else int(done.code is not None)
    except TargetError as error:
        return _complain(str(error), _MISUSED)
    except ToolcribError as error:
        return _complain(str(error), _FAILED)
    return 0


def app() -> typer.Typer:
    """Return the command line as a Typer application.

    Raises:
        MissingExtraError: The `cli` extra is not installed.
    """
    global typer  # noqa: PLW0603  # the commands' annotations name it, and are read only here
    try:
        import rich as _  # noqa: F401  # only whether it is there
        import typer
    except ImportError:
        raise MissingExtraError("cli", "the command line") from None
    made = typer.Typer(
        add_completion=False, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False
    )
    made.callback()(_toolcrib)
    for name, command in {"run": _run, "list": _list, "show": _show, "call": _call, "serve": _serve}.items():
        made.command(name)(command)
    return made


# -- the commands


def _print_version(wanted: bool) -> None:  # noqa: FBT001  # Typer calls it
    if wanted:
        write_line(f"toolcrib {version('toolcrib')}")
        raise typer.Exit


def _toolcrib(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Write a tool once. Call it from any model, serve it anywhere, run it safely.

    A TARGET names tools: path/to/file.py, package.module, either with :attribute, or the URL of a tool gateway.
    """


def _run(
    prompt: Annotated[
        str, typer.Argument(metavar="PROMPT", help="What the model is asked; - reads it from standard input.")
    ],
    more: Annotated[list[str] | None, typer.Argument(metavar="TARGET", help="More tools, as --tools.")] = None,
    *,
    tools: Annotated[
        list[str] | None, typer.Option("--tools", "-t", metavar="TARGET", help="Tools the model may call; repeatable.")
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            help="local, local:1.5b, openai:..., claude-..., or file.py:engine for an engine of your own.",
        ),
    ] = "local",
    system: Annotated[str, typer.Option(help="The system message.")] = "",
    max_turns: Annotated[int, typer.Option(min=1, help="How often the model is asked.")] = DEFAULT_LIMITS.max_turns,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON for every event.")] = False,
) -> None:
    """Let a model answer PROMPT with the tools it is given, and show every call it makes.

    The answer goes to standard output, the calls to standard error.
    """
    toolset = targets.resolve_all([*(tools or ()), *(more or ())])
    limits = DEFAULT_LIMITS.replace(max_turns=max_turns)
    agent = Agent(_engine(model), [toolset], system=system, limits=limits)
    show = _print_record if as_json else _Transcript()
    envelope = asyncio.run(_follow(agent, _read() if prompt == "-" else prompt, show))
    raise typer.Exit(0 if envelope.ok else _FAILED)


def _list(
    target: Annotated[list[str], typer.Argument(metavar="TARGET", help="What names the tools.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the definitions as JSON.")] = False,
) -> None:
    """List the tools of every TARGET: names, parameters, and what they do."""
    tools = targets.resolve_all(target)
    if as_json:
        write_line(json_text([tool.definition() for tool in tools], indent=2))
        return
    rows = [(tool.name, _parameters(tool), _first_line(tool.description)) for tool in tools]
    print_table(("name", "parameters", "description"), rows)


def _parameters(tool: Tool) -> str:
    """Return a tool's parameters in one line, each with the name its author gave it for people."""
    named = [f"{p.name}: {p.display_name}" for p in tool.parameters if p.display_name]
    return expected_call("", tool.input_schema)[1:-1] + (f" [{', '.join(named)}]" if named else "")


def _show(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="What names the tools.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tool.")],
    *,
    form: Annotated[str, typer.Option("--format", "-f", help=f"One of {_FORMATS}.")] = "schema",
) -> None:
    """Show one tool as a model of some provider is shown it."""
    tool = _tool(targets.resolve(target), name)
    if form != "schema" and form not in FORMATS:
        raise typer.BadParameter(f"there is no format {form!r}: write one of {_FORMATS}")
    shown = tool.input_schema if form == "schema" else FORMATS[form].tools(Toolset([tool]))
    write_line(shown if isinstance(shown, str) else json_text(shown, indent=2))


def _call(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="What names the tools.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tool.")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE", help="Its arguments; or one JSON object, or - to read it from standard input."
        ),
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Call one tool as a model would: arguments are checked, and the call has a deadline."""
    toolset = targets.resolve(target)
    tool = _tool(toolset, name)
    try:
        text = _read() if arguments == ["-"] else json_of(arguments or (), tool.input_schema)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    result = dispatch.call(ToolCall("1", name, text), toolset)
    if as_json:
        write_line(json_text(_outcome(result)))
    else:
        write_line(result.text, stderr=not result.ok)
    raise typer.Exit(0 if result.ok else _MISUSED if result.kind in _MISUSES else _FAILED)


def _serve(
    target: Annotated[list[str], typer.Argument(metavar="TARGET", help="What names the tools.")],
    *,
    gateway: Annotated[bool, typer.Option("--gateway", help="Serve them as JSON over HTTP.")] = False,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = 8000,
    token: Annotated[
        str | None, typer.Option(envvar="TOOLCRIB_TOKEN", help="What callers must send as a bearer token.")
    ] = None,
) -> None:
    """Serve the tools of every TARGET to other programs, until Ctrl-C."""
    if not gateway:
        raise typer.BadParameter("say how: --gateway")
    toolset = targets.resolve_all(target)

    def tell(url: str) -> None:
        write_line(f"{len(toolset)} tool{'' if len(toolset) == 1 else 's'} at {url}/tools", stderr=True)

    try:
        serve_gateway(toolset, host=host, port=port, token=token or None, on_start=tell)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    except OSError as error:
        raise typer.BadParameter(f"cannot listen on {host}:{port}: {error.strerror or error}") from None


def _tool(tools: Toolset, name: str) -> Tool:
    try:
        return tools[name]
    except ToolNotFoundError as error:
        raise typer.BadParameter(str(error)) from None


def _outcome(result: ToolResult) -> dict[str, Any]:
    outcome: dict[str, Any] = {"kind": result.kind, "text": result.text, "duration": result.duration}
    if result.ok:
        with suppress(ValueError):  # a value that JSON cannot carry is told by its text alone
            outcome["value"] = to_jsonable_python(result.value)
    return outcome


# -- the model


def _engine(model: str) -> Engine:
    try:
        if model.partition(":")[0] == "local":
            return LocalEngine(model)
        if not _is_own_engine(model):
            return LLMEngine(model)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--model") from None
    engine = targets.attribute(model)
    if not callable(getattr(engine, "acomplete", None)):
        raise typer.BadParameter(f"{model} is no engine: it has no acomplete()", param_hint="--model")
    return engine


def _is_own_engine(model: str) -> bool:
    # A provider's name has neither a dot nor a slash, unlike most places of code.
    place = model.rpartition(":")[0]
    return bool(re.search(r"[./\\]", place)) or (place.isidentifier() and _is_here(place))


def _is_here(module: str) -> bool:
    return Path(f"{module}.py").is_file() or Path(module, "__init__.py").is_file()


async def _follow(agent: Agent, prompt: str, show: Callable[[Event], None]) -> Envelope:
    envelope = Envelope(None)
    async with aclosing(agent.astream(prompt)) as events:
        async for event in events:
            show(event)
            if isinstance(event, RunFinished):
                envelope = event.envelope
    return envelope


# -- what a person reads


class _Transcript:
    """Writes a run for a person: the words to standard output, the calls to standard error."""

    def __init__(self) -> None:
        self._calls = console(stderr=True)
        self._begun: set[str] = set()
        self._heard = False
        self._in_line = False

    def __call__(self, event: Event) -> None:
        match event:
            case TextDelta(text=text):
                self._say(text)
            case ModelReplied(reply=reply):
                if not self._heard:  # an engine that does not stream
                    self._say(reply.text)
                self._heard = False
                self._end_line()
            case ToolStarted(call=call):
                self._begin(call)
            case ToolProgress(progress=progress, total=total, message=message):
                self._line(f"  {progress:g}{'' if total is None else f' of {total:g}'} {message or ''}".rstrip(), "dim")
            case ToolFinished(result=result):
                self._finish(result)
            case RunFinished(envelope=envelope) if envelope.error is not None:
                self._line(f"{envelope.error.type}: {envelope.error.message}", "red")
            case _:
                pass

    def _say(self, text: str) -> None:
        if text:
            sys.stdout.write(printable(text))
            sys.stdout.flush()
            self._heard = True
            self._in_line = not text.endswith("\n")

    def _end_line(self) -> None:
        if self._in_line:
            write_line("")
        self._in_line = False

    def _begin(self, call: ToolCall) -> None:
        self._begun.add(call.id)
        self._line(f"→ {call.name}({brief(_shown_arguments(call))})", "cyan")

    def _finish(self, result: ToolResult) -> None:
        if result.call.id not in self._begun:
            self._begin(result.call)
        outcome = f"← {result.call.name} {result.kind} in {seconds(result.duration)}: {brief(result.text)}"
        self._line(outcome, "green" if result.ok else "red")

    def _line(self, text: str, style: str) -> None:
        self._end_line()
        self._calls.print(printable(text), style=style)


def _shown_arguments(call: ToolCall) -> str:
    arguments = _parsed(call)
    if not isinstance(arguments, Mapping):
        return str(arguments)
    return ", ".join(f"{name}={json_text(value)}" for name, value in cast("Mapping[str, Any]", arguments).items())


def _parsed(call: ToolCall) -> Any:
    """Return the arguments as data; text that is no JSON stays as the model wrote it."""
    if isinstance(call.arguments, str):
        with suppress(ValueError):
            return from_json(call.arguments or "{}", allow_inf_nan=False)
        return call.arguments
    return to_jsonable_python(call.arguments, fallback=str)


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def _complain(message: str, status: int) -> int:
    write_line(f"toolcrib: {printable(message)}", stderr=True)
    return status


def _show_warning(message: Warning | str, *_: Any) -> None:
    _complain(f"warning: {message}", 0)


@contextmanager
def _plain_warnings() -> Generator[None]:
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        yield


# -- what a program reads


def _print_record(event: Event) -> None:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(event).__name__).lower()
    write_line(json_text({"event": name, "run_id": event.run_id, **_facts(event)}))


def _facts(event: Event) -> dict[str, Any]:
    match event:
        case ModelReplied(turn=turn, reply=reply):
            usage = to_jsonable_python(reply.usage)
            calls = [_call_facts(call) for call in reply.calls]
            return {"turn": turn, "text": reply.text, "calls": calls, "model": reply.model, "usage": usage}
        case ToolStarted(call=call):
            return {"call": _call_facts(call)}
        case ToolFinished(result=result):
            return {"call": _call_facts(result.call), **_outcome(result)}
        case RunFinished(envelope=envelope):
            facts = {"metadata": envelope.metadata, "error": envelope.error}
            return {"ok": envelope.ok, "text": envelope.text(), **to_jsonable_python(facts)}
        case RunStarted() | TextDelta() | ToolProgress():
            return event._asdict()


def _call_facts(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "arguments": _parsed(call)}


def _read() -> str:
    most = DEFAULT_LIMITS.max_argument_chars
    try:
        text = sys.stdin.read(most + 1)
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"standard input is not text: {error}") from None
    if len(text) > most:
        raise typer.BadParameter(f"standard input is longer than {most:,} characters")
    return text
