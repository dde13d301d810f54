"""Runs tasks in the background and draws the run on its screen: for `holdfast run`, or from the
chat."""

from __future__ import annotations

import asyncio
import logging
import shutil
import signal
import sys
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from textual import work
from textual.app import App

from tui.app.options.arguments import Options
from tui.app.services import LiveSettings
from tui.batch.command import EXIT_INTERRUPTED, exit_code, placed, write_summary
from tui.batch.events import BatchEvent, FromAgent, RetryDelayed, TaskMerged, TaskStarted
from tui.batch.placement import RunPlacement
from tui.batch.plan import RunPlan, plan
from tui.batch.report import RunSummary
from tui.batch.run_control import ControlledRunner, OpenedRun, RunOpener, open_run
from tui.batch.state import RunState, TaskState, begin
from tui.core import facts
from tui.core.clock import Clock
from tui.core.errors import HoldfastError
from tui.core.facts import Notice
from tui.core.git.branch import branch_of
from tui.core.keymap import keymap_of
from tui.core.paths import shorten
from tui.core.standard_output import print_text
from tui.session import catalog
from tui.session.reader import read
from tui.ui.fact_renderer import FactRenderer
from tui.ui.notifications import notifier, write
from tui.ui.screens.modal_approver import ModalApprover
from tui.ui.screens.tasks import TasksScreen
from tui.ui.tasks.followed_session import FollowedSession
from tui.ui.tasks.run_signals import RunSignals
from tui.ui.terminal import SEND_AGAIN_S, TerminalStatus
from tui.ui.toolkit import themes
from tui.ui.toolkit.base_app import ThemedApp, draw_in_utf8
from tui.ui.widgets.conversation.items import NoticeItem
from tui.ui.widgets.fact_log import FactLog
from tui.ui.widgets.keys import APP_KEYS, TASK_KEYS, bindings
from tui.ui.widgets.record_items import RestoredItems, restored

log = logging.getLogger(__name__)

_LOST = {0, signal.SIGHUP}
"""Numbers that mean a lost terminal: its signal, or 0 if it can't be read or written any more."""


