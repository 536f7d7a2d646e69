"""Documents of one folder: text, Markdown, HTML, PDF and Word, listed, read and searched."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Annotated, Any, NamedTuple

import pydantic

from toolcrib._folder import Folder
from toolcrib.builtin._markup import text_of_docx, text_of_html
from toolcrib.errors import MissingExtraError, ToolExecutionError
from toolcrib.limits import MAX_PATH_CHARS
from toolcrib.tools import Tool, tool
from toolcrib.types import ToolContext

__all__ = ["TOOLS", "Page", "page_part", "pages_of_pdf", "read_docs_tools"]

_Path = Annotated[str, pydantic.Field(max_length=MAX_PATH_CHARS, examples=["manuals/pump.pdf"])]
_FolderPath = Annotated[str, pydantic.Field(max_length=MAX_PATH_CHARS, examples=["manuals"])]

_MOST_CHARS = 20_000
_MOST_LISTED = 500
_PASSAGE_CHARS = 400
_LAST_SECONDS = 5.0  # of a call, which go into its answer

Page = Callable[[], str]


def read_docs_tools(base_dir: str | os.PathLike[str] | None = None, *, hidden: bool = False) -> list[Tool]:
    """Return tools that list, read and search the documents of one folder, and reach nothing outside it.

    Documents are .txt, .md, .html, .pdf and .docx files.

    Args:
        base_dir: The folder; None is the current one, at each call.
        hidden: Whether names that begin with a dot may be used.

    Raises:
        NotADirectoryError: It is no folder.
        NotImplementedError: The system cannot open files relative to an open folder.
    """
    documents = _Documents(Folder(base_dir, hidden=hidden))
    return [Tool.wrap(m) for m in (documents.list_documents, documents.read_document, documents.search_documents)]


class _Documents:
    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    @tool(effect="read")
    def list_documents(self, path: _FolderPath = "") -> str:
        """List the documents in a folder and all folders in it, with their size in bytes.

        Args:
            path: The folder, relative to the one you may use; empty for everything.
        """
        lines = [f"{entry.path} ({entry.size:,} bytes)" for entry in self.folder.files(path) if _kind(entry.path)]
        more = [f"... and {len(lines) - _MOST_LISTED} more"] if len(lines) > _MOST_LISTED else []
        return "\n".join([*lines[:_MOST_LISTED], *more]) or f"There are no documents ({', '.join(_KINDS)})."

    @tool(effect="read")
    def read_document(
        self,
        path: _Path,
        page: Annotated[int, pydantic.Field(ge=1, le=1_000_000)] = 1,
        start: Annotated[int, pydantic.Field(ge=0, le=100_000_000)] = 0,
    ) -> str:
        """Read a document as text, from a page on; where it goes on is told at the end.

        Args:
            path: The document, relative to the folder you may use.
            page: The page to begin at, counted from 1; only PDFs have several.
            start: The character of that page to begin at.
        """
        return page_part(self._pages(path), page, start)

    @tool(effect="read")
    def search_documents(  # noqa: D417  # a model is not shown the context
        self,
        words: Annotated[str, pydantic.Field(min_length=1, max_length=1_000, examples=["warranty period"])],
        context: ToolContext[Any],
        path: _FolderPath = "",
        limit: Annotated[int, pydantic.Field(ge=1, le=50)] = 10,
    ) -> str:
        """Search the documents for words, and return the passages that have most of them, best first.

        Args:
            words: Words to look for, in any order and case.
            path: The folder to look in; empty for everything.
            limit: How many passages to return at most.
        """
        wanted = list(dict.fromkeys(words.casefold().split()))
        best: list[_Passage] = []
        unread = list[str]()
        for entry in self.folder.files(path):
            if not _kind(entry.path):
                continue
            if context.remaining is not None and context.remaining < _LAST_SECONDS:
                unread.append("there was no time for the rest: name a folder further in")
                break
            try:
                best += _passages(entry.path, self._pages(entry.path), wanted)
            except ToolExecutionError as error:
                unread.append(f"{entry.path}: {error}")
            best = sorted(best, key=lambda passage: -passage.score)[:limit]
        shown = [f"{passage.place}: {passage.text}" for passage in best] or ["No passage has these words."]
        return "\n".join([*shown, *(f"[not searched: {reason}]" for reason in unread[:10])])

    def _pages(self, path: str) -> list[Page]:
        kind = _kind(path)
        if kind is None:
            raise ToolExecutionError(f"{path} is no document: there are {', '.join(_KINDS)}")
        if kind == "text":
            return [lambda: self.folder.text(path)]
        data = self.folder.read(path)
        if kind == "pdf":
            return pages_of_pdf(data)
        return [lambda: text_of_html(data) if kind == "html" else text_of_docx(data)]


_KINDS = {
    **dict.fromkeys((".txt", ".md", ".markdown", ".rst"), "text"),
    **dict.fromkeys((".html", ".htm"), "html"),
    ".pdf": "pdf",
    ".docx": "docx",
}


def _kind(path: str) -> str | None:
    return _KINDS.get(os.path.splitext(path)[1].lower())  # noqa: PTH122  # a model's path, perhaps not this system's


TOOLS = read_docs_tools()


# -- pages


def pages_of_pdf(data: bytes) -> list[Page]:
    """Return the pages of a PDF, each of which is read when it is called.

    Raises:
        MissingExtraError: The `documents` extra is not installed.
        ToolExecutionError: It cannot be read.
    """
    try:
        import pypdf
    except ImportError:
        raise MissingExtraError("documents", "reading PDFs") from None
    try:
        reader: Any = pypdf.PdfReader(BytesIO(data))
        locked = reader.is_encrypted and not reader.decrypt("")
        count = 0 if locked else len(reader.pages)
    except Exception as error:  # noqa: BLE001  # broken files break it in many ways
        raise _unreadable(error) from None
    if locked:
        raise ToolExecutionError("the PDF is locked with a password")

    def read(number: int) -> str:
        try:
            return reader.pages[number].extract_text().strip()
        except Exception as error:  # noqa: BLE001  # as above
            raise _unreadable(error) from None

    return [lambda number=number: read(number) for number in range(count)]


def _unreadable(error: Exception) -> ToolExecutionError:
    return ToolExecutionError(f"the PDF cannot be read ({type(error).__name__}: {str(error)[:100]})")


def page_part(pages: list[Page], page: int, start: int) -> str:
    """Return as much of the pages as is good for one answer, and where to go on.

    Args:
        pages: The document.
        page: The page to begin at, counted from 1.
        start: The character of it to begin at.

    Raises:
        ToolExecutionError: There is no such page.
    """
    if page > len(pages):
        raise ToolExecutionError(f"there are only {len(pages)} pages")
    parts, chars = list[str](), 0
    for number in range(page, len(pages) + 1):
        whole = pages[number - 1]()
        text = whole[start if number == page else 0 :]
        if parts and chars + len(text) > _MOST_CHARS:
            return "\n\n".join([*parts, f"[page {number} of {len(pages)} is next: go on with page={number}]"])
        told = text[:_MOST_CHARS]
        parts.append(f"[page {number} of {len(pages)}]\n{told}" if len(pages) > 1 else told)
        if len(told) < len(text):
            onward = f"page={number}, start={len(whole) - len(text) + _MOST_CHARS}"
            return "\n\n".join([*parts, f"[it has {len(whole):,} characters: go on with {onward}]"])
        chars += len(text)
    return "\n\n".join(parts) if any(parts) else "The document has no text."


# -- passages


class _Passage(NamedTuple):
    score: float
    place: str
    text: str


def _passages(path: str, pages: list[Page], wanted: list[str]) -> Iterator[_Passage]:
    for number, page in enumerate(pages, start=1):
        place = f"{path} (page {number})" if len(pages) > 1 else path
        for block in page().split("\n\n"):
            text = " ".join(block.split())
            folded = text.casefold()
            found = [word for word in wanted if word in folded]
            if found:
                density = sum(folded.count(word) for word in found) / (len(text) + _PASSAGE_CHARS)
                yield _Passage(len(found) + density, place, _around(text, folded.index(found[0])))


def _around(text: str, place: int) -> str:
    begin = max(0, min(place - _PASSAGE_CHARS // 4, len(text) - _PASSAGE_CHARS))
    part = text[begin : begin + _PASSAGE_CHARS]
    return f"{'...' if begin else ''}{part}{'...' if begin + len(part) < len(text) else ''}"
