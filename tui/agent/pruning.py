"""How the model sees records: pruned when it pays, changed by the person at will.

With `prune.when = "auto"` what is due waits. It is pruned together with the next break, which
writes what comes after its place again anyway, or once that pays by itself; where the server
refuses thinking after what was changed, never at the price of a thought.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from tui.agent.agent_context import AgentContext
from tui.agent.break_reasons import first_turn
from tui.agent.events import ContextChanged, Pruned
from tui.agent.request_builder import RequestBuilder
from tui.context import cache_cost
from tui.context.breaks import thoughtless
from tui.context.cache_cost import PruneFigures
from tui.context.overrides import SPEAKING, Overlay, Stand, content_of, stand
from tui.context.prune import Due
from tui.context.request_trail import has_thinking
from tui.context.view import View
from tui.core.errors import HoldfastError
from tui.core.messages import Usage
from tui.session.records import Record, is_answer


@dataclass(frozen=True, slots=True)
class Waiting:
    """Results that are old enough to be pruned and wait: their records, and the tokens that they
    take of each request."""

    records: frozenset[str] = frozenset()
    tokens: int = 0


@dataclass(slots=True)
class PruneSchedule:
    """Prunes old results of one agent's session before a request, put off until it pays."""

    ctx: AgentContext
    requests: RequestBuilder
    _known: set[str] = field(default_factory=set[str])
    """The ids of the records that were pruned in the view before."""
    _paid: float = 0.0

    def begin(self, view: View) -> None:
        """Take what a resumed session has pruned before as known."""
        self._known = _pruned(view)

    def waiting(self, view: View) -> Waiting:
        """What is due in a view and was not pruned yet."""
        found = frozenset(one.record for one in view.due)
        items = self.ctx.ledger.items()
        return Waiting(found, sum(item.tokens for item in items if item.id in found))

    def joining(self, view: View, targets: Collection[str]) -> int:
        """How many tokens go with a change of these records because they wait for a break."""
        if self.ctx.config.prune.when != "auto":
            return 0
        records = {record.id: n for n, record in enumerate(self.ctx.records)}
        place = min((records[id_] for id_ in targets if id_ in records), default=len(records))
        due = (one for one in view.due if one.record not in targets)
        behind = ((one, records[one.record]) for one in due if one.record in records)
        saved = 0
        for one, at in behind:
            if at >= place:
                now = Overlay(one.record, "pruned", "policy", age=one.age)
                would = self.ctx.ledger.would
                saved += would(one.record, None) - would(
                    one.record, stand(self.ctx.records[at], now)
                )
        return saved

    def _weigh(self, id_: str, shown: Stand | None) -> int:
        return self.ctx.ledger.would(id_, shown)

    async def before_request(self, view: View) -> View:
        """Decide what is due, and show what is newly pruned. Returns the view then."""
        if view.due:
            view = self._decide(view)
        now = _pruned(view)
        fresh, self._known = now - self._known, now
        if fresh:
            saved = sum(self._saved(id_, view) for id_ in fresh)
            self.ctx.debug(
                f"[DEBUG] Pruned: {len(fresh)} results, {saved:,} tokens saved by each request"
            )
            await self.ctx.recorder.show(Pruned(len(fresh), saved))
        return view

    def _saved(self, id_: str, view: View) -> int:
        ledger = self.ctx.ledger
        return max(0, ledger.would(id_, None) - ledger.would(id_, view.stands[id_]))

    def _decide(self, view: View) -> View:
        """Record which of the results that are due are pruned from here on."""
        stay = [one for one in view.due if one.record in self._known]
        if stay:  # pruned by the rule until now, which the server turned out to be wrong for
            self._prune(stay, "pruned before")
            view = self.requests.view()
        auto = self.ctx.config.prune.when == "auto"
        place = self.requests.next_break(view) if auto else None
        behind = [one for one in view.due if place is not None and self._place(one) >= place]
        if behind:
            self._prune(behind, "at another break")
            view = self.requests.view()
        if not view.due:
            return view
        if auto and (lost := self._thoughts(view.due, place)):
            self.ctx.debug(f"[DEBUG] {len(view.due)} results wait: {lost} thoughts would be lost")
            return view
        figures = self._figures(view.due, place)
        found = cache_cost.verdict(figures)
        self.ctx.debug(f"[DEBUG] Pruning {len(view.due)} results: {found.reason}")
        if not found.pays:
            self._paid += figures.saved * figures.read
            return view
        self._paid = 0.0
        self._prune(view.due, found.reason)
        return self.requests.view()

    def _prune(self, due: Sequence[Due], why: str) -> None:
        for one in due:
            overlay = Overlay(one.record, "pruned", "policy", why, age=one.age)
            self.ctx.recorder.append("overlay", **overlay.to_json())

    def _place(self, due: Due) -> int:
        records = self.ctx.records
        return next((n for n, record in enumerate(records) if record.id == due.record), 0)

    def _thoughts(self, due: Sequence[Due], place: int | None) -> int:
        """How many answers would lose their thinking for these alone.

        What a break at `place` takes anyway is none of them.
        """
        ctx = self.ctx
        if not self.requests.rules.binds(ctx.model):
            return 0
        start = first_turn(ctx.records, {one.record for one in due})
        first = next((n for n, record in enumerate(ctx.records) if record.id == start), 0)
        gone = thoughtless(ctx.records)
        taken = range(self.requests.thoughtless_from(place), len(ctx.records))
        return sum(
            record.type == "assistant"
            and record.id not in gone
            and first + n not in taken
            and has_thinking(content_of(record))
            for n, record in enumerate(ctx.records[first:])
        )

    def _figures(self, due: Sequence[Due], place: int | None) -> PruneFigures:
        """What pruning costs and saves; what comes after a break at `place` costs nothing."""
        ledger, window = self.ctx.ledger, self.ctx.model.window
        items = ledger.conversation_sizes()
        gone = {one.record for one in due}
        first = next((n for n, item in enumerate(items) if item.id in gone), len(items))
        saved = sum(item.tokens for item in items if item.id in gone)
        records = self.ctx.records
        anew = {record.id for record in records[place:]} if place is not None else set[str]()
        behind = sum(i.tokens for i in items[first:] if i.id not in gone and i.id not in anew)
        since = max((n for n, r in enumerate(records) if r.type == "compaction"), default=0)
        answers = sum(map(is_answer, records[since:]))
        brought = sum(item.recorded for item in items if item.state != "summarised")
        room = self.ctx.config.compaction.threshold * window - ledger.tokens
        expected = cache_cost.expected(answers, brought, room)
        idle, life = self._idle_s(), self._life_s()
        figures = PruneFigures(saved, behind, expected, idle, self._paid, life_s=life)
        if (price := self.ctx.price) is None or (
            rates := price.rates_for(ledger.tokens)
        ).input <= 0:
            return figures
        write = rates.write_1h if life == cache_cost.LONG_LIFE_S else rates.write_5m
        return replace(figures, write=write / rates.input, read=rates.read / rates.input)

    def _last_answer(self) -> Record | None:
        return next((r for r in reversed(self.ctx.records) if is_answer(r)), None)

    def _life_s(self) -> float:
        """How long the cache holds what was written last."""
        for record in reversed(self.ctx.records):
            if record.type != "assistant":
                continue
            usage = Usage.from_json(record.data.get("usage"))
            if usage.cache_creation_input_tokens:
                hour = usage.ephemeral_1h_input_tokens
                return cache_cost.LONG_LIFE_S if hour else cache_cost.LIFE_S
        return cache_cost.LIFE_S

    def _idle_s(self) -> float | None:
        answer = self._last_answer()
        if answer is None:
            return None
        try:
            then = datetime.fromisoformat(answer.time)
        except ValueError:
            return None
        return (self.ctx.clock.now() - then).total_seconds()


