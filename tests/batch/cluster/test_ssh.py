"""Hosts by ssh: what a person sees of workers there, and of a store there.

The stand-in for ssh does what was seen of the real one (`seen/ssh/`), or runs the command, as
sshd's login shell would. `real/ssh.sh` is the same with real daemons.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.clock import FakeClock, ManualClock
from tui.batch.cluster.engines.port import EngineError
from tui.batch.cluster.engines.ssh import SshEngine, hosts_of
from tui.batch.cluster.task_store import StoreError, TaskStore
from tui.core.errors import UsageError

SEEN: Final[dict[str, Any]] = json.loads(
    Path(__file__).with_name("seen").joinpath("ssh", "openssh-9.2.json").read_text("utf-8")
)
_SSH: Final = """\
#!/bin/sh
here=$(dirname "$0"); unset GIT_PROTOCOL
while :; do
  case $1 in
    --) shift; break ;;
    -E) said=$2; shift 2 ;;
    -o) shift 2 ;;
    -*) shift ;;
    *) break ;;
  esac
done
host=$1; shift
if [ -d "$here/$host" ]; then
  cat "$here/$host/printed" >&2
  [ -z "$said" ] || cat "$here/$host/said" >"$said"
  exit "$(cat "$here/$host/code")"
fi
exec sh -c "$*"
"""


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a stand-in for ssh, whose hosts do what `play` says."""
    folder = tmp_path / "ssh"
    folder.mkdir()
    program_at(folder / "ssh", _SSH)
    monkeypatch.setenv("GIT_SSH_COMMAND", shlex.join([str(folder / "ssh")]))
    return folder


