"""Repairs of calls and their results.

Every call ends with exactly one result, at the front of the user message after it and in the order
of the calls. A result without a call is kept as text if it has content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256

from tui.context.repairs.blocks import call_key
from tui.context.repairs.message_draft import DraftBlock, MessageDraft, RepairReport
from tui.context.rules.blocks import ID, SERVER_RESULTS
from tui.core.dataclass import dataclass, field
from tui.core.messages import Block, blocks_of, text_block, text_of

INTERRUPTED = "Session was interrupted before tool execution completed"
"""The result that is invented for a call without one."""

ORPHANED = "[result of a tool call that is not in this conversation]"


@dataclass(slots=True, eq=False)
class _Call:
    draft: int
    item: DraftBlock
    id: str
    results: list[_Result] = field(default_factory=list["_Result"])
    merged: bool = False

    @property
    def same(self) -> str:
        """A key that is equal for two copies of one call."""
        block = self.item.block
        return json.dumps([block.get("name"), block.get("input")], sort_keys=True, default=str)


@dataclass(slots=True, eq=False)
class _Result:
    draft: int
    item: DraftBlock
    orphan: bool = False

    @property
    def synthetic(self) -> bool:
        return text_of(blocks_of(self.item.block.get("content"))) == INTERRUPTED


def pair(drafts: list[MessageDraft], report: RepairReport) -> list[MessageDraft]:
    """Answer every call in the drafts. Roles must be right and neighbors merged."""
    calls, results = _assign(drafts)
    for group in calls.values():
        if len(group) > 1:
            _merge_copies(group, report)
    _name(calls, report)
    called = {call.item.where: call for group in calls.values() for call in group}
    orphans = {result.item.where: result for result in results if result.orphan}
    return list(_rebuilt(drafts, called, orphans, report))


def server_pairs(drafts: Sequence[MessageDraft], report: RepairReport) -> None:
    """Drop calls of server tools without their result, and results without their call. A call has
    none yet if it waits for the results of other calls next to it, or ends a paused turn."""
    halves: set[int] = set()
    calls: dict[str, DraftBlock] = {}
    for number, draft in enumerate(drafts):
        kinds = [item.kind for item in draft.items]
        if draft.role == "user":
            waits = not {*kinds} - {"tool_result"}
        else:
            halves |= set(map(id, _unpaired(draft, calls)))
            paused = number == len(drafts) - 1 and kinds[-1:] == ["server_tool_use"]
            waits = paused or "tool_use" in kinds
        if not waits:
            halves |= set(map(id, calls.values()))
            calls = {}
    for draft in drafts:
        for item in draft.items:
            if id(item) in halves:
                report.add("B25", item.where, "half of a server tool's pair left out")
        draft.items = [item for item in draft.items if id(item) not in halves]


def _unpaired(draft: MessageDraft, calls: dict[str, DraftBlock]) -> Iterator[DraftBlock]:
    """Yield the results in an answer without a call, and calls whose id is repeated. `calls` are
    those without a result, before it and after."""
    for item in draft.items:
        if item.kind == "server_tool_use":
            if (before := calls.pop(str(item.block["id"]), None)) is not None:
                yield before
            calls[str(item.block["id"])] = item
        elif item.kind in SERVER_RESULTS and not calls.pop(str(item.block["tool_use_id"]), None):
            yield item


def _assign(drafts: list[MessageDraft]) -> tuple[dict[str, list[_Call]], list[_Result]]:
    """Assign every result to the call it answers, by id and, if ids repeat, by position."""
    calls: dict[str, list[_Call]] = {}
    waiting: dict[str, list[_Call]] = {}  # without a result so far, in order
    early: dict[str, list[_Result]] = {}
    results: list[_Result] = []
    for index, draft in enumerate(drafts):
        for item in draft.items:
            if item.kind == "tool_use":
                call = _Call(index, item, call_key(item.block.get("id")))
                calls.setdefault(call.id, []).append(call)
                waiting.setdefault(call.id, []).append(call)
            elif item.kind == "tool_result":
                result = _Result(index, item)
                results.append(result)
                id_ = call_key(item.block.get("tool_use_id"))
                if open_calls := waiting.get(id_):
                    open_calls.pop(_nearest(open_calls)).results.append(result)
                elif known := calls.get(id_):
                    known[-1].results.append(result)
                else:
                    early.setdefault(id_, []).append(result)
    # Damaged files may have a result before its call.
    for id_, before in early.items():
        for result in before:
            if open_calls := waiting.get(id_):
                open_calls.pop(0).results.append(result)
            elif known := calls.get(id_):
                known[0].results.append(result)
            else:
                result.orphan = True
    return calls, results


def _nearest(waiting: list[_Call]) -> int:
    """Return the index of the first waiting call in the last message that has one."""
    at = len(waiting) - 1
    while at and waiting[at - 1].draft == waiting[-1].draft:
        at -= 1
    return at


def _merge_copies(group: list[_Call], report: RepairReport) -> None:
    """Treat identical calls with one id as one call, unless each has a result of its own."""
    originals: dict[str, _Call] = {}
    for call in group:
        first = originals.setdefault(call.same, call)
        if first is call:
            continue
        if not call.results or not first.results or _result_content(call) == _result_content(first):
            gone = first if call.results and not first.results else call
            originals[call.same] = stays = call if gone is first else first
            gone.merged = True
            stays.results.extend(gone.results)
            report.add("B03", gone.item.where, "a copy of a call left out")


def _result_content(call: _Call) -> object:
    return call.results[0].item.block.get("content")


def _name(calls: dict[str, list[_Call]], report: RepairReport) -> None:
    """Give calls ids that are valid and unique, the same on every run."""
    used = {id_ for id_ in calls if ID.fullmatch(id_)}
    for id_, group in calls.items():
        own_calls = [call for call in group if not call.merged]
        for place, call in enumerate(own_calls):
            if place or not ID.fullmatch(id_):
                call.id = _free_id(id_, used)
                used.add(call.id)
            elif call.item.block.get("id") == id_:
                continue
            code = "B03" if place else "B08"
            report.add(code, call.item.where, f"the call's id changed to {call.id}")


def _free_id(id_: str, used: set[str]) -> str:
    base = re.sub(r"[^a-zA-Z0-9_-]", "_", id_)[:40] or "call"
    digest = sha256(id_.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    number = 2
    name = base if base == id_ else f"{base}_{digest}"
    while name in used:
        name, number = f"{base}_{digest}_{number}", number + 1
    return name


def _rebuilt(
    drafts: list[MessageDraft],
    calls: dict[str, _Call],
    orphans: dict[str, _Result],
    report: RepairReport,
) -> Iterator[MessageDraft]:
    owed: list[_Call] = []  # the calls of the previous message
    for index, draft in enumerate(drafts):
        if draft.role == "assistant":
            if owed:
                where = drafts[index - 1].where
                yield MessageDraft("user", where, _results(owed, None, report))
            items, owed = _calls(draft, calls)
            yield MessageDraft("assistant", draft.where, items)
        else:
            front = _results(owed, index, report)
            _report_moves(draft, front, report)
            owed = []
            rest = _rest(draft, orphans, report)
            yield MessageDraft("user", draft.where, front + rest)
    if owed:
        yield MessageDraft("user", drafts[-1].where, _results(owed, None, report))


def _calls(draft: MessageDraft, calls: dict[str, _Call]) -> tuple[list[DraftBlock], list[_Call]]:
    items: list[DraftBlock] = []
    own_calls: list[_Call] = []
    for item in draft.items:
        call = calls.get(item.where) if item.kind == "tool_use" else None
        if call is None:
            items.append(item)
        elif not call.merged:
            renamed = (
                item.block if item.block.get("id") == call.id else item.block | {"id": call.id}
            )
            items.append(DraftBlock(item.where, renamed))
            own_calls.append(call)
    return items, own_calls


def _results(owed: list[_Call], draft: int | None, report: RepairReport) -> list[DraftBlock]:
    """Return one result for each call, in order. `draft` is the message whose front they go to."""
    items: list[DraftBlock] = []
    for call in owed:
        if not call.results:
            report.add("B01", call.item.where, f"no result: “{INTERRUPTED}”")
            items.append(DraftBlock(call.item.where, _interrupted(call.id)))
            continue
        chosen = next((r for r in call.results if not r.synthetic), call.results[0])
        for result in call.results:
            if result is not chosen:
                report.add("B04", result.item.where, "a second result of one call left out")
        items.append(_placed(call, chosen, draft, report))
    return items


def _placed(call: _Call, chosen: _Result, draft: int | None, report: RepairReport) -> DraftBlock:
    """Return the result that a call keeps, with the call's id."""
    where, block = chosen.item
    if chosen.draft != draft:
        report.add("B06", where, "a result moved next to its call")
    given = block.get("tool_use_id")
    if given == call.id:
        return chosen.item
    if not isinstance(given, str):
        report.add("B08", where, f"the result's id changed to {call.id}")
    return DraftBlock(where, block | {"tool_use_id": call.id})


