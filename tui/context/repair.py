"""The repair engine: it turns any list of messages into one that the Messages API accepts.

Pure: the input is never changed. A valid list is returned as it is, the same object; running twice
equals running once. If damage concerns only its own turn, only that turn is repaired. Nothing is
invented except the result of an interrupted call, "(no output)", "(continue)" and placeholders that
say what was removed. Every change is a finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from tui.context.repairs.blocks import clean
from tui.context.repairs.media import strip_marks, thin_media
from tui.context.repairs.message_draft import DraftBlock, MessageDraft, RepairReport, place
from tui.context.repairs.order import CONTINUE, join, settle, split_roles, strip_wrong_thinking
from tui.context.repairs.pairs import INTERRUPTED, ORPHANED, pair, server_pairs
from tui.context.rules import Violation
from tui.context.rules.blocks import MESSAGE_FIELDS, extra_fields
from tui.context.validate import Tail, check
from tui.core.messages import Message, blocks_of, is_object, list_of, object_of, text_block
from tui.session.records import Finding

__all__ = ["CONTINUE", "INTERRUPTED", "ORPHANED", "repair", "text_only"]


def repair(
    messages: Sequence[object],
    *,
    thinking: Mapping[str, Any] | None = None,
    tail: Tail = "user",
) -> tuple[list[Message], tuple[Finding, ...]]:
    """Return messages that `check` accepts, and the changes that were necessary.

    A thinking switch that does not fit the last answer cannot be repaired in messages: see
    `tui.context.validate.thinking_for`.
    """
    switch = thinking if thinking and thinking.get("type") == "disabled" else None
    broken = check(messages, thinking=switch, tail=tail)
    if not broken:
        return cast("list[Message]", messages), ()
    pieces = None if switch else pieces_of(messages, broken)
    if pieces is None:
        # Damage that may concern other turns is repaired over all messages at once.
        return _repaired(messages, 0, switch, tail)
    whole: list[Message] = []
    findings: list[Finding] = []
    for start, end, damaged in pieces:
        piece = messages[start:end]
        if damaged:
            fixed, changes = _repaired(piece, start, None, tail if end == len(messages) else "open")
            whole.extend(fixed)
            findings.extend(changes)
        else:
            whole.extend(cast("Sequence[Message]", piece))
    return whole, tuple(findings)


def _repaired(
    messages: Sequence[object], start: int, switch: Mapping[str, Any] | None, tail: Tail
) -> tuple[list[Message], tuple[Finding, ...]]:
    """Run messages through every step; the first is number `start` of the request."""
    report = RepairReport()
    drafts = join(split_roles(_drafts(messages, report, start), report), report)
    server_pairs(drafts, report)
    drafts = join(pair(drafts, report), report)
    strip_wrong_thinking(drafts, switch, report)
    drafts = settle(drafts, tail, report)
    thin_media(drafts, report)
    strip_marks(drafts, report)
    repaired = _messages(drafts)
    # No step may leave a request that the API refuses: as a last resort, keep only the texts.
    if violations := check(repaired, thinking=switch, tail=tail):
        report.add("R4", violations[0].where, f"reduced to its text: {violations[0].text}")
        return text_only(messages, tail=tail), report.in_order()
    return repaired, report.in_order()


def text_only(messages: Sequence[object], *, tail: Tail = "user") -> list[Message]:
    """Keep only the texts: the last resort, valid for any input."""
    report = RepairReport()
    drafts: list[MessageDraft] = []
    for draft in _drafts(messages, report):
        texts = [item for item in draft.items if item.kind == "text"]
        items = [DraftBlock(where, text_block(block["text"])) for where, block in texts]
        drafts.append(MessageDraft(draft.role, draft.where, items))
    return _messages(settle(drafts, tail, report))


def _messages(drafts: Iterable[MessageDraft]) -> list[Message]:
    return [{"role": d.role, "content": [item.block for item in d.items]} for d in drafts]


def _drafts(
    messages: Sequence[object], report: RepairReport, start: int = 0
) -> Iterable[MessageDraft]:
    """Yield everything that has a role and content, its blocks cleaned."""
    for index, message in enumerate(messages, start):
        where = f"messages.{index}"
        given = object_of(message)
        role, content = given.get("role"), given.get("content")
        if not isinstance(role, str) or not isinstance(content, str | list | dict):
            report.add("B56", where, "skipped: not a message")
            continue
        # Other agents record errors of the API as answers.
        if given.get("isApiErrorMessage") or given.get("model") == "<synthetic>":
            report.add("B57", where, "left out: an error text stored as an answer")
            continue
        if extra := extra_fields(given, MESSAGE_FIELDS):
            report.add("B27", where, f"fields left out: {', '.join(map(str, extra))}")
        items: list[object] = list_of(given["content"])
        if isinstance(content, str):
            items = [text_block(content)]
        elif isinstance(content, dict):
            report.add("B56", where, "a single block made a list")
            items = [given["content"]]
        if role not in {"user", "assistant"}:
            report.add("B28", where, f"a message of the role {role!r} given to the user")
        draft = MessageDraft("assistant" if role == "assistant" else "user", where)
        clean(draft, items, report)
        yield draft


_FAR = frozenset({"B02", "B03", "B06", "B08", "B21", "B25", "B26", "B30", "B34"})
"""Violations that may concern messages anywhere: a result's call, a duplicate id, sums over all."""

Piece = tuple[int, int, bool]
"""The first message, the one after the last, and True if anything in between is damaged."""


def pieces_of(messages: Sequence[object], broken: Iterable[Violation]) -> Iterator[Piece] | None:
    """Split the list into pieces that can be repaired one by one; None if that is not possible."""
    hit: set[int] = set()
    for violation in broken:
        index, _ = place(violation.where)
        if index < 0 or violation.code in _FAR:
            return None
        hit |= {index, index - 1} if violation.code == "B39" else {index}
    return _pieces(messages, hit)


def _pieces(messages: Sequence[object], hit: set[int]) -> Iterator[Piece]:
    start, end = 0, len(messages)
    for index in sorted(hit):
        if index < start:
            continue  # included in the piece before
        first = index
        while first > start and not _parts(messages, first, hit):
            first -= 1
        last = index + 1
        while last < end and not _parts(messages, last, hit):
            last += 1
        if first > start:
            yield start, first, False
        yield first, last, True
        start = last
    if start < end:
        yield start, end, False


def _parts(messages: Sequence[object], index: int, hit: set[int]) -> bool:
    """True if a valid prompt is here, after a valid answer without calls."""
    if index in hit or index - 1 in hit:
        return False
    return _holds(messages[index], "user", "tool_result") and _holds(
        messages[index - 1], "assistant", "tool_use"
    )


def _holds(message: object, role: str, without: str) -> bool:
    """True if this is a message of the role, without a block of the type."""
    if not is_object(message) or message.get("role") != role:
        return False
    return all(block.get("type") != without for block in blocks_of(message.get("content")))
