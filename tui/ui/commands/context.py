"""Commands about what the model sees: compaction, pruning, pins, memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.app.ports import Agent
from tui.core.formatting import plural, tokens

if TYPE_CHECKING:
    from tui.agent.compaction import Preview
    from tui.context.token_ledger import Item
    from tui.ui.session_flow.command_context import Desk

_SHOWN = 6


def _free(desk: Desk) -> Agent | None:
    """The agent, while it does nothing; else it is said why not."""
    bridge = desk.bridge
    if bridge.agent is None:
        bridge.chat.notice.say("No session is open yet.")
    elif bridge.busy:
        bridge.chat.notice.say("The agent is at work.", "warning", hint="Esc stops it.")
    elif bridge.agent.session.read_only:
        bridge.chat.notice.say("This session is open read-only.", hint="/fork goes on with a copy.")
    else:
        return bridge.agent
    return None


def context(desk: Desk, _: str) -> None:
    from tui.ui.screens.context import ContextScreen  # noqa: PLC0415 - as those below: on demand

    bridge = desk.bridge
    if bridge.agent is None:
        bridge.chat.notice.say("No session is open yet.")
        return
    root = bridge.services.workspace
    desk.app.push_screen(ContextScreen(bridge.agent, bridge.presenter.show, root))


async def pin(desk: Desk, _: str) -> None:
    from tui.ui.session_flow.mask_pin import mark  # noqa: PLC0415

    await mark(desk.bridge, "pin")


def compact(desk: Desk, focus: str) -> None:
    """Show what a compaction would do; do it when that is wanted."""
    agent = _free(desk)
    if agent is None:
        return
    planned = agent.plan_compaction(focus)
    if planned is None:
        desk.bridge.chat.notice.say("There is nothing to compact yet.")
        return
    desk.app.run_worker(_compact(desk, agent, planned), group="compact", exclusive=True)


async def _compact(desk: Desk, agent: Agent, planned: Preview) -> None:
    from tui.ui.widgets.choice_dialog import Way, WaysModal  # noqa: PLC0415

    text = (
        f"{tokens(planned.tokens_summarised)} of {tokens(planned.tokens_before)} tokens become a"
        f" summary; {tokens(planned.tokens_kept)} stay word for word. Nothing is lost:"
        " /uncompact brings everything back."
    )
    if planned.focus:
        text += f"\n\nThe summary attends to: {planned.focus}"
    modal = WaysModal(
        "Compact the context?",
        text,
        (Way("c", "Compact", "compact"), Way("b", "Back", "back")),
        details=preview_lines(planned),
    )
    wanted = await desk.app.push_screen_wait(modal)
    if wanted == "compact" and desk.bridge.agent is agent:
        desk.bridge.beside("compacting", agent.compact(planned.focus))


def preview_lines(planned: Preview) -> list[str]:
    """What becomes a summary, what is pinned and what is kept, the largest items named."""
    lines: list[str] = []
    parts = (
        ("summarised", planned.summarised),
        ("pinned", planned.pinned),
        ("kept", planned.kept),
    )
    for name, items in parts:
        total = sum(item.tokens for item in items)
        lines.append(f"{name}: {plural(len(items), 'item')}, {tokens(total)} tokens")
        largest = sorted(items, key=lambda item: -item.tokens)[:_SHOWN]
        lines += [f"  {tokens(item.tokens):>6}  {_label(item)}" for item in largest]
        if len(items) > _SHOWN:
            lines.append(f"          and {len(items) - _SHOWN:,} more")
    return lines


def _label(item: Item) -> str:
    from tui.core.text_cleaning import one_line  # noqa: PLC0415

    return one_line(f"{item.kind} {item.label}".strip())[:60]


async def uncompact(desk: Desk, _: str) -> None:
    agent = _free(desk)
    if agent is not None:
        for event in await agent.uncompact():
            desk.bridge.presenter.show(event)


async def prune(desk: Desk, _: str) -> None:
    """Leave out at once the old results that are still sent."""
    from tui.context.overrides import Overlay  # noqa: PLC0415

    agent = _free(desk)
    if agent is None:
        return
    say = desk.bridge.chat.notice.say
    due = agent.view().due
    if not due:
        say("No old result is waiting to be pruned.", hint="/context masks any single item.")
        return
    why = "asked for by /prune"
    changes = [Overlay(one.record, "pruned", "person", why, age=one.age) for one in due]
    for event in await agent.overlay(changes):
        desk.bridge.presenter.show(event)
    say(f"{plural(len(due), 'old result')} pruned.", "success", hint="/context shows them.")


async def memory(desk: Desk, argument: str) -> None:
    """Open MEMORY.md, or let the model save to it what is worth keeping."""
    from tui.core.workspace import PRIVATE_DIR  # noqa: PLC0415
    from tui.ui.commands.editing import edit_file  # noqa: PLC0415

    say = desk.bridge.chat.notice.say
    if argument.lower() == "save":
        agent = _free(desk)
        if agent is None:
            return
        if agent.memory_pending:
            desk.bridge.beside("saving to memory", agent.flush_memory())
        else:
            say("There is nothing new to save.")
        return
    if argument:
        say(f"/memory {argument} is not known.", "warning", hint="/memory, or /memory save")
        return
    path = desk.bridge.services.workspace / PRIVATE_DIR / "MEMORY.md"
    if not path.is_file():
        say("There is no MEMORY.md here yet.", hint="/memory save writes it.")
        return
    edit_file(desk, path)
