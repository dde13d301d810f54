"""The Dask engine, with a scheduler and a machine of Dask's own in this process. What it starts
there is a stand-in for Holdfast; `real/dask.sh` has the whole."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import distributed as partly_typed
import pytest

from tests.support.clock import PATIENCE_S
from tests.support.processes import gone
from tui.batch.cluster.engines import dask as dask_engine
from tui.batch.cluster.engines.dask import DaskEngine
from tui.batch.cluster.engines.port import EngineError

distributed: Any = partly_typed

STAND_IN = """#!{python} -S
import ctypes, os, signal, sys, time
ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # as a worker has it: its parent's thread must stay
name = sys.argv[5].replace("/", "-")
if os.path.exists("stubborn"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("works on", *sys.argv[4:], flush=True)
with open(name + ".pids", "a") as file:
    file.write(str(os.getpid()) + chr(10))
while not os.path.exists(name + ".end"):
    time.sleep(0.01)
print("is done", flush=True)
"""


def until(done: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


class Machine:
    """A Dask cluster of one machine with one thread, in `folder`, and what is started there."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder = folder
        self.cluster = distributed.LocalCluster(
            processes=False,
            n_workers=1,
            threads_per_worker=1,
            protocol="tcp",
            host="127.0.0.1",
            scheduler_port=port,
            dashboard_address=":0",
            silence_logs=False,
            local_directory=str(folder / "dask"),
        )
        self.address: str = self.cluster.scheduler_address

    def pids(self, task: str) -> list[int]:
        file = self.folder / f"R-{task}.pids"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def started(self, task: str) -> int:
        until(lambda: self.pids(task))
        return self.pids(task)[-1]

    def end(self, task: str) -> None:
        (self.folder / f"R-{task}.end").touch()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Machine]:
    monkeypatch.chdir(tmp_path)
    stand_in = tmp_path / "stand-in"
    stand_in.write_text(STAND_IN.format(python=sys.executable))
    stand_in.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(stand_in))
    made = Machine(tmp_path)
    yield made
    made.cluster.close()


@pytest.fixture
def engine(machine: Machine) -> Iterator[DaskEngine]:
    made = DaskEngine(machine.address)
    yield made
    made.close()


def command(task: str) -> dict[str, list[str]]:
    return {task: ["work", f"R/{task}", "--store", "/s.git"]}


def handle_of(engine: DaskEngine, task: str) -> str:
    return engine.put(command(task))[task]


def test_a_task_waits_lives_and_ends_and_what_it_printed_is_kept(
    machine: Machine, engine: DaskEngine
) -> None:
    assert engine.slots == 1
    first, second = handle_of(engine, "1"), handle_of(engine, "2")
    machine.started("1")
    assert engine.watch([first]) == {first: "lives"}
    assert not machine.pids("2"), "there is one thread"
    machine.end("1")
    until(lambda: engine.watch([first])[first] == "ended")
    assert engine.fetch(first) == "works on work R/1 --store /s.git\nis done\n"
    machine.started("2")
    assert engine.watch([second, "holdfast/R/9"]) == {second: "lives", "holdfast/R/9": "unknown"}
    machine.end("2")


def test_a_task_goes_on_without_the_driver_and_the_next_one_finds_it(
    machine: Machine, engine: DaskEngine
) -> None:
    handle_of(engine, "1")
    pid = machine.started("1")
    engine.close()
    until(lambda: not [one for one in machine.cluster.scheduler.clients if "Client" in one])
    after = DaskEngine(machine.address)
    assert after.watch(["holdfast/R/1"]) == {"holdfast/R/1": "lives"}
    handle = handle_of(after, "1")
    assert machine.pids("1") == [pid], "it isn't started again"
    machine.end("1")
    until(lambda: after.watch([handle])[handle] != "lives")
    after.close()


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_cancelled_task_ends(
    machine: Machine, engine: DaskEngine, monkeypatch: pytest.MonkeyPatch, *, stubborn: bool
) -> None:
    if stubborn:
        (machine.folder / "stubborn").touch()
        monkeypatch.setattr(dask_engine, "_END_S", 0.1)
    handle = handle_of(engine, "1")
    pid = machine.started("1")
    engine.cancel([handle, "holdfast/R/9"])
    assert gone(pid)
    assert engine.watch([handle]) == {handle: "unknown"}


def test_a_task_is_started_again_after_its_end(machine: Machine, engine: DaskEngine) -> None:
    handle = handle_of(engine, "1")
    pid = machine.started("1")
    os.kill(pid, signal.SIGKILL)
    until(lambda: engine.watch([handle])[handle] == "ended")
    until(lambda: engine.put(command("1")))
    until(lambda: len(machine.pids("1")) == 2)
    machine.end("1")


def test_a_child_ends_with_its_dask_worker(machine: Machine, engine: DaskEngine) -> None:
    handle_of(engine, "1")
    pid = machine.started("1")
    machine.cluster.scale(0)
    assert gone(pid)


def test_a_scheduler_that_forgot_everything_is_given_it_again(
    machine: Machine, engine: DaskEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_engine, "_CONNECT_S", 0.5)
    monkeypatch.setattr(dask_engine, "_AGAIN_S", 0.0)
    handle = handle_of(engine, "1")
    pid = machine.started("1")
    machine.cluster.close()
    assert gone(pid)
    assert engine.watch([handle]) == {handle: "unknown"}
    with pytest.raises(EngineError, match="can't be reached") as caught:
        engine.put(command("1"))
    assert caught.value.hint == "Start it, or give its address as it printed it."
    again = Machine(machine.folder, int(machine.address.rpartition(":")[2]))
    assert again.address == machine.address
    until(lambda: engine.put(command("1")))
    until(lambda: len(machine.pids("1")) == 2)
    machine.end("1")
    until(lambda: engine.watch([handle])[handle] == "ended")
    again.cluster.close()


def test_it_leaves_no_thread(machine: Machine) -> None:
    before = set(threading.enumerate())
    made = DaskEngine(machine.address, slots=7)
    made.watch(["holdfast/R/1"])
    made.close()
    made.close()
    assert made.slots == 7
    assert not [one for one in set(threading.enumerate()) - before if one.name == "dask"]


def test_a_command_that_is_too_long_is_refused(machine: Machine, engine: DaskEngine) -> None:
    with pytest.raises(EngineError, match="too long"):
        engine.put({"1": ["work", "R/1", "--store", "s" * 4096]})


def test_nothing_answers_at_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_engine, "_CONNECT_S", 0.2)
    with pytest.raises(EngineError, match=r"tcp://127.0.0.1:1 can't be reached"):
        DaskEngine("tcp://127.0.0.1:1")
    with pytest.raises(EngineError, match=r"tls://127.0.0.1:1 can't be reached") as caught:
        DaskEngine("tls://127.0.0.1:1")
    assert caught.value.hint == (
        "Its certificates are in Dask's own settings: distributed.comm.tls."
    )
