"""A week of work on two machines before the priced server: prompts, rewinds, moves between branches
and between the machines, damage, summaries, masks. What was billed, told and recorded is kept."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from tests.support.planted_changes import PlantedSession
from tui.app.packs.pack import pack
from tui.app.packs.unpack import unpack
from tui.app.session_report import session_report
from tui.core.errors import SessionError
from tui.core.facts import RequestPaid
from tui.core.paths import folders
from tui.session import catalog, chain_check, copies, reader
from tui.session.branches import branches
from tui.session.records import Record

MODELS_USED: Final = ("claude-sonnet-5-5", "claude-haiku-5-5", "claude-opus-5-5")


@dataclass(frozen=True, slots=True)
class Machine:
    """A home and a folder to work in."""

    home: Path
    work: Path


@dataclass
class Week(PlantedSession):
    """The session of the week, by now on `machines[at]`. `log` says what was done, `figures` what
    the program said of its cost beside the bill, `wrong` what must not have happened."""

    machines: tuple[Machine, Machine] = (Machine(Path(), Path()), Machine(Path(), Path()))
    patch: pytest.MonkeyPatch | None = None
    at: int = 0
    log: list[str] = field(default_factory=list[str])
    figures: list[tuple[str, float, float]] = field(default_factory=list[tuple[str, float, float]])
    wrong: list[str] = field(default_factory=list[str])
    kept: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """Each record that was ever in the file, by its id, as it was first there."""
    damaged: set[str] = field(default_factory=set[str])

    async def days(self, steps: int) -> None:
        """Work, and change something between the turns."""
        self._use()
        await self.begin(1)
        for path in self.root.glob("*.*"):
            (self.machines[1].work / path.name).write_bytes(path.read_bytes())
        kinds: dict[Callable[[], Awaitable[None]], int] = {
            self.turn: 6,
            self._mask: 2,
            self._summarize: 1,
            self._rewind: 3,
            self._other_branch: 3,
            self._move: 3,
            self._damage: 1,
            self._night: 1,
            self._restart: 1,
            self._other_model: 1,
        }
        for _ in range(steps):
            (step,) = self.random.choices([*kinds], [*kinds.values()])
            self.log.append(step.__name__.strip("_"))
            await step()
            await self._check()
        await self.close()

    @property
    def path(self) -> Path:
        assert self._path
        return self._path

    def _use(self) -> None:
        """Be on the machine."""
        assert self.patch
        machine = self.machines[self.at]
        self.patch.setenv("HOLDFAST_HOME", str(machine.home))
        self.root = machine.work

    async def _check(self) -> None:
        """Compare what is told with what was billed, and what is there with what was."""
        await self.agent.session.sync()
        if not self.damaged:  # a record that is gone tells no cost
            bill = self.api.cache.dollars
            spent = self.agent.spending().session.usd
            assert spent is not None
            self.figures.append((self.log[-1], spent, bill))
            told = [fact.total_usd for fact in self.facts if isinstance(fact, RequestPaid)]
            if told and self.log[-1] == "turn":
                self.figures.append(("the cost event", told[-1] or 0.0, bill))
        lines = {self._id(line): line for line in self.path.read_bytes().splitlines()}
        gone = self.kept.keys() - lines.keys() - self.damaged
        self.wrong += [f"after {self.log[-1]}: {one} is gone" for one in gone]
        changed = [id_ for id_, line in self.kept.items() if lines.get(id_, line) != line]
        self.wrong += [f"after {self.log[-1]}: {one} was changed" for one in changed]
        self.kept |= lines

    @staticmethod
    def _id(line: bytes) -> str:
        try:
            value: Any = json.loads(line)
        except ValueError:
            return line[:40].decode("utf-8", "replace")  # what is left of one that was cut
        return str(value.get("id")) + str(value.get("type"))

    # What is done

    async def _mask(self) -> None:
        if results := self.results():
            await self.show("masked", self.random.randrange(len(results)))

    async def _summarize(self) -> None:
        await self.follow(self.agent.context.compact())

    async def _rewind(self) -> None:
        prompts = [r for r in self.agent.session.records if r.type == "user"]
        if len(prompts) > 1:
            await self.agent.session.rewind(self.random.choice(prompts[1:]).id)
            await self._restart()

    async def _other_branch(self) -> None:
        records = reader.read(self.path).records
        there = [one for one in branches(records) if not one.current]
        if there:
            leaf = self.random.choice(there).leaf
            by_id = {record.id: record for record in records}
            way: list[Record] = []
            at: str | None = leaf
            while at is not None and at in by_id:
                way.append(by_id[at])
                at = by_id[at].parent
            await self.agent.session.move_to(way[::-1])
            await self._restart()

    async def _move(self) -> None:
        """Take the session to the other machine, in a file."""
        await self.close()
        file = self.machines[self.at].home.parent / f"{len(self.log)}.zip"
        pack(self.path, file, folders=folders(), clock=self.clock, secrets="keep")
        whole = self.path.read_bytes()
        self.at = 1 - self.at
        self._use()
        try:
            done = unpack(file, self.root, folders=folders(), clock=self.clock)
        except SessionError as error:  # it was damaged there since it left
            if not self.damaged or "fork" not in error.hint:
                raise
            there = catalog.resolve(reader.read(self.path).header.id, folders())
            copies.fork(reader.read(there), folders=folders(), clock=self.clock)
            copies.delete(there, folders=folders(), clock=self.clock)
            done = unpack(file, self.root, folders=folders(), clock=self.clock)
        if done.path.read_bytes() != whole:
            self.wrong.append("a move changed the file")
        if not self.damaged and not done.verified:
            self.wrong.append(f"a move left it unverified: {done.problems}")
        self._path = done.path
        await self.open()

    async def _damage(self) -> None:
        """Lose a line that no cost hangs on, or cut it."""
        await self.close()
        lines = self.path.read_bytes().splitlines(keepends=True)
        kinds = (b'{"type":"tool_result"', b'{"type":"user"')
        places = [n for n, line in enumerate(lines) if line.startswith(kinds)]
        place = self.random.choice(places or [0])
        self.damaged.add(self._id(lines[place]))
        lines[place] = self.random.choice((b"", lines[place][:80] + b"\n"))
        self.path.write_bytes(b"".join(lines))
        self.damaged.add(self._id(lines[place]))
        await self.open()

    async def _night(self) -> None:
        self.clock.elapsed += 12 * 3600

    async def _restart(self) -> None:
        await self.close()
        await self.open()

    async def _other_model(self) -> None:
        self.model = self.random.choice(MODELS_USED)
        await self._restart()

    # What came of it

    def bills(self) -> list[tuple[float, float]]:
        """What each break was expected to cost, and what it did cost, where both are known."""
        billed = (r.data for r in reader.read(self.path).records if r.type == "break_billed")
        both = ((data["cost_usd"], data["billed_usd"]) for data in billed)
        return [(said, usd) for said, usd in both if said is not None and usd is not None]

    def reasons(self) -> Counter[str]:
        records = reader.read(self.path).records
        return Counter(r.data["reason"] for r in records if r.type == "break")

    def unreached(self) -> list[str]:
        """The records that no branch has, but those of going to a branch and leaving it again,
        among them the checkpoint of a prompt that the rewind overtook."""
        records = reader.read(self.path).records
        reached = {record.id for one in branches(records) for record in one.own}
        left = [record for record in records if record.id not in reached]
        moves = {"rewind", "title", "checkpoint"}
        return [record.id for record in left if record.type not in moves]

    def report(self) -> str:
        """The report of the session, as Markdown."""
        return session_report(reader.read(self.path), {}).text

    def is_linked(self) -> bool:
        return not chain_check.verify(self.path).changed


async def week(tmp_path: Path, patch: pytest.MonkeyPatch, seed: int, steps: int) -> Week:
    """The week of a seed."""
    a, b = (Machine(tmp_path / name / "home", tmp_path / name / "work") for name in "ab")
    for machine in (a, b):
        machine.home.mkdir(parents=True)
        machine.work.mkdir()
    one = Week(a.work, Random(f"week {seed}"), machines=(a, b), patch=patch)
    await one.days(steps)
    return one
