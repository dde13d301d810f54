"""`holdfast run`: a task file worked through without a screen, and what stands around it.

`plan` and `workshop` are shared with the full screen.
"""

from __future__ import annotations

from tui.app.options.arguments import Options


def run(options: Options) -> int:
    """Carry out `holdfast run` without a screen. Returns the exit code; raises HoldfastError."""
    from tui.batch_command import headless, looking  # noqa: PLC0415 - the full screen needs neither
    from tui.batch_command.plan import plan  # noqa: PLC0415

    if options.reset:
        return looking.reset(options)
    if options.status:
        return looking.status(options)
    planned = plan(options)
    return looking.dry_run(planned) if options.dry_run else headless.work(planned, options)
