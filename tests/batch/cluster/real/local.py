"""Many tasks on this machine, while workers and the driver are killed: run by hand.

    python -m tests.batch.cluster.real.local --tasks 120 --kills 20 --drivers 5 --stopped 1

Works in a folder of its own, ends what it started, and exits 1 unless each task has one commit, is
merged once, and every session verifies.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

STEPS = 5
"""Requests of a task that change a file; one more ends it."""
STOP_S = 180.0
"""Seconds that a stopped worker sleeps."""


def turns(seconds: float) -> str:
    """The practice script of a task: each step adds a line to a file of the task's own."""
    made = ""
    for number in range(STEPS):
        add = f"echo {number} >> made-by-$(basename $(dirname $PWD)).txt"
        tool = f'tools = [{{name = "run_command", input = {{command = "{add}"}}}}]\n'
        made += f'[[turn]]\ntext = "A step."\ndelay_s = {seconds}\n{tool}'
    return made + f'[[turn]]\ntext = "Done."\ndelay_s = {seconds}\n'


def workers(home: Path) -> list[int]:
    """The processes at work on tasks."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if b"work" in words and any(os.fsencode(home) in word for word in words):
                found.append(int(path.parent.name))
    return found


def git(repo: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=repo, check=True, capture_output=True, text=True
    ).stdout


def make_repo(folder: Path, tasks: int, files: int) -> Path:
    repo = folder / "repo"
    repo.mkdir(parents=True)
    git(repo, "init", "-q", "-b", "main")
    git(repo, "config", "user.name", "Test")
    git(repo, "config", "user.email", "test@example.org")
    for number in range(files):
        path = repo / f"src{number // 100}" / f"module{number}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"VALUE = {number}\n")
    (repo / "TASKS.md").write_text("".join(f"- [ ] task {n}\n" for n in range(tasks)))
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "first")
    return repo


def check(repo: Path, env: Mapping[str, str], tasks: int) -> list[str]:
    """What is not as it should be, in words. A step may be made twice: the script begins again with
    each worker."""
    wrong: list[str] = []
    subjects = git(repo, "log", "--no-merges", "--format=%s").splitlines()
    wanted = sorted(["first", *(f"task {n}" for n in range(tasks))])
    if sorted(subjects) != wanted:
        wrong.append(f"{len(subjects) - 1} commits of {tasks}")
    made = {path.name: len(path.read_text().split()) for path in repo.glob("made-by-*.txt")}
    odd = {name: count for name, count in made.items() if count < STEPS}
    if len(made) != tasks or odd:
        wrong.append(f"{len(made)} files, with other numbers of steps: {odd}")
    state = json.loads((repo / ".holdfast" / "run" / "state.json").read_bytes())
    sessions = {task["session_id"] for task in state["tasks"]}
    for session in sessions:
        words = [sys.executable, "-P", "-m", "tui", "sessions", "verify", str(session)]
        if subprocess.run(words, cwd=repo, env=env, capture_output=True, check=False).returncode:
            wrong.append(f"session {session} doesn't verify")
    if len(sessions) != tasks:
        wrong.append(f"{len(sessions)} sessions")
    return wrong


class Run:
    """A run under faults: the numbers `given`, in a `folder` of its own."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given, self.begun = given, time.monotonic()
        self.chance = random.Random(given.seed)
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-local-"))
        self.repo = make_repo(self.folder, given.tasks, given.files)
        self.home = self.folder / "home"
        (self.home / "config").mkdir(parents=True)
        config = self.home / "config" / "config.toml"
        config.write_text(f"[batch]\nlease_s = {given.lease}\n")
        script = self.folder / "script.toml"
        script.write_text(turns(given.seconds))
        self.env = {**os.environ, "HOLDFAST_HOME": str(self.home)}
        self.words = [sys.executable, "-P", "-m", "tui", "run", "TASKS.md", "--on", "local"]
        self.words += ["--headless", "--yolo", "--parallel", str(given.parallel)]
        self.words += ["--practice-script", str(script)]
        self.log = (self.folder / "out.log").open("ab")
        self.asleep: dict[int, float] = {}
        self.driver = self.drive()

    def drive(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.words, cwd=self.repo, env=self.env, stdout=self.log, stderr=self.log
        )

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self.begun:5.0f} s  {text}", flush=True)

    def wake(self, after_s: float) -> None:
        """Wake the workers that were stopped so long ago."""
        for pid in [pid for pid, at in self.asleep.items() if time.monotonic() - at > after_s]:
            self.say(f"worker {pid} wakes")
            del self.asleep[pid]
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGCONT)

    def fault(self, alive: list[int]) -> None:
        """Kill or stop something, if anything is left to be killed."""
        given = self.given
        if given.drivers and self.chance.random() < 0.2:
            given.drivers -= 1
            self.driver.kill()
            self.driver.wait()
            self.say("driver killed")
            time.sleep(self.chance.uniform(0, 4))
            self.driver = self.drive()
        elif given.stopped:
            given.stopped -= 1
            self.asleep[alive[0]] = time.monotonic()
            os.killpg(alive[0], signal.SIGSTOP)
            self.say(f"worker {alive[0]} stopped")
        elif given.kills:
            given.kills -= 1
            victim = self.chance.choice(alive)
            os.kill(victim, signal.SIGKILL)
            self.say(f"worker {victim} killed")

    def to_its_end(self) -> None:
        """Let it run, with faults, until a driver ends by itself."""
        next_fault = self.begun + 10
        while self.driver.poll() is None:
            time.sleep(0.25)
            self.wake(STOP_S)
            alive = [pid for pid in workers(self.home) if pid not in self.asleep]
            if time.monotonic() >= next_fault and alive:
                next_fault = time.monotonic() + self.chance.uniform(2, 9)
                self.fault(alive)
        self.wake(0)


def main() -> int:
    parser = argparse.ArgumentParser()
    usual = {"tasks": 24, "kills": 4, "drivers": 1, "stopped": 0, "files": 100, "parallel": 4}
    for name, number in {**usual, "lease": 30, "seed": 1}.items():
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--seconds", type=float, default=0.4)
    given = parser.parse_args()
    run = Run(given)
    run.to_its_end()
    run.say("the run has ended")
    wrong = check(run.repo, run.env, given.tasks)
    if run.driver.returncode:
        wrong.append(f"exit code {run.driver.returncode}")
    if left := workers(run.home):
        wrong.append(f"workers left: {left}")
    used = resource_s() / given.tasks
    run.say(f"{given.tasks} tasks, {used:.2f} CPU s each, those of this check included")
    run.say("; ".join(wrong) or "as it should be")
    if wrong:
        run.say(f"see {run.folder}")
    else:
        shutil.rmtree(run.folder, ignore_errors=True)
    return bool(wrong)


def resource_s() -> float:
    """The processor time of all that was started here and waited for."""
    times = os.times()
    return times.children_user + times.children_system


if __name__ == "__main__":
    sys.exit(main())
