"""The composition root: an agent from options, configuration and a session."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from tui.agent.agent import Agent
from tui.agent.agent_context import AgentContext
from tui.agent.call_rules import CallRules
from tui.agent.confined_programs import make_checkers, make_servers
from tui.agent.frame_sources import FrameSources
from tui.agent.launch import BARE, Launch, policy_of
from tui.agent.model_access import (
    agent_model,
    listed_model,
    make_provider,
    other_servers,
    server_name,
    server_of_launch,
    small_model_of,
)
from tui.agent.model_link import ModelLink
from tui.agent.skills import OfferedSkills
from tui.agent.sub_agents import LIST_NAME
from tui.agent.supervised_commands import place_of
from tui.agent.toolbox import Toolbox
from tui.context import project_files, system_prompt
from tui.context.project_files import ProjectFiles
from tui.context.system_prompt import Source
from tui.core.claude_names import claude_folder
from tui.core.clock import Clock, SystemClock
from tui.core.config import Config
from tui.core.dataclass import dataclass, replace
from tui.core.facts import Fact, Note
from tui.core.files import installation_key
from tui.core.git.branch import branch_of
from tui.core.output_store import OutputStore, Retention
from tui.core.workspace import PRIVATE_DIR
from tui.permissions.gate import Gate
from tui.permissions.rules import Rule, require_tools
from tui.permissions.sandbox.confinement import Confinement
from tui.permissions.types import Approver
from tui.provider.base import Provider
from tui.provider.retry import RetryControl
from tui.session.session import Session
from tui.settings import agent_definitions, hook_files, rule_files
from tui.settings.agent_definitions import (
    AGENT_FOLDERS,
    STYLE,
    AgentDefinitions,
)
from tui.settings.hook_files import HOOK_FILES, Hooks
from tui.settings.rule_files import RuleFile
from tui.settings.skills import InstalledSkills, plugins_of
from tui.settings.trust import with_scripts
from tui.tools.base import Tool
from tui.tools.jobs import Jobs
from tui.tools.registry import TOOLS, builtin_tools

if TYPE_CHECKING:
    from tui.agent.span_export import SpanExport
    from tui.session.checkpoints.store import CheckpointStore
    from tui.tools.mcp import Servers


def make_agent(
    launch: Launch,
    session: Session,
    approver: Approver,
    *,
    clock: Clock | None = None,
    remember_always: Callable[[Rule], None] | None = None,
    provider: Provider | None = None,
    servers: Servers | None = None,
) -> Agent:
    """An agent that continues with `session`, which it owns from now on.

    It makes a `provider` of its own where none is given, and closes either. MCP `servers` that
    are given are shared with other agents and left running; else it starts its own.

    Raises UsageError for a rule or a script that cannot be read.
    """
    clock, control = clock or SystemClock(), RetryControl()
    permissions = launch.config.permissions
    policy = policy_of(launch)
    # a rule for a tool that doesn't exist would protect nothing
    own_tools = {tool.name: tool for tool in launch.own.tools}
    require_tools((*policy.deny, *policy.ask), {*TOOLS, *own_tools})
    files = _project_files(launch)
    skills = OfferedSkills(
        InstalledSkills(launch.folders, launch.workspace.root, launch.trust.allows),
        _KnownAgents(launch),
        on=launch.access.around is None and not launch.answers_only and not launch.bare,
        beside=launch.workspace.readable,
    )
    prompt = system_prompt.compose(
        launch.workspace,
        today=clock.now().astimezone().date(),
        auto_grant=permissions.auto_grant,
        branch=branch_of(launch.workspace.root),
        sources=(*files.sources, *skills.sources()),
        caps=launch.config.bootstrap,
    )
    session.redact = launch.config.redact == "record"
    if launch.bare:
        session.with_next_prompt(Note(BARE))
    confinement = _confinement(launch, session, skills.folders)
    spans, trouble = _spans(launch, session)
    memory_file = launch.workspace.root / PRIVATE_DIR / "MEMORY.md"
    agent = Agent(
        AgentContext(
            session=session,
            workspace=replace(launch.workspace, readable=skills.folders),
            config=launch.config if not launch.one_turn else _by_requests(launch.config),
            clock=clock,
            link=ModelLink(
                provider=provider or make_provider(launch, clock, control),
                model=listed_model(launch, launch.model),
                fallbacks=launch.config.fallback_models,
                small_model=small_model_of(launch),
                control=control,
                max_wait_s=launch.max_wait_s,
                own=server_of_launch(launch),
                others=other_servers(launch),
                find_model=lambda name: agent_model(launch, name),
            ),
            toolbox=Toolbox(
                tools=builtin_tools() | _terminals(launch.config) | skills.tools() | own_tools,
                jobs=Jobs(clock, confinement.outside if confinement else None, session.path),
                skills=skills,
                outputs=_outputs(launch, session),
                servers=servers or make_servers(launch, session.id),
                servers_shared=servers is not None,
                checkers=make_checkers(launch, clock),
                confinement=confinement,
                kept=place_of(launch.folders, session.id) if session.path else None,
                find_agents=None if launch.answers_only else lambda: _agents(launch),
                may_have=lambda name: not launch.answers_only and launch.own.may_have(name),
                answers_only=launch.answers_only,
                ahead=not launch.one_turn,
            ),
            rules=CallRules(
                gate=Gate(policy, remember_always=remember_always),
                approver=approver,
                limits=launch.limits,
                find_hooks=lambda: _hooks(launch),
            ),
            sources=FrameSources(
                system=prompt.blocks(),
                prompt=prompt,
                injected=prompt.injected,
                find_files=lambda: (*_project_files(launch).sources, *skills.read()),
                find_rules=lambda: _rules(launch),
                memory_file=memory_file if session.path and not launch.bare else None,
                nested=not launch.bare,
                directives={
                    name: value
                    for name in ("elevated", "verbose", "effort")
                    if (value := getattr(launch, name))
                },
                notices=(
                    *launch.notices,
                    *files.problems,
                    *skills.notices(unasked=launch.one_turn),
                    *trouble,
                ),
            ),
            key=installation_key(launch.folders.data) if session.path else b"",
            cache=launch.folders.cache if session.path else None,
            folders=launch.folders if session.path else None,
            open_checkpoints=_checkpoints(launch, session),
        )
    )
    agent.permissions.mode = launch.mode
    agent.spans = session.follower = spans
    return agent


def _spans(launch: Launch, session: Session) -> tuple[SpanExport | None, Sequence[str]]:
    """Make what sends the session's spans to the person's collector, None where that is off, and
    say why there is none. Practice needs no network, and has none."""
    config, access = launch.config, launch.access
    silent = access.practice or access.around is not None or session.opened_to_read
    if not config.otel.enabled or silent:
        return None, ()
    from tui.agent import span_collector  # noqa: PLC0415 - few send spans
    from tui.agent.span_export import SpanExport, SpanSender  # noqa: PLC0415
    from tui.context.spans import SpanFold  # noqa: PLC0415

    if span_collector.switched_off(os.environ):
        return None, ()
    try:
        collector = span_collector.collector_of(config.otel, os.environ)
    except span_collector.CollectorError as error:
        return None, (f"No spans are sent: {error.message} {error.hint}",)
    identity = collector.identity(installation_key(launch.folders.data) if session.path else b"")
    mark = launch.folders.cache / "spans" / f"{session.id}.{identity}" if session.path else None
    fold = SpanFold(session.id, config.prices, config.otel.content)
    around = os.environ.get("TRACEPARENT", "")
    return SpanExport(
        SpanSender(collector, identity, mark),
        fold,
        session,
        around=around,
        headless=launch.one_turn,
    ), ()


async def reconnect(
    agent: Agent, launch: Launch, clock: Clock, *, keeps_model: bool = True
) -> Sequence[Fact]:
    """Let an open agent ask as the launch says, from the next request on. Its model stays where
    the server does, unless another one was chosen. Raises UsageError for a broken practice
    script."""
    stays = keeps_model and server_name(launch) == agent.models.server
    name = agent.models.current if stays else launch.model
    return await agent.models.use_server(
        make_provider(launch, clock, agent.models.control),
        await asyncio.to_thread(listed_model, launch, name),
        await asyncio.to_thread(small_model_of, launch),
        own=server_of_launch(launch),
        others=other_servers(launch),
    )


def _terminals(config: Config) -> dict[str, Tool[Any]]:
    """The tool for terminals, which few sessions need: the others don't pay for its description."""
    if not config.jobs.terminals:
        return {}
    from tui.tools.terminal import TerminalTool  # noqa: PLC0415 - few have it

    return {TerminalTool.name: TerminalTool(config.jobs.terminals)}


