"""Background sessions that one parent forks: each is what it would be alone."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event

import pytest

from tests.e2e.conftest import Serve
from tests.support.clock import PATIENCE_S
from tests.support.preloaded import PLAIN
from tests.support.program import Program
from tests.support.terminal import HOLDFAST, Terminal
from tui.app import background, background_parent
from tui.app.background import BackgroundSession
from tui.app.options.arguments import Options
from tui.core.clock import SystemClock
from tui.core.paths import Folders, folders

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such a parent")

WRITE = {"text": "I write.", "tools": [{"name": "write_file", "input": {
    "path": "new.txt", "content": "hello\n"}}]}  # fmt: skip


@pytest.fixture
def env(env: dict[str, str], config: Callable[[str], Path]) -> dict[str, str]:
    config('titles = "prompt"\n')
    return {**env, "ANTHROPIC_API_KEY": "sk-ant-secret"}


@pytest.fixture
def kept(home: Path) -> Generator[Folders]:
    """The folders of the program; what runs at the end is killed, with its parents."""
    kept = folders({"HOLDFAST_HOME": str(home)})
    yield kept
    for one in background.sessions(kept, SystemClock().now()):
        background.send(one, signal.SIGKILL)
    for pid in parents(kept):
        os.kill(pid, signal.SIGKILL)


def parents(kept: Folders) -> list[int]:
    """The processes whose working folder is that of the background sessions."""
    return [
        int(process.name)
        for process in Path("/proc").iterdir()
        if process.name.isdigit() and linked(process / "cwd") == str(background.folder_of(kept))
    ]


def linked(path: Path) -> str:
    with suppress(OSError):
        return str(path.readlink())
    return ""


def parent_of(one: BackgroundSession) -> int:
    return int(Path(f"/proc/{one.pid}/stat").read_text().rpartition(")")[2].split()[1])


def started(kept: Folders, holdfast: Program, **env: str) -> BackgroundSession:
    done = holdfast("--bg", "do it", env=env)
    return background.find(kept, done.stdout.split()[4], SystemClock().now())


def until(met: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not met():
        assert time.monotonic() < give_up
        Event().wait(0.05)


def state(kept: Folders, one: BackgroundSession) -> str:
    return background.find(kept, one.id, SystemClock().now()).state


def waiting(kept: Folders, one: BackgroundSession) -> None:
    until(lambda: state(kept, one) == "waiting")


def test_each_has_its_own_folder_environment_and_rights(
    holdfast: Program, env: dict[str, str], serve: Serve, kept: Folders, tmp_path: Path
) -> None:
    server = serve(WRITE, WRITE, WRITE)
    env["ANTHROPIC_BASE_URL"] = server.url
    places = [tmp_path / name for name in ("one", "two", "three")]
    every: list[BackgroundSession] = []
    for place in places:
        place.mkdir()
        program = Program(place, env)
        every.append(started(kept, program, ANTHROPIC_API_KEY=f"sk-ant-{place.name}"))
        waiting(kept, every[-1])
    (parent,) = parents(kept)
    assert [parent_of(one) for one in every] == [parent] * 3
    for one, place in zip(every, places, strict=True):
        assert one.cwd == str(place) == linked(Path(f"/proc/{one.pid}/cwd"))
        assert os.getsid(one.pid) == one.pid
    asked = [post.headers["x-api-key"] for post in server.posts]
    assert asked == ["sk-ant-one", "sk-ant-two", "sk-ant-three"]
    given = Path(f"/proc/{parent}/environ").read_bytes()
    assert b"sk-ant" not in given
    assert b"ANTHROPIC" not in given
    assert "Threads:\t1\n" in Path(f"/proc/{parent}/status").read_text()
    files = {file.name: linked(file) for file in Path(f"/proc/{parent}/fd").iterdir()}
    assert not [name for name in files.values() if str(tmp_path) in name], files


def test_its_end_is_not_theirs(
    holdfast: Program, env: dict[str, str], serve: Serve, kept: Folders
) -> None:
    env["ANTHROPIC_BASE_URL"] = serve(WRITE, WRITE, WRITE, {"text": "All done."}).url
    first, second = (started(kept, holdfast) for _ in range(2))
    for one in (first, second):
        waiting(kept, one)
    (parent,) = parents(kept)
    os.kill(parent, signal.SIGKILL)
    until(lambda: not parents(kept))
    third = started(kept, holdfast)
    waiting(kept, third)
    assert parents(kept) == [parent_of(third)] != [parent]
    assert [background.is_running(one) for one in (first, second)] == [True, True]
    assert "Stopped" in holdfast("stop", first.id).stdout
    assert "waiting for you: write_file" in holdfast("ps").stdout
    with Terminal(
        [*HOLDFAST, "attach", "--plain", second.id], cwd=holdfast.work, env=env, preload=PLAIN
    ) as screen:
        screen.wait_for("1 once, 2 this session")
        screen.type("1\r")
        screen.wait_for("All done.")
    assert (holdfast.work / "new.txt").read_text() == "hello\n"


def test_the_end_of_one_is_not_its(
    holdfast: Program, env: dict[str, str], serve: Serve, kept: Folders
) -> None:
    env["ANTHROPIC_BASE_URL"] = serve(WRITE, WRITE).url
    first = started(kept, holdfast)
    parent = parent_of(first)
    os.kill(first.pid, signal.SIGSEGV)
    until(lambda: state(kept, first) == "interrupted")
    second = started(kept, holdfast)
    assert parents(kept) == [parent] == [parent_of(second)]


@pytest.mark.parametrize("why", ["others may enter", "no parent", "it ends at once"])
def test_without_one_a_process_of_its_own_is_started(
    holdfast: Program,
    env: dict[str, str],
    serve: Serve,
    kept: Folders,
    monkeypatch: pytest.MonkeyPatch,
    why: str,
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", serve({"text": "All done."}).url)
    for name in ("HOLDFAST_HOME", "HOME", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, env[name])
    monkeypatch.chdir(holdfast.work)
    background.folder_of(kept).mkdir(mode=0o700, parents=True)
    if why == "others may enter":
        background.folder_of(kept).chmod(0o755)
    else:
        program = "/nowhere" if why == "no parent" else "true"
        monkeypatch.setattr(background_parent, "PARENT", (program,))
    one = background.start(kept, Options().having(prompt="do it"))
    until(lambda: state(kept, one) == "done")
    assert not parents(kept)
    log = background.log_of(kept, one.id).read_text()
    assert log.count("> do it") == 1


CONNECTS = """
import ctypes, json, os, socket, sys
if sys.argv[2] == "confined":
    assert ctypes.CDLL(None).prctl(38, 1, 0, 0, 0) == 0  # no new privileges
