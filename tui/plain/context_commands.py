"""Commands about what the model sees: listed by number, masked and pinned by number."""

from __future__ import annotations

import asyncio
from typing import Final

from tui.agent.compaction import Preview
from tui.app.ports import Agent
from tui.context.overrides import SPEAKING, Overlay
from tui.context.token_ledger import Item
from tui.core.errors import UsageError
from tui.core.formatting import plural
from tui.core.workspace import PRIVATE_DIR
from tui.plain.conversation import Talk, free, opened
from tui.plain.event_lines import meter
from tui.plain.speech_text import counted, said, sentence, shown

SHOWN: Final = 30
"""So many items are listed: the last ones. `/context all` lists every one."""
_LARGE: Final = 3
"""So many of the items that a compaction replaces are named."""
_USAGE: Final = "/context, /context all, /context mask N, unmask N, pin N, unpin N, or read N"


async def context(talk: Talk, argument: str) -> None:
    """The items of the next request with their tokens; mask, unmask, pin or unpin one."""
    agent = opened(talk)
    await asyncio.to_thread(agent.view)  # so that the ledger knows how all items stand
    items = agent.ledger.items()
    verb, _, number = argument.strip().lower().partition(" ")
    if verb in {"", "all"} and not number:
        _list(talk, items, 0 if verb else max(0, len(items) - SHOWN))
        return
    item = _numbered(items, number)
    match verb:
        case "mask" | "unmask":
            view = "masked" if verb == "mask" else "full"
            await _changed(talk, agent, item, Overlay(_speaking(agent, item), view))
        case "pin" | "unpin":
            await _pinned(talk, agent, item, on=verb == "pin")
        case "read":
            talk.face.say(*_text(agent, item))
        case _:
            raise UsageError(f"/context {argument} is not known.", hint=_USAGE)


async def pin(talk: Talk, argument: str) -> None:
    """/pin N pins an item of /context, or lets it go; /pin alone the newest result."""
    agent = opened(talk)
    await asyncio.to_thread(agent.view)
    items = agent.ledger.items()
    if argument.strip():
        item = _numbered(items, argument)
    else:
        results = [one for one in items if one.kind == "result"]
        if not results:
            talk.face.say("There is no tool result yet. /context lists what there is.")
            return
        item = results[-1]
    await _pinned(talk, agent, item, on=not item.pinned)


async def compact(talk: Talk, focus: str) -> None:
    """Say what a compaction would do; do it when that is wanted."""
    agent = free(talk)
    if agent is None:
        return
    planned = agent.plan_compaction(focus)
    if planned is None:
        talk.face.say("There is nothing to compact yet.")
        return
    summed, before = f"{planned.tokens_summarised:,}", counted(planned.tokens_before)
    lines = [
        (
            f"Compact the context? {summed} of {before} become a summary;"
            f" {counted(planned.tokens_kept)} stay word for word. Nothing is lost:"
            " /uncompact brings everything back."
        ),
        *([f"The summary attends to: {said(planned.focus)}."] if planned.focus else []),
        *_parts(planned),
    ]
    if await talk.asker.confirm(lines, "compact", "back") and talk.agent is agent:
        await talk.beside(agent.compact(planned.focus))


def _parts(planned: Preview) -> list[str]:
    """What becomes a summary, the largest items named, and what stays."""
    large = sorted(planned.summarised, key=lambda item: -item.tokens)[:_LARGE]
    kept, pinned = len(planned.kept), len(planned.pinned)
    return [
        *(f"Summarised, among others: {_facts(item)}" for item in large),
        f"Kept: {plural(kept, 'item')}; pinned: {plural(pinned, 'item')}.",
    ]


async def uncompact(talk: Talk, _: str) -> None:
    if agent := free(talk):
        for event in await agent.uncompact():
            talk.teller.tell(event)


