"""Makes texts fit to be spoken: on one line, without escape sequences, signs as words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from tui.core.formatting import plural, size
from tui.core.text_cleaning import clean, one_line, visible
from tui.tools.diff import count_changes, signs

_NONE: Final = "/dev/null"
_SIGNS: Final = str.maketrans(
    {
        "·": ",",
        "→": "to",
        "−": "-",
        "…": "...",
        "–": "-",
        "—": "-",
        "📝": "",
        "✓": "done",
        "✗": "failed",
        "✂": "cut",
        "“": '"',
        "”": '"',
    }
)


def spoken(text: str) -> str:
    """Return a sentence of the program's own, on one line."""
    text = re.sub(r"(?<=\d) ?× ?(?=\d)", " by ", text)
    return one_line(text.translate(_SIGNS)).replace(" ,", ",")


def shown(text: str) -> list[str]:
    """Return a text from elsewhere as lines; nothing in it moves the cursor."""
    return clean(text).expandtabs(4).split("\n")


def decided_about(text: str) -> list[str]:
    """Like `shown`, with everything that could hide or disguise itself spelled out."""
    return visible(text).split("\n")


def sentence(*parts: str) -> str:
    """Join the non-empty parts, each with its full stop."""
    ended = (part if part.endswith((".", "?", "!", ":")) else f"{part}." for part in parts if part)
    return spoken(" ".join(ended))


def counted(tokens: int) -> str:
    return f"{tokens:,} tokens" if tokens != 1 else "1 token"


def percent(part: int, whole: int) -> str:
    return f"{round(100 * part / whole) if whole else 0} percent"


def took(seconds: float) -> str:
    return f"{seconds:.1f} s"


def cut(receipt: dict[str, Any] | None) -> str:
    """Say how much of a tool's output was kept from the model, and where all of it is."""
    if not receipt:
        return ""
    total, kept = receipt.get("bytes_total"), receipt.get("bytes_shown")
    if not isinstance(total, int) or not isinstance(kept, int):
        return ""
    text = f"output cut from {size(total)} to {size(kept)}"
    path = receipt.get("path")
    return f"{text}, full copy in {path}" if path else f"{text}, no full copy kept"


def diff(text: str) -> list[str]:
    """Return a unified diff in words: each line says whether it was removed, added or kept."""
    lines: list[str] = []
    before = ""
    rows = decided_about(text)
    for sign, line in zip(signs(rows), rows, strict=True):
        if sign == "+":
            lines.append(f"  added: {line[1:]}")
        elif sign == "-":
            lines.append(f"  removed: {line[1:]}")
        elif line.startswith("@@"):
            place = _place(line)
            lines += [f"At line {place}:"] if place != "0" else []
        elif line.startswith("--- "):
            before = line[4:].removeprefix("a/")
        elif line.startswith("+++ "):
            lines.append(_file_named(before, line[4:].removeprefix("b/")))
        elif line.startswith("\\"):
            lines.append("  (no newline at the end)")
        elif line.strip():
            lines.append(f"  kept: {line[1:]}" if line.startswith(" ") else f"  {line}")
    return lines


def _file_named(before: str, after: str) -> str:
    """Describe a file by its two names in a diff."""
    if after == _NONE:
        return f"File {before}, deleted"
    return f"File {after}" if before in {_NONE, after} else f"File {after}, before: {before}"


def _place(header: str) -> str:
    """Return the new line of a hunk: `@@ -3,4 +5,6 @@` is at line 5."""
    new = next((part for part in header.split() if part.startswith("+")), "+1")
    return new[1:].partition(",")[0]


def changed(text: str) -> str:
    """Say how much a unified diff changes."""
    added, removed = count_changes(text)
    return f"{plural(added, 'line')} added, {removed:,} removed"


def numbered(labels: Iterable[str]) -> list[str]:
    return [f"{number}: {spoken(label)}" for number, label in enumerate(labels, 1)]