@dataclass(frozen=True, slots=True)
class ContextOverrides:
    """Masks, cuts and pins of the person."""

    ctx: AgentContext
    requests: RequestBuilder

    async def overlay(self, changes: Sequence[Overlay]) -> None:
        """Raises HoldfastError where a target is no record that the model sees."""
        await self._change("overlay", [change.to_json() for change in changes])

    async def pin(self, pins: Mapping[str, bool]) -> None:
        """Raises as `overlay` does."""
        await self._change("pin", [{"target": id_, "pinned": on} for id_, on in pins.items()])

    async def _change(self, type_: str, changes: Sequence[dict[str, Any]]) -> None:
        known = {
            record.id: {"call_id": record.data.get("call_id")}
            if record.type == "tool_result"
            else {}
            for record in self.ctx.records
            if record.type in SPEAKING
        }
        if unknown := [change["target"] for change in changes if change["target"] not in known]:
            raise HoldfastError(f"No item {unknown[0]} in this session.")
        for change in changes:
            self.ctx.recorder.append(type_, **change)
        self.requests.view()
        changed = ContextChanged(tuple(change | known[change["target"]] for change in changes))
        await self.ctx.recorder.show(changed, *self.requests.measured())


def _pruned(view: View) -> set[str]:
    return {id_ for id_, stand in view.stands.items() if stand.state == "pruned"}
