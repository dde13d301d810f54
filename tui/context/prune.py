"""Pruning: one line replaces an old tool result and says what was there. Pure.

The age of a result is the number of turns that began after it, or with `unit = "requests"` the
number of answers that came after it. All results of a session that are older than the rule allows
come before one boundary, so once they are pruned they stay so; only the age in the text of an error
grows with every turn.

With `when = "turns"` the pruning is done here. Otherwise the results are only reported as due, and
whoever decides records an overlay for them (see `tui.agent.request.pruning`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from tui.context.overrides import Stand, chars, pruned_text, shortened
from tui.core.config import Prune
from tui.core.dataclass import dataclass, field
from tui.core.messages import Block, Message, blocks_of, object_of


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about a result in the record. `exempt`: nothing automatic removes it."""

    record: str
    path: str = ""
    exempt: bool = False


@dataclass(frozen=True, slots=True)
class Due:
    """A result that the rule would prune: its record, its age, and the index of its message."""

    record: str
    age: int
    message: int


@dataclass(frozen=True, slots=True)
class PrunedMessages:
    """`messages` as they are sent, `stands` by record for those pruned by age, `due` for those that
    wait for a decision."""

    messages: list[Message]
    stands: dict[str, Stand]
    due: tuple[Due, ...] = ()


def rule_to_json(rule: Prune) -> dict[str, Any] | None:
    """Encode the parts of a rule that shape the messages; None if it prunes nothing by itself."""
    if rule.when != "turns":
        return None
    return {
        "after_turns": rule.after_turns,
        "min_chars": rule.min_chars,
        "unit": rule.unit,
    }


def rule_of_json(value: object) -> Prune | None:
    """Decode the rule that `rule_to_json` wrote. Raises ValidationError for anything else."""
    return None if value is None else msgspec.convert({**object_of(value), "when": "turns"}, Prune)


def starts_turn(message: Message) -> bool:
    """True if a turn starts here, with a user message without a result."""
    return message["role"] == "user" and not any(
        block.get("type") == "tool_result" for block in blocks_of(message["content"])
    )


def prune(
    messages: Sequence[Message],
    rule: Prune,
    known: Callable[[str], Facts | None] = lambda _id: None,
    *,
    prompt_follows: bool = False,
) -> PrunedMessages:
    """Prune a complete list of messages; see `Pruner.prune`."""
    return Pruner(rule).prune([], messages, known, prompt_follows=prompt_follows)


@dataclass(slots=True)
class Pruner:
    """Prunes one growing list of messages. Messages that were pruned are not examined again."""

    rule: Prune
    _counted: int = 0  # number of settled messages that were searched for marks
    _marks: list[int] = field(default_factory=list[int])
    _done: list[Message] = field(default_factory=list[Message])
    _stands: dict[str, Stand] = field(default_factory=dict[str, Stand])
    _due: list[Due] = field(default_factory=list[Due])
    _errors: list[int] = field(default_factory=list[int])
    _age: int = 0  # number of marks when the errors were worded

    def restart(self) -> None:
        """Forget everything, because the next list is another one."""
        fresh = Pruner(self.rule)
        for name in Pruner.__slots__:
            setattr(self, name, getattr(fresh, name))

    def prune(
        self,
        settled: Sequence[Message],
        recent: Sequence[Message],
        known: Callable[[str], Facts | None],
        *,
        prompt_follows: bool = False,
    ) -> PrunedMessages:
        """Return the messages `settled + recent`, pruned. `settled` may only grow between two
        calls.

        `known` returns the facts about a result by the id of its call; a result that it does not
        know is pruned, too. `prompt_follows`: a prompt will follow that begins a turn.
        """
        while self._counted < len(settled):
            if self._is_mark(settled[self._counted]):
                self._marks.append(self._counted)
            self._counted += 1
        recent_marks = (
            n for n, message in enumerate(recent, len(settled)) if self._is_mark(message)
        )
        marks = [*self._marks, *recent_marks]
        # Settled messages are pruned before the coming prompt is counted: it is not certain yet.
        now = self._boundary(marks)
        messages = [*settled, *recent]
        if prompt_follows and _answered(messages) and self.rule.unit == "turns":
            marks.append(len(messages))
        self._advance(settled, min(now, len(settled)), marks, known)
        messages[: len(self._done)] = self._done
        stands, due = dict(self._stands), list(self._due)
        for index in range(len(self._done), self._boundary(marks)):
            messages[index] = self._one(
                messages[index], index, _age(marks, index), known, (stands, due)
            )
        aged = tuple(Due(d.record, _age(marks, d.message), d.message) for d in due)
        return PrunedMessages(messages, stands, aged)

    def _is_mark(self, message: Message) -> bool:
        if self.rule.unit == "requests":
            return message["role"] == "assistant"
        return starts_turn(message)

    def _boundary(self, marks: Sequence[int]) -> int:
        """Return the index of the first message whose results are too young to be pruned."""
        place = len(marks) - self.rule.after_turns - 1
        return marks[place] if place >= 0 else 0

    def _advance(
        self,
        settled: Sequence[Message],
        end: int,
        marks: Sequence[int],
        known: Callable[[str], Facts | None],
    ) -> None:
        collected = (self._stands, self._due)
        for index in range(len(self._done), end):
            self._done.append(
                self._one(settled[index], index, _age(marks, index), known, collected)
            )
            if self._done[-1] is not settled[index] and _has_error(settled[index]):
                self._errors.append(index)
        # The text of a pruned error has its age, so it is worded again in every turn.
        if len(marks) != self._age:
            self._age = len(marks)
            for index in self._errors:
                age = _age(marks, index)
                self._done[index] = self._one(settled[index], index, age, known, collected)

    def _one(
        self,
        message: Message,
        index: int,
        age: int,
        known: Callable[[str], Facts | None],
        into: tuple[dict[str, Stand], list[Due]],
    ) -> Message:
        """Prune the long results of a message; the same object if it has none."""
        stands, due = into
        if message["role"] != "user":
            return message
        blocks: list[Block] | None = None
        for place, block in enumerate(message["content"]):
            facts = self._prunable(block, known)
            if facts is None:
                continue
            # Another part of the program decides: only report the result as due.
            if self.rule.when != "turns":
                if facts.record:
                    due.append(Due(facts.record, age, index))
                continue
            inside = blocks_of(block.get("content"))
            text = pruned_text(
                chars(inside), age, is_error=block.get("is_error") is True, path=facts.path
            )
            short = shortened(inside, text)
            blocks = list(message["content"]) if blocks is None else blocks
            as_text = isinstance(block.get("content"), str)
            blocks[place] = {**block, "content": text if as_text else short}
            if facts.record:
                stands[facts.record] = Stand("pruned", short)
        return message if blocks is None else {"role": "user", "content": blocks}

    def _prunable(self, block: Block, known: Callable[[str], Facts | None]) -> Facts | None:
        """Return the facts about a result that is long enough to be pruned, and may be; else
        None."""
        if block.get("type") != "tool_result":
            return None
        content: Any = block.get("content")
        size = len(content) if isinstance(content, str) else chars(blocks_of(content))
        if size <= self.rule.min_chars:
            return None
        facts = known(str(block.get("tool_use_id"))) or Facts("")
        return None if facts.exempt else facts


def _age(marks: Sequence[int], index: int) -> int:
    return len(marks) - bisect_right(marks, index)


def _answered(messages: Sequence[Message]) -> bool:
    return not messages or messages[-1]["role"] == "assistant"


def _has_error(message: Message) -> bool:
    return any(block.get("is_error") is True for block in message["content"])
