"""Compaction: a summary in the place of the conversation's beginning, recorded and undoable.

The summary is asked for outside of any turn: a failure in here never starts another compaction
(O25), changes nothing and is told once. What the view makes of the record is in
`tui.context.compaction_view`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tui.agent import events
from tui.agent.events import Event
from tui.agent.limits import Spent
from tui.agent.memory_flush import Memory
from tui.agent.recorder import Recorder
from tui.agent.summarizer import Summariser
from tui.context import compaction_triggers
from tui.context import compaction_view as compact
from tui.context.compaction_view import CompactionPlan
from tui.context.digest import digest
from tui.context.level_view import last_front_level
from tui.context.repair_levels import DIGEST_TOKENS
from tui.context.token_ledger import Item, Ledger
from tui.context.view import View
from tui.core.config import Compaction, Price
from tui.core.errors import HoldfastError, LimitReachedError
from tui.core.messages import Message
from tui.provider.base import ModelInfo, Provider
from tui.session.records import Record
from tui.tokens import tokenizer

log = logging.getLogger(__name__)

Reason: TypeAlias = Literal["manual", "automatic", "overflow"]


@dataclass(frozen=True, slots=True)
class Preview:
    """What a compaction would do, in tokens: what stays, what goes into the summary, and what
    stays although it would go (pinned, or a prompt of the running turn)."""

    kept: tuple[Item, ...]
    summarised: tuple[Item, ...]
    pinned: tuple[Item, ...]
    tokens_before: int
    tokens_kept: int
    focus: str = ""

    @property
    def tokens_summarised(self) -> int:
        return sum(item.tokens for item in self.summarised)


@dataclass(slots=True)
class Compactor:
    """Compacts one agent's session. One compaction at a time: the agent sees to that.

    `look` makes the view of the record now and tells the ledger; `spend` takes what the requests
    cost; `debug` shows a line while verbose is on; `compacted` is called behind each record.
    """

    provider: Provider
    recorder: Recorder
    memory: Memory
    config: Compaction
    model: Callable[[], ModelInfo]
    ledger: Callable[[], Ledger]
    look: Callable[[], View]
    publish: Callable[[Event], None]
    debug: Callable[[str], None]
    spend: Callable[[Spent], None]
    price: Callable[[], Price | None] = lambda: None
    compacted: Callable[[], None] = lambda: None
    _told_soon: bool = False
    _stuck: compaction_triggers.Stuck | None = None
    _gave_up: str = ""
    _usage: Spent = field(default_factory=Spent)

    def due(self) -> bool:
        """Whether the context is strictly over the threshold (A33); some turns before, say so.

        Not again in a turn in which it failed, and not where it would be in vain: see `check`.
        """
        self.look()
        ledger, model = self.ledger(), self.model()
        held, limit = ledger.tokens, self.config.threshold
        if not compaction_triggers.over(held, model.window, limit):
            self._say_soon(ledger.forecast(limit * model.window))
            return False
        if self._gave_up == _last_prompt(self._records):
            return False
        self._stuck = compaction_triggers.stuck(self._records)
        return self._stuck is None

    def check(self) -> None:
        """Raise LimitReachedError where two compactions in a row brought the work no further."""
        stuck, self._stuck = self._stuck, None
        if stuck is None:
            return
        self.publish(events.HandOff(stuck.asked, stuck.done, stuck.left))
        raise LimitReachedError(
            "The context was compacted twice without progress, so the work was stopped.",
            hint="Say what to do differently, or split the task.",
        )

    def plan(self, focus: str = "") -> Preview | None:
        """What `compact` would do now; None where there is nothing to compact."""
        seen = self.look()
        planned = self._plan(seen)
        if planned is None:
            return None
        items = {item.id: item for item in self.ledger().items()}

        def of(ids: Sequence[str]) -> tuple[Item, ...]:
            return tuple(items[id_] for id_ in ids if id_ in items)

        before, gone = self.ledger().tokens, of(planned.summarised)
        kept = max(0, before - sum(item.tokens for item in gone))
        return Preview(of(planned.kept), gone, of(planned.pinned), before, kept, focus)

    async def compact(self, reason: str, *, focus: str = "") -> bool:
        """Put a summary in the place of the beginning. Returns whether the view got smaller.

        Never raises but for a cancellation, which leaves the session as it was; so does an error,
        which is told in `CompactionFinished`.
        """
        seen = self.look()
        planned = self._plan(seen)
        if planned is None:
            self._gave_up = _last_prompt(self._records)
            return False
        if await self.memory.flush(upto=planned.covers):
            seen = self.look()
        before = self.ledger().tokens
        summariser = Summariser(self.provider, self.model, self.publish, self.price)
        self.publish(events.CompactionStarted(reason, before, planned.messages))
        failed = "it was interrupted"
        try:
            told = self._told(planned, seen)
            summary = await summariser.summary(told, focus)
            failed = ""
        except HoldfastError as error:
            log.warning("compaction failed: %s", error)
            failed = error.message
            return False
        except Exception as error:
            log.exception("compaction failed")
            failed = f"{type(error).__name__}: {error}"
            return False
        finally:
            self._usage = summariser.usage
            self.spend(self._usage)
            if failed:
                self._gave_up = _last_prompt(self._records)
                self.publish(events.CompactionFinished(before, before, 0, "", reason, failed))
        return await self._apply(planned, summary, reason, before)

    def digest(self) -> bool:
        """The last rung (O24): everything covered by a digest made without a model.

        Recorded, but not synced nor told: that is for whoever asked.
        """
        seen = self.look()
        planned = compact.plan_all(self._records, self.model().id, pinned=seen.pinned)
        if planned is None:
            return False
        before = self.ledger().tokens
        budget = min(DIGEST_TOKENS, max(64, self.model().window // 20))
        summary = digest(self._told(planned, seen), budget)
        self._usage = Spent()
        after = self._record(planned, summary, "digest", before)
        return after < before

    async def undo(self) -> bool:
        """Make the compactions void: the full view again. False where none is in force."""
        seen = self.look()
        if seen.summary is None:
            return False
        self.recorder.append("uncompaction", target=seen.summary.record.id)
        self.look()
        await self.recorder.sync()
        return True

    @property
    def _records(self) -> Sequence[Record]:
        return self.recorder.session.records

    def _plan(self, seen: View) -> CompactionPlan | None:
        keep = self.config.keep_messages
        records, model = self._records, self.model().id
        least = last_front_level(records)
        return compact.plan(records, model, keep=keep, pinned=seen.pinned, least=max(least, 0))

    def _told(self, planned: CompactionPlan, seen: View) -> list[Message]:
        """The messages that the summary is made of, as the model saw them."""
        stands = {id_: s for id_, s in seen.stands.items() if s.state != "summarised"}
        return compact.covered_messages(
            self._records, planned, self.model().id, pinned=seen.pinned, stands=stands
        )

    async def _apply(self, planned: CompactionPlan, summary: str, reason: str, before: int) -> bool:
        """Record a summary that is smaller than what it covers, then show it."""
        freed, added = self._freed(planned), tokenizer.count(summary)
        if added >= freed:
            said = f"The summary ({added:,} tokens) is not smaller than what it covers ({freed:,})."
            self._gave_up = _last_prompt(self._records)
            self.publish(events.CompactionFinished(before, before, 0, "", reason, said))
            return False
        after = self._record(planned, summary, reason, before)
        self._told_soon = False
        told = events.CompactionFinished(before, after, planned.messages, summary, reason)
        await self.recorder.show(told)
        self.debug(
            f"[DEBUG] Compaction: {reason}, {planned.messages} messages, {before:,} → {after:,} "
            "tokens; behind the system prompt the cache is written anew"
        )
        return after < before

    def _freed(self, planned: CompactionPlan) -> int:
        """The tokens of what a summary would stand for."""
        sizes = {item.id: item.tokens for item in self.ledger().items()}
        earlier = self.look().summary
        freed = sum(sizes.get(id_, 0) for id_ in planned.summarised)
        return freed + (sizes.get(earlier.record.id, 0) if earlier else 0)

    def _record(self, planned: CompactionPlan, summary: str, reason: str, before: int) -> int:
        """Append the compaction's record; returns the tokens that the view has then."""
        after = max(0, before - self._freed(planned)) + tokenizer.count(summary)
        data: dict[str, Any] = compact.compaction_data(
            self._records, planned, summary, tokens_before=before, tokens_after=after, reason=reason
        )
        data |= {"model": self.model().id, "usage": self._usage.usage.to_json()}
        self.recorder.append("compaction", **data)
        self.compacted()
        self.look()
        return after

    def _say_soon(self, forecast: int | None) -> None:
        if not compaction_triggers.soon(forecast):
            self._told_soon = self._told_soon and forecast is not None
        elif not self._told_soon:
            self._told_soon = True
            turns = "1 turn" if forecast == 1 else f"{forecast} turns"
            self.publish(
                events.Notice(
                    f"The context will be compacted in about {turns}. /compact does it now, /pin "
                    "keeps what must stay word for word."
                )
            )


def _last_prompt(records: Sequence[Record]) -> str:
    found = (record.id for record in reversed(records) if record.type == "user")
    return next(found, "")
