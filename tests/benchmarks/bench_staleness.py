"""Files that change under the model: 500 changes by a person, a command and git, each of which must
be said in the very next request; nothing else may be. What a look at 500 files costs.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import stat
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.benchmarks.pace import slowness
from tests.support.agents import Yes, events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.agent import Agent
from tui.core.messages import Block, text_of
from tui.provider.base import ModelInfo, Request
from tui.session.checkpoints.store import CheckpointStore

CHANGES = 500
SESSIONS = 10
NAMES = [f"src/{n}.py" for n in range(12)]
LINK = "current"
FILES = 500
_ROUNDS = 30
SETTLED_S = 2.1
"""After that, a file that changes gets other times: until then it is hashed at each look."""


def run() -> Iterator[tuple[str, float, float]]:
    counts = _Counts()
    for seed in range(SESSIONS):
        with TemporaryDirectory() as folder:
            asyncio.run(_session(Path(folder), random.Random(seed), counts))
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.kinds.items() if count)
    made = f"{counts.changes} changes of {counts.files} files"
    yield f"of {made} not said in the next request ({kinds})", counts.missed, 0
    yield f"said to have changed without a change; {counts.alike} steps had none", counts.false, 0
    with TemporaryDirectory() as folder:
        first, later, gap = asyncio.run(_cost(Path(folder)))
    slow = slowness()
    yield f"ms for the first look at {FILES} files, all hashed", 1000 * first, 250 * slow
    yield f"ms for a look at {FILES} files of which none changed", 1000 * later, 25 * slow
    yield "ms of that for which the event loop stood", 1000 * gap, 15 * slow


_REGULAR = "[ -f {file} ] && [ ! -L {file} ]"
_WRITABLE = f"{_REGULAR} || rm -f {{file}}; "
_CHANGES = {
    "append": _WRITABLE + "echo {number} >> {file}",
    "same size and time": _REGULAR
    + " && touch -r {file} ../time && tr a-y b-z < {file} > ../copy && cat ../copy > {file}"
    + " && touch -r ../time {file}",
    "delete": "rm -f {file}",
    "rename over": "echo {number} > new && mv -f new {file}",
    "other link": "ln -sfn {one} current",
    "link in its place": "rm -f {file}; ln -s ../one {file}",
    "pipe in its place": "rm -f {file}; mkfifo {file}",
    "truncate": _WRITABLE + "truncate -s {number} {file}",
    "git checkout": "git checkout -q -f {branch}",
    "formatter": _REGULAR + " && sed -i 's/^[# ]*/#  {number} /' {file}",
    "several": "for n in 1 3 5 7; do rm -f src/$n.py; echo {number} > src/$n.py; done",
}
"""By shell, in the workspace."""
_ALIKE = {
    "touch": _REGULAR + " && touch -d @{number} {file}",
    "chmod": _REGULAR + " && chmod {mode} {file}",
    "written again": _REGULAR + " && cp {file} ../copy && cat ../copy > {file}",
    "copied over": _REGULAR + " && cp {file} new && mv -f new {file}",
    "another file": "echo {number} > other",
}
"""What changes nothing that the model has seen."""


@dataclass
class _Counts:
    changes: int = 0
    files: int = 0
    missed: int = 0
    false: int = 0
    alike: int = 0
    kinds: Counter[str] = field(default_factory=Counter[str])


@dataclass
class _World:
    """One workspace, and what the model knows of each file in it, as the test reckons."""

    root: Path
    chance: random.Random
    known: dict[str, object] = field(default_factory=dict[str, object])

    def state(self, name: str) -> object:
        """What a name stands for now: a link is what it leads to."""
        path = self.root / name
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            return "gone"
        if name == LINK or stat.S_ISLNK(mode):
            return str(path.readlink())
        return path.read_bytes() if stat.S_ISREG(mode) else stat.S_IFMT(mode)

    def differing(self) -> set[str]:
        return {name for name, state in self.known.items() if self.state(name) != state}

    def learn(self) -> None:
        self.known = {name: self.state(name) for name in [*NAMES, LINK]}

    def shell(self, script: str) -> None:
        subprocess.run(["sh", "-c", script], cwd=self.root, check=False, capture_output=True)

    def filled(self, script: str) -> str:
        chance = self.chance
        return script.format(
            file=chance.choice(NAMES),
            number=chance.randrange(2, 5000),
            one=chance.choice(["one", "two"]),
            branch=chance.choice(["main", "side"]),
            mode=chance.choice(["600", "644", "755"]),
        )


async def _session(folder: Path, chance: random.Random, counts: _Counts) -> None:
    root = folder / "work"
    (root / "src").mkdir(parents=True)
    world, provider = _World(root, chance), ScriptedProvider()
    (root / "one").write_text("1\n")
    (root / "two").write_text("2\n")
    (root / LINK).symlink_to("one")
    world.shell("git init -q -b main && git config user.email a@b.c && git config user.name a")
    for branch in ("side", "main"):
        for name in NAMES:
            (root / name).write_text(f"# {name} {branch}\n" * 40)
        world.shell(f"git add -A && git commit -qm {branch} && git branch -f {branch}")
    agent = make_agent(
        root,
        provider,
        approver=Yes(),
        open_checkpoints=lambda: CheckpointStore(folder / "checkpoints.sqlite3", root),
    )
    provider.answers += [_reads([*NAMES, LINK], 0), say("ok")]
    await asyncio.sleep(SETTLED_S)
    await events_of(agent, "read all")
    world.learn()
    done, turn = 0, 0
    while done < CHANGES // SESSIONS:
        turn += 1
        alike = chance.random() < 0.3
        name = chance.choice([*(_ALIKE if alike else _CHANGES)])
        script = world.filled((_ALIKE if alike else _CHANGES)[name])
        await _turn(agent, provider, world, script)
        differing, told = world.differing(), _told(provider.requests[-1])
        done += bool(differing)
        counts.alike += not differing
        counts.changes += bool(differing)
        counts.files += len(differing)
        counts.kinds[name] += bool(differing)
        counts.missed += len(differing - told)
        counts.false += len(told - differing)
        world.learn()
        if turn % 3 == 0:
            names = [one for one in [*NAMES, LINK] if (root / one).is_file()]
            names = [one for one in names if one == LINK or not (root / one).is_symlink()]
            provider.answers += [_reads(chance.sample(names, min(3, len(names))), turn), say("ok")]
            await events_of(agent, "read again")
            counts.false += len(_told(provider.requests[-1]))
    await agent.close()


async def _turn(agent: Agent, provider: ScriptedProvider, world: _World, script: str) -> None:
    """Something happens before the prompt, while the model writes, or by its own command."""
    match world.chance.randrange(3):
        case 0:
            world.shell(script)
        case 1:

            def answer(_: Request) -> list[Block]:
                world.shell(script)
                return [call("list_dir", path=".")]

            provider.answers.append(answer)
        case _:
            file = world.root.parent / "change"
            file.write_text(script)
            provider.answers.append([call("run_command", command=f"sh {file}")])
    provider.answers.append(say("ok"))
    await events_of(agent, "go on")


def _reads(names: list[str], turn: int) -> list[Block]:
    return [call("read_file", f"r{turn}-{n}", path=name) for n, name in enumerate(names)]


def _told(request: Request) -> set[str]:
    """The files that the end of a request says to have changed, or to be as before."""
    blocks = request.messages[-1]["content"]
    texts = [text_of([block]) for block in blocks if block.get("type") == "text"]
    starts = ("<notice>\nChanged since", "<notice>\nBack to what")
    said = " ".join(text for text in texts if text.startswith(starts))
    names = set(re.findall(r'"([^"]+)"', re.sub(r'\([^()"]*"[^"]*"\)', "", said)))
    # The link is told of by the file that it led to when it was read.
    return {LINK if name in {"one", "two"} else name for name in names}


async def _cost(root: Path) -> tuple[float, float, float]:
    """Seconds of the first look at many files, of a later one, and for which the loop stood."""
    names = [f"{number}.py" for number in range(FILES)]
    for name in names:
        (root / name).write_text(f"# {name}\n" * 500)
        os.utime(root / name, ns=(1, 1))
    provider = ScriptedProvider(_reads(names, 0), say("ok"))
    provider.window = 10_000_000
    model = ModelInfo("test-model", 10_000_000, 8192, "server")
    agent = make_agent(root, provider, model=model)
    await events_of(agent, "read all")
    await asyncio.sleep(SETTLED_S)
    took: list[float] = []
    gaps: list[float] = []
    for _ in range(_ROUNDS + 1):
        look = asyncio.ensure_future(agent.context.outdated())
        began = last = time.perf_counter()
        gap = 0.0
        while not look.done():
            await asyncio.sleep(0)
            now = time.perf_counter()
            gap, last = max(gap, now - last), now
        assert look.result() == set()
        took.append(last - began)
        gaps.append(gap)
    await agent.close()
    return took[0], median(took[1:]), median(gaps[1:])
