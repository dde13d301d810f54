"""PDFs for tests, made with the library's own writer."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable

from pypdf import PdfReader, PdfWriter
from pypdf.generic import DictionaryObject, NameObject, StreamObject


def pdf(*pages: str, change: Callable[[PdfWriter], object] | None = None) -> bytes:
    """A PDF with one page for each text; "" makes one without text, as a scanned page is."""
    writer = PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    for text in pages:
        page = writer.add_blank_page(612, 792)
        if not text:
            continue
        lines = "".join(f"({line}) Tj T*\n" for line in text.split("\n"))
        fonts = DictionaryObject({NameObject("/F1"): font})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        draw(writer, page, stream(f"BT /F1 10 Tf 12 TL 72 780 Td\n{lines}ET".encode()))
    if change is not None:
        change(writer)
    made = io.BytesIO()
    writer.write(made)
    return made.getvalue()


def stream(data: bytes) -> StreamObject:
    drawing = StreamObject()
    drawing.set_data(data)
    return drawing


def draw(writer: PdfWriter, page: DictionaryObject, drawing: StreamObject) -> None:
    """Make this what a page shows."""
    page[NameObject("/Contents")] = writer._add_object(drawing)  # pyright: ignore[reportPrivateUsage]


def numbered(count: int, *, lines: int = 1) -> Iterable[str]:
    """The texts of that many pages."""
    for number in range(1, count + 1):
        yield "\n".join(f"page {number} line {line}" for line in range(1, lines + 1))


def texts(data: bytes) -> list[str]:
    """The texts of a PDF's pages."""
    return [page.extract_text().strip() for page in PdfReader(io.BytesIO(data)).pages]
