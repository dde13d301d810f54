"""What is typed, queued and streamed survives a crash."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.support.clock import FakeClock
from tui.core.paths import Folders
from tui.session.drafts import DraftReader, DraftWriter, UnsentWork
from tui.session.reader import read
from tui.session.session import Session


def begun(home: Folders, clock: FakeClock) -> tuple[Session, Path]:
    session = Session.create(Path("/w"), folders=home, clock=clock)
    assert session.path is not None
    return session, session.path


def drafts_in(path: Path) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [line for line in lines if line["type"] == "draft"]


def test_the_first_prompt_survives_though_it_was_never_sent(home: Folders) -> None:
    session, path = begun(home, FakeClock())
    assert session.draft(UnsentWork("how do I")) == 0
    assert read(path).unsent == UnsentWork("how do I")
    again = Session.of(read(path), clock=FakeClock())
    assert again.unsent.prompt == "how do I"
    assert again.records == []


def test_what_is_typed_is_written_once_a_second_and_the_answer_every_five(home: Folders) -> None:
    clock = FakeClock()
    session, path = begun(home, clock)
    session.append("user", content="q", text="q")
    assert session.draft(UnsentWork("a", (), "x")) == 0
    clock.elapsed = 0.4
    assert round(session.draft(UnsentWork("ab", (), "xy")), 3) == 0.6
    clock.elapsed = 1.0
    assert round(session.draft(UnsentWork("ab", (), "xyz")), 3) == 4
    assert read(path).unsent == UnsentWork("ab", (), "x")
    clock.elapsed = 5.0
    assert session.draft(UnsentWork("ab", ("next",), "xyz!")) == 0
    assert read(path).unsent == UnsentWork("ab", ("next",), "xyz!")
    assert session.draft(UnsentWork("ab", ("next",), "xyz!")) == 0
    assert [d.get("answer") for d in drafts_in(path)] == ["x", None, "yz!"]


def test_what_was_sent_or_finished_is_not_left_behind(home: Folders) -> None:
    session, path = begun(home, FakeClock())
    session.draft(UnsentWork("send me", ("queued", "other"), "partial"))
    session.append("user", content="send me", text="send me")
    session.append("user", content="queued", text="queued")
    assert read(path).unsent == UnsentWork("", ("other",), "partial")
    session.append("assistant", content="whole")
    assert read(path).unsent == UnsentWork("", ("other",), "")


async def test_commands_that_wait_have_a_field_of_their_own_where_some_do(home: Folders) -> None:
    clock = FakeClock()
    session, path = begun(home, clock)
    session.draft(UnsentWork("then", ("after it",), commands=("!make", "!!make test")))
    assert read(path).unsent == UnsentWork("then", ("after it",), commands=("!make", "!!make test"))
    clock.elapsed = 1.0
    session.draft(UnsentWork("then", ("after it",), commands=("!!make test",)))
    assert read(path).unsent.commands == ("!!make test",)
    session.draft(UnsentWork("then", ("after it",)))
    await session.close()
    assert read(path).unsent == UnsentWork("then", ("after it",))
    assert [draft.get("commands") for draft in drafts_in(path)] == [
        ["!make", "!!make test"],
        ["!!make test"],
        None,
    ]
    assert all(draft["queue"] == ["after it"] for draft in drafts_in(path))


async def test_a_command_alone_is_worth_a_draft(home: Folders) -> None:
    session, path = begun(home, FakeClock())
    session.draft(UnsentWork("", commands=("!make",)))
    await session.close()
    assert read(path).unsent
    assert read(path).unsent.commands == ("!make",)


async def test_drafts_are_no_part_of_the_branch(home: Folders) -> None:
    session, path = begun(home, FakeClock())
    session.append("user", content="one", text="one")
    session.draft(UnsentWork("two"))
    session.append("user", content="two", text="two")
    await session.close()
    loaded = read(path)
    assert [record.type for record in loaded.branch] == ["user", "user"]
    assert loaded.findings == ()
    assert not loaded.unsent


async def test_closing_writes_what_is_still_typed_and_removes_what_was_never_asked(
    home: Folders,
) -> None:
    session, path = begun(home, FakeClock())
    session.draft(UnsentWork("a"))
    session.draft(UnsentWork("ab"))
    await session.close()
    assert read(path).unsent.prompt == "ab"
    session, path = begun(home, FakeClock())
    session.draft(UnsentWork("a"))
    session.draft(UnsentWork(""))
    await session.close()
    assert not path.exists()
    assert not list(path.parent.glob("*.lock"))


async def test_a_resumed_session_is_never_removed(home: Folders) -> None:
    session, path = begun(home, FakeClock())
    session.draft(UnsentWork("a"))
    await session.close()
    again = Session.open(path, clock=FakeClock())
    again.draft(UnsentWork(""))
    await again.close()
    assert path.exists()


def test_a_lost_piece_of_an_answer_shows() -> None:
    reader = DraftReader()
    reader.see("draft", {"prompt": "", "queue": [], "answer": "abc", "after": 0})
    reader.see("draft", {"prompt": "", "queue": [], "answer": "ghi", "after": 6})
    assert reader.unsent().answer == "…ghi"
    reader.see("draft", {"prompt": "", "queue": [], "answer": "jkl", "after": 9})
    assert reader.unsent().answer == "…ghijkl"


@given(st.lists(st.dictionaries(st.text(), st.integers() | st.text() | st.none() | st.booleans())))
def test_odd_drafts_do_no_harm(given: list[dict[str, object]]) -> None:
    reader = DraftReader()
    for fields in given:
        reader.see("draft", fields | {"after": fields.get("after", 0)})
        reader.see("user", fields)
    assert isinstance(reader.unsent().answer, str)


@given(st.lists(st.tuples(st.floats(0, 3), st.text(max_size=4), st.text(max_size=5))))
def test_what_is_read_is_what_was_last_due(steps: list[tuple[float, str, str]]) -> None:
    """Whatever is typed and streamed: told often enough, the reader has all of it."""
    writer, reader, now, answer = DraftWriter(), DraftReader(), 0.0, ""
    for seconds, prompt, piece in steps:
        now, answer = now + seconds, answer + piece
        fields, wait = writer.note(now, UnsentWork(prompt, (), answer))
        if fields:
            reader.see("draft", fields)
        while wait:
            now += wait
            fields, wait = writer.note(now, UnsentWork(prompt, (), answer))
            if fields:
                reader.see("draft", fields)
        assert reader.unsent() == UnsentWork(prompt, (), answer)


def test_10_what_is_queued_is_written_at_once_and_taken_out_later() -> None:
    writer = DraftWriter()
    assert writer.note(0.0, UnsentWork("ty"))[0] is not None
    assert writer.note(0.1, UnsentWork("typed"))[0] is None
    fields, wait = writer.note(0.2, UnsentWork("", ("typed",)))
    assert fields is not None
    assert (fields["queue"], wait) == (["typed"], 0)
    fields, _ = writer.note(0.3, UnsentWork("", ("typed",), commands=("!ls",)))
    assert fields is not None
    assert fields["commands"] == ["!ls"]
    assert writer.note(0.4, UnsentWork())[0] is None, "its record as sent comes first"
