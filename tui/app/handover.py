"""From the background to a screen: taking a session from the process that runs it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui.app import background
from tui.app.background import BackgroundSession
from tui.app.dialog_data import AnswerOption, ChoiceQuestion
from tui.app.frontend import SessionWatcher
from tui.app.passing_questions import answer_while, until
from tui.app.services import SessionChoice
from tui.session.lock import holder

if TYPE_CHECKING:
    from tui.app.conversation import Conversation
    from tui.core.paths import Folders

PATIENCE_S: Final = 5.0
"""Seconds until the person is asked what to do about a process that still finishes something."""
LONG_PATIENCE_S: Final = 60.0
"""The same, where they chose to wait."""
_POLL_S: Final = 0.1

_ATTACH: Final = (
    AnswerOption("a", "Continue it here", "attach"),
    AnswerOption("r", "Open read-only; it keeps running", "read_only"),
    AnswerOption("f", "Fork (continue in a copy)", "fork"),
)
_WATCH: Final = AnswerOption("l", "Look in; it keeps running", "watch")
"""For a front end that can."""
_WAIT: Final = (
    AnswerOption("w", "Wait until that is done", "wait"),
    AnswerOption("n", "Take over now: what it waits for is interrupted", "now"),
    AnswerOption("r", "Open read-only; it keeps running", "read_only"),
)


async def ask_attach(
    conversation: Conversation, choice: SessionChoice, owner: BackgroundSession
) -> str | None:
    """Ask what to do about a session that runs in the background: watch (which is done here, where
    the front end can), attach, read_only, fork, or nothing; "gone" where its process ends
    meanwhile. Without a question where that was chosen already."""
    if choice.attach:
        return "attach"
    watcher = conversation.frontend
    answers = (_WATCH, *_ATTACH) if isinstance(watcher, SessionWatcher) else _ATTACH
    question = ChoiceQuestion("This session runs in the background", f"{owner.words}.", answers)
    answer = await _while_it_has_it(conversation, owner, question, "gone")
    if answer == "watch" and isinstance(watcher, SessionWatcher):
        await watcher.watch_session(owner.id)
    return answer


async def take(
    conversation: Conversation, choice: SessionChoice, owner: BackgroundSession
) -> SessionChoice | None:
    """Wait until the process has let go of its session. What to open then, None for nothing.
    Raises StorageError."""
    services, now, patience = conversation.services, False, PATIENCE_S
    home, clock = services.folders, services.clock
    choice = replace(choice, attach=False, take_over=False)
    conversation.frontend.say(f"Taking {owner.id} over from the background.")
    try:
        while await asyncio.to_thread(_asked, home, owner, now=now):
            until = clock.monotonic() + patience
            while await asyncio.to_thread(_has_it, owner):
                if clock.monotonic() >= until:
                    break
                await clock.sleep(_POLL_S)
            else:
                break
            answer = await _ask_patience(conversation, owner)
            if not await asyncio.to_thread(_has_it, owner):
                break  # it has let go meanwhile: nobody else continues the turn
            match answer:
                case "now":
                    now = True
                case "read_only":
                    return replace(choice, read_only=True)
                case "wait":
                    patience = LONG_PATIENCE_S
                case _:
                    return None
    finally:
        await asyncio.to_thread(background.withdraw, home, owner.id)
    conversation.frontend.say(f"Took {owner.id} over from the background.", "success")
    return replace(choice, go_on=await asyncio.to_thread(background.handed_over, home, owner.id))


def _has_it(owner: BackgroundSession) -> bool:
    """True if a process runs, or, where it was killed, some thread of it still has the lock."""
    locked = holder(Path(owner.path))
    return background.is_running(owner) or (locked is not None and locked.pid == owner.pid)


def _asked(home: Folders, owner: BackgroundSession, *, now: bool) -> bool:
    """Ask a process for its session. False where it has let go of it."""
    return background.request(home, owner, now=now) or _has_it(owner)


async def _ask_patience(conversation: Conversation, owner: BackgroundSession) -> str | None:
    """Ask about a process that finishes something first."""
    home, clock = conversation.services.folders, conversation.services.clock
    sessions = await asyncio.to_thread(background.sessions, home, clock.now())
    does = next((one.detail for one in sessions if one.id == owner.id), "")
    text = f"The background process finishes what it has begun{f': {does}' if does else ''}."
    question = ChoiceQuestion("It isn't at a safe point yet", text, _WAIT, unasked=True)
    return await _while_it_has_it(conversation, owner, question, "wait")


async def _while_it_has_it(
    conversation: Conversation, owner: BackgroundSession, question: ChoiceQuestion, gone: str
) -> str | None:
    """The answer to a question about a process; `gone` where that lets go of its session first."""
    over = until(lambda: not _has_it(owner))
    return await answer_while(conversation.frontend.choose(question), over, gone)
