"""The editor as a front end: the updates that it is shown, in order, and the questions it is
asked."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Coroutine, Sequence
from contextlib import suppress
from secrets import token_hex
from typing import Any, Final, TypeVar, cast

from acp import RequestError, schema
from acp.connection import Connection
from acp.utils import notify_model, request_model, serialize_params

from tui.app.api import HeadlessFrontend
from tui.app.commands.table import HEADLESS
from tui.app.dialog_data import ChoiceQuestion, Question, YesNoQuestion
from tui.app.services import AppServices
from tui.cli.acp.updates import Content, SessionUpdates, Update, edits, notice, text_content
from tui.core.clock import Clock
from tui.core.messages import list_of, object_of, string_of
from tui.core.questions import (
    PLAN_CHOICES,
    PlanReview,
    UserAnswer,
    UserAnswers,
    UserQuestion,
    Verdict,
)
from tui.core.text_cleaning import one_line, visible
from tui.permissions.types import (
    REACHES,
    Answer,
    Approver,
    Call,
    Decision,
    always_in_words,
    offered,
    rules_in_words,
)
from tui.tools.registry import title, words_of

T = TypeVar("T")

PATIENCE_S: Final = 60.0
"""Seconds after which the person is reminded that an answer is awaited."""
_NO_ANSWER: Final = "The editor closed the question without an answer."


class Outbox:
    """A session's updates on their way to the editor. They leave in order; an update with a key
    replaces one with that key that still waits right before it."""

    def __init__(self, connection: Connection) -> None:
        self.session_id = ""
        self.connection = connection
        self._waiting: deque[tuple[Update, str]] = deque()
        self._sending = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._held = True

    def put(self, update: Update, key: str = "") -> None:
        if key and self._waiting and self._waiting[-1][1] == key:
            self._waiting.pop()
        self._waiting.append((update, key))
        self._begin()

    def hold(self) -> list[tuple[Update, str]]:
        """Send nothing by itself until `release`; returns what was waiting."""
        self._held, waiting = True, list(self._waiting)
        self._waiting.clear()
        return waiting

    def release(self) -> None:
        """Send what waits, and all that comes, once the caller has answered."""
        self._held = False
        self._begin()

    def _begin(self) -> None:
        if not self._held and self._waiting and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self.flush(), name="updates")

    async def flush(self) -> None:
        """Send what waits. An editor that has gone is no error."""
        async with self._sending:
            while self._waiting:
                update, _ = self._waiting.popleft()
                with suppress(ConnectionError):
                    notification = schema.SessionNotification(
                        session_id=self.session_id, update=update
                    )
                    await notify_model(self.connection, "session/update", notification)


class EditorApprover:
    """An `Approver` that puts questions to the editor, each as one of its requests."""

    def __init__(self, outbox: Outbox, updates: SessionUpdates, *, form: bool) -> None:
        self.outbox, self.updates, self.form = outbox, updates, form
        self.clock: Clock | None = None
        self._asked = set[asyncio.Task[Any]]()

    def take_back(self) -> None:
        """Cancel the open questions."""
        for task in self._asked:
            task.cancel()

    async def ask(self, call: Call, decision: Decision) -> Answer:
        choices = [("once", "Yes", "allow_once")]
        names = {
            "session": f"Yes, {call.scope or 'this call'} this session",
            "always": always_in_words(call, decision).capitalize(),
        }
        choices += [(one, names[one], "allow_always") for one in offered(call, decision)]
        choices.append(("no", "No", "reject_once"))
        reach = f" {REACHES[decision.level]}." if decision.walls else ""
        agent = f"Sub-agent {call.agent} asks. " if call.agent else ""
        why = f"{agent}{decision.reason}{reach}".strip()
        shown = [text_content(why)] if why else []
        if "always" in offered(call, decision):
            rules = rules_in_words(call, decision, head="A lasting yes allows:")
            shown.append(text_content("\n".join(rules)))
        if call.preview_kind == "diff":
            shown += edits(call.preview, self.updates.root)
        elif call.preview:
            shown.append(text_content(call.preview, verbatim=True))
        named, kind = one_line(title(call.tool, call.subject)), words_of(call.tool).kind
        taken = await self.pick(call.id, named, kind, shown, choices)
        if taken is None:
            return Answer("no", _NO_ANSWER)
        return Answer(cast("Any", taken))

    async def ask_user(self, questions: Sequence[UserQuestion], agent: str) -> UserAnswers:
        call = "" if agent else questions[0].call  # the editor knows no calls of sub-agents
        if self.form:
            return await self._fill_in(questions, agent, call)
        given: list[UserAnswer] = []
        for question in questions:
            labels = [choice.label for choice in question.choices]
            about = [
                text_content(
                    "\n".join(f"- **{c.label}**: {c.description}" for c in question.choices)
                )
            ]
            choices = [(str(n), label, "allow_once") for n, label in enumerate(labels)]
            choices.append(("no", "Don't answer", "reject_once"))
            taken = await self.pick(call, one_line(question.text), "other", about, choices)
            given.append(UserAnswer((labels[int(taken)],) if taken and taken != "no" else ()))
        return UserAnswers(tuple(given))

    async def review_plan(self, title: str, plan: str) -> PlanReview:
        offered = [(name, label) for name, label in PLAN_CHOICES if name != "change"]
        choices = [(name, label, "allow_once") for name, label in offered]
        choices.append(("change", "Keep planning: say what to change next", "reject_once"))
        call = self.updates.asking
        shown = [text_content(f"# {title}\n\n{plan}")]
        taken = await self.pick(call, one_line(title), "switch_mode", shown, choices)
        verdict = taken if taken in {name for name, _ in offered} else "none"
        return PlanReview(cast("Verdict", verdict), plan)

    async def pick(
        self,
        call: str,
        named: str,
        kind: str,
        shown: list[Content],
        choices: Sequence[tuple[str, str, str]],
    ) -> str | None:
        """Let the person pick one of `choices` (ids, names, kinds). Returns its id, None for
        none."""
        tool_call = schema.ToolCallUpdate(
            tool_call_id=call or f"question-{token_hex(6)}",
            title=named,
            kind=cast("Any", kind),
            status="pending",
            content=shown,
        )
        options = [
            schema.PermissionOption(option_id=id_, name=name, kind=cast("Any", kind))
            for id_, name, kind in choices
        ]
        request = schema.RequestPermissionRequest(
            session_id=self.outbox.session_id, tool_call=tool_call, options=options
        )
        method, expected = "session/request_permission", schema.RequestPermissionResponse
        asked = request_model(self.outbox.connection, method, request, expected)
        # The editor may answer with anything, so only an id that was offered counts.
        answer = await self._answer(asked, named)
        outcome = answer.outcome if answer is not None else None
        ids = {id_ for id_, _, _ in choices}
        if isinstance(outcome, schema.AllowedOutcome) and outcome.option_id in ids:
            return outcome.option_id
        return None

    async def _answer(self, asked: Awaitable[T], about: str) -> T | None:
        """Return the editor's answer, once it was sent all updates; None if it can't ask, or the
        question was taken back. An editor that has gone never answers: its sessions close."""
        await self.outbox.flush()
        task = asyncio.ensure_future(asked)
        self._asked.add(task)
        reminder = asyncio.create_task(self._remind(about), name="reminder")
        try:
            return await task
        except ConnectionError:
            await asyncio.Event().wait()
        except (RequestError, ValueError) as error:
            self.outbox.put(notice([f"The editor couldn't ask about {about}: {error}"]))
        except asyncio.CancelledError:
            task.cancel()
            current = asyncio.current_task()
            if current is None or current.cancelling():
                raise
        finally:
            self._asked.discard(task)
            reminder.cancel()
        return None

    async def _remind(self, about: str) -> None:
        if self.clock is not None:
            await self.clock.sleep(PATIENCE_S)
            self.outbox.put(notice([f"Waits for your answer: {about}. Cancelling ends the turn."]))

    async def _fill_in(
        self, questions: Sequence[UserQuestion], agent: str, call: str
    ) -> UserAnswers:
        """Let the person fill in a form."""
        # Each question gets two fields: its choices, and a text for an answer in one's own words.
        fields: dict[str, Any] = {}
        for number, question in enumerate(questions):
            options = [
                schema.EnumOption(
                    const=one.label, title=one.label, description=one.description or None
                )
                for one in question.choices
            ]
            fields[f"q{number}"] = (
                schema.ElicitationMultiSelectPropertySchema(
                    type="array",
                    title=question.header,
                    description=question.text,
                    items=schema.TitledMultiSelectItems(any_of=options),
                )
                if question.several
                else schema.ElicitationStringPropertySchema(
                    type="string",
                    title=question.header,
                    description=question.text,
                    one_of=options,
                )
            )
            fields[f"q{number}_text"] = schema.ElicitationStringPropertySchema(
                type="string", title=f"{question.header}: in your own words"
            )
        texts = "\n".join(question.text for question in questions)
        request = schema.CreateFormSessionElicitationRequest(
            mode="form",
            session_id=self.outbox.session_id,
            tool_call_id=call or None,
            message=f"Sub-agent {agent} asks: {texts}" if agent else texts,
            requested_schema=schema.ElicitationSchema(properties=fields),
        )
        asked = self.outbox.connection.send_request("elicitation/create", serialize_params(request))
        answer = object_of(await self._answer(asked, one_line(texts)))
        content = object_of(answer.get("content"))
        if answer.get("action") != "accept" or not content:
            return UserAnswers()
        return UserAnswers(tuple(_filled(q, n, content) for n, q in enumerate(questions)))


def _filled(question: UserQuestion, number: int, content: dict[str, Any]) -> UserAnswer:
    value, text = content.get(f"q{number}"), content.get(f"q{number}_text")
    values = [value, *list_of(value)]
    chosen = tuple(one.label for one in question.choices if one.label in values)
    return UserAnswer(chosen, string_of(text).strip())


class EditorFrontend(HeadlessFrontend):
    """A headless front end whose commands can ask."""

    stop_key = "Cancel"

    def __init__(self, services: AppServices, approver: Approver | None) -> None:
        assert isinstance(approver, EditorApprover)
        super().__init__(services, approver)
        self.editor = approver
        self.conversation.door.kind = "editor"
        approver.clock = services.clock

    def view(self, name: str, argument: str) -> Coroutine[Any, Any, None] | None:  # noqa: ARG002 - as the port has it
        return None if name in HEADLESS else self._no_view(name)

    async def choose(self, question: Question) -> str | None:
        if not isinstance(question, ChoiceQuestion) or question.unasked:
            return await super().choose(question)
        question = await question.complete()
        choices = [(one.name, one.label, "allow_once") for one in question.options]
        choices.append(("cancel", "Cancel", "reject_once"))
        text = visible("\n".join(filter(None, (question.text, *question.details))))
        taken = await self.editor.pick("", question.title, "other", [text_content(text)], choices)
        return None if taken == "cancel" else taken

    async def confirm(self, question: YesNoQuestion) -> bool:
        if question.unasked:
            return False
        choices = [("yes", question.yes, "allow_once"), ("no", question.no, "reject_once")]
        text = visible("\n".join(filter(None, (question.text, *question.details))))
        shown = [text_content(text)]
        return await self.editor.pick("", question.title, "other", shown, choices) == "yes"
