"""One reading of a document: every operation becomes a tool, or a line that says why it did not."""

from __future__ import annotations

from typing import NamedTuple

from toolcrib.errors import ToolcribError, warn
from toolcrib.results import clean
from toolcrib.schema.jsonschema import compiled
from toolcrib.sources._openapi_auth import Credentials, requirements_of, schemes_of
from toolcrib.sources._openapi_calls import Call, Caller, server_of
from toolcrib.sources._openapi_document import Document, Lost, as_list, as_map
from toolcrib.sources._openapi_operations import EFFECTS, WEBHOOK, Operation, operations
from toolcrib.sources._openapi_requests import Planner
from toolcrib.sources._openapi_schema import Schemas
from toolcrib.tools import Tool
from toolcrib.toolset import Toolset

__all__ = ["Import", "OpenAPILine", "OpenAPIReport", "Options", "warn_of"]


class OpenAPILine(NamedTuple):
    """One line of a report.

    Args:
        operation: Its method and path.
        reason: Why it was skipped, or what its tool cannot do.
    """

    operation: str
    reason: str


class OpenAPIReport(NamedTuple):
    """What became of every operation of a document.

    Args:
        imported: The names of the tools, as models call them.
        skipped: The operations that are no tools, and why.
        notes: What was given up of those that are.
    """

    imported: tuple[str, ...]
    skipped: tuple[OpenAPILine, ...]
    notes: tuple[OpenAPILine, ...]


class Options(NamedTuple):
    """What a source was told; see OpenAPI."""

    origin: str
    base_url: str
    server_variables: dict[str, str]
    names: tuple[tuple[str, ...] | None, tuple[str, ...]]
    prefix: str
    globs: tuple[tuple[str, ...] | None, tuple[str, ...]]
    headers: frozenset[str]
    credentials: Credentials
    caller: Caller
    validate: bool


class Import:
    """Makes tools of one document.

    Args:
        document: The document.
        options: What its source was told.
    """

    def __init__(self, document: Document, options: Options) -> None:
        self._document = document
        self._options = options
        self._current = ""
        self._skipped: list[OpenAPILine] = []
        self._notes: list[OpenAPILine] = []
        self._schemes = schemes_of(document)
        self._security = requirements_of(document.root.get("security")) or ()
        self._planner = Planner(document, Schemas(document, self._note), self._hidden())

    def run(self) -> tuple[list[Tool], OpenAPIReport]:
        """Return the tools, and what became of every operation."""
        if strangers := [name for name in self._options.credentials.names if name not in self._schemes]:
            known = ", ".join(self._schemes) or "none"
            warn(f"{self._options.origin}: auth names {strangers[0]!r:.100}, but its security schemes are: {known}")
        self._trust()
        tools = list[Tool]()
        found = operations(self._document, lambda key, reason: self._skipped.append(OpenAPILine(key, reason)))
        names = self._selected(found)
        for one in found:
            self._current = one.key
            if one.original in names:
                self._add(one, names[one.original], tools)
            else:
                self._skipped.append(OpenAPILine(one.key, _FILTERED))
        imported = tuple(tool.name for tool in tools)
        return tools, OpenAPIReport(imported, tuple(self._skipped), tuple(dict.fromkeys(self._notes)))

    def _trust(self) -> None:
        """Trust the servers of a document that the developer has: not of one from elsewhere, and none hidden deep."""
        if not self._document.address and not self._options.base_url:
            servers = map(as_map, as_list(self._document.root.get("servers")))
            found = [server_of([[server]], "", self._options.server_variables)[0] for server in servers]
            self._options.caller.trust(found)

    def _note(self, reason: str) -> None:
        self._notes.append(OpenAPILine(self._current, reason))

    def _hidden(self) -> frozenset[tuple[str, str]]:
        """Return the parameters that are credentials, or headers the developer gives."""
        keys = {(one.location, one.key.lower()) for one in self._schemes.values() if one.kind == "key"}
        return frozenset(keys | {("header", name) for name in self._options.headers})

    def _selected(self, found: list[Operation]) -> dict[str, str]:
        """Return the names of the tools wanted, by the operations' own; nothing is made of the others."""
        listed = [Tool(name=one.name).replace(original_name=one.original) for one in found]
        wanted = Toolset(listed).select(*self._options.names).prefixed(self._options.prefix)
        return {tool.original_name or tool.name: tool.name for tool in wanted.select(None, (), *self._options.globs)}

    def _add(self, one: Operation, name: str, tools: list[Tool]) -> None:
        try:
            tools.append(self._tool(one, name))
        except (Lost, ToolcribError, ValueError, TypeError, RecursionError) as error:
            reason = " ".join(str(error).split())[:_LONGEST_REASON]
            self._skipped.append(OpenAPILine(one.key, reason or type(error).__name__))

    def _tool(self, one: Operation, name: str) -> Tool:
        plan, schema = self._planner.plan(one)
        server, problem = self._server(one)
        if problem:
            self._note(problem)
        security = requirements_of(one.node.get("security"))
        security = self._security if security is None else security
        call = Call(one.key, one.method, server, problem, plan, security, self._accept(one))
        tool = Tool.from_schema(
            name,
            _description(one),
            schema,
            self._options.caller.function(call, self._schemes),
            effect=EFFECTS[one.method.lower()],
            validate=self._options.validate,
        )
        compiled(tool.input_schema)  # which refuses what is no schema, before a model is shown it
        return tool.replace(origin=self._options.origin, original_name=one.original)

    def _server(self, one: Operation) -> tuple[str, str]:
        if self._options.base_url:
            return self._options.base_url, ""
        levels = [one.node.get("servers"), one.shared.get("servers"), self._document.root.get("servers")]
        return server_of(levels, self._document.address, self._options.server_variables)

    def _accept(self, one: Operation) -> str:
        """Return the media types of the answers that are promised, JSON first."""
        found = dict[str, None]()
        for status, response in as_map(one.node.get("responses")).items():
            if status[:1] == "2" or status == "default":
                try:
                    told = self._document.resolved(response, one.base).node
                except Lost:
                    continue
                found |= dict.fromkeys(media for media in as_map(told.get("content")) if _is_plain(media))
        types = sorted(found, key=lambda media: "json" not in media)[:_MOST_TYPES]
        return ", ".join([*(types or ["application/json"]), "*/*;q=0.5"])


def warn_of(report: OpenAPIReport, origin: str) -> None:
    """Warn of operations that are no tools, but for those that nobody wanted or could want."""
    lost = [line for line in report.skipped if line.reason not in (_FILTERED, WEBHOOK)]
    if lost:
        told = ", ".join(f"{line.operation} ({line.reason})" for line in lost[:_MOST_LINES])
        more = f" and {len(lost) - _MOST_LINES} more; .report has them all" if len(lost) > _MOST_LINES else ""
        warn(f"{origin}: left out {told}{more}")


_FILTERED = "left out by include, exclude, allow or deny"
_MOST_LINES = 5
_LONGEST_REASON = 300
_LONGEST_DESCRIPTION = 4_000
_MOST_TYPES = 5


def _is_plain(media: str) -> bool:
    return media.isascii() and media.isprintable() and "/" in media and "*" not in media


def _description(one: Operation) -> str:
    summary, said = (str(one.node.get(word) or "").strip() for word in ("summary", "description"))
    parts = [summary, said if said != summary else ""]
    if one.node.get("deprecated") is True:
        parts.insert(0, "Deprecated.")
    text = clean("\n\n".join(filter(None, parts))) or one.key
    return text if len(text) <= _LONGEST_DESCRIPTION else f"{text[:_LONGEST_DESCRIPTION]}…"
