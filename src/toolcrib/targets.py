"""What a command line may name, such as a file, a module, a kit, skills or a gateway, and the tools it holds."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, cast

from toolcrib import builtin
from toolcrib._http import without_login
from toolcrib._modules import attribute, entries_of_attribute, entries_of_module, is_attribute, is_dotted_name, is_file
from toolcrib._remote import (
    GATEWAY,
    MCP,
    RemoteTools,
    check_token,
    gateway_at,
    is_url,
    mcp_server_at,
    mcp_servers_of_file,
    whatever_is_at,
)
from toolcrib.errors import MissingExtraError, TargetError, ToolNameError, ToolSignatureError, warn
from toolcrib.sources._openapi_target import is_document, source_of
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
            its path or by asking, which is sent the environment's `TOOLCRIB_TOKEN`, if there is one, or the one with
            its host, such as `TOOLCRIB_TOKEN_TOOLS_EXAMPLE`. `crm=` before any of these puts `crm.` before the names.
        make: What makes a tool of a plain function; None reads its signature.

    Raises:
        TargetError: There is no such thing, it cannot be loaded, or it holds no tools.
    """
    return _following(*_resolved(target, make))


def _following(tools: Toolset, remotes: Iterable[RemoteTools]) -> Toolset:
    for remote in remotes:
        remote.on_change = tools.refresh
    return tools


def _resolved(target: str, make: Callable[[Any], Tool] | None = None) -> tuple[Toolset, list[RemoteTools]]:
    """Return the tools a target names, and those of its entries that may change by themselves."""
    if (named := _named(target)) is not None:
        tools, remotes = _resolved(named[1], make)
        return tools.prefixed(f"{named[0]}."), remotes
    entries = list(_kind(target).load(target))
    tools = _toolset(entries, without_login(target), make)
    return tools, [entry for entry in entries if isinstance(entry, RemoteTools)]


def _named(target: str) -> tuple[str, str] | None:
    found = _NAMED.fullmatch(target)
    return None if found is None or Path(target).exists() else (found[1], found[2])


_NAMED = re.compile(r"([A-Za-z_][\w-]*)=(.+)", re.DOTALL)


def _kind(target: str) -> TargetKind:
    kind = next((kind for kind in KINDS if kind.matches(target)), None)
    if kind is None:
        forms = ", ".join(kind.form for kind in KINDS)
        raise TargetError(f"{target!r} names no tools: write one of {forms}")
    return kind


def resolve_all(targets: Iterable[str]) -> Toolset:
    """Return the tools of all targets together, in their order; they follow what an MCP server says of changes.

    Raises:
        TargetError: One of them names no tools, two remote ones have a tool of one name, or the token of the
            environment would be sent to more than one host.
    """
    given = list(targets)
    check_token(url for target in given for url in _token_urls((_named(target) or ("", target))[1]))
    parts = [_resolved(target) for target in given]
    try:
        tools = Toolset([part for part, _ in parts])
    except ToolNameError as error:
        clash = str(error).partition("; ")[0]
        raise TargetError(f"{clash}; put a name before one of the targets, as in crm={_EXAMPLE}") from None
    return _following(tools, [remote for _, remotes in parts for remote in remotes])


_EXAMPLE = "https://tools.example"


def _token_urls(target: str) -> list[str]:
    """Return the URL that a target sends a token to, if it does."""
    url = target.removeprefix(MCP).removeprefix(GATEWAY)
    return [url] if is_url(url) and not is_document(target) else []


# -- the entries a target stands for


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


def _begins_with(prefix: str) -> Callable[[str], bool]:
    return lambda target: target.startswith(prefix) and is_url(target.removeprefix(prefix))


def _is_mcp_file(target: str) -> bool:
    return not is_url(target) and Path(target).suffix == ".json"


def _is_builtin(target: str) -> bool:
    return target.partition(":")[0] == "builtin"


def _is_skills(target: str) -> bool:
    return has_skills(Path(target)) and not Path(target, "__init__.py").exists()


KINDS: list[TargetKind] = [
    TargetKind("openapi.yaml@https://api.example", is_document, _of_document),
    TargetKind("mcp+https://tools.example", _begins_with(MCP), mcp_server_at),
    TargetKind("gateway+https://tools.example", _begins_with(GATEWAY), gateway_at),
    TargetKind("https://tools.example/mcp", is_url, whatever_is_at),
    TargetKind("mcp.json", _is_mcp_file, mcp_servers_of_file),
    TargetKind("builtin:web", _is_builtin, _of_builtin),
    TargetKind("path/to/skills", _is_skills, _of_skills),
    TargetKind("module:attribute", is_attribute, entries_of_attribute),
    TargetKind("path/to/file.py", is_file, entries_of_module),
    TargetKind("package.module", is_dotted_name, entries_of_module),
]
