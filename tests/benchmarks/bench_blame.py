"""Blame: how many lines are told right after 1,000 simulated sessions, how many of the others are
shown as certain, and what asking costs for 5,000 lines of 200 sessions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.blame_world import World
from tui.context.blame import blame_file

WORLDS, SESSIONS = 100, 10
GONE = 20


def run() -> Iterator[tuple[str, float, float]]:
    lines = wrong = uncertain = 0
    for seed in range(WORLDS):
        with TemporaryDirectory() as folder:
            world = World(Path(folder) / "world", seed)
            world.work(SESSIONS)
            told = world.told()
            lines += len(told)
            wrong += sum(true != said for _, true, said in told)
            uncertain += sum(said == "?" for _, _, said in told)
            world.close()
    print(f"      {lines:,} lines, {wrong:,} not right, of these {uncertain:,} uncertain")
    yield f"% of lines not told right, {WORLDS * SESSIONS:,} sessions", 100 * wrong / lines, 0.5
    lines = guessed = 0
    for seed in range(GONE):
        with TemporaryDirectory() as folder:
            world = World(Path(folder) / "world", seed)
            world.work(SESSIONS)
            for session in world.sessions[::5]:
                session.file.unlink()
            told = world.told()
            lines += len(told)
            guessed += sum(true != said != "?" for _, true, said in told)
            world.close()
    yield "% told wrong as if certain, every fifth session gone", 100 * guessed / lines, 0.5
    with TemporaryDirectory() as folder:
        cold, warm, more = _long(Path(folder))
        print(f"      cold {cold:.2f} s; after one more step {more:.2f} s")
        yield "seconds for 5,000 lines of 200 sessions, asked again", warm, 0.5


def _long(folder: Path) -> tuple[float, float, float]:
    """Seconds for the first answer, for the next one, and for one after another edit."""
    world = World(folder / "world", 1)
    world.put(world.root, [*world.lines(), *world.fresh(4_800)])
    world.commit()
    for number in range(200):
        session = world.session()
        for _ in range(4):
            session.edit("edit_file", world.changed(world.lines()))
        if number % 10 == 9:
            world.person_edits()
        session.save()
    times = [_asked(world), _asked(world)]
    session = world.session()
    session.edit("edit_file", world.changed(world.lines()))
    session.save()
    times.append(_asked(world))
    world.close()
    return times[0], times[1], times[2]


def _asked(world: World) -> float:
    began = time.perf_counter()
    blame_file(world.root / world.name(world.root), world.folders)
    return time.perf_counter() - began
