"""One summary of many messages, asked for in parts that a request can carry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tui.agent import events
from tui.agent.events import Event
from tui.agent.limits import Spent
from tui.agent.side_question import Question, ask
from tui.context import summary_prompts
from tui.core.config import Price
from tui.core.errors import HoldfastError, ProviderError
from tui.core.messages import Message
from tui.provider.base import ModelInfo, Provider
from tui.tokens import tokenizer

_SPLITS = 3
"""So many times a part that the summariser finds too long is split."""


@dataclass(slots=True)
class Summariser:
    """Makes one summary. `usage` is what its requests have cost, whatever came of them."""

    provider: Provider
    model: Callable[[], ModelInfo]
    publish: Callable[[Event], None]
    price: Callable[[], Price | None]
    usage: Spent = field(default_factory=Spent)

    async def summary(self, told: Sequence[Message], focus: str) -> str:
        """One summary of all of it, from as many requests as its length takes.

        Raises HoldfastError where there is none.
        """
        budget = int(self.model().window * summary_prompts.SHARE)
        pieces = summary_prompts.transcript(told)
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
        most = min(summary_prompts.SUMMARY_TOKENS, max(256, self.model().window // 10))
        answer = await ask(
            self.provider,
            Question(self.model(), prompt, most),
            hear=lambda text: self.publish(events.CompactionDelta(text)),
            publish=self.publish,
        )
        self.usage += Spent.on(answer.usage, self.price())
        return answer.text.strip()


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
