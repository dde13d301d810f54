"""Plan mode ends in a plan: a call of `present_plan`, from the person's review to its result.

An approved plan is kept as a file, and its result is pinned. The record has it too, so that it can
be shown again.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tui.agent.agent_context import AgentContext
from tui.core.dataclass import dataclass, replace
from tui.core.errors import StorageError, ToolError
from tui.core.facts import Notice, PlanApproved, PlanProposed, QuestionAnswered, QuestionAsked
from tui.core.messages import ToolOutput, object_of, string_of
from tui.core.private_files import private_copy
from tui.core.questions import PLAN_CHOICES, PlanReview
from tui.core.text_cleaning import one_line
from tui.session.records import Record
from tui.tools.base import ToolContext
from tui.tools.present_plan import PresentPlan, PresentPlanParams

PLANS_FOLDER: Final = "plans"
"""In the workspace's private folder."""
_NAME_CHARS: Final = 48
_HEADER: Final = "Plan"

_MODES: Final = {
    "ask": "The mode is ask now: writes and commands ask the user.",
    "accept_edits": "The mode is accept edits now: files are written without asking.",
}
_NOBODY: Final = (
    "Nobody can approve a plan here, so nothing may be carried out. The plan is printed as the "
    "result of this run: end your turn now, without saying it again."
)
_LEFT: Final = (
    "The user left the plan without an answer. Plan mode goes on: change nothing, end your turn, "
    "and ask what they want if that isn't clear."
)


@dataclass(frozen=True, slots=True)
class ApprovedPlan:
    """A plan as it was approved; `path` is its file, "" where none is kept."""

    title: str
    text: str
    path: str


@dataclass(frozen=True, slots=True)
class Plans:
    """Shows the plans of one agent to the person."""

    ctx: AgentContext

    async def run(self, params: PresentPlanParams, tool: ToolContext) -> ToolOutput:
        """Carry out a call. Raises ToolError outside plan mode."""
        ctx, title = self.ctx, one_line(params.title)
        if ctx.state.mode != "plan":
            raise ToolError(
                "Plan mode is off, so there is nothing to approve.",
                hint="Do the work; say in your answer what you are going to do if that helps.",
            )
        async with ctx.rules.asking:
            ctx.publish(PlanProposed(tool.call_id, title, params.plan))
            ctx.publish(QuestionAsked(tool.call_id, PresentPlan.name, (_question(title),)))
            review = await ctx.state.pause.question(
                ctx.rules.approver.review_plan(title, params.plan)
            )
        tool.host.waited()
        labels = [label for verdict, label in PLAN_CHOICES if verdict == review.verdict]
        answer = {"header": _HEADER, "chosen": labels, "text": review.comment}
        output = await self._output(title, params.plan, review)
        ctx.publish(QuestionAnswered(tool.call_id, PresentPlan.name, (answer,), review.by))
        if review.approved:
            path = output.details["plan"]["path"]
            approved = PlanApproved(tool.call_id, title, review.plan, review.verdict, path)
            ctx.publish(approved)
        return output

    async def _output(self, title: str, plan: str, review: PlanReview) -> ToolOutput:
        edited = review.plan.strip() != plan.strip()
        match review.verdict:
            case "ask" | "accept_edits" as mode:
                self.ctx.state.mode = mode
                path = await self._write_file(title, review.plan)
                by = "The user edited and approved the plan." if edited else "The user approved it."
                where = f" It is kept in {path}." if path else ""
                text = f"{by} {_MODES[mode]} Carry it out.{where}\n\n# {title}\n\n{review.plan}"
                details = {"plan": {"title": title, "text": review.plan, "path": path}}
                summary = "edited and approved" if edited else "approved"
                made = ToolOutput.text(text, summary=summary)
                return replace(made, details=details, pin=True)
            case "change":
                text = (
                    f"The user wants changes: {review.comment}\n\nRevise the plan, then present it."
                )
                if edited:
                    text += f" They edited it meanwhile; begin with this:\n\n{review.plan}"
                return ToolOutput.text(text, summary=f"changes: {one_line(review.comment)}")
            case _:
                nobody = review.by == "default"
                return ToolOutput.text(_NOBODY if nobody else _LEFT, summary="not approved")

    async def _write_file(self, title: str, plan: str) -> str:
        """Keep a plan as a file; its path for the person, "" where that is not possible."""
        ctx = self.ctx
        if ctx.session.path is None:
            return ""
        day = ctx.clock.now().astimezone().date()
        folder = ctx.workspace.tool_results.with_name(PLANS_FOLDER)
        path = folder / f"{day}-{_file_name(title)}.md"
        try:
            written = await asyncio.to_thread(_write, path, f"# {title}\n\n{plan.strip()}\n")
        except (StorageError, OSError) as error:
            ctx.publish(Notice(f"Couldn't keep the plan as a file: {error}"))
            return ""
        return ctx.workspace.show(written)


def last_approved(records: Sequence[Record]) -> ApprovedPlan | None:
    """The plan of a session that was approved last."""
    for record in reversed(records):
        if record.type == "tool_result" and record.data.get("name") == PresentPlan.name:
            plan = object_of(object_of(record.data.get("details")).get("plan"))
            if text := string_of(plan.get("text")):
                return ApprovedPlan(string_of(plan.get("title")), text, string_of(plan.get("path")))
    return None


def _question(title: str) -> dict[str, object]:
    choices = [{"label": label, "description": ""} for _, label in PLAN_CHOICES]
    return {"header": _HEADER, "question": title, "choices": choices, "several": False}


def _file_name(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower())[:_NAME_CHARS].strip("-") or "plan"


def _write(path: Path, text: str) -> Path:
    with private_copy(path) as file:
        file.write(text.encode("utf-8", "replace"))
        return Path(str(file.name))
