"""`holdfast run --on ssh:…`: a run on hosts, with a stand-in for ssh."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.batch.cluster.test_ssh import play, program_at, ssh
from tests.e2e.test_placed_run import lines_in, steps, verified
from tests.e2e.test_run import repo, states, tasks  # pyright: ignore[reportUnusedImport]
from tests.support.program import HOLDFAST, Program, of_type

__all__ = ["repo", "ssh"]


def by(ssh: Path) -> dict[str, str]:
    """The environment in which a stand-in is used."""
    return {"GIT_SSH_COMMAND": shlex.join([str(ssh / "ssh")])}


def test_tasks_run_on_the_hosts_that_can_and_the_others_say_why_not(
    holdfast: Program, repo: Path, ssh: Path, tmp_path: Path, script: Callable[[str], str]
) -> None:
    store = tmp_path / "the runs.git"
    subprocess.run(["git", "init", "-q", "--bare", store], check=True)
    there = tmp_path / "there"
    program = program_at(
        there / "hold fast",
        f'#!/bin/sh\nHOLDFAST_HOME={there} exec {shlex.join(HOLDFAST)} "$@"\n',
    )
    play(ssh, "alpha", "key refused")
    file = tasks(repo, "- [ ] one\n- [ ] two\n")
    on = ("--on", "ssh:alpha,beta=2", "--remote", shlex.join(program), "--store", f"s:{store}")
    played = ("--practice-script", script(steps(1)), "--headless", "--yolo", "--json")
    done = holdfast("run", file, *on, *played, env=by(ssh))
    assert states(repo) == ["completed"] * 2
    assert sorted(lines_in(repo).values()) == [1, 1]
    assert verified(holdfast, repo) == 2
    notices = " ".join(str(event) for event in of_type(done.events, "notice"))
    assert "alpha: root@127.0.0.1: Permission denied" in notices
    assert "Try: ssh alpha true" in notices
    assert '"type":' not in notices


def test_a_store_by_ssh_that_is_not_there_is_made_by_its_person(
    holdfast: Program, repo: Path, ssh: Path, tmp_path: Path
) -> None:
    file = tasks(repo, "- [ ] one\n")
    on = ("--on", "ssh:alpha", "--headless", "--practice")
    refused = holdfast("run", file, *on, code=1, env=by(ssh))
    assert "need a store that all of them reach" in refused.stderr
    refused = holdfast(
        "run", file, *on, "--store", f"s:{tmp_path / 'runs.git'}", code=1, env=by(ssh)
    )
    assert f"git init --bare {tmp_path / 'runs.git'}" in refused.stderr
    refused = holdfast("run", file, "--on", "ssh:", "--headless", "--practice", code=2, env=by(ssh))
    assert "--on ssh:a,b=4" in refused.stderr
