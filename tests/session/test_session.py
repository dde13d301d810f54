"""A session: made, written, resumed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.clock import FakeClock
from tui.core.errors import SessionError
from tui.core.messages import Usage
from tui.core.paths import Folders
from tui.session.chain import linked
from tui.session.session import Session, children_of, file_of_child

TEXT = [{"type": "text", "text": "fix the flaky test"}]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def make(workspace: Path, home: Folders, clock: FakeClock) -> tuple[Session, Path]:
    session = Session.create(workspace, folders=home, clock=clock)
    assert session.path is not None
    return session, session.path


def written(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


async def test_the_file_appears_with_the_first_prompt_and_has_what_came_before(
    workspace: Path, home: Folders, clock: FakeClock
) -> None:
    session, path = make(workspace, home, clock)
    session.append("directive", think=True, verbose=False, elevated=False)
    await session.sync()
    assert not path.exists()
    await session.commit("user", content=TEXT, text="fix the flaky test")
    assert path.parent == home.sessions_of(workspace)
    assert path.name == f"20261121T090000Z-{session.id}.jsonl"
    header, directive, prompt = written(path)
    assert header["type"] == "session"
    assert (header["id"], header["cwd"]) == (session.id, str(workspace))
    assert (directive["parent"], prompt["parent"]) == (None, directive["id"])
    await session.close()


async def test_a_session_in_which_nothing_was_asked_leaves_no_trace(
    workspace: Path, home: Folders, clock: FakeClock
) -> None:
    session, _ = make(workspace, home, clock)
    session.append("directive", think=True, verbose=False, elevated=False)
    assert session.saved
    await session.close()
    assert not home.sessions.exists()


async def test_in_memory_keeps_records_and_no_file(
    workspace: Path, home: Folders, clock: FakeClock
) -> None:
    session = Session.in_memory(workspace, clock=clock)
    record = await session.commit("user", content=TEXT, text="x")
    assert session.path is None
    assert session.records == [record]
    assert session.saved
    await session.close()
    assert not home.data.exists()


async def test_a_resumed_session_goes_on_where_it_was(
    workspace: Path, home: Folders, clock: FakeClock
) -> None:
    session, path = make(workspace, home, clock)
    session.append("user", content=TEXT, text="fix the flaky test")
    usage = {"input_tokens": 100, "output_tokens": 10}
    session.append("assistant", content=TEXT, model="claude-sonnet-5-5", usage=usage)
    session.append("assistant", content=TEXT, model="claude-opus-5-5", usage=usage)
    await session.close()
    before = path.read_bytes()

    clock.elapsed -= 3600  # the clock jumped back
    again = Session.open(path, clock=clock)
    assert path.read_bytes() == before
    assert again.resumed
    assert again.findings == ()
    assert again.records == session.records
    assert (again.id, again.title, again.model) == (
        session.id, "fix the flaky test", "claude-opus-5-5"
    )  # fmt: skip
    assert again.usage == Usage(input_tokens=200, output_tokens=20)
    record = await again.commit("user", content=TEXT, text="more")
    assert record.parent == session.records[-1].id
    assert record.id > session.records[-1].id
    line, _ = linked(record.to_line(), json.loads(before.splitlines()[-1])["chain"])
    assert path.read_bytes() == before + line
    await again.close()


async def test_B40_what_a_kill_left_is_kept_and_written_behind(
    workspace: Path, home: Folders, clock: FakeClock
) -> None:
    session, path = make(workspace, home, clock)
    session.append("user", content=TEXT, text="one")
    await session.close()
    with path.open("ab") as file:
        file.write(b'{"type":"assistant","id":"00')
    torn = path.read_bytes()
    again = Session.open(path, clock=clock)
    assert [finding.code for finding in again.findings] == ["B40"]
    again.append("user", content=TEXT, text="two")
    await again.close()
    assert path.read_bytes().startswith(torn + b"\n")
    third = Session.open(path, clock=clock)
    assert [record.data["text"] for record in third.records] == ["one", "two"]
    assert [finding.code for finding in third.findings] == ["B52"]


async def test_K26_directives_are_saved_and_come_back_as_they_stand(
    workspace: Path, home: Folders, clock: FakeClock
) -> None:
    session, path = make(workspace, home, clock)
    session.append("directive", think=True, verbose=False, elevated=False)
    session.append("user", content=TEXT, text="x")
    session.append("directive", think=True, verbose=True, elevated=False)
    expected = {"think": True, "verbose": True, "elevated": False}
    assert session.metadata["directives"] == expected
    await session.close()
    assert Session.open(path, clock=clock).metadata["directives"] == expected


async def test_K44_odd_directives_in_a_file_do_no_harm(
    workspace: Path, home: Folders, clock: FakeClock
) -> None:
    session, path = make(workspace, home, clock)
    session.append("user", content=TEXT, text="x")
    session.append("directive", think="yes", elevated=None, colour="red")
    await session.close()
    assert Session.open(path, clock=clock).directives == {"think": "yes", "elevated": None}
    assert Session.in_memory(workspace, clock=clock).directives is None


async def test_the_title_is_the_first_prompt_until_one_is_given(
    workspace: Path, clock: FakeClock
) -> None:
    session = Session.in_memory(workspace, clock=clock)
    session.append("user", content=[{"type": "text", "text": "a\n  long " + "word " * 99}])
    session.append("user", content=TEXT, text="second")
    assert session.title.startswith("a long word")
    assert len(session.title) <= 80
    assert session.title.endswith("…")
    session.append("title", title="Flaky test")
    assert session.title == "Flaky test"


async def test_a_symlink_to_a_session_is_followed_once(
    workspace: Path, home: Folders, clock: FakeClock, tmp_path: Path
) -> None:
    session, path = make(workspace, home, clock)
    session.append("user", content=TEXT, text="x")
    await session.close()
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    again = Session.open(link, clock=clock)
    assert again.path == Path(os.path.realpath(path))
    await again.commit("note", text="hi")
    await again.close()


def test_what_is_not_there_cannot_be_opened(tmp_path: Path, clock: FakeClock) -> None:
    with pytest.raises(SessionError, match=r"nothing\.jsonl"):
        Session.open(tmp_path / "nothing.jsonl", clock=clock)


def test_a_record_names_sub_agents_only_beside_its_session_or_its_origin(tmp_path: Path) -> None:
    sessions = tmp_path / "sessions" / "slug"
    parent, origin = sessions / "new.jsonl", sessions / "old.jsonl"
    for one in (parent, origin):
        children_of(one).mkdir(parents=True)
        (children_of(one) / f"{one.stem}-child.jsonl").touch()
    moved = tmp_path / "before" / "new" / "new-child.jsonl"
    assert file_of_child(parent, str(moved)) == children_of(parent) / "new-child.jsonl"
    of_origin = children_of(origin) / "old-child.jsonl"
    assert file_of_child(parent, str(of_origin)) == of_origin
    assert file_of_child(parent, "") is None
    for other in ("/etc/passwd", tmp_path / "x/y/z.jsonl", children_of(origin) / "../../a/b.jsonl"):
        with pytest.raises(SessionError, match="wasn't opened"):
            file_of_child(parent, str(other))
