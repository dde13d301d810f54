"""The exam of a summary before it is accepted: asked, answered and marked by the small model.

Nothing here changes the conversation, and no failure stops a compaction: it is reported instead.
The questions and their marking are in `tui.context.exam`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Sequence
from typing import Final, TypeVar

from tui.agent.agent_context import AgentContext
from tui.agent.side_question import answer_to, small_request
from tui.context import exam, summary_prompts
from tui.context.exam import ExamFact, MarkedFact
from tui.core.config import ExamMode
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import HoldfastError, ProviderError
from tui.core.facts import ExamFinished
from tui.core.formatting import money
from tui.core.messages import Message, Usage, text_of
from tui.provider.base import ModelInfo

T = TypeVar("T")

log = logging.getLogger(__name__)

PATIENCE_S: Final = 240.0

_QUESTION_TOKENS, _ANSWER_TOKENS, _VERDICT_TOKENS = 4096, 4096, 1024
_AT_A_TIME = 4
"""Requests."""
_WRITTEN: Final = 1500
"""Tokens of the answers to a part's questions, from asking to marking, as a forecast has it."""
_SUMMARY: Final = 2500
"""Tokens of a summary that is read again for a part, as a forecast has it."""


@dataclass(slots=True)
class ExamResult:
    """The result of an exam. `problem` is why no fact, or not each of them, is marked."""

    mode: ExamMode
    model: str
    marked: Sequence[MarkedFact] = ()
    problem: str = ""
    usage: Usage = field(default_factory=Usage)

    @property
    def held(self) -> int:
        """The number of facts that the summary holds."""
        return sum(one.held for one in self.marked)

    def event(self, ctx: AgentContext, verbatim: int) -> ExamFinished:
        """Make the event for the person; `verbatim` facts are sent with the summary."""
        facts, price = tuple(one.to_json() for one in self.marked), ctx.price_of(self.model)
        usd = price.cost(self.usage) if price else None
        figures = self.held, verbatim, self.model, self.problem, usd
        return ExamFinished(facts, *figures, mode=self.mode, usage=self.usage)


def examiner(ctx: AgentContext) -> ModelInfo:
    """Return the model that asks and marks: the small one, or the conversation's where there is
    none."""
    return ctx.link.small_model or ctx.link.model


def forecast(ctx: AgentContext, freed: int) -> str:
    """Say what an exam on that many tokens costs at most; "" where none is wanted."""
    mode, model = ctx.config.compaction.exam, examiner(ctx)
    if mode == "off":
        return ""
    parts = 1 if mode == "small" else max(1, -(-freed // exam.PART_TOKENS))
    read = min(freed, parts * exam.PART_TOKENS) + parts * _SUMMARY
    price = ctx.price_of(model.id)
    if price is None:
        return f"{mode}, by {model.id}"
    usd = price.forecast(fresh=read, output=parts * _WRITTEN, prompt=exam.PART_TOKENS)
    return f"{mode}, by {model.id}, at most {money(usd)}"


async def examine(
    ctx: AgentContext, covered: Sequence[Message], summary: str, stays: str
) -> ExamResult:
    """Ask the small model about the `covered` messages, and whether the summary has the answers.

    What `stays` in the conversation, as text, can't be lost. Raises nothing but a cancellation.
    """
    model = examiner(ctx)
    result = ExamResult(ctx.config.compaction.exam, model.id)
    sitting = _Sitting(ctx, model, summary, stays, result)
    try:
        async with asyncio.timeout(PATIENCE_S):
            await sitting.sit(covered)
    except TimeoutError:
        result.problem = f"it wasn't done after {PATIENCE_S:.0f} s"
    except HoldfastError as error:
        log.warning("no exam of the summary: %s", error)
        result.problem = error.message
    except Exception as error:
        log.exception("no exam of the summary")
        result.problem = f"{type(error).__name__}: {error}"
    return result


@dataclass(slots=True)
class _Sitting:
    """One exam, which fills in its `result`."""

    ctx: AgentContext
    model: ModelInfo
    summary: str
    stays: str
    result: ExamResult
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_A_TIME))

    async def sit(self, covered: Sequence[Message]) -> None:
        """Ask about each part, then for the answers. What fails of several leaves out its part.

        Raises HoldfastError where nothing could be asked or marked.
        """
        pieces = summary_prompts.transcript(covered)
        parts = await asyncio.to_thread(exam.material, pieces, self.result.mode)
        facts = await self._all(self._facts(part) for part in parts)
        if not facts:
            raise HoldfastError("the model found nothing to ask about")
        groups = [facts[n : n + exam.AT_ONCE] for n in range(0, len(facts), exam.AT_ONCE)]
        self.result.marked = await self._all(self._marked(group) for group in groups)

    async def _all(self, work: Iterable[Awaitable[Sequence[T]]]) -> list[T]:
        ended = await asyncio.gather(*work, return_exceptions=True)
        failed = [one for one in ended if isinstance(one, BaseException)]
        made = [each for one in ended if not isinstance(one, BaseException) for each in one]
        for error in failed:
            if not made or not isinstance(error, HoldfastError):
                raise error
            self.result.problem = error.message
        return made

    async def _facts(self, part: str) -> list[ExamFact]:
        answer = await self._ask(exam.question_prompt(part), _QUESTION_TOKENS)
        return exam.facts_in(answer, part, self.stays)

    async def _marked(self, facts: Sequence[ExamFact]) -> list[MarkedFact]:
        answer = await self._ask(exam.answer_prompt(self.summary, facts), _ANSWER_TOKENS)
        answers = exam.numbered_in(answer, len(facts))
        marked = [
            MarkedFact(fact, one, exam.is_same(fact.answer, one))
            for fact, one in zip(facts, answers, strict=True)
        ]
        open_ = [n for n, one in enumerate(marked) if not one.held and exam.is_given(one.given)]
        if open_:
            pairs = [(marked[n].fact, marked[n].given) for n in open_]
            answer = await self._ask(exam.verdict_prompt(pairs), _VERDICT_TOKENS)
            for n, verdict in zip(open_, exam.numbered_in(answer, len(open_)), strict=True):
                marked[n] = replace(marked[n], held=exam.is_yes(verdict))
        return marked

    async def _ask(self, prompt: str, tokens: int) -> str:
        request = small_request(self.ctx, self.model, prompt, tokens)
        async with self._room:
            answer = await answer_to(self.ctx, request, provider=self.ctx.link.direct)
        self.result.usage += answer.usage
        if answer.stop_reason not in {"end_turn", "max_tokens"}:
            raise ProviderError("unknown", f"the answer ended with {answer.stop_reason}")
        return text_of(answer.content)
