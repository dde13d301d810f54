"""read_file on PDFs: pages as text, and all that PDFs may be instead of sound."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pypdf import PdfWriter
from pypdf.annotations import FreeText, Link
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    IndirectObject,
    NameObject,
    NumberObject,
    TextStringObject,
)

from tests.support.clock import PATIENCE_S
from tests.support.machine import needs_proc
from tests.tools.folder import Folder, said
from tests.tools.pdf_files import draw, numbered, pdf, stream, texts
from tui.core.config import Guard
from tui.core.documents import page_count
from tui.tools import pdf as pdf_tool
from tui.tools.read_file import ReadFile

read_file = ReadFile()


async def test_the_pages_come_with_their_numbers(folder: Folder) -> None:
    folder.write("a.pdf", pdf("First words", "Second", "Third\nin two lines"))
    output = await folder.call(read_file, path="a.pdf")
    assert said(output) == (
        "--- page 1 of 3 ---\nFirst words\n"
        "--- page 2 of 3 ---\nSecond\n"
        "--- page 3 of 3 ---\nThird\nin two lines\n"
    )
    assert output.summary == "pages 1-3 of 3"
    assert await folder.text(read_file, path="a.pdf", pages="2") == (
        "--- page 2 of 3 ---\nSecond\n[page 2 of 3; continue with pages=3]"
    )


def _filled_in(writer: PdfWriter) -> None:
    """Fill a form: a name in two parts, one of two choices, a box, a password; and write a note."""

    def made(**entries: Any) -> IndirectObject:
        named = {NameObject(f"/{key}"): value for key, value in entries.items()}
        return writer._add_object(DictionaryObject(named))  # pyright: ignore[reportPrivateUsage]

    widget = NameObject("/Widget")
    person = made(T=TextStringObject("person"))
    size = made(T=TextStringObject("size"), V=NameObject("/large"))
    fields = [
        made(Subtype=widget, Parent=person, T=TextStringObject("name"),
             V=TextStringObject("Ada\nL.")),
        made(Subtype=widget, Parent=person, T=TextStringObject("born"), V=TextStringObject("")),
        made(Subtype=widget, Parent=size, AS=NameObject("/Off")),
        made(Subtype=widget, Parent=size, AS=NameObject("/large")),
        made(Subtype=widget, T=TextStringObject("b1"), TU=TextStringObject("I agree"),
             V=NameObject("/Yes")),
        made(Subtype=widget, T=TextStringObject("b2"), V=NameObject("/Off")),
        made(Subtype=widget, T=TextStringObject("key"), V=TextStringObject("swordfish"),
             Ff=NumberObject(1 << 13)),
        made(Subtype=widget, T=TextStringObject("towns"),
             V=ArrayObject([TextStringObject("Rome"), TextStringObject("Oslo")])),
    ]  # fmt: skip
    writer.pages[0][NameObject("/Annots")] = ArrayObject(fields)
    note = FreeText(text="see page 2", rect=(10, 10, 90, 30))
    writer.add_annotation(0, note)


async def test_a_page_has_what_was_filled_in_and_noted(folder: Folder) -> None:
    folder.write("form.pdf", pdf("Your name", "Back", change=_filled_in))
    assert await folder.text(read_file, path="form.pdf") == (
        "--- page 1 of 2 ---\nYour name\n\nperson.name: Ada L.\nsize: large\nI agree: Yes\n"
        "towns: Rome, Oslo\nNote: see page 2\n--- page 2 of 2 ---\nBack\n"
    )


async def test_damaged_fields_leave_the_page_its_text(folder: Folder) -> None:
    def damaged(writer: PdfWriter) -> None:
        loop = writer._add_object(DictionaryObject())  # pyright: ignore[reportPrivateUsage]
        field = DictionaryObject({NameObject("/Subtype"): NameObject("/Widget")})
        field[NameObject("/Parent")] = loop
        outer = loop.get_object()
        assert isinstance(outer, DictionaryObject)
        outer[NameObject("/Parent")] = loop
        writer.pages[0][NameObject("/Annots")] = ArrayObject([field, NumberObject(7)])

    folder.write("form.pdf", pdf("Your name", change=damaged))
    assert "Your name" in await folder.text(read_file, path="form.pdf")


async def test_a_long_one_says_how_to_continue(folder: Folder) -> None:
    folder.write("book.pdf", pdf(*numbered(45)))
    output = await folder.call(read_file, path="book.pdf")
    assert said(output).endswith(
        "--- page 20 of 45 ---\npage 20 line 1\n[pages 1-20 of 45; continue with pages=21-40]"
    )
    assert output.summary == "pages 1-20 of 45"
    text = await folder.text(read_file, path="book.pdf", pages="41-60")
    assert text.startswith("--- page 41 of 45 ---\n")
    assert text.endswith("--- page 45 of 45 ---\npage 45 line 1\n")


@pytest.mark.parametrize(
    ("pages", "first", "last"),
    [
        ("3", 3, 3),
        ("3-5", 3, 5),
        (" 3 - 5 ", 3, 5),
        ("3–5", 3, 5),
        ("30-", 30, 45),
        ("1-999", 1, 45),
    ],
)
async def test_pages_are_a_number_or_a_range(
    folder: Folder, pages: str, first: int, last: int
) -> None:
    folder.write("book.pdf", pdf(*numbered(45)))
    text = await folder.text(read_file, path="book.pdf", pages=pages)
    heads = [line for line in text.splitlines() if line.startswith("---")]
    assert heads == [f"--- page {n} of 45 ---" for n in range(first, last + 1)]


@pytest.mark.parametrize("pages", ["x", "0", "5-3", "1,3", "-3", "1-2-3", "9" * 30])
async def test_other_words_for_pages_are_explained(folder: Folder, pages: str) -> None:
    folder.write("book.pdf", pdf(*numbered(2)))
    error = await folder.error(read_file, path="book.pdf", pages=pages)
    assert "such as pages=3 or pages=3-7" in error


async def test_pages_past_the_end_and_arguments_of_other_kinds(folder: Folder) -> None:
    folder.write("book.pdf", pdf(*numbered(2)))
    folder.write("a.txt", "text\n")
    error = await folder.error(read_file, path="book.pdf", pages="3-4")
    assert "pages=3 is past the end: book.pdf has 2 pages." in error
    assert "only for PDF files" in await folder.error(read_file, path="a.txt", pages="1")
    assert "pages=3-7" in await folder.error(read_file, path="book.pdf", offset=2)


async def test_pages_keep_to_what_the_context_allows(folder: Folder) -> None:
    folder.changes = {"read_page_bytes": 1000}
    folder.write("book.pdf", pdf(*numbered(9, lines=20)))
    text = await folder.text(read_file, path="book.pdf")
    assert text.endswith("[pages 1-2 of 9; continue with pages=3-9]")
    assert len(text) <= 1000
    folder.changes = {"guard": Guard(clamp_lines=50)}
    text = await folder.text(read_file, path="book.pdf", pages="2-8")
    assert text.endswith("[pages 2-3 of 9; continue with pages=4-9]")


async def test_a_page_larger_than_a_result_is_left_to_the_guard(folder: Folder) -> None:
    folder.changes = {"read_page_bytes": 500}
    folder.write("book.pdf", pdf(*numbered(2, lines=60)))
    text = await folder.text(read_file, path="book.pdf")
    assert "page 1 line 60" in text
    assert text.endswith("[page 1 of 2; continue with pages=2]")


async def test_a_scanned_one_says_what_to_do(folder: Folder) -> None:
    folder.write("scan.pdf", pdf("", ""))
    text = await folder.text(read_file, path="scan.pdf")
    assert "(no text on this page)" in text
    assert "probably scanned" in text
    assert "pdftoppm" in text
    folder.write("mixed.pdf", pdf("", "words"))
    assert "scanned" not in await folder.text(read_file, path="mixed.pdf")


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-256"])
async def test_a_password_is_asked_for_only_where_it_is_needed(
    folder: Folder, algorithm: str
) -> None:
    pytest.importorskip("cryptography")

    def locked(user: str) -> bytes:
        return pdf("secret", change=lambda w: w.encrypt(user, "owner", algorithm=algorithm))

    folder.write("locked.pdf", locked("open sesame"))
    error = await folder.error(read_file, path="locked.pdf")
    assert "locked.pdf is protected with a password" in error
    assert "qpdf --decrypt" in error
    folder.write("restricted.pdf", locked(""))
    assert "secret" in await folder.text(read_file, path="restricted.pdf")


@pytest.mark.parametrize(
    "data",
    [b"%PDF-1.7\n", b"%PDF-1.7\n%\xe2\xe3" + b"\x80junk" * 999, b"%PDF-1.4 is a format\n"],
    ids=["empty", "junk", "text"],
)
async def test_a_damaged_one_is_explained(folder: Folder, data: bytes) -> None:
    folder.write("broken.pdf", data)
    error = await folder.error(read_file, path="broken.pdf")
    assert "broken.pdf can't be read as a PDF, it seems damaged: " in error
    assert "qpdf" in error


async def test_what_can_be_read_of_a_damaged_one_is(folder: Folder) -> None:
    whole = pdf(*numbered(3))
    at = whole.rindex(b"startxref\n") + 10
    folder.write("table.pdf", whole[:at] + b"7" + whole[at:])
    assert "page 3 line 1" in await folder.text(read_file, path="table.pdf")


@pytest.mark.parametrize("damage", ["no end", "no table or trailer", "no trailer", "cut"])
async def test_one_without_its_table_is_read_as_viewers_do(folder: Folder, damage: str) -> None:
    """MuPDF (PyMuPDF 2.0) and qpdf (pikepdf 10.18) read such files, seen on 2026-11-28."""
    whole = pdf(*numbered(3))
    start = whole.rindex(b"startxref")
    table = whole.rindex(b"xref\n", 0, start)
    data = {
        "no end": whole[:start],
        "no table or trailer": whole[:table],
        "no trailer": whole[: whole.rindex(b"trailer")] + whole[start:],
        "cut": whole[: table + 30],
    }[damage]
    folder.write("cut.pdf", data)
    text = await folder.text(read_file, path="cut.pdf")
    assert "page 3 line 1" in text
    assert "table of objects is missing" in text
    folder.write("whole.pdf", pdf("a"))
    assert "no table" not in await folder.text(read_file, path="whole.pdf")


async def test_one_bad_page_does_not_hide_the_others(folder: Folder) -> None:
    def spoil(writer: PdfWriter) -> None:
        drawing = stream(b"BT (lost) Tj ET")
        drawing[NameObject("/Filter")] = NameObject("/NoSuchFilter")
        draw(writer, writer.pages[1], drawing)

    folder.write("book.pdf", pdf(*numbered(3), change=spoil))
    text = await folder.text(read_file, path="book.pdf")
    assert "--- page 2 of 3 ---\n(this page can't be read: " in text
    assert text.endswith("page 3 line 1\n")


def _bomb(writer: PdfWriter) -> None:
    """A page that would be drawn for hours."""
    drawing = stream(b"BT /F1 10 Tf\n" + b"(a) Tj 1 1 Td\n" * 3_000_000 + b"ET")
    draw(writer, writer.pages[1], drawing.flate_encode())


@pytest.mark.slow
async def test_what_takes_too_long_is_stopped_and_the_rest_is_shown(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf_tool, "SECONDS", 1.5)
    folder.write("bomb.pdf", pdf(*numbered(3), change=_bomb))
    rounds = 0

    async def loop_is_free() -> None:
        nonlocal rounds
        while True:
            await asyncio.sleep(0.01)
            rounds += 1

    watch = asyncio.create_task(loop_is_free())
    text = await folder.text(read_file, path="bomb.pdf")
    watch.cancel()
    assert "page 1 line 1" in text
    assert text.endswith(
        "[page 1 of 3; continue with pages=2-3; stopped there: reading takes long]"
    )
    assert rounds > 10  # of 150; a loop that is held up makes none
    error = await folder.error(read_file, path="bomb.pdf", pages="2")
    assert "Reading bomb.pdf took longer than 2 s, so it was stopped." in error


@needs_proc
async def test_a_cancelled_call_ends_its_reader(folder: Folder) -> None:
    folder.write("bomb.pdf", pdf(*numbered(3), change=_bomb))
    task = asyncio.create_task(folder.call(read_file, path="bomb.pdf"))
    await _until(lambda: bool(_readers()))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await _until(lambda: not _readers())


async def _until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not done():  # noqa: ASYNC110 - the kernel sends no event
            await asyncio.sleep(0.005)


def _readers() -> list[int]:
    """The processes of this one that read PDFs."""
    found = list[int]()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state = (entry / "stat").read_text().rpartition(")")[2].split()
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if int(state[1]) == os.getpid() and b"tui.tools.pdf_reader" in words:
            found.append(int(entry.name))
    return found


@pytest.mark.slow
async def test_200_mb_and_10_000_pages_are_read_in_bounds(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = pdf(*numbered(2), *[""] * 9998)
    at = whole.rindex(b"startxref")
    path = folder.write("huge.pdf", whole)
    text = await folder.text(read_file, path="huge.pdf", pages="2-3")
    assert text.startswith("--- page 2 of 10000 ---\npage 2 line 1\n")
    with path.open("r+b") as file:  # the same with a hole of 200 MB before its end
        file.seek(at + (200 << 20))
        file.write(b"\n" + whole[at:])
        file.seek(at)
        file.write(b"%")
    text = await folder.text(read_file, path="huge.pdf", pages="2-3")
    assert text.startswith("--- page 2 of 10000 ---\npage 2 line 1\n")
    monkeypatch.setattr(pdf_tool, "SECONDS", 1.0)
    folder.write("junk.pdf", b"%PDF-1.7\n")
    os.truncate(folder.root / "junk.pdf", 200 << 20)
    error = await folder.error(read_file, path="junk.pdf")
    assert "junk.pdf" in error


def _noise(writer: PdfWriter) -> None:
    """Pages of 50 KB each, which nothing makes smaller."""
    for number, page in enumerate(writer.pages):
        noise = Random(number).randbytes(25_000).hex().encode()
        draw(writer, page, stream(b"% " + noise + b"\nBT /F1 9 Tf (noise) Tj ET"))


async def test_a_document_has_as_many_pages_as_fit(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.changes = {"document_pages": 8}
    folder.write("big.pdf", pdf(*numbered(30), change=_noise))

    async def read(**arguments: str) -> tuple[str, int]:
        text, *document = (await folder.call(read_file, path="big.pdf", **arguments)).content
        return text["text"], sum(map(page_count, document))

    head = "[pages 1-8 of 30, as a document; continue with pages=9-16]"
    assert await read() == (head, 8)
    assert await read(pages="29-99") == ("[pages 29-30 of 30, as a document]", 2)
    monkeypatch.setattr(pdf_tool, "MAX_BYTES", 120_000)
    head = "[pages 11-12 of 30, as a document; continue with pages=13-20]"
    assert await read(pages="11-20") == (head, 2)
    monkeypatch.setattr(pdf_tool, "MAX_BYTES", 20_000)
    text, count = await read(pages="11")
    assert (text, count) == (
        "--- page 11 of 30 ---\nnoise\n[page 11 of 30; continue with pages=12-30]",
        0,
    )
    error = await folder.error(read_file, path="big.pdf", pages="31")
    assert "past the end" in error


async def test_links_bring_no_other_pages_into_a_document(folder: Folder) -> None:
    def link(writer: PdfWriter) -> None:
        _noise(writer)
        writer.add_annotation(0, Link(rect=(0, 0, 9, 9), target_page_index=9))
        writer.add_outline_item(title="The last", page_number=9)

    folder.changes = {"document_pages": 2}
    folder.write("linked.pdf", pdf(*numbered(10), change=link))
    document = (await folder.call(read_file, path="linked.pdf")).content[1]
    data = base64.b64decode(document["source"]["data"])
    assert len(texts(data)) == 2
    assert len(data) < 120_000


async def test_a_scanned_one_is_sent_as_a_document(folder: Folder) -> None:
    folder.changes = {"document_pages": 8}
    folder.write("scan.pdf", pdf("", ""))
    output = await folder.call(read_file, path="scan.pdf")
    assert said(output) == "[pages 1-2 of 2, as a document]"
    folder.write("broken.pdf", b"%PDF-1.7\n")
    assert "seems damaged" in await folder.error(read_file, path="broken.pdf")


async def test_what_fails_as_a_document_is_not_tried_again_as_text(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf_tool, "SECONDS", 0.0)
    monkeypatch.setattr(pdf_tool, "_POLL_SECONDS", 0.001)
    folder.changes = {"document_pages": 8}
    folder.write("slow.pdf", pdf(*numbered(2)))
    assert "took longer than 0 s" in await folder.error(read_file, path="slow.pdf")


async def test_a_reader_that_does_not_start_is_no_damage(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    folder.write("a.pdf", pdf("x"))
    error = await folder.error(read_file, path="a.pdf")
    assert "The program that reads PDFs for Holdfast failed on a.pdf." in error


async def test_memory_is_limited(folder: Folder) -> None:
    def swell(writer: PdfWriter) -> None:
        drawing = stream(b"(aaaaaaaa) Tj\n" * 12_000_000)
        draw(writer, writer.pages[0], drawing.flate_encode())

    folder.write("swollen.pdf", pdf(*numbered(2), change=swell))
    text = await folder.text(read_file, path="swollen.pdf")
    assert text.startswith("--- page 1 of 2 ---\n(this page can't be read: ")
    assert text.endswith("--- page 2 of 2 ---\npage 2 line 1\n")
