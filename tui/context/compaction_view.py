"""The records that a compaction covers, and how it changes the view. Pure.

A compaction never changes the history: it is one more record. Only the view replaces the records
that it covers by its summary, and only if their hash is the one in the compaction. Two kinds of
covered records are still sent verbatim, after the summary: those that the person pinned, and the
prompts of the turn that was running. Where the kept messages follow a server's own block
(`tui.context.compaction_block`), nothing comes between them. An `uncompaction` voids every
compaction before it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from tui.context.branch_index import BranchIndex
from tui.context.compaction_block import follows, opening
from tui.context.compaction_in_force import Summary, prefix_sha256
from tui.context.history import History, Rendering
from tui.context.overrides import SPEAKING, Stand, content_of
from tui.context.prune import starts_turn
from tui.context.rules.blocks import THINKING
from tui.core.dataclass import dataclass, field, replace
from tui.core.messages import Block, Message, text_block, text_of, tool_calls
from tui.session.records import Record
from tui.tokens import estimate

KEEP_MESSAGES: Final = 6
"""Number of messages at the end that are kept, unless they are too large."""
PROMPT_CHARS: Final = 8000
"""Characters of a prompt of the running turn that stay verbatim; the whole prompt can be
recalled."""
PROMPTS: Final = 8
"""Number of the running turn's prompts that are kept: the first ones, and the last."""
GONE: Final = Stand("summarised", [])
"""The stand-in of a covered record: nothing."""


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The outcome that a compaction would have. `covers` is the last record in the summary.

    `summarised`, `kept` and `pinned` are ids of records in order; pinned ones stay although they
    are covered. `messages` is the number of covered messages of the view.
    """

    covers: str
    messages: int
    summarised: tuple[str, ...]
    kept: tuple[str, ...]
    pinned: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ViewStart:
    """The beginning of a view: the history up to record `end`. Of the records up to there, `held`
    are still sent; the others are gone. `stands` are the stand-ins of those that history shows."""

    history: History
    index: BranchIndex
    end: int = 0
    summary: Summary | None = None
    stands: dict[str, Stand] = field(default_factory=dict[str, Stand])
    held: tuple[str, ...] = ()

    def gone(self, records: Sequence[Record]) -> list[str]:
        """The covered records that are no longer sent."""
        held = frozenset(self.held)
        covered = (record for record in records[: self.end] if record.type in SPEAKING)
        return [record.id for record in covered if record.id not in held]


def begin(
    records: Sequence[Record],
    model: str,
    index: BranchIndex,
    *,
    pinned: Collection[str] = (),
    stand: Callable[[Record], Stand | None] = lambda _record: None,
    rendering: Rendering | None = None,
) -> ViewStart:
    """Return the history that a view of a branch begins with: empty, or a summary and the held
    records. Its time depends on those, not on what is covered, if `index` knows the branch.

    `stand` returns the stand-in of a record that is not sent as recorded.
    """
    summary = index.summary(records)
    history = History(model, index.thinking.ids, rendering or Rendering())
    if summary is None:
        return ViewStart(history, index)
    history.open(
        summary.record.id, opening(summary.record, history.rendering.server, history.rendering.form)
    )
    stands: dict[str, Stand] = {}
    held: list[str] = []
    if follows(summary.record):  # pinned records are repeated in a notice
        return ViewStart(history, index, summary.end, summary)
    for record, own in _held(records, summary.end, pinned, stand, index):
        history.add(record, own)
        if record.type != "assistant" or record.id in pinned:  # else only for its calls
            held.append(record.id)
            if own is not None and (own.state != "full" or record.type == "user"):
                stands[record.id] = own
        elif own is not None:
            stands[record.id] = Stand("summarised", own.blocks)
    return ViewStart(history, index, summary.end, summary, stands, tuple(held))


def cut_at(messages: Sequence[Message], keep: int = KEEP_MESSAGES) -> int:
    """Return the index of the first message that a compaction keeps; 0 if there is nothing to cut.

    At least the last `keep` stay. A cut never separates a call from its result: it moves back to
    the start of the turn, or, where that is more than `keep` messages earlier, to the call.
    """
    cut = len(messages) - keep
    if cut <= 0:
        return 0
    for start in range(cut, max(0, cut - keep) - 1, -1):
        if starts_turn(messages[start]):
            return start
    return cut if messages[cut]["role"] == "assistant" else cut - 1


def plan(
    records: Sequence[Record],
    model: str,
    *,
    keep: int = KEEP_MESSAGES,
    room: float | None = None,
    fill: bool = False,
    pinned: Collection[str] = (),
    least: int = 0,
) -> CompactionPlan | None:
    """Plan a compaction of the records so far; None if there is nothing to cover.

    The last `keep` messages stay, as long as they weigh no more than twice `room`; with `fill`, as
    many more as fit in `room`. No call is separated from its result. The first `least` records are
    covered in any case: those that are no longer sent as recorded.
    """
    opened = begin(records, model, BranchIndex(), pinned=pinned)
    history = opened.history
    for record in records[opened.end :]:
        history.add(record)
    due = {record.id for record in records[opened.end : least] if record.type in SPEAKING}
    due_to = max(
        (n for n, ids in enumerate(history.sources, 1) if not due.isdisjoint(ids)), default=0
    )
    staying = keep if room is None else _staying(history.messages, keep, room, fill=fill)
    cut = cut_at(history.messages, staying) if staying else len(history.messages)
    if cut < due_to:
        # Include the whole turn; if it was not over, its prompt is repeated verbatim.
        ends = range(due_to, len(history.messages))
        cut = next((n for n in ends if starts_turn(history.messages[n])), len(history.messages))
    before = {id_ for sources in history.sources[:cut] for id_ in sources}
    fresh = [r for r in records[opened.end :] if r.type in SPEAKING]
    covered = [record for record in fresh if record.id in before]
    if not covered:
        return None
    return _planned(records, covered[-1].id, cut, opened, pinned)


def _staying(messages: Sequence[Message], keep: int, room: float, *, fill: bool) -> int:
    """Count the messages at the end that stay."""
    total, count = 0.0, 0
    for message in reversed(messages):
        total += estimate.content_weight(message["content"]) + estimate.MESSAGE_TOKENS
        if total > 2 * room or (count >= keep and (not fill or total > room)):
            break
        count += 1
    return count


def plan_until(
    records: Sequence[Record],
    model: str,
    covers: str,
    messages: int,
    *,
    pinned: Collection[str] = (),
    follows: bool = True,
) -> CompactionPlan:
    """Plan a compaction that covers everything up to a record; that is `messages` messages.

    If the kept messages follow directly (`follows`), prompts of a turn that is still running there
    are covered, too.
    """
    opened = begin(records, model, BranchIndex(), pinned=pinned)
    planned = _planned(records, covers, messages, opened, pinned)
    if not follows:
        return planned
    held = [id_ for id_ in planned.pinned if id_ not in pinned]
    end = next(n for n, record in enumerate(records) if record.id == covers) + 1
    gone = {*planned.summarised, *held}
    summarised = tuple(record.id for record in records[:end] if record.id in gone)
    return replace(planned, summarised=summarised, pinned=_less(planned.pinned, held))


def _less(ids: Iterable[str], gone: Collection[str]) -> tuple[str, ...]:
    return tuple(id_ for id_ in ids if id_ not in gone)


def plan_all(
    records: Sequence[Record], model: str, *, pinned: Collection[str] = ()
) -> CompactionPlan | None:
    """Plan a compaction that covers everything but the prompts of the running turn."""
    opened = begin(records, model, BranchIndex(), pinned=pinned)
    fresh = [record for record in records[opened.end :] if record.type in SPEAKING]
    if not fresh:
        return None
    for record in fresh:
        opened.history.add(record)
    return _planned(records, fresh[-1].id, len(opened.history.messages), opened, pinned)


def covered_messages(
    records: Sequence[Record],
    planned: CompactionPlan,
    model: str,
    *,
    pinned: Collection[str] = (),
    stands: Mapping[str, Stand] | None = None,
) -> list[Message]:
    """Return the messages that a compaction covers: the summary before it, and all since.

    `stands` are the stand-ins of records that are not sent as recorded.
    """
    given = stands or {}
    opened = begin(
        records, model, BranchIndex(), pinned=pinned, stand=lambda record: given.get(record.id)
    )
    for record in records[opened.end :]:
        if record.type in SPEAKING:
            opened.history.add(record, given.get(record.id))
        if record.id == planned.covers:
            break
    return opened.history.messages


def covered_sha256(records: Sequence[Record], planned: CompactionPlan) -> str:
    """The hash of what a summary is to stand for."""
    end = next(n for n, record in enumerate(records) if record.id == planned.covers) + 1
    return prefix_sha256(records[:end])


def _planned(
    records: Sequence[Record],
    covers: str,
    messages: int,
    opened: ViewStart,
    pinned: Collection[str],
) -> CompactionPlan:
    end = next(n for n, record in enumerate(records) if record.id == covers) + 1
    covered = [record for record in records[:end] if record.type in SPEAKING]
    held = _held(records, end, pinned, lambda _record: None, opened.index)
    stays = {r.id for r, _ in held if r.type != "assistant" or r.id in pinned}
    gone = frozenset(opened.gone(records))
    return CompactionPlan(
        covers,
        messages,
        tuple(r.id for r in covered if r.id not in stays and r.id not in gone),
        tuple(r.id for r in records[end:] if r.type in SPEAKING),
        tuple(r.id for r in covered if r.id in stays),
    )


def _held(
    records: Sequence[Record],
    end: int,
    pinned: Collection[str],
    stand: Callable[[Record], Stand | None],
    index: BranchIndex,
) -> Iterator[tuple[Record, Stand | None]]:
    """Yield the covered records that are still sent, with their stand-ins.

    A pinned result brings its call along. Of a pinned answer, calls without a pinned result are
    left out, and so is its thinking, which is useless without them.
    """
    running = _running_turn(records, end)
    kept = {index.places.get(id_, end) for id_ in pinned}
    wanted = {
        str(records[place].data.get("call_id"))
        for place in kept
        if place < end and records[place].type == "tool_result"
    }
    callers = {index.caller(call_id, records) for call_id in wanted}
    called: set[str] = set()
    for place in sorted({*running, *kept, *callers}):
        record = records[place] if 0 <= place < end else None
        if record is None or record.type not in SPEAKING:
            continue
        given = stand(record)
        if record.type == "assistant":
            blocks_said = given.blocks if given else content_of(record)
            # A call is sent only for the sake of a pinned result, and once.
            calls = [c for c in tool_calls(blocks_said) if str(c.get("id")) in wanted - called]
            called |= {str(call.get("id")) for call in calls}
            blocks = _words(blocks_said) if record.id in pinned else []
            if blocks or calls:
                yield record, Stand("full", [*blocks, *calls])
        elif place in kept:
            if record.type != "tool_result" or str(record.data.get("call_id")) in called:
                yield record, given
        else:
            yield record, given or _clipped(record)


def _running_turn(records: Sequence[Record], end: int) -> Collection[int]:
    """The places of the prompts of the turn that was not over after the first `end` records."""
    prompts: list[int] = []
    for place in range(end - 1, -1, -1):
        record = records[place]
        if record.type == "interrupt":
            break
        if record.type == "assistant" and not tool_calls(content_of(record)):
            break
        if record.type == "user":
            prompts.append(place)
    return {*prompts[: PROMPTS - 1], *prompts[-1:]}


def _clipped(record: Record) -> Stand | None:
    blocks = content_of(record)
    text = text_of(blocks)
    if len(text) <= PROMPT_CHARS:
        return None
    clipped = f"{text[:PROMPT_CHARS]}\n[… the rest of this prompt is in the summary]"
    others = [block for block in blocks if block.get("type") != "text"]
    return Stand("cut", [text_block(clipped), *others])


def _words(blocks: Iterable[Block]) -> list[Block]:
    gone = THINKING | {"tool_use", "server_tool_use"}
    return [b for b in blocks if b.get("type") == "text" and b.get("type") not in gone]
