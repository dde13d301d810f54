"""The full screen as a front end of the conversation: questions become dialogs, events become
widgets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from textual.message import Message
from textual.screen import Screen
from textual.signal import Signal

from tui.agent.interrupted_work import InterruptedWork
from tui.app import dialog_data
from tui.app.conversation import Conversation
from tui.app.dialog_data import (
    ChoiceQuestion,
    Question,
    SetupQuestion,
    YesNoQuestion,
)
from tui.app.frontend import Kind, Level, Submitted, TurnResult
from tui.app.models import fallback_for
from tui.app.reports import Report
from tui.app.services import AppServices, SessionChoice
from tui.app.status_command import StatusCommand, StatusFigures
from tui.core import facts, gc_pause
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import HoldfastError
from tui.core.fact_words import goal_brief
from tui.core.facts import Fact
from tui.core.formatting import plural
from tui.core.git.branch import branch_of
from tui.core.text_cleaning import one_line
from tui.core.workspace import Workspace
from tui.ui.fact_renderer import FactRenderer
from tui.ui.notifications import notifier, write
from tui.ui.program_status import ProgramStatus, TurnStatus, outcome_of
from tui.ui.screens.modal_approver import ModalApprover
from tui.ui.terminal import SEND_AGAIN_S, TerminalStatus
from tui.ui.widgets.fact_log import FactLog
from tui.ui.widgets.record_items import (
    end_of,
    restored,
    result_text,
    unfinished_items,
    warm,
    warm_turn,
)

if TYPE_CHECKING:
    from textual.worker import Worker

    from tui.agent.agent import Agent
    from tui.agent.plans import ApprovedPlan
    from tui.context.timeline import SessionTimeline
    from tui.ui.screens.chat import ChatScreen
    from tui.ui.toolkit.base_app import ThemedApp

log = logging.getLogger(__name__)


@dataclass
class TurnEnded(Message):
    """Tells the app that a turn is over. `error` is what it failed with, if known."""

    outcome: str
    error: facts.ErrorRaised | None = None


_SEVERITY: Mapping[Level, Literal["warning", "error"]] = {"warning": "warning", "error": "error"}

FindView: TypeAlias = Callable[["ScreenFrontend", str, str], Coroutine[Any, Any, None] | None]
"""Returns the coroutine for a command that only the full screen has, by name and argument; None for
a command with a shared handler."""

_ASKER = "The session of your chat asks:"
_AT_ONCE_S = 0.25
"""Seconds within which most commands are done, or have opened a screen."""
_REST_S = 1.0
"""Seconds without a key after which nobody waits for one."""
_KEYS_WAIT_S = 2.0
"""Seconds that keys wait for the screen that a command opens."""
_ROOMY = 48
"""Cells of a row; narrower ones only say how many files have changed since a prompt."""


@dataclass(slots=True, eq=False)
class RunningCommand:
    """A command that runs. `settled` is set once keys need not wait for it: it is done, has opened
    a screen, or begun something else."""

    settled: asyncio.Event = field(default_factory=asyncio.Event)
    opened: bool = False


class ScreenFrontend:
    """Implements `Frontend` with the chat screen and the dialogs above it, and owns the one
    conversation. Whatever waits for the person runs in a worker of the app."""

    stop_key = "Esc"

    def __init__(
        self, app: ThemedApp, chat: ChatScreen, services: AppServices, find_view: FindView
    ) -> None:
        self.app, self.chat = app, chat
        self._find_view = find_view
        self.log = FactLog(services.clock)
        chat.side.results = self._results
        chat.conversation.opens_terminals = True
        self.renderer = FactRenderer(chat, self.log, self._result)
        self.approver = ModalApprover(app, chat, asker=_ASKER)
        settings = services.settings
        self.terminal = TerminalStatus(partial(write, app), settings.now.terminal)
        settings.follow(lambda now: now.terminal, self.terminal.use)
        self.notifier = notifier(app, services.clock, self.terminal.notification, settings)
        self._progress = app.set_interval(SEND_AGAIN_S, self.terminal.say_again, pause=True)
        self.conversation = self.approver.holder = Conversation(services, self)
        self.conversation.door.kind = "screen"
        self.status = StatusCommand(
            settings=settings.now.status,
            cwd=services.workspace,
            clock=services.clock,
            holder=self,
        )
        settings.follow(lambda now: now.status, self.status.use)
        app.run_worker(self.status.watch(), group="status")
        self.timeline: SessionTimeline | None = None
        self._model = ""
        self._in_turn = False
        self._turn = TurnStatus()
        self._resting: asyncio.TimerHandle | None = None
        self._warming: Worker[None] | None = None
        self._commands: list[RunningCommand] = []
        screens = cast("Signal[Screen[Any]]", app.screen_change_signal)  # pyright: ignore[reportUnknownMemberType]
        screens.subscribe(chat, self._screen_changed, immediate=True)
        settings.apply(lambda now: now.motion == "reduced", self._be_calm)
        chat.prompt.images = self.conversation.images
        chat.prompt.take_back = self.conversation.take_back
        self.conversation.images.copied = lambda: app.clipboard

    def _be_calm(self, calm: bool) -> None:
        self.chat.calm = calm

    @property
    def services(self) -> AppServices:
        return self.conversation.services

    @property
    def prompt_text(self) -> str:
        prompt = self.chat.prompt
        return "\n".join(filter(None, (prompt.value, prompt.stashed)))

    def put_prompt(self, text: str, *, replace: bool = False) -> None:
        prompt = self.chat.prompt
        if replace:
            prompt.past.add(prompt.value)
            prompt.put_whole(text)
        else:
            prompt.put_back(text)

    async def take_line(self, text: str) -> Submitted | None:
        from tui.app.router import route_from_afar  # noqa: PLC0415 - for a watcher's line

        return await route_from_afar(self.conversation, text)

    # What is shown

    def say(self, text: str, level: Level = "info", *, hint: str = "") -> None:
        """Show a notice above the prompt; if the chat is covered, also in a corner of what covers
        it."""
        self.chat.notice.say(text, level, hint=hint)
        self.conversation.door.say(text, level, hint)
        if self.app.screen is not self.chat:
            message = f"{text} {hint}".rstrip()
            self.app.notify(message, severity=_SEVERITY.get(level, "information"), markup=False)

    def report(self, report: Report) -> None:
        from tui.ui.widgets.conversation.items import NoticeItem  # noqa: PLC0415 - it draws

        text = "\n".join(report.lines)
        self.chat.add(NoticeItem(report.title, report.level, text, folded=False))
        self.chat.conversation.follow()  # who asked for it may have scrolled up

    def show(self, event: Fact) -> None:
        self.renderer.show(event)
        self.conversation.door.see(event)
        agent = self.conversation.agent
        if agent and facts.awaits_person(event) is False:
            self.chat.show_mode(agent.permissions.mode, agent.permissions.gate.allowances)
        if isinstance(event, facts.ContextMeasured):
            self.status.poke()
            self._count_goal()
        if isinstance(event, facts.RequestSent):
            self._await_rest()  # it takes a moment to be answered
        inner = event.event if isinstance(event, facts.SubAgentEvent) else event
        if isinstance(inner, facts.JobStarted | facts.JobFinished | facts.SubAgentFinished):
            self._count_jobs()
        if self._in_turn or isinstance(event, facts.JobFinished):
            self.notifier.see(event)
        if self._in_turn and (status := self._turn.see(event)):
            self._tell_terminal(status)

    def _count_goal(self) -> None:
        """Show what the goal that is worked on has taken so far."""
        meter, agent = self.chat.left.meter, self.conversation.agent
        if meter.goal and self._in_turn and agent is not None and (now := agent.goal.now):
            meter.goal = goal_brief(now)

    def _await_rest(self) -> None:
        """Have what is left of earlier screens and answers collected once no key comes."""
        if self._resting is not None:
            self._resting.cancel()
        self._resting = asyncio.get_running_loop().call_later(_REST_S, self._rest)

    def _rest(self) -> None:
        if self.app.clock.monotonic() - self.app.arrived_at < _REST_S:
            self._await_rest()
        else:
            gc_pause.rest()

    def _count_jobs(self) -> None:
        """Show in the status line how many commands run in the background."""
        agent = self.conversation.agent
        count = agent.jobs.running if agent else 0
        self.chat.status.state = replace(self.chat.status.state, jobs=count)

    def _result(self, id_: str) -> str:
        agent = self.conversation.agent
        return result_text(agent.session.records, id_) if agent else ""

    def _results(self) -> Path:
        agent = self.conversation.agent
        root = self.conversation.services.workspace
        return agent.full_outputs if agent else Workspace(root).tool_results

    def show_unfinished(self, answer: str) -> None:
        for item in unfinished_items(answer):
            self.chat.add(item)
        self.renderer.last_answer = answer

    def show_status(self, text: str) -> None:
        status = self.chat.status
        status.state = replace(status.state, own=text)

    def status_figures(self) -> StatusFigures | None:
        agent, measured = self.conversation.agent, self.chat.left.meter.state
        if agent is None:
            return None
        return StatusFigures(
            model=agent.models.current,
            session_id=agent.session.id,
            title=agent.session.title,
            cwd=str(self.services.workspace),
            branch=self.chat.header.state.branch,
            tokens=measured.tokens if measured else 0,
            window=agent.models.window,
            cost_usd=agent.spending().session.usd,
            mode=agent.permissions.mode,
            turns=self.chat.status.state.turns,
            profile=agent.models.profile,
        )

    def _tell_terminal(self, status: ProgramStatus | None = None) -> None:
        """Show in the terminal's title and tab what is happening."""
        agent = self.conversation.agent
        title = agent.session.title if agent else ""
        self.terminal.show_status(status, name=title or self.services.workspace.name)
        if self.terminal.status.active:
            self._progress.resume()
        else:
            self._progress.pause()

    def refresh(self) -> None:
        self.status.poke()
        agent = self.conversation.agent
        self._tell_terminal()
        self.chat.queued.texts = self.conversation.queue.texts
        self.renderer.head(title=agent.session.title if agent else "")
        if agent is not None:
            self.chat.show_mode(agent.permissions.mode, agent.permissions.gate.allowances)
            self.renderer.head(unconfined=agent.permissions.unconfined)
            if agent.models.current != self._model:
                self._model = agent.models.current
                self.renderer.head(model=agent.models.current)

    def view(self, name: str, argument: str) -> Coroutine[Any, Any, None] | None:
        return self._find_view(self, name, argument)

    async def show_file(self, path: Path) -> None:
        from tui.ui.screens.external_programs import open_file  # noqa: PLC0415 - on demand

        if problem := await open_file(self.app, path, "editor"):
            self.say(problem, "error")

    async def show_plan(self, plan: ApprovedPlan) -> None:
        from tui.ui.screens.plan import PlanScreen  # noqa: PLC0415 - on demand

        self.app.push_screen(PlanScreen(plan.title, plan.text, plan.path))

    # What runs

    def began(self, kind: Kind, phase: str) -> None:
        self.chat.query("ResumeCard").remove()
        for command in self._commands:
            command.settled.set()
        if kind != "side":
            self.chat.conversation.follow()
        agent = self.conversation.agent
        if kind == "turn" and agent is not None:
            self.chat.retry.other = fallback_for(self.services, agent.models.current)
            self.notifier.begin()
            self.expect_prompt()  # if nobody typed it
            self._in_turn = True
            self._turn.begin()
        self._tell_terminal(ProgramStatus("working", phase))
        if phase:
            self.chat.work(phase)

    def ended(self, result: TurnResult | None = None) -> None:
        self._in_turn = self.renderer.opens = False
        self._tell_terminal(outcome_of(result))
        self.chat.idle()
        self.renderer.head(branch=branch_of(self.services.workspace))
        self.refresh()
        if result is not None:
            self._await_rest()
            self.app.post_message(TurnEnded(result.outcome, result.error))

    async def run_command(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a command. Most are done at once, or have opened a screen; while another has not,
        `command_opens`."""
        command = RunningCommand()
        self._commands.append(command)

        async def carry_out() -> None:
            try:
                await work
            finally:
                self._commands.remove(command)
                command.settled.set()
                if not any(other.opened for other in self._commands):
                    self.app.guard.command_done()

        self.app.run_worker(carry_out(), group="command")
        with suppress(TimeoutError):
            async with asyncio.timeout(_AT_ONCE_S):
                await command.settled.wait()

    def _screen_changed(self, screen: Screen[Any]) -> None:
        """Note that commands have a screen. Once that is closed, a key may be meant for the next
        one of the same command."""
        for command in self._commands:
            if screen is not self.chat:
                command.opened = True
                command.settled.set()
            elif command.opened:
                self.app.guard.hold_sending()

    @property
    def command_opens(self) -> bool:
        """True while keys wait for the screen that a command may open: what is typed after it is
        meant for that."""
        return any(not command.settled.is_set() for command in self._commands)

    async def command_settled(self) -> None:
        """Wait until keys need not wait for a command, but not for long. Nothing is sent by those
        that waited in vain, as the screen may yet come."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_KEYS_WAIT_S):
                for command in list(self._commands):
                    await command.settled.wait()
        if self.command_opens:
            self.app.guard.hold_sending(self.services.clock.monotonic())
        for command in self._commands:
            command.settled.set()

    def expect_prompt(self, *, whole: bool = False) -> None:
        """Begin to load what a request and its answer need, since a prompt is being written. One
        after the other: two threads would take the interpreter from the keys twice. A `whole` one
        was pasted and may be sent at once."""
        if self._warming is None:
            self._warming = self.app.run_worker(self._load_all(whole=whole), group="warm")
        elif self._warming.is_finished:
            self.conversation.expect_prompt()  # of another session

    async def _load_all(self, *, whole: bool) -> None:
        if not whole:
            await self.app.painted()  # the first key
        await self.conversation.load_request()  # is needed first
        await self._warm_turn()

    async def _warm_turn(self) -> None:
        """Load it ahead. What fails, as after an upgrade, fails again where it is needed: nobody
        who is typing is to lose the screen to it."""
        try:
            with gc_pause.gc_pause():
                await asyncio.to_thread(warm_turn)
        except Exception:
            log.exception("loading ahead failed")

    async def painted(self) -> None:
        await self.app.painted()

    # Sessions

    async def opening(self, choice: SessionChoice) -> None:
        """Show the end of the first session, if it has one, while the rest is read."""
        self.chat.work("opening the session")
        if self.chat.conversation.items:
            return  # the first frame has shown it
        if choice.path is not None and self.conversation.agent is None:
            with suppress(HoldfastError), gc_pause.gc_pause():
                items = await asyncio.to_thread(end_of, choice.path)
                await asyncio.to_thread(warm, items)
                await self._warm_turn()
                self.chat.fill(items, end=True)

    async def show_session(self, agent: Agent, choice: SessionChoice) -> None:
        from tui.ui.widgets.record_items import entry_of  # noqa: PLC0415 - it draws

        chat, records = self.chat, agent.session.records
        with gc_pause.gc_pause(loading=True):
            past = await asyncio.to_thread(restored, records)
            prepared = await asyncio.to_thread(chat.conversation.prepare, past.items)
            if past.items:
                await asyncio.to_thread(warm, past.items)
                await self._warm_turn()
        self.renderer = FactRenderer(chat, self.log, self._result)
        self.renderer.resume(past, prepared)
        self.renderer.opens = True
        self._count_jobs()
        self._model = agent.models.current
        await self.painted()
        await chat.query("ResumeCard").remove()
        await asyncio.sleep(0)  # lets a waiting key through
        if chat.has_class("-fresh") and not chat.header.state.mark:  # a tour has its own steps
            self.app.run_worker(self._offer_rows(), group="start rows", exclusive=True)
        if agent.mcp.all:
            self.app.run_worker(self._offer_prompts(agent), group="offers", exclusive=True)
        chat.show_read_only(agent.session.read_only)
        if choice.message and not any(record.id == choice.message for record in records):
            self.say("That message is on another branch.", hint="/tree switches to it.")
        if choice.message and (item := entry_of(records, choice.message, chat.conversation.items)):
            chat.conversation.go_to(item)

    async def _offer_prompts(self, agent: Agent) -> None:
        """Suggest the prompts of MCP servers too, once those are known."""
        from tui.app.mcp_offers import all_known  # noqa: PLC0415 - not for the first frame

        await all_known(agent)
        if self.chat.prompt.suggestions is not None:
            self.chat.prompt.suggestions.renew()

    async def _offer_rows(self) -> None:
        """Fill the rows of a new session once they are known."""
        from tui.app.start_rows import start_rows  # noqa: PLC0415 - not for the first frame

        services = self.services
        rows = await asyncio.to_thread(
            start_rows, services.folders, services.workspace, services.clock
        )
        if self.chat.start is not None:
            self.chat.start.rows = rows

    async def pick_session(self) -> SessionChoice | None:
        from tui.app.session_repository import SessionRepository  # noqa: PLC0415 - on demand
        from tui.ui.screens.sessions import SessionsScreen  # noqa: PLC0415

        agent = self.conversation.agent
        screen = SessionsScreen(
            SessionRepository.of(self.services),
            current=agent.session.path if agent else None,
            conversation=self.conversation if agent else None,
        )
        screen.awaited = agent is None  # the program has not begun yet
        picked = await self.app.push_screen_wait(screen)
        if picked is None:
            return None
        return SessionChoice(
            picked.row.path, message=picked.message, foreign=bool(picked.row.agent)
        )

    async def watch_session(self, session: str) -> None:
        if (work := self._find_view(self, "watch", session)) is not None:
            await work

    def switch_session(self, choice: SessionChoice) -> None:
        """Leave the current session for another one."""
        self.app.run_worker(self._switch_session(choice), group="session")

    async def _switch_session(self, choice: SessionChoice) -> None:
        from tui.app.open_session import switch_session  # noqa: PLC0415 - on demand

        try:
            await switch_session(self.conversation, choice)
        except HoldfastError as error:
            self.say(error.message, "error", hint=error.hint)

    # Questions

    async def choose(self, question: Question) -> str | None:  # the screens are loaded on demand
        """Ask with the dialog for that kind of question.

        Before there is a session the question comes from the start-up, so what is being typed is
        still meant for the prompt.
        """
        wait, starts = self.app.push_screen_wait, self.conversation.agent is None
        match question:
            case ChoiceQuestion():
                from tui.ui.widgets.dialog import answer_of  # noqa: PLC0415
                from tui.ui.widgets.questions import ChoiceDialog  # noqa: PLC0415

                question_shown = replace(question, unasked=question.unasked or starts)
                return await answer_of(self.app, ChoiceDialog(question_shown))
            case dialog_data.DamageQuestion(damage, copy, title):
                from tui.ui.screens.repair import RepairScreen  # noqa: PLC0415

                return await wait(RepairScreen(damage, copy, title=title, unasked=starts))
            case dialog_data.ModelQuestion(rows):
                from tui.ui.screens.picker import ModelsScreen  # noqa: PLC0415

                return await wait(ModelsScreen(rows))
            case dialog_data.ProfileQuestion(rows):
                from tui.ui.screens.picker import ProfilesScreen  # noqa: PLC0415

                return await wait(ProfilesScreen(rows))
            case dialog_data.PointQuestion(points, can_undo):
                from tui.ui.screens.picker import PickScreen  # noqa: PLC0415

                rows = [partial(_point_row, point) for point in points]
                ways = {"t": ("branches", dialog_data.ALL_BRANCHES)}
                if can_undo:
                    ways["u"] = ("undo the last rewind", dialog_data.UNDO)
                end, here = len(rows) - 1, "rewind to here"
                screen = PickScreen("rewind", rows, cursor=end, enter=here, ways=ways)
                chosen = await wait(screen)
                return screen.way or (None if chosen is None else str(chosen))
            case dialog_data.BranchQuestion():
                from tui.ui.screens.branches import BranchesScreen  # noqa: PLC0415

                return await wait(BranchesScreen(question, self.app.clock))
            case dialog_data.FailedRequest():
                from tui.ui.screens.recovery import RecoveryScreen  # noqa: PLC0415
                from tui.ui.widgets.dialog import answer_of  # noqa: PLC0415

                return await answer_of(self.app, RecoveryScreen(question))

    async def confirm(self, question: YesNoQuestion) -> bool:
        from tui.ui.widgets.dialog import answer_of  # noqa: PLC0415 - on demand
        from tui.ui.widgets.questions import Confirmation  # noqa: PLC0415

        return await answer_of(self.app, Confirmation(question)) or False

    async def ask_setup(self, question: SetupQuestion) -> str | None:
        from tui.ui.screens.welcome import WelcomeScreen  # noqa: PLC0415 - on demand

        screen = WelcomeScreen(self.services, question)
        answer = await self.app.push_screen_wait(screen)
        self.chat.uncover()
        return answer

    async def offer_interrupted_work(self, work: InterruptedWork) -> None:
        """Offer interrupted work on a card above the prompt, which stays until something else
        begins."""
        from tui.app.interruption import known, take_over  # noqa: PLC0415 - on demand
        from tui.tools.registry import verb  # noqa: PLC0415
        from tui.ui.widgets.resume_card import OpenItem, ResumeCard  # noqa: PLC0415

        remaining = await take_over(self.conversation, work)
        if remaining is None:
            return
        work = remaining
        calls = [
            OpenItem(verb(call.tool), call.label, known(call), call.outcome != "unknown")
            for call in work.calls
        ]
        commands: list[OpenItem] = []
        for orphan in work.orphans:
            by = f"by sub-agent {orphan.agent} " if orphan.agent else ""
            since = f"still running, started {by}{orphan.started[:16].replace('T', ' ')} UTC"
            commands.append(OpenItem(f"process {orphan.pid}", orphan.command, since, False))
        card = ResumeCard(calls, commands, partial(self._act_on_interruption, work))
        await self.chat.query_one("#left").mount(card, before="#notice")

    async def _act_on_interruption(self, work: InterruptedWork, answer: str) -> None:
        from tui.app.interruption import act_on_interruption  # noqa: PLC0415 - on demand
        from tui.ui.widgets.questions import Choice  # noqa: PLC0415

        if answer != "stop" and not self.conversation.says_idle():
            return
        focused = any(choice.has_focus for choice in self.chat.query(Choice))
        await self.chat.query("ResumeCard").remove()
        remaining = await act_on_interruption(self.conversation, work, answer)
        if remaining is not None:
            await self.offer_interrupted_work(remaining)
            if focused:
                self.chat.query_one("ResumeCard").query(Choice).first().focus()


def _point_row(point: dialog_data.Point, width: int) -> list[tuple[str, str]]:
    """Return a row of `width` cells for a prompt: when it was sent, its beginning, and at the right
    how many files have changed since."""
    from tui.ui.screens.table_screen import cell, whole_words  # noqa: PLC0415 - on demand

    try:
        time = f"{datetime.fromisoformat(point.record.time).astimezone():%H:%M}"
    except ValueError:
        time = ""
    files = f"  {plural(point.files, 'file')}" if point.files else ""
    if files and width >= _ROOMY:
        files += " changed since"
    room = max(4, width - 7 - len(files))
    text = cell(whole_words(one_line(point.text[:500]), room), room)
    return [(f"{time:<7}", "muted"), (text, "text"), (files, "accent")]
