"""/rewind: back to an earlier prompt, with the files if wanted.

The session branches inside its file: what came since stays there, on a branch of its own.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tui.app.dialog_data import AnswerOption, ChoiceQuestion, Point, PointQuestion
from tui.app.models import use_model
from tui.app.open_session import switch_session
from tui.app.services import SessionChoice
from tui.context.file_changes import FileChange, RestoredFile, changes, restore
from tui.core.errors import HoldfastError
from tui.core.formatting import plural
from tui.core.images import prompt_of
from tui.core.text_cleaning import one_line
from tui.core.workspace import PRIVATE_DIR
from tui.session.records import Record

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.app.conversation import Conversation
    from tui.app.frontend import Level

_RESTORED = frozenset({"restored", "deleted", "unchanged"})


async def rewind(conversation: Conversation, number: str) -> None:
    """Choose an earlier prompt, or name it by its number, of which 1 is the last."""
    agent, say = conversation.agent, conversation.frontend.say
    if agent is not None and not conversation.says_idle():
        return
    found = points(agent.session.records) if agent else []
    if agent is None or not found:
        say("Nothing to rewind yet.")
        return
    if agent.session.path is None:
        say("This session isn't saved to disk, so it can't be rewound.", "warning")
        return
    if conversation.idle_agent() is None:
        return
    if number and not (number.isdecimal() and 1 <= int(number[:9]) <= len(found)):
        say(f"No prompt {number}.", "warning", hint="See /rewind.")
        return
    answer = str(len(found) - int(number)) if number else None
    answer = answer or await conversation.frontend.choose(PointQuestion(found))
    if answer is None or conversation.agent is not agent:
        return
    point, files = found[int(answer)], "talk"
    if point.changed:
        files = await conversation.frontend.choose(_files_question(conversation, point))
    if files in {"both", "talk"} and conversation.agent is agent:
        await _back_to(conversation, agent, point, files=files == "both")


def _files_question(conversation: Conversation, point: Point) -> ChoiceQuestion:
    root = conversation.services.workspace
    return ChoiceQuestion(
        "Rewind the files too?",
        f"{plural(len(point.changed), 'file')} changed since. Files edited outside Holdfast"
        " are left alone; replaced versions are backed up.",
        (
            AnswerOption("f", "Restore conversation and files", "both"),
            AnswerOption("c", "Conversation only", "talk"),
        ),
        details=[_shown_path(change.path, root) for change in point.changed],
    )


async def _back_to(conversation: Conversation, agent: Agent, point: Point, *, files: bool) -> None:
    """Go on from before a prompt, which is laid ready to be sent again."""
    services, frontend = conversation.services, conversation.frontend
    try:
        await agent.session.rewind(point.record.id)
    except HoldfastError as error:
        frontend.say(error.message, "error", hint="Nothing rewound.")
        return
    done: list[RestoredFile] = []
    if files:
        done = await asyncio.to_thread(restore_files, point.changed, services.workspace)
    mode, model = agent.mode, agent.model
    conversation.images.learn(point.record)  # which stands on another branch from now on
    frontend.put_prompt(point.text, replace=True)
    await switch_session(conversation, SessionChoice(agent.session.path))
    if conversation.agent is None:
        return
    conversation.agent.mode = mode
    if conversation.agent.model != model:
        await use_model(conversation, model)
    frontend.refresh()
    frontend.say("Rewound. Later messages are still in the session file.", "success")
    if done:
        whole = all(each.outcome in _RESTORED for each in done)
        level: Level = "info" if whole else "warning"
        frontend.report(*_outcome_lines(done, services.workspace), level)


def points(records: Sequence[Record]) -> list[Point]:
    """The typed prompts of a branch, oldest first."""
    found: list[Point] = []
    for place, record in enumerate(records):
        typed = record.type == "user" and isinstance(record.data.get("text"), str)
        if typed and (text := prompt_of(record.data)).strip():
            found.append(Point(record, text, tuple(changes(records[place:]))))
    return found


def restore_files(found: Sequence[FileChange], root: Path) -> list[RestoredFile]:
    """Bring the files of the workspace back. Others are left alone."""
    real, keep = Path(os.path.realpath(root)), root / PRIVATE_DIR / "tool-results"
    done: list[RestoredFile] = []
    for change in found:
        inside = real in Path(os.path.realpath(change.path)).parents
        if inside:
            done.append(restore(change, keep))
        else:
            done.append(RestoredFile(change.path, "failed", detail="outside the workspace"))
    return done


def _outcome_lines(done: Sequence[RestoredFile], root: Path) -> tuple[str, list[str]]:
    """How many files are as they were, and a line for each."""
    good = sum(each.outcome in _RESTORED for each in done)
    lines = [
        f"{each.outcome:<14} {_shown_path(each.path, root)}"
        + (f" · {each.detail}" if each.detail else "")
        + (f" · backup: {each.kept.name}" if each.kept else "")
        for each in done
    ]
    title = f"Restored {good} of {plural(len(done), 'file')}."
    return title, lines


def _shown_path(path: Path, root: Path) -> str:
    return one_line(str(path.relative_to(root)) if root in path.parents else str(path))
