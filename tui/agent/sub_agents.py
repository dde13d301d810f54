"""Sub-agents: a call of `task` runs an agent of its own, in a session of its own.

The header of its session names the parent and the call; `sub_agent_list.py` has what the parent
records of it, `sub_agent_run.py` how it works. What the parent's model gets is its last message.

A sub-agent asks the parent's server, passes the parent's permissions call by call, and works in the
parent's sandbox and folders. A call that an earlier run left open continues its session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from tui.agent.agent_context import AgentContext
from tui.agent.mcp_tools import SEARCH_TOOLS
from tui.agent.sub_agent_list import SubAgent, SubAgentList
from tui.agent.sub_agent_run import MakeAgent, RunnableAgent, SubAgentRun
from tui.context import system_prompt
from tui.context.system_prompt import Source
from tui.core import facts
from tui.core.cancellation import to_the_end
from tui.core.errors import HoldfastError, ToolError
from tui.core.formatting import plural
from tui.core.git.branch import branch_of
from tui.core.messages import ToolOutput
from tui.core.text_cleaning import one_line
from tui.permissions.types import Call
from tui.provider.base import (
    ModelInfo,
)
from tui.session.session import Session
from tui.settings.agent_definitions import SMALL, STYLE, AgentDefinition, AgentDefinitions
from tui.tools.ask_user import AskUser
from tui.tools.present_plan import PresentPlan
from tui.tools.recall import Recall
from tui.tools.skill import Skill
from tui.tools.submit_result import SubmitResult
from tui.tools.task import SubAgentTool, TaskParams

if TYPE_CHECKING:
    from tui.agent.sub_agent_worktree import SubAgentWorktree
    from tui.tools.base import ToolContext

LIST_NAME: Final = "List of sub-agents"
"""The name by which the model knows the list of definitions."""


class SubAgentStarter:
    """Starts the sub-agents of one agent."""

    def __init__(
        self,
        ctx: AgentContext,
        make: MakeAgent,
        effort: Callable[[], str],
        list_: SubAgentList,
    ) -> None:
        """`make` makes an agent; `effort` is the level that the person chose, "" for none."""
        self._list = list_
        self._ctx, self._make, self._effort = ctx, make, effort
        self._places = asyncio.Semaphore(ctx.config.agents.parallel)

    async def run(self, params: TaskParams, tool: ToolContext) -> ToolOutput:
        """Carry out a call of `task`. Raises ToolError where no sub-agent can be started."""
        left_open = self._list.has_started(tool.call_id)
        before = self._list.earlier(params.resume, tool.call_id)
        if before is None:
            return await self._run(params, tool, None, left_open=False)
        self._list.taken.add(before.session_id)
        try:
            return await self._run(params, tool, before, left_open=left_open)
        finally:
            self._list.taken.discard(before.session_id)

    async def _run(
        self, params: TaskParams, tool: ToolContext, before: SubAgent | None, *, left_open: bool
    ) -> ToolOutput:
        ctx = self._ctx
        definition = await self._definition(before.agent if before else params.agent)
        self._check_allowed(definition.name, tool.call_id)
        model = await self._model(definition, tool)
        session = await self._session(before, tool.call_id)
        one = SubAgent(
            tool.call_id,
            session.id,
            session.path,
            definition.name,
            one_line(params.description),
            model.id,
            session=session,
        )
        self._list.known[session.id] = one
        work: SubAgentRun | None = None
        own: SubAgentWorktree | None = None
        try:
            if definition.isolated:
                from tui.agent.sub_agent_worktree import (  # noqa: PLC0415 - seldom needed
                    SubAgentWorktree,
                )

                own = await SubAgentWorktree.make(ctx, definition.name, session.id)
                tool.host.emit(f"{own.welcome}\n")
            agent = await self._agent(one, definition, model, session, own)
            one.work = agent
            work = SubAgentRun(ctx, one, agent, tool, len(session.records), before, own)
            path = str(one.path) if one.path else None
            about, resumed = one.description, before is not None
            started = facts.SubAgentStarted(
                one.call_id, one.session_id, path, one.agent, about, one.model, resumed
            )
            # on disk before it works, so that a crash leaves a trace of its session
            await ctx.recorder.record_synced(started)
            async with self._place(one, tool):
                # the person may have stopped it while it waited for a place
                if not one.stopped:
                    await work.do(params.prompt, left_open=left_open)
        except asyncio.CancelledError:
            one.state = "interrupted"
            tool.host.emit(f"[its work so far is kept: session {one.session_id}]\n")
            raise
        finally:
            # whatever happened, its session is closed and its worktree left
            if work is not None:
                await to_the_end(work.end())
            else:
                del self._list.known[session.id]
                await to_the_end(session.close())
                if own is not None:
                    await to_the_end(own.leave())
        assert work is not None
        return work.result()

    def _check_allowed(self, kind: str, call_id: str) -> None:
        """Raises ToolError where a rule forbids a kind, whatever the call calls it."""
        ctx = self._ctx
        call = Call(call_id, SubAgentTool.name, SubAgentTool.effect, kind)
        decision = ctx.rules.gate.decide(
            call, mode=ctx.state.mode, elevated=ctx.state.elevated, workspace=ctx.workspace
        )
        if decision.answer == "deny":
            raise ToolError(f"Not allowed, not run: {decision.reason}")

    def _place(self, one: SubAgent, tool: ToolContext) -> asyncio.Semaphore:
        """The right to work, of which there are as many as may work at the same time."""
        if self._places.locked():
            one.now = "waits for its turn"
            most = self._ctx.config.agents.parallel
            tool.host.emit(f"Waits for its turn: {plural(most, 'sub-agent')} at the same time.\n")
        return self._places

    async def _definition(self, name: str) -> AgentDefinition:
        find = self._ctx.toolbox.find_agents
        definitions = await asyncio.to_thread(find) if find else AgentDefinitions({})
        if (definition := definitions.find(name)) is None:
            known = ", ".join(definitions.all) or "none"
            raise ToolError(f"There is no sub-agent {name!r}.", hint=f"There are: {known}.")
        return definition

    async def _model(self, definition: AgentDefinition, tool: ToolContext) -> ModelInfo:
        """The model that a definition names, that of the conversation where it can't be asked."""
        ctx, name = self._ctx, definition.model
        if not name:
            return ctx.link.model
        if name == SMALL:
            return ctx.link.small_model or ctx.link.model
        model = await asyncio.to_thread(ctx.link.find_model, name)
        if model is None:
            tool.host.emit(f"This server has no {one_line(name)}: {ctx.link.model.id} is asked.\n")
        return model or ctx.link.model

    async def _session(self, before: SubAgent | None, call_id: str) -> Session:
        clock = self._ctx.clock
        if before is None:
            return Session.create_child(self._ctx.session, call_id, clock=clock)
        if before.path is None:
            known = self._list.known.get(before.session_id)
            if known is None or known.session is None:
                raise ToolError("The session of this sub-agent was not kept.")
            return known.session
        file = await asyncio.to_thread(self._list.file_of, before)
        assert file is not None
        opening = asyncio.ensure_future(asyncio.to_thread(Session.open, file, clock=clock))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            with suppress(HoldfastError):
                await (await opening).close()
            raise
        except HoldfastError as error:
            if not before.spent.requests and not await asyncio.to_thread(file.exists):
                # It never began.
                return Session.create_child(self._ctx.session, call_id, clock=clock)
            raise ToolError(error.message, hint=error.hint) from error

    async def _agent(
        self,
        one: SubAgent,
        definition: AgentDefinition,
        model: ModelInfo,
        session: Session,
        own_place: SubAgentWorktree | None,
    ) -> RunnableAgent:
        """An agent that shares with the parent all but its session, its context and its jobs, and
        its folder where it has one of its own."""
        ctx = self._ctx
        workspace = own_place.workspace if own_place else ctx.workspace
        task = f"{definition.prompt}\n\n{own_place.role}" if own_place else definition.prompt

        def sources() -> Sequence[Source]:
            files = ctx.sources.find_files() if ctx.sources.find_files else ()
            role = Source("role", definition.name, task)
            less = {"agents", "boot", "own"}
            less |= set() if definition.may_have(Skill.name) else {"skills"}
            own_words = (one for one in files if not one.name.startswith(STYLE))
            return [role, *(source for source in own_words if source.origin not in less)]

        def composed() -> system_prompt.SystemPrompt:
            return system_prompt.compose(
                workspace,
                today=ctx.clock.now().astimezone().date(),
                auto_grant=ctx.config.permissions.auto_grant,
                branch=branch_of(workspace.root),
                sources=sources(),
                caps=ctx.config.bootstrap,
            )

        prompt = await asyncio.to_thread(composed)
        own = {SubAgentTool.name, Recall.name, AskUser.name, PresentPlan.name}
        own |= {SubmitResult.name, *SEARCH_TOOLS}
        toolbox = ctx.toolbox.for_sub_agent(session, ctx.clock, own, definition.may_have)
        if own_place:  # the checkers see nothing of its folder
            toolbox.checkers, toolbox.confinement = None, own_place.confinement
        level = self._effort()
        child = ctx.for_sub_agent(
            session,
            workspace,
            ctx.link.for_sub_agent(model, "1h" if ctx.config.cache.ttl == "1h" else "5m"),
            toolbox,
            ctx.sources.for_sub_agent(prompt, sources, level),
            isolated=own_place is not None,
            role=f"{one.agent}: {one.description}",
        )
        session.redact, one.jobs = ctx.session.redact, child.toolbox.jobs
        if ctx.session.follower is not None:
            session.follower = ctx.session.follower.of_sub_agent(session)
        if definition.read_only:
            child.state.mode = "plan"
        return self._make(child)
