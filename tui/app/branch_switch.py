"""Switching branches of a session: asks about the files, restores them, opens the session again,
and reports what happened. /rewind and /tree share it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui.app.dialog_data import AnswerOption, ChoiceQuestion
from tui.app.models import use_model
from tui.app.open_session import switch_session
from tui.app.reports import Report
from tui.app.services import SessionChoice
from tui.app.session_repository import is_document
from tui.context.file_changes import FileChange, objection, restore
from tui.context.workspace_changes import WorkspaceChanges, files_of
from tui.core.dataclass import dataclass, replace
from tui.core.errors import HoldfastError
from tui.core.fact_words import words
from tui.core.facts import Rewound
from tui.core.formatting import plural
from tui.core.git.branch import branch_of
from tui.core.text_cleaning import one_line
from tui.core.workspace import PRIVATE_DIR, TOOL_RESULTS
from tui.session.checkpoints.entries import Change, RestoredFile, is_repository
from tui.session.records import Record

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.agent.checkpoints import Checkpoints
    from tui.app.conversation import Conversation
    from tui.app.frontend import Level
    from tui.session.checkpoints.store import CheckpointStore

_LEFT_ALONE: Final = (
    "Files edited outside Holdfast are left alone; replaced versions are backed up."
)
_NO_HISTORY: Final = "checkpoints leave it out, so this is now a plain folder"
_RESTORED: Final = frozenset({"restored", "deleted", "unchanged"})


@dataclass(frozen=True, slots=True)
class Departure:
    """The difference between the files now and those of the branch to switch to: `now` is their
    checkpoint, "" for none, `since` the changes, and `git` the branch that git was on there, ""
    if unknown. `where` names the place in a question."""

    since: WorkspaceChanges
    now: str
    git: str = ""
    where: str = "then"


Move = Callable[[bool], Awaitable[Record]]
"""Records the move, with the files or without, and returns its record."""


async def ask_and_go(
    conversation: Conversation, agent: Agent, departure: Departure, move: Move
) -> bool:
    """Ask about the files, where any differ, and go. False where the person stays. What /export
    wrote is no change of the files: it stays."""
    files, since = "talk", _without_documents(departure.since)
    departure = replace(departure, since=since)
    if since.own_files or files_of(since.others):
        question = await asyncio.to_thread(_files_question, conversation, departure)
        files = await conversation.frontend.choose(question)
    if files not in {"all", "own", "talk"} or conversation.agent is not agent:
        return False
    chosen = WorkspaceChanges()
    if files == "all":
        chosen = replace(since, own=(*since.own, *since.others), edited_since=())
    elif files == "own":
        chosen = since
    return await go(conversation, agent, replace(departure, since=chosen), move)


async def go(conversation: Conversation, agent: Agent, departure: Departure, move: Move) -> bool:
    """Go, and restore the files that the departure names. False if that failed; the person is
    told."""
    services, frontend, files = conversation.services, conversation.frontend, departure.since
    restores = bool(files.own or files.beside)
    try:
        record = await move(restores)
    except HoldfastError as error:
        frontend.say(error.message, "error", hint="Nothing changed.")
        return False
    done: list[RestoredFile] = []
    if restores:
        done = await _restored(agent.checkpoints, files, services.workspace, agent.full_outputs)
    mode, model = agent.permissions.mode, agent.models.current
    await switch_session(conversation, SessionChoice(agent.session.path, same=True))
    if conversation.agent is None:
        return True
    conversation.agent.permissions.mode = mode
    if conversation.agent.models.current != model:
        await use_model(conversation, model)
    frontend.refresh()
    if said := words(Rewound.of_record(record.data)):
        frontend.say(said.text, "success", hint=said.hint)
    _report(conversation, done, await asyncio.to_thread(_git_words, conversation, departure))
    return True


def _without_documents(since: WorkspaceChanges) -> WorkspaceChanges:
    own, others = (
        tuple(change for change in group if not is_document(change.path))
        for group in (since.own, since.others)
    )
    return replace(since, own=own, others=others)


# The question


def _files_question(conversation: Conversation, departure: Departure) -> ChoiceQuestion:
    """Ask which files are restored, with what restoring does to each. Blocks."""
    root, since = conversation.services.workspace, departure.since
    own, others = since.own_files, files_of(since.others)
    # The first answer is under the cursor: it never touches edits from outside.
    options = [AnswerOption("c", "Conversation only", "talk")]
    if others:
        name = "Restore everything, edits from outside too"
        options.insert(0 if own else 1, AnswerOption("e", name, "all"))
    if own:
        options.insert(0, AnswerOption("f", "Restore conversation and files", "own"))
    text = f"{plural(len(own), 'file')} changed since."
    if since.known and others:
        text += f" {plural(len(others), 'file')} edited outside Holdfast."
    if since.known and not since.beside:
        text += " /rewind undo brings back what this replaces."
    elif since.known:
        text += f" {_LEFT_ALONE}"
    else:
        text += f" What commands changed stays: there is no checkpoint from then. {_LEFT_ALONE}"
    warnings = [*_repositories(since, root), *_git_warning(conversation, departure)]
    details = [
        *_shown(since.own, root),
        *(
            f"{_shown_path(change.path, root)}{' · new: will be deleted' if change.created else ''}"
            for change in since.beside
        ),
        *(f"{_shown_path(path, root)} · edited outside" for path in others),
    ]
    return ChoiceQuestion(
        "Rewind the files too?",
        "\n\n".join([text, *warnings]),
        tuple(options),
        details=details,
        warning=bool(warnings),
    )


def _git_warning(conversation: Conversation, departure: Departure) -> list[str]:
    """Say that git is on another branch by now, on which the files would be put. Blocks."""
    now = branch_of(conversation.services.workspace)
    then = departure.git
    if not now or not then or now == then:
        return []
    old, new = one_line(then), one_line(now)
    text = (
        f"Git was on {old} {departure.where}; now it is on {new}. Restoring puts the files of {old}"
        f" onto {new}. To avoid that, cancel and run `git switch {old}` first."
    )
    return [text]


def _git_words(conversation: Conversation, departure: Departure) -> list[str]:
    """Say it again once the files are restored."""
    now, then = branch_of(conversation.services.workspace), departure.git
    files = departure.since
    if not now or not then or now == then or not (files.own or files.beside):
        return []
    return [f"Git is still on {one_line(now)}; these are the files of {one_line(then)}."]


def _repositories(since: WorkspaceChanges, root: Path) -> list[str]:
    """Say of nested repositories that came or went what restoring leaves of them."""
    found = [one for one in (*since.own, *since.others) if is_repository(one)]
    fresh = {one.path for one in (*since.own, *since.others) if one.old is None}
    gone = [_shown_path(one.path.parent, root) for one in found if one.new is None]
    made = [_shown_path(one.path.parent, root) for one in found if one.path.parent in fresh]
    comes = (
        "was a git repository of its own. Its files come back; its history doesn't, since"
        " checkpoints leave .git out."
    )
    goes = "is a git repository now. Its files will be deleted; its .git stays."
    return [*(f"{name} {comes}" for name in gone), *(f"{name} {goes}" for name in made)]


def _shown(found: Sequence[Change], root: Path) -> list[str]:
    """Each file with what restoring does to it."""
    wanted = set(files_of(found))
    return [
        f"{_shown_path(change.path, root)}{_effect(change)}"
        for change in found
        if change.path in wanted
    ]


def _effect(change: Change) -> str:
    if change.old is None:
        return " · new: will be deleted"
    return " · deleted: will be restored" if change.new is None else ""


# The files


async def _restored(
    checkpoints: Checkpoints | None, files: WorkspaceChanges, root: Path, copies: Path
) -> list[RestoredFile]:
    """Restore files, take a checkpoint of that, and return the outcome for each."""
    done: list[RestoredFile] = []
    if checkpoints is not None and files.own:
        done = await asyncio.to_thread(_put_back, files.own, checkpoints.store())
        await checkpoints.after_rewind()
    done += [RestoredFile(path, "changed since") for path in files.edited_since]
    return [*done, *await asyncio.to_thread(restore_files, files.beside, root, copies)]


def _put_back(found: Sequence[Change], store: CheckpointStore) -> list[RestoredFile]:
    """Restore from checkpoints. Of folders only failures are reported."""
    from tui.session.checkpoints.restore import restore as put_back  # noqa: PLC0415 - needs sqlite

    folders = {change.path for change in found if change.is_folder}
    repositories = {change.path: change for change in found if is_repository(change)}
    done = put_back([change for change in found if change.path not in repositories], store)
    shown = [each for each in done if each.path not in folders or each.outcome not in _RESTORED]
    lost = [change.path for change in repositories.values() if change.new is None]
    return [*shown, *(RestoredFile(path, "lost", detail=_NO_HISTORY) for path in lost)]


def restore_files(found: Sequence[FileChange], root: Path, copies: Path) -> list[RestoredFile]:
    """Bring back the files of the workspace that no checkpoint has, from what lies in `copies`.
    What a record says without being believed is left alone, and named."""
    real, keep = Path(os.path.realpath(root)), root / PRIVATE_DIR / TOOL_RESULTS
    done: list[RestoredFile] = []
    for change in found:
        if why := objection(change, real, copies):
            done.append(RestoredFile(change.path, "failed", detail=why))
        else:
            done.append(restore(change, keep))
    return done


def _report(conversation: Conversation, done: Sequence[RestoredFile], notes: Sequence[str]) -> None:
    """Say how many files are as they were, and a line for each."""
    if not done:
        return
    root = conversation.services.workspace
    good = sum(each.outcome in _RESTORED for each in done)
    lines = [
        f"{each.outcome:<14} {_shown_path(each.path, root)}"
        + (f" · {each.detail}" if each.detail else "")
        + (f" · backup: {each.kept.name}" if each.kept else "")
        for each in done
    ]
    level: Level = "info" if good == len(done) and not notes else "warning"
    conversation.frontend.report(
        Report(f"Restored {good} of {plural(len(done), 'file')}.", lines, level, notes=tuple(notes))
    )


def _shown_path(path: Path, root: Path) -> str:
    return one_line(str(path.relative_to(root)) if root in path.parents else str(path))
