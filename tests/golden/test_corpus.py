"""What every front end makes of the sessions of the corpus is what it made before, to the line."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.golden import corpus
from tests.golden.corpus import Change, change, path_of
from tests.golden.forms import FORMS
from tests.golden.sessions import DEALT_FROM, event_of, material, sessions
from tui.session.field_types import FIELD_TYPES

_SHOWN = 60
_LEAST = 5
"""Sessions in which each type of record and class of event is at least."""
_MOST_BYTES = 2_950_000


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_as_it_was(form: str) -> None:
    found = change(form)
    if found is not None:
        shown = "\n".join(found.diff[:_SHOWN])
        more = f"\n… {len(found.diff) - _SHOWN} more" if len(found.diff) > _SHOWN else ""
        pytest.fail(
            f"{found.summary()}.\n{shown}{more}\n\nIf this is meant, run `python -m tests.golden`"
            f"{'' if found.allowed else ' --lost'} and review the difference.",
            pytrace=False,
        )


def test_the_corpus_is_small_enough_to_be_read() -> None:
    assert sum(path_of(form).stat().st_size for form in FORMS) < _MOST_BYTES


def test_every_type_is_in_several_sessions() -> None:
    records, happened = Counter[str](), Counter[str]()
    for session in sessions():
        if not session.name.startswith(("dealt ", *DEALT_FROM)):
            continue
        records.update({record.type for record in session.loaded.records})
        happened.update({event.type for event in session.events})
    dealt = {line["type"] for line in material("events.jsonl")}
    assert [kind for kind in FIELD_TYPES if records[kind] < _LEAST] == []
    assert [kind for kind in dealt if happened[kind] < _LEAST] == []


def test_an_event_is_told_by_its_line() -> None:
    for line in material("events.jsonl"):
        event = event_of(line)
        told = event.to_json()
        for name in line.keys() - {"usage", "event", "text"}:  # which are told shorter, or cleaned
            assert json.loads(json.dumps(told[name])) == line[name]


class TestWhatIsSaidOfAChange:
    """By a form that is made up."""

    @pytest.fixture
    def told(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        told = ["== one", "|a", "|b", "== two", "|c"]
        before = [*told]

        def kept(_: str) -> list[str]:
            return before

        def made(_: str) -> list[str]:
            return told

        monkeypatch.setattr(corpus, "kept", kept)
        monkeypatch.setattr(corpus, "made", made)
        return told

    def _change(self, form: str) -> Change:
        found = change(form)
        assert found is not None
        return found

    def test_lines_that_came_are_allowed_where_a_person_reads(self, told: list[str]) -> None:
        told.insert(2, "|new")
        found = self._change("stderr")
        assert (found.gained, found.lost, found.allowed) == (["one |new"], [], True)
        assert found.diff == ["== one", "+|new"]

    def test_nothing_that_a_program_reads_may_change(self, told: list[str]) -> None:
        told.insert(2, "|new")
        assert not self._change("stream-json").allowed

    def test_another_session_changes_none(self, told: list[str]) -> None:
        told += ["== three", "|d"]
        found = self._change("stream-json")
        assert (found.gained, found.allowed) == ([], True)
        assert found.diff == ["== three", "+|d"]

    def test_a_changed_line_is_a_lost_one(self, told: list[str]) -> None:
        told[4] = "|d"
        found = self._change("stderr")
        assert (found.lost, found.allowed) == (["two |c"], False)

    def test_of_a_long_line_the_place_is_shown(self, told: list[str]) -> None:
        long = "x" * 500
        corpus.kept("")[4] = f"|{long}y{long}"
        told[4] = f"|{long}z{long}"
        old, new = self._change("stderr").diff[1:]
        assert "y" in old
        assert "z" in new
        assert len(new) < 200
