"""The texts around the prompt: the current activity and its time, the modes, and the keys, those of
the focused widget first."""

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
SEND, QUEUE, RUN, SAVE = (
    KeyHint("enter", text, name="send") for text in ("send", "queue", "run", "save")
)
IDLE_HINTS = (
    SEND,
    KeyHint("ctrl+p", "commands", "app.palette", "palette"),
    KeyHint("f1", "help", "app.command('help')", "help"),
    KeyHint("f2", "context", "app.command('context')", "context"),
    KeyHint("f3", "sessions", "app.command('sessions')", "sessions"),
    OUTPUT,
    KeyHint("shift+tab", "mode", "app.switch('mode')", "next_mode"),
)
BUSY_HINTS = (KeyHint("esc", "stop", "screen.stop_or_close"), QUEUE, *IDLE_HINTS[1:])
MODES: dict[Mode, tuple[str, str]] = {
    "ask": (MODE_NAMES["ask"], "$text-muted"),
    "accept_edits": (MODE_NAMES["accept_edits"], "$text-accent"),
    "plan": (MODE_NAMES["plan"], "$text-secondary"),
}
"""Name and style over the prompt, by mode."""
VIM_MODES: Mapping[str, str] = {"NORMAL": "bold $text-accent", "INSERT": "$text-muted"}
"""Names and styles of vim's modes, shown before the mode over the prompt."""
ELEVATED = ("no prompts", "$text-error")
"""Shown in place of a mode that would ask."""
RECIPIENTS: Mapping[str, tuple[str, str]] = {
    "!": ("shell command, run by you", "$text-accent"),
    "!!": ("shell command, hidden from the model", "$text-accent"),
    "#": ("note to MEMORY.md", "$text-accent"),
}
"""Shown in place of a mode, by how a text begins that is not for the model."""
READ_ONLY = ("read-only", "$text-warning")
"""Shown in place of a mode if nothing can be asked."""
TO_ASK = "Ask for anything · / commands · @ files · ! shell"
TO_READ = "Read-only: can't send · /fork continues in a copy"
"""Texts of the empty prompt."""
NOT_SAVED = "✗ Not saved:"
UNSAVED = (
    "Free up disk space, or make the folder writable. Your work is in memory; "
    "saving retries automatically."
)
"""Advice for when the session cannot be written."""

_BACK: Final = KeyHint("esc", "back", "screen.stop_or_close")
_CLOSE: Final = KeyHint("esc", "close")
_SMALLER: Final = KeyHint("esc", "smaller")
_FIND: Final = KeyHint("ctrl+f", "find", "screen.find", "find")

_KEYS: Final[Mapping[str, tuple[KeyHint, ...]]] = {
    "-letters": (
        KeyHint("enter", "fold"),
        _BACK,
        KeyHint("j k", "move"),
        KeyHint("y", "copy"),
        KeyHint("B", "why"),
        KeyHint("n N", "prompts"),
        KeyHint("/", "find", "screen.find"),
    ),
    "ConversationView": (
        KeyHint("enter", "fold"),
        _BACK,
        KeyHint("ctrl+y", "copy"),
        KeyHint("shift+↑↓", "select"),
        _FIND,
    ),
    "OutputView": (
        KeyHint("o", "open"),
        KeyHint("/", "find"),
        _BACK,
        KeyHint("w", "wrap"),
        KeyHint("B", "why"),
        KeyHint("y", "copy"),
    ),
    "FileView": (
        KeyHint("/", "find"),
        KeyHint("n", "next"),
        _BACK,
        KeyHint("w", "wrap"),
        KeyHint("B", "why"),
        KeyHint("y", "copy"),
    ),
    "FilePane": (KeyHint("enter", "find"), _CLOSE),
    "FindBar": (KeyHint("↑ ↓", "older, newer"), _CLOSE),
    "Intro": (KeyHint("enter", "choose"), KeyHint("↑ ↓", "move"), _BACK),
    "PromptSearch": (KeyHint("enter", "take"), KeyHint("↑ ↓", "older, newer"), _CLOSE),
}
"""The keys of a widget by its class, the most useful first; of a conversation also those while
letters are keys in it."""


