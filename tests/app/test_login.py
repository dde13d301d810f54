"""Another key, server or profile for a session that is open: what its next request carries."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from tests.support.profile import TOKEN, write_profile
from tests.support.server import LoopbackServer
from tui.agent.agent import Agent
from tui.agent.prompts import parse
from tui.app.dialog_data import KeySetup, PracticeSetup, ServerSetup, SetupElsewhere, SignInSetup
from tui.app.options.arguments import Options
from tui.app.program import Program
from tui.app.services import SessionChoice
from tui.core.errors import CredentialsError, HoldfastError, UsageError
from tui.core.facts import Fact
from tui.core.paths import folders
from tui.permissions.gate import RulesOnly
from tui.settings import edit

SAID = {"turns": [{"text": "ok"}] * 3}


@asynccontextmanager
async def opened(workspace: Path) -> AsyncGenerator[tuple[Program, Agent]]:
    """A program with an open session; its agent is closed at the end."""
    program = Program(Options(cwd=workspace), None)
    agent = await program.make_agent(SessionChoice(), RulesOnly())
    await agent.start()
    try:
        yield program, agent
    finally:
        await agent.close()


async def ask(agent: Agent, text: str) -> list[Fact]:
    return [event async for event in agent.send(parse(text))]


async def test_another_model_at_the_same_server_is_asked_from_the_next_request_on(
    tmp_path: Path,
) -> None:
    async with LoopbackServer({**SAID, "keys": ["k-1"]}) as server:
        program = Program(Options(cwd=tmp_path), None)
        await program.set_up(ServerSetup(server.url, "m-1", "k-1"))
        agent = await program.make_agent(SessionChoice(), RulesOnly())
        await agent.start()
        await program.set_up(ServerSetup(server.url, "m-2", "k-1"))
        await program.reconnect(agent)
        await ask(agent, "one")
        agent.models.use(await program.model_info("m-3"))
        await program.set_up(ServerSetup(server.url, "m-2", "k-1"))  # only the key is entered anew
        await program.reconnect(agent)
        await ask(agent, "two")
        await agent.close()
    assert [post.body["model"] for post in server.posts] == ["m-2", "m-3"]


async def test_the_next_request_of_the_session_goes_to_the_new_server_with_its_key(
    tmp_path: Path,
) -> None:
    async with (
        LoopbackServer({**SAID, "keys": ["k-1"]}) as first,
        LoopbackServer({**SAID, "keys": ["k-2"]}) as second,
    ):
        program = Program(Options(cwd=tmp_path), None)
        await program.set_up(ServerSetup(first.url, "m-1", "k-1"))
        agent = await program.make_agent(SessionChoice(), RulesOnly())
        await agent.start()
        await ask(agent, "one")
        with pytest.raises(CredentialsError, match="rejects this key") as caught:
            await program.set_up(ServerSetup(second.url, "m-2", "k-1"))
        assert "k-1" not in str(caught.value)
        assert program.connection().startswith(f"In use: m-1 at {first.url}, with the key in ")
        await ask(agent, "two")
        done = await program.set_up(ServerSetup(second.url, "m-2", "k-2"))
        assert done.startswith("Saved the key in ")
        await program.reconnect(agent)
        await ask(agent, "three")
        path = agent.session.path
        await agent.close()
    assert len(first.posts) == 2
    (post,) = second.posts
    assert post.headers["authorization"] == "Bearer k-2"
    assert post.body["model"] == "m-2"
    assert "one" in str(post.body["messages"])
    assert path is not None


async def test_a_profile_takes_the_place_of_a_stored_key(own_folders: Path, tmp_path: Path) -> None:
    async with LoopbackServer(SAID) as server:
        write_profile(own_folders / "anthropic", "default", base_url=server.url)
        async with opened(tmp_path) as (program, agent):
            assert program.account().sign_in == "default"
            await program.set_up(PracticeSetup())
            await program.reconnect(agent)
            assert agent.models.current == "practice"
            assert program.connection() == "In use: the practice model."
            await ask(agent, "hello")
            await program.set_up(SignInSetup("default"))
            await program.reconnect(agent)
            assert agent.models.current == "claude-sonnet-5-5"
            assert program.connection() == "Signed in with the sign-in default."
            await ask(agent, "go")
    (post,) = server.posts
    assert post.headers["authorization"] == f"Bearer {TOKEN}"


async def test_a_key_is_not_sent_to_a_server_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with LoopbackServer(SAID) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with opened(tmp_path) as (program, _):
            key = "sk-ant-" + "1" * 40
            for setup in (KeySetup(key), ServerSetup("http://127.0.0.1:1", "m", key)):
                with pytest.raises(UsageError, match="ANTHROPIC_BASE_URL"):
                    await program.set_up(setup)
    assert not (folders().config / "credentials.json").exists()
    assert not folders().config_file.exists()


async def test_a_key_of_the_environment_is_said_to_come_first_again(
    own_folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-env")
    write_profile(own_folders / "anthropic", "default")
    async with opened(tmp_path) as (program, _):
        assert program.connection().endswith("with the key in ANTHROPIC_API_KEY.")
        said = await program.set_up(SignInSetup("default"))
        assert said.endswith("ANTHROPIC_API_KEY still comes first at the next start.")
        assert program.launch.access.key is None


@asynccontextmanager
async def answering(answer: Callable[[StreamWriter], Awaitable[None]]) -> AsyncGenerator[str]:
    """The address of a server that answers every request so."""

    async def serve(_: StreamReader, writer: StreamWriter) -> None:
        with suppress(OSError):
            await answer(writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def test_a_server_that_never_ends_its_answer_keeps_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.app.doctor.setup._TIMEOUT_S", 0.2)
    over = asyncio.Event()

    async def drip(writer: StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nx: ")
        while not over.is_set():
            writer.write(b"x")
            await writer.drain()
            await asyncio.wait({asyncio.ensure_future(over.wait())}, timeout=0.05)

    async with answering(drip) as url:
        said = await Program(Options(cwd=tmp_path), None).set_up(ServerSetup(url, "m", "k-1"))
        over.set()
    assert said.endswith(f" Not checked: {url} can't be reached (no answer in time).")


async def test_what_a_server_says_that_is_none_is_not_shown(tmp_path: Path) -> None:
    async def babble(writer: StreamWriter) -> None:
        writer.write(b"\x1b]0;Approve?\x07" + b"A" * 5000 + b"\r\n\r\n")

    async with answering(babble) as url:
        said = await Program(Options(cwd=tmp_path), None).set_up(ServerSetup(url, "m", "k-1"))
    assert said.endswith(f" Not checked: {url} can't be reached (its answer isn't HTTP).")


async def test_a_key_in_the_place_of_a_models_name_is_not_saved(tmp_path: Path) -> None:
    program = Program(Options(cwd=tmp_path), None)
    with pytest.raises(CredentialsError, match="not the name of a model"):
        await program.set_up(ServerSetup("http://127.0.0.1:1", "sk-ant-" + "1" * 40, ""))
    assert not folders().config_file.exists()


async def test_a_server_that_is_not_there_is_kept_and_said(tmp_path: Path) -> None:
    program = Program(Options(cwd=tmp_path), None)
    said = await program.set_up(ServerSetup("http://127.0.0.1:1", "m", "k-1"))
    assert said.startswith("Saved the key in ")
    assert said.endswith(" Not checked: http://127.0.0.1:1 can't be reached (Connection refused).")
    assert "base_url" in folders().config_file.read_text()


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("two words of a sentence", "contains spaces"),
        ("sk-ant-12345", "too short"),
        ("https://gateway.example/v1/messages", "an address"),
    ],
)
async def test_what_cannot_be_an_anthropic_key_is_refused_at_once(
    key: str, says: str, tmp_path: Path
) -> None:
    program = Program(Options(cwd=tmp_path), None)
    with pytest.raises(CredentialsError, match=says) as caught:
        await program.set_up(KeySetup(key))
    assert key not in str(caught.value)
    assert not (folders().config / "credentials.json").exists()


async def test_a_key_that_cannot_be_one_changes_nothing(tmp_path: Path) -> None:
    async with LoopbackServer(SAID) as server:
        program = Program(Options(cwd=tmp_path), None)
        with pytest.raises(HoldfastError, match="isn't an API key"):
            await program.set_up(ServerSetup(server.url, "m", "two words"))
    assert server.requests == []
    assert not folders().config_file.exists()


async def test_what_another_program_sets_up_is_found_once_and_used(tmp_path: Path) -> None:
    async with (
        LoopbackServer({**SAID, "keys": ["k-1"]}) as first,
        LoopbackServer({**SAID, "keys": ["k-2"]}) as second,
    ):
        waiting, other = (Program(Options(cwd=tmp_path), None) for _ in range(2))
        with pytest.raises(CredentialsError):
            await waiting.make_agent(SessionChoice(), RulesOnly())
        assert not waiting.set_up_elsewhere()
        edit.set_user_value(folders(), "theme", "linen")
        assert not waiting.set_up_elsewhere()
        await other.set_up(ServerSetup(first.url, "m-1", "k-1"))
        assert waiting.set_up_elsewhere()
        assert not waiting.set_up_elsewhere()
        said = await waiting.set_up(SetupElsewhere())
        assert said.startswith(
            f"Set up in another window. In use: m-1 at {first.url}, with the key"
        )
        agent = await waiting.make_agent(SessionChoice(), RulesOnly())
        await agent.start()
        await ask(agent, "one")
        await other.set_up(ServerSetup(second.url, "m-2", "k-2"))
        assert waiting.set_up_elsewhere()
        await waiting.set_up(SetupElsewhere())
        await waiting.reconnect(agent)
        assert not waiting.set_up_elsewhere()
        await ask(agent, "two")
        await agent.close()
    assert [len(server.posts) for server in (first, second)] == [1, 1]
    assert second.posts[0].headers["authorization"] == "Bearer k-2"
