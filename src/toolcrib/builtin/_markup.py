"""HTML and Word documents as plain text, with their headings, lists and tables still to be seen."""

from __future__ import annotations

import re
import zipfile
from importlib import import_module
from io import BytesIO
from typing import Any
from xml.etree import ElementTree as ET

from toolcrib.errors import MissingExtraError, ToolExecutionError
from toolcrib.limits import MAX_FILE_BYTES

__all__ = ["text_of_docx", "text_of_html"]

# -- HTML

_UNSEEN = {"head", "script", "style", "noscript", "template", "svg", "object", "iframe", "select", "textarea"}
_BLOCKS = {
    *("address", "article", "aside", "blockquote", "dd", "div", "dl", "dt", "figure", "figcaption", "footer", "form"),
    *("header", "hr", "main", "nav", "ol", "p", "pre", "section", "table", "ul"),
}
_BEFORE = {
    **dict.fromkeys(_BLOCKS, "\n\n"),
    **{f"h{level}": f"\n\n{'#' * level} " for level in range(1, 7)},
    "br": "\n",
    "li": "\n- ",
    "tr": "\n",
    **dict.fromkeys(("td", "th"), " | "),
}
_AFTER = dict.fromkeys([*_BLOCKS, *(f"h{level}" for level in range(1, 7))], "\n\n")


def text_of_html(data: bytes, charset: str | None = None) -> str:
    """Return the text a person would see, a line for each block.

    Args:
        data: The document.
        charset: Its encoding, when that is known from elsewhere.

    Raises:
        MissingExtraError: The `documents` extra is not installed.
        ToolExecutionError: It cannot be read.
    """
    try:
        etree, html = import_module("lxml.etree"), import_module("lxml.html")
    except ImportError:
        raise MissingExtraError("documents", "reading HTML") from None
    try:
        parser = html.HTMLParser(encoding=charset or _utf8(data))
        tree = html.document_fromstring(data, parser=parser) if data.strip() else None
    except etree.ParserError:  # there is nothing in it
        return ""
    except (etree.LxmlError, LookupError, ValueError):
        raise ToolExecutionError("the page is not HTML that can be read") from None
    return "" if tree is None else _tidy("".join(_pieces(tree, etree)))


def _pieces(tree: Any, etree: Any) -> list[str]:
    pieces, hidden = list[str](), 0
    for event, element in etree.iterwalk(tree, events=("start", "end", "comment", "pi")):
        tag = element.tag if isinstance(element.tag, str) else ""
        if event == "start":
            hidden += tag in _UNSEEN
            pieces += [_BEFORE.get(tag, ""), _spaced(element.text, tag)] if not hidden else []
            continue
        if event == "end":
            pieces += [_AFTER.get(tag, "")] if not hidden else []
            hidden -= tag in _UNSEEN
        pieces += [_spaced(element.tail, "")] if not hidden else []
    return pieces


def _spaced(text: str | None, tag: str) -> str:
    return (text or "") if tag == "pre" else re.sub(r"\s+", " ", text or "")


def _utf8(data: bytes) -> str | None:
    """Return the encoding of bytes that can hardly be anything else; None leaves it to what the page declares."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return None
    return "utf-8"


def _tidy(text: str) -> str:
    lines = (line.strip().removeprefix("| ") for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join("" if line in ("-", "|") else line for line in lines)).strip()


# -- Word

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_BODY = "word/document.xml"


def text_of_docx(data: bytes) -> str:
    """Return the text of a Word document: headings with #, list items with -, rows of tables with |.

    Raises:
        ToolExecutionError: It is none, or would be too large once unpacked.
    """
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            if archive.getinfo(_BODY).file_size > MAX_FILE_BYTES:
                raise ToolExecutionError(f"the document is larger than {MAX_FILE_BYTES:,} bytes once unpacked")
            xml = archive.read(_BODY)
        body = ET.fromstring(xml, ET.XMLParser(target=_NoEntities())).find(f"{_W}body")  # noqa: S314  # see _NoEntities
    except (zipfile.BadZipFile, KeyError, ValueError, ET.ParseError, NotImplementedError, RuntimeError, EOFError):
        raise ToolExecutionError("it is not a Word document (.docx) that can be read") from None
    blocks = [] if body is None else [_block(element) for element in body]
    return _tidy("\n".join(blocks))


class _NoEntities(ET.TreeBuilder):
    """Refuses a document type, which entities that grow have to be declared in, and no word processor writes."""

    def doctype(self, *_: str | None) -> None:
        raise ValueError


def _block(element: ET.Element) -> str:
    if element.tag == f"{_W}p":
        return _paragraph(element)
    if element.tag == f"{_W}tbl":
        rows = (row.iter(f"{_W}tc") for row in element.iter(f"{_W}tr"))
        return "\n".join(" | ".join(" ".join(map(_run_text, cell.iter(f"{_W}p"))) for cell in row) for row in rows)
    return "\n".join(map(_block, element)) if element.tag in {f"{_W}sdt", f"{_W}sdtContent"} else ""


def _paragraph(paragraph: ET.Element) -> str:
    text = _run_text(paragraph)
    style = paragraph.find(f"{_W}pPr/{_W}pStyle")
    name = "" if style is None else style.get(f"{_W}val", "")
    if heading := re.fullmatch(r"(?:Heading|heading |Title)(\d?)", name):
        return f"\n{'#' * min(int(heading[1] or 1), 6)} {text}\n"
    listed = paragraph.find(f"{_W}pPr/{_W}numPr") is not None
    return f"- {text}" if listed else f"{text}\n"


def _run_text(paragraph: ET.Element) -> str:
    signs = {f"{_W}tab": "\t", f"{_W}br": "\n", f"{_W}cr": "\n"}
    runs = (element for element in paragraph.iter() if element.tag in signs or element.tag == f"{_W}t")
    return "".join(signs.get(element.tag) or element.text or "" for element in runs)
