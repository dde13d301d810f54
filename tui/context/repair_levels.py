"""Repair levels: simpler and simpler requests, for a server that refuses what `check` accepts.

    strict         only what is plainly valid: text, thinking, images, calls with their results
    drop_thinking  the same, without thinking
    text_only      only the texts
    summary_only   one message: a digest of everything, and the last request

REPAIR_LEVELS is their order; `apply_level` applies a level and those before it. After the last one
nothing more can be repaired. All of it is pure, and every result passes `check`, whatever the
input.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, Literal, TypeAlias

from tui.context import repair as repairs
from tui.context.digest import HEADING, MIN_TOKENS, digest
from tui.context.rules.blocks import THINKING, block_violations
from tui.context.rules.order import Tail
from tui.core.messages import (
    Block,
    Message,
    blocks_of,
    is_object,
    list_of,
    object_of,
    text_block,
    text_of,
)
from tui.session.records import Finding
from tui.tokens import tokenizer

Repaired: TypeAlias = tuple[list[Message], tuple[Finding, ...]]
"""Messages, and the changes that were made."""

RepairLevel: TypeAlias = Literal["strict", "drop_thinking", "text_only", "summary_only"]
REPAIR_LEVELS: Final[tuple[RepairLevel, ...]] = (
    "strict",
    "drop_thinking",
    "text_only",
    "summary_only",
)

DIGEST_TOKENS = 4000

_PLAIN: Mapping[str, tuple[str, ...]] = {
    "text": ("type", "text"),
    "thinking": ("type", "thinking", "signature"),
    "redacted_thinking": ("type", "data"),
    "image": ("type", "source"),
    "tool_use": ("type", "id", "name", "input"),
    "tool_result": ("type", "tool_use_id", "content", "is_error"),
}
"""The fields of a plainly valid block, by type."""

_NAME_CHARS = 64
"""The length of ids and names that every server accepts."""


def apply_level(messages: Sequence[object], level: RepairLevel, *, tail: Tail = "user") -> Repaired:
    """Reduce the messages to a level; the levels before it are applied, too."""
    if level == "summary_only":  # a digest needs all there is
        return summary_only(messages, tail=tail)
    repaired, findings = strict(messages, tail=tail)
    for step in (drop_thinking, text_only)[: REPAIR_LEVELS.index(level)]:
        repaired, changes = step(repaired, tail=tail)
        findings += changes
    return repaired, findings


def strict(messages: Sequence[object], *, tail: Tail = "user") -> Repaired:
    """Keep only plain blocks that need no repair, without optional fields.

    A call without its result directly after it is dropped, and so is a result without its call:
    nothing replaces them.
    """
    findings: list[Finding] = []
    plain = _plain_messages(messages, findings)
    used: set[str] = set()
    paired: set[int] = set()  # blocks, by identity
    for message, after in pairwise(plain):
        results = _first_results(after["content"]) if after["role"] == "user" else {}
        calls = message["content"] if message["role"] == "assistant" else []
        for call in calls:
            id_ = call.get("id")
            if call["type"] == "tool_use" and id_ in results and id_ not in used:
                used.add(str(id_))
                paired |= {id(call), id(results[id_])}
    for index, message in enumerate(plain):
        whole = [b for b in message["content"] if _is_complete(b, paired)]
        if len(whole) != len(message["content"]):
            gone = len(message["content"]) - len(whole)
            words = f"{gone} calls or results that do not belong together left out"
            findings.append(Finding("R13", f"messages.{index}", words))
        message["content"] = whole
    return _repaired(plain, findings, tail)


def drop_thinking(messages: Sequence[object], *, tail: Tail = "user") -> Repaired:
    """Drop all thinking, for a server that does not know the signatures."""
    findings: list[Finding] = []
    thoughtless: list[object] = []
    for index, message in enumerate(messages):
        blocks = list_of(object_of(message).get("content"))
        others = [b for b in blocks if str(object_of(b).get("type")) not in THINKING]
        if len(others) == len(blocks):
            thoughtless.append(message)
        else:
            findings.append(Finding("R13", f"messages.{index}", "thinking left out"))
            thoughtless.append(object_of(message) | {"content": others})
    return _repaired(thoughtless, findings, tail)


def text_only(messages: Sequence[object], *, tail: Tail = "user") -> Repaired:
    """Keep only the texts."""
    texts = repairs.text_only(messages, tail=tail)
    if texts == list(messages):
        return texts, ()
    return texts, (Finding("R13", "messages", "reduced to what was said"),)


def summary_only(
    messages: Sequence[object], *, budget_tokens: int = DIGEST_TOKENS, tail: Tail = "user"
) -> Repaired:
    """Return one user message: a digest, and the last request; at most `budget_tokens` of text.

    The last request is verbatim if it takes no more than half of the budget, otherwise only its
    beginning is. The budget is at least twice MIN_TOKENS.
    """
    budget = max(budget_tokens, 2 * MIN_TOKENS)
    sound, _ = repairs.repair(messages, tail="open")
    if not sound or _is_summary(sound, budget):
        return repairs.repair(messages, tail=tail)
    prompt = tokenizer.prefix_within(_last_prompt(sound), budget // 2)
    room = budget - tokenizer.count(prompt)
    blocks = [text_block(digest(sound, room))]
    if prompt.strip():
        blocks.append(text_block(prompt))
    finding = Finding("R13", "messages", f"{len(sound):,} messages replaced with a digest")
    made: list[Message] = [{"role": "user", "content": blocks}]
    repaired, changes = repairs.repair(made, tail=tail)
    return repaired, (finding, *changes)


def _plain_messages(messages: Iterable[object], findings: list[Finding]) -> list[Message]:
    """Keep the plain blocks of everything that is a message."""
    usable: list[Message] = []
    for index, message in enumerate(messages):
        where = f"messages.{index}"
        role, content = (object_of(message).get(name) for name in ("role", "content"))
        if role not in ("user", "assistant") or not isinstance(content, str | list):
            findings.append(Finding("R13", where, "left out: not plainly a message"))
            continue
        blocks = (
            [text_block(content)]
            if isinstance(content, str)
            else list_of(object_of(message)["content"])
        )
        plain = [_plain(block) for block in blocks]
        for place, block in enumerate(plain):
            if block is None:
                at = f"{where}.content.{place}"
                findings.append(Finding("R13", at, "left out: not plainly valid"))
        usable.append({"role": role, "content": [block for block in plain if block is not None]})
    return usable


def _plain(block: object) -> Block | None:
    """Return a block without optional fields; None if it is not plainly valid."""
    if not is_object(block) or not isinstance(block.get("type"), str):
        return None
    fields = _PLAIN.get(block["type"])
    if fields is None or next(block_violations(block, ""), None) is not None:
        return None
    plain = {name: block[name] for name in fields if name in block}
    if any(len(str(plain.get(name, ""))) > _NAME_CHARS for name in ("id", "name", "tool_use_id")):
        return None
    if plain["type"] == "tool_result" and isinstance(plain.get("content"), list):
        parts = [_plain(_without_document(part)) for part in list_of(plain["content"])]
        if any(part is None or part["type"] not in ("text", "image") for part in parts):
            return None
        plain["content"] = parts
    if plain["type"] == "image" and plain["source"].get("type") != "base64":
        return None
    return plain


def _without_document(part: object) -> object:
    """Replace a document in a result by a text, since not every server accepts documents."""
    if is_object(part) and part.get("type") == "document":
        return text_block("[document left out]")
    return part


def _first_results(content: Iterable[Block]) -> dict[object, Block]:
    results: dict[object, Block] = {}
    for block in content:
        if block["type"] == "tool_result":
            results.setdefault(block.get("tool_use_id"), block)
    return results


def _is_complete(block: Block, paired: set[int]) -> bool:
    return block["type"] not in ("tool_use", "tool_result") or id(block) in paired


def _repaired(kept: Sequence[object], findings: Sequence[Finding], tail: Tail) -> Repaired:
    """Repair what removing blocks has left: empty messages, the same role twice in a row."""
    repaired, changes = repairs.repair(kept, tail=tail)
    return repaired, (*findings, *changes)


def _is_summary(sound: Sequence[Message], budget: int) -> bool:
    """True if there is nothing to summarize: one message of text that is short enough."""
    blocks = blocks_of(sound[0]["content"])
    if len(sound) > 1 or any(block.get("type") != "text" for block in blocks):
        return False
    text = text_of(blocks)
    return text.startswith(HEADING) and tokenizer.count(text) <= budget + 8


def _last_prompt(sound: Sequence[Message]) -> str:
    """The last request: the text of the last message that begins a turn."""
    for message in reversed(sound):
        blocks = blocks_of(message["content"])
        words = text_of(blocks).strip()
        begins = not any(block.get("type") == "tool_result" for block in blocks)
        if message["role"] == "user" and begins and words and words != repairs.CONTINUE:
            return words
    return ""
