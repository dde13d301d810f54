"""Old results that are pruned when it pays.

With `prune.when = "auto"` what is due waits. It is pruned together with the next break, which
writes what comes after its place again anyway, or once that pays by itself; where the server
refuses thinking after what was changed, never at the price of a thought.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from tui.agent.agent_context import AgentContext
from tui.agent.request.answer_facts import AnswerFacts, ThinkingAnswers
from tui.agent.request.build import built
from tui.agent.request.check import next_break
from tui.agent.request.state import Prepared, RequestState
from tui.agent.request.view import prepare
from tui.context import cache_cost
from tui.context.breaks import in_turn, turn_start
from tui.context.cache_cost import PruneFigures
from tui.context.prune import Due
from tui.context.record_index import RecordNumbers
from tui.context.view import View
from tui.core.dataclass import dataclass, field, replace
from tui.core.facts import Overlay, Pruned
from tui.session.records import Record


@dataclass(frozen=True, slots=True)
class Waiting:
    """Results that are old enough to be pruned and wait: their records, and the tokens that they
    take of each request."""

    records: frozenset[str] = frozenset()
    tokens: int = 0


class _Tokens(NamedTuple):
    """Token counts of a pruning: the tokens that it saves, those that come `behind` the first of
    these and are written again, and all that was `brought` since a summary."""

    saved: int
    behind: int
    brought: int


@dataclass(slots=True)
class PruneSchedule:
    """Prunes old results of one agent's session before a request, put off until it pays."""

    ctx: AgentContext
    requests: RequestState
    _known: set[str] = field(default_factory=set[str])
    """The ids of the records that were pruned in the view before."""
    _paid: float = 0.0
    _answers: AnswerFacts = field(default_factory=AnswerFacts)
    _thinking: ThinkingAnswers = field(default_factory=ThinkingAnswers)
    _numbers: RecordNumbers = field(default_factory=RecordNumbers)

    def begin(self, view: View) -> None:
        """Take what a resumed session has pruned before as known."""
        self._known = _pruned(view)

    def waiting(self, view: View) -> Waiting:
        """Return what is due in a view and was not pruned yet."""
        due = frozenset(one.record for one in view.due)
        sizes = self.ctx.ledger.conversation_sizes()
        return Waiting(due, sum(size.tokens for size in sizes if size.id in due))

    async def before_request(self, prepared: Prepared) -> Prepared:
        """Decide what is due, and show what is newly pruned. Returns what is prepared then."""
        if prepared.view.due:
            prepared = self._decide(prepared)
        now = _pruned(prepared.view)
        fresh, self._known = now - self._known, now
        if fresh:
            saved = sum(self._saved(id_, prepared.view) for id_ in fresh)
            self.ctx.debug(
                f"[DEBUG] Pruned: {len(fresh)} results, {saved:,} tokens saved by each request"
            )
            await self.ctx.recorder.show(Pruned(len(fresh), saved))
        return prepared

    def _saved(self, id_: str, view: View) -> int:
        ledger = self.ctx.ledger
        return max(0, ledger.would(id_, None) - ledger.would(id_, view.stands[id_]))

    def _decide(self, prepared: Prepared) -> Prepared:
        """Record which of the results that are due are pruned from here on."""
        stay = [one for one in prepared.view.due if one.record in self._known]
        if stay:  # pruned by the rule until now, which the server turned out to be wrong for
            self._prune(stay, "pruned before")
            prepared = prepare(self.requests)
        auto, place = self.ctx.config.prune.when == "auto", None
        if auto:
            # built here to see whether it breaks, and sent as it is if nothing is pruned
            prepared = replace(prepared, built=built(self.requests, prepared))
            place = next_break(self.requests, prepared)
        if place is not None:
            numbers = self._numbers.of(self.ctx.records)
            if behind := [one for one in prepared.view.due if numbers[one.record] >= place]:
                self._prune(behind, "at another break")
                prepared = prepare(self.requests)
        due = prepared.view.due
        if not due:
            return prepared
        if auto and (lost := self._thoughts(due, place)):
            self.ctx.debug(f"[DEBUG] {len(due)} results wait: {lost} thoughts would be lost")
            return prepared
        # The bounds decide most cases; exact figures take a walk over the session.
        figures = self._figures(self._fewest_tokens(due, place))
        if (
            self.ctx.state.verbose
            or figures.write < figures.read
            or cache_cost.verdict(figures).pays
        ):
            figures = self._figures(self._tokens(due, place))
        verdict = cache_cost.verdict(figures)
        self.ctx.debug(f"[DEBUG] Pruning {len(due)} results: {verdict.reason}")
        if not verdict.pays:
            self._paid += figures.saved * figures.read
            return prepared
        self._paid = 0.0
        self._prune(due, verdict.reason)
        return prepare(self.requests)

    def _prune(self, due: Sequence[Due], why: str) -> None:
        for one in due:
            self.ctx.record(Overlay(one.record, "pruned", "policy", why, age=one.age))

    def _thoughts(self, due: Sequence[Due], place: int | None) -> int:
        """Count the answers that would lose their thinking for these alone.

        What a break at `place` takes anyway is none of them.
        """
        records = self.ctx.records
        if not self.requests.rules.binds(self.ctx.link.model):
            return 0
        numbers = self._numbers.of(records)
        first = min(numbers[one.record] for one in due)
        start, end = (_thoughtless_from(records, each) for each in (first, place))
        return self._thinking.between(records, start, end)

    def _tokens(self, due: Sequence[Due], place: int | None) -> _Tokens:
        """Count the tokens of a pruning; what comes after a break at `place` costs nothing."""
        items, records = self.ctx.ledger.conversation_sizes(), self.ctx.records
        pruned = {one.record for one in due}
        first = next((n for n, item in enumerate(items) if item.id in pruned), len(items))
        saved = sum(item.tokens for item in items if item.id in pruned)
        rewritten = {record.id for record in records[place:]} if place is not None else set[str]()
        behind = sum(
            i.tokens for i in items[first:] if i.id not in pruned and i.id not in rewritten
        )
        brought = sum(item.recorded for item in items if item.state != "summarised")
        return _Tokens(saved, behind, brought)

    def _fewest_tokens(self, due: Sequence[Due], place: int | None) -> _Tokens:
        """As `_tokens`, without walking the session: `behind` and `brought` are at least so many.

        With fewer of these pruning pays sooner: what does not pay with them does not pay.
        """
        ledger = self.ctx.ledger
        share, pruned = ledger.share, ledger.entries_of(one.record for one in due)
        saved = sum(round(share * entry.weight) for entry in pruned)
        end = len(ledger.sent)
        if place is not None:
            after = islice(self.ctx.records, place, None)
            end = min(
                (entry.number for entry in ledger.entries_of(r.id for r in after)), default=end
            )
        first = min((entry.number for entry in pruned), default=end)
        weight = ledger.sent.between(first, end)
        weight -= sum(entry.weight for entry in pruned if entry.number < end)
        behind = _least(share * weight, end - first)
        brought = _least(
            share * ledger.brought.between(0, len(ledger.brought)), len(ledger.brought)
        )
        return _Tokens(saved, behind, max(1, brought))

    def _figures(self, tokens: _Tokens) -> PruneFigures:
        """Work out what pruning costs and saves."""
        ledger, window = self.ctx.ledger, self.ctx.link.model.window
        answers = self._answers
        answers.follow(self.ctx.records)
        room = self.ctx.config.compaction.threshold * window - ledger.tokens
        expected = cache_cost.expected(answers.since_compaction, tokens.brought, room)
        idle, life = self._idle_s(answers.last), answers.life_s
        figures = PruneFigures(tokens.saved, tokens.behind, expected, idle, self._paid, life_s=life)
        if (price := self.ctx.price) is None or (
            rates := price.rates_for(ledger.tokens)
        ).input <= 0:
            return figures
        write = rates.write_1h if life == cache_cost.LONG_LIFE_S else rates.write_5m
        return replace(figures, write=write / rates.input, read=rates.read / rates.input)

    def _idle_s(self, answer: Record | None) -> float | None:
        """Return the seconds since an answer came."""
        if answer is None:
            return None
        try:
            then = datetime.fromisoformat(answer.time)
        except ValueError:
            return None
        return (self.ctx.clock.now() - then).total_seconds()


def _thoughtless_from(records: Sequence[Record], place: int | None) -> int:
    """From which record on a break at `place` takes the thinking; None is no break."""
    if place is None:
        return len(records)
    return 0 if in_turn(records) else turn_start(records, place)


def _pruned(view: View) -> set[str]:
    return {id_ for id_, stand in view.stands.items() if stand.state == "pruned"}


def _least(tokens: float, items: int) -> int:
    """The least that so many items take which are rounded one by one; and 1 for what is lost in
    adding up."""
    return max(0, int(tokens - items / 2) - 1)
