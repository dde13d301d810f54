"""`holdfast run --on tcp://…` with Dask's own processes, one of which is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.batch.test_git import git
from tests.e2e.test_placed_run import end, lines_in, one_worker, steps, verified
from tests.e2e.test_run import repo, states, tasks  # pyright: ignore[reportUnusedImport]
from tests.support.machine import needs_proc
from tests.support.program import Program

__all__ = ["repo"]
distributed: Any = pytest.importorskip("distributed")


@pytest.fixture
def scheduler(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """The address of a Dask cluster of two processes, with a home folder of the run's."""
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    monkeypatch.setenv("HOME", str(home.parent))
    cluster = distributed.LocalCluster(
        processes=True,
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=":0",
        silence_logs=False,
        local_directory=str(tmp_path / "dask"),
    )
    yield cluster.scheduler_address
    cluster.close()


def parent_of(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


@needs_proc
def test_a_killed_dask_worker_loses_no_task(
    holdfast: Program,
    repo: Path,
    home: Path,
    script: Callable[[str], str],
    scheduler: str,
    tmp_path: Path,
) -> None:
    with (home / "config" / "config.toml").open("a") as config:
        config.write("[batch]\nlease_s = 6\n")
    file = tasks(repo, "- [ ] one\n- [ ] two\n")
    words = ("--on", scheduler, "--store", str(home / "store.git"), "--headless", "--yolo")
    played = script(steps(3, seconds=0.3))
    with holdfast.started("run", file, "--practice-script", played, *words, "--json") as process:
        os.kill(parent_of(one_worker(home)), signal.SIGKILL)
        end(process)
    assert states(repo) == ["completed"] * 2
    made = git(repo, "log", "--no-merges", "--format=%s").split()
    assert sorted(made) == ["first", "one", "two"]
    assert len(lines_in(repo)) == 2
    assert verified(holdfast, repo) == 2
