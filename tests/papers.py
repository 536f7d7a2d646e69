"""Documents made by hand: a PDF with text on its pages, a Word document."""

from __future__ import annotations

import io
import zipfile

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def pdf_of(*pages: str) -> bytes:
    """Return a PDF with one line of text on each page."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>"]
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>")
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for number, text in enumerate(pages):
        drawn = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
    body, places = b"%PDF-1.4\n", list[int]()
    for number, text in enumerate(objects, start=1):
        places.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n".encode()
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    count = len(objects) + 1
    trailer = f"trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF"
    return body + f"xref\n0 {count}\n0000000000 65535 f \n{table}{trailer}".encode()


def docx_of(body: str, before: str = "", encoding: str = "utf-8") -> bytes:
    """Return a Word document with this XML as its body."""
    document = f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'
    text = f'<?xml version="1.0" encoding="{encoding}"?>{before}{document}'
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", text.encode(encoding))
    return made.getvalue()


def paragraph(text: str, style: str = "", *, listed: bool = False) -> str:
    """Return one paragraph of a Word document."""
    styled = f'<w:pStyle w:val="{style}"/>' if style else ""
    number = "<w:numPr/>" if listed else ""
    return f"<w:p><w:pPr>{styled}{number}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"
