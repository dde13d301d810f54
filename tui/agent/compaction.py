"""Compaction: a summary replaces the start of the conversation, recorded and undoable.

The summary is asked for outside of any turn, in parts that a request can carry. A failure in here
never starts another compaction, changes nothing and is shown once. What the view makes of the
record is in `tui.context.compaction_view`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec import structs

from tui.agent.agent_context import AgentContext
from tui.agent.hooks import HookRunner
from tui.agent.limits import PaidAnswers
from tui.agent.request.break_cost import ChangePrice, price_of_compaction
from tui.agent.request.side_requests import SummaryRequest, summary_request
from tui.agent.request.state import RequestState
from tui.agent.request.view import prepare
from tui.agent.side_question import MemoryFlush, Summarizer, WarmSummarizer, record_unused
from tui.context import compaction_triggers, compaction_view
from tui.context.compaction_block import COMPACTION
from tui.context.compaction_view import CompactionPlan
from tui.context.digest import digest
from tui.context.level_view import last_front_level
from tui.context.overrides import content_of
from tui.context.repair_levels import DIGEST_TOKENS
from tui.context.token_ledger import Item
from tui.context.view import View
from tui.core import facts
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import HoldfastError, LimitReachedError, ProviderError
from tui.core.fact_words import words
from tui.core.messages import Block, Message, Usage, text_of
from tui.session.records import Record, is_prompt
from tui.tokens import tokenizer
from tui.tokens.estimate import weight

if TYPE_CHECKING:
    from tui.agent.exam import ExamResult

log = logging.getLogger(__name__)

_KEEP_TOKENS: Final = 20_000
"""The most that stays at the end of a conversation."""

_SUMMARY_TOKENS: Final = 2000
"""Expected tokens of a summary where there was none yet, with the thinking before it."""
_RUNNING: Final = 0.5
"""Share of the threshold: so large a running turn is kept whole by a summary of what comes before
it."""

_WORD: Final = "word "
"""Text that stands for a summary yet to be written, as often as it has tokens."""

Reason: TypeAlias = Literal["manual", "automatic", "overflow", "digest"]


@dataclass(frozen=True, slots=True)
class CompactionPreview:
    """The effect of a compaction, in tokens: what stays, what goes into the summary, and what stays
    although it would go (pinned, or a prompt of the running turn)."""

    kept: tuple[Item, ...]
    summarised: tuple[Item, ...]
    pinned: tuple[Item, ...]
    tokens_before: int
    tokens_kept: int
    focus: str = ""
    price: ChangePrice | None = None
    exam: str = ""
    """The summary's exam, in words: the method, the model and the cost; "" where there is none."""

    @property
    def tokens_summarised(self) -> int:
        return sum(item.tokens for item in self.summarised)


@dataclass(frozen=True, slots=True)
class _Made:
    """A summary, the records that it replaces, and the record of the server's block.
    `exam` is what came of its exam, None where there was none.

    `notes` are for the memory, None where none were asked for with it; `flushed`: that was done
    before.
    """

    plan: CompactionPlan
    summary: str
    notes: list[str] | None = None
    flushed: bool = False
    block: Mapping[str, Any] = field(default_factory=dict[str, Any])
    exam: ExamResult | None = None
    verbatim: Sequence[str] = ()


