"""/context and /pin: what the model sees, listed by number, masked and pinned by number."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from tui.context.overrides import SPEAKING, Overlay
from tui.context.token_ledger import Item
from tui.core.errors import UsageError
from tui.plain.event_lines import meter
from tui.plain.speech_text import counted, sentence, shown, spoken

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.plain.frontend import PlainFrontend

SHOWN: Final = 30
"""So many items are listed: the last ones. `/context all` lists every one."""
_USAGE: Final = "/context, /context all, /context mask N, unmask N, pin N, unpin N, or read N"


async def context(frontend: PlainFrontend, argument: str) -> None:
    """The items of the next request with their tokens; mask, unmask, pin or unpin one."""
    agent = frontend.conversation.open_agent()
    if agent is None:
        return
    await asyncio.to_thread(agent.view)  # so that the ledger knows how all items stand
    items = agent.ledger.items()
    verb, _, number = argument.strip().lower().partition(" ")
    if verb in {"", "all"} and not number:
        _list(frontend, items, 0 if verb else max(0, len(items) - SHOWN))
        return
    item = _numbered(items, number)
    match verb:
        case "mask" | "unmask":
            view = "masked" if verb == "mask" else "full"
            await _changed(frontend, agent, item, Overlay(_speaking(agent, item), view))
        case "pin" | "unpin":
            await _pinned(frontend, agent, item, on=verb == "pin")
        case "read":
            frontend.terminal.say(*_text(agent, item))
        case _:
            raise UsageError(f"/context {argument} is not known.", hint=_USAGE)


async def pin(frontend: PlainFrontend, argument: str) -> None:
    """/pin N pins an item of /context, or lets it go; /pin alone the newest result."""
    agent = frontend.conversation.open_agent()
    if agent is None:
        return
    await asyncio.to_thread(agent.view)
    items = agent.ledger.items()
    if argument.strip():
        item = _numbered(items, argument)
    else:
        results = [one for one in items if one.kind == "result"]
        if not results:
            frontend.terminal.say("There is no tool result yet. /context lists what there is.")
            return
        item = results[-1]
    await _pinned(frontend, agent, item, on=not item.pinned)


def _list(frontend: PlainFrontend, items: list[Item], start: int) -> None:
    measured = frontend.speaker.measured
    frontend.terminal.say(
        f"Context: {meter(measured)}" if measured else "Nothing was measured yet."
    )
    if start:
        left = sum(item.tokens for item in items[:start])
        frontend.terminal.say(f"Items 1 to {start}: {counted(left)}. /context all lists them too.")
    frontend.terminal.say(
        *(item_line(number, item) for number, item in enumerate(items, 1) if number > start)
    )
    frontend.terminal.say(sentence(_USAGE))


def item_line(number: int, item: Item) -> str:
    """One item of the context: what it is, what it weighs, how it stands."""
    facts = [item.kind, counted(item.tokens), spoken(item.label)]
    facts += [item.state] if item.state != "full" else []
    facts += ["pinned"] if item.pinned else []
    return f"{number}: {', '.join(filter(None, facts))}"


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


async def _changed(frontend: PlainFrontend, agent: Agent, item: Item, overlay: Overlay) -> None:
    before = agent.ledger.tokens
    for event in await agent.overlay([overlay]):
        frontend.show(event)
    saved = before - agent.ledger.tokens
    if saved:
        frontend.terminal.say(
            f"{spoken(item.label)}: {counted(abs(saved))} {'less' if saved > 0 else 'more'}."
        )


async def _pinned(frontend: PlainFrontend, agent: Agent, item: Item, *, on: bool) -> None:
    for event in await agent.pin({_speaking(agent, item): on}):
        frontend.show(event)


def _text(agent: Agent, item: Item) -> list[str]:
    """The whole of an item."""
    from tui.context.overrides import content_of  # noqa: PLC0415 - on demand
    from tui.core.messages import text_of  # noqa: PLC0415

    fixed = agent.fixed_texts().get(item.id)
    record = next((r for r in agent.session.records if r.id == item.id), None)
    text = fixed if fixed is not None else text_of(content_of(record)) if record else ""
    return shown(text or "It holds no text.")
