"""/goal and /every as they are typed: options, texts, commands, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.agent.prompts import GoalWish
from tui.app import Conversation
from tui.app.commands.goal import goal_prompt, read_wish, seconds_of
from tui.app.repeat_wish import check_prompt, read_repetition, repeat_wish
from tui.app.router import refuse_command, route_from_afar, route_own
from tui.core.errors import UsageError


@pytest.mark.parametrize(
    ("typed", "wish"),
    [
        ("fix it", GoalWish("fix it")),
        ("fix it -- pytest -q -- x", GoalWish("fix it", "pytest -q -- x")),
        ("--rounds 5 --usd 2 --for 30m fix -- make", GoalWish("fix", "make", 5, 2.0, 1800.0)),
        ("--rounds=5 --usd=0 fix", GoalWish("fix", "", 5, 0.0)),
        ("-- pytest", GoalWish("Make this pass: `pytest`", "pytest")),
        ("--rounds 2 -- pytest", GoalWish("Make this pass: `pytest`", "pytest", 2)),
        ("fix --flag of the tool", GoalWish("fix --flag of the tool")),
        ("two\nlines -- a\nb", GoalWish("two\nlines", "a\nb")),
    ],
)
def test_a_goal_is_read_as_it_is_typed(typed: str, wish: GoalWish) -> None:
    assert read_wish(typed) == wish
    assert goal_prompt(f"/goal {typed}").goal == wish


@pytest.mark.parametrize(
    "typed",
    [
        *("", "--", "--round 5 x", "--rounds x", "--rounds 0 x", "--rounds 1.5 x", "--usd -1 x"),
        *("--usd nan x", "--for 5 x", "--for 1y x", "--rounds", "--rounds 5", "--usd 1e9 x", "--x"),
    ],
)
def test_what_isnt_understood_is_refused(typed: str) -> None:
    with pytest.raises(UsageError):
        read_wish(typed)


@given(st.text(st.sampled_from("-=. 0159mhrdsuound\n"), max_size=40))
def test_no_line_is_taken_for_another(typed: str) -> None:
    try:
        wish = read_wish(typed)
    except UsageError:
        return
    assert wish.text
    assert wish.rounds is None or wish.rounds > 0
    assert wish.seconds is None or wish.seconds > 0
    assert all(word in typed for word in wish.command.split())


def test_times() -> None:
    assert [seconds_of(text) for text in ("90s", "45m", "1h30m", "2d")] == [90, 2700, 5400, 172800]
    assert all(seconds_of(text) != seconds_of(text) for text in ("", "m", "5", "1h x", "0s", "-1m"))


@pytest.mark.parametrize("typed", ["", "10m", "x y", "5s x", "10m /every 10m x", "10m --bad x"])
def test_a_repetition_that_isnt_understood_is_refused(typed: str) -> None:
    with pytest.raises(UsageError):
        read_repetition(typed)


def test_a_repetition_takes_limits_on_both_sides() -> None:
    wish = read_repetition("--usd 2 10m --rounds 3 look for issues")
    assert (wish.prompt, wish.interval_s, wish.runs, wish.usd) == ("look for issues", 600.0, 3, 2.0)
    assert repeat_wish("/loop is no command") is None
    with pytest.raises(UsageError):
        check_prompt("/every 10m /goal")
    with pytest.raises(UsageError) as caught:
        refuse_command("/every 10m x")
    assert 'holdfast --bg "/every …"' in caught.value.hint


def script(folder: Path) -> Path:
    path = folder / "script.toml"
    path.write_text('[[turn]]\ntext = "hm"\n' * 9)
    return path


async def test_where_only_prompts_are_taken_a_goal_is_one(tmp_path: Path) -> None:
    async with Conversation.at(tmp_path, practice_script=script(tmp_path)) as conversation:
        assert conversation.agent is not None
        with pytest.raises(UsageError, match="own screen"):
            await route_own(conversation, "/goal")
        with pytest.raises(UsageError, match="No goal given"):
            await route_own(conversation, "/goal --rounds 3")
        with pytest.raises(UsageError, match="no goal to continue"):
            await route_own(conversation, "/goal continue")
        assert await route_own(conversation, "/goal --rounds 1 Do it. -- false") == "sent"
        await conversation.quiet()
        now = conversation.agent.goal.now
        assert now is not None
        assert (now.state, now.round, now.command) == ("limit", 1, "false")
        with pytest.raises(UsageError, match="it has had its 1 round"):
            await route_from_afar(conversation, "/goal continue")
        await route_from_afar(conversation, "/goal continue --rounds 2")
        await conversation.quiet()
        assert (now := conversation.agent.goal.now)
        assert (now.state, now.round) == ("limit", 2)
        await route_from_afar(conversation, "/goal stop")
        assert (now := conversation.agent.goal.now)
        assert now.state == "stopped"
        with pytest.raises(UsageError, match="no goal to end"):
            await route_from_afar(conversation, "/goal stop")


async def test_plan_mode_takes_no_goal(tmp_path: Path) -> None:
    async with Conversation.at(tmp_path, practice_script=script(tmp_path)) as conversation:
        assert conversation.agent is not None
        conversation.agent.permissions.mode = "plan"
        with pytest.raises(UsageError, match="Plan mode"):
            await route_own(conversation, "/goal x -- true")
