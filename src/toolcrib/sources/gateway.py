"""Tools of an HTTP tool gateway, or of any other catalogue that lists tools and runs them by name."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from types import GeneratorType
from typing import Any, cast, get_args

from toolcrib._portal import off_loop, portal
from toolcrib.errors import ExternalToolError, ToolcribError, ToolExecutionError, warn
from toolcrib.events import ToolProgress
from toolcrib.executors._pieces import gathered, gathered_async
from toolcrib.limits import CATALOGUE_SECONDS, MAX_NAME_CHARS, MAX_TOOLS
from toolcrib.protocols import ExternalToolClient
from toolcrib.results import clean
from toolcrib.schema.jsonschema import compiled
from toolcrib.sources._annotations import effect_of
from toolcrib.sources._gateway_http import JsonHttpExternalToolClient
from toolcrib.tools import Tool
from toolcrib.toolset import Toolset
from toolcrib.types import Effect, ToolContext, ToolResponse

__all__ = ["ExternalToolProvider", "ExternalToolSpec", "JsonHttpExternalToolClient"]

_SCHEMA_KEYS = ("parameters", "inputSchema", "input_schema")


@dataclass(frozen=True, slots=True)
class ExternalToolSpec:
    """What a catalogue says of one of its tools.

    Args:
        name: The name it is called by there.
        description: What it does; None for the words `Call external tool <name>.`
        parameters: The JSON Schema of its arguments; by default an object without properties.
        strict: Whether objects are closed and providers are asked to enforce the schema.
        effect: What a call does to the world, as the catalogue claims.
        output_schema: The JSON Schema of its results.

    Raises:
        ValueError: One of them is not what it should be.
    """

    name: str
    description: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    strict: bool = False
    effect: Effect | None = None
    output_schema: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():  # pyright: ignore[reportUnnecessaryIsInstance]  # a server's word
            raise ValueError(f"an external tool must include a non-empty string name, not {self.name!r:.100}")
        if self.description is None:
            object.__setattr__(self, "description", f"Call external tool {self.name}.")
        for what, kind, words in _KINDS:
            if not isinstance(getattr(self, what), kind):
                raise ValueError(f"{what} of external tool {self.name!r:.100} must be {words}")  # noqa: TRY004  # as every flaw of a spec

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any]) -> ExternalToolSpec:
        """Return the spec that a mapping holds, flat or as OpenAI's `{"function": {...}}`.

        Args:
            raw: `name`, and maybe `description`, `parameters` (or `inputSchema`), `strict`, `effect` or MCP's
                `annotations`, and `output_schema`.

        Raises:
            ValueError: It is no mapping, has no name, or holds something else than it should.
        """
        if not isinstance(raw, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # a server's word
            raise ValueError(f"an external tool must be a mapping, not {type(raw).__name__}")  # noqa: TRY004  # as every flaw of a spec
        inner = raw.get("function")
        members = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else raw
        given: dict[str, Any] = {
            "name": members.get("name"),
            "description": members.get("description"),
            "parameters": next((members[key] for key in _SCHEMA_KEYS if members.get(key) is not None), None),
            "strict": members.get("strict"),
            "effect": _effect(members),
            "output_schema": members.get("output_schema", members.get("outputSchema")),
        }
        return cls(given.pop("name"), **{key: value for key, value in given.items() if value is not None})


_KINDS: tuple[tuple[str, Any, str], ...] = (
    ("description", str, "text"),
    ("parameters", Mapping, "a JSON Schema"),
    ("strict", bool, "true or false"),
    ("output_schema", (Mapping, type(None)), "a JSON Schema"),
)


def _effect(members: Mapping[str, Any]) -> Effect | None:
    if members.get("effect") in get_args(Effect):
        return members["effect"]
    return effect_of(members.get("annotations"))


class ExternalToolProvider:
    """The tools of a catalogue, each with its own schema, called through the catalogue's client.

    Put it in `tools=[...]`. What it gives is a snapshot: `as_tools` asks the client anew each time.

    Args:
        client: Whatever has `list_tools()` and `call_tool(name, arguments)`, such as a JsonHttpExternalToolClient.
        specs: The tools, if they are known: `list_tools` is then never called.
        include: The only tools to take, by exact original name; an empty list takes none.
        exclude: Tools to leave out, by exact original name.
        name_prefix: What to put before each name, after `include` and `exclude` were applied, as in `ext.`.
        strict: In place of what each spec says.
        allow: The only tools to take, by glob on the name with its prefix.
        deny: Tools to leave out, by glob on the name with its prefix.
        validate: Whether arguments are checked here against the tool's schema before they are sent.

    Raises:
        TypeError: The client has not the methods it needs.
        ValueError: One of `specs` is malformed.
    """

    def __init__(
        self,
        client: ExternalToolClient,
        *,
        specs: Iterable[ExternalToolSpec | Mapping[str, Any]] | None = None,
        include: str | Iterable[str] | None = None,
        exclude: str | Iterable[str] | None = (),
        name_prefix: str = "",
        strict: bool | None = None,
        allow: str | Iterable[str] | None = None,
        deny: str | Iterable[str] | None = (),
        validate: bool = True,
    ) -> None:
        _check_client(client, needs_list=specs is None)
        self._client = client
        self._specs = None if specs is None else tuple(map(_spec, specs))
        self._names = None if include is None else _texts(include), _texts(exclude or ())
        self._globs = None if allow is None else _texts(allow), _texts(deny or ())
        self._prefix = name_prefix
        self._strict = strict
        self._validate = validate
        self.origin = f"gateway:{_name_of(client)}"

    def __repr__(self) -> str:
        """Return a text that names the catalogue."""
        return f"<ExternalToolProvider {self.origin}>"

    def as_tools(self) -> list[Tool]:
        """Return the tools as the catalogue lists them now; what is no tool is left out with a warning.

        Raises:
            ExternalToolError: The catalogue cannot be read.
        """
        tools, problems = list[Tool](), list[str]()
        for raw in self._listed():
            try:
                tools.append(self._tool(_spec(raw)))
            except (ToolcribError, ValueError, TypeError, RecursionError) as error:
                problems.append(f"{_shown_name(raw)} ({str(error).partition(chr(10))[0][:_LONGEST_PROBLEM]})")
        if problems:
            more = f" and {len(problems) - _MOST_PROBLEMS} more" if len(problems) > _MOST_PROBLEMS else ""
            warn(f"{self.origin}: left out {', '.join(problems[:_MOST_PROBLEMS])}{more}")
        return Toolset(tools).select(*self._names).prefixed(self._prefix).select(None, (), *self._globs).as_tools()

    def _listed(self) -> Iterator[Any]:
        found = self._client.list_tools() if self._specs is None else self._specs
        if inspect.isawaitable(found) or isinstance(found, AsyncIterable):
            found = portal().call(_awaited_list, found)
        return islice(iter(found), MAX_TOOLS)

    def _tool(self, spec: ExternalToolSpec) -> Tool:
        if len(self._prefix) + len(spec.name) > MAX_NAME_CHARS:
            raise ValueError(f"its name has more than {MAX_NAME_CHARS} characters")
        tool = Tool.from_schema(
            spec.name,
            clean(spec.description or ""),
            spec.parameters,
            _caller(self._client, spec.name),
            strict=spec.strict if self._strict is None else self._strict,
            effect=spec.effect,
            validate=self._validate,
        )
        output = None if spec.output_schema is None else dict(spec.output_schema)
        tool = tool.replace(origin=self.origin, original_name=spec.name, output_schema=output)
        if self._validate:
            compiled(tool.input_schema)  # which refuses what is no schema, before a model is shown it
        return tool


_LONGEST_PROBLEM = 200
_MOST_PROBLEMS = 5


def _texts(names: str | Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _spec(raw: ExternalToolSpec | Mapping[str, Any]) -> ExternalToolSpec:
    return raw if isinstance(raw, ExternalToolSpec) else ExternalToolSpec.from_mapping(raw)


def _shown_name(raw: Any) -> str:
    name = raw.name if isinstance(raw, ExternalToolSpec) else None
    if isinstance(raw, Mapping):
        members = cast("Mapping[str, Any]", raw)
        inner = members.get("function")
        name = cast("Mapping[str, Any]", inner if isinstance(inner, Mapping) else members).get("name")
    return f"{name!r:.100}" if isinstance(name, str) else "a nameless tool"


def _check_client(client: object, *, needs_list: bool) -> None:
    wanted = ["list_tools"] if needs_list else []
    missing = [name for name in wanted if not callable(getattr(client, name, None))]
    if not any(callable(getattr(client, name, None)) for name in ("call_tool", "acall_tool")):
        missing.append("call_tool")
    if missing:
        raise TypeError(f"a client needs {' and '.join(missing)}(), which {type(client).__name__} has not")


def _name_of(client: object) -> str:
    name = getattr(client, "name", None)
    return name if isinstance(name, str) and name else type(client).__name__


async def _awaited_list(found: Any) -> list[Any]:
    async with asyncio.timeout(CATALOGUE_SECONDS):
        if inspect.isawaitable(found):
            found = await found
        if not isinstance(found, AsyncIterable):
            return list(islice(found, MAX_TOOLS))
        listed = list[Any]()
        async for raw in cast("AsyncIterable[Any]", found):
            listed.append(raw)
            if len(listed) >= MAX_TOOLS:
                break
        return listed


# -- calls


def _caller(client: Any, name: str) -> Callable[..., Any]:
    """Return the function of one tool; its own parameter has a name that no tool's parameter will have."""
    method, blocks = _method(client)
    wants_context = _wants_context(method)

    async def call(*, toolcrib_context_: ToolContext[Any] | None = None, **arguments: Any) -> Any:
        asked = partial(method, name, arguments, **({"context": toolcrib_context_} if wants_context else {}))
        try:
            return await _called(asked, toolcrib_context_, blocks=blocks)
        except ExternalToolError as error:
            told = _detail(error.body)
            if not told or told in str(error) or type(error) is not ExternalToolError:
                raise
            raise ExternalToolError(
                f"{error}: {told}",
                status=error.status,
                body=error.body,
                retryable=error.retryable,
                retry_after=error.retry_after,
            ) from error

    return call


