"""Text from a model, a tool or a file, made fit to be drawn: nothing in it moves the cursor."""

from __future__ import annotations

import re
from functools import cache

# Sequences end with their line at the latest, so that lines can be cleaned one by one.
_ESCAPES = (
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
# C0 and C1, what changes the direction of writing, and what is no character at all.
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]"
_SURROGATES = r"[\ud800-\udfff]"
_SUSPECT = r"[^\t\n -~\xa0-\u1fff\u2010-\u2027\u2030-\u205f\u2070-\ud7ff]"

_HIDDEN = (
    "[\0-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ud800-\udfff\ufff9-\ufffb\U000e0000-\U000e007f]"
)

_compiled = cache(re.compile)
"""When they are needed first: compiling takes 4 ms, and the first frame has plain text."""


def clean(text: str) -> str:
    """`text` without escape sequences and control characters; line ends are newlines.

    Tabs stay. Cleaning line by line gives the same as cleaning the whole.
    """
    if (text.isascii() and text.isprintable()) or not _compiled(_SUSPECT).search(text):
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _compiled(_CONTROL).sub("", _compiled(_ESCAPES).sub("", text))
    text = text.replace("\u2028", " ").replace("\u2029", " ")
    return _compiled(_SURROGATES).sub("\ufffd", text)


def one_line(text: str) -> str:
    """For titles and labels: without escape sequences, in one line, single spaces."""
    return " ".join(clean(text).split())


def visible(text: str) -> str:
    """For what a person decides about: whatever could hide or disguise itself is spelt out.

    Control characters, invisible ones and those that turn the direction of writing become
    `\\x1b`, `\\u202e` and so on. Newlines stay, tabs are widened to four.
    """
    return re.sub(_HIDDEN, _spell, text.replace("\r\n", "\n").expandtabs(4))


def _spell(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