def _confinement(
    launch: Launch, session: Session, readable: tuple[Path, ...]
) -> Confinement | None:
    """Make the confinement of commands; None in a drill, whose folder is thrown away."""
    if not launch.confined or launch.access.around is not None:
        return None
    settings = launch.config.sandbox
    workspace = replace(launch.workspace, readable=readable)
    return Confinement.of_session(settings, workspace, launch.folders, session.id)


def _project_files(launch: Launch) -> ProjectFiles:
    if launch.bare:
        kinds = "" if launch.answers_only else _agents(launch).listing().text
        return ProjectFiles((*launch.texts, Source("agents", LIST_NAME, kinds)), ())
    files = project_files.find(
        launch.workspace,
        launch.folders,
        boot=launch.boot,
        allows=launch.trust.allows,
        reads=policy_of(launch).reads_freely(launch.workspace),
    )
    agents = _agents(launch)
    listed = Source("agents", LIST_NAME, "" if launch.answers_only else agents.listing().text)
    chosen, wrong = _style(launch)
    _, of_plugins = plugins_of(launch.folders)
    problems = (*files.problems, *agents.problems, *of_plugins, *wrong)
    return ProjectFiles((*launch.texts, *files.sources, listed, *chosen), problems)


def _style(launch: Launch) -> tuple[Sequence[Source], Sequence[str]]:
    """The output style that the person chose, and why there is none. Blocks."""
    if not (name := launch.config.output_style):
        return (), ()
    from tui.settings import output_styles  # noqa: PLC0415 - few choose one

    root, allows = launch.workspace.root, launch.trust.allows
    style, problems = output_styles.find(name, root, launch.folders, allows)
    return [Source("added", f"{STYLE}{style.name}", style.text)] if style else (), problems


