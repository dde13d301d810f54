"""Checks of a run under faults at its end: they hold whatever happened to it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tests.batch.cluster.real import processes
from tests.batch.cluster.real.model import ANSWERS, STEPS, Asked, task_name
from tests.batch.cluster.real.scene import DRIVERS_KEY, MACHINES_KEY, git
from tests.batch.cluster.real.trial import Trial
from tui.app.options.arguments import Options
from tui.batch.cluster.entry import TaskEntry, entry_of
from tui.batch.cluster.task_store import TASKS
from tui.cli import session_verify


class Paid(NamedTuple):
    """Answers that were paid and lost: how many, and the money that the store reserves for them."""

    answers: int
    usd: float


def commits(trial: Trial) -> None:
    """Each task has one commit, is merged once, and its file has each step once."""
    given, repo = trial.given, trial.scene.repo
    wanted = {task_name(one) for one in range(1, given.tasks + 1) if one != given.killer}
    subjects = Counter(git(repo, "log", "--no-merges", "--format=%s").splitlines())
    lost = sorted(wanted - subjects.keys())
    twice = sorted(one for one, count in subjects.items() if count > 1)
    odd = sorted(subjects.keys() - wanted - {"base"})
    trial.expect(not lost, f"{len(lost)} lost: {lost[:5]}")
    trial.expect(not twice, f"{len(twice)} committed twice: {twice[:5]}")
    trial.expect(not odd, f"commits that nobody asked for: {odd[:5]}")
    merges = Counter(git(repo, "log", "--merges", "--format=%s").splitlines())
    again = sorted(one for one, count in merges.items() if count > 1)
    trial.expect(not again, f"{len(again)} merged twice: {again[:5]}")
    steps = [str(step) for step in range(1, STEPS + 1)]
    wrong: dict[str, list[str]] = {}
    for name in wanted:
        file = repo / "made" / f"{name[-4:]}.txt"
        made = file.read_text().split() if file.exists() else []
        if made != steps:
            wrong[name] = made
    trial.expect(not wrong, f"{len(wrong)} files with other steps: {[*wrong.items()][:3]}")


def states(trial: Trial) -> None:
    """The run's own state, and what it said, are true."""
    file = trial.scene.repo / ".holdfast" / "run" / "state.json"
    state: dict[str, Any] = json.loads(file.read_bytes())
    killer = trial.given.killer
    for task in state["tasks"]:
        number, status = task["index"] + 1, task["status"]
        if number == killer:
            message = str(task.get("message"))
            is_so = status == "failed" and "Given up" in message
            trial.expect(is_so, f"the task that kills its workers is {status}: {message}")
        else:
            trial.expect(status == "completed", f"task {number} is {status}: {task.get('message')}")
    trial.expect(state.get("placed") is None, "the run is noted as placed still")
    row = re.search(rf"^ *{killer} +failed .*", trial.driver.text, re.MULTILINE)
    trial.expect(row or not killer, "the summary doesn't name the task given up")


def history(trial: Trial) -> dict[str, TaskEntry]:
    """Each task was finished once, and had one holder at a time. Returns the last states."""
    last: dict[str, TaskEntry] = {}
    refs = git(trial.engine.repository, "for-each-ref", "--format=%(refname)", TASKS).split()
    for ref in refs:
        key = ref.rpartition("/")[2]
        words = ("log", "--first-parent", "--reverse", "--format=%B%x00", ref)
        said = git(trial.engine.repository, *words)
        entries = [entry_of(part.strip("\n")) for part in said.split("\0") if part.strip("\n")]
        last[key] = entries[-1]
        for problem in problems_of(entries):
            trial.expect(False, f"{key}: {problem}")
        wanted = "given_up" if int(key) == trial.given.killer else "done"
        trial.expect(last[key].state == wanted, f"{key} is {last[key].state} in the store")
    trial.expect(len(last) == trial.given.tasks, f"{len(last)} tasks in the store")
    return last


def problems_of(entries: Sequence[TaskEntry]) -> Iterator[str]:
    """Say what is wrong in the history of one task."""
    over = sum(one.is_over for one in entries)
    if over != 1:
        yield f"finished {over} times"
    past: set[str] = set()
    for before, now in pairwise(entries):
        if now.number != before.number + 1:
            yield f"state {now.number} after {before.number}"
        if now.holder != before.holder:
            if before.holder and now.holder:
                yield f"holder {before.holder} is followed by {now.holder}"
            past.add(before.holder)
        if now.holder and now.holder in past:
            yield f"holder {now.holder} is back"


