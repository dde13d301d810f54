"""Splits a terminal's input into text, keys, pastes and reports, however it is fragmented.

The grammar is ECMA-48's (CSI, SS3 and the control strings OSC, DCS, APC, PM, SOS), with the
additions of terminals: bracketed paste, xterm's mouse in three bytes, keys of the Linux console and
of rxvt. A sequence that is unknown, or lacks its end, is dropped; it is never typed.

Only time tells the Esc key from the beginning of a sequence: after a pause Esc is a key, and so is
Esc with `[`. Once one more byte has come, no pause turns the rest into keys. Any character that
cannot belong to a sequence ends it, so that none holds the keyboard; the rest of it is still
recognised later.

The first frame uses this: it imports next to nothing.
"""

from __future__ import annotations

import codecs
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from typing import Literal, TypeAlias

    Kind: TypeAlias = Literal[
        "text", "control", "alt", "escape", "csi", "ss3", "string", "mouse", "paste", "dropped"
    ]
    Steps: TypeAlias = Generator["InputPart", None, int]
    State: TypeAlias = Callable[[str, int], Steps]

ESC, BEL = "\x1b", "\x07"
SHIFT_ENTER = ("\x1bOM", "\x1bO2M")
"""Shift+Enter as Konsole sends it, and as XTerm sends that of a keypad. Alone, a keypad's Enter
sends it in a mode that is not asked for."""
DIRECTIVES = "/!@#?"
"""Characters that begin something in a prompt. Behind an Esc in one read they are no key with Alt:
Esc was pressed just before."""
PASTE_BEGIN, PASTE_END = "\x1b[200~", "\x1b[201~"

PASTE_S = 0.03
"""Lines that follow each other faster were pasted."""
PAUSE_S = 0.1
"""Seconds of pause after which an introducer is a key."""
WAIT_S = 2.0
"""Seconds after which a sequence that keeps keys back is reported."""
LATE_S = 10.0
"""Seconds for which the rest of an abandoned sequence is still recognised."""
CSI_LIMIT = 64
STRING_LIMIT = 1_000_000
_PASTE_PAUSE_S = 2.0
"""Seconds of pause in a paste after which its end is lost, and Ctrl+C or Esc stops it."""
_STOPS = ("\x03", ESC, "\x1b[27u", "\x1b[27;1u", "\x1b[99;5u")

_STRINGS = "]PX^_"
_INTRODUCERS = "[O" + _STRINGS
_BARE = "\udc8f\udc90\udc98\udc9b\udc9d\udc9e\udc9f"
_C1 = dict(zip("\x8f\x90\x98\x9b\x9d\x9e\x9f" + _BARE, "OPX[]^_OPX[]^_", strict=True))
"""Introducers of one byte, in UTF-8 or bare."""
_STRING_ENDS = BEL + "\x9c\udc9c"

_CHAR = r"[^\x00-\x1f\x7f\x8f\x90\x98\x9b-\x9f\udc8f\udc90\udc98\udc9b-\udc9f]"
_BODY = f"{_CHAR}*"
_ALONE = r"(?=\x1b|\Z)"
_SURE = {
    "[": rf"[<=>?][-0-9;:]+[ -/]*[@-~]|[0-9;:]+\$[a-z]|[0-9]*(?:;[0-9]+)+[A-HMP-Z~a-z]{_ALONE}"
    r"|20[01]~",
    **dict.fromkeys(_STRINGS, rf"{_BODY}(?:\x07|\x1b\\|[\x9c\udc9c])"),
}
"""The rest of a sequence, by its introducer, in a form that nobody types."""
_LIKELY = {
    "[": rf"(?:[0-9][0-9;:]*[A-HMP-UZctnuxy~^@]|[A-FHIOP-SZ]|M[^\x01-\x1f]{{3}}){_ALONE}"
    r"|[<=>?0-9;:][-0-9;:]*[ -/]*\Z",
    "O": rf"[A-DFHMP-SXj-y]{_ALONE}",
    "]": rf"[0-9]+;{_BODY}\x1b?\Z",
    "P": rf"[0-9<=>?]*[!$+|]{_BODY}\x1b?\Z",
    "_": rf"G[a-z]=[0-9]{_BODY}\x1b?\Z",
}
"""The rest, or the beginning of it, in the read that follows at once; later it may be typed."""
_MORE = {"[": r"[0-?]+[ -/]*(?:[@-~]|\Z)", **dict.fromkeys(_STRINGS, f"{_CHAR}+")}
"""More of a sequence that was too long."""
_BACKSLASH = "\\"
"""The remainder of a string's end if its Esc is gone."""
_FOREIGN = "?"
"""A sequence of another program that had the terminal before."""
_TAILS = {
    "]": rf"{_BODY}\x1b\\|[0-9a-f/]{{1,19}}\x07",
    "[": r"[0-9]*(?:;[0-9]+)*\$y|[0-9]*(?:;[0-9]+)+[cRt]",
}
"""The rest of its replies, which it has not read to their ends."""


