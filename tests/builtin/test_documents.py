from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pypdf
import pytest
from papers import docx_of, paragraph, pdf_of

from toolcrib import Limits, ToolCall, Toolset, call_tools
from toolcrib.builtin import read_docs_tools
from toolcrib.builtin._markup import text_of_html

HTML = """<!DOCTYPE html><html><head><title>T</title><script>var secret = 1</script><style>p {}</style></head>
<body><!-- hidden --><h1>Pump <i>P-7</i></h1><p>It  pumps<br>water.</p><ul><li>one</li><li>two</li></ul>
<table><tr><th>Part</th><th>No.</th></tr><tr><td>Seal</td><td>12</td></tr></table><pre>a  b
 c</pre></body></html>"""


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    place = tmp_path / "papers"
    (place / "deep").mkdir(parents=True)
    (place / "notes.txt").write_text("Milk.\n\nThe warranty ends in May.")
    (place / "read.md").write_text("# Read\n\nme")
    (place / "page.html").write_text(HTML)
    (place / "deep/manual.pdf").write_bytes(pdf_of("The first page", "Warranty: two years", "The end"))
    (place / "letter.docx").write_bytes(
        docx_of(
            paragraph("Terms", "Heading1")
            + paragraph("The warranty period is long.")
            + paragraph("one", listed=True)
            + paragraph("two", listed=True)
            + f"<w:tbl><w:tr><w:tc>{paragraph('a')}</w:tc><w:tc>{paragraph('b')}</w:tc></w:tr></w:tbl>"
        )
    )
    (place / "program.exe").write_bytes(b"MZ")
    (place / ".secret.txt").write_text("warranty key")
    return place


def answer(papers: Path, name: str, limits: Limits | None = None, **arguments):
    (result,) = call_tools([ToolCall("1", name, arguments)], Toolset(read_docs_tools(papers)), limits=limits)
    return result


def test_documents_are_listed_and_nothing_else(papers):
    lines = answer(papers, "list_documents").text.splitlines()
    assert [line.partition(" (")[0] for line in lines] == [
        *("letter.docx", "notes.txt", "page.html", "read.md", "deep/manual.pdf"),
    ]
    assert answer(papers, "list_documents", path="deep").text.startswith("deep/manual.pdf (")


def test_a_folder_without_documents_says_what_would_be_one(tmp_path):
    assert ".pdf" in answer(tmp_path, "list_documents").text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("notes.txt", "Milk.\n\nThe warranty ends in May."),
        ("read.md", "# Read\n\nme"),
        ("page.html", "# Pump P-7\n\nIt pumps\nwater.\n\n- one\n- two\n\nPart | No.\nSeal | 12\n\na  b\nc"),
        ("letter.docx", "# Terms\n\nThe warranty period is long.\n\n- one\n- two\na | b"),
        (
            "deep/manual.pdf",
            "[page 1 of 3]\nThe first page\n\n[page 2 of 3]\nWarranty: two years\n\n[page 3 of 3]\nThe end",
        ),
    ],
)
def test_a_document_is_read_as_text(papers, path, text):
    assert answer(papers, "read_document", path=path).text == text


def test_reading_goes_on_at_a_page(papers):
    assert answer(papers, "read_document", path="deep/manual.pdf", page=3).text == "[page 3 of 3]\nThe end"
    assert "only 3 pages" in answer(papers, "read_document", path="deep/manual.pdf", page=4).text


def test_a_long_document_is_read_in_parts_that_make_the_whole(papers):
    whole = "".join(f"{number:06d} " for number in range(10_000))
    (papers / "long.txt").write_text(whole)
    read, start = "", 0
    while True:
        text = answer(papers, "read_document", path="long.txt", start=start).text
        part, _, onward = text.partition("\n\n[it has")
        read += part
        if not onward:
            break
        start = int(onward.rpartition("start=")[2].rstrip("]"))
    assert read == whole


def test_long_pages_are_told_one_by_one(papers):
    (papers / "long.pdf").write_bytes(pdf_of(*["x" * 9_000] * 4))
    assert answer(papers, "read_document", path="long.pdf").text.endswith("[page 3 of 4 is next: go on with page=3]")


