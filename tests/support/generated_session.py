"""Sessions made by chance: turns, and between and within them every kind of change.

The program's own agents talk to the enforcing server's rules, without a connection: what the server
would refuse is kept in `refusals`. A seed gives the same session again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Final

from tests.support.agents import Yes
from tests.support.clock import FakeClock
from tests.support.foreign import ClaudeCode, lines
from tests.support.server_api import MessagesApi
from tests.support.server_errors import Rejection
from tests.support.server_models import MODELS
from tests.support.server_script import Json, Script
from tui.agent import composition
from tui.agent.agent import Agent
from tui.agent.launch import Launch
from tui.agent.prompts import parse
from tui.context.repair_levels import REPAIR_LEVELS
from tui.context.request_replay import ReplayedRequest, RequestReplay
from tui.core.config import Compaction, Config, Prune
from tui.core.errors import ProviderError
from tui.core.facts import ErrorRaised, Fact, Overlay, ToolFinished
from tui.core.files import known_key
from tui.core.messages import ToolOutput, Usage
from tui.core.paths import folders
from tui.core.workspace import Workspace
from tui.provider import catalogue
from tui.provider.anthropic import convert
from tui.provider.base import AttemptStarted, Completed, ModelInfo, Request, StreamPart
from tui.session import copies, importers, reader
from tui.session.session import Session
from tui.tools.base import Params, Tool, ToolContext

NAMES: Final = (
    "claude-sonnet-5-5",
    "claude-opus-5-5",
    "claude-haiku-5-5",
    "claude-fable-5-1",
    "claude-sonnet-5",
    "claude-opus-4-8",
)
_HEADERS = {"x-api-key": "k", "anthropic-version": "2026-10-21"}


class LateParams(Params, frozen=True, kw_only=True):
    text: str = ""


class Late(Tool[LateParams]):
    """A tool that joins in the middle of a session."""

    name: ClassVar[str] = "late_tool"
    effect: ClassVar[Any] = "read"
    params: ClassVar[type[Params]] = LateParams

    @property
    def description(self) -> str:
        return "Joined late."

    async def run(self, params: LateParams, ctx: ToolContext) -> ToolOutput:
        return ToolOutput.text(f"late {params.text}")


@dataclass
class ServedModel:
    """The server's rules as a provider. `plan` says what is answered to a request.

    `bodies` are the requests of the conversation.
    """

    api: MessagesApi
    clock: FakeClock
    plan: Callable[[Request, bool], Json]
    agent: Agent | None = None
    bodies: list[bytes] = field(default_factory=list[bytes])
    refusals: list[str] = field(default_factory=list[str])

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        yield AttemptStarted(1, request.model)
        assert self.agent
        asked = request is self.agent._requests.asked  # pyright: ignore[reportPrivateUsage] - which it is
        raw = convert.body(request)
        if asked:
            self.bodies.append(raw)
        self.api.script.turns.append(self.plan(request, asked))
        headers = _HEADERS | {"anthropic-beta": ",".join(convert.betas(request))}
        reply = self.api.answer(raw, headers, self.clock.monotonic())
        if isinstance(reply, Rejection):
            self.refusals.append(f"{request.model}: {reply.message}")
            self.api.script.turns.pop()
            raise ProviderError("invalid_request", reply.message, status=reply.status)
        message = reply.message
        bill = message["usage"]
        bill = bill.get("iterations", [bill])[0]  # of a compaction on demand, only there
        self.clock.elapsed += 20
        yield Completed(
            message["content"],
            message["model"],
            message["stop_reason"],
            Usage.from_json(bill),
            "req",
        )

    async def count_tokens(self, request: Request) -> int:
        return len(convert.body(request)) // 4

    async def load(self) -> None:
        pass

    async def model_info(self, model: str) -> ModelInfo:
        return catalogue.model_info(model)

    async def aclose(self) -> None:
        pass


class GeneratedSession:
    """One session of a seed. `log` says what was done; `reasons` counts the breaks. A `priced` one
    has the usage that a server with a cache reports."""

    def __init__(self, root: Path, seed: int, *, priced: bool = False) -> None:
        self.random = Random(seed)
        self.root = root
        self.clock = FakeClock()
        self.log: list[str] = [f"seed {seed}"]
        self.refusals: list[str] = []
        self.bodies: list[bytes] = []
        self.reasons: Counter[str] = Counter()
        self.errors: list[str] = []
        script: Json = {"catalogue": True, "any_calls": True, "turns": [], "priced": priced}
        self._api = MessagesApi(Script.of(script))
        self._count = 0
        self._calls = 0
        self._agent: Agent | None = None
        self._model: ServedModel | None = None
        self._path: Path | None = None
        self._late = False
        rule = self.random.choice(("auto", "auto", "turns", "pays"))
        self._config = Config(
            api_features="all" if self.random.random() < 0.8 else "basic",
            prune=Prune(after_turns=self.random.randint(1, 4), min_chars=200, when=rule),
            compaction=Compaction(keep_messages=self.random.randint(2, 6)),
            redact="record" if self.random.random() < 0.1 else "off",
        )

    async def play(self, turns: int) -> None:
        """The whole session. Whatever goes wrong is for `problems` to say."""
        for n in range(6):
            (self.root / f"r{n}.txt").write_text(f"alpha {n} beta\n" * (10 + 60 * n))
        (self.root / "AGENTS.md").write_text("Be brief.\n")
        (self.root / ".git").mkdir()
        (self.root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        if self.random.random() < 0.15:
            self._import()
        await self._open()
        try:
            for _ in range(turns):
                while self.random.random() < 0.55:
                    await self._change()
                await self._turn()
                if self.errors:
                    break
        finally:
            await self._close()

    def problems(self) -> list[str]:
        """What a session must not have, in words; [] where all is well."""
        found = [f"refused: {text}" for text in self.refusals]
        found += [f"error: {text}" for text in self.errors]
        replayed: list[ReplayedRequest] = []
        if self._path and self._path.exists():
            records = reader.read(self._path).records
            breaks = [record.data for record in records if record.type == "break"]
            self.reasons = Counter(f"{data['reason']} by {data['by']}" for data in breaks)
            if self.reasons["unexplained by program"]:
                found.append("an unexplained break")
            replayed = list(RequestReplay(records, known_key(folders().data)).every())
        found += [f"request {one.number}: {one.problem}" for one in replayed if one.problem]
        made = {convert.body(one.request) for one in replayed if one.request}
        if not self._forked and not made >= set(self.bodies):
            found.append("a request that was sent is not among those made again")
        return found

    _forked = False

    # What is done between turns

    async def _change(self) -> None:
        steps: dict[Callable[[], Awaitable[None] | None], int] = {
            self._mask: 4,
            self._unmask: 3,
            self._pin: 2,
            self._prune: 1,
            self._mode: 3,
            self._edit: 3,
            self._branch: 2,
            self._another_day: 1,
            self._reopen: 4,
            self._switch: 5,
            self._compact: 2,
            self._undo: 2,
            self._rewind: 2,
            self._fork: 1,
            self._join: 2,
            self._part: 1,
            self._reload: 1,
            self._other_key: 1,
            self._repair: 1,
            self._go_on: 1,
            self._add_dir: 1,
            self._memory: 1,
        }
        (step,) = self.random.choices([*steps], [*steps.values()])
        self.log.append(step.__name__.strip("_"))
        if (waited := step()) is not None:
            await waited

    @property
    def agent(self) -> Agent:
        assert self._agent
        return self._agent

    async def _overlay(self, *views: Any) -> None:
        spoken = [r for r in self.agent.session.records if r.type in {"tool_result", "user"}]
        if spoken:
            target = self.random.choice(spoken)
            view = self.random.choice(views)
            self._take(await self.agent.context.overlay([Overlay(target.id, view, "person")]))

    def _mask(self) -> Awaitable[None]:
        return self._overlay("masked")

    def _unmask(self) -> Awaitable[None]:
        return self._overlay("full")

    def _prune(self) -> Awaitable[None]:
        return self._overlay("pruned", "masked", "full")

    async def _pin(self) -> None:
        results = [r for r in self.agent.session.records if r.type == "tool_result"]
        if results:
            target = self.random.choice(results).id
            self._take(await self.agent.context.pin({target: self.random.random() < 0.6}))

    def _mode(self) -> None:
        self.agent.permissions.mode = self.random.choice(("ask", "accept_edits", "plan"))

    def _edit(self) -> None:
        path = self.root / "AGENTS.md"
        if self.random.random() < 0.2:
            path.unlink(missing_ok=True)
        else:
            path.write_text(f"Be brief. Rule {self.random.randint(0, 4)}.\n")

    def _memory(self) -> None:
        folder = self.root / ".holdfast"
        folder.mkdir(exist_ok=True)
        (folder / "MEMORY.md").write_text(f"- fact {self.random.randint(0, 9)}\n")

    def _branch(self) -> None:
        head = self.root / ".git" / "HEAD"
        head.write_text(f"ref: refs/heads/b{self.random.randint(0, 3)}\n")

    def _another_day(self) -> None:
        self.clock.elapsed += timedelta(days=1).total_seconds()

    async def _reopen(self) -> None:
        await self._close()
        await self._open()

    def _switch(self) -> None:
        name = self.random.choice(NAMES)
        self.log[-1] += f" {name}"
        self.agent.models.use(catalogue.model_info(name))

    async def _compact(self) -> None:
        await self._follow(self.agent.context.compact())

    async def _undo(self) -> None:
        self._take(await self.agent.context.uncompact())

    async def _rewind(self) -> None:
        prompts = [r for r in self.agent.session.records if r.type == "user"]
        if len(prompts) > 1:
            place = self.random.randrange(max(1, len(prompts) - 4), len(prompts))
            await self.agent.session.rewind(prompts[place].id)
            await self._reopen()

    async def _fork(self) -> None:
        await self._close()
        assert self._path
        if self._path.exists():
            loaded = reader.read(self._path)
            self._path = copies.fork(loaded, folders=folders(), clock=self.clock, cwd=self.root)
            self._forked = True
        await self._open()

    def _join(self) -> None:
        self._late = True
        self._offer()

    def _part(self) -> None:
        self._late = False
        self.agent._ctx.toolbox.tools.pop(Late.name, None)  # pyright: ignore[reportPrivateUsage] - as MCP does
        self.agent._requests.exchange({Late.name}, ())  # pyright: ignore[reportPrivateUsage]

    def _offer(self) -> None:
        tool = Late()
        self.agent._ctx.toolbox.tools[Late.name] = tool  # pyright: ignore[reportPrivateUsage] - as above
        self.agent._requests.exchange({Late.name}, [tool])  # pyright: ignore[reportPrivateUsage]

    def _reload(self) -> None:
        self.agent.context.reload()

    async def _other_key(self) -> None:
        await self._close()
        (folders().data / "seal.key").unlink(missing_ok=True)
        await self._open()

    async def _repair(self) -> None:
        if any(record.type == "assistant" for record in self.agent.session.records):
            level = self.random.choice(REPAIR_LEVELS)
            self.log[-1] += f" {level}"
            self._take(await self.agent.context.repair(level))

    async def _go_on(self) -> None:
        if any(record.type == "user" for record in self.agent.session.records):
            await self._follow(self.agent.go_on())

    def _add_dir(self) -> None:
        folder = self.root.parent / f"more{self.random.randint(0, 2)}"
        folder.mkdir(exist_ok=True)
        self.agent.permissions.add_dir(folder)

    # Turns

    async def _turn(self) -> None:
        self._count += 1
        chance = self.random.random()
        words = f"prompt {self._count} " + "word " * self.random.randint(0, 30)
        if chance < 0.12:
            words = f"/think {self.random.choice(('on', 'off', ''))} {words}"
        elif chance < 0.16:
            words = f"/elevated {self.random.choice(('on', 'off'))} {words}"
        self.log.append(words[:20].strip())
        await self._follow(self.agent.send(parse(words)), self._meanwhile)

    async def _meanwhile(self, event: Fact) -> None:
        """What a person does while a turn runs."""
        chance = self.random.random()
        if not isinstance(event, ToolFinished) or chance > 0.2:
            return
        if chance < 0.06:
            self.log.append("steer")
            self.agent.steer(parse(f"also {self._count}"))
        elif chance < 0.10:
            self.log.append("mask in mid-turn")
            await self._overlay("masked", "full")
        elif chance < 0.13:
            self.log.append("cancel")
            self.agent.cancel()
        elif chance < 0.16:
            self.log.append("mode in mid-turn")
            self._mode()
        elif chance < 0.18:
            self.log.append("edit in mid-turn")
            self._edit()
            self._branch()
        else:
            self.log.append("switch in mid-turn")
            self._switch()

    def _planned(self, request: Request, asked: bool) -> Json:
        """What the model answers."""
        draw = self.random
        if not asked:
            notes = "\n\nMEMORY\n- tabs" if draw.random() < 0.3 else ""
            return {"text": f"What was done: {self._count} things.{notes}"}
        turn: Json = {}
        model = MODELS[request.model]
        if (model.thinks or request.thinking) and draw.random() < 0.85:
            self._calls += 1
            thought = "" if draw.random() < 0.1 else f"thought {self._calls}"
            turn["thinking"] = thought or f"silent {self._calls}"
            if draw.random() < 0.1:
                turn["redacted_thinking"] = f"redacted{self._calls}"
        if draw.random() < 0.45:
            turn["tools"] = [self._call() for _ in range(draw.choice((1, 1, 1, 2, 4)))]
        if "tools" not in turn or draw.random() < 0.5:
            turn["text"] = f"answer {self._count} " + "word " * draw.randint(0, 40)
        return turn

    def _call(self) -> Json:
        draw = self.random
        n = draw.randint(0, 7)
        return draw.choice(
            (
                {"name": "read_file", "input": {"path": f"r{n}.txt"}},
                {"name": "read_file", "input": {"path": f"r{n}.txt"}},
                {"name": "list_dir", "input": {}},
                {"name": "write_file", "input": {"path": f"w{n}.txt", "content": f"{n}\n" * 30}},
                {"name": "recall", "input": {"query": "alpha"}},
                {"name": Late.name, "input": {"text": str(n)}},
            )
        )

    async def _follow(
        self,
        stream: AsyncGenerator[Fact],
        meanwhile: Callable[[Fact], Awaitable[None]] | None = None,
    ) -> None:
        async with aclosing(stream) as seen:
            async for event in seen:
                self._take([event])
                if meanwhile is not None:
                    await meanwhile(event)

    def _take(self, seen: Any) -> None:
        errors = [event.message for event in seen if isinstance(event, ErrorRaised)]
        self.errors += [text for text in errors if "with the same result" not in text]

    # Opening and closing

    def _import(self) -> None:
        foreign = ClaudeCode()
        for n in range(3):
            foreign.user(f"foreign {n}")
            text = {"type": "text", "text": f"said {n}"}
            thought = {"type": "thinking", "thinking": "hm", "signature": f"sig{n}"}
            message = {"role": "assistant", "model": NAMES[0], "content": [thought, text]}
            foreign.add("assistant", message=message | {"usage": {}})
        path = self.root.parent / f"{self.root.name}-foreign.jsonl"
        path.write_bytes(lines(foreign.records))
        loaded = importers.load(path)
        self._path = copies.fork(loaded, folders=folders(), clock=self.clock, cwd=self.root)
        self.log.append("import")

    async def _open(self) -> None:
        launch = Launch(Workspace.at(self.root, ceiling="/"), self._config, folders())
        self._model = ServedModel(self._api, self.clock, self._planned)
        if self._path and self._path.exists():
            session = Session.open(self._path, clock=self.clock)
        else:
            session = Session.create(self.root, folders=folders(), clock=self.clock)
            self._path = session.path
        agent = composition.make_agent(
            launch, session, Yes(), clock=self.clock, provider=self._model
        )
        self._model.agent = self._agent = agent
        self._take(await agent.start())
        if self._late:
            self._offer()

    async def _close(self) -> None:
        agent, model = self.agent, self._model
        assert model
        self.refusals += model.refusals
        self.bodies += model.bodies
        await agent.close()


async def played(root: Path, seed: int, turns: int, *, priced: bool = False) -> GeneratedSession:
    """The session of a seed."""
    root.mkdir(parents=True)
    session = GeneratedSession(root, seed, priced=priced)
    await session.play(turns)
    return session


def report(session: GeneratedSession) -> str:
    """What was done and what is wrong, for whoever looks into a failure."""
    return json.dumps({"log": session.log, "problems": session.problems()}, indent=1)