def program_at(path: Path, text: str) -> list[str]:
    """Make a program, and return the words that start it."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(0o755)
    return [str(path)]


def play(ssh: Path, host: str, case: str) -> None:
    """Let a host do what was seen."""
    (ssh / host).mkdir(exist_ok=True)
    for name, value in SEEN["cases"][case].items():
        (ssh / host / name).write_text(str(value), "utf-8")


def engine_of(tmp_path: Path, hosts: str, program: Sequence[str] = ("true",)) -> SshEngine:
    named = hosts_of(hosts, 1)
    return SshEngine(f"ssh:{hosts}", named, program, tmp_path / "logs", FakeClock())


def wait_for(handle: str) -> None:
    """Return once the ssh of a worker has ended."""
    os.waitid(os.P_PID, int(handle.rpartition(" ")[2]), os.WEXITED | os.WNOWAIT)


def end_of(engine: SshEngine, key: str = "00001") -> tuple[str, str]:
    """Start a worker and return how it ended, and what is shown of it."""
    (handle,) = engine.put({key: ["work", f"r/{key}"]}).values()
    wait_for(handle)
    return engine.watch([handle])[handle], engine.fetch(handle)


@pytest.mark.parametrize(
    ("named", "parallel", "hosts"),
    [
        ("a,b", 1, {"a": 1, "b": 1}),
        ("a,b,c", 8, {"a": 3, "b": 3, "c": 2}),
        ("a=4, me@b", 6, {"a": 4, "me@b": 2}),
        ("a=4,b", 4, {"a": 4, "b": 1}),
        ("ssh://a:2222,fe80::1=2", 2, {"ssh://a:2222": 1, "fe80::1": 2}),
    ],
)
def test_the_hosts_share_what_runs_at_a_time(
    named: str, parallel: int, hosts: dict[str, int]
) -> None:
    assert hosts_of(named, parallel) == hosts


@pytest.mark.parametrize("named", ["", "a,,b", "a,a=2", "a=0", "-oProxyCommand=x"])
def test_hosts_that_are_none_are_refused(named: str) -> None:
    with pytest.raises(UsageError, match="These hosts can't be used"):
        hosts_of(named, 1)


def test_a_worker_gets_its_words_whole(ssh: Path, tmp_path: Path) -> None:
    odd = tmp_path / "it's $(here) \"&"
    odd.mkdir()
    program = program_at(odd / "hold fast", "#!/bin/sh\nprintf '<%s>' \"$@\"\n")
    engine = engine_of(tmp_path, "a", [*program, "*"])
    words = ["work", "r/00001", "--store", 'store:/it\'s $(x) `y`;\\ "z" ~']
    (handle,) = engine.put({"00001": words}).values()
    wait_for(handle)
    assert engine.watch([handle]) == {handle: "ended"}
    assert engine.fetch(handle) == "".join(f"<{one}>" for one in ["*", *words]) + "\n"


@pytest.mark.parametrize(
    ("case", "life", "shown"),
    [
        ("done", "ended", ""),
        ("refused by the worker", "ended", "a: Not taken: no."),
        ("worker failed", "ended", "a: a worker failed (1): Error: the store is gone"),
        ("worker killed", "unknown", ""),
        ("connection cut", "unknown", ""),
        ("no program", "ended", "a has no program true. Install Holdfast there, or say where"),
        ("port closed", "unknown", "Connection refused. Try: ssh a true"),
        ("no such host", "unknown", "Name or service not known. Try: ssh a true"),
        ("key refused", "unknown", "Permission denied (publickey,keyboard-interactive). Try: ssh"),
        ("host unknown", "unknown", "Host key verification failed. Try: ssh a true"),
        ("host key changed", "unknown", "Host key verification failed. Try: ssh a true"),
        ("server silent", "unknown", "Timeout, server 127.0.0.1 not responding. Try: ssh a true"),
    ],
)
def test_a_host_that_fails_rests_and_says_why(
    ssh: Path, tmp_path: Path, case: str, life: str, shown: str
) -> None:
    play(ssh, "a", case)
    engine = engine_of(tmp_path, "a=2")
    ended, text = end_of(engine)
    assert ended == life
    if not shown:  # which says nothing about the host
        assert engine.put({"00002": ["work"]})
        engine.close()
        return
    assert shown in text.splitlines()[-1]
    with pytest.raises(EngineError) as refused:
        engine.put({"00002": ["work"]})
    assert shown in refused.value.message


def test_a_host_is_tried_again_after_ever_longer_rests(ssh: Path, tmp_path: Path) -> None:
    play(ssh, "a", "port closed")
    clock = ManualClock()
    engine = SshEngine("ssh:a", {"a": 1}, ["true"], tmp_path / "logs", clock)
    for rest in (5, 10, 20):
        end_of(engine)
        clock.advance(rest - 1)
        with pytest.raises(EngineError, match="Connection refused"):
            engine.put({"00001": ["work"]})
        clock.advance(1)
    play(ssh, "a", "done")
    assert end_of(engine)[0] == "ended"
    assert engine.put({"00001": ["work"]})
    engine.close()


def test_others_take_the_workers_of_a_host_that_rests(ssh: Path, tmp_path: Path) -> None:
    play(ssh, "a", "port closed")
    engine = engine_of(tmp_path, "a=3,b=1", ["cat", "/dev/null"])
    assert end_of(engine)[0] == "unknown"
    taken = engine.put({"00002": ["work"], "00003": ["work"]})
    assert [*taken] == ["00002"]
    assert "on b" in taken["00002"]
    engine.close()


def test_a_host_is_asked_for_few_connections_at_once(ssh: Path, tmp_path: Path) -> None:
    engine = engine_of(tmp_path, "a=20", ["sh", "-c", "exec cat"])
    wanted = {f"{number:05}": ["work"] for number in range(20)}
    assert len(engine.put(wanted)) == 8
    engine.close()


_GIVES_BACK: Final = """\
#!/bin/sh
trap 'echo given back; echo given back >"{fifo}"; exit 143' TERM
exec 4<>"{never}"
echo began
: >"{fifo}"
while :; do read -r _ <&4; done
"""


def _patient_program(tmp_path: Path) -> tuple[list[str], Path]:
    """A worker that runs until it gets SIGTERM, and the pipe on which it says that it runs, and
    then how it ended."""
    fifo, never = tmp_path / "fifo", tmp_path / "never"
    os.mkfifo(fifo)
    os.mkfifo(never)
    return program_at(tmp_path / "p", _GIVES_BACK.format(fifo=fifo, never=never)), fifo


def test_a_cancelled_worker_gives_its_task_back(ssh: Path, tmp_path: Path) -> None:
    program, fifo = _patient_program(tmp_path)
    engine = engine_of(tmp_path, "a", program)
    (handle,) = engine.put({"00001": ["work"]}).values()
    assert fifo.read_text() == ""  # it runs
    assert engine.watch([handle]) == {handle: "lives"}
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    engine.cancel([handle])
    os.close(reading)
    assert engine.watch([handle]) == {handle: "ended"}
    assert engine.fetch(handle) == "began\ngiven back\n"
    engine.cancel([handle])
    assert engine.watch(["00001 on a, ssh 1"]) == {"00001 on a, ssh 1": "unknown"}


def test_workers_end_with_a_driver_that_is_killed(ssh: Path, tmp_path: Path) -> None:
    program, fifo = _patient_program(tmp_path)
    driver = f"""
