"""The prompts for a summary: the conversation as text, limited, in parts if it is long. Pure.

Long results and inputs are shown by their ends, so one result cannot crowd out the rest. All of
it is wrapped as untrusted content: a text in the conversation is reported, not obeyed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Final

from tui.context import untrusted
from tui.core.messages import Block, Message, blocks_of, text_of
from tui.tokens import tokenizer

SHARE: Final = 0.4
"""Of the window, what one request to the summariser may carry."""
SUMMARY_TOKENS: Final = 6000
"""The most that a summary may be."""
WARM_TOKENS: Final = 16_000
"""The most of an answer with a summary, the thinking before it included."""
_MEMORY = re.compile(r"^[#*\s]*MEMORY[*:\s]*$", re.MULTILINE)
_TEXT, _RESULT, _INPUT = 6000, 2000, 600


def transcript(messages: Iterable[Message], *, whole: bool = False) -> list[str]:
    """The conversation in pieces, one for each thing that was said or done; `whole` uncut."""
    return [
        piece
        for message in messages
        for block in message["content"]
        if (piece := _piece(message["role"], block, whole=whole))
    ]


def parts(pieces: Sequence[str], budget_tokens: int) -> list[str]:
    """The pieces joined to texts of at most that many tokens each; only a larger piece is split."""
    found: list[str] = []
    room, held = 0, list[str]()
    for piece in (small for whole in pieces for small in _within(whole, budget_tokens)):
        size = tokenizer.count(piece) + 2
        if held and size > room:
            found.append("\n\n".join(held))
            held = []
        if not held:
            room = budget_tokens
        held.append(piece)
        room -= size
    return [*found, "\n\n".join(held)] if held else found


def halves(part: str) -> tuple[str, str]:
    """A part in two, between lines where there are any."""
    middle = len(part) // 2
    line = part.find("\n", middle)
    at = line + 1 if 0 <= line < len(part) - 1 else middle
    return part[:at], part[at:]


def question(part: str, *, focus: str = "", number: int = 1, of: int = 1) -> str:
    """The prompt that asks for a summary of a part. `focus` is the person's own wish."""
    which = f"\n\nThis is part {number} of {of} of the conversation." if of > 1 else ""
    return f"{prose('summary')}{_wish(focus)}{which}\n\n{untrusted.wrap(part, 'conversation')}"


def warm_question(*, focus: str = "", notes: bool = False) -> str:
    """The prompt that asks for a summary of the conversation that it comes after.

    With `notes` it also asks for what the memory is to keep (see `split_answer`).
    """
    parts = [f"{prose('warm_summary')}{_wish(focus)}", *([prose("warm_memory")] if notes else [])]
    return "\n\n".join(parts)


def split_answer(answer: str) -> tuple[str, str]:
    """The summary in the answer to a warm question, and what is below MEMORY."""
    found = _MEMORY.search(answer)
    if found is None:
        return answer.strip(), ""
    return answer[: found.start()].strip(), answer[found.end() :].strip()


def merge_question(summaries: Sequence[str], *, focus: str = "") -> str:
    """The prompt that asks for one summary of several."""
    told = "\n\n".join(f"Part {n}:\n{text}" for n, text in enumerate(summaries, 1))
    return f"{prose('merge')}{_wish(focus)}\n\n{untrusted.wrap(told, 'summaries')}"


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
    left_out = len(text) - most
    return f"{text[:head]}\n[… {left_out:,} chars left out …]\n{text[-(most - head) :]}"


@cache
def prose(name: str) -> str:
    """A text for the model, by its name in `context/prompts/`."""
    return (files("tui.context") / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()