def _rules(launch: Launch) -> Sequence[RuleFile]:
    """The rules that hold for some files only. Blocks."""
    if launch.bare:
        return ()
    rules, _ = rule_files.load(launch.workspace.root, launch.folders, launch.trust.allows)
    return [rule for rule in rules if rule.paths]


@dataclass(frozen=True, slots=True)
class _KnownAgents:
    """The kinds of sub-agents as they are when they are asked for."""

    launch: Launch

    def definitions(self) -> AgentDefinitions:
        return _agents(self.launch)


def _agents(launch: Launch) -> AgentDefinitions:
    """The kinds of sub-agents there are now. Blocks."""
    named = {one.name: one for one in launch.own.agents}
    if launch.bare:
        shipped = agent_definitions.load(())
        return replace(shipped, all={**shipped.all, **named})
    root = launch.workspace.root
    brought = [root / folder for folder in AGENT_FOLDERS]

    def counts(path: Path, content: bytes) -> bool:
        if not any(folder in path.parents for folder in brought):
            return True
        return launch.trust.allows(path.relative_to(root).as_posix(), content)

    own = (claude_folder() / "agents", launch.folders.config / "agents")
    found = agent_definitions.load(own, counts, brought=brought, workspace=root)
    for plugin in plugins_of(launch.folders)[0]:
        more, problems = agent_definitions.of_plugin(plugin.agents, plugin.name, plugin.filled)
        found = AgentDefinitions({**found.all, **more}, (*found.problems, *problems))
    return replace(found, all={**found.all, **named}) if named else found


def _hooks(launch: Launch) -> Hooks:
    """The person's hooks, and those of the folder that they trust. Blocks. None in a drill."""
    if launch.access.around is not None:
        return Hooks()
    if launch.bare:
        return Hooks(launch.own.hooks)
    root = launch.workspace.root
    brought = [root / name for name in HOOK_FILES]

    def counts(path: Path, hooks: dict[str, Any]) -> bool:
        if path not in brought:
            return True
        bound = with_scripts(hooks, hook_files.scripts_in(hooks, root))
        return launch.trust.allows(path.relative_to(root).as_posix(), bound)

    found = hook_files.load((launch.folders.config / hook_files.NAME, *brought), counts, root)
    more = [hook for plugin in plugins_of(launch.folders)[0] for hook in plugin.hooks]
    return replace(found, all=(*found.all, *more, *launch.own.hooks))


def _by_requests(config: Config) -> Config:
    return structs.replace(config, prune=structs.replace(config.prune, unit="requests"))


def _checkpoints(launch: Launch, session: Session) -> Callable[[], CheckpointStore] | None:
    """Opens what holds checkpoints of the workspace; None for a session that isn't saved, or has no
    tools, and in a drill."""
    settings, changes_nothing = (
        launch.config.checkpoints,
        launch.answers_only or launch.access.around,
    )
    if settings.mode == "off" or session.path is None or changes_nothing:
        return None

    def open_store() -> CheckpointStore:
        from tui.session.checkpoints.store import store_of  # noqa: PLC0415 - it needs sqlite

        return store_of(
            launch.folders,
            launch.workspace.root,
            keep_days=settings.keep_days,
            keep_bytes=settings.keep_bytes,
        )

    return open_store


def _outputs(launch: Launch, session: Session) -> OutputStore | None:
    """The workspace's full outputs; those of a run that keeps nothing go with their folder."""
    workspace, guard = launch.workspace, launch.config.guard
    if workspace.scratch is not None:
        return None
    sessions = launch.folders.sessions_of(workspace.root)
    return OutputStore(
        workspace.tool_results,
        session=session.path,
        retention=Retention(sessions, guard.keep_days, guard.keep_bytes),
    )
