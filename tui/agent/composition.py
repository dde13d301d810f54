"""The composition root: an agent from options, configuration and a session.

What is heavy (the SDK) is not imported here: the provider loads it when it is first asked to.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from msgspec import convert, structs

from tui.agent.agent import Agent
from tui.agent.agent_context import AgentContext
from tui.agent.call_rules import CallRules
from tui.agent.frame_sources import FrameSources
from tui.agent.limits import Limits
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
from tui.core.config import Config, McpServer
from tui.core.facts import Fact
from tui.core.files import installation_key
from tui.core.git.branch import branch_of
from tui.core.output_store import OutputStore, Retention
from tui.core.paths import Folders
from tui.core.redaction import child_environment
from tui.core.workspace import PRIVATE_DIR, Workspace, safe_search_path
from tui.permissions.gate import Gate
from tui.permissions.policy import Policy
from tui.permissions.rules import Rule, require_tools
from tui.permissions.sandbox.confinement import Confinement
from tui.permissions.sandbox.environment import clean_environment, without_own_caches
from tui.permissions.sandbox.walls import Level
from tui.permissions.types import Approver, Mode
from tui.provider import catalogue, model_list
from tui.provider.base import ModelInfo, Provider
from tui.provider.prices import CacheLife
from tui.provider.retry import RetryControl, RetryProvider
from tui.session.session import Session
from tui.settings import agent_definitions, hook_files, rule_files
from tui.settings.agent_definitions import (
    AGENT_FOLDERS,
    STYLE,
    AgentDefinition,
    AgentDefinitions,
)
from tui.settings.credentials import DEFAULT_SERVER, Credential, SecretStore, server_of
from tui.settings.hook_files import HOOK_FILES, Hook, Hooks
from tui.settings.rule_files import RuleFile
from tui.settings.sign_in import SignIn
from tui.settings.skills import InstalledSkills, plugins_of
from tui.settings.trust import Trust, trusted_programs, with_scripts
from tui.tools.base import Tool
from tui.tools.jobs import Jobs
from tui.tools.registry import TOOLS, builtin_tools

if TYPE_CHECKING:
    from tui.provider.message_batches import MessageBatches
    from tui.session.checkpoints.store import CheckpointStore
    from tui.tools.lsp import Checkers
    from tui.tools.mcp import Servers

_MCP_LEVELS: Mapping[str, Level] = {
    "read-only": Level.READ_ONLY,
    "workspace": Level.WORKSPACE,
    "network": Level.NETWORK,
}

PRACTICE = "practice"
"""The model name of the offline practice model."""


@dataclass(frozen=True, slots=True)
class Access:
    """The access to the model: the practice model, or the configured server with a `key`, which
    never shows in a repr, or with the SDK's own sign-in where there is none.

    `foreign_server`: the folder named the server, which gets nothing of the environment, neither
    key nor headers. `around` wraps the model, beneath the retries: a drill. `short_names`: the
    configuration had some, which are resolved here.
    """

    practice: bool = False
    practice_delay_s: float = 0.0
    script: Path | None = None
    key: str | None = field(default=None, repr=False)
    sign_in: SignIn | None = None
    foreign_server: bool = False
    around: Callable[[Provider, Clock], Provider] | None = None
    short_names: bool = False


@dataclass(frozen=True, slots=True)
class OwnParts:
    """The parts that come from whoever starts this run: tools that are offered beside the built-in
    ones, hooks, and kinds of sub-agents. `only` are the tools that the model has, None for all;
    `without` those that it has not."""

    tools: tuple[Tool[Any], ...] = ()
    hooks: tuple[Hook, ...] = ()
    agents: tuple[AgentDefinition, ...] = ()
    only: frozenset[str] | None = None
    without: frozenset[str] = frozenset()

    def may_have(self, tool: str) -> bool:
        """True if the model may have a tool, by the tool's name."""
        mine = {one.name for one in self.tools}
        return tool not in self.without and (self.only is None or tool in self.only | mine)


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything that decides what an agent is made of.

    `max_wait_s` bounds the waits that a server asks for, None by the retry policy; `notices` is
    the person's first notices; `boot` is a boot file named elsewhere, in the place of
    the usual ones; `one_turn` says that nobody types any more, as in `-p` and a run. `effort` is
    how deep the model thinks, "" as configured; `trust` says what of the folder's own files counts.
    `confined`: commands run in a sandbox, as the configuration says. `texts` go into the system
    prompt; they and the `own` parts are of who starts this run.
    `answers_only`: the model has no tools.
    """

    workspace: Workspace
    config: Config
    folders: Folders
    access: Access = Access()
    elevated: bool = False
    mode: Mode = "ask"
    texts: tuple[Source, ...] = ()
    own: OwnParts = OwnParts()
    verbose: bool = False
    limits: Limits = field(default_factory=Limits)
    max_wait_s: float | None = None
    notices: tuple[str, ...] = ()
    boot: Path | None = None
    one_turn: bool = False
    effort: str = ""
    trust: Trust = field(default_factory=Trust)
    confined: bool = False
    answers_only: bool = False

    def reached(self, **changed: Any) -> Launch:
        """The same with another way to the model: values of `Access` by name."""
        return replace(self, access=replace(self.access, **changed))

    def with_key(self, key: str | None) -> Launch:
        return self.reached(key=key, sign_in=None)

    def signed_by(self, credential: Credential | None) -> Launch:
        """The same with what signs its requests."""
        if isinstance(credential, SignIn):
            return self.reached(key=None, sign_in=credential)
        return self.with_key(credential.key if credential else None)

    @property
    def base_url(self) -> str:
        """The server that is asked: the configured one, else that of a profile; "" for the API."""
        signed = self.access.sign_in
        return self.config.base_url or (signed.base_url if signed else "")

    def whole_name(self, name: str) -> str:
        """The model that a short name stands for; any other as it is. Blocks."""
        return model_list.resolve(name, self.folders.cache, self.base_url)

    @property
    def model(self) -> str:
        return PRACTICE if self.access.practice else self.config.model


def make_provider(launch: Launch, clock: Clock, control: RetryControl | None = None) -> Provider:
    """The model's side: the practice model, or the server behind retries, which `control` ends.

    Raises UsageError for a broken practice script.
    """
    if launch.access.practice:
        from tui.provider.practice.provider import PracticeModel  # noqa: PLC0415 - one is used
        from tui.provider.practice.script import read_script  # noqa: PLC0415

        script = read_script(launch.access.script) if launch.access.script else None
        model: Provider = PracticeModel(
            clock=clock, script=script, delay_s=launch.access.practice_delay_s
        )
    else:
        from tui.provider.anthropic import AnthropicProvider  # noqa: PLC0415 - one is used

        model = AnthropicProvider(**_server_arguments(launch), clock=clock)
    if launch.access.around is not None:
        model = launch.access.around(model, clock)
    retry, most = launch.config.retry, launch.max_wait_s
    short = most is not None and most * 1000 < retry.max_delay_ms  # longer waits are the agent's
    return RetryProvider(
        model, retry=retry, clock=clock, max_wait_s=most if short else None, control=control
    )


def make_batches(launch: Launch, clock: Clock) -> MessageBatches:
    """The server of the launch, as one that takes message batches."""
    from tui.provider.anthropic.batches import AnthropicBatches  # noqa: PLC0415 - as above

    return AnthropicBatches(**_server_arguments(launch), clock=clock)


def _server_arguments(launch: Launch) -> dict[str, Any]:
    """Return the arguments for the server of a launch."""
    return {
        "api_key": launch.access.key,
        "profile": launch.access.sign_in.profile if launch.access.sign_in else None,
        "env_headers": not launch.access.foreign_server,
        "base_url": launch.base_url,
        "first_byte_timeout_s": launch.config.retry.first_byte_timeout_s,
        "stall_timeout_s": launch.config.retry.stall_timeout_s,
        "context_window": launch.config.context_window,
    }


def server_name(launch: Launch) -> str:
    """The server that is asked, by which thinking that it signed is known again."""
    return PRACTICE if launch.access.practice else server_of(launch.base_url)


def is_first_party(launch: Launch) -> bool:
    """True if the server knows all that the API has, as its own servers do."""
    features = launch.config.api_features
    own = server_name(launch) == DEFAULT_SERVER
    return not launch.access.practice and (features == "all" or (features == "auto" and own))


def cache_life(launch: Launch) -> CacheLife:
    """Return how long the server is to keep what a session sends."""
    wanted = launch.config.cache.ttl
    if wanted != "auto":
        return wanted
    return "1h" if is_first_party(launch) and not launch.one_turn else "5m"


def known_model(launch: Launch, name: str) -> ModelInfo:
    """Return what is known of a model before the server has been asked."""
    if launch.access.practice:
        from tui.provider.practice.provider import INFO  # noqa: PLC0415 - one is used

        return INFO
    info = catalogue.model_info(name)
    window = launch.config.context_window
    return replace(info, window=window, source="config") if window else info


def listed_model(launch: Launch, name: str) -> ModelInfo:
    """Return what the server reported of a model when it listed them last, else what is known.
    Blocks."""
    known = known_model(launch, name)
    if launch.access.practice:
        return known
    listed = model_list.listed(launch.folders.cache, launch.base_url)
    entry = next((model for model in listed if model.get("id") == name), None)
    if entry is None:
        return known
    from tui.provider.anthropic import convert  # noqa: PLC0415 - as above

    info, window = convert.model_info(name, entry), launch.config.context_window
    return replace(info, window=window, source="config") if window else info


def asked_model(launch: Launch, name: str) -> ModelInfo | None:
    """The model that a command asks for; None where the server is not known to have it. Blocks."""
    if launch.access.practice:
        return None
    whole, config = launch.whole_name(name), launch.config
    listed = model_list.listed(launch.folders.cache, launch.base_url)
    known = {str(model.get("id")) for model in listed}
    known |= {config.model, config.small_model, *config.fallback_models, *config.prices}
    known |= set(() if listed or launch.base_url else catalogue.names())
    return listed_model(launch, whole) if whole in known else None


@asynccontextmanager
async def refreshed_models(launch: Launch, clock: Clock) -> AsyncGenerator[None]:
    """Ask for the list in the background meanwhile. What is not there by the end is given up."""
    task = asyncio.create_task(refresh_models(launch, clock), name="list of models")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def refresh_models(launch: Launch, clock: Clock) -> None:
    """Ask the server which models it has, unless it said so within a day. Never raises."""
    cache, url = launch.folders.cache, launch.base_url
    if launch.access.practice or not await asyncio.to_thread(
        model_list.is_due, cache, url, clock.now()
    ):
        return
    from tui.provider.anthropic import AnthropicProvider  # noqa: PLC0415 - as above

    profile = launch.access.sign_in.profile if launch.access.sign_in else None
    server = AnthropicProvider(
        api_key=launch.access.key, profile=profile, clock=clock, base_url=url
    )
    try:
        if models := await server.list_models():
            await asyncio.to_thread(model_list.keep, cache, url, models, clock.now())
    finally:
        await server.aclose()


def with_whole_names(launch: Launch) -> Launch:
    """With the models that short names stand for (see `tui.provider.model_list`). Blocks."""
    config = launch.config
    named = (config.model, config.small_model, *config.fallback_models)
    model, small, *fallbacks = (launch.whole_name(name) for name in named)
    if (model, small, *fallbacks) == named:
        return launch
    changed = structs.replace(
        config, model=model, small_model=small, fallback_models=tuple(fallbacks)
    )
    return replace(launch, config=changed).reached(short_names=True)


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
    policy = _policy(launch)
    # a rule for a tool that doesn't exist would protect nothing
    own_tools = {tool.name: tool for tool in launch.own.tools}
    require_tools((*policy.deny, *policy.ask), {*TOOLS, *own_tools})
    files = _project_files(launch)
    skills = OfferedSkills(
        InstalledSkills(launch.folders, launch.workspace.root, launch.trust.allows),
        _KnownAgents(launch),
        on=launch.access.around is None and not launch.answers_only,
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
    confinement = _confinement(launch, session, skills.folders)
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
                small_model=_small_model(launch),
                control=control,
                max_wait_s=launch.max_wait_s,
                server=server_name(launch),
                first_party=is_first_party(launch),
                cache_life=cache_life(launch),
                find_model=lambda name: _agent_model(launch, name),
            ),
            toolbox=Toolbox(
                tools=builtin_tools() | skills.tools() | own_tools,
                jobs=Jobs(clock, confinement.outside if confinement else None, session.path),
                skills=skills,
                outputs=_outputs(launch, session),
                servers=servers or make_servers(launch),
                servers_shared=servers is not None,
                checkers=make_checkers(launch, clock),
                confinement=confinement,
                kept=place_of(launch.folders, session.id) if session.path else None,
                find_agents=None if launch.answers_only else lambda: _agents(launch),
                may_have=lambda name: not launch.answers_only and launch.own.may_have(name),
                answers_only=launch.answers_only,
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
                memory_file=memory_file if session.path else None,
                directives={
                    name: value
                    for name in ("elevated", "verbose", "effort")
                    if (value := getattr(launch, name))
                },
                notices=(
                    *launch.notices,
                    *files.problems,
                    *skills.notices(unasked=launch.one_turn),
                ),
            ),
            key=installation_key(launch.folders.data) if session.path else b"",
            cache=launch.folders.cache if session.path else None,
            folders=launch.folders if session.path else None,
            open_checkpoints=_checkpoints(launch, session),
        )
    )
    agent.permissions.mode = launch.mode
    return agent


def _policy(launch: Launch) -> Policy:
    permissions = launch.config.permissions
    return Policy.of(
        allow=permissions.allow,
        ask=permissions.ask,
        deny=permissions.deny,
        auto_grant=permissions.auto_grant,
        private=(launch.folders.config, launch.folders.data),
    )


async def reconnect(agent: Agent, launch: Launch, clock: Clock) -> Sequence[Fact]:
    """Let an open agent ask as the launch says, from the next request on. Its model stays where
    the server does. Raises UsageError for a broken practice script."""
    server = server_name(launch)
    name = agent.models.current if server == agent.models.server else launch.model
    return await agent.models.use_server(
        make_provider(launch, clock, agent.models.control),
        await asyncio.to_thread(listed_model, launch, name),
        await asyncio.to_thread(_small_model, launch),
        server=server,
        first_party=is_first_party(launch),
        cache_life=cache_life(launch),
    )


def _small_model(launch: Launch) -> ModelInfo | None:
    """Return the model that titles sessions and explores. A server of another kind has the default
    one only if it lists it."""
    if launch.access.practice:
        return None
    model = listed_model(launch, launch.config.small_model)
    chosen = launch.config.small_model != Config().small_model
    return model if chosen or is_first_party(launch) or model.source == "server" else None


def _confinement(
    launch: Launch, session: Session, readable: tuple[Path, ...]
) -> Confinement | None:
    """Make the confinement of commands; None in a drill, whose folder is thrown away."""
    if not launch.confined or launch.access.around is not None:
        return None
    settings = launch.config.sandbox
    workspace = replace(launch.workspace, readable=readable)
    return Confinement.of_session(settings, workspace, launch.folders, session.id)


def confinement_of(launch: Launch, what: str) -> Confinement:
    """Make the confinement of programs that belong to no session."""
    settings, name = launch.config.sandbox, f"{what} {token_hex(8)}"
    confinement = Confinement.of_session(settings, launch.workspace, launch.folders, name)
    confinement.denied = _policy(launch).denied_places
    return confinement


def _project_files(launch: Launch) -> ProjectFiles:
    files = project_files.find(
        launch.workspace,
        launch.folders,
        boot=launch.boot,
        allows=launch.trust.allows,
        reads=_policy(launch).reads_freely(launch.workspace),
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
    named = {one.name: one for one in launch.own.agents}
    return replace(found, all={**found.all, **named}) if named else found


def _hooks(launch: Launch) -> Hooks:
    """The person's hooks, and those of the folder that they trust. Blocks. None in a drill."""
    if launch.access.around is not None:
        return Hooks()
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


