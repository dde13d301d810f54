"""/profile: the session that is open goes on with another account, and with no key but that."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from math import isclose
from pathlib import Path
from typing import Any

import pytest

from tests.app.test_conversation import Recorder
from tests.app.test_error_options import until
from tests.app.test_profiles import HOME, SAID, WORK, asked, profile_in, two_servers, write
from tests.support.server import LoopbackServer
from tui.agent.limits import session_cost
from tui.app.accounts import change_account
from tui.app.conversation import Conversation
from tui.app.dialog_data import OTHER_PROFILE, ProfileQuestion, Question, SetupQuestion
from tui.app.open_session import open_first
from tui.app.options.arguments import Options
from tui.app.program import Program
from tui.app.reports.session import status_rows
from tui.app.reports.usage import attribution_of
from tui.app.router import route, route_from_afar, route_own
from tui.core.config import Config
from tui.core.errors import UsageError
from tui.core.facts import Parked, ProfileUsed
from tui.core.formatting import money
from tui.core.partly_typed import PartlyTyped
from tui.core.paths import folders
from tui.session import copies
from tui.session.reader import read
from tui.settings.credentials import store_key


class Face(Recorder):
    """A front end that writes down what it is asked, and chooses by name."""

    def __init__(self, *choices: str) -> None:
        super().__init__()
        self.choices, self.rows = [*choices], list[Any]()
        self.setup: str | None = None
        self.setups: list[SetupQuestion] = []
        self.confirmed: list[str] = []

    def say(self, text: str, level: str = "info", *, hint: str = "") -> None:
        self.said.append(f"{text} {hint}".strip())

    async def choose(self, question: Question) -> str | None:
        assert isinstance(question, ProfileQuestion)
        self.rows = [*question.rows]
        return self.choices.pop(0) if self.choices else None

    async def ask_setup(self, question: SetupQuestion) -> str | None:
        self.setups.append(question)
        return self.setup


@asynccontextmanager
async def talking(options: Options, face: Face) -> AsyncGenerator[tuple[Conversation, Program]]:
    program = Program(options, None)
    conversation = Conversation(program, face)
    await open_first(conversation, program.choice())
    try:
        yield conversation, program
    finally:
        await conversation.close()


async def say(conversation: Conversation, face: Face, text: str) -> None:
    turns = len(face.results)
    assert await route(conversation, text) == "sent"
    await until(lambda: len(face.results) > turns and not conversation.busy)


def of(server: LoopbackServer) -> set[str]:
    """All that a server was sent, keys and headers included, in one line each."""
    return {str((one.path, one.headers, one.raw)) for one in server.requests}


async def test_to_and_fro_each_account_gets_its_own_requests_and_nothing_of_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "x-of-home: secret")
    face = Face()
    async with two_servers() as (home, work):
        async with talking(Options(cwd=tmp_path), face) as (conversation, _):
            await say(conversation, face, "one")
            await route(conversation, "/profile work")
            agent = conversation.agent
            assert agent is not None
            assert (agent.models.profile, agent.models.current) == ("work", "claude-opus-5-5")
            assert [one for one in face.shown if isinstance(one, ProfileUsed)] == [
                ProfileUsed("work", "default")
            ]
            await say(conversation, face, "two")
            await route(conversation, "/profile default")
            await say(conversation, face, "three")
            await route(conversation, "/profile work")
            await say(conversation, face, "four")
            path = agent.session.path
            assert path is not None
        assert (asked(home), asked(work)) == ([HOME] * 2, [WORK] * 2)
        assert "one" in str(work.posts[0].body["messages"]), "the same session goes on"
        assert not any(WORK in one for one in of(home))
        assert not any(HOME in one or "x-of-home" in one for one in of(work))
    assert profile_in(path) == ("", [("default", "work"), ("work", "default"), ("default", "work")])


async def test_what_begins_in_the_session_has_the_profile_in_use(tmp_path: Path) -> None:
    face = Face()
    async with two_servers() as (home, work):
        options = Options(cwd=tmp_path).having(profile="default", model="claude-haiku-5-5")
        async with talking(options, face) as (conversation, program):
            await say(conversation, face, "one")
            await route(conversation, "/profile work")
            other = program.background_options()
            assert (other.models.profile, other.models.model) == ("work", None)
            assert program.run_options(tmp_path).models.profile == "work"
            await say(conversation, face, "two")
            agent = conversation.agent
            assert agent is not None
            path = agent.session.path
            await agent.side_questions.ask("What is it about?")
            await route(conversation, "/fork")
            await say(conversation, face, "three")
            await route(conversation, "/new")
            await say(conversation, face, "four")
        assert (asked(home), asked(work)) == ([HOME], [WORK] * 5), "two, aside, three, memory, four"
        again = Options(cwd=tmp_path).having(resume=str(path))
        async with talking(again, face) as (conversation, _):
            await say(conversation, face, "five")
        assert (asked(home), asked(work)) == ([HOME], [WORK] * 6)


async def test_the_price_of_an_empty_cache_is_announced_and_a_warm_one_is_read(
    tmp_path: Path,
) -> None:
    usage = {"input_tokens": 5, "output_tokens": 5, "cache_creation_input_tokens": 40_000}
    turns = [{"text": "ok", "usage": usage}] * 3
    async with (
        LoopbackServer({"turns": turns, "keys": [HOME]}) as home,
        LoopbackServer({"turns": turns, "keys": [HOME]}) as work,
    ):
        write(
            f"""
            titles = "prompt"
            base_url = "{home.url}"
            [profile.work]
            key_from = "default"
            [profile.work.prices."claude-sonnet-5-5"]
            input = 100.0
            cache_write = 125.0
            [profile.other]
            base_url = "{work.url}"
            """
        )
        store_key(HOME, home.url, env=os.environ, folders=folders())
        face = Face("work")
        async with talking(Options(cwd=tmp_path), face) as (conversation, _):
            await say(conversation, face, "one")
            await route(conversation, "/profile")
            rows = {row.name: row for row in face.rows}
            assert [row.name for row in face.rows] == ["default", "work", "other"]
            assert [row.now for row in face.rows] == [True, False, False]
            assert "from the cache" in rows["default"].sends
            assert rows["work"].sends == "The next prompt sends all 40.0k tokens again: ≈ $5.00."
            assert rows["work"].key == "your usual key"
            assert rows["other"].key == "its own key"
            assert rows["other"].server == work.url
            assert face.said[-1] == (
                f"Switched to profile work: claude-sonnet-5-5 at {home.url}."
                f" {rows['work'].sends} /profile default switches back."
            )
            await route(conversation, "/profile")
            rows = {row.name: row for row in face.rows}
            assert rows["work"].now
            assert "from the cache" in rows["default"].sends, "its cache is still there"
            assert "from the cache" not in rows["other"].sends


@pytest.mark.parametrize("name", ["empty", "wrok", "default"])
async def test_what_can_not_be_used_is_said_and_nothing_changes(tmp_path: Path, name: str) -> None:
    words = {
        "empty": "Profile empty has no key for 127.0.0.1",
        "wrok": "There is no profile wrok. Did you mean work?",
        "default": "Already using profile default.",
    }
    face = Face()
    async with two_servers() as (home, work):
        async with talking(Options(cwd=tmp_path), face) as (conversation, program):
            await say(conversation, face, "one")
            agent = conversation.agent
            await route(conversation, f"/profile {name}")
            assert words[name] in face.said[-1]
            assert conversation.agent is agent
            assert program.launch.access.key == HOME
            await say(conversation, face, "two")
        assert (asked(home), asked(work)) == ([HOME] * 2, [])


async def test_a_mistake_in_the_file_is_named_and_the_session_keeps_its_account(
    tmp_path: Path,
) -> None:
    face = Face()
    async with two_servers() as (home, work):
        async with talking(Options(cwd=tmp_path), face) as (conversation, _):
            await say(conversation, face, "one")
            agent = conversation.agent
            write(f'base_url = "{home.url}"\n[profile.work]\nmodle = "x"\n')
            await route(conversation, "/profile work")
            assert "profile.work.modle" in face.said[-1]
            assert conversation.agent is agent
            await say(conversation, face, "two")
        assert (asked(home), asked(work)) == ([HOME] * 2, [])


async def test_only_what_was_typed_at_its_own_screen_chooses(tmp_path: Path) -> None:
    face = Face()
    async with two_servers(), talking(Options(cwd=tmp_path), face) as (conversation, program):
        await say(conversation, face, "one")
        agent = conversation.agent
        for typed in (0, 5, len("/profile wo")):
            await route(conversation, PartlyTyped("/profile work", typed))
            assert "must be typed" in face.said[-1]
            await route(conversation, PartlyTyped("/profiles work", typed))
            assert "must be typed" in face.said[-1]
            await route(conversation, PartlyTyped("/model @work/claude-opus-5-5", typed))
            assert "must be typed" in face.said[-1]
        for other in (route_from_afar, route_own):
            with pytest.raises(UsageError):
                await other(conversation, "/profile work")
        assert conversation.agent is agent
        assert program.account().profile == ""


async def test_while_a_turn_runs_it_is_refused(tmp_path: Path) -> None:
    face = Face()
    async with two_servers() as (home, work):
        async with talking(Options(cwd=tmp_path), face) as (conversation, _):
            await route(conversation, "one")
            assert conversation.busy
            await route(conversation, "/profile work")
            assert face.said[-1] == "The agent is working. Press Esc to stop it."
            await until(lambda: face.results)
        assert (asked(home), asked(work)) == ([HOME], [])


async def test_before_the_first_prompt_and_without_profiles_or_a_file(tmp_path: Path) -> None:
    face = Face()
    async with two_servers() as (home, work):
        async with talking(Options(cwd=tmp_path), face) as (conversation, _):
            await route(conversation, "/profile work")
            await say(conversation, face, "one")
            agent = conversation.agent
            assert agent is not None
            assert agent.session.path is not None
            assert profile_in(agent.session.path) == ("work", [])
        assert (asked(home), asked(work)) == ([], [WORK])
        unsaved = Options(cwd=tmp_path).having(no_session=True)
        async with talking(unsaved, face) as (conversation, _):
            await route(conversation, "/profile work")
            assert "isn't saved, so it keeps its profile" in face.said[-1]
        write(f'base_url = "{home.url}"\n')
        async with talking(Options(cwd=tmp_path), face) as (conversation, _):
            await route(conversation, "/profile")
            assert face.said[-1].startswith("There are no profiles yet.")


async def test_login_leads_to_it(tmp_path: Path) -> None:
    face = Face("work")
    face.setup = OTHER_PROFILE
    async with two_servers() as (home, work):
        async with talking(Options(cwd=tmp_path), face) as (conversation, _):
            await route(conversation, "/login")
            assert face.setups[-1].others
            await say(conversation, face, "one")
        assert (asked(home), asked(work)) == ([], [WORK])


async def test_mode_and_folders_stay_and_nothing_is_elevated(tmp_path: Path) -> None:
    face, root, beside = Face(), tmp_path / "here", tmp_path / "beside"
    root.mkdir()
    beside.mkdir()
    async with two_servers(), talking(Options(cwd=root), face) as (conversation, _):
        await say(conversation, face, "one")
        agent = conversation.agent
        assert agent is not None
        agent.permissions.mode = "plan"
        agent.permissions.add_dir(beside)
        await say(conversation, face, "/elevated on")
        assert agent.directives.elevated
        await route(conversation, "/profile work")
        now = conversation.agent
        assert now is not None
        assert now is not agent
        assert (now.permissions.mode, now.permissions.folders[1:]) == ("plan", (beside,))
        assert not now.directives.elevated


async def test_another_session_has_its_own_profile_again(tmp_path: Path) -> None:
    face = Face()
    async with two_servers() as (home, work):
        async with talking(Options(cwd=tmp_path), face) as (conversation, _):
            await say(conversation, face, "one")
            assert conversation.agent is not None
            first = conversation.agent.session.path
        options = Options(cwd=tmp_path).having(profile="work")
        async with talking(options, face) as (conversation, program):
            await route(conversation, "/profile default")
            await route(conversation, "/profile work")
            await say(conversation, face, "two")
            assert first is not None
            await route(conversation, f"/resume {first.stem.rsplit('-', 1)[-1]}")
            await say(conversation, face, "three")
            assert program.account().profile == ""
        assert (asked(home), asked(work)) == ([HOME] * 2, [WORK])


async def test_each_account_paid_its_part_in_status_and_usage(tmp_path: Path) -> None:
    face = Face()
    async with two_servers():
        file = folders().config_file
        file.write_text(f'{file.read_text()}\n[profile.work.prices."*"]\ntimes = 3.0\n')
        async with talking(Options(cwd=tmp_path), face) as (conversation, program):
            await say(conversation, face, "one")
            await route(conversation, "/profile work")
            await say(conversation, face, "two")
            agent = conversation.agent
            assert agent is not None
            rows = {row.name: row.values for row in status_rows(agent, tmp_path, Config())}
            paid = [
                session_cost([one], program.launch.config.prices).session.usd or 0
                for one in agent.session.records
                if one.type == "assistant"
            ]
            assert rows["profile"] == ("work",)
            payers = f"default {money(paid[0])}, work {money(paid[1])}"
            assert rows["cost"] == (f"{money(sum(paid))} ({payers})",)
            shares = attribution_of(agent).rows("profile")
            assert isclose(shares["default"].usd, paid[0])
            assert isclose(shares["work"].usd, paid[1])
            assert isclose(agent.spending().session.usd or 0.0, sum(paid))
            again = attribution_of(agent).rows("break")
            assert set(again) <= {"", "another profile"}


async def test_sub_agents_and_goals_are_asked_with_the_profile_in_use(tmp_path: Path) -> None:
    task = {"name": "task", "input": {"description": "look", "prompt": "Look.", "agent": "explore"}}
    turns = [{"tools": [task]}, {"text": "seen"}, {"text": "done"}]
    turns += [{"text": "worked"}, {"text": "MET: all is there"}, {"text": "ok"}]
    face = Face()
    async with (
        LoopbackServer({"turns": turns[3:] * 2, "keys": [HOME]}) as home,
        LoopbackServer({"turns": turns, "keys": [WORK]}) as work,
    ):
        write(
            f"""
            titles = "prompt"
            small_model = "claude-opus-5-5"
            base_url = "{home.url}"
            [profile.work]
            base_url = "{work.url}"
            """
        )
        store_key(HOME, home.url, env=os.environ, folders=folders())
        store_key(WORK, work.url, env=os.environ, folders=folders(), profile="work")
        async with talking(Options(cwd=tmp_path), face) as (conversation, _):
            await route(conversation, "one")
            await until(lambda: face.results and not conversation.busy)
            await route(conversation, "/profile work")
            await say(conversation, face, "two")
            await route(conversation, "/goal All is there")
            await until(lambda: len(face.results) > 2 and not conversation.busy)
            agent = conversation.agent
            assert agent is not None
            assert agent.session.path is not None
            (child,) = agent.session.path.with_suffix("").glob("*.jsonl")
            assert profile_in(child) == ("work", [])
        assert asked(home) == [HOME]
        assert set(asked(work)) == {WORK}
        assert len(asked(work)) >= 5, "the call, its sub-agent, the answer, the goal, its check"


async def test_a_turn_that_waits_for_one_account_is_stopped_and_goes_on_with_another(
    tmp_path: Path,
) -> None:
    face = Face()
    busy = [{"faults": [{"status": 429, "retry_after": 90_000}] * 5, "text": "late"}]
    async with (
        LoopbackServer({"turns": busy, "keys": [HOME]}) as home,
        LoopbackServer({**SAID, "keys": [WORK]}) as work,
    ):
        write(
            f'titles = "prompt"\nbase_url = "{home.url}"\n[profile.work]\nbase_url="{work.url}"\n'
        )
        store_key(HOME, home.url, env=os.environ, folders=folders())
        store_key(WORK, work.url, env=os.environ, folders=folders(), profile="work")
        async with talking(Options(cwd=tmp_path), face) as (conversation, _):
            await route(conversation, "one")
            await until(lambda: any(isinstance(one, Parked) for one in face.shown))
            await route(conversation, "/profile work")
            assert face.said[-1] == "The agent is working. Press Esc to stop it."
            conversation.cancel()
            await conversation.at_rest()
            await route(conversation, "/profile work")
            await say(conversation, face, "go on")
        assert (asked(home), asked(work)) == ([HOME], [WORK])
        assert "one" in str(work.posts[0].body["messages"])


async def test_a_rejected_key_leads_to_another_account_and_the_turn_continues(
    tmp_path: Path,
) -> None:
    face = Face("work")
    face.setup = OTHER_PROFILE
    async with two_servers() as (home, work):
        store_key("sk-" + "x" * 40, home.url, env=os.environ, folders=folders())
        async with talking(Options(cwd=tmp_path), face) as (conversation, _):
            await route(conversation, "one")
            await until(lambda: face.results and not conversation.busy)
            assert face.results[-1].outcome == "failed"
            assert await change_account(conversation, "The server rejected the key.")
            assert conversation.resume_turn()
            await until(lambda: len(face.results) > 1 and not conversation.busy)
            assert face.results[-1].outcome == "done"
        assert asked(work) == [WORK]
        assert "one" in str(work.posts[0].body["messages"])


async def test_a_copy_of_an_earlier_place_continues_with_the_account_of_now(
    tmp_path: Path,
) -> None:
    face = Face()
    async with two_servers() as (home, work):
        async with talking(Options(cwd=tmp_path), face) as (conversation, program):
            await say(conversation, face, "one")
            await route(conversation, "/profile work")
            await say(conversation, face, "two")
            assert conversation.agent is not None
            path = conversation.agent.session.path
            assert path is not None
        copy = copies.fork(read(path), folders=folders(), clock=program.clock, at="2")
        assert profile_in(copy) == ("", [("default", "work")])
        assert [one.payer for one in read(copy).records][-1] == "work"
        again = Options(cwd=tmp_path).having(resume=str(copy))
        async with talking(again, face) as (conversation, _):
            await say(conversation, face, "three")
        assert (asked(home), asked(work)) == ([HOME], [WORK] * 2)
        assert "two" not in str(work.posts[1].body["messages"])
