"""Bisecting a session of 1,000 checkpoints in a tree of 10,000 files: what a step costs beside its
command, with the walls around it; and that the call is found that a fault was planted in.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from unittest import mock

from tests.benchmarks.pace import slowness
from tui.app import launch_config
from tui.app.options.arguments import Options
from tui.app.scratch_commands import scratch_commands
from tui.context.bisection import FirstFailure, Judge, Verdict, next_step
from tui.context.session_states import SessionFiles, states_of
from tui.session.checkpoints.entries import NEVER, Kind, PathEntry
from tui.session.checkpoints.scratch import ScratchTree
from tui.session.checkpoints.store import CheckpointStore
from tui.session.checkpoints.transfer import StoredState
from tui.session.records import CHECKPOINT, Record

FILES, CHECKPOINTS, CHANGED = 10_000, 1_000, 5
WORKED_ON = 300
"""Files in which most of the work is done; one in five changes is anywhere."""
FAULT = 617
ALLOWED_S = 0.3


def run() -> Iterator[tuple[str, float, float]]:
    with (
        TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, {"HOLDFAST_HOME": f"{folder}/home"}),
    ):
        first, trees, walls, found = _steps(Path(folder))
    pace = slowness()
    # The tree by the processor's time, the walls by the best of all: others work here, too.
    steps = [(tree + min(walls)) / pace for tree in trees]
    yield f"seconds for the first state of {FILES:,} files", first / pace, 10
    yield f"for a step over {CHECKPOINTS:,} checkpoints, median", median(steps), ALLOWED_S
    yield "for the slowest step", max(steps), ALLOWED_S
    yield "planted faults that were not found", found != FAULT, 0


def _steps(folder: Path) -> tuple[float, list[float], list[float], int]:
    """The seconds for the first state, those for the tree and for the command in each further step,
    and the state that was found."""
    root = folder / "work"
    root.mkdir()
    store = CheckpointStore(folder / "checkpoints.sqlite3", root)
    records = _session(store)
    kept, states = SessionFiles(store, root), states_of(records, root)
    verdicts: dict[int, Verdict] = {}
    trees: list[float] = []
    walls: list[float] = []
    launch = launch_config.prepare(Options(cwd=root))
    with scratch_commands(launch, root, "bisect") as commands:
        scratch = ScratchTree(commands.folder, kept)
        commands.run(["/bin/true"])  # the sandbox is chosen
        while isinstance(step := next_step(len(states), verdicts), Judge):
            began = time.process_time()
            scratch.become(kept.state(states[step.state]))
            trees.append(time.process_time() - began)
            began = time.perf_counter()
            end = commands.run(["/usr/bin/test", "!", "-e", "fault"])
            walls.append(time.perf_counter() - began)
            verdicts[step.state] = "fails" if end.code else "passes"
    store.close()
    assert isinstance(step, FirstFailure)
    return trees[0], trees[1:], walls, step.fails


def _session(store: CheckpointStore) -> list[Record]:
    """The record of a session whose checkpoints change a few files each, one of them the fault."""
    contents = [f"{n}\n".encode() * 50 for n in range(CHECKPOINTS)]
    entries = [
        PathEntry(Kind.FILE, 0o644, len(data), NEVER, sha256(data).digest(), ignored=False)
        for data in contents
    ]
    folders = [b"%03d" % n for n in range(FILES // 50)]
    place = PathEntry(Kind.FOLDER, 0o755, 0, NEVER, None, ignored=False)
    whole = dict.fromkeys(folders, place)
    names = [b"%s/%05d.txt" % (folders[n % len(folders)], n) for n in range(FILES)]
    whole |= dict.fromkeys(names, entries[0])
    states = [StoredState("5eed-1", whole, whole=True)]
    for n in range(1, CHECKPOINTS):
        often = {names[(n * 37 + k * 61) % WORKED_ON]: entries[n] for k in range(CHANGED - 1)}
        changed = often | {names[n * 611 % FILES]: entries[n]}
        if n == FAULT:
            changed[b"fault"] = entries[n]
        states.append(StoredState(f"5eed-{n + 1}", changed))
    store.adopt(states, contents, ())
    return [
        Record(CHECKPOINT, f"{n:020}", None, "", {"checkpoint": one.id, "by": "call"})
        for n, one in enumerate(states)
    ]
