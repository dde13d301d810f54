"""Pruning old results: what, when, in which words, and never the record (R30 to R34)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
from tests.context.wild import assistant, call, result, text, user
from tui.context.prune import prune
from tui.context.validate import check
from tui.context.view import View, Viewer, build
from tui.core.config import Prune
from tui.core.messages import Message
from tui.session.records import Record

RULE = Prune(when="turns")


def turn(number: int, said: Any, **more: Any) -> list[Any]:
    id_ = f"t{number}"
    asked = user(f"do {number}")
    return [asked, assistant(call(id_)), user(result(id_, said, **more)), assistant("done")]


def later(count: int) -> list[Any]:
    """So many turns after it, the last of them just asked."""
    told = [m for n in range(count - 1) for m in (user(f"and {n}"), assistant("ok"))]
    return [*told, user("now")] if count else []


def content(messages: Sequence[Message], index: int = 2) -> Any:
    return messages[index]["content"][0]["content"]


def pruned(messages: Sequence[Any], rule: Prune = RULE) -> list[Message]:
    return prune(messages, rule).messages


def test_R30_a_long_result_of_seven_turns_ago_becomes_the_literal_text() -> None:
    said = [*turn(0, "x" * 12_345), *later(7)]
    assert content(pruned(said)) == (
        "[Previous tool result truncated — 12,345 chars. Use read_file to re-read if needed.]"
    )


def test_R31_an_error_says_how_long_ago_it_was() -> None:
    said = [*turn(0, "e" * 2000, is_error=True), *later(9)]
    found = pruned(said)
    assert content(found) == (
        "[Previous tool error truncated — 2,000 chars. Original error occurred 9 turns ago.]"
    )
    assert found[2]["content"][0]["is_error"] is True
    once = [*turn(0, "e" * 2000, is_error=True), *later(1)]
    assert content(pruned(once, Prune(after_turns=0, when="turns"))) == (
        "[Previous tool error truncated — 2,000 chars. Original error occurred 1 turn ago.]"
    )


def test_R32_exactly_six_turns_and_exactly_a_thousand_characters_are_kept() -> None:
    for ago, size, gone in ((6, 1001, False), (7, 1000, False), (7, 1001, True), (40, 1000, False)):
        said = [*turn(0, "x" * size), *later(ago)]
        assert (pruned(said) != said) is gone, (ago, size)


def test_R32_the_rest_of_the_messages_stays_the_same_object() -> None:
    said = [*turn(0, "x" * 3000), *later(7)]
    said[2]["content"].append(text("queued meanwhile"))
    found = pruned(said)
    assert found[2]["content"][0]["tool_use_id"] == "t0"
    assert found[2]["content"][1] is said[2]["content"][1]
    assert all(a is b for n, (a, b) in enumerate(zip(found, said, strict=True)) if n != 2)


def test_R32_list_content_is_one_text_and_its_images_stay() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "R0"}}
    said = [*turn(0, [text("a" * 600), image, text("b" * 401)]), *later(7)]
    line = "[Previous tool result truncated — 1,001 chars. Use read_file to re-read if needed.]"
    assert content(pruned(said)) == [text(line), image]


def test_R34_queued_text_starts_no_turn_and_odd_sizes_work() -> None:
    said = turn(0, "x" * 2000)
    for number in range(9):
        said += [assistant(call(f"q{number}"))] if number else []
        said[-1] = assistant(call(f"q{number}"))
        said.append(user(result(f"q{number}", "ok"), "queued text"))
    assert pruned(said) == said
    huge = [*turn(0, "x" * 10_000_000), *later(7)]
    assert "10,000,000 chars" in content(pruned(huge))
    empty = [*turn(0, ""), *later(9)]
    assert pruned(empty) == empty


def test_R34_requests_prune_within_one_long_turn() -> None:
    said: list[Any] = [user("go")]
    for number in range(9):
        said += [assistant(call(f"t{number}")), user(result(f"t{number}", "x" * 2000))]
    found = pruned(said, Prune(unit="requests", when="turns"))
    short = [n for n in range(9) if len(content(found, 2 + 2 * n)) < 1000]
    assert short == [0, 1]
    assert pruned(said) == said


def _long_session() -> list[Told]:
    told: list[Told] = []
    for n in range(9):
        receipt: dict[str, Any] = {"receipt": {"path": f"/w/.holdfast/tool-results/t{n}.txt"}}
        told += [prompt(f"do {n}"), answer(call(f"t{n}"))]
        told += [
            output(f"t{n}", "x" * 3000, is_error=n == 2, **(receipt if n == 1 else {})),
            answer("done"),
        ]
    return told


def seen_of(branch: Sequence[Record], rule: Prune = RULE, **more: Any) -> View:
    return build(branch, model=MODEL, prune=rule, **more)


def test_D23_where_a_full_copy_exists_it_is_named_behind_the_brackets() -> None:
    branch = records(*_long_session(), prompt("now"))
    seen = seen_of(branch)
    assert seen.states["r2"] == seen.states["r6"] == "pruned"
    path = "/w/.holdfast/tool-results/t1.txt"
    assert seen.stands["r6"].blocks[0]["text"] == (
        "[Previous tool result truncated — 3,000 chars. Use read_file to re-read if needed.]"
        f" The full output is in {path}."
    )
    assert seen.states["r34"] == "full"


def test_R33_the_record_stands_byte_for_byte_as_it_was() -> None:
    branch = records(*_long_session(), prompt("now"))
    before = [record.to_line() for record in branch]
    assert seen_of(branch).messages != build(branch, model=MODEL).messages
    assert [record.to_line() for record in branch] == before


def test_what_is_pinned_or_wanted_back_by_the_person_is_not_pruned() -> None:
    said = [*_long_session(), prompt("now")]
    assert seen_of(records(*said, pin("r2"))).states["r2"] == "full"
    back = overlay("r2", "full")
    assert seen_of(records(*said, back)).states["r2"] == "full"
    assert seen_of(records(*said, pin("r2"), pin("r2", pinned=False))).states["r2"] == "pruned"


def test_the_next_prompt_is_counted_before_it_is_there() -> None:
    said = _long_session()
    for length in range(4, len(said) + 1, 4):
        ahead = seen_of(records(*said[:length]), prompt_follows=True)
        there = seen_of(records(*said[:length], prompt("now")))
        assert ahead.messages == there.messages[:-1]


def test_D26_when_it_pays_nothing_is_pruned_by_age_and_what_is_due_is_named() -> None:
    rule = Prune(when="pays")
    said = [*_long_session(), prompt("now")]
    seen = seen_of(records(*said), rule)
    assert [(due.record, due.age) for due in seen.due] == [("r2", 9), ("r6", 8), ("r10", 7)]
    assert "pruned" not in seen.states.values()
    policy = [overlay(f"r{n}", "pruned", by="policy", age=a) for n, a in ((2, 9), (10, 7))]
    after = seen_of(records(*said, *policy, answer("ok"), prompt("on")), rule)
    assert after.states["r2"] == after.states["r10"] == "pruned"
    assert after.stands["r10"].blocks[0]["text"].endswith("error occurred 7 turns ago.]")
    assert [due.record for due in after.due] == ["r6", "r14"]


def test_T3_a_pruned_error_is_still_known_to_be_one() -> None:
    seen = seen_of(records(*_long_session(), prompt("now")))
    block = seen.messages[10]["content"][0]
    assert block["is_error"] is True
    assert "Original error occurred 7 turns ago" in block["content"][0]["text"]


@settings(max_examples=60, deadline=None)
@given(
    told=valid_sessions(),
    after=st.integers(0, 3),
    unit=st.sampled_from(["turns", "requests"]),
    when=st.sampled_from(["turns", "pays"]),
    marks=st.lists(st.tuples(st.integers(0, 12), st.sampled_from("pmfup")), max_size=3),
)
def test_R30_a_viewer_that_follows_prunes_as_a_fresh_look_does(
    told: list[Told], after: int, unit: Any, when: Any, marks: list[tuple[int, str]]
) -> None:
    rule = Prune(after_turns=after, min_chars=500, unit=unit, when=when)
    branch = records(*told)
    for place, kind in marks:
        target = f"r{place}"
        views = {"m": "masked", "f": "full", "u": "pruned"}
        mark = pin(target) if kind == "p" else overlay(target, views[kind])
        branch = extended(branch, [mark, prompt(f"after {place}")])
    viewer = Viewer(prune=rule)
    for length in range(len(branch) + 1):
        follows = length % 3 == 0
        seen = viewer.build(branch[:length], model=MODEL, prompt_follows=follows)
        assert seen == seen_of(branch[:length], rule, prompt_follows=follows)
        assert check(seen.messages, tail="open" if follows else "user") == []


def test_what_was_pruned_once_is_not_looked_at_again() -> None:
    branch = records(*_long_session(), prompt("now"))
    viewer = Viewer(prune=RULE)
    first = viewer.build(branch, model=MODEL)
    grown = extended(branch, [answer("ok"), prompt("next")])
    second = viewer.build(grown, model=MODEL)
    assert second.messages[2] is first.messages[2]
    assert second.messages[10] is not first.messages[10]  # the error's age grows
    assert first.messages[10]["content"][0]["content"][0]["text"].endswith("7 turns ago.]")
