"""A session before the priced server's rules, and one change planted between its turns.

Each change is of a kind that a person, the program, a file or the server brings about, with the
reason that the break must have then, "" where it is none.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.support.agents import Yes
from tests.support.clock import FakeClock
from tests.support.generated_session import Late, ServedModel
from tests.support.server_api import Exchange, MessagesApi
from tests.support.server_models import MODELS
from tests.support.server_script import Json, Script
from tui.agent import composition
from tui.agent.agent import Agent
from tui.agent.launch import Launch
from tui.agent.prompts import parse
from tui.agent.request.break_cost import ChangePrice, foreign_frame_cost
from tui.core.config import Compaction, Config, Prune
from tui.core.errors import ProviderError
from tui.core.fact_words import foreign_frame
from tui.core.facts import ContextBroken, Fact, Overlay
from tui.core.paths import folders
from tui.core.workspace import Workspace
from tui.provider import catalogue
from tui.provider.base import Request, StreamPart
from tui.session.session import Session

_WORDS: Final = (
    "the parser reads a line and gives it to the next stage", "def total(items): return sum(items)",
    "2026-11-28 16:38:02 ERROR worker[117]: timeout after 30.0 s", "naïve café, 日本語, Größe",
    '{"name": "holdfast", "version": "1.4.2", "files": [1, 2, 3]}', "tests/agent/test_turn.py:41",
    "if (a[i] != b[j]) { count += 1; }", "and so the second file says what the first one does",
)  # fmt: skip


@dataclass
class PlantedSession:
    """One session of a seed: `begin`, a change, `turn`. `faults` are what the next requests of the
    conversation fail with."""

    root: Path
    random: Random
    model: str = "claude-sonnet-5-5"
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    clock: FakeClock = field(default_factory=FakeClock)
    api: MessagesApi = field(init=False)
    faults: list[ProviderError] = field(default_factory=list[ProviderError])
    facts: list[Fact] = field(default_factory=list[Fact])
    opening: list[Fact] = field(default_factory=list[Fact])
    told: ContextBroken | ChangePrice | None = None
    """The price that was said before the last change, where the person is told one."""
    _count: int = 0
    _calls: int = 0
    _agent: Agent | None = None
    _path: Path | None = None

    def __post_init__(self) -> None:
        script = {"catalogue": True, "any_calls": True, "priced": True, "binding": True}
        self.api = MessagesApi(Script.of({**script, "turns": [], "summary": self.words(40)}))

    @property
    def agent(self) -> Agent:
        assert self._agent
        return self._agent

    def words(self, most: int) -> str:
        chosen = self.random.choices(_WORDS, k=self.random.randint(1, most))
        return "\n".join(chosen)

    async def begin(self, turns: int) -> None:
        """Open a session and take some turns."""
        for number in range(8):
            (self.root / f"r{number}.txt").write_text(self.words(120) + "\n")
        (self.root / "AGENTS.md").write_text("Be brief.\n")
        await self.open()
        for _ in range(turns):
            await self.turn()

    async def turn(self) -> None:
        self._count += 1
        await self.follow(self.agent.send(parse(f"prompt {self._count}: {self.words(3)}")))

    async def follow(self, stream: Any) -> None:
        async with aclosing(stream) as seen:
            async for fact in seen:
                self.facts.append(fact)

    def results(self) -> list[str]:
        return [record.id for record in self.agent.session.records if record.type == "tool_result"]

    async def show(self, view: Any, *numbers: int, by: str = "person") -> None:
        results = self.results()
        changes = [Overlay(results[number], view, by) for number in numbers]
        price = self.agent.context.price_of_changes
        self.told = await price(changes, 0) if by == "person" else None
        await self.agent.context.overlay(changes)

    async def open(self) -> None:
        config: dict[str, Any] = {
            "compaction": Compaction(memory_flush=False, keep_messages=3),
            **self.config,
        }
        launch = Launch(
            Workspace.at(self.root, ceiling="/"), Config(api_features="all", **config), folders()
        )
        if self._path:
            session = Session.open(self._path, clock=self.clock)
        else:
            session = Session.create(self.root, folders=folders(), clock=self.clock)
            self._path = session.path
        model = _Server(self.api, self.clock, self._planned, self.faults)
        agent = composition.make_agent(launch, session, Yes(), clock=self.clock, provider=model)
        model.agent = self._agent = agent
        agent.models.use(catalogue.model_info(self.model))
        self.opening = await agent.start()

    async def close(self) -> None:
        await self.agent.close()

    async def in_file(self, change: Callable[[list[bytes], list[str]], None]) -> None:
        """Change the lines of the file while it is closed; `change` gets them and their types."""
        await self.close()
        assert self._path
        lines = self._path.read_bytes().splitlines(keepends=True)
        change(lines, [json.loads(line)["type"] for line in lines])
        self._path.write_bytes(b"".join(lines))
        await self.open()

    def _planned(self, request: Request, asked: bool) -> Json:
        if not asked:
            return {"text": f"What was done: {self.words(30)}"}
        turn: Json = {}
        model, draw = MODELS[request.model], self.random
        self._calls += 1
        if (model.thinks or request.thinking) and draw.random() < 0.8:
            turn["thinking"] = f"thought {self._calls} {self.words(6)}"
        last = request.messages[-1]["content"] or [{}]
        if draw.random() < (0.9 if last[-1].get("type") == "text" else 0.35):
            names = [draw.randrange(8) for _ in range(draw.choice((1, 1, 2)))]
            turn["tools"] = [
                {"name": "read_file", "input": {"path": f"r{number}.txt"}} for number in names
            ]
        else:
            turn["text"] = f"answer {self._calls} {self.words(8)}"
        return turn


class _Server(ServedModel):
    """The server's rules, which fail first with what is planted."""

    def __init__(
        self,
        api: MessagesApi,
        clock: FakeClock,
        plan: Callable[[Request, bool], Json],
        faults: list[ProviderError],
    ) -> None:
        super().__init__(api, clock, plan)
        self.faults = faults

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        if self.faults and self.agent and request is self.agent._requests.asked:  # pyright: ignore[reportPrivateUsage] - which it is
            raise self.faults.pop(0)
        async for part in super().stream(request):
            yield part


