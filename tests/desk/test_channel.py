"""The channel of a session of this machine: its record, its owner's lines, and what happens when
the owner comes, goes or hangs."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.desk.test_local_host import QUESTION, HastyClock, entry, hello
from tests.support.clock import FakeClock
from tests.support.desk_world import (
    TIME,
    chain_of,
    desk,
    home_in,
    receive_until,
    record,
    write_session,
)
from tests.support.owner import FakeOwner, owner_process
from tui.app import background
from tui.app.background import BackgroundSession
from tui.app.door.lines import (
    AskedLine,
    Ended,
    FactLine,
    FromOwner,
    GiveAnswer,
    Hello,
    OwnerNotice,
    RecordEnd,
    RecordLines,
    RequestOutcome,
    SendPrompt,
    SessionStatus,
    StopTurn,
    UnsentLine,
    Watch,
)
from tui.app.options.arguments import Options
from tui.core.errors import SessionInUseError
from tui.core.paths import Folders
from tui.session.lock import SessionLock
from tui.session.reader import records_of
from tui.session.records import Record

FACT = {"type": "text_delta", "text": "so far"}


def ids_in(messages: list[FromOwner]) -> list[str]:
    """The ids of the records in what came, as a watcher has them."""
    lines: list[str] = []
    for one in messages:
        if isinstance(one, RecordLines):
            lines = [*([] if one.afresh else lines), *one.lines]
    return [one.id for one in records_of("\n".join(lines).encode())]


def append(path: Path, *records: Record) -> None:
    with path.open("ab") as file:
        file.write(b"".join(one.to_line() for one in records))


async def test_the_record_comes_before_the_facts(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    path = write_session(home, "abc", chain_of("a", "b", "c"))
    async with FakeOwner(home.data, hello("abc", path=str(path))) as owner, desk(home) as at:
        owner.last, owner.facts = "b", [FACT]
        channel = await at.host.open("abc")
        channel.send(Watch())
        _, first = await receive_until(channel, Hello)
        assert first == owner.hello
        before, end = await receive_until(channel, RecordEnd)
        assert ids_in(before) == ["a", "b"]
        assert end.last == "b"
        assert await channel.receive() == FactLine(fact=FACT)
        owner.tell(FactLine(fact={"type": "text_delta", "text": " and on"}))
        _, more = await receive_until(channel, FactLine)
        assert more.fact["text"] == " and on"


async def test_only_what_is_new_comes_again(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    path = write_session(home, "abc", chain_of("a", "b", "c"))
    async with FakeOwner(home.data, hello("abc", path=str(path))) as owner, desk(home) as at:
        owner.last = "c"
        channel = await at.host.open("abc")
        channel.send(Watch(after="b"))
        before, _ = await receive_until(channel, RecordEnd)
        assert ids_in(before) == ["c"]
        assert not any(isinstance(one, RecordLines) and one.afresh for one in before)
        append(path, record("d", "a"))
        owner.last = "d"
        owner.cut()  # it was too slow, say: the channel comes again by itself
        await receive_until(channel, Hello)
        before, end = await receive_until(channel, RecordEnd)
        assert end.last == "d"
        assert ids_in(before) == ["a", "b", "c", "d"]  # the branch is another one now


async def test_what_a_full_disk_did_not_take_is_named(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    path = write_session(home, "abc", chain_of("a"))
    async with FakeOwner(home.data, hello("abc", path=str(path))) as owner, desk(home) as at:
        owner.last = "never written"
        channel = await at.host.open("abc")
        channel.send(Watch())
        before, _ = await receive_until(channel, RecordEnd)
        assert ids_in(before) == ["a"]
        notices = [one for one in before if isinstance(one, OwnerNotice)]
        assert [one.level for one in notices] == ["warning"]
        assert "its disk may be full" in notices[0].text


async def test_a_watcher_that_reads_late_misses_nothing(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    async with FakeOwner(home.data, hello("abc")) as owner, desk(home) as at:
        channel = await at.host.open("abc")
        channel.send(Watch())
        await owner.got(Watch)
        for number in range(5000):
            owner.tell(FactLine(fact={"type": "text_delta", "text": f"{number} {'x' * 500}"}))
        await at.row_that("abc", lambda row: row.kind == "screen")
        for number in range(5000):
            _, told = await receive_until(channel, FactLine)
            assert told.fact["text"].startswith(f"{number} ")


async def test_a_session_that_is_not_saved_has_no_lines(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    async with FakeOwner(home.data, hello("abc")) as owner, desk(home) as at:
        owner.facts = [FACT]
        channel = await at.host.open("abc")
        channel.send(Watch())
        before, _ = await receive_until(channel, FactLine)
        assert not any(isinstance(one, RecordLines) for one in before)


async def test_requests_go_to_the_owner_and_their_outcomes_come_back(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    async with FakeOwner(home.data, hello("abc")) as owner, desk(home) as at:
        channel = await at.host.open("abc")
        channel.send(SendPrompt(number="1", text="hello"))
        _, outcome = await receive_until(channel, RequestOutcome)
        assert (outcome.number, outcome.outcome) == ("1", "sent")
        owner.tell(QUESTION)
        await receive_until(channel, AskedLine)
        channel.send(GiveAnswer(number="2", to="q1", answer={"yes": True}))
        channel.send(StopTurn(number="3"))
        for number in ("2", "3"):
            _, outcome = await receive_until(channel, RequestOutcome)
            assert (outcome.number, outcome.outcome) == (number, "done")
        assert (await owner.got(GiveAnswer)).to == "q1"


async def test_a_line_that_is_not_understood_costs_that_line(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    async with FakeOwner(home.data, hello("abc")) as owner, desk(home) as at:
        channel = await at.host.open("abc")
        await receive_until(channel, Hello)
        owner.say(b'{"type":"of a later version"}\n')
        owner.tell(SessionStatus(state="working"))
        await receive_until(channel, SessionStatus)
        row = await at.row_that("abc", lambda row: row.state == "working")
        assert not row.problem


# Nobody has it open


async def test_a_session_that_nobody_has_open_is_told_from_its_file(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    write_session(home, "abc", chain_of("a", "b"), cwd="/work")
    background.save(home, entry("abc", state="failed", detail="No credit."))
    async with desk(home) as at:
        channel = await at.host.open("abc")
        channel.send(Watch())
        _, first = await receive_until(channel, Hello)
        assert (first.kind, first.session, first.cwd) == ("none", "abc", "/work")
        _, status = await receive_until(channel, SessionStatus)
        assert (status.state, status.detail) == ("failed", "No credit.")
        before, end = await receive_until(channel, RecordEnd)
        assert (ids_in(before), end.last) == (["a", "b"], "b")


async def test_what_its_owner_left_unsent_follows_the_record(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    path = write_session(home, "abc", chain_of("a", "b"))
    draft = {"prompt": "typed", "queue": ["queued"], "answer": "I was", "after": 0}
    with path.open("ab") as file:
        file.write(Record("draft", "d", "b", TIME, draft).to_line())
    async with desk(home) as at:
        channel = await at.host.open("abc")
        channel.send(Watch())
        await receive_until(channel, RecordEnd)
        _, work = await receive_until(channel, UnsentLine)
        assert work == UnsentLine(texts=("queued", "typed"), answer="I was")


class Starts:
    """Stands in for the start of a background process: notes the options."""

    def __init__(self) -> None:
        self.options: list[Options] = []

    def __call__(
        self, home: Folders, options: Options, *, replaces_draft: bool = False
    ) -> BackgroundSession:
        assert replaces_draft
        self.options.append(options)
        return entry("abc")


async def test_a_prompt_starts_a_process_once(tmp_path: Path) -> None:
    home, starts = home_in(tmp_path), Starts()
    path = write_session(home, "abc", chain_of("a"), cwd=str(tmp_path))
    async with desk(home, start_process=starts) as at:
        for _ in range(2):  # the line was cut before the outcome came
            channel = await at.host.open("abc")
            channel.send(SendPrompt(number="1", text="go on"))
            _, outcome = await receive_until(channel, RequestOutcome)
            assert (outcome.number, outcome.outcome) == ("1", "sent")
        assert len(starts.options) == 1
        options = starts.options[0]
        assert (options.prompt, options.opening.resume) == ("go on", str(path))
        assert options.cwd == tmp_path


async def test_a_prompt_starts_it_with_its_own_options(tmp_path: Path) -> None:
    home, starts = home_in(tmp_path), Starts()
    path = write_session(home, "abc", chain_of("a"))
    about: dict[str, Any] = {"model": "some-model", "cwd": str(tmp_path), "background": True}
    background.save(home, entry("abc", state="done", options=about, path=str(path)))
    async with desk(home, start_process=starts) as at:
        channel = await at.host.open("abc")
        channel.send(SendPrompt(number="1", text="go on"))
        await receive_until(channel, RequestOutcome)
        assert (starts.options[0].models.model, starts.options[0].cwd) == ("some-model", tmp_path)


async def test_a_prompt_is_refused_where_the_folder_is_gone(tmp_path: Path) -> None:
    home, starts = home_in(tmp_path), Starts()
    write_session(home, "abc", chain_of("a"), cwd=str(tmp_path / "gone"))
    async with desk(home, start_process=starts) as at:
        channel = await at.host.open("abc")
        channel.send(SendPrompt(number="1", text="go on"))
        _, outcome = await receive_until(channel, RequestOutcome)
        assert outcome.outcome == "refused"
        assert "folder is gone" in outcome.text
        assert not starts.options


async def test_a_start_that_fails_refuses_the_prompt(tmp_path: Path) -> None:
    def start(_: Folders, __: Options, *, replaces_draft: bool = False) -> BackgroundSession:
        assert replaces_draft
        raise SessionInUseError("It is open elsewhere.", hint="Close it there.")

    home = home_in(tmp_path)
    write_session(home, "abc", chain_of("a"), cwd=str(tmp_path))
    async with desk(home, start_process=start) as at:
        channel = await at.host.open("abc")
        channel.send(SendPrompt(number="1", text="go on"))
        _, outcome = await receive_until(channel, RequestOutcome)
        assert (outcome.outcome, outcome.text) == ("refused", "It is open elsewhere.")


@pytest.mark.parametrize(
    "request_", [StopTurn(number="1"), GiveAnswer(number="1", to="q", answer=None)]
)
async def test_nobody_can_be_stopped_or_answered(
    tmp_path: Path, request_: StopTurn | GiveAnswer
) -> None:
    home = home_in(tmp_path)
    write_session(home, "abc", chain_of("a"))
    async with desk(home) as at:
        channel = await at.host.open("abc")
        channel.send(request_)
        _, outcome = await receive_until(channel, RequestOutcome)
        assert outcome.outcome == "refused"
        assert "nobody has the session open" in outcome.text


# Owners that come, go and hang


async def test_the_channel_outlives_its_owner(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    path = write_session(home, "abc", chain_of("a"))
    async with desk(home) as at:
        channel = await at.host.open("abc")
        channel.send(Watch())
        await receive_until(channel, RecordEnd)
        for last, ids in (("a", "b"), ("b", "c")):
            async with FakeOwner(home.data, hello("abc", path=str(path))) as owner:
                owner.last = last
                _, came = await receive_until(channel, Hello)
                assert came.kind == "screen"
                await receive_until(channel, RecordEnd)
                append(path, record(ids, last))  # a step, of which the owner tells facts
                await owner.end(with_=Ended(state="saved"))
            await receive_until(channel, Ended)
            _, came = await receive_until(channel, Hello)
            assert came.kind == "none"
            before, end = await receive_until(channel, RecordEnd)
            assert (ids_in(before), end.last) == ([ids], ids)


async def test_an_owner_that_is_killed_is_named(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    write_session(home, "abc", chain_of("a"))
    with owner_process(home.data, ["abc"]) as process:
        async with desk(home) as at:
            await at.row_that("abc", lambda row: row.kind == "background")
            channel = await at.host.open("abc")
            channel.send(Watch())
            await receive_until(channel, RecordEnd)
            process.kill()
            process.wait()
            _, ended = await receive_until(channel, Ended)
            assert (ended.state, ended.detail) == ("interrupted", "its process was killed")
            await receive_until(channel, RecordEnd)


async def test_what_a_hung_owner_cannot_do_is_refused(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    with owner_process(home.data, ["abc"]) as process:
        async with desk(home) as at:
            channel = await at.host.open("abc")
            _, came = await receive_until(channel, Hello)
            assert came.kind == "background"
            process.send_signal(signal.SIGSTOP)
            await at.row_that("abc", lambda row: row.problem)
            await receive_until(channel, SessionStatus)
            channel.send(StopTurn(number="1"))
            _, outcome = await receive_until(channel, RequestOutcome)
            assert outcome.outcome == "refused"
            assert "suspended" in outcome.text
            assert outcome.hint == "`holdfast stop abc` ends its process."
            process.send_signal(signal.SIGCONT)
            await at.row_that("abc", lambda row: not row.problem)
            channel.send(StopTurn(number="2"))
            _, outcome = await receive_until(channel, RequestOutcome)
            assert (outcome.number, outcome.outcome) == ("2", "done")


async def test_a_file_without_a_door_is_followed_as_it_grows(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    path = write_session(home, "abc", chain_of("a"))
    lock = SessionLock(path, clock=FakeClock())
    lock.take()
    async with desk(home, HastyClock()) as at:
        await at.row_that("abc", lambda row: row.problem)
        channel = await at.host.open("abc")
        channel.send(Watch())
        _, came = await receive_until(channel, Hello)
        assert came.kind == "none"
        _, status = await receive_until(channel, SessionStatus)
        assert "older Holdfast" in status.detail
        await receive_until(channel, RecordEnd)
        append(path, record("b", "a"))
        _, more = await receive_until(channel, RecordLines)
        assert (ids_in([more]), more.afresh) == (["b"], False)
        channel.send(SendPrompt(number="1", text="go on"))
        _, outcome = await receive_until(channel, RequestOutcome)
        assert outcome.outcome == "refused"
    lock.release()


async def test_an_owner_that_never_answers_is_read_from_its_file(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    write_session(home, "abc", chain_of("a"))
    owner = FakeOwner(home.data, hello("abc"))
    owner.silent = True
    async with owner, desk(home, HastyClock()) as at:
        channel = await at.host.open("abc")
        channel.send(Watch())
        before, _ = await receive_until(channel, RecordEnd)
        assert ids_in(before) == ["a"]
        assert any(isinstance(one, Hello) and one.kind == "none" for one in before)


async def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    path = write_session(home, "abc", chain_of("a"))
    async with desk(home) as at:
        channel = await at.host.open("abc")
        path.unlink()
        channel.send(Watch())
        before, end = await receive_until(channel, RecordEnd)
        assert [one.level for one in before if isinstance(one, OwnerNotice)] == ["error"]
        assert end.last == ""


async def test_a_closed_channel_says_nothing_more(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    async with FakeOwner(home.data, hello("abc")) as owner, desk(home) as at:
        channel = await at.host.open("abc")
        await receive_until(channel, Hello)
        await channel.close()
        channel.send(Watch())
        while await channel.receive() is not None:
            pass
        assert await channel.receive() is None
        await owner.until_peers(1)  # the host's own connection stays
