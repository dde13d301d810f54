"""Steps that make a request smaller: O23, O31, R37, R38, B24, B34–B36."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.context.pictures import image, png
from tests.context.wild import assistant, call, messages, result, text, user
from tui.context.digest import SUMMARY, digest
from tui.context.repair import repair
from tui.context.repair_levels import summary_only
from tui.context.shrink import (
    clamp_results,
    compacted,
    cut_at,
    drop_oldest,
    images_to_text,
    starts_turn,
)
from tui.context.validate import check
from tui.core.messages import Message
from tui.tools.limits.clamp import SUFFIX


def worked(turns: int) -> list[Any]:
    said: list[Any] = []
    for n in range(turns):
        said += [
            user(f"prompt {n}"), assistant(call(f"t{n}")), user(result(f"t{n}", f"out {n}")),
            assistant(f"answer {n}"),
        ]  # fmt: skip
    return [*said, user("last")]


def sizes(said: Sequence[Message]) -> int:
    return len(json.dumps(list(said)))


def test_O23_oversized_results_are_cut_to_what_a_result_may_be() -> None:
    long, lines = "x" * 60_000, "line\n" * 3000
    said: list[Any] = [
        user("go"),
        assistant(call("a"), call("b"), call("c")),
        user(result("a", long), result("b", [text(lines)]), result("c", "short")),
    ]
    before = copy.deepcopy(said)
    cut, findings = clamp_results(said, window=200_000)
    a, b, c = cut[2]["content"]
    assert a["content"].endswith(SUFFIX)
    assert len(a["content"]) <= 51_200
    assert b["content"][0]["text"].count("\n") + 1 <= 2000
    assert c is said[2]["content"][2]
    assert [f.where for f in findings] == ["messages.2.content.0", "messages.2.content.1"]
    assert {f.code for f in findings} == {"O23"}
    assert said == before
    assert check(cut) == []
    assert clamp_results(cut, window=200_000) == (cut, ())


def test_O23_in_a_small_window_the_token_share_cuts() -> None:
    words = "word " * 8000
    said: list[Any] = [user("go"), assistant(call("a")), user(result("a", words))]
    assert clamp_results(said, window=200_000) == (said, ())
    cut, _ = clamp_results(said, window=8000)
    assert "tokens exceeds limit of 2400" in cut[2]["content"][0]["content"]


def test_O31_images_of_earlier_turns_become_text_the_oldest_first() -> None:
    picture = image(png(9, 9))
    said: list[Any] = [
        user("one", picture), assistant(call("a")), user(result("a", [text("x"), picture])),
        assistant("so"), user("two", picture),
    ]  # fmt: skip
    thin, findings = images_to_text(said)
    placeholder = text("[image removed: from an earlier turn]")
    assert thin == [
        user("one", placeholder), assistant(call("a")),
        user(result("a", [text("x"), placeholder])), assistant("so"), user("two", picture),
    ]  # fmt: skip
    assert [f.code for f in findings] == ["O31", "O31"]
    assert check(thin) == []
    assert images_to_text(thin) == (thin, ())


def test_B35_no_more_images_go_than_the_bytes_ask_for() -> None:
    picture = image(png(9, 9) + b"\0" * 9000)
    said: list[Any] = [
        user("a", picture),
        assistant("b"),
        user("c", picture),
        assistant("d"),
        user("e"),
    ]
    size = sizes(said)
    thin, findings = images_to_text(said, budget_bytes=size - 5000)
    assert sizes(thin) <= size - 5000
    assert [f.where for f in findings] == ["messages.0.content.1"]
    assert images_to_text(said, budget_bytes=size) == (said, ())


def test_R38_the_oldest_turns_go_until_it_fits() -> None:
    said = worked(5)
    limit = sizes(said[8:])
    kept, findings = drop_oldest(said, lambda given_: sizes(given_) <= limit)
    assert kept == said[8:]
    assert findings[0].code == "R38"
    assert "8 messages" in findings[0].action
    assert check(kept) == []


def test_R38_at_least_the_last_turn_stays() -> None:
    said: list[Any] = [*worked(2)[:-1], user("big " * 100), assistant(call("z")), user(result("z"))]
    kept, _ = drop_oldest(said, lambda _: False)
    assert kept == said[-3:]
    assert drop_oldest(kept, lambda _: False) == (kept, ())


def test_R38_a_summary_at_the_beginning_stays() -> None:
    said: list[Any] = [user(f"{SUMMARY}\nAll of it.", "prompt"), assistant("so"), user("next")]
    kept, _ = drop_oldest(said, lambda _: False)
    assert kept == [user(f"{SUMMARY}\nAll of it.", "next")]


def test_R38_what_fits_is_not_touched() -> None:
    said = worked(3)
    kept, findings = drop_oldest(said, lambda _: True)
    assert kept is said
    assert findings == ()


def test_R37_a_compaction_keeps_the_last_six_behind_the_summary() -> None:
    said: list[Any] = [user(f"p{n}") if n % 2 == 0 else assistant(f"a{n}") for n in range(20)]
    cut = cut_at(said)
    assert cut == 14
    made, findings = compacted(said, "We did it.", cut)
    assert made[0] == user(f"{SUMMARY}\nWe did it.", "p14")
    assert made[1:] == said[15:]
    assert check(made, tail="open") == []
    assert findings == ()


def test_R37_the_call_of_a_kept_result_is_pulled_in() -> None:
    rounds: list[Any] = []
    for n in range(10):
        rounds += [assistant(call(f"t{n}")), user(result(f"t{n}"))]
    said: list[Any] = [user("one long turn"), *rounds, assistant("done")]
    cut = cut_at(said)
    assert said[cut]["role"] == "assistant"
    assert len(said) - cut == 7
    made, _ = compacted(said, "S", cut)
    assert made == [user(f"{SUMMARY}\nS"), *said[cut:]]
    assert check(made, tail="open") == []


def test_B24_a_cut_moves_to_the_start_of_its_turn() -> None:
    said = worked(4)  # the sixth from the end is an answer, its turn starts three before
    assert starts_turn(said[cut_at(said, keep=6)])
    assert cut_at(said, keep=6) == 8


def test_R37_there_may_be_nothing_to_cut() -> None:
    said = worked(1)
    assert cut_at(said) == 0
    assert compacted(said, "S", 0) == (said, ())


@settings(max_examples=150, deadline=None)
@given(given_=messages, more=st.integers(0, 4), keep=st.integers(1, 8), cut=st.integers(0, 12))
def test_R37_whatever_is_compacted_the_api_takes(
    given_: list[Any], more: int, keep: int, cut: int
) -> None:
    said, _ = repair([*given_, *worked(more)], tail="open")
    made, findings = compacted(said, "S", cut_at(said, keep))
    assert check(made, tail="open") == []
    assert findings == ()
    anywhere, _ = compacted(said, " ", min(cut, len(said)))
    assert check(anywhere, tail="open") == []


@settings(max_examples=100, deadline=None)
@given(given_=messages, most=st.integers(0, 2000))
def test_every_step_keeps_a_valid_list_valid(given_: list[Any], most: int) -> None:
    said, _ = repair(given_)
    for step in (
        lambda: clamp_results(said, window=50),
        lambda: images_to_text(said),
        lambda: images_to_text(said, budget_bytes=most),
        lambda: drop_oldest(said, lambda kept: sizes(kept) <= most),
    ):
        made, findings = step()
        assert check(made) == []
        assert bool(findings) == (made is not said)


def test_content_may_be_a_bare_string() -> None:
    said: list[Any] = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "so"}]
    said.append({"role": "user", "content": "on"})
    assert starts_turn(said[0])
    assert drop_oldest(said, lambda _: False)[0] == said[2:]
    assert compacted(said, "S", 2)[0] == [user(f"{SUMMARY}\nS", "on")]
    assert "- go" in digest(said, 500)
    assert summary_only(said)[0][0]["content"][1] == text("on")


@pytest.mark.parametrize("content", ["", [], None])
def test_O23_an_empty_result_stays_empty(content: Any) -> None:
    said: list[Any] = [user("go"), assistant(call("a")), user(result("a", content))]
    assert clamp_results(said, window=100) == (said, ())
