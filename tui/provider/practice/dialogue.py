"""What was said and done so far, read from the messages of a request.

A turn begins with typed text. A plan of work belongs to a turn: the steps that its text asks for
and the calls that were made for them. "continue" takes over the plan of the turn before, "also …"
adds to it, anything else starts a new one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from tui.images.images import without_words
from tui.messages import Block, Message, text_of
from tui.provider.practice.steps import Step
from tui.provider.practice.understand import understand

INTERRUPTED = "Session was interrupted before tool execution completed"
"""R2's text: the result of a call that was never carried out."""

_NOT_TYPED = ("[Previous conversation summary]", "[Digest of the conversation so far", "<")
_OWN_COMMAND = re.compile(
    r"I ran `[^\n]*` myself\. Its output:\n<untrusted_content\b[^>]*>.*?</untrusted_content>",
    re.DOTALL,
)
"""A command of the person's own, which goes along behind what was typed."""
_PRUNED = re.compile(r"\[Previous tool (?:result|error) truncated")
_REFUSED = re.compile(r"The person said no\b|Not allowed, not run\b")
_REASON = re.compile(r"(?:They said|not run): (.+)", re.DOTALL)
_CONTINUE = re.compile(
    r"(?:please\s+)?(?:continue|go on|go ahead|carry on|proceed|keep going|resume|finish(?: it)?"
    r"|yes|yep|ok(?:ay)?|sure|do it)(?:\s+please)?",
    re.IGNORECASE,
)
_AGAIN = re.compile(
    r"(?:please\s+)?(?:(?:(?:try|do|run)\s+(?:it\s+|that\s+)?)?again|retry|once more|repeat)",
    re.IGNORECASE,
)
_ALSO = re.compile(r"(?:and\s+)?(?:also|then|after that|afterwards|and)[,:]?\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a call. `known` is False where the view no longer holds what it said."""

    text: str
    is_error: bool = False
    known: bool = True

    @property
    def interrupted(self) -> bool:
        return self.is_error and self.text.strip() == INTERRUPTED

    @property
    def refusal(self) -> str | None:
        """Why the call was not allowed ("" for no reason); None if that is not what happened."""
        if not self.is_error or not _REFUSED.match(self.text):
            return None
        reason = _REASON.search(self.text)
        return reason[1].strip() if reason else ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A call and its result."""

    name: str
    input: dict[str, Any]
    outcome: Outcome


@dataclass(slots=True)
class Turn:
    """What was typed, and the exchanges since.

    `images` are the content blocks that came with it.
    `open`: the last answer made calls, so more was to come. `told`: that answer came after all
    results, so what there was to say of them has been said.
    """

    text: str
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    images: list[Block] = field(default_factory=list[Block])
    answered: bool = False
    open: bool = False
    told: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The work in hand. `before` are the exchanges of earlier turns that count for it, `now`
    those of this one; `told` is of that earlier turn. `text` is what was typed."""

    text: str
    steps: tuple[Step, ...] = ()
    before: tuple[Exchange, ...] = ()
    now: tuple[Exchange, ...] = ()
    continued: bool = False
    told: bool = False


def turns(messages: Iterable[Message]) -> list[Turn]:
    """The turns of a conversation. Texts typed one after the other without an answer are one."""
    found: list[Turn] = []
    pending: dict[str, Block] = {}
    for message in messages:
        content = message["content"]
        if message["role"] == "assistant":
            pending = {str(b.get("id")): b for b in content if b.get("type") == "tool_use"}
            if found:
                found[-1].answered = found[-1].told = True
                found[-1].open = bool(pending)
            continue
        results = [block for block in content if block.get("type") == "tool_result"]
        if found:
            came = list(_exchanges(results, pending))
            found[-1].exchanges.extend(came)
            if any(not exchange.outcome.interrupted for exchange in came):
                found[-1].told = False
        texts = list(_typed(content))
        shown = [block for block in content if block.get("type") == "image"]
        if not texts and not shown:
            continue
        if found and not found[-1].answered and not results:
            before = found.pop()
            texts = list(dict.fromkeys([before.text, *texts]))
            shown = [*before.images, *(block for block in shown if block not in before.images)]
        found.append(Turn("\n".join(texts), images=shown))
    return found


def plan_of(turns: list[Turn]) -> Plan:
    """The work that the last turn is about."""
    if not turns:
        return Plan("")
    turn, earlier = turns[-1], turns[:-1]
    now = tuple(turn.exchanges)
    words = _words(turn)
    if _AGAIN.fullmatch(words):
        return Plan(turn.text, plan_of(earlier).steps, now=now)
    more: tuple[Step, ...] = ()
    if not _CONTINUE.fullmatch(words):
        more = understand(turn.text)
        if not (earlier and earlier[-1].open and _ALSO.match(turn.text.lstrip())):
            return Plan(turn.text, more, now=now)
    earlier = _unfinished(earlier)
    base = plan_of(earlier)
    done = tuple(e for e in (*base.before, *base.now) if not e.outcome.interrupted)
    told = bool(earlier) and earlier[-1].told
    return Plan(turn.text, (*base.steps, *more), done, now, continued=True, told=told)


def _words(turn: Turn) -> str:
    return turn.text.strip(" .!?,\n")


def _unfinished(turns: list[Turn]) -> list[Turn]:
    """The turns up to the one that "continue" is about: the newest that was left unfinished."""
    for index in range(len(turns) - 1, -1, -1):
        turn = turns[index]
        if turn.open or any(e.outcome.refusal is not None for e in turn.exchanges):
            return turns[: index + 1]
        if _CONTINUE.fullmatch(_words(turn)):
            break
    return turns


def last_todos(messages: Iterable[Message]) -> list[dict[str, str]]:
    """The task list as it was last written."""
    found: list[dict[str, str]] = []
    for message in messages:
        for block in message["content"]:
            if block.get("type") == "tool_use" and block.get("name") == "todo_write":
                todos = cast("dict[str, Any]", block.get("input") or {}).get("todos")
                if isinstance(todos, list):
                    found = [
                        cast("dict[str, str]", t)
                        for t in cast("list[Any]", todos)
                        if isinstance(t, dict)
                    ]
    return found


def _typed(content: Iterable[Block]) -> Iterator[str]:
    """The texts of a user message that somebody typed: no summaries, documents, or outputs."""
    for block in content:
        if block.get("type") == "text":
            text = without_words(_OWN_COMMAND.sub("", str(block.get("text", ""))).strip())
            if text and not text.startswith(_NOT_TYPED):
                yield text


def _exchanges(results: Iterable[Block], calls: dict[str, Block]) -> Iterator[Exchange]:
    for result in results:
        call = calls.get(str(result.get("tool_use_id")))
        if call is None:
            continue
        text = text_of(cast("str | list[Block]", result.get("content") or ""))
        outcome = Outcome(text, bool(result.get("is_error")), known=_PRUNED.match(text) is None)
        arguments = call.get("input")
        yield Exchange(
            str(call.get("name")),
            cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {},
            outcome,
        )
