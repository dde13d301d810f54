"""/jobs (F6): the background commands of a session, and the screen that follows the output of
one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from rich.cells import cell_len, set_cell_size
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from tui.app.dialog_data import YesNoQuestion
from tui.app.passing_questions import answer_while
from tui.app.reports.jobs import NONE, job_row, state_of
from tui.core.formatting import duration, plural, size
from tui.core.text_cleaning import clean, one_line
from tui.ui.screens.external_programs import Program, open_copy
from tui.ui.screens.table_screen import TableDialog, whole_words
from tui.ui.toolkit.base_app import BaseScreen
from tui.ui.widgets.dialog import answer_of
from tui.ui.widgets.file_viewer.pane import FilePane, open_file_pane
from tui.ui.widgets.keys import JOB_OUTPUT_KEYS, JOBS_KEYS, Keys, bindings, in_rows
from tui.ui.widgets.panes import PaneRule
from tui.ui.widgets.questions import Confirmation
from tui.ui.widgets.row_list import Part, RowList

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.agent.background_jobs import OwnedJob
    from tui.tools.jobs import Job

FOLLOW_S: Final = 0.5
"""Seconds between updates of what runs."""
_TAIL_LINES: Final = 3
_TAIL_CHARS: Final = 1000
_NONE: Final = f"""\
{NONE}

