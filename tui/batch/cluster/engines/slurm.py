"""Slurm as an engine: each worker is a job, by Slurm's own commands. Blocks.

A job is found again by its name, so a driver that starts again knows the jobs of the one before:
`holdfast-RUN.B` is an array whose element I works on task B * 1000 + I.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tui.batch.cluster.engines.port import EngineError, Life
from tui.core.clock import Clock, SystemClock
from tui.core.dataclass import dataclass, field
from tui.core.errors import os_error_as
from tui.core.text_cleaning import one_line
from tui.core.workspace import safe_search_path

_PREFIX: Final = "holdfast-"
_BLOCK: Final = 1000
"""Elements of an array; Slurm takes one more where nobody has changed its MaxArraySize."""
_MOST: Final = 64
"""Jobs at a time where the person names no number."""
_LOOK_S: Final = 10.0
"""Seconds for which a list of jobs is used again: the controller serves the whole cluster."""
_VAIN: Final = 5
"""Failed jobs of a task, as far as Slurm still lists them, after which it gets no other for now:
where Python is missing, each job ends at once. Slurm lists a job for five minutes or so."""
_PATIENCE_S: Final = 60.0
_SHOWN: Final = 4000
_STATES: Final[Mapping[Life, str]] = {
    "lives": "RUNNING COMPLETING RESIZING SIGNALING STAGE_OUT STOPPED SUSPENDED",
    "waits": "CONFIGURING PENDING REQUEUED REQUEUE_FED REQUEUE_HOLD RESV_DEL_HOLD SPECIAL_EXIT",
    "ended": "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED"
    " REVOKED TIMEOUT",
}
"""Slurm's states of a job; one that is new to us is `unknown`."""
_LIFE_OF: Final[Mapping[str, Life]] = {
    state: life for life, states in _STATES.items() for state in states.split()
}
_ORDER: Final[Sequence[Life]] = ("lives", "waits", "unknown", "ended")
_SAME_THERE: Final = frozenset(
    {"HOLDFAST_HOME", "HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TZ", "USER"}
)
"""Variables that a job gets from here, beside Slurm's own. No other: keys don't travel, and Slurm
would keep them in its files."""
_AGAIN: Final = "`scontrol ping` says if its controller is up; the jobs run on without it."
_JOB_HINT: Final = "Slurm's own variables set what a job asks for: export SBATCH_TIMELIMIT=08:00:00"
_HINTS: Final = {
    "Unable to contact slurm controller": _AGAIN,
    "unge": "munged, which signs for Slurm, must run on this machine.",
    "account": "Name one of yours: export SBATCH_ACCOUNT=NAME",
    "partition": "Name one that `sinfo` lists: export SBATCH_PARTITION=NAME",
    "array": "Slurm's MaxArraySize has to be 1000 or more.",
}


@dataclass(frozen=True, slots=True)
class _Job:
    """A job as Slurm lists it."""

    number: str
    state: str
    reason: str

    @property
    def life(self) -> Life:
        return _LIFE_OF.get(self.state, "unknown")


