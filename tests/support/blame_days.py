"""Weeks of work by two people and three agents on one repository, and the origin of each line.

    python -m tests.support.blame_days [--days N] [--seeds N,N,…] [--keep FOLDER]

The real program runs in real git repositories, before a model that plays jobs: each person has a
clone of a bare repository and a home of their own, an agent in the checkout, and others in
worktrees and as sub-agents. Each line has a token that nothing takes from it, and what wrote a
token is noted when it is written, by nothing that blame has a part in. Only the time is made up: a
step ends minutes or days before the next one begins.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeAlias

from tests.support import preloaded
from tests.support.blame_world import passage
from tests.support.clock import PATIENCE_S
from tests.support.later_program import AHEAD
from tests.support.preloaded import PLAIN, RUN, Process
from tests.support.server_script import Json, Script
from tests.support.serving import serving
from tests.support.terminal import Terminal
from tui.core.messages import blocks_of, string_of, tool_calls

PROGRAM: Final = (sys.executable, "-m", "tests.support.later_program")
RUFF: Final = f"{Path(sys.executable).parent / 'ruff'} format -q --isolated --no-cache"
HOOK: Final = (
    f'{sys.executable} -c \'import json, sys; print(json.load(sys.stdin)["tool_input"]'
    f'["file_path"])\' | xargs {RUFF}'
)
FILES: Final = 12
ASKED: Final = 10
DAY_S: Final = 86_400.0
_TOKEN: Final = re.compile(r"z(\d+)z")
_JOB: Final = re.compile(r"Job (\d+(?:\.\d+)?)\b")

Step: TypeAlias = Callable[[str], Json]
"""Makes the next call of a job, of the one with that label."""
Block: TypeAlias = list[str]
"""A statement's lines, with the blank ones behind it."""


@dataclass(slots=True)
class Model(Script):
    """Plays jobs: each prompt names one. The ids of its calls come again in each session, as those
    of some servers do."""

    jobs: dict[str, deque[Step]] = field(default_factory=dict[str, deque[Step]])
    repeats: bool = False

    def next(self, body: Json | None = None) -> tuple[Json | None, Json | None, int]:
        self._turn += 1
        messages: list[Json] = (body or {}).get("messages", [])
        job = next(reversed([*_jobs_in(messages)]), "")
        steps = self.jobs.get(job)
        if not steps or not (body or {}).get("tools"):
            return {"text": "All is done."}, None, self._turn
        count = sum(len(tool_calls(blocks_of(one.get("content")))) for one in messages)
        call = f"call_{count}" if self.repeats else f"toolu_{self._turn:05}"
        return {"tools": [{"id": call, **steps.popleft()(f"{job}/{call}")}]}, None, self._turn


def _jobs_in(messages: Iterable[Json]) -> Iterator[str]:
    for message in messages:
        if message["role"] == "user":
            for block in blocks_of(message["content"]):
                yield from _JOB.findall(string_of(block.get("text")))


@dataclass(frozen=True, slots=True)
class Made:
    """What wrote a line: `by` is `before`, `person`, or the call of a job, on one's machine."""

    by: str
    person: str


@dataclass(frozen=True, slots=True)
class Told:
    """One line that was asked for: its true origin, and the one that was told; "?" is uncertain."""

    text: str
    true: frozenset[str]
    said: str
    file: str = ""

    @property
    def right(self) -> bool:
        return self.said in self.true


@dataclass(slots=True)
class Person:
    """Somebody with a clone, a home, and agents."""

    name: str
    work: Path
    home: Path
    sessions: list[str] = field(default_factory=list[str])
    branches: list[str] = field(default_factory=list[str])
    """Of worktrees that are not merged yet."""


