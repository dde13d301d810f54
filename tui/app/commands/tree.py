"""/tree: shows all branches of the session and continues on any, with the files or without."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui.app.branch_switch import Departure, ask_and_go, go
from tui.app.dialog_data import UNDO, BranchQuestion, BranchRow
from tui.app.reports.branches import branch_rows
from tui.context.workspace_changes import (
    WorkspaceChanges,
    changed_between,
    checkpoint_at_end,
    git_branch_at,
)
from tui.core.facts import Rewound
from tui.core.images import prompt_of
from tui.session.branches import branch_named, branches
from tui.session.checkpoints.entries import CheckpointError
from tui.session.reader import path_to, read
from tui.session.records import Record

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.app.conversation import Conversation


async def tree(conversation: Conversation, wanted: str) -> None:
    """Choose a branch to continue on, or name it by its number in the list or its id."""
    agent, say = conversation.idle_agent(), conversation.frontend.say
    if agent is None:
        return
    if wanted == UNDO:
        await undo(conversation)
        return
    records = await _all_records(agent)  # the session in memory has only its own branch
    prices = conversation.services.settings.now.prices
    rows = await asyncio.to_thread(branch_rows, records, prices)
    if agent.session.path is None or not any(row.prompts for row in rows):
        say("No branches yet. /rewind starts one.")
        return
    leaf = _named(records, rows, wanted) if wanted else ""
    if not leaf:
        question = BranchQuestion(rows, last_move(agent) is not None)
        leaf = await conversation.frontend.choose(question) or ""
    if not leaf or conversation.agent is not agent:
        return
    if leaf == UNDO:
        await undo(conversation)
    elif next((row.current for row in rows if row.leaf == leaf), False):
        say("You are already on this branch.")
    else:
        await _to(conversation, agent, records, leaf)


async def undo(conversation: Conversation) -> None:
    """Go back to where the last rewind or switch of branches came from; with the files, if it
    restored them."""
    agent = conversation.idle_agent()
    if agent is None:
        return
    move = last_move(agent)
    records = await _all_records(agent)
    if move is None or not path_to(records, move.left):
        conversation.frontend.say("No rewind to undo on this branch.")
        return
    if await _to(conversation, agent, records, move.left, undone=move):
        target = next((one for one in records if one.id == move.target), None)
        _take_back_prompt(conversation, target)


def last_move(agent: Agent) -> Rewound | None:
    """The last rewind or switch of branches that led to where the session is."""
    records = reversed(agent.session.records)
    found = next((record for record in records if record.type == "rewind"), None)
    return Rewound.of_record(found.data) if found else None


async def _to(
    conversation: Conversation,
    agent: Agent,
    records: Sequence[Record],
    leaf: str,
    *,
    undone: Rewound | None = None,
) -> bool:
    """Continue after a branch's last record. An undone move takes the files along if it had
    restored them. False if nothing changed."""
    branch = path_to(records, leaf)
    now = await agent.checkpoints.now() if agent.checkpoints else ""
    # The record of a move names the checkpoint that it left, later than the end of the branch.
    then = undone.checkpoint if undone else checkpoint_at_end(records, branch)
    since = await asyncio.to_thread(_since, agent, branch, then, now)

    async def move(restores: bool) -> Record:
        return await agent.session.move_to(branch, checkpoint=now, restores=restores)

    departure = Departure(since, now, git_branch_at(branch), "on that branch")
    if undone is None:
        return await ask_and_go(conversation, agent, departure, move)
    if not undone.restores:
        departure = Departure(WorkspaceChanges(), now, departure.git)
    elif not since.known:
        text = "The files stay as they are: their checkpoint is no longer stored."
        conversation.frontend.say(text, "warning")
    return await go(conversation, agent, departure, move)


def _since(agent: Agent, branch: Sequence[Record], then: str, now: str) -> WorkspaceChanges:
    """Find how the files differ from where a branch ended. Blocks. Without its checkpoints that
    isn't known, and the files stay."""
    if agent.checkpoints is None:
        return WorkspaceChanges(known=False)
    difference = agent.checkpoints.store().difference
    try:
        return changed_between(agent.session.records, branch, then, now, difference)
    except CheckpointError:
        return WorkspaceChanges(known=False)


async def _all_records(agent: Agent) -> Sequence[Record]:
    """The records of all branches, as the file has them."""
    path = agent.session.path
    if path is None:
        return agent.session.records
    await agent.session.sync()
    return (await asyncio.to_thread(read, path)).records


def _named(records: Sequence[Record], rows: Sequence[BranchRow], wanted: str) -> str:
    """The leaf of the branch that is meant. Raises SessionError."""
    if wanted.isdecimal() and len(wanted) < 10 and 1 <= int(wanted) <= len(rows):
        return rows[int(wanted) - 1].leaf
    return branch_named(branches(records), wanted).leaf


def _take_back_prompt(conversation: Conversation, target: Record | None) -> None:
    """Clear the prompt that a rewind had put back, where nobody has edited it."""
    frontend = conversation.frontend
    if target is not None and frontend.prompt_text.strip() == prompt_of(target.data).strip():
        frontend.put_prompt("", replace=True)
