"""Placed runs on this machine, whole: tasks of six requests, each of which edits a file.

The ideal is what the answers take, shared evenly by the workers. Processor time is that of driver,
workers, git and commands together; it is measured where files are made quickly (a disk may take
longer to make ten thousand files than all else).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.batch.test_git import git
from tests.benchmarks.pace import slowness

STEPS, ANSWER_S, WORKERS, FILES = 6, 2.0, 4, 10_000
OF_IDEAL = 1 / 0.85
CPU_S = 1.0
"""A task, on a quiet machine."""
FEW, MANY = 12, 96
FLAT = 1.1
"""The cost of a task among many, over its cost among few."""
BASE_MB, DRIVER_MB = 60, 150


class _Cost(NamedTuple):
    seconds: float
    cpu_s: float
    driver_mb: float


def run() -> list[tuple[str, float, float]]:
    """(what, ratio measured, ratio allowed) of each measurement."""
    slow = slowness()
    whole = _placed(16, ANSWER_S, FILES)
    ideal = 16 * STEPS * ANSWER_S / WORKERS
    few, many = (_placed(count, 0.0, FILES) for count in (FEW, MANY))
    # what a run costs once counts for none of its tasks
    each = (many.cpu_s - few.cpu_s) / (MANY - FEW)
    large = _placed(WORKERS, 0.0, 100, base_mb=BASE_MB)
    return [
        (f"{WORKERS} workers, wall over ideal", whole.seconds / ideal, OF_IDEAL),
        (f"CPU s a task, {FILES} files", each, CPU_S * slow),
        (f"CPU a task, {MANY} over {FEW} tasks", many.cpu_s / MANY * FEW / few.cpu_s, FLAT),
        (f"MB of the driver, {BASE_MB} MB in the repository", large.driver_mb, DRIVER_MB),
    ]


def _placed(tasks: int, answer_s: float, files: int, *, base_mb: int = 0) -> _Cost:
    """Run so many tasks, each a group of its own."""
    quick = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=quick if quick.is_dir() else None) as folder:
        place = Path(folder)
        repo = _repository(place / "repo", tasks, files, base_mb)
        script = place / "script.toml"
        script.write_text(_turns(answer_s))
        words = [sys.executable, "-P", "-m", "tui", "run", "TASKS.md", "--on", "local"]
        words += ["--parallel", str(WORKERS), "--headless", "--yolo"]
        words += ["--practice-script", str(script)]
        env = {**os.environ, "HOLDFAST_HOME": str(place / "home")}
        before, began = os.times(), time.monotonic()
        driver = subprocess.Popen(
            words, cwd=repo, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        peak = 0.0
        while driver.poll() is None:
            peak = max(peak, _peak_mb(driver.pid))
            time.sleep(0.05)
        took, after = time.monotonic() - began, os.times()
        done = git(repo, "log", "--no-merges", "--format=%s").count("\n") - 1
        if driver.returncode or done != tasks:
            raise RuntimeError(f"{done} of {tasks} tasks, exit code {driver.returncode}")
    used = after.children_user + after.children_system
    return _Cost(took, used - before.children_user - before.children_system, peak)


def _repository(repo: Path, tasks: int, files: int, base_mb: int) -> Path:
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    git(repo, "config", "user.name", "Ann")
    git(repo, "config", "user.email", "ann@example.org")
    for number in range(files):
        path = repo / f"src{number // 100}" / f"module{number}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"VALUE = {number}\n")
    if base_mb:
        (repo / "large").write_bytes(os.urandom(base_mb << 20))
    (repo / "TASKS.md").write_text("".join(f"- [ ] task {n}\n" for n in range(tasks)))
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "first")
    time.sleep(1.1)  # or git reads all files at each look: they are as old as its index
    git(repo, "status")
    return repo


def _turns(answer_s: float) -> str:
    """The practice script of a task: each step but the last edits a file of the task's own."""
    made = ""
    for number in range(STEPS - 1):
        add = f"echo {number} >> made-by-$(basename $(dirname $PWD)).txt"
        tool = f'tools = [{{name = "run_command", input = {{command = "{add}"}}}}]\n'
        made += f'[[turn]]\ntext = "A step."\ndelay_s = {answer_s}\n{tool}'
    return made + f'[[turn]]\ntext = "Done."\ndelay_s = {answer_s}\n'


def _peak_mb(pid: int) -> float:
    with suppress(OSError, ValueError, IndexError):
        status = Path(f"/proc/{pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024
    return 0.0
