"""Weeks of work on one file, with the truth about each line: sessions, a person, formatters, git.

Everything is real but the models and the time: a git repository, checkpoints, session files as the
program writes them. The truth is kept apart, as a label beside each line, by what each step did:
nothing here compares two texts to find out who wrote what.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import tui.session.checkpoints.store as store_module
from tui.context.blame import FileBlame, blame_file
from tui.core.paths import Folders
from tui.session.checkpoints.restore import restore
from tui.session.checkpoints.store import CheckpointStore, store_of
from tui.session.copies import write_session
from tui.session.records import Header, Record, new_id

Line = tuple[str, str]
"""A line's text, and who wrote it: `call:ID`, `person`, `before`, `commit:SUBJECT`."""

Work: TypeAlias = Callable[[str], None]
"""Does something to the files, for the one with that label."""
Runs: TypeAlias = Callable[[str, Work], object]
"""Does it as a command line, in a session or by hand."""
COMMON = ("", "", "", "    return None", "}", "    else:", "    pass", "        continue", ")", "{")
CLOSED = "    )"
_COMMON_WORDS = {text.strip() for text in COMMON}
PERSON, BEFORE = "person", "before"
WEIGHTS = {
    "edit": 30, "write": 5, "command": 12, "formatter": 6, "person": 12, "format": 2, "commit": 8,
    "rename": 2, "merge": 2, "rebase": 2, "worktree": 3, "branch": 2, "stash": 2, "rewind": 2,
    "prompt": 10,
}  # fmt: skip
"""How often each kind of step comes."""


@dataclass
class Clock:
    """The time of the world, in the place of the store's."""

    now: float = 1_790_000_000.0

    def time(self) -> float:
        return self.now

    def time_ns(self) -> int:
        return int(self.now * 1e9)

    def moment(self) -> datetime:
        return datetime.fromtimestamp(self.now, UTC)

    def iso(self) -> str:
        return self.moment().isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass
