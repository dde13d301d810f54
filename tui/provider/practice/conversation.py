"""The person's last request, and what was done about it so far, read from the messages.

A prompt is typed text; the results that come after it belong to it. "continue" resumes the prompt
before it, without the calls that an interruption left undone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tui.core.dataclass import dataclass, field
from tui.core.images import without_words
from tui.core.messages import Block, Message, blocks_of, text_of

_NOT_TYPED = ("[Previous conversation summary]", "[Digest of the conversation so far", "<")
_ATTACHED = re.compile(
    r"I (?:ran|interrupted) `[^\n]*:\n<untrusted_content\b[^>]*>.*?</untrusted_content>",
    re.DOTALL,
)
"""A command's output, which is attached after the typed text."""
_CONTINUE = re.compile(
    r"(?:please )?(?:continue|go on|proceed|try again|retry)[.! ]*", re.IGNORECASE
)
_INTERRUPTED = "Session was interrupted before tool execution completed"
_REFUSED = ("Declined by the user", "Not allowed, not run")
_REASON = re.compile(r"(?:Reason|not run): (.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of a call."""

    name: str
    """The tool that was called."""
    text: str
    is_error: bool = False
    broken: bool = False
    """The call's arguments did not arrive completely."""

    @property
    def refusal(self) -> str | None:
        """The reason why the call was not allowed, "" if none was given; None if it was allowed."""
        if not self.is_error or not self.text.startswith(_REFUSED):
            return None
        reason = _REASON.search(self.text)
        return reason[1].strip() if reason else ""


@dataclass(slots=True)
class LastPrompt:
    """The text typed last before an answer, the images with it, and the results since."""

    text: str
    images: list[Block]
    results: list[CallResult] = field(default_factory=list[CallResult])


def last_prompt(messages: Iterable[Message]) -> LastPrompt | None:
    """Return the prompt to answer; None if there is none in the messages any more."""
    prompts = list(_prompts(messages))
    if not prompts:
        return None
    last = prompts.pop()
    while prompts and _CONTINUE.fullmatch(last.text):
        before = prompts.pop()
        done = [result for result in before.results if result.text.strip() != _INTERRUPTED]
        last = LastPrompt(before.text, before.images, [*done, *last.results])
    return last


def _prompts(messages: Iterable[Message]) -> Iterator[LastPrompt]:
    prompt: LastPrompt | None = None
    calls: dict[str, Block] = {}
    for message in messages:
        content = message["content"]
        if message["role"] == "assistant":
            calls = {str(block.get("id")): block for block in content if "input" in block}
            continue
        if prompt is not None:
            prompt.results.extend(_results(content, calls))
        texts = [text for block in content if (text := _typed(block))]
        images = [block for block in content if block.get("type") == "image"]
        if texts or images:
            if prompt is not None:
                yield prompt
            prompt = LastPrompt(texts[-1] if texts else "", images)
    if prompt is not None:
        yield prompt


def _typed(block: Block) -> str:
    """The text that somebody typed in a block; "" for summaries, documents and outputs."""
    if block.get("type") != "text":
        return ""
    text = without_words(_ATTACHED.sub("", str(block.get("text", ""))).strip())
    return "" if text.startswith(_NOT_TYPED) else text


def _results(content: Iterable[Block], calls: dict[str, Block]) -> Iterator[CallResult]:
    for block in content:
        call = calls.get(str(block.get("tool_use_id")))
        if call is not None:
            text = text_of(blocks_of(block.get("content")))
            broken = "raw_input" in call["input"]
            yield CallResult(str(call.get("name")), text, bool(block.get("is_error")), broken)
