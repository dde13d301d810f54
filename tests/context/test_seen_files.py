"""What the model last saw of each file, by the record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tui.context.overrides import RecordState
from tui.context.seen_files import (
    GONE,
    SeenFiles,
    difference_of,
    news,
    notice_of,
    outdated,
    outdated_calls,
    quoted,
)
from tui.session.records import Record


class Branch:
    """Records of a branch that grows, with ids that sort by time."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.states: dict[str, RecordState] = {}
        self.seen = SeenFiles(lambda name: f"/w/{name}")

    def add(self, type_: str, **data: Any) -> str:
        id_ = f"{len(self.records):04d}"
        self.records.append(Record(type_, id_, None, "", data))
        self.states[id_] = "full"
        return id_

    def read(self, path: str, state: str, **more: Any) -> str:
        details = {"path": path, "size": 1, "mtime_ns": 2, "sha256": state, **more}
        return self.add("tool_result", call_id=f"c{len(self.records)}", details=details)

    def wrote(self, path: str, state: str | None, **more: Any) -> str:
        details = {"path": path, "after_sha256": state}
        return self.add("tool_result", call_id="w", details=details, **more)

    def known(self) -> dict[str, str]:
        self.seen.follow(self.records)
        found = self.seen.beliefs(self.states.get)
        return {path: one.known for path, one in found.items()}

    def news(self, now: Mapping[str, str]) -> list[str]:
        self.seen.follow(self.records)
        found = news(self.seen.beliefs(self.states.get).values(), now)
        if found:
            self.add("notice", **notice_of(found, str))
        return [f"{one.path} {one.word}" for one in found]


def test_the_last_that_is_in_the_window_counts() -> None:
    branch = Branch()
    first, second = branch.read("/w/a", "1"), branch.read("/w/a", "2")
    assert branch.known() == {"/w/a": "2"}
    branch.states[second] = "masked"
    assert branch.known() == {"/w/a": "1"}
    branch.states[first] = "pruned"
    assert branch.known() == {}
    wrote = branch.wrote("/w/a", "3")
    branch.states[wrote] = "pruned"  # the call that wrote it says what is there
    assert branch.known() == {"/w/a": "3"}
    branch.states = dict.fromkeys(branch.states, "summarised")
    assert branch.known() == {}


def test_what_was_written_deleted_refused_and_failed() -> None:
    branch = Branch()
    branch.wrote("/w/a", "1")
    branch.wrote("/w/b", None)
    branch.wrote("/w/c", "1", is_error=True)
    several = [{"path": "/w/d", "after_sha256": "4"}, {"path": "/w/e", "after_sha256": None}]
    branch.add("tool_result", call_id="p", details={"files": several})
    branch.add("tool_result", call_id="r", is_error=True, details={"path": "/w/f", "sha256": "6"})
    branch.add("tool_result", call_id="x", details={"path": "/w/g", "unseen": True, "sha256": "7"})
    branch.add("tool_result", call_id="y", details={"path": "relative", "sha256": "8"})
    branch.add("tool_result", call_id="z", details={"path": "/w/large", "size": 9, "mtime_ns": 3})
    assert branch.known() == {
        "/w/a": "1", "/w/b": GONE, "/w/d": "4", "/w/e": GONE, "/w/f": "6", "/w/large": "9 3",
    }  # fmt: skip


def test_each_change_is_news_once() -> None:
    branch = Branch()
    branch.read("/w/a", "1")
    assert branch.news({"/w/a": "1"}) == []
    assert branch.news({"/w/a": "2"}) == ["/w/a changed"]
    assert branch.news({"/w/a": "2"}) == []
    assert branch.news({"/w/a": GONE}) == ["/w/a gone"]
    assert branch.news({"/w/a": "1"}) == ["/w/a back"]
    assert branch.news({"/w/a": "2"}) == ["/w/a changed"]
    branch.read("/w/a", "2")
    assert branch.news({"/w/a": "2"}) == []
    assert branch.news({"/w/a": "1"}) == ["/w/a changed"]
    assert branch.news({}) == []  # what nobody has looked at


def test_a_notice_that_is_not_sent_told_nothing() -> None:
    branch = Branch()
    branch.read("/w/a", "1")
    branch.news({"/w/a": "2"})
    branch.seen.follow(branch.records)
    (belief,) = branch.seen.beliefs(branch.states.get, lambda _: False).values()
    assert belief.known == "1"


def test_a_difference_counts_as_seen() -> None:
    branch = Branch()
    read = branch.read("/w/a", "1")
    shown = branch.add("notice", **difference_of("/w/a", "2", "a", "-1\n+2"))
    assert branch.known() == {"/w/a": "2"}
    branch.seen.follow(branch.records)
    beliefs = branch.seen.beliefs(branch.states.get).values()
    assert outdated(beliefs, {"/w/a": "2"}) == []
    (found,) = outdated(beliefs, {"/w/a": "3"})
    assert found.belief.last.record == shown
    branch.states[shown] = "masked"
    assert branch.seen.beliefs(branch.states.get)["/w/a"].last.record == read


def test_parts_of_one_state_are_outdated_together() -> None:
    branch = Branch()
    branch.read("/w/a", "0")
    branch.read("/w/a", "1", lines=[1, 50])
    branch.read("/w/a", "1", lines=[51, 90])
    branch.seen.follow(branch.records)
    (found,) = outdated(branch.seen.beliefs(branch.states.get).values(), {"/w/a": "2"})
    assert found.calls == ["c2", "c1"]
    assert [one.lines for one in found.belief.excerpts] == [(51, 90), (1, 50)]


def test_a_branch_that_was_rewound_is_read_again() -> None:
    branch = Branch()
    branch.read("/w/a", "1")
    branch.read("/w/b", "1")
    assert len(branch.known()) == 2
    del branch.records[1:]
    branch.read("/w/c", "1")
    assert branch.known() == {"/w/a": "1", "/w/c": "1"}


def test_the_calls_that_a_record_says_to_be_outdated() -> None:
    branch = Branch()
    branch.read("/w/a", "1")
    branch.read("/w/b", "1")
    branch.news({"/w/a": "2", "/w/b": "2"})
    assert outdated_calls(branch.records) == {"c0", "c1"}
    branch.news({"/w/a": "1", "/w/b": "2"})
    assert outdated_calls(branch.records) == {"c1"}


def test_what_holds_for_all_files_is_said_once() -> None:
    branch = Branch()
    for name in "abc":
        branch.read(f"/w/{name}", "1")
    branch.news({f"/w/{name}": GONE for name in "ab"} | {"/w/c": "1"})
    branch.news(dict.fromkeys(("/w/a", "/w/b", "/w/c"), "2"))
    branch.news({"/w/a": "1", "/w/b": GONE, "/w/c": "3"})
    again, back = "Read them again before you rely on them.", 'Back to what you last saw: "/w/a".'
    assert [one.data["text"] for one in branch.records if one.type == "notice"] == [
        'Changed since you last saw them: "/w/a", "/w/b" (all deleted).',
        f'Changed since you last saw them: "/w/a", "/w/b", "/w/c". {again}',
        f'Changed since you last saw them: "/w/b" (deleted), "/w/c". {again} {back}',
    ]


def test_a_name_is_one_line_in_quotes_and_not_long() -> None:
    assert quoted("a.py") == '"a.py"'
    assert quoted('a"\n\u202e\ud800') == '"a\\"\\u000a\\u202e\\ud800"'
    assert len(quoted("x" * 5000)) < 200
    assert quoted("</notice>") == '"\\u003c/notice>"'
