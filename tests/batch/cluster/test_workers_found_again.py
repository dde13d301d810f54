"""Workers of a driver that has ended: the next one finds them by RUN/TASK."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.batch.test_git import make_repo
from tests.support.clock import PATIENCE_S, FakeClock
from tui.app.options.parser import parse
from tui.batch.cluster.driver import PlacedRunner
from tui.batch.cluster.engines.port import EngineError, Life
from tui.batch.cluster.task_store import TaskStore
from tui.batch.events import BatchEvent
from tui.batch.plan import plan
from tui.core.facts import Notice


@dataclass
class Cluster:
    """An engine whose workers do nothing, and live on. `asked` is called at each look."""

    asked: Callable[[], None]
    slots: int = 4
    name: str = "cluster"
    outlives: bool = True
    look_s: float = 2.0
    living: set[str] = field(default_factory=set[str])
    puts: list[str] = field(default_factory=list[str])
    cancelled: set[str] = field(default_factory=set[str])
    broken: bool = False

    def put(self, commands: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
        handles = {key: words[1] for key, words in commands.items()}
        self.puts += handles
        self.living |= {*handles.values()}
        return handles

    def watch(self, handles: Collection[str]) -> Mapping[str, Life]:
        if self.puts:
            self.asked()
        if self.broken:
            raise EngineError("Nobody answers.")
        return {one: "lives" if one in self.living else "unknown" for one in handles}

    def fetch(self, handle: str) -> str:
        return ""

    def cancel(self, handles: Collection[str]) -> None:
        self.cancelled |= {*handles}

    def close(self) -> None:
        pass


@dataclass
class Driving:
    """Drivers of one run, each of which ends as soon as it has asked its engine."""

    repo: Path
    folder: Path
    events: list[BatchEvent] = field(default_factory=list[BatchEvent])

    def show(self, event: BatchEvent) -> None:
        self.events.append(event)

    async def drive(self, engine: Cluster, end: Callable[[PlacedRunner], None]) -> None:
        options = parse(
            ["run", str(self.repo / "TASKS.md"), "-C", str(self.repo), "--practice", "--headless"]
        )
        store = TaskStore.at(str(self.folder / "store.git"), self.folder / "mirror")
        await asyncio.to_thread(store.make)
        runner = PlacedRunner(
            plan(options), options, store, engine, self, clock=FakeClock(),
            confined=False,
        )  # fmt: skip
        loop = asyncio.get_running_loop()
        engine.asked = lambda: loop.call_soon_threadsafe(end, runner) and None
        async with asyncio.timeout(PATIENCE_S):
            await runner.run()


@pytest.fixture
def driving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Driving:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    repo = make_repo(tmp_path / "repo")
    (repo / "TASKS.md").write_text("- [ ] one\n- [ ] two\n")
    return Driving(repo, tmp_path)


async def test_the_next_driver_starts_none_twice_and_stopping_it_ends_those_of_the_first(
    driving: Driving,
):
    engine = Cluster(lambda: None)
    await driving.drive(engine, PlacedRunner.leave)
    assert engine.puts == ["00001", "00002"]
    assert engine.cancelled == set()
    await driving.drive(engine, PlacedRunner.stop)
    assert engine.puts == ["00001", "00002"]
    assert engine.cancelled == engine.living


async def test_an_engine_that_cannot_be_asked_for_a_moment_ends_nothing(driving: Driving):
    engine = Cluster(lambda: None)
    await driving.drive(engine, PlacedRunner.leave)
    engine.broken = True
    await driving.drive(engine, PlacedRunner.stop)
    assert engine.puts == ["00001", "00002"]
    assert engine.cancelled == engine.living
    said = [event.text for event in driving.events if isinstance(event, Notice)]
    assert "The engine cluster can't start workers now: Nobody answers." in said
