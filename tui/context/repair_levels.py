"""Repair levels: ever simpler requests, for a server that refuses what `check` accepts.

    strict         only what is plainly valid: text, thinking, images, calls with their results
    drop_thinking  that, without thinking
    text_only      only what was said
    summary_only   one message: a digest of it all, and the last thing asked

REPAIR_LEVELS is their order; `apply_level` applies a level and those before it. After the last one
nothing more can be repaired. All of it is pure, and every result passes `check`, whatever was
given.
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
"""Messages, and what was done to get there."""

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
"""What a plainly valid block is made of."""

_NAME_CHARS = 64
"""Of ids and names: what every server takes."""


def apply_level(messages: Sequence[object], level: RepairLevel, *, tail: Tail = "user") -> Repaired:
    """The messages at a level, the levels before it applied, too."""
    if level == "summary_only":  # a digest is made of all there is
        return summary_only(messages, tail=tail)
    repaired, findings = strict(messages, tail=tail)
    for step in (drop_thinking, text_only)[: REPAIR_LEVELS.index(level)]:
        repaired, found = step(repaired, tail=tail)
        findings += found
    return repaired, findings


def strict(messages: Sequence[object], *, tail: Tail = "user") -> Repaired:
    """Only blocks that need no mending, of the plain types, without what is optional.

    A call without its result directly after it goes, and so does a result without its call:
    nothing is put in their place.
    """
    findings: list[Finding] = []
    kept = _plain_messages(messages, findings)
    used: set[str] = set()
    paired: set[int] = set()  # blocks, by identity
    for message, after in pairwise(kept):
        results = _first_results(after["content"]) if after["role"] == "user" else {}
        calls = message["content"] if message["role"] == "assistant" else []
        for call in calls:
            id_ = call.get("id")
            if call["type"] == "tool_use" and id_ in results and id_ not in used:
                used.add(str(id_))
                paired |= {id(call), id(results[id_])}
    for index, message in enumerate(kept):
        whole = [b for b in message["content"] if _is_complete(b, paired)]
        if len(whole) != len(message["content"]):
            gone = len(message["content"]) - len(whole)
            words = f"{gone} calls or results that do not belong together left out"
            findings.append(Finding("R13", f"messages.{index}", words))
        message["content"] = whole
    return _repaired(kept, findings, tail)


def drop_thinking(messages: Sequence[object], *, tail: Tail = "user") -> Repaired:
    """All thinking left out: for a server that does not know the signatures."""
    findings: list[Finding] = []
    kept: list[object] = []
    for index, message in enumerate(messages):
        blocks = list_of(object_of(message).get("content"))
        rest = [b for b in blocks if str(object_of(b).get("type")) not in THINKING]
        if len(rest) == len(blocks):
            kept.append(message)
        else:
            findings.append(Finding("R13", f"messages.{index}", "thinking left out"))
            kept.append(object_of(message) | {"content": rest})
    return _repaired(kept, findings, tail)


def text_only(messages: Sequence[object], *, tail: Tail = "user") -> Repaired:
    """Only what was said, as text."""
    told = repairs.text_only(messages, tail=tail)
    if told == list(messages):
        return told, ()
    return told, (Finding("R13", "messages", "reduced to what was said"),)


def summary_only(
    messages: Sequence[object], *, budget_tokens: int = DIGEST_TOKENS, tail: Tail = "user"
) -> Repaired:
    """One message of the user: a digest, and what was asked last; at most `budget_tokens` of text.

    What was asked last is verbatim where it takes no more than half of the budget, else its
    beginning does. The budget is at least twice MIN_TOKENS.
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
    mended, found = repairs.repair(made, tail=tail)
    return mended, (finding, *found)


def _plain_messages(messages: Iterable[object], findings: list[Finding]) -> list[Message]:
    """The plain blocks of what is a message."""
    kept: list[Message] = []
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
        kept.append({"role": role, "content": [block for block in plain if block is not None]})
    return kept


def _plain(block: object) -> Block | None:
    """A block without anything optional; None if it is not plainly valid."""
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
    """A part of a result; a text in the place of a document, which not every server takes."""
    if is_object(part) and part.get("type") == "document":
        return text_block("[document left out]")
    return part


def _first_results(content: Iterable[Block]) -> dict[object, Block]:
    found: dict[object, Block] = {}
    for block in content:
        if block["type"] == "tool_result":
            found.setdefault(block.get("tool_use_id"), block)
    return found


def _is_complete(block: Block, paired: set[int]) -> bool:
    return block["type"] not in ("tool_use", "tool_result") or id(block) in paired


def _repaired(kept: Sequence[object], findings: Sequence[Finding], tail: Tail) -> Repaired:
    """What taking blocks away left to mend: empty messages, roles in a row."""
    mended, found = repairs.repair(kept, tail=tail)
    return mended, (*findings, *found)


def _is_summary(sound: Sequence[Message], budget: int) -> bool:
    """Whether there is nothing to sum up: one message of text that is short enough."""
    blocks = blocks_of(sound[0]["content"])
    if len(sound) > 1 or any(block.get("type") != "text" for block in blocks):
        return False
    text = text_of(blocks)
    return text.startswith(HEADING) and tokenizer.count(text) <= budget + 8


def _last_prompt(sound: Sequence[Message]) -> str:
    """What was asked last: the text of the last message that begins a turn."""
    for message in reversed(sound):
        blocks = blocks_of(message["content"])
        words = text_of(blocks).strip()
        begins = not any(block.get("type") == "tool_result" for block in blocks)
        if message["role"] == "user" and begins and words and words != repairs.CONTINUE:
            return words
    return ""
