"""The prompts for a summary: the conversation as text, limited, in parts if it is long. Pure.

Long results and inputs are shown by their ends, so one result cannot crowd out the rest. All of it
is wrapped as untrusted content: a text in the conversation is reported, not obeyed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from tui.context import untrusted
from tui.core.late_pattern import late_pattern
from tui.core.messages import Block, Message, blocks_of, text_of
from tui.tokens import tokenizer

SHARE: Final = 0.4
"""The share of the window that one request to the summarizer may use."""
SUMMARY_TOKENS: Final = 6000
"""The most tokens of a summary."""
WARM_TOKENS: Final = 16_000
"""The most tokens of an answer with a summary, including the thinking before it."""
_MEMORY = late_pattern(r"^[#*\s]*MEMORY[*:\s]*$", re.MULTILINE)
_TEXT, _RESULT, _INPUT = 6000, 2000, 600


def transcript(messages: Iterable[Message], *, whole: bool = False) -> list[str]:
    """Split the conversation into pieces, one for each text, call or result; `whole` uncut."""
    return [
        piece
        for message in messages
        for block in message["content"]
        if (piece := _piece(message["role"], block, whole=whole))
    ]


def parts(pieces: Sequence[str], budget_tokens: int) -> list[str]:
    """Join pieces to texts of at most that many tokens each; only a larger piece is split."""
    if sum(len(piece.encode("utf-8", "replace")) + 2 for piece in pieces) <= budget_tokens:
        return ["\n\n".join(pieces)] if pieces else []  # no token is less than a byte
    texts: list[str] = []
    room, held = 0, list[str]()
    for piece in (small for whole in pieces for small in _within(whole, budget_tokens)):
        size = tokenizer.count(piece) + 2
        if held and size > room:
            texts.append("\n\n".join(held))
            held = []
        if not held:
            room = budget_tokens
        held.append(piece)
        room -= size
    return [*texts, "\n\n".join(held)] if held else texts


def halves(part: str) -> tuple[str, str]:
    """Split a part in two, between lines where possible."""
    middle = len(part) // 2
    line = part.find("\n", middle)
    at = line + 1 if 0 <= line < len(part) - 1 else middle
    return part[:at], part[at:]


def question(part: str, *, focus: str = "", number: int = 1, of: int = 1) -> str:
    """Build the prompt that asks for a summary of a part. `focus` is the person's own wish."""
    which = f"\n\nThis is part {number} of {of} of the conversation." if of > 1 else ""
    return f"{prose('summary')}{_wish(focus)}{which}\n\n{untrusted.wrap(part, 'conversation')}"


def warm_question(*, focus: str = "", notes: bool = False) -> str:
    """Build the prompt that asks for a summary of the conversation before it.

    With `notes` it also asks for notes for the memory (see `split_answer`).
    """
    parts = [f"{prose('warm_summary')}{_wish(focus)}", *([prose("warm_memory")] if notes else [])]
    return "\n\n".join(parts)


def split_answer(answer: str) -> tuple[str, str]:
    """Split the answer to a warm question into the summary and the text below MEMORY."""
    heading = _MEMORY.search(answer)
    if heading is None:
        return answer.strip(), ""
    return answer[: heading.start()].strip(), answer[heading.end() :].strip()


def merge_question(summaries: Sequence[str], *, focus: str = "") -> str:
    """Build the prompt that combines several summaries into one."""
    numbered = "\n\n".join(f"Part {n}:\n{text}" for n, text in enumerate(summaries, 1))
    return f"{prose('merge')}{_wish(focus)}\n\n{untrusted.wrap(numbered, 'summaries')}"


def _wish(focus: str) -> str:
    wish = " ".join(focus.split())
    return f"\n\nThe person asks to pay particular attention to: {wish}" if wish else ""


def _within(piece: str, budget: int) -> list[str]:
    if len(piece) <= budget or tokenizer.count(piece) + 2 <= budget:
        return [piece]
    first, second = halves(piece)
    return [*_within(first, budget), *_within(second, budget)] if first and second else [piece]


def _piece(role: str, block: Block, *, whole: bool) -> str:
    def ends(text: str, most: int) -> str:
        return text if whole else _cut(text, most)

    match block.get("type"):
        case "text":
            who = "Person" if role == "user" else "Agent"
            text = ends(str(block.get("text") or "").strip(), _TEXT)
            return f"{who}: {text}" if text else ""
        case "tool_use":
            given = json.dumps(block.get("input"), ensure_ascii=False, default=str)
            return f"Agent calls {block.get('name')}: {ends(given, _INPUT)}"
        case "tool_result":
            kind = "Error" if block.get("is_error") is True else "Result"
            return f"{kind}: {ends(text_of(blocks_of(block.get('content'))), _RESULT)}"
        case "image" | "document" as kind:
            return f"[{kind}]"
        case _:
            return ""


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    head = most * 2 // 3
    omitted = len(text) - most
    return f"{text[:head]}\n[… {omitted:,} chars left out …]\n{text[-(most - head) :]}"


@cache
def prose(name: str) -> str:
    """Read a text for the model by its name in `context/prompts/`."""
    return (Path(__file__).parent / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()