@dataclass(slots=True)
class Compactor:
    """Compacts one agent's session. One compaction at a time: the agent sees to that."""

    ctx: AgentContext
    requests: RequestState
    memory: MemoryFlush
    hooks: HookRunner
    _announced: bool = False
    """That it will soon be time has been said."""
    _gave_up: str = ""
    """The id of the prompt in whose turn it failed."""
    _hashed: tuple[str, str] = "", ""
    """The last record that a plan covered, and the hash of all up to it."""
    _paid: PaidAnswers = field(default_factory=PaidAnswers)
    """The answers of the compaction that runs."""
    """The models asked for the summary that is being made, in turn."""

    async def due(self) -> bool:
        """Return True if the view made last is strictly over the threshold; some turns before,
        warn.

        Not again in a turn in which it failed. Raises LimitReachedError where two compactions in a
        row brought the work no further.
        """
        used, limit = self.ctx.ledger.tokens, self.ctx.config.compaction.threshold
        window = self.ctx.link.model.window
        if not compaction_triggers.over(used, window, limit):
            await self._announce(self.ctx.ledger.forecast(limit * window))
            return False
        if self._gave_up == _last_prompt(self.ctx.records):
            return False
        if stuck := compaction_triggers.stuck(self.ctx.records):
            handed = facts.HandOff(stuck.asked, stuck.done, stuck.left)
            if sentence := words(handed):
                self.ctx.recorder.write(facts.Note("\n".join(sentence.lines)))
            await self.ctx.recorder.show(handed)
            raise LimitReachedError(
                "Stopped: the context was compacted twice without progress.",
                hint="Suggest another approach, or split the task.",
            )
        return True

    async def plan(self, focus: str = "") -> CompactionPreview | None:
        """Return what `compact` would do now; None where there is nothing to compact."""
        from tui.agent.exam import forecast  # noqa: PLC0415 - on demand

        view = prepare(self.requests).view
        request, planned = self._next(view)
        if planned is None:
            return None
        items = {item.id: item for item in self.ctx.ledger.items()}

        def of(ids: Sequence[str]) -> tuple[Item, ...]:
            return tuple(items[id_] for id_ in ids if id_ in items)

        before, leaving = self.ctx.ledger.tokens, of(planned.summarised)
        old = items.get(view.summary.record.id) if view.summary else None
        freed = sum(item.tokens for item in leaving) + (old.tokens if old else 0)
        remaining = max(0, before - freed)
        price = await self._price(planned, request, before, remaining)
        return CompactionPreview(
            of(planned.kept),
            leaving,
            of(planned.pinned),
            before,
            remaining,
            focus,
            price,
            forecast(self.ctx, freed),
        )

    async def _price(
        self, planned: CompactionPlan, asked: SummaryRequest | None, before: int, kept: int
    ) -> ChangePrice:
        """Return the price of a compaction, if its summary is as long as the last one."""
        ctx = self.ctx
        last = (r.data.get("usage") for r in reversed(ctx.records) if r.type == "compaction")
        length = Usage.from_json(next(last, None)).output_tokens or _SUMMARY_TOKENS
        summary = _WORD * round(length / ctx.ledger.ratio / weight(_WORD))
        block: Block = {"type": COMPACTION, "content": summary, "signature": ""}
        sent = _block_fields(asked, ctx.link.server, block)
        behind = round(asked.cut.weight * ctx.ledger.ratio) if asked else 0
        return await price_of_compaction(
            self.requests,
            self._finished(_Made(planned, summary, block=sent), "manual", before=before),
            read=before - behind,
            saved=before - kept - length,
            output=length,
            asked_fresh=asked is None,
        )

    async def compact(self, reason: Reason, *, focus: str = "") -> bool:
        """Put a summary in the place of the beginning. Returns whether the view got smaller.

        Never raises but for a cancellation, which leaves the session as it was; so does an error,
        which is in `CompactionFinished`.
        """
        if reason != "overflow" and await self._blocked_by_hooks(reason, focus):
            return False
        view, fill = prepare(self.requests).view, reason == "automatic"
        request, planned = self._next(view, fill=fill)
        if planned is None:
            self._gave_up = _last_prompt(self.ctx.records)
            return False
        before = self.ctx.ledger.tokens
        self.ctx.publish(facts.CompactionStarted(reason, before, planned.messages))
        self._paid = PaidAnswers()
        try:
            made = await self._made(reason, planned, request, focus, fill=fill)
            made = await self._examined(made)
        except asyncio.CancelledError:
            self._give_up(before, reason, "it was interrupted")
            raise
        except HoldfastError as error:
            log.warning("compaction failed: %s", error)
            return self._give_up(before, reason, error.message)
        except Exception as error:
            log.exception("compaction failed")
            return self._give_up(before, reason, f"{type(error).__name__}: {error}")
        planned = made.plan
        finished, checked = self._record(made, reason, before=before)
        self._announced = False
        if self.requests.frame.waits:
            self.requests.frame.renew("compaction")
        after = self.ctx.ledger.tokens  # which the meter shows, too
        await self.ctx.recorder.show(structs.replace(finished, tokens_after=after), *checked)
        told = {"trigger": _trigger(reason), "compact_summary": made.summary}
        self.hooks.tell("PostCompact", told, names=(told["trigger"],))
        if made.notes is not None:
            await self.memory.keep(made.notes, upto=planned.covers)
        elif not made.flushed:
            await self.memory.flush(upto=planned.covers)
        self.ctx.debug(
            f"[DEBUG] Compaction: {reason}, {planned.messages} messages, {before:,} → {after:,} "
            "tokens; everything after the system prompt is cached again"
        )
        return after < before

    async def _made(
        self,
        reason: Reason,
        planned: CompactionPlan,
        asked: SummaryRequest | None,
        focus: str,
        *,
        fill: bool,
    ) -> _Made:
        """A summary: the server's own, else from the conversation itself, which the cache holds,
        else from its text in requests of their own. Raises HoldfastError where there is none."""
        from tui.agent.server_summary import ServerSummarizer  # noqa: PLC0415 - on demand

        server = ServerSummarizer(self.ctx, self.requests, self._paid)
        warm = WarmSummarizer(self.ctx, self.requests, self._paid)
        cold = Summarizer(self.ctx, self._paid)
        if asked:
            notes = self.memory.pending(planned.covers)
            if summary := await server.summary(asked, focus, notes=notes):
                block = _block_fields(asked, self.ctx.link.server, server.sent())
                return _Made(planned, summary, server.notes, block=block)
            planned = self._plan(prepare(self.requests).view, fill=fill) or planned
        if reason != "overflow" and warm.fits():
            with suppress(ProviderError):
                pending = self.memory.pending(planned.covers)
                if summary := await warm.summary(focus, notes=pending):
                    return _Made(planned, summary, warm.notes)
            flushed = False
        else:
            await self.memory.flush(upto=planned.covers)
            flushed = True
        summary = await cold.summary(self._covered(planned, prepare(self.requests).view), focus)
        return _Made(planned, summary, flushed=flushed)

    async def _examined(self, made: _Made) -> _Made:
        """The summary with its exam, where one is wanted: what it lacks is sent word for word.

        Raises HoldfastError where it isn't smaller than what it replaces.
        """
        planned, ctx, view = made.plan, self.ctx, prepare(self.requests).view
        freed, added = self._freed(planned, view), tokenizer.count(made.summary)
        if added >= freed:
            raise HoldfastError(
                f"The summary ({added:,} tokens) isn't smaller than what it replaces ({freed:,})."
            )
        if ctx.config.compaction.exam == "off":
            return made
        from tui.agent.exam import examine, examiner  # noqa: PLC0415 - on demand
        from tui.context import exam  # noqa: PLC0415 - on demand

        ctx.publish(facts.ExamStarted(ctx.config.compaction.exam, examiner(ctx).id))
        staying = {*planned.kept, *planned.pinned}
        stays = "\n".join(text_of(content_of(r)) for r in ctx.records if r.id in staying)
        result = await examine(ctx, self._covered(planned, view), made.summary, stays)
        most = min(exam.VERBATIM_TOKENS, (freed - added) // 2)
        return replace(made, exam=result, verbatim=exam.verbatim(result.marked, most))

    def _for_server(self, *, fill: bool = False) -> SummaryRequest | None:
        """The request for the server's own summary, where it makes one."""
        ctx, config = self.ctx, self.ctx.config.compaction
        room = self._room()
        running = max(
            2 * room, _RUNNING * config.threshold * ctx.link.model.window / ctx.ledger.ratio
        )
        if last_front_level(ctx.records) >= 0:  # what is not sent as recorded goes all at once
            return None
        return summary_request(
            self.requests, keep=config.keep_messages, room=room, running=running, fill=fill
        )

    def _cut_plan(self, asked: SummaryRequest, view: View) -> CompactionPlan | None:
        cut, ctx = asked.cut, self.ctx
        return compaction_view.plan_until(
            ctx.records,
            ctx.link.model.id,
            cut.covers,
            cut.messages,
            pinned=view.pinned,
            follows=cut.follows,
        )

    def _room(self) -> float:
        """The weight of what stays."""
        ctx, config = self.ctx, self.ctx.config.compaction
        room = config.keep_tokens or min(_KEEP_TOKENS, ctx.link.model.window // 10)
        return room / ctx.ledger.ratio

    def digest(self) -> bool:
        """The last rung: everything covered by a digest made without a model.

        Recorded, but not synced nor shown: that is for whoever asked.
        """
        view = prepare(self.requests).view
        planned = compaction_view.plan_all(
            self.ctx.records, self.ctx.link.model.id, pinned=view.pinned
        )
        if planned is None:
            return False
        before = self.ctx.ledger.tokens
        budget = min(DIGEST_TOKENS, max(64, self.ctx.link.model.window // 20))
        summary = digest(self._covered(planned, view), budget)
        freed = self._freed(planned, view)
        self._record(_Made(planned, summary), "digest", before=before)
        return tokenizer.count(summary) < freed

    async def _blocked_by_hooks(self, reason: Reason, focus: str) -> bool:
        """Return True if a hook of the person's keeps the conversation as it is, until the next
        prompt."""
        trigger = _trigger(reason)
        fields = {"trigger": trigger, "custom_instructions": focus or None}
        answer = await self.hooks.run("PreCompact", fields, names=(trigger,))
        if answer.blocked:
            self._gave_up = _last_prompt(self.ctx.records)
            self.ctx.publish(facts.Notice(f"A hook keeps it uncompacted: {answer.blocked}"))
        return bool(answer.blocked)

    async def compact_now(self, focus: str) -> None:
        """Compact for the person, who may interrupt it; say so where there is nothing to do."""
        if self._next(prepare(self.requests).view)[1] is None:
            self.ctx.publish(facts.Notice("Nothing to compact yet."))
            return
        with suppress(asyncio.CancelledError), self.ctx.events.interruptible():
            await self.compact("manual", focus=focus)
        self.ctx.publish(self.requests.meter.measure())

    async def undo(self) -> None:
        """Make the compactions void: the full view again. Shown, also that none is in force."""
        view = prepare(self.requests).view
        if view.summary is None:
            self.ctx.publish(facts.Notice("Nothing to undo: the context isn't compacted."))
            return
        undone = facts.CompactionUndone(0, view.summary.record.id)
        self.ctx.recorder.write(undone)
        prepare(self.requests)
        shown = structs.replace(undone, tokens=self.ctx.ledger.tokens)
        await self.ctx.recorder.show(shown, self.requests.meter.measure())

    def _next(
        self, view: View, *, fill: bool = False
    ) -> tuple[SummaryRequest | None, CompactionPlan | None]:
        """Return what the server is asked for, if it makes the summary, and the plan: None where
        there is nothing to compact."""
        request = self._for_server(fill=fill)
        return request, self._cut_plan(request, view) if request else self._plan(view, fill=fill)

    def _plan(self, view: View, *, fill: bool = False) -> CompactionPlan | None:
        """Plan what goes and what stays; with `fill` as much stays as there is room for."""
        ctx, config = self.ctx, self.ctx.config.compaction
        return compaction_view.plan(
            ctx.records,
            ctx.link.model.id,
            keep=config.keep_messages,
            room=self._room(),
            fill=fill,
            pinned=view.pinned,
            least=max(last_front_level(ctx.records), 0),
        )

    def _covered(self, planned: CompactionPlan, view: View) -> list[Message]:
        """The messages that the summary is made of, as the model saw them."""
        shown_states = {id_: s for id_, s in view.stands.items() if s.state != "summarised"}
        return compaction_view.covered_messages(
            self.ctx.records,
            planned,
            self.ctx.link.model.id,
            pinned=view.pinned,
            stands=shown_states,
        )

    def _freed(self, planned: CompactionPlan, view: View) -> int:
        """The tokens of what a summary would stand for."""
        sizes = {item.id: item.tokens for item in self.ctx.ledger.items()}
        freed = sum(sizes.get(id_, 0) for id_ in planned.summarised)
        return freed + (sizes.get(view.summary.record.id, 0) if view.summary else 0)

    def _record(
        self, made: _Made, reason: Reason, *, before: int
    ) -> tuple[facts.CompactionFinished, list[facts.ExamFinished]]:
        """Append the records of the compaction and its exam, and make the view by them."""
        finished = self._finished(made, reason, before=before)
        record_unused(self.ctx, self._paid, "not all of it by the model of the summary")
        checked = [made.exam.event(self.ctx, len(made.verbatim))] if made.exam else []
        for fact in (finished, *checked):
            self.ctx.recorder.write(fact)
        prepare(self.requests)
        return finished, checked

    def _prefix(self, planned: CompactionPlan) -> str:
        """The hash of what a summary is to stand for; for the price and the record it is the same,
        and in a long session it takes a while."""
        if self._hashed[0] != planned.covers:
            hashed = compaction_view.covered_sha256(self.ctx.records, planned)
            self._hashed = planned.covers, hashed
        return self._hashed[1]

    def _finished(self, made: _Made, reason: Reason, *, before: int) -> facts.CompactionFinished:
        """A compaction as it is recorded, with the bill of the model that answered last."""
        model, usage = self._paid.last() or (self.ctx.link.model.id, Usage())
        return facts.CompactionFinished(
            before,
            self.ctx.ledger.compacted(made.plan.summarised, made.summary),
            made.plan.messages,
            made.summary,
            reason,
            covers=made.plan.covers,
            prefix_sha256=self._prefix(made.plan),
            model=model,
            usage=usage,
            verbatim=made.verbatim,
            **made.block,
        )

    def _give_up(self, before: int, reason: Reason, problem: str) -> Literal[False]:
        """Nothing was changed, and it is not tried again in this turn."""
        self._gave_up = _last_prompt(self.ctx.records)
        record_unused(self.ctx, self._paid, problem)
        self.ctx.publish(facts.CompactionFinished(before, before, 0, "", reason, problem))
        return False

    async def _announce(self, forecast: int | None) -> None:
        if not compaction_triggers.soon(forecast):
            self._announced = self._announced and forecast is not None
        elif not self._announced:
            self._announced = True
            turns = "1 turn" if forecast == 1 else f"{forecast} turns"
            planned = await self.plan()
            cost = f" Now: {planned.price.sentence}." if planned and planned.price else ""
            self.ctx.publish(
                facts.Notice(
                    f"Holdfast will compact the context in about {turns}. /compact does it "
                    f"now; /pin keeps results as they are.{cost}"
                )
            )


def _block_fields(asked: SummaryRequest | None, server: str, block: Block | None) -> dict[str, Any]:
    """Return the fields of a compaction's record about the server's own block."""
    if asked is None or block is None:
        return {}
    fields = {"bound": asked.bound, "frame": asked.frame, "follows": asked.cut.follows}
    return {"block": block, "server": server, **fields}


def _last_prompt(records: Sequence[Record]) -> str:
    prompts = (record.id for record in reversed(records) if is_prompt(record))
    return next(prompts, "")


def _trigger(reason: Reason) -> str:
    """The word of hooks for why the conversation is compacted."""
    return "manual" if reason == "manual" else "auto"