def footer(focused: Widget | None, general: tuple[KeyHint, ...]) -> tuple[KeyHint, ...]:
    """Return the hints while `focused` has the focus.

    `general` are those of the prompt: what Enter does there is left out elsewhere, and Esc still
    stops what runs if nothing nearer uses it.
    """
    names = [type(each).__name__ for each in focused.ancestors_with_self] if focused else []
    if focused and focused.has_class("-letters"):
        names.insert(0, "-letters")
    if not names or "Prompt" in names:
        return general
    own = next((_KEYS[name] for name in names if name in _KEYS), ())
    if not getattr(focused, "has_lines", True):
        own = tuple(hint for hint in own if hint.key != "B")
    if not own and not {SEND, QUEUE} & set(general):
        return general  # those of a screen without a prompt
    stop = next((hint for hint in general if hint.key == "esc"), None)
    if "OutputSide" in names and focused and focused.screen.has_class("-whole"):
        own = tuple(_SMALLER if hint == _BACK else hint for hint in own if hint.key != "o")
    elif stop and _CLOSE not in own:
        own = (stop, *(hint for hint in own if hint.key != "esc"))
    own_keys = {hint.key for hint in own}
    others = (hint for hint in general if hint not in {SEND, QUEUE} and hint.key not in own_keys)
    return (*own, NEXT, *others)


def with_own_keys(hints: Iterable[KeyHint], keymap: Keymap) -> tuple[KeyHint, ...]:
    """Return the hints with the keys that the person has set, without those that have no key."""
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
"""Cells around the phase on its rule, and the fewest that it gets."""
_FIGURES = len("12 s · 99.9k tokens")
"""Cells of the figures before the phase: it keeps its place while they grow."""
_BYTES_PER_TOKEN = 4
_UNKNOWN = 1_000
LONG_S = 5
"""Seconds after which a command counts as long."""
SILENCE_S = 5
"""Seconds without a byte from the model after which they are shown."""


class ActivityIndicator:
    """Draws the current activity on a rule.

    `what` is the phase, "" when idle. If `calm`, it counts but nothing turns. Seconds and tokens
    count from the first phase on, not from each; `draw` updates them. If the same wait is counted
    elsewhere, they agree: while a call runs the seconds are those of its card, and beside a
    countdown there are none. `earlier` are the seconds that the next work has lasted already.
    """

    def __init__(self, clock: Clock, rule: PaneRule) -> None:
        self.what = ""
        self.calm = False
        self.earlier = 0.0
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
        """Enter a phase. True if it differs from the one before.

        Args:
            listening: True if a byte of the model's answer has just come, or the wait for the
                first one has begun.
            since: Start of the call that runs.
            counts: True if the seconds are shown.
            offer: What the person can do once it takes long.
        """
        now = self._clock.monotonic()
        self._heard = now if listening else None
        if not self.what:
            self._since, self.earlier = now - max(0.0, self.earlier), 0.0
            self._tokens = self._streamed = 0
        self._counted = (self._since if since is None else since) if counts else None
        self._offer = offer
        if what == self.what:
            return False
        self.what = what
        return True

    def stream(self, text: str) -> None:
        """Count a piece of the arriving answer, by its bytes."""
        self._streamed += len(text.encode(errors="replace"))

    def settle(self, count: int = 0) -> None:
        """Count a complete answer of that many tokens, or forget a void one."""
        self._tokens += count
        self._streamed = 0

    def hear(self) -> None:
        """Note that the server is alive, though there is nothing to show."""
        if self.what:
            self._heard = self._clock.monotonic()

    def leave(self) -> None:
        """Show that nothing is happening any more."""
        self.what, self.earlier = "", 0.0
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
