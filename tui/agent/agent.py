"""The agent: one session's prompts, turned into events and a complete record."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tui.agent.agent_context import AgentContext
from tui.agent.agent_jobs import AgentJobs
from tui.agent.agent_models import AgentModels
from tui.agent.agent_permissions import AgentPermissions
from tui.agent.agent_servers import AgentServers
from tui.agent.agent_view import AgentView
from tui.agent.background_jobs import BackgroundJobs
from tui.agent.calls.dispatch import ToolDispatcher
from tui.agent.calls.state import CallContext
from tui.agent.checkpoints import Checkpoints
from tui.agent.compaction import Compactor
from tui.agent.directive_state import DirectiveState
from tui.agent.hooks import HookRunner
from tui.agent.interrupted_work import InterruptedWork, calls_of, publish_opening
from tui.agent.limits import SessionCost, Spent
from tui.agent.mcp_tools import McpTools
from tui.agent.plans import Plans
from tui.agent.prompts import Directives, GoalWish, ParsedPrompt
from tui.agent.recovery import DeferredRetry, RequestRepair
from tui.agent.request.pruning import PruneSchedule
from tui.agent.request.state import RequestState
from tui.agent.side_question import MemoryFlush
from tui.agent.sub_agent_list import SubAgentList
from tui.agent.sub_agents import SubAgentStarter
from tui.agent.supervised_commands import SupervisedCommands, sweep_outputs
from tui.agent.titles import TitleWriter
from tui.agent.token_counter import TokenCounter
from tui.agent.turn import TurnRunner
from tui.agent.user_questions import UserQuestions
from tui.core import facts
from tui.core.facts import Fact
from tui.permissions.rules import without_tool
from tui.settings.agent_definitions import AgentDefinitions
from tui.settings.hook_files import Hooks
from tui.tools.ask_user import AskUser
from tui.tools.paging import PageLimits
from tui.tools.present_plan import PresentPlan
from tui.tools.recall import Recall, RecallParams
from tui.tools.registry import TOOLS
from tui.tools.skill import Skill
from tui.tools.task import SubAgentTool

if TYPE_CHECKING:
    from tui.agent.goal import AgentGoal
    from tui.agent.side_questions import SideQuestions
    from tui.agent.span_export import SpanExport
    from tui.tools.lsp import Checker


_LEAVE_S = 1.0
"""Seconds that a turn may take to come to a place where the next run can continue it."""


class Agent:
    """Takes prompts, and runs one turn at a time; what is typed meanwhile is queued by `steer`.

    Its parts show and change what it works with: `context` what the model sees, `models` who is
    asked, `jobs` background commands, `mcp` servers, `permissions` what it may do, `sub_agents`
    those that its calls started. What a method publishes comes in the turn that runs; where none
    runs the method returns it.
    """

    def __init__(self, ctx: AgentContext) -> None:
        self.session = ctx.session
        self._ctx = ctx
        self._background_jobs = BackgroundJobs(ctx)
        self.sub_agents = SubAgentList(ctx)
        self._add_tools()
        requests = self._requests = RequestState(ctx)
        self._titles = TitleWriter(ctx, requests)
        self._directives = DirectiveState(ctx, requests)
        repair, self._deferred = RequestRepair(ctx, requests), DeferredRetry(ctx)
        memory, self._hooks = MemoryFlush(ctx, requests), HookRunner(ctx)
        compactor = Compactor(ctx, requests, memory, self._hooks)
        self._mcp = McpTools(ctx, requests)
        self._pruning = PruneSchedule(ctx, requests)
        self._dispatcher = ToolDispatcher(CallContext(ctx, requests.features, self._hooks))
        self._turns = TurnRunner(
            ctx,
            requests,
            self._directives,
            self._dispatcher,
            compactor,
            self._pruning,
            self._mcp,
            repair,
            self._deferred,
            self.sub_agents,
            self._hooks,
        )
        counter = self._counter = TokenCounter(ctx, requests)
        self.context = AgentView(ctx, requests, self._pruning, compactor, memory, repair, counter)
        self.jobs = AgentJobs(ctx, self._background_jobs, self.sub_agents)
        self.mcp = AgentServers(ctx, requests, self._mcp)
        self.models = AgentModels(ctx, requests, self._directives, self._deferred, counter)
        self.permissions = AgentPermissions(ctx)
        self.spans: SpanExport | None = None
        """The sender of spans to the person's collector, where that is switched on."""
        self._side_questions: SideQuestions | None = None
        self._sweeping: asyncio.Task[None] | None = None
        self._closing = threading.Event()

    def _add_tools(self) -> None:
        """Add the tools that need the agent itself: to recall, ask, plan and delegate."""
        ctx, tools = self._ctx, self._ctx.toolbox.tools
        if ctx.toolbox.answers_only:
            tools.clear()
            return
        # What a definition leaves a sub-agent is a matter of its built-in tools.
        top, may_have = ctx.parent is None, ctx.toolbox.may_have
        if not top or may_have(Recall.name):
            tools[Recall.name] = Recall(self._recall)
        if ctx.toolbox.may_have(AskUser.name):
            tools[AskUser.name] = AskUser(UserQuestions(ctx))
        if top and may_have(PresentPlan.name):
            tools[PresentPlan.name] = PresentPlan(Plans(ctx))
        delegates = top and ctx.toolbox.find_agents is not None
        if delegates and may_have(SubAgentTool.name):
            starter = SubAgentStarter(
                ctx, Agent, lambda: self._requests.frame.effort, self.sub_agents
            )
            tools[SubAgentTool.name] = SubAgentTool(starter)

    async def _recall(
        self, asked: RecallParams, limits: PageLimits, path: Path | None
    ) -> tuple[str, str]:
        if path is not None:
            return await self.context.blame(path, asked.lines)
        return await self.context.recall(asked, limits, for_person=False)

    @property
    def goal(self) -> AgentGoal:
        """The goal of the session."""
        from tui.agent.goal import AgentGoal  # noqa: PLC0415 - few sessions have one

        return AgentGoal(self._ctx)

    @property
    def checkpoints(self) -> Checkpoints | None:
        """The checkpoints of the workspace; None where none are taken."""
        return self._ctx.checkpoints

    @property
    def directives(self) -> Directives:
        return self._directives.now

    @property
    def was_elevated(self) -> bool:
        """True if the session was elevated when it was closed, and is not now."""
        return self._directives.was_elevated and not self.directives.elevated

    @property
    def spent(self) -> Spent:
        """The cost of this run so far."""
        return self._ctx.state.spent_in_run

    def spending(self) -> SessionCost:
        """The cost of the whole session, earlier runs included, and of its last prompt."""
        return self._ctx.spent()

    @property
    def side_questions(self) -> SideQuestions:
        """The person's questions beside the conversation, also while a turn runs."""
        from tui.agent.side_questions import SideQuestions  # noqa: PLC0415 - on demand

        self._side_questions = self._side_questions or SideQuestions(self._ctx, self._requests)
        return self._side_questions

    @property
    def queue(self) -> tuple[str, ...]:
        """The prompts typed while the agent worked that have not been handed over yet."""
        return tuple(prompt.typed for prompt in self._ctx.state.queue)

    @property
    def offers_skills(self) -> bool:
        """True if the model has the tool that loads skills."""
        return Skill.name in self._ctx.toolbox.tools

    async def start(self) -> list[Fact]:
        """The events that come before the first turn; the session's settings are put in force.

        Does not touch the network, nor load what only a request needs: see `models.load`.
        """
        if self._ctx.parent is None:
            self._sweeping = asyncio.create_task(sweep_outputs(self._ctx, self._closing))
            for rule in without_tool(
                self._ctx.rules.gate.policy.allow, {*TOOLS, *self._ctx.toolbox.tools}
            ):
                text = f"The rule {rule} allows nothing: there is no such tool."
                self._ctx.publish(facts.Notice(text))
            self._hooks.begin()
        if self.spans is not None:
            self.spans.begin(partial(self._say_from_thread, asyncio.get_running_loop()))
        self._mcp.begin()
        await publish_opening(self._ctx, self._requests, self._directives, self._pruning)
        await SupervisedCommands(self._ctx).take_over_jobs()
        return self._ctx.events.take()

    def _say_from_thread(self, loop: asyncio.AbstractEventLoop, text: str) -> None:
        """Say something to the person, from any thread."""
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(self._ctx.events.tell, facts.Notice(text))

    def watch(self, show: Callable[[Fact], None]) -> None:
        """Show what comes while no turn runs, until `close`: what becomes of background commands,
        counts and titles."""
        self._ctx.events.aside = show

    def count_tokens(self) -> None:
        """Let the server count the context between the turns, where it changed much since the
        last answer, until `close`."""
        self._counter.begin()

    def title_session(self) -> None:
        """Let the small model title the session once a turn has finished, where it has no title,
        until `close`."""
        self._titles.begin()

    def rename(self, title: str) -> None:
        """Give the session another title, by a record; one that is being written is dropped."""
        self._titles.close()
        self._ctx.recorder.write(facts.TitleChanged(title))

    def send(self, prompt: ParsedPrompt) -> AsyncGenerator[Fact]:
        """Run one turn and yield its events; the last is TurnFinished.

        Images that the text names with `@` go along. Closing the iterator interrupts the turn.
        Nothing is raised: a failure is an event.
        """
        self.models.load()
        return self._ctx.events.run(self._turns.run, prompt)

    def go_on(
        self,
        again: Collection[str] = (),
        *,
        repeat: bool = False,
        goal: GoalWish | None = None,
    ) -> AsyncGenerator[Fact]:
        """Run a turn without a new prompt: after a failure, an interruption, or where it is parked.

        A parked session continues when its time has come; Parked comes again until then. In all
        else as `send`. `again` are ids of calls that an earlier run left without a result: they
        get it first, with the questions that they need. One that may have run is not run again,
        unless a person lets it be repeated. With a `goal`, the work on the session's goal goes on,
        too, within its limits.
        """
        self.models.load()
        return self._ctx.events.run(self._turns.run, None, again, repeat=repeat, goal=goal)

    def interrupted_work(self) -> InterruptedWork:
        """Find the work that an earlier run of the session left open. Blocks."""
        return self._dispatcher.interrupted_work()

    def collect(self, ids: Collection[str]) -> AsyncGenerator[Fact]:
        """Give calls whose commands are kept their results, and ask the model nothing; a command
        that still runs is waited for. Events as `send`."""
        return self._ctx.events.run(self._turns.collect, ids)

    async def leave(self) -> None:
        """Let commands that run continue without this program: `close` stops none then. The turn
        ends where the next run can continue it, if it comes to such a place at once."""
        self._let_commands_go_on()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_S):
                await self._ctx.events.rest()

    def _let_commands_go_on(self) -> None:
        self._ctx.state.pause.begin()
        self.jobs.leave()

    async def note(self, text: str, *, every: str = "") -> Sequence[Fact]:
        """Record a line that is for the person only, and show it; `every` is as in `Note`."""
        await self._ctx.recorder.record_synced(facts.Note(text, every=every))
        return self._ctx.events.take()

    async def close_calls(self, ids: Collection[str]) -> Sequence[Fact]:
        """Give calls that an earlier run left open their result: that they were interrupted.

        Raises RuntimeError while a turn runs.
        """
        self._ctx.refuse_in_turn()
        await self.sub_agents.settle()
        await self._dispatcher.close(calls_of(self.session.records, ids))
        return self._ctx.events.take()

    def steer(self, prompt: ParsedPrompt) -> None:
        """Queue a prompt for the running turn; it is sent once the running tools are done."""
        self._ctx.state.queue.append(prompt)
        self._ctx.publish_queue()

    def unqueue(self) -> tuple[ParsedPrompt, ...]:
        """Take back what is queued, for instance to edit it."""
        prompts = tuple(self._ctx.state.queue)
        self._ctx.state.queue.clear()
        self._ctx.publish_queue()
        return prompts

    def cancel(self) -> None:
        """Interrupt the running turn, if any. It still ends with TurnFinished.

        A turn that is closing its books already ends as it would have.
        """
        self._ctx.events.cancel()

    def pause(self) -> None:
        """Let the running turn end where `go_on` can continue it, here or in another process.

        What has begun is finished and recorded, except that commands run on without an agent; a
        question is taken back. Both calls are left without a result. It ends with TurnFinished, as
        interrupted unless nothing was left to do. Then `close` leaves commands too, unless the turn
        went on or `jobs.stay` was called.
        """
        self._let_commands_go_on()
        if self._deferred.waiting:
            self.cancel()

    def find_hooks(self) -> Hooks:
        """The person's hooks as they are now. Blocks."""
        find = self._ctx.rules.find_hooks
        return find() if find else Hooks()

    def find_agents(self) -> AgentDefinitions:
        """The kinds of sub-agents there are now. Blocks."""
        find = self._ctx.toolbox.find_agents
        return find() if find else AgentDefinitions({})

    @property
    def checkers(self) -> Sequence[Checker]:
        """The language servers and linters that were asked in this session."""
        return self._ctx.toolbox.checkers.all if self._ctx.toolbox.checkers else ()

    @property
    def full_outputs(self) -> Path:
        """The folder of full results, and of the copies that the file tools made."""
        return self._ctx.workspace.tool_results

    async def close(self) -> None:
        """Interrupt, stop background commands, sync and let go of everything.

        A parked session stays parked.
        Raises StorageError when something recorded could not be saved to the end.
        """
        ctx, self._turns.closing = self._ctx, True
        await self.session.recheck()
        if self.session.lost:  # what runs belongs to whoever took the session over
            await self.leave()
        self._titles.close()
        if self._side_questions is not None:
            await self._side_questions.close()
        await ctx.events.close()
        try:
            if ctx.parent is None:
                await self._hooks.close()
        finally:
            await self._let_go()

    async def _let_go(self) -> None:
        """Stop what runs beside, sync, and close everything that is this agent's own."""
        ctx, tools = self._ctx, self._ctx.toolbox
        self._closing.set()
        ctx.events.aside = None
        self._counter.close()
        self.models.close()
        if self._sweeping is not None:
            self._sweeping.cancel()
        self._requests.close()
        try:
            own = [tools.checkers.close()] if tools.checkers and ctx.parent is None else []
            await asyncio.gather(tools.jobs.close(), self._mcp.close(), *own)
            await self._background_jobs.settle()
            if ctx.checkpoints is not None and ctx.parent is None:
                await ctx.checkpoints.close()
        finally:
            try:
                await self.session.close()
            finally:
                if self.spans is not None:
                    await asyncio.to_thread(self.spans.close)
                if tools.outputs is not None:
                    await asyncio.to_thread(tools.outputs.close)
                if tools.confinement is not None and (ctx.parent is None or ctx.isolated):
                    await tools.confinement.close()
                if ctx.parent is None:
                    await ctx.link.provider.aclose()
