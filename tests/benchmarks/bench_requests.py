"""What a request costs beside the last one, in a short session and in one ten times as long.

Lifting the notices and comparing take what is new, not what is there: their times may hardly
differ. A request of a session of 5,000 messages is made again from its file in half a second. All
times are those of the processor: what else runs on the machine does not count. The whole step is
that of an agent's turns: what changed is recorded, the view is built, and the request is assembled,
checked and compared.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from tests.support.agents import events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.turn import TurnRunner
from tui.context import request_assembly
from tui.context.frame import Frame, sealed
from tui.context.history import Rendering
from tui.context.level_view import LevelViewer
from tui.context.notices import Form, NoticeLifter
from tui.context.request_replay import RequestReplay
from tui.context.request_trail import RequestTrail
from tui.core.clock import SystemClock
from tui.core.messages import text_block
from tui.provider import catalogue
from tui.provider.base import Request
from tui.session.reader import read
from tui.session.records import Header, Record
from tui.session.session import Session

MODEL = catalogue.model_info("claude-sonnet-5-5")
SHORT, LONG = 500, 5000
ROUNDS = 60
GOAL_S, REBUILD_S, STEP_S = 0.001, 0.5, 0.003
FLAT = 2.5
"""For ten times the messages, of which lists are copied: 1.9 to 2.1 is usual."""
WINDOW = 50_000_000
"""Tokens: nothing is compacted in the longest session."""
FORM = Form(system_messages=True, tool_additions=True)


class Conversation:
    """A growing session, and its requests: a prompt, a call and an answer a turn, some notices."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.viewer = LevelViewer(rendering=Rendering("s", FORM, True))
        self.trail = RequestTrail()
        self.lifter = NoticeLifter()
        self.marks: list[request_assembly.Mark] = []
        self.frame = Frame((("prompt", "You are a test. " * 500),), [])
        self.add("frame", **sealed(self.frame.to_json(), b"k"))

    def add(self, type_: str, **data: Any) -> None:
        last = self.records[-1].id if self.records else None
        id_ = f"{len(self.records):020x}"
        self.records.append(Record(type_, id_, last, "2026-11-21T09:00:00.000Z", data))

    def say(self, type_: str, *blocks: dict[str, Any], **data: Any) -> None:
        self.add(type_, content=[*blocks], **data)

    def request(self) -> tuple[Request, float]:
        """The next request, recorded, and how long lifting and comparing took."""
        seen = self.viewer.build(self.records, model=MODEL.id).messages
        began = time.thread_time()
        messages = self.lifter.lifted(seen)
        took = time.thread_time() - began
        end = request_assembly.end_of_turn(messages)
        wanted = [*self.marks[:1], *([end] if end else []), *self.marks[1:]]
        made, self.marks = request_assembly.build(
            model=MODEL,
            system=self.frame.system,
            messages=messages,
            tools=[],
            prompt_tokens=1000,
            marks=wanted,
        )
        began = time.thread_time()
        found, candidate = self.trail.compare(made, None, self.records)
        self.trail.keep(candidate)
        took += time.thread_time() - began
        self.add(
            "request",
            model=MODEL.id,
            server="s",
            **found.sent.to_json(),
            max_tokens=made.max_tokens,
            marks=[list(mark) for mark in self.marks],
            form=[FORM.system_messages, FORM.tool_additions, FORM.turn_effort],
            shared_thinking=True,
        )
        return made, took

    def turn(self, number: int, *, ask: bool = False) -> list[float]:
        """Four messages; the times of its two requests where they are asked for."""
        self.say("user", text_block(f"prompt {number} " * 20))
        if number % 10 == 0:
            fact = {"kind": "state", "text": f"- Date: {number}", "facts": {"Date": str(number)}}
            self.add("notice", **sealed(fact, b"k"))
        times = [self.request()[1]] if ask else []
        call = {"type": "tool_use", "id": f"c{number}", "name": "read_file", "input": {"path": "a"}}
        thought = {"type": "thinking", "thinking": "hm " * 50, "signature": f"s{number}"}
        about = {"model": MODEL.id, "server": "s"}
        self.say("assistant", thought, call, **about)
        self.say("tool_result", text_block("line\n" * 300), call_id=f"c{number}")
        times += [self.request()[1]] if ask else []
        self.say("assistant", text_block("answer " * 40), **about)
        return times