async def prune(talk: Talk, _: str) -> None:
    """Leave out at once the old results that are still sent."""
    agent = free(talk)
    if agent is None:
        return
    due = agent.view().due
    if not due:
        talk.face.say("No old result is waiting to be pruned. /context mask N masks any item.")
        return
    why = "asked for by /prune"
    changes = [Overlay(one.record, "pruned", "person", why, age=one.age) for one in due]
    await agent.overlay(changes)
    talk.face.say(f"{plural(len(due), 'old result')} pruned. /context shows them.")


async def memory(talk: Talk, argument: str) -> None:
    """Read MEMORY.md out, or let the model save to it what is worth keeping."""
    if argument.lower() == "save":
        agent = free(talk)
        if agent is None:
            return
        if agent.memory_pending:
            await talk.beside(agent.flush_memory())
        else:
            talk.face.say("There is nothing new to save.")
        return
    if argument:
        raise UsageError(f"/memory {argument} is not known.", hint="/memory, or /memory save")
    path = talk.services.workspace / PRIVATE_DIR / "MEMORY.md"
    try:
        text = await asyncio.to_thread(path.read_text, encoding="utf-8", errors="replace")
    except OSError:
        talk.face.say("There is no MEMORY.md here yet. /memory save writes it.")
        return
    talk.face.say(f"Memory, the file {path}:", *shown(text.rstrip()), "End of memory.")


def _list(talk: Talk, items: list[Item], start: int) -> None:
    measured = talk.teller.measured
    talk.face.say(f"Context: {meter(measured)}" if measured else "Nothing was measured yet.")
    if start:
        left = sum(item.tokens for item in items[:start])
        talk.face.say(f"Items 1 to {start}: {counted(left)}. /context all lists them too.")
    talk.face.say(
        *(item_line(number, item) for number, item in enumerate(items, 1) if number > start)
    )
    talk.face.say(sentence(_USAGE))


def item_line(number: int, item: Item) -> str:
    """One item of the context: what it is, what it weighs, how it stands."""
    facts = [f"{number}: {_facts(item)}"]
    facts += [item.state] if item.state != "full" else []
    facts += ["pinned"] if item.pinned else []
    return ", ".join(facts)


def _facts(item: Item) -> str:
    return ", ".join(filter(None, (item.kind, counted(item.tokens), said(item.label))))


def _numbered(items: list[Item], number: str) -> Item:
    if not number.strip().isdecimal() or not 1 <= int(number.strip()[:9]) <= len(items):
        known = f"a number from 1 to {len(items)}" if items else "nothing yet"
        raise UsageError(
            f"There is no item {number.strip() or 'named'}.", hint=f"It takes {known}."
        )
    return items[int(number) - 1]


def _speaking(agent: Agent, item: Item) -> str:
    """The id of an item's record. Raises UsageError for what every request carries."""
    if any(r.id == item.id and r.type in SPEAKING for r in agent.session.records):
        return item.id
    raise UsageError("Every request carries this: it can be neither masked nor pinned.")


async def _changed(talk: Talk, agent: Agent, item: Item, overlay: Overlay) -> None:
    before = agent.ledger.tokens
    for event in await agent.overlay([overlay]):
        talk.teller.tell(event)
    saved = before - agent.ledger.tokens
    if saved:
        talk.face.say(
            f"{said(item.label)}: {counted(abs(saved))} {'less' if saved > 0 else 'more'}."
        )


async def _pinned(talk: Talk, agent: Agent, item: Item, *, on: bool) -> None:
    for event in await agent.pin({_speaking(agent, item): on}):
        talk.teller.tell(event)


def _text(agent: Agent, item: Item) -> list[str]:
    """The whole of an item."""
    from tui.context.overrides import content_of  # noqa: PLC0415 - on demand
    from tui.core.messages import text_of  # noqa: PLC0415

    fixed = agent.fixed_texts().get(item.id)
    record = next((r for r in agent.session.records if r.id == item.id), None)
    text = fixed if fixed is not None else text_of(content_of(record)) if record else ""
    return shown(text or "It holds no text.")
