"""What is known of sessions in the background: their files, and which of them still run."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.clock import FakeClock
from tui.app import background
from tui.app.background import BackgroundSession
from tui.app.options.arguments import Options
from tui.core.clock import timestamp
from tui.core.errors import CredentialsError, SessionError, SessionInUseError, StorageError
from tui.core.paths import Folders
from tui.core.process_birth import born

CLOCK = FakeClock()
NOW = CLOCK.now()


@pytest.fixture
def home(tmp_path: Path) -> Folders:
    return Folders(*(tmp_path / name for name in ("data", "config", "cache", "log")))


@pytest.fixture
def other() -> Generator[subprocess.Popen[bytes]]:
    """A process that is none of ours."""
    program = "import signal; signal.pause()"
    with subprocess.Popen([sys.executable, "-S", "-c", program]) as process:
        yield process
        process.kill()


def one_of(id_: str = "abc123", **changes: object) -> BackgroundSession:
    """This process, as one in the background."""
    pid, now = os.getpid(), timestamp(NOW)
    made = BackgroundSession(
        id=id_,
        path=f"/sessions/{id_}.jsonl",
        cwd="/work",
        pid=pid,
        born=born(pid),
        host=socket.gethostname(),
        started=now,
        since=now,
    )
    return replace(made, **changes)  # pyright: ignore[reportArgumentType] - what a test names


def test_what_is_saved_is_found_by_the_start_of_its_id(home: Folders) -> None:
    for id_ in ("abc123", "abd456"):
        background.save(home, one_of(id_))
    assert background.find(home, "abc", NOW).id == "abc123"
    with pytest.raises(SessionError, match="abc123"):
        background.find(home, "ab", NOW)
    with pytest.raises(SessionError, match="Which one"):
        background.find(home, None, NOW)
    with pytest.raises(SessionError, match="No session x") as caught:
        background.find(home, "x", NOW)
    assert "-r x" not in caught.value.hint, "that would find nothing either"
    folder = background.folder_of(home)
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("birth", ["another-boot/12", "0/1"])
def test_after_a_restart_of_the_machine_it_is_interrupted(home: Folders, birth: str) -> None:
    background.save(home, one_of(born=birth))
    (one,) = background.sessions(home, NOW)
    assert one.state == "interrupted"
    assert background.sessions(home, NOW) == [one], "and stays so"


def test_one_that_is_stopped_is_not_called_working(
    home: Folders, other: subprocess.Popen[bytes]
) -> None:
    background.save(home, one_of(pid=other.pid, born=born(other.pid)))
    other.send_signal(signal.SIGSTOP)
    os.waitpid(other.pid, os.WUNTRACED)
    (one,) = background.sessions(home, NOW)
    assert one.words == f"suspended: kill -CONT {other.pid} continues it"
    other.send_signal(signal.SIGCONT)
    os.waitpid(other.pid, os.WCONTINUED)
    assert one.words == "working"


def test_of_another_machine_nothing_is_known(home: Folders) -> None:
    background.save(home, one_of(host="elsewhere", born="another-boot/12"))
    (one,) = background.sessions(home, NOW)
    assert one.words == "working on elsewhere"
    assert background.running_at(home, Path(one.path), NOW) is None


def test_a_stranger_who_got_the_number_is_not_signalled(
    home: Folders, other: subprocess.Popen[bytes]
) -> None:
    one = one_of(pid=other.pid, born="another-boot/12")
    assert not background.send(one, signal.SIGKILL)
    assert not background.request(home, one)
    assert other.poll() is None
    assert background.send(replace(one, born=born(other.pid)), signal.SIGKILL)
    assert other.wait() == -signal.SIGKILL
    assert not background.send(one, signal.SIGKILL)


def test_who_has_ended_is_listed_for_a_day_unless_seen(home: Folders) -> None:
    background.save(home, done := one_of(state="done", detail="All done."))
    background.log_of(home, done.id).write_text("…")
    assert background.listed(home, NOW) == [done]
    assert background.listed(home, NOW + timedelta(days=2)) == []
    assert background.sessions(home, NOW + timedelta(days=2)) == [done]
    background.mark_seen(home, done)
    assert background.listed(home, NOW) == []
    assert background.find(home, "abc", NOW).seen
    assert background.sessions(home, NOW + timedelta(days=30)) == []
    assert list(background.folder_of(home).iterdir()) == []


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "{}", '{"id": 1}', json.dumps({"id": "other", "pid": "x"}), "\xff"],
)
def test_a_file_that_is_not_valid_hides_no_other(home: Folders, content: str) -> None:
    background.save(home, one_of())
    for name in ("bad.json", "abc124.json"):
        (background.folder_of(home) / name).write_text(content, encoding="latin-1")
    assert [one.id for one in background.sessions(home, NOW)] == ["abc123"]


def test_a_disk_that_takes_nothing_is_named(home: Folders) -> None:
    home.data.mkdir()
    background.folder_of(home).write_text("a file is in the way")
    with pytest.raises(StorageError, match=r"Can't write .*background/abc123.json"):
        background.save(home, one_of())
    with pytest.raises(StorageError, match="Can't use"):
        background.start(home, Options(prompt="hello"))


def test_a_request_counts_while_its_process_runs(
    home: Folders, other: subprocess.Popen[bytes]
) -> None:
    heard: list[int] = []
    one, before = one_of(), signal.signal(signal.SIGUSR1, lambda number, _: heard.append(number))
    try:
        assert background.requested(home, one.id) == ""
        assert background.request(home, one)
        assert background.requested(home, one.id) == "soon"
        assert background.request(home, one, now=True)
        assert background.requested(home, one.id) == "now"
        path = background.folder_of(home) / f"{one.id}.request"
        path.write_text(json.dumps({"pid": other.pid, "born": "another-boot/12"}))
        assert background.requested(home, one.id) == ""
        background.withdraw(home, one.id)
        background.withdraw(home, one.id)
        assert not path.exists()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert heard == [signal.SIGUSR1, signal.SIGUSR1]


def test_options_arrive_as_they_were(tmp_path: Path) -> None:
    given = Options().having(
        prompt="do it",
        cwd=tmp_path,
        add_dirs=(tmp_path / "a", tmp_path / "b"),
        allow=("write_file", "run_command(pytest*)"),
        max_cost=1.5,
        practice_script=tmp_path / "script.toml",
        yolo=True,
    )
    whole = json.loads(json.dumps(background.options_to_json(given)))
    assert background.options_from_json(whole) == given
    assert background.options_from_json({**whole, "from_later": 1}) == given
    assert background.options_from_json(background.lasting_options(given)).prompt is None
    assert background.options_to_json(Options()) == {}


@pytest.mark.parametrize("kind", [CredentialsError, SessionInUseError, StorageError])
def test_an_error_is_the_same_where_it_was_started(kind: type[CredentialsError]) -> None:
    report = background.report_of(kind("What happened.", hint="What to do."))
    assert (report["message"], report["hint"]) == ("What happened.", "What to do.")
    known = {"CredentialsError", "SessionInUseError"}
    assert report["error"] == (kind.__name__ if kind.__name__ in known else "HoldfastError")


def test_a_file_that_nests_too_deeply_is_passed_over(home: Folders) -> None:
    background.folder_of(home).mkdir(parents=True)
    background.save(home, one_of())
    for name in ("deep.json", "abc123.request"):
        (background.folder_of(home) / name).write_text("[" * 50_000)
    assert [one.id for one in background.sessions(home, NOW)] == ["abc123"]
    assert background.requested(home, "abc123") == ""
