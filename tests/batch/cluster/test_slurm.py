"""Slurm as an engine, with stand-ins for its commands that say what the real ones have said
(`seen/slurm.toml`). A script beside this, `real/slurm.sh`, runs tasks on the real ones.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.clock import FakeClock
from tui.batch.cluster.engines.port import EngineError
from tui.batch.cluster.engines.slurm import SlurmEngine, slots_of

SEEN = {
    one["name"]: one
    for one in tomllib.loads((Path(__file__).parent / "seen" / "slurm.toml").read_text())["seen"]
}
RUN = "20261129T230100-ab12cd"
STANDS_IN = """#!/bin/sh
name=${0##*/}
printf '%s\\n' "$name $*" >>"$0.calls"
[ "$name" = sbatch ] && cat >"$0.script" && env >"$0.env"
cat "$0.out"; cat "$0.err" >&2; exit $(cat "$0.exit")
"""


class Programs:
    """Slurm's commands in a folder, each of which says what it is told to say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        for program in ("sbatch", "squeue", "sacct", "scancel", "sinfo"):
            place = folder / program
            place.write_text(STANDS_IN)
            place.chmod(0o755)
            self.say(program)
        self.seen("no accounts")

    def say(self, program: str, out: str = "", err: str = "", code: int = 0) -> None:
        for kind, text in (("out", out), ("err", err), ("exit", str(code))):
            (self.folder / f"{program}.{kind}").write_text(text)

    def seen(self, name: str, changed: Callable[[str], str] = str) -> None:
        """Say what the real one said, with a part of it changed."""
        one: dict[str, Any] = SEEN[name]
        self.say(one["argv"][0], changed(one["out"]), one["err"], one["exit"])

    def calls(self, program: str) -> list[str]:
        place = self.folder / f"{program}.calls"
        return place.read_text().splitlines() if place.exists() else []

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    programs = Programs(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{programs.folder}:/usr/bin:/bin")
    monkeypatch.delenv("SBATCH_PARTITION", raising=False)
    return programs


@pytest.fixture
def engine(slurm: Programs, tmp_path: Path) -> SlurmEngine:
    return SlurmEngine(slots=4, logs=tmp_path / "logs", clock=FakeClock())


def work(*numbers: int) -> dict[str, list[str]]:
    return {
        f"{number:05}": ["work", f"{RUN}/{number:05}", "--store", "/s t/x.git"]
        for number in numbers
    }


def handles(*numbers: int) -> list[str]:
    return [f"{RUN}/{number:05}" for number in numbers]


def test_tasks_become_one_array_and_each_element_works_on_its_task(
    slurm: Programs, engine: SlurmEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    slurm.seen("an array is taken")
    python = tmp_path / "the python"
    python.write_text('#!/bin/sh\nfor word; do echo "<$word>"; done\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))

    assert engine.put(work(1, 4, 6)) == dict(zip(work(1, 4, 6), handles(1, 4, 6), strict=True))

    (call,) = slurm.calls("sbatch")
    assert f"--job-name=holdfast-{RUN}.0 --array=1,4,6 " in call
    subprocess.run(
        ["bash", "-l"],
        input=slurm.read("sbatch.script").encode(),
        env={"SLURM_ARRAY_TASK_ID": "4", "HOME": str(tmp_path), "PATH": os.defpath},
        check=True,
    )
    said = "".join(f"<{word}>\n" for word in ["-P", "-m", "tui", *work(4)["00004"]])
    assert engine.fetch(handles(4)[0]) == said
    assert engine.fetch(handles(1)[0]) == ""


def test_a_log_folder_that_the_node_lacks_is_no_reason_not_to_work(
    slurm: Programs, engine: SlurmEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "executable", "/bin/echo")
    engine.put(work(2))
    (tmp_path / "logs").rmdir()
    done = subprocess.run(
        ["bash", "-l"],
        input=slurm.read("sbatch.script").encode(),
        env={"SLURM_ARRAY_TASK_ID": "2", "HOME": str(tmp_path), "PATH": os.defpath},
        check=True,
        capture_output=True,
    )
    assert done.stdout.decode().startswith(f"-P -m tui work {RUN}/00002")


def test_keys_do_not_travel(slurm: Programs, engine: SlurmEngine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.setenv("SBATCH_TIMELIMIT", "08:00:00")
    engine.put(work(1))
    environ = slurm.read("sbatch.env")
    assert "SBATCH_TIMELIMIT=08:00:00" in environ
    assert "sk-secret" not in environ + slurm.read("sbatch.script") + slurm.calls("sbatch")[0]


def test_a_task_that_has_a_job_gets_no_second_one(slurm: Programs, engine: SlurmEngine):
    slurm.seen("two were cancelled")  # 1 and 3 run, 4 and 5 wait, 2 is cancelled
    taken = engine.put(work(1, 2, 3, 4, 5))
    assert list(taken.values()) == handles(1, 2, 3, 4, 5)
    assert [re.findall(r"--array=(\S+)", call) for call in slurm.calls("sbatch")] == [["2"]]


def test_a_task_whose_jobs_all_fail_waits_and_the_others_go_on(
    slurm: Programs, engine: SlurmEngine
):
    failed = SEEN["one failed, the rest were cancelled"]["out"].splitlines()[6]
    assert failed == f"15_7|holdfast-{RUN}.0|FAILED|NonZeroExitCode"
    slurm.say("squeue", "".join(f"{n}{failed[2:]}\n" for n in range(20, 24)))
    assert [*engine.put(work(7))] == ["00007"]
    slurm.say("squeue", "".join(f"{n}{failed[2:]}\n" for n in range(20, 25)))
    assert [*engine.put(work(7, 8))] == ["00008"]
    with pytest.raises(EngineError, match=r"24_7 by NonZeroExitCode; it waits") as caught:
        engine.put(work(7))
    assert str(engine.logs) in caught.value.hint
    assert [re.findall(r"--array=(\S+)", call) for call in slurm.calls("sbatch")] == [["7"], ["8"]]


def test_tasks_above_a_thousand_are_in_arrays_that_slurm_takes(
    slurm: Programs, engine: SlurmEngine
):
    engine.put(work(7, 999, 1000, 2345))
    found = [re.findall(r"\.(\d) --array=(\S+)", call)[0] for call in slurm.calls("sbatch")]
    assert found == [("0", "7,999"), ("1", "0"), ("2", "345")]
    slurm.say("squeue", f"8_345|holdfast-{RUN}.2|RUNNING|None\n")
    other = SlurmEngine(slots=4, logs=engine.logs)
    assert other.watch(handles(345, 2345)) == {
        handles(345)[0]: "unknown",
        handles(2345)[0]: "lives",
    }


@pytest.mark.parametrize(
    ("listed", "lives"),
    [
        ("four of six run", ["lives", "lives", "waits", "waits", "waits", "waits", "unknown"]),
        ("two were cancelled", ["lives", "ended", "lives", "waits", "waits", "unknown", "unknown"]),
        (
            "one was requeued and held",
            ["lives", "ended", "waits", "lives", "waits", "unknown", "unknown"],
        ),
        (
            "one is suspended there",
            ["lives", "ended", "waits", "lives", "lives", "unknown", "unknown"],
        ),
        ("one failed, the rest were cancelled", [*["ended"] * 5, "unknown", "ended"]),
    ],
)
def test_what_slurm_lists_says_which_workers_live(
    slurm: Programs, engine: SlurmEngine, listed: str, lives: list[str]
):
    slurm.seen(listed)
    assert [*engine.watch(handles(1, 2, 3, 4, 5, 6, 7)).values()] == lives


def test_the_accounts_know_jobs_that_the_controller_has_forgotten(
    slurm: Programs, engine: SlurmEngine
):
    slurm.seen("the controller forgets those that ended")
    slurm.seen("the accounts have them")
    assert engine.watch(handles(1, 2, 3, 7, 9)) == dict(
        zip(handles(1, 2, 3, 7, 9), ["lives", "ended", "lives", "ended", "unknown"], strict=True)
    )
    assert f"--name=holdfast-{RUN}.0" in slurm.calls("sacct")[0]


def test_a_job_that_runs_by_the_accounts_alone_is_unknown(slurm: Programs, engine: SlurmEngine):
    slurm.seen("the accounts have them")
    assert [*engine.watch(handles(1, 2)).values()] == ["unknown", "ended"]


def test_a_state_that_is_new_is_unknown_and_shown_and_its_job_is_kept(
    slurm: Programs, engine: SlurmEngine
):
    slurm.seen("four of six run", lambda said: said.replace("RUNNING|None", "POWERING|Odd"))
    assert [*engine.watch(handles(1, 3)).values()] == ["unknown", "waits"]
    assert engine.fetch(handles(1)[0]) == "Slurm has job 10_1 as POWERING, Odd.\n"
    engine.put(work(1))
    assert slurm.calls("sbatch") == []


def test_of_two_jobs_of_a_task_the_one_that_lives_counts(slurm: Programs, engine: SlurmEngine):
    listed = SEEN["one failed, the rest were cancelled"]["out"]
    slurm.say("squeue", f"{listed}21_1|holdfast-{RUN}.0|PENDING|Priority\n")
    assert [*engine.watch(handles(1, 2)).values()] == ["waits", "ended"]


def test_slurm_is_asked_for_its_jobs_every_ten_seconds_at_most(slurm: Programs, tmp_path: Path):
    clock = FakeClock()
    engine = SlurmEngine(slots=4, logs=tmp_path / "logs", clock=clock)
    engine.watch(handles(1))
    clock.elapsed += 9.9
    engine.watch(handles(1))
    assert len(slurm.calls("squeue")) == 1
    clock.elapsed += 0.1
    engine.watch(handles(1))
    assert len(slurm.calls("squeue")) == 2


def test_a_job_that_was_put_is_looked_for_at_once(slurm: Programs, engine: SlurmEngine):
    assert [*engine.watch(handles(1)).values()] == ["unknown"]
    engine.put(work(1))
    slurm.seen("four of six run")
    assert [*engine.watch(handles(1)).values()] == ["lives"]


def test_cancelling_ends_the_jobs_that_have_not_ended(slurm: Programs, engine: SlurmEngine):
    slurm.seen("two were cancelled")
    engine.cancel(handles(1, 2, 4))
    assert slurm.calls("scancel") == ["scancel 10_1 10_4"]
    slurm.seen("one failed, the rest were cancelled")
    engine.cancel(handles(1, 2, 4))
    assert len(slurm.calls("scancel")) == 1


def test_closing_ends_no_job(slurm: Programs, engine: SlurmEngine):
    slurm.seen("four of six run")
    engine.put(work(1))
    engine.close()
    assert slurm.calls("scancel") == []
    assert engine.outlives


@pytest.mark.parametrize(
    ("seen", "said", "hint"),
    [
        ("the partition is refused", "Invalid partition name", "SBATCH_PARTITION"),
        ("the index is refused", "Invalid job array", "MaxArraySize"),
        ("the controller is gone", "Unable to contact slurm controller", "scontrol ping"),
        ("munge is gone", "Munge encode failed", "munged"),
    ],
)
def test_what_slurm_refuses_is_said_with_what_to_do(
    slurm: Programs, engine: SlurmEngine, seen: str, said: str, hint: str
):
    slurm.seen(seen)
    with pytest.raises(EngineError) as caught:
        engine.put(work(1))
    assert said in caught.value.message
    assert hint in caught.value.hint


def test_a_machine_without_slurm_says_so(
    slurm: Programs, engine: SlurmEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError, match="This machine has no squeue"):
        engine.watch(handles(1))


def test_as_many_jobs_as_the_partition_has_free_processors(
    slurm: Programs, monkeypatch: pytest.MonkeyPatch
):
    slurm.seen("processors are free")
    assert slots_of(1) == 2
    slurm.seen("no processor is free")
    assert slots_of(1) == 1
    slurm.seen("processors are free", lambda said: said.replace("2/2/0/4", "0/4096/0/4096"))
    assert slots_of(1) == 64
    slurm.seen("processors are free", lambda said: f"{said}gpu|0/9/0/9\n")
    assert slots_of(1) == 2
    monkeypatch.setenv("SBATCH_PARTITION", "gpu")
    slurm.say("sinfo", "gpu|0/9/0/9\n")
    assert slots_of(1) == 9
    assert slurm.calls("sinfo")[-1].endswith("-p gpu")
    slurm.say("sinfo", code=1)
    assert slots_of(7) == 7


def test_a_driver_that_starts_again_counts_its_own_jobs_as_free(slurm: Programs):
    slurm.seen("no processor is free")
    slurm.seen("four of six run")  # two are of this run, one of another
    assert slots_of(1) == 3
