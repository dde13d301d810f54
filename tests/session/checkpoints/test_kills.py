"""Kill -9 while checkpoints are taken and restored: the next program undoes it, or ends it."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

from tests.benchmarks.bench_checkpoints import tree_of
from tui.session.checkpoints.restore import restore
from tui.session.checkpoints.store import CheckpointStore

_PROGRAM = """
import sys
from pathlib import Path
from tui.session.checkpoints.restore import restore
from tui.session.checkpoints.store import CheckpointStore

database, root, wanted, now = sys.argv[1:]
store = CheckpointStore(Path(database), Path(root))
print("begins", flush=True)
while not wanted:
    store.take()
    Path(root, "tick").write_text(str(id(object())))
restore(store.difference(wanted, now), store)
"""
_FILES = 300


def _killed(database: Path, root: Path, seconds: float, wanted: str = "", now: str = "") -> None:
    """Run a program that takes checkpoints, or restores one, and kill it after some time."""
    words = [sys.executable, "-c", _PROGRAM, str(database), str(root), wanted, now]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as program:
        assert program.stdout
        program.stdout.readline()
        Event().wait(seconds)
        program.send_signal(signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_kill_at_any_time_loses_nothing(tmp_path: Path, seed: int) -> None:
    chance, database, root = random.Random(seed), tmp_path / "c.sqlite3", tmp_path / "work"
    files = [root / f"p{number % 20}" / f"{number}.txt" for number in range(_FILES)]
    for number, file in enumerate(files):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{number}\n" * 50)
    first_tree = tree_of(root)
    store = CheckpointStore(database, root)
    first = store.take().id
    store.close()
    for file in chance.sample(files, 200):
        if chance.random() < 0.5:
            file.unlink()
        else:
            file.write_text("other" * chance.randrange(1, 2000))
    for number in range(150):
        (root / f"new{number}").write_bytes(chance.randbytes(3000))
    second_tree = tree_of(root)

    _killed(database, root, chance.random() * 0.1)
    (root / "tick").unlink(missing_ok=True)
    store = CheckpointStore(database, root)
    now = store.take().id
    store.close()
    _killed(database, root, chance.random() * 0.1, first, now)

    store = CheckpointStore(database, root)
    restore(store.difference(now, store.take().id), store)  # as /rewind undo does
    assert tree_of(root) == second_tree
    restore(store.difference(first, store.take().id), store)
    assert tree_of(root) == first_tree
    store.close()
