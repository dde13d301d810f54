"""Text from a model, a tool or a file, made safe to draw: nothing in it moves the cursor."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from tui.core.late_pattern import late_pattern

# Sequences end with their line at the latest, so that lines can be cleaned one by one.
_ESCAPES = (
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
# C0 and C1, characters that change the direction of writing, and those that are none at all.
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]"
_SURROGATES = r"[\ud800-\udfff]"
_SUSPECT = r"[^\t\n -~\xa0-\u1fff\u2010-\u2027\u2030-\u205f\u2070-\ud7ff]"

COLOURS = r"\x1b\[[0-9;:]{0,99}m"
"""Sequences that only change how the text after them is drawn (SGR)."""

_HIDDEN = (
    "[\0-\x09\x0b-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f"
    "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3164\ufe00-\ufe0e\ufeff\uffa0"
    "\ufff0-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
    r"|(?<![^\0-\u203b])\ufe0f"  # behind a symbol it only says that this has colours
)
"""Characters that are not drawn, blanks that are no spaces, and those that change the direction of
writing."""

_ALIKE = frozenset(
    "АВЕЅІЈКМНОРСТХУԌԚԜаеѕіјорсхуһԁԛԝѵӏ"  # Cyrillic
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧονρι"  # Greek
    "ՏՍՕհոսօցզ"  # Armenian
    "ᎪᏴᏟᎠᎬᎻᎫᏦᏞᎷᏢᎡᏚᎢᏙᎳᏃ"  # Cherokee
    "\u0131\u0251\u0261\ua7ae\u2010\u2011\u2012\u2212\u2043\u2044\u2215\u2216\u2217\u2223\u2236"
    "\u01c0\u01c3\u037e\u2024\u201a\u02b9\u02bc\u02cb\u055d\u05c3\ua4f8\ua789\ufe54\ufe68"  # signs
)
"""Letters and signs of other scripts that are drawn like letters and signs of ASCII."""
_ALIKE_SIGNS = frozenset(c for c in _ALIKE if not c.isalpha()) | frozenset(
    "\u01c0\u01c3\u02b9\u02bc\u02cb"
)
_COMMAND_END = late_pattern(r"\[[^\]]* · [\d.]+ s\]")
_COMMAND_NOTES = ("[processes that it left", "[stopped because it took")
_WORD = r"[^\W_]+"
_OTHER_FORMS = r"[\uff01-\uff5e\U0001d400-\U0001d7ff\u2160-\u217f\u24b6-\u24e9\u1d2c-\u1d6a]"
"""ASCII characters as wide, bold, round or small ones."""

_compiled = cache(re.compile)
"""Compiles when first needed: that takes 4 ms, and the first frame has plain text."""


def clean(text: str) -> str:
    """Return `text` without escape sequences and control characters; line ends are newlines.

    Tabs stay. Cleaning line by line gives the same as cleaning the whole.
    """
    if (text.isascii() and text.isprintable()) or not _compiled(_SUSPECT).search(text):
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _compiled(_CONTROL).sub("", _compiled(_ESCAPES).sub("", text))
    text = text.replace("\u2028", " ").replace("\u2029", " ")
    return _compiled(_SURROGATES).sub("\ufffd", text)


def as_typed(text: str) -> str:
    """Return a pasted text as it could have been typed: without escape sequences and control
    characters, and with newlines where lines or pages end. Every other character stays, also one
    that is not drawn: what draws it cleans it."""
    if text.isascii() and text.isprintable():
        return text
    text = _compiled("\r\n|[\r\x0b\x0c\x85\u2028\u2029]").sub("\n", text)
    text = _compiled(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]").sub("", _compiled(_ESCAPES).sub("", text))
    return _compiled(_SURROGATES).sub("\ufffd", text)


def controls_removed(text: str) -> str:
    """Return `text` without control characters of any kind, including line ends and tabs; the
    remainder of a sequence is text."""
    return re.sub(r"[\t\n]", "", _compiled(_CONTROL).sub("", text))


def without_colours(text: str) -> str:
    """Return `text` without the escape sequences that color it."""
    return _compiled(COLOURS).sub("", text) if "\x1b" in text else text


def current_lines(text: str) -> str:
    """Return output that was shown while it came with only the last state of each line that a
    carriage return started over."""
    if "\r" not in text:
        return text
    return "\n".join(row.removesuffix("\r").rpartition("\r")[2] for row in text.split("\n"))


def printed_text(result: str) -> str:
    """Return the output of a command: its result without the notes in brackets at its end, of which
    the first has the exit and the time."""
    lines = result.rstrip().split("\n")
    ends = (at for at in range(len(lines) - 1, -1, -1) if _COMMAND_END.fullmatch(lines[at]))
    end = next(ends, None)
    if end is None:
        return result
    while end and lines[end - 1].startswith(_COMMAND_NOTES):
        end -= 1
    printed = "\n".join(lines[:end])
    return "" if printed == "(no output)" else printed


def one_line(text: str) -> str:
    """Return a text for titles and labels: without escape sequences, in one line, single spaces."""
    return " ".join(clean(text).split())


def visible(text: str) -> str:
    """Return a text for a person's decision: characters that could hide or disguise themselves are
    spelt out.

    Control characters, invisible ones and those that change the direction of writing become
    `\\x1b`, `\\u202e` and so on; so do letters that look like those of ASCII, in a word that has
    both, or if nothing else in the line is in their script. Newlines stay, tabs are widened.
    """
    text = text.replace("\r\n", "\n").expandtabs(4)
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "\n".join(
        line
        if line.isascii() and line.isprintable()
        else _undisguised(re.sub(_HIDDEN, _spell, line))
        for line in text.split("\n")
    )


def _undisguised(line: str) -> str:
    """Spell out the look-alikes of ASCII in a line, as `visible` does."""
    if line.isascii():
        return line
    if not any(unicodedata.east_asian_width(c) == "W" for c in line):
        line = re.sub(_OTHER_FORMS, _spell, line)
    if _ALIKE.isdisjoint(line):
        return line
    honest = {_script(c) for c in line if c.isalpha() and not c.isascii() and c not in _ALIKE}
    line = re.sub(f"[{re.escape(''.join(_ALIKE_SIGNS))}]", _spell, line)

    def spelt(found: re.Match[str]) -> str:
        word = found[0]
        mixed = any("a" <= c.lower() <= "z" for c in word)
        return "".join(
            _code(c) if c in _ALIKE and (mixed or _script(c) not in honest) else c for c in word
        )

    return re.sub(_WORD, spelt, line)


def _script(char: str) -> str:
    return unicodedata.name(char, "").partition(" ")[0]


def _spell(found: re.Match[str]) -> str:
    return _code(found[0])


def _code(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\{'u' if code < 0x10000 else 'U000'}{code:04x}"