class RunOnScreen:
    """Works through a planned task file on `screen`.

    `code` is the exit code so far, `failure` the error that ended the run, `written` the paths of
    its summary. `opener` puts its parts together.
    """

    begins = False

    def __init__(
        self,
        app: App[Any],
        planned: RunPlan,
        options: Options,
        *,
        clock: Clock,
        signals: RunSignals,
        opener: RunOpener = open_run,
    ) -> None:
        self._app, self._plan, self._options, self._clock = app, planned, options, clock
        self.signals, self._opener = signals, opener
        self._leaving = False
        self._followed: FollowedSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._session: str | None = None
        self._shown: int | None = None
        """The task whose conversation is shown."""
        self._chosen = False
        """True if the person chose it: it then stays."""
        self.code = 0
        self.failure: HoldfastError | None = None
        self.written: list[Path] = []
        self.elapsed_s: float | None = None
        self.runner: ControlledRunner | None = None
        self.live = False
        self._before = begin(planned.task_file, planned.file, now="")
        self._again = asyncio.Event()
        """Set when the person wants to continue after the run has ended."""
        self.screen = TasksScreen(self, clock)
        self.screen.awaited = True
        self._renderer = FactRenderer(self.screen)

    # What the screen asks

    @property
    def state(self) -> RunState:
        return (self.runner.state if self.runner else None) or self._before

    @property
    def running(self) -> tuple[int, ...]:
        return tuple(self.runner.running) if self.runner else ()

    @property
    def skipped(self) -> frozenset[int]:
        return self.runner.skipped if self.runner else frozenset()

    @property
    def pausing(self) -> bool:
        return bool(self.runner and self.runner.pausing)

    @property
    def placement(self) -> RunPlacement | None:
        return self.runner.placement if self.runner else None

    @property
    def heading(self) -> str:
        followed = self._followed
        if followed is None:
            return "conversation"
        now = ", as of its last request" if followed.index in self.running else ""
        return f"task {followed.index + 1}{now}"

    def pause(self) -> None:
        if self.runner and self.live:
            self.runner.pause(not self.runner.pausing)
        else:
            self._again.set()

    def skip(self, index: int) -> None:
        if self.runner:
            self.runner.skip(index)

    async def refresh(self) -> None:
        """Draw what came to the session that is followed; all else is always up to date."""
        # one that has begun with its session is drawn by its events
        if self._followed is None and self._shown is not None and not self._session:
            self._followed = self._session_elsewhere(self._shown)
        followed = self._followed
        if followed is not None and followed.is_due:
            self.screen.run_worker(self._catch_up(followed), group="session")  # pyright: ignore[reportUnknownMemberType]

    def _session_elsewhere(self, index: int) -> FollowedSession | None:
        session = self.runner.session_of(index) if self.runner else None
        return FollowedSession(index, session, self.screen) if session is not None else None

    async def _catch_up(self, followed: FollowedSession) -> None:
        try:
            growth = await followed.read()
        except HoldfastError as error:
            self.screen.notice.say(error.message, "warning", hint=error.hint)
            return
        if followed is self._followed:  # the person may have opened another one meanwhile
            followed.draw(growth)
            self._renderer = followed.renderer

    async def redo(self, index: int) -> None:
        if self.runner:
            await self.runner.redo(index)

    async def edit(self, data: bytes) -> None:
        if self.runner:
            await self.runner.edit(data)

    async def begin(self, path: Path | None) -> None:
        """Do nothing: the run has begun."""

    async def open_task(self, task: TaskState) -> None:
        """Show the session of a task; that of a running one continues live."""
        live = task.index in self.running
        chosen = not live or len(self.running) > 1
        elsewhere = self._session_elsewhere(task.index)
        if elsewhere is not None:
            self._shown, self._chosen, self._followed = task.index, chosen, elsewhere
            self._session = ""
            self.screen.notice.clear()
            await self.refresh()
            return
        past = await asyncio.to_thread(self._past, task)
        self._shown, self._chosen, self._followed = task.index, chosen, None
        self._session = task.session_id
        self._renderer = FactRenderer(self.screen)
        self._renderer.resume(past)
        if live:
            self.screen.notice.clear()
            return
        self.screen.notice.say(
            f"This is the session of task {task.index + 1}.",
            hint="Press Enter on a running task to go back.",
        )

    async def stop(self) -> None:
        """Stop the running task and save; a second time, or after the end, leave."""
        runner = self.runner
        if self.live and runner and not runner.stopping:
            self.screen.notice.say("Stopping and saving progress.", "warning")
            runner.stop()
        else:
            self.stop_and_leave()

    async def leave(self) -> None:
        """Leave, but while a task is running only say so, unless it runs on."""
        if self.live and self.placement and self.placement.outlives:
            self.stop_and_leave(lost=True)
        elif self.live:
            several = len(self.running) > 1
            self.screen.notice.say(
                f"{len(self.running)} tasks are running." if several else "A task is running.",
                "warning",
                hint="p pauses after them, Ctrl+C stops them now."
                if several
                else "p pauses after it, Ctrl+C stops it now.",
            )
        else:
            self.stop_and_leave()

    # Working

    async def work_through(self) -> None:
        """Run the file, and again each time the person continues after an end, until the run is
        left.

        The screen must be shown. If cancelled, it first stops the running task and saves.
        """
        screen, target = self.screen, self._plan.target
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        await screen.furnish()
        screen.header.state = replace(
            screen.header.state,
            folder=shorten(target),
            branch=branch_of(target),
            model=self._plan.models.first,
            title=self._plan.task_file.name,
            elevated=self._plan.launch.elevated,
        )
        while not self._leaving:
            self._again.clear()
            await self._once()
            if self._leaving or self.failure:
                return
            await self._again.wait()

    def stop_and_leave(self, *, lost: bool = False) -> None:
        """End the run, at once if nothing is being worked on. If the terminal is `lost`, the next
        run continues with the unfinished work."""
        self._leaving = True
        self._again.set()
        if self.live and self.runner and lost:
            self.runner.leave()
        elif self.live and self.runner:
            self.runner.stop()

    def _past(self, task: TaskState) -> RestoredItems:
        usual = self._plan.launch.folders
        folders = self.runner.folders_of(task.index) if self.runner else usual
        path = catalog.resolve(task.session_id or "", folders)
        return restored(read(path).branch)

    async def _once(self) -> None:
        """Work until the run ends."""
        approver = ModalApprover(self._app, self.screen)
        try:
            opened = await self._opener(self._plan, self._options, self, approver, self._clock)
        except HoldfastError as error:
            self.failure = error
            return
        await self._work(opened)

    async def _work(self, opened: OpenedRun) -> None:
        """Work until the run that was opened ends."""
        runner = self.runner = opened.runner
        if self._options.batch.retry_failed:
            runner.take_up_failed()
        if self._leaving:  # meanwhile
            runner.leave()
        self.live = True
        self.screen.began()
        self.signals.begin(self.state)
        try:
            await self._finished(runner)
        except HoldfastError as error:
            self.failure = error
        except Exception:
            log.exception("the run failed")
            self.failure = HoldfastError(
                "The run stopped because of a bug in Holdfast.",
                hint="Everything saved so far is safe. Details are in the log file.",
            )
        finally:
            self.live = False
            await opened.close()
        self.screen.end(runner.reason)
        self.signals.end(self.state, done=not runner.reason and not self.failure)

    async def _finished(self, runner: ControlledRunner) -> None:
        running = asyncio.ensure_future(runner.run())
        try:
            state = await asyncio.shield(running)
        except asyncio.CancelledError:
            runner.stop()
            await running
            raise
        self.code = exit_code(runner, state)
        self.elapsed_s = runner.elapsed_s
        summary = RunSummary(state, runner.reason, self.elapsed_s)
        self.written = write_summary(summary, self._plan)

    def show(self, event: BatchEvent) -> None:
        """Draw an event; a bug in drawing must not end the run. Threads may call it."""
        if self._loop is not None and threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self.show, event)
            return
        try:
            self.signals.see(event, self.state)
            self._draw(event)
        except Exception:
            log.exception("couldn't draw an event")

    def _draw(self, event: BatchEvent) -> None:
        screen = self.screen
        match event:
            case TaskStarted(task=task, session_id=session):
                screen.waited(task)
                self._begin_showing(task, session)
            case FromAgent(task=task, event=inner):
                if task == self._shown:
                    self._renderer.show(inner)
                elif facts.awaits_person(inner):
                    screen.queue.follow(task)  # shows the task whose question it is
                return
            case RetryDelayed(task, seconds):
                screen.wait(task, seconds, self.state.tasks[task].attempts + 1)
            case TaskMerged(message=str(message)) if message:
                screen.add(NoticeItem(f"Task {event.task + 1} isn't merged. {message}"))
            case Notice(text):
                screen.add(NoticeItem(text.strip()))
                if self.placement:  # a session that is opened takes the place of the item
                    screen.notice.say(text.strip())
            case _:
                pass
        screen.redraw_soon()

    def _begin_showing(self, task: int, session: str) -> None:
        """Show a task that begins, unless the shown one is running or was chosen by the person."""
        beside = self._shown != task and self._shown in self.running
        if beside or (self._chosen and self._shown != task):
            return
        another = not session and self._shown != task  # whose session comes with its first request
        fresh, self._session = another or session != self._session, session
        self._shown = task
        if fresh:
            self._followed = None
            self._renderer = FactRenderer(self.screen)
            self.screen.fill([])
        self.screen.queue.follow(task)


