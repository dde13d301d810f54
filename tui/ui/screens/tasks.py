"""The tasks of a run: the queue with its states, and below it the running task's conversation.

The lower part is a chat screen without its prompt, so that one presenter draws on either.
"""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static

from tui.batch.state import TaskState
from tui.core.clock import Clock
from tui.core.errors import HoldfastError
from tui.core.files import read_small
from tui.ui.screens.chat import ChatScreen
from tui.ui.screens.placement_lines import end_words, machine_lines, place_line
from tui.ui.screens.task_rows import (
    NOWHERE,
    RunStatus,
    SteadyText,
    TaskQueue,
    title_line,
    totals_line,
)
from tui.ui.widgets.bars import KeyHint
from tui.ui.widgets.keys import TASK_KEYS, bindings
from tui.ui.widgets.panes import CachedHorizontal, PaneRule

if TYPE_CHECKING:
    from tui.batch.placement import RunPlacement
    from tui.batch.state import RunState
    from tui.permissions.types import Mode


_FILE_MAX = 10_000_000
TICK_S = 0.25
_OPEN = KeyHint("enter", "open", "screen.open")
_HINTS = (
    KeyHint("r", "retry", "screen.redo"),
    KeyHint("e", "edit", "screen.edit"),
    KeyHint("f4", "output", "screen.output"),
    KeyHint("ctrl+p", "commands", "app.palette", "palette"),
)
_PAUSE, _GO_ON = KeyHint("p", "pause", "screen.pause"), KeyHint("p", "continue", "screen.pause")
_SKIP, _STOP = KeyHint("s", "skip", "screen.skip"), KeyHint("ctrl+c", "stop", "screen.interrupt")
_CHOOSE, _LEAVE = (
    KeyHint("n", "run a file", "screen.choose"),
    KeyHint("esc", "back", "screen.leave"),
)
_NOTHING = (
    "No task file has been run in this folder.\n\n"
    "Write one in Markdown, one line per task:\n\n"
    "    ## tasks in a group share a session\n"
    "    - [ ] first task\n"
    "    - [ ] second task\n\n"
    "Then press n here, or run:  holdfast run TASKS.md\n\n"
    "With git, each task becomes one commit and failed tasks are undone."
)

_NO_SESSION = "Nothing yet.\nPress Enter on a task to show its session."

_EDITING = "`- …` is a task, `## …` starts a group. Keep the tasks that have already started."


class ShownRun(Protocol):
    """The run that the screen shows: one worked on here, or the one of the folder."""

    @property
    def state(self) -> RunState | None: ...
    @property
    def running(self) -> tuple[int, ...]: ...
    @property
    def skipped(self) -> frozenset[int]: ...
    @property
    def pausing(self) -> bool: ...
    @property
    def live(self) -> bool:
        """True if it is worked on here."""
        ...

    @property
    def placement(self) -> RunPlacement | None:
        """The places of its tasks on machines; None where it has none."""
        ...

    @property
    def heading(self) -> str:
        """The words over the conversation that is shown."""
        ...

    @property
    def begins(self) -> bool:
        """True if a run can be started from here."""
        ...

    async def begin(self, path: Path | None) -> None:
        """Work on a task file, None for one to be chosen."""

    async def refresh(self) -> None:
        """Check for changes. Raises HoldfastError."""

    def pause(self) -> None: ...
    def skip(self, index: int) -> None: ...
    async def redo(self, index: int) -> None: ...
    async def edit(self, data: bytes) -> None: ...
    async def open_task(self, task: TaskState) -> None: ...
    async def stop(self) -> None: ...
    async def leave(self) -> None: ...


