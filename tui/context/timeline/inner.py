"""The timelines of sub-agents' own sessions: what went on inside a bar of their lane. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tui.context.timeline.fold import SessionTimeline
from tui.core.config import Price
from tui.core.messages import string_of
from tui.session.records import SUB_AGENT, Record


def inner_timelines(
    branch: Iterable[Record],
    children: Mapping[str, Sequence[Record]],
    prices: Mapping[str, Price],
) -> dict[str, SessionTimeline]:
    """Fold the runs of sub-agents, by the records that end them. `children` are the records of
    their sessions, by id; one that continues has a run for each call."""
    begun: dict[str, str] = {}
    found: dict[str, SessionTimeline] = {}
    for record in branch:
        if record.type != SUB_AGENT:
            continue
        call = string_of(record.data.get("call_id"))
        if record.data.get("state") == "started":
            begun[call] = record.id
            continue
        own = children.get(string_of(record.data.get("session")), ())
        if first := begun.pop(call, ""):
            own = [one for one in own if _ms(first) <= _ms(one.id) <= _ms(record.id)]
        if own:
            found[record.id] = made = SessionTimeline(prices)
            made.extend(own)
    return found


def _ms(id_: str) -> str:
    """The time in a record's id, which is all by which ids of two sessions can be compared."""
    return id_[:11]
