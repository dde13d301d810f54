"""`holdfast run` on the full screen."""

from __future__ import annotations

import shutil
import sys

from textual import work

from tui.app.options.arguments import Options
from tui.batch.command.plan import RunPlan, plan
from tui.batch.report import RunSummary
from tui.core.clock import Clock, SystemClock
from tui.core.errors import ConfigError
from tui.core.paths import folders, shorten
from tui.ui.screens.tasks import TasksScreen
from tui.ui.tasks.run import RunOnScreen
from tui.ui.toolkit import themes
from tui.ui.toolkit.base_app import ThemedApp, draw_in_utf8
from tui.ui.widgets.keys import APP_KEYS, bindings


class TasksApp(ThemedApp):
    """Runs a planned task file; `run_on` is the run."""

    TITLE = "holdfast"
    CSS_PATH = ["../app.tcss", "../screens/chat.tcss", "../screens/tasks.tcss"]  # noqa: RUF012
    BINDINGS = bindings(APP_KEYS)  # pyright: ignore[reportAssignmentType]
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self,
        planned: RunPlan,
        *,
        theme: str = themes.DEFAULT_DARK,
        clock: Clock | None = None,
        retry_failed: bool = False,
    ) -> None:
        super().__init__()
        self.run_on = RunOnScreen(
            self, planned, clock=clock or SystemClock(), retry_failed=retry_failed
        )
        try:
            self.register_theme(themes.load(theme, folders().config / "themes").theme)
            self.theme = theme
        except ConfigError:
            self.register_theme(themes.load(themes.DEFAULT_DARK, folders().config).theme)
            self.theme = themes.DEFAULT_DARK

    def get_default_screen(self) -> TasksScreen:
        return self.run_on.screen

    def on_mount(self) -> None:
        self.heed_signals(lambda _number: self.run_on.stop_and_leave())
        self.call_after_refresh(self.work_through)

    @work(group="run")
    async def work_through(self) -> None:
        await self.run_on.work_through()
        self.exit()

    def action_interrupt(self) -> None:
        self.run_on.stop()

    async def action_quit(self) -> None:
        self.run_on.stop_and_leave()


def open_run(options: Options) -> int:
    """`holdfast run` on a terminal. Returns the exit code; raises HoldfastError."""
    planned = plan(options)
    if not sys.stderr.isatty():
        sys.__stderr__ = sys.__stdout__  # Textual draws on it; a redirected one goes on to log
    draw_in_utf8()
    theme = options.theme or planned.launch.config.theme
    app = TasksApp(planned, theme=theme, retry_failed=options.retry_failed)
    app.run()
    done = app.run_on
    if done.failure:
        raise done.failure
    runner = done.live.runner
    if runner and runner.state:
        width = shutil.get_terminal_size().columns
        print(RunSummary(runner.state, runner.reason).text(width=width))  # noqa: T201
        print(f"Summary: {', '.join(shorten(path) for path in done.written)}")  # noqa: T201
    return done.code or app.return_code or 0
