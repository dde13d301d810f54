"""Everything around a screen or plain lines, with real agents on a scripted model."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import CoroutineType
from typing import Any

from msgspec import structs

from tests.support.agents import agent_context
from tests.support.clock import FakeClock
from tests.support.script import MODEL, Answers, Hold, Script, ScriptedGate, ScriptedModel
from tui.agent.agent import Agent
from tui.agent.agent_context import AgentContext
from tui.agent.agent_models import AgentModels
from tui.agent.agent_permissions import AgentPermissions
from tui.agent.agent_view import AgentView
from tui.agent.compaction import CompactionPreview
from tui.agent.prompts import GoalWish, ParsedPrompt
from tui.agent.request.state import Fit
from tui.agent.turn import TurnRunner
from tui.app.dialog_data import Account, ModelRow, ProfileRow, SessionRow, Setup
from tui.app.options.arguments import Options
from tui.app.services import LiveSettings, SessionChoice
from tui.context.repair_levels import RepairLevel
from tui.context.system_prompt import Injected
from tui.core import facts
from tui.core.clipboard import Clip
from tui.core.clock import Clock
from tui.core.config import Config, Permissions
from tui.core.facts import Fact, Overlay
from tui.core.images import Image, images_of_record
from tui.core.messages import blocks_of, text_block, text_of
from tui.core.paths import Folders, folders
from tui.core.workspace import Workspace
from tui.permissions.gate import Gate
from tui.permissions.policy import Policy
from tui.permissions.types import Answer, Approver
from tui.provider.base import ModelInfo
from tui.provider.catalogue import EFFORTS
from tui.session.drafts import UnsentWork
from tui.session.lock import SessionLock
from tui.session.records import Finding, Header, Record
from tui.session.session import Session
from tui.session.writer import SessionWriter
from tui.settings.layers import LoadedSettings, load
from tui.settings.local_servers import LocalServer
from tui.settings.trust import Trust, TrustItem
from tui.tools.jobs import Jobs
from tui.tools.mcp import Server, Servers
from tui.tools.registry import builtin_tools

STARTED = "2026-11-21T08:00:00.000Z"
ID = 0x0199F3A2C1D
"""The id of the first session that begins in a world."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldServices:
    """Services of which a test may replace each."""

    bare: bool = False
    clock: Clock
    folders: Folders
    workspace: Path
    make_agent: Callable[[SessionChoice, Approver], CoroutineType[Any, Any, Agent]]
    list_sessions: Callable[[], CoroutineType[Any, Any, Sequence[SessionRow]]]
    set_up: Callable[[Setup], CoroutineType[Any, Any, str]]
    reconnect: Callable[[Agent], CoroutineType[Any, Any, Sequence[Fact]]]
    connection: Callable[[], str]
    set_up_elsewhere: Callable[[], bool]
    account: Callable[[], Account]
    profiles: Callable[[], Sequence[ProfileRow]]
    probe_servers: Callable[[], CoroutineType[Any, Any, Sequence[LocalServer]]]
    model_info: Callable[[str], CoroutineType[Any, Any, ModelInfo]]
    save_theme: Callable[[str], CoroutineType[Any, Any, None]]
    decide_trust: Callable[[Sequence[TrustItem], Collection[str]], CoroutineType[Any, Any, None]]
    models: Callable[[], Sequence[ModelRow]]
    undecided: Callable[[], Sequence[TrustItem]]
    brought: Callable[[], Sequence[TrustItem]]
    trust: Callable[[], Trust]
    read_settings: Callable[[], LoadedSettings]
    refresh_models: Callable[[], CoroutineType[Any, Any, None]]
    use_settings: Callable[[], CoroutineType[Any, Any, None]]
    run_options: Callable[[Path], Options]
    background_options: Callable[[], Options | None]
    settings: LiveSettings
    version: str = "1.2.3"
    whole_name: Callable[[str], str] = str
    asked_model: Callable[[str], ModelInfo | None] = lambda _: None
    clipboard: Callable[[], Clip] = Clip


async def _nothing() -> None:
    """Answer a service that nobody looks at."""


