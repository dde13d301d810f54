"""Git's commands, each with walls and without, in the same small project at the same place: what
git said, what was asked, and what the repository is afterwards."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.agent.test_guards import results
from tests.support.agents import events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.core.config import SandboxSettings
from tui.core.messages import text_of
from tui.core.workspace import PRIVATE_DIR, Workspace
from tui.permissions.gate import Gate, RulesOnly
from tui.permissions.policy import Policy
from tui.permissions.sandbox.confinement import Confinement
from tui.permissions.types import Answer, Call, Decision
from tui.tools.output_capture import Cleaner
from tui.tools.terminal_text import TerminalText

HERE = Path(__file__).parent
_LOOKS = (
    "for-each-ref", "symbolic-ref HEAD", "rev-parse HEAD", "config --local --list",
    "config --worktree --list", "ls-files --stage -v", "ls-files --stage", "status --porcelain=v2",
    "stash list --format=%gs", "worktree list --porcelain", "sparse-checkout list",
    "submodule status", "reflog --format=%gs", "notes list", "count-objects", "fsck",
)  # fmt: skip
_CHANGES = re.compile(
    r"0\.\d+ seconds|\(\d+ seconds[^)]*\)|\b[\d.]+ (?:bytes|KiB|MiB)[^\n]*|(?<=pid )\d+"
    r"|Rewrite [0-9a-f]{40} \(\d+/\d+\)"  # filter-branch says by the clock how far it is
)
_FILES = ("info/exclude", "info/sparse-checkout", "info/attributes", "MERGE_HEAD", "rr-cache")


@dataclass(frozen=True, slots=True)
class Habit:
    """A command, what is done before it without walls, and true if one question is asked."""

    command: str
    before: str = ""
    asks: bool = False


@dataclass(slots=True)
class Outcome:
    """What came of a command; `marks` are the lines in brackets, ours and git's."""

    code: int
    said: str
    state: dict[str, str]
    marks: list[str] = field(default_factory=list[str])
    asked: list[str] = field(default_factory=list[str])


class SaysYes(RulesOnly):
    """Says yes, and keeps what was asked."""

    def __init__(self) -> None:
        self.asked = list[str]()

    async def ask(self, call: Call, decision: Decision) -> Answer:
        self.asked.append(f"{decision.level}: {decision.reason}")
        return Answer("once" if len(self.asked) < 5 else "no")


