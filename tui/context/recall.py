"""Messages that are not in the window, or not in full: replaced by a summary, or results that were
pruned, cut or masked by the program. Pure.

Each message has an address, its number among the sent messages of its branch, from 1. Records are
only appended, so a number stays valid as long as the branch does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from math import log
from typing import Final, Literal

from tui.context.overrides import SPEAKING, RecordState, content_of, copy_of, overlays_of
from tui.context.summary_prompts import transcript
from tui.core.dataclass import dataclass
from tui.core.messages import Block, Message
from tui.session.records import Record

FOUND: Final = 20
"""The most passages that one search returns."""
_PARTIAL: Final = 8
"""The most passages that one search returns if none has all its words."""
_AROUND: Final = 240
_PLACES: Final = 64
_MARKS: Final = "?!.,;:…\"'“”‘’«»()"
"""Characters that a person writes around words."""
_ABSENT: Final[Mapping[RecordState, str]] = {
    "summarised": "summarized",
    "pruned": "pruned",
    "masked": "masked",
    "cut": "cut",
}


@dataclass(frozen=True, slots=True)
class Passage:
    """One message outside the window: its number, its record, the record's type, the reason why it
    is not in the window ("" in another session), and its text.

    `copy` is the path of the full output that the text is part of, "" if the text is complete.
    """

    number: int
    record: str
    who: str
    absence: str
    text: str
    copy: str = ""


@dataclass(frozen=True, slots=True)
class PassageHit:
    """A passage that a search matched, and the text around the match."""

    passage: Passage
    text: str


def passages(
    records: Sequence[Record],
    states: Mapping[str, RecordState] | None = None,
    *,
    for_person: bool = False,
) -> list[Passage]:
    """Return the messages that are not in the window, in order.

    `states` is the state of each record in the view; None for another session, none of which is in
    the window. Messages that the person masked are left out unless `for_person` is set.
    """
    masked = overlays_of(records)
    missing: list[Passage] = []
    speaking = (record for record in records if record.type in SPEAKING)
    for number, record in enumerate(speaking, 1):
        overlay = masked.get(record.id)
        # The person hid this from the model.
        if overlay and overlay.view == "masked" and overlay.by == "person" and not for_person:
            continue
        copy = copy_of(record)
        absence = "" if states is None else _ABSENT.get(states.get(record.id, "full"))
        if absence is None or (overlay and overlay.view == "imageless" and not copy):
            continue
        message: Message = {"role": _role(record), "content": _blocks(record)}
        if text := "\n".join(transcript([message], whole=True)):
            missing.append(Passage(number, record.id, record.type, absence, text, copy))
    return missing


def search(
    found: Sequence[Passage], query: str, whole: Callable[[Passage], str]
) -> tuple[list[PassageHit], bool]:
    """Find the passages that have all words of a query, the newest first, and True; if there are
    none, those that have its most telling words, the best first, and False.

    `whole` returns the text of a passage from its full copy.
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
        # A word that few passages have tells more than one that many have.
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
    """Return on one line the part of a text with the most of these words; case-folded if folding
    changed the text's length."""
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
    """Yield the places where words occur, the longest word first."""
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
