"""Checkpoints: 1,000 random sequences of commands are taken back to the byte, and what one costs in
a repository of 50,000 files, and beside a build.
"""

from __future__ import annotations

import asyncio
import os
import random
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.support.agents import Yes, events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.session.checkpoints.restore import restore
from tui.session.checkpoints.store import CheckpointStore

SEQUENCES = 1_000
FILES = 50_000
BUILD = "for n in $(seq 300); do sleep 0.01; head -c 20000 /dev/zero > build/$n.o; done"

Tree = dict[str, tuple[str, int, bytes]]


def run() -> Iterator[tuple[str, float, float]]:
    with TemporaryDirectory() as folder:
        yield "of 1,000 random sequences, not taken back to the byte", _not_taken_back(folder), 0
    with TemporaryDirectory() as folder:
        seconds, git = _large(Path(folder))
        yield f"seconds for a checkpoint of {FILES:,} files, five changed", seconds, 0.15
        yield "beside `git status` there", seconds / git, 3
    with TemporaryDirectory() as folder:
        yield "a build of 3 s in 5,000 files, beside one without checkpoints", _build(folder), 1.05


def _not_taken_back(folder: str) -> int:
    root = Path(folder) / "work"
    root.mkdir()
    store = CheckpointStore(Path(folder) / "checkpoints.sqlite3", root)
    chance = random.Random(1)
    taken = [(store.take().id, tree_of(root))]
    bad = 0
    for _ in range(SEQUENCES):
        lines = [chance.choice(_COMMANDS) for _ in range(chance.randrange(1, 9))]
        script = "\n".join(_filled(line, chance) for line in lines)
        subprocess.run(["bash", "-c", script], cwd=root, capture_output=True, check=False)
        now = store.take().id
        taken.append((now, tree_of(root)))
        to, before = chance.choice(taken[-20:])
        restore(store.difference(to, now), store)
        bad += not _back(root, before)
        if chance.random() < 0.5:  # on from there, else from what the commands made
            restore(store.difference(now, store.take().id), store)
            bad += not _back(root, taken[-1][1])
    store.close()
    return bad


_COMMANDS = (
    "echo {number} > {name}",
    "head -c {number} /dev/urandom > {folder}/{name}",
    "printf '{number}\\r\\n' >> {folder}/{name}",
    "mkdir -p {folder}/{folder2}",
    "rm -rf {folder}",
    "rm -f {name} {folder}/{name}",
    "mv {name} {folder}/",
    "mv {folder} {folder2}",
    "cp -a {folder} {folder2}-copy",
    "chmod {mode} {name}",
    "chmod {mode} {folder}",
    "ln -sfn {name} {folder}-link",
    "ln -f {name} {folder}/hard",
    "touch -d @{number} {name}",
    "truncate -s {number} {name}",
    "sed -i s/1/2/ {name}",
    "tar cf {name}.tar {folder}",
    "git init -q {folder} && git -C {folder} add -A && git -C {folder} stash -q",
    "find . -name '{name}' -delete",
    "mkfifo {folder}/pipe",
    "echo '{folder}/' >> .gitignore",
)


def _filled(line: str, chance: random.Random) -> str:
    return line.format(
        number=chance.randrange(1, 5000),
        name=f"n{chance.randrange(8)}",
        folder=f"d{chance.randrange(4)}",
        folder2=f"d{chance.randrange(4)}",
        mode=chance.choice(["600", "644", "755", "700", "500", "u+x"]),
    )


def _back(root: Path, before: Tree) -> bool:
    """Whether all is as before, but for folders that stay because of what is never touched in them:
    `.git`, and pipes.
    """
    now = tree_of(root)
    added = [name for name in now if name not in before]
    return all(_holds_untouchables(root / name) for name in added) and all(
        now.get(name) == entry for name, entry in before.items()
    )


def _holds_untouchables(path: Path) -> bool:
    return path.is_dir() and any(
        ".git" in within.parts or stat.S_ISFIFO(within.lstat().st_mode)
        for within in path.rglob("*")
    )


def tree_of(root: Path) -> Tree:
    """What is there, less pipes and what belongs to git."""
    found: Tree = {}
    for path in sorted(root.rglob("*")):
        state, name = path.lstat(), str(path.relative_to(root))
        if ".git" in path.parts:
            continue
        if stat.S_ISLNK(state.st_mode):
            found[name] = "link", 0, os.fsencode(path.readlink())
        elif stat.S_ISDIR(state.st_mode):
            found[name] = "folder", stat.S_IMODE(state.st_mode), b""
        elif stat.S_ISREG(state.st_mode):
            found[name] = "file", stat.S_IMODE(state.st_mode), path.read_bytes()
    return found


def _fill(root: Path, files: int) -> list[Path]:
    made: list[Path] = []
    for number in range(files):
        folder = root / f"p{number % 50}" / f"m{number // 50 % 20}"
        folder.mkdir(parents=True, exist_ok=True)
        made.append(folder / f"{number}.py")
        made[-1].write_text(f"# {number}\n" * 100)
    return made


def _large(folder: Path) -> tuple[float, float]:
    """Seconds of a checkpoint, and of `git status`."""
    root = folder / "work"
    files = _fill(root, FILES)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    store = CheckpointStore(folder / "checkpoints.sqlite3", root)
    began = time.perf_counter()
    store.take()
    print(f"      the first checkpoint takes {time.perf_counter() - began:.1f} s")
    ours: list[float] = []
    git: list[float] = []
    for number in range(7):
        for file in files[number::10_000]:
            file.write_text(str(time.time()))
        began = time.perf_counter()
        assert store.take().files == 5
        ours.append(time.perf_counter() - began)
        began = time.perf_counter()
        subprocess.run(["git", "status", "-s"], cwd=root, check=True, capture_output=True)
        git.append(time.perf_counter() - began)
    store.close()
    return median(ours), median(git)


def _build(folder: str) -> float:
    root = Path(folder) / "work"
    _fill(root, 5_000)
    times: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(3):
        for checkpoints, seconds in times.items():
            (root / "build").mkdir(exist_ok=True)
            seconds.append(asyncio.run(_built(root, Path(folder), checkpoints)))
    return min(times[True]) / min(times[False])


async def _built(root: Path, folder: Path, checkpoints: bool) -> float:
    """Seconds of a turn that builds, the first checkpoint not counted."""
    store = CheckpointStore(folder / "checkpoints.sqlite3", root)
    store.take()
    provider = ScriptedProvider([call("run_command", command=BUILD)], say("Built."))
    opener = (lambda: store) if checkpoints else None
    agent = make_agent(root, provider, approver=Yes(), open_checkpoints=opener)
    began = time.perf_counter()
    await events_of(agent, "build")
    seconds = time.perf_counter() - began
    await agent.close()
    return seconds
