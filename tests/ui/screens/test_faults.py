"""The matrix on the full screen: every fault, wherever it strikes, through the real app and agent.

No second is slept. `tests.support.faults` has the cells and what must be true of the record.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import Yes, make_agent
from tests.support.faults import PROMPT, Cell, WithSummaries, cases, check_cell, earlier, script_of
from tests.support.world import World
from tests.ui.screens.driving import items, say, until
from tui.agent.agent import Agent
from tui.agent.prompts import ParsedPrompt
from tui.app.services import Opening, SessionChoice
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.config import Retry
from tui.core.facts import Fact
from tui.core.messages import blocks_of, text_of, tool_calls
from tui.core.paths import folders
from tui.permissions.types import Approver
from tui.provider.practice.provider import PracticeModel
from tui.provider.retry import RetryControl, RetryProvider
from tui.session.session import Session
from tui.ui.app import HoldfastApp
from tui.ui.screens.recovery import RecoveryScreen
from tui.ui.widgets.conversation.items import AssistantItem, ToolItem, UserItem


class Played:
    """An app whose agent meets one cell's fault. `seen` is what the agent told of the turn."""

    def __init__(self, cell: Cell, root: Path) -> None:
        self.world = World(root)
        self.session = Session.create(root, folders=folders(), clock=SystemClock())
        self.seen: list[Fact] = []
        earlier(self.session)
        self._model = PracticeModel(self.world.clock, script=script_of(cell))
        services = replace(self.world.services(), make_agent=self._make_agent)
        self.app = HoldfastApp(lambda: Opening(services=services), clock=self.world.clock)

    async def _make_agent(self, _: SessionChoice, __: Approver) -> Agent:
        clock, control = self.world.clock, RetryControl()
        provider = RetryProvider(
            WithSummaries(self._model), retry=Retry(), clock=clock, control=control
        )
        root = self.world.workspace
        agent = make_agent(
            root, provider, session=self.session, approver=Yes(), clock=clock, control=control
        )
        send = agent.send

        async def told(prompt: ParsedPrompt) -> AsyncIterator[Fact]:
            async for event in send(prompt):
                self.seen.append(event)
                yield event

        agent.send = told  # pyright: ignore[reportAttributeAccessIssue] - listens, changes nothing
        return agent


def striking() -> list[Any]:
    """Every cell; each fault is met once in any run, at a place that goes round the faults."""
    cells = cases()
    places = list(dict.fromkeys(cell.place for cell in cells))
    faults = list(dict.fromkeys(cell.name for cell in cells))
    met = {(name, places[number % len(places)]) for number, name in enumerate(faults)}
    return [
        pytest.param(
            cell,
            id=str(cell),
            marks=() if (cell.name, cell.place) in met else pytest.mark.slow,
        )
        for cell in cells
    ]


@pytest.mark.parametrize("cell", striking())
async def test_R18_every_fault_ends_well_or_with_its_class_on_the_screen(
    cell: Cell, tmp_path: Path
) -> None:
    root = tmp_path / "work"
    root.mkdir()
    played = Played(cell, root)
    app = played.app
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: app.ready and app.conversation.agent is not None)
        before = len(app.chat.conversation.items)
        app.chat.prompt.put(PROMPT)
        await pilot.press("enter")
        await until(pilot, lambda: app.chat.status.state.turns == 7 and not app.conversation.busy)

        records = played.session.records[12:]
        answers = [blocks_of(r.data["content"]) for r in records if r.type == "assistant"]
        shown = app.chat.conversation.items[before:]
        assert [i.text for i in shown if isinstance(i, UserItem)] == [PROMPT]
        assert [i.text for i in shown if isinstance(i, AssistantItem)] == [
            text for text in map(text_of, answers) if text
        ]
        calls = [call["id"] for answer in answers for call in tool_calls(answer)]
        assert [i.id for i in shown if isinstance(i, ToolItem)] == calls
        assert not app.chat.retry.display
        assert not app.chat.busy
        assert app.chat.prompt.text == ""  # it stands in the record, and goes from there
        if cell.ends == "done":
            assert app.screen is app.chat
        else:
            await until(pilot, lambda: isinstance(app.screen, RecoveryScreen))
            assert isinstance(app.screen, RecoveryScreen)
            assert app.screen.trouble.ways
            await pilot.press("x")  # the fake clock stands still: what is typed is the prompt's
            assert app.chat.prompt.text == "x"
            for _ in range(2):  # with a draft in the prompt, the first press only marks the answer
                assert isinstance(app.screen, RecoveryScreen)
                played.world.clock.elapsed += 3
                await pilot.press("escape")
            await until(pilot, lambda: app.screen is app.chat)
            assert app.chat.prompt.text == "x"
    assert played.session.path is not None
    check_cell(cell, played.session.path, root, played.seen)


async def test_a_turn_that_failed_goes_on_from_where_it_stopped(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    cell = next(c for c in cases() if c.name == "auth" and c.place == "after a tool")
    played = Played(cell, root)
    app = played.app
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: app.ready and app.conversation.agent is not None)
        await say(pilot, "x")
        await until(pilot, lambda: isinstance(app.screen, RecoveryScreen))
        played.world.clock.elapsed += 1
        await pilot.press("2")  # try again
        await until(pilot, lambda: not app.conversation.busy and len(played.seen) > 0)
        await until(pilot, lambda: app.screen is app.chat and not app.conversation.busy)
        texts = [item.text for item in items(app, AssistantItem)]
        assert texts[-1] == "The note is written."
        assert (root / "ran.txt").read_text().splitlines() == ["ran"]
        assert [e.outcome for e in played.seen if isinstance(e, facts.TurnFinished)] == ["failed"]
