"""The bills in a session's records: of answers, questions beside them, sub-agents. Pure.

BILLED                the types of records that have bills
bills_of(record)      the bills in a record: of one model each
bill.price(prices)    the price that holds for it, None if that is not known
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from tui.core.config import Price
from tui.core.messages import Usage, string_of
from tui.provider.prices import ModelPrice, price_of
from tui.session.records import BATCH, COSTLY, SUB_AGENT, Record, paid_by, spent_in

Purpose: TypeAlias = Literal[
    "answers",
    "summaries",
    "memory notes",
    "titles",
    "goal checks",
    "side questions",
    "cache kept warm",
    "sub-agents",
]

BILLED: Final = frozenset({*COSTLY, SUB_AGENT})
"""The types of records that have bills."""

_PURPOSES: Final[Mapping[str, Purpose]] = {
    "assistant": "answers",
    "compaction": "summaries",
    "exam": "summaries",
    "unused": "summaries",
    "memory": "memory notes",
    "title": "titles",
    "goal": "goal checks",
    "side_question": "side questions",
    "cache_warmed": "cache kept warm",
}


class Bill(NamedTuple):
    """The tokens of requests to one model, in one record of that time. `agent` names the sub-agent
    that made them, `requests` counts them; a `batch` costs half. `profile` is whose key paid, ""
    for none."""

    record: str
    time: str
    model: str
    usage: Usage
    purpose: Purpose = "answers"
    batch: bool = False
    requests: int = 1
    agent: str = ""
    profile: str = ""

    def price(self, prices: Mapping[str, Price]) -> ModelPrice | None:
        """The price of its model, None if that is not known."""
        price = price_of(self.model, prices, self.profile)
        return price.in_batch() if price and self.batch else price


def bills_of(record: Record) -> Iterator[Bill]:
    """Yield the bills in a record: none in most."""
    data = record.data
    if record.type == SUB_AGENT:
        agent = agent_label(data)
        for model, count, usage in spent_in(record):
            if usage.total:
                yield Bill(
                    record.id,
                    record.time,
                    model,
                    usage,
                    "sub-agents",
                    requests=count,
                    agent=agent,
                    profile=paid_by(model, record.payer),
                )
    elif record.type in COSTLY and (usage := Usage.from_json(data.get("usage"))).total:
        purpose, batch = _PURPOSES[record.type], bool(data.get(BATCH))
        model = string_of(data.get("model"))
        profile = paid_by(model, record.payer)
        yield Bill(record.id, record.time, model, usage, purpose, batch, profile=profile)


def agent_label(fields: Mapping[str, object]) -> str:
    """A sub-agent's kind and task, from its record or the call that started it."""
    kind, task = string_of(fields.get("agent")), string_of(fields.get("description"))
    return ": ".join(filter(None, (kind, task))) or "sub-agent"