Plant = Callable[[PlantedSession], Awaitable[None]]


async def _mask_early(one: PlantedSession) -> None:
    await one.show("masked", 0)


async def _mask_late(one: PlantedSession) -> None:
    await one.show("masked", -1)


async def _mask_some(one: PlantedSession) -> None:
    await one.show("masked", 1, -1)


async def _prune(one: PlantedSession) -> None:
    await one.show("pruned", 1, by="policy")


async def _unmask(one: PlantedSession) -> None:
    await one.show("masked", 1)
    await one.turn()
    await one.show("full", 1)


async def _unmask_at_once(one: PlantedSession) -> None:
    await one.show("masked", 1)
    await one.show("full", 1)


async def _pin(one: PlantedSession) -> None:
    await one.agent.context.pin({one.results()[0]: True})


async def _compact(one: PlantedSession) -> None:
    planned = await one.agent.context.plan_compaction()
    one.told = planned.price if planned else None
    await one.follow(one.agent.context.compact())


async def _undo(one: PlantedSession) -> None:
    await _compact(one)
    await one.turn()
    await one.agent.context.uncompact()


async def _reload(one: PlantedSession) -> None:
    (one.root / "AGENTS.md").write_text(f"Be brief, and say so. {one.words(3)}\n")
    one.told = await one.agent.context.reload_cost()
    one.agent.context.reload()


async def _join(one: PlantedSession) -> None:
    tool = Late()
    one.agent._ctx.toolbox.tools[Late.name] = tool  # pyright: ignore[reportPrivateUsage] - as MCP does
    one.agent._requests.exchange({Late.name}, [tool])  # pyright: ignore[reportPrivateUsage]


async def _effort(one: PlantedSession) -> None:
    one.told = one.agent.models.effort_cost("low")
    await one.agent.models.use_effort("low")


async def _think(one: PlantedSession) -> None:
    await one.follow(one.agent.send(parse("/think on")))


async def _switch(one: PlantedSession) -> None:
    one.agent.models.use(catalogue.model_info("claude-opus-5-5"))
    await one.turn()
    one.agent.models.use(catalogue.model_info(one.model))


async def _mask_behind_a_switch(one: PlantedSession) -> None:
    await _switch(one)
    await one.show("masked", 0)


async def _cold(one: PlantedSession) -> None:
    one.clock.elapsed += 2 * 3600
    one.told = await one.agent.context.next_break()


