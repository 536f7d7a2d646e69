"""Calls that a model wrote into its text."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import NamedTuple

from toolcrib.formats._spans import Found, Member, Spans, text_at

__all__ = ["Written", "calls_in"]

_MARK = re.compile(
    r"""
    (?P<think> <think(?:ing)?> )
    | (?P<tag> <tool_call (?: \s [^<>]*+ )? > )
    | ^ [ \t]*+ (?: (?P<fence> `{3,} | ~{3,} ) [ \t]*+ (?P<language> [\w+-]*+ ) | (?P<json> [\[{] ) )
    """,
    re.MULTILINE | re.VERBOSE,
)
_END_OF_THOUGHT = re.compile(r"</think(?:ing)?>")
_FENCE_LINE = re.compile(r"^[ \t]*+(?:`{3,}|~{3,})[ \t\r]*+$", re.MULTILINE)
_FENCE_HERE = re.compile(r"\s*+(?:`{3,}|~{3,})")
_TAG_EDGE = re.compile(r"</?tool_call[\s>]")
_BEFORE_JSON = re.compile(r"\s*+(?:```\w*+\s*+)?")
_BETWEEN = re.compile(r"[\s,;]*+")
_BETWEEN_ON_LINE = re.compile(r"[ \t,;]*+")
_LINE_ENDS = re.compile(r"[ \t\r]*+(?:\n|\Z)")
_NAMED = re.compile(r'"(?:name|tool)"\s*+:\s*+("[^"\\]*+(?:\\.[^"\\]*+)*+")', re.DOTALL)
_NAME_ATTRIBUTE = re.compile(r"""\sname\s*=\s*(?:"([^"]*)"|'([^']*)')""")

_NAMES = ("name", "tool")
_ARGUMENTS = ("arguments", "parameters", "args")
_BESIDE = frozenset({*_NAMES, *_ARGUMENTS, "id", "type"})


class Written(NamedTuple):
    """A call as it stands in a text.

    Args:
        name: The tool's name.
        arguments: The raw text of its arguments.
    """

    name: str
    arguments: str


def calls_in(text: str, known: Callable[[str], bool]) -> list[Written]:
    """Return the calls in a text; never raises, and takes time proportional to the text.

    Args:
        text: What a model wrote.
        known: Whether there is a tool of a name; JSON outside a tag is a call only if there is.
    """
    reader = _Reader(text, known)
    position = _after_headless_thought(text)
    while mark := _MARK.search(text, position):
        position = reader.read(mark)
    return reader.found


def _after_headless_thought(text: str) -> int:
    """Return where the text begins: templates that open the model's thoughts leave only their end to be seen."""
    end = _END_OF_THOUGHT.search(text)
    if end is None or re.search(r"<think(?:ing)?>|<tool_call", text[: end.start()]):
        return 0
    return end.end()


class _Reader:
    """One pass over a text."""

    def __init__(self, text: str, known: Callable[[str], bool]) -> None:
        self.text = text
        self.known = known
        self.found: list[Written] = []
        self.spans = Spans(text)
        self.in_fence = False
        self.edge = _Next(_TAG_EDGE, text)
        self.fence_line = _Next(_FENCE_LINE, text)

    def read(self, mark: re.Match[str]) -> int:
        """Take what begins at a mark and return where to go on."""
        if mark["think"]:
            end = _END_OF_THOUGHT.search(self.text, mark.end())
            return end.end() if end else len(self.text)
        if mark["tag"]:
            return self.tag(mark)
        if mark["json"]:
            return self.bare(mark.end() - 1)
        return self.fence(mark)

    # -- <tool_call>

    def tag(self, mark: re.Match[str]) -> int:
        if self.text.endswith("`", 0, mark.start()):
            return mark.end()  # somebody talks about the tag
        attribute = _NAME_ATTRIBUTE.search(mark["tag"])
        name = unescape(attribute[1] or attribute[2] or "") if attribute else ""
        position = _at_end(_BEFORE_JSON, self.text, mark.end())
        if name and self.text.startswith("</tool_call>", position):
            self.add(name, "{}")
        while self.text[position : position + 1] in ("{", "["):
            objects = self.spans.objects(position)
            if objects is None:
                return self.malformed(position, name)
            for found in objects[0]:
                self.tagged(found, name)
            position = _at_end(_BETWEEN, self.text, objects[1])
        return max(position, mark.end())

    def tagged(self, found: Found, name: str) -> None:
        written = self.envelope(found)
        if name and (written is None or written.name != name):
            self.add(name, self.text[found.start : found.end])
        elif written is not None:
            self.add(*written)

    def malformed(self, start: int, name: str) -> int:
        """Take what cannot be read as the arguments, so that the answer says what is wrong with it."""
        end = self.edge.after(start)
        body = self.text[start:end].rstrip()
        named = None if name else _NAMED.search(body)
        if name or named:
            self.add(name or text_at(named[1] if named else ""), body)
        return end

    # -- JSON by itself

    def bare(self, start: int) -> int:
        position, found = start, list[Found]()
        while self.text[position : position + 1] in ("{", "["):
            objects = self.spans.objects(position)
            if objects is None:
                end = self.spans.end(position)
                return position + 1 if end < 0 else end
            found += objects[0]
            position = _at_end(_BETWEEN_ON_LINE, self.text, objects[1])
        if _LINE_ENDS.match(self.text, position):
            self.known_among(found)
        return position

    def fence(self, mark: re.Match[str]) -> int:
        if self.in_fence:
            self.in_fence = False
            return mark.end()
        position = _at_end(_BETWEEN, self.text, mark.end())
        language = mark["language"].lower()
        if language in ("", "json", "xml", "tool_call") and self.text.startswith("<tool_call", position):
            self.in_fence = True
            return position
        if language in ("", "json", "tool_call"):
            position = self.fenced(position)
        closing = _FENCE_HERE.match(self.text, position)
        return closing.end() if closing else self.fence_line.end_after(position)

    def fenced(self, position: int) -> int:
        while self.text[position : position + 1] in ("{", "["):
            objects = self.spans.objects(position)
            if objects is None:
                break
            self.known_among(objects[0])
            position = _at_end(_BETWEEN, self.text, objects[1])
        return position

    def known_among(self, objects: list[Found]) -> None:
        for found in objects:
            written = self.envelope(found) if _only_a_call(found.members) else None
            if written is not None and self.known(written.name):
                self.add(*written)

    # -- one call

    def envelope(self, found: Found) -> Written | None:
        """Return the call that an object is, or None if it names no tool."""
        spans = {member.key: member for member in found.members}
        if "function" in spans and (inner := self.spans.object(spans["function"].start)):
            found, spans = inner, {member.key: member for member in inner.members}
        name = next((self.at(spans[key]) for key in _NAMES if key in spans), "")
        if not name.startswith('"'):
            return None
        if len(spans) < len(found.members):  # a key stands there twice: which one counts is not ours to say
            return Written(text_at(name), self.text[found.start : found.end])
        arguments = next((self.at(spans[key]) for key in _ARGUMENTS if key in spans), "null")
        arguments = text_at(arguments) if arguments.startswith('"') else arguments
        return Written(text_at(name), "{}" if arguments == "null" else arguments)

    def at(self, member: Member) -> str:
        return self.text[member.start : member.end]

    def add(self, name: str, arguments: str) -> None:
        plain = unescape(name).strip()
        self.found.append(Written(plain if not self.known(name) and self.known(plain) else name, arguments))


def _only_a_call(members: list[Member]) -> bool:
    keys = {member.key for member in members}
    return keys <= _BESIDE or keys <= {"function", "id", "type"}


def _at_end(pattern: re.Pattern[str], text: str, position: int) -> int:
    found = pattern.match(text, position)
    return found.end() if found else position


class _Next:
    """Where a pattern is found next; asked for growing positions, it reads the text once."""

    def __init__(self, pattern: re.Pattern[str], text: str) -> None:
        self.pattern = pattern
        self.text = text
        self.start = self.end = -1

    def after(self, position: int) -> int:
        """Return where the next one at or after `position` begins, or the end of the text."""
        if self.start < position:
            found = self.pattern.search(self.text, position)
            self.start, self.end = (found.start(), found.end()) if found else (len(self.text), len(self.text))
        return self.start

    def end_after(self, position: int) -> int:
        """Return where the next one at or after `position` ends, or the end of the text."""
        self.after(position)
        return self.end
