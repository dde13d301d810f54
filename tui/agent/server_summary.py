"""A summary that the server makes on demand, as a block that replaces the beginning.

The block is signed: it is kept and sent as it came. What follows it directly keeps its thinking.
What the memory is to keep is in the same text, since a question of its own would read all of
the conversation once more; it is a few lines, which the model then knows, too.
"""

from __future__ import annotations

import logging
from typing import Any

from tui.agent.agent_context import AgentContext
from tui.agent.limits import PaidAnswers
from tui.agent.request.form import refuse_blocks
from tui.agent.request.side_requests import SummaryRequest
from tui.agent.request.state import RequestState
from tui.agent.side_question import answer_to
from tui.context import memory, summary_prompts
from tui.context.compaction_block import COMPACTION
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import ProviderError
from tui.core.messages import Block, string_of
from tui.core.redaction import mask_values

log = logging.getLogger(__name__)

_MOST_INSTRUCTIONS = 16_384
"""Characters that the API takes."""


@dataclass(slots=True)
class ServerSummarizer:
    """Asks the server for its summary. What that has used is added to `paid`, whatever came of
    it."""

    ctx: AgentContext
    requests: RequestState
    paid: PaidAnswers
    notes: list[str] = field(default_factory=list[str])
    block: Block | None = None

    async def summary(self, asked: SummaryRequest, focus: str, *, notes: bool) -> str:
        """The readable text of the block, without what the memory keeps; "" where there is none.

        An answer without a block is asked for once more, with twice the room. Raises
        CredentialsError.
        """
        wanted: dict[str, Any] = {"type": "summarize"}
        if focus or notes:
            question = summary_prompts.warm_question(focus=focus, notes=notes)
            wanted["instructions"] = question[:_MOST_INSTRUCTIONS]
        request = replace(asked.request, compaction=wanted)
        most = min(2 * request.max_tokens, self.ctx.link.model.max_output)
        for attempt in (request, replace(request, max_tokens=most)):
            try:
                answer = await answer_to(self.ctx, attempt, shown=True)
            except ProviderError as error:
                log.warning("no summary by the server: %s", error)
                if error.error_class == "invalid_request" and COMPACTION in error.message:
                    refuse_blocks(self.requests, error.message)
                return ""
            self.paid.add(self.ctx.link.beside, answer.usage)
            blocks = [block for block in answer.content if block.get("type") == COMPACTION]
            whole = string_of(blocks[0].get("content")) if blocks else ""
            text, to_remember = summary_prompts.split_answer(whole)
            if answer.stop_reason == COMPACTION and text and len(answer.content) == 1:
                self.notes = memory.notes_in(to_remember)
                self.block = blocks[0]
                return text
        return ""

    def sent(self) -> Block | None:
        """The block as it can be sent: not where the record would mask a secret in it, as then it
        would not be what the server signed."""
        if self.block is None or not self.ctx.session.redact:
            return self.block
        masked, _ = mask_values(self.block)
        return self.block if masked == self.block else None
