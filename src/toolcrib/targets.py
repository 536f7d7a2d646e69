"""What a command line may name, such as a file, a module, a kit, skills or a gateway, and the tools it holds."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from toolcrib import builtin
from toolcrib._http import without_login
from toolcrib._modules import attribute, entries_of_attribute, entries_of_module, is_attribute, is_dotted_name, is_file
from toolcrib.errors import (
    ExternalToolError,
    MCPConnectionError,
    MissingExtraError,
    TargetError,
    ToolSignatureError,
    warn,
)
from toolcrib.sources._openapi_target import is_document, source_of
from toolcrib.sources.gateway import ExternalToolProvider, JsonHttpExternalToolClient
from toolcrib.sources.mcp import MCPClient
from toolcrib.sources.skill_folder import SkillFolder, has_skills
from toolcrib.tools import Tool
from toolcrib.toolset import Toolset

__all__ = ["KINDS", "TargetKind", "attribute", "resolve", "resolve_all"]


class TargetKind(NamedTuple):
    """One way to name tools.

    Args:
        form: How such a target is written, for people.
        matches: Whether a target is written this way.
        load: Return what the target names: anything a Toolset takes.
    """

    form: str
    matches: Callable[[str], bool]
    load: Callable[[str], Iterable[Any]]


def resolve(target: str, make: Callable[[Any], Tool] | None = None) -> Toolset:
    """Return the tools a target names.

    A file or module gives what it lists in `TOOLS`, else in `__all__`, else every public function,
    tool, agent, skill and provider of its own; imported names and classes are not taken. What cannot
    be a tool is left out with a warning. `module:attribute` gives that one thing.

    Args:
        target: `path/to/file.py`, `package.module`, either with `:attribute`; `builtin` or one of its kits, as in
            `builtin:web` or `builtin:files=notes`; a folder of skills; an OpenAPI document; a JSON file that holds
            `mcpServers`; the URL of an MCP server or of a tool gateway, with `mcp+` or `gateway+` before it or told by
            its path or by asking, which is sent the environment's `TOOLCRIB_TOKEN`, if there is one.
        make: What makes a tool of a plain function; None reads its signature.

    Raises:
        TargetError: There is no such thing, it cannot be loaded, or it holds no tools.
    """
    kind = next((kind for kind in KINDS if kind.matches(target)), None)
    if kind is None:
        forms = ", ".join(kind.form for kind in KINDS)
        raise TargetError(f"{target!r} names no tools: write one of {forms}")
    entries = list(kind.load(target))
    tools = _toolset(entries, without_login(target), make)
    for entry in entries:
        if isinstance(entry, _McpServers):
            entry.on_change = tools.refresh
    return tools


def resolve_all(targets: Iterable[str]) -> Toolset:
    """Return the tools of all targets together, in their order; they follow what an MCP server says of changes.

    Raises:
        TargetError: One of them names no tools.
    """
    parts = [resolve(target) for target in targets]
    tools = Toolset(parts)
    for part in parts:
        part.watch(lambda _: tools.refresh())
    return tools


# -- the entries a target stands for


def _of_gateway(target: str) -> list[Any]:
    return [ExternalToolProvider(_gateway(target.removeprefix(_GATEWAY), None))]


def _gateway(url: str, timeout: float | None) -> JsonHttpExternalToolClient:
    options: dict[str, Any] = {} if timeout is None else {"timeout": timeout}
    try:
        return JsonHttpExternalToolClient(url, api_key=os.environ.get("TOOLCRIB_TOKEN"), **options)
    except ValueError as error:
        raise TargetError(f"{without_login(url)}: {error}") from None


def _of_mcp_url(target: str) -> list[Any]:
    url, token = target.removeprefix(_MCP), os.environ.get("TOOLCRIB_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return [_McpServers({"mcpServers": {urlsplit(url).netloc: {"url": url, "headers": headers}}}, url)]


def _of_mcp_file(target: str) -> list[Any]:
    if not Path(target).exists():
        raise TargetError(f"there is no file {target}")
    return [_McpServers(target, target)]


def _of_url(target: str) -> list[Any]:
    """Tell by the path, or else by asking, what is behind a URL; a gateway is asked first, by one plain GET."""
    if urlsplit(target).path.rstrip("/").endswith(_MCP_PATHS):
        return _of_mcp_url(target)
    gateway = _gateway(target, _PROBE_SECONDS)
    try:
        gateway.list_tools()
    except ExternalToolError as error:
        if error.status is None:
            raise TargetError(f"{without_login(target)}: ExternalToolError: {error}") from None
        return _or_mcp(target, error)
    return _of_gateway(target)


def _or_mcp(target: str, refusal: ExternalToolError) -> list[Any]:
    try:
        return _of_mcp_url(target)
    except (TargetError, MissingExtraError) as error:
        place = without_login(target)
        raise TargetError(
            f"{place} is no tool gateway ({refusal}), and no MCP server ({error}); "
            f"if you know which it is, write {_GATEWAY}{place} or {_MCP}{place}"
        ) from None


class _McpServers:
    """The tools of MCP servers, and who is told when a server says that they have changed."""

    def __init__(self, config: Any, place: str) -> None:
        self.on_change: Callable[[], Any] = lambda: None
        try:
            self._client = MCPClient(config, on_change=self._changed)
        except (MCPConnectionError, ValueError, OSError) as error:
            raise TargetError(f"{without_login(place)}: {error}") from None

    def _changed(self) -> None:
        self.on_change()

    def as_tools(self) -> list[Tool]:
        return self._client.as_tools()


_GATEWAY, _MCP = "gateway+", "mcp+"
_MCP_PATHS = ("/mcp", "/sse")
_PROBE_SECONDS = 10.0


def _of_document(target: str) -> list[Any]:
    try:
        return [source_of(target)]
    except ValueError as error:
        raise TargetError(f"{without_login(target)}: {error}") from None


def _of_builtin(target: str) -> list[Any]:
    kit, has_place, place = target.partition(":")[2].partition("=")
    try:
        return [builtin.kit(kit, place if has_place else None)]
    except (ValueError, OSError, NotImplementedError) as error:
        raise TargetError(f"{target}: {error}") from None


def _of_skills(target: str) -> list[Any]:
    return [SkillFolder(target)]


def _toolset(entries: Iterable[Any], target: str, make: Callable[[Any], Tool] | None) -> Toolset:
    parts: list[Toolset] = []
    problems: list[str] = []
    for entry in entries:
        try:
            parts.append(_part(entry, make))
        except ToolSignatureError as error:
            problems.append(f"{getattr(entry, '__name__', type(entry).__name__)} is left out: {error}")
        except MissingExtraError:
            raise
        except Exception as error:
            told = str(error) if isinstance(error, (TypeError, ValueError)) else f"{type(error).__name__}: {error}"
            raise TargetError(f"{target}: {told}") from error
    tools = Toolset(parts)
    if not len(tools):
        raise TargetError(f"{target} holds no tools: {'; '.join(problems) or _WHAT_IS_TAKEN}")
    for problem in problems:
        warn(f"{target}: {problem}")
    return tools


_WHAT_IS_TAKEN = (
    "imported names, classes and names that begin with an underscore are not taken; "
    "define a public function, or list what you mean in TOOLS = [...]"
)


def _part(entry: Any, make: Callable[[Any], Tool] | None) -> Toolset:
    listed: list[Any] = cast("list[Any]", entry) if isinstance(entry, list) else [entry]
    if make is not None and len(listed) == 1 and inspect.isfunction(listed[0]) and not hasattr(listed[0], "__tool__"):
        return Toolset([make(listed[0])])
    _check_parameters(entry)
    part = Toolset([entry])
    # Annotations are read late, and a tool whose annotations mean nothing can be left out only now.
    _ = [tool.input_schema for tool in part if tool.mode == "signature"]
    return part


def _check_parameters(entry: Any) -> None:
    # Who marks or names a function may mean its **options; nobody says so of one merely found in a file.
    if not inspect.isfunction(entry) or hasattr(entry, "__tool__"):
        return
    for parameter in inspect.signature(entry).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ToolSignatureError(f"it takes {parameter}, which no schema can list: name its parameters")


# -- the kinds


def _is_url(target: str) -> bool:
    return target.startswith(("http://", "https://"))


def _begins_with(prefix: str) -> Callable[[str], bool]:
    return lambda target: target.startswith(prefix) and _is_url(target.removeprefix(prefix))


def _is_mcp_file(target: str) -> bool:
    path = Path(target)
    if path.suffix != ".json" or _is_url(target):
        return False
    return not path.exists() or (path.is_file() and b'"mcpServers"' in path.read_bytes())


def _is_builtin(target: str) -> bool:
    return target.partition(":")[0] == "builtin"


def _is_skills(target: str) -> bool:
    return has_skills(Path(target)) and not Path(target, "__init__.py").exists()


KINDS: list[TargetKind] = [
    TargetKind("openapi.yaml@https://api.example", is_document, _of_document),
    TargetKind("mcp+https://tools.example", _begins_with(_MCP), _of_mcp_url),
    TargetKind("gateway+https://tools.example", _begins_with(_GATEWAY), _of_gateway),
    TargetKind("https://tools.example/mcp", _is_url, _of_url),
    TargetKind("mcp.json", _is_mcp_file, _of_mcp_file),
    TargetKind("builtin:web", _is_builtin, _of_builtin),
    TargetKind("path/to/skills", _is_skills, _of_skills),
    TargetKind("module:attribute", is_attribute, entries_of_attribute),
    TargetKind("path/to/file.py", is_file, entries_of_module),
    TargetKind("package.module", is_dotted_name, entries_of_module),
]