class TasksScreen(ChatScreen):
    """Shows a run, and takes the keys that control it."""

    CSS_PATH = "tasks.tcss"
    BINDINGS: ClassVar[list[BindingType]] = bindings(TASK_KEYS)  # pyright: ignore[reportIncompatibleVariableOverride, reportAssignmentType]
    AUTO_FOCUS: ClassVar[str | None] = "#queue"

    def __init__(self, run: ShownRun, clock: Clock) -> None:
        super().__init__(clock, intro=Static(_NOTHING, id="intro", markup=False))
        self.run = run
        self._since: float | None = None
        self._at: dict[int, float] = {}
        """Start time of each running task."""
        self._waits: dict[int, tuple[float, int]] = {}
        """For each waiting task, when its wait ends, and before which attempt."""
        self.ended: str | None = None
        self._redraw_due = False

    def compose(self) -> ComposeResult:
        yield self.header
        with Vertical(id="queue-box"):
            yield PaneRule("tasks", id="queue-rule")
            yield TaskQueue()
            yield SteadyText(id="totals")
            yield SteadyText(id="machines")
            yield SteadyText(id="place")
        with CachedHorizontal(id="body"):
            yield self.left
            yield self.splitter
            yield self.side
        yield self.prompt_rule
        yield self.status

    async def furnish(self) -> None:
        """Add the lower part's widgets, then show the run."""
        await super().furnish()
        self.set_interval(TICK_S, self.redraw)
        self.set_interval(1, self.refresh_run)
        self.query_one("#queue").focus()
        self.redraw()

    def on_resize(self) -> None:
        self.redraw()

    @work(exclusive=True, group="look")
    async def refresh_run(self) -> None:
        """Show what another program has done meanwhile. If the state is damaged, the last one
        stays."""
        with suppress(HoldfastError):
            await self.run.refresh()

    def began(self) -> None:
        """Show that the run is being worked on."""
        self._since, self.ended = self.clock.monotonic(), None
        self.redraw()

    def wait(self, task: int, seconds: float, attempt: int) -> None:
        """Count down a wait before an attempt at a task."""
        self._waits[task] = self.clock.monotonic() + seconds, attempt
        self.redraw()

    def waited(self, task: int) -> None:
        self._waits.pop(task, None)

    def end(self, reason: str) -> None:
        """Show that the run is over; `reason` is "" if nothing remains."""
        self.ended = reason
        self._waits.clear()
        self.notice.clear()
        self.idle()
        self.redraw()

    def redraw_soon(self) -> None:
        """Redraw once, however many events come now."""
        if not self._redraw_due:
            self._redraw_due = True
            self.call_later(self.redraw)

    def redraw(self) -> None:
        """Show the current state of the tasks; unchanged rows are left alone."""
        self._redraw_due = False
        if not (self.query("#queue-rule") and self.query("#intro")):
            return  # a resize may come before the widgets, a task end after them
        state = self.run.state
        rule = self.query_one("#queue-rule", PaneRule)
        rule.title = Content.styled(title_line(state), "$text-muted")
        below = self.query_one("#conversation-rule", PaneRule)
        below.title = Content.styled(self.run.heading if state else "tasks", "$text-muted")
        if self.has_class("-nothing") != (state is None):
            self.set_class(state is None, "-nothing")
            self.panes.arrange()
        self._hints((), "")
        if state is None:
            return
        intro = self.query_one("#intro", Static)
        if intro.content != _NO_SESSION:
            intro.update(_NO_SESSION)
        placement = self.run.placement
        places = placement.tasks if placement else NOWHERE
        self.queue.show(state, self.run.skipped, max(30, self.size.width - 4), places)
        most = max(3, self.size.height * 35 // 100)
        self.queue.styles.height = min(self.queue.option_count, most)
        now = self.clock.monotonic()
        self._at = {index: self._at.get(index, now) for index in self.run.running}
        until, attempt = min(self._waits.values(), default=(0.0, 0))
        pace = RunStatus(
            live=self.run.live,
            seconds=0.0 if self._since is None else now - self._since,
            task_s=now - min(self._at.values(), default=now),
            wait_s=max(0.0, until - now),
            attempt=attempt,
            pausing=self.run.pausing,
            ended=self.ended,
            skipped=self.run.skipped,
        )
        width = self.size.width - 2
        self.query_one("#totals", SteadyText).show(totals_line(state, pace, width, placement))
        self._show_placement(placement, width)

    def _show_placement(self, placement: RunPlacement | None, width: int) -> None:
        """Show the machines, and where the task under the cursor is, of a run that has them."""
        self.set_class(placement is not None, "-placed")
        if placement is None:
            return
        rule = self.query_one("#queue-rule", PaneRule)
        rule.right = Content.styled(end_words(placement) if self.run.live else "", "$text-muted")
        lines = machine_lines(placement, width, self.clock.now())
        self.query_one("#machines", SteadyText).show(lines)
        self._show_place()

    @on(OptionList.OptionHighlighted, "#queue")
    def _show_place(self) -> None:
        """Show where the task under the cursor is."""
        placement, task = self.run.placement, self.selected
        if placement is not None and task is not None:
            place = placement.tasks.get(task.index)
            line = place_line(task, place, self.size.width - 2)
            self.query_one("#place", SteadyText).show(line)

    @property
    def queue(self) -> TaskQueue:
        return self.query_one(TaskQueue)

    @property
    def selected(self) -> TaskState | None:
        """The task under the cursor."""
        state, index = self.run.state, self.queue.at_cursor
        return None if state is None or index is None else state.tasks[index]

    def action_pause(self) -> None:
        state = self.run.state
        if self.run.begins and state and not self.run.live:
            self.begin_on(Path(state.task_file))
        else:
            self.run.pause()
            self.redraw()

    def action_choose(self) -> None:
        if not self.run.live:
            self.begin_on(None)

    @work(exclusive=True, group="tasks")
    async def begin_on(self, path: Path | None) -> None:
        """Start a task file, None for one to be chosen, if that is possible here."""
        if self.run.begins:
            await self._try(self.run.begin(path))

    async def action_interrupt(self) -> None:
        """Ctrl+C: stop a run that is worked on here, else leave the screen."""
        await self.run.stop()

    def action_skip(self) -> None:
        task = self.selected
        if task is None:
            return
        waits = task.status == "pending" or (task.status == "interrupted" and self.run.placement)
        if not waits or not self.run.live:
            self.notice.say("Only tasks that haven't started can be skipped, during a run.")
            return
        try:
            self.run.skip(task.index)
        except HoldfastError as error:
            self.notice.say(error.message, "warning", hint=error.hint)
        self.redraw()

    @work(exclusive=True, group="tasks")
    async def action_redo(self) -> None:
        task = self.selected
        if task is None:
            return
        if task.status != "failed" and task.index not in self.run.skipped:
            self.notice.say("Only failed or skipped tasks can be run again.")
            return
        await self._try(self.run.redo(task.index))

    @work(exclusive=True, group="tasks")
    async def action_edit(self) -> None:
        from tui.ui.widgets.questions import EditText  # noqa: PLC0415 - on demand

        state = self.run.state
        if state is None:
            return
        path = Path(state.task_file)
        try:
            data, _ = read_small(path, limit=_FILE_MAX)
        except OSError as error:
            self.notice.say(f"Can't read {path.name}: {error.strerror or error}.", "error")
            return
        text = data.decode("utf-8", "replace")

        async def save(text: str) -> None:
            await self.run.edit(text.encode())

        modal = EditText(f"edit {path.name}", _EDITING, text, save)
        if await self.app.push_screen_wait(modal):  # pyright: ignore[reportUnknownMemberType]
            self.notice.say("Tasks updated.", "success")
            self.redraw()

    @work(exclusive=True, group="tasks")
    async def action_open(self) -> None:
        task = self.selected
        if task is not None and task.session_id is None:
            self.notice.say("No session yet: this task hasn't started.")
        elif task is not None:
            await self._try(self.run.open_task(task))

    def action_output(self) -> None:
        self.panes.toggle()

    async def action_leave(self) -> None:
        """Close what covers the conversation first, then the screen."""
        if self.has_class("-narrow") and self.has_class("-over"):
            self.panes.toggle()
        else:
            await self.run.leave()

    async def action_close(self) -> None:
        """Close by the key that opened it; a run that is worked on here stays."""
        if not self.awaited:
            await self.action_leave()

    async def action_stop_or_close(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        await self.action_leave()

    async def _try(self, doing: Awaitable[None]) -> None:
        try:
            await doing
        except HoldfastError as error:
            self.notice.say(error.message, "error", hint=error.hint)
        self.redraw()

    @on(OptionList.OptionSelected, "#queue")
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_open()

    def show_mode(self, mode: Mode | None = None, allowed: int | None = None) -> None:
        """Show nothing: a run has no mode; rules, the person and --yolo decide."""

    def on_key(self, event: events.Key) -> None:
        event.prevent_default()  # there is no prompt to type into

    def on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        self.notice.say("There is no field here to paste into.")

    def _hints(self, hints: tuple[KeyHint, ...], placeholder: str) -> None:  # noqa: ARG002 - its own
        """Show only the keys that do something now."""
        ours = (_OPEN, _GO_ON, _LEAVE, *_HINTS)
        if self.run.live:
            ours = (_OPEN, _GO_ON if self.run.pausing else _PAUSE, _SKIP, _STOP, *_HINTS)
        elif self.run.begins:
            ours = (*ours, _CHOOSE) if self.run.state else (_CHOOSE, _LEAVE)
        super()._hints(ours, "")
