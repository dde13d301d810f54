"""What was said and is not in the window, or not as a whole: messages that a summary replaced,
results that were pruned, cut or masked by the program. Pure.

Each message has an address, its number on its branch: of those that speak, from 1. Records are only
appended, so a number stays what it is as long as the branch does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import log
from typing import Final, Literal

from tui.context.overrides import SPEAKING, RecordState, content_of, copy_of, overlays_of
from tui.context.summary_prompts import transcript
from tui.core.messages import Block, Message
from tui.session.records import Record

FOUND: Final = 20
"""The most that one search finds."""
_PARTIAL: Final = 8
"""The most that one search finds where nothing holds all its words."""
_AROUND: Final = 240
_PLACES: Final = 64
_MARKS: Final = "?!.,;:…\"'“”‘’«»()"
"""What a person writes around words."""
_ABSENT: Final[Mapping[RecordState, str]] = {
    "summarised": "summarized",
    "pruned": "pruned",
    "masked": "masked",
    "cut": "cut",
}


@dataclass(frozen=True, slots=True)
class Passage:
    """One message: its number, its record, what type that is, why it is not in the window ("" in
    another session), and its text. `copy` is the path of the full output that the text is part of,
    "" where the text is all.
    """

    number: int
    record: str
    who: str
    absence: str
    text: str
    copy: str = ""


@dataclass(frozen=True, slots=True)
class PassageHit:
    """A passage that a search found, and the text around what it found."""

    passage: Passage
    text: str


def passages(
    records: Sequence[Record],
    states: Mapping[str, RecordState] | None = None,
    *,
    for_person: bool = False,
) -> list[Passage]:
    """What is not in the window, in order. `states` is how each record stands in the view; None for
    another session, of which nothing is in the window.

    What the person masked is left out unless it is for the person.
    """
    masked = overlays_of(records)
    found: list[Passage] = []
    speaking = (record for record in records if record.type in SPEAKING)
    for number, record in enumerate(speaking, 1):
        overlay = masked.get(record.id)
        if overlay and overlay.view == "masked" and overlay.by == "person" and not for_person:
            continue
        copy = copy_of(record)
        absence = "" if states is None else _ABSENT.get(states.get(record.id, "full"))
        if absence is None or (overlay and overlay.view == "imageless" and not copy):
            continue
        message: Message = {"role": _role(record), "content": _blocks(record)}
        if text := "\n".join(transcript([message], whole=True)):
            found.append(Passage(number, record.id, record.type, absence, text, copy))
    return found


def search(
    found: Sequence[Passage], query: str, whole: Callable[[Passage], str]
) -> tuple[list[PassageHit], bool]:
    """The passages that hold all words of a query, the newest first, and that they do; where there
    are none, those that hold the most telling of its words, the best first.

    `whole` gives the text of a passage with its full copy.
    """
    words = list(dict.fromkeys(word.strip(_MARKS) or word for word in query.casefold().split()))
    if not words:
        return [], True
    texts = {passage.number: whole(passage) for passage in found}
    folded = {number: text.casefold() for number, text in texts.items()}
    held = {number: {word for word in words if word in text} for number, text in folded.items()}
    full = [passage for passage in reversed(found) if len(held[passage.number]) == len(words)]
    if full:
        chosen = full[:FOUND]
    else:
        often = {word: sum(word in each for each in held.values()) for word in words}
        weight = {word: log(1 + len(found) / often[word]) for word in words if often[word]}

        def score(passage: Passage) -> tuple[float, int]:
            return sum(weight[word] for word in held[passage.number]), passage.number

        ranked = sorted((p for p in found if held[p.number]), key=score, reverse=True)
        chosen = list(islice(ranked, _PARTIAL))
    excerpts = [
        PassageHit(p, _around(texts[p.number], folded[p.number], sorted(held[p.number], key=len)))
        for p in chosen
    ]
    return excerpts, bool(full)


def _around(text: str, folded: str, words: Sequence[str]) -> str:
    """The part of a text that holds the most of some words, as one line; as it was folded, where
    that changed its length."""
    if len(text) != len(folded):
        text = folded

    def count(at: int) -> int:
        part = folded[max(0, at - _AROUND) : at + _AROUND]
        return sum(word in part for word in words)

    at = max(islice(_places(folded, words), _PLACES), key=count, default=0)
    start, end = max(0, at - _AROUND), min(len(text), at + _AROUND)
    before, after = "…" if start else "", "…" if end < len(text) else ""
    return f"{before}{' '.join(text[start:end].split())}{after}"


def _places(text: str, words: Sequence[str]) -> Iterator[int]:
    """Where words occur, the longest word first."""
    for word in reversed(words):
        at = text.find(word)
        while at >= 0:
            yield at
            at = text.find(word, at + _AROUND)


def _role(record: Record) -> Literal["user", "assistant"]:
    return "assistant" if record.type in {"assistant", "interrupt"} else "user"


def _blocks(record: Record) -> list[Block]:
    if record.type != "tool_result":
        return content_of(record)
    failed = record.data.get("is_error") is True
    return [{"type": "tool_result", "content": content_of(record), "is_error": failed}]
