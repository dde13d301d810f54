"""A scripted agent for tests of the screen: it yields the events it was given, when told to."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.support.clock import FakeClock
from tui.agent import events
from tui.agent.compaction import CompactionPreview
from tui.agent.events import Event
from tui.agent.limits import SessionCost, session_cost
from tui.agent.request_builder import Fit
from tui.agent.tool_results import ShellOutput
from tui.app.dialog_data import ModelRow, SessionRow, Setup
from tui.app.ports import AppServices, SessionChoice
from tui.context import view
from tui.context.overrides import Overlay
from tui.context.repair_levels import RepairLevel
from tui.context.token_ledger import Ledger
from tui.context.view import View
from tui.core.config import Config, Permissions
from tui.core.images import Image
from tui.core.messages import Usage
from tui.core.paths import folders
from tui.permissions.types import Answer, Approver, Call, Decision, Mode
from tui.provider.base import ModelInfo, Request
from tui.session.drafts import NO_IMAGES, NOTHING, UnsentWork
from tui.session.reader import read
from tui.session.records import Finding, Header, Record
from tui.settings.layers import LoadedSettings, load
from tui.settings.local_servers import LocalServer
from tui.tools.mcp import Server

MODEL = "claude-sonnet-5-5"
NO_BYTES: Mapping[str, Image] = MappingProxyType({})


class Ask:
    """A step of a script: the agent asks for permission and waits for the answer."""

    def __init__(self, call: Call, decision: Decision) -> None:
        self.call = call
        self.decision = decision


class Hold:
    """A step of a script: nothing happens until `release` is called, or the turn is cancelled."""

    def __init__(self) -> None:
        self._released = asyncio.Event()

    def release(self) -> None:
        self._released.set()

    async def wait(self) -> None:
        await self._released.wait()


class Burst:
    """A step of a script: so many pieces of text, all at once."""

    def __init__(self, count: int) -> None:
        self.count = count


Step = Event | Ask | Hold | Burst | Exception
Script = Sequence[Step]


HEADER = Header("0199f3a2c1d", "2026-11-21T08:00:00.000Z", "/home/me/proj", "holdfast 1")


@dataclass
class FakeSession:
    """A session in memory."""

    id: str = "0199f3a2c1d"
    path: Path | None = Path("/data/sessions/proj/0199f3a2c1d.jsonl")
    title: str = ""
    records: Sequence[Record] = ()
    read_only: bool = False
    lost: str = ""
    findings: tuple[Finding, ...] = ()
    header: Header = HEADER
    problem: str = ""
    unsent: UnsentWork = NOTHING
    drafts: list[tuple[str, tuple[str, ...], str]] = field(default_factory=list[Any])
    drafted_images: dict[str, str] = field(default_factory=dict[str, str])
    drafted_commands: tuple[str, ...] = ()

    async def recheck(self) -> str:
        return self.lost or self.problem

    def append(self, type_: str, **data: Any) -> Record:
        made = record(type_, len(self.records), **data)
        self.records = [*self.records, made]
        if type_ == "title":
            self.title = str(data["title"])
        return made

    async def rewind(self, target: str) -> Record:
        place = next(n for n, one in enumerate(self.records) if one.id == target)
        self.records = self.records[:place]
        return self.append("rewind", target=target)

    def draft(
        self,
        prompt: str,
        queue: Sequence[str] = (),
        answer: str = "",
        images: Mapping[str, str] = NO_IMAGES,
        *,
        commands: Sequence[str] = (),
    ) -> float:
        self.drafted_images, self.drafted_commands = dict(images), tuple(commands)
        self.drafts.append((prompt, tuple(queue), answer))
        return 0.0


@dataclass
class FakeAgent:
    """Plays one script per prompt. `sent`, `steered`, `answers`, `wishes` (what to do about a
    wait), `went_on` and `repaired` say what the screen did; `needs`, `waits` and `rungs` what it
    is told."""

    approver: Approver
    scripts: deque[Script]
    session: FakeSession = field(default_factory=FakeSession)
    first: Sequence[Event] = ()
    model: str = MODEL
    window: int = 200_000
    mode: Mode = "ask"
    queue: tuple[str, ...] = ()
    sent: list[str] = field(default_factory=list[str])
    attached: list[str] = field(default_factory=list[str])
    images: list[dict[str, Image]] = field(default_factory=list[dict[str, Image]])
    planned: CompactionPreview | None = None
    compacted: list[str] = field(default_factory=list[str])
    memory_pending: bool = False
    folders: tuple[Path, ...] = (Path("/home/me/proj"),)
    steered: list[str] = field(default_factory=list[str])
    answers: list[Answer] = field(default_factory=list[Answer])
    closed: bool = False
    needs: int = 82_100
    waits: bool = False
    went_on: int = 0
    left: list[str] = field(default_factory=list[str])
    again: list[str] = field(default_factory=list[str])
    wishes: list[str] = field(default_factory=list[str])
    servers: Sequence[Server] = ()
    was_elevated: bool = False
    rungs: tuple[RepairLevel, ...] = ()
    repaired: list[RepairLevel] = field(default_factory=list[RepairLevel])
    taken_up: list[Config] = field(default_factory=list[Config])
    keeping: ShellOutput | None = None
    _task: asyncio.Task[None] | None = None

    def spending(self) -> SessionCost:
        return session_cost(self.session.records, {})

    def take_up(self, config: Config) -> None:
        self.taken_up.append(config)

    def switch_tool(self, server: Server, tool: str, *, on: bool) -> Sequence[Event]:
        (server.switched_off.discard if on else server.switched_off.add)(tool)
        return ()

    async def start(self) -> list[Event]:
        path = str(self.session.path) if self.session.path else None
        resumed = bool(self.session.records)
        started = events.SessionStarted(self.session.id, path, self.model, "/home/me/proj", resumed)
        return [started, *self.first]

    async def send(
        self, text: str, *, attached: str = "", images: Mapping[str, Image] = NO_BYTES
    ) -> AsyncIterator[Event]:
        """The next script, framed by UserMessage and TurnFinished unless it holds its own end."""
        self.sent.append(text)
        self.attached.append(attached)
        self.images.append(dict(images))
        async for event in self._events(text):
            yield event

    async def _events(self, text: str) -> AsyncIterator[Event]:
        out: asyncio.Queue[Event | Exception | None] = asyncio.Queue()
        self._task = asyncio.create_task(self._play(text, out))
        try:
            while (event := await out.get()) is not None:
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            self._task = None

    async def _play(self, text: str, out: asyncio.Queue[Event | Exception | None]) -> None:
        first: Script = [events.UserMessage(text)] if text else []
        script = self.scripts.popleft() if self.scripts else first
        ended = False
        try:
            for step in script:
                if isinstance(step, Ask):
                    self.answers.append(await self.approver.ask(step.call, step.decision))
                elif isinstance(step, Hold):
                    await step.wait()
                elif isinstance(step, Burst):
                    for number in range(step.count):
                        out.put_nowait(events.TextDelta(f"{number} "))
                else:
                    ended = ended or isinstance(step, events.TurnFinished)
                    self.queue = step.texts if isinstance(step, events.QueueChanged) else self.queue
                    out.put_nowait(step)
                    await asyncio.sleep(0)
        except asyncio.CancelledError:
            out.put_nowait(events.TurnFinished("interrupted"))
            ended = True
        except Exception as error:  # noqa: BLE001 - the screen's own mistakes must fail the test
            out.put_nowait(error)
        if not ended:
            out.put_nowait(events.TurnFinished("done", Usage(1200, 300), None))
        out.put_nowait(None)

    def steer(self, text: str, images: Mapping[str, Image] = NO_BYTES) -> None:
        self.images.append(dict(images))
        self.steered.append(text)
        self.queue = (*self.queue, text)

    def unqueue(self) -> tuple[str, ...]:
        texts, self.queue = self.queue, ()
        return texts

    def cancel(self) -> None:
        if self._task:
            self._task.cancel()

    def use_model(self, info: ModelInfo) -> None:
        self.model = info.id

    def fits(self, info: ModelInfo) -> Fit:
        return Fit(self.needs, info.window, self.needs <= info.window)

    async def close_calls(self, ids: Collection[str]) -> Sequence[Event]:
        self.left.extend(ids)
        return ()

    async def go_on(self, again: Collection[str] = ()) -> AsyncIterator[Event]:
        """Plays the next script."""
        self.went_on += 1
        self.again.extend(again)
        async for event in self._events(""):
            yield event

    def retry_now(self) -> bool:
        self.wishes.append("now")
        return self.waits

    def other_model(self) -> bool:
        self.wishes.append("other")
        return self.waits

    def offers(self) -> tuple[RepairLevel, ...]:
        return self.rungs

    async def repair(self, rung: RepairLevel) -> Sequence[Event]:
        """Takes that rung and those below it out of the offers."""
        self.repaired.append(rung)
        self.rungs = self.rungs[self.rungs.index(rung) + 1 :]
        return [events.RepairApplied(({"code": "R13", "where": "messages", "action": rung},))]

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.model)

    def view(self) -> View:
        return view.build(self.session.records, model=self.model, prompt_follows=True)

    def fixed_texts(self) -> Mapping[str, str]:
        return {}

    def next_request(self, *, prompt_follows: bool = False) -> Request:
        return Request(self.model, [], self.view().messages, [], 1000)

    async def overlay(self, changes: Sequence[Overlay]) -> Sequence[Event]:
        calls = {r.id: {"call_id": r.data.get("call_id")} for r in self.session.records}
        told = [asdict(change) | calls.get(change.target, {}) for change in changes]
        return [events.ContextChanged(tuple(told))]

    async def pin(self, pins: Mapping[str, bool]) -> Sequence[Event]:
        calls = {r.id: {"call_id": r.data.get("call_id")} for r in self.session.records}
        told = [{"target": id_, "pinned": on} | calls.get(id_, {}) for id_, on in pins.items()]
        return [events.ContextChanged(tuple(told))]

    def plan_compaction(self, focus: str = "") -> CompactionPreview | None:
        return replace(self.planned, focus=focus) if self.planned else None

    async def compact(self, focus: str = "") -> AsyncIterator[Event]:
        self.compacted.append(focus)
        yield events.CompactionStarted("manual", 50_000, 12)
        yield events.CompactionFinished(50_000, 8_000, 12, "what was said", "manual")

    async def uncompact(self) -> Sequence[Event]:
        return [events.Notice("No compaction is in force.")]

    async def flush_memory(self) -> AsyncIterator[Event]:
        self.memory_pending = False
        yield events.Notice("Saved to memory.")

    def add_dir(self, folder: Path) -> bool:
        known = any(folder == one or one in folder.parents for one in self.folders)
        self.folders = self.folders if known else (*self.folders, folder)
        return not known

    async def close(self) -> None:
        self.cancel()
        self.closed = True


class World:
    """Everything around the screen, in memory. Change an attribute to change what it does."""

    def __init__(
        self, workspace: Path = Path("/home/me/proj"), *, mcp: Sequence[Server] = ()
    ) -> None:
        self.clock = FakeClock()
        self.workspace = workspace
        self.scripts: deque[Script] = deque()
        self.agents: list[FakeAgent] = []
        self.chosen: list[SessionChoice] = []
        self.refusals: deque[Exception] = deque()
        self.old: dict[Path, FakeSession] = {}
        self.rows: list[SessionRow] = []
        self.first: Sequence[Event] = ()
        self.set_up_with: list[Setup] = []
        self.set_up_refusals: deque[Exception] = deque()
        self.servers: tuple[LocalServer, ...] = ()
        self.themes_saved: list[str] = []
        self.trust: list[bool] = []
        self.untrusted: tuple[str, ...] = ()
        self.trusted = False
        self.permissions = Permissions()
        self.env: dict[str, str] = {}
        self.overrides: dict[str, Any] = {}
        self.models: tuple[ModelRow, ...] = ()
        self.mcp: Sequence[Server] = mcp
        self.was_elevated = False
        self.calm = False
        self.rungs: tuple[RepairLevel, ...] = ()

    @property
    def agent(self) -> FakeAgent:
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

    def session_of(self, number: int) -> FakeSession:
        """The session of a row, as it is read from its file."""
        loaded = read(self.rows[number].path)
        row = self.rows[number]
        return FakeSession(
            id=loaded.header.id,
            path=row.path,
            title=row.title,
            records=loaded.branch,
            findings=loaded.findings,
            header=loaded.header,
        )

    def services(self) -> AppServices:
        async def make_agent(choice: SessionChoice, approver: Approver) -> FakeAgent:
            self.chosen.append(choice)
            if self.refusals:
                raise self.refusals.popleft()
            session = self.old.get(choice.path) if choice.path else None
            agent = FakeAgent(
                approver, self.scripts, session=session or FakeSession(), first=self.first
            )
            agent.rungs, agent.servers = self.rungs, self.mcp
            agent.was_elevated = choice.path is not None and self.was_elevated
            self.agents.append(agent)
            return agent

        async def list_sessions() -> Sequence[SessionRow]:
            return self.rows

        async def set_up(setup: Setup) -> str:
            self.set_up_with.append(setup)
            if self.set_up_refusals:
                raise self.set_up_refusals.popleft()
            return "Kept in the keyring."

        async def probe() -> Sequence[LocalServer]:
            return self.servers

        async def model_info(name: str) -> ModelInfo:
            known = {row.name: row.window for row in self.models}
            return ModelInfo(name, known.get(name, 200_000), 64_000, "catalogue")

        def read_settings() -> LoadedSettings:
            return load(
                folders=folders(), workspace=self.workspace, trusted=self.trusted,
                env=self.env, overrides=self.overrides,
            )  # fmt: skip

        async def save_theme(name: str) -> None:
            self.themes_saved.append(name)

        async def decide_trust(trusted: bool) -> None:
            self.trust.append(trusted)

        return AppServices(
            clock=self.clock,
            folders=folders(),
            workspace=self.workspace,
            make_agent=make_agent,
            list_sessions=list_sessions,
            set_up=set_up,
            probe_servers=probe,
            model_info=model_info,
            save_theme=save_theme,
            decide_trust=decide_trust,
            models=lambda: self.models,
            untrusted=self.untrusted,
            permissions=lambda: self.permissions,
            trusted=lambda: self.trusted,
            read_settings=read_settings,
            version="1.2.3",
            calm=self.calm,
        )


def record(type_: str, number: int = 0, **data: object) -> Record:
    """A record of a session, at a fixed time."""
    time = datetime(2026, 11, 21, 8, 0, tzinfo=UTC).isoformat()
    return Record(type_, f"r{number:04d}", None, time, dict(data))
