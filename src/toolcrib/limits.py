"""Every bound, in one place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

__all__ = [
    "CATALOGUE_SECONDS",
    "CONNECT_SECONDS",
    "DEFAULT_LIMITS",
    "HANDSHAKE_SECONDS",
    "MAX_ARTIFACTS",
    "MAX_DESCRIPTION_CHARS",
    "MAX_DOCUMENT_BYTES",
    "MAX_DOCUMENT_DEPTH",
    "MAX_DOCUMENT_FILES",
    "MAX_DOCUMENT_NODES",
    "MAX_EXPRESSION_CHARS",
    "MAX_FILE_BYTES",
    "MAX_FOLDER_ENTRIES",
    "MAX_FRONT_MATTER_CHARS",
    "MAX_HTTP_BYTES",
    "MAX_HTTP_LINES",
    "MAX_INPUT_ROUNDS",
    "MAX_LINKS",
    "MAX_LIST_PAGES",
    "MAX_LOG_TAIL_BYTES",
    "MAX_MESSAGE_BYTES",
    "MAX_NAME_CHARS",
    "MAX_NUMBER_BITS",
    "MAX_OPERATION_SCHEMA_CHARS",
    "MAX_OUTPUT_BYTES",
    "MAX_PAGE_BYTES",
    "MAX_PATH_CHARS",
    "MAX_PIECES",
    "MAX_PIECES_CHARS",
    "MAX_QUERY_BYTES",
    "MAX_QUERY_CHARS",
    "MAX_QUERY_VALUE_BYTES",
    "MAX_REDIRECTS",
    "MAX_SCRIPT_WORKERS",
    "MAX_SKILLS",
    "MAX_SOURCE_CHARS",
    "MAX_TOOLS",
    "MAX_WORKER_THREADS",
    "MAX_WRITTEN_SCHEMA_CHARS",
    "MAX_WRITTEN_SCHEMA_DEPTH",
    "MCP_PAGE_TOOLS",
    "MODEL_REQUEST_SECONDS",
    "PAGE_SECONDS",
    "QUERY_SECONDS",
    "SCHEMA_LEASE_SECONDS",
    "SCHEMA_SECONDS",
    "SKILL_SCRIPT_SECONDS",
    "STORE_SECONDS",
    "Limits",
    "ScriptLimits",
    "WallLimits",
]

#: Threads that sync tools may occupy at once in this process. One that outlives its deadline keeps
#: its thread until it returns, so this is also how many lost tools it takes to stop sync work.
MAX_WORKER_THREADS = 64

#: Seconds one request to a provider's model may take, attempts and streaming included.
MODEL_REQUEST_SECONDS = 600.0

#: Seconds a source's own client may take to list its tools.
CATALOGUE_SECONDS = 60.0

#: Seconds an MCP server has to start and to agree on a protocol.
HANDSHAKE_SECONDS = 30.0

#: Pages of one MCP server's list of tools.
MAX_LIST_PAGES = 1_000

#: Bytes of one message of an MCP server.
MAX_MESSAGE_BYTES = 20_000_000

#: Bytes kept of the last words of an MCP server, for the text of an error.
MAX_LOG_TAIL_BYTES = 4_000

#: Times an MCP server may ask for something before it answers one call.
MAX_INPUT_ROUNDS = 10

#: Tools in one answer of an MCP server to `tools/list`; many clients never ask for a second one.
MCP_PAGE_TOOLS = 1_000

#: Seconds until the next of several addresses of a host is tried.
CONNECT_SECONDS = 3.0

#: Bytes of one HTTP body, either way, after decompression.
MAX_HTTP_BYTES = 20_000_000

#: Lines of one HTTP body that is read line by line.
MAX_HTTP_LINES = 1_000_000

#: Redirects one HTTP request may follow.
MAX_REDIRECTS = 5

#: Bytes of one file of an OpenAPI document.
MAX_DOCUMENT_BYTES = 64_000_000

#: How deep an OpenAPI document may nest.
MAX_DOCUMENT_DEPTH = 120

#: Files, or addresses, that one OpenAPI document may be spread over.
MAX_DOCUMENT_FILES = 100

#: Values in a YAML document, aliases written out.
MAX_DOCUMENT_NODES = 4_000_000

#: Characters of the schema of one imported operation, descriptions included, from which on its farthest parts are cut;
#: an operation is left out when even the nearest have ten times as many.
MAX_OPERATION_SCHEMA_CHARS = 40_000

#: Entries one Toolset may be made of, nested ones counted: a list that never ends is given up there.
MAX_TOOLS = 100_000

#: Values one generator tool may yield; one that never ends is given up there.
MAX_PIECES = 100_000

#: Characters, or bytes, that these may have in all.
MAX_PIECES_CHARS = 100_000_000

#: Characters of a tool's canonical name.
MAX_NAME_CHARS = 1_000

#: Characters of one arithmetic expression, and bits of any whole number on the way to its value.
MAX_EXPRESSION_CHARS = 1_000
MAX_NUMBER_BITS = 10_000

#: Bytes of one file that a tool reads or writes.
MAX_FILE_BYTES = 20_000_000

#: Files and folders that one call looks at.
MAX_FOLDER_ENTRIES = 20_000

#: Symbolic links on the way to one file, and characters of a path.
MAX_LINKS = 40
MAX_PATH_CHARS = 4_096

#: Skills in one folder of them, and characters of what the SKILL.md of one says of itself.
MAX_SKILLS = 200
MAX_FRONT_MATTER_CHARS = 20_000

#: Seconds a script of a skill may run, and bytes that are kept of each of its two outputs.
SKILL_SCRIPT_SECONDS = 60.0
MAX_OUTPUT_BYTES = 200_000

#: Seconds one page of the web may take, and bytes of it that its text is made of.
PAGE_SECONDS = 20.0
MAX_PAGE_BYTES = 5_000_000

#: Seconds one query of a database may run, and characters it may have; bytes of any value that SQLite works with, and
#: of what DuckDB keeps in memory, whose process may take twice as much.
QUERY_SECONDS = 10.0
MAX_QUERY_CHARS = 20_000
MAX_QUERY_VALUE_BYTES = 100_000_000
MAX_QUERY_BYTES = 500_000_000

#: Seconds a model may take to write the schema of one tool, the repair round included.
SCHEMA_SECONDS = 120.0

#: Seconds one process may keep others from asking for the same schema; more than it can take to write it.
SCHEMA_LEASE_SECONDS = SCHEMA_SECONDS + 15.0

#: Seconds one operation of an artifact store may take.
STORE_SECONDS = 30.0

#: Answers an artifact store in memory keeps; the oldest make room.
MAX_ARTIFACTS = 10_000

#: Characters of a function's source that a model is shown.
MAX_SOURCE_CHARS = 40_000

#: Characters of a schema that a model wrote, as JSON.
MAX_WRITTEN_SCHEMA_CHARS = 100_000

#: How deep such a schema may nest.
MAX_WRITTEN_SCHEMA_DEPTH = 32

#: Characters of one description that a model wrote.
MAX_DESCRIPTION_CHARS = 2_000

#: Interpreters that may run models' scripts at once in this process; a script beyond them waits.
MAX_SCRIPT_WORKERS = 16


@dataclass(frozen=True, slots=True)
class ScriptLimits:
    """What one script of a model may take; each call it makes has the `Limits` of any other call beside.

    Args:
        seconds: Time the script itself may compute; waiting for tools does not count.
        memory_bytes: What its values may take.
        calls: Calls it may make.
        code_chars: Length of the script.
        printed_chars: Characters it may print; the rest is dropped, with a note.
        value_chars: Length of one value that a tool hands to it.
        shown_tools: Tools whose stubs stand in the description; a larger toolset is searched with `find_tools`.

    Raises:
        ValueError: Bounds under which no script could ever run.
    """

    seconds: float = 10.0
    memory_bytes: int = 128_000_000
    calls: int = 200
    code_chars: int = 50_000
    printed_chars: int = 20_000
    value_chars: int = 5_000_000
    shown_tools: int = 40

    def __post_init__(self) -> None:
        if not self.seconds > 0 or self.memory_bytes < _LEAST_MEMORY or self.code_chars < 1:
            raise ValueError(
                f"a script needs more than 0 seconds, {_LEAST_MEMORY:,} bytes of memory and 0 characters, not {self!r}"
            )


@dataclass(frozen=True, slots=True)
class WallLimits:
    """What one process behind a wall may take.

    Args:
        memory_bytes: Its address space.
        processes: Processes and threads one call may have at once.
        open_files: Files it may have open.
        file_bytes: The size of a file it writes.
        answer_bytes: The length of its answer, as JSON.

    Raises:
        ValueError: Bounds under which no process could start.
    """

    memory_bytes: int = 1_000_000_000
    processes: int = 32
    open_files: int = 256
    file_bytes: int = 100_000_000
    answer_bytes: int = 20_000_000

    def __post_init__(self) -> None:
        if self.memory_bytes < _LEAST_PROCESS or self.processes < 1 or self.open_files < _LEAST_FILES:
            raise ValueError(
                f"a process needs {_LEAST_PROCESS:,} bytes of memory, itself and {_LEAST_FILES} files, not {self!r}"
            )


_LEAST_MEMORY = 1_000_000
_LEAST_PROCESS = 50_000_000
_LEAST_FILES = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call, one turn and one run may take.

    Args:
        deadline: Seconds one call may run before it is answered with `timed_out`; None for no end.
        max_parallel: Calls of one turn that run at the same time.
        max_turns: Times an agent asks its model in one run.
        max_depth: Agent runs inside one another, each called by a tool of the one before.
        max_argument_chars: Length of the arguments of one call, as JSON text.
        max_argument_depth: How deep the arguments of one call may nest.
        max_result_chars: Characters of one result that a model is shown; the middle is cut out.
        max_result_bytes: Bytes of one image or file in a result, before base64.

    Raises:
        ValueError: Bounds under which no call could ever be answered.
    """

    deadline: float | None = 60.0
    max_parallel: int = 32
    max_turns: int = 16
    max_depth: int = 8
    max_argument_chars: int = 1_000_000
    max_argument_depth: int = 64
    max_result_chars: int = 100_000
    max_result_bytes: int = 5_000_000

    def __post_init__(self) -> None:
        if self.max_parallel < 1:
            raise ValueError(f"max_parallel must be at least 1, not {self.max_parallel!r}")
        if self.deadline is not None and not self.deadline >= 0:  # which NaN is not either
            raise ValueError(f"deadline is a number of seconds, or None, not {self.deadline!r}")

    def replace(self, **changes: Any) -> Limits:
        """Return the same limits but for the changes."""
        return replace(self, **changes)


DEFAULT_LIMITS = Limits()
