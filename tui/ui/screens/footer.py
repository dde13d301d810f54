"""What the chat screen says of itself around the prompt: what is going on and for how long, its
modes, its keys (those of what has the focus come first)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from textual.content import Content
from textual.widget import Widget

from tui.core.clock import Clock
from tui.core.formatting import duration, tokens
from tui.core.keymap import DEFAULT_KEYS, Keymap, shown
from tui.permissions.types import MODE_NAMES
from tui.ui.widgets.bars import KeyHint
from tui.ui.widgets.panes import PaneRule

if TYPE_CHECKING:
    from tui.permissions.types import Mode


BACK = KeyHint("esc", "conversation", "screen.stop_or_close")
OUTPUT = KeyHint("f4", "output", "app.output", "output")
NEXT = KeyHint("tab", "next pane", "screen.next_pane", "next_pane")
SEND, QUEUE, RUN = (KeyHint("enter", text, name="send") for text in ("send", "queue", "run"))
IDLE_HINTS = (
    SEND,
    KeyHint("ctrl+p", "commands", "app.palette", "palette"),
    KeyHint("f1", "help", "app.command('help')", "help"),
    KeyHint("f2", "context", "app.command('context')", "context"),
    KeyHint("f3", "sessions", "app.command('sessions')", "sessions"),
    OUTPUT,
    KeyHint("shift+tab", "mode", "app.next_mode", "next_mode"),
)
BUSY_HINTS = (KeyHint("esc", "stop", "screen.stop_or_close"), QUEUE, *IDLE_HINTS[1:])
MODES: dict[Mode, tuple[str, str]] = {
    "ask": (MODE_NAMES["ask"], "$text-muted"),
    "accept_edits": (MODE_NAMES["accept_edits"], "$text-accent"),
    "plan": (MODE_NAMES["plan"], "$text-secondary"),
}
"""By mode: its name and style over the prompt."""
VIM_MODES: Mapping[str, str] = {"NORMAL": "bold $text-accent", "INSERT": "$text-muted"}
"""Before the mode over the prompt, with vim's modes: their names and styles."""
ELEVATED = ("no prompts", "$text-error")
"""In the place of a mode that would ask."""
SHELL: Mapping[str, tuple[str, str]] = {
    "!": ("shell command, run by you", "$text-accent"),
    "!!": ("shell command, hidden from the model", "$text-accent"),
}
"""In the place of a mode, by how a command of the person's own begins."""
READ_ONLY = ("read-only", "$text-warning")
"""In the place of a mode, where nothing can be asked."""
TO_ASK = "Ask for anything · / commands · @ files · ! shell"
TO_READ = "Read-only: can't send · /fork continues in a copy"
"""What the empty prompt says."""
NOT_SAVED = "✗ Not saved:"
UNSAVED = "Free up disk space. Your work is in memory; saving retries automatically."
"""What to do where the session cannot be written."""

_BACK: Final = KeyHint("esc", "back", "screen.stop_or_close")
_CLOSE: Final = KeyHint("esc", "close")
_SMALLER: Final = KeyHint("esc", "smaller")
_FIND: Final = KeyHint("ctrl+f", "find", "screen.find", "find")

_KEYS: Final[Mapping[str, tuple[KeyHint, ...]]] = {
    "ConversationView": (
        KeyHint("enter", "fold"),
        KeyHint("ctrl+y", "copy"),
        _BACK,
        KeyHint("shift+↑↓", "select"),
        _FIND,
    ),
    "OutputView": (
        KeyHint("o", "open"),
        KeyHint("/", "find"),
        _BACK,
        KeyHint("w", "wrap"),
        KeyHint("y", "copy"),
    ),
    "FileView": (
        KeyHint("/", "find"),
        KeyHint("n", "next"),
        _BACK,
        KeyHint("w", "wrap"),
        KeyHint("y", "copy"),
    ),
    "FilePane": (KeyHint("enter", "find"), _CLOSE),
    "FindBar": (KeyHint("↑ ↓", "older, newer"), _CLOSE),
    "Intro": (KeyHint("enter", "choose"), KeyHint("↑ ↓", "move"), _BACK),
    "PromptSearch": (KeyHint("enter", "take"), KeyHint("↑ ↓", "older, newer"), _CLOSE),
}
"""By the class of a widget: what its keys do, the most useful first."""


