"""/rewind: return to an earlier prompt, with the files or without.

The session branches inside its file: what came since stays there, on a branch of its own (/tree),
and `undo` goes back to it. The files come from checkpoints, or where there is none from the copies
that the file tools made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui.app.branch_switch import Departure, ask_and_go
from tui.app.commands.tree import last_move, tree, undo
from tui.app.dialog_data import ALL_BRANCHES, UNDO, Point, PointQuestion
from tui.context.file_changes import changes
from tui.context.workspace_changes import (
    Difference,
    WorkspaceChanges,
    changed_since,
    git_branch_at,
    own_paths,
)
from tui.core.images import prompt_of
from tui.session.checkpoints.entries import Change, CheckpointError
from tui.session.records import Record

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.agent.checkpoints import Checkpoints
    from tui.app.conversation import Conversation

_TOLD = frozenset({"request", "assistant"})


async def rewind(conversation: Conversation, wanted: str) -> None:
    """Choose an earlier prompt, or name it by its number, 1 for the last; `undo` brings the
    conversation and the files back."""
    agent, say = conversation.agent, conversation.frontend.say
    if agent is not None and not conversation.says_idle():
        return
    if wanted == UNDO:
        await undo(conversation)
        return
    choices: list[Point] = []
    if agent is not None:
        choices = await asyncio.to_thread(points, list(agent.session.records), agent.checkpoints)
    if agent is None or not choices:
        hint = "/tree shows the session's other branches." if agent and last_move(agent) else ""
        say("Nothing to rewind yet.", hint=hint)
        return
    if agent.session.path is None:
        say("This session isn't saved to disk, so it can't be rewound.", "warning")
        return
    if conversation.idle_agent() is None:
        return
    number = int(wanted) if wanted.isdecimal() and len(wanted) < 10 else 0
    if wanted and not 1 <= number <= len(choices):
        say(f"No prompt {wanted}.", "warning", hint="See /rewind.")
        return
    answer = str(len(choices) - number) if wanted else None
    question = PointQuestion(choices, last_move(agent) is not None)
    answer = answer or await conversation.frontend.choose(question)
    if answer is None or conversation.agent is not agent:
        return
    if answer == ALL_BRANCHES:
        await tree(conversation, "")
    elif answer == UNDO:
        await undo(conversation)
    else:
        await _to(conversation, agent, choices[int(answer)])


async def _to(conversation: Conversation, agent: Agent, point: Point) -> None:
    """Continue from before a prompt, which returns to the input for editing."""
    now = await agent.checkpoints.now() if agent.checkpoints else ""
    since = await asyncio.to_thread(_since, agent, point, now)
    git = git_branch_at(_known_at(agent.session.records, point.place))

    async def move(restores: bool) -> Record:
        target, rewound = point.record.id, agent.session.rewind
        record = await rewound(target, checkpoint=now, restores=restores)
        conversation.images.learn(point.record)  # which stands on another branch from now on
        conversation.frontend.put_prompt(point.text, replace=True)
        return record

    await ask_and_go(conversation, agent, Departure(since, now, git, "at that prompt"), move)


def _known_at(records: Sequence[Record], place: int) -> Sequence[Record]:
    """The records up to a prompt, with what the model was told along with it."""
    after = range(place + 1, len(records))
    end = next((n for n in after if records[n].type in _TOLD), len(records))
    return records[:end]


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
