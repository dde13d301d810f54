"""The conversation of one who comes in the middle of a turn: the record, what is told then, and the
rest of the facts show what the session's own screen shows."""

from __future__ import annotations

import asyncio
import inspect
import json
import random
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.app.door.owned import owned
from tests.support.clock import FakeClock, ManualClock
from tests.support.provider import ScriptedProvider
from tui.app.door.door import KnownFacts, WatchStart
from tui.app.door.lines import FactLine, RecordEnd
from tui.app.door.live_state import ANSWER_CHARS, OUTPUT_CHARS, LiveState, joined
from tui.core import facts
from tui.core.facts import Fact, TextDelta, ThinkingDelta, ToolInputDelta
from tui.core.facts.lines import fact_of
from tui.core.messages import Usage, text_block
from tui.core.questions import PlanReview, UserAnswers, UserQuestion
from tui.permissions.types import Answer, Call, Decision
from tui.provider.base import AttemptStarted, Completed, Request, StreamPart
from tui.session.records import Record
from tui.ui.fact_renderer import FactRenderer
from tui.ui.widgets.bars import HeaderState, StatusState
from tui.ui.widgets.conversation.items import AssistantItem, Item, ThinkingItem, ToolItem
from tui.ui.widgets.record_items import RestoredItems, restored

# A screen that is not drawn


class Nothing:
    """A part of the screen that takes whatever it is told."""

    def __init__(self) -> None:
        self.todos: tuple[dict[str, str], ...] = ()
        self.texts: tuple[str, ...] = ()
        self.in_sight = False

    def __getattr__(self, name: str) -> Any:
        def tell(*_: object, **__: object) -> str:
            return "12:00"

        return tell


class Items:
    def __init__(self) -> None:
        self.items: list[Item] = []

    @property
    def newest(self) -> Item | None:
        return self.items[-1] if self.items else None

    def stream(self, item: AssistantItem | ThinkingItem, text: str) -> None:
        item.text += text

    def finish(self, item: AssistantItem | ThinkingItem) -> None:
        item.streaming = False

    def take_out(self, item: Item) -> None:
        self.items = [one for one in self.items if one is not item]

    def changed(self, item: Item) -> None:
        pass


class Screen(Nothing):
    def __init__(self) -> None:
        super().__init__()
        self.conversation, self.clock = Items(), FakeClock()
        self.retry = self.side = self.output = self.queued = self.activity = Nothing()
        self.todos: Any = Nothing()
        self.header = SimpleNamespace(state=HeaderState())
        self.status = SimpleNamespace(state=StatusState())
        self.phase = ""

    def add(self, item: Item, **_: Any) -> None:
        self.conversation.items.append(item)

    def fill(self, items: Sequence[Item], *, again: bool = False) -> None:
        self.conversation.items = list(items)

    def work(self, phase: str, **_: Any) -> None:
        self.phase = phase

    def idle(self) -> None:
        self.phase = ""

    @property
    def shown(self) -> list[tuple[Any, ...]]:
        """All that a person reads in the conversation. A record may say more of a call than was
        shown: its label before it runs, how far it came when it was stopped; and that it was
        stopped, a moment earlier and in other words."""
        return [
            (type(one).__name__, *_card(one))
            if isinstance(one, ToolItem)
            else (type(one).__name__, getattr(one, "text", "").strip())
            for one in self.conversation.items
            if not getattr(one, "text", "").startswith("Stopped")
        ]


def _card(one: ToolItem) -> tuple[str, ...]:
    label = "" if one.state == "written" else one.label
    summary = "" if one.state == "interrupted" else one.summary
    return one.id, one.state, label, summary, one.level, one.diff


def drawn(told: Sequence[Fact], records: Sequence[Record] | None = None) -> Screen:
    """The screen once these facts were shown, after what is in the record."""
    screen = Screen()
    renderer = FactRenderer(cast("Any", screen))
    renderer.resume(restored(records) if records else RestoredItems())
    for fact in told:
        renderer.show(fact)
    return screen


# Turns at random


