"""What the parts of one agent share: what it was built from, and what may change later."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui.agent.checkpoints import Checkpoints
from tui.agent.limits import Limits, PendingRequests, SessionCost, SpendingCounter, Spent
from tui.agent.pause import Pause
from tui.agent.prompts import ParsedPrompt
from tui.agent.recorder import EventStream, Recorder
from tui.agent.skills import OfferedSkills
from tui.context.system_prompt import Injected, Source, SystemPrompt
from tui.context.token_ledger import Ledger
from tui.core.clock import Clock
from tui.core.config import Config
from tui.core.facts import Debug, DurableFact, Fact, QueueChanged
from tui.core.messages import Block, Usage
from tui.core.output_store import OutputStore
from tui.core.paths import Folders
from tui.core.workspace import Workspace
from tui.permissions.gate import Gate
from tui.permissions.types import Approver, Mode
from tui.provider.base import ModelInfo, Provider, Request
from tui.provider.prices import CacheLife, ModelPrice, price_of
from tui.provider.retry import RetryControl
from tui.session.records import Record
from tui.session.session import Session
from tui.settings.agent_definitions import AgentDefinitions
from tui.settings.hook_files import Hooks
from tui.settings.rule_files import RuleFile
from tui.tokens import estimate
from tui.tools.base import Tool
from tui.tools.file_ledger import FileLedger
from tui.tools.jobs import Jobs
from tui.tools.limits.pipeline import GuardLimits

if TYPE_CHECKING:
    from tui.permissions.sandbox.confinement import Confinement
    from tui.session.checkpoints.store import CheckpointStore
    from tui.tools.lsp import Checkers
    from tui.tools.mcp import Servers


@dataclass(slots=True)
class AgentContext:
    """What the parts of one agent share.

    The agent owns the session, the provider, the jobs and, unless they are shared, the servers. A
    sub-agent owns its session and its jobs; all else is its parent's.
    """

    session: Session
    provider: Provider
    """Answers the conversation; with fallbacks, another model can take over."""
    model: ModelInfo
    """Asked from the next request on."""
    tools: dict[str, Tool[Any]]
    """What the model may call; those of MCP servers join and leave. A copy of what was given."""
    gate: Gate
    approver: Approver
    workspace: Workspace
    system: list[Block]
    config: Config
    clock: Clock
    jobs: Jobs
    fallbacks: Sequence[str] = ()
    """Models of the same provider to go on with, in this order."""
    small_model: ModelInfo | None = None
    """For titles and exams; None where there is none to ask, as with the practice model."""
    control: RetryControl = field(default_factory=RetryControl)
    """Ends the provider's waits."""
    max_wait_s: float | None = None
    """Bounds the agent's own waits for a server's limits; None is no bound."""
    limits: Limits = field(default_factory=Limits)
    directives: Mapping[str, bool | str] = field(default_factory=dict[str, bool | str])
    """To begin with (-y, --verbose, --effort)."""
    notices: Sequence[str] = ()
    """What the person should know before the first turn."""
    prompt: SystemPrompt | None = None
    """What `system` is made of; None where it is one text."""
    server: str = ""
    """Whose signatures thinking bears: the host that is asked. "" where nobody signs."""
    first_party: bool = False
    """Whether it is the API's own, which knows what other servers do not."""
    cache_life: CacheLife = "5m"
    """How long the server is to keep what new frames begin."""
    key: bytes = field(default=b"", repr=False)
    """By which this installation knows again what it recorded."""
    find_files: Callable[[], Sequence[Source]] | None = None
    """Reads the files that are in the prompt again; blocks."""
    skills: OfferedSkills | None = None
    """What the skill tool can load; read again with the files."""
    cache: Path | None = None
    """The folder where token ratios are kept, None to keep none."""
    folders: Folders | None = None
    """Where the other sessions are that this one may read; None where it may read none."""
    memory_file: Path | None = None
    """Where the memory is written, None to write none."""
    outputs: OutputStore | None = None
    """The full outputs that were cut; None where they go with their folder."""
    injected: Sequence[Injected] = ()
    """What became of the files in the system prompt."""
    servers: Servers | None = None
    """The MCP servers, None where none is configured."""
    servers_shared: bool = False
    checkers: Checkers | None = None
    """What finds problems in edited files; None where nothing does. A sub-agent has its
    parent's."""
    open_checkpoints: Callable[[], CheckpointStore] | None = None
    """Opens what holds the checkpoints of the workspace; None where none are taken. Blocks."""
    kept: Path | None = None
    """Where commands are kept while they run, for the next run of the program; None where there
    will be none."""
    confinement: Confinement | None = None
    """What commands are confined by; None where nothing is."""

    find_rules: Callable[[], Sequence[RuleFile]] | None = None
    """Reads the rules that hold for some files only; blocks."""
    find_agents: Callable[[], AgentDefinitions] | None = None
    """Reads the definitions of sub-agents, None where there can be none; blocks."""
    find_hooks: Callable[[], Hooks] | None = None
    """Reads the person's hooks; None where there can be none; blocks."""
    find_model: Callable[[str], ModelInfo | None] = lambda _: None
    """What is known of a model by its name or short name, None where it can't be asked; blocks."""
    parent: AgentContext | None = None
    """Of the agent that started this one."""
    isolated: bool = False
    """Whether it works in a folder of its own, with a sandbox of its own around it."""
    role: str = ""
    """What the sub-agent is and what it is about, for the person."""
    may_have: Callable[[str], bool] = lambda _: True
    """Whether it may have a tool, by its name."""
    answers_only: bool = False
    """It has no tools at all."""

    deferred: dict[str, Tool[Any]] = field(default_factory=dict[str, "Tool[Any]"], init=False)
    """Tools of MCP servers that no request lists: the model finds them by search."""
    asking: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    """Held while the person is asked: one question at a time, of sub-agents too."""
    writing: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    """Held while a call writes or runs something, which sub-agents do one after the other."""
    pause: Pause = field(default_factory=Pause, init=False)
    """Stops the turn for another process, that of sub-agents too."""
    hooks: asyncio.Task[Hooks] | None = field(default=None, init=False)
    """The person's hooks, read once for a session and its sub-agents."""
    turn_ends: bool = field(default=False, init=False)
    """A call of the answer that is worked on left the model nothing to do."""
    files: FileLedger = field(default_factory=FileLedger, init=False)
    """What the model last saw of each file, so that it overwrites nothing it has not seen."""
    by_sub_agents: dict[str, str] = field(default_factory=dict[str, str], init=False)
    """What sub-agents wrote, by path: the SHA-256 of the last that each file got from one."""
    touched: set[Path] = field(default_factory=set[Path], init=False)
    """The real paths that calls of file tools went to."""
    spent_before: Spent = field(default_factory=Spent, init=False)
    """What the turns that have ended cost."""
    verbose: bool = field(default=False, init=False)
    turn_spent: Spent = field(default_factory=Spent, init=False)
    """What was spent since the last turn ended, on questions beside the conversation too."""
    under_way: PendingRequests = field(default_factory=PendingRequests, init=False)
    """The requests of this agent and its sub-agents, where the run has limits."""
    fallback_window: int | None = field(default=None, init=False)
    """Tokens that the model takes which answers in the place of `model`; None where none does."""
    spending: SpendingCounter = field(default_factory=SpendingCounter, init=False)
    events: EventStream = field(default_factory=EventStream, init=False)
    queue: list[ParsedPrompt] = field(default_factory=list[ParsedPrompt], init=False)
    """What was typed while a turn runs, in the order in which it came.

    It joins the turn once its tools are done. Until it is taken over it can be taken back; it is
    sent or given back, and never both.
    """
    direct: Provider = field(init=False)
    """Answers small jobs: the same provider without fallbacks."""
    ledger: Ledger = field(default_factory=Ledger, init=False)
    """The items of the next request."""
    recorder: Recorder = field(init=False)
    checkpoints: Checkpoints | None = field(default=None, init=False)
    """A sub-agent has its parent's, unless it works in a folder of its own."""
    _mode: Mode = field(default="ask", init=False)
    _elevated: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.direct = self.provider
        if self.servers is not None:
            from tui.tools.mcp.read_mcp_resource import ReadMcpResource  # noqa: PLC0415 - if any

            reader = ReadMcpResource(self.servers)
            self.tools = {**self.tools, reader.name: reader}
        self.tools = {name: tool for name, tool in self.tools.items() if self.may_have(name)}
        if self.parent is not None:
            self.asking = self.parent.asking
            self.writing = self.writing if self.isolated else self.parent.writing
            self.pause = self.parent.pause
        self.recorder = Recorder(self.session, self.events, self.ledger)
        if self.open_checkpoints is not None:
            self.checkpoints = Checkpoints(
                self.open_checkpoints,
                self.recorder,
                self.publish,
                lambda: sum(not job.ended for job in self.jobs.list()),
            )
            self.checkpoints.resume(self.session.records)
        elif self.parent is not None and not self.isolated:
            self.checkpoints = self.parent.checkpoints

    def callable_tool(self, name: str) -> Tool[Any] | None:
        """A tool that the model may call, whether its requests list it or not."""
        return self.tools.get(name) or self.deferred.get(name)

    def open_skills(self) -> None:
        """Let the tools and confined commands read the skills outside the workspace."""
        readable = self.skills.folders if self.skills else ()
        self.workspace = replace(self.workspace, readable=readable)
        if self.confinement is not None:
            confined = replace(self.confinement.workspace, readable=readable)
            self.confinement.workspace = confined

    @property
    def mode(self) -> Mode:
        """A sub-agent's is that of its parent, unless it is read-only by itself."""
        if self.parent is None or self._mode == "plan":
            return self._mode
        return self.parent.mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._mode = mode

    @property
    def elevated(self) -> bool:
        return self.parent.elevated if self.parent is not None else self._elevated

    @elevated.setter
    def elevated(self, elevated: bool) -> None:
        self._elevated = elevated

    def spend(self, one: Spent) -> None:
        """Add what a request cost, for the parent too."""
        self.turn_spent += one
        if self.parent is not None:
            self.parent.spend(one)

    def check_limits(self) -> None:
        """Raise LimitReachedError where the next request would go past a limit of the run."""
        top = self.parent or self
        top.limits.check(top.spent_in_run, priced=self.price is not None)

    @asynccontextmanager
    async def within_limits(self, request: Request) -> AsyncGenerator[None]:
        """Make a request while the limits of the run hold; near one, after those under way.

        Raises LimitReachedError.
        """
        top = self.parent or self
        if not top.limits.any:
            yield
            return
        priced = self.price is not None
        most = self._most_of(request)
        async with top.under_way.room(top.limits, most, lambda: top.spent_in_run, priced=priced):
            yield

    def _most_of(self, request: Request) -> Spent:
        """The most that a request can come to: nothing read from the cache, the longest answer."""
        weight = estimate.request_weight(request.system, request.tools, request.messages)
        written = round(weight * self.ledger.ratio)
        usage = Usage(cache_creation_input_tokens=written, output_tokens=request.max_tokens)
        if (price := self.price_of(request.model)) is None:
            return Spent(1, usage, None)
        most = price.forecast(written=written, output=request.max_tokens, life=self.cache_life)
        return Spent(1, usage, most)

    @property
    def spent_in_run(self) -> Spent:
        """What this run of the program has spent so far."""
        return self.spent_before + self.turn_spent

    @property
    def records(self) -> Sequence[Record]:
        return self.session.records

    def spent(self) -> SessionCost:
        """What the whole session has cost so far, earlier runs included."""
        return self.spending.count(self.records, self.config.prices)

    @property
    def price(self) -> ModelPrice | None:
        """Of the model that is asked now; None where it is not known."""
        return self.price_of(self.model.id)

    def price_of(self, model: str) -> ModelPrice | None:
        """Of any model."""
        return price_of(model, self.config.prices)

    @property
    def guard_limits(self) -> GuardLimits:
        """How much of a result fits: the model that is asked, and one that answers for it."""
        windows = [self.model.window, self.fallback_window or self.model.window]
        return GuardLimits.of(self.config.guard, window=min(windows))

    def publish(self, *events: Fact) -> None:
        for event in events:
            self.events.publish(event)

    def record(self, fact: DurableFact) -> Record:
        """Append a fact to the session, and publish it unless it is for the record alone."""
        return self.recorder.record(fact)

    def publish_queue(self) -> None:
        """Show in the turn that runs what is queued now."""
        if self.events.busy:
            self.publish(QueueChanged(tuple(prompt.typed for prompt in self.queue)))

    def debug(self, text: str) -> None:
        """Show a line while verbose is on."""
        if self.verbose:
            self.publish(Debug(text))
