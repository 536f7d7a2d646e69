"""The command line: `toolcrib run`, `list`, `show`, `call`, `schema`, `pin` and `serve`."""

from __future__ import annotations

import asyncio
import io
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import aclosing, contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from toolcrib import _review, dispatch, targets
from toolcrib._terminal import json_text, print_table, printable, write_line
from toolcrib._transcript import Transcript, outcome_of, write_record
from toolcrib._words import json_of
from toolcrib.agent import Agent
from toolcrib.arguments import expected_call
from toolcrib.engines.llm import LLMEngine
from toolcrib.engines.local import LocalEngine
from toolcrib.errors import MissingExtraError, TargetError, ToolcribError, ToolNotFoundError
from toolcrib.events import (
    Event,
    RunFinished,
)
from toolcrib.formats import FORMATS
from toolcrib.limits import DEFAULT_LIMITS
from toolcrib.protocols import Engine
from toolcrib.serve._stdio import claimed
from toolcrib.serve._together import serve_together
from toolcrib.serve.gateway import serve_gateway
from toolcrib.serve.mcp import serve_mcp
from toolcrib.tools import Mode, Tool
from toolcrib.toolset import Toolset
from toolcrib.types import Envelope, ToolCall

if TYPE_CHECKING:
    import typer

__all__ = ["app", "main"]

_FAILED, _MISUSED, _INTERRUPTED, _TERMINATED = 1, 2, 130, 143
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
    for name, command in _COMMANDS.items():
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

    A TARGET names tools: path/to/file.py, package.module, either with :attribute; builtin or one of its kits, such as
    builtin:web or builtin:files=FOLDER; a folder of skills; an OpenAPI document; a file that holds mcpServers; the URL
    of any of these, of an MCP server or of a tool gateway. With crm= before it, the names of its tools
    begin with crm and a dot.
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
    show = write_record if as_json else Transcript()
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
    explain: Annotated[bool, typer.Option("--explain", help="Show where each part of the schema comes from.")] = False,
) -> None:
    """Show one tool as a model of some provider is shown it."""
    tool = _tool(targets.resolve(target), name)
    if explain:
        parts = [(part.part, part.source, part.value, "; ".join(part.overridden)) for part in tool.explain()]
        print_table(("part", "from", "value", "instead of"), parts)
        return
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
        write_line(json_text(outcome_of(result)))
    else:
        write_line(result.text, stderr=not result.ok)
    raise typer.Exit(0 if result.ok else _MISUSED if result.kind in _MISUSES else _FAILED)


def _schema(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="What names the tools.")],
    *,
    mode: Annotated[Mode, typer.Option(help="What is to write them.")] = "signature",
    model: Annotated[str, typer.Option("--model", "-m", help="The model, as for run.")] = "local",
    store: Annotated[str | None, typer.Option(help="A file, or redis://..., where its answers are kept.")] = None,
    diff: Annotated[bool, typer.Option("--diff", help="Show what the model changes, not the whole.")] = False,
) -> None:
    """Show the schemas of a target's tools, or those that a model would write for them.

    With --store, a run that was interrupted goes on where it ended.
    """
    tools, status = _review.drafted(target, mode, None if mode == "signature" else _engine(model), store)
    if diff:
        _review.write_differences(tools)
    else:
        write_line(json_text([tool.definition() for tool in tools], indent=2))
    raise typer.Exit(status)


def _pin(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="What names the tools.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tool; with --check, all of them if left out.")] = "",
    *,
    check: Annotated[bool, typer.Option("--check", help="Fail where a function has changed since.")] = False,
    mode: Annotated[Mode, typer.Option(help="What is to write the schema.")] = "signature",
    model: Annotated[str, typer.Option("--model", "-m", help="The model, as for run.")] = "local",
    store: Annotated[str | None, typer.Option(help="A file, or redis://..., where its answers are kept.")] = None,
) -> None:
    """Print a tool as Python code with its schema as a literal, or check that such tools still fit."""
    if check:
        tools = targets.resolve(target)
        raise typer.Exit(_review.checked(Toolset([_tool(tools, name)]) if name else tools, target))
    if not name:
        raise typer.BadParameter("say which tool: toolcrib pin TARGET NAME")
    engine = None if mode == "signature" else _engine(model)
    tools, status = _review.drafted(target, mode, engine, store, only=lambda tools: _tool(tools, name))
    write_line(tools.as_tools()[0].pin().rstrip())
    raise typer.Exit(status)


def _serve(
    target: Annotated[list[str], typer.Argument(metavar="TARGET", help="What names the tools.")],
    *,
    mcp: Annotated[
        str | None, typer.Option("--mcp", metavar="stdio|http", help="Serve them over MCP; http also with --gateway.")
    ] = None,
    gateway: Annotated[bool, typer.Option("--gateway", help="Serve them as JSON over HTTP.")] = False,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(envvar="TOOLCRIB_SERVE_TOKEN", help="What callers must send as a bearer token."),
    ] = None,
    prefix: Annotated[str, typer.Option(help="What to put before each name, such as fs.")] = "",
    allow: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="The only names to serve, such as 'fs.read_*'; repeatable.")
    ] = None,
    deny: Annotated[list[str] | None, typer.Option(metavar="GLOB", help="Names not to serve; repeatable.")] = None,
) -> None:
    """Serve the tools of every TARGET to other programs, until Ctrl-C or, over stdio, the client hangs up."""
    serve = _SERVERS.get((mcp, gateway))
    if serve is None:
        raise typer.BadParameter("say how: --mcp stdio, --mcp http, --gateway, or the last two together")
    if mcp == "stdio":
        claimed()  # before the targets are loaded, which may print
    found = targets.resolve_all(target)
    toolset = found.prefixed(prefix).select(allow=allow or None, deny=deny or ())
    found.watch(lambda _: toolset.refresh())

    def tell(url: str) -> None:
        also = f" and {url}/mcp" if mcp and gateway else ""
        place = url if mcp and not gateway else f"{url}/tools"
        write_line(f"{len(toolset)} tool{'' if len(toolset) == 1 else 's'} at {place}{also}", stderr=True)

    listening = {} if mcp == "stdio" else {"host": host, "port": port, "token": token or None, "on_start": tell}
    _exit_on_sigterm()
    try:
        serve(toolset, **listening)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    except OSError as error:
        raise typer.BadParameter(f"cannot listen on {host}:{port}: {error.strerror or error}") from None


_SERVERS: dict[tuple[str | None, bool], Callable[..., None]] = {
    ("stdio", False): serve_mcp,
    ("http", False): partial(serve_mcp, transport="http"),
    (None, True): serve_gateway,
    ("http", True): serve_together,
}


def _exit_on_sigterm() -> None:
    """Have SIGTERM end the process as an exit does: what was opened, processes of servers included, is closed."""

    def leave(*_: object) -> NoReturn:
        sys.exit(_TERMINATED)

    signal.signal(signal.SIGTERM, leave)


_COMMANDS: dict[str, Callable[..., None]] = {
    "run": _run,
    "list": _list,
    "show": _show,
    "call": _call,
    "schema": _schema,
    "pin": _pin,
    "serve": _serve,
}


def _tool(tools: Toolset, name: str) -> Tool:
    try:
        return tools[name]
    except ToolNotFoundError as error:
        raise typer.BadParameter(str(error)) from None


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


# -- standard input


def _read() -> str:
    most = DEFAULT_LIMITS.max_argument_chars
    try:
        text = sys.stdin.read(most + 1)
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"standard input is not text: {error}") from None
    if len(text) > most:
        raise typer.BadParameter(f"standard input is longer than {most:,} characters")
    return text
