"""Steps that make a request smaller. Pure: messages → messages and findings.

After an overflow they are taken in this order, each only if the one before was not enough:

    1  compaction, at most 3 times      `cut_at` and `compacted`, with a model's summary
    2  `clamp_results`                  oversized results to 50 KB / 2,000 lines, then to 30 % of
                                        the window under the ceiling of 400,000 characters
    3  `drop_oldest`                    whole turns, the oldest first; the last one stays
    4  `repair_levels.summary_only`     a digest made without a model: small enough by itself

A body that is too large in bytes (HTTP 413) begins with `images_to_text`; the rest is the same.
Every result passes `check` if what was given did. A step that has nothing to do returns the same
list.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, cast

from tui.context import repair as repairs
from tui.context.overrides import MEDIA, SUMMARY, with_texts
from tui.context.prune import starts_turn
from tui.context.repair_levels import Repaired
from tui.context.repairs.blocks import NO_OUTPUT
from tui.context.repairs.media import removed
from tui.context.rules.order import Tail
from tui.core.messages import Block, Message, blocks_of, text_block
from tui.session.records import Finding
from tui.tools.limits.clamp import Room, cap_chars, clamp, share, threshold

KEEP_MESSAGES = 6


def clamp_results(
    messages: Sequence[Message], *, window: int, token_share: float = 0.3, room: Room | None = None
) -> Repaired:
    """Oversized tool results cut to the limits of a result. `window` is the model's, in tokens.

    The text blocks of each result share `room` (50 KB, 2,000 lines), then the token share, then
    the limit of characters.
    """
    limit = threshold(window, token_share)
    allowed = room or Room()

    def cut(texts: Sequence[str]) -> Sequence[str]:
        return cap_chars(share(clamp(texts, allowed), limit))

    def clamped(block: Block, where: str, findings: list[Finding]) -> Block:
        if block.get("type") != "tool_result":
            return block
        content = _cut_texts(block.get("content"), cut)
        if content is block.get("content"):
            return block
        findings.append(Finding("O23", where, "an oversized result cut"))
        return block | {"content": content}

    return _each(messages, clamped)


def images_to_text(messages: Sequence[Message], *, budget_bytes: int | None = None) -> Repaired:
    """Images and documents in turns before the last replaced by text, the oldest first.

    With `budget_bytes` only as many as it takes to bring the messages, as JSON, down to it.
    """
    last = max((n for n, message in enumerate(messages) if starts_turn(message)), default=0)
    over = None if budget_bytes is None else _json_bytes(messages) - budget_bytes

    def one(block: Block) -> Block:
        nonlocal over
        if over is not None and over <= 0:
            return block
        placeholder = removed(block, "from an earlier turn")
        if over is not None:
            over -= _json_bytes(block) - _json_bytes(placeholder)
        return placeholder

    def replaced(block: Block, where: str, findings: list[Finding]) -> Block:
        found = block
        if block.get("type") in MEDIA:
            found = one(block)
        elif block.get("type") == "tool_result" and isinstance(block.get("content"), list):
            parts = cast("list[Block]", block["content"])
            changed = [one(part) if part.get("type") in MEDIA else part for part in parts]
            if any(new is not old for new, old in zip(changed, parts, strict=True)):
                found = block | {"content": changed}
        if found is not block:
            findings.append(Finding("O31", where, "an image of an earlier turn replaced by text"))
        return found

    earlier, findings = _each(messages[:last], replaced)
    return ([*earlier, *messages[last:]], findings) if findings else (_same(messages), ())


def drop_oldest(messages: Sequence[Message], fits: Callable[[Sequence[Message]], bool]) -> Repaired:
    """As few whole turns left out, the oldest first, as it takes to fit.

    The last turn stays, and so does a summary at the beginning. No result loses its call. `fits`
    is asked a few times; what is shorter must fit where something longer does.
    """
    if fits(messages):
        return _same(messages), ()
    starts = [n for n, message in enumerate(messages) if n and starts_turn(message)]
    if not starts:
        return _same(messages), ()
    low, high = 0, len(starts) - 1  # the first start at which what is left fits, else the last
    while low < high:
        middle = (low + high) // 2
        if fits(_from(messages, starts[middle])):
            high = middle
        else:
            low = middle + 1
    kept = _from(messages, starts[low])
    finding = Finding("R38", "messages.0", f"the oldest {starts[low]:,} messages left out")
    return kept, (finding,)


def cut_at(messages: Sequence[Message], keep: int = KEEP_MESSAGES) -> int:
    """Where a compaction may cut: the messages from here on are kept; 0 if there is nothing to cut.

    At least the last `keep` stay. A cut never parts a call from its result: it moves back to
    the start of the turn, or, where that began more than `keep` messages before, to the call.
    """
    cut = len(messages) - keep
    if cut <= 0:
        return 0
    for start in range(cut, max(0, cut - keep) - 1, -1):
        if starts_turn(messages[start]):
            return start
    return cut if messages[cut]["role"] == "assistant" else cut - 1


def compacted(
    messages: Sequence[Message], summary: str, cut: int, *, tail: Tail = "open"
) -> Repaired:
    """The messages from `cut` on, after a summary of those before. Roles alternate."""
    if cut <= 0:
        return _same(messages), ()
    said = text_block(f"{SUMMARY}\n{summary.strip() or '(no summary)'}")
    kept = list(messages[cut:])
    if kept and starts_turn(kept[0]):
        first = kept.pop(0)
        head: Message = {"role": "user", "content": [said, *blocks_of(first["content"])]}
    else:
        head = {"role": "user", "content": [said]}
    return repairs.repair([head, *kept], tail=tail)


def _from(messages: Sequence[Message], start: int) -> list[Message]:
    """The messages from the start of a turn on, behind the summary if there is one."""
    first = blocks_of(messages[0]["content"])[:1]
    if not str(first[0].get("text") if first else "").startswith(SUMMARY):
        return list(messages[start:])
    head: Message = {"role": "user", "content": [*first, *blocks_of(messages[start]["content"])]}
    return [head, *messages[start + 1 :]]


def _each(
    messages: Sequence[Message], change: Callable[[Block, str, list[Finding]], Block]
) -> Repaired:
    """Every block put through a function; the same list where nothing changed."""
    findings: list[Finding] = []
    changed: list[Message] = []
    for index, message in enumerate(messages):
        before = len(findings)
        where = f"messages.{index}.content."
        blocks = [
            change(b, f"{where}{n}", findings) for n, b in enumerate(blocks_of(message["content"]))
        ]
        new: Message = {"role": message["role"], "content": blocks}
        changed.append(new if len(findings) > before else message)
    return (changed, tuple(findings)) if findings else (_same(messages), ())


def _cut_texts(content: object, cut: Callable[[Sequence[str]], Sequence[str]]) -> object:
    """A result's content with its texts cut together; the same object where they fit."""
    if isinstance(content, str):
        short_text = cut([content])[0]
        return content if short_text == content else short_text
    if not isinstance(content, list):
        return content
    blocks = cast("list[dict[str, Any]]", content)
    texts = [str(b.get("text")) for b in blocks if b.get("type") == "text"]
    short = list(cut(texts)) if texts else texts
    if short == texts:
        return blocks
    return with_texts(blocks, (text or NO_OUTPUT for text in short))


def _same(messages: Sequence[Message]) -> list[Message]:
    return messages if isinstance(messages, list) else list(messages)


def _json_bytes(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
