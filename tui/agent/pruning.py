"""How records stand in what the model sees: pruned when it pays, changed by the person at will."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tui.agent.agent_context import AgentContext
from tui.agent.break_cost import cache_life
from tui.agent.events import ContextChanged, Pruned
from tui.agent.mcp_tools import McpTools
from tui.agent.request_builder import RequestBuilder
from tui.context import cache_cost
from tui.context.cache_cost import PruneFigures, first_change
from tui.context.overrides import SPEAKING, Overlay
from tui.context.prune import Due
from tui.context.request_trail import has_thinking
from tui.context.view import View
from tui.core.errors import HoldfastError
from tui.provider.base import Request


@dataclass(slots=True)
class PruneSchedule:
    """Prunes old results of one agent's session before a request, put off until it pays."""

    ctx: AgentContext
    requests: RequestBuilder
    mcp: McpTools
    _known: set[str] = field(default_factory=set[str])
    """The ids of the records that were pruned in the view before."""
    _paid: float = 0.0
    _sent: tuple[Request, View] | None = None

    def begin(self, view: View) -> None:
        """Take what a resumed session has pruned before as known."""
        self._known = _pruned(view)

    async def before_request(self, view: View) -> View:
        """Decide what is due, and show what is newly pruned. Returns the view then."""
        if view.due and self.ctx.config.prune.when == "pays":
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

    def explain(self, request: Request, view: View) -> None:
        """Say why the cache cannot read all of what was sent last, where that is so."""
        last, self._sent = self._sent, (request, view)
        change = first_change(last[0], request) if last else None
        if last is None or change is None:
            return
        why = change.where
        if change.where == "tools" and self.mcp.reason:
            why = f"the tools changed: {self.mcp.reason}"
        if change.where == "messages":
            lost = _thoughts(last[0]) and not _thoughts(request)
            reasons = [*_reasons(last[1], view), *(["thinking left out"] if lost else [])]
            why = " and ".join(reasons) or "the last message was another"
            why = f"message {change.message + 1} changed: {why}"
        self.ctx.debug(f"[DEBUG] Cache: written anew from there on: {why}")

    def _saved(self, id_: str, view: View) -> int:
        ledger = self.ctx.ledger
        return max(0, ledger.would(id_, None) - ledger.would(id_, view.stands[id_]))

    def _decide(self, view: View) -> View:
        figures = self._figures(view.due)
        found = cache_cost.verdict(figures)
        self.ctx.debug(f"[DEBUG] Pruning {len(view.due)} results: {found.reason}")
        if not found.pays:
            self._paid += figures.saved * cache_cost.READ
            return view
        self._paid = 0.0
        for due in view.due:
            overlay = Overlay(due.record, "pruned", "policy", found.reason, age=due.age)
            self.ctx.recorder.append("overlay", **overlay.to_json())
        return self.requests.view()

    def _figures(self, due: Sequence[Due]) -> PruneFigures:
        ledger, window = self.ctx.ledger, self.ctx.model.window
        items = [item for item in ledger.items() if item.kind not in {"system", "tools", "memory"}]
        gone = {one.record for one in due}
        first = next((n for n, item in enumerate(items) if item.id in gone), len(items))
        saved = sum(item.tokens for item in items if item.id in gone)
        behind = sum(item.tokens for item in items[first:] if item.id not in gone)
        records = self.ctx.records
        since = max((n for n, r in enumerate(records) if r.type == "compaction"), default=0)
        answers = sum(record.type == "assistant" for record in records[since:])
        brought = sum(ledger.would(i.id, None) for i in items if i.kind != "summary")
        brought -= sum(ledger.would(i.id, None) for i in items if i.state == "summarised")
        room = self.ctx.config.compaction.threshold * window - ledger.tokens
        expected = cache_cost.expected(answers, brought, room)
        hour = cache_life(self.ctx) == "1h"
        life_s = cache_cost.LIFE_1H_S if hour else cache_cost.LIFE_S
        write = cache_cost.WRITE_1H if hour else cache_cost.WRITE
        idle_s = self._idle_s()
        return PruneFigures(saved, behind, expected, idle_s, self._paid, life_s, write)

    def _idle_s(self) -> float | None:
        for record in reversed(self.ctx.records):
            if record.type == "assistant":
                try:
                    then = datetime.fromisoformat(record.time)
                except ValueError:
                    return None
                return (self.ctx.clock.now() - then).total_seconds()
        return None


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
            raise HoldfastError(f"There is nothing of the id {unknown[0]} in this session.")
        for change in changes:
            self.ctx.recorder.append(type_, **change)
        self.requests.view()
        changed = ContextChanged(tuple(change | known[change["target"]] for change in changes))
        await self.ctx.recorder.show(changed, *self.requests.measured())


def _pruned(view: View) -> set[str]:
    return {id_ for id_, stand in view.stands.items() if stand.state == "pruned"}


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