def test_passages_with_most_of_the_words_come_first_with_their_place(papers):
    lines = answer(papers, "search_documents", words="WARRANTY period").text.splitlines()
    assert lines[0] == "letter.docx: The warranty period is long."
    assert "deep/manual.pdf (page 2): Warranty: two years" in lines
    assert not any("key" in line for line in lines)
    assert answer(papers, "search_documents", words="zebra").text == "No passage has these words."


def test_a_passage_shows_what_is_around_the_word(papers):
    (papers / "long.txt").write_text("a " * 5_000 + "needle" + " b" * 5_000)
    text = answer(papers, "search_documents", words="needle").text
    assert "needle" in text
    assert len(text) < 600


def test_a_search_that_has_no_time_says_so(papers):
    text = answer(papers, "search_documents", Limits(deadline=1), words="warranty").text
    assert "no time for the rest" in text


def zip_of(**files: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name.replace("__", "/").replace("_xml", ".xml"), data)
    return made.getvalue()


def locked_pdf() -> bytes:
    writer, made = pypdf.PdfWriter(), io.BytesIO()
    writer.add_blank_page(100, 100)
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(made)
    return made.getvalue()


LAUGHS = '<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>'
OUTSIDE = '<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
HOSTILE = {
    "empty.pdf": b"",
    "broken.pdf": b"%PDF-1.4 and nothing more",
    "half.pdf": pdf_of("text")[:200],
    "locked.pdf": locked_pdf(),
    "empty.docx": b"",
    "no-zip.docx": b"PK\3\4 and nothing more",
    "no-word.docx": zip_of(readme=b"x"),
    "no-xml.docx": zip_of(word__document_xml=b"<w:document"),
    "bomb.docx": zip_of(word__document_xml=b"<" + b" " * 30_000_000),
    "laughs.docx": docx_of("<w:p><w:r><w:t>&b;</w:t></w:r></w:p>", LAUGHS),
    "laughs-16.docx": docx_of("<w:p><w:r><w:t>&b;</w:t></w:r></w:p>", LAUGHS, "utf-16"),
    "outside.docx": docx_of("<w:p><w:r><w:t>&x;</w:t></w:r></w:p>", OUTSIDE),
    "binary.txt": b"\0\1\2",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_broken_or_hostile_document_is_a_failure_with_its_reason(papers, name):
    (papers / name).write_bytes(HOSTILE[name])
    result = answer(papers, "read_document", path=name)
    assert result.kind == "failed", result.text
    assert str(papers) not in result.text
    assert answer(papers, "search_documents", words="period").text.startswith("letter.docx: The warranty period")


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "/etc/passwd",
        "deep/../../secret.txt",
        ".secret.txt",
        "program.exe",
        "none.txt",
        "deep",
        "",
        "out.txt",
    ],
)
def test_nothing_outside_and_nothing_that_is_no_document_is_read(papers, path):
    (papers.parent / "secret.txt").write_text("warranty key")
    (papers / "out.txt").symlink_to("../secret.txt")
    result = answer(papers, "read_document", path=path)
    assert result.kind == "failed"
    assert "key" not in result.text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (b"", ""),
        (b"   ", ""),
        (b"plain words", "plain words"),
        (b"<p>unclosed <b>bold", "unclosed bold"),
        ("<p>Grüße".encode(), "Grüße"),
        ('<meta charset="windows-1252"><p>Grüße €'.encode("cp1252"), "Grüße €"),
        (b'<?xml version="1.0" encoding="utf-8"?><html><p>x</p></html>', "x"),
        (b"<p>a</p><script>alert(1)</script><p>b</p>", "a\n\nb"),
        (b"<div>" * 5_000 + b"deep", ""),
        (b"<!-- " * 50_000, ""),
        (b"\0\xff\xfe", None),
    ],
    ids=range(11),
)
def test_html_of_any_kind_becomes_what_is_seen_of_it(html, text):
    seen = text_of_html(html)
    assert text is None or seen == text or (html.startswith(b"<div>") and seen in ("", "deep"))


def test_the_encoding_that_is_known_from_elsewhere_is_used():
    assert text_of_html("<p>Привет".encode("koi8-r"), "koi8-r") == "Привет"
