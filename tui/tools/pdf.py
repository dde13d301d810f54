"""Pages of a PDF for the model: as text, or as a PDF if the model takes documents.

The PDF is read by another process (`tui.tools.pdf_reader`), which is ended if it takes too long.
Everything here blocks.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from threading import Event
from time import monotonic
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from tui.core.dataclass import dataclass
from tui.core.documents import MAX_BYTES, document_block, pages_name
from tui.core.errors import ToolError
from tui.core.formatting import plural
from tui.core.messages import ToolOutput, text_block
from tui.tools.paging import PageLimits

PAGES: Final = 20
"""Number of pages that a call gets if it does not say."""
MOST_PAGES: Final = 100
"""Maximum number of pages that a call can ask for."""
SECONDS: Final = 20.0
"""Seconds that reading may take."""

_FOOTER_BYTES = 200
_POLL_SECONDS = 0.1
_RANGE = re.compile(r"\s*(\d{1,7})\s*(?:([-–])\s*(\d{1,7})?\s*)?")
_ENVIRONMENT = frozenset({"HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR"})
"""Variables that Python needs to find its libraries, besides those that begin with PYTHON: no keys,
no paths."""

_PROBLEMS: Final = {
    "password": (
        "{shown} is protected with a password, so its pages can't be read.",
        "Ask the user for a copy without a password (qpdf --decrypt --password=… IN OUT).",
    ),
    "cipher": (
        "{shown} is encrypted with AES, and the Python package cryptography isn't installed.",
        "Make a copy without encryption (qpdf --decrypt IN OUT) and read that.",
    ),
    "memory": (
        "Reading {shown} takes too much memory.",
        "Take out the pages you need with a command (qpdf IN --pages . 1-5 -- OUT), read the copy.",
    ),
    "failed": (
        "The program that reads PDFs for Holdfast failed on {shown}.",
        "Get the text with a command (pdftotext) if there is one, and tell the user.",
    ),
    "time": (
        "Reading {shown} took longer than {seconds:.0f} s, so it was stopped.",
        "Ask for fewer pages, or get the text with a command (pdftotext) if there is one.",
    ),
}
"""The error and its hint, by the reader's word for it."""
_STOPPED: Final = {"memory": "the next takes too much memory", "time": "reading takes long"}
"""The reason why there are fewer pages than asked for."""
_DAMAGED: Final = (
    "{shown} can't be read as a PDF, it seems damaged: {problem}.",
    "Try to repair it with a command (qpdf IN OUT), or ask the user for another copy.",
)

_MENDED: Final = "the file's table of objects is missing (cut off?): what could be found was read"


class _Range(NamedTuple):
    """The first and the last page that are wanted; the last may be beyond the end."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class _Pages:
    """The result of a read: the number of pages, the text of each that was read, in their order,
    the problem that kept the reader from the others, and if the file was read without its table."""

    total: int
    texts: Mapping[int, str]
    problem: str = ""
    mended: bool = False


def is_pdf(head: bytes) -> bool:
    """True if a file that begins like this is a PDF."""
    return head.startswith(b"%PDF-")


def read_pdf(
    file: BinaryIO,
    shown: str,
    pages: str,
    *,
    limits: PageLimits,
    document_pages: int = 0,
    stop: Event,
) -> ToolOutput:
    """Return the pages that were asked for, as many as fit. Raises ToolError.

    They are a document of at most `document_pages`; if that is 0, or no document can be made of
    them, they are text, and `limits` are those of a page of text.
    """
    wanted = _range_of(pages)
    if document_pages:
        part = _Range(wanted.first, min(wanted.last, wanted.first + document_pages - 1))
        lines = list(_read(file, "document", part, MAX_BYTES, stop))
        document = lines[-1] if lines else {}
        if "data" in document:
            output = _document(document, shown, wanted.first, lines[0]["pages"], document_pages)
            if "mended" in lines[0]:
                output.content.append(text_block(f"[{_MENDED}]"))
            return output
        # Known problems are final; any other may not concern the text.
        if document.get("problem") in _PROBLEMS:
            _checked(lines, shown, wanted.first)
    lines = list(_read(file, "text", wanted, limits.bytes, stop))
    read = _checked(lines, shown, wanted.first)
    return _output(read, wanted, limits)


def _range_of(pages: str) -> _Range:
    if not pages.strip():
        return _Range(1, PAGES)
    match = _RANGE.fullmatch(pages)
    if match is None:
        raise ToolError(
            f"pages={pages[:40]!r} is neither a page nor a range.",
            hint="Use one page or one range, such as pages=3 or pages=3-7.",
        )
    first = int(match[1])
    last = int(match[3]) if match[3] else first + PAGES - 1 if match[2] else first
    if not 1 <= first <= last:
        raise ToolError(
            f"pages={pages.strip()} isn't a range of pages: page 1 is the first, the lower "
            "number comes first.",
            hint="Use one page or one range, such as pages=3 or pages=3-7.",
        )
    return _Range(first, min(last, first + MOST_PAGES - 1))


def _read(
    file: BinaryIO, what: str, wanted: _Range, size: int, stop: Event
) -> Iterator[dict[str, Any]]:
    """Yield the lines of the reader's answer; the last one reports a timeout."""
    command = [sys.executable, "-P", "-m", "tui.tools.pdf_reader", what]
    command += map(str, (*wanted, size))
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in _ENVIRONMENT or name.startswith("PYTHON")
    }
    until, late = monotonic() + SECONDS, False
    with Popen(command, stdin=file, stdout=PIPE, stderr=DEVNULL, env=environment) as reader:
        while True:
            try:
                answer, _ = reader.communicate(timeout=_POLL_SECONDS)
                break
            except TimeoutExpired:
                late = monotonic() > until
                if late or stop.is_set():
                    reader.kill()
    if stop.is_set():
        raise InterruptedError("cancelled")
    for line in answer.splitlines(keepends=True):
        # A line without its end was cut off when the reader was ended.
        if line.endswith(b"\n"):
            yield msgspec.json.decode(line, type=dict[str, Any])
    if late:
        yield {"problem": "time"}
    elif reader.returncode:
        yield {"problem": "memory" if reader.returncode < 0 else "failed"}


