"""Branches inside a file: what is left stays there, what is read is the newest."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.clock import FakeClock
from tui.core.errors import SessionError
from tui.core.messages import text_block
from tui.core.paths import Folders
from tui.session.reader import read
from tui.session.request_numbers import numbered
from tui.session.session import Session


def texts(path: Path) -> list[str]:
    return [str(r.data["text"]) for r in read(path).branch if r.type == "user"]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(*(tmp_path / name for name in ("data", "config", "cache", "log")))


async def test_a_rewound_session_is_read_from_the_new_branch(
    tmp_path: Path, folders: Folders
) -> None:
    clock = FakeClock()
    session = Session.create(tmp_path, folders=folders, clock=clock)
    path = session.path
    assert path
    made = [session.append("user", text=text, content=[]) for text in ("one", "two", "three")]
    session.append("title", title="a name")
    await session.rewind(made[1].id)
    await session.close()
    assert texts(path) == ["one"]
    assert len([r for r in read(path).records if r.type == "user"]) == 3
    again = Session.open(path, clock=clock)
    assert again.title == "a name"
    again.append("user", text="other", content=[])
    await again.close()
    assert texts(path) == ["one", "other"]
    assert not read(path).findings


async def test_to_before_the_first_prompt(tmp_path: Path, folders: Folders) -> None:
    session = Session.create(tmp_path, folders=folders, clock=FakeClock())
    path = session.path
    assert path
    first = session.append("user", text="one", content=[])
    await session.rewind(first.id)
    session.append("user", text="other", content=[])
    await session.close()
    assert texts(path) == ["other"]
    assert not read(path).findings


async def test_what_is_not_on_the_branch_is_refused(tmp_path: Path, folders: Folders) -> None:
    session = Session.create(tmp_path, folders=folders, clock=FakeClock())
    session.append("user", text="one", content=[])
    with pytest.raises(SessionError, match="No record"):
        await session.rewind("nowhere")
    assert len(session.records) == 1
    await session.close()


async def test_the_number_of_a_request_is_its_own_on_every_branch(
    tmp_path: Path, folders: Folders
) -> None:
    session = Session.create(tmp_path, folders=folders, clock=FakeClock())
    session.append("note", text="begun")
    first = session.append("user", content=[text_block("one")])
    session.append("request", n=session.requests + 1)
    session.append("request", n=session.requests + 1)
    await session.rewind(first.id)
    session.append("user", content=[text_block("two")])
    session.append("request", n=session.requests + 1)
    session.append("request", n=1)  # of a version that counted each branch for itself
    assert session.requests == 4
    await session.close()
    assert session.path
    loaded = read(session.path)
    assert [number for number, _ in numbered(loaded.records)] == [1, 2, 3, 4]
    assert Session.of(loaded, clock=FakeClock()).requests == 4
