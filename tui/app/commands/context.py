"""Commands about what the model sees, and about what the agent may do."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from tui.app.dialog_data import AnswerOption, ChoiceQuestion
from tui.core.errors import StorageError
from tui.core.fact_words import RELOAD_WAITS, price_before
from tui.core.facts import Overlay
from tui.core.formatting import plural, tokens
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line
from tui.core.workspace import PRIVATE_DIR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui.agent.agent import Agent
    from tui.agent.compaction import CompactionPreview
    from tui.app.conversation import Conversation
    from tui.context.token_ledger import Item
    from tui.permissions.types import Mode

_SHOWN = 6
_AT_ONCE_S = 0.1
"""Seconds that a price may take without anything to see."""

_MODES: dict[str, Mode] = {
    "on": "plan",
    "edits": "accept_edits",
    "accept edits": "accept_edits",
    "ask": "ask",
    "off": "ask",
}


async def compact(conversation: Conversation, focus: str) -> None:
    """Show what a compaction would do; do it when that is wanted."""
    agent = conversation.idle_agent()
    if agent is None:
        return
    planned = await agent.context.plan_compaction(focus)
    if conversation.agent is not agent:
        return
    if planned is None:
        conversation.frontend.say("Nothing to compact yet.")
        return
    text = (
        f"Summarizes {tokens(planned.tokens_summarised)} of {tokens(planned.tokens_before)} tokens "
        f"and keeps {tokens(planned.tokens_kept)} unchanged. "
        "Undo with /uncompact."
    )
    if planned.price:
        text += f"\n\nPrice: {planned.price.sentence}."
    if planned.exam:
        text += f"\nExam of the summary: {planned.exam}."
    if planned.focus:
        text += f"\n\nThe summary focuses on: {planned.focus}"
    question = ChoiceQuestion(
        "Compact the context?",
        text,
        (AnswerOption("c", "Compact", "compact"),),
        details=preview_lines(planned),
    )
    wanted = await conversation.frontend.choose(question)
    # another session may have been opened meanwhile
    if wanted == "compact" and conversation.agent is agent:
        conversation.start_side_work("compacting", agent.context.compact(planned.focus))


def preview_lines(planned: CompactionPreview) -> list[str]:
    """List what becomes a summary, what is pinned and what is kept, the largest items named."""
    lines: list[str] = []
    parts = (("summarized", planned.summarised), ("pinned", planned.pinned), ("kept", planned.kept))
    for name, items in parts:
        total = sum(item.tokens for item in items)
        lines.append(f"{name}: {plural(len(items), 'item')}, {tokens(total)} tokens")
        largest = sorted(items, key=lambda item: -item.tokens)[:_SHOWN]
        lines += [f"  {tokens(item.tokens):>6}  {_label(item)}" for item in largest]
        if len(items) > _SHOWN:
            lines.append(f"          and {len(items) - _SHOWN:,} more")
    return lines


def _label(item: Item) -> str:
    return one_line(f"{item.kind} {item.label}".strip())[:60]


async def uncompact(conversation: Conversation, _: str) -> None:
    if agent := conversation.idle_agent():
        for event in await agent.context.uncompact():
            conversation.frontend.show(event)


async def reload(conversation: Conversation, _: str) -> None:
    """Take the files and tools of now into the system prompt, after the price was shown."""
    agent = conversation.idle_agent()
    if agent is None:
        return

    async def price() -> str:
        return f"Price now: {price_before(await agent.context.reload_cost())}."

    question = ChoiceQuestion(
        "Reload instructions and tools?",
        "The next request starts with the current versions."
        " With the next /compact this costs nothing extra.",
        (
            AnswerOption("r", "Reload now", "reload"),
            AnswerOption("w", "When the cache restarts anyway", "wait"),
        ),
        later=asyncio.create_task(price(), name="price"),
    )
    wanted = await conversation.frontend.choose(question)
    if conversation.agent is not agent:
        return
    if wanted == "reload":
        agent.context.reload()
        conversation.frontend.say("The next request uses the current instructions and tools.")
    elif wanted == "wait":
        agent.context.reload(wait=True)
        conversation.frontend.say(RELOAD_WAITS)


async def prune(conversation: Conversation, _: str) -> None:
    """Leave out at once what pruning has put off until it pays."""
    agent, say = conversation.idle_agent(), conversation.frontend.say
    if agent is None:
        return
    due = agent.context.view().due
    if not due:
        say("No old results to leave out.", hint="/context hides single items.")
        return
    why = "asked for by /prune"
    changes = [Overlay(o.record, "pruned", "person", why, age=o.age) for o in due]
    wanted = await _when_to_prune(conversation, agent, changes)
    if wanted == "" or conversation.agent is not agent:
        return
    wait = wanted == "wait"
    for event in await agent.context.overlay([structs.replace(o, wait=wait) for o in changes]):
        conversation.frontend.show(event)
    done = "will be left out when the cache restarts" if wait else "left out"
    say(f"{plural(len(due), 'old result')} {done}.", "success", hint="See /context.")


async def _when_to_prune(
    conversation: Conversation, agent: Agent, changes: Sequence[Overlay]
) -> str:
    """Now, with the next break, or not: asked where it costs something, and where it takes long to
    say what it costs."""
    weigh = agent.context.ledger.would
    saved = sum(weigh(change.target, None) for change in changes)
    pricing = asyncio.create_task(agent.context.price_of_changes(changes, saved), name="price")
    await asyncio.wait({pricing}, timeout=_AT_ONCE_S)
    if pricing.done() and not (pricing.result().tokens or pricing.result().thoughts):
        return "now"

    async def words() -> str:
        return f"{(await pricing).sentence}."

    question = ChoiceQuestion(
        "Leave out old results?",
        f"Leave out {plural(len(changes), 'result')}.",
        (
            AnswerOption("n", "Now", "now"),
            AnswerOption("w", "When the cache restarts anyway", "wait"),
        ),
        later=asyncio.create_task(words(), name="price in words"),
    )
    return await conversation.frontend.choose(question) or ""


async def memory(conversation: Conversation, argument: str) -> None:
    """Show MEMORY.md, save a note to it, or let the model save what is worth keeping."""
    say = conversation.frontend.say
    path = conversation.services.workspace / PRIVATE_DIR / "MEMORY.md"
    if argument.lower() == "save":
        agent = conversation.idle_agent()
        if agent is None:
            return
        if agent.context.memory_pending:
            conversation.start_side_work("saving to memory", agent.context.flush_memory())
        else:
            say("Nothing new to remember.")
        return
    if argument:
        await _keep_note(conversation, path, argument)
    elif path.is_file():
        await conversation.frontend.show_file(path)
    else:
        say("No MEMORY.md here yet.", hint="/memory save creates it.")


async def _keep_note(conversation: Conversation, path: Path, note: str) -> None:
    from tui.context.memory import NOTE_MAX, remember  # noqa: PLC0415 - where it is asked for

    say, today = conversation.frontend.say, conversation.services.clock.now().date()
    if len(note) > NOTE_MAX:
        say(f"A note has at most {NOTE_MAX} characters.", "warning", hint="/memory edits the file.")
        return
    try:
        saved = await asyncio.to_thread(remember, path, [note], today)
    except StorageError as error:
        say(error.message, "error")
        return
    if saved.added:
        say("Saved to MEMORY.md.", "success", hint="New sessions read it; /reload uses it now.")
    else:
        say("MEMORY.md has this note already.")


async def plan(conversation: Conversation, wanted: str) -> None:
    """Into plan mode, or back to asking; /plan edits accepts edits, /plan show shows the plan."""
    agent, say = conversation.open_agent(), conversation.frontend.say
    if agent is None:
        return
    if wanted.strip().lower() == "show":
        await _show_plan(conversation, agent)
        return
    other: Mode = "ask" if agent.permissions.mode == "plan" else "plan"
    mode = _MODES.get(wanted.strip().lower()) if wanted.strip() else other
    if mode is None:
        say(
            f"Unknown /plan {wanted}.",
            "warning",
            hint="Use /plan, /plan show, /plan edits or /plan ask.",
        )
        return
    agent.permissions.mode = mode
    conversation.frontend.refresh()
    match mode:
        case "plan":
            say("Plan mode: the agent reads, then shows you a plan.", hint="/plan again leaves it.")
        case "accept_edits":
            say(
                "File edits are accepted without asking; commands still ask.",
                hint="/plan ask leaves this mode.",
            )
        case _:
            say("Left plan mode: the agent asks before changing anything.")


async def _show_plan(conversation: Conversation, agent: Agent) -> None:
    from tui.agent.plans import last_approved  # noqa: PLC0415 - where it is asked for

    if plan := last_approved(agent.session.records):
        await conversation.frontend.show_plan(plan)
    else:
        conversation.frontend.say("No approved plan in this session.", hint="/plan starts one.")


async def add_dir(conversation: Conversation, folder: str) -> None:
    """Let the file tools work in another folder, until the program ends."""
    agent, say = conversation.open_agent(), conversation.frontend.say
    if agent is None:
        return
    if not folder:
        named = ", ".join(shorten(each) for each in agent.permissions.folders)
        say(f"The tools work in {named}.", hint="/add-dir FOLDER adds one.")
        return
    real = await asyncio.to_thread(_folder, conversation.services.workspace, folder)
    if real is None:
        say(f"{folder} isn't a folder.", "warning")
    elif agent.permissions.add_dir(real):
        say(f"The tools can now work in {shorten(real)} too,", "success", hint="until you quit.")
    else:
        say(f"{shorten(real)} is already included.")


def _folder(root: Path, typed: str) -> Path | None:
    """The folder that was typed; None where there is none. Blocks."""
    path = Path(typed.strip("\"'")).expanduser()
    real = Path(os.path.realpath(root / path))
    return real if real.is_dir() else None