class Days:
    """The world, from its first day on."""

    def __init__(self, folder: Path, seed: int, days: int, model: Model, url: str) -> None:
        self.random = random.Random(seed)
        self.folder, self.model, self.url = folder, model, url
        self.made: dict[str, Made] = {}
        self.log: list[str] = []
        self._count, self._jobs = 0, 0
        self._ahead = -(days + 1) * DAY_S
        self.bare = folder / "bare.git"
        folder.mkdir(parents=True)
        self.people = [
            Person(name, folder / name / "work", folder / name / "home") for name in ("ann", "bob")
        ]
        self._prepare()

    def _prepare(self) -> None:
        ann, bob = self.people
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", self.bare], check=True)
        for person in self.people:
            config = person.home / "config"
            config.mkdir(parents=True)
            (config / "config.toml").write_text('titles = "prompt"\n[sandbox]\nengine = "off"\n')
        hooks = [{"type": "command", "command": HOOK}]
        hooks_file = {"hooks": {"PostToolUse": [{"matcher": "Edit|Write", "hooks": hooks}]}}
        (ann.home / "config" / "hooks.json").write_text(json.dumps(hooks_file))
        self._clone(ann)
        for number in range(FILES):
            path = ann.work / ("src", "lib")[number % 2] / f"part_{number}.py"
            path.parent.mkdir(exist_ok=True)
            blocks = [self._fresh(Made("before", "")) for _ in range(self.random.randrange(8, 25))]
            path.write_text(_text(blocks))
        (ann.work / ".gitignore").write_text(".holdfast/\n.claude/\n")
        self.git(ann, "checkout", "-q", "-b", "main")
        self.commit(ann, "the beginning")
        self.git(ann, "push", "-q", "-u", "origin", "main")
        self._clone(bob)

    def _clone(self, person: Person) -> None:
        subprocess.run(
            ["git", "clone", "-q", self.bare, person.work], check=True, capture_output=True
        )
        for key, value in (("name", person.name), ("email", f"{person.name}@example.org")):
            subprocess.run(["git", "config", f"user.{key}", value], cwd=person.work, check=True)

    # Time, git, the program

    def later(self, seconds: float = 0.0) -> None:
        self._ahead += seconds or self.random.randrange(60, 1800)

    def now(self) -> float:
        return time.time() + self._ahead

    def env(self, person: Person) -> dict[str, str]:
        own = {"HOLDFAST_HOME": str(person.home), "HOME": str(person.home.parent)}
        who = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": self.url}
        git = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_EDITOR": "true"}
        return {**os.environ, **own, **who, **git, AHEAD: str(self._ahead)}

    def git(self, person: Person, *words: str, cwd: Path | None = None) -> str:
        """Run git by the person's hand. Raises subprocess.CalledProcessError."""
        when = f"@{int(self.now())} +0000"
        env = {**self.env(person), "GIT_COMMITTER_DATE": when, "GIT_AUTHOR_DATE": when}
        if words[0] in {"rebase", "cherry-pick", "pull"}:
            del env["GIT_AUTHOR_DATE"]
        done = subprocess.run(
            ["git", *words], cwd=cwd or person.work, env=env, check=True, capture_output=True
        )
        return done.stdout.decode()

    def by_agent(self, *words: str) -> str:
        """A line that runs git for an agent, at the time of the world."""
        line = f'export GIT_COMMITTER_DATE="@$(($(date +%s) + {int(self._ahead)})) +0000"; '
        return f"{line}git {shlex.join(words)}"

    def start(self, person: Person, *words: str) -> Process:
        return preloaded.start(
            [*PROGRAM, *words], cwd=person.work, env=self.env(person), preload=RUN,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, person: Person, *words: str) -> bytes:
        """Run the program to its end; what it prints."""
        with self.start(person, *words) as process:
            out, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, (words, process.returncode, out[-2000:], err[-2000:])
        return out

    def job(self, steps: Sequence[Step], sub: str = "") -> tuple[str, str]:
        """A new job; its name, and the prompt that asks for it."""
        if not sub:
            self._jobs += 1
        name = f"{sub}.1" if sub else str(self._jobs)
        self.model.jobs[name] = deque(steps)
        return name, f"Job {name}: make it better"

    def ask(self, person: Person, steps: Sequence[Step], *words: str) -> str:
        """Have an agent of the person's do something; the id of its session."""
        name, prompt = self.job(steps)
        out = self.run(person, "-y", *words, "-p", prompt, "--output-format", "json")
        assert not self.model.jobs[name], "the job was left"
        session = str(json.loads(out)["session_id"])
        person.sessions.append(session)
        return session

    # Lines

    def _fresh(self, made: Made) -> Block:
        self._count += 1
        z = f"z{self._count}z"
        self.made[z] = made
        long = f"first_of_{z}=1, second_of_{z}=[1,2,3], third_of_{z}=4, last_of_{z}={{'{z}':1}}"
        return [
            self.random.choice(
                (
                    f"{z} = make('{z}', {self._count})",
                    f"# {z}: how it is done, and why",
                    f"{z} = make('{z}', {long})",
                    f"def {z}({z}_a): return {z}_a+{self._count}",
                    f"if {z}_ready: {z}_go( )",
                )
            )
        ]

    def changed(self, text: str, made: Made) -> str:
        """A text with statements replaced, added or removed in one to three places; now and then a
        block is moved instead."""
        blocks = _blocks(text)
        if self.random.random() < 0.1 and len(blocks) > 12:
            at, to = self.random.randrange(4), self.random.randrange(8, len(blocks) - 3)
            moved = blocks[at : at + 4]
            del blocks[at : at + 4]
            blocks[to:to] = moved
            return _text(blocks)
        for _ in range(self.random.randrange(1, 4)):
            at = self.random.randrange(len(blocks) + 1)
            what = self.random.random()
            new = [self._fresh(made) for _ in range(self.random.randrange(1, 4))]
            if what < 0.6 or len(blocks) < 8:
                blocks[at:at] = new
            elif what < 0.8:
                blocks[at : at + 2] = new
            else:
                del blocks[at : at + 2]
        return _text(blocks)

    def file(self, person: Person, below: Path | None = None) -> Path:
        """A file of the person's, by chance."""
        return self.random.choice(_sources(below or person.work))

    # What agents do

    def edits(self, person: Person, path: Path) -> list[Step]:
        """Read a file and edit it."""

        def read(_label: str) -> Json:
            return {"name": "read_file", "input": {"path": str(path)}}

        def edit(label: str) -> Json:
            before = path.read_text()
            after = self.changed(before, Made(label, person.name))
            if before == after:
                return read(label)
            one = passage(before, after)
            return {"name": "edit_file", "input": {"path": str(path), "edits": [one]}}

        return [read, edit]

    def writes(self, person: Person, path: Path) -> Step:
        """Write a new file."""

        def write(label: str) -> Json:
            made = Made(label, person.name)
            text = _text([self._fresh(made) for _ in range(self.random.randrange(4, 12))])
            return {"name": "write_file", "input": {"path": str(path), "content": text}}

        return write

    def reworks(self, person: Person, path: Path, then: str = "true") -> Step:
        """A command changes a file."""

        def command(label: str) -> Json:
            text = self.changed(path.read_text(), Made(label, person.name))
            return self.shell(f"cat > {path} <<'END'\n{text}END\n{then}")(label)

        return command

    @staticmethod
    def shell(line: str) -> Step:
        return lambda _label: {"name": "run_command", "input": {"command": line}}

    def commits(self, words: str, folder: str = ".") -> Step:
        """A commit by an agent, made at the time when it is asked for."""

        def commit(label: str) -> Json:
            done = self.by_agent("commit", "-qm", words)
            return self.shell(f"cd {folder} && git add -A && {done} || true")(label)

        return commit

    def meanwhile(self, person: Person, step: Step, path: Path) -> Step:
        """A step, before which the person edits a file."""

        def both(label: str) -> Json:
            path.write_text(self.changed(path.read_text(), Made("person", person.name)))
            return step(label)

        return both

    def commit(self, person: Person, words: str, cwd: Path | None = None) -> None:
        """Commit everything by the person's hand, if there is anything."""
        self.git(person, "add", "-A", cwd=cwd)
        if self.git(person, "status", "--porcelain", "-uno", cwd=cwd):
            self.git(person, "commit", "-qm", words, cwd=cwd)

    # A day

    def work(self, days: int) -> None:
        """So many days of work, each person's in turn, and each day ended with a push."""
        for day in range(days):
            for person in self.people:
                for _ in range(self.random.randrange(2, 4)):
                    self._something(person, day)
                    self.later()
                self.ends_day(person, day)
                self.later()
            self.later(DAY_S / 2)
        for person in self.people:  # what the other one pushed last
            self.ends_day(person, days)
            self.later()

    def _something(self, person: Person, day: int) -> None:
        kinds = (
            *(self.edit, self.edit, self.command, self.several, self.by_hand, self.formats),
            *(self.formats_by_agent, self.new_file, self.sub_agent, self.worktree, self.worktree),
            *(self.merges, self.merges, self.fork, self.resume, self.kill, self.rename),
            *(self.move, self.revert, self.rewind, self.together, self.squash),
        )
        kind = self.random.choice(kinds) if person.sessions else self.edit
        self.log.append(f"day {day}: {person.name} {kind.__name__}")
        kind(person)

    def edit(self, person: Person) -> None:
        """An agent edits a file or two."""
        steps = [step for _ in range(2) for step in self.edits(person, self.file(person))]
        self.ask(person, steps)

    def command(self, person: Person) -> None:
        self.ask(person, [self.reworks(person, self.file(person))])

    def several(self, person: Person) -> None:
        """An agent edits and runs commands, while the person edits, and then commits."""
        path, other = self.file(person), self.file(person)
        read, edit = self.edits(person, path)
        edit = edit if other == path else self.meanwhile(person, edit, other)
        steps = [
            read,
            edit,
            self.reworks(person, path),
            self.shell("true"),
            self.commits("by agent"),
        ]
        self.ask(person, steps)

    def by_hand(self, person: Person) -> None:
        """The person edits files, and formats one of them."""
        for number in range(self.random.randrange(1, 4)):
            path = self.file(person)
            path.write_text(self.changed(path.read_text(), Made("person", person.name)))
            if not number and self.random.random() < 0.5:
                subprocess.run([*RUFF.split(), path], check=True)

    def formats(self, person: Person) -> None:
        """The person formats a folder; ruff leaves a file that a merge has broken."""
        subprocess.run([*RUFF.split(), person.work / "src"], check=False, stderr=subprocess.DEVNULL)

    def formats_by_agent(self, person: Person) -> None:
        path = self.file(person)
        self.ask(person, [*self.edits(person, path), self.shell(f"{RUFF} {path}")])

    def new_file(self, person: Person) -> None:
        self._count += 1
        path = person.work / self.random.choice(("src", "lib")) / f"new_{self._count}.py"
        self.ask(person, [self.writes(person, path), *self.edits(person, path)])

    def sub_agent(self, person: Person) -> None:
        """A sub-agent edits one file, runs a command on another, and its parent edits a third."""
        steps = [*self.edits(person, self.file(person)), self.reworks(person, self.file(person))]
        inner, prompt = self.job(steps, str(self._jobs + 1))
        asked = {"agent": "general", "description": "do a part of it", "prompt": prompt}

        def task(_label: str) -> Json:
            return {"name": "task", "input": asked}

        self.ask(person, [task, *self.edits(person, self.file(person))])
        assert not self.model.jobs[inner], "the sub-agent's job was left"

    def worktree(self, person: Person) -> None:
        """An agent works in a worktree, and commits there."""
        self._count += 1
        name = f"tree-{self._count}"
        root = person.work / ".holdfast" / "worktrees" / name

        def there(number: int) -> Step:
            """A step on a file that is there once the worktree is."""

            def step(label: str) -> Json:
                if not chosen:
                    chosen.extend([self.file(person, root), self.file(person, root)])
                return self.edits(person, chosen[number // 2])[number % 2](label)

            return step

        chosen: list[Path] = []
        steps = [*map(there, range(4)), self.commits(f"in {name}", str(root))]
        self.ask(person, steps, "-w", name)
        person.branches.append(name)

    def merges(self, person: Person) -> None:
        """The person, or an agent, brings in the work of a worktree."""
        if not person.branches:
            return self.edit(person)
        self.commit(person, "before the merge")
        name = person.branches.pop()
        branch = f"holdfast/{name}" if f"holdfast/{name}" in self.git(person, "branch") else name
        how = self.random.choice(
            (("merge", "-q", "--no-edit"), ("merge", "--squash"), ("cherry-pick",))
        )
        if self.random.random() < 0.3 and how[0] == "cherry-pick":
            done = f"{self.by_agent(*how, branch)} || git cherry-pick --abort"
            self.ask(person, [self.shell(done)])
            return None
        self._joins(person, *how, branch)
        if "--squash" in how:
            self.commit(person, f"squashed {name}")
        return None

    def _joins(self, person: Person, *words: str) -> None:
        """Join two histories; where both changed the same, both stay, and the person says so."""
        try:
            self.git(person, *words)
        except subprocess.CalledProcessError:
            names = self.git(person, "diff", "--name-only", "--diff-filter=U").split()
            paths = [person.work / name for name in names]
            if not all(path.exists() and "<<<<<<<" in path.read_text() for path in paths):
                for how in ("merge", "cherry-pick", "rebase", "revert"):
                    with suppress(subprocess.CalledProcessError):
                        self.git(person, how, "--abort")
                self.git(person, "reset", "-q", "--hard")
                return
            for path in paths:
                self._resolves(person, path)
            self.git(person, "add", "-A")
            try:
                self.git(person, "commit", "-q", "--no-edit")
            except subprocess.CalledProcessError:  # nothing of it is new
                self.git(person, "reset", "-q", "--hard")

    def _resolves(self, person: Person, path: Path) -> None:
        lines = path.read_text().splitlines(keepends=True)
        kept = [one for one in lines if not one.startswith(("<<<<<<< ", "=======", ">>>>>>> "))]
        seen: set[str] = set()
        blocks: list[Block] = []
        for block in _blocks("".join(kept)):
            tokens = set(map(str, _TOKEN.findall(block[0])))
            if not tokens & seen:
                blocks.append(block)
            seen |= tokens
        blocks.insert(self.random.randrange(len(blocks)), self._fresh(Made("person", person.name)))
        path.write_text(_text(blocks))

    def fork(self, person: Person) -> None:
        """A fork of an old session goes on where that was left."""
        if not person.sessions:
            return self.edit(person)
        old = self.random.choice(person.sessions)
        made = json.loads(self.run(person, "sessions", "fork", old, "--json"))["id"]
        self.ask(person, self.edits(person, self.file(person)), "-r", made)
        return None

    def resume(self, person: Person) -> None:
        """A session of another day is gone on with."""
        if not person.sessions:
            return self.command(person)
        path = self.file(person)
        old = self.random.choice(person.sessions)
        self.ask(person, [*self.edits(person, path), self.reworks(person, path)], "-r", old)
        return None

    def kill(self, person: Person) -> None:
        """The program is killed in the middle of a command, and mostly goes on with that."""
        path, mark = self.file(person), self.folder / "mark"
        mark.unlink(missing_ok=True)
        wait = f"touch {mark}; while [ -e {mark} ]; do sleep 0.02; done"
        _, prompt = self.job(
            [*self.edits(person, self.file(person)), self.reworks(person, path, wait)]
        )
        with self.start(person, "-y", "-p", prompt, "--output-format", "stream-json") as process:
            until = time.monotonic() + PATIENCE_S
            while not mark.exists() and time.monotonic() < until:
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
            out, _ = process.communicate(timeout=PATIENCE_S)
        session = next(
            str(one["session_id"])
            for line in out.splitlines()
            if "session_id" in (one := json.loads(line))
        )
        mark.unlink()
        self.later()
        if self.random.random() < 0.7:
            self.ask(person, self.edits(person, self.file(person)), "-r", session)

    def rename(self, person: Person) -> None:
        """An agent gives a file another name, or takes it to another folder."""
        path = self.file(person)
        self._count += 1
        new = path.with_name(f"named_{self._count}.py")
        self.commit(person, "before the new name")
        self.ask(person, [self.shell(f"git mv {path} {new}"), *self.edits(person, new)])

    def move(self, person: Person) -> None:
        """The person takes a file to another folder, and edits it there."""
        path = self.file(person)
        other = {"src": "lib", "lib": "src"}.get(path.parent.name, "src")
        new = person.work / other / path.name
        if new.exists():
            return
        new.parent.mkdir(exist_ok=True)
        path.rename(new)
        if self.random.random() < 0.5:
            new.write_text(self.changed(new.read_text(), Made("person", person.name)))

    def revert(self, person: Person) -> None:
        """The person takes a commit back, and now and then takes that back, too."""
        self.commit(person, "before the revert")
        words = ("--min-parents=1", "--max-parents=1", "-n8", "--format=%H")
        if commits := self.git(person, "log", *words).split():
            self._reverts(person, self.random.choice(commits))
            self.later()
            if self.random.random() < 0.4:
                self._reverts(person, "HEAD")

    def _reverts(self, person: Person, commit: str) -> None:
        try:
            self.git(person, "revert", "--no-edit", commit)
        except subprocess.CalledProcessError:
            with suppress(subprocess.CalledProcessError):
                self.git(person, "revert", "--abort")

    def rewind(self, person: Person) -> None:
        """The person takes back all that a session did, with its files."""
        path = self.file(person)
        session = self.ask(person, [*self.edits(person, path), self.reworks(person, path)])
        self.later()
        words = [*PROGRAM, "--plain", "-y", "-r", session]
        with Terminal(words, cwd=person.work, env=self.env(person), preload=PLAIN) as screen:
            screen.wait_for("Ctrl+D quits.", "> ")
            screen.type("/rewind 1\r")
            screen.wait_for("or just Enter for none:")
            screen.type("1\r")
            screen.wait_for("Rewound 1 prompt, with the files.", "> Job")  # it is laid ready
            screen.type("\x15/quit\r")
            screen.wait_until(lambda: screen.process.poll() is not None)

    def together(self, person: Person) -> None:
        """Two sessions work at the same time, each on a file of its own."""
        paths = self.random.sample(_sources(person.work), 2)
        jobs = [self.job(self.edits(person, path)) for path in paths]
        running = [self.start(person, "-y", "-p", prompt) for _, prompt in jobs]
        for process in running:
            with process:
                process.communicate(timeout=PATIENCE_S)
                assert process.returncode == 0

    def squash(self, person: Person) -> None:
        """The person makes one commit of all that was not pushed."""
        self.commit(person, "before the squash")
        base = self.git(person, "merge-base", "HEAD", "@{upstream}").strip()
        self.git(person, "reset", "-q", "--soft", base)
        self.commit(person, f"squashed on {int(self.now())}")

    def ends_day(self, person: Person, day: int) -> None:
        """Commit, bring in what the other one pushed, and push."""
        self.commit(person, f"day {day} of {person.name}")
        self.git(person, "fetch", "-q")
        if self.random.random() < 0.5:
            try:
                self.git(person, "rebase", "-q", "@{upstream}")
            except subprocess.CalledProcessError:
                self.git(person, "rebase", "--abort")
        self._joins(person, "merge", "-q", "--no-edit", "@{upstream}")
        if self.random.random() < 0.3:
            self.formats(person)
            self.commit(person, f"formatted on day {day}")
        with suppress(subprocess.CalledProcessError):  # a conflict that nobody could end
            self.git(person, "push", "-q")

    # What is told

    def told(self) -> list[Told]:
        """Each line of ten files, by chance, on both machines."""
        self._ahead = 0.0
        return [
            one
            for person in self.people
            for path in self.random.sample(_sources(person.work), ASKED)
            for one in self._of(person, path)
        ]

    def _of(self, person: Person, path: Path) -> Iterator[Told]:
        name = str(path.relative_to(person.work))
        answer: list[Json] = json.loads(self.run(person, "blame", name, "--json"))
        firsts = self._first_commits(person)
        token = ""
        for line in answer:
            found = _TOKEN.search(line["text"])
            token = found[0] if found else token
            if not line["text"].strip() or not token:
                continue
            made = self.made[token]
            if made.by == "before":
                true = frozenset({"before"})
            elif made.person == person.name:
                true = frozenset({made.by})
            else:  # as git has it, too: the one that wrote it in another way
                true = frozenset({firsts.get(token, ""), f"commit {line['commit']}"})
            yield Told(line["text"], true, self._said(line), f"{person.name} {name}")

    def _first_commits(self, person: Person) -> dict[str, str]:
        """The commit with which each token came."""
        words = ("log", "--reverse", "--topo-order", "--diff-merges=first-parent", "-p", "-U0")
        found: dict[str, str] = {}
        at = ""
        for line in self.git(person, *words, "--format=commit %H").splitlines():
            if line.startswith("commit "):
                at = line
            elif line.startswith("+") and not line.startswith("+++"):
                for token in _TOKEN.finditer(line):
                    found.setdefault(token[0], at)
        return found

    @staticmethod
    def _said(line: Json) -> str:
        if line["origin"] == "uncertain":
            return "?"
        (step,) = line["makers"]
        if step["kind"] in {"person", "before"}:
            return str(step["kind"])
        if step["kind"] == "commit":
            return f"commit {step['commit']}"
        job = _JOB.search(str(step.get("prompt", "")))
        return f"{job[1] if job else '-'}/{step.get('call', step['kind'])}"


def _blocks(text: str) -> list[Block]:
    blocks: list[Block] = []
    for line in text.splitlines():
        if blocks and (not line or line[0] in " )"):
            blocks[-1].append(line)
        elif line:
            blocks.append([line])
    return blocks


def _text(blocks: Sequence[Block]) -> str:
    return "".join(f"{line}\n" for block in blocks for line in block)


def _sources(folder: Path) -> list[Path]:
    """The files with more than a few lines."""
    found = (path for name in ("src", "lib") for path in (folder / name).glob("*.py"))
    return sorted(path for path in found if path.read_text().count("\n") > 3)


def simulated(folder: Path, seed: int, days: int) -> tuple[Days, list[Told]]:
    """A seed's days, and the lines that were asked for after them."""
    model = Model(any_calls=True, repeats=bool(seed % 2))
    with serving(model) as server:
        world = Days(folder, seed, days, model, server.url)
        world.work(days)
        return world, world.told()


def main() -> int:
    """Figures for each seed."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.blame_days")
    parser.add_argument("--days", type=int, default=21)
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--keep", type=Path, help="where the worlds stay")
    asked = parser.parse_args()
    faults = 0
    for seed in map(int, asked.seeds.split(",")):
        with TemporaryDirectory() as scratch:
            folder = (asked.keep or Path(scratch)) / str(seed)
            shutil.rmtree(folder, ignore_errors=True)
            world, told = simulated(folder, seed, asked.days)
            wrong = [one for one in told if not one.right]
            unsure = sum(one.said == "?" for one in wrong)
            faults += len(wrong)
            kinds = Counter(line.split()[-1] for line in world.log)
            print(f"seed {seed}: {len(told) - len(wrong)} of {len(told)} right, {unsure} uncertain")
            print(f"    {', '.join(f'{count} {kind}' for kind, count in kinds.items())}")
            alike = Counter((one.file, ", ".join(sorted(one.true)), one.said) for one in wrong)
            for (file, true, said), count in alike.items():
                print(f"    {file}: {count} of {true} told as {said}")
            sys.stdout.flush()
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
