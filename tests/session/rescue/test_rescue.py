"""Other agents' sessions, damaged at random and mended in their own format."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import cast

import pytest

from tests.support import foreign
from tests.support.foreign import Json, lines
from tests.support.foreign_damage import damaged
from tests.support.foreign_rules import refusal
from tui.session.rescue import rescue

DAMAGED = 300
OPENED = 0.95
BOM = "\ufeff".encode()
TURNS = 8

SAMPLES: dict[str, tuple[str, Callable[[], list[Json]]]] = {
    "claude_code": ("claude_code", lambda: foreign.claude_code(TURNS).records),
    "codex": ("codex", lambda: foreign.codex(TURNS).records),
    "pi 1": ("pi", lambda: foreign.pi(TURNS, 1).records),
    "pi 2": ("pi", lambda: foreign.pi(TURNS, 2).records),
    "pi 3": ("pi", lambda: foreign.pi(TURNS, 3).records),
}
samples = pytest.mark.parametrize("name", SAMPLES)


@samples
def test_damaged_sessions_are_opened_by_their_own_programs_rules(name: str) -> None:
    format_, sample = SAMPLES[name]
    refused: dict[int, str] = {}
    before = 0
    for seed in range(DAMAGED):
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
    assert before < 0.6 * DAMAGED, "the damage is real"
    assert len(refused) <= (1 - OPENED) * DAMAGED, refused


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
