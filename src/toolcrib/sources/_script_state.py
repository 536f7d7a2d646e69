"""What is known of a script between two of its calls: enough to go on with it in another process."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json, to_json

__all__ = ["Asked", "ScriptState", "Settled"]

#: What a call came to, in the interpreter's words: a `return_value`, or an `exc_type` with its `message`.
Settled = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """One call a script made.

    Args:
        number: Which of its calls it is, from 1.
        function: The function it called.
        arguments: What with, as JSON data under the tool's own parameter names.
    """

    number: int
    function: str
    arguments: dict[str, Any]


@dataclass(slots=True)
class ScriptState:
    """A script on its way.

    Args:
        code: The script.
        printed: What it has printed, as far as it is kept.
        dropped: Characters it printed that were not kept.
        count: Calls it has made.
        asked: Its calls that are not answered yet, by the interpreter's number for them.
        settled: What those of them came to that are over, though the script does not know yet.
        made: The functions it called and how often.
        snapshot: The interpreter as it was when it last waited; empty when it was not kept.
    """

    code: str
    printed: str = ""
    dropped: int = 0
    count: int = 0
    asked: dict[int, Asked] = field(default_factory=dict[int, Asked])
    settled: dict[int, Settled] = field(default_factory=dict[int, Settled])
    made: dict[str, int] = field(default_factory=dict[str, int])
    snapshot: bytes = b""

    def packed(self) -> bytes:
        """Return the whole as bytes that `unpacked` reads."""
        members = {name: getattr(self, name) for name in self.__slots__ if name not in ("snapshot", "asked")}
        asked = {key: [call.number, call.function, call.arguments] for key, call in self.asked.items()}
        return to_json({**members, "asked": asked, "snapshot": base64.b64encode(self.snapshot).decode()})

    @classmethod
    def unpacked(cls, data: bytes | str) -> ScriptState:
        """Return what was packed.

        Raises:
            ValueError: It is not what `packed` returns.
        """
        try:
            members = from_json(data)
            members["snapshot"] = base64.b64decode(members["snapshot"], validate=True)
            members["asked"] = {int(key): Asked(*call) for key, call in members["asked"].items()}
            members["settled"] = {int(key): settled for key, settled in members["settled"].items()}
            return cls(**members)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError("this is no snapshot of a script") from error
