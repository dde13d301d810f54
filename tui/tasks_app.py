"""`holdfast run` on the full screen: a run worked on in the background, and its screen."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from contextlib import suppress
from dataclasses import replace

from textual import work
from textual.app import App

from tui import batch_command, themes
from tui.arguments import Options
from tui.batch.events import BatchEvent, FromAgent, RunFinished, Said, TaskStarted, Waiting
from tui.batch.report import Summary
from tui.batch.runner import Runner
from tui.batch.state import RunState, TaskState, begin
from tui.clock import Clock, SystemClock
from tui.errors import ConfigError, HoldfastError
from tui.past import Past, past_of
from tui.paths import folders, shorten
from tui.presenter import Presenter
from tui.screens.asking import ModalApprover
from tui.screens.tasks import TasksScreen
from tui.session import catalog
from tui.session.reader import read
from tui.widgets.conversation.items import NoticeItem
from tui.widgets.keys import APP_KEYS, bindings
from tui.workspace import branch_of

log = logging.getLogger(__name__)

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class LiveRun:
    """A run that this program works on, or has worked on: what the screen asks of it."""

    def __init__(self, planned: batch_command.Plan) -> None:
        self._before = begin(planned.task_file, planned.file, now="")
        self.runner: Runner | None = None
        self.live = False
        self.again = asyncio.Event()
        """Set when the person wants to go on after the run has ended."""

    @property
    def state(self) -> RunState:
        return (self.runner.state if self.runner else None) or self._before

    @property
    def running(self) -> int | None:
        return self.runner.running if self.runner else None

    @property
    def skipped(self) -> frozenset[int]:
        return self.runner.skipped if self.runner else frozenset()

    @property
    def pausing(self) -> bool:
        return bool(self.runner and self.runner.pausing)

    def pause(self) -> None:
        if self.runner and self.live:
            self.runner.pause(not self.runner.pausing)
        else:
            self.again.set()

    def skip(self, index: int) -> None:
        if self.runner:
            self.runner.skip(index)

    async def refresh(self) -> None:
        """It is always up to date."""

    async def redo(self, index: int) -> None:
        if self.runner:
            await self.runner.redo(index)

    async def edit(self, data: bytes) -> None:
        if self.runner:
            await self.runner.edit(data)


class TasksApp(App[None]):
    """Runs a planned task file. `code` is the exit code afterwards, `failure` what ended it."""

    TITLE = "holdfast"
    CSS_PATH = ["app.tcss", "screens/chat.tcss", "screens/tasks.tcss"]  # noqa: RUF012
    BINDINGS = bindings(APP_KEYS)  # pyright: ignore[reportAssignmentType]
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self,
        planned: batch_command.Plan,
        *,
        theme: str = themes.DEFAULT_DARK,
        clock: Clock | None = None,
        retry_failed: bool = False,
    ) -> None:
        super().__init__()
        self._plan = planned
        self._clock = clock or SystemClock()
        self._retry_failed = retry_failed
        self._leaving = False
        self._session: str | None = None
        self._shown_task: int | None = None
        self.code = 0
        self.failure: HoldfastError | None = None
        self.live = LiveRun(planned)
        self.screen_of_tasks = TasksScreen(
            self.live, self._clock, on_open=self.open_task, on_leave=self.leave
        )
        self.presenter = Presenter(self.screen_of_tasks)
        try:
            self.register_theme(themes.load(theme, folders().config / "themes").theme)
            self.theme = theme
        except ConfigError:
            self.register_theme(themes.load(themes.DEFAULT_DARK, folders().config).theme)
            self.theme = themes.DEFAULT_DARK

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return {"rule": "#808080"}

    def get_default_screen(self) -> TasksScreen:
        return self.screen_of_tasks

    def on_mount(self) -> None:
        with suppress(ValueError, RuntimeError, NotImplementedError):
            for number in _SIGNALS:
                asyncio.get_running_loop().add_signal_handler(number, self._stop_and_leave)
        self.call_after_refresh(self.work_through)

    @work(group="run")
    async def work_through(self) -> None:
        """Run the file, and again as often as the person goes on after an end."""
        screen = self.screen_of_tasks
        await screen.furnish()
        target = self._plan.target
        screen.header.state = replace(
            screen.header.state,
            folder=shorten(target),
            branch=branch_of(target),
            model=self._plan.models.first,
            title=self._plan.task_file.name,
            elevated=self._plan.launch.elevated,
        )
        while True:
            self.live.again.clear()
            await self._run_once()
            if self._leaving or self.failure:
                self.exit()
                return
            await self.live.again.wait()

    async def _run_once(self) -> None:
        screen = self.screen_of_tasks
        try:
            shop = batch_command.Workshop(
                self._plan,
                self._publish,
                approver=ModalApprover(self, screen),
                clock=self._clock,
            )
        except HoldfastError as error:
            self.failure = error
            return
        runner = self.live.runner = shop.runner
        if self._retry_failed:
            runner.take_up_failed()
        self.live.live = True
        screen.began()
        try:
            state = await runner.run()
            self.code = batch_command.exit_code(runner, state)
            batch_command.write_summary(Summary(state, runner.reason), self._plan)
        except HoldfastError as error:
            self.failure = error
        except Exception:
            log.exception("the run failed")
            self.failure = HoldfastError(
                "The run was stopped by a mistake of the program.",
                hint="What was saved is safe; the details are in the log file.",
            )
        finally:
            self.live.live = False
            await shop.close()
        screen.end(runner.reason)

    def _publish(self, event: BatchEvent) -> None:
        """Draw an event; a mistake in drawing must not end the run."""
        try:
            self._draw(event)
        except Exception:
            log.exception("an event could not be drawn")

    def _draw(self, event: BatchEvent) -> None:
        screen = self.screen_of_tasks
        match event:
            case TaskStarted(task=task, session_id=session):
                fresh, self._session = session != self._session, session
                screen.waited()
                if self._shown_task is None:  # who reads another session is left alone
                    if fresh:
                        self.presenter = Presenter(screen)
                        screen.fill([])
                    screen.follow_task(task)
            case FromAgent(event=inner):
                if self._shown_task is None:
                    self.presenter.show(inner)
                return
            case Waiting(task, seconds):
                screen.wait(seconds, self.live.state.tasks[task].attempts + 1)
            case Said(text):
                screen.add(NoticeItem(text.strip()))
            case RunFinished():
                pass
            case _:
                pass
        screen.redraw()

    async def open_task(self, task: TaskState) -> None:
        """Show the session of a task; that of the running one goes on live."""
        past = await asyncio.to_thread(self._past, task)
        live = task.index == self.live.running
        self._shown_task = None if live else task.index
        self.presenter = Presenter(self.screen_of_tasks)
        self.presenter.resume(past)
        if live:
            return
        self.screen_of_tasks.notice.say(
            f"The session of task {task.index + 1}.", hint="Enter on the running task goes back."
        )

    def _past(self, task: TaskState) -> Past:
        path = catalog.resolve(task.session_id or "", self._plan.launch.folders)
        return past_of(read(path).branch)

    async def leave(self) -> None:
        """q and Esc: never out of a running task without its being said."""
        if self.live.live:
            self.screen_of_tasks.notice.say(
                "A task is running.", "warning", hint="p pauses after it, Ctrl+C stops it now."
            )
            return
        self._leaving = True
        self.live.again.set()
        self.exit()

    def action_interrupt(self) -> None:
        """Ctrl+C: stop the running task and save; again, or after the end, leave."""
        if self.live.live and self.live.runner:
            self.screen_of_tasks.notice.say("Stopping: saving how far it is.", "warning")
            self.live.runner.stop()
        else:
            self._stop_and_leave()

    async def action_quit(self) -> None:
        self._stop_and_leave()

    def _stop_and_leave(self) -> None:
        self._leaving = True
        if self.live.live and self.live.runner:
            self.live.runner.stop()
        else:
            self.exit()


def open_run(options: Options) -> int:
    """`holdfast run` on a terminal. Returns the exit code; raises HoldfastError."""
    planned = batch_command.plan(options)
    if not sys.stderr.isatty():
        sys.__stderr__ = sys.__stdout__  # Textual draws on it; a redirected one goes on to log
    theme = options.theme or planned.launch.config.theme
    app = TasksApp(planned, theme=theme, retry_failed=options.retry_failed)
    app.run()
    if app.failure:
        raise app.failure
    runner = app.live.runner
    if runner and runner.state:
        print(Summary(runner.state, runner.reason).text())  # noqa: T201
    return app.code or app.return_code or 0
