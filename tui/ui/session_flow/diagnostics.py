"""/doctor, /tour and /drill: looking at the installation, and at what the program does."""

from __future__ import annotations

import asyncio
import os

from tui.app import doctor as checks
from tui.app.options.flags import FAULTS
from tui.ui.screens.subprocess_handoff import step_aside
from tui.ui.session_flow.command_context import Desk


async def doctor(desk: Desk) -> None:
    """Show what `holdfast doctor` finds."""
    from tui.ui.screens.doctor import DoctorScreen  # noqa: PLC0415 - on demand

    services = desk.bridge.services
    what = checks.Subject.of(services.workspace, services.folders, os.environ)
    desk.app.push_screen(DoctorScreen(asyncio.to_thread(checks.examine, what)))


def tour(desk: Desk) -> None:
    """Step aside for `holdfast tour`, and come back to the session as it was."""
    _aside(desk, "tour")


def drill(desk: Desk, faults: str) -> None:
    """Step aside for `holdfast drill`, and come back to the session as it was."""
    say = desk.bridge.chat.notice.say
    names = [name.strip() for name in faults.split(",") if name.strip()]
    if unknown := [name for name in names if name not in FAULTS]:
        say(f"There is no fault {unknown[0]}.", "warning", hint=f"/drill {','.join(FAULTS)}")
        return
    _aside(desk, "drill", *([",".join(names)] if names else []))


def _aside(desk: Desk, *words: str) -> None:
    say = desk.bridge.chat.notice.say
    if desk.bridge.busy:
        say("The agent is at work.", "warning", hint="Esc stops it.")
    elif trouble := step_aside(desk.app, *words):
        say(trouble, "warning")
