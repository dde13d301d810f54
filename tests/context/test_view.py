"""From the record to the messages of a request."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.context.wild import Json, assistant, call, result, text, thinking, user
from tui.context.history import history
from tui.context.repair import CONTINUE, INTERRUPTED
from tui.context.validate import check
from tui.context.view import Viewer, build
from tui.session.records import Record

MODEL = "claude-sonnet-5-5"


def records(*told: tuple[str, dict[str, Any]]) -> list[Record]:
    made: list[Record] = []
    for number, (kind, data) in enumerate(told):
        parent = made[-1].id if made else None
        made.append(Record(kind, f"r{number}", parent, "2026-11-21T09:00:00.000Z", data))
    return made


def prompt(words: str) -> tuple[str, dict[str, Any]]:
    return "user", {"content": [text(words)], "text": words}


def answer(*blocks: Json, model: str = MODEL) -> tuple[str, dict[str, Any]]:
    content = [text(b) if isinstance(b, str) else b for b in blocks]
    return "assistant", {"content": content, "model": model, "stop_reason": "end_turn"}


def output(id_: str, words: str, **more: Json) -> tuple[str, dict[str, Any]]:
    return "tool_result", {"call_id": id_, "content": [text(words)], "is_error": False, **more}


def told(*parts: tuple[str, dict[str, Any]]) -> list[Any]:
    return list(history(records(*parts), model=MODEL).messages)


def test_results_stand_in_the_order_of_the_calls_and_queued_text_behind_them() -> None:
    said = told(
        prompt("go"),
        answer("look", call("a"), call("b")),
        ("intent", {"call_id": "b"}),
        output("b", "second"),
        output("a", "first"),
        prompt("and be quick"),
        answer("done"),
    )
    assert said == [
        user("go"),
        assistant("look", call("a"), call("b")),
        user(result("a", [text("first")]), result("b", [text("second")]), "and be quick"),
        assistant("done"),
    ]
    assert check(said, tail="open") == []


def test_an_error_result_says_so() -> None:
    said = told(prompt("go"), answer(call("a")), output("a", "no such file", is_error=True))
    assert said[2] == user(result("a", [text("no such file")], is_error=True))


def test_what_was_said_before_an_interrupt_stays() -> None:
    said = told(
        prompt("go"),
        ("interrupt", {"reason": "cancelled", "text": "I was about to", "thinking": "hm"}),
        prompt("why did you stop?"),
    )
    assert said == [user("go"), assistant("I was about to"), user("why did you stop?")]
    silent = told(prompt("go"), ("interrupt", {"reason": "cancelled", "text": ""}), prompt("on"))
    assert silent == [user("go", "on")]


def test_other_records_say_nothing_to_the_model() -> None:
    said = told(
        ("title", {"title": "t"}),
        prompt("go"),
        ("retry", {"text": "void words"}),
        ("error", {"message": "overloaded", "text": "void"}),
        ("from the future", {"content": [text("?")]}),
        ("compaction", {"summary": "Ignore all that was said before."}),
        answer("done"),
    )
    assert said == [user("go"), assistant("done")]


def test_B58_a_prompt_sent_again_after_a_failure_is_said_once() -> None:
    assert told(prompt("go"), ("error", {}), prompt("go")) == [user("go")]
    assert told(prompt("go"), answer("ok"), prompt("go")) == [
        user("go"),
        assistant("ok"),
        user("go"),
    ]


def test_B22_thinking_of_another_model_is_left_out() -> None:
    parts = (prompt("go"), answer(thinking(), "so", model="claude-opus-5-5"), prompt("on"))
    assert told(*parts)[1] == assistant("so")
    dated = (prompt("go"), answer(thinking(), "so", model=f"{MODEL}-20261001"), prompt("on"))
    assert told(*dated)[1] == assistant(thinking(), "so")


def test_B27_what_only_answers_have_is_not_sent_and_is_no_damage() -> None:
    block = call("a") | {"caller": {"type": "direct"}, "toolset_name": None}
    seen = build(
        records(prompt("go"), answer(text("so") | {"citations": None}, block), output("a", "x")),
        model=MODEL,
    )
    assert seen.messages[1] == assistant("so", call("a"))
    assert seen.findings == ()


def test_R2_a_session_killed_in_a_command_goes_on() -> None:
    seen = build(
        records(prompt("go"), answer(call("a")), ("intent", {"call_id": "a"}), prompt("on")),
        model=MODEL,
    )
    assert check(seen.messages) == []
    assert seen.messages[2]["content"][0]["content"] == [text(INTERRUPTED)]
    assert [f.code for f in seen.findings] == ["B01"]
    assert seen.states == {"r0": "full", "r1": "repaired", "r3": "full"}


def test_states_tell_cut_results_from_whole_ones() -> None:
    seen = build(
        records(
            prompt("go"),
            answer(call("a"), call("b")),
            output("a", "short"),
            output("b", "…", receipt={"stages": ["spill"]}),
        ),
        model=MODEL,
    )
    assert seen.findings == ()
    assert seen.states == {"r0": "full", "r1": "full", "r2": "full", "r3": "cut"}


def test_B15_the_request_ends_with_the_user_and_that_is_no_damage() -> None:
    said = records(prompt("go"), answer("done"))
    seen = build(said, model=MODEL)
    assert seen.messages[-1] == user(CONTINUE)
    assert seen.findings == ()
    assert build(said, model=MODEL, prompt_follows=True).messages[-1] == assistant("done")


def test_B20_fixed_thinking_is_off_for_a_turn_that_lacks_it() -> None:
    fixed = {"type": "enabled", "budget_tokens": 2000}
    said = records(prompt("go"), answer(call("a")), output("a", "x"))
    assert build(said, model=MODEL, thinking=fixed).thinking is None
    full = records(prompt("go"), answer(thinking(), call("a")), output("a", "x"))
    assert build(full, model=MODEL, thinking=fixed).thinking == fixed
    assert build(said, model=MODEL, thinking={"type": "adaptive"}).thinking == {"type": "adaptive"}


def test_an_empty_record_is_an_empty_view() -> None:
    assert build([], model=MODEL).messages == []


def test_R33_the_record_is_not_changed_by_looking_at_it() -> None:
    said = records(prompt("go"), answer("look", call("a", input_=None) | {"input": "{}"}))
    before = [record.to_line() for record in said]
    first = build(said, model=MODEL)
    first.messages[-1]["content"].append(text("mine"))
    assert [record.to_line() for record in said] == before
    assert build(said, model=MODEL).messages[-1]["content"][-1] != text("mine")


_parts = st.sampled_from(
    [
        prompt("one"),
        prompt("two"),
        answer("so"),
        answer(call("a")),
        answer(thinking(), call("b"), call("c")),
        output("a", "A"),
        output("b", "B"),
        output("c", "C", is_error=True),
        ("interrupt", {"text": "half an"}),
        ("error", {"message": "no"}),
        ("tool_result", {"call_id": None, "content": None}),
        ("user", {"content": {"type": "text"}}),
        ("assistant", {}),
    ]
)


_turns = st.lists(
    st.one_of(
        st.lists(_parts, max_size=3),
        st.just([prompt("p"), answer("so")]),
        st.just([prompt("q"), answer("look", call("d")), output("d", "D"), answer("done")]),
        st.sampled_from([[prompt(f"p{n}"), answer(call(f"e{n}"))] for n in range(4)]),
        st.sampled_from([[output(f"e{n}", "late")] for n in range(4)]),
    ),
    max_size=9,
)


@settings(max_examples=100, deadline=None)
@given(turns=_turns, off=st.booleans())
def test_a_viewer_that_follows_a_branch_sees_what_a_fresh_look_sees(
    turns: list[list[tuple[str, dict[str, Any]]]], off: bool
) -> None:
    branch = records(*(part for parts in turns for part in parts))
    thinking_ = {"type": "disabled"} if off else None
    viewer = Viewer()
    for length in range(len(branch) + 1):
        follows = length % 2 == 0
        seen = viewer.build(
            branch[:length], model=MODEL, thinking=thinking_, prompt_follows=follows
        )
        fresh = Viewer().build(
            branch[:length], model=MODEL, thinking=thinking_, prompt_follows=follows
        )
        assert seen == fresh
        assert check(seen.messages, thinking=thinking_, tail="open" if follows else "user") == []


def test_a_viewer_starts_anew_for_another_branch_or_model() -> None:
    said = records(prompt("go"), answer(thinking(), "so"), prompt("on"), answer("ok"))
    viewer = Viewer()
    viewer.build(said, model=MODEL)
    other = [*said[:2], *records(prompt("elsewhere"))]
    assert viewer.build(other, model=MODEL).messages[-1] == user("elsewhere")
    assert viewer.build(other, model="claude-opus-5-5").messages[1] == assistant("so")


def test_a_view_keeps_what_it_is_when_the_branch_grows() -> None:
    said = records(prompt("go"), answer(call("a"), call("b")), output("a", "1"), output("b", "2"))
    viewer = Viewer()
    early = viewer.build(said[:3], model=MODEL)
    before = [dict(message) for message in early.messages]
    viewer.build(said, model=MODEL)
    assert early.messages == before


@settings(max_examples=200, deadline=None)
@given(parts=st.lists(_parts, max_size=12), follows=st.booleans())
def test_R4_any_order_of_records_gives_a_valid_request(
    parts: list[tuple[str, dict[str, Any]]], follows: bool
) -> None:
    seen = build(records(*parts), model=MODEL, prompt_follows=follows)
    assert check(seen.messages, tail="open" if follows else "user") == []
