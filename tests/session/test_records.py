"""Ids and lines."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tui.session.records import Header, Record, encode, new_id, new_session_id

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)


@given(st.lists(st.integers(-10_000_000, 10_000_000), max_size=20))
def test_ids_sort_in_the_order_of_making_even_if_the_clock_jumps(jumps: list[int]) -> None:
    ids: list[str] = []
    for seconds in jumps:
        ids.append(new_id(NOW + timedelta(seconds=seconds), after=ids[-1] if ids else ""))
    assert ids == sorted(set(ids))
    assert all(len(id_) == 20 for id_ in ids)


def test_a_foreign_id_does_not_disturb() -> None:
    assert new_id(NOW, after="line-7-3")[:14] == new_id(NOW)[:14]


def test_session_ids_differ_from_the_first_digits_on() -> None:
    assert len({new_session_id()[:4] for _ in range(50)}) > 40


def test_lines_are_single_lines_of_json_whatever_they_hold() -> None:
    odd = "a\nb\u2028c\ud800d\0"
    line = Record("user", "i", None, "t", {"content": odd}).to_line()
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert json.loads(line) == {
        "type": "user", "id": "i", "parent": None, "time": "t", "content": odd
    }  # fmt: skip
    assert encode({"a": "ü"}) == '{"a":"ü"}\n'.encode()


def test_a_header_names_its_origin_only_if_it_has_one() -> None:
    header = Header("i", "t", "/w", "holdfast 1")
    assert "origin" not in json.loads(header.to_line())
    fork = Header("j", "t", "/w", "holdfast 1", origin="i")
    assert json.loads(fork.to_line())["origin"] == "i"
