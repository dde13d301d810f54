"""The ways on from a request that the server will not take: what is wrong, and what may be done.

It opens by itself, so nothing counts before a person can have seen it: what is typed in the first
half second goes to the prompt, and so does every key that is no answer. Whoever types on chooses
nothing with it, neither by a digit nor by Enter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tui.clock import Clock
from tui.widgets.plain import one_line, visible

GRACE_S: Final = 0.5
TYPING_S: Final = 2.0
"""So long after a letter somebody is taken to be typing."""

_SHOWN_CHARS = 2000
_FINDINGS = 50


@dataclass(frozen=True, slots=True)
class Way:
    """One way on. `help` says what becomes of the conversation."""

    name: str
    label: str
    help: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is shown of a failed request.

    `error` are the server's words, `meaning` ours; `findings` is what the check of the request
    says, None where none was made; `before` are the ways that were gone already.
    """

    title: str
    error: str
    ways: tuple[Way, ...]
    meaning: str = ""
    status: int | None = None
    request_id: str | None = None
    findings: tuple[str, ...] | None = None
    before: tuple[str, ...] = ()


class RecoveryScreen(ModalScreen[str | None]):
    """Dismissed with the name of a way, or with None where everything shall stay as it is.

    `stray` takes what was typed for the prompt.
    """

    CSS_PATH = "recovery.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "keep", "keep everything", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#ways"

    def __init__(self, trouble: Trouble, clock: Clock, stray: Callable[[str], object]) -> None:
        super().__init__()
        self.VERTICAL_BREAKPOINTS = [(0, "-short"), (30, "-tall")]
        self.trouble = trouble
        self._clock = clock
        self._stray = stray
        self._armed_at = clock.monotonic() + GRACE_S
        self._typing_until = 0.0

    def compose(self) -> ComposeResult:
        trouble = self.trouble
        with Vertical(id="box") as box:
            box.border_title = Content(trouble.title)
            box.border_subtitle = Content(_reference(trouble))
            with VerticalScroll(id="said", can_focus=False):
                yield Static(_said(trouble), markup=False)
            yield OptionList(
                *(Option(_row(n, way), id=way.name) for n, way in enumerate(trouble.ways, 1)),
                id="ways",
                compact=True,
            )
            yield Static(_foot(len(trouble.ways)), id="foot", markup=False)

    @property
    def armed(self) -> bool:
        """Whether keys count by now."""
        return self._clock.monotonic() >= self._armed_at

    def on_key(self, event: events.Key) -> None:
        """A digit chooses. What was typed for the prompt gets there."""
        typed = event.character if event.is_printable else None
        now = self._clock.monotonic()
        typing = now < self._typing_until
        if not self.armed and (typed or event.key in {"enter", "escape"}):
            self._armed_at = now + GRACE_S
        elif not typed and not (typing and event.key == "enter"):
            return
        event.stop()
        event.prevent_default()
        if typed and self.armed and not typing and self._answer(typed):
            return
        if typed:
            self._typing_until = now + TYPING_S
            self._stray(typed)

    def _answer(self, typed: str) -> bool:
        """Go the way of a digit. False where there is none."""
        ways = self.trouble.ways
        if not typed.isdecimal() or not 1 <= int(typed) <= len(ways):
            return False
        self.dismiss(ways[int(typed) - 1].name)
        return True

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        self._stray(event.text)

    def action_keep(self) -> None:
        self.dismiss(None)

    @on(OptionList.OptionSelected, "#ways")
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        if self.armed:
            self.dismiss(event.option_id)


def _reference(trouble: Trouble) -> str:
    """The status and the request's id, for whoever asks the server's people."""
    status = str(trouble.status) if trouble.status else ""
    return " · ".join(filter(None, (status, one_line(trouble.request_id or ""))))


def _said(trouble: Trouble) -> Content:
    error = visible(trouble.error)
    if len(error) > _SHOWN_CHARS:
        error = error[:_SHOWN_CHARS] + " …"
    parts: list[tuple[str, str]] = [(error, "$foreground")]
    if trouble.meaning:
        parts.append((f"\n{trouble.meaning}", "$text-muted"))
    if trouble.before:
        parts.append((f"\nTried already: {', '.join(trouble.before)}.", "$text-warning"))
    if trouble.findings is not None:
        parts.append(("\n\nThe check of the request finds", "bold $foreground"))
        shown = trouble.findings[:_FINDINGS]
        told = shown or ("nothing that is against the rules it knows",)
        parts.extend((f"\n  {one_line(finding)}", "$foreground") for finding in told)
        if more := len(trouble.findings) - len(shown):
            parts.append((f"\n  and {more:,} more", "$text-muted"))
    return Content.assemble(*parts)


def _row(number: int, way: Way) -> Content:
    return Content.assemble(
        (f"{number}  ", "$text-accent"), (f"{way.label:<24}", "bold"), (way.help, "$text-muted")
    )


def _foot(ways: int) -> Content:
    keys = f"1–{ways}" if ways > 1 else "1"
    kept = "keeps everything: the session, and what you typed"
    choose = [(keys, "$text-accent"), (" chooses   ", "$text-muted")] if ways else []
    return Content.assemble(*choose, ("esc", "$text-accent"), (f" {kept}", "$text-muted"))