async def _mask_when_cold(one: PlantedSession) -> None:
    await one.show("masked", 1)
    await _cold(one)


async def _restart(one: PlantedSession) -> None:
    await one.close()
    await one.open()


async def _mask_and_restart(one: PlantedSession) -> None:
    await one.show("masked", 1)
    await _restart(one)


async def _refused(one: PlantedSession) -> None:
    text = "messages.1.content.0: Invalid `signature` in `thinking` block"
    one.faults.append(ProviderError("invalid_request", text, status=400, thinking_refused=True))


async def _results_cut(one: PlantedSession) -> None:
    results = (r for r in one.agent.session.records if r.type == "tool_result")
    largest = max(results, key=lambda record: len(str(record.data["content"])))
    large = Overlay(largest.id, "clamped", "overflow", "too large", tokens=100)
    await one.agent.context.overlay([large])


async def _too_large(one: PlantedSession) -> None:
    one.faults.append(ProviderError("payload_too_large", "Request too large", status=413))


async def _drop_thinking(one: PlantedSession) -> None:
    await one.agent.context.repair("drop_thinking")


def _without(type_: str, number: int) -> Plant:
    async def plant(one: PlantedSession) -> None:
        def change(lines: list[bytes], types: list[str]) -> None:
            del lines[[n for n, kind in enumerate(types) if kind == type_][number]]

        await one.in_file(change)

    return plant


async def _cut(one: PlantedSession) -> None:
    def change(lines: list[bytes], types: list[str]) -> None:
        place = types.index("tool_result")
        lines[place] = lines[place][:90] + b"\n"

    await one.in_file(change)


async def _edit(one: PlantedSession) -> None:
    def change(lines: list[bytes], types: list[str]) -> None:
        place = types.index("tool_result")
        data = json.loads(lines[place])
        data["content"][0]["text"] += " and more"
        lines[place] = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    await one.in_file(change)


async def _edit_frame(one: PlantedSession) -> None:
    def change(lines: list[bytes], types: list[str]) -> None:
        place = types.index("frame")
        lines[place] = lines[place].replace(b"# Security", b"# Obedience", 1)

    await one.in_file(change)


async def _other_key(one: PlantedSession) -> None:
    await one.close()
    (folders().data / "seal.key").unlink(missing_ok=True)
    await one.open()
    one.told = foreign_frame_cost(one.agent._requests)  # pyright: ignore[reportPrivateUsage] - as at the opening
    told = {fact for fact in one.opening if "Another installation" in str(fact)}
    assert told == ({foreign_frame(one.told)} if one.told else set())


async def _nothing(one: PlantedSession) -> None:
    pass


OLD: Final = "claude-sonnet-5"
"""A model whose effort is no part of the conversation."""

CHANGES: Final[Mapping[str, tuple[Plant, str, str]]] = {
    "nothing": (_nothing, "", ""),
    "an early mask": (_mask_early, "mask", ""),
    "a late mask": (_mask_late, "mask", ""),
    "two masks": (_mask_some, "mask", ""),
    "a mask on haiku": (_mask_early, "mask", "claude-haiku-5-5"),
    "a mask on an older model": (_mask_early, "mask", OLD),
    "a prune": (_prune, "prune", ""),
    "an unmask": (_unmask, "unmask", ""),
    "an unmask before it was sent": (_unmask_at_once, "", ""),
    "a pin": (_pin, "", ""),
    "a compaction": (_compact, "compaction", ""),
    "a compaction of our own": (_compact, "compaction", "claude-sonnet-4-5"),
    "a compaction undone": (_undo, "", ""),
    "a reload": (_reload, "reload", ""),
    "a tool that joins": (_join, "", ""),
    "an effort": (_effort, "effort", OLD),
    "an effort in the conversation": (_effort, "", ""),
    "think": (_think, "", ""),
    "another model and back": (_switch, "", ""),
    "a mask behind another model": (_mask_behind_a_switch, "mask", ""),
    "a cold cache": (_cold, "", ""),
    "a mask and a cold cache": (_mask_when_cold, "mask", ""),
    "a restart": (_restart, "", ""),
    "a mask and a restart": (_mask_and_restart, "mask", ""),
    "thinking refused": (_refused, "refused", ""),
    "too large": (_too_large, "compaction", ""),
    "a result cut, since it was too large": (_results_cut, "overflow", ""),
    "a repair level": (_drop_thinking, "repair", ""),
    "a result gone": (_without("tool_result", 0), "repair", ""),
    "the last result gone": (_without("tool_result", -1), "repair", ""),
    "an answer gone": (_without("assistant", 1), "repair", ""),
    "a prompt gone": (_without("user", 0), "repair", ""),
    "the frame gone": (_without("frame", 0), "repair", ""),
    "a line cut": (_cut, "repair", ""),
    "a result edited": (_edit, "repair", ""),
    "the frame edited": (_edit_frame, "repair", ""),
    "another installation": (_other_key, "reload", ""),
}
"""How each is planted, its reason, and the model where that is another."""


