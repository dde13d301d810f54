"""Stops a background command, once the person has confirmed."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from textual.app import App

from tui.app.dialog_data import YesNoQuestion
from tui.app.passing_questions import answer_while
from tui.core.formatting import duration
from tui.core.text_cleaning import one_line
from tui.ui.widgets.dialog import answer_of
from tui.ui.widgets.questions import Confirmation

if TYPE_CHECKING:
    from tui.tools.jobs import Job


async def stop_asked(app: App[Any], job: Job) -> bool:
    """Ask whether to stop a command, and stop it by SIGTERM, then SIGKILL. True if it was
    stopped."""
    if job.ended:
        return False
    question = YesNoQuestion(
        f"Stop {job.id}?",
        "It gets SIGTERM, and two seconds later SIGKILL, with all that it started.",
        "stop it",
        "let it run",
        (one_line(job.command), f"running for {duration(job.seconds)}"),
    )
    asking = answer_of(app, Confirmation(question))
    if not await answer_while(asking, job.wait(inf), None):
        if job.ended:
            app.notify(f"{job.id} has ended by itself.", markup=False)
        return False
    await job.stop("person")
    return True
