"""/keys: each pressed key as the terminal sends it, with its names and its meaning.

Input that nobody understands is shown too: that is what the panel is for.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Callable, Mapping
from threading import Event
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from textual import events
from textual.app import App, ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from tui.app.reports.keys import terminal_name
from tui.core.dataclass import dataclass
from tui.core.formatting import plural
from tui.core.keymap import Keymap, shown
from tui.core.terminal_input import InputPart
from tui.ui.screens.table_screen import cell
from tui.ui.toolkit.frame_pacing import ANSWER
from tui.ui.toolkit.key_parser import Received, Unclassified
from tui.ui.widgets.dialog import Dialog
from tui.ui.widgets.keys import APP_KEYS, CHAT_KEYS, PROMPT_KEYS, Key, keys_for

if TYPE_CHECKING:
    from tui.ui.start.terminal_takeover import TerminalTakeover

QUESTIONS: Final = "\x1b[>0q\x1b[?u\x1b[?4m"
"""Asks for the terminal's name, the kitty protocol's flags, and xterm's modifyOtherKeys."""

_NAME = re.compile(r"\x1bP>\|(.*?)(?:\x1b\\|\x07|\x9c)", re.DOTALL)
_FLAGS = re.compile(r"\x1b\[\?(\d+)u")
_OTHER_KEYS = re.compile(r"\x1b\[>4;?(\d*)m")
_BY_OTHER_KEYS = re.compile(r"\x1b\[27;\d+;\d+~")
_BY_KITTY = re.compile(r"\x1b\[[\d;:]*(?:u|:[\d;:]*[~A-HPQRS])")
_CONTROLS: Final = {
    0: "NUL", 8: "BS", 9: "TAB", 10: "LF", 13: "CR", 27: "ESC", 32: "SP", 127: "DEL",
}  # fmt: skip
_BUTTONS: Final = {1: "left", 2: "middle", 3: "right"}
_WHEEL: Final[Mapping[type, str]] = {
    events.MouseScrollUp: "up",
    events.MouseScrollDown: "down",
    events.MouseScrollLeft: "left",
    events.MouseScrollRight: "right",
}
_DROPPED: Final = {
    "unfinished": "not understood: an unfinished sequence",
    "late": "not understood: the rest of an unfinished sequence",
    "waits": "not understood yet: an unfinished sequence",
}
_CLOSING: Final = ("escape", "ctrl+c")
_FOLDED: Final = ("Mouse", "Modifier")
"""Of these, which come in numbers, only the last one is shown."""
_MOST = 8
_NAMES = 16
_BESIDE = 50
"""Cells from which the meaning is beside the name."""
_BYTES = 40
"""Bytes that are spelled out."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One part of the input: what it is called, what it means, its bytes, and how it came."""

    name: str
    meaning: str
    sent: str
    how: str


def spelled(raw: str) -> str:
    """Return the bytes of a text from the terminal, one after the other: `ESC [ 1 ; 5 D`.

    Those that are no ASCII are hexadecimal numbers.
    """
    data = raw[:_BYTES].encode("utf-8", "surrogateescape")
    spelling = " ".join(_byte(one) for one in data[:_BYTES])
    whole = len(raw.encode("utf-8", "surrogateescape"))
    return f"{spelling} … ({whole:,} bytes)" if whole > _BYTES else spelling


def _byte(number: int) -> str:
    if number in _CONTROLS:
        return _CONTROLS[number]
    if number < 32:
        return f"^{chr(number + 64)}"
    return chr(number) if number < 128 else f"{number:02x}"


