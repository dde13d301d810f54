"""The desk: every session of this machine and of others, by what it needs; those that wait for the
person come first."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, cast

from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Input, Static

from tui.app.dialog_data import YesNoQuestion
from tui.app.door.lines import StopTurn
from tui.core.clock import Clock
from tui.core.errors import HoldfastError
from tui.desk.host import DeskHost, DeskRow
from tui.ui.desk import desk_rows
from tui.ui.desk.desk_list import DeskList
from tui.ui.desk.desk_preview import DeskPreview
from tui.ui.desk.desk_rows import ColumnCells, DeskLine, SessionKey, key_of
from tui.ui.desk.requests import ListedQuestion, answer, ask_owner
from tui.ui.screens.table_screen import SHORT, TableScreen
from tui.ui.screens.task_rows import SteadyText
from tui.ui.toolkit.base_app import ThemedApp
from tui.ui.widgets.keys import DESK_KEYS, bindings, in_rows
from tui.ui.widgets.notices import NoticeText
from tui.ui.widgets.panes import PaneRule
from tui.ui.widgets.row_list import Part

TICK_S: Final = 1.0
BROAD: Final = 150
"""Columns from which the preview is beside the list."""
ONE_ROW: Final = 80
"""Columns from which the keys are in one row, so that nothing moves from session to session."""
ROOMY: Final = 34
"""Rows from which the groups are set apart."""


class DeskOwner(Protocol):
    """The port to what shows the desk, and leads from it to a session and away."""

    @property
    def current(self) -> SessionKey | None:
        """The session that is open right behind the desk, if there is one."""
        ...

    def open_session(self, host: DeskHost, row: DeskRow) -> None:
        """Show a session live."""

    def leave_desk(self) -> None: ...

    def count(self, rows: Sequence[DeskRow]) -> None:
        """Take the sessions as they are now, after each change."""


class DeskColumns(Widget):
    """The names of the columns, in the available width."""

    columns: reactive[ColumnCells] = reactive(ColumnCells())

    def render(self) -> Content:
        return Content(desk_rows.heading(self.size.width, self.columns))


class DeskScreen(TableScreen[None]):
    """Lists the sessions of some machines. `folder` is where a new session begins by default."""

    CSS_PATH = "desk.tcss"
    shows_others = True
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(DESK_KEYS),
        Binding("down", "move(1)", show=False),
        Binding("up", "move(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#rows"

    def __init__(
        self, hosts: Sequence[DeskHost], owner: DeskOwner, clock: Clock, *, folder: Path
    ) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (BROAD, "-broad")]
        self.VERTICAL_BREAKPOINTS = [(0, "-short"), (SHORT, "-high"), (ROOMY, "-tall")]
        self._hosts, self._owner, self._clock = hosts, owner, clock
        self._folder = folder
        self._folded = True
        self._reading = {host.name for host in hosts}
        """The machines that have not said anything yet."""
        self._open: list[ListedQuestion] = []
        self._expected: SessionKey | None = None
        """A session that was started here, until it is listed."""
        self._draw_due = False
        self._columns = ColumnCells()
        self._list = DeskList(self)
        self._preview = DeskPreview()

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield self.filter_row("/", "Filter by title, folder, branch, machine or state")
        yield SteadyText(id="hosts")
        with Container(id="panes"):
            with Vertical(id="list-side"):
                yield DeskColumns(id="columns")
                yield self._list
                yield Static(id="empty", markup=False)
            yield self._preview
        yield self.notice
        yield PaneRule(id="keys-rule")
        yield SteadyText(id="keys")

    def on_mount(self) -> None:
        self.set_interval(TICK_S, self._tick)
        for host in self._hosts:
            host.follow(partial(self._host_changed, host))
        self._draw()

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def on_screen_resume(self) -> None:
        self.call_after_refresh(self._draw)

    @property
    def sessions(self) -> list[DeskRow]:
        """The sessions of all machines, as last known."""
        return [row for host in self._hosts for row in host.rows]

    @property
    def is_reading(self) -> bool:
        """True until every machine has said something."""
        return bool(self._reading)

    @property
    def row(self) -> DeskRow | None:
        """The session under the cursor."""
        return self._list.row

    @property
    def _in_sight(self) -> bool:
        """True unless another screen hides it; a dialog lets it be seen."""
        top = cast("App[Any]", self.app).screen
        return top is self or top.styles.background.a < 1

    # What is shown

    def _host_changed(self, host: DeskHost) -> None:
        self._reading.discard(host.name)
        if not self._draw_due and self.is_attached:
            self._draw_due = True
            self.call_later(self._draw)

    def _tick(self) -> None:
        if self._in_sight:
            self._list.tick()

    def _draw(self) -> None:
        """Draw the sessions as they are now; what did not change stays as it is."""
        self._draw_due = False
        if not self.is_attached:
            return
        rows = self.sessions
        self._owner.count(rows)
        self._close_dialogs(rows)
        if not self._in_sight:
            return  # drawn when it is seen again
        words, width = self.filter_field.value, self.size.width
        roomy = self.size.height >= ROOMY
        lines = desk_rows.lines_of(rows, words=words, folded=self._folded, roomy=roomy)
        to = self._expected
        if to is not None and any(key_of(row) == to for row in rows):
            self._expected = None
        else:
            to = None
        self._fit(rows)
        self._list.place(lines, to=to)
        title = desk_rows.desk_title(rows, width - 2)
        shown = self.query_one("#title", Static)
        if shown.content != title:
            shown.update(title, layout=False)
        self._show_problems()
        empty = (
            "" if lines else desk_rows.empty_text(words, reading=self.is_reading, count=len(rows))
        )
        if self.has_class("-empty") != bool(empty) or empty:
            self.show_empty(empty)
            if self.focused in {None, self._list}:  # what isn't shown has no focus
                self.set_focus(None if empty else self._list)
        self._follow_cursor()

    def _fit(self, rows: Sequence[DeskRow]) -> None:
        """Make the columns as wide as the texts of these sessions need, whether the filter shows
        them or not: it moves no column."""
        listed = [row for row in rows if not self._folded or desk_rows.group_of(row) != "saved"]
        columns = ColumnCells.of(listed or rows, hosts=len(self._hosts) > 1)
        if columns != self._columns:
            self._columns = self.query_one("#columns", DeskColumns).columns = columns
            self._list.forget()

    def _show_problems(self) -> None:
        problems = desk_rows.problem_lines(self._hosts, self.size.width - 2)
        if self.has_class("-problem") != bool(problems.plain):
            self.set_class(bool(problems.plain), "-problem")
        self.query_one("#hosts", SteadyText).show(problems)

    def paint_line(self, line: DeskLine, width: int) -> Sequence[Part]:
        """Return a line of the list, as it is now."""
        return desk_rows.line_parts(line, self._clock.now(), width, self._columns)

    def _follow_cursor(self) -> None:
        """Show the keys and the preview of the session under the cursor."""
        groups = desk_rows.grouped(self.sessions)
        waiting, saved = len(groups["waiting"]), len(groups["saved"])
        keys = desk_rows.desk_keys(self.row, waiting=waiting, saved=saved)
        if self.filter_field.has_focus:
            keys = desk_rows.FILTER_KEYS
        rows = 2 if self.size.height >= SHORT and self.size.width < ONE_ROW else 1
        self.query_one("#keys", SteadyText).show(in_rows(keys, self.size.width - 2, rows=rows))
        self._preview.follow(self.row)

    def row_moved(self, index: int) -> None:  # noqa: ARG002
        self.notice.clear()
        self._follow_cursor()

    # Moving

    def action_group(self, step: int) -> None:
        """Tab: the next group."""
        self._list.move_to_group(step)

    def action_edge(self, step: int) -> None:
        self._list.action_edge(step)

    def action_next_waiting(self) -> None:
        """Go to the next session that waits for the person."""
        shown = desk_rows.grouped(desk_rows.matching(self.sessions, self.filter_field.value))
        waiting = [key_of(row) for row in shown["waiting"]]
        if not waiting:
            self.notice.say("No session waits for you.")
            return
        now = key_of(self.row) if self.row is not None else None
        at = waiting.index(now) + 1 if now in waiting else 0
        self._list.move_to_session(waiting[at % len(waiting)])

    def action_fold(self) -> None:
        """Show the saved sessions, or only how many there are."""
        self._folded = not self._folded
        self._draw()

    @on(DeskList.FoldAsked)
    def _fold_clicked(self) -> None:
        self.action_fold()

    def on_descendant_focus(self) -> None:
        self._follow_cursor()

    def action_filter(self) -> None:
        self.filtering = True
        self.filter_field.focus()

    @on(Input.Changed, "#filter")
    def _filtered(self) -> None:
        self._draw()

    @on(Input.Submitted, "#filter")
    def _filter_set(self) -> None:
        if not self.filter_field.value.strip():
            self.filtering = False
        self._list.focus()

    def action_close(self) -> None:
        """Esc: take the filter away, then leave."""
        if self.filtering:
            self.filter_field.value = ""
            self.filtering = False
            self._list.focus()
        else:
            self._owner.leave_desk()

    # What can be done with a session

    def row_chosen(self, index: int) -> None:  # noqa: ARG002
        row = self.row
        if row is None:
            return
        if key_of(row) == self._owner.current:
            self._owner.leave_desk()
        else:
            self.notice.clear()
            self._owner.open_session(self._host_of(row), row)

    def _host_of(self, row: DeskRow) -> DeskHost:
        return next(host for host in self._hosts if host.name == row.host)

    @work(group="answer", exclusive=True)
    async def action_answer(self) -> None:
        """Put the question of the session under the cursor, or say that it has none."""
        row = self.row
        if row is None or not row.questions:
            self.notice.say("This session asks nothing now.")
            return
        question = ListedQuestion(row, row.questions[0])
        self._open.append(question)
        try:
            app = cast("ThemedApp", self.app)
            self._say(await answer(app, self._host_of(row), question, self._clock))
        except HoldfastError as error:
            self.refuse(error)
        finally:
            self._open.remove(question)

    def takes_interrupt(self) -> bool:
        """Ctrl+C over a question: leave it unanswered."""
        for question in self._open:
            question.leave()
        return bool(self._open)

    def _close_dialogs(self, rows: Sequence[DeskRow]) -> None:
        """Close the dialogs whose questions no longer wait."""
        if self._open:
            waiting = {(key_of(row), one.number) for row in rows for one in row.questions}
            for question in self._open:
                if (key_of(question.row), question.asked.number) not in waiting:
                    question.gone.set()

    @work(group="stop", exclusive=True)
    async def action_stop(self) -> None:
        """Stop what the session under the cursor does, once the person has confirmed it."""
        from tui.ui.widgets.questions import Confirmation  # noqa: PLC0415 - on demand

        row = self.row
        if row is None or desk_rows.group_of(row) not in desk_rows.RUNNING:
            self.notice.say("Nothing runs in this session.")
            return
        name = desk_rows.quoted(row)
        sure = YesNoQuestion(
            "Stop this turn?",
            "What it has done so far is saved; it can go on later.",
            yes="Stop it",
            no="Cancel",
            details=(desk_rows.title_of(row), desk_rows.does_words(row)),
        )
        if not await cast("App[Any]", self.app).push_screen_wait(Confirmation(sure)):
            return
        request = StopTurn(number=secrets.token_hex(8))
        try:
            outcome = await ask_owner(self._host_of(row), row.id, request, self._clock)
        except HoldfastError as error:
            self.refuse(error)
            return
        if outcome is None:
            self._say(NoticeText(f"{name} hasn't confirmed that it stops.", "warning"))
        elif outcome.outcome == "refused":
            self._say(NoticeText(f"{name}: {outcome.text}", "warning", outcome.hint))
        else:
            self._say(NoticeText(f"Stopped: {name}.", "success"))

    @work(group="dismiss")
    async def action_dismiss_ended(self) -> None:
        """Note that the person has seen how a session ended."""
        row = self.row
        if row is None or desk_rows.group_of(row) != "ended":
            self.notice.say("Only a session that has ended can be dismissed.")
            return
        try:
            await self._host_of(row).dismiss(row.id)
        except HoldfastError as error:
            self.refuse(error)

    @work(group="new", exclusive=True)
    async def action_new(self) -> None:
        """Start a session in the background, where and with what the person says."""
        from tui.ui.desk.new_session import NewSession, NewSessionDialog  # noqa: PLC0415 - on demand

        row, problem = self.row, ""
        names = [host.name for host in self._hosts]
        cwd = row.cwd if row is not None and row.cwd else str(self._folder)
        draft = NewSession(row.host if row is not None else names[0], cwd, "")
        while True:
            asked = NewSessionDialog(names, draft, problem)
            new = await cast("App[Any]", self.app).push_screen_wait(asked)
            if new is None:
                return
            self.notice.say("Starting …")
            target = next(one for one in self._hosts if one.name == new.host)
            try:
                self._expected = new.host, await target.start(new.cwd, new.prompt)
            except HoldfastError as error:
                self.notice.clear()
                draft, problem = new, " ".join(filter(None, (error.message, error.hint)))
                continue
            self.notice.say("Started in the background.", "success")
            self._draw()
            return

    def action_copy(self) -> None:
        """Copy the command that opens the session under the cursor in another terminal."""
        if self.row is not None:
            command = desk_rows.attach_command(self.row)
            cast("App[Any]", self.app).copy_to_clipboard(command)
            self.notice.say(f"Copied: {command}", "success")

    def _say(self, notice: NoticeText) -> None:
        self.notice.say(notice.text, notice.kind, hint=notice.hint)