class Wandering(ScriptedProvider):
    """A model that thinks, writes, calls tools and fails at random, in small pieces."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = random.Random(seed)
        self.left = self.random.randint(1, 3)

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        some = self.random
        self.left -= 1
        content: list[dict[str, Any]] = []
        if some.random() < 0.5:
            content.append({"type": "thinking", "thinking": "Let me see.", "signature": "s"})
        content.append(text_block(f"Answer {self.left}, with words."))
        for number in range(some.randint(1, 3) if self.left > 0 else 0):
            id_ = f"toolu_{self.left}_{number}"
            name, input_ = some.choice(
                [
                    ("read_file", {"path": "a.txt"}),
                    ("read_file", {"path": "missing.txt"}),
                    ("write_file", {"path": f"{id_}.txt", "content": "x\n"}),
                    ("run_command", {"command": "echo one; echo two"}),
                    ("todo_write", {"todos": [{"text": "look", "status": "in_progress"}]}),
                ]
            )
            content.append({"type": "tool_use", "id": id_, "name": name, "input": input_})
        yield AttemptStarted(1, request.model)
        if some.random() < 0.3:
            yield TextDelta("This will be ")
            await asyncio.sleep(0)
            reason = f"overloaded {self.left}"
            yield facts.RetryScheduled(1, 3, 0.1, reason, 529, "overloaded", "req", 13)
            for _ in range(3):
                await asyncio.sleep(0)
            yield AttemptStarted(2, request.model)
        for block in content:
            match block["type"]:
                case "text" | "thinking":
                    kind = TextDelta if block["type"] == "text" else ThinkingDelta
                    for word in block[block["type"]].split(" "):
                        yield kind(f"{word} ")
                        await asyncio.sleep(0)
                case _:
                    yield ToolInputDelta(block["id"], block["name"], "")
                    await asyncio.sleep(0)
                    written = json.dumps(block["input"])
                    yield ToolInputDelta(block["id"], block["name"], written)
        calls = any(block["type"] == "tool_use" for block in content)
        end = "tool_use" if calls else "end_turn"
        yield Completed(content, request.model, end, Usage(output_tokens=10), "req_test")


class Sometimes:
    """A person who takes a moment, and says yes or no."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    async def ask(self, call: Call, decision: Decision) -> Answer:
        for _ in range(4):
            await asyncio.sleep(0)
        if self.random.random() < 0.3:
            return Answer("no", "not that")
        return Answer("once")

    async def ask_user(self, questions: Sequence[UserQuestion], agent: str) -> UserAnswers:
        return UserAnswers()

    async def review_plan(self, title: str, plan: str) -> PlanReview:
        return PlanReview("none", plan)


@pytest.mark.parametrize("seed", range(24))
async def test_who_comes_late_sees_the_same_conversation(tmp_path: Path, seed: int) -> None:
    starts: list[tuple[WatchStart, int]] = []
    shown: list[Fact] = []
    provider = Wandering(seed)
    async with owned(tmp_path, provider=provider, approver=Sometimes(seed)) as session:
        conversation = session.conversation
        (conversation.services.workspace / "a.txt").write_text("text\n")
        conversation.watch(shown.append)
        stops = provider.random.randint(10, 60) if seed % 4 == 3 else 0
        assert conversation.submit("go on") == "sent"
        while conversation.busy:
            start = conversation.door.start()
            assert inspect.iscoroutine(start.saved)
            start.saved.close()
            starts.append((start, len(shown)))
            if len(starts) == stops:
                conversation.cancel()
            await asyncio.sleep(0)
        records = list(session.agent.session.records)
    assert isinstance(shown[-1], facts.TurnFinished)
    assert len(starts) > 5
    whole = drawn(shown)
    for start, at in unlike(starts, shown):
        first, *others = start.messages
        assert isinstance(first, RecordEnd)
        had = next((n + 1 for n, each in enumerate(records) if each.id == first.last), 0)
        told = [fact_of(one.fact) for one in others if isinstance(one, FactLine)]
        now = cast("list[Fact]", told)
        stopped = any(one.type == "interrupt" for one in records[:had])
        if not start.known and at and not stopped:
            here, there = drawn(now, records[:had]), drawn(shown[:at])
            assert here.shown == there.shown, (seed, at)
            assert here.phase == (there.phase if there.phase != "working" else here.phase)
            assert here.todos.todos == there.todos.todos
        known = KnownFacts(start.known)
        after = [fact for fact in shown[at:] if not known.has(fact)]
        late, own = drawn([*now, *after], records[:had]).shown, whole.shown
        if stopped:
            late, own = map(without_begun, (late, own))
        assert late == own, (seed, at)


