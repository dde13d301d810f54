"""The difference between what the model saw in two requests, in words and as a diff."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tui.app.reports.timeline import step_line
from tui.context.past_context import ContextDifference, ContextThen, context_difference
from tui.context.request_difference import difference, unified
from tui.context.request_replay import RequestReplay
from tui.context.timeline import SessionTimeline, TimelineStep
from tui.context.token_ledger import Item
from tui.core.fact_words import ITEM_STATES
from tui.core.formatting import plural, tokens
from tui.core.text_cleaning import one_line

_NAMED: Final = 8
"""Most items that are named."""
_LABEL: Final = 100


def change_summary(
    before: ContextThen, after: ContextThen, steps: Sequence[TimelineStep] = ()
) -> str:
    """The difference in one sentence. `steps` are the breaks and other changes between them."""
    found = context_difference(before, after)
    facts = [f"{len(items):,} {name}" for name, items in _groups(found)]
    restarts = sum(step.kind == "break" for step in steps)
    facts += [plural(restarts, "cache restart")] if restarts else []
    size = _signed(after.tokens - before.tokens)
    return f"since request {before.number}: {size} · {', '.join(facts) or 'the same items'}"


def change_lines(
    before: ContextThen, after: ContextThen, steps: Sequence[TimelineStep] = ()
) -> list[str]:
    """The difference in words: how many tokens, what was added, what went and how, which fixed
    parts have another text, and what that cost. `steps` are as for `change_summary`."""
    change = _signed(after.tokens - before.tokens)
    sizes = [f"request {one.number}: {one.tokens:,} tokens" for one in (before, after)]
    lines = [f"{', then '.join(sizes).capitalize()} ({change})."]
    found = context_difference(before, after)
    olds = {item.id: item for item in before.items}
    for name, items in _groups(found):
        change = sum(_change(item, olds, gone=name == "gone") for item in items)
        lines.append(f"{plural(len(items), 'item')} {name}, {_signed(change)} tokens:")
        lines += _named(items)
    if len(lines) == 1:
        lines.append("The model saw the same items.")
    if steps:
        lines.append("In between:")
        lines += [f"  {step_line(step)}" for step in steps]
    return lines


def changes_between(timeline: SessionTimeline, first: int, second: int) -> list[TimelineStep]:
    """The breaks, compactions and other changes of the context from the request at one step to that
    at another, which is sent after them."""
    begun, asked = timeline.steps[first].record, timeline.steps[second].record
    marks = [(place, timeline.steps[place]) for place in timeline.marks["context"].steps]
    # A loss that was worked out is told after the request that paid for it.
    return [
        step
        for place, step in marks
        if step.record == asked or (first < place < second and step.record != begun)
    ]


def request_diff(replay: RequestReplay, first: int, second: int) -> list[str]:
    """Tell what differs outside the items, in sentences, with the diff of two requests. Blocks."""
    before, after = replay.at(first), replay.at(second)
    for one in (before, after):
        if one.request is None:
            return [f"Request {one.number} can't be rebuilt: {one.problem}."]
    assert before.request is not None
    assert after.request is not None
    found = difference(before.request, after.request)
    lines = list(found.front)
    if found.extends:
        lines.append(f"Request {second} starts with all of request {first}: the cache holds it.")
    else:
        lines.append(f"The same up to message {found.same:,}; the cache holds no more than that.")
    if found.thoughts_gone:
        lines.append(f"Left out: {plural(found.thoughts_gone, 'thought')}.")
    names = f"request {first}", f"request {second}"
    diff = unified(before.request, after.request, names)
    return [*lines, "", *(diff.split("\n") if diff else ["Only the cache marks differ."])]


def _groups(found: ContextDifference) -> Iterator[tuple[str, list[Item]]]:
    """The items of a difference by what became of them, with the word for that."""
    if found.added:
        yield "added", list(found.added)
    turned: dict[str, list[Item]] = {}
    for _, item in found.turned:
        name = "sent in full again" if item.state == "full" else ITEM_STATES.get(item.state, "")
        turned.setdefault(name or item.state, []).append(item)
    yield from turned.items()
    if found.edited:
        yield "changed", [item for _, item in found.edited]
    if found.gone:
        yield "gone", list(found.gone)


def _change(item: Item, olds: dict[str, Item], *, gone: bool) -> int:
    if gone:
        return -item.tokens
    return item.tokens - (olds[item.id].tokens if item.id in olds else 0)


def _named(items: Sequence[Item]) -> Iterator[str]:
    largest = sorted(items, key=lambda item: -item.tokens)
    for item in largest[:_NAMED]:
        yield f"  {item.kind}: {one_line(item.label)[:_LABEL]}, {tokens(item.tokens)}"
    if len(items) > _NAMED:
        yield f"  and {len(items) - _NAMED:,} more"


def _signed(count: int) -> str:
    return f"{'−' if count < 0 else '+'}{tokens(abs(count))}"