def _agent_model(launch: Launch, name: str) -> ModelInfo | None:
    """Return what is known of a model that a definition names. A server of another kind has it only
    if it lists it."""
    if launch.access.practice:
        return None
    model = listed_model(launch, launch.whole_name(name))
    return model if is_first_party(launch) or model.source == "server" else None


def _by_requests(config: Config) -> Config:
    return structs.replace(config, prune=structs.replace(config.prune, unit="requests"))


@dataclass(frozen=True, slots=True)
class McpSandbox:
    """The sandbox of MCP servers."""

    confinement: Confinement

    async def command(
        self, argv: Sequence[str], environment: Mapping[str, str], level: str
    ) -> list[str]:
        return await self.confinement.command(argv, environment, _MCP_LEVELS[level])

    async def close(self) -> None:
        await self.confinement.close()


def _plugin_servers(launch: Launch) -> Mapping[str, McpServer]:
    """The MCP servers of the person's plugins. Blocks."""
    entries = [plugin.servers for plugin in plugins_of(launch.folders)[0]]
    return {name: convert(entry, McpServer) for one in entries for name, entry in one.items()}


def make_servers(launch: Launch) -> Servers | None:
    """The MCP servers, not started; None where there are none. A drill has none, and the practice
    model none behind an address."""
    configured = {} if launch.access.around is not None else launch.config.mcp
    if launch.access.around is None:
        configured = {**_plugin_servers(launch), **configured}
    if launch.access.practice:
        configured = {name: one for name, one in configured.items() if not one.url}
    if not configured:
        return None
    from tui.tools.mcp import PATIENCE_S, SETTLED_S, Servers  # noqa: PLC0415 - if there are any

    root, scratch = launch.workspace.root, launch.workspace.scratch
    settings = launch.config.sandbox
    confinement = confinement_of(launch, "mcp")

    return Servers(
        configured,
        cwd=root,
        log_folder=scratch or launch.folders.log,
        patience_s=SETTLED_S if launch.one_turn else PATIENCE_S,
        environment=clean_environment(child_environment(), settings.keep_env),
        sandbox=McpSandbox(confinement),
        vault=SecretStore(os.environ, launch.folders),
        cache=launch.folders.cache,
    )