class TasksApp(ThemedApp):
    """Runs a planned task file; `run_on` is the run."""

    TITLE = "holdfast"
    _left_by = 0
    """Exit code of the signal that ended the app."""
    CSS_PATH = ["../app.tcss", "../screens/chat.tcss", "../screens/tasks.tcss"]  # noqa: RUF012
    BINDINGS = bindings(APP_KEYS)  # pyright: ignore[reportAssignmentType]

    def __init__(
        self,
        planned: RunPlan,
        options: Options,
        *,
        theme: str = themes.DEFAULT_DARK,
        clock: Clock | None = None,
        opener: RunOpener = open_run,
    ) -> None:
        super().__init__(clock=clock)
        clock, config = self.clock, planned.launch.config
        self.fact_log = FactLog(clock)
        self.terminal = TerminalStatus(partial(write, self), config.terminal)
        caller = notifier(self, clock, self.terminal.notification, LiveSettings(config))
        self.run_on = RunOnScreen(
            self,
            planned,
            options,
            clock=clock,
            signals=RunSignals(self.terminal, caller, self.fact_log, planned.task_file.name),
            opener=opener,
        )
        self.guess_theme(theme)

    def get_default_screen(self) -> TasksScreen:
        return self.run_on.screen

    def on_mount(self) -> None:
        self.takeover.leaving = self.terminal.leave
        self.heed_ends(self._leave)
        self.set_interval(SEND_AGAIN_S, self.terminal.say_again)
        self.run_worker(self.terminal.ask_tmux(), group="terminal")
        self.call_after_refresh(self.work_through)

    @work(group="run")
    async def work_through(self) -> None:
        await self.run_on.work_through()
        self.exit(return_code=self._left_by or self.run_on.code)

    def resumed(self) -> None:
        super().resumed()
        self.terminal.resume()

    def _leave(self, number: int) -> None:
        """Leave after a signal, or because the terminal has gone (`number` is 0)."""
        stopped = number in {signal.SIGINT, signal.SIGTERM}
        self._left_by = EXIT_INTERRUPTED if stopped else 128 + (number or signal.SIGHUP)
        self.run_on.stop_and_leave(lost=number in _LOST)

    async def action_debug_view(self) -> None:
        """F12: every event of the agents, over the current screen; again closes it."""
        from tui.ui.screens.debug_log import toggle_debug_log  # noqa: PLC0415 - on demand

        await toggle_debug_log(self, self.fact_log)

    async def action_palette(self) -> None:
        """Ctrl+P: the keys' actions, to be chosen by name; again closes them."""
        from tui.ui.commands.palette import open_run_palette  # noqa: PLC0415 - on demand

        await open_run_palette(self, self.run_on.screen, TASK_KEYS)

    def action_help(self) -> None:
        """F1: the keys that work here, and the manual; again closes it."""
        from tui.ui.screens.help import HelpScreen, HelpSection  # noqa: PLC0415 - on demand

        if isinstance(self.screen, HelpScreen):
            self.screen.dismiss()
        elif not any(isinstance(screen, HelpScreen) for screen in self.screen_stack):
            everywhere = [key for key in APP_KEYS if hasattr(self, f"action_{key.action}")]
            tables = (("Tasks", TASK_KEYS), ("Everywhere", everywhere))
            self.push_screen(
                HelpScreen([HelpSection.of(*table, self.own_keys) for table in tables])
            )

    async def action_interrupt(self) -> None:
        await self.run_on.stop()

    async def action_quit(self) -> None:
        self.run_on.stop_and_leave()


def open_tasks(options: Options) -> int:
    """Run `holdfast run` on a terminal and return the exit code; raises HoldfastError."""
    options = placed(options)
    planned = plan(options)
    if not sys.stderr.isatty():
        sys.__stderr__ = sys.__stdout__  # Textual draws on it; a redirected one still gets the log
    draw_in_utf8()
    theme = options.screen.theme or planned.launch.config.theme
    app = TasksApp(planned, options, theme=theme)
    app.use_keys(keymap_of(planned.launch.config.keys))
    code = app.run_to_end()
    done = app.run_on
    if app.takeover.gone:
        return code  # nobody is there to read it
    if done.failure:
        raise done.failure
    runner = done.runner
    if runner and runner.state:
        width = shutil.get_terminal_size().columns
        summary = RunSummary(runner.state, runner.reason, done.elapsed_s)
        print_text(summary.text(width=width))
        print_text(f"Summary: {', '.join(shorten(path) for path in done.written)}")
    return code
