"""Text from a model, a tool or a file, made fit to be drawn: nothing in it moves the cursor."""

from __future__ import annotations

import re

from tui.widgets.markdown.text import clean

_HIDDEN = re.compile(
    "[\0-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ud800-\udfff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def one_line(text: str) -> str:
    """For titles and labels: without escape sequences, in one line, single spaces."""
    return " ".join(clean(text).split())


def visible(text: str) -> str:
    """For what a person decides about: whatever could hide or disguise itself is spelt out.

    Control characters, invisible ones and those that turn the direction of writing become
    `\\x1b`, `\\u202e` and so on. Newlines stay, tabs are widened to four.
    """
    return _HIDDEN.sub(_spell, text.replace("\r\n", "\n").expandtabs(4))


def _spell(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
