"""What leaves the screen for another program: the editor, the tour, the drill; and /doctor."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tui.app import doctor as checks
from tui.app.options.flags import FAULTS
from tui.ui.screens.external_programs import step_aside

if TYPE_CHECKING:
    from tui.ui.frontend import ScreenFrontend


async def doctor(frontend: ScreenFrontend, _: str) -> None:
    """Show what `holdfast doctor` finds."""
    from tui.ui.screens.reports import DoctorScreen  # noqa: PLC0415 - on demand

    services = frontend.services
    subject = checks.Subject.of(services.workspace, services.folders, os.environ)
    frontend.app.push_screen(DoctorScreen(asyncio.to_thread(checks.examine, subject)))


async def tour(frontend: ScreenFrontend, _: str) -> None:
    """Step aside for `holdfast tour`, and come back to the session as it was."""
    _run_aside(frontend, "tour")


async def drill(frontend: ScreenFrontend, faults: str) -> None:
    """Step aside for `holdfast drill`, and come back to the session as it was."""
    names = [name.strip() for name in faults.split(",") if name.strip()]
    if unknown := [name for name in names if name not in FAULTS]:
        hint = f"/drill {','.join(FAULTS)}"
        frontend.say(f"There is no fault {unknown[0]}.", "warning", hint=hint)
        return
    _run_aside(frontend, "drill", *([",".join(names)] if names else []))


def _run_aside(frontend: ScreenFrontend, *words: str) -> None:
    if frontend.conversation.says_idle() and (trouble := step_aside(frontend.app, *words)):
        frontend.say(trouble, "warning")


async def edit_file(frontend: ScreenFrontend, path: Path) -> None:
    """Open a file in the person's own editor."""
    from tui.ui.screens.external_programs import open_file  # noqa: PLC0415 - on demand

    if problem := await open_file(frontend.app, path, "editor", exact=False):
        frontend.say(problem, "error")


async def edit_prompt(frontend: ScreenFrontend) -> None:
    """Ctrl+G: what is typed, in the editor. What cannot be read back changes nothing."""
    from tui.ui.screens.external_programs import edited  # noqa: PLC0415 - on demand

    prompt = frontend.chat.prompt
    text, problem = await edited(frontend.app, prompt.value)
    if problem:
        frontend.say(problem, "error")
    if text is not None:
        prompt.put_whole(text.removesuffix("\n"))
    await asyncio.sleep(0)
    prompt.focus()
