"""`holdfast run`: working through a task file without a screen, and showing or resetting a run.

`plan` and `composition` are shared with the full screen.
"""

from __future__ import annotations

from tui.app.options.arguments import Options


def run(options: Options) -> int:
    """Carry out `holdfast run` without a screen. Returns the exit code; raises HoldfastError."""
    from tui.batch.command import headless, inspect  # noqa: PLC0415 - the full screen needs neither
    from tui.batch.command.plan import plan  # noqa: PLC0415

    if options.reset:
        return inspect.reset(options)
    if options.status:
        return inspect.status(options)
    planned = plan(options)
    return inspect.dry_run(planned) if options.dry_run else headless.work(planned, options)
