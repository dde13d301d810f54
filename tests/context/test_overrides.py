"""Masked, clamped, pinned: how records stand in the request, and that nothing is lost by it."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.context.sessions import (
    MODEL,
    Told,
    answer,
    extended,
    output,
    overlay,
    pin,
    prompt,
    records,
    valid_sessions,
)
from tests.context.wild import call, text, thinking, user
from tui.context.overrides import overlays_of, pins_of, stand
from tui.context.validate import check
from tui.context.view import Viewer, build
from tui.core.facts import Overlay
from tui.core.messages import text_of
from tui.tools.limits.clamp import SUFFIX, Room

ROUND = (prompt("go"), answer("look", call("a")), output("a", "x" * 12_345), answer("done"))


def result_in(view: Any) -> dict[str, Any]:
    """The first tool result of a view."""
    blocks = (block for message in view.messages for block in message["content"])
    return next(block for block in blocks if block["type"] == "tool_result")


def test_a_masked_result_says_what_it_was_and_how_to_get_it_back() -> None:
    seen = build(records(*ROUND, overlay("r2", "masked")), model=MODEL)
    assert result_in(seen) == {
        "type": "tool_result",
        "tool_use_id": "a",
        "content": [
            text(
                "[Masked by the person: run_command result, 12,345 chars. "
                "Call the tool again, or ask the person, if you need it.]"
            )
        ],
    }
    assert seen.states["r2"] == "masked"
    assert seen.findings == ()


def test_a_masked_result_with_a_full_copy_names_its_file() -> None:
    receipt = {"stages": ["spill"], "path": "/w/.holdfast/tool-results/a.txt"}
    told = (prompt("go"), answer(call("a")), output("a", "ab", receipt=receipt, is_error=True))
    masked = result_in(build(records(*told, overlay("r2", "masked")), model=MODEL))
    assert text_of(masked["content"]) == (
        "[Masked by the person: run_command error, 2 chars. "
        "Full copy: /w/.holdfast/tool-results/a.txt. Use read_file to view it.]"
    )
    assert masked["is_error"] is True


def test_a_masked_answer_keeps_its_thinking_and_its_calls() -> None:
    told = (prompt("go"), answer(thinking(), "look", call("a"), "more"), output("a", "x"))
    seen = build(records(*told, overlay("r1", "masked")), model=MODEL)
    said = text(
        "[Masked by the person: an earlier answer, 8 chars. Ask the person if you need it.]"
    )
    assert seen.messages[1]["content"] == [thinking(), said, call("a")]


def test_a_masked_prompt_stays_a_message() -> None:
    seen = build(records(*ROUND, overlay("r0", "masked")), model=MODEL)
    words = (
        "[Masked by the person: a message of the person, 2 chars. Ask the person if you need it.]"
    )
    assert seen.messages[0] == user(words)


def test_an_answer_without_words_has_nothing_to_mask() -> None:
    told = (prompt("go"), answer(thinking(), call("a")), output("a", "x"))
    seen = build(records(*told, overlay("r1", "masked")), model=MODEL)
    assert seen.states["r1"] == "full"
    assert seen == build(records(*told), model=MODEL)


def test_the_last_overlay_of_a_record_wins() -> None:
    said = records(*ROUND, overlay("r2", "masked"), overlay("r0", "masked"), overlay("r2", "full"))
    assert overlays_of(said) == {"r0": Overlay("r0", "masked")}
    assert pins_of(records(*ROUND, pin("r0"), pin("r2"), pin("r0", pinned=False))) == {"r2"}


@pytest.mark.parametrize(
    "damaged",
    [
        ("overlay", {}),
        ("overlay", {"target": 3, "view": "masked"}),
        ("overlay", {"target": "r2", "view": "hidden"}),
        ("overlay", {"target": "nobody", "view": "masked"}),
        ("pin", {"target": None, "pinned": "yes"}),
    ],
)
def test_an_overlay_that_makes_no_sense_changes_nothing(damaged: Told) -> None:
    assert build(records(*ROUND, damaged), model=MODEL) == build(records(*ROUND), model=MODEL)


def test_O16_a_clamped_result_keeps_50_kb_or_2000_lines() -> None:
    long = "line\n" * 2500
    told = (prompt("go"), answer(call("a")), output("a", long, name="grep_search"))
    for view in ("clamped", "full"):
        seen = build(records(*told, overlay("r2", view)), model=MODEL)
        cut = text_of(result_in(seen)["content"])
        assert cut.endswith(SUFFIX)
        assert cut.count("\n") < 2000
        assert seen.stands["r2"].state == "cut"


def test_O16_under_a_larger_clamp_the_ceiling_of_400000_characters_binds() -> None:
    blocks = [text("a" * 600_000), text("b" * 200_000), text("c" * 100)]
    told = records(
        prompt("go"), answer(call("a")), ("tool_result", {"call_id": "a", "content": blocks})
    )
    seen = build(told, model=MODEL, room=Room(10_000_000, 10_000))
    lengths = [len(block["text"]) for block in result_in(seen)["content"]]
    assert lengths[0] <= 300_000
    assert lengths[0] > 290_000
    assert lengths[1] <= 100_000
    assert lengths[2] == 100


def test_O17_a_legacy_session_with_larger_results_loads_and_they_are_clamped() -> None:
    for content in ("x" * 400_000, [text("x" * 400_000)]):
        told = records(
            prompt("go"), answer(call("a")), ("tool_result", {"call_id": "a", "content": content})
        )
        before = [record.to_line() for record in told]
        seen = build(told, model=MODEL)
        assert seen.states["r2"] == "cut"
        assert len(text_of(result_in(seen)["content"]).encode()) <= 51_200
        assert [record.to_line() for record in told] == before


def test_O17_of_a_command_the_end_is_kept_too() -> None:
    told = (prompt("go"), answer(call("a")), output("a", "x\n" * 9000 + "error: it failed"))
    cut = text_of(result_in(build(records(*told), model=MODEL))["content"])
    assert cut.endswith("error: it failed")


def test_a_result_within_the_limits_is_left_as_it_is() -> None:
    within = records(*ROUND)[2]
    assert stand(within, None) is None
    assert stand(within, Overlay("r2", "clamped")) is None


_views = st.sampled_from(["masked", "clamped", "full"])


@settings(max_examples=150, deadline=None)
@given(said=valid_sessions(), data=st.data())
def test_any_overlays_and_pins_give_a_valid_request_and_can_be_undone(
    said: list[Told], data: st.DataObject
) -> None:
    branch = records(*said)
    ids = [record.id for record in branch]
    original = build(branch, model=MODEL)
    assert original.findings == ()
    changes = data.draw(
        st.lists(
            st.one_of(
                st.builds(overlay, st.sampled_from(ids), _views),
                st.builds(pin, st.sampled_from(ids), pinned=st.booleans()),
            ),
            max_size=8,
        )
    )
    viewer = Viewer()
    for step in range(len(changes) + 1):
        changed = extended(branch, changes[:step])
        seen = viewer.build(changed, model=MODEL)
        assert check(seen.messages) == []
        assert seen.findings == ()
        assert seen == build(changed, model=MODEL)
    loose = [pin(id_, pinned=False) for id_ in ids]
    undone = extended(branch, [*changes, *(overlay(id_, "full") for id_ in ids), *loose])
    back = viewer.build(undone, model=MODEL)
    assert back == original


def test_a_normal_record_is_not_a_reason_to_start_anew() -> None:
    said = [told for n in range(1200) for told in (prompt(f"p{n}"), answer(f"a{n}"))]
    branch = records(*said, overlay("r0", "masked"), prompt("next"))
    viewer = Viewer()
    started = process_time()
    viewer.build(branch, model=MODEL)
    whole = process_time() - started
    steps: list[float] = []
    for words in "abcdefg":
        branch = extended(branch, [answer(words), pin("r1"), prompt(words)])
        started = process_time()
        viewer.build(branch, model=MODEL)
        steps.append(process_time() - started)
    assert viewer.build(branch, model=MODEL).states["r0"] == "masked"
    assert min(steps) < whole / 5