@dataclass
class OldSession:
    """What an earlier run left: written into the session's file when it is opened first.

    `findings` and `unsent` are as the reader would have found them.
    """

    title: str = ""
    records: Sequence[Record] = ()
    read_only: bool = False
    findings: tuple[Finding, ...] | None = None
    unsent: UnsentWork | None = None
    in_memory: bool = False

    def write(self, path: Path, header: Header) -> None:
        """Write its file."""
        told = list(self.records)
        if self.title:
            told.append(record("title", 9000, title=self.title))
        lines, parent = [header.to_line()], None
        for one in told:
            lines.append(replace(one, parent=parent).to_line())
            parent = one.id
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(lines))


class WatchedSession(Session):
    """A session that also tells which drafts it was given.

    `untitled`: it takes no title from its first prompt.
    """

    drafts: list[tuple[str, tuple[str, ...], str]]
    drafted_images: dict[str, str]
    drafted_commands: tuple[str, ...]
    untitled = False

    def __init__(self, *args: Any, **fields: Any) -> None:
        super().__init__(*args, **fields)
        self.drafts, self.drafted_images, self.drafted_commands = [], {}, ()

    def draft(self, work: UnsentWork) -> float:
        self.drafted_images, self.drafted_commands = dict(work.images), work.commands
        self.drafts.append((work.prompt, work.queue, work.answer))
        return super().draft(work)

    def take_over(self, lost: str) -> None:
        """Another program has the session now."""
        assert self._lock
        self._lock.lost = lost

    def _note(self, record: Record) -> None:
        super()._note(record)
        if self.untitled and record.type == "user":
            self.title = ""


class GivenServers(Servers):
    """MCP servers that stand as a test says and are never started."""

    def start(self) -> None:
        pass

    async def settled(self) -> None:
        pass


@dataclass(slots=True, kw_only=True)
class ScriptedTurns(TurnRunner):
    """Runs turns, unless the script says that one fails before its prompt is recorded."""

    model: ScriptedModel

    async def _begin(
        self,
        prompt: ParsedPrompt | None,
        again: Collection[str],
        *,
        repeat: bool,
        goal: GoalWish | None,
    ) -> bool:
        if prompt is not None:
            self.model.before_prompt()
        return await TurnRunner._begin(self, prompt, again, repeat=repeat, goal=goal)


@dataclass(frozen=True, kw_only=True)
class WatchedView(AgentView):
    """The context of a watched agent, with the figures of its script."""

    agent: WatchedAgent

    async def plan_compaction(self, focus: str = "") -> CompactionPreview | None:
        planned = self.agent.planned
        return replace(planned, focus=focus) if planned else await super().plan_compaction(focus)

    def compact(self, focus: str = "") -> AsyncGenerator[Fact]:
        self.agent.compacted.append(focus)
        return self.agent.figured(super().compact(focus))

    def flush_memory(self) -> AsyncGenerator[Fact]:
        return (self.agent.flush or super().flush_memory)()

    async def repair(self, level: RepairLevel) -> Sequence[Fact]:
        return _unmeasured(await super().repair(level))

    async def overlay(self, changes: Sequence[Overlay]) -> Sequence[Fact]:
        return _unmeasured(await super().overlay(changes))

    async def pin(self, pins: Mapping[str, bool]) -> Sequence[Fact]:
        return _unmeasured(await super().pin(pins))


@dataclass(kw_only=True)
class WatchedModels(AgentModels):
    agent: WatchedAgent

    def fits(self, info: ModelInfo) -> Fit:
        return Fit(self.agent.needs, info.window, self.agent.needs <= info.window)


@dataclass(kw_only=True)
class WatchedPermissions(AgentPermissions):
    agent: WatchedAgent

    def take_up(self, config: Config) -> None:
        self.agent.taken_up.append(config)
        super().take_up(config)


def _parts(whole: Any) -> dict[str, Any]:
    """What a dataclass was made of."""
    return {one.name: getattr(whole, one.name) for one in fields(whole) if one.init}


