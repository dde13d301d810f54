"""A conversation that another program opens: what it sends, hears, answers, and gets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest

from tui.app import Conversation
from tui.core import facts
from tui.core.errors import CredentialsError, SessionError, UsageError
from tui.permissions.types import Answer, Call, Decision

Scripted = Callable[[str], Path]

SCHEMA = {
    "type": "object",
    "properties": {"count": {"type": "integer"}},
    "required": ["count"],
    "additionalProperties": False,
}


@pytest.fixture
def scripted(tmp_path: Path) -> Scripted:
    """Writes a practice script."""

    def write(text: str) -> Path:
        path = tmp_path / "script.toml"
        path.write_text(text)
        return path

    return write


def write_file(path: str) -> str:
    return (
        f'[[turn]]\ntools = [{{name = "write_file", input = {{path = "{path}", content = "x"}}}}]\n'
    )


def say(text: str) -> str:
    return f'[[turn]]\ntext = "{text}"\n'


def submit(result: str) -> str:
    return f'[[turn]]\ntools = [{{name = "submit_result", input = {result}}}]\n'


async def test_a_prompt_is_answered_and_its_events_end_with_its_turn(
    tmp_path: Path, scripted: Scripted
) -> None:
    script = scripted(say("one") + say("two"))
    async with Conversation.at(tmp_path, practice_script=script) as conversation:
        seen = [event.type async for event in conversation.send("first")]
        again = await conversation.ask("second")
    assert seen[0] == "user_message"
    assert seen[-1] == "turn_finished"
    assert (again.answer, again.outcome, again.error) == ("two", "done", "")


async def test_a_session_is_kept_and_resumed_by_its_id(tmp_path: Path, scripted: Scripted) -> None:
    script = scripted(say("one"))
    async with Conversation.at(tmp_path, practice_script=script) as conversation:
        id_ = (await conversation.ask("first")).session_id
    async with Conversation.at(tmp_path, resume=id_, practice=True) as conversation:
        assert conversation.agent is not None
        assert conversation.agent.session.id == id_
    async with Conversation.at(tmp_path, newest=True, practice=True) as conversation:
        assert (await conversation.ask("hello")).session_id == id_
    with pytest.raises(SessionError):
        async with Conversation.at(tmp_path, resume="ffffffffffff", practice=True):
            pass
    with pytest.raises(UsageError, match="either"):
        async with Conversation.at(tmp_path, resume=id_, newest=True, practice=True):
            pass


async def test_without_a_key_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError):
        async with Conversation.at(tmp_path):
            pass


async def test_nothing_is_kept_where_nothing_shall_be(tmp_path: Path, own_folders: Path) -> None:
    async with Conversation.at(tmp_path, practice=True, keep=False) as conversation:
        await conversation.ask("hello")
    assert not list(own_folders.rglob("*.jsonl"))


async def test_what_the_rules_ask_about_a_function_answers(
    tmp_path: Path, scripted: Scripted
) -> None:
    asked: list[tuple[str, str]] = []

    async def approve(call: Call, decision: Decision) -> Answer | bool:
        asked.append((call.subject, decision.answer))
        return call.subject == "good.txt" or Answer("no", "Not that one.")

    script = scripted(write_file("good.txt") + write_file("bad.txt") + say("done"))
    async with Conversation.at(tmp_path, practice_script=script, approve=approve) as conversation:
        seen = [event async for event in conversation.send("go")]
    results = [event.text for event in seen if isinstance(event, facts.ToolFinished)]
    assert asked == [("good.txt", "ask"), ("bad.txt", "ask")]
    assert (tmp_path / "good.txt").read_text() == "x"
    assert not (tmp_path / "bad.txt").exists()
    assert "Not that one." in results[1]


async def test_without_one_what_would_be_asked_is_refused(
    tmp_path: Path, scripted: Scripted
) -> None:
    script = scripted(write_file("a.txt") + say("done"))
    async with Conversation.at(tmp_path, practice_script=script) as conversation:
        assert (await conversation.ask("go")).outcome == "done"
    assert not (tmp_path / "a.txt").exists()


async def test_modes_and_rules_are_those_of_the_command_line(
    tmp_path: Path, scripted: Scripted
) -> None:
    script = scripted(write_file("a.txt") + write_file("b.txt") + say("done"))
    async with Conversation.at(
        tmp_path, practice_script=script, mode="edits", deny=["write_file(b.txt)"]
    ) as conversation:
        await conversation.ask("go")
    assert (tmp_path / "a.txt").exists()
    assert not (tmp_path / "b.txt").exists()


async def test_functions_are_tools(tmp_path: Path, scripted: Scripted) -> None:
    threads: list[str] = []

    def count_words(text: Annotated[str, msgspec.Meta(description="Any text.")]) -> dict[str, int]:
        """How many words a text has."""
        threads.append(__import__("threading").current_thread().name)
        return {"words": len(text.split())}

    async def fails(why: str = "no reason") -> str:
        raise ValueError(why)

    calls = (
        ("count_words", '{text = "a b c"}'),
        ("fails", "{}"),
        ("count_words", "{text = 3}"),
    )
    tools = ", ".join(f'{{name = "{name}", input = {given}}}' for name, given in calls)
    script = scripted(f"[[turn]]\ntools = [{tools}]\n" + say("done"))
    results: dict[str, list[tuple[bool, str]]] = {}
    async with Conversation.at(
        tmp_path, practice_script=script, tools=[count_words, fails]
    ) as conversation:
        async for event in conversation.send("go"):
            if isinstance(event, facts.ToolFinished):
                results.setdefault(event.name, []).append((event.is_error, event.text))
        assert conversation.agent is not None
        offered = {one["name"]: one for one in conversation.agent.context.next_request().tools}
    assert results["fails"] == [(True, "fails failed: ValueError: no reason.")]
    assert (False, '{"words":3}') in results["count_words"]
    assert sum(failed for failed, _ in results["count_words"]) == 1
    assert threads != ["MainThread"]
    assert offered["count_words"]["description"] == "How many words a text has."
    properties: Any = offered["count_words"]["input_schema"]["properties"]
    assert properties["text"] == {"type": "string", "description": "Any text."}


async def test_a_result_fits_the_schema_or_there_is_none(
    tmp_path: Path, scripted: Scripted
) -> None:
    script = scripted(
        submit('{count = "three"}')
        + say("Sorry.")
        + submit("{count = 3}")
        + say("I don't know.")
        + say("Really not.")
    )
    async with Conversation.at(tmp_path, practice_script=script, schema=SCHEMA) as conversation:
        first = await conversation.ask("How many?")
        second = await conversation.ask("And now?")
    assert (first.given, first.value, first.outcome) == (True, {"count": 3}, "done")
    assert (second.given, second.outcome) == (False, "failed")
    assert "no result that fits" in second.error


async def test_a_result_ends_the_turn(tmp_path: Path, scripted: Scripted) -> None:
    script = scripted(submit("{count = 1}") + say("never asked for"))
    async with Conversation.at(tmp_path, practice_script=script, schema=SCHEMA) as conversation:
        seen = [event.type async for event in conversation.send("How many?")]
    assert seen.count("request_sent") == 1


async def test_texts_of_its_own_are_in_the_system_prompt(tmp_path: Path) -> None:
    async with Conversation.at(
        tmp_path,
        practice=True,
        system_prompt="You translate.",
        append_system_prompt="Into French.",
    ) as conversation:
        await conversation.ask("hello")
        assert conversation.agent is not None
        sent = str(conversation.agent.context.next_request().system)
    assert "You translate." in sent
    assert "Into French." in sent
    assert "# Security" in sent
    assert "# Tools" not in sent


async def test_closing_the_iterator_stops_the_turn(tmp_path: Path, scripted: Scripted) -> None:
    script = scripted('[[turn]]\ntext = "slow"\ndelay_s = 3600\n')
    async with Conversation.at(tmp_path, practice_script=script) as conversation:
        turn = conversation.send("go")
        async for event in turn:
            if isinstance(event, facts.RequestSent):
                break
        await turn.aclose()
        assert not conversation.busy
        assert conversation.agent is not None
        assert [r.type for r in conversation.agent.session.records if r.type == "interrupt"]


async def test_a_prompt_that_comes_while_a_turn_runs_joins_it(
    tmp_path: Path, scripted: Scripted
) -> None:
    begun, gate = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        begun.set()
        await gate.wait()
        return "waited"

    script = scripted('[[turn]]\ntools = [{name = "wait", input = {}}]\n' + say("both"))
    async with Conversation.at(tmp_path, practice_script=script, tools=[wait]) as conversation:
        first = asyncio.create_task(conversation.ask("one"))
        await begun.wait()
        assert conversation.submit("two") == "joined"
        gate.set()
        assert (await first).answer == "both"
        assert conversation.agent is not None
        prompts = [r.data["text"] for r in conversation.agent.session.records if r.type == "user"]
    assert prompts == ["one", "two"]
