"""The question of how to go on once another program has taken over the session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.app.dialog_data import AnswerOption, ChoiceQuestion
from tui.app.open_session import forked

if TYPE_CHECKING:
    from tui.ui.frontend import ScreenFrontend


async def ask_to_fork(frontend: ScreenFrontend) -> None:
    """Stop what runs here, which the other program continues, and offer a fork."""
    agent = frontend.conversation.agent
    if agent is None:
        return
    frontend.conversation.cancel()
    frontend.chat.show_read_only(True)
    question = ChoiceQuestion(
        "Another program took over this session",
        f"{agent.session.lost} This window is now read-only. A fork keeps everything on"
        " this screen, including what wasn't saved.",
        (
            AnswerOption("f", "Fork it and continue here", "fork"),
            AnswerOption("r", "Stay here, read-only", "stay"),
        ),
        warning=True,
        unasked=True,
    )
    if await frontend.choose(question) == "fork":
        frontend.switch_session(await forked(agent.session, frontend.services))
