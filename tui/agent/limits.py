"""The bounds of a turn: the person's limits, the money spent, and the loop breaker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any, Final, Literal

from msgspec import structs

from tui.core.config import Price
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import LimitReachedError
from tui.core.formatting import plural
from tui.core.late_pattern import late_pattern
from tui.core.messages import Block, Usage, blocks_of, text_of
from tui.provider.prices import ModelPrice, price_of
from tui.session.records import BATCH, COSTLY, SUB_AGENT, Record, is_prompt, spent_in

LOOP_REPEATS = 5
"""Number of equal (call, result) pairs in a row that end the turn."""

_WAITS = frozenset({"command_status"})
_SECONDS = late_pattern(r" · \d+\.\d s(?=\])")


@dataclass(frozen=True, slots=True)
class Spent:
    """The cost of answers. They add up with `+`.

    `usd` is None as soon as one of them came from a model whose price is not known.
    """

    requests: int = 0
    usage: Usage = field(default_factory=Usage)
    usd: float | None = 0.0

    @classmethod
    def on(cls, usage: Usage, price: ModelPrice | None) -> Spent:
        """One answer."""
        return cls(1, usage, price.cost(usage) if price else None)

    @classmethod
    def of_sub_agent(cls, record: Record, prices: Mapping[str, Price]) -> Spent:
        """Return the cost of a sub-agent's run, by its record."""
        spent = cls()
        for model, count, usage in spent_in(record):
            price = price_of(model, prices, record.payer)
            spent += cls(count, usage, price.cost(usage) if price else None)
        return spent

    def __add__(self, other: Spent) -> Spent:
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        return Spent(self.requests + other.requests, self.usage + other.usage, usd)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one run; None is no bound. `max_turns` counts requests to the model."""

    max_turns: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None

    @property
    def any(self) -> bool:
        """True if there is a bound at all."""
        return any(one is not None for one in (self.max_turns, self.max_tokens, self.max_cost))

    def check(self, spent: Spent, *, priced: bool) -> None:
        """Raise LimitReachedError when the next request would go past a limit.

        `priced`: the price of the model to be asked is known. Without it no cost can be bounded.
        """
        if self.max_turns is not None and spent.requests >= self.max_turns:
            raise LimitReachedError(
                f"Reached the limit of {plural(self.max_turns, 'request')}.",
                hint="Raise --max-turns.",
            )
        tokens = spent.usage.total
        if self.max_tokens is not None and tokens >= self.max_tokens:
            raise LimitReachedError(
                f"Reached the limit of {self.max_tokens:,} tokens ({tokens:,} used).",
                hint="Raise --max-tokens.",
            )
        if self.max_cost is None:
            return
        if spent.usd is None or not priced:
            raise LimitReachedError(
                f"Can't keep to the limit of ${self.max_cost:.2f}: this model has no known price.",
                hint="Add its price to [prices] in the configuration, or drop --max-cost.",
            )
        if spent.usd >= self.max_cost:
            raise LimitReachedError(
                f"Reached the limit of ${self.max_cost:.2f} (${spent.usd:.2f} spent).",
                hint="Raise --max-cost.",
            )


class GoalLimitError(LimitReachedError):
    """The goal that is worked on has reached one of its limits."""


class GoalOverError(Exception):
    """Ends a turn whose goal isn't worked on any more, though it isn't met: its record says why."""

    def __init__(self, outcome: Literal["limit", "failed"]) -> None:
        super().__init__(outcome)
        self.outcome: Literal["limit", "failed"] = outcome


@dataclass(slots=True)
class PendingRequests:
    """The requests of a run that have no answer yet, each with the most that it can come to.

    A request begins while all of them stay within the limits; else it waits until one has ended.
    So those of sub-agents that work at the same time go past a limit by no more than one does.
    """

    _most: list[Spent] = field(default_factory=list[Spent])
    _ended: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def room(
        self, limits: Limits, most: Spent, spent: Callable[[], Spent], *, priced: bool
    ) -> AsyncGenerator[None]:
        """The right to make one request; raises LimitReachedError where a limit is reached."""
        limits.check(spent(), priced=priced)
        while self._most and not self._fits(limits, spent(), priced=priced):
            await self._ended.wait()
            limits.check(spent(), priced=priced)
        self._most.append(most)
        try:
            yield
        finally:
            self._most.remove(most)
            self._ended.set()
            self._ended = asyncio.Event()

    def _fits(self, limits: Limits, spent: Spent, *, priced: bool) -> bool:
        """True if a limit holds even if each request comes to the most that it can."""
        try:
            limits.check(sum(self._most, spent), priced=priced)
        except LimitReachedError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class SessionCost:
    """The answers of a whole session, and of them those since its last prompt was typed.

    `last` is the usage of the last request of the conversation itself.
    """

    session: Spent = field(default_factory=Spent)
    prompt: Spent = field(default_factory=Spent)
    last: Usage = field(default_factory=Usage)

    def after(self, record: Record, prices: Mapping[str, Price]) -> SessionCost:
        """With one more record."""
        if is_prompt(record):
            return replace(self, prompt=Spent())
        if record.type == SUB_AGENT:
            one = Spent.of_sub_agent(record, prices)
            return replace(self, session=self.session + one, prompt=self.prompt + one)
        if record.type not in COSTLY:
            return self
        if not (usage := Usage.from_json(record.data.get("usage"))).total:
            return self
        price = price_of(str(record.data.get("model")), prices, record.payer)
        if price and record.data.get(BATCH):
            price = price.in_batch()
        if record.type == "title" and price is None:
            return self  # so little that the sum of the others stays known
        one = Spent.on(usage, price)
        last = usage if record.type == "assistant" else self.last
        return SessionCost(self.session + one, self.prompt + one, last)


@dataclass(slots=True)
class PaidAnswers:
    """Adds up the usage of answers that have one price: of one model, to short or to long prompts.

    Where the price goes by the prompt, a sum has the longest as its `context_tokens`: the prompts
    together would cost as one long one.
    """

    _sums: dict[tuple[str, bool], tuple[int, Usage]] = field(
        default_factory=dict[tuple[str, bool], tuple[int, Usage]]
    )

    def add(self, model: str, usage: Usage) -> None:
        """Add an answer of a model."""
        price, prompt = price_of(model, {}), usage.context_tokens or usage.prompt_tokens
        by_size = price is not None and price.long is not None
        key = model, price is not None and by_size and prompt > price.long_from
        count, before = self._sums.pop(key, (0, Usage()))
        both = before + usage if count else usage
        if count and by_size:
            most = max(before.context_tokens or before.prompt_tokens, prompt)
            both = structs.replace(both, context_tokens=most)
        self._sums[key] = count + 1, both

    def sums(self) -> Iterator[tuple[str, int, Usage]]:
        """Yield a model, the number of its answers and their usage; that of the last one last."""
        for (model, _), (count, usage) in self._sums.items():
            yield model, count, usage

    def last(self) -> tuple[str, Usage] | None:
        """Take out the sum with the last answer, with its model; None where there is none."""
        if not self._sums:
            return None
        (model, _), (_, usage) = self._sums.popitem()
        return model, usage


def spent_by_model(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Sum up the usage of the answers in records: `{"model", "requests", "usage"}` for each model,
    and once more for its answers to long prompts, where these cost more. Those of sub-agents have
    records of their own."""
    paid = PaidAnswers()
    for record in records:
        usage = Usage.from_json(record.data.get("usage")) if record.type in COSTLY else Usage()
        if usage.total:
            paid.add(str(record.data.get("model")), usage)
    return [
        {"model": model, "requests": count, "usage": usage.to_json()}
        for model, count, usage in paid.sums()
    ]