from pathlib import Path
from tests.support.clock import FakeClock
from tui.batch.cluster.engines.ssh import SshEngine
engine = SshEngine("ssh:a", {{"a": 1}}, {program!r}, Path({str(tmp_path)!r}), FakeClock())
engine.put({{"00001": ["work"]}})
input()
"""
    started = subprocess.Popen([sys.executable, "-c", driver], stdin=subprocess.PIPE)
    assert fifo.read_text() == ""  # the worker runs
    started.kill()
    started.communicate()
    assert fifo.read_text() == "given back\n"


# A store there


def store_of(tmp_path: Path, address: str, name: str = "mirror") -> TaskStore:
    return TaskStore.at(address, tmp_path / name)


def test_a_store_by_ssh_keeps_what_two_machines_put_there(ssh: Path, tmp_path: Path) -> None:
    there = tmp_path / "it's $(here)" / "runs.git"
    subprocess.run(["git", "init", "-q", "--bare", there], check=True)
    ours, theirs = (store_of(tmp_path, f"store:{there}", name) for name in ("one", "two"))
    ref = "refs/holdfast/tasks/r/00001"
    ours.make()
    first = ours.commit("one\n\n{}\n", files={"a": b"1"})
    assert ours.move({ref: ("", first)})
    second = ours.commit("two\n\n{}\n", upon=first, files={"a": b"2"})
    assert ours.move({ref: (first, second)})
    theirs.fetch({ref: first})  # which the ref has left meanwhile
    assert theirs.read(first, "a") == b"1"
    late = theirs.commit("late\n\n{}\n", upon=first)
    assert not theirs.move({ref: (first, late)})
    assert theirs.refs() == {ref: second}


def test_a_store_that_is_not_there_is_made_by_its_person(ssh: Path, tmp_path: Path) -> None:
    there = tmp_path / "my runs.git"
    with pytest.raises(StoreError) as refused:
        store_of(tmp_path, f"store:{there}").make()
    assert refused.value.message == f"There is no git repository at store:{there}."
    assert refused.value.hint == f"Make it where it is to be: git init --bare '{there}'"


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("port closed", "ssh: connect to host 127.0.0.1 port 42299: Connection refused"),
        ("key refused", "root@127.0.0.1: Permission denied (publickey,keyboard-interactive)."),
        ("host key changed", "Host key verification failed."),
    ],
)
def test_a_store_out_of_reach_says_what_ssh_says(
    ssh: Path, tmp_path: Path, case: str, said: str
) -> None:
    play(ssh, "store", case)
    # Without -E, ssh prints what it says.
    (ssh / "store" / "printed").write_text(SEEN["cases"][case]["said"], "utf-8")
    with pytest.raises(StoreError, match="git ls-remote failed") as refused:
        store_of(tmp_path, "store:/runs.git").make()
    assert said in refused.value.message
