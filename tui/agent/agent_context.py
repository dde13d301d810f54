"""The state that the parts of one agent share: what it was built from, and what may change
later."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import InitVar, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tui.agent.call_rules import CallRules
from tui.agent.checkpoints import Checkpoints
from tui.agent.frame_sources import FrameSources
from tui.agent.limits import GoalLimitError, SessionCost, Spent
from tui.agent.model_link import ModelLink
from tui.agent.recorder import FactStream, Recorder
from tui.agent.toolbox import Toolbox
from tui.agent.turn_state import TurnState
from tui.context.token_ledger import Ledger
from tui.core.clock import Clock
from tui.core.config import Config, ProviderSettings, model_of, profile_of
from tui.core.facts import (
    DEFAULT_PROFILE,
    Debug,
    DurableFact,
    Fact,
    ProfileUsed,
    QueueChanged,
)
from tui.core.messages import Usage
from tui.core.paths import Folders
from tui.core.workspace import Workspace
from tui.provider.base import Request
from tui.provider.prices import ModelPrice, price_of
from tui.session.records import Record
from tui.session.session import Session
from tui.tokens import estimate
from tui.tools.limits.pipeline import GuardLimits

if TYPE_CHECKING:
    from tui.session.checkpoints.store import CheckpointStore


@dataclass(slots=True)
class AgentContext:
    """The state that the parts of one agent share.

    The agent owns the session, the provider, the jobs and, unless they are shared, the servers. A
    sub-agent owns its session and its jobs; all else is its parent's.
    """

    session: Session
    workspace: Workspace
    config: Config
    clock: Clock
    link: ModelLink
    toolbox: Toolbox
    rules: CallRules
    sources: FrameSources
    key: bytes = field(default=b"", repr=False)
    """The key by which this installation recognises what it recorded."""
    cache: Path | None = None
    """The folder where token ratios are kept, None to keep none."""
    folders: Folders | None = None
    """The folders of the other sessions that this one may read; None where it may read none."""
    open_checkpoints: InitVar[Callable[[], CheckpointStore] | None] = None
    """Opens what holds the checkpoints of the workspace; None where none are taken. Blocks."""
    parent: AgentContext | None = None
    """The context of the agent that started this one."""
    isolated: bool = False
    """True if it works in a folder of its own, with a sandbox of its own around it."""
    role: str = ""
    """The kind of sub-agent and its subject, for the person."""

    state: TurnState = field(init=False)
    events: FactStream = field(default_factory=FactStream, init=False)
    ledger: Ledger = field(default_factory=Ledger, init=False)
    """The items of the next request."""
    recorder: Recorder = field(init=False)
    checkpoints: Checkpoints | None = field(default=None, init=False)
    """A sub-agent has its parent's, unless it works in a folder of its own."""

    def __post_init__(self, open_checkpoints: Callable[[], CheckpointStore] | None) -> None:
        self.state = TurnState(self.parent.state if self.parent else None)
        self.recorder = Recorder(self.session, self.events, self.ledger)
        if open_checkpoints is not None:
            jobs = self.toolbox.jobs
            self.checkpoints = Checkpoints(
                open_checkpoints, self.recorder, self.events, jobs, self.toolbox.ahead
            )
            self.checkpoints.resume(self.session.records)
        elif self.parent is not None and not self.isolated:
            self.checkpoints = self.parent.checkpoints

    def for_sub_agent(
        self,
        session: Session,
        workspace: Workspace,
        link: ModelLink,
        toolbox: Toolbox,
        sources: FrameSources,
        *,
        isolated: bool,
        role: str,
    ) -> AgentContext:
        """The context of a sub-agent: what is not named here is its parent's. It reads no other
        session, and its parent takes the checkpoints."""
        return replace(
            self,
            session=session,
            workspace=workspace,
            link=link,
            toolbox=toolbox,
            rules=self.rules.for_sub_agent(isolated=isolated),
            sources=sources,
            folders=None,
            open_checkpoints=None,
            parent=self,
            isolated=isolated,
            role=role,
        )

    def open_skills(self) -> None:
        """Let the tools and confined commands read the skills outside the workspace."""
        skills, confinement = self.toolbox.skills, self.toolbox.confinement
        readable = skills.folders if skills else ()
        self.workspace = replace(self.workspace, readable=readable)
        if confinement is not None:
            confinement.workspace = replace(confinement.workspace, readable=readable)

    def check_limits(self) -> None:
        """Raise LimitReachedError where the next request would go past a limit of the run, or of
        the goal that it works on."""
        top = self.parent or self
        top.rules.limits.check(top.state.spent_in_run, priced=self.price is not None)
        if (goal := top.state.goal) is not None:
            now = goal.spent(top.state.spent_in_run.usd, self.clock.monotonic())
            if reached := goal.limit(now):
                raise GoalLimitError(reached)

    @asynccontextmanager
    async def within_limits(self, request: Request) -> AsyncGenerator[None]:
        """Make a request while the limits of the run hold; near one, after those under way. Records
        first who pays. Raises LimitReachedError."""
        self.record_payer()
        top = self.parent or self
        rules, state = top.rules, top.state
        if not rules.limits.any:
            yield
            return
        priced = self.price is not None
        most = self._most_of(request)
        async with rules.under_way.room(
            rules.limits, most, lambda: state.spent_in_run, priced=priced
        ):
            yield

    def record_payer(self) -> None:
        """Record whose key pays from now on, where that has changed: before a request, or what it
        cost, is recorded."""
        before, now = self.session.profile, self.config.profile
        if before != now:
            self.record(ProfileUsed(now or DEFAULT_PROFILE, before or DEFAULT_PROFILE))

    def _most_of(self, request: Request) -> Spent:
        """The most that a request can come to: nothing read from the cache, the longest answer."""
        weight = estimate.request_weight(request.system, request.tools, request.messages)
        written = round(weight * self.ledger.ratio)
        usage = Usage(cache_creation_input_tokens=written, output_tokens=request.max_tokens)
        if (price := self.price_of(request.model)) is None:
            return Spent(1, usage, None)
        life = self.link.at(request.model).cache_life
        most = price.forecast(written=written, output=request.max_tokens, life=life)
        return Spent(1, usage, most)

    @property
    def records(self) -> Sequence[Record]:
        return self.session.records

    def spent(self) -> SessionCost:
        """Count the cost of the whole session so far, earlier runs and other branches included."""
        return self.state.spending.count(self.records, self.config.prices, self.session.elsewhere)

    @property
    def price(self) -> ModelPrice | None:
        """The price of the current model; None where it is not known."""
        return self.price_of(self.link.model.id)

    def longest_answer(self, model: str) -> int:
        """The most tokens that the person allows an answer of a model; 0 where nothing is set."""
        return self.settings_of(model).longest_answer(model_of(model))

    def settings_of(self, model: str) -> ProviderSettings:
        """The person's settings of the server that a model is asked of."""
        return self.link.at(model).settings if profile_of(model) else self.config.provider

    def price_of(self, model: str) -> ModelPrice | None:
        """Return the price of any model."""
        return price_of(model, self.config.prices)

    @property
    def guard_limits(self) -> GuardLimits:
        """The limits for the size of a result, for the current model and one that answers for
        it."""
        return GuardLimits.of(self.config.guard, window=self.link.window)

    def publish(self, *events: Fact) -> None:
        for event in events:
            self.events.publish(event)

    def record(self, fact: DurableFact) -> Record:
        """Append a fact to the session, and publish it unless it is for the record alone."""
        return self.recorder.record(fact)

    def publish_queue(self) -> None:
        """Show in the turn that runs what is queued now."""
        if self.events.busy:
            self.publish(QueueChanged(tuple(prompt.typed for prompt in self.state.queue)))

    def refuse_in_turn(self) -> None:
        """Raise RuntimeError while a turn runs."""
        if self.events.busy:
            raise RuntimeError("a turn is running")

    def debug(self, text: str) -> None:
        """Show a line while verbose is on."""
        if self.state.verbose:
            self.publish(Debug(text))
