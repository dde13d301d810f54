"""The dialog of side questions: what it shows, what its keys do, what opens above it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from textual.content import Content
from textual.pilot import Pilot

from tests.support.script import Ask
from tests.support.world import World
from tests.ui.screens.driving import NARROW, WIDE, running, say, turn, until
from tui.agent.side_questions import SidePrice, SideText
from tui.app import drafts
from tui.core.errors import HoldfastError
from tui.core.facts import RetryScheduled, SideQuestion
from tui.core.messages import Usage
from tui.permissions.types import Call, Decision
from tui.ui.app import HoldfastApp
from tui.ui.screens.side_question import SideQuestionScreen
from tui.ui.widgets.answer_field import AnswerField
from tui.ui.widgets.approval import ApprovalModal
from tui.ui.widgets.conversation.items import AssistantItem, NoticeItem, UserItem

USED = Usage(40, 60, 0, 41_200)
CHEAP, COLD = SidePrice("m", 41_240, 41_200, 0.0048), SidePrice("m", 41_240, 0, 0.11)


@dataclass
class Asked:
    """Answers side questions as a test says."""

    cost: SidePrice = CHEAP
    refusal: str = ""
    questions: list[tuple[str, Sequence[SideQuestion]]] = field(default_factory=list[Any])
    show: Callable[[SideText | RetryScheduled], None] = print
    end: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: bool = False
    text: str = ""

    def price(self, said: Sequence[SideQuestion] = (), question: str = "") -> SidePrice:
        del said, question
        if self.refusal:
            raise HoldfastError(self.refusal)
        return self.cost

    async def ask(
        self,
        question: str,
        said: Sequence[SideQuestion],
        show: Callable[[SideText | RetryScheduled], None],
    ) -> SideQuestion:
        self.questions.append((question, tuple(said)))
        self.show, self.text, self.stopped = show, "", False
        self.end.clear()
        await self.end.wait()
        outcome = "stopped" if self.stopped else "answered"
        problem = "Stopped." if self.stopped else ""
        return SideQuestion(question, self.text, outcome, "m", USED, 1, 4.2, problem, cost_usd=0.01)

    def stream(self, text: str) -> None:
        self.text += text
        self.show(SideText(self.text))

    def stop(self) -> bool:
        self.stopped = True
        self.end.set()
        return True

    async def close(self) -> None:
        self.end.set()


@asynccontextmanager
async def asking(
    text: str = "/btw Which line is it?",
    *,
    asked: Asked | None = None,
    world: World | None = None,
    size: tuple[int, int] = WIDE,
) -> AsyncGenerator[tuple[HoldfastApp, Pilot[None], Asked]]:
    world, asked = world or World(), asked or Asked()
    async with running(world, size) as (app, pilot):
        world.agent._side_questions = asked  # type: ignore[assignment] # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
        await say(pilot, text)
        await until(pilot, lambda: isinstance(app.screen, SideQuestionScreen))
        yield app, pilot, asked


def dialog(app: HoldfastApp) -> SideQuestionScreen:
    return next(one for one in app.screen_stack if isinstance(one, SideQuestionScreen))


def shown(app: HoldfastApp, kind: type[UserItem | AssistantItem | NoticeItem]) -> list[str]:
    return [item.text for item in dialog(app).view.items if isinstance(item, kind)]


def foot(app: HoldfastApp) -> str:
    return Content.from_markup(dialog(app).query_one("#box").border_subtitle or "").plain


async def settled(pilot: Pilot[None]) -> None:
    for _ in range(3):
        await pilot.pause()


async def test_a_cheap_question_is_asked_at_once_and_streams() -> None:
    async with asking() as (app, pilot, asked):
        await until(pilot, lambda: bool(asked.questions))
        assert shown(app, UserItem) == ["Which line is it?"]
        assert "41.2k tokens, 99 % from the cache" in foot(app)
        assert "esc stop" in foot(app)
        asked.stream("It is **line")
        asked.stream(" 2**.")
        await until(pilot, lambda: shown(app, AssistantItem) == ["It is **line 2**."])
        asked.end.set()
        await until(pilot, lambda: "esc close" in foot(app))
        assert shown(app, NoticeItem)[-1] == "4 s · 41.2k tokens, 99 % from the cache, $0.01"
        await pilot.press(*"And", "space", *"why", "enter")
        await until(pilot, lambda: len(asked.questions) == 2)
        assert asked.questions[1][0] == "And why"
        assert [one.question for one in asked.questions[1][1]] == ["Which line is it?"]


async def test_what_is_not_cached_waits_for_enter_with_its_price() -> None:
    world = World()
    async with asking(asked=Asked(COLD), world=world) as (app, pilot, asked):
        await settled(pilot)
        assert not asked.questions
        assert dialog(app).field.text == "Which line is it?"
        assert "0 % from the cache · ≈ $0.11" in shown(app, NoticeItem)[-1]
        world.clock.elapsed += 2  # an Enter that is still held asks nothing
        await pilot.press("enter")
        await until(pilot, lambda: bool(asked.questions))


async def test_without_a_question_the_price_is_said_first() -> None:
    async with asking("/btw") as (app, pilot, asked):
        await settled(pilot)
        assert "99 % from the cache · ≈ $0.0048" in shown(app, NoticeItem)[-1]
        await pilot.press(*"/btw", "space", *"why", "enter")  # out of habit
        await until(pilot, lambda: bool(asked.questions))
        assert asked.questions[0][0] == "why"


async def test_where_none_can_be_asked_no_dialog_opens() -> None:
    world = World()
    async with running(world) as (app, pilot):
        world.agent._side_questions = Asked(refusal="Nothing to ask about.")  # type: ignore[assignment] # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
        await say(pilot, "/btw why")
        await until(pilot, lambda: "Nothing to ask about." in str(app.chat.notice.text))
        assert app.screen is app.chat


async def test_escape_stops_the_answer_then_closes_and_typed_text_goes_to_the_prompt() -> None:
    async with asking() as (app, pilot, asked):
        await until(pilot, lambda: bool(asked.questions))
        asked.stream("It is")
        await pilot.press("escape")
        await until(pilot, lambda: "esc close" in foot(app))
        assert shown(app, AssistantItem) == ["It is"]
        assert shown(app, NoticeItem)[-1].startswith("Stopped. 4 s · 41.2k tokens")
        await pilot.press(*"half")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)
        assert app.chat.prompt.text == "/btw half"


async def test_no_crash_takes_what_is_typed_or_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "TYPED_FOR_S", 0.001)
    world = World()
    async with asking(world=world) as (app, pilot, asked):

        def kept() -> Sequence[str]:
            return world.agent.watched.drafted_commands

        await until(pilot, lambda: kept() == ("/btw Which line is it?",))
        await pilot.press("a", "h")
        await until(pilot, lambda: kept() == ("/btw Which line is it?", "/btw ah"))
        asked.end.set()
        await until(pilot, lambda: kept() == ("/btw ah",))
        await pilot.press("escape")
        await until(pilot, lambda: app.chat.prompt.text == "/btw ah" and not kept())
        await until(pilot, lambda: world.agent.watched.drafts[-1][0] == "/btw ah")


async def test_what_is_typed_is_kept_where_the_session_closes() -> None:
    world = World()
    async with asking("/btw", world=world) as (app, pilot, _):
        await pilot.press("a", "h")
        await settled(pilot)
        session = world.agent.watched
        await app.conversation.close()
        assert session.drafted_commands == ("/btw ah",)


async def test_another_attempt_takes_the_place_of_what_was_streamed() -> None:
    async with asking() as (app, pilot, asked):
        await until(pilot, lambda: bool(asked.questions))
        asked.stream("It is the fi")
        await settled(pilot)
        asked.show(RetryScheduled(1, 3, 2.0, "The server is overloaded.", 529, "overloaded"))
        await settled(pilot)
        assert "overloaded. Retry 1 of 3 in 2 s" in foot(app)
        assert "esc stop" in foot(app)
        asked.show(SideText(""))
        asked.text = ""
        asked.stream("Line 2.")
        await until(pilot, lambda: shown(app, AssistantItem) == ["Line 2."])


async def test_a_question_of_the_agent_opens_above_and_only_its_keys_answer_it() -> None:
    world = World()
    call = Call("t1", "run_command", "run", "make")
    world.scripts.append(turn(Ask(call, Decision("ask", "", ""))))
    async with asking(world=world) as (app, pilot, asked):
        await until(pilot, lambda: bool(asked.questions))
        await pilot.press(*"but")
        app.conversation.submit("go")
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        await pilot.press("y")  # typed on: it is no answer
        await settled(pilot)
        assert isinstance(app.screen, ApprovalModal)
        assert not world.agent.answers
        asked.stream("It is line 2.")
        await until(pilot, lambda: shown(app, AssistantItem) == ["It is line 2."])
        assert dialog(app) in app.screen_stack
        world.clock.elapsed += 0.6
        await pilot.press("escape")
        world.clock.elapsed += 0.6
        await pilot.press("escape")
        await until(pilot, lambda: bool(world.agent.answers))
        assert world.agent.answers[0].answer == "no"
        assert app.screen is dialog(app)
        assert app.screen.query_one(AnswerField).text == "but"


@pytest.mark.parametrize("size", [WIDE, NARROW, (40, 10)])
async def test_the_field_is_in_sight_at_every_size(size: tuple[int, int]) -> None:
    async with asking(size=size) as (app, pilot, asked):
        await until(pilot, lambda: bool(asked.questions))
        asked.stream("\n\n".join(f"Paragraph {n}." for n in range(60)))
        asked.end.set()
        await until(pilot, lambda: "esc close" in foot(app))
        await settled(pilot)
        field_, screen = dialog(app).field, dialog(app)
        assert field_.region.bottom < screen.size.height
        assert field_.size.height == 1
        assert screen.view.size.height >= 1


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_the_foot_names_the_keys_that_do_something_now(size: tuple[int, int]) -> None:
    async with asking(size=size) as (app, pilot, asked):
        await until(pilot, lambda: bool(asked.questions))
        asked.stream("It is line 2.\n\n" * 40)
        await until(pilot, lambda: "pgup scroll back" in foot(app))
        asked.end.set()
        await until(pilot, lambda: "esc close" in foot(app))
        assert "tab answers" in foot(app)
        assert "pgup scroll back" in foot(app)
        await pilot.press("tab")
        await until(pilot, lambda: "y copy" in foot(app))
        assert "tab question" in foot(app)
        assert "enter ask" not in foot(app)
        await pilot.press("tab")
        await until(pilot, lambda: "enter ask" in foot(app))


async def test_the_last_answer_is_copied() -> None:
    async with asking() as (app, pilot, asked):
        await until(pilot, lambda: bool(asked.questions))
        asked.stream("Line **2**.")
        asked.end.set()
        await until(pilot, lambda: "esc close" in foot(app))
        await pilot.press("y", "tab", "y")  # the first one is typed
        assert app.clipboard == "Line **2**."
        assert dialog(app).field.text == "y"
