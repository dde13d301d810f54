"""A repeated prompt: at multiples of its interval, one at a time, within limits, until stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.agents import Yes
from tests.support.clock import PATIENCE_S, FakeClock
from tui.app import Conversation
from tui.app.api import HeadlessConversation, opened
from tui.app.dialog_data import ChoiceQuestion
from tui.app.door.lines import OwnerKind
from tui.app.every import Repetition, every
from tui.app.options.arguments import Options
from tui.app.repeat_wish import cut_off, read_repetition
from tui.app.router import route_from_afar
from tui.app.services import SessionChoice
from tui.core.facts import Fact, Notice
from tui.session.records import is_prompt


class Repeated:
    """A repetition that runs, whose time a test moves."""

    def __init__(self, conversation: HeadlessConversation, typed: str) -> None:
        self.clock, self.conversation = FakeClock(), conversation
        self.goes_on = True
        self.repetition = Repetition(conversation, read_repetition(typed), clock=self.clock)
        conversation.repetition = self.repetition
        self.task = asyncio.create_task(self.repetition.run(lambda: self.goes_on))

    async def until_planned(self, runs: int) -> str:
        """Until that many runs are over; what the row of the session says then."""
        async with asyncio.timeout(PATIENCE_S):
            while not (  # noqa: ASYNC110 - each step of its loop counts
                self.repetition.runs >= runs and self.said.startswith("next at")
            ):
                await asyncio.sleep(0)
        return self.said

    @property
    def said(self) -> str:
        return self.conversation.door.status().detail

    def pass_(self, seconds: float) -> None:
        self.clock.elapsed += seconds
        self.repetition.wake.set()

    @property
    def notes(self) -> list[str]:
        assert self.conversation.agent is not None
        records = self.conversation.agent.session.records
        return [str(r.data["text"]) for r in records if r.type == "note"]


@asynccontextmanager
async def repeated(
    folder: Path, typed: str, script: str = '[[turn]]\ntext = "hm"\n' * 20
) -> AsyncGenerator[Repeated]:
    path = folder / "script.toml"
    path.write_text(script)
    async with Conversation.at(folder, practice_script=path) as conversation:
        one = Repeated(conversation, typed)
        try:
            yield one
        finally:
            one.task.cancel()


async def test_it_runs_at_multiples_of_its_interval_and_says_when(tmp_path: Path) -> None:
    async with repeated(tmp_path, "10m --rounds 3 look") as one:
        assert (await one.until_planned(1)).startswith("next at ")
        one.pass_(599)
        await asyncio.sleep(0.01)
        assert one.repetition.runs == 1
        one.pass_(2)  # one second late: the time after is not later for it
        await one.until_planned(2)
        one.pass_(599)
        await one.task
        assert one.repetition.runs == 3
        assert one.notes == [
            "Repeats every 10 min, up to 3 runs, $5.00, 24 h: look",
            "No longer repeated: it has had its 3 runs. 3 runs.",
        ]
        assert one.conversation.agent is not None
        prompts = [r.data for r in one.conversation.agent.session.records if is_prompt(r)]
        assert [(data["text"], data["by"]) for data in prompts] == [("look", "every")] * 3


async def test_times_that_were_slept_through_are_left_out(tmp_path: Path) -> None:
    async with repeated(tmp_path, "10m look") as one:
        await one.until_planned(1)
        one.pass_(3 * 600 + 50)  # the machine slept: two times were missed beside the one due
        await one.until_planned(2)
        assert one.repetition.runs == 2
        assert any(note.startswith("Left out 2 times") for note in one.notes)
        one.pass_(549)
        await asyncio.sleep(0.01)
        assert one.repetition.runs == 2
        one.pass_(2)
        await one.until_planned(3)
        assert one.repetition.runs == 3


@pytest.mark.parametrize("stop", ["/every stop", ""])
async def test_it_ends_when_told_to(tmp_path: Path, stop: str) -> None:
    async with repeated(tmp_path, "10m look") as one:
        await one.until_planned(1)
        if stop:
            await route_from_afar(one.conversation, "/every")
            assert "1 run so far, the next at" in one.conversation.frontend.said  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - a headless one
            await route_from_afar(one.conversation, stop)
        else:  # another program wants the session
            one.goes_on = False
            one.repetition.wake.set()
        await one.task
        why = "you ended it" if stop else "its background process ends"
        assert one.notes[-1].startswith(f"No longer repeated: {why}.")
        assert one.said == ""


async def test_time_ends_it_before_a_run_that_would_be_too_late(tmp_path: Path) -> None:
    async with repeated(tmp_path, "10m --for 15m look") as one:
        await one.until_planned(1)
        one.pass_(600)
        await one.task
        assert one.repetition.runs == 2
        assert one.notes[-1] == "No longer repeated: its 15 min are up. 2 runs."


async def test_three_failures_in_a_row_end_it(tmp_path: Path) -> None:
    async with repeated(tmp_path, "10m look", '[[turn]]\ntext = "hm"\n') as one:
        for runs in (1, 2, 3):  # the script is exhausted after the first
            await one.until_planned(runs)
            one.pass_(600)
        await one.task
        assert one.notes[-1].startswith("No longer repeated: it failed 3 times in a row.")


async def test_the_question_before_it_names_all_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "script.toml"
    path.write_text('[[turn]]\ntext = "hm"\n')
    asked: list[str] = []
    async with Conversation.at(tmp_path, practice_script=path) as conversation:

        async def choose(question: ChoiceQuestion) -> str:
            asked.append(question.text)
            return ""

        monkeypatch.setattr(conversation.frontend, "choose", choose)
        monkeypatch.setattr(conversation.services, "background_options", Options)
        await every(conversation, "--rounds 3 10m look")
        await every(conversation, "--usd 0 10m look")
    assert "Every 10 min, up to 3 runs, $5.00, 24 h, in a background" in asked[0]
    assert "Every 10 min, up to 24 h, in a background" in asked[1]


async def resumed(folder: Path, path: Path, kind: OwnerKind) -> tuple[str, list[str]]:
    """What is in the prompt of a session that is opened again, and what it says."""
    said: list[Fact] = []
    options, choice = Options().having(cwd=folder, practice=True), SessionChoice(path)
    shown = opened(options, Yes(), see=said.append, choice=choice, kind=kind)
    async with shown as conversation:
        texts = [one.text for one in said if isinstance(one, Notice)]
        return conversation.frontend.prompt_text, texts


@pytest.mark.parametrize("kind", ["screen", "plain"])
async def test_what_its_process_took_along_is_offered_again(
    tmp_path: Path, kind: OwnerKind
) -> None:
    async with repeated(tmp_path, "--rounds 9 10m  look\nat it") as one:
        await one.until_planned(1)
        agent = one.conversation.agent
        assert agent is not None
        path = agent.session.path
        assert path is not None
    line = "/every --rounds 9 10m  look\nat it"
    prompt, said = await resumed(tmp_path, path, kind)
    assert prompt == line
    ended = (
        "A prompt was repeated every 10 min until its process ended. This command starts it again:"
    )
    assert said == [f"{ended}\n{line}"]
    prompt, said = await resumed(tmp_path, path, "background")
    assert (prompt.count("/every"), said) == (1, [])  # the first one's draft


async def test_what_has_ended_or_was_left_for_other_work_is_not_offered(tmp_path: Path) -> None:
    async with repeated(tmp_path, "--rounds 1 10m look") as one:
        await one.task
        agent = one.conversation.agent
        assert agent is not None
        records = [*agent.session.records]
        assert cut_off(records) is None
        started = next(n for n, r in enumerate(records) if r.data.get("every"))
        assert (cut := cut_off(records[: started + 2])) is not None
        assert cut.typed == "/every --rounds 1 10m look"
        [prompt] = [r for r in records if is_prompt(r)]
        typed = replace(prompt, data={**prompt.data, "by": ""})
        assert cut_off([*records[: started + 2], typed]) is None
        odd = replace(records[started], data={"text": "x", "every": "/every 1s no"})
        assert cut_off([odd]) is None
