"""The tokens and the money of a session, shared out to what they were spent on. Pure.

Every part of a request (see `tui.context.usage.parts`) has its share of the request's input, in
each request that it was in: the server's own counts, shared by the weights of the parts. What the
server read from its cache is the beginning of the request, then comes what it wrote there, then
what was new; each costs its own price. An answer's output is shared among its blocks. So the parts
add up to the bill, in each of the groupings:

    prompt      the requests that were made for it
    brought     what came with a prompt, in all requests that it was in
    model       the model that was asked
    kind        what it was: system prompt, results, thinking, …
    tool        its definition, its calls and their results
    file        calls about it, and their results
    server      the tools of an MCP server
    skill       its text
    agent       a sub-agent: its own requests, the call and the result
    break       what was paid a second time, since the cache could not be read any more
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import eq
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar, get_args

import msgspec

from tui.context.cache_cost import LIFE_S, LONG_LIFE_S
from tui.context.failed_attempts import LostAnswers
from tui.context.overrides import content_of
from tui.context.record_index import continues
from tui.context.request_replay import SentFields, sent_fields
from tui.context.rules.blocks import THINKING
from tui.context.usage.amounts import Amount, TokenRates, merge, total_of
from tui.context.usage.bills import BILLED, Bill, bills_of
from tui.context.usage.days import LocalDays
from tui.context.usage.parts import (
    UNRECORDED,
    Kind,
    Owner,
    Owners,
    RequestPart,
    RequestParts,
    Thing,
    signature_of,
)
from tui.context.usage.shares import SharedCosts, split
from tui.core.config import Price
from tui.core.dataclass import dataclass, field
from tui.core.facts import DEFAULT_PROFILE
from tui.core.formatting import moment_of
from tui.core.gc_pause import gc_pause
from tui.core.messages import Block, Usage, string_of
from tui.provider.prices import ModelPrice
from tui.session.records import Record
from tui.session.request_numbers import REQUEST
from tui.tokens import estimate

Grouping: TypeAlias = Literal[
    "prompt",
    "brought",
    "model",
    "kind",
    "tool",
    "file",
    "server",
    "skill",
    "agent",
    "break",
    "profile",
]
GROUPINGS: Final[tuple[Grouping, ...]] = get_args(Grouping)

Rows: TypeAlias = dict[str, Amount]
_Key = TypeVar("_Key")

EXPIRED: Final = "cache expired"
MISSED: Final = "not in the cache"
OTHER_MODEL: Final = "another model"
OTHER_SERVER: Final = "another server"
OTHER_PROFILE: Final = "another profile"
_OF_THINGS: Final[tuple[Grouping, ...]] = ("kind", "tool", "file", "server", "skill", "agent")
"""The groupings by a field of a thing, in the order of its fields."""
_SIDE: Final[Mapping[str, Kind]] = {
    "summaries": "writing summaries",
    "memory notes": "writing memory notes",
    "titles": "writing titles",
    "goal checks": "checking goals",
    "side questions": "side questions",
    "cache kept warm": "keeping the cache",
    "sub-agents": "sub-agents",
}


@dataclass(slots=True)
class Attribution:
    """The rows of each grouping, by day and then by name; "" is all that belongs to nothing.

    `titles` are the first words of the prompts, by their number as it is in the rows. `unknown` are
    the models without a known price; `cut_off` counts answers that ended before they said what they
    cost, those of attempts that were lost and made again too: that is in no record.
    """

    days: dict[str, dict[Grouping, Rows]] = field(default_factory=dict[str, dict[Grouping, Rows]])
    titles: dict[str, str] = field(default_factory=dict[str, str])
    unknown: dict[str, int] = field(default_factory=dict[str, int])
    cut_off: int = 0

    def rows(self, by: Grouping, days: Callable[[str], bool] = lambda _day: True) -> Rows:
        """The rows of a grouping, over all days or some."""
        merged: Rows = {}
        for day, groups in self.days.items():
            if days(day):
                merge(merged, groups.get(by, {}))
        return merged

    @property
    def total(self) -> Amount:
        return total_of(self.rows("model").values())

    def to_bytes(self) -> bytes:
        """Encode it, to be kept or sent."""
        days = {
            day: {
                by: {name: one.to_json() for name, one in rows.items()} for by, rows in by_.items()
            }
            for day, by_ in self.days.items()
        }
        value = {
            "days": days,
            "titles": self.titles,
            "unknown": self.unknown,
            "cut_off": self.cut_off,
        }
        try:
            return msgspec.msgpack.encode(value)
        except UnicodeEncodeError:  # half a surrogate pair
            return json.dumps(value).encode()

    @classmethod
    def of_bytes(cls, data: bytes) -> Attribution:
        """Decode what `to_bytes` made. Raises LookupError, TypeError or ValueError for all else."""
        value = json.loads(data) if data.startswith(b"{") else msgspec.msgpack.decode(data)
        days = {
            day: {
                by: {name: Amount.of_json(one) for name, one in rows.items()}
                for by, rows in groups.items()
            }
            for day, groups in value["days"].items()
        }
        return cls(days, dict(value["titles"]), dict(value["unknown"]), int(value["cut_off"]))


def attribute(
    records: Sequence[Record],
    prices: Mapping[str, Price],
    *,
    cwd: str = "",
    skip: Collection[str] = (),
    by: Collection[Grouping] = GROUPINGS,
) -> Attribution:
    """Share out the bills in all records of a session, on whatever branch they are, but for those
    to `skip`, by the records' ids: another session was billed. What a prompt brought is only summed
    up if `by` has it."""
    made = _Attributor(prices, cwd, brought="brought" in by)
    with gc_pause():
        for record, path in _paths(records):
            made.take(record, path, billed=record.id not in skip)
        return made.attribution()


class LiveAttribution:
    """Shares out the bills of a session that grows: afterwards only what is new of it is read."""

    def __init__(self, prices: Mapping[str, Price], *, cwd: str = "") -> None:
        self._prices, self._cwd = prices, cwd
        self._made = _Attributor(prices, cwd)
        self._elsewhere: Sequence[Record] = ()
        self._path: list[Record] = []
        self._count = 0
        self._last: Record | None = None

    def follow(self, records: Sequence[Record], elsewhere: Sequence[Record] = ()) -> Attribution:
        """Take in the records of the branch, and those `elsewhere` in the session. Blocks."""
        for _ in self.reading(records, elsewhere):
            pass
        return self.so_far()

    def so_far(self) -> Attribution:
        """The cost of the records that were taken in."""
        return self._made.attribution()

    def reading(
        self, records: Sequence[Record], elsewhere: Sequence[Record] = ()
    ) -> Iterator[float]:
        """Take them in one by one; after each that is read for the first time, yield the share of
        them that is taken in. One that is left off begins again."""
        count = len(records)  # more may come meanwhile
        same = len(elsewhere) == len(self._elsewhere) and self._count > 0
        if same and continues(records, self._count, self._last):
            for record in records[self._count : count]:
                self._take(record, records)
        else:
            self._made, self._elsewhere = _Attributor(self._prices, self._cwd), elsewhere
            self._path, self._count = [], 0
            every = _in_order(records[:count], elsewhere)
            for number, (record, self._path) in enumerate(_paths(every), 1):
                self._made.take(record, self._path, billed=True)
                yield number / len(every)
        self._count, self._last = count, records[count - 1] if count else None

    def billed(self, records: Sequence[Record], elsewhere: Sequence[Record] = ()) -> Attribution:
        """The rows by prompt and by model only, which the bills alone tell: soon."""
        made = _Attributor(self._prices, self._cwd)
        for record in _in_order(records, elsewhere):
            made.take_bills(record)
        return made.attribution()

    def _take(self, record: Record, records: Sequence[Record]) -> None:
        """Take in a record at the end of the branch."""
        path = self._path
        if record.parent != (path[-1].id if path else None):
            path = self._path = _path_to({one.id: one for one in records}, record.parent)
        self._made.take(record, path, billed=True)
        path.append(record)


def _in_order(records: Sequence[Record], elsewhere: Sequence[Record]) -> list[Record]:
    """Records of a branch and all others of the session, in the order of the file."""
    every = [*elsewhere, *records]
    if elsewhere:
        every.sort(key=lambda record: record.id)
    return every


def _paths(records: Sequence[Record]) -> Iterator[tuple[Record, list[Record]]]:
    """Yield the records in the order of the file, with those before each on its branch."""
    path: list[Record] = []
    by_id: dict[str, Record] = {}
    last: str | None = None
    for record in records:
        if record.parent != last:
            by_id = by_id or {record.id: record for record in records}
            path = _path_to(by_id, record.parent)
        yield record, path
        path.append(record)
        last = record.id


def _path_to(by_id: Mapping[str, Record], id_: str | None) -> list[Record]:
    path: list[Record] = []
    while id_ and (record := by_id.get(id_)) is not None:
        path.append(record)
        id_ = record.parent
    path.reverse()
    return path


def _gather(into: dict[_Key, Amount], key: _Key, amount: Amount) -> None:
    known = into.get(key)
    if known is None:
        known = into[key] = Amount()
    known.add(amount)


class _LastRequest(NamedTuple):
    """The last request to a model at a server: what was in the cache after it, and until when."""

    cached: int
    until: float


class _Attributor:
    def __init__(
        self,
        prices: Mapping[str, Price],
        cwd: str,
        *,
        brought: bool = True,
    ) -> None:
        self._prices = prices
        self._keys = 2 if brought else 1
        """Of an owner, how many of its fields are summed up for: the thing, and the prompt."""
        self._known: dict[tuple[str, bool, str], ModelPrice | None] = {}
        self._found = Attribution()
        self._owners = Owners(cwd)
        self._parts = RequestParts(self._owners)
        self._costs: SharedCosts[Thing | int] = SharedCosts()
        self._row: list[RequestPart] = []
        self._day = ""
        self._days = LocalDays()
        self._groups: dict[Grouping, Rows] = {}
        self._owned: dict[Thing | int, Amount] = {}  # by thing, and by prompt
        self._asked: Record | None = None
        self._lost = LostAnswers()
        self._reason = ""
        self._last: dict[tuple[str, str, str], _LastRequest] = {}
        self._newest: tuple[str, str, _LastRequest] | None = None
        """The model of the last request of all, and what the server had cached of it."""
        self._ratios: dict[str, float] = {}
        self._grown: tuple[str, int, float] | None = None

    def take(self, record: Record, path: Sequence[Record], *, billed: bool) -> None:
        """Take in the next record; `path` has those before it on its branch."""
        kind, answered = record.type, False
        if kind == REQUEST:
            self._asked = record
        elif kind == "break":
            self._reason = string_of(record.data.get("reason")) or "break"
        elif kind == "compaction":
            self._reason = self._reason or "compaction"
        for bill in bills_of(record) if billed and kind in BILLED else ():
            then = moment_of(bill.time)
            self._begin_day(self._days.of(then))
            price = self._price(bill)
            rates = TokenRates.of(bill.usage, price)
            whole = Amount.at(bill, rates)
            self._request(bill, price, whole)
            if bill.purpose == "answers":
                answered = True
                self._answer(record, bill, path, rates, then.timestamp() if then else 0.0)
            else:
                self._side_request(bill, whole)
        self._found.cut_off += self._lost.take(record) and billed
        if not answered:
            self._owners.learn(record)

    def take_bills(self, record: Record) -> None:
        """Take in what the next record says of whole requests."""
        for bill in bills_of(record):
            self._begin_day(self._days.of(moment_of(bill.time)))
            price = self._price(bill)
            self._request(bill, price, Amount.of(bill, price))
        self._owners.learn_title(record)

    def attribution(self) -> Attribution:
        """The cost of all records so far. More can be taken in after it."""
        self._settle_row()
        self._found.titles = {str(n): title for n, title in enumerate(self._owners.titles, 1)}
        return self._found

    # What is told of it

    def _begin_day(self, day: str) -> None:
        if day != self._day or not self._groups:
            self._settle_row()
            self._day = day
            self._groups = self._found.days.setdefault(day, {})

    def _settle_row(self) -> None:
        """Put down what everybody has cost so far; the row goes on."""
        for key, amount in self._costs.settle():
            _gather(self._owned, key, amount)
        self._settle()

    def _put(self, by: Grouping, name: str, amount: Amount) -> None:
        rows = self._groups.get(by)
        if rows is None:
            rows = self._groups[by] = {}
        _gather(rows, name, amount)

    def _tell(self, owner: Owner, amount: Amount) -> None:
        """Take in what somebody has cost."""
        for key in owner[: self._keys]:
            _gather(self._owned, key, amount)

    def _keep(self, count: int) -> None:
        """Keep the first parts of the row only."""
        for key, amount in self._costs.keep(count):
            _gather(self._owned, key, amount)

    def _settle(self) -> None:
        """Put down what everything has cost this day."""
        owned, self._owned = self._owned, {}
        things = [(key, amount) for key, amount in owned.items() if not isinstance(key, int)]
        for place, by in enumerate(_OF_THINGS if things else ()):
            rows = self._groups.setdefault(by, {})
            for thing, amount in things:
                _gather(rows, thing[place], amount)
        for key, amount in owned.items():
            if isinstance(key, int):
                self._put("brought", str(key) if key else "", amount)

    def _price(self, bill: Bill) -> ModelPrice | None:
        """The price of a bill, looked up once for each model."""
        key = bill.model, bill.batch, bill.profile
        if key not in self._known:
            self._known[key] = bill.price(self._prices)
        return self._known[key]

    def _request(self, bill: Bill, price: ModelPrice | None, whole: Amount) -> None:
        """Put down what is known of a request as a whole."""
        if price is None:
            self._found.unknown[bill.model] = self._found.unknown.get(bill.model, 0) + bill.requests
        self._put("model", bill.model, whole)
        self._put("profile", bill.profile or DEFAULT_PROFILE, whole)
        self._put("prompt", str(len(self._owners.titles) or ""), whole)
        self._put("break", "", whole)

    def _side_request(self, bill: Bill, whole: Amount) -> None:
        tool = "task" if bill.agent else ""
        self._tell(
            Owner(Thing(_SIDE[bill.purpose], tool, agent=bill.agent), len(self._owners.titles)),
            whole,
        )

    # An answer of the conversation

    def _answer(
        self,
        record: Record,
        bill: Bill,
        path: Sequence[Record],
        rates: TokenRates,
        now: float,
    ) -> None:
        asked, self._asked = self._asked, None
        fields = sent_fields(asked) if asked and asked.data.get("model") == bill.model else None
        self._follow(path, bill.model, fields)
        scale = self._input(bill, rates)
        self._output(record, bill.usage, rates, scale)
        if bill.usage.web_search_requests:
            fees = rates.fees(bill.usage)
            self._tell(Owner(Thing("searches", "web_search")), Amount(fees=fees))
        self._again(record, bill, fields, rates, now)

    def _follow(self, path: Sequence[Record], model: str, fields: SentFields | None) -> None:
        """Have the row of parts that this request had."""
        start, parts, grown = self._parts.follow(path, model, fields)
        if not grown:
            self._grown = None
            same = [*map(eq, self._row[start:], parts), False].index(False)
            start, parts = start + same, parts[same:]
            self._keep(start)
            del self._row[start:]
        self._row += parts
        keys = self._keys
        every = keys == len(Owner._fields)  # as for the index: without a copy of each
        self._costs.extend(parts if every else [(owner[:keys], weight) for owner, weight in parts])

    def _input(self, bill: Bill, rates: TokenRates) -> float:
        """Share a request's input out. Returns its tokens for a unit of weight."""
        usage, weight = bill.usage, self._costs.weight
        before = self._unrecorded(bill.model, usage, weight)
        if before:
            self._tell(UNRECORDED, rates.amount(*split(usage, 0, before)))
        self._costs.charge(usage, rates, before)
        scale = (usage.prompt_tokens - before) / weight if weight else 0.0
        return scale if estimate.plausible(scale) else self._ratios.get(bill.model, 1.0)

    def _unrecorded(self, model: str, usage: Usage, weight: float) -> float:
        """The tokens at the beginning of a request that nothing in the record accounts for."""
        whole = usage.prompt_tokens
        once = min(whole, usage.context_tokens) or whole  # not the sum of several rounds
        ratio = self._ratios.get(model, estimate.UNKNOWN)
        if self._grown and self._grown[0] == model and not usage.context_tokens:
            _, before, had = self._grown
            ratio = estimate.smoothed(ratio, weight - had, whole - before)
            self._ratios[model] = ratio
        self._grown = (model, whole, weight)
        if weight and self._parts.framed and estimate.plausible(once / weight):
            return 0.0
        left = max(0.0, once - ratio * weight) if weight else once
        return left * whole / once if once else 0.0

    def _output(self, record: Record, usage: Usage, rates: TokenRates, scale: float) -> None:
        """Share an answer's output among its blocks: thinking gets what the others leave."""
        owners, content = self._owners, content_of(record)
        owners.learn_calls(content)
        thoughts: list[Block] = []
        spoken: list[tuple[Block, float]] = []
        said = 0.0
        for block in content:
            if str(block.get("type")) in THINKING:
                thoughts.append(block)
            else:
                spoken.append((block, weight := owners.weight(block)))
                said += weight
        output = float(usage.output_tokens)
        thought = 0.0
        if thoughts:
            rest = max(0.0, output - said * scale)
            thought = min(output, float(usage.thinking_tokens or rest)) if said else output
            for block in thoughts:
                if (key := signature_of(block)) and scale:
                    owners.thoughts[key] = thought / len(thoughts) / scale
            self._spend(owners.of(thoughts[0], "assistant"), thought, rates)
        for block, weight in spoken:
            share = weight / said if said else 1 / len(spoken)
            self._spend(owners.of(block, "assistant"), (output - thought) * share, rates)
        if not spoken and not thoughts:
            self._spend(UNRECORDED, output, rates)

    def _spend(self, owner: Owner, tokens: float, rates: TokenRates) -> None:
        if tokens <= 0:
            return
        for key in owner[: self._keys]:
            known = self._owned.get(key)
            if known is None:
                known = self._owned[key] = Amount()
            known.output += tokens
            known.output_usd += tokens * rates.output
            known.unpriced += tokens * rates.unpriced

    def _again(
        self,
        record: Record,
        bill: Bill,
        fields: SentFields | None,
        rates: TokenRates,
        now: float,
    ) -> None:
        """Put down what of a request had been in the cache before, and was paid again."""
        usage = bill.usage
        key = bill.profile, bill.model, string_of(record.data.get("server"))
        reason, self._reason = self._reason, ""
        if usage.context_tokens:
            return
        last, read = self._last.get(key), usage.cache_read_input_tokens
        long = usage.ephemeral_1h_input_tokens or (fields and fields.cache_life == "1h")
        until = now + (LONG_LIFE_S if long else LIFE_S)
        self._last[key] = _LastRequest(read + usage.cache_creation_input_tokens, until)
        newest, self._newest = self._newest, (*key[:2], self._last[key])
        elsewhere = ""
        if last is None:
            if newest is None:
                return
            profile, model, last = newest  # a server caches nothing for another model
            elsewhere = OTHER_SERVER if model == bill.model else OTHER_MODEL
            elsewhere = elsewhere if profile == bill.profile else OTHER_PROFILE
        lost = min(last.cached, usage.prompt_tokens) - read
        if lost > 0:
            paid = rates.amount(*split(usage, read, read + lost))
            paid.requests = 1.0
            paid.written_usd -= paid.written * rates.read
            paid.fresh_usd -= paid.fresh * rates.read
            missing = reason or elsewhere or (EXPIRED if last.until < now else MISSED)
            self._put("break", missing, paid)
            self._groups["break"][""].take(paid)
