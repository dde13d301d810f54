"""Where a compaction on demand cuts: after which message of the next request. Pure.

The server summarizes what comes before the cut, and what follows it stays as it was sent. So the
cut is the end of a request that was sent: what stays begins with the answer to it. Only where no
such cut leaves enough out it is the end of a turn, or of everything.

While a turn runs it is kept whole, as long as it is no larger than `running` allows. Else the cut
is in its midst: its prompts are said again then, so what stays does not follow directly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tui.context.breaks import ends_turn, in_turn
from tui.context.overrides import SPEAKING, content_of
from tui.context.rules.blocks import THINKING
from tui.core.messages import Block, Message, tool_calls
from tui.session.records import Record
from tui.tokens import estimate


@dataclass(frozen=True, slots=True)
class Cut:
    """`covers` is the id of the last record before it, `messages` how many messages of the request
    stand before it, `weight` what those after it weigh. `follows`: they follow directly."""

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
    """The cut of a request with these messages, None where there is nothing to cut off.

    Records before number `start` are in a summary already. `keep` messages stay, as far as they
    weigh no more than twice `room`; with `fill` as many more as `room` holds. `running` is the most
    that a running turn may weigh to be kept whole.
    """
    found = list(_cuts(records, messages, start))
    if in_turn(records):
        begun = _turn_begins(records)
        before = [cut for place, cut in found if place <= begun and cut.weight <= running]
        if before:
            return _largest(before, len(messages), keep, room, fill=fill) or before[0]
        inside = [cut for place, cut in found if place > begun]
        chosen = _largest(inside, len(messages), keep, room, fill=fill) or (inside or [None])[0]
        return Cut(chosen.covers, chosen.messages, chosen.weight, False) if chosen else None
    cuts = [cut for _, cut in found]
    return _largest(cuts, len(messages), keep, room, fill=fill) or _end(records, messages, start)


def _largest(cuts: Sequence[Cut], count: int, keep: int, room: float, *, fill: bool) -> Cut | None:
    """The cut after which most stays. The last one is first."""
    best: Cut | None = None
    for cut in cuts:
        many = count - cut.messages > keep
        if cut.weight > 2 * room or (many and (not fill or cut.weight > room)):
            break
        best = cut
    return best


def _cuts(
    records: Sequence[Record], messages: Sequence[Message], start: int
) -> Iterator[tuple[int, Cut]]:
    """The ends of requests that were sent, the last one first, by the place of their answer."""
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
    """The message that holds an answer: the last one before a message that has its words."""
    said = [block for block in content_of(record) if str(block.get("type")) not in THINKING]
    for at in range(before - 1, -1, -1):
        content = messages[at]["content"]
        if messages[at]["role"] != "assistant" or not _same(content, said):
            continue
        return at
    return None


def _same(content: Sequence[Block], said: Sequence[Block]) -> bool:
    """Whether a message says what an answer said, its thinking and the marks aside."""
    if not said:
        return False
    spoken = [block for block in content if str(block.get("type")) not in THINKING]
    spoken = [block for block in spoken if block.get("type") != "compaction"]
    return len(spoken) == len(said) and all(
        one.get("type") == other.get("type")
        and one.get("text") == other.get("text")
        and one.get("id") == other.get("id")
        for one, other in zip(spoken, said, strict=True)
    )


def _end(records: Sequence[Record], messages: Sequence[Message], start: int) -> Cut | None:
    """The end of the last turn: all but a prompt that waits for its answer.

    There is none where the answer ends in calls, whose results come after it, or in white space:
    servers refuse a request that ends so, and what was signed cannot be trimmed.
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
    """The last record in a range that is sent; "" where nothing but notices is."""
    said = [record for record in records[start:end] if record.type in SPEAKING]
    return said[-1].id if any(record.type != "notice" for record in said) else ""


def _turn_begins(records: Sequence[Record]) -> int:
    """The place of the first prompt after the last turn that is over."""
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