def seen(part: InputPart, made: tuple[object, ...], meaning: Callable[[events.Key], str]) -> Seen:
    """Describe a part of the input and what was made of it. `meaning` tells what a key does."""
    keys = [one for one in made if isinstance(one, events.Key)]
    sent, how = spelled(part.raw), _how(part)
    match made:
        case _ if part.kind == "dropped":
            return Seen("Unknown", _DROPPED.get(part.text, "not understood"), sent, how)
        case (events.Paste(), *_):
            text = part.text
            count = f"{plural(len(text), 'character')} in {plural(text.count(chr(10)) + 1, 'line')}"
            return Seen("Paste", f"pastes {count}", sent, how)
        case (events.MouseEvent() as mouse, *_):
            return Seen(_mouse(mouse), f"column {mouse.x + 1}, row {mouse.y + 1}", sent, "mouse")
        case (events.AppFocus() | events.AppBlur() as focus, *_):
            here = "gets" if isinstance(focus, events.AppFocus) else "loses"
            return Seen("Focus", f"the terminal {here} the focus", sent, "report")
        case _ if any(isinstance(one, Unclassified) for one in made):
            return Seen("Unknown", "not understood", sent, how)
        case _ if not keys and _BY_KITTY.fullmatch(part.raw):
            return Seen("Modifier", "nothing alone", sent, how)
        case _ if not keys:
            return Seen("Report", "ignored", sent, "report")
        case _:
            return Seen(*_of_keys(part, keys, meaning), sent, how)


def _of_keys(
    part: InputPart, keys: list[events.Key], meaning: Callable[[events.Key], str]
) -> tuple[str, str]:
    """Return the names of keys, and what they do."""
    if part.kind == "text":
        text = "".join(key.character or "" for key in keys)
        return _named(text), f"types {_quoted(text)}"
    names = [key.character if key.is_printable else None for key in keys]
    names = [
        _named(name) if name else shown(key.key) for name, key in zip(names, keys, strict=True)
    ]
    return " ".join(names), meaning(keys[-1])


def _how(part: InputPart) -> str:
    if part.kind == "paste":
        return "paste"
    if part.kind == "mouse" or part.raw.startswith("\x1b[<"):
        return "mouse"
    if part.raw.startswith("\x1b[?"):
        return "report"
    if _BY_OTHER_KEYS.fullmatch(part.raw):
        return "modifyOtherKeys"
    return "kitty protocol" if _BY_KITTY.fullmatch(part.raw) else "legacy"


def _mouse(event: events.MouseEvent) -> str:
    if direction := _WHEEL.get(type(event)):
        return f"Wheel {direction}"
    if isinstance(event, events.MouseMove):
        return "Mouse"
    button = _BUTTONS.get(event.button, str(event.button))
    return f"Mouse {button} {'down' if isinstance(event, events.MouseDown) else 'up'}"


def _named(text: str) -> str:
    """Return a typed text; a single character that shows nothing by its number."""
    if text == " ":
        return "Space"
    invisible = len(text) == 1 and unicodedata.category(text)[0] in "ZCM"
    return f"U+{ord(text):04X}" if invisible else text


def _quoted(text: str) -> str:
    return "a space" if text == " " else _named(text) if _named(text) != text else f"“{text}”"


class Meanings:
    """The meaning of keys in a screen, by the tables, the person's own keys and the bindings."""

    def __init__(self, screen: Screen[Any], keymap: Keymap) -> None:
        self._screen, self._texts = screen, dict[str, str]()
        for table in (APP_KEYS, CHAT_KEYS, PROMPT_KEYS):
            self._texts.update(_texts_of(table, keymap))

    def of(self, key: events.Key) -> str:
        if key.is_printable and key.character:
            return f"types {_quoted(key.character)}"
        for name in (key.key, *key.aliases):
            if text := self._texts.get(name, ""):
                return text
        if bound := self._screen.active_bindings.get(key.key):
            text = bound.binding.description or bound.binding.action.replace("_", " ")
            return text[:1].lower() + text[1:]
        return "nothing here"


def _texts_of(table: tuple[Key, ...], keymap: Keymap) -> Mapping[str, str]:
    texts, text = dict[str, str](), ""
    for row in table:
        text = row.help if row.shown else text
        texts |= dict.fromkeys(keys_for(row, keymap), text)
    return texts


