"""Finds the messages that a summary has replaced, for the model and for the person. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tui.context.compaction_view import in_force
from tui.context.overrides import SPEAKING, content_of, overlays_of
from tui.context.summary_prompts import transcript
from tui.core.messages import Block, Message
from tui.session.records import Record

FOUND: Final = 20
"""The most that one search finds."""
_AROUND: Final = 240


@dataclass(frozen=True, slots=True)
class Passage:
    """One covered message: its number, from 1, its record, who said it, and the text."""

    number: int
    record: str
    who: str
    text: str


def has_summary(records: Iterable[Record]) -> bool:
    """Whether anything was ever compacted here."""
    return any(record.type == "compaction" for record in records)


def passages(records: Sequence[Record]) -> list[Passage]:
    """The covered messages in order; what the person masked is left out."""
    summary, masked = in_force(records), overlays_of(records)
    found: list[Passage] = []
    covered = [r for r in records[: summary.end if summary else 0] if r.type in SPEAKING]
    for number, record in enumerate(covered, 1):
        overlay = masked.get(record.id)
        if overlay is not None and overlay.view == "masked":
            continue
        message: Message = {"role": _role(record), "content": _blocks(record)}
        if text := "\n".join(transcript([message], whole=True)):
            found.append(Passage(number, record.id, record.type, text))
    return found


def search(records: Sequence[Record], query: str) -> list[Passage]:
    """The newest covered messages that hold all words of a query, each as the text around one."""
    words = query.casefold().split()
    found: list[Passage] = []
    for passage in reversed(passages(records) if words else []):
        text = passage.text.casefold()
        if all(word in text for word in words):
            at = text.find(words[0])
            around = passage.text[max(0, at - _AROUND) : at + _AROUND].strip()
            found.append(Passage(passage.number, passage.record, passage.who, around))
        if len(found) == FOUND:
            break
    return found


def answer(records: Sequence[Record], query: str = "", first: int = 0, last: int = 0) -> str:
    """What the model gets: the passages of a search, or those of a range of numbers."""
    if query.strip():
        found = search(records, query)
        head = f"{len(found)} covered messages hold “{query}”, the newest first."
        if found:
            head += " Give first and last to read them whole."
    else:
        everything = passages(records)
        count = everything[-1].number if everything else 0
        first, last = max(1, first), min(last or first + FOUND, count)
        found = [p for p in everything if first <= p.number <= last]
        head = f"Messages {first} to {last} of {count} that the summary covers."
    told = (f"--- {p.number} ---\n{p.text}" for p in found)
    return "\n".join([head, *told])


def _role(record: Record) -> Literal["user", "assistant"]:
    return "assistant" if record.type in {"assistant", "interrupt"} else "user"


def _blocks(record: Record) -> list[Block]:
    if record.type != "tool_result":
        return content_of(record)
    failed = record.data.get("is_error") is True
    return [{"type": "tool_result", "content": content_of(record), "is_error": failed}]
