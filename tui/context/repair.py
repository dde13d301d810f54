"""The repair engine: any list of messages becomes one that the Messages API takes.

Pure: what is given is never changed. A valid list comes back as it is, the same object; running
twice equals running once. Damage that concerns no more than its turn costs no more than that: the
other turns are looked at once. Nothing is made up but R2's result, "(no output)", "(continue)"
and placeholders that say what was removed. Every change is a finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from tui.context.repairs.blocks import clean
from tui.context.repairs.damage_split import pieces_of
from tui.context.repairs.media import strip_marks, thin_media
from tui.context.repairs.message_draft import Draft, Item, Report
from tui.context.repairs.order import CONTINUE, join, settle, split_roles, strip_wrong_thinking
from tui.context.repairs.pairs import INTERRUPTED, ORPHANED, pair, server_pairs
from tui.context.rules.blocks import MESSAGE_FIELDS, extra_fields
from tui.context.validate import Tail, check
from tui.core.messages import Message, blocks_of, text_block
from tui.session.records import Finding

__all__ = ["CONTINUE", "INTERRUPTED", "ORPHANED", "repair", "text_only"]


def repair(
    messages: Sequence[object],
    *,
    thinking: Mapping[str, Any] | None = None,
    tail: Tail = "user",
) -> tuple[list[Message], tuple[Finding, ...]]:
    """Messages that `check` accepts, and what was done to get there.

    A thinking switch that the last answer does not fit (B20) cannot be repaired in messages:
    see `tui.context.view.fitting_thinking`.
    """
    switch = thinking if thinking and thinking.get("type") == "disabled" else None
    broken = check(messages, thinking=switch, tail=tail)
    if not broken:
        return cast("list[Message]", messages), ()
    pieces = None if switch else pieces_of(messages, broken)
    if pieces is None:
        return _repaired(messages, 0, switch, tail)
    whole: list[Message] = []
    findings: list[Finding] = []
    for start, end, damaged in pieces:
        piece = messages[start:end]
        if damaged:
            mended, found = _repaired(piece, start, None, tail if end == len(messages) else "open")
            whole.extend(mended)
            findings.extend(found)
        else:
            whole.extend(cast("Sequence[Message]", piece))
    return whole, tuple(findings)


def _repaired(
    messages: Sequence[object], start: int, switch: Mapping[str, Any] | None, tail: Tail
) -> tuple[list[Message], tuple[Finding, ...]]:
    """Messages, the first of which is number `start` of a request, put through every step."""
    report = Report()
    drafts = join(split_roles(_drafts(messages, report, start), report), report)
    server_pairs(drafts, report)
    drafts = join(pair(drafts, report), report)
    strip_wrong_thinking(drafts, switch, report)
    drafts = settle(drafts, tail, report)
    thin_media(drafts, report)
    strip_marks(drafts, report)
    repaired = _messages(drafts)
    if left := check(repaired, thinking=switch, tail=tail):
        report.add("R4", left[0].where, f"reduced to its text: {left[0].text}")
        return text_only(messages, tail=tail), report.in_order()
    return repaired, report.in_order()


def text_only(messages: Sequence[object], *, tail: Tail = "user") -> list[Message]:
    """Only what was said, as text: the last resort, valid whatever was given (R4, R13)."""
    report = Report()
    drafts: list[Draft] = []
    for draft in _drafts(messages, report):
        said = [item for item in draft.items if item.kind == "text"]
        items = [Item(where, text_block(block["text"])) for where, block in said]
        drafts.append(Draft(draft.role, draft.where, items))
    return _messages(settle(drafts, tail, report))


def _messages(drafts: Iterable[Draft]) -> list[Message]:
    return [{"role": d.role, "content": [item.block for item in d.items]} for d in drafts]


def _drafts(messages: Sequence[object], report: Report, start: int = 0) -> Iterable[Draft]:
    """Whatever has a role and content, its blocks cleaned."""
    for index, message in enumerate(messages, start):
        where = f"messages.{index}"
        given = cast("dict[str, Any]", message) if isinstance(message, dict) else {}
        role, content = given.get("role"), given.get("content")
        if not isinstance(role, str) or not isinstance(content, str | list | dict):
            report.add("B56", where, "skipped: not a message")
            continue
        if given.get("isApiErrorMessage") or given.get("model") == "<synthetic>":
            report.add("B57", where, "left out: an error text stored as an answer")
            continue
        if extra := extra_fields(given, MESSAGE_FIELDS):
            report.add("B27", where, f"fields left out: {', '.join(map(str, extra))}")
        if isinstance(content, dict):
            report.add("B56", where, "a single block made a list")
            content = [cast("object", content)]
        if role not in {"user", "assistant"}:
            report.add("B28", where, f"a message of the role {role!r} given to the user")
        draft = Draft("assistant" if role == "assistant" else "user", where)
        items = blocks_of(content) if isinstance(content, str) else cast("list[object]", content)
        clean(draft, cast("list[object]", items), report)
        yield draft
