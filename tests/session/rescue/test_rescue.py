"""Other agents' sessions, damaged at random and mended in their own format."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import cast

import pytest

from tests.support import foreign
from tests.support.foreign import ClaudeCode, Json, compacted_claude_code, lines
from tests.support.foreign_damage import damaged
from tests.support.foreign_rules import claude_code_messages, refusal
from tui.session.rescue import rescue

DAMAGED = pytest.mark.parametrize("count", [100, pytest.param(300, marks=pytest.mark.slow)])
"""So many damaged sessions of a kind."""
OPENED = 0.95
BOM = "\ufeff".encode()
TURNS = 8

SAMPLES: dict[str, tuple[str, Callable[[], list[Json]]]] = {
    "claude_code": ("claude_code", lambda: foreign.claude_code(TURNS).records),
    "claude_code compacted": ("claude_code", lambda: compacted_claude_code(TURNS).records),
    "claude_code preserved messages": (
        "claude_code",
        lambda: compacted_claude_code(TURNS, "messages").records,
    ),
    "claude_code preserved segment": (
        "claude_code",
        lambda: compacted_claude_code(TURNS, "segment").records,
    ),
    "codex": ("codex", lambda: foreign.codex(TURNS).records),
    "pi 1": ("pi", lambda: foreign.pi(TURNS, 1).records),
    "pi 2": ("pi", lambda: foreign.pi(TURNS, 2).records),
    "pi 3": ("pi", lambda: foreign.pi(TURNS, 3).records),
}
samples = pytest.mark.parametrize("name", SAMPLES)


@samples
@DAMAGED
def test_damaged_sessions_are_opened_by_their_own_programs_rules(name: str, count: int) -> None:
    format_, sample = SAMPLES[name]
    refused: dict[int, str] = {}
    before = 0
    for seed in range(count):
        data = damaged(sample(), random.Random(seed))
        before += not refusal(format_, data)
        mended = rescue(data)
        assert mended is not None
        assert mended.format == format_
        if why := refusal(format_, mended.data):
            refused[seed] = why
        again = rescue(mended.data)
        assert again is not None
        assert (again.repairs, again.data) == ((), mended.data), seed
    assert before < 0.6 * count, "the damage is real"
    assert len(refused) <= (1 - OPENED) * count, refused


@samples
def test_no_record_that_can_be_read_is_lost(name: str) -> None:
    """What it says is in the copy, or in what was set aside."""
    for seed in range(60):
        data = damaged(SAMPLES[name][1](), random.Random(seed))
        mended = rescue(data)
        assert mended is not None
        rest = mended.data + mended.set_aside
        for line in data.split(b"\n"):
            said = line.strip().removeprefix(BOM).removeprefix(BOM).removeprefix(BOM)
            assert (
                not said or said in rest or all(words.encode() in rest for words in _texts(said))
            ), (seed, said)


def _texts(line: bytes) -> list[str]:
    try:
        value = json.loads(line)
    except ValueError:
        return ["never there"]
    return [f'"{text}"' for text in _leaves(value)]


def _leaves(value: Json) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner: list[Json] = []
    if isinstance(value, dict):
        inner = list(cast("dict[str, Json]", value).values())
    elif isinstance(value, list):
        inner = cast("list[Json]", value)
    return [text for one in inner for text in _leaves(one)]


@samples
def test_a_sound_session_is_unchanged(name: str) -> None:
    format_, sample = SAMPLES[name]
    data = lines(sample())
    assert refusal(format_, data) == ""
    mended = rescue(data)
    assert mended is not None
    assert (mended.data, mended.repairs, mended.set_aside) == (data, (), b"")


def test_what_is_broken_is_set_aside_and_the_rest_stays_as_it_was() -> None:
    whole = foreign.pi().bytes()
    broken = b'{"type":"message","id":"x\n'
    mended = rescue(whole + broken)
    assert mended is not None
    assert mended.data == whole
    assert mended.set_aside == broken


def test_what_is_no_session_is_none() -> None:
    assert rescue(b"") is None
    assert rescue(b'{"a": 1}\nhello\n') is None


def test_other_branches_stay_as_they_are() -> None:
    made = foreign.claude_code(2)
    fork = made.last
    made.piece("msg_x", foreign.tool_use("toolu_x"), parent=fork)  # stopped there, and asked anew
    abandoned = made.records[-1]
    made.user("another way", parent=fork)
    made.piece("msg_y", foreign.text("fine"))
    made.piece("msg_z", foreign.tool_use("toolu_z"))
    mended = rescue(made.bytes())
    assert mended is not None
    assert len(mended.repairs) == 1
    assert lines([abandoned]) in mended.data
    assert mended.data.count(b"The result of this call is lost") == 1
    assert refusal("claude_code", mended.data) == ""


def test_what_real_sessions_have_stays_as_it_is() -> None:
    made = foreign.claude_code(1)
    made.piece("msg_blank", foreign.text("\n\n"))
    made.user("and now?")
    made.records = [one for one in made.records if "uuid" in one]
    made.records[0]["parentUuid"] = "in-another-file"  # a session that was continued
    mended = rescue(made.bytes())
    assert mended is not None
    assert mended.repairs == ()
    for record in made.records:  # of a sub-agent, that goes on from a record of its parent's file
        record["isSidechain"] = True
    mended = rescue(made.bytes())
    assert mended is not None
    assert mended.repairs == ()


def _mended(records: list[Json]) -> list[Json]:
    """What the program opens of a session that was mended."""
    mended = rescue(lines(records))
    assert mended is not None
    assert refusal("claude_code", mended.data) == ""
    return claude_code_messages(mended.data)


def _without(records: list[Json], *lost: Json) -> list[Json]:
    return [one for one in records if one not in lost]


def _summary_of(records: list[Json]) -> Json:
    return next(one for one in records if one.get("isCompactSummary"))


def _boundary_of(records: list[Json]) -> Json:
    return next(one for one in records if one.get("subtype") == "compact_boundary")


@pytest.mark.parametrize("preserved", ["", "messages", "segment"])
def test_a_compaction_that_lost_its_place_goes_on_from_its_summary(preserved: str) -> None:
    records = compacted_claude_code(4, preserved).records
    boundary = _boundary_of(records)
    told = _mended(_without(records, boundary))
    if preserved:  # what it named is lost with it: all that was said is there again
        assert told[0] == records[0]
    else:
        assert told[0] == {**_summary_of(records), "parentUuid": None}


def test_a_compaction_that_lost_its_summary_says_so() -> None:
    records = compacted_claude_code(4).records
    summary = _summary_of(records)
    first = records[records.index(summary) + 1]
    told = _mended(_without(records, summary, first))
    assert told[0] == _boundary_of(records)
    assert told[1]["message"]["content"][0]["text"] == (
        "[The summary of the conversation before this is lost]"
    )
    assert told[2]["type"] == "assistant"


def test_what_a_compaction_left_in_place_stays_though_some_of_it_is_lost() -> None:
    records = compacted_claude_code(4, "messages").records
    summary = _summary_of(records)
    asked, answered = (records[records.index(_boundary_of(records)) + place] for place in (-2, -1))
    told = [one["uuid"] for one in _mended(_without(records, asked))]
    assert told[:3] == [_boundary_of(records)["uuid"], summary["uuid"], answered["uuid"]]
    told = [one["uuid"] for one in _mended(_without(records, asked, answered))]
    assert told[:2] == [_boundary_of(records)["uuid"], summary["uuid"]]


def test_a_piece_that_is_marked_as_a_side_chain_belongs_to_the_conversation() -> None:
    records = foreign.claude_code(2).records
    marked = next(one for one in records if "tool_use" in str(one.get("message")))
    sound = [one["uuid"] for one in claude_code_messages(lines(records))]
    marked["isSidechain"] = True
    assert [one["uuid"] for one in _mended(records)] == sound


def test_results_between_the_pieces_of_an_answer_stay() -> None:
    made = ClaudeCode()
    made.user("prompt")
    made.piece("msg_a", foreign.tool_use("toolu_1"))
    made.result("toolu_1", "one")
    second = made.piece("msg_a", foreign.tool_use("toolu_2"))
    made.piece("msg_a", foreign.tool_use("toolu_3"))
    made.result("toolu_3", "three")
    made.piece("msg_a", foreign.tool_use("toolu_4"))
    made.result("toolu_4", "four")
    after = made.last
    made.result("toolu_2", "two", parent=second)
    made.piece("msg_b", foreign.text("done"), parent=after)
    mended = rescue(made.bytes())
    assert mended is not None
    assert mended.repairs == ()
    del made.records[-3]  # a result
    mended = rescue(made.bytes())
    assert mended is not None
    assert mended.data.count(b"is lost]") == 1
    assert refusal("claude_code", mended.data) == ""


@pytest.mark.parametrize(
    ("record", "format_"),
    [
        ({"type": "user", "uuid": "a", "sessionId": "s", "message": {}}, "claude_code"),
        ({"type": "message", "id": "a", "timestamp": "2026-01-01T00:00:00Z"}, "pi"),
    ],
)
def test_a_file_of_nothing_that_can_be_kept_is_set_aside_whole(record: Json, format_: str) -> None:
    mended = rescue(lines([record]))
    assert mended is not None
    assert mended.format == format_
    assert mended.set_aside == lines([record])