@dataclass(frozen=True, slots=True)
class Planted:
    """What came of a change: the reasons of all breaks that the next turn told, the input of its
    first request in US dollars as forecast and as billed, and the break's own price and bill."""

    name: str
    seed: int
    reasons: tuple[str, ...]
    expected: str
    forecast: float | None
    bill: float
    said: tuple[float | None, float | None] = (None, None)
    input: tuple[Any, Any] = (None, None)
    told: tuple[int, float | None] | None = None
    """The tokens and the dollars that were said before it, where the person was told a price."""
    again: int = 0
    """The tokens that its record says are written again."""

    @property
    def told_tokens(self) -> int:
        return self.told[0] if self.told else 0

    def is_close_to_bill(self, share: float) -> bool:
        """Whether the input at the price that was told before is that share off the bill at
        most."""
        told, billed = self.told[1] if self.told else None, self.said[1]
        return None not in {told, billed} and abs((told or 0) - (billed or 0)) <= share * self.bill

    @property
    def error(self) -> float:
        return abs(self.forecast - self.bill) / self.bill if self.forecast is not None else 0.0


async def planted(root: Path, name: str, seed: int) -> Planted:
    """Play a session with one change of a kind."""
    plant, reason, model = CHANGES[name]
    root.mkdir(parents=True)
    one = PlantedSession(
        root,
        Random(f"{name} {seed}"),
        model=model or PlantedSession.model,
        config={"prune": Prune(after_turns=1000)},
    )
    await one.begin(one.random.randint(3, 8))
    while len(one.results()) < 3:
        await one.turn()
    await plant(one)
    one.facts.clear()
    told = (one.told.tokens, one.told.cost_usd) if one.told else None
    sent, number = len(one.api.priced), len(one.agent.session.records)
    await one.turn()
    records = [*one.agent.session.records[number:]]
    await one.close()
    broken = [fact.to_json() for fact in one.facts if fact.type == "break"]
    requests = [record for record in records if record.type == "request"]
    answered = _answered(records)
    exchange = one.api.priced[sent]
    data = answered.data if answered else requests[0].data
    reasons = tuple(one["reason"] for one in broken if one["billed_usd"] is None)
    said = next((b["cost_usd"] for b in broken if b["billed_usd"] is None), None)
    bill = next((b["billed_usd"] for b in broken if b["billed_usd"] is not None), None)
    return Planted(
        name, seed, reasons, reason, _forecast(data), _input(exchange), (said, bill),
        (data["cache"].get("forecast"), exchange.message["usage"]), told,
        next((b["tokens"] for b in broken if b["billed_usd"] is None), 0),
    )  # fmt: skip


def _answered(records: Sequence[Any]) -> Any:
    """The first request that was answered."""
    last = None
    for record in records:
        if record.type == "request":
            last = record
        elif record.type == "assistant":
            return last
    return None


def _forecast(data: Mapping[str, Any]) -> float | None:
    match data["cache"].get("forecast"):
        case {"prompt": int(prompt), "read": int(read), "written": int(written)}:
            rates = MODELS[str(data["model"])].price_of(prompt)
            write = rates.write_1h if data["cache_life"] == "1h" else rates.write_5m
            fresh = prompt - read - written
            return (read * rates.read + written * write + fresh * rates.input) / 1_000_000
        case _:
            return None


def _input(exchange: Exchange) -> float:
    """What the input of a request was billed."""
    usage = {**exchange.message["usage"], "output_tokens": 0}
    prompt = sum(usage[name] for name in usage if name.endswith("input_tokens"))
    return MODELS[exchange.body["model"]].price_of(prompt).cost(usage)
