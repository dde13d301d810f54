"""Reads pages of a PDF, as a program of its own: `-m tui.tools.pdf_reader WHAT FIRST LAST BYTES`.

The PDF is on standard input. The answer is lines of JSON, each complete by itself, so that pages
already read are not lost if the program is ended: `{"pages": 133}` first, then, depending on WHAT:

    text      `{"page": 3, "text": "…"}` for each page, until there are `BYTES` of text
    document  `{"last": 20, "data": "…"}`: the pages as a PDF in base64, fewer if all of them
              would have more than `BYTES`

or `{"problem": "…"}`, for a page with its number. `"mended": true` beside `pages`: the file has no
table of its objects, so they were searched for, as viewers do.

A PDF can be from anybody, and made so that reading it never ends or fills the memory: here it has
limits that the system enforces.
"""

from __future__ import annotations

import io
import json
import re
import resource
import sys
from base64 import b64encode
from contextlib import suppress
from typing import Any, Final

from pypdf import PageObject, PdfReader, PdfWriter
from pypdf.errors import DependencyError, PdfReadError
from pypdf.generic import ArrayObject, IndirectObject, NameObject

CPU_SECONDS: Final = 60
"""Takes effect only if nobody is left to end it."""
MEMORY: Final = 1 << 30
IN_MEMORY: Final = 64 << 20
"""Files up to this size are read at once, which is faster."""
PAGE_CHARS: Final = 1_000_000
"""Maximum characters of one page."""


_NO_NOTES: Final = frozenset({"/Link", "/Popup"})
_FIELDS_DEEP: Final = 16
_PASSWORD: Final = 1 << 13
"""The flag of a field that shows dots instead of what is typed."""


def main(arguments: list[str]) -> None:
    """Answer, whatever happens: no exception gets out."""
    what, *numbers = arguments
    first, last, size = map(int, numbers)
    for limit, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, CPU_SECONDS)):
        hard = resource.getrlimit(limit)[1]
        with suppress(OSError, ValueError):  # macOS refuses to limit memory
            resource.setrlimit(limit, (most if hard < 0 else min(most, hard), hard))
    try:
        reader, mended = _opened()
        if not _unlocked(reader):
            return
        total = len(reader.pages)
        _answer(pages=total, **({"mended": True} if mended else {}))
        if what == "document":
            _document(reader, first, min(last, total), size)
        else:
            _texts(reader, first, min(last, total), size)
    except Exception as error:  # noqa: BLE001 - a damaged file raises anything
        _answer(problem=_words(error))


def _opened() -> tuple[PdfReader, bool]:
    """Open the PDF, if need be without its table of objects, which is then True."""
    source = sys.stdin.buffer
    size = source.seek(0, 2)
    source.seek(0)
    data = source.read() if size <= IN_MEMORY else b""
    try:
        reader = PdfReader(io.BytesIO(data) if data else source)
        if not reader.is_encrypted:
            reader.get_num_pages()
    except Exception:
        trailer = _trailer_for(data)
        if not trailer:
            raise
        return PdfReader(io.BytesIO(data + trailer)), True
    return reader, False


_CATALOG = re.compile(rb"\b(\d{1,9})\s+(\d{1,5})\s+obj\b[^>]{0,2000}?/Type\s{0,9}/Catalog\b")
_ROOT = re.compile(rb"/Root\s{1,9}(\d{1,9})\s{1,9}(\d{1,5})\s{1,9}R\b")
_LOCK = re.compile(rb"/Encrypt\s{1,9}\d{1,9}\s{1,9}\d{1,5}\s{1,9}R\b|/ID\s{0,9}\[[^\]]{0,400}\]")


def _trailer_for(data: bytes) -> bytes:
    """Return a trailer that leads to a PDF's pages and to no table; b"" if they aren't found.

    The library searches for the objects itself when it finds no table at the named place, and it
    does not when no place is named: a file that was cut, or that a generator left without its end.
    """
    root = _ROOT.findall(data)[-1:] or _CATALOG.findall(data)[-1:]
    if not root:
        return b""
    lock = b" ".join(dict.fromkeys(_LOCK.findall(data)))
    return b"\ntrailer\n<< /Root %b %b R %b >>\nstartxref\n1\n%%%%EOF\n" % (*root[0], lock)


def _unlocked(reader: PdfReader) -> bool:
    """True if the pages can be read; otherwise the reason is in the answer."""
    try:
        if reader.is_encrypted and not reader.decrypt(""):
            _answer(problem="password")
            return False
    except DependencyError:
        _answer(problem="cipher")
        return False
    return True


def _texts(reader: PdfReader, first: int, last: int, size: int) -> None:
    for number in range(first, last + 1):
        try:
            page = reader.pages[number - 1]
            text = "\n".join(filter(None, (page.extract_text(), _entries(page))))[:PAGE_CHARS]
        except Exception as error:  # noqa: BLE001 - the other pages may be sound
            _answer(page=number, problem=_words(error))
            continue
        # Fonts without a table of characters give NULs and halves of surrogate pairs.
        text = text.replace("\0", "").encode("utf-8", "replace").decode()
        _answer(page=number, text=text)
        size -= len(text.encode())
        if size <= 0:
            return


def _entries(page: PageObject) -> str:
    """Return what was entered into the form of a page, and noted on it, each in a line: the library
    counts neither among the page's text. "" if there is nothing, or it is damaged."""
    lines: list[str] = []
    with suppress(Exception):
        for reference in page.annotations or ():
            entry: Any = reference.get_object()
            kind = entry.get("/Subtype")
            if kind == "/Widget":
                name, value = _field(entry)
            elif kind not in _NO_NOTES:
                name, value = "Note", entry.get("/Contents")
            else:
                continue
            if words := _shown(value):
                lines.append(f"{name}: {words}")
    return "\n".join(dict.fromkeys(lines))  # each choice of a group has the group's value


def _field(widget: Any) -> tuple[str, Any]:
    """The name and the value of a field, of which the outer ones may have a part; no password."""
    names: list[str] = []
    known: dict[str, Any] = {}
    for _ in range(_FIELDS_DEEP):
        known = dict(widget) | known
        names = [*([str(widget["/T"])] if "/T" in widget else []), *names]
        if "/Parent" not in widget:
            break
        widget = widget["/Parent"]
    value = known.get("/V")
    if isinstance(value, IndirectObject):
        value = value.get_object()
    secret = int(known.get("/Ff", 0)) & _PASSWORD
    return str(known.get("/TU") or ".".join(names)), None if secret else value


def _shown(value: Any) -> str:
    """A text, a name such as /Yes, or several of them, in one line; "" for what is not chosen."""
    if isinstance(value, ArrayObject):
        return ", ".join(filter(None, map(_shown, value)))
    if isinstance(value, NameObject):
        return "" if value == "/Off" else value.removeprefix("/")
    return " ".join(value.split()) if isinstance(value, str) else ""


def _document(reader: PdfReader, first: int, last: int, size: int) -> None:
    while first <= last:
        writer = PdfWriter()
        writer.append(reader, pages=(first - 1, last), import_outline=False)
        buffer = io.BytesIO()
        writer.write(buffer)
        if buffer.tell() <= size:
            _answer(last=last, data=b64encode(buffer.getvalue()).decode("ascii"))
            return
        last = first + (last - first + 1) // 2 - 1
    _answer(problem="size")


def _words(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, PdfReadError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _answer(**line: Any) -> None:
    print(json.dumps(line), flush=True)  # noqa: T201 - it is a program


if __name__ == "__main__":
    main(sys.argv[1:])