class Place:
    """The folder in which each command finds the project as it was."""

    def __init__(self, base: Path) -> None:
        self.base, self.root, self.home = base / "p", base / "p/work", base / "home"
        self.template = base / "template"
        self.number = 0
        self.template.mkdir()
        self.home.mkdir()
        (self.home / ".gitconfig").write_text(
            "[user]\n\tname = A\n\temail = a@example.org\n[init]\n\tdefaultBranch = main\n"
            '[protocol "file"]\n\tallow = always\n[core]\n\tpager = cat\n[gc]\n\tauto = 0\n'
        )
        self.environment = {
            "PATH": f"{_without_schedulers(base / 'bin')}:{os.environ['PATH']}",
            "HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "dumb",
            "GIT_AUTHOR_DATE": "2026-11-28T12:00:00Z", "GIT_COMMITTER_DATE": "2026-11-28T12:00:00Z",
            "GIT_EDITOR": "true", "GIT_TERMINAL_PROMPT": "0",
        }  # fmt: skip
        self._run((HERE / "project.sh").read_text(), self.template)

    def _run(self, command: str, cwd: Path) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", command], cwd=cwd, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=60,
        )  # fmt: skip
        return done.returncode, _as_shown(done.stdout)

    def _fresh(self, habit: Habit) -> None:
        if self.base.exists():
            shutil.rmtree(self.base)
        shutil.copytree(self.template, self.base, symlinks=True)
        self._run(f"git remote set-url origin {self.base}/remote.git; {habit.before}", self.root)
        self._run("git update-index -q --refresh", self.root)

    def _state(self) -> dict[str, str]:
        """All that git tells about the repositories, and all files."""
        found: dict[str, str] = {}
        for git in sorted(self.base.rglob("HEAD")):
            if git.parent.name == "logs" or "refs" in git.parts or "logs" in git.parts:
                continue
            for look in ("for-each-ref", "config --local --list", "symbolic-ref HEAD"):
                name = str(git.parent.relative_to(self.base))
                text = self._run(f"git --git-dir={git.parent} {look}", self.base)[1]
                found[f"{name}: {look}"] = "\n".join(sorted(text.splitlines()))
        for tree in sorted({self.root, *(one.parent for one in self.base.rglob(".git"))}):
            name = str(tree.relative_to(self.base))
            for look in _LOOKS:
                text = self._run(f"git {look}", tree)[1]
                found[f"{name}: git {look}"] = "\n".join(sorted(text.splitlines()))
            for file in _FILES:
                path = tree / ".git" / file
                found[f"{name}: {file}"] = (
                    path.read_text() if path.is_file() else str(path.exists())
                )
            for path in sorted(tree.rglob("*")):
                ours = not {".git", PRIVATE_DIR}.isdisjoint(path.parts)
                if not ours and path.is_file() and path.suffix != ".bundle":
                    found[str(path.relative_to(self.base))] = path.read_bytes().decode("latin-1")
        return found

    def outside(self, habit: Habit) -> Outcome:
        self._fresh(habit)
        code, said = self._run(habit.command.replace("@BASE@", str(self.base)), self.root)
        return Outcome(code, _said(said), self._state(), _marks(said))

    async def inside(self, habit: Habit, engine: Any) -> Outcome:
        self.number += 1
        state = self.base.parent / f"state{self.number}"
        self._fresh(habit)
        workspace = Workspace(self.root, (self.base / "remote.git", self.base / "lib-source"))
        confinement = Confinement(
            SandboxSettings(engine=engine), workspace, state / "session", state / "cache",
            environment=self.environment,
        )  # fmt: skip
        try:
            await confinement.levels()
            command = habit.command.replace("@BASE@", str(self.base))
            says = SaysYes()
            script = ScriptedProvider(
                [call("run_command", "c0", command=command)], say("ok"), say("ok")
            )
            agent = make_agent(
                self.root, script, approver=says, gate=Gate(Policy(home=self.home)),
                confinement=confinement, workspace=workspace,
            )  # fmt: skip
            agent.permissions.mode = "accept_edits"
            await events_of(agent, "go")
            await agent.close()
        finally:
            await confinement.close()
        (record,) = results(agent)
        text = text_of(record.data["content"])
        ended = re.search(r"\[exit code (-?\d+)", text)
        code, said = int(ended[1]) if ended else -1, _said(text.removeprefix("(no output)"))
        return Outcome(code, said, self._state(), _marks(text), says.asked)


def _without_schedulers(folder: Path) -> Path:
    """A folder, made here, of schedulers that refuse: `git maintenance start` changes nobody's."""
    folder.mkdir()
    for name in ("crontab", "systemctl", "launchctl"):
        (folder / name).write_text("#!/bin/sh\necho 'not in a test' >&2\nexit 1\n")
        (folder / name).chmod(0o755)
    return folder


def _as_shown(output: bytes) -> str:
    """The words of an output: progress that git writes over is gone."""
    terminal = TerminalText()
    shown = terminal.feed(Cleaner().feed(output, final=True)).final
    return shown + terminal.close().final


def _marks(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("[")]


def _said(text: str) -> str:
    lines = [line.rstrip() for line in text.replace("\r", "\n").splitlines()]
    return _CHANGES.sub(
        "", "\n".join(line for line in lines if line and not line.startswith("["))
    ).strip()


def habits() -> list[Habit]:
    found: list[Habit] = []
    for line in (HERE / "habits.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            command, _, before = line.removeprefix("? ").partition(" | ")
            found.append(Habit(command, before, line.startswith("? ")))
    return found


def differences(one: Outcome, other: Outcome) -> list[str]:
    found: list[str] = []
    if one.code != other.code:
        found.append(f"code {one.code} != {other.code}")
    if one.said != other.said:
        found.append(f"said {one.said[-400:]!r} != {other.said[-400:]!r}")
    found += [f"not said: {line}" for line in one.marks if line not in other.marks]
    for key in sorted({*one.state, *other.state}):
        a, b = one.state.get(key), other.state.get(key)
        if a != b:
            found.append(f"{key}: {str(a)[-200:]!r} != {str(b)[-200:]!r}")
    return found
