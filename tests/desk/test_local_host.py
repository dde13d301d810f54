"""This machine's sessions as the desk lists them, with real sockets and processes."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from pathlib import Path

import pytest

from tests.support.clock import FakeClock
from tests.support.desk_world import TIME, Desk, chain_of, desk, home_in, write_session
from tests.support.owner import FakeOwner, live_folder, owner_process
from tui.app import background
from tui.app.background import BackgroundSession
from tui.app.door.lines import AskedLine, Ended, Hello, SessionStatus, Settled
from tui.app.options.arguments import Options
from tui.core.clock import SystemClock, timestamp
from tui.core.errors import HoldfastError, SessionError
from tui.core.paths import Folders
from tui.core.process_birth import born
from tui.core.questions import UserQuestion
from tui.desk.local_host import LocalHost
from tui.permissions.asked import AskedQuestions
from tui.session.lock import SessionLock

QUESTION = AskedLine(
    number="q1", asked=AskedQuestions((UserQuestion("", "Which port?", ()),), ""), since=TIME
)


def hello(id_: str, **more: object) -> Hello:
    about = {"session": id_, "pid": os.getpid(), "kind": "screen", "version": "1", "cwd": "/work"}
    return Hello(**{**about, **more})  # pyright: ignore[reportArgumentType] - what a test names


def entry(id_: str, **changes: object) -> BackgroundSession:
    about = {
        "id": id_,
        "path": f"/sessions/{id_}.jsonl",
        "cwd": "/work",
        "pid": os.getpid(),
        "born": born(os.getpid()),
        "host": socket.gethostname(),
        "started": TIME,
        "since": timestamp(SystemClock().now()),
    }
    return BackgroundSession(**{**about, **changes})  # pyright: ignore[reportArgumentType] - what a test names


async def test_an_open_session_is_listed_with_what_its_owner_says(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    path = write_session(home, "abc", chain_of("r1"))
    status = SessionStatus(state="working", detail="run_command pytest", model="m", cost_usd=0.5)
    serving = FakeOwner(home.data, hello("abc", path=str(path)), status)
    async with serving as owner, desk(home) as at:
        row = await at.row_that("abc", lambda row: row.detail)
        assert (row.state, row.detail, row.kind) == ("working", "run_command pytest", "screen")
        assert (row.model, row.cost_usd, row.cwd, row.pid) == ("m", 0.5, "/work", os.getpid())
        assert (row.title, row.started, row.path) == ("r1", TIME, str(path))
        owner.tell(SessionStatus(state="idle", title="a better title"))
        row = await at.row_that("abc", lambda row: row.state == "idle")
        assert row.title == "a better title"


async def test_a_session_opens_by_its_title_too(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    one = write_session(home, "abc", chain_of("Fix the a/b parser"))
    write_session(home, "d1", chain_of("plan"))
    write_session(home, "d2", chain_of("plan"))
    async with desk(home) as at:
        channel = await at.host.open("fix THE a/b")
        line = await channel.receive()
        assert isinstance(line, Hello)
        assert (line.session, line.path) == ("abc", str(one))
        await channel.close()
        with pytest.raises(SessionError, match="2 sessions are called “plan”") as refused:
            await at.host.open("plan")
        assert "d1, d2" in refused.value.hint
        with pytest.raises(SessionError, match=r"Not a session.s id: \.\./x"):
            await at.host.open("../x")


async def test_steps_that_cannot_be_saved_are_named(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    status = SessionStatus(state="working", detail="answering", unsaved="No space left on device")
    async with FakeOwner(home.data, hello("abc"), status), desk(home) as at:
        row = await at.row_that("abc", lambda row: row.detail)
        assert row.detail == "can't save its steps: No space left on device"
        assert not row.problem, "its owner can be asked all the same"


async def test_a_question_is_seen_at_once_and_goes_once_it_is_settled(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    async with FakeOwner(home.data, hello("abc")) as owner, desk(home) as at:
        await at.row_that("abc", lambda row: row.kind == "screen")
        owner.tell(QUESTION)
        row = await at.row_that("abc", lambda row: row.questions)
        assert (row.state, row.detail, row.questions) == ("waiting", "Which port?", (QUESTION,))
        assert row.since == TIME
        owner.tell(Settled(number="q1"))
        row = await at.row_that("abc", lambda row: not row.questions)
        assert row.state == "idle"


async def test_a_row_that_did_not_change_stays_the_same_object(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    one, serving = FakeOwner(home.data, hello("one")), FakeOwner(home.data, hello("two"))
    async with one, serving as two, desk(home) as at:
        await at.row_that("one", lambda row: row.kind == "screen")
        await at.row_that("two", lambda row: row.kind == "screen")
        before = at.row("one")
        two.tell(SessionStatus(state="working"))
        await at.row_that("two", lambda row: row.state == "working")
        assert at.row("one") is before


async def test_many_changes_are_told_a_few_times_a_second(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    async with FakeOwner(home.data, hello("abc")) as owner, desk(home) as at:
        await at.row_that("abc", lambda row: row.kind == "screen")
        began, before = asyncio.get_running_loop().time(), at.changes
        for count in range(300):
            owner.tell(SessionStatus(state="working", detail=str(count)))
            await asyncio.sleep(0.001)
        await at.row_that("abc", lambda row: row.detail == "299")
        seconds = asyncio.get_running_loop().time() - began
        assert at.changes - before <= seconds * 5 + 2


async def test_a_follower_that_fails_ends_nothing(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    host = LocalHost(home)

    def fail() -> None:
        raise RuntimeError("a fault")

    host.follow(fail)
    at = Desk(host)
    try:
        for id_ in ("abc", "def"):
            async with FakeOwner(home.data, hello(id_), SessionStatus(state="idle")):
                await at.row_that(id_, lambda row: row.kind == "screen")
    finally:
        await host.close()


async def test_sessions_that_come_and_go_are_seen(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    async with desk(home) as at:
        assert not at.host.rows
        write_session(home, "abc", chain_of("r1"))
        async with FakeOwner(home.data, hello("abc"), SessionStatus(cost_usd=0.5)) as owner:
            await at.row_that("abc", lambda row: row.kind == "screen")
            await owner.end(with_=Ended(state="stopped", detail="by the person"))
            row = await at.row_that("abc", lambda row: row.state == "stopped")
            assert row.cost_usd == 0.5
            assert (row.kind, row.detail, row.seen) == ("none", "by the person", False)
        await at.host.dismiss("abc")
        assert (await at.row_that("abc", lambda row: row.seen)).state == "stopped"


async def test_how_it_ended_is_known_before_its_entry_says_so(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    write_session(home, "abc", chain_of("r1"))
    background.save(home, entry("abc", state="working", detail="run_command pytest"))
    states: list[str] = []
    async with FakeOwner(home.data, hello("abc", kind="background")) as owner, desk(home) as at:
        at.host.follow(lambda: states.append(row.state if (row := at.row("abc")) else ""))
        await at.row_that("abc", lambda row: row.kind == "background" and row.state == "idle")
        await owner.end(with_=Ended(state="done", detail="All done."))
        row = await at.row_that("abc", lambda row: row.state == "done")
        assert row.detail == "All done."
        assert "working" not in states


async def test_an_owner_that_is_killed_leaves_an_interrupted_session(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    write_session(home, "abc", chain_of("r1"))
    with owner_process(home.data, ["abc"]) as process:
        async with desk(home) as at:
            await at.row_that("abc", lambda row: row.kind == "background")
            process.kill()
            process.wait()
            row = await at.row_that("abc", lambda row: row.kind == "none")
            assert (row.state, row.detail) == ("interrupted", "its process was killed")


async def test_an_owner_that_is_suspended_is_named_and_holds_up_no_other(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    with owner_process(home.data, ["abc"]) as process:
        async with FakeOwner(home.data, hello("two")) as two, desk(home) as at:
            await at.row_that("abc", lambda row: row.kind == "background")
            process.send_signal(signal.SIGSTOP)
            row = await at.row_that("abc", lambda row: row.problem)
            assert "suspended" in row.problem
            two.tell(SessionStatus(state="working"))
            await at.row_that("two", lambda row: row.state == "working")
            process.send_signal(signal.SIGCONT)
            await at.row_that("abc", lambda row: not row.problem)


class HastyClock(SystemClock):
    """A clock whose seconds are short."""

    def monotonic(self) -> float:
        return super().monotonic() * 20


async def test_an_owner_that_says_nothing_is_named(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    owner = FakeOwner(home.data, hello("abc"))
    owner.silent = True
    async with owner, desk(home, HastyClock()) as at:
        row = await at.row_that("abc", lambda row: row.problem)
        assert row.problem == "its process hasn't answered for 3 s; it can only be read"


async def test_an_owner_that_falls_silent_is_asked_again(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    async with FakeOwner(home.data, hello("abc")) as owner, desk(home, HastyClock()) as at:
        await at.row_that("abc", lambda row: row.kind == "screen")
        owner.silent = True
        await at.row_that("abc", lambda row: "hasn't answered" in row.problem)
        owner.tell(SessionStatus(state="working"))
        row = await at.row_that("abc", lambda row: not row.problem)
        assert row.state == "working"


async def test_an_owner_of_another_version_can_be_read_only(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    later = hello("abc", protocol=99, version="9.0")
    async with FakeOwner(home.data, later), desk(home) as at:
        row = await at.row_that("abc", lambda row: row.problem)
        assert row.problem == "it runs in Holdfast 9.0; it can only be read from here"


async def test_an_owner_that_refuses_is_named_with_its_reason(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    owner = FakeOwner(home.data, hello("abc"))
    owner.refusal = "An agent started this process."
    async with owner, desk(home) as at:
        row = await at.row_that("abc", lambda row: row.problem)
        assert row.problem == "An agent started this process."
        await owner.end()
        await at.until(lambda: at.row("abc") is None)


async def test_a_session_that_is_written_without_a_door_can_be_read_only(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    path = write_session(home, "abc", chain_of("r1"))
    lock = SessionLock(path, clock=FakeClock())
    lock.take()
    async with desk(home, HastyClock()) as at:
        row = await at.row_that("abc", lambda row: row.problem)
        assert (row.pid, row.kind) == (os.getpid(), "none")
        assert "older Holdfast" in row.problem
        assert row.state in {"working", "idle"}
        lock.release()
        row = await at.row_that("abc", lambda row: not row.problem)
        assert row.state == "saved"


async def test_background_sessions_that_ended_are_listed_for_a_day(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    background.save(home, entry("abc", state="failed", detail="No credit.", cost_usd=0.2))
    background.save(home, entry("old", state="done", since="2026-01-01T00:00:00.000Z"))
    background.save(home, entry("run", state="working", pid=1, born="never"))
    async with desk(home) as at:
        rows = {row.id: (row.state, row.detail, row.cost_usd, row.seen) for row in at.host.rows}
        assert rows["abc"] == ("failed", "No credit.", 0.2, False)
        assert rows["run"] == ("interrupted", "killed, or the machine restarted", None, False)
        assert "old" not in rows
        await at.host.dismiss("abc")
        await at.row_that("abc", lambda row: row.seen)


async def test_sub_agents_and_old_sessions_are_not_listed(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    path = write_session(home, "abc", chain_of("r1"))
    child = path.with_suffix("") / "20261121-090000-child.jsonl"
    child.parent.mkdir()
    child.write_bytes(path.read_bytes())
    old = write_session(home, "old", chain_of("r1"))
    os.utime(old, (1_600_000_000, 1_600_000_000))
    async with desk(home) as at:
        assert {row.id: row.state for row in at.host.rows} == {"abc": "interrupted"} or {
            row.id for row in at.host.rows
        } == {"abc"}
        assert (await at.host.open("old")) is not None


async def test_the_branch_of_the_folder_is_shown(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "project" / ".git" / "HEAD").write_text("ref: refs/heads/fix-it\n")
    write_session(home, "abc", chain_of("r1"), cwd=str(tmp_path / "project"))
    async with desk(home) as at:
        row = at.row("abc")
        assert row is not None
        assert row.branch == "fix-it"


# Sockets that are not ours


async def test_a_file_in_the_place_of_a_socket_is_not_connected_to(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    (live_folder(home.data) / "abc.sock").write_text("")
    async with desk(home) as at:
        await at.until(lambda: at.host.problem)
        assert "abc.sock isn't used: it is no socket" in at.host.problem
        assert not at.host.rows


async def test_a_link_to_a_socket_is_not_connected_to(tmp_path: Path) -> None:
    home, elsewhere = home_in(tmp_path), home_in(tmp_path / "elsewhere")
    async with FakeOwner(elsewhere.data, hello("abc")) as owner:
        (live_folder(home.data) / "abc.sock").symlink_to(owner.path)
        async with desk(home) as at:
            await at.until(lambda: at.host.problem)
            assert "it is no socket" in at.host.problem
            assert owner.peers == 0


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o707])
async def test_a_folder_that_others_may_use_is_left_alone(tmp_path: Path, mode: int) -> None:
    home = home_in(tmp_path)
    async with FakeOwner(home.data, hello("abc")) as owner:
        owner.path.parent.chmod(mode)
        async with desk(home) as at:
            await at.until(lambda: at.host.problem)
            assert "others may use it" in at.host.problem
            assert owner.peers == 0
            owner.path.parent.chmod(0o700)
            await at.row_that("abc", lambda row: row.kind == "screen")
            assert not at.host.problem


async def test_a_folder_that_is_a_link_is_left_alone(tmp_path: Path) -> None:
    home, elsewhere = home_in(tmp_path), home_in(tmp_path / "elsewhere")
    async with FakeOwner(elsewhere.data, hello("abc")) as owner:
        home.data.mkdir()
        (home.data / "live").symlink_to(owner.path.parent)
        async with desk(home) as at:
            await at.until(lambda: at.host.problem)
            assert "it is a link or a file" in at.host.problem
            assert owner.peers == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's socket is made by root")
async def test_another_users_socket_is_not_connected_to(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    async with FakeOwner(home.data, hello("abc")) as owner:
        os.chown(owner.path, 65534, 65534)
        async with desk(home) as at:
            await at.until(lambda: at.host.problem)
            assert "it is another user's" in at.host.problem
            assert owner.peers == 0


async def test_a_socket_nobody_listens_on_is_no_session(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    owner = FakeOwner(home.data, hello("abc"))
    async with owner:
        name = owner.path.rename(owner.path.with_suffix(".kept"))
    name.rename(owner.path)
    async with FakeOwner(home.data, hello("two")), desk(home) as at:
        await at.row_that("two", lambda row: row.kind == "screen")
        assert [row.id for row in at.host.rows] == ["two"]


async def test_a_long_path_is_no_obstacle(tmp_path: Path) -> None:
    home = home_in(tmp_path / ("a" * 120))
    async with FakeOwner(home.data, hello("abc")), desk(home) as at:
        await at.row_that("abc", lambda row: row.kind == "screen")


# Starting


async def test_a_session_is_started_in_its_folder(tmp_path: Path) -> None:
    orders: list[Options] = []

    def start(_: Folders, options: Options) -> BackgroundSession:
        orders.append(options)
        return entry("abc")

    async with desk(home_in(tmp_path), start_process=start) as at:
        assert await at.host.start(str(tmp_path), "fix it") == "abc"
        assert (orders[0].cwd, orders[0].prompt) == (tmp_path, "fix it")
        with pytest.raises(HoldfastError, match="Not a folder"):
            await at.host.start(str(tmp_path / "gone"), "fix it")


async def test_a_session_is_opened_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    for id_ in ("abc1", "abd2"):
        write_session(home, id_, chain_of("r1"))
    async with desk(home) as at:
        assert (await at.host.open("abc")).session == "abc1"
        for wrong in ("ab", "zzz", "/etc/passwd", ""):
            with pytest.raises(HoldfastError):
                await at.host.open(wrong)


async def test_a_session_that_began_just_now_can_be_opened(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    async with desk(home) as at:
        background.save(home, entry("abc"))
        assert (await at.host.open("abc")).session == "abc"


async def test_two_desks_see_the_same(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    async with FakeOwner(home.data, hello("abc")) as owner, desk(home) as one, desk(home) as two:
        for at in (one, two):
            await at.row_that("abc", lambda row: row.kind == "screen")
        owner.tell(QUESTION)
        for at in (one, two):
            await at.row_that("abc", lambda row: row.questions == (QUESTION,))
