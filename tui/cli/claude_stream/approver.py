"""The driver's permission callback as the person who is asked.

It answers for the person who started the driver, and only where it said on the command line that
it wants to be asked; else nobody can be, and the rules alone decide.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, cast

from tui.cli.claude_stream import tool_names
from tui.cli.claude_stream.hooks import KnownCalls
from tui.cli.claude_stream.link import DriverError, DriverLink
from tui.cli.event_output import to_stderr
from tui.core import facts
from tui.core.dataclass import dataclass
from tui.core.facts import Fact
from tui.core.messages import is_object, list_of, object_of, string_of
from tui.core.questions import PlanReview, UserAnswer, UserAnswers, UserQuestion, Verdict
from tui.permissions.gate import RulesOnly
from tui.permissions.types import Answer, Call, Decision
from tui.tools.ask_user import AskUser
from tui.tools.present_plan import PresentPlan

SESSION: Final = "session"
"""The destination of a permission that ends with the session."""


class Steered(Protocol):
    """The session, as an answer may change it."""

    def use_mode(self, mode: str) -> str:
        """Take over a mode by Claude Code's name. Returns why not, "" where it was."""
        ...

    def add_folder(self, folder: Path) -> None:
        """Let the file tools use a folder too."""
        ...

    def stop(self) -> None:
        """Interrupt the turn, once this call has its result."""
        ...

    def waits(self, *, begins: bool) -> None:
        """Note that the driver is asked, or has answered."""
        ...


