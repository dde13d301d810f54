"""Mask and pin a tool's result where it is seen: in the conversation, or in the output pane."""

from __future__ import annotations

from typing import Literal

from tui.context.overrides import Overlay
from tui.ui.turn_controller import Bridge
from tui.ui.widgets.conversation.items import ToolItem


async def mark(bridge: Bridge, what: Literal["mask", "pin"], *, shown: bool = False) -> None:
    """Mask or pin the result of the tool call under the cursor, or undo that.

    `shown`: of the one whose output is shown.
    """
    chat, agent = bridge.chat, bridge.agent
    item = bridge.presenter.shown if shown else chat.conversation.cursor
    say = chat.side.say_of_mark if shown else chat.notice.say
    if agent is None or not isinstance(item, ToolItem):
        say(f"There is no tool call here to {what}.", hint="Tab and ↑ ↓ choose one, F2 shows all.")
        return
    records = reversed(agent.session.records)
    wanted = (r for r in records if r.type == "tool_result" and r.data.get("call_id") == item.id)
    record = next(wanted, None)
    if record is None:
        say("The model has no result of this call.")
        return
    if what == "mask":
        overlay = Overlay(record.id, "full" if item.masked else "masked")
        told = await agent.overlay([overlay])
    else:
        told = await agent.pin({record.id: not item.pinned})
    for event in told:
        bridge.presenter.show(event)