@dataclass(slots=True)
class SlurmEngine:
    """Starts workers as Slurm's jobs, `slots` at a time. `logs` takes what they print, where the
    nodes see that folder. A handle is RUN/TASK."""

    slots: int
    logs: Path
    clock: Clock = field(default_factory=SystemClock)
    name: str = "slurm"
    outlives: bool = True
    look_s: float = 2.0
    _known: dict[str, list[_Job]] = field(default_factory=dict[str, list[_Job]])
    _old_at: float | None = None

    def put(self, commands: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
        handles: dict[str, str] = {}
        vain: list[_Job] = []
        arrays: dict[str, dict[int, Sequence[str]]] = {}
        jobs = self._jobs()
        for key, words in commands.items():
            mine = jobs.get(words[1], [])
            failed = [job for job in mine if job.state == "FAILED"]
            if all(job.life == "ended" for job in mine):
                if len(failed) >= _VAIN:
                    vain.append(failed[-1])
                    continue
                name, index = _element(words[1])
                arrays.setdefault(name, {})[index] = words
            handles[key] = words[1]
        if vain and not handles:
            raise EngineError(
                f"The last {_VAIN} jobs of a task failed, {vain[-1].number} by {vain[-1].reason}; "
                "it waits a few minutes.",
                hint=f"See {self.logs}, or `scontrol show job {vain[-1].number}`.",
            )
        with os_error_as(EngineError, f"Can't make {self.logs}"):
            self.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, elements in arrays.items():
            self._old_at = None
            chosen = ",".join(str(index) for index in sorted(elements))
            _run(
                "sbatch", "--parsable", f"--job-name={name}", f"--array={chosen}", "--nodes=1",
                "--ntasks=1", "--requeue", "--export=ALL", "--chdir=/", "--output=/dev/null",
                stdin=self._script(elements),
            )  # fmt: skip
        return handles

    def watch(self, handles: Collection[str]) -> Mapping[str, Life]:
        jobs = self._jobs() if handles else {}
        lives: dict[str, Life] = {handle: _life(jobs.get(handle, ())) for handle in handles}
        forgotten = [handle for handle in handles if handle not in jobs]
        if forgotten:
            past = _accounted(forgotten)
            for handle in forgotten:
                # whatever else the accounts say of it, the controller knows no such job
                lives[handle] = "ended" if _life(past.get(handle, ())) == "ended" else "unknown"
        return lives

    def fetch(self, handle: str) -> str:
        said = [
            f"Slurm has job {job.number} as {job.state}, {job.reason}.\n"
            for job in self._jobs().get(handle, ())
            if job.life != "ended"
        ]
        with suppress(OSError):
            said.append(self._log(handle).read_text("utf-8", "replace")[-_SHOWN:])
        return "".join(said)

    def cancel(self, handles: Collection[str]) -> None:
        self._old_at = None
        jobs = self._jobs() if handles else {}
        numbers = [
            job.number
            for handle in handles
            for job in jobs.get(handle, ())
            if job.life != "ended"
        ]  # fmt: skip
        if numbers:
            self._old_at = None
            _run("scancel", *numbers)

    def close(self) -> None:
        """Leave the jobs to Slurm."""

    def _jobs(self) -> dict[str, list[_Job]]:
        """The jobs of this person by their handles, as listed a few seconds ago at most."""
        if self._old_at is None or self.clock.monotonic() >= self._old_at:
            self._known = _listed()
            self._old_at = self.clock.monotonic() + _LOOK_S
        return self._known

    def _script(self, elements: Mapping[int, Sequence[str]]) -> str:
        """The script of an array. It logs in, as keys and proxies may be set there."""
        cases = [
            f"{index}) log={shlex.quote(str(self._log(words[1])))}; set -- {shlex.join(words)};;"
            for index, words in sorted(elements.items())
        ]
        python = shlex.join([sys.executable, "-P", "-m", "tui"])
        return "\n".join(
            [
                "#!/bin/bash -l",
                "case $SLURM_ARRAY_TASK_ID in",
                *cases,
                "esac",
                '[ -w "${log%/*}" ] && exec >>"$log" 2>&1',
                f'exec {python} "$@"',
                "",
            ]
        )

    def _log(self, handle: str) -> Path:
        return self.logs / f"worker-{handle.rpartition('/')[2]}.log"


def slots_of(parallel: int) -> int:
    """Jobs at a time: as many as the person wants, else as the partition has free processors now,
    those of our own jobs included, which an earlier driver may have put. Raises EngineError."""
    if parallel > 1:
        return parallel
    named = os.environ.get("SBATCH_PARTITION", "")
    listed = _run("sinfo", "-h", "-o", "%P|%C", *(["-p", named] if named else []))
    free = sum(_life(jobs) == "lives" for jobs in _listed().values())
    for line in listed.splitlines():
        partition, _, processors = line.partition("|")
        if named or partition.endswith("*"):
            with suppress(ValueError, IndexError):
                free += int(processors.split("/")[1])
    return max(1, min(free, _MOST))


def _element(handle: str) -> tuple[str, int]:
    """The name of the array of a task, and its place there."""
    run, _, key = handle.partition("/")
    block, index = divmod(int(key), _BLOCK)
    return f"{_PREFIX}{run}.{block}", index


def _handle(name: str, number: str) -> str | None:
    """The handle of the job of a name and number, None where it's none of ours."""
    run, _, block = name.removeprefix(_PREFIX).rpartition(".")
    index = number.partition("_")[2]
    if not (name.startswith(_PREFIX) and block.isdecimal() and index.isdecimal()):
        return None
    return f"{run}/{int(block) * _BLOCK + int(index):05}"


def _listed() -> dict[str, list[_Job]]:
    """The jobs of this person's runs, by their handles."""
    words = ("-h", "-r", "-t", "all", "-u", str(os.getuid()), "-o", "%i|%j|%T|%r")
    return _by_handle(_run("squeue", *words).splitlines())


def _by_handle(lines: Iterable[str]) -> dict[str, list[_Job]]:
    jobs: dict[str, list[_Job]] = {}
    for line in lines:
        number, name, state, *reason = [*line.split("|", 3), "", ""][:4]
        if handle := _handle(name, number):
            # "CANCELLED by 1000", as the accounts have it
            job = _Job(number, state.partition(" ")[0], one_line("".join(reason))[:80])
            jobs.setdefault(handle, []).append(job)
    return jobs


def _life(jobs: Iterable[_Job]) -> Life:
    """The life of a task's worker: an earlier job of the task may be listed, too."""
    lives = {job.life for job in jobs}
    for life in _ORDER:
        if life in lives:
            return life
    return "unknown"


def _accounted(handles: Collection[str]) -> dict[str, list[_Job]]:
    """The states in Slurm's accounts of jobs that its controller has forgotten; nothing where there
    are no accounts."""
    names = ",".join(sorted({_element(handle)[0] for handle in handles}))
    words = ("-n", "-P", "-X", "-S", "now-14days", "-o", "JobID,JobName,State", f"--name={names}")
    with suppress(EngineError):
        return _by_handle(_run("sacct", *words).splitlines())
    return {}


def _run(program: str, *words: str, stdin: str = "") -> str:
    """Run a command of Slurm's and return what it prints. Raises EngineError."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if name in _SAME_THERE or name.startswith(("SBATCH_", "SLURM_"))
    }
    environ["PATH"] = safe_search_path(environ.get("PATH", os.defpath))
    try:
        done = subprocess.run(
            [program, *words], input=stdin, capture_output=True, check=False, encoding="utf-8",
            errors="replace", env=environ, cwd="/", timeout=_PATIENCE_S,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise EngineError(
            f"This machine has no {program}.", hint="Start the run where Slurm's commands are."
        ) from error
    except subprocess.TimeoutExpired as error:
        raise EngineError(f"Slurm's {program} doesn't answer.", hint=_AGAIN) from error
    except OSError as error:
        raise EngineError(f"Can't run {program}: {error.strerror or error}.") from error
    if done.returncode:
        said = one_line(done.stderr)[:300] or f"exit {done.returncode}"
        usual = _JOB_HINT if program == "sbatch" else ""
        hint = next((hint for part, hint in _HINTS.items() if part in said), usual)
        raise EngineError(f"Slurm's {program} failed: {said}", hint=hint)
    return done.stdout
