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

from pypdf import PdfReader, PdfWriter
from pypdf.errors import DependencyError, PdfReadError

CPU_SECONDS: Final = 60
"""Takes effect only if nobody is left to end it."""
MEMORY: Final = 1 << 30
IN_MEMORY: Final = 64 << 20
"""Files up to this size are read at once, which is faster."""
PAGE_CHARS: Final = 1_000_000
"""Maximum characters of one page."""


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
            text = reader.pages[number - 1].extract_text()[:PAGE_CHARS]
        except Exception as error:  # noqa: BLE001 - the other pages may be sound
            _answer(page=number, problem=_words(error))
            continue
        # Fonts without a table of characters give NULs and halves of surrogate pairs.
        text = text.replace("\0", "").encode("utf-8", "replace").decode()
        _answer(page=number, text=text)
        size -= len(text.encode())
        if size <= 0:
            return


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