@dataclass(frozen=True, slots=True)
class _CheckerSandbox:
    """The sandbox of checkers; without one, with `unconfined`, only those run that are not in the
    folder."""

    confinement: Confinement
    root: Path
    unconfined: bool

    async def command(self, words: Sequence[str], environment: Mapping[str, str]) -> Sequence[str]:
        from tui.tools.lsp import NotConfinedError  # noqa: PLC0415 - as its caller

        if await self.confinement.engine() is not None:
            return await self.confinement.command(words, environment, Level.READ_ONLY)
        if self.root in Path(words[0]).parents or not self.unconfined:
            raise NotConfinedError(f"no sandbox confines it here ({self.confinement.reason})")
        return words

    async def close(self) -> None:
        await self.confinement.close()


def make_checkers(launch: Launch, clock: Clock) -> Checkers | None:
    """Make the checkers that find problems in edited files, nothing of them started; None where
    they are off, and in a drill."""
    settings, root = launch.config.diagnostics, launch.workspace.root
    if settings.mode == "off" or launch.access.around is not None or not launch.confined:
        return None
    from tui.tools.lsp import FINISH_S, LAST_S, CheckerPlace, Checkers  # noqa: PLC0415 - if it is on

    sandbox = launch.config.sandbox
    confinement = confinement_of(launch, "diagnostics")

    walls = _CheckerSandbox(confinement, root, unconfined=settings.unconfined)
    environment = without_own_caches(clean_environment(child_environment(), sandbox.keep_env))
    place = CheckerPlace(launch.workspace, environment, walls, clock)
    return Checkers(
        settings,
        place,
        safe_search_path(environment.get("PATH", ""), (root, *launch.workspace.extra)),
        brought=trusted_programs(root, launch.trust),
        patience_s=LAST_S if launch.one_turn else FINISH_S,
    )


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
