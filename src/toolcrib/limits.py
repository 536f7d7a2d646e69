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
    "MAX_HTTP_BYTES",
    "MAX_INPUT_ROUNDS",
    "MAX_LOG_TAIL_BYTES",
    "MAX_MESSAGE_BYTES",
    "MAX_NAME_CHARS",
    "MAX_PAGES",
    "MAX_PIECES",
    "MAX_PIECES_CHARS",
    "MAX_REDIRECTS",
    "MAX_SCHEMA_CHARS",
    "MAX_SCHEMA_DEPTH",
    "MAX_SOURCE_CHARS",
    "MAX_TOOLS",
    "MAX_WORKER_THREADS",
    "MODEL_REQUEST_SECONDS",
    "SCHEMA_LEASE_SECONDS",
    "SCHEMA_SECONDS",
    "STORE_SECONDS",
    "Limits",
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

#: Pages of one list of tools.
MAX_PAGES = 1_000

#: Bytes of one message of an MCP server.
MAX_MESSAGE_BYTES = 20_000_000

#: Bytes kept of the last words of an MCP server, for the text of an error.
MAX_LOG_TAIL_BYTES = 4_000

#: Times an MCP server may ask for something before it answers one call.
MAX_INPUT_ROUNDS = 10

#: Seconds until the next of several addresses of a host is tried.
CONNECT_SECONDS = 3.0

#: Bytes of one HTTP body, either way, after decompression.
MAX_HTTP_BYTES = 20_000_000

#: Redirects one HTTP request may follow.
MAX_REDIRECTS = 5

#: Entries one Toolset may be made of, nested ones counted: a list that never ends is given up there.
MAX_TOOLS = 100_000

#: Values one generator tool may yield; one that never ends is given up there.
MAX_PIECES = 100_000

#: Characters, or bytes, that these may have in all.
MAX_PIECES_CHARS = 100_000_000

#: Characters of a tool's canonical name.
MAX_NAME_CHARS = 1_000


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
MAX_SCHEMA_CHARS = 100_000

#: How deep it may nest.
MAX_SCHEMA_DEPTH = 32

#: Characters of one description that a model wrote.
MAX_DESCRIPTION_CHARS = 2_000


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