def _interrupted(id_: str) -> Block:
    return {
        "type": "tool_result",
        "tool_use_id": id_,
        "content": [text_block(INTERRUPTED)],
        "is_error": True,
    }


def _report_moves(draft: MessageDraft, front: list[DraftBlock], report: RepairReport) -> None:
    """RepairReport results of this message that had to move to its front, or into order."""
    here = {item.where for item in draft.items}
    wanted = [item.where for item in front if item.where in here]
    given = [item.where for item in draft.items if item.where in set(wanted)]
    if given != wanted:
        report.add("B06", draft.where, "results brought into the order of their calls")
    elif [item.where for item in draft.items[: len(wanted)]] != wanted:
        report.add("B05", draft.where, "results brought to the front")


def _rest(
    draft: MessageDraft, orphans: dict[str, _Result], report: RepairReport
) -> list[DraftBlock]:
    """Return the blocks of a user message besides the results of the calls before it."""
    items: list[DraftBlock] = []
    for item in draft.items:
        if item.kind != "tool_result":
            items.append(item)
        elif item.where in orphans:
            items.extend(_orphan(orphans[item.where], report))
    return items


def _orphan(result: _Result, report: RepairReport) -> list[DraftBlock]:
    """Turn a result without a call into text, if it has any content."""
    where, block = result.item
    if call_key(block.get("tool_use_id")) in report.gone:
        report.add("B23", where, "the result of a call that was left out is left out too")
        return []
    content = [part for part in blocks_of(block.get("content")) if part.get("text") != ""]
    if result.synthetic or not content:
        report.add("B02", where, "a result without a call left out")
        return []
    report.add("B02", where, "a result without a call kept as text")
    return [DraftBlock(where, text_block(ORPHANED)), *(DraftBlock(where, part) for part in content)]
