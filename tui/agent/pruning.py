"""Pruning as the agent does it: told when it happens, and put off until it pays (decision 26)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from tui.agent.events import Event, Pruned
from tui.agent.recorder import Recorder
from tui.agent.request_builder import Preparing
from tui.context import cache_cost
from tui.context.binding import has_thinking
from tui.context.cache_cost import PruneFigures, first_change
from tui.context.overrides import Overlay
from tui.context.prune import Due
from tui.context.view import View
from tui.core.clock import Clock
from tui.core.config import Prune
from tui.provider.base import Request
from tui.session.records import Record


@dataclass(slots=True)
class Pruning:
    """Looks at each request before it is made. Owned by one agent."""

    preparing: Preparing
    recorder: Recorder
    clock: Clock
    rule: Prune
    threshold: float
    publish: Callable[[Event], None]
    debug: Callable[[str], None]
    why_tools: Callable[[], str] = str
    _known: set[str] = field(default_factory=set[str])
    _paid: float = 0.0
    _before: Request | None = None
    _shown: View | None = None

    def begin(self, seen: View) -> None:
        """Take what a resumed session has pruned before as known."""
        self._known = _pruned(seen)

    async def before_request(self) -> None:
        """Decide what is due, and tell what is newly pruned."""
        seen = self.preparing.look()
        if seen.due and self.rule.when == "pays":
            seen = self._decide(seen)
        now = _pruned(seen)
        fresh, self._known = now - self._known, now
        if not fresh:
            return
        saved = sum(self._saved(id_, seen) for id_ in fresh)
        self.debug(f"[DEBUG] Pruned: {len(fresh)} results, {saved:,} tokens saved by each request")
        await self.recorder.show(Pruned(len(fresh), saved))

    def sent(self, request: Request) -> None:
        """Say why the cache cannot read all of what was sent last, where that is so."""
        before, self._before = self._before, request
        shown, self._shown = self._shown, self.preparing.look()
        change = first_change(before, request) if before else None
        if before is None or change is None or shown is None:
            return
        why = change.where
        if change.where == "tools" and (reason := self.why_tools()):
            why = f"the tools changed: {reason}"
        if change.where == "messages":
            lost = ["thinking left out"] if _thoughts(before) and not _thoughts(request) else []
            reasons = [*_reasons(shown, self._shown), *lost]
            why = " and ".join(reasons) or "the last message was another"
            why = f"message {change.message + 1} changed: {why}"
        self.debug(f"[DEBUG] Cache: written anew from there on: {why}")

    def _saved(self, id_: str, seen: View) -> int:
        ledger = self.preparing.ledger
        return max(0, ledger.would(id_, None) - ledger.would(id_, seen.stands[id_]))

    def _decide(self, seen: View) -> View:
        figures = self._figures(seen.due)
        found = cache_cost.verdict(figures)
        self.debug(f"[DEBUG] Pruning {len(seen.due)} results: {found.reason}")
        if not found.pays:
            self._paid += figures.saved * cache_cost.READ
            return seen
        self._paid = 0.0
        for due in seen.due:
            overlay = Overlay(due.record, "pruned", "policy", found.reason, age=due.age)
            self.recorder.append("overlay", **overlay.to_json())
        return self.preparing.look()

    def _figures(self, due: Sequence[Due]) -> PruneFigures:
        ledger, window = self.preparing.ledger, self.preparing.model.window
        items = [item for item in ledger.items() if item.kind not in {"system", "tools", "memory"}]
        gone = {one.record for one in due}
        first = next((n for n, item in enumerate(items) if item.id in gone), len(items))
        saved = sum(item.tokens for item in items if item.id in gone)
        behind = sum(item.tokens for item in items[first:] if item.id not in gone)
        since = max((n for n, r in enumerate(self._records) if r.type == "compaction"), default=0)
        answers = sum(record.type == "assistant" for record in self._records[since:])
        brought = sum(ledger.would(i.id, None) for i in items if i.kind != "summary")
        brought -= sum(ledger.would(i.id, None) for i in items if i.state == "summarised")
        room = self.threshold * window - ledger.tokens
        expected = cache_cost.expected(answers, brought, room)
        return PruneFigures(saved, behind, expected, self._idle_s(), self._paid)

    def _idle_s(self) -> float | None:
        for record in reversed(self._records):
            if record.type == "assistant":
                try:
                    then = datetime.fromisoformat(record.time)
                except ValueError:
                    return None
                return (self.clock.now() - then).total_seconds()
        return None

    @property
    def _records(self) -> Sequence[Record]:
        return self.recorder.session.records


def _pruned(seen: View) -> set[str]:
    return {id_ for id_, stand in seen.stands.items() if stand.state == "pruned"}


def _thoughts(request: Request) -> bool:
    return any(has_thinking(message["content"]) for message in request.messages)


def _reasons(before: View, after: View) -> list[str]:
    """Why two views of one session differ in what both hold."""
    reasons: list[str] = []
    if before.summary != after.summary:
        reasons.append("a compaction or its undoing")
    if fresh := _pruned(after) - _pruned(before):
        reasons.append(f"{len(fresh)} results pruned")
    known = before.states.keys()
    changed = [
        id_ for id_ in known if before.stands.get(id_) != after.stands.get(id_) and id_ not in fresh
    ]
    pruned = _pruned(before) & _pruned(after) & set(changed)
    if pruned:
        reasons.append(f"{len(pruned)} pruned errors are a turn older")
    if len(changed) > len(pruned) and before.summary == after.summary:
        reasons.append(f"{len(changed) - len(pruned)} items masked, cut or shown again")
    if before.findings != after.findings:
        reasons.append("a repair")
    return reasons
