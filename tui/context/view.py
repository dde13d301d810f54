"""The view: what the model will be sent of a record, and how each part of it stands. Pure.

`records → history → repaired → checked`. Later steps (pruned, masked, summarised) stand between.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tui.context.check import check
from tui.context.history import SPEAKING, History, history
from tui.context.repair import CONTINUE, repair
from tui.messages import Message, text_block
from tui.session.records import Finding, Record

State: TypeAlias = Literal["full", "cut", "pruned", "masked", "summarised", "repaired"]

_PLACE = re.compile(r"messages\.(\d+)(?:\.content\.(\d+))?")


@dataclass(frozen=True, slots=True)
class View:
    """Messages that the API takes. They belong to whoever asked; their blocks are the record's.

    `findings` is what was wrong with the record; `states` how each record that speaks stands in
    the request, by id; `thinking` the switch that fits the messages (B20).
    """

    messages: list[Message]
    findings: tuple[Finding, ...]
    states: dict[str, State]
    thinking: dict[str, Any] | None = None


def build(
    records: Sequence[Record],
    *,
    model: str,
    thinking: Mapping[str, Any] | None = None,
    prompt_follows: bool = False,
) -> View:
    """The view of a branch for a request to `model`.

    It ends with the user: where the last word is the model's, "(continue)" follows (B15), unless
    a prompt does. That is part of asking, not damage, so it is no finding.
    """
    told = history(records, model=model)
    messages, findings = repair(told.messages, thinking=thinking, tail="open")
    states = _states(records, told, findings)
    if messages and messages[-1]["role"] == "assistant" and not prompt_follows:
        messages = [*messages, {"role": "user", "content": [text_block(CONTINUE)]}]
    return View(messages, findings, states, fitting_thinking(messages, thinking))


def fitting_thinking(
    messages: Sequence[Message], thinking: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """The thinking switch for one request: off where the last answer lacks its thinking (B20)."""
    if thinking is None or thinking.get("type") != "enabled":
        return dict(thinking) if thinking is not None else None
    found = check(messages, thinking=thinking, tail="open")
    return None if any(problem.code == "B20" for problem in found) else dict(thinking)


def _states(
    records: Iterable[Record], told: History, findings: Iterable[Finding]
) -> dict[str, State]:
    states: dict[str, State] = {
        record.id: "cut" if record.data.get("receipt") else "full"
        for record in records
        if record.type in SPEAKING
    }
    for finding in findings:
        if place := _PLACE.match(finding.where):
            sources = told.sources[int(place[1])]
            hit = sources if place[2] is None else sources[int(place[2]) : int(place[2]) + 1]
            states.update(dict.fromkeys(hit, "repaired"))
    return states
