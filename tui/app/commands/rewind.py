"""/rewind: back to an earlier prompt, with the files if wanted.

The session branches inside its file: what came since stays there, on a branch of its own. The files
come from checkpoints, or where there is none from the copies that the file tools made.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tui.app.dialog_data import AnswerOption, ChoiceQuestion, Point, PointQuestion
from tui.app.models import use_model
from tui.app.open_session import switch_session
from tui.app.reports import Report
from tui.app.services import SessionChoice
from tui.context.file_changes import FileChange, changes, objection, restore
from tui.context.workspace_changes import (
    Difference,
    WorkspaceChanges,
    changed_since,
    files_of,
    own_paths,
)
from tui.core.errors import HoldfastError
from tui.core.fact_words import REWOUND
from tui.core.formatting import plural
from tui.core.images import prompt_of
from tui.core.text_cleaning import one_line
from tui.core.workspace import PRIVATE_DIR, TOOL_RESULTS
from tui.session.checkpoints.entries import Change, CheckpointError, RestoredFile
from tui.session.records import CHECKPOINT, Record

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.agent.checkpoints import Checkpoints
    from tui.app.conversation import Conversation
    from tui.app.frontend import Level
    from tui.session.checkpoints.store import CheckpointStore

UNDO = "undo"
"""The word that brings back the files that the last rewind replaced."""
_LEFT_ALONE = "Files edited outside Holdfast are left alone; replaced versions are backed up."
_RESTORED = frozenset({"restored", "deleted", "unchanged"})


async def rewind(conversation: Conversation, wanted: str) -> None:
    """Choose an earlier prompt, or name it by its number, of which 1 is the last; `undo` brings the
    files back."""
    agent, say = conversation.agent, conversation.frontend.say
    if agent is not None and not conversation.says_idle():
        return
    if wanted == UNDO:
        await _undo(conversation)
        return
    choices: list[Point] = []
    if agent is not None:
        choices = await asyncio.to_thread(points, list(agent.session.records), agent.checkpoints)
    if agent is None or not choices:
        say("Nothing to rewind yet.")
        return
    if agent.session.path is None:
        say("This session isn't saved to disk, so it can't be rewound.", "warning")
        return
    if conversation.idle_agent() is None:
        return
    if wanted and not (wanted.isdecimal() and 1 <= int(wanted[:9]) <= len(choices)):
        say(f"No prompt {wanted}.", "warning", hint="See /rewind.")
        return
    answer = str(len(choices) - int(wanted)) if wanted else None
    answer = answer or await conversation.frontend.choose(PointQuestion(choices))
    if answer is None or conversation.agent is not agent:
        return
    await _to(conversation, agent, choices[int(answer)])


async def _to(conversation: Conversation, agent: Agent, point: Point) -> None:
    """Ask about the files, where any have changed, and go back."""
    now = await agent.checkpoints.now() if agent.checkpoints else ""
    since = await asyncio.to_thread(_since, agent, point, now)
    files = "talk"
    if since.own_files or files_of(since.others):
        files = await conversation.frontend.choose(_files_question(conversation, since))
    if files not in {"all", "own", "talk"} or conversation.agent is not agent:
        return
    chosen = WorkspaceChanges()
    if files == "all":
        chosen = replace(since, own=(*since.own, *since.others), edited_since=())
    elif files == "own":
        chosen = since
    await _back_to(conversation, agent, point, chosen, now)


def _since(agent: Agent, point: Point, now: str) -> WorkspaceChanges:
    """Find what has changed in files since a prompt. Where checkpoints can't tell, the results of
    the file tools do."""
    records = agent.session.records
    if agent.checkpoints is not None and now:
        try:
            difference = agent.checkpoints.store().difference
            return changed_since(records, point.place, now, difference)
        except CheckpointError:
            pass
    return WorkspaceChanges(known=False, beside=tuple(changes(records[point.place :])))


def _files_question(conversation: Conversation, since: WorkspaceChanges) -> ChoiceQuestion:
    root = conversation.services.workspace
    own, others = since.own_files, files_of(since.others)
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
    details = [
        *_shown(since.own, root),
        *(
            f"{_shown_path(change.path, root)}{' · new: will be deleted' if change.created else ''}"
            for change in since.beside
        ),
        *(f"{_shown_path(path, root)} · edited outside" for path in others),
    ]
    return ChoiceQuestion("Rewind the files too?", text, tuple(options), details=details)


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
    return " · is gone, comes back" if change.new is None else ""


async def _back_to(
    conversation: Conversation, agent: Agent, point: Point, files: WorkspaceChanges, now: str
) -> None:
    """Go on from before a prompt, which is put back for editing; `now` is the checkpoint of
    the files before anything is restored."""
    services, frontend = conversation.services, conversation.frontend
    restores = bool(files.own or files.beside)
    try:
        await agent.session.rewind(point.record.id, checkpoint=now if restores else "")
    except HoldfastError as error:
        frontend.say(error.message, "error", hint="Nothing rewound.")
        return
    done: list[RestoredFile] = []
    if restores:
        root, copies = services.workspace, agent.full_outputs
        done = await _restored(agent.checkpoints, files, root, copies)
    mode, model = agent.permissions.mode, agent.models.current
    conversation.images.learn(point.record)  # which stands on another branch from now on
    frontend.put_prompt(point.text, replace=True)
    await switch_session(conversation, SessionChoice(agent.session.path))
    if conversation.agent is None:
        return
    conversation.agent.permissions.mode = mode
    if conversation.agent.models.current != model:
        await use_model(conversation, model)
    frontend.refresh()
    frontend.say(REWOUND, "success")
    _report(conversation, done)


async def _restored(
    checkpoints: Checkpoints | None, files: WorkspaceChanges, root: Path, copies: Path
) -> list[RestoredFile]:
    """Bring files back, and take a checkpoint of that; what became of each."""
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
    done = put_back(found, store)
    return [each for each in done if each.path not in folders or each.outcome not in _RESTORED]


async def _undo(conversation: Conversation) -> None:
    """Bring back the files that the last rewind replaced; the conversation stays."""
    agent, say = conversation.agent, conversation.frontend.say
    states = _last_rewind(agent.session.records) if agent else None
    if agent is None or agent.checkpoints is None or states is None:
        say("No files to bring back: this session wasn't rewound with its files.")
        return
    store = await asyncio.to_thread(agent.checkpoints.store)
    try:
        replaced = await asyncio.to_thread(store.difference, *states)
    except CheckpointError as error:
        say(error.message, "error", hint="Nothing changed.")
        return
    done = await asyncio.to_thread(_put_back, replaced, store)
    say("Files as before the rewind. The conversation stays as it is.", "success")
    _report(conversation, done)


def _last_rewind(records: Sequence[Record]) -> tuple[str, str] | None:
    """The checkpoints before and after the last rewind that restored files."""
    before = ""
    last = None
    for record in records:
        id_ = str(record.data.get("checkpoint") or "")
        if record.type == "rewind":
            before = id_
        elif record.type == CHECKPOINT and record.data.get("by") == "rewind" and before:
            last = (before, id_)
    return last


def points(records: Sequence[Record], checkpoints: Checkpoints | None = None) -> list[Point]:
    """The typed prompts of a branch, oldest first. Blocks."""
    places = [
        place
        for place, record in enumerate(records)
        if record.type == "user"
        and isinstance(record.data.get("text"), str)
        and prompt_of(record.data).strip()
    ]
    difference: Difference = checkpoints.store().difference if checkpoints else _unknown
    changed = own_paths(records, places, difference)
    return [
        Point(records[place], place, prompt_of(records[place].data), len(paths))
        for place, paths in zip(places, changed, strict=True)
    ]


def _unknown(first: str, second: str) -> Sequence[Change]:
    raise CheckpointError(f"{first} and {second} aren't stored.")


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


def _report(conversation: Conversation, done: Sequence[RestoredFile]) -> None:
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
    level: Level = "info" if good == len(done) else "warning"
    conversation.frontend.report(
        Report(f"Restored {good} of {plural(len(done), 'file')}.", lines, level)
    )


def _shown_path(path: Path, root: Path) -> str:
    return one_line(str(path.relative_to(root)) if root in path.parents else str(path))