def _checked(lines: list[dict[str, Any]], shown: str, first: int) -> _Pages:
    """Collect the pages that were read. Raises ToolError if there are none."""
    total, texts, problem = 0, dict[int, str](), ""
    for line in lines:
        total = line.get("pages", total)
        if "text" in line:
            texts[line["page"]] = line["text"].strip("\n")
        elif "page" in line:
            why = "it takes too much memory" if line["problem"] == "memory" else line["problem"]
            texts[line["page"]] = f"(this page can't be read: {why})"
        else:
            problem = line.get("problem", problem)
    problem = " ".join(problem.split()).rstrip(".")[:200]
    if total and first > total:
        raise ToolError(
            f"pages={first} is past the end: {shown} has {plural(total, 'page')}.",
            hint="Use a smaller number.",
        )
    if not texts:
        message, hint = _PROBLEMS.get(problem, _DAMAGED)
        facts = {"shown": shown, "problem": problem or "it has no pages", "seconds": SECONDS}
        raise ToolError(message.format(**facts), hint=hint)
    mended = any("mended" in line for line in lines)
    return _Pages(total, texts, _STOPPED.get(problem, problem), mended)


def _output(found: _Pages, wanted: _Range, limits: PageLimits) -> ToolOutput:
    """Return the pages that fit, at least one, and how to continue."""
    room, rows = limits.bytes - _FOOTER_BYTES, limits.lines - 2
    parts: list[str] = []
    first = end = wanted.first
    for number, text in found.texts.items():
        part = f"--- page {number} of {found.total} ---\n{text or '(no text on this page)'}\n"
        room, rows = room - len(part.encode()), rows - part.count("\n")
        if parts and (room < 0 or rows < 0):
            break
        parts.append(part)
        end = number
    name = pages_name(first, end, found.total)
    notes = [name, f"continue with pages={_next(end, found.total)}"] if end < found.total else []
    if found.problem and end == max(found.texts):
        notes.append(f"stopped there: {found.problem}")
    if found.mended:
        notes.append(_MENDED)
    if not any(found.texts[number] for number in range(first, end + 1)):
        notes.append(
            "no text there, probably scanned: make images with a command (pdftoppm -r 100 -png "
            "FILE page) and read those, or recognize the text (ocrmypdf)"
        )
    footer = f"[{'; '.join(notes)}]" if notes else ""
    return ToolOutput.text("".join(parts) + footer, summary=name)


def _document(made: Mapping[str, Any], shown: str, first: int, total: int, most: int) -> ToolOutput:
    """Return pages as a document, with a line that names them."""
    end: int = made["last"]
    name = pages_name(first, end, total)
    more = f"; continue with pages={_next(end, total, most)}" if end < total else ""
    block = document_block(shown, name, made["data"])
    return ToolOutput([text_block(f"[{name}, as a document{more}]"), block], summary=name)


def _next(end: int, total: int, most: int = PAGES) -> str:
    last = min(end + min(most, PAGES), total)
    return str(last) if last == end + 1 else f"{end + 1}-{last}"
