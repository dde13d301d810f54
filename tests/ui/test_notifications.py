"""Who looks elsewhere is called, and nobody else."""

from __future__ import annotations

import pytest

from tests.support.clock import FakeClock
from tests.support.script import Hold
from tests.support.world import World
from tests.ui.screens.driving import answer, running, say, turn, until
from tui.core import facts
from tui.core.config import Config
from tui.ui.notifications import Notifier

ASKED = facts.PermissionAsked("t1", "run_command", "It runs.")


def calls(*steps: facts.Fact | float, away: bool = True) -> list[str]:
    """What is called in a turn; a number is seconds that pass."""
    clock, heard = FakeClock(), list[str]()
    attention = Notifier(clock, lambda: away, heard.append)
    clock.elapsed = 1000
    attention.begin()
    for step in steps:
        if isinstance(step, float | int):
            clock.elapsed += step
        else:
            attention.see(step)
    return heard


def test_an_answer_that_is_needed_calls_at_once() -> None:
    assert calls(ASKED) == ["Needs your answer."]


def test_questions_of_the_model_and_of_sub_agents_call_too() -> None:
    question = facts.QuestionAsked("t1", "ask_user", ())
    inner = facts.SubAgentEvent("t2", "general", ASKED)
    assert calls(question, inner) == 2 * ["Needs your answer."]


def test_nobody_is_called_who_looks() -> None:
    assert calls(ASKED, 60.0, facts.TurnFinished("done"), away=False) == []


@pytest.mark.parametrize(
    ("seconds", "outcome", "called"),
    [
        (20.0, "done", []),
        (20.5, "done", ["Done."]),
        (20.5, "failed", ["Stopped."]),
        (20.5, "interrupted", []),
    ],
)
def test_a_long_turn_calls_at_its_end(seconds: float, outcome: str, called: list[str]) -> None:
    finished = facts.TurnFinished(outcome)  # pyright: ignore[reportArgumentType]
    assert calls(seconds, finished) == called


async def test_the_bell_rings_for_a_long_turn_once_the_terminal_is_left() -> None:
    world, hold = World(), Hold()
    world.scripts.append(turn(hold, *answer("Done.")))
    world.scripts.append(turn(*answer("Quick.")))
    async with running(world) as (app, pilot):
        rung: list[bool] = []
        app.bell = lambda: rung.append(True)  # type: ignore[method-assign]
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.busy)
        app.app_focus = False
        world.clock.elapsed += 21
        hold.release()
        await until(pilot, lambda: not app.conversation.busy)
        assert rung == [True]
        app.conversation.submit("again")
        await until(pilot, lambda: app.frontend.renderer.last_answer == "Quick.")
        await until(pilot, lambda: not app.conversation.busy)
        assert rung == [True]


async def test_reduced_motion_counts_and_does_not_turn() -> None:
    world, hold = World(), Hold()
    world.config = Config(motion="reduced")
    world.scripts.append(turn(hold))
    async with running(world) as (app, pilot):
        assert app.animation_level == "none"
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.busy)
        seen: set[str] = set()
        for _ in range(5):
            world.clock.elapsed += 0.5
            app.chat._tick()  # pyright: ignore[reportPrivateUsage] - what the timer calls
            seen.add(str(app.chat.prompt_rule.title)[0])
        assert seen == {"●"}
        hold.release()
