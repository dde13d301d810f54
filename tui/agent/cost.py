"""What a session has cost, from its record: so it is known after a resume as well. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tui.agent.limits import Spent
from tui.core.config import Price
from tui.core.messages import Usage
from tui.session.records import Record

_COSTLY = frozenset({"assistant", "compaction", "memory"})


@dataclass(frozen=True, slots=True)
class Spending:
    """The answers of a whole session, and of them those since its last prompt was typed."""

    session: Spent = field(default_factory=Spent)
    prompt: Spent = field(default_factory=Spent)


def spending(records: Sequence[Record], prices: Mapping[str, Price]) -> Spending:
    """What the recorded answers cost, summaries and notes for the memory included.

    What an attempt cost that came to nothing is in no record, and is not counted.
    """
    session, prompt = Spent(), Spent()
    for record in records:
        if record.type == "user":
            prompt = Spent()
        elif record.type in _COSTLY and (usage := Usage.from_json(record.data.get("usage"))).total:
            one = Spent.on(usage, prices.get(str(record.data.get("model"))))
            session, prompt = session + one, prompt + one
    return Spending(session, prompt)
