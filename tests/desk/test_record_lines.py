"""The part of a session's file that a watcher lacks."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.desk_world import chain_of, home_in, record, write_session
from tui.core.errors import SessionError
from tui.desk.record_lines import CHUNK, FilePart, grown, part_after, texts
from tui.session.reader import active_branch, records_of
from tui.session.records import Record


def lines_of(path: Path, part: FilePart) -> list[str]:
    lines, at = list[str](), part.start
    while at < part.end:
        some, at = texts(path, at, part.end)
        assert sum(map(len, some[:-1])) < CHUNK
        lines += some
    return lines


def ids_in(path: Path, part: FilePart) -> list[str]:
    return [one.id for one in records_of("\n".join(lines_of(path, part)).encode())]


def test_only_what_follows_is_told(tmp_path: Path) -> None:
    path = write_session(home_in(tmp_path), "abc", chain_of("a", "b", "c", "d"))
    part = part_after(path, "b", "c")
    assert (ids_in(path, part), part.afresh, part.whole, part.last) == (["c"], False, True, "c")
    assert part_after(path, "c", "c").afresh is False
    assert ids_in(path, part_after(path, "c", "c")) == []
    assert ids_in(path, part_after(path, "b", None)) == ["c", "d"]


def test_all_is_told_to_who_has_nothing(tmp_path: Path) -> None:
    path = write_session(home_in(tmp_path), "abc", chain_of("a", "b", "c"))
    part = part_after(path, "", "b")
    assert (ids_in(path, part), part.afresh) == (["a", "b"], True)
    assert '"type":"session"' in lines_of(path, part)[0]


def test_a_rewind_begins_afresh(tmp_path: Path) -> None:
    rewound = [*chain_of("a", "b", "c"), record("d", "a"), record("e", "d")]
    path = write_session(home_in(tmp_path), "abc", rewound)
    part = part_after(path, "c", "e")
    assert (ids_in(path, part), part.afresh) == (["a", "b", "c", "d", "e"], True)
    assert part_after(path, "d", "e").afresh is False


def test_an_unknown_record_begins_afresh(tmp_path: Path) -> None:
    path = write_session(home_in(tmp_path), "abc", chain_of("a", "b"))
    assert part_after(path, "zzz", "b").afresh
    assert part_after(path, "a", "").afresh  # the owner has no records


def test_what_a_full_disk_did_not_take_is_missed(tmp_path: Path) -> None:
    path = write_session(home_in(tmp_path), "abc", chain_of("a", "b"))
    part = part_after(path, "a", "never written")
    assert (ids_in(path, part), part.whole) == (["b"], False)


def test_drafts_and_a_line_that_is_cut_short_are_left_out(tmp_path: Path) -> None:
    path = write_session(home_in(tmp_path), "abc", chain_of("a"))
    with path.open("ab") as file:
        file.write(b'{"type":"draft","prompt":"half"}\n{"type":"user","id":"b","par')
    part = part_after(path, "", None)
    assert (ids_in(path, part), part.last) == (["a"], "a")
    assert not any("draft" in line for line in lines_of(path, part))
    with path.open("ab") as file:
        file.write(b'ent":"a","time":"","text":"b"}\n')
    more = grown(path, part)
    assert (ids_in(path, more), more.afresh) == (["b"], False)


def test_a_file_that_was_replaced_is_told_afresh(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    path = write_session(home, "abc", chain_of("a", "b"))
    part = part_after(path, "", None)
    assert grown(path, part).end == part.end
    other = write_session(home, "xyz", chain_of("c"))
    other.replace(path)
    more = grown(path, part)
    assert (ids_in(path, more), more.afresh) == (["c"], True)


def test_damage_costs_a_line_alone(tmp_path: Path) -> None:
    path = write_session(home_in(tmp_path), "abc", chain_of("a"))
    with path.open("ab") as file:
        file.write(b"\xff\xfe garbage\n" + record("b", "a").to_line())
    part = part_after(path, "a", "b")
    assert len(lines_of(path, part)) == 2
    assert part.afresh is False


def test_a_long_file_comes_in_parts(tmp_path: Path) -> None:
    long = [record("a", None, "x" * 400_000), record("b", "a", "y" * 2_500_000), record("c", "b")]
    path = write_session(home_in(tmp_path), "abc", long)
    part = part_after(path, "", "c")
    first, at = texts(path, 0, part.end)
    assert at < part.end
    assert len(first) == 3  # the header, and the record that fills it up
    assert ids_in(path, part) == ["a", "b", "c"]


def test_no_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SessionError):
        part_after(tmp_path / "gone.jsonl", "", None)


@pytest.mark.property
@given(st.data())
def test_what_was_told_makes_the_same_branch(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """In parts, with rewinds between, a watcher has the branch that the file has."""
    ids = [f"r{n}" for n in range(data.draw(st.integers(1, 8)))]
    records: list[Record] = []
    for n, id_ in enumerate(ids):
        parent = data.draw(st.sampled_from([None, *ids[:n], *ids[max(0, n - 1) : n] * 6]))
        records.append(record(id_, parent))
    path = write_session(home_in(tmp_path_factory.mktemp("home")), "abc", records)
    known: list[str] = []
    for last in sorted(data.draw(st.sets(st.sampled_from(ids)))):
        branch = active_branch(records_of("\n".join(known).encode()))
        part = part_after(path, branch[-1].id if branch else "", last)
        told = lines_of(path, part)
        known = told if part.afresh else [*known, *told]
        upto = active_branch(records[: ids.index(last) + 1])
        now = active_branch(records_of("\n".join(known).encode()))
        assert [one.id for one in now] == [one.id for one in upto]
