"""/permissions: the rules in force, and every decision of the session with its reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from rich.cells import set_cell_size
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from tui.config import Permissions
from tui.permissions.base import Mode
from tui.screens.words import MODES
from tui.session.records import Record
from tui.widgets.figures import plural
from tui.widgets.plain import one_line
from tui.widgets.rows import Part, Rows

_REFUSED = frozenset({"deny", "no"})


@dataclass(frozen=True, slots=True)
class Decided:
    """One decision: when, about which call, what was said, by whom, and why."""

    time: str
    tool: str
    subject: str
    answer: str
    by: str
    reason: str

    @property
    def look(self) -> str:
        if self.answer in _REFUSED:
            return "error"
        return "warning" if self.by == "elevated" else "success"


def decisions(records: Iterable[Record]) -> list[Decided]:
    """What the `permission` records of a session say, oldest first."""
    found: list[Decided] = []
    for record in records:
        if record.type == "permission":
            said = [one_line(str(record.data.get(name) or "")) for name in _FIELDS]
            found.append(Decided(_clock(record.time), *said))
    return found


_FIELDS = ("tool", "subject", "answer", "by", "reason")


def _clock(time: str) -> str:
    try:
        return f"{datetime.fromisoformat(time).astimezone():%H:%M:%S}"
    except ValueError:
        return ""


def rule_lines(
    rules: Permissions, *, mode: Mode, elevated: bool, folders: Sequence[str]
) -> list[tuple[str, str]]:
    """The rules in force in the order in which they count: a name, and what holds."""
    lines = [
        ("mode", MODES[mode][0].strip() or mode),
        ("folders", ", ".join(folders)),
        ("ceiling", rules.ceiling),
    ]
    lines += [
        (name, ", ".join(map(str, getattr(rules, name))) or "none")
        for name in ("deny", "ask", "allow", "auto_grant")
    ]
    if elevated:
        lines.insert(0, ("ELEVATED", "nothing is asked; what is denied or blocked stays so"))
    return lines


class PermissionsScreen(ModalScreen[None]):
    """Closed by Esc or q. The decision under the cursor is shown whole below."""

    DEFAULT_CSS = """
    PermissionsScreen { align: center middle; background: $background 55%; }
    PermissionsScreen #box {
        width: 96%; height: 92%; background: $surface; border: round $primary; padding: 1 2;
        border-title-color: $text-primary; border-title-style: bold;
        border-subtitle-color: $text-muted;
    }
    PermissionsScreen #rules { height: auto; max-height: 10; scrollbar-size-vertical: 1; }
    PermissionsScreen #rules Static, PermissionsScreen #count { height: auto; }
    PermissionsScreen #count { margin: 1 0 0 0; }
    PermissionsScreen Rows { background: $surface; height: 1fr; }
    PermissionsScreen #whole { height: auto; max-height: 6; margin: 1 0 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,ctrl+c", "dismiss", "close", show=False)
    ]
    AUTO_FOCUS: ClassVar[str | None] = "Rows"

    def __init__(self, rules: Sequence[tuple[str, str]], found: Sequence[Decided]) -> None:
        super().__init__()
        self._rules, self._found = rules, found

    def compose(self) -> ComposeResult:
        with Vertical(id="box") as box:
            box.border_title = Content("permissions")
            box.border_subtitle = Content("deny before ask before allow · esc closes")
            with VerticalScroll(id="rules", can_focus=False):
                lines = [
                    Content.assemble((f"{name:<12}", "$text-accent"), (value, "$foreground"))
                    for name, value in self._rules
                ]
                yield Static(Content("\n").join(lines), markup=False)
            count = plural(len(self._found), "decision") if self._found else "No decision yet"
            yield Static(Content.styled(count, "bold $text-primary"), id="count", markup=False)
            yield Rows(id="decisions")
            yield Static(id="whole", markup=False)

    def on_mount(self) -> None:
        rows = self.query_one(Rows)
        rows.show(len(self._found), self._row, cursor=len(self._found) - 1)
        self._show(len(self._found) - 1)

    @on(Rows.Moved)
    def _moved(self, event: Rows.Moved) -> None:
        event.stop()
        self._show(event.index)

    def _show(self, index: int) -> None:
        if self._found:
            one = self._found[index]
            whole = Content.assemble(
                (f"{one.tool} ", "$text-accent"), (f"{one.subject}\n", "$foreground"),
                (f"{one.answer}", f"$text-{one.look}"),
                (f" by {one.by}. {one.reason}", "$text-muted"),
            )  # fmt: skip
            self.query_one("#whole", Static).update(whole)

    def _row(self, index: int, width: int) -> Sequence[Part]:
        one = self._found[index]
        return [
            (f"{one.time:<10}", "muted"),
            (set_cell_size(one.answer, 9), one.look),
            (set_cell_size(one.by, 18), "muted"),
            (set_cell_size(f"{one.tool} {one.subject}", max(1, width - 37)), "text"),
        ]