The model starts one for servers and long builds. Ctrl+B moves the command that
runs in the foreground here."""


class JobsScreen(TableDialog[None]):
    """A row for each background command. `forward` opens a port that they listen on."""

    CSS_PATH = "jobs.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(JOBS_KEYS),
        Binding("escape,q,ctrl+c", "dismiss", "close", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#jobs"

    def __init__(self, agent: Agent, forward: Callable[[], Awaitable[None]]) -> None:
        super().__init__(classes="-table")
        self._agent, self._forward = agent, forward
        self._shown: list[OwnedJob] = []
        self._tails: dict[Job, tuple[int, str]] = {}
        self._ports: Sequence[int] = ()
        self._drawn: object = None

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), "background commands"):
            yield RowList(id="jobs")
            yield Static(_NONE, id="none", markup=False)
            yield Static("", id="about", markup=False)

    def on_mount(self) -> None:
        self.refresh_jobs()
        self.read_output()
        self.set_interval(FOLLOW_S, self.read_output)

    @work(group="read", exclusive=True)
    async def read_output(self) -> None:
        """Read the last output of the commands and their ports, and draw what has changed."""
        for owned in self._agent.jobs.all:
            job = owned.job
            if self._tails.get(job, (-1, ""))[0] != job.bytes:
                count, read = job.bytes, job.tail
                tail = await asyncio.to_thread(read, lines=_TAIL_LINES, chars=_TAIL_CHARS)
                self._tails[job] = count, tail
        self._ports = sorted(await self._agent.jobs.ports())
        if self._state() != self._drawn:
            self.refresh_jobs()

    def _state(self) -> object:
        jobs = [(one.job.id, state_of(one.job), self._tails.get(one.job)) for one in self._listed]
        return jobs, self._ports

    @property
    def _listed(self) -> list[OwnedJob]:
        """The commands, running ones first, each kind with the newest first."""
        newest = list(reversed(self._agent.jobs.all))
        return sorted(newest, key=lambda one: one.job.ended)

    def refresh_jobs(self) -> None:
        """Show the current state of the commands."""
        before = self._row.job if self._row else None
        self._shown = self._listed
        jobs = [one.job for one in self._shown]
        cursor = jobs.index(before) if before in jobs else 0
        self.set_class(not jobs, "-none")
        self.rows.show(len(jobs), self._draw, cursor=cursor)
        self._explain()
        self._drawn = self._state()

    @work(group="stop", exclusive=True)
    async def action_stop(self) -> None:
        """Stop the command under the cursor, once the person has confirmed."""
        row = self._row
        if row is not None and await stop_asked(cast("App[Any]", self.app), row.job):
            self.refresh_jobs()

    def action_copy(self) -> None:
        """Copy the command under the cursor."""
        if self._row is not None:
            copy(cast("App[Any]", self.app), self._row.job.command)

    @work(group="forward", exclusive=True)
    async def action_forward(self) -> None:
        """Open the port that they listen on."""
        await self._forward()

    def row_chosen(self, index: int) -> None:
        self.app.push_screen(JobOutputScreen(self._shown[index]))  # pyright: ignore[reportUnknownMemberType]

    def row_moved(self, index: int) -> None:  # noqa: ARG002
        self._explain()

    @property
    def _row(self) -> OwnedJob | None:
        return self._shown[self.rows.cursor] if self._shown else None

    def _draw(self, index: int, width: int) -> Sequence[Part]:
        rows = [job_row(one) for one in self._shown]
        beside = max(cell_len(row.values[0]) for row in rows)
        room = max(width // 3, min(width // 2, width - 6 - beside))
        names = [whole_words(row.name, room) for row in rows]
        wide, row = max(map(cell_len, names)), rows[index]
        last = self._tails.get(self._shown[index].job, (0, ""))[1].rpartition("\n")[2]
        return [
            (f"{row.mark} ", row.look),
            (set_cell_size(names[index], wide), "text"),
            (f"  {set_cell_size(row.values[0], beside)}", "muted"),
            (f"  {one_line(last)}" if last else "", "muted"),
        ]

    def _explain(self) -> None:
        """Show the details of the row under the cursor, and the keys."""
        owned, keys = self._row, tuple[tuple[str, str], ...]()
        lines: list[str] = []
        if owned is not None:
            row = job_row(owned)
            lines = [*row.about, *self._tails.get(owned.job, (0, ""))[1].splitlines()]
            stop = (("x", "stop"),) if "stop" in row.actions else ()
            keys = (("enter", "output"), *stop, ("y", "copy"))
        if self._ports:
            ports = ", ".join(map(str, self._ports))
            lines.insert(2, f"listening in the sandbox: {ports}")
            keys = (*keys, ("p", "open a port"))
        self.put("about", Content(clean("\n".join(lines))))
        self.show_keys(*keys, ("esc", "close"))


class JobOutputScreen(BaseScreen, Screen[None]):  # pyright: ignore[reportIncompatibleMethodOverride] - Textual's own arrange
    """Shows everything a background command printed, and follows the output at its end.

    A search, or scrolling back, holds it still.
    """

    CSS_PATH = "jobs.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(JOB_OUTPUT_KEYS),
        Binding("escape,q", "dismiss", "back", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = None

    def __init__(self, owned: OwnedJob) -> None:
        super().__init__()
        self.owned = owned
        self._bytes_shown = -1

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield Static("No output yet.", id="none", markup=False)
        yield FilePane(id="job-output")
        yield PaneRule(id="keys-rule")
        yield Static(id="keys", markup=False)

    @property
    def pane(self) -> FilePane:
        return self.query_one(FilePane)

    def on_mount(self) -> None:
        self.call_after_refresh(self.follow)
        self.set_interval(FOLLOW_S, self.follow)

    def on_resize(self) -> None:
        self._show_head()

    @work(group="follow", exclusive=True)
    async def follow(self) -> None:
        """Show new output, if the end is visible."""
        self._show_head()
        job, pane = self.owned.job, self.pane
        count, first = job.bytes, self._bytes_shown < 0
        if not count or count == self._bytes_shown or not pane.follows:
            return
        file, trouble = await open_file_pane(job.path, job.path.parent)
        if file is None:
            self.query_one("#none", Static).update(trouble)
            return
        if not pane.follows:  # scrolled meanwhile
            file.close()
            return
        self._bytes_shown = count
        self.query_one("#none").display = False
        pane.show(file, at_end=True)
        if first:
            pane.view.focus()

    def _show_head(self) -> None:
        job, width = self.owned.job, self.size.width
        facts = f"{state_of(job)} · {size(job.bytes)}"
        name = whole_words(one_line(f"{job.id} {job.command}"), max(20, width - len(facts) - 6))
        title = Content.assemble((name, "bold"), (f"  {facts}", "$text-muted"))
        self.query_one("#title", Static).update(title)
        keys: Keys = (
            ("/", "find"),
            *(() if job.ended else (("x", "stop"),)),
            ("end", "follow"),
            ("w", "wrap"),
            ("y", "copy"),
            ("v", "pager"),
            ("e", "editor"),
            ("esc", "back"),
        )
        self.query_one("#keys", Static).update(in_rows(keys, width - 2, rows=1))

    @work(group="stop", exclusive=True)
    async def action_stop(self) -> None:
        """Stop the command, once the person has confirmed."""
        await stop_asked(cast("App[Any]", self.app), self.owned.job)
        self.follow()

    def action_copy(self) -> None:
        """Copy the selection, else the output up to the clipboard's limit."""
        view = self.pane.view
        if text := view.selected_text or view.text():
            copy(cast("App[Any]", self.app), text)

    @work(group="outside", exclusive=True)
    async def action_outside(self, program: Program) -> None:
        """Open the output in the person's own pager or editor."""
        if not self.owned.job.bytes:
            return
        app, path = cast("App[Any]", self.app), self.owned.job.path
        problem = await open_copy(app, path, path.parent, program)
        if problem is None:
            problem = f"Can't open {path}: the file is gone."
        if problem:
            app.notify(problem, severity="error", markup=False)


async def stop_asked(app: App[Any], job: Job) -> bool:
    """Ask whether to stop a command, and stop it by SIGTERM, then SIGKILL. True if it was
    stopped."""
    if job.ended:
        return False
    question = YesNoQuestion(
        f"Stop {job.id}?",
        "It gets SIGTERM, and two seconds later SIGKILL, with all that it started.",
        "stop it",
        "let it run",
        (one_line(job.command), f"running for {duration(job.seconds)}"),
    )
    asking = answer_of(app, Confirmation(question))
    if not await answer_while(asking, job.wait(inf), None):
        if job.ended:
            app.notify(f"{job.id} has ended by itself.", markup=False)
        return False
    await job.stop("person")
    return True


def copy(app: App[Any], text: str) -> None:
    """Copy a text and say so."""
    app.copy_to_clipboard(text)
    app.notify(f"Copied {plural(len(text), 'character')}.", markup=False)