def footer(focused: Widget | None, general: tuple[KeyHint, ...]) -> tuple[KeyHint, ...]:
    """The hints while `focused` has the focus. `general` are those of the prompt: what Enter does
    there is left out elsewhere, and Esc goes on to stop what runs where it does nothing nearer."""
    names = [type(each).__name__ for each in focused.ancestors_with_self] if focused else []
    if not names or "Prompt" in names:
        return general
    own = next((_KEYS[name] for name in names if name in _KEYS), ())
    if not own and not {SEND, QUEUE} & set(general):
        return general  # of a screen without a prompt
    stop = next((hint for hint in general if hint.key == "esc"), None)
    if "OutputSide" in names and focused and focused.screen.has_class("-whole"):
        own = tuple(_SMALLER if hint == _BACK else hint for hint in own if hint.key != "o")
    elif stop and _CLOSE not in own:
        own = (stop, *(hint for hint in own if hint.key != "esc"))
    taken = {hint.key for hint in own}
    rest = (hint for hint in general if hint not in {SEND, QUEUE} and hint.key not in taken)
    return (*own, NEXT, *rest)


def with_own_keys(hints: Iterable[KeyHint], keymap: Keymap) -> tuple[KeyHint, ...]:
    """The hints with the keys that the person has set; without those that have no key."""
    own: list[KeyHint] = []
    for hint in hints:
        keys = keymap.get(hint.name, (hint.key,))
        if hint.name and keys != DEFAULT_KEYS[hint.name]:
            own += [replace(hint, key=shown(key).lower()) for key in keys[:1]]
        else:
            own.append(hint)
    return tuple(own)


SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAMES_PER_S = 2
_AROUND, _LEAST = 13, 16
"""The cells around the phase on its rule, and those that it keeps."""
_FIGURES = len("12 s · 99.9k tokens")
"""Cells of the figures before the phase: it stays where it is while they grow."""
_BYTES_PER_TOKEN = 4
_UNKNOWN = 1_000
LONG_S = 5
"""Seconds from which on a command runs long."""
SILENCE_S = 5
"""Seconds without a byte from the model from which on they are counted."""


class ActivityIndicator:
    """Draws itself on a rule. `what` is the phase, "" when idle; `calm`: it counts,
    and nothing turns.

    The seconds and the tokens that the model put out count from the first phase on, not from each;
    `draw` brings them up to date. Where the same wait is counted elsewhere, they agree: while a
    call runs the seconds are those of its card, and beside a countdown there are none.
    """

    def __init__(self, clock: Clock, rule: PaneRule) -> None:
        self.what = ""
        self.calm = False
        self._clock, self._rule = clock, rule
        self._since = 0.0
        self._counted: float | None = 0.0
        self._heard: float | None = None
        self._offer = ""
        self._tokens = self._streamed = 0

    def enter(
        self,
        what: str,
        *,
        listening: bool = False,
        since: float | None = None,
        counts: bool = True,
        offer: str = "",
    ) -> bool:
        """Whether it is another phase than before. `listening`: a byte of the model's answer
        has just come, or the wait for the first one has begun. `since`: the call that runs has
        begun then. `counts`: the seconds are shown. `offer` is what can be done once it takes
        long."""
        now = self._clock.monotonic()
        self._heard = now if listening else None
        if not self.what:
            self._since = now
            self._tokens = self._streamed = 0
        self._counted = (self._since if since is None else since) if counts else None
        self._offer = offer
        if what == self.what:
            return False
        self.what = what
        return True

    def stream(self, text: str) -> None:
        """Count a piece of the answer that is coming, by its bytes."""
        self._streamed += len(text.encode(errors="replace"))

    def settle(self, count: int = 0) -> None:
        """The answer is complete and has that many tokens, or what came of it is void."""
        self._tokens += count
        self._streamed = 0

    def hear(self) -> None:
        """The server is there, though there is nothing of it to show."""
        self._heard = self._clock.monotonic()

    def leave(self) -> None:
        """Nothing is happening any more."""
        self.what = ""
        self._rule.title = Content("")

    def draw(self) -> None:
        if not self.what:
            return
        now = self._clock.monotonic()
        room = (self._rule.size.width or _UNKNOWN) - self._rule.right.cell_length - _AROUND
        figures = "" if self._counted is None else duration(now - self._counted)
        count = self._tokens + self._streamed // _BYTES_PER_TOKEN
        if figures and count and room - _FIGURES >= _LEAST:
            figures = f"{figures} · {tokens(count)} tokens".ljust(_FIGURES)
        room -= len(figures)
        silent = now - self._heard if self._heard is not None else 0.0
        silence = f"  nothing received for {duration(silent)}" if silent >= SILENCE_S else ""
        if self._offer and self._counted is not None and now - self._counted >= LONG_S:
            silence = f"  {self._offer}"
        if room - len(silence) < min(len(self.what), _LEAST):
            silence = ""
        room = max(_LEAST, room - len(silence))
        what = Content.styled(self.what, "$foreground").truncate(room, ellipsis=True)
        glyph = "●" if self.calm else SPINNER[int(now * FRAMES_PER_S) % len(SPINNER)]
        self._rule.title = Content.assemble(
            (f"{glyph} ", "bold $text-primary"),
            (f"{figures}  " if figures else "", "$text-muted"),
            what,
            (silence, "$text-muted"),
        )