streams = [os.open(os.devnull, os.O_RDWR) for _ in range(3)]
with os.fdopen(os.memfd_create("request"), "w") as file, socket.socket(socket.AF_UNIX) as one:
    json.dump({"env": {}, "umask": 0, "ignored": []}, file)
    file.flush()
    folder, name = os.path.split(sys.argv[1])
    os.chdir(folder)
    one.connect(name)
    try:
        socket.send_fds(one, [b"?"], [file.fileno(), os.open(".", os.O_PATH), *streams])
        print(one.recv(1))
    except (BrokenPipeError, ConnectionResetError):
        print(b"")
"""


@pytest.mark.parametrize(("who", "answer"), [("confined", b""), ("free", b"!")])
def test_who_is_behind_walls_gets_no_process_outside(
    holdfast: Program,
    env: dict[str, str],
    serve: Serve,
    kept: Folders,
    who: str,
    answer: bytes,
) -> None:
    env["ANTHROPIC_BASE_URL"] = serve(WRITE).url
    waiting(kept, started(kept, holdfast))
    (path,) = background.folder_of(kept).glob("*.sock")
    (parent,) = parents(kept)
    assert path.stat().st_mode & 0o777 == 0o600
    words = [sys.executable, "-c", CONNECTS, str(path), who]
    done = subprocess.run(words, env=env, capture_output=True, check=True)
    assert done.stdout.decode().strip() == repr(answer)
    assert parent in parents(kept)


COUNTED = """
import atexit, sys
from pathlib import Path
from tui.app import background_parent
from tui.cli.background import main

def report(loaded):
    Path({report!r}).write_text("\\n".join(sorted({{*sys.modules}} - loaded)))

def serve(needed, serve=background_parent.serve):
    serve(needed)
    atexit.register(report, {{*sys.modules}})

