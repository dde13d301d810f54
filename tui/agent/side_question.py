"""Side questions to the model: for a summary, and for what is worth remembering."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing, suppress
from datetime import date
from pathlib import Path
from typing import Final

from tui.agent.agent_context import AgentContext
from tui.agent.limits import PaidAnswers, Spent
from tui.agent.request.side_requests import room_for_question, with_question
from tui.agent.request.state import RequestState
from tui.agent.request.view import prepare
from tui.context import memory, summary_prompts
from tui.context.compaction_view import GONE
from tui.context.history import History
from tui.context.overrides import SPEAKING, content_of
from tui.core import facts
from tui.core.dataclass import dataclass, field
from tui.core.errors import HoldfastError, ProviderError
from tui.core.facts import RetryScheduled, TextDelta
from tui.core.messages import Message, Usage, text_block, text_of
from tui.core.private_files import private_folder
from tui.provider.base import AttemptStarted, Completed, ModelInfo, Provider, Request
from tui.session.records import Record
from tui.tokens import tokenizer

log = logging.getLogger(__name__)

SAVING: Final = "📝 Saving context..."
"""Shown to the letter."""

_SPLITS = 3
"""Number of times a part that the summarizer finds too long is split."""
_NOTE_TOKENS = 2000
"""Tokens of an answer with notes."""
_NOTE_PARTS = 4
_THINKING_TOKENS = 1024
"""For a small job, where the model thinks before it."""


async def ask_aside(
    ctx: AgentContext, question: str, max_tokens: int, paid: PaidAnswers, *, shown: bool = False
) -> str:
    """Ask the model beside the conversation: no tools, no history, one answer.

    `max_tokens` bounds the answer; the model's own bound holds as well. In all else as `answer_to`.
    Returns the answer; what it used is added to `paid`.
    """
    request = Request(
        model=ctx.link.model.id,
        system=[],
        messages=[{"role": "user", "content": [text_block(question)]}],
        tools=[],
        max_tokens=max(1, min(max_tokens, ctx.link.model.max_output)),
    )
    answer = await answer_to(ctx, request, shown=shown)
    paid.add(ctx.link.beside, answer.usage)
    return text_of(answer.content)


def small_request(
    ctx: AgentContext, model: ModelInfo, text: str, tokens: int, *, system: str = ""
) -> Request:
    """A small job of its own for a model, whose answer has at most `tokens`. It doesn't think where
    that can be turned off, else little."""
    first_party = ctx.link.at(model.id).first_party
    silent = first_party and "disabled" in model.thinking_types
    low = first_party and not silent and "low" in model.efforts
    return Request(
        model=model.id,
        system=[text_block(system)] if system else [],
        messages=[{"role": "user", "content": [text_block(text)]}],
        tools=[],
        max_tokens=min(tokens if silent else tokens + _THINKING_TOKENS, model.max_output),
        thinking={"type": "disabled"} if silent else None,
        effort="low" if low else None,
    )


async def answer_to(
    ctx: AgentContext, request: Request, *, shown: bool = False, provider: Provider | None = None
) -> Completed:
    """The answer to a request that is no part of the conversation; `provider` is whom to ask in
    place of the conversation's.

    A summary is `shown` as it comes, "" where it starts over. What the answer cost is added to
    `ctx.state.spent_in_run`. Raises ProviderError, CredentialsError or LimitReachedError.
    """
    answer = (provider or ctx.link.provider).stream(request)
    async with ctx.within_limits(request), aclosing(answer) as parts:
        async for part in parts:
            match part:
                case AttemptStarted(_, model):
                    ctx.link.beside = model
                    if shown:
                        ctx.publish(facts.CompactionDelta(""))
                case TextDelta(text) if shown:
                    ctx.publish(facts.CompactionDelta(text))
                case RetryScheduled():
                    ctx.publish(part)
                case Completed():
                    ctx.state.spend(Spent.on(part.usage, ctx.price_of(ctx.link.beside)))
                    return part
                case _:
                    pass
    raise ProviderError("stream_broken", "The answer ended early.")


def record_unused(ctx: AgentContext, paid: PaidAnswers, reason: str) -> None:
    """Take out the bills that no other record has, and record them: one for each model."""
    while (one := paid.last()) is not None:
        model, usage = one
        if usage.total:
            ctx.record(facts.AnswerUnused(model, usage, reason))


@dataclass(slots=True)
class WarmSummarizer:
    """Asks for the summary as the next message of the conversation, which the cache holds.

    What its requests have used is added to `paid`, whatever came of them; `notes` is what the
    memory is to keep, by the same answer.
    """

    ctx: AgentContext
    requests: RequestState
    paid: PaidAnswers
    notes: list[str] = field(default_factory=list[str])
    answered: bool = False
    """True if the conversation gave the summary."""

    def fits(self) -> bool:
        """True if the question can be asked now."""
        return room_for_question(self.requests, summary_prompts.WARM_TOKENS) > 0

    async def summary(self, focus: str, *, notes: bool) -> str:
        """The summary; "" where the model gave none, or where the question does not fit.

        An answer that is a call, a refusal, empty or cut at its limit is none: it is asked for once
        more, with twice the room. Raises ProviderError or CredentialsError.
        """
        question = summary_prompts.warm_question(focus=focus, notes=notes)
        before: Request | None = None
        for most in (summary_prompts.WARM_TOKENS, 2 * summary_prompts.WARM_TOKENS):
            request = with_question(self.requests, question, most)
            if request is None or request == before:  # never the same request twice
                return ""
            before = request
            answer = await answer_to(self.ctx, request, shown=True)
            self.paid.add(self.ctx.link.beside, answer.usage)
            summary, to_remember = summary_prompts.split_answer(text_of(answer.content))
            if answer.stop_reason == "end_turn" and summary:
                self.notes, self.answered = memory.notes_in(to_remember), True
                return summary
        return ""


@dataclass(slots=True)
class Summarizer:
    """Makes one summary. What its requests have used is added to `paid`, whatever came of them."""

    ctx: AgentContext
    paid: PaidAnswers

    async def summary(self, messages: Sequence[Message], focus: str) -> str:
        """One summary of all of it, from as many requests as its length takes.

        Raises HoldfastError where there is none.
        """
        budget = int(self.ctx.link.model.window * summary_prompts.SHARE)
        pieces = summary_prompts.transcript(messages)
        parts = await asyncio.to_thread(summary_prompts.parts, pieces, budget)
        summaries: list[str] = []
        for number, part in enumerate(parts, 1):
            summaries += await self._of_part(part, focus, number, len(parts))
        while len(summaries) > 1:
            groups = _groups(summaries, budget)
            summaries = [
                await self._ask(summary_prompts.merge_question(g, focus=focus)) for g in groups
            ]
        summary = "\n".join(summaries).strip()
        if not summary:
            raise HoldfastError("The model returned an empty summary, so nothing changed.")
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
        most = min(summary_prompts.SUMMARY_TOKENS, max(256, self.ctx.link.model.window // 10))
        return (await ask_aside(self.ctx, prompt, most, self.paid, shown=True)).strip()


@dataclass(frozen=True, slots=True)
class MemoryFlush:
    """Flushes one session to its memory file, where there is one and the configuration says so."""

    ctx: AgentContext
    requests: RequestState

    def pending(self, upto: str = "") -> bool:
        """True if something was said, up to a record, that was not flushed yet."""
        enabled = (
            self.ctx.config.compaction.memory_flush and self.ctx.sources.memory_file is not None
        )
        return bool(self._fresh(upto)) and enabled

    async def flush_now(self) -> None:
        """Flush all that is new for the person, who may interrupt it."""
        with suppress(asyncio.CancelledError), self.ctx.events.interruptible():
            await self.flush()

    async def flush(self, *, upto: str = "") -> bool:
        """Ask what is worth keeping of what is new, and write it. False where nothing was kept.

        Nothing is raised but a cancellation: whatever comes after does not depend on it.
        """
        if not self.pending(upto):
            return False
        self.ctx.publish(facts.Notice(SAVING))
        return await self._keep(upto, None)

    async def keep(self, notes: Sequence[str], *, upto: str) -> bool:
        """Write notes that the model gave with a summary. As `flush` in all else."""
        return self.pending(upto) and await self._keep(upto, notes)

    async def _keep(self, upto: str, given: Sequence[str] | None) -> bool:
        paid = PaidAnswers()
        try:
            return await self._save(upto, given, paid)
        finally:
            record_unused(self.ctx, paid, "notes for the memory")

    async def _save(self, upto: str, given: Sequence[str] | None, paid: PaidAnswers) -> bool:
        path = self.ctx.sources.memory_file
        assert path is not None
        try:
            notes = await self._notes(self._fresh(upto), paid) if given is None else list(given)
            added = 0
            if notes:
                today = self.ctx.clock.now().astimezone().date()
                added = await asyncio.to_thread(_write, path, notes, today)
        except HoldfastError as error:
            log.warning("couldn't save the memory: %s", error)
            self.ctx.publish(facts.Notice(f"Couldn't save to memory: {error.message}"))
            return False
        except Exception:
            log.exception("couldn't save the memory")
            return False
        last = self._fresh(upto)[-1].id
        model, usage = paid.last() or (self.ctx.link.model.id, Usage())
        await self.ctx.recorder.record_synced(
            facts.MemorySaved(str(path), added, notes=notes, covers=last, model=model, usage=usage)
        )
        return bool(added)

    def _fresh(self, upto: str) -> list[Record]:
        """Return the records since the last flush, if an answer is among them."""
        records: list[Record] = []
        done = next(
            (r.data.get("covers") for r in reversed(self.ctx.records) if r.type == "memory"), None
        )
        for record in reversed(self.ctx.records):
            if record.id == done:
                break
            if record.type in SPEAKING:
                records.append(record)
        records.reverse()
        if upto:
            ends = [n for n, record in enumerate(records) if record.id == upto]
            records = records[: ends[0] + 1] if ends else []
        answered = any(r.type == "assistant" and content_of(r) for r in records)
        return records if answered else []

    async def _notes(self, fresh: Sequence[Record], paid: PaidAnswers) -> list[str]:
        """The notes of the model on all that is new: a request for each part that one can carry.

        Of very much, the newest parts.
        """
        states = prepare(self.requests).view.stands
        history = History(self.ctx.link.model.id)
        for record in fresh:
            stand = states.get(record.id)
            history.add(record, None if stand is None or stand.state == GONE.state else stand)
        pieces = summary_prompts.transcript(history.messages)
        budget = int(self.ctx.link.model.window * summary_prompts.SHARE)
        parts = await asyncio.to_thread(summary_prompts.parts, pieces, budget)
        notes = list[str]()
        for part in parts[-_NOTE_PARTS:]:
            text = await ask_aside(self.ctx, memory.question(part), _NOTE_TOKENS, paid)
            notes += memory.notes_in(text)
        return notes


def _write(path: Path, notes: Sequence[str], today: date) -> int:
    private_folder(path.parent)
    return memory.remember(path, notes, today).added


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