def session_cost(records: Sequence[Record], prices: Mapping[str, Price]) -> SessionCost:
    """Count the cost of the recorded answers, summaries and notes for the memory included.

    The cost of an attempt that came to nothing is in no record, and is not counted.
    """
    return SpendingCounter().count(records, prices)


_COUNTED: Final = COSTLY | {SUB_AGENT, "user"}
"""The types of the records that change what was spent."""


@dataclass(slots=True)
class SpendingCounter:
    """Adds up what records cost as they come: each is looked at once."""

    _now: SessionCost = field(default_factory=SessionCost)
    _seen: int = 0
    _last: Record | None = None

    def count(
        self,
        records: Sequence[Record],
        prices: Mapping[str, Price],
        elsewhere: Sequence[Record] = (),
    ) -> SessionCost:
        """Count the cost of records; see `session_cost`. Starts over where they are not those of
        the last time and what was appended since. What stands `elsewhere`, on other branches, was
        paid for the session, too."""
        seen = self._seen
        if seen > len(records) or (seen and records[seen - 1] is not self._last):
            seen = 0
        if not seen:
            self._now = SessionCost()
            for record in elsewhere:
                self._now = self._now.after(record, prices)
            self._now = SessionCost(session=self._now.session)
        now = self._now
        for place in range(seen, len(records)):
            if records[place].type in _COUNTED:
                now = now.after(records[place], prices)
        self._now = now
        self._seen, self._last = len(records), records[-1] if records else None
        return self._now


@dataclass(slots=True)
class LoopDetector:
    """Counts, over the answers of one turn, in how many in a row a (call, result) pair came.

    Asking after a running command does not count: that is how one waits.
    """

    _times: dict[bytes, int] = field(default_factory=dict[bytes, int])

    def repeated(self, calls: Sequence[Block], records: Iterable[Record]) -> Block | None:
        """Count the calls of an answer, whose results `records` hold. Returns the one too many."""
        counted = [call for call in calls if call.get("name") not in _WAITS]
        if not counted:
            return None
        results = {str(r.data.get("call_id")): r for r in records if r.type == "tool_result"}
        now: dict[bytes, int] = {}
        last_call: Block | None = None
        for call in counted:
            pair = _pair(call, results.get(str(call.get("id"))))
            now[pair] = self._times.get(pair, 0) + 1
            if now[pair] >= LOOP_REPEATS:
                last_call = call
        self._times = now
        return last_call


def _pair(call: Block, result: Record | None) -> bytes:
    """Return what makes two calls with their results the same; not their ids, nor their
    durations."""
    outcome: object = None
    if result is not None:
        id_ = str(call.get("id"))
        text = text_of(blocks_of(result.data.get("content"))).replace(id_, "")
        outcome = [result.data.get("is_error"), _SECONDS.sub("", text)]
    value = [call.get("name"), call.get("input"), outcome]
    return sha256(json.dumps(value, sort_keys=True, default=str).encode()).digest()
