"""A worker that starts while its store can't be reached waits for it, and says so at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.clock import FakeClock
from tui.batch.cluster.reaching import UnreachableError, reached
from tui.batch.cluster.task_store import TASKS, StoreError, TaskStore

REF = f"{TASKS}run/00001"


@pytest.fixture
def store(tmp_path: Path) -> TaskStore:
    """A store over an ssh that fails while there is no file `up`."""
    ssh = tmp_path / "ssh"
    gone = "echo 'ssh: connect to host alpha: Connection refused' >&2; exit 255"
    ssh.write_text(
        f"#!/bin/sh\n[ -e {tmp_path}/up ] || {{ {gone}; }}\n"
        'while [ "$1" != alpha ]; do shift; done; shift; exec sh -c "$*"\n'
    )
    ssh.chmod(0o700)
    (tmp_path / "up").touch()
    TaskStore.at(str(tmp_path / "store.git"), tmp_path / "mirror").make()
    return TaskStore.at(f"alpha:{tmp_path}/store.git", tmp_path / "mirror")


@pytest.fixture(autouse=True)
def _ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_SSH_COMMAND", str(tmp_path / "ssh"))


class Healing(FakeClock):
    """A clock on which the network comes back after some sleeps."""

    def __init__(self, up: Path, sleeps: int) -> None:
        super().__init__()
        self.up, self.sleeps = up, sleeps

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        if len(self.slept) == self.sleeps:
            self.up.touch()


async def test_a_store_that_comes_back_is_waited_for(store: TaskStore, tmp_path: Path) -> None:
    (tmp_path / "up").unlink()
    clock = Healing(tmp_path / "up", 3)
    assert await reached(store.refs, clock) == {}
    assert clock.slept == [1.0, 2.0, 4.0]


async def test_after_a_lease_the_worker_says_from_where_it_is_out_of_reach(
    store: TaskStore, tmp_path: Path
) -> None:
    (tmp_path / "up").unlink()
    clock = FakeClock()
    with pytest.raises(UnreachableError, match=r"can't be reached from \S+: .*refused"):
        await reached(store.refs, clock)
    assert 90 <= clock.elapsed < 120


async def test_an_error_of_another_kind_is_not_waited_for() -> None:
    def fail() -> None:
        raise StoreError("The run in the store can't be read.")

    clock = FakeClock()
    with pytest.raises(StoreError, match="can't be read"):
        await reached(fail, clock)
    assert not clock.slept
