"""The branches of a session, from whatever records there are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.clock import FakeClock
from tui.app.reports.branches import branch_facts, branch_rows, indent
from tui.core.errors import SessionError
from tui.core.paths import Folders
from tui.session.branches import branch_named, branches
from tui.session.reader import path_to, read
from tui.session.records import Record
from tui.session.session import Session

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


class Told:
    """Records as a session writes them."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.minutes = 0

    def add(self, type_: str, parent: str | None, **data: Any) -> str:
        self.minutes += 1
        time = (NOON + timedelta(minutes=self.minutes)).isoformat()
        id_ = f"{len(self.records) + 1:020x}"
        self.records.append(Record(type_, id_, parent, time, data))
        return id_

    def turn(self, text: str, parent: str | None, *, dollars: int = 0) -> str:
        """A prompt and its answer, which costs that many dollars."""
        asked = self.add("user", parent, text=text, content=[])
        usage = {"output_tokens": dollars * 100_000}  # at $10 a million
        return self.add("assistant", asked, content=[], model="claude-sonnet-5-5", usage=usage)


def told() -> Told:
    """A session that was rewound twice: p1 p2 p3, p1 q2, q2 again, and back on the first."""
    made = Told()
    one = made.turn("p1", None, dollars=1)
    two = made.turn("p2", one, dollars=2)
    three = made.turn("p3", two, dollars=3)
    other = made.turn("q2", made.add("rewind", one, left=three), dollars=4)
    made.add("rewind", one, left=other)  # to nothing: no branch
    made.add("rewind", three, left=other)
    return made


def test_each_branch_has_its_own_prompts_cost_and_place() -> None:
    records = told().records
    rows = branch_rows(records, {})
    facts = [
        (r.first, r.prompts, r.all_prompts, round(r.cost_usd or 0, 6), r.depth, r.current)
        for r in rows
    ]
    whole = round(sum(row.cost_usd or 0 for row in rows), 6)
    assert facts == [
        ("p1", 3, 3, 6.0, 0, True),
        ("q2", 1, 2, 4.0, 1, False),
    ]
    assert whole == 10.0
    first, second = rows
    assert (first.parent, first.fork) == (None, None)
    assert (second.parent, second.fork) == (first.leaf, records[1].id)
    assert second.fork_words == "p1"
    assert first.leaf == records[-1].id
    assert first.updated == records[5].time, "standing on it is nothing new"


def test_a_rewind_to_nothing_is_shown_while_the_session_is_there() -> None:
    records = told().records[:-1]
    rows = branch_rows(records, {})
    assert [(row.first, row.prompts, row.current) for row in rows] == [
        ("p1", 3, False), ("q2", 1, False), ("", 0, True),
    ]  # fmt: skip


def test_before_the_first_prompt_another_branch_begins_the_file() -> None:
    made = Told()
    end = made.turn("p1", None)
    made.turn("q1", made.add("rewind", None, left=end))
    assert [(b.first, b.parent, b.fork, b.depth) for b in branches(made.records)] == [
        ("p1", None, None, 0), ("q1", None, None, 0),
    ]  # fmt: skip
    assert branches([]) == []


@pytest.mark.parametrize("deep", [True, False])
def test_5000_branches_are_flat_and_fast(deep: bool) -> None:
    made = Told()
    end = made.turn("p", None)
    for number in range(5000):
        asked = made.add("user", end, text=f"old {number}", content=[])
        fork = made.add("rewind", end, left=asked)
        after = made.add("user", fork, text=f"new {number}", content=[])
        end = after if deep else end
    rows = branch_rows(made.records, {})
    assert len(rows) == (5001 if deep else 10_000)
    assert max(row.depth for row in rows) == (5000 if deep else 1)
    assert all(len(indent(row)) < 24 for row in rows)
    assert {row.leaf for row in rows} >= {made.records[-1].id}


def test_a_clock_that_runs_backwards_makes_nothing_older_than_now() -> None:
    records = told().records
    (row, *_) = branch_rows(records, {})
    assert branch_facts(row, NOON - timedelta(days=3)) == "3 prompts · now · $6.00"
    assert branch_facts(row, NOON + timedelta(hours=5)) == "3 prompts · 4 h ago · $6.00"
    odd = [Record(r.type, r.id, r.parent, "soon", r.data) for r in records]
    assert branch_facts(branch_rows(odd, {})[0], NOON) == "3 prompts · $6.00"


def test_a_record_before_its_parent_and_one_without_any() -> None:
    made = told()
    moved = [*made.records[6:], *made.records[:6]]
    assert {b.leaf for b in branches(moved)} >= {made.records[-1].id}
    assert [row.prompts for row in branch_rows(moved, {})]
    lost = [*made.records, Record("user", "f" * 20, "nowhere", "", {"text": "lost", "content": []})]
    assert branches(lost)[-1].first == "lost"


def test_a_branch_is_named_by_its_leaf_its_beginning_or_any_record_of_its_own() -> None:
    records = told().records
    found = branches(records)
    first, second = found
    assert branch_named(found, second.leaf) is second
    assert branch_named(found, second.leaf.upper()) is second
    assert branch_named(found, records[4].id) is first, "its leaf before the session came back"
    assert branch_named(found[1:], "0000") is second
    with pytest.raises(SessionError, match="is the beginning of 2 branches"):
        branch_named(found, "0000")
    for name in ("f00", "", "  "):
        with pytest.raises(SessionError, match="no branch") as error:
            branch_named(found, name)
        assert "sessions tree" in error.value.hint


async def test_a_session_stands_where_another_branch_ended_and_keeps_its_title(
    tmp_path: Path,
) -> None:
    folders = Folders(*(tmp_path / name for name in ("data", "config", "cache", "log")))
    session = Session.create(tmp_path, folders=folders, clock=FakeClock())
    path = session.path
    assert path
    made = [session.append("user", text=text, content=[]) for text in ("one", "two", "three")]
    session.append("title", title="a name")
    left = session.records[-1].id
    rewound = await session.rewind(made[1].id)
    assert rewound.data == {"target": made[1].id, "left": left, "prompts": 2}
    session.append("user", text="other", content=[])
    await session.move_to(path_to(read(path).records, left), checkpoint="c1")
    assert session.records[-1].data["checkpoint"] == "c1"
    assert session.records[-1].data["files_stay"] is True
    await session.close()
    loaded = read(path)
    assert [r.data["text"] for r in loaded.branch if r.type == "user"] == ["one", "two", "three"]
    assert Session.of(loaded, clock=FakeClock()).title == "a name"
    assert [branch.first for branch in branches(loaded.records)] == ["one", "other"]