def _method(client: Any) -> tuple[Callable[..., Any], bool]:
    """Return what calls a tool, and whether it would hold up the loop that calls it."""
    if callable(getattr(client, "acall_tool", None)):
        return client.acall_tool, False
    method = client.call_tool
    return method, not (inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method))


def _wants_context(method: Callable[..., Any]) -> bool:
    try:
        return "context" in inspect.signature(method).parameters
    except (TypeError, ValueError):
        return False


async def _called(asked: Callable[[], Any], context: ToolContext[Any] | None, *, blocks: bool) -> Any:
    value = await off_loop(_called_here, asked, context) if blocks else asked()
    if inspect.isawaitable(value):
        value = await value
    return await _streamed(cast("Any", value), context) if isinstance(value, AsyncIterable) else value


def _called_here(asked: Callable[[], Any], context: ToolContext[Any] | None) -> Any:
    value = asked()
    return gathered(cast("Any", value), context) if isinstance(value, GeneratorType) else value


async def _streamed(pieces: AsyncIterable[Any], context: ToolContext[Any] | None) -> Any:
    """Return all pieces together, or the outcome among them; each is told as progress."""
    outcome = list[ToolResponse]()
    value = await gathered_async(_values(pieces, context, outcome), context)
    if not outcome:
        return value
    if not outcome[0].success:
        raise ToolExecutionError(outcome[0].message or "")
    return outcome[0].data


async def _values(
    pieces: AsyncIterable[Any], context: ToolContext[Any] | None, outcome: list[ToolResponse]
) -> AsyncGenerator[Any]:
    given = aiter(pieces)
    try:
        async for piece in given:
            if isinstance(piece, ToolResponse):
                outcome.append(piece)
                return
            if not isinstance(piece, ToolProgress):
                yield piece
            elif context is not None:
                context.progress(piece.progress, piece.total, piece.message)
    finally:
        if callable(close := getattr(given, "aclose", None)):
            await cast("Callable[[], Awaitable[None]]", close)()


def _detail(body: Any) -> str:
    """Return what the gateway said of a failure, as far as its answer says it in one of the usual ways."""
    for key in ("error", "message", "detail"):
        if isinstance(body, Mapping):
            members = cast("Mapping[str, Any]", body)
            body = members.get(key, body)
    return body.strip()[:_LONGEST_DETAIL] if isinstance(body, str) else ""


_LONGEST_DETAIL = 1_000