def run() -> list[tuple[str, float, float]]:
    """Rows of (what, ratio measured, ratio allowed)."""
    short, long = _per_request(SHORT), _per_request(LONG)
    rebuilt = _rebuild(LONG)
    short_step, long_step = (asyncio.run(_whole_step(size)) for size in (SHORT, LONG))
    print(
        f"      the whole step: {short_step * 1e3:.2f} ms at {SHORT} messages, "
        f"{long_step * 1e3:.2f} ms at {LONG:,}"
    )
    print(
        f"      lift and compare: {short * 1e6:.0f} µs at {SHORT} messages, {long * 1e6:.0f} µs at "
        f"{LONG:,}; a request of {LONG:,} messages from its file: {rebuilt:.2f} s"
    )
    return [
        (f"compare a request: {LONG:,} messages / {SHORT}", long / short, 2.0),
        (f"compare a request at {LONG:,} messages / 1 ms", long / GOAL_S, 1.0),
        (f"make a request: {LONG:,} messages / {SHORT}", long_step / short_step, FLAT),
        (f"make a request at {LONG:,} messages / 3 ms", long_step / STEP_S, 1.0),
        (f"a request of {LONG:,} messages from its file / 0.5 s", rebuilt / REBUILD_S, 1.0),
    ]


def _per_request(messages: int) -> float:
    talk, turns = Conversation(), messages // 4
    for number in range(turns):
        talk.turn(number)
    talk.turn(turns, ask=True)
    gc.disable()
    try:
        times = [t for n in range(ROUNDS) for t in talk.turn(turns + 1 + n, ask=True)]
    finally:
        gc.enable()
    return median(times)


async def _whole_step(messages: int) -> float:
    """The median time of what a turn does until its next request can be sent."""
    times: list[float] = []
    make = TurnRunner._next_request  # pyright: ignore[reportPrivateUsage] - what is measured

    async def timed(runner: TurnRunner) -> Request:
        began = time.thread_time()
        made = await make(runner)
        times.append(time.thread_time() - began)
        return made

    calls = [call("read_file", f"n{number}", path="a.txt") for number in range(ROUNDS)]
    provider = ScriptedProvider(*(answer for one in calls for answer in ([one], say("done"))))
    provider.window = WINDOW
    with TemporaryDirectory() as folder, patch.object(TurnRunner, "_next_request", timed):
        root = Path(folder)
        (root / "a.txt").write_text("line\n" * 300)
        session = Session.in_memory(root, clock=SystemClock())
        for record in _said(messages):
            session.append(record.type, **record.data)
        model = replace(MODEL, window=WINDOW)
        api: dict[str, Any] = {"server": "s", "first_party": True}
        agent = make_agent(root, provider, session=session, model=model, **api)
        await events_of(agent, "what comes once comes before")
        times.clear()
        gc.disable()
        try:
            for _ in range(ROUNDS - 1):
                await events_of(agent, "go on")
        finally:
            gc.enable()
        await agent.close()
    return median(times)


def _said(messages: int) -> list[Record]:
    """A conversation of so many messages, without what its requests recorded."""
    talk = Conversation()
    for number in range(messages // 4):
        talk.turn(number)
    return [one for one in talk.records if one.type in {"user", "assistant", "tool_result"}]


def _rebuild(messages: int) -> float:
    talk = Conversation()
    for number in range(messages // 4):
        talk.turn(number, ask=number % 50 == 49)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "long.jsonl"
        path.write_bytes(_lines(talk.records))
        times: list[float] = []
        for _ in range(3):
            began = time.thread_time()
            replay = RequestReplay(read(path).records)
            last = replay.at(max(replay.requests))
            times.append(time.thread_time() - began)
            assert not last.problem, last.problem
    return min(times)


def _lines(records: Sequence[Record]) -> bytes:
    head = Header("feedfeedfeed", "2026-11-21T09:00:00.000Z", "/w", "holdfast 1").to_line()
    return b"".join([head, *(record.to_line() for record in records)])
