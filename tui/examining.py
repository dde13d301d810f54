"""/doctor and /drill: looking at the installation, and at what the program makes of errors."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence

from textual.app import SuspendNotSupported

from tui import doctor as checks
from tui.desk import Desk
from tui.flags import FAULTS


async def doctor(desk: Desk) -> None:
    """Show what `holdfast doctor` finds."""
    from tui.screens.doctor import DoctorScreen  # noqa: PLC0415 - on demand

    services = desk.bridge.services
    what = checks.Subject.of(services.workspace, services.folders, os.environ)
    desk.app.push_screen(DoctorScreen(asyncio.to_thread(checks.examine, what)))


def drill(desk: Desk, faults: str) -> None:
    """Step aside for `holdfast drill`, and come back to the session as it was.

    It is a process of its own: nothing of this session can get into it. Blocks until it ends.
    """
    say = desk.bridge.chat.notice.say
    names = [name.strip() for name in faults.split(",") if name.strip()]
    if unknown := [name for name in names if name not in FAULTS]:
        say(f"There is no fault {unknown[0]}.", "warning", hint=f"/drill {','.join(FAULTS)}")
        return
    if desk.bridge.busy:
        say("The agent is at work.", "warning", hint="Esc stops it.")
        return
    try:
        with desk.app.suspend():
            subprocess.run(argv(names, desk.app.theme), check=False)
    except SuspendNotSupported:
        say("This terminal cannot be shared.", "warning", hint="Run `holdfast drill` in another.")


def argv(faults: Sequence[str], theme: str) -> list[str]:
    """The command line of a drill. What lies in the current folder is never imported."""
    named = [",".join(faults)] if faults else []
    return [sys.executable, "-P", "-m", "tui", "drill", *named, "--theme", theme]
