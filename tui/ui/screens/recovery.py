"""Shows a request that the server rejects: what is wrong, and what the person can do.

It opens by itself: someone who is typing chooses nothing by that, and the text goes to the prompt.
"""

from __future__ import annotations

from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tui.app.dialog_data import FailedRequest, RecoveryOption
from tui.core.text_cleaning import one_line, visible
from tui.ui.toolkit.answer_guard import AnswerPlace
from tui.ui.widgets.dialog import PAGES, AskedAbout, Dialog

_SHOWN_CHARS = 2000
_FINDINGS = 50
_WIDE = 80
"""Columns from which each row has room to say what its option does."""


class RecoveryScreen(Dialog[str | None], AnswerPlace):
    """Dismissed with the name of the chosen option, or with None."""

    awaited = True
    unasked = True
    CSS_PATH = "recovery.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "dismiss(None)", "dismiss", show=False),
        Binding("pagedown", "scroll_text(1)", show=False, priority=True),
        Binding("pageup", "scroll_text(-1)", show=False, priority=True),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#ways"

    def __init__(self, trouble: FailedRequest) -> None:
        super().__init__(classes="-danger")
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (_WIDE, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-short"), (30, "-tall")]
        self.trouble = trouble

    def compose(self) -> ComposeResult:
        trouble = self.trouble
        with self.framed(Vertical(), trouble.title, *_keys(len(trouble.ways))):
            with AskedAbout(id="said"):
                yield Static(_message(trouble), markup=False)
            yield OptionList(
                *(Option(_row(n, way), id=way.name) for n, way in enumerate(trouble.ways)),
                id="ways",
                compact=True,
            )
            yield Static(id="help", markup=False)

    def on_mount(self) -> None:
        super().on_mount()
        self.await_quiet()

    def answers_key(self, event: events.Key) -> bool:
        return self._number(event) is not None or super().answers_key(event)

    def mark_answer(self, event: events.Key) -> str:
        ways = self.query_one("#ways", OptionList)
        if (number := self._number(event)) is not None:
            ways.highlighted = number
        elif event.key != "enter":
            return ""
        return "" if ways.highlighted is None else self.trouble.ways[ways.highlighted].label

    def on_key(self, event: events.Key) -> None:
        """Choose by a digit."""
        if (number := self._number(event)) is not None:
            event.stop()
            self.dismiss(self.trouble.ways[number].name)

    def _number(self, event: events.Key) -> int | None:
        """Return the index of the option that a digit means."""
        typed = event.key
        known = typed.isdecimal() and 1 <= int(typed) <= len(self.trouble.ways)
        return int(typed) - 1 if known else None

    def on_resize(self) -> None:
        wide = self.size.width >= _WIDE
        listing = self.query_one("#ways", OptionList)
        for number, way in enumerate(self.trouble.ways):
            listing.replace_option_prompt_at_index(number, _row(number, way, wide=wide))
        listing.refresh(layout=True)  # the rows may be fewer now
        option_rows = len(self.trouble.ways) + (0 if wide else 1)
        room = self.free_rows(option_rows + (0 if self.has_class("-tiny") else 2))
        part = self.size.height * 40 // 100 if self.has_class("-tall") else room
        self.query_one("#said").styles.max_height = max(2, min(room, part))

    @on(OptionList.OptionHighlighted, "#ways")
    def _option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Show what an option does, for rows without room for it."""
        way = self.trouble.ways[event.option_index]
        self.query_one("#help", Static).update(Content.styled(way.help, "$text-muted"))

    @on(OptionList.OptionSelected, "#ways")
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        if self.counts_clicks:  # Enter comes here only when it counts
            self.dismiss(event.option_id)


def _message(trouble: FailedRequest) -> Content:
    error = visible(trouble.error)
    if len(error) > _SHOWN_CHARS:
        error = error[:_SHOWN_CHARS] + " …"
    parts: list[tuple[str, str]] = [(error, "$foreground")]
    status = f"status {trouble.status}" if trouble.status else ""
    request = f"request {one_line(trouble.request_id)}" if trouble.request_id else ""
    if reference := " · ".join(filter(None, (status, request))):  # for the server's support
        parts.append((f"\n{reference}", "$text-muted"))
    if trouble.meaning:
        parts.append((f"\n{trouble.meaning}", "$text-muted"))
    if trouble.before:
        parts.append((f"\nTried so far: {', '.join(trouble.before)}.", "$text-warning"))
    if trouble.findings is not None:
        parts.append(("\n\nRequest check:", "bold $foreground"))
        shown = trouble.findings[:_FINDINGS]
        lines_shown = shown or ("no problems found",)
        parts.extend((f"\n  {one_line(finding)}", "$foreground") for finding in lines_shown)
        if more := len(trouble.findings) - len(shown):
            parts.append((f"\n  and {more:,} more", "$text-muted"))
    return Content.assemble(*parts)


def _row(number: int, way: RecoveryOption, *, wide: bool = True) -> Content:
    """Return an option with its key, and what it does if there is room for that."""
    help_ = way.help if wide else ""
    return Content.assemble(
        (f"{number + 1}  ", "$text-accent"), (f"{way.label:<24}", "bold"), (help_, "$text-muted")
    )


def _keys(ways: int) -> list[tuple[str, str]]:
    keys = [(f"1–{ways}" if ways > 1 else "1", "choose")] if ways else []
    return [*keys, PAGES, ("esc", "dismiss")]
