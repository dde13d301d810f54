"""Repairs of the order of messages: roles, neighbors, thinking, the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from tui.context.repairs.blocks import strip_thinking
from tui.context.repairs.message_draft import DraftBlock, MessageDraft, RepairReport
from tui.context.rules.blocks import ASSISTANT_ONLY, THINKING, USER_ONLY, is_paused
from tui.context.rules.order import Tail
from tui.core.messages import text_block

CONTINUE = "(continue)"


def split_roles(drafts: Iterable[MessageDraft], report: RepairReport) -> Iterator[MessageDraft]:
    """Move blocks that are not allowed in a message of their role to a message of their own."""
    for draft in drafts:
        parts = [MessageDraft(draft.role, draft.where)]
        for item in draft.items:
            role = _role_of(item, draft.role)
            if role != draft.role:
                if item.kind in THINKING:
                    report.add("B28", item.where, "thinking in a user message left out")
                    continue
                report.add("B28", item.where, f"{item.kind} moved to a message of the {role}")
            if parts[-1].role != role:
                parts.append(MessageDraft(role, draft.where))
            parts[-1].items.append(item)
        yield from (part for part in parts if part.items or len(parts) == 1)


def _role_of(item: DraftBlock, role: Literal["user", "assistant"]) -> Literal["user", "assistant"]:
    if item.kind in ASSISTANT_ONLY:
        return "assistant"
    return "user" if item.kind in USER_ONLY else role


def join(drafts: Iterable[MessageDraft], report: RepairReport) -> list[MessageDraft]:
    """Join neighbors of one role into one message. An emptied user message stays as a gap."""
    joined: list[MessageDraft] = []
    for draft in drafts:
        last = joined[-1] if joined else None
        same = last is not None and last.role == draft.role
        if not draft.items and (same or draft.role == "assistant"):
            report.add("B13", draft.where, "an empty message left out")
        elif last is None or not same:
            joined.append(draft)
        elif not last.items:
            joined[-1] = draft
        elif last.role == "user" and _blocks(last) == _blocks(draft):
            report.add("B58", draft.where, "the same prompt, stored again, left out")
        elif last.role == "user" or _one_answer(last, draft):
            report.add("B39", draft.where, "joined with the message before it")
            joined[-1] = MessageDraft(last.role, last.where, last.items + draft.items)
        else:
            joined.append(draft)
    return joined


def _blocks(draft: MessageDraft) -> list[dict[str, Any]]:
    return [item.block for item in draft.items]


def _one_answer(first: MessageDraft, second: MessageDraft) -> bool:
    """True if two consecutive messages of the assistant are parts of one.

    Text after a call has seen its result; a message of only calls belongs with the calls before.
    """
    return not first.has("tool_use") or all(item.kind == "tool_use" for item in second.items)


def strip_wrong_thinking(
    drafts: Iterable[MessageDraft], thinking: Mapping[str, Any] | None, report: RepairReport
) -> None:
    """Drop thinking at the end of an answer, and in the last answer if it is switched off."""
    answers = [draft for draft in drafts if draft.role == "assistant"]
    for draft in answers:
        if draft.items and draft.items[-1].kind in THINKING:
            strip_thinking(draft, report, "B16")
    if thinking is not None and thinking.get("type") == "disabled":
        for draft in reversed(answers):
            strip_thinking(draft, report, "B21")
            if draft.items:
                break


def settle(drafts: Iterable[MessageDraft], tail: Tail, report: RepairReport) -> list[MessageDraft]:
    """Alternate user and assistant, from a user message to an allowed end."""
    settled: list[MessageDraft] = []
    for draft in join(drafts, report):
        if draft.role == "assistant" and not settled:
            report.add("B39", draft.where, f"“{CONTINUE}” put before the first answer")
            settled.append(_continue(draft.where))
        elif draft.role == "assistant" and not settled[-1].items:
            report.add("B13", settled[-1].where, f"an empty message filled with “{CONTINUE}”")
            settled[-1] = _continue(settled[-1].where)
        settled.append(draft)
    if settled and not settled[-1].items:
        report.add("B13", settled.pop().where, "an empty message left out")
    if settled and settled[-1].role == "assistant":
        paused = is_paused([item.block for item in settled[-1].items])
        if tail == "user" and not paused:
            where = settled[-1].where
            report.add("B15", where, f"“{CONTINUE}” put after the last answer")
            settled.append(_continue(where))
        elif tail == "prefill":
            _trim(settled[-1], report)
    return settled


def _continue(where: str) -> MessageDraft:
    return MessageDraft("user", where, [DraftBlock(where, text_block(CONTINUE))])


def _trim(draft: MessageDraft, report: RepairReport) -> None:
    where, block = draft.items[-1]
    text = block.get("text")
    if isinstance(text, str) and text[-1:].isspace():
        report.add("B14", where, "white space at the end left out")
        draft.items[-1] = DraftBlock(where, block | {"text": text.rstrip()})
