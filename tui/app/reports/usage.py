"""/usage: what a session has cost, and where it went: by prompt, tool, file and so on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Final

from tui.app.reports import Report, Row
from tui.app.reports.usage_table import (
    IN_ORDER,
    UsageTable,
    cut_off,
    row_words,
    table_of,
    unknown_prices,
)
from tui.context.usage.attribution import Attribution, Grouping, LiveAttribution
from tui.core.dataclass import replace
from tui.core.formatting import money, plural, tokens

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.agent.limits import SessionCost

GROUPED: Final[tuple[Grouping, ...]] = (
    "prompt", "kind", "tool", "file", "model", "break", "brought", "agent", "server", "skill",
    "profile",
)  # fmt: skip
"""The groupings of a session, in the order in which they are shown."""
_SPOKEN: Final = 12
LOOK_S: Final = 0.4
"""Seconds after which what is known is shown, though not all is read."""


def attribution_of(agent: Agent) -> Attribution:
    """Share out the bills of the agent's session, other branches included. Blocks: that of a long
    one takes a while."""
    session = agent.session
    live = LiveAttribution(agent.models.prices, cwd=session.header.cwd)
    return live.follow(session.records, session.elsewhere)


class SessionUsage:
    """The tokens and the money of an agent's session by what they were spent on, kept up to
    date."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._live = LiveAttribution(agent.models.prices, cwd=agent.session.header.cwd)

    @property
    def version(self) -> object:
        """Another value as soon as there is something new to tell."""
        spending = self._agent.spending().session
        return spending.requests, spending.usage.total, len(self._agent.session.elsewhere)

    def read(self) -> Iterator[tuple[dict[str, UsageTable], Sequence[str]]]:
        """Yield the rows of each grouping, and what else there is to say: where that takes a while
        also those of the bills alone, and what is known from time to time. Each step blocks."""
        session, live = self._agent.session, self._live
        records, elsewhere = session.records, session.elsewhere
        looked, bills = perf_counter(), dict[str, UsageTable]()
        for share in live.reading(records, elsewhere):
            if share == 1 or perf_counter() - looked < LOOK_S:
                continue
            if not bills:
                known, _ = usage_tables(live.billed(records, elsewhere))
                bills = {by: known[by] for by in ("prompt", "model")}
            tables, notes = usage_tables(live.so_far())
            partial = {by: replace(table, whole=False) for by, table in tables.items()}
            percent = f"{share:.0%}".replace("%", " %")
            reading = (
                f"{percent} of the record read so far; only prompts and models are complete yet."
            )
            yield partial | bills, [reading, *notes]
            looked = perf_counter()
        yield usage_tables(live.so_far())

    def summary(self) -> Sequence[str]:
        """The session's cost in words."""
        return [spoken_total(self._agent.spending())]


def usage_tables(found: Attribution) -> tuple[dict[str, UsageTable], Sequence[str]]:
    """The rows of each grouping, and what else there is to say."""
    tables: dict[str, UsageTable] = {}
    for by in GROUPED:
        names = {key: f"{key}. {title}" for key, title in found.titles.items()}
        tables[by] = table_of(by, found.rows(by), names if by in IN_ORDER else {})
    notes = [unknown_prices([*found.unknown]), cut_off(found.cut_off)]
    return tables, [*filter(None, notes)]


def spoken_total(spending: SessionCost) -> str:
    """The session's cost and that of its last prompt, in a sentence."""
    both = (("Session", spending.session), ("last prompt", spending.prompt))
    words = [
        f"{name}: {money(spent.usd)} for {plural(spent.requests, 'request')}"
        for name, spent in both
        if spent.requests
    ]
    if not words:
        return "Nothing was spent yet."
    share = spending.session.usage.cache_share
    percent = "" if share is None else f"{share:.0%}".replace("%", " %")
    cached = f"; {percent} of the input came from the cache" if percent else ""
    return f"{'; '.join(words)}{cached}."


def spoken_tables(found: Attribution, words: str) -> list[str]:
    """Say where it went, for whoever hears it: by kind of content, or by what is asked for."""
    tables, notes = usage_tables(found)
    asked = words.strip().lower()
    table = tables[asked if asked in tables else "kind"]
    total = table.total
    told = [row_words(row, total) for row in table.rows[:_SPOKEN]]
    if (more := len(table.rows) - _SPOKEN) > 0:
        told.append(f"and {plural(more, 'more row')}")
    others = ", ".join(by for by in GROUPED if by != table.by)
    return [*told, *notes, f"/usage {others.replace(', ', ', /usage ')} tell more."]


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
