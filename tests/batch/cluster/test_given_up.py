"""Groups that are given up: what they had done before is taken, and the rest has failed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from tests.batch.cluster.test_workers_found_again import Cluster, Driving
from tests.batch.test_git import git, head, make_repo
from tests.support.agents import events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.batch.cluster.driver import PlacedRunner
from tui.batch.cluster.lease import LOSSES, Lease, LeasePace, StoredTask, lost, read_task, ref_of
from tui.batch.cluster.run_spec import spec_of
from tui.batch.cluster.task_store import RUNS, TaskStore
from tui.batch.cluster.workplace import Workplace
from tui.batch.events import TaskFinished
from tui.batch.git import RUNNING
from tui.batch.state import RunState
from tui.core.clock import SystemClock
from tui.core.output_store import open_full_copy
from tui.core.paths import folders
from tui.session import catalog, chain_check
from tui.session.reader import read
from tui.session.session import Session

OUTPUT = "tool-results/0a1b2c.txt"


@dataclass
class Holder:
    """Hears nothing of its lease."""

    def lose(self) -> None: ...

    def poll(self) -> None: ...


@dataclass
class Deadly(Cluster):
    """An engine whose workers finish the first task of a group, `done`, and die with the second;
    not `done`, they die at once. They work in `place`."""

    place: Path = field(default_factory=Path)
    address: str = ""
    done: bool = True

    def put(self, commands: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
        for words in commands.values():
            run, _, key = words[1].partition("/")
            store = TaskStore.at(self.address, self.place)
            ref, clock = ref_of(run, key), SystemClock()
            for _ in range(LOSSES):
                lease = Lease(store, ref, LeasePace(1e6), clock, Holder())
                found = lease.take(str(self.place / "task"))
                if found and self.done and not found.entry.head:
                    self._work(store, lease, run, found)
                assert lost(store, ref, read_task(store, ref), "the worker was gone")
        return super().put(commands)

    def _work(self, store: TaskStore, lease: Lease, run: str, found: StoredTask) -> None:
        ref = f"{RUNS}{run}"
        commit = store.refs(ref)[ref]
        store.fetch({ref: commit})
        workplace = Workplace(self.place / "task", spec_of(store.message(commit)))
        workplace.make(store, commit, found.commit, found.entry)
        id_ = asyncio.run(self._session(workplace))
        top = workplace.top
        (top / "made.txt").write_text("one\n")
        git(top, "add", "made.txt")
        git(top, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "one")
        change = head(top)
        git(top, "update-ref", RUNNING, change)
        (top / "half.txt").write_text("half\n")
        private = workplace.target / ".holdfast"
        (private / OUTPUT).parent.mkdir(exist_ok=True)
        (private / OUTPUT).write_text("all of it")
        (private / "run" / "logs").mkdir()
        (private / "run" / "logs" / "001-1.log").write_text("said\n")
        file = private / "run" / "state.json"
        state = msgspec.json.decode(file.read_bytes(), type=RunState)
        one, two, three = state.tasks
        known = {"session_id": id_, "attempts": 1, "cost_usd": 0.25}
        one = msgspec.structs.replace(one, status="completed", change=change, **known)
        two = msgspec.structs.replace(two, status="running", session_id=id_, attempts=1)
        ended = msgspec.structs.replace(state, tasks=(one, two, three))
        file.write_bytes(msgspec.json.encode(ended))
        lease.put(workplace.snapshot(store), requests=1, spent_usd=1.0)

    async def _session(self, workplace: Workplace) -> str:
        """Make the group's session, with a full output in it. Returns its id."""
        target, home = workplace.target, workplace.folders(folders())
        session = Session.create(target, folders=home, clock=SystemClock())
        named = call("run_command", "toolu_1", command=f"cat {target}/.holdfast/{OUTPUT}")
        agent = make_agent(target, ScriptedProvider([named], say("one is done")), session=session)
        await events_of(agent, "one")
        await agent.close()
        return session.id


@pytest.fixture
def driving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Driving:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    repo = make_repo(tmp_path / "repo")
    (repo / "TASKS.md").write_text("## g\n- [ ] one\n- [ ] two\n- [ ] three\n")
    return Driving(repo, tmp_path)


def engine(driving: Driving, *, done: bool) -> Deadly:
    place = Path(os.path.realpath(driving.folder)) / "elsewhere"
    address = str(driving.folder / "store.git")
    return Deadly(lambda: None, place=place, address=address, done=done)


def finished(driving: Driving) -> list[TaskFinished]:
    return [event for event in driving.events if isinstance(event, TaskFinished)]


async def test_what_a_group_had_done_before_it_was_given_up_is_taken(driving: Driving) -> None:
    repo = driving.repo
    await driving.drive(engine(driving, done=True), PlacedRunner.leave)
    one, two, three = finished(driving)
    assert (repo / "made.txt").read_text() == "one\n"
    assert (repo / "TASKS.md").read_text().count("[x]") == 1
    assert [one.status, two.status, three.status] == ["unmerged", "failed", "failed"]
    assert "3 workers were lost" in two.message
    assert (one.cost_usd, two.cost_usd, three.cost_usd) == (0.25, 0.75, None)
    assert two.change
    assert git(repo, "show", f"{two.change}:half.txt") == "half\n"
    assert not (repo / "half.txt").exists()
    assert (repo / ".holdfast" / "run" / "logs" / "001-1.log").read_text() == "said\n"
    (path,) = catalog.files(folders(), repo)
    assert chain_check.verify(path).linked
    records = read(path)
    assert any("one is done" in str(record.data) for record in records.records)
    named = Path(records.header.cwd) / ".holdfast" / OUTPUT
    with os.fdopen(open_full_copy(named, repo), "rb") as output:
        assert output.read() == b"all of it"


async def test_a_group_that_is_given_up_before_its_first_request_has_failed(
    driving: Driving,
) -> None:
    await driving.drive(engine(driving, done=False), PlacedRunner.leave)
    assert [event.status for event in finished(driving)] == ["failed"] * 3
    assert [event.attempts for event in finished(driving)] == [LOSSES, 0, 0]
    assert not catalog.files(folders(), driving.repo)
