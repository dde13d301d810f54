"""Compaction: a summary in the place of the conversation's beginning, recorded and undoable.

The summary is asked for outside of any turn, in parts that a request can carry. A failure in here
never starts another compaction, changes nothing and is shown once. What the view makes of the
record is in `tui.context.compaction_view`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tui.agent import events
from tui.agent.agent_context import AgentContext
from tui.agent.memory_flush import MemoryFlush
from tui.agent.model_stream import ask_aside
from tui.agent.request_builder import RequestBuilder
from tui.context import compaction_triggers, compaction_view, recall, summary_prompts
from tui.context.compaction_view import CompactionPlan
from tui.context.digest import digest
from tui.context.level_view import last_front_level
from tui.context.repair_levels import DIGEST_TOKENS
from tui.context.token_ledger import Item
from tui.context.view import View
from tui.core.errors import HoldfastError, LimitReachedError, ProviderError
from tui.core.messages import Message, Usage
from tui.session.records import Record
from tui.tokens import tokenizer
from tui.tools.recall import Recall

log = logging.getLogger(__name__)

Reason: TypeAlias = Literal["manual", "automatic", "overflow", "digest"]

_SPLITS = 3
"""So many times a part that the summarizer finds too long is split."""


@dataclass(frozen=True, slots=True)
class CompactionPreview:
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
    """Compacts one agent's session. One compaction at a time: the agent sees to that."""

    ctx: AgentContext
    requests: RequestBuilder
    memory: MemoryFlush
    _announced: bool = False
    """That it will soon be time has been said."""
    _gave_up: str = ""
    """The id of the prompt in whose turn it failed."""

    def __post_init__(self) -> None:
        if recall.has_summary(self.ctx.records):
            self._offer_recall()

    def due(self) -> bool:
        """Whether the view made last is strictly over the threshold; some turns before, say so.

        Not again in a turn in which it failed. Raises LimitReachedError where two compactions in
        a row brought the work no further.
        """
        held, limit = self.ctx.ledger.tokens, self.ctx.config.compaction.threshold
        window = self.ctx.model.window
        if not compaction_triggers.over(held, window, limit):
            self._announce(self.ctx.ledger.forecast(limit * window))
            return False
        if self._gave_up == _last_prompt(self.ctx.records):
            return False
        if stuck := compaction_triggers.stuck(self.ctx.records):
            self.ctx.publish(events.HandOff(stuck.asked, stuck.done, stuck.left))
            raise LimitReachedError(
                "The context was compacted twice without progress, so the work was stopped.",
                hint="Say what to do differently, or split the task.",
            )
        return True

    def plan(self, focus: str = "") -> CompactionPreview | None:
        """What `compact` would do now; None where there is nothing to compact."""
        planned = self._plan(self.requests.view())
        if planned is None:
            return None
        items = {item.id: item for item in self.ctx.ledger.items()}

        def of(ids: Sequence[str]) -> tuple[Item, ...]:
            return tuple(items[id_] for id_ in ids if id_ in items)

        before, gone = self.ctx.ledger.tokens, of(planned.summarised)
        kept = max(0, before - sum(item.tokens for item in gone))
        return CompactionPreview(of(planned.kept), gone, of(planned.pinned), before, kept, focus)

    async def compact(self, reason: Reason, *, focus: str = "") -> bool:
        """Put a summary in the place of the beginning. Returns whether the view got smaller.

        Never raises but for a cancellation, which leaves the session as it was; so does an error,
        which stands in `CompactionFinished`.
        """
        view = self.requests.view()
        planned = self._plan(view)
        if planned is None:
            self._gave_up = _last_prompt(self.ctx.records)
            return False
        if await self.memory.flush(upto=planned.covers):
            view = self.requests.view()
        before = self.ctx.ledger.tokens
        summarizer = Summarizer(self.ctx)
        self.ctx.publish(events.CompactionStarted(reason, before, planned.messages))
        problem = "it was interrupted"
        try:
            summary = await summarizer.summary(self._covered(planned, view), focus)
            problem = ""
        except HoldfastError as error:
            log.warning("compaction failed: %s", error)
            problem = error.message
            return False
        except Exception as error:
            log.exception("compaction failed")
            problem = f"{type(error).__name__}: {error}"
            return False
        finally:
            if problem:
                self._give_up(before, reason, problem)
        freed, added = self._freed(planned, view), tokenizer.count(summary)
        if added >= freed:
            self._give_up(
                before,
                reason,
                f"The summary ({added:,} tokens) is not smaller than what it covers ({freed:,}).",
            )
            return False
        after = self._record(
            planned, summary, reason, before=before, freed=freed, usage=summarizer.usage
        )
        self._announced = False
        await self.ctx.recorder.show(
            events.CompactionFinished(before, after, planned.messages, summary, reason)
        )
        self.ctx.debug(
            f"[DEBUG] Compaction: {reason}, {planned.messages} messages, {before:,} → {after:,} "
            "tokens; behind the system prompt the cache is written anew"
        )
        return after < before

    def digest(self) -> bool:
        """The last rung: everything covered by a digest made without a model.

        Recorded, but not synced nor shown: that is for whoever asked.
        """
        view = self.requests.view()
        planned = compaction_view.plan_all(self.ctx.records, self.ctx.model.id, pinned=view.pinned)
        if planned is None:
            return False
        before = self.ctx.ledger.tokens
        budget = min(DIGEST_TOKENS, max(64, self.ctx.model.window // 20))
        summary = digest(self._covered(planned, view), budget)
        freed = self._freed(planned, view)
        after = self._record(planned, summary, "digest", before=before, freed=freed, usage=Usage())
        return after < before

    async def undo(self) -> bool:
        """Make the compactions void: the full view again. False where none is in force."""
        view = self.requests.view()
        if view.summary is None:
            return False
        self.ctx.recorder.append("uncompaction", target=view.summary.record.id)
        self.requests.view()
        await self.ctx.recorder.sync()
        return True

    def _plan(self, view: View) -> CompactionPlan | None:
        records, model = self.ctx.records, self.ctx.model.id
        keep, least = self.ctx.config.compaction.keep_messages, max(last_front_level(records), 0)
        return compaction_view.plan(records, model, keep=keep, pinned=view.pinned, least=least)

    def _covered(self, planned: CompactionPlan, view: View) -> list[Message]:
        """The messages that the summary is made of, as the model saw them."""
        stands = {id_: s for id_, s in view.stands.items() if s.state != "summarised"}
        return compaction_view.covered_messages(
            self.ctx.records, planned, self.ctx.model.id, pinned=view.pinned, stands=stands
        )

    def _freed(self, planned: CompactionPlan, view: View) -> int:
        """The tokens of what a summary would stand for."""
        sizes = {item.id: item.tokens for item in self.ctx.ledger.items()}
        freed = sum(sizes.get(id_, 0) for id_ in planned.summarised)
        return freed + (sizes.get(view.summary.record.id, 0) if view.summary else 0)

    def _record(
        self,
        planned: CompactionPlan,
        summary: str,
        reason: Reason,
        *,
        before: int,
        freed: int,
        usage: Usage,
    ) -> int:
        """Append the compaction's record; returns the tokens that the view has then."""
        after = max(0, before - freed) + tokenizer.count(summary)
        data: dict[str, Any] = compaction_view.compaction_data(
            self.ctx.records,
            planned,
            summary,
            tokens_before=before,
            tokens_after=after,
            reason=reason,
        )
        data |= {"model": self.ctx.model.id, "usage": usage.to_json()}
        self.ctx.recorder.append("compaction", **data)
        self._offer_recall()
        self.requests.view()
        return after

    def _give_up(self, before: int, reason: Reason, problem: str) -> None:
        self._gave_up = _last_prompt(self.ctx.records)
        self.ctx.publish(events.CompactionFinished(before, before, 0, "", reason, problem))

    def _offer_recall(self) -> None:
        """Let the model search what a summary stands for, from the next request on."""
        if Recall.name not in self.ctx.tools:
            tool = self.ctx.tools[Recall.name] = Recall(self._recall)
            self.requests.offer(tool)

    def _recall(self, query: str, first: int, last: int) -> str:
        return recall.answer(self.ctx.records, query, first, last)

    def _announce(self, forecast: int | None) -> None:
        if not compaction_triggers.soon(forecast):
            self._announced = self._announced and forecast is not None
        elif not self._announced:
            self._announced = True
            turns = "1 turn" if forecast == 1 else f"{forecast} turns"
            self.ctx.publish(
                events.Notice(
                    f"The context will be compacted in about {turns}. /compact does it now, /pin "
                    "keeps what must stay word for word."
                )
            )


@dataclass(slots=True)
class Summarizer:
    """Makes one summary. `usage` is what its requests have used, whatever came of them."""

    ctx: AgentContext
    usage: Usage = field(default_factory=Usage)

    async def summary(self, messages: Sequence[Message], focus: str) -> str:
        """One summary of all of it, from as many requests as its length takes.

        Raises HoldfastError where there is none.
        """
        budget = int(self.ctx.model.window * summary_prompts.SHARE)
        pieces = summary_prompts.transcript(messages)
        parts = await asyncio.to_thread(summary_prompts.parts, pieces, budget)
        found: list[str] = []
        for number, part in enumerate(parts, 1):
            found += await self._of_part(part, focus, number, len(parts))
        while len(found) > 1:
            groups = _groups(found, budget)
            found = [
                await self._ask(summary_prompts.merge_question(g, focus=focus)) for g in groups
            ]
        summary = "\n".join(found).strip()
        if not summary:
            raise HoldfastError("The model gave an empty summary, so nothing was changed.")
        return summary

    async def _of_part(
        self, part: str, focus: str, number: int, of: int, depth: int = 0
    ) -> list[str]:
        try:
            return [
                await self._ask(summary_prompts.question(part, focus=focus, number=number, of=of))
            ]
        except ProviderError as error:
            too_long = error.error_class in {"context_overflow", "payload_too_large"}
            if not too_long or depth == _SPLITS:
                raise
        first, second = summary_prompts.halves(part)
        return [
            *await self._of_part(first, focus, number, of, depth + 1),
            *await self._of_part(second, focus, number, of, depth + 1),
        ]

    async def _ask(self, prompt: str) -> str:
        most = min(summary_prompts.SUMMARY_TOKENS, max(256, self.ctx.model.window // 10))
        answer = await ask_aside(self.ctx, prompt, most, hear=self._show)
        self.usage += answer.usage
        return answer.text.strip()

    def _show(self, text: str) -> None:
        self.ctx.publish(events.CompactionDelta(text))


def _groups(summaries: Sequence[str], budget: int) -> list[list[str]]:
    """Summaries in groups of at least two that one request can carry."""
    groups: list[list[str]] = [[]]
    room = budget
    for summary in summaries:
        size = tokenizer.count(summary)
        if len(groups[-1]) > 1 and size > room:
            groups.append([])
            room = budget
        groups[-1].append(summary)
        room -= size
    return groups


def _last_prompt(records: Sequence[Record]) -> str:
    found = (record.id for record in reversed(records) if record.type == "user")
    return next(found, "")
