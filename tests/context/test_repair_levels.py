"""R13: ever stricter views, each of which the API takes, whatever was given."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.context.pictures import image, png
from tests.context.wild import assistant, call, messages, result, text, thinking, user
from tui.context.digest import HEADING, SUMMARY, digest
from tui.context.repair import INTERRUPTED
from tui.context.repair_levels import (
    REPAIR_LEVELS,
    RepairLevel,
    apply_level,
    drop_thinking,
    strict,
    summary_only,
    text_only,
)
from tui.context.validate import Tail, check
from tui.tokens import tokenizer

TAILS = st.sampled_from(["user", "prefill", "open"])


def _worked(turns: int = 3) -> list[Any]:
    said: list[Any] = []
    for n in range(turns):
        said += [
            user(f"please do thing {n}"),
            assistant(
                thinking(),
                f"look {n}",
                call(f"r{n}", "read_file", {"path": f"src/file_{n}.py"}),
                call(f"c{n}", "run_command", {"command": f"pytest -k test_{n}"}),
            ),
            user(result(f"r{n}", "text"), result(f"c{n}", "no", is_error=True)),
            assistant(thinking(), f"answer {n}"),
        ]
    return [*said, user("the last prompt")]


@settings(max_examples=250, deadline=None)
@given(given_=messages, tail=TAILS, rung=st.sampled_from(REPAIR_LEVELS))
def test_R13_every_rung_gives_what_the_api_takes(
    given_: list[Any], tail: Tail, rung: RepairLevel
) -> None:
    before = copy.deepcopy(given_)
    stood, findings = apply_level(given_, rung, tail=tail)
    assert check(stood, tail=tail) == []
    assert json.dumps(given_) == json.dumps(before)
    assert apply_level(stood, rung, tail=tail)[0] == stood
    assert all(f.code and f.where and f.action for f in findings)


@pytest.mark.parametrize("rung", ["strict", "drop_thinking"])
def test_R13_nothing_is_taken_from_what_is_plain(rung: RepairLevel) -> None:
    said: list[Any] = [
        user("go"),
        assistant("look", call("a")),
        user(result("a")),
        assistant("so"),
        user("on"),
    ]
    assert apply_level(said, rung) == (said, ())


def test_R13_strict_leaves_out_what_is_not_plain() -> None:
    odd: list[Any] = [
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
    ]
    said: list[Any] = [
        user("go", odd[0], odd[2], image(png(9, 9)), text("marked") | {"cache_control": None}),
        assistant("so", call("a" * 65), call("b", "n" * 65), odd[1], call("c"), call("orphan")),
        user(result("c"), result("a" * 65), result("b"), result("lost")),
    ]
    stood, findings = strict(said)
    assert stood == [
        user("go", image(png(9, 9)), "marked"),
        assistant("so", call("c")),
        user(result("c")),
    ]
    assert {f.code for f in findings} == {"R13"}
    assert INTERRUPTED not in str(stood), "nothing is put in the place of what goes"


def test_R13_strict_does_not_take_a_call_whose_id_was_taken() -> None:
    said: list[Any] = [
        user("go"), assistant("one", call("a")), user(result("a", "A")),
        assistant("two", call("a")), user(result("a", "B")),
    ]  # fmt: skip
    stood, _ = strict(said)
    assert "A" in str(stood)
    assert json.dumps(stood).count("tool_use_id") == 1


def test_R13_without_thinking_everything_else_stays() -> None:
    said = _worked(2)
    stood, findings = drop_thinking(said)
    assert "thinking" not in json.dumps(stood)
    assert len(stood) == len(said)
    assert len(findings) == 4


def test_R13_text_only_has_no_calls() -> None:
    stood, findings = text_only(_worked(1))
    assert stood == [
        user("please do thing 0"),
        assistant("look 0"),
        user("(continue)"),
        assistant("answer 0"),
        user("the last prompt"),
    ]
    assert [f.code for f in findings] == ["R13"]


def test_R13_the_summary_says_what_was_asked_done_and_answered() -> None:
    stood, findings = summary_only(_worked())
    assert len(stood) == 1
    told, prompt = (block["text"] for block in stood[0]["content"])
    assert prompt == "the last prompt"
    assert told.startswith(HEADING)
    for expected in (
        "- please do thing 0",
        "- src/file_1.py (read_file)",
        "- `pytest -k test_2` — failed",
        "- answer 2",
    ):
        assert expected in told
    assert "3" in findings[0].action


def test_O24_the_digest_is_the_same_every_time_and_within_its_budget() -> None:
    said = _worked(400)
    for budget in (64, 300, 1000, 4000):
        made = digest(said, budget)
        assert made == digest(copy.deepcopy(said), budget)
        assert tokenizer.count(made) <= budget
    assert "please do thing 0" in digest(said, 4000), "the first thing asked stays"
    assert "answer 399" in digest(said, 4000), "so does the last answer"


@settings(max_examples=60, deadline=None)
@given(given_=messages, budget=st.integers(0, 600), words=st.text(max_size=3000))
def test_O24_any_digest_is_bounded(given_: list[Any], budget: int, words: str) -> None:
    stood, _ = summary_only([*given_, user(words)], budget_tokens=budget)
    said: list[Any] = [block["text"] for message in stood for block in message["content"]]
    if any(text_.startswith(HEADING) for text_ in said):
        assert sum(map(tokenizer.count, said)) <= max(budget, 128)


def test_O24_a_prompt_too_long_for_the_budget_keeps_its_beginning() -> None:
    stood, _ = summary_only([user("old"), assistant("so"), user("begin " + "x " * 20_000)])
    words = stood[0]["content"][-1]["text"]
    assert words.startswith("begin x")
    assert tokenizer.count(words) <= 2000


def test_O24_a_summary_before_is_carried_on() -> None:
    said: list[Any] = [
        user(f"{SUMMARY}\nWe chose PostgreSQL.", "continue"),
        assistant("yes"),
        user("next"),
    ]
    made = digest(said, 1000)
    assert "From the summary before:\n- We chose PostgreSQL." in made


def test_R13_the_rungs_end() -> None:
    assert REPAIR_LEVELS == ("strict", "drop_thinking", "text_only", "summary_only")
    assert apply_level([], "summary_only") == ([], ())
