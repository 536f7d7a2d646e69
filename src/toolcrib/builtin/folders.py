"""The files of one folder: listed, found, read and searched; changed only where that is allowed."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pydantic
from pydantic_core import SchemaError, SchemaValidator, core_schema

from toolcrib._folder import Entry, Folder
from toolcrib.errors import ToolExecutionError
from toolcrib.limits import MAX_PATH_CHARS
from toolcrib.tools import Tool, tool
from toolcrib.types import ToolContext

__all__ = ["TOOLS", "file_tools"]

_Path = Annotated[str, pydantic.Field(max_length=MAX_PATH_CHARS, examples=["notes/today.txt"])]
_FolderPath = Annotated[str, pydantic.Field(max_length=MAX_PATH_CHARS, examples=["notes"])]
_Glob = Annotated[str, pydantic.Field(min_length=1, max_length=200, examples=["*.py", "notes/*.md"])]
_Pattern = Annotated[str, pydantic.Field(min_length=1, max_length=1_000)]

_MOST_CHARS = 50_000
_MOST_LINE_CHARS = 500
_LAST_SECONDS = 5.0  # of a call, which go into its answer


def file_tools(
    root: str | os.PathLike[str] | None = None, *, writable: bool = False, hidden: bool = False
) -> list[Tool]:
    """Return tools for the files of one folder, outside which nothing can be reached.

    Args:
        root: The folder; None is the current one, at each call.
        writable: Whether there are also tools that write and edit files.
        hidden: Whether names that begin with a dot, where keys and settings are kept, may be used.

    Raises:
        NotADirectoryError: The root is no folder.
        NotImplementedError: The system cannot open files relative to an open folder.
    """
    files = _Files(Folder(root, hidden=hidden))
    reading = [files.list_files, files.find_files, files.read_file, files.search_files]
    return [Tool.wrap(method) for method in [*reading, *([files.write_file, files.edit_file] if writable else [])]]


class _Files:
    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    @tool(effect="read")
    def list_files(self, path: _FolderPath = "") -> str:
        """List what is in a folder: one line each, folders with a / at the end, files with their size in bytes.

        Args:
            path: The folder, relative to the one you may use; empty for that one itself.
        """
        return _lines(map(_shown, self.folder.entries(path))) or "The folder is empty."

    @tool(effect="read")
    def find_files(
        self, pattern: _Glob, path: _FolderPath = "", limit: Annotated[int, pydantic.Field(ge=1, le=1_000)] = 200
    ) -> str:
        """Find files by name, in a folder and all folders in it, and return their paths.

        Args:
            pattern: What the name or the path must match, with * and ?, such as *.py or src/*/test_*.py.
            path: The folder to look in; empty for everything.
            limit: How many to return at most.
        """
        matches = _glob(pattern)
        found = (entry.path for entry in self.folder.files(path) if matches(entry.path))
        return _lines(found, limit) or f"No file matches {pattern}."

    @tool(effect="read")
    def read_file(
        self,
        path: _Path,
        start_line: Annotated[int, pydantic.Field(ge=1)] = 1,
        max_lines: Annotated[int, pydantic.Field(ge=1, le=10_000)] = 2_000,
    ) -> str:
        """Read a text file, or a part of it; what is left out is told at the end.

        Args:
            path: The file, relative to the folder you may use.
            start_line: The first line to return, counted from 1.
            max_lines: How many lines to return at most.
        """
        return _part(self.folder.text(path), path, start_line, max_lines)

    @tool(effect="read")
    def search_files(  # noqa: D417  # a model is not shown the context
        self,
        pattern: _Pattern,
        context: ToolContext[Any],
        path: _FolderPath = "",
        files: _Glob = "*",
        *,
        regex: bool = False,
        ignore_case: bool = True,
        limit: Annotated[int, pydantic.Field(ge=1, le=1_000)] = 100,
    ) -> str:
        """Search the text of files, and return the lines that match as path:line: text.

        Args:
            pattern: What to look for: plain text, or a regular expression when `regex` is true.
            path: The folder to look in; empty for everything.
            files: Which files to look in, such as *.py.
            regex: Whether the pattern is a regular expression, without look-around and back-references.
            ignore_case: Whether upper and lower case are the same.
            limit: How many lines to return at most.
        """
        looks_right, chosen = _matcher(pattern, regex=regex, ignore_case=ignore_case), _glob(files)
        searched = (entry.path for entry in self.folder.files(path) if chosen(entry.path))
        return _lines(_hits(self.folder, searched, looks_right, context), limit) or "No line matches."

    @tool(effect="destructive")
    def write_file(self, path: _Path, text: str, *, overwrite: bool = False) -> str:
        """Write a text file, and make the folders it is in.

        Args:
            path: The file, relative to the folder you may use.
            text: All that the file is to hold.
            overwrite: Whether a file that is there already may be replaced.
        """
        replaced = self.folder.write(path, text.encode(errors="replace"), new=not overwrite)
        return f"{path} is {'replaced' if replaced else 'new'}, with {len(text):,} characters."

    @tool(effect="write")
    def edit_file(
        self, path: _Path, old: Annotated[str, pydantic.Field(min_length=1)], new: str, *, everywhere: bool = False
    ) -> str:
        """Replace a piece of a text file.

        Args:
            path: The file, relative to the folder you may use.
            old: The text to replace, exactly as it is in the file; with enough around it that it occurs once.
            new: What to put in its place.
            everywhere: Whether to replace every occurrence, however many there are.
        """
        text = self.folder.text(path)
        count = text.count(old)
        if not count:
            raise ToolExecutionError(f"{path} does not have that text: read the file and copy it exactly")
        if count > 1 and not everywhere:
            raise ToolExecutionError(f"{path} has that text {count} times: give more of what is around it")
        self.folder.write(path, text.replace(old, new).encode(errors="replace"))
        return f"{path}: {count} place{'' if count == 1 else 's'} changed."


TOOLS = file_tools()


def _shown(entry: Entry) -> str:
    name = entry.path.rpartition("/")[2]
    name = name if name.isprintable() else repr(name)  # one line each, whatever a file is called
    endings = {"file": f" ({entry.size:,} bytes)", "folder": "/", "link": " (link)"}
    return name + endings.get(entry.kind, " (neither file nor folder)")


def _lines(lines: Iterator[str], limit: int | None = None) -> str:
    """Return lines as text that is short enough for a model, and whether there are more."""
    taken, chars = list[str](), 0
    try:
        for line in lines:
            if len(taken) == limit or chars > _MOST_CHARS:
                taken.append("... and more: narrow it down.")
                break
            taken.append(line)
            chars += len(line) + 1
    except ToolExecutionError as error:  # what was found before is worth having
        if not taken:
            raise
        taken.append(f"... and perhaps more: {error}")
    return "\n".join(taken)


def _glob(pattern: str) -> Callable[[str], object]:
    matches = re.compile(fnmatch.translate(pattern)).match
    return lambda path: matches(path) or matches(path.rpartition("/")[2]) or matches(f"/{path}")


def _matcher(pattern: str, *, regex: bool, ignore_case: bool) -> Callable[[str], bool]:
    if not regex:
        wanted = pattern.casefold() if ignore_case else pattern
        return lambda line: wanted in (line.casefold() if ignore_case else line)
    # Python's own engine may take for ever over one line, and holds up every thread meanwhile.
    schema = core_schema.str_schema(pattern=f"(?i){pattern}" if ignore_case else pattern, regex_engine="rust-regex")
    try:
        return SchemaValidator(schema).isinstance_python
    except SchemaError as error:
        said = str(error).rpartition("error: ")[2].strip()
        raise ToolExecutionError(f"the regular expression cannot be used ({said})") from None


def _hits(
    folder: Folder, paths: Iterator[str], looks_right: Callable[[str], bool], context: ToolContext[Any]
) -> Iterator[str]:
    for path in paths:
        if context.remaining is not None and context.remaining < _LAST_SECONDS:
            raise ToolExecutionError("there is no time to search the rest: name a folder further in")
        try:
            text = folder.text(path)
        except ToolExecutionError:  # not text, too large, or gone: a search goes on
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if looks_right(line):
                yield f"{path}:{number}: {line.strip()[:_MOST_LINE_CHARS]}"


def _part(text: str, path: str, start: int, most: int) -> str:
    lines = text.splitlines(keepends=True)
    if start > max(len(lines), 1):
        raise ToolExecutionError(f"{path} has only {len(lines)} lines")
    taken, chars = list[str](), 0
    for line in lines[start - 1 : start - 1 + most]:
        chars += len(line)
        if taken and chars > _MOST_CHARS:
            break
        taken.append(line)
    part, end = "".join(taken), start - 1 + len(taken)
    if len(part) > _MOST_CHARS:
        part = f"{part[:_MOST_CHARS]}\n[line {end} is cut: it has {len(part):,} characters]\n"
    if start == 1 and end == len(lines):
        return part
    more = f"; go on with start_line={end + 1}" if end < len(lines) else ""
    return f"{part.rstrip(chr(10))}\n[lines {start} to {end} of {len(lines)}{more}]"
