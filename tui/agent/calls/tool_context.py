"""Makes the context of one call: everything that its tool may use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tui.agent.agent_context import AgentContext
from tui.agent.calls.finish import SHOWN_CHARS, spill_path
from tui.agent.calls.state import CallContext, PendingCall
from tui.agent.user_questions import put, put_secret
from tui.core.dataclass import dataclass
from tui.core.documents import PAGE_TOKENS
from tui.core.facts import ProcessBegan, TodosChanged, ToolOutputChunk
from tui.core.messages import ToolOutput
from tui.core.process_birth import born
from tui.core.questions import SecretAnswer, SecretQuestion, UserAnswers, UserQuestion
from tui.core.text_cleaning import without_colours
from tui.tools.base import Answer, CallHost, Todo, ToolContext
from tui.tools.limits.clamp import Room, clamp_text
from tui.tools.limits.pipeline import GuardLimits

if TYPE_CHECKING:
    from tui.permissions.reading_rules import ReadingRules

LABEL_CHARS = 200
"""The length of a call's label in its intent, and of a command in the record of its process."""


def tool_context(shared: CallContext, state: PendingCall) -> ToolContext:
    """Return the context of a call as things are now."""
    ctx = shared.ctx
    limits, confinement = ctx.guard_limits, ctx.toolbox.confinement
    room = Room(limits.config.clamp_bytes, limits.config.clamp_lines)
    return ToolContext(
        call_id=state.id,
        start_reader=confinement.start_reader if confinement is not None else None,
        workspace=ctx.workspace,
        clock=ctx.clock,
        files=ctx.toolbox.files,
        jobs=ctx.toolbox.jobs,
        spill_path=spill_path(ctx, state),
        kept=shared.commands.folder(state.id),
        host=_Host(ctx, state, room),
        read_page_bytes=limits.page_bytes,
        guard=limits.config,
        document_pages=document_pages(shared, limits),
    )


def document_pages(shared: CallContext, limits: GuardLimits) -> int:
    """Return how many pages of a PDF fit into one result as a document: half of a result's share.

    0 if the model is not known to take documents.
    """
    link = shared.ctx.link
    known = link.first_party and link.model.documents
    if not known or "documents" in shared.features.off(link.model.id):
        return 0
    return limits.share_tokens // 2 // PAGE_TOKENS


def chunks_of(text: str) -> Iterator[str]:
    """Cut a text into parts of at most SHOWN_CHARS, but never within an escape sequence."""
    start = 0
    while start < len(text):
        end = start + SHOWN_CHARS
        mark = text.rfind("\x1b", start + 1, end)
        if mark > start and end < len(text) and "m" not in text[mark:end]:
            end = mark
        yield text[start:end]
        start = end


@dataclass(slots=True)
class _Host(CallHost):
    """The agent, as one call reaches it."""

    ctx: AgentContext
    state: PendingCall
    room: Room
    _rules: ReadingRules | None = None

    @property
    def session_id(self) -> str:
        return self.ctx.session.id

    @property
    def traceparent(self) -> str:
        return self.ctx.session.traceparent(self.state.id)

    def emit(self, text: str, picture: str = "") -> None:
        self.state.add_output(without_colours(text))
        for part in chunks_of(clamp_text(text, self.room, "ends")) if text else ("",):
            self.ctx.publish(ToolOutputChunk(self.state.id, part, picture))

    def set_todos(self, todos: Sequence[Todo]) -> None:
        items = tuple({"text": todo.text, "status": todo.status} for todo in todos)
        self.ctx.publish(TodosChanged(items))

    def leave(self, output: ToolOutput) -> None:
        self.state.output = output

    def started(self, pid: int) -> None:
        command = " ".join(str(self.state.call.get("input", {}).get("command", "")).split())
        self.ctx.record(ProcessBegan(self.state.id, pid, born(pid), command[:LABEL_CHARS]))

    def waited(self) -> None:
        """Count the call's seconds from now: a person's thinking is not the tool's time."""
        self.state.started = self.ctx.clock.monotonic()

    async def ask_secret(self, question: SecretQuestion) -> SecretAnswer | None:
        try:
            return await put_secret(self.ctx, self.state.id, self.state.name, question)
        finally:
            self.waited()

    async def ask(self, questions: Sequence[UserQuestion]) -> UserAnswers:
        try:
            return await put(self.ctx, self.state.id, self.state.name, questions)
        finally:
            self.waited()

    def reading(self, path: Path) -> Answer:
        if self._rules is None:  # resolved at their first use
            policy, elevated = self.ctx.rules.gate.policy, self.ctx.state.elevated
            self._rules = policy.reading(self.ctx.workspace, elevated=elevated)
        return self._rules.answer(path)
