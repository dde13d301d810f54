"""What waits to be sent: its order, and where it goes when a turn ends or it is taken back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.support.agents import make_agent
from tests.support.provider import ScriptedProvider
from tui.agent.agent import Agent
from tui.agent.prompts import parse
from tui.app.send_queue import SendQueue


@dataclass
class Holder:
    agent: Agent | None


def at_work(*queue: str) -> tuple[Agent, SendQueue]:
    agent = make_agent(Path("/home/me/proj"), ScriptedProvider())
    for text in queue:
        agent.steer(parse(text))
    return agent, SendQueue(Holder(agent))


def test_commands_come_first_then_what_joins_the_turn_then_what_waits_for_one() -> None:
    _, outbox = at_work("joins")
    outbox.add(parse("first"))
    outbox.add_command("make")
    outbox.add(parse("/review", "the text of it"))
    outbox.add_command("!echo unseen")
    assert outbox.texts == ("!make", "!!echo unseen", "joins", "first", "/review")
    assert outbox.take_command() == "make"
    assert outbox.take_prompts() == [
        parse("first"),
        parse("/review", "the text of it"),
    ]
    assert outbox.texts == ("!!echo unseen", "joins")


def test_nothing_waits_where_there_is_no_agent() -> None:
    outbox = SendQueue(Holder(None))
    assert (outbox.texts, outbox.take_back(), outbox.take_command()) == ((), "", None)
    assert outbox.after_turn(done=True) == ()


def test_a_turn_that_ended_well_leaves_turns_of_their_own_before_what_came_later() -> None:
    agent, outbox = at_work("typed into it", "and this")
    outbox.add(parse("after it"))
    assert outbox.after_turn(done=True) == ()
    assert agent.queue == ()
    assert [prompt.typed for prompt in outbox.take_prompts()] == [
        "typed into it",
        "and this",
        "after it",
    ]


def test_a_turn_that_was_stopped_gives_back_only_what_was_typed_into_it() -> None:
    _, outbox = at_work("typed into it")
    outbox.add(parse("after the stop"))
    outbox.add_command("make")
    assert outbox.after_turn(done=False) == ("typed into it",)
    assert outbox.texts == ("!make", "after the stop")


def test_prompts_come_back_together_and_what_would_not_be_the_same_with_others_alone() -> None:
    _, outbox = at_work("one")
    outbox.add(parse("two"))
    outbox.add(parse("/review", "the text of it"))
    outbox.add_command("make")
    outbox.add_command("make test")
    taken = [outbox.take_back() for _ in range(5)]
    assert taken == ["one\ntwo", "/review", "!make test", "!make", ""]


def test_the_same_text_twice_keeps_what_goes_along_with_the_one() -> None:
    _, outbox = at_work()
    outbox.add(parse("/review", "the text of it"))
    outbox.add(parse("/review"))
    assert outbox.take_back() == "/review"
    assert outbox.take_prompts() == [parse("/review", "the text of it")]


def test_what_was_heard_goes_along_once() -> None:
    _, outbox = at_work()
    outbox.hear("make said no")
    outbox.hear("make said yes")
    assert outbox.along("a file") == "a file\n\nmake said no\n\nmake said yes"
    assert outbox.along("") == ""
