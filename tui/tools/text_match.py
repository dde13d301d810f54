"""Finding an exact passage in a text, whatever its line endings, and saying why it is not there."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from itertools import accumulate, islice

from tui.core.errors import ToolError
from tui.tools.text_decoding import Text

_SHOWN_LINES = 12
_COMPARED_LINES = 20_000


def replace_passage(text: str, old: str, new: str) -> tuple[str, list[int]]:
    """`text` with every `old` replaced by `new`, and where each stood in `text`.

    CRLF and LF count as the same in the search. A replacement gets the line ending that the
    passage has, else the one that the text has first; everything outside it is untouched.
    """
    flat, old, new = (s.replace("\r\n", "\n") for s in (text, old, new))
    starts = [m.start() for m in re.finditer(re.escape(old), flat)]
    if len(flat) == len(text):
        return flat.replace(old, new), starts
    crlf = [m.start() - n for n, m in enumerate(re.finditer("\r\n", text))]
    default = "\r\n" if flat.index("\n") == crlf[0] else "\n"
    pieces: list[str] = []
    spots: list[int] = []
    done = 0
    for start in starts:
        begin = start + bisect_left(crlf, start)
        end = start + len(old) + bisect_left(crlf, start + len(old))
        passage = text[begin:end]
        first = passage.find("\n")
        ending = default if first < 0 else "\r\n" if passage[first - 1 : first] == "\r" else "\n"
        pieces += (text[done:begin], new.replace("\n", ending))
        spots.append(begin)
        done = end
    return "".join((*pieces, text[done:])), spots


def not_found(file: Text, old: str, new: str, shown: str) -> ToolError:
    """Why `old` is not in the file, as far as can be told, and what comes close."""
    said = f"old_string is not in {shown}."
    if "\ufffd" in old and not file.valid:
        return ToolError(
            said,
            hint="The file is not UTF-8: choose a passage without the characters shown as \ufffd.",
        )
    lines = file.text.replace("\r\n", "\n").split("\n")
    if (span := _same_but_blanks(lines, old)) is not None:
        return ToolError(
            f"{said} Lines {span[0] + 1}-{span[1]} differ from it only in blanks "
            f"(indentation, tabs, line ends):\n{_excerpt(lines, *span)}\n",
            hint="Copy the passage exactly as it stands there.",
        )
    if new.strip() and new.replace("\r\n", "\n") in file.text.replace("\r\n", "\n"):
        return ToolError(
            f"{said} But new_string is: the change may have been made already.",
            hint="Read the file to see how it stands.",
        )
    if (span := _closest(lines, old)) is not None:
        return ToolError(
            f"{said} The closest lines are {span[0] + 1}-{span[1]}:\n{_excerpt(lines, *span)}\n",
            hint="Read the file again and copy the passage exactly.",
        )
    return ToolError(said, hint="Read the file again and copy the passage exactly.")


def _same_but_blanks(lines: list[str], old: str) -> tuple[int, int] | None:
    """The lines, as a half-open range, that hold `old` when all blanks are left out."""
    wanted = "".join(old.split())
    if not wanted:
        return None
    bare = ["".join(line.split()) for line in lines]
    at = "".join(bare).find(wanted)
    if at < 0:
        return None
    ends = list(accumulate(map(len, bare)))
    return bisect_left(ends, at + 1), bisect_left(ends, at + len(wanted)) + 1


def _closest(lines: list[str], old: str) -> tuple[int, int] | None:
    """Where the longest line of `old` nearly stands, with as many lines around as `old` has."""
    wanted = old.replace("\r\n", "\n").split("\n")
    key = max(wanted, key=lambda line: len(line.strip())).strip()[:500]
    matcher = difflib.SequenceMatcher(autojunk=False, b=key)
    best, score = -1, 0.6
    for number, line in enumerate(islice(lines, _COMPARED_LINES)):
        matcher.set_seq1(line.strip()[:500])
        if matcher.real_quick_ratio() > score and matcher.quick_ratio() > score:
            ratio = matcher.ratio()
            if ratio > score:
                best, score = number, ratio
    if best < 0:
        return None
    start = max(0, best - [line.strip()[:500] for line in wanted].index(key))
    return start, min(start + len(wanted), len(lines))


def _excerpt(lines: list[str], start: int, stop: int) -> str:
    shown = [line if len(line) <= 300 else f"{line[:300]}…" for line in lines[start:stop]]
    if len(shown) > _SHOWN_LINES:
        shown = [*shown[:_SHOWN_LINES], "…"]
    text = "\n".join(shown)
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