class WatchedAgent(Agent):
    """A real agent that tells what was asked of it, from its record where that says so.

    What it publishes has the figures that its script gives. `needs` and
    `planned` are figures too: the size of the session, and what a compaction would do. `flush`
    takes the place of saving to memory.
    """

    def __init__(
        self, ctx: AgentContext, session: WatchedSession, model: ScriptedModel, answers: Answers
    ) -> None:
        super().__init__(ctx)
        self.watched = session
        self.scripted = model
        self.closed = False
        self.planned: CompactionPreview | None = None
        self.compacted: list[str] = []
        self.went_on = 0
        self.reconnected = 0
        self.again: list[str] = []
        self.left: list[str] = []
        self.taken_up: list[Config] = []
        self.needs = 82_100
        self.flush: Callable[[], AsyncGenerator[Fact]] | None = None
        self._old = frozenset(record.id for record in ctx.records)
        self._answers = answers
        self._turns = ScriptedTurns(**_parts(self._turns), model=model)
        self.context = WatchedView(**_parts(self.context), agent=self)
        self.models = WatchedModels(**_parts(self.models), agent=self)
        self.permissions = WatchedPermissions(**_parts(self.permissions), agent=self)
        model.serve(ctx)

    @property
    def sent(self) -> list[str]:
        """The prompts that came into the record, as they were typed."""
        return [str(record.data["text"]) for record in self._prompts_sent]

    @property
    def attached(self) -> list[str]:
        """What went behind each of them."""
        return [
            text_of(blocks_of(one.data["content"])).removeprefix(str(one.data["text"])).lstrip("\n")
            for one in self._prompts_sent
        ]

    @property
    def images(self) -> list[dict[str, Image]]:
        """What went along with each of them."""
        return [images_of_record(one.data) for one in self._prompts_sent]

    @property
    def answers(self) -> list[Answer]:
        """What the person was asked and answered."""
        return self._answers.given

    @property
    def wishes(self) -> list[str]:
        """How waits ended that the person would not wait for."""
        return self.scripted.wishes

    @property
    def repaired(self) -> list[str]:
        """The rungs that the person tried."""
        return [
            r.data["rung"] for r in self.session.records if r.type == "repair" if "rung" in r.data
        ]

    @property
    def _prompts_sent(self) -> list[Record]:
        records = self.session.records
        return [one for one in records if one.type == "user" and one.id not in self._old]

    async def start(self) -> list[Fact]:
        told = _unmeasured(await super().start())
        return [_on_any_machine(one) for one in told]

    def remember(self) -> None:
        """Something was said that the memory has not got yet."""
        text = [text_block("The tests are run with `make test`.")]
        self.session.append("user", content=text, text="How are they run?")
        self.session.append("assistant", content=text, model=MODEL, usage={})
        self.scripted.ctx.sources.memory_file = folders().data / "MEMORY.md"

    def runs(self, id_: str) -> bool:
        """Whether a call of the script is being run."""
        call = self.scripted.calls.get(id_)
        return call is not None and call.running.is_set()

    async def close_calls(self, ids: Collection[str]) -> Sequence[Fact]:
        self.left.extend(ids)
        return await super().close_calls(ids)

    def send(self, *args: Any, **along: Any) -> AsyncGenerator[Fact]:
        return self.figured(super().send(*args, **along))

    def go_on(
        self,
        again: Collection[str] = (),
        *,
        repeat: bool = False,
        goal: GoalWish | None = None,
    ) -> AsyncGenerator[Fact]:
        self.went_on += 1
        self.again.extend(again)
        return self.figured(super().go_on(again, repeat=repeat, goal=goal))

    async def close(self) -> None:
        await super().close()
        self.closed = True

    async def figured(self, stream: AsyncGenerator[Fact]) -> AsyncGenerator[Fact]:
        self.scripted.break_turn()
        async with aclosing(stream):
            async for event in stream:
                if not isinstance(event, facts.ContextMeasured) or event in self.scripted.measured:
                    yield self.scripted.see(event)
        self.scripted.end_turn()


def _on_any_machine(event: Fact) -> Fact:
    """The event, with a path that is the same wherever the tests are run."""
    if not isinstance(event, facts.SessionStarted) or event.path is None:
        return event
    return structs.replace(event, path=f"/data/sessions/proj/{Path(event.path).name}")


def _unmeasured(told: Sequence[Fact]) -> list[Fact]:
    return [one for one in told if not isinstance(one, facts.ContextMeasured)]


def old_path() -> Path:
    """The file of a session of an earlier run."""
    return folders().sessions / "proj" / "old.jsonl"


