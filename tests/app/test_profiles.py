"""Two accounts: whose key each request carries, and what the record and the bill say of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.server import LoopbackServer
from tui.agent.agent import Agent
from tui.agent.prompts import parse
from tui.app import launch_config
from tui.app.dialog_data import Account, KeySetup, ServerSetup
from tui.app.options.arguments import Options
from tui.app.program import Program
from tui.app.services import SessionChoice
from tui.cli.main import main
from tui.context.request_replay import RequestReplay
from tui.context.usage import bills_in
from tui.core.errors import ConfigError, CredentialsError
from tui.core.facts import Fact, ProfileUsed, SessionStarted
from tui.core.paths import folders
from tui.permissions.gate import RulesOnly
from tui.session import catalog, copies
from tui.session.reader import read
from tui.settings import credentials
from tui.settings.layers import parse as parsed_file

HOME, WORK = "sk-" + "h" * 40, "sk-" + "w" * 40
SAID = {"turns": [{"text": "ok"}] * 9}


@asynccontextmanager
async def two_servers() -> AsyncGenerator[tuple[LoopbackServer, LoopbackServer]]:
    """The servers of two accounts, each with its key; both keys are stored, and the profile work
    names the second one."""
    async with (
        LoopbackServer({**SAID, "keys": [HOME]}) as home,
        LoopbackServer({**SAID, "keys": [WORK]}) as work,
    ):
        write(
            f"""
            titles = "prompt"
            base_url = "{home.url}"
            [profile.work]
            base_url = "{work.url}"
            model = "claude-opus-5-5"
            [profile.empty]
            """
        )
        place = folders()
        credentials.store_key(HOME, home.url, env=os.environ, folders=place)
        credentials.store_key(WORK, work.url, env=os.environ, folders=place, profile="work")
        yield home, work


def write(text: str) -> None:
    file = folders().config_file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(line.strip() for line in text.splitlines()))


def asked(server: LoopbackServer) -> list[str]:
    """The keys with which messages were asked for."""
    return [
        one.headers.get("x-api-key", "") for one in server.requests if one.path == "/v1/messages"
    ]


@asynccontextmanager
async def opened(
    options: Options, choice: SessionChoice | None = None
) -> AsyncGenerator[tuple[Program, Agent, list[Fact]]]:
    program = Program(options, None)
    agent = await program.make_agent(choice or SessionChoice(), RulesOnly())
    try:
        yield program, agent, await agent.start()
    finally:
        await agent.close()


async def ask(agent: Agent, text: str = "hello") -> list[Fact]:
    return [event async for event in agent.send(parse(text))]


def profile_in(path: Path) -> tuple[str, list[tuple[str, str]]]:
    """The profile in the header of a session, and the changes after it."""
    loaded = read(path)
    changes = [one.data for one in loaded.records if one.type == "profile"]
    return loaded.header.profile, [(one["before"], one["name"]) for one in changes]


async def made(options: Options) -> Path:
    """A session with one answer."""
    async with opened(options) as (_, agent, _facts):
        await ask(agent)
        assert agent.session.path is not None
        return agent.session.path


async def test_each_account_gets_its_own_requests(tmp_path: Path) -> None:
    async with two_servers() as (home, work):
        async with opened(Options(cwd=tmp_path).having(profile="work")) as (_, agent, facts):
            started = next(one for one in facts if isinstance(one, SessionStarted))
            assert (started.profile, started.model) == ("work", "claude-opus-5-5")
            await ask(agent)
        path = await made(Options(cwd=tmp_path))
        assert (asked(home), asked(work)) == ([HOME], [WORK])
        assert profile_in(path) == ("", [])


async def test_the_environments_key_is_never_sent_with_a_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_servers() as (home, work):
        monkeypatch.setenv("ANTHROPIC_API_KEY", HOME)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", home.url)
        monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "x-of-home: secret")
        await made(Options(cwd=tmp_path).having(profile="work"))
        assert (asked(home), asked(work)) == ([], [WORK])
        assert all("x-of-home" not in one.headers for one in work.requests)


async def test_a_profile_that_says_so_uses_the_environments_key_at_its_own_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_servers() as (home, work):
        write(
            f'base_url = "{home.url}"\n[profile.ci]\nbase_url = "{work.url}"\nkey_from = "default"'
        )
        monkeypatch.setenv("ANTHROPIC_API_KEY", WORK)
        await made(Options(cwd=tmp_path).having(profile="ci"))
        assert (asked(home), asked(work)) == ([], [WORK])


async def test_a_resumed_session_has_the_profile_that_it_was_made_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_servers() as (home, work):
        path = await made(Options(cwd=tmp_path).having(profile="work"))
        usual = await made(Options(cwd=tmp_path))
        monkeypatch.setenv("HOLDFAST_PROFILE", "empty")
        for options in (
            Options(cwd=tmp_path).having(resume=str(path)),
            Options(cwd=tmp_path).having(resume=str(usual)),
        ):
            async with opened(options, Program(options, None).choice()) as (_, agent, _facts):
                await ask(agent)
        assert (asked(home), asked(work)) == ([HOME] * 2, [WORK] * 2)
        assert profile_in(path) == ("work", [])


async def test_a_session_opened_from_another_ones_screen_has_its_own_profile_and_says_so(
    tmp_path: Path,
) -> None:
    async with two_servers() as (home, work):
        path = await made(Options(cwd=tmp_path).having(profile="work"))
        async with opened(Options(cwd=tmp_path)) as (program, first, _):
            await ask(first)
            agent = await program.make_agent(SessionChoice(path), RulesOnly())
            said = [str(one) for one in await agent.start()]
            assert any("Profile work: this session used it last." in one for one in said)
            await ask(agent)
            await agent.close()
            new = await program.make_agent(SessionChoice(), RulesOnly())
            assert new.models.profile == "work", "a new session has the one of where it is begun"
            await new.close()
        assert (asked(home), asked(work)) == ([HOME], [WORK] * 2)


async def test_another_profile_for_a_session_is_said_recorded_and_billed(tmp_path: Path) -> None:
    async with two_servers() as (home, work):
        path = await made(Options(cwd=tmp_path).having(profile="work"))
        options = Options(cwd=tmp_path).having(resume=str(path), profile="default")
        async with opened(options, Program(options, None).choice()) as (_, agent, facts):
            assert any("used profile work last; --profile names default" in str(f) for f in facts)
            told = [one for one in await ask(agent) if isinstance(one, ProfileUsed)]
            assert told == [ProfileUsed("default", "work")]
            assert not [one for one in await ask(agent) if isinstance(one, ProfileUsed)]
        assert (asked(home), asked(work)) == ([HOME] * 2, [WORK])
        assert profile_in(path) == ("work", [("work", "default")])
        (billed,) = bills_in(folders())
        assert [bill.profile for bill in billed.bills] == ["work", "", ""]
        (listed,) = [catalog.describe(one) for one in catalog.files(folders())]
        assert listed.profile == "", "the last one counts"
        again = launch_config.prepare(Options(cwd=tmp_path).having(resume=str(path)))
        assert again.config.profile == ""


async def test_a_fork_has_the_profile_of_its_original(tmp_path: Path) -> None:
    async with two_servers() as (_, work):
        path = await made(Options(cwd=tmp_path).having(profile="work"))
        copy = copies.fork(read(path), folders=folders(), clock=Program(Options(), None).clock)
        options = Options(cwd=tmp_path).having(resume=str(copy))
        async with opened(options, Program(options, None).choice()) as (_, agent, _facts):
            await ask(agent)
        assert asked(work) == [WORK] * 2
        assert profile_in(copy) == ("work", [])


async def test_in_a_copy_of_a_branch_each_answer_is_paid_by_who_paid_it(tmp_path: Path) -> None:
    async with two_servers() as (home, work):
        path = await made(Options(cwd=tmp_path))
        options = Options(cwd=tmp_path).having(resume=str(path), profile="work")
        async with opened(options, Program(options, None).choice()) as (_, agent, _facts):
            await ask(agent)
            (_, second) = (one.id for one in agent.session.records if one.type == "user")
            await agent.session.rewind(second)
        async with opened(options, Program(options, None).choice()) as (_, agent, _facts):
            await ask(agent)  # the change to this profile is on the other branch
            last = agent.session.records[-1].id
        assert (len(asked(home)), len(asked(work))) == (1, 2)
        clock, place = Program(Options(), None).clock, folders()
        for at in ("", last):
            copy = read(copies.fork(read(path), folders=place, clock=clock, at=at))
            paid = [one.payer for one in copy.records if one.type == "assistant"]
            assert paid == ["", "work"]
            assert not copy.findings
            ids = [one.id for one in copy.records]
            assert ids == sorted(set(ids))
            rebuilt = RequestReplay(copy.records).every()
            assert [one.problem for one in rebuilt] == ["", ""]


async def test_what_is_replayed_through_another_profile_is_paid_by_that(tmp_path: Path) -> None:
    async with two_servers() as (_, work):
        path = await made(Options(cwd=tmp_path))
        words = ["--profile", "work", "-C", str(tmp_path)]
        again = ["sessions", "replay", str(path), "--at", "1", "--yes", *words]
        assert await asyncio.to_thread(main, again) == 0
        assert asked(work) == [WORK]
        (copy,) = {one.path for one in bills_in(folders())} - {path}
        paid = [one.payer for one in read(copy).records if one.type == "assistant"]
        assert paid == ["work"]
        assert read(path).records[-1].payer == ""


async def test_a_session_whose_profile_is_gone_goes_on_only_with_another_one(
    tmp_path: Path,
) -> None:
    async with two_servers() as (home, _):
        path = await made(Options(cwd=tmp_path).having(profile="work"))
        write(f'base_url = "{home.url}"\n[profile.other]\n')
        options = Options(cwd=tmp_path).having(resume=str(path))
        with pytest.raises(ConfigError, match="this session: there is no profile work"):
            Program(options, None)
        async with opened(Options(cwd=tmp_path)) as (program, _, _facts):
            with pytest.raises(ConfigError, match="there is no profile work"):
                await program.make_agent(SessionChoice(path), RulesOnly())
            assert program.account().profile == "", "what was open stays as it is"
        chosen = options.having(profile="default")
        async with opened(chosen, Program(chosen, None).choice()) as (_, agent, _facts):
            await ask(agent)
        assert asked(home) == [HOME]


async def test_a_profile_without_a_key_asks_for_its_own(tmp_path: Path) -> None:
    async with two_servers() as (home, work):
        program = Program(Options(cwd=tmp_path).having(profile="empty"), None)
        with pytest.raises(CredentialsError, match=r"Profile empty has no key for 127\.0\.0\.1"):
            await program.make_agent(SessionChoice(), RulesOnly())
        assert program.account() == Account(
            "empty", ServerSetup(home.url, "claude-sonnet-5-5", ""), profiles=True
        )
        done = await program.set_up(ServerSetup(work.url, "claude-opus-5-5", WORK))
        assert done.startswith("Saved the key of profile empty in ")
        agent = await program.make_agent(SessionChoice(), RulesOnly())
        await ask(agent)
        await agent.close()
        assert (asked(home), asked(work)) == ([], [WORK])
        file = folders().config_file
        table = parsed_file(file.read_bytes(), file)
        assert table["base_url"] == home.url, "the usual server is what it was"
        assert table["profile"]["empty"] == {"base_url": work.url, "model": "claude-opus-5-5"}


async def test_a_server_without_a_key_is_remembered_as_such(tmp_path: Path) -> None:
    async with two_servers() as (home, work):
        program = Program(Options(cwd=tmp_path).having(profile="empty"), None)
        await program.set_up(ServerSetup(work.url, "m", ""))
        assert (
            launch_config.with_key(
                launch_config.prepare(Options(cwd=tmp_path).having(profile="empty"))
            ).access.key
            is None
        )
        await program.set_up(ServerSetup(home.url, "m", HOME))
        file = folders().config_file
        assert "key_from" not in parsed_file(file.read_bytes(), file)["profile"]["empty"]


def _accepted(_server: str, _key: str | None) -> tuple[int, str]:
    return 200, ""


async def test_a_profile_for_anthropic_is_above_the_persons_own_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.app.doctor.setup.ask_for_models", _accepted)
    write('base_url = "http://127.0.0.1:9"\n[profile.own]\n')
    program = Program(Options(cwd=tmp_path).having(profile="own"), None)
    await program.set_up(KeySetup("sk-ant-" + "x" * 40))
    fresh = launch_config.prepare(Options(cwd=tmp_path).having(profile="own"))
    assert fresh.config.base_url == ""
    assert launch_config.with_key(fresh).access.key == "sk-ant-" + "x" * 40
    usual = launch_config.prepare(Options(cwd=tmp_path))
    assert usual.config.base_url == "http://127.0.0.1:9"


async def test_a_profile_that_is_trusted_at_the_start_counts_at_once(tmp_path: Path) -> None:
    async with two_servers() as (home, work):
        (tmp_path / ".holdfast").mkdir()
        (tmp_path / ".holdfast" / "config.toml").write_text('profile = "work"\n')
        program = Program(Options(cwd=tmp_path), None)
        assert program.account().profile == ""
        (item,) = program.undecided()
        assert item.does == "Uses your profile work: its settings, and its key, which pays"
        await program.decide_trust([item], ["profile"])
        agent = await program.make_agent(SessionChoice(), RulesOnly())
        await ask(agent)
        await program.decide_trust([item], [])
        await program.use_settings()
        now = program.account().profile
        assert now == "work", "what is open keeps its account until the next start"
        await agent.close()
        assert (asked(home), asked(work)) == ([], [WORK])


def test_print_mode_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write('[profile.work]\n[profile."it\'s"]\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", HOME)
    monkeypatch.setattr("tui.cli.print_mode.standard_input", str)
    assert main(["-p", "x", "--profile", "wrok"]) == 2
    said = capsys.readouterr().err
    assert said.endswith("there is no profile wrok.\nDid you mean work?\n"), "--bare is no help"
    assert main(["-p", "x", "--profile", "work"]) == 3
    said = capsys.readouterr().err
    assert "Profile work has no key for api.anthropic.com." in said
    assert "ANTHROPIC_API_KEY isn't used with a profile." in said
    assert main(["-p", "x", "--profile", "it's"]) == 3
    assert """holdfast --profile 'it'"'"'s'""" in capsys.readouterr().err


async def test_the_list_of_models_is_asked_for_without_the_environments_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_servers() as (_, work):
        monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "x-of-home: secret")
        program = Program(Options(cwd=tmp_path).having(profile="work"), None)
        agent = await program.make_agent(SessionChoice(), RulesOnly())
        await program.refresh_models()
        await agent.close()
        assert "/v1/models" in {one.path.partition("?")[0] for one in work.requests}
        assert all("x-of-home" not in one.headers for one in work.requests)


async def test_a_server_that_a_folder_names_meanwhile_gets_no_key_of_the_persons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with LoopbackServer({**SAID, "keys": []}) as foreign:
        write('titles = "prompt"\n')
        monkeypatch.setenv("ANTHROPIC_API_KEY", HOME)
        monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "x-of-home: secret")
        (tmp_path / ".holdfast").mkdir()
        file = tmp_path / ".holdfast" / "config.toml"
        for way in ("trusted", "changed"):
            file.write_text("")
            options = Options(cwd=tmp_path)
            program = Program(options.having(trust=True) if way == "changed" else options, None)
            first = await program.make_agent(SessionChoice(), RulesOnly())
            await first.close()
            file.write_text(f'base_url = "{foreign.url}"\n')
            if way == "trusted":
                await program.decide_trust(program.brought(), ["base_url"])
            else:
                await program.use_settings()
            agent = await program.make_agent(SessionChoice(), RulesOnly())
            await ask(agent)
            await agent.close()
        assert len(asked(foreign)) == 2
        for one in foreign.requests:
            assert HOME not in str(one.headers)
            assert "x-of-home" not in one.headers


async def test_what_is_asked_beside_a_conversation_is_billed_to_the_profile_that_pays(
    tmp_path: Path,
) -> None:
    async with two_servers() as (home, work):
        path = await made(Options(cwd=tmp_path).having(profile="work"))
        options = Options(cwd=tmp_path).having(resume=str(path), profile="default")
        async with opened(options, Program(options, None).choice()) as (_, agent, _facts):
            await agent.side_questions.ask("What is it about?")
        assert (len(asked(home)), len(asked(work))) == (1, 1)
        assert profile_in(path) == ("work", [("work", "default")])
        (billed,) = bills_in(folders())
        assert [bill.profile for bill in billed.bills] == ["work", ""]
