"""The exam of a summary: questions on what it replaces, and how their answers are marked. Pure.

A model writes questions about the part of the conversation that is replaced, each with its answer
and the line that holds it. Another request answers them from the summary alone. Whatever is
answered wrong is sent with the summary, word for word. The format is lines, not JSON: quoted code
needs no escapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from tui.context import summary_prompts, untrusted
from tui.core.config import ExamMode
from tui.core.dataclass import dataclass
from tui.core.text_cleaning import one_line
from tui.tokens import tokenizer

QUESTIONS: Final = 12
"""The most questions on one part of the conversation."""
PART_TOKENS: Final = 24_000
"""The most of the conversation in one request: a small exam covers no more than that."""
QUOTE_CHARS: Final = 400
VERBATIM_TOKENS: Final = 6000
"""The most that is sent word for word along with a summary."""
AT_ONCE: Final = 36
"""The number of questions that are answered in one request."""

_SHORT_CHARS: Final = 1200
"""The most that a small exam has of one piece."""
_FACT = re.compile(
    r"^[-* \t]*Q(?:\d+)?[:.]\s*(?P<question>.+)\n\s*A(?:\d+)?[:.]\s*(?P<answer>.+)\n"
    r"\s*QUOTE[:.]\s*(?P<quote>.+)$",
    re.MULTILINE,
)
_NUMBERED = re.compile(r"^[-* \t]*(\d+)[ \t]*[:.)]\s*(.*)$", re.MULTILINE)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class ExamFact:
    """A question on what is replaced, its answer, and the words in the conversation that hold
    it."""

    question: str
    answer: str
    quote: str


@dataclass(frozen=True, slots=True)
class MarkedFact:
    """A fact, the answer given from the summary alone, and whether that is right."""

    fact: ExamFact
    given: str
    held: bool

    def to_json(self) -> dict[str, Any]:
        """Return it as in records and events."""
        return {
            "question": self.fact.question,
            "answer": self.fact.answer,
            "quote": self.fact.quote,
            "given": self.given,
            "held": self.held,
        }


def material(pieces: Sequence[str], mode: ExamMode) -> list[str]:
    """Select the parts of a conversation to ask questions about, one request for each.

    A small exam has one part: what the person said, and as much of the newest rest as fits.
    """
    if mode == "full":
        return summary_prompts.parts(pieces, PART_TOKENS)
    room, chosen = PART_TOKENS, set[int]()
    by_person = [n for n, piece in enumerate(pieces) if piece.startswith("Person:")]
    for number in [*reversed(by_person), *range(len(pieces) - 1, -1, -1)]:
        size = tokenizer.count(_short(pieces[number])) + 2
        if number not in chosen and size <= room:
            room -= size
            chosen.add(number)
    text = "\n\n".join(_short(pieces[number]) for number in sorted(chosen))
    return [text] if text else []


def _short(piece: str) -> str:
    return piece if len(piece) <= _SHORT_CHARS else f"{piece[:_SHORT_CHARS]} …"


def question_prompt(part: str) -> str:
    """Build the prompt that asks for questions on a part of the conversation."""
    prose = summary_prompts.prose("exam_questions").replace("{most}", str(QUESTIONS))
    return f"{prose}\n\n{untrusted.wrap(part, 'conversation')}"


def facts_in(answer: str, part: str, stays: str = "") -> list[ExamFact]:
    """Parse the facts in the answer to `question_prompt`, at most QUESTIONS.

    A quote that isn't in the part verbatim (but for white space) is no fact; one that is also in
    what `stays` in the conversation can't be lost.
    """
    source, staying = _spaced(part), _spaced(stays)
    facts: dict[str, ExamFact] = {}
    for match in _FACT.finditer(answer):
        quote = _unquoted(match["quote"])[:QUOTE_CHARS]
        known = _spaced(quote)
        if known and known in source and known not in staying:
            fact = ExamFact(one_line(match["question"]), one_line(match["answer"]), quote)
            facts.setdefault(known, fact)
    return list(facts.values())[:QUESTIONS]


def answer_prompt(summary: str, facts: Sequence[ExamFact]) -> str:
    """Build the prompt that asks for the answers to the facts' questions, from the summary
    alone."""
    asked = _numbered(fact.question for fact in facts)
    return (
        f"{summary_prompts.prose('exam_answers')}\n\n{untrusted.wrap(summary, 'summary')}\n\n"
        f"{untrusted.wrap(asked, 'questions')}"
    )


def numbered_in(answer: str, count: int) -> list[str]:
    """Parse an answer of numbered lines into `count` answers; "" for each that is missing."""
    answers = {int(match[1]): one_line(match[2]) for match in _NUMBERED.finditer(answer)}
    return [answers.get(number, "") for number in range(1, count + 1)]


def verdict_prompt(pairs: Sequence[tuple[ExamFact, str]]) -> str:
    """Build the prompt that asks whether the given answers say the same as the right ones."""
    lines = _numbered(
        f"question: {fact.question} | right: {fact.answer} | given: {given}"
        for fact, given in pairs
    )
    return f"{summary_prompts.prose('exam_verdicts')}\n\n{untrusted.wrap(lines, 'answers')}"


def is_same(right: str, given: str) -> bool:
    """True if an answer has every word of the right one in its order, so that it is surely
    right."""
    wanted = _WORD.findall(right.casefold())
    return (
        bool(wanted) and f" {' '.join(wanted)} " in f" {' '.join(_WORD.findall(given.casefold()))} "
    )


def is_given(given: str) -> bool:
    """True if anything was answered at all."""
    return bool(given) and "not in the summary" not in given.casefold()


def is_yes(verdict: str) -> bool:
    """True if a verdict says that an answer is right."""
    return verdict.casefold().strip("*_\"' ").startswith("yes")


def verbatim(marked: Iterable[MarkedFact], most: int) -> list[str]:
    """The quotes of what the summary lacks, as many as fit in `most` tokens."""
    quotes: list[str] = []
    for one in marked:
        if one.held:
            continue
        most -= tokenizer.count(one.fact.quote) + 2
        if most < 0:
            break
        quotes.append(one.fact.quote)
    return quotes


def _numbered(lines: Iterable[str]) -> str:
    return "\n".join(f"{number}: {one_line(line)}" for number, line in enumerate(lines, 1))


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _unquoted(quote: str) -> str:
    text = quote.strip()
    for opening, closing in ('""', "``", "“”"):
        if len(text) > 1 and text.startswith(opening) and text.endswith(closing):
            return text[1:-1].strip()
    return text