class InputPart:
    """A unit of input. `text` is what was typed or pasted, the key of a `control` or an `alt`, or
    the whole sequence, its introducer as two characters.

    If it was `dropped`, `text` is the reason: it was `unfinished`; it came `late`, after it had
    been abandoned; it was an introducer alone, as a `key`; it `waits` for its end, or has waited
    long. `held_s` is the time for which it kept typed characters from becoming keys.

    `raw` is what was sent, with surrogates for bytes that are no UTF-8; a paste is without its
    marks.
    """

    __slots__ = ("held_s", "kind", "raw", "text")

    def __init__(self, kind: Kind, text: str, held_s: float = 0.0, *, raw: str = "") -> None:
        self.kind: Kind = kind
        self.text, self.held_s, self.raw = text, held_s, raw or text


class TerminalInput:
    """A parser of what was read from a terminal. `now` counts seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
        self._reads, self._read_at = 0, now()
        self._esc_alone = False
        """True if this read is one Esc, after a pause."""
        self._state: State = self._typed
        self._deadline: float | None = None
        """The time at which the input so far becomes a key."""
        self._introducer = ""
        self._sequence: list[str] = []
        self._size = 0
        self._since = 0.0
        self._said = False
        """True if it was reported that the sequence waits for its end."""
        self._unwanted = False
        """True if the sequence is the rest of an abandoned one."""
        self._too_long = False
        self._pasted: list[str] = []
        self._rests = {_FOREIGN: (0, self._read_at + WAIT_S)}
        """The beginnings of abandoned sequences; the read in which the rest is most likely to come,
        and the time until which it may."""

    def feed(self, data: bytes) -> Iterator[InputPart]:
        """Yield the parts that are complete now."""
        text = self._decode(data)
        if not text:
            return
        now = self._now()
        paused, self._read_at = now - self._read_at, now
        self._reads += 1
        self._esc_alone = text == ESC and paused >= PAUSE_S
        if self._state == self._paste and paused >= _PASTE_PAUSE_S and text in _STOPS:
            yield InputPart("paste", _sound("".join(self._pasted)))
            yield self._give_up()
        at = 0
        while at < len(text):
            at = yield from self._state(text, at)
        if self._too_long and self._state in {self._csi, self._string}:
            self._expect(self._introducer)  # input from here on is typed

    @property
    def patience_s(self) -> float | None:
        """Seconds to wait for more before `tick`; None for as long as it takes."""
        until = self._deadline
        if until is None:
            if self._said or self._state in {self._typed, self._paste}:
                return None
            until = self._since + WAIT_S
        return max(0.0, until - self._now())

    def tick(self) -> Iterator[InputPart]:
        """Yield the parts that a pause has completed. To be called when `patience_s` is over."""
        if self.patience_s != 0.0:
            return
        deadline, self._deadline = self._deadline, None
        if deadline is None:
            self._said = True
            yield self._dropped("waits", self._now() - self._since)
        elif self._state == self._after_escape:
            self._expect(ESC)
            yield InputPart("escape", ESC)
        elif self._state == self._string_end:
            yield self._give_up()
            self._expect(_BACKSLASH)
            if self._esc_alone:
                yield InputPart("escape", ESC)
        else:
            self._expect(self._introducer)
            yield InputPart("dropped", "key")
            yield InputPart("alt", self._introducer, raw=ESC + self._introducer)

    def _typed(self, text: str, at: int) -> Steps:
        """Take input outside of any sequence."""
        char = text[at]
        if self._rests and (begun := self._resumed(text, at)) is not None:
            return begun
        if char == ESC:
            self._escape()
        elif char in _C1:
            self._begin(_C1[char])
        elif char < " " or char == "\x7f":
            yield InputPart("control", char)
        elif char not in _STRING_ENDS:
            end = _end_of_text(text, at)
            yield InputPart("text", _sound(text[at:end]), raw=text[at:end])
            return end
        return at + 1

    def _escape(self) -> None:
        self._state, self._since = self._after_escape, self._read_at
        self._deadline = self._read_at + PAUSE_S

    def _after_escape(self, text: str, at: int) -> Steps:
        char, self._deadline = text[at], None
        if char in _INTRODUCERS:
            self._begin(char)
            self._deadline = self._read_at + PAUSE_S
        elif char == ESC:
            yield InputPart("escape", ESC)
            self._escape()
        elif char in DIRECTIVES:
            self._state = self._typed
            yield InputPart("escape", ESC)
            return at
        else:
            self._state = self._typed
            yield InputPart("alt", _sound(char), raw=ESC + char)
        return at + 1

    def _begin(self, introducer: str, *, unwanted: bool = False) -> None:
        self._introducer, self._unwanted = introducer, unwanted
        self._too_long &= unwanted
        self._sequence, self._size = [ESC, introducer], 0
        self._said, self._since = False, self._read_at
        self._state = {"[": self._csi, "O": self._ss3}.get(introducer, self._string)

    def _csi(self, text: str, at: int) -> Steps:
        char, self._deadline = text[at], None
        if not " " <= char <= "~":
            yield self._give_up()
            return at
        self._sequence.append(char)
        self._size += 1
        if self._size == 1 and char in "M[":  # the mouse, in bytes; a key of the Linux console
            self._state = self._mouse if char == "M" else self._ss3
        elif char >= "@" or (char == "$" and self._is_key_of_rxvt()):
            yield from self._whole("csi")
        elif self._size > CSI_LIMIT and not self._too_long:
            yield self._overlong()
        return at + 1

    def _is_key_of_rxvt(self) -> bool:
        """True if a number and a dollar sign stand for a key with Shift."""
        return self._size <= 3 and "".join(self._sequence[2:-1]).isdecimal() and not self._unwanted

    def _ss3(self, text: str, at: int) -> Steps:
        char, self._deadline = text[at], None
        if not " " <= char <= "~":
            yield self._give_up()
            return at
        self._sequence.append(char)
        self._size += 1
        if self._size > CSI_LIMIT:
            yield self._give_up()
        elif not "0" <= char <= ";":
            yield from self._whole("ss3" if self._introducer == "O" else "csi")
        return at + 1

    def _mouse(self, text: str, at: int) -> Steps:
        char = text[at]
        if "\0" < char < " ":
            yield self._give_up()
            return at
        self._sequence.append(char)
        if len(self._sequence) == 6:
            yield from self._whole("mouse")
        return at + 1

    def _string(self, text: str, at: int) -> Steps:
        char, self._deadline = text[at], None
        if char == ESC:
            self._state, self._deadline = self._string_end, self._read_at + PAUSE_S
        elif char in _STRING_ENDS:
            yield from self._whole("string", end=char)
        elif char < " " or char == "\x7f" or char in _C1:
            yield self._give_up()
            return at
        else:
            end = _end_of_text(text, at)
            self._sequence.append(text[at:end])
            self._size += end - at
            if self._size > STRING_LIMIT and not self._too_long:
                yield self._overlong()
            return end
        return at + 1

    def _string_end(self, text: str, at: int) -> Steps:
        """Take the character after an Esc in a control string."""
        self._deadline = None
        if text[at] == "\\":
            yield from self._whole("string", end=ESC + "\\")
            return at + 1
        yield self._give_up()
        self._escape()
        return at

    def _paste(self, text: str, at: int) -> Steps:
        """Take input up to the mark at the end of a paste, which may come in pieces."""
        seen = (self._pasted.pop() if self._pasted else "") + text[at:]
        end = seen.find(PASTE_END)
        if end < 0:
            begun = partly(seen, PASTE_END)
            self._pasted += [seen[: len(seen) - begun], seen[len(seen) - begun :]]
            return len(text)
        self._pasted.append(seen[:end])
        self._state = self._typed
        yield InputPart("paste", _sound("".join(self._pasted)))
        return len(text) - (len(seen) - end - len(PASTE_END))

    def _whole(self, kind: Kind, *, end: str = "") -> Iterator[InputPart]:
        """End a complete sequence; the `end` of a control string is no part of its text."""
        self._state, self._too_long = self._typed, False
        sequence = "".join(self._sequence)
        if sequence == PASTE_BEGIN:
            self._state, self._pasted = self._paste, []
        elif self._unwanted:
            yield self._dropped("late")
        else:
            if self._said:
                yield self._dropped("waits", self._read_at - self._since)
            yield InputPart(kind, sequence, raw=sequence + end)

    def _give_up(self) -> InputPart:
        """Abandon the sequence: it will have no end."""
        self._expect(self._introducer)
        return self._dropped("unfinished", self._read_at - self._since)

    def _dropped(self, reason: str, held_s: float = 0.0) -> InputPart:
        return InputPart("dropped", reason, held_s, raw="".join(self._sequence))

    def _overlong(self) -> InputPart:
        """Abandon a sequence that is too long; the rest of this read, or of a longer one, still
        belongs to it."""
        self._unwanted = self._too_long = True
        dropped = self._dropped("unfinished", self._read_at - self._since)
        self._sequence.clear()
        return dropped

    def _expect(self, began: str) -> None:
        """Treat input from now on as typed, unless it is the rest of the sequence that began so."""
        self._state, self._deadline = self._typed, None
        self._rests[began] = (self._reads + 1, self._now() + LATE_S)

    def _resumed(self, text: str, at: int) -> int | None:
        """Begin with the rest of an abandoned sequence. Returns where it continues, None if
        something else comes."""
        for began, (read, until) in tuple(self._rests.items()):
            if self._read_at > until:
                del self._rests[began]
            elif began == _BACKSLASH:
                if at == 0 and text[0] == _BACKSLASH:
                    self._begin("]", unwanted=True)
                    self._state = self._string_end
                    return 0
            elif len(text) - at > 1 and (began != _FOREIGN or _is_tail(text, at)):
                introducer, body = (text[at], at + 1) if began == ESC else (began, at)
                likely = at == 0 and self._reads == read
                if continued := self._continues(introducer, text, body, likely=likely):
                    del self._rests[began]
                    self._begin(continued, unwanted=True)
                    return body
        return None

    def _continues(self, introducer: str, text: str, at: int, *, likely: bool) -> str:
        """Return the introducer of the sequence whose rest this is, "" for none."""
        import re  # noqa: PLC0415 - seldom needed, and the first frame does without it

        if introducer == _FOREIGN:
            return next(
                (one for one, tail in _TAILS.items() if re.compile(tail).match(text, at)), ""
            )
        tables = ((_SURE, True), (_LIKELY, likely), (_MORE, self._too_long))
        patterns = (table.get(introducer) for table, holds in tables if holds)
        return (
            introducer if any(one and re.compile(one).match(text, at) for one in patterns) else ""
        )


def partly(text: str, whole: str) -> int:
    """Return how many characters at the end of a text begin `whole`."""
    return next((n for n in range(len(whole) - 1, 0, -1) if text.endswith(whole[:n])), 0)


def is_text(typed: str) -> bool:
    """True if all of it belongs in a text: also characters that are not drawn, blanks that are no
    spaces, icons of a font, and those that this Python does not know yet."""
    return typed.isprintable() or not any(
        char < " " or "\x7f" <= char <= "\x9f" or char in "\u2028\u2029" or _is_half(char)
        for char in typed
    )


def _is_half(char: str) -> bool:
    return "\ud800" <= char <= "\udfff"


def _is_tail(text: str, at: int) -> bool:
    """True if it may be the end of a reply: a quick test, which most text fails."""
    return text[at] in "0123456789;" or BEL in text or "\x1b\\" in text


def _end_of_text(text: str, at: int) -> int:
    """Return the position of the next control character."""
    if text.isprintable():
        return len(text)
    for end in range(at, len(text)):
        char = text[end]
        if char < " " or char == "\x7f" or char in _C1 or char in _STRING_ENDS:
            return end
    return len(text)


def _sound(text: str) -> str:
    """Return a text with U+FFFD for bytes that are no UTF-8."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
