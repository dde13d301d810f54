"""The view: what the model will be sent of a record, and how each part of it stands. Pure.

    records → history, record by record, masked and cut ones by their stand-ins → repaired → steps

Overlays name records, so they are obeyed where records become messages; the repair comes behind
them and makes whatever they leave valid. An overlay makes the viewer start anew, since it may
concern any turn; other records do not.

A step behind the repair (pruning by age, a summary in the place of a prefix) is a pure function
from the messages to the messages it leaves and a `Stand` for every record that it changed, by
id. Its contract: it gets valid messages and hands back valid ones; those it does not change are
the same objects; it looks at every message in every build, so it does next to nothing for one;
a pinned record is not for it. It belongs into `Viewer.build`, after the settled and the recent
messages are joined and before the tail is settled; its stands join those of the overlays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tui.context.check import check
from tui.context.fixes.draft import place
from tui.context.history import History
from tui.context.overlay import (
    SPEAKING,
    Overlay,
    Stand,
    State,
    overlay_in,
    overlays_of,
    pins_of,
    stand,
)
from tui.context.repair import CONTINUE, repair
from tui.context.rules.media import MANY_IMAGES, media_in
from tui.context.rules.request import marks_in
from tui.guards.clamp import Room
from tui.messages import Message, text_block, tool_calls
from tui.session.records import Finding, Record

__all__ = ["Stand", "State", "View", "Viewer", "build", "fitting_thinking"]


@dataclass(frozen=True, slots=True)
class View:
    """Messages that the API takes: to be read, not changed, for their blocks are the record's.

    `findings` is what was wrong with the record; `states` how each record that speaks stands in
    the request, by id; `thinking` the switch that fits the messages (B20); `stands` what is sent
    of records that are not sent as recorded, by id; `pinned` what nothing automatic takes away.
    """

    messages: list[Message]
    findings: tuple[Finding, ...]
    states: dict[str, State]
    thinking: dict[str, Any] | None = None
    stands: dict[str, Stand] = field(default_factory=dict[str, Stand])
    pinned: frozenset[str] = frozenset()


def build(
    records: Sequence[Record],
    *,
    model: str,
    thinking: Mapping[str, Any] | None = None,
    prompt_follows: bool = False,
    room: Room | None = None,
) -> View:
    """The view of a branch for a request to `model`.

    It ends with the user: where the last word is the model's, "(continue)" follows (B15), unless
    a prompt does. That is part of asking, not damage, so it is no finding. `room` is what a
    result may take (O17); None for the limits as written.
    """
    viewer = Viewer(room)
    return viewer.build(records, model=model, thinking=thinking, prompt_follows=prompt_follows)


class Viewer:
    """Makes the views of one growing branch, each equal to what `build` would make.

    Turns that are over are looked at once: a view costs what came since. Given another branch or
    another model it starts anew.
    """

    def __init__(self, room: Room | None = None) -> None:
        """`room` is what a single result may take, as in `build`."""
        self._room = room
        self._start_anew("", {})

    def build(
        self,
        records: Sequence[Record],
        *,
        model: str,
        thinking: Mapping[str, Any] | None = None,
        prompt_follows: bool = False,
    ) -> View:
        """See `build`."""
        self._follow(records, model)
        told = self._told.messages
        recent, findings = repair(told[self._over :], thinking=thinking, tail="open")
        if self._fits(recent, findings, thinking):
            messages = [*self._settled, *recent]
            sound = not findings
            findings = (*self._findings, *_moved(findings, self._over))
            self._settle(sound=sound)
        else:
            messages, findings = repair(told, thinking=thinking, tail="open")
            messages = list(messages)
        if messages:  # what is told of last may grow: this view keeps what it is now
            last = messages[-1]
            messages[-1] = {"role": last["role"], "content": list(last["content"])}
            if last["role"] == "assistant" and not prompt_follows:
                messages.append({"role": "user", "content": [text_block(CONTINUE)]})
        repaired: dict[str, State] = dict.fromkeys(self._hit(findings), "repaired")
        stands = dict(self._stands)
        replaced: dict[str, State] = {id_: each.state for id_, each in stands.items()}
        states = self._states | repaired | replaced
        switch = fitting_thinking(messages, thinking)
        return View(messages, findings, states, switch, stands, self._pinned)

    def _start_anew(self, model: str, overlays: dict[str, Overlay]) -> None:
        self._told = History(model)
        self._overlays = overlays
        self._stands: dict[str, Stand] = {}
        self._pinned: frozenset[str] = frozenset()
        self._last: Record | None = None
        self._count = 0
        self._states: dict[str, State] = {}
        self._over = 0  # so many messages of the history belong to turns that are over
        self._settled: list[Message] = []  # what they are in a request
        self._findings: tuple[Finding, ...] = ()
        self._calls: set[str] = set()
        self._media = self._marks = 0

    def _follow(self, records: Sequence[Record], model: str) -> None:
        grown = len(records) >= self._count and (
            not self._count or records[self._count - 1] is self._last
        )
        fresh = records[self._count :] if grown else records
        if not grown or model != self._told.model or any(map(overlay_in, fresh)):
            self._start_anew(model, overlays_of(records))
        if any(record.type == "pin" for record in records[self._count :]):
            self._pinned = pins_of(records)
        for record in records[self._count :]:
            if record.type not in SPEAKING:
                continue
            stands = stand(record, self._overlays.get(record.id), self._room)
            if stands:
                self._stands[record.id] = stands
            self._told.add(record, stands)
            self._states[record.id] = "cut" if record.data.get("receipt") else "full"
        self._count = len(records)
        self._last = records[-1] if records else None

    def _fits(
        self,
        recent: Sequence[Message],
        findings: Iterable[Finding],
        thinking: Mapping[str, Any] | None,
    ) -> bool:
        """Whether what came since stands on its own: nothing in it concerns what is settled."""
        if not self._settled:
            return True
        media, marks = _crowd(recent)
        return (
            (thinking or {}).get("type") != "disabled"  # concerns the last answer, wherever
            and all(finding.code not in {"B02", "B39"} for finding in findings)
            and _calls(recent).isdisjoint(self._calls)
            and media + self._media <= MANY_IMAGES
            and marks + self._marks == 0
        )

    def _settle(self, *, sound: bool) -> None:
        """Put away the turns that are over: up to the last prompt behind a finished answer.

        `sound`: nothing of what came since had to be repaired.
        """
        told = self._told.messages
        end = len(told) - 1
        while end > self._over and not _begins_turn(told, end):
            end -= 1
        if end <= self._over:
            return
        done, findings = told[self._over : end], ()
        if not sound:
            done, findings = repair(done, tail="open")
        lost = any(finding.code == "B02" for finding in findings)  # its call may be yet to come
        ended = bool(done) and done[-1]["role"] == "assistant"
        if lost or not ended or not self._fits(done, findings, None):
            return
        media, marks = _crowd(done)
        self._settled.extend(done)
        self._findings += _moved(findings, self._over)
        self._calls |= _calls(done)
        self._media += media
        self._marks += marks
        self._over = end

    def _hit(self, findings: Iterable[Finding]) -> Iterable[str]:
        """The records that findings are about."""
        for finding in findings:
            message, block = place(finding.where)
            if message >= 0:
                sources = self._told.sources[message]
                yield from sources if block < 0 else [sources[block]]


def fitting_thinking(
    messages: Sequence[Message], thinking: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """The thinking switch for one request: off where the last answer lacks its thinking (B20)."""
    if thinking is None or thinking.get("type") != "enabled":
        return dict(thinking) if thinking is not None else None
    found = check(messages, thinking=thinking, tail="open")
    return None if any(problem.code == "B20" for problem in found) else dict(thinking)


def _begins_turn(told: Sequence[Message], index: int) -> bool:
    """Whether a prompt that can be sent stands here, behind an answer without calls."""
    before, here = told[index - 1], told[index]
    return (
        here["role"] == "user"
        and before["role"] == "assistant"
        and not tool_calls(before["content"])
        and not check([here], tail="open")
    )


def _calls(messages: Iterable[Message]) -> set[str]:
    return {str(call.get("id")) for m in messages for call in tool_calls(m["content"])}


def _crowd(messages: Iterable[Message]) -> tuple[int, int]:
    """How many images and documents, and how many cache marks."""
    media = marks = 0
    for message in messages:
        media += sum(1 for _ in media_in(message["content"], ""))
        marks += marks_in(message["content"])
    return media, marks


def _moved(findings: Iterable[Finding], by: int) -> tuple[Finding, ...]:
    """Findings about a part of the messages, as findings about all of them."""
    moved: list[Finding] = []
    for finding in findings:
        message, _ = place(finding.where)
        where = finding.where.replace(f"messages.{message}", f"messages.{message + by}", 1)
        moved.append(replace(finding, where=where))
    return tuple(moved)