@dataclass(slots=True)
class DriverApprover(RulesOnly):
    """Puts questions to the driver, if it `asks` for them. `session` is set once one is open."""

    link: DriverLink
    known: KnownCalls
    asks: bool = False
    session: Steered | None = None
    asking: str = ""
    """The id of the call that put the last question to the person."""

    def see(self, fact: Fact) -> None:
        """Note which call asks."""
        asked = fact.event if isinstance(fact, facts.SubAgentEvent) else fact
        if isinstance(asked, facts.QuestionAsked):
            self.asking = asked.id

    async def ask(self, call: Call, decision: Decision) -> Answer:
        if not self.asks:
            return await super(DriverApprover, self).ask(call, decision)  # noqa: UP008 - slots replace the class
        name, shown = tool_names.shown(call.tool, call.input, self.known.root)
        more: dict[str, Any] = {
            "permission_suggestions": _suggestions(call, name, decision),
            **({"blocked_path": str(decision.paths[0])} if decision.paths else {}),
            **({"decision_reason": decision.reason} if decision.reason else {}),
            **({"agent_id": call.agent} if call.agent else {}),
        }
        try:
            given = await self._request(name, shown, call.id, more)
        except DriverError as error:
            return Answer("no", error.message)
        match given.get("behavior"):
            case "allow":
                return self._allowed(call, decision, given)
            case "deny":
                if given.get("interrupt") is True and self.session is not None:
                    self.session.stop()
                return Answer("no", string_of(given.get("message")))
            case other:
                return Answer("no", f"The driver's answer ({other!r}) is neither allow nor deny.")

    def _allowed(self, call: Call, decision: Decision, given: Mapping[str, Any]) -> Answer:
        """The yes of an answer. One that changes the input is for this call alone: a lasting one
        would be about the call as it was."""
        lasting, changed = self._apply(given.get("updatedPermissions")), given.get("updatedInput")
        if is_object(changed) and changed:
            own = tool_names.own(call.tool, call.input, changed, self.known.root)
            if own != dict(call.input):
                self.known.calls[call.id] = call.tool, own
                return Answer("once", changed=own)
        return Answer("session" if lasting and "session" in decision.lasting else "once")

    async def ask_user(self, questions: Sequence[UserQuestion], agent: str) -> UserAnswers:
        if not self.asks:
            return await super(DriverApprover, self).ask_user(questions, agent)  # noqa: UP008 - slots replace the class
        shown = {
            "questions": [
                {
                    "question": one.text,
                    "header": one.header,
                    "options": [
                        {"label": choice.label, "description": choice.description}
                        for choice in one.choices
                    ],
                    "multiSelect": one.several,
                }
                for one in questions
            ]
        }
        name = tool_names.name_of(AskUser.name, {})
        try:
            given = await self._request(
                name, shown, self.asking, {"requires_user_interaction": True}
            )
        except DriverError as error:
            to_stderr(sys.stderr, error.message)
            return UserAnswers()
        answers = object_of(object_of(given.get("updatedInput")).get("answers"))
        if given.get("behavior") != "allow":
            return UserAnswers()
        return UserAnswers(tuple(_answer(one, answers.get(one.text)) for one in questions))

    async def review_plan(self, title: str, plan: str) -> PlanReview:
        if not self.asks:
            return await super(DriverApprover, self).review_plan(title, plan)  # noqa: UP008 - slots replace the class
        name = tool_names.name_of(PresentPlan.name, {})
        more = {"requires_user_interaction": True}
        try:
            given = await self._request(name, {"title": title, "plan": plan}, self.asking, more)
        except DriverError as error:
            return PlanReview("none", plan, error.message)
        if given.get("behavior") != "allow":
            return PlanReview("change", plan, string_of(given.get("message")))
        modes = {
            object_of(one).get("mode")
            for one in list_of(given.get("updatedPermissions"))
            if object_of(one).get("type") == "setMode"
        }
        verdict = "accept_edits" if "acceptEdits" in modes else "ask"
        final = string_of(object_of(given.get("updatedInput")).get("plan")) or plan
        return PlanReview(cast("Verdict", verdict), final)

    async def _request(
        self, name: str, shown: Mapping[str, Any], call: str, more: Mapping[str, Any]
    ) -> dict[str, Any]:
        described = shown.get("description")
        request = {
            "subtype": "can_use_tool",
            "tool_name": name,
            "display_name": name,
            "input": dict(shown),
            **({"description": described} if isinstance(described, str) else {}),
            **more,
            "tool_use_id": call,
        }
        if self.session is not None:
            self.session.waits(begins=True)
        try:
            return await self.link.ask(request)
        finally:
            if self.session is not None:
                self.session.waits(begins=False)

    def _apply(self, updates: object) -> bool:
        """Take over what an answer allows beside the call, for this session. Returns True if it
        allows calls like this one; what can't be taken over is said."""
        lasting = False
        for update in map(object_of, list_of(updates)):
            kind, where = update.get("type"), update.get("destination", SESSION)
            if where != SESSION:
                to_stderr(
                    sys.stderr,
                    f"A permission for {where!r} holds for this session only: a program can't "
                    "change Holdfast's own settings.",
                )
            if kind == "addRules" and update.get("behavior") == "allow":
                lasting = True
            elif kind == "addDirectories" and self.session is not None:
                for folder in list_of(update.get("directories")):
                    self.session.add_folder(self.known.root / str(folder))
            elif kind == "setMode" and self.session is not None:
                to_stderr(sys.stderr, self.session.use_mode(string_of(update.get("mode"))))
            else:
                to_stderr(sys.stderr, f"Ignored a permission update of the type {kind!r}.")
        return lasting


def _suggestions(call: Call, name: str, decision: Decision) -> list[dict[str, Any]]:
    """The lasting permissions that an answer may give beside the call."""
    if "session" not in decision.lasting:
        return []
    rule = {"toolName": name} | ({"ruleContent": call.scope} if call.scope else {})
    kind = {"type": "addRules", "rules": [rule], "behavior": "allow", "destination": SESSION}
    return [kind]


def _answer(question: UserQuestion, given: object) -> UserAnswer:
    """Read the answer to a question: a label, several of them with commas between, or words."""
    if isinstance(given, str) and given in {one.label for one in question.choices}:
        return UserAnswer((given,))
    names = [str(one) for one in list_of(given)] or (
        [one.strip() for one in given.split(",")] if isinstance(given, str) else []
    )
    labels = {one.label for one in question.choices}
    if names and all(name in labels for name in names):
        return UserAnswer(tuple(names))
    return UserAnswer(text=given) if isinstance(given, str) else UserAnswer()
