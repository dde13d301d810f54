"""The exam of a summary: what is asked about, and how answers are marked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.context import exam
from tui.context.exam import ExamFact, MarkedFact
from tui.tokens.tokenizer import count

PART = """Person: Never deploy on Fridays.

Agent calls run_command: {"command": "pytest -q"}

Result: 41 passed, 2 failed in tests/test_parser.py
FAILED test_quotes - AssertionError: assert 'a"b' == 'ab'"""

ASKED = """Q: When may nothing be deployed?
A: on Fridays
QUOTE: Never deploy on Fridays.

**Q:** What failed?
A: test_quotes
QUOTE: made up by the model

Q2: Which test failed, and how?
A2: test_quotes, an AssertionError
QUOTE: "FAILED test_quotes -  AssertionError: assert 'a"b' == 'ab'"

Q: again?
A: Fridays
QUOTE: Never deploy on Fridays.
"""


def test_a_fact_has_a_quote_that_is_there_to_the_letter() -> None:
    facts = exam.facts_in(ASKED, PART)
    assert [fact.answer for fact in facts] == ["on Fridays", "test_quotes, an AssertionError"]
    assert facts[0].quote == "Never deploy on Fridays."


def test_what_stays_in_the_conversation_is_not_asked() -> None:
    facts = exam.facts_in(ASKED, PART, "As I said:\nnever mind. Never  deploy on Fridays.")
    assert [fact.answer for fact in facts] == ["test_quotes, an AssertionError"]


@given(st.text(), st.text())
def test_whatever_the_model_writes_only_quotes_of_the_part_are_facts(
    answer: str, part: str
) -> None:
    for fact in exam.facts_in(f"Q: a\nA: b\nQUOTE: {answer}\n{answer}", part):
        assert " ".join(fact.quote.split()) in " ".join(part.split())
        assert len(fact.quote) <= exam.QUOTE_CHARS


@given(st.text(), st.integers(0, 20))
def test_numbered_answers_are_as_many_as_were_asked(answer: str, asked: int) -> None:
    assert len(exam.numbered_in(answer, asked)) == asked


def test_numbered_answers_may_lack_lines_and_come_in_any_order() -> None:
    answer = "Here:\n3. not in the summary\n1: **on** Fridays\n9: what?"
    given_ = exam.numbered_in(answer, 3)
    assert given_ == ["**on** Fridays", "", "not in the summary"]
    assert [exam.is_given(one) for one in given_] == [True, False, False]


def test_an_answer_with_the_right_words_in_their_order_is_right_beyond_doubt() -> None:
    assert exam.is_same("on Fridays", "Never on fridays!")
    assert exam.is_same("tests/test_parser.py", "in `tests/test_parser.py`")
    assert not exam.is_same("41", "411")
    assert not exam.is_same("on Fridays", "Fridays, on which nothing happens")
    assert not exam.is_same("…", "anything")


def test_a_verdict_is_yes_only_where_it_says_so() -> None:
    assert [exam.is_yes(one) for one in ("yes", "**Yes**, it does", "no", "", "eyes")] == [
        True, True, False, False, False
    ]  # fmt: skip


def test_quotes_of_what_is_lacking_are_sent_as_far_as_there_is_room() -> None:
    facts = [ExamFact("q", "a", f"line {n} " * 20) for n in range(5)]
    marked = [MarkedFact(fact, "", n == 1) for n, fact in enumerate(facts)]
    size = count(facts[0].quote) + 2
    assert exam.verbatim(marked, 100 * size) == [f.quote for n, f in enumerate(facts) if n != 1]
    assert exam.verbatim(marked, 2 * size) == [facts[0].quote, facts[2].quote]
    assert exam.verbatim(marked, 0) == []


def test_a_small_exam_has_every_prompt_and_the_newest_of_the_rest() -> None:
    pieces = [f"Result: {n} " + "word " * 400 for n in range(300)]
    for place in (0, 120, 250):
        pieces[place] = f"Person: rule {place}"
    (part,) = exam.material(pieces, "small")
    assert count(part) <= exam.PART_TOKENS
    assert [f"rule {place}" in part for place in (0, 120, 250)] == [True, True, True]
    assert "Result: 299" in part
    assert "Result: 1 " not in part
    assert part.index("rule 120") < part.index("rule 250") < part.index("Result: 299")


def test_a_full_exam_has_all_of_it_in_parts() -> None:
    pieces = [f"Result: {n} " + "word " * 400 for n in range(300)]
    parts = exam.material(pieces, "full")
    assert all(count(part) <= exam.PART_TOKENS + 2 for part in parts)
    assert all(any(piece in part for part in parts) for piece in pieces)
    assert exam.material([], "full") == exam.material([], "small") == []


def test_the_prompts_hold_what_they_ask_about_as_data() -> None:
    fact = ExamFact("When?\nIgnore this.", "on Fridays", "q")
    assert "Never deploy" in exam.question_prompt(PART)
    assert str(exam.QUESTIONS) in exam.question_prompt(PART)
    asked = exam.answer_prompt("The summary.", [fact])
    assert "1: When? Ignore this." in asked
    assert 'source="summary"' in asked
    assert "right: on Fridays | given: Mondays" in exam.verdict_prompt([(fact, "Mondays")])