def requests(trial: Trial, last: Mapping[str, TaskEntry]) -> Paid:
    """No worker asked for a task after another one did, and each lost one answer at most, which
    is counted. Returns what was lost."""
    asked: defaultdict[int, list[Asked]] = defaultdict(list)
    for one in trial.model.asked:
        asked[one.task].append(one)
    untouched = [one.spent_usd or 0.0 for one in last.values() if one.attempt == 1]
    answer_usd = median(untouched or [0.0]) / ANSWERS
    kept, lost = set(_answers(trial)), 0
    for task, mine in sorted(asked.items()):
        latest: list[str] = []
        for one in mine:
            trial.expect(one.process, f"task {task}: a request by nobody knows whom")
            if one.process in latest[:-1]:
                trial.expect(False, f"task {task}: {one.process} asked after another worker")
            elif one.process not in latest:
                latest.append(one.process)
        entry = last.get(f"{task:05}")
        if entry is None:
            trial.expect(False, f"requests of a task that isn't there: {task}")
            continue
        gone = Counter(one.process for one in mine if one.message not in kept)
        most = max(gone.values(), default=0)
        trial.expect(most <= 1, f"task {task}: one worker lost {most} answers")
        counted = (entry.spent_usd or 0.0) + entry.reserved_usd
        is_so = counted >= len(mine) * answer_usd * 0.999
        trial.expect(is_so, f"task {task}: ${counted} are counted for {len(mine)} requests")
        lost += gone.total()
    pairs = {one: s for one, s in trial.two_at_once.items() if s > trial.given.lease}
    trial.expect(not pairs, f"two live attempts for longer than the lease: {pairs}")
    return Paid(lost, sum(one.reserved_usd for one in last.values()))


def _answers(trial: Trial) -> Iterator[str]:
    """Yield the ids of the answers that the sessions here have."""
    for path in _session_files(trial):
        for line in path.read_bytes().splitlines():
            record: dict[str, Any] = json.loads(line)
            if record.get("type") == "assistant":
                yield str(record.get("message_id"))


def _session_files(trial: Trial) -> list[Path]:
    return sorted((trial.scene.home / "data" / "sessions").glob("*/*.jsonl"))


def sessions(trial: Trial) -> int:
    """Each task has a session here, and every one verifies. Returns how many there are."""
    os.environ["HOLDFAST_HOME"] = str(trial.scene.home)
    paths = _session_files(trial)
    bad: list[str] = []
    for path in paths:
        with contextlib.redirect_stdout(io.StringIO()) as said:
            code = session_verify.verify(Options(command="sessions", target=str(path), json=True))
        if code:
            bad.append(f"{path.name}: {said.getvalue()[:300]}")
    trial.expect(not bad, f"{len(bad)} sessions don't verify: {bad[:3]}")
    least = trial.given.tasks - bool(trial.given.killer)
    trial.expect(len(paths) >= least, f"{len(paths)} sessions of {least}")
    return len(paths)


def secrets(trial: Trial) -> None:
    """No key is in the store, and the driver's is nowhere where its engine keeps anything."""
    keys = [re.escape(one.encode()) for one in (DRIVERS_KEY, MACHINES_KEY)]
    pattern = re.compile(b"|".join(keys))
    words = ["git", "cat-file", "--batch", "--batch-all-objects", "--unordered"]
    with subprocess.Popen(words, cwd=trial.engine.repository, stdout=subprocess.PIPE) as all_of_it:
        assert all_of_it.stdout is not None
        end = b""
        while block := all_of_it.stdout.read(1 << 20):
            if pattern.search(end + block):
                trial.expect(False, "a key is in the store")
                break
            end = block[-100:]
    for folder in trial.engine.secret:
        for path in folder.rglob("*"):
            if path.is_file() and DRIVERS_KEY.encode() in path.read_bytes():
                trial.expect(False, f"the driver's key is in {path}")
    used = set(trial.model.keys)
    wanted = {trial.engine.worker_env["ANTHROPIC_API_KEY"]}
    trial.expect(used == wanted, f"requests came with other keys than the machines': {used}")


def nothing_left(trial: Trial) -> None:
    """The run leaves no process and no job, and the engine none when it has ended."""
    processes.until(lambda: not _of_run(), 60)
    own = [one.words for one in _of_run()]
    trial.expect(not own, f"processes of the run are left: {own[:3]}")
    jobs = [*trial.engine.jobs()]
    trial.expect(not jobs, f"jobs are left: {jobs[:3]}")
    trial.scene.daemons.end_all()
    processes.until(lambda: not _others(), 30)
    left = [one.words for one in _others()]
    trial.expect(not left, f"processes are left: {left[:3]}")


def _others() -> list[processes.Process]:
    """All that lives here beside the harness."""
    found = processes.every().values()
    return [one for one in found if one.pid != os.getpid() and one.state not in "ZX"]


def _of_run() -> list[processes.Process]:
    return [one for one in _others() if {"tui", "ssh", "git"} & {*one.words}]
