"""The place where a compaction on demand cuts: after which message of the next request. Pure.

The server summarizes what comes before the cut; what follows stays as it was sent. So the cut is
the end of an earlier request, and what stays begins with the answer to it. Only if no such cut
leaves enough out does it fall at the end of a turn, or of everything.

A running turn is kept whole as long as it weighs no more than `running` allows. Otherwise the cut
falls inside it; its prompts are then repeated, so what stays does not follow directly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tui.context.breaks import ends_turn, in_turn
from tui.context.overrides import SPEAKING, content_of
from tui.context.rules.blocks import THINKING
from tui.core.dataclass import dataclass
from tui.core.messages import Block, Message, tool_calls
from tui.session.records import Record
from tui.tokens import estimate


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut of a request.

    `covers` is the id of the last record before it, `messages` the number of messages before it,
    `weight` the weight of those after it. `follows`: they follow the block directly.
    """

    covers: str
    messages: int
    weight: float
    follows: bool = True


def find_cut(
    records: Sequence[Record],
    messages: Sequence[Message],
    start: int,
    *,
    keep: int,
    room: float,
    running: float,
    fill: bool = False,
) -> Cut | None:
    """Find the cut of a request with these messages; None if there is nothing to cut off.

    Records before number `start` are already in a summary. `keep` messages stay, as long as they
    weigh no more than twice `room`; with `fill`, as many more as fit in `room`. `running` is the
    most that a running turn may weigh to be kept whole.
    """
    cuts = list(_cuts(records, messages, start))
    if in_turn(records):
        begun = _turn_begins(records)
        # While a turn runs, a cut before it is best: it keeps the turn whole.
        before = [cut for place, cut in cuts if place <= begun and cut.weight <= running]
        if before:
            return _largest(before, len(messages), keep, room, fill=fill) or before[0]
        inside = [cut for place, cut in cuts if place > begun]
        chosen = _largest(inside, len(messages), keep, room, fill=fill) or (inside or [None])[0]
        return Cut(chosen.covers, chosen.messages, chosen.weight, False) if chosen else None
    finished = [cut for _, cut in cuts]
    return _largest(finished, len(messages), keep, room, fill=fill) or _end(
        records, messages, start
    )


def _largest(cuts: Sequence[Cut], count: int, keep: int, room: float, *, fill: bool) -> Cut | None:
    """Return the cut that keeps the most. `cuts` has the last one first."""
    best: Cut | None = None
    for cut in cuts:
        enough = count - cut.messages > keep
        if cut.weight > 2 * room or (enough and (not fill or cut.weight > room)):
            break
        best = cut
    return best


def _cuts(
    records: Sequence[Record], messages: Sequence[Message], start: int
) -> Iterator[tuple[int, Cut]]:
    """Yield the ends of earlier requests, the last one first, with the index of their answer."""
    number, weight = len(messages), 0.0
    for place in range(len(records) - 1, start, -1):
        record = records[place]
        if record.type != "assistant" or not content_of(record):
            continue
        at = _message_of(record, messages, number)
        if at is None:
            continue
        weight += sum(map(_weight, messages[at:number]))
        number = at
        covers = _last_sent(records, start, place)
        if covers and at and messages[at - 1]["role"] != "assistant":
            yield place, Cut(covers, at, weight)


def _message_of(record: Record, messages: Sequence[Message], before: int) -> int | None:
    """Find the message that holds an answer: the last one before `before` with its words."""
    spoken = [block for block in content_of(record) if str(block.get("type")) not in THINKING]
    for at in range(before - 1, -1, -1):
        content = messages[at]["content"]
        if messages[at]["role"] != "assistant" or not _same(content, spoken):
            continue
        return at
    return None


def _same(content: Sequence[Block], answer: Sequence[Block]) -> bool:
    """True if a message matches an answer, ignoring thinking and compaction blocks."""
    if not answer:
        return False
    spoken = [block for block in content if str(block.get("type")) not in THINKING]
    spoken = [block for block in spoken if block.get("type") != "compaction"]
    return len(spoken) == len(answer) and all(
        one.get("type") == other.get("type")
        and one.get("text") == other.get("text")
        and one.get("id") == other.get("id")
        for one, other in zip(spoken, answer, strict=True)
    )


def _end(records: Sequence[Record], messages: Sequence[Message], start: int) -> Cut | None:
    """Cut at the end of the last turn: all but a prompt that waits for its answer.

    There is no such cut where the answer ends in calls, whose results come after it, or in white
    space: servers refuse a request that ends that way, and signed content cannot be trimmed.
    """
    places = range(len(records) - 1, start - 1, -1)
    done = next((n for n in places if records[n].type in {"assistant", "interrupt"}), None)
    if done is None:
        return None
    count = len(messages)
    while count and messages[count - 1]["role"] != "assistant":
        count -= 1
    if not count:
        return None
    answer = messages[count - 1]["content"]
    if tool_calls(answer) or str(answer[-1].get("text", ""))[-1:].isspace():
        return None
    return Cut(records[done].id, count, sum(map(_weight, messages[count:])))


def _last_sent(records: Sequence[Record], start: int, end: int) -> str:
    """The last record in a range that is sent; "" where there are only notices."""
    sent = [record for record in records[start:end] if record.type in SPEAKING]
    return sent[-1].id if any(record.type != "notice" for record in sent) else ""


def _turn_begins(records: Sequence[Record]) -> int:
    """The index of the first prompt after the last finished turn."""
    place = len(records)
    for number in range(len(records) - 1, -1, -1):
        record = records[number]
        if record.type == "user":
            place = number
        elif ends_turn(record):
            break
    return place


def _weight(message: Message) -> float:
    return estimate.content_weight(message["content"]) + estimate.MESSAGE_TOKENS
