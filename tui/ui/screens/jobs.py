"""/jobs (F6): the background commands of a session, and the screen that follows the output of
one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from tui.app.reports import Row
from tui.app.reports.jobs import NONE, job_row, state_of
from tui.core.formatting import size
from tui.core.text_cleaning import clean, one_line
from tui.ui.screens.external_programs import Program, open_copy
from tui.ui.screens.job_stopping import stop_asked
from tui.ui.screens.panel import Panel, copy
from tui.ui.screens.table_screen import whole_words
from tui.ui.toolkit.base_screen import BaseScreen
from tui.ui.widgets.dialog import Key
from tui.ui.widgets.file_viewer.pane import FilePane, open_file_pane
from tui.ui.widgets.keys import JOB_OUTPUT_KEYS, JOBS_KEYS, Keys, bindings, in_rows
from tui.ui.widgets.panes import PaneRule

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.agent.background_jobs import OwnedJob
    from tui.tools.jobs import Job

FOLLOW_S: Final = 0.5
"""Seconds between updates of the output."""
_TAIL_LINES: Final = 3
_TAIL_CHARS: Final = 1000


class JobsScreen(Panel[None]):
    """A row for each background command. `forward` opens a port that they listen on."""

    NAME = "background commands"
    NONE = (
        f"{NONE}\nThe model starts one for servers and long builds. Ctrl+B moves the running "
        "command here."
    )
    KEYS: ClassVar[Mapping[str, str]] = {"open": "enter", "stop": "x", "copy": "y"}
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(JOBS_KEYS)]

    def __init__(self, agent: Agent, forward: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        self._agent, self._forward = agent, forward
        self._tails: dict[Job, tuple[int, str]] = {}
        self._ports: Sequence[int] = ()

    def on_mount(self) -> None:
        self.follow()

    @work(group="read", exclusive=True)
    async def follow(self) -> None:
        """Read the last output of the commands and their ports, and draw what has changed."""
        for owned in self._agent.jobs.all:
            job = owned.job
            if self._tails.get(job, (-1, ""))[0] != job.bytes:
                count, read = job.bytes, job.tail
                tail = await asyncio.to_thread(read, lines=_TAIL_LINES, chars=_TAIL_CHARS)
                self._tails[job] = count, tail
        self._ports = sorted(await self._agent.jobs.ports())
        super().follow()

    @property
    def _listed(self) -> list[OwnedJob]:
        """The commands, running ones first, each kind with the newest first."""
        newest = list(reversed(self._agent.jobs.all))
        return sorted(newest, key=lambda one: one.job.ended)

    def rows_now(self) -> Sequence[Row]:
        return [self._row_of(one) for one in self._listed]

    def _row_of(self, owned: OwnedJob) -> Row:
        row, tail = job_row(owned), clean(self._tails.get(owned.job, (0, ""))[1]).splitlines()
        ports = ", ".join(map(str, self._ports))
        listening = [f"listening in the sandbox: {ports}"] if ports else []
        about = (*row.about[:2], *listening, *row.about[2:], *tail)
        return replace(row, values=(*row.values, one_line(tail[-1]) if tail else ""), about=about)

    def keys(self, row: Row) -> Iterable[Key]:
        return [*super().keys(row), *([("p", "open a port")] if self._ports else [])]

    @property
    def _owned(self) -> OwnedJob | None:
        """The command under the cursor."""
        key = self.row.key if self.row else ""
        return next((one for one in self._agent.jobs.all if one.job.id == key), None)

    @work(group="stop", exclusive=True)
    async def action_stop(self) -> None:
        """Stop the command under the cursor, once the person has confirmed."""
        owned = self._owned
        if owned is not None and await stop_asked(cast("App[Any]", self.app), owned.job):
            self.draw()

    @work(group="forward", exclusive=True)
    async def action_forward(self) -> None:
        """Open the port that they listen on."""
        await self._forward()

    def row_chosen(self, index: int) -> None:  # noqa: ARG002 - the cursor is there
        if (owned := self._owned) is not None:
            self.app.push_screen(job_screen(owned))  # pyright: ignore[reportUnknownMemberType]


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


def job_screen(owned: OwnedJob) -> Screen[None]:
    """Return the screen that follows a command: its output, or its terminal."""
    if owned.job.terminal is None:
        return JobOutputScreen(owned)
    from tui.ui.screens.terminal import TerminalWatchScreen  # noqa: PLC0415 - most have none

    return TerminalWatchScreen(owned, owned.job.terminal)
