"""`holdfast cluster up FILE`: the file, and a cluster that runs until Ctrl+C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.batch.cluster.test_dask import until
from tests.support.clock import PATIENCE_S
from tui.app.options.parser import parse
from tui.batch.cluster import deployment
from tui.batch.cluster.engines.dask import DaskEngine
from tui.core.errors import HoldfastError

LOCAL = """
deployment = "local"
[options]
n_workers = 1
processes = false
protocol = "tcp"
dashboard_address = ":0"
"""


def up(tmp_path: Path, text: str) -> int:
    file = tmp_path / "cluster.toml"
    file.write_text(text)
    return deployment.run(parse(["cluster", "up", str(file)]))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('deployment = "lokal"', "deployment: There are: local, ssh, kubernetes."),
        ('deployment = "local"\noption = 1', "unknown field `option`"),
        ("[options]", "missing required field `deployment`"),
        ("deployment =", "Invalid value"),
    ],
)
def test_a_file_that_describes_no_cluster_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(HoldfastError) as caught:
        up(tmp_path, text)
    assert said in caught.value.message
    assert str(tmp_path / "cluster.toml") in caught.value.message


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HoldfastError, match="No such file"):
        deployment.run(parse(["cluster", "up", str(tmp_path / "none.toml")]))


def test_a_deployment_that_is_not_installed_names_its_package(tmp_path: Path) -> None:
    with pytest.raises(HoldfastError, match="isn't installed") as caught:
        up(tmp_path, 'deployment = "kubernetes"')
    assert caught.value.hint == "Install it beside Holdfast: dask-kubernetes"


def test_what_dask_does_not_take_is_said(tmp_path: Path) -> None:
    with pytest.raises(HoldfastError, match=r"Dask can't start the cluster: .*n_workerz"):
        up(tmp_path, f"{LOCAL}n_workerz = 1")


def test_a_cluster_that_anyone_could_use_is_not_left_running(tmp_path: Path) -> None:
    before = threading.active_count()
    with pytest.raises(HoldfastError, match="isn't encrypted"):
        up(tmp_path, f'{LOCAL}host = "0.0.0.0"')
    until(lambda: threading.active_count() <= before + 1)


def test_a_cluster_runs_until_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "cluster.toml").write_text(LOCAL)
    words = (sys.executable, "-m", "tui", "cluster", "up", "cluster.toml")
    with subprocess.Popen(
        words,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    ) as started:
        assert started.stdout
        engine = DaskEngine(started.stdout.readline().strip())
        assert engine.slots >= 1
        engine.close()
        started.send_signal(signal.SIGINT)
        assert started.wait(PATIENCE_S) == 0
