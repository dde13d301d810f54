"""/usage: tokens and cost, of the last prompt and of the session."""

from __future__ import annotations

from tui.app.ports import Agent
from tui.core.formatting import money, tokens

UNPRICED = "A model without a configured price answered, so the cost is not known."


def usage_rows(agent: Agent) -> list[tuple[str, list[str]]]:
    """What /usage tells: a name, then the last prompt's figure and the session's."""
    found = agent.spending()
    both = (found.prompt, found.session)
    uses = [spent.usage for spent in both]
    return [
        ("", ["last prompt", "session"]),
        ("requests", [str(spent.requests) for spent in both]),
        ("input", [tokens(use.input_tokens) for use in uses]),
        ("cache write", [tokens(use.cache_creation_input_tokens) for use in uses]),
        ("cache read", [tokens(use.cache_read_input_tokens) for use in uses]),
        ("output", [tokens(use.output_tokens) for use in uses]),
        ("cost", [money(spent.usd if spent.requests else None) for spent in both]),
    ]
