"""Which sessions there are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.clock import FakeClock
from tui.core.errors import SessionError
from tui.core.paths import Folders
from tui.session import catalog, copies, index, reader
from tui.session.profile_record import profile_of
from tui.session.session import Session

CALL: dict[str, Any] = {"type": "tool_use", "id": "a", "name": "read_file", "input": {}}


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": words}]


async def written(
    workspace: Path, home: Folders, clock: FakeClock, *told: tuple[str, dict[str, Any]]
) -> Session:
    """A closed session of a prompt and what was told after it; each a minute after the last."""
    clock.elapsed += 60
    session = Session.create(workspace, folders=home, clock=clock)
    session.append("user", content=text("fix it"), text="fix it")
    for type_, data in told:
        clock.elapsed += 1
        session.append(type_, **data)
    await session.close()
    assert session.path is not None
    stamp = clock.now().timestamp()
    os.utime(session.path, (stamp, stamp))
    return session


ANSWER: tuple[str, dict[str, Any]] = (
    "assistant",
    {"content": text("done"), "usage": {"input_tokens": 90, "output_tokens": 10}},
)
CALLED: tuple[str, dict[str, Any]] = ("assistant", {"content": [CALL]})


async def test_an_entry_says_what_interface_promises(home: Folders, clock: FakeClock) -> None:
    session = await written(Path("/w"), home, clock, ANSWER, ("title", {"title": "Fixed"}))
    entry = catalog.describe(catalog.files(home)[0])
    assert entry.to_json() == {
        "id": session.id,
        "path": str(session.path),
        "title": "Fixed",
        "cwd": "/w",
        "created": "2026-11-21T09:01:00.000Z",
        "updated": "2026-11-21T09:01:02.000Z",
        "messages": 2,
        "tokens": 100,
        "state": "ok",
        "problems": [],
        "profile": "",
    }


RESULT: tuple[str, dict[str, Any]] = ("tool_result", {"call_id": "a", "content": []})
ENDS: list[tuple[list[tuple[str, dict[str, Any]]], str]] = [
    ([], "interrupted"),
    ([ANSWER], "ok"),
    ([CALLED], "interrupted"),
    ([CALLED, ("intent", {"call_id": "a"})], "interrupted"),
    ([CALLED, RESULT], "interrupted"),
    ([("interrupt", {"text": "I was"})], "interrupted"),
    ([("error", {"message": "overloaded"})], "ok"),
    ([ANSWER, ("note", {"text": "x"})], "ok"),
]


@pytest.mark.parametrize(("told", "state"), ENDS)
async def test_the_state_is_how_the_last_turn_ended(
    home: Folders, clock: FakeClock, told: list[tuple[str, dict[str, Any]]], state: str
) -> None:
    await written(Path("/w"), home, clock, *told)
    assert index.list_sessions(home)[0].state == state


async def test_damage_and_unreadable_files_are_listed_not_hidden(
    home: Folders, clock: FakeClock
) -> None:
    session = await written(Path("/w"), home, clock, ANSWER)
    assert session.path is not None
    with session.path.open("ab") as file:
        file.write(b'{"type":"us')
    (session.path.parent / "20261121T100000Z-feedfeedfeed.jsonl").write_bytes(b"\0\0")
    os.mkfifo(session.path.parent / "20261121T110000Z-beefbeefbeef.jsonl")
    states = {entry.id: (entry.state, entry.problems) for entry in index.list_sessions(home)}
    assert states[session.id] == ("needs_repair", ("B40",))
    assert states["feedfeedfeed"][0] == "unreadable"
    assert states["beefbeefbeef"][0] == "unreadable"


async def test_the_one_used_last_comes_first_and_folders_are_apart(
    home: Folders, clock: FakeClock
) -> None:
    one = await written(Path("/w"), home, clock, ANSWER)
    other = await written(Path("/elsewhere"), home, clock, ANSWER)
    two = await written(Path("/w"), home, clock, ANSWER)
    assert [e.id for e in index.list_sessions(home, Path("/w"))] == [two.id, one.id]
    assert [e.id for e in index.list_sessions(home)] == [two.id, other.id, one.id]
    assert catalog.newest(home, Path("/w")) == two.path
    assert catalog.newest(home, Path("/nowhere")) is None


async def test_worktrees_are_listed_with_their_repository_and_continued_apart(
    home: Folders, clock: FakeClock
) -> None:
    tree = Path("/w/.holdfast/worktrees/fix")
    own = await written(Path("/w"), home, clock, ANSWER)
    inner = await written(tree, home, clock, ANSWER)
    below = await written(tree / "src", home, clock, ANSWER)
    for folder in (Path("/w"), tree):
        assert [e.id for e in index.list_sessions(home, folder)] == [inner.id, own.id]
    assert [e.id for e in index.list_sessions(home, Path("/w/src"))] == [below.id]
    assert catalog.newest(home, Path("/w")) == own.path
    assert catalog.newest(home, tree) == inner.path
    assert catalog.newest(home, tree.with_name("other")) is None


async def test_an_id_or_its_beginning_or_a_path_names_a_session(
    home: Folders, clock: FakeClock
) -> None:
    session = await written(Path("/w"), home, clock, ANSWER)
    for reference in (session.id, session.id[:6], str(session.path)):
        assert catalog.resolve(reference, home) == session.path


async def test_a_sub_agents_session_is_in_no_list_and_found_by_its_id(
    home: Folders, clock: FakeClock
) -> None:
    parent = await written(Path("/w"), home, clock, ANSWER)
    child = Session.create_child(parent, "toolu_1", clock=clock)
    child.append("user", content=[], text="look")
    await child.close()
    assert child.path is not None
    assert parent.path is not None
    assert catalog.files(home) == [parent.path]
    assert catalog.resolve(child.id, home) == child.path
    assert catalog.resolve(child.id[:8], home) == child.path
    with pytest.raises(SessionError):
        catalog.resolve("", home)
    assert [path for _, path, _ in catalog.scan_children(home)] == [str(child.path)]
    assert catalog.scan_children(home, Path("/elsewhere")) == []
    assert catalog.parent_of(child.path) == parent.path
    trashed = copies.delete(parent.path, folders=home, clock=clock)
    assert not child.path.exists()
    assert (trashed.with_suffix("") / child.path.name).exists()


async def test_unknown_and_ambiguous_names_list_the_candidates(
    home: Folders, clock: FakeClock
) -> None:
    with pytest.raises(SessionError, match="no sessions yet"):
        catalog.resolve("abc", home)
    session = await written(Path("/w"), home, clock, ANSWER)
    assert session.path is not None
    for id_ in ("feed00000001", "feed00000002"):
        session.path.with_name(f"20261121T100000Z-{id_}.jsonl").write_bytes(b"")
    with pytest.raises(SessionError, match=r"feed0000000[12], feed0000000[12]"):
        catalog.resolve("feed", home)
    with pytest.raises(SessionError, match=f"not found: zzz.*{session.id}"):
        catalog.resolve("zzz", home)
    with pytest.raises(SessionError, match="File not found"):
        catalog.resolve("/no/such.jsonl", home)
    with pytest.raises(SessionError):
        catalog.resolve("", home)


async def test_a_long_session_is_described_without_reading_it_whole(
    home: Folders, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = ("tool_result", {"call_id": "a", "content": text("x" * 9000)})
    more = [CALLED, long] * 40
    session = await written(Path("/w"), home, clock, *more, ANSWER)
    whole = index.list_sessions(home)[0]
    monkeypatch.setattr(catalog, "WHOLE", 100_000)
    monkeypatch.setattr(reader, "END_BYTES", 20_000)
    monkeypatch.setattr(catalog, "_CHUNK", 777)
    assert index.list_sessions(home) == [whole]
    assert whole.id == session.id
    assert whole.messages == 42


def test_no_sessions_is_an_empty_list(home: Folders) -> None:
    assert index.list_sessions(home) == []
    assert index.list_sessions(home, Path("/w")) == []


@pytest.mark.parametrize(
    "torn", [b"", b'{"type":"profile","id":"x","nam', b'{"type":"profile"\0\0\n']
)
def test_a_change_of_profile_that_was_cut_short_says_nothing(tmp_path: Path, torn: bytes) -> None:
    file = tmp_path / "session.jsonl"
    header = b'{"type":"session","id":"a","profile":"work"}\n'
    changed = b'{"type":"profile","id":"b","name":"home"}\n'
    file.write_bytes(header + torn)
    assert profile_of(file) == "work"
    file.write_bytes(header + changed + torn)
    assert profile_of(file) == "home"
