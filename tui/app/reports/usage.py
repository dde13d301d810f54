"""/usage: what a session has cost by price class, and beside it what the last prompt has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.app.reports import Report, Row
from tui.core.formatting import money, tokens

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.app.conversation import Conversation


async def usage(conversation: Conversation, _: str) -> None:
    if agent := conversation.open_agent():
        conversation.frontend.report(usage_report(agent))


def usage_report(agent: Agent) -> Report:
    spending = agent.spending()
    both = (spending.prompt, spending.session)
    uses = [spent.usage for spent in both]
    rows = (
        ("requests", [str(spent.requests) for spent in both]),
        ("input", [tokens(use.input_tokens) for use in uses]),
        ("cache write", [tokens(use.cache_creation_input_tokens) for use in uses]),
        ("cache read", [tokens(use.cache_read_input_tokens) for use in uses]),
        ("output", [tokens(use.output_tokens) for use in uses]),
        ("cost", [money(spent.usd if spent.requests else None) for spent in both]),
    )
    unpriced = "One of the models has no known price, so the cost is unknown."
    return Report(
        "Usage in tokens",
        [Row(name, tuple(values)) for name, values in rows],
        columns=("last prompt", "session"),
        notes=() if spending.session.usd is not None else (unpriced,),
    )