background_parent.serve = serve
raise SystemExit(main())
"""


def test_what_a_session_needs_is_loaded_before_it_is_forked(
    holdfast: Program,
    env: dict[str, str],
    serve: Serve,
    kept: Folders,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """What each of them would load itself, they would not share."""
    run = {"text": "I run.", "tools": [{"name": "run_command", "input": {"command": "echo hi"}}]}
    url = serve(run, {"text": "All done."}).url
    for name, value in {**env, "ANTHROPIC_BASE_URL": url}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(holdfast.work)
    report = tmp_path / "report"
    code = COUNTED.format(report=str(report))
    monkeypatch.setattr(background_parent, "PARENT", (sys.executable, "-P", "-c", code))
    one = background.start(kept, Options().having(prompt="do it", yolo=True))
    until(lambda: state(kept, one) not in background.RUNNING)
    assert state(kept, one) == "done"
    until(report.exists)
    assert report.read_text() == ""


QUICK = """
from tui.app import background_parent
from tui.cli.background import main
background_parent.LINGER_S, background_parent.LOADED = 0.05, ()
raise SystemExit(main())
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a parent that loads nothing and is not patient."""
    folder = tmp_path / "background"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(background_parent, "PARENT", (sys.executable, "-P", "-c", QUICK))
    yield folder
    until(lambda: not list(folder.iterdir()))  # it has ended, and nothing was kept


def test_who_does_not_give_the_order_leaves_nothing(asked: Path) -> None:
    (order, mine), (output, its) = os.pipe(), os.pipe()
    assert background_parent.fork(asked, (order, its, its))
    for end in (order, its, mine):
        os.close(end)
    with os.fdopen(output, "rb") as file:
        assert file.read() == b""


def test_limits_are_those_of_who_asks(
    holdfast: Program, env: dict[str, str], serve: Serve, kept: Folders
) -> None:
    env["ANTHROPIC_BASE_URL"] = serve(WRITE, WRITE).url
    waiting(kept, started(kept, holdfast))
    limited = ["sh", "-c", 'umask 027; ulimit -n 500; exec "$@"', "sh", *HOLDFAST, "--bg", "do it"]
    done = subprocess.run(limited, cwd=holdfast.work, env=env, capture_output=True, check=True)
    one = background.find(kept, done.stdout.decode().split()[4], SystemClock().now())
    assert "Umask:\t0027\n" in Path(f"/proc/{one.pid}/status").read_text()
    (files,) = (
        line.split()[3:5]
        for line in Path(f"/proc/{one.pid}/limits").read_text().splitlines()
        if line.startswith("Max open files")
    )
    assert files == ["500", "500"]
    assert len(parents(kept)) == 2
    assert parent_of(one) in parents(kept)


def ignored(pid: int) -> int:
    (line,) = (
        line
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("SigIgn")
    )
    return int(line.split()[1], 16)


def test_signals_that_the_first_ignored_are_heeded_by_the_others(
    holdfast: Program, env: dict[str, str], serve: Serve, kept: Folders
) -> None:
    env["ANTHROPIC_BASE_URL"] = serve(WRITE, WRITE).url

    def begun(*before: str) -> BackgroundSession:
        done = subprocess.run(
            [*before, *HOLDFAST, "--bg", "do it"],
            cwd=holdfast.work, env=env, capture_output=True, check=True,
        )  # fmt: skip
        return background.find(kept, done.stdout.decode().split()[4], SystemClock().now())

    first = begun("sh", "-c", 'trap "" QUIT; exec "$@"', "sh")
    waiting(kept, first)
    before = signal.signal(signal.SIGQUIT, signal.SIG_DFL)  # a job in the background ignores it
    try:
        second = begun()
    finally:
        signal.signal(signal.SIGQUIT, before)
    waiting(kept, second)
    assert parent_of(first) == parent_of(second)
    quits = 1 << (signal.SIGQUIT - 1)
    assert ignored(first.pid) & quits
    assert not ignored(second.pid) & quits


def test_nobody_waits_for_one_who_stopped_while_asking(
    asked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_parent, "_PATIENCE_S", 0.0)
    place = os.open(asked, os.O_RDONLY)
    fcntl.flock(place, fcntl.LOCK_EX)
    assert not background_parent.fork(asked, (0, 1, 2))
    os.close(place)