def without_begun(items: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Items without those of which the record of a stop has nothing: thinking, a call that was
    being written."""
    return [one for one in items if one[0] != "ThinkingItem" and one[2:3] != ("interrupted",)]


def unlike(
    starts: Sequence[tuple[WatchStart, int]], shown: Sequence[Fact]
) -> list[tuple[WatchStart, int]]:
    """Those starts that differ from each other."""
    seen: set[tuple[int, str, int]] = set()
    others: list[tuple[WatchStart, int]] = []
    for start, at in starts:
        key = at, str(start.messages[0]), len(start.known)
        if key not in seen:
            seen.add(key)
            others.append((start, at))
    assert others[-1][1] <= len(shown)
    return others


# Bounds and words


def state_of(*told: Fact, clock: FakeClock | None = None) -> LiveState:
    state = LiveState(clock or FakeClock())
    for fact in told:
        state.see(fact)
    return state


def test_a_flood_of_output_keeps_its_end() -> None:
    state = state_of(facts.ToolStarted("1", "run_command", {"command": "yes"}, "yes"))
    for number in range(5000):
        state.see(facts.ToolOutputChunk("1", f"{number:>1000}", "picture"))
    _, chunk = state.facts()
    assert isinstance(chunk, facts.ToolOutputChunk)
    assert len(chunk.text) <= OUTPUT_CHARS
    assert chunk.text.endswith(" 4999")
    assert chunk.picture == "picture"
    state.see(facts.ToolOutputChunk("1", "x" * 10 * OUTPUT_CHARS))
    assert len(str(state.facts()[1])) < 2 * OUTPUT_CHARS


def test_a_long_answer_is_one_delta_of_each_kind_in_order() -> None:
    state = state_of(facts.RequestSent(1, 1, "m", 1))
    for kind in (ThinkingDelta, TextDelta, ThinkingDelta):
        for _ in range(1000):
            state.see(kind("ab "))
    sent, *deltas = state.facts()
    assert isinstance(sent, facts.RequestSent)
    assert [type(one) for one in deltas] == [ThinkingDelta, TextDelta, ThinkingDelta]
    assert all(getattr(one, "text", "") == "ab " * 1000 for one in deltas)
    for _ in range(30):
        state.see(TextDelta("x" * (ANSWER_CHARS // 10)))
    assert sum(len(getattr(one, "text", "")) for one in state.facts()) <= ANSWER_CHARS


def test_nothing_grows_with_what_is_over() -> None:
    state = state_of(facts.SessionStarted("s", None, "m", "/w", False))
    sizes: list[int] = []
    for number in range(200):
        for fact in (
            facts.UserMessage(f"prompt {number}"),
            facts.RequestSent(1, 1, "m", 1),
            TextDelta("words " * 100),
            facts.AssistantMessage("words", "tool_use", Usage()),
            facts.ToolStarted(f"c{number}", "read_file", {}, "a"),
            facts.ToolFinished(f"c{number}", "read_file", False, 1.0, None),
            facts.Notice("said"),
            facts.TurnFinished("done"),
        ):
            state.see(fact)
        sizes.append(len(state.facts()))
    assert max(sizes) == sizes[0] == 2  # the session's begin, and what was said in this turn


def test_seconds_of_a_running_call_are_those_by_now() -> None:
    clock = ManualClock()
    state = state_of(facts.ToolStarted("1", "run_command", {}, "make"), clock=clock)
    clock.advance(90)
    (started,) = state.facts()
    assert isinstance(started, facts.ToolStarted)
    assert started.seconds == 90


@pytest.mark.parametrize(
    ("told", "detail"),
    [
        ([facts.UserMessage("hi")], "working"),
        ([facts.RequestSent(1, 1, "m-1", 1)], "waiting for m-1"),
        ([facts.RequestSent(1, 1, "m", 1), ThinkingDelta("a")], "thinking"),
        ([facts.RequestSent(1, 1, "m", 1), TextDelta("a")], "answering"),
        ([ToolInputDelta("1", "write_file", "")], "writing: Write"),
        ([facts.ToolStarted("1", "run_command", {}, "pytest")], "Run pytest"),
        (
            [facts.ToolStarted(n, "run_command", {}, f"make {n}") for n in "12"],
            "Run make 1 and 1 more",
        ),
        ([facts.RetryScheduled(2, 5, 1.0, "", 529, "overloaded")], "overloaded, retry 2 of 5"),
        ([facts.CompactionStarted("manual")], "compacting"),
        ([facts.UserMessage("hi"), facts.TurnFinished("done")], ""),
    ],
)
def test_what_is_done_in_words(told: list[Fact], detail: str) -> None:
    assert state_of(*told).detail == detail


def test_a_parked_turn_says_until_when() -> None:
    state = state_of(facts.UserMessage("hi"), facts.Parked("2026-11-21T10:00:00+00:00", "limit"))
    assert state.parked
    assert "until" in state.detail
    assert isinstance(state.facts()[-1], facts.Parked)
    state.see(facts.RequestSent(1, 1, "m", 1))
    assert not state.parked


def test_facts_are_joined_where_nothing_comes_between() -> None:
    parts = [TextDelta("a"), TextDelta("b"), facts.Alive(), TextDelta("c")]
    assert list(joined(parts)) == [TextDelta("ab"), facts.Alive(), TextDelta("c")]
    chunks = [facts.ToolOutputChunk(id_, "x", f"p{n}") for n, id_ in enumerate("aab")]
    assert list(joined(chunks)) == [facts.ToolOutputChunk("a", "xx", "p1"), chunks[2]]