class SimulatedSession:
    """One session: its records so far, in a folder with a store of checkpoints."""

    world: World
    root: Path
    store: CheckpointStore
    id: str
    records: list[Record] = field(default_factory=list[Record])
    last: str = ""
    prompts: list[tuple[str, list[Line], str]] = field(
        default_factory=list[tuple[str, list[Line], str]]
    )

    def write(self, kind: str, **data: Any) -> Record:
        parent = self.records[-1].id if self.records else None
        moment = self.world.clock.moment()
        record = Record(kind, new_id(moment, parent or ""), parent, self.world.clock.iso(), data)
        self.records.append(record)
        return record

    def checkpoint(self, by: str = "", call: str = "", prompt: str = "") -> str:
        taken = self.store.take()
        if prompt or taken.id != self.last:
            data = {"checkpoint": taken.id, "files": taken.files, "by": by}
            data |= {"call_id": call} if call else {}
            self.write("checkpoint", **data, **({"prompt": prompt} if prompt else {}))
        self.last = taken.id
        return taken.id

    def prompt(self) -> None:
        self.world.tick()
        number = len(self.prompts) + 1
        text = f"Please do part {number} of {self.id}"
        record = self.write("user", content=[{"type": "text", "text": text}], text=text)
        self.checkpoint(prompt=record.id)
        self.prompts.append((record.id, list(self.world.lines(self.root)), self.last))

    def call(self, tool: str, given: dict[str, Any], call: str = "") -> str:
        self.world.tick()
        call = call or f"toolu_{self.world.random.getrandbits(64):016x}"
        usage = {"input_tokens": 1000, "output_tokens": 100}
        block = {"type": "tool_use", "id": call, "name": tool, "input": given}
        self.write("assistant", content=[block], model="claude-sonnet-5-5", usage=usage)
        self.write(
            "permission", call_id=call, tool=tool, subject="", answer="allow", by="rule", reason=""
        )
        return call

    def result(self, call: str, tool: str, details: dict[str, Any]) -> None:
        content = [{"type": "text", "text": "done"}]
        self.write(
            "tool_result", call_id=call, name=tool, content=content, is_error=False, seconds=0.1,
            receipt=None, summary="", display="", details=details,
        )  # fmt: skip

    def edit(self, tool: str, new: list[Line], formatter: str = "") -> None:
        """A file tool writes lines; those with the label "" are the call's. A hook may format them
        then."""
        path = self.root / self.world.name(self.root)
        before = path.read_bytes()
        text = "".join(f"{line}\n" for line, _ in new)
        given = {"content": text} if tool == "write_file" else passage(before.decode(), text)
        call = self.call(tool, {"path": str(path), **given})
        copy = self.root / ".holdfast" / "tool-results" / f"{call}.before"
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(before)
        os.utime(copy, (self.world.clock.now, self.world.clock.now))
        self.world.put(self.root, labelled(new, f"call:{call}"))
        self.world.tick(1)
        if formatter:
            rewritten = [(one.replace("'", '"').replace(",2", ", 2"), by) for one, by in new]
            self.world.put(self.root, labelled(rewritten, f"call:{call}"))
            self.write("hook", event="PostToolUse", call_id=call, command=formatter)
        self.result(
            call,
            tool,
            {
                "path": str(path),
                "before": str(copy),
                "before_sha256": sha256(before).hexdigest(),
                "after_sha256": sha256(path.read_bytes()).hexdigest(),
            },
        )

    def command(self, line: str, work: Work, call: str = "") -> str:
        """A command runs, with checkpoints around it; `work` gets the call's label."""
        call = self.call("run_command", {"command": line}, call)
        self.checkpoint(call=call)
        self.write(
            "intent", call_id=call, tool="run_command", effect="run", args_sha256="", label=line
        )
        self.world.tick()
        work(f"call:{call}")
        self.world.tick(1)
        self.checkpoint("call", call)
        self.result(call, "run_command", {})
        return call

    def save(self, origin: str | None = None, parent: str = "") -> Path:
        created, app = self.world.clock.iso(), "holdfast test"
        header = Header(self.id, created, str(self.root), app, parent_session=parent, origin=origin)
        self.file.unlink(missing_ok=True)
        write_session(self.file, header, self.records)
        return self.file

    @property
    def file(self) -> Path:
        return self.world.folders.sessions_of(self.root) / f"20260101T000000Z-{self.id}.jsonl"