class KeysScreen(Dialog[None]):
    """Shows what the terminal sends, key by key. Esc or Ctrl+C, pressed twice, closes it."""

    DEFAULT_CSS = """
    KeysScreen Static { width: 1fr; height: auto; }
    KeysScreen #seen { margin: 1 0 0 0; }
    KeysScreen.-short #seen { margin: 0; }
    """
    AUTO_FOCUS: ClassVar[str | None] = None

    def __init__(self, env: Mapping[str, str], meanings: Meanings) -> None:
        super().__init__(classes="-question")
        self._env, self._meanings = env, meanings
        self._answer, self._flags, self._other_keys = "", 0, 0
        self._seen = deque[Seen](maxlen=_MOST)
        self._leaves = False

    @property
    def _watched(self) -> Event:
        app = cast("App[object]", self.app)  # pyright: ignore[reportUnknownMemberType] - Textual's
        return cast("TerminalTakeover", vars(app)["takeover"]).watched

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), "keys", ("esc esc or ctrl+c ctrl+c", "close")):
            yield Static(id="terminal", markup=False)
            yield Static(id="seen", markup=False)

    def on_mount(self) -> None:
        self._watched.set()
        self._draw()

    def on_unmount(self) -> None:
        self._watched.clear()

    def on_resize(self) -> None:
        super().on_resize()
        self.call_after_refresh(self._draw)

    def takes(self, event: events.Key | events.Paste) -> bool:
        """Take every key, so that it does nothing else; a second Esc or Ctrl+C closes."""
        key = event.key if isinstance(event, events.Key) else ""
        if key in _CLOSING and self._leaves:
            self.call_later(self._leave)
        self._leaves = key in _CLOSING
        self.note(f"Press {shown(key)} again to close." if self._leaves else "")
        return True

    def _leave(self) -> None:
        if self.is_current:
            self.dismiss()

    def on_received(self, event: Received) -> None:
        part = event.part
        if part.raw == ANSWER or (part.kind == "dropped" and part.text == "key"):
            return  # the answer about frames; an introducer that is a key with Alt after all
        if not self._learns(part.raw):
            now = seen(part, event.messages, self._meanings.of)
            if now.name in _FOLDED and self._seen and self._seen[-1].name == now.name:
                self._seen.pop()
            self._seen.append(now)
        self._draw()

    def _learns(self, raw: str) -> bool:
        """True if it is an answer about the terminal."""
        if match := _NAME.match(raw):
            self._answer = match[1]
        elif match := _FLAGS.fullmatch(raw):
            self._flags = int(match[1])
        elif match := _OTHER_KEYS.fullmatch(raw):
            self._other_keys = int(match[1] or 0)
        else:
            return False
        return True

    def _draw(self) -> None:
        head, rows = self.query_one("#terminal", Static), self.query_one("#seen", Static)
        protocol = "legacy"
        if self._flags:
            protocol = f"kitty protocol, flags {self._flags}"
        elif self._other_keys:
            protocol = f"modifyOtherKeys {self._other_keys}"
        width = head.size.width or 70
        about = (("Terminal", terminal_name(self._env, self._answer)), ("Protocol", protocol))
        lines = [
            Content.assemble((f"{name}  ", "$text-muted"), cell(text, width - 10).rstrip())
            for name, text in about
        ]
        head.update(Content("\n").join(lines))
        most = max(1, (self.free_rows(3)) // 2)
        lines = [line for one in list(self._seen)[-most:] for line in _lines(one, width)]
        rows.update(Content("\n").join(lines or [Content.styled("Press any key.", "$text-muted")]))


def _lines(one: Seen, width: int) -> list[Content]:
    """Return the two rows of a key."""
    names = _NAMES if width >= _BESIDE else min(_NAMES, max(len(one.name), 1))
    under = " " * (_NAMES + 2 if width >= _BESIDE else 2)
    how = f" · {one.how}"
    room = width - names - 2
    sent = cell(one.sent, width - len(under) - len(how)).rstrip()
    unknown = one.meaning.startswith("not understood")
    return [
        Content.assemble(
            (cell(one.name, names), "bold $text-accent"),
            (f"  {cell(one.meaning, room).rstrip()}", "$text-warning" if unknown else ""),
        ),
        Content.styled(f"{under}{sent}{how}", "$text-muted"),
    ]
