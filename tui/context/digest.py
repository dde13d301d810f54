"""A summary made without a model: requests, files touched, commands run, the last answers.

The same messages always give the same text, of at most the given number of tokens. It is sent when
the server accepts nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from tui.context.overrides import SUMMARY
from tui.context.repairs.order import CONTINUE
from tui.context.repairs.pairs import INTERRUPTED
from tui.core.dataclass import dataclass, field
from tui.core.messages import Block, Message, blocks_of, object_of, string_of, text_of
from tui.tokens import tokenizer
from tui.tools.patch_format import named_paths

HEADING = "[Digest of the conversation so far, made without a model]"
MIN_TOKENS = 64

_ITEM_CHARS = 600
_SUMMARY_CHARS = 8000
_LINE_CHARS = 160
_LEAST_CHARS = 40
_PATHS = ("path", "file_path", "notebook_path", "filename")
_COMMANDS = ("command", "cmd", "script")


@dataclass(slots=True)
class _Section:
    """A heading and its items, the oldest first. With `first`, the oldest one is kept too."""

    title: str
    share: float
    first: bool = False
    items: list[str] = field(default_factory=list[str])

    def within(self, chars: int) -> list[str]:
        """Return the heading and the newest items that fit, with the number of those left out."""
        fitting: list[str] = []
        head = self.items[:1] if self.first else []
        room = chars - sum(map(len, head))
        for item in reversed(self.items[len(head) :]):
            if len(item) >= room and (fitting or head):
                break
            fitting.append(_clip(item, max(room, _LEAST_CHARS)))
            room -= len(item) + 1
        gone = len(self.items) - len(fitting) - len(head)
        between = [f"- … {gone:,} more"] if gone else []
        return [self.title, *head, *between, *reversed(fitting)]


def digest(messages: Sequence[Message], budget_tokens: int) -> str:
    """Summarize the conversation in at most `budget_tokens` (no less than MIN_TOKENS)."""
    budget = max(budget_tokens, MIN_TOKENS)
    sections = [section for section in _sections(messages) if section.items]
    whole = sum(section.share for section in sections) or 1.0
    chars = budget * 4
    # The items are cut by characters, but the budget is in tokens: shrink until it fits.
    while chars > MIN_TOKENS:
        parts = [section.within(int(chars * section.share / whole)) for section in sections]
        text = "\n\n".join([HEADING, *("\n".join(part) for part in parts)])
        if tokenizer.count(text) <= budget:
            return text
        chars = chars * 3 // 4
    return tokenizer.prefix_within(HEADING, budget)


def _sections(messages: Sequence[Message]) -> list[_Section]:
    before = _Section("From the summary before:", 0.4)
    asked = _Section("What was asked:", 0.35, first=True)
    files = _Section("Files touched:", 0.15)
    commands = _Section("Commands run:", 0.15)
    answers = _Section("The last answers:", 0.35)
    outcomes = _outcomes(messages)
    touched: dict[str, dict[str, int]] = {}
    run: dict[str, None] = {}
    for message in messages:
        for text in _words(blocks_of(message["content"])):
            if text.startswith((SUMMARY, HEADING)):
                before.items.append(f"- {_clip(text.split(']', 1)[1], _SUMMARY_CHARS)}")
            else:
                section = asked if message["role"] == "user" else answers
                section.items.append(f"- {_clip(text, _ITEM_CHARS)}")
        for call in blocks_of(message["content"]):
            if call.get("type") == "tool_use":
                _note_call(call, outcomes.get(str(call.get("id")), ""), touched, run)
    files.items = [f"- {path} ({_tools(by)})" for path, by in touched.items()]
    commands.items = list(run)
    return [before, asked, files, commands, answers]


def _outcomes(messages: Iterable[Message]) -> dict[str, str]:
    """The outcomes of calls that did not go well, by call id."""
    outcomes: dict[str, str] = {}
    for message in messages:
        for block in blocks_of(message["content"]):
            if block.get("type") == "tool_result" and block.get("is_error") is True:
                text = text_of(blocks_of(block.get("content")))
                end = "interrupted" if text == INTERRUPTED else "failed"
                outcomes[str(block.get("tool_use_id"))] = f" — {end}"
    return outcomes


def _words(content: Iterable[Block]) -> list[str]:
    """The texts of a message, without those that only keep the roles in order."""
    texts = (str(b.get("text")).strip() for b in content if b.get("type") == "text")
    return [text for text in texts if text and text not in (CONTINUE, HEADING)]


def _note_call(
    call: Block, outcome: str, touched: dict[str, dict[str, int]], run: dict[str, None]
) -> None:
    arguments = object_of(call.get("input"))
    name = str(call.get("name"))
    named = (string_of(arguments.get(field_)) for field_ in _PATHS)
    path = next((path for path in named if path.strip()), "")
    paths = (path,) if path else named_paths(string_of(arguments.get("patch")))
    for each in paths:
        tools = touched.pop(_clip(each, _LINE_CHARS), {})  # the last one touched comes last
        tools[name] = tools.get(name, 0) + 1
        touched[_clip(each, _LINE_CHARS)] = tools
    if paths:
        return
    for field_ in _COMMANDS:
        command = arguments.get(field_)
        if isinstance(command, list):
            command = json.dumps(command, ensure_ascii=False, default=str)
        if isinstance(command, str) and command.strip():
            line = f"- `{_clip(command, _LINE_CHARS)}`{outcome}"
            run.pop(line, None)
            run[line] = None
            return


def _tools(counts: dict[str, int]) -> str:
    return ", ".join(name if n == 1 else f"{name} ×{n}" for name, n in counts.items())


def _clip(text: str, limit: int) -> str:
    """Put a text on one line, and leave out its middle where it is too long."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    half = (limit - 3) // 2
    return f"{line[:half]} … {line[-half:]}"
