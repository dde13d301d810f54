"""Stores with somebody else's hooks, with words that make no sense, and out of reach for once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from tests.batch.cluster.test_workers_found_again import Cluster, Driving
from tests.batch.test_git import make_repo
from tests.support.clock import FakeClock
from tui.app.options.parser import parse
from tui.batch import command
from tui.batch.cluster.driver import PlacedRunner
from tui.batch.cluster.entry import TaskEntry
from tui.batch.cluster.lease import change, read_task, ref_of, refuse
from tui.batch.cluster.task_store import StoreError, TaskStore, whole_address
from tui.batch.cluster.waits import SharedWaits, fingerprint
from tui.batch.state import PlacedRun, RunFolder, RunState, TaskState
from tui.core.facts import Notice

REF = "refs/holdfast/tasks/R/00001"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TaskStore:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    made = TaskStore.at(str(tmp_path / "store.git"), tmp_path / "mirror")
    made.make()
    return made


def hostile(store: TaskStore, tmp_path: Path) -> tuple[Path, Path]:
    """A folder that names a store with a hook; returns it, and what the hook leaves."""
    assert store.move({REF: ("", store.commit(TaskEntry(key="00001").to_message()))})
    mark = tmp_path / "the hook ran"
    hook = Path(store.address) / "hooks" / "post-update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch '{mark}'\n")
    hook.chmod(0o700)
    repo = make_repo(tmp_path / "repo")
    placed = PlacedRun(run="R", store=store.address, on="local", keys={"00001": (0,)})
    task = TaskState(index=0, group="ungrouped", task="one")
    state = RunState(task_file="/x", sha256="0", started_at="2026", tasks=(task,), placed=placed)
    file = RunFolder(repo).state_file
    file.parent.mkdir(parents=True)
    file.write_bytes(msgspec.json.encode(state))
    return repo, mark


def test_a_folder_of_somebody_else_leads_to_no_store_of_theirs(
    store: TaskStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repo, mark = hostile(store, tmp_path)
    command.run(parse(["run", "-C", str(repo), "--reset"]))
    assert "never used from here" in capsys.readouterr().err
    assert not mark.exists()


def test_a_store_that_the_person_names_is_gone_to(
    store: TaskStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repo, mark = hostile(store, tmp_path)
    command.run(parse(["run", "-C", str(repo), "--reset", "--store", store.address]))
    assert "are cancelled" in capsys.readouterr().err
    assert not mark.exists(), "git's plumbing runs no hook of a store on this machine"


def test_no_address_is_an_option_of_git() -> None:
    with pytest.raises(StoreError, match="no address"):
        whole_address("--upload-pack=touch x:y")


def test_waits_that_make_no_sense_are_passed_over(store: TaskStore) -> None:
    ref = f"refs/holdfast/waits/R/{fingerprint('R', 'key')}"
    assert store.move({ref: ("", store.commit("x\n\n{oops"))})
    waits = SharedWaits(store, "R", "key", FakeClock())
    waits.read()
    assert waits.remaining_s("m") == 0
    waits.tell("m", 30.0)
    assert waits.remaining_s("m") == 30


async def test_a_driver_outlives_a_store_that_goes_as_it_begins_to_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    repo = make_repo(tmp_path / "repo")
    driving, engine = Driving(repo, tmp_path), Cluster(lambda: None)
    await driving.drive(engine, PlacedRunner.leave)
    engine.living.clear()
    real, gone = TaskStore.fetch, list[str]()

    def fetch(self: TaskStore, refs: Mapping[str, str]) -> None:
        if not gone:
            gone.append("once")
            raise StoreError("the connection was closed")
        real(self, refs)

    monkeypatch.setattr(TaskStore, "fetch", fetch)
    await driving.drive(engine, PlacedRunner.stop)
    assert gone


@dataclass
class HalfBad(Cluster):
    """Machines that refuse each task but one, which a worker has just taken."""

    store: TaskStore | None = None

    def put(self, commands: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
        assert self.store
        for key, words in commands.items():
            ref = ref_of(words[1].partition("/")[0], key)
            if key == "00001":
                change(self.store, ref, read_task(self.store, ref), state="running", attempt=1)
            else:
                refuse(self.store, ref, "another version")
        return super().put(commands)


async def test_machines_that_refuse_do_not_end_what_others_have_just_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    driving = Driving(make_repo(tmp_path / "repo"), tmp_path)
    (driving.repo / "TASKS.md").write_text("- [ ] one\n- [ ] two\n- [ ] three\n- [ ] four\n")
    store = TaskStore.at(str(tmp_path / "store.git"), tmp_path / "mirror")
    engine = HalfBad(lambda: None, store=store)
    await driving.drive(engine, PlacedRunner.leave)
    assert not engine.cancelled
    said = " ".join(event.text for event in driving.events if isinstance(event, Notice))
    assert "can't take tasks of this run: another version" in said
