"""A run without a screen: plain lines or events on stdout, and what signals do."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from tui.app.options.arguments import Options
from tui.batch.command.composition import RunComposition
from tui.batch.command.output import EXIT_FAILED, exit_code, print_notice, width, write_summary
from tui.batch.command.plan import RunPlan
from tui.batch.events import BatchEvent, RunFinished, RunStarted
from tui.batch.report import RunSummary, lines_of
from tui.batch.runner import Runner
from tui.core.clock import SystemClock
from tui.core.paths import shorten
from tui.permissions.gate import RulesOnly


def work(planned: RunPlan, options: Options) -> int:
    """Work through the file. Returns the exit code; raises HoldfastError."""
    return asyncio.run(_work(planned, options))


async def _work(planned: RunPlan, options: Options) -> int:
    printer = _Printer(json_=options.json, total=len(planned.file.tasks))
    shop = RunComposition(planned, printer.show, approver=RulesOnly(), clock=SystemClock())
    runner = shop.runner
    printer.on_lost = runner.stop
    if options.retry_failed:
        runner.take_up_failed()
    with _signals(lambda: _stop(runner)):
        try:
            state = await runner.run()
            summary = RunSummary(state, runner.reason, printer.seconds)
            written = write_summary(summary, planned)
        finally:
            await shop.close()
    if not options.json:
        printer.line("")
        printer.line(summary.text(width=width()).rstrip("\n"))
        printer.line(f"Summary: {', '.join(shorten(path) for path in written)}")
    return EXIT_FAILED if printer.lost else exit_code(runner, state)


class _Printer:
    """The only writer to stdout. When nobody can read it any more, the run is stopped."""

    def __init__(self, *, json_: bool, total: int) -> None:
        self._json, self._total = json_, total
        self.on_lost: Callable[[], None] = lambda: None
        self.lost = False
        self.seconds: float | None = None

    def show(self, event: BatchEvent) -> None:
        match event:
            case RunStarted(tasks=tasks):
                self._total = tasks
            case RunFinished(seconds=seconds):
                self.seconds = seconds
            case _:
                pass
        if self._json:
            self.line(json.dumps(event.to_json(), ensure_ascii=True, separators=(",", ":")))
        else:
            for text in lines_of(event, total=self._total):
                self.line(text)

    def line(self, text: str) -> None:
        if self.lost:
            return
        try:
            sys.stdout.write(text.encode("utf-8", "replace").decode() + "\n")
            sys.stdout.flush()
        except OSError:
            self.lost = True
            self.on_lost()


def _stop(runner: Runner) -> None:
    print_notice("Stopping: saving how far it is." if not runner.stopping else "Still saving.")
    runner.stop()


@contextmanager
def _signals(stop: Callable[[], None]) -> Generator[None]:
    """The first signal stops the run, another one changes nothing: the state is being saved."""
    loop = asyncio.get_running_loop()
    every = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heeded = [number for number in every if signal.getsignal(number) != signal.SIG_IGN]
    for number in heeded:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in heeded:
            loop.remove_signal_handler(number)