def passage(before: str, after: str) -> dict[str, str]:
    """The arguments of an edit: what differs, with lines around it until that is unique."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    low = 0
    while low < min(len(old), len(new)) and old[low] == new[low]:
        low += 1
    high = 0
    while high < min(len(old), len(new)) - low and old[-1 - high] == new[-1 - high]:
        high += 1
    while True:
        one = "".join(old[low : len(old) - high])
        if one and before.count(one) == 1:
            return {"old_string": one, "new_string": "".join(new[low : len(new) - high])}
        low, high = max(0, low - 1), max(0, high - 1)


def labelled(lines: Sequence[Line], label: str) -> list[Line]:
    return [(text, own or label) for text, own in lines]


class World:
    """A repository with one file that everybody works on."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.clock = Clock()
        store_module.time = self.clock  # type: ignore[assignment]
        self.folder = folder
        home = folder / "home"
        self.folders = Folders(home / "data", home / "config", home / "cache", home / "log")
        self.root = folder / "work"
        self.root.mkdir(parents=True)
        self.names = {self.root: "src/module.py"}
        self.truth: dict[Path, list[Line]] = {}
        self.stores: dict[Path, CheckpointStore] = {}
        self.sessions: list[SimulatedSession] = []
        self.by_text: dict[str, str] = {}
        self.count = 0
        self.log: list[str] = []
        self.weights = WEIGHTS
        self.git("init", "-q", "-b", "main")
        (self.root / ".gitignore").write_text(".holdfast/\n")
        (self.root / "other.txt").write_text("other\n")
        self.put(self.root, labelled(self.fresh(self.random.randrange(30, 120)), BEFORE))
        self.git("add", "-A")
        self.git("commit", "-qm", "the beginning")
        self.tick()

    # what there is

    def tick(self, seconds: float = 20.0) -> None:
        self.clock.now += seconds

    def git(self, *words: str, root: Path | None = None, fails: bool = False) -> str:
        when = f"{int(self.clock.now)} +0000"
        names = {
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", "P"), ("EMAIL", "p@example.org"), ("DATE", when))
        }
        env = {
            **os.environ,
            **names,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": "/dev/null",
        }
        done = subprocess.run(
            ["git", *words], cwd=root or self.root, env=env, capture_output=True, check=False
        )
        if done.returncode and not fails:
            raise AssertionError(f"git {words}: {done.stderr.decode()}{done.stdout.decode()}")
        return done.stdout.decode()

    def name(self, root: Path) -> str:
        return self.names[root]

    def lines(self, root: Path | None = None) -> list[Line]:
        return self.truth[root or self.root]

    def put(self, root: Path, lines: Sequence[Line]) -> None:
        path = root / self.names[root]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{text}\n" for text, _ in lines))
        self.truth[root] = list(lines)
        for text, label in lines:
            if text.strip() not in _COMMON_WORDS:
                self.by_text[text] = label

    def fresh(self, count: int) -> list[Line]:
        """New lines, nobody's yet: most of them are unlike all others."""
        made: list[Line] = []
        for _ in range(count):
            self.count += 1
            n = self.count
            shape = self.random.choice(
                (
                    f"def function_{n}(argument, other={n}):",
                    f"    value_{n} = compute(value_{n // 2}, 'name {n}', [1, 2, {n}])",
                    f"    if value_{n} > {n}:",
                    f"        log('reached {n}')",
                    f"# about {n}: how it is done, and why",
                    f"    for item_{n} in items({n}):",
                )
            )
            common = self.random.random() < 0.2
            made.append((self.random.choice(COMMON) if common else shape, ""))
        return made

    # what happens

    def changed(self, lines: Sequence[Line]) -> list[Line]:
        """Lines with one to four places changed: replaced, added, removed, moved. Nothing changes
        so that it could as well have changed a line further up or down: there the truth would be
        no more than a word."""
        new = list(lines)
        for _ in range(self.random.randrange(1, 5)):
            at = self.random.randrange(len(new) + 1)
            what = self.random.random()
            if what < 0.45:
                new = self._spliced(new, at, at, self.fresh(self.random.randrange(1, 12)))
            elif what < 0.75:
                end = at + self.random.randrange(1, 6)
                new = self._spliced(new, at, end, self.fresh(self.random.randrange(1, 6)))
            elif what < 0.92 or len(new) < 40:
                if len(new) > 20:
                    new = self._spliced(new, at, at + self.random.randrange(1, 6), [])
            else:
                block = new[at : at + 6]
                if sum(text not in COMMON and bool(own) for text, own in block) < 6:
                    continue
                rest = [*new[:at], *new[at + 6 :]]
                to = self.random.randrange(len(rest) + 1)
                if abs(to - at) > 8:
                    new = self._spliced(rest, to, to, block)
        return new

    @staticmethod
    def _spliced(lines: list[Line], at: int, end: int, new: list[Line]) -> list[Line]:
        """Lines with others in the place of some, unless where that happened is ambiguous."""
        texts = ["^", *(text for text, _ in lines), "$"]
        gone = texts[at + 1 : end + 1]
        put = [text for text, _ in new]
        around = {texts[at], texts[min(end + 1, len(texts) - 1)]}
        edges = {*gone[:1], *gone[-1:]}, {*put[:1], *put[-1:]}
        if around & (edges[0] | edges[1]) or edges[0] & edges[1] or set(gone) & set(put):
            return lines
        return [*lines[:at], *new, *lines[end:]]

    def formatted(self, lines: Sequence[Line]) -> list[Line]:
        """Lines as a formatter writes them: other quotes, wrapped arguments, other blanks."""
        style = self.random.randrange(3)
        new: list[Line] = []
        for text, label in lines:
            if style == 0:
                new.append((text.replace("'", '"'), label))
            elif style == 1 and text.startswith("    value_") and text.endswith(")"):
                head, _, rest = text.partition("compute(")
                new += [
                    (f"{head}compute(", label),
                    (f"        {rest.removesuffix(')')},", label),
                    (CLOSED, label),
                ]
            elif style == 2:
                blanks = len(text) - len(text.lstrip())
                new.append(
                    (" " * (blanks // 2) + text.lstrip(), label) if text.strip() else (text, label)
                )
            else:
                new.append((text, label))
        return new

    def session(self, root: Path | None = None) -> SimulatedSession:
        root = root or self.root
        if root not in self.stores:
            self.stores[root] = store_of(self.folders, root)
        id_ = f"{self.random.getrandbits(48):012x}"
        made = SimulatedSession(self, root, self.stores[root], id_)
        self.sessions.append(made)
        made.prompt()
        return made

    def person_edits(self) -> None:
        self.tick()
        self.put(self.root, labelled(self.changed(self.lines()), PERSON))

    def person_formats(self, session: SimulatedSession) -> None:
        """An editor formats on saving, and the state before is known: else it would be told as one
        step with the person's edits."""
        session.checkpoint()
        self.tick()
        self.put(self.root, self.formatted(self.lines()))
        session.prompt()

    def commit(self, root: Path | None = None, words: str = "work") -> None:
        self.git("add", "-A", root=root)
        self.git("commit", "-qm", words, root=root, fails=True)

    def rename(self) -> None:
        old = self.names[self.root]
        self.count += 1
        new = f"src/module_{self.count}.py"
        self.git("add", "-A")
        self.git("mv", old, new)
        self.names[self.root] = new

    def after_git(self, root: Path, *known: Sequence[Line]) -> None:
        """Learn what git has made of the file: each line has the label that its text always had; a
        common one that of its neighbours' place in one of the versions that are merged."""
        lines = (root / self.names[root]).read_text().splitlines()
        places: dict[tuple[str, ...], str] = {}
        for version in reversed(known):
            texts = ["^", *(text for text, _ in version), "$"]
            for n, (text, label) in enumerate(version, 1):
                places[texts[n - 1], text] = label
            for n, (text, label) in enumerate(version, 1):
                places[text, texts[n + 1], "after"] = label
            for n, (text, label) in enumerate(version, 1):
                places[texts[n - 1], text, texts[n + 1]] = label
        around = ["^", *lines, "$"]
        made: list[Line] = []
        for n, text in enumerate(lines, 1):
            label = (
                self.by_text.get(text)
                or places.get((around[n - 1], text, around[n + 1]))
                or places.get((around[n - 1], text))
                or places.get((text, around[n + 1], "after"))
                or "?"
            )
            made.append((text, label))
        self.truth[root] = made

    def upstream(self) -> tuple[str, list[Line]]:
        """A commit by somebody else, made elsewhere on top of what is committed here; the name of
        its branch."""
        self.count += 1
        subject, branch = f"upstream {self.count}", f"upstream-{self.count}"
        place = self.folder / f"clone-{self.count}"
        self.git("clone", "-q", str(self.root), str(place))
        path = place / self.names[self.root]
        lines = path.read_text().splitlines()
        base = self.as_committed(lines)
        at = self.random.randrange(len(lines) // 2)
        own = [
            (f"    upstream_{self.count}_{n} = call_{n}({self.count})", f"commit:{subject}")
            for n in range(self.random.randrange(1, 8))
        ]
        theirs = [*base[:at], *own, *base[at:]]
        path.write_text("".join(f"{text}\n" for text, _ in theirs))
        self.by_text |= dict(own)
        self.clock.now -= 3600 * 5
        self.git("commit", "-qam", subject, root=place)
        self.clock.now += 3600 * 5
        self.git("fetch", "-q", str(place), f"HEAD:{branch}")
        shutil.rmtree(place)
        return branch, theirs

    def as_committed(self, lines: Sequence[str]) -> list[Line]:
        here = dict(self.lines())
        return [(text, self.by_text.get(text) or here.get(text, BEFORE)) for text in lines]

    def brings_in(self, how: str, by: Runs) -> None:
        """Merge or rebase onto a commit of somebody else's; `by` runs it."""
        self.commit()
        self.tick()
        branch, theirs = self.upstream()
        mine = list(self.lines())
        if self.random.random() < 0.6:  # both have gone on
            self.person_edits()
            self.commit(words="own work")
            mine = list(self.lines())
        self.tick()

        def work(_label: str) -> None:
            words = (
                ("merge", "-q", "--no-edit", branch) if how == "merge" else ("rebase", "-q", branch)
            )
            before = self.git("rev-parse", "HEAD").strip()
            self.git(*words, fails=True)
            if self.git("status", "--porcelain").strip() or (
                self.git("rev-parse", "HEAD").strip() == before and how == "merge"
            ):
                self.git(how, "--abort", fails=True)
                self.truth[self.root] = mine
                return
            self.after_git(self.root, mine, theirs)

        by(f"git {how} {branch}", work)

    def in_worktree(self, by: Runs) -> None:
        """A session works in a worktree; then its branch is merged, or squashed."""
        self.commit()
        self.count += 1
        name = f"tree-{self.count}"
        root = self.root / ".holdfast" / "worktrees" / name
        self.git("worktree", "add", "-q", "-b", name, str(root), "HEAD")
        self.names[root] = self.names[self.root]
        base = list(self.lines())
        self.truth[root] = list(base)
        session = self.session(root)
        for _ in range(self.random.randrange(1, 4)):
            session.edit("edit_file", self.changed(self.lines(root)))

        def committed(_label: str) -> None:
            self.commit(root, f"in {name}")

        session.command("git commit -am tree", committed)
        if self.random.random() < 0.5:
            self.person_edits()
            self.commit(words="meanwhile")
        mine, theirs = list(self.lines()), list(self.lines(root))
        squash = self.random.random() < 0.4

        def work(_label: str) -> None:
            words = ("merge", "--squash", name) if squash else ("merge", "-q", "--no-edit", name)
            self.git(*words, fails=True)
            if self.git("ls-files", "-u").strip():
                self.git("reset", "-q", "--hard")
                self.truth[self.root] = mine
                return
            if squash:
                self.git("commit", "-qm", f"squashed {name}", fails=True)
            self.after_git(self.root, mine, theirs)

        self.tick()
        by(f"git merge {name}", work)
        if self.random.random() < 0.5:
            session.save()
            self.git("worktree", "remove", "--force", str(root))
        session.store.close()

    def other_branch(self, session: SimulatedSession) -> None:
        """Look at another branch and come back."""
        self.commit()
        mine = list(self.lines())
        first = self.git("rev-list", "--max-parents=0", "HEAD").strip()
        name = self.names[self.root]
        if not self.git("ls-tree", first, name).strip():
            return

        def there(_label: str) -> None:
            self.git("checkout", "-q", first)
            self.after_git(self.root, mine)

        def back(_label: str) -> None:
            self.git("checkout", "-q", "main")
            self.truth[self.root] = mine

        session.command(f"git checkout {first}", there)
        session.command("git checkout main", back)

    def stash(self, session: SimulatedSession) -> None:
        self.commit()
        clean = list(self.lines())
        session.edit("edit_file", self.changed(clean))
        mine = list(self.lines())
        if mine == clean:
            return

        def put(_label: str) -> None:
            self.git("stash", "-q")
            self.truth[self.root] = clean

        def pop(_label: str) -> None:
            self.git("stash", "pop", "-q")
            self.truth[self.root] = mine

        session.command("git stash", put)
        if self.random.random() < 0.8:
            session.command("git stash pop", pop)
        else:
            self.git("stash", "drop", "-q")

    def rewind(self, session: SimulatedSession) -> None:
        _, lines, checkpoint = self.random.choice(session.prompts)
        now = session.checkpoint()
        changes = [
            one
            for one in session.store.difference(checkpoint, now)
            if one.path == self.root / self.names[self.root]
        ]
        if any(one.old is None or one.new is None for one in changes):
            return
        self.tick()
        session.write("rewind", target=session.records[0].id, left=session.records[-1].id)
        restore(changes, session.store)
        if changes:
            self.truth[self.root] = list(lines)
        self.tick(1)
        session.checkpoint("rewind")

    def step(self, session: SimulatedSession) -> None:
        """One step of a session, or of the person beside it."""
        (kind,) = self.random.choices([*self.weights], [*self.weights.values()])
        self.log.append(f"{session.id[:4]} {kind}")
        by: Runs = session.command if self.random.random() < 0.6 else self._by_hand
        steps: dict[str, Callable[[], object]] = {
            "edit": lambda: session.edit("edit_file", self.changed(self.lines())),
            "write": lambda: session.edit("write_file", self.changed(self.changed(self.lines()))),
            "command": lambda: session.command("python tools/rework.py", self._reworked),
            "formatter": lambda: session.command("ruff format .", self._formatted),
            "person": self.person_edits,
            "format": lambda: self.person_formats(session),
            "commit": self.commit,
            "rename": lambda: session.command("git mv", self._renamed),
            "merge": lambda: self.brings_in("merge", by),
            "rebase": lambda: self.brings_in("rebase", by),
            "worktree": lambda: self.in_worktree(by),
            "branch": lambda: self.other_branch(session),
            "stash": lambda: self.stash(session),
            "rewind": lambda: self.rewind(session),
            "prompt": session.prompt,
        }
        steps[kind]()

    def _reworked(self, label: str) -> None:
        self.put(self.root, labelled(self.changed(self.lines()), label))

    def _formatted(self, _label: str) -> None:
        self.put(self.root, self.formatted(self.lines()))

    def _renamed(self, _label: str) -> None:
        self.rename()

    def _by_hand(self, _line: str, work: Work) -> None:
        """The person does it in a terminal of their own."""
        self.tick()
        work(PERSON)
        self.tick()

    def work(self, sessions: int, steps: int = 8) -> None:
        """Work in that many sessions, two of them at the same time now and then."""
        open_: list[SimulatedSession] = []
        for _ in range(sessions):
            open_ = [self.session(), *(open_[:1] if self.random.random() < 0.3 else [])]
            for _ in range(steps):
                session = self.random.choice(open_)
                if session is not open_[0] and not session.prompts:
                    continue
                self.step(session)
        for session in self.sessions:
            session.save()

    def close(self) -> None:
        for store in self.stores.values():
            store.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # what is told

    def blame(self) -> FileBlame:
        return blame_file(self.root / self.names[self.root], self.folders)[0]

    def told(self) -> list[tuple[str, str, str]]:
        """For each line its text, its true label, and the one that is told; "?" is uncertain."""
        found = self.blame()
        return [
            (text, label, self._label(found, n)) for n, (text, label) in enumerate(self.lines())
        ]

    @staticmethod
    def _label(found: FileBlame, line: int) -> str:
        if not found.certain(line):
            return "?"
        step = found.makers(line)[0]
        match step.kind:
            case "person" | "before":
                return step.kind
            case "commit":
                return f"commit:{step.said}"
            case _:
                return f"call:{step.call}"