class World:
    """Everything around the screen. Change an attribute to change what it does.

    `old` says what is in the files of earlier sessions that have no row, or more than a row says.
    `untitled`: sessions take no title from their first prompt, for pictures without one.
    """

    def __init__(
        self, workspace: Path = Path("/home/me/proj"), *, mcp: Sequence[Server] = ()
    ) -> None:
        self.clock = FakeClock()
        self.workspace = workspace
        self.scripts: deque[Script] = deque()
        self.agents: list[WatchedAgent] = []
        self.chosen: list[SessionChoice] = []
        self.refusals: deque[Exception] = deque()
        self.old: dict[Path, OldSession] = {}
        self.rows: list[SessionRow] = []
        self.set_up_with: list[Setup] = []
        self.set_up_refusals: deque[Exception] = deque()
        self.set_up_hold = Hold()
        self.set_up_hold.release()
        self.servers: tuple[LocalServer, ...] = ()
        self.connection = ""
        self.set_up_elsewhere = False
        self.account = Account()
        self.profiles: tuple[ProfileRow, ...] = ()
        self.themes_saved: list[str] = []
        self.granted: list[set[str]] = []
        self.undecided: tuple[TrustItem, ...] = ()
        self.background_options: Options | None = None
        self.trust = Trust()
        self.permissions = Permissions()
        self.env: dict[str, str] = {}
        self.overrides: dict[str, Any] = {}
        self.models: tuple[ModelRow, ...] = ()
        self.mcp: Sequence[Server] = mcp
        self.was_elevated = False
        self.config = Config()
        self.untitled = False
        self.tried: RepairLevel | None = None
        self.fallbacks: tuple[str, ...] = ()
        self.injected: tuple[Injected, ...] = ()
        self._next = ID

    @property
    def agent(self) -> WatchedAgent:
        """The agent that was made last."""
        return self.agents[-1]

    def add_row(self, title: str, *, hours: float, messages: int = 12, state: str = "ok") -> None:
        """An old session for the browser, `hours` old, with a file of its own."""
        number = len(self.rows)
        updated = self.clock.now() - timedelta(hours=hours)
        id_ = f"{number:02}f3a2c1d0e9"
        time = updated.isoformat().replace("+00:00", "Z")
        head = Header(id_, time, str(self.workspace), "holdfast 1")
        path = folders().sessions_of(self.workspace) / f"{updated:%Y%m%dT%H%M%SZ}-{id_}.jsonl"
        lines = [head.to_line()]
        parent = None
        said = messages - (state == "interrupted" and messages % 2 == 0)
        for count in range(said):
            text = title if count == 0 else f"Part {count} of “{title}”, said at some length."
            extra = {"model": MODEL} if count % 2 else {"text": text}
            data = {"content": [{"type": "text", "text": text}], **extra}
            type_ = "assistant" if count % 2 else "user"
            made = Record(type_, f"{number:08x}{count:012x}", parent, time, data)
            lines.append(made.to_line())
            parent = made.id
        if state == "needs_repair":
            lines.append(b'{"type":"user","id":"torn\n')
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(lines))
        size = path.stat().st_size
        row = SessionRow(id_, path, title, updated, said, size, state, str(self.workspace))
        self.rows.append(row)

    def services(self) -> WorldServices:
        async def make_agent(choice: SessionChoice, approver: Approver) -> WatchedAgent:
            self.chosen.append(choice)
            if self.refusals:
                raise self.refusals.popleft()
            session = self._session(choice)
            session.untitled = self.untitled
            agent = self._agent(session, approver)
            self.agents.append(agent)
            return agent

        async def list_sessions() -> Sequence[SessionRow]:
            return self.rows

        async def set_up(setup: Setup) -> str:
            self.set_up_with.append(setup)
            await self.set_up_hold.wait()
            if self.set_up_refusals:
                raise self.set_up_refusals.popleft()
            return "Kept in the keyring."

        async def reconnect(agent: Agent) -> Sequence[Fact]:
            assert isinstance(agent, WatchedAgent)
            agent.reconnected += 1
            return ()

        async def probe() -> Sequence[LocalServer]:
            return self.servers

        async def model_info(name: str) -> ModelInfo:
            known = {row.name: row.window for row in self.models}
            return ModelInfo(name, known.get(name, 200_000), 64_000, "catalogue")

        def read_settings() -> LoadedSettings:
            return load(
                folders=folders(), workspace=self.workspace, allows=self.trust.allows,
                env=self.env, overrides=self.overrides,
            )  # fmt: skip

        async def save_theme(name: str) -> None:
            self.themes_saved.append(name)

        async def decide_trust(about: Sequence[TrustItem], granted: Collection[str]) -> None:
            assert {item.name for item in about} >= set(granted)
            self.granted.append(set(granted))

        return WorldServices(
            clock=self.clock,
            folders=folders(),
            workspace=self.workspace,
            make_agent=make_agent,
            list_sessions=list_sessions,
            set_up=set_up,
            reconnect=reconnect,
            connection=lambda: self.connection,
            set_up_elsewhere=lambda: self.set_up_elsewhere,
            account=lambda: self.account,
            profiles=lambda: self.profiles,
            probe_servers=probe,
            model_info=model_info,
            save_theme=save_theme,
            decide_trust=decide_trust,
            models=lambda: self.models,
            undecided=lambda: self.undecided,
            brought=lambda: self.undecided,
            trust=lambda: self.trust,
            read_settings=read_settings,
            refresh_models=_nothing,
            use_settings=_nothing,
            run_options=lambda tasks: Options().having(
                command="run", tasks=tasks, cwd=self.workspace
            ),
            background_options=lambda: self.background_options,
            settings=LiveSettings(self.config),
        )

    def _session(self, choice: SessionChoice) -> WatchedSession:
        if choice.path is None:
            folder, number = folders().sessions_of(self.workspace), ID
            while (path := folder / f"{number:011x}.jsonl").exists() or number < self._next:
                number += 1
            self._next = number + 1
            header = Header(path.stem, STARTED, str(self.workspace), "holdfast 1")
            lock = SessionLock(path, clock=self.clock)
            file = SessionWriter(path, header=header.to_line(), guard=lock.check)
            return WatchedSession(header, file, self.clock, lock=lock)
        old = self.old.get(choice.path, OldSession())
        if old.in_memory:
            header = Header("0199f3a2c1d", STARTED, str(self.workspace), "holdfast 1")
            return WatchedSession(header, None, self.clock)
        if choice.path in self.old and (old.records or old.title or not choice.path.exists()):
            header = Header("0199f3a2c1d", STARTED, str(self.workspace), "holdfast 1")
            old.write(choice.path, header)
            old.records, old.title = (), ""
        session = WatchedSession.open(
            choice.path,
            clock=self.clock,
            take_over=choice.take_over,
            read_only=choice.read_only or old.read_only,
        )
        assert isinstance(session, WatchedSession)
        session.findings = session.findings if old.findings is None else old.findings
        session.unsent = old.unsent or session.unsent
        if self.was_elevated:
            session.metadata["directives"] = {"think": False, "verbose": False, "elevated": True}
        return session

    def _agent(self, session: WatchedSession, approver: Approver) -> WatchedAgent:
        model = ScriptedModel(self.scripts, self.clock)
        model.tried = self.tried
        answers = Answers(approver)
        servers = None
        if self.mcp:
            servers = GivenServers({}, cwd=self.workspace, log_folder=self.workspace)
            servers.all = tuple(self.mcp)
        said = self.permissions
        rules = Policy.of(allow=said.allow, ask=said.ask, deny=said.deny)
        ctx = agent_context(
            session=session,
            provider=model,
            model=ModelInfo(MODEL, 200_000, 64_000, "catalogue", EFFORTS, "high"),
            tools=builtin_tools(),
            gate=ScriptedGate(Gate(rules), model),
            approver=answers,
            workspace=Workspace(self.workspace),
            system=[text_block("You are a test.")],
            config=Config(),
            clock=self.clock,
            jobs=Jobs(self.clock, session=session.path),
            servers=servers,
            fallbacks=self.fallbacks,
            injected=self.injected,
            servers_shared=True,
        )
        return WatchedAgent(ctx, session, model, answers)


def record(type_: str, number: int = 0, **data: object) -> Record:
    """A record of a session, at a fixed time."""
    time = datetime(2026, 11, 21, 8, 0, tzinfo=UTC).isoformat()
    return Record(type_, f"r{number:04d}", None, time, dict(data))
