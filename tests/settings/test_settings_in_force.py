"""Settings that change while the program runs: what counts at once, what for the next session."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.agents import Yes, events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.app.options.arguments import ModelOptions, Options
from tui.app.program import Program
from tui.core import facts, theme_cache
from tui.core.config import Config, Permissions
from tui.core.errors import ConfigError, UsageError
from tui.core.paths import folders
from tui.ui.toolkit import themes


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(
        Options(cwd=tmp_path),
        None,
        remember_theme=lambda name: themes.remember(name, folders().config / "themes"),
    )


def write(text: str) -> None:
    folders().config.mkdir(parents=True, exist_ok=True)
    folders().config_file.write_text(text)


async def test_new_sessions_begin_with_the_settings_as_they_are_now(
    program: Program,
) -> None:
    write('model = "other"\n[permissions]\nceiling = "/"\n')
    assert program.read_settings().config.model == "other"
    assert program.launch.config.permissions.ceiling == "~"
    await program.use_settings()
    assert program.launch.model == "other"
    assert program.launch.workspace.ceiling == Path("/")
    assert program.launch.config.permissions.ceiling == "/"
    assert program.models()[0].name == "other"


async def test_the_command_line_stays_above_the_file(tmp_path: Path) -> None:
    program = Program(Options(cwd=tmp_path, models=ModelOptions(model="named")), None)
    write('model = "other"')
    await program.use_settings()
    assert program.launch.model == "named"
    assert program.read_settings().sources["model"].endswith("command line")


async def test_a_key_does_not_go_to_another_server(program: Program) -> None:
    program.launch = program.launch.with_key("secret")
    write('model = "other"')
    await program.use_settings()
    assert program.launch.access.key == "secret"
    write('base_url = "http://127.0.0.1:1"')
    await program.use_settings()
    assert program.launch.access.key is None


async def test_a_theme_is_remembered_for_the_next_first_frame(program: Program) -> None:
    write('theme = "linen"')
    await program.use_settings()
    assert theme_cache.load().get("theme") == "linen"


async def test_a_broken_file_leaves_what_was_in_force(program: Program) -> None:
    write('model = "other"')
    await program.use_settings()
    write("model = 3")
    with pytest.raises(ConfigError):
        await program.use_settings()
    with pytest.raises(ConfigError):
        program.read_settings()
    assert program.launch.model == "other"


# In a session that runs


async def test_a_rule_counts_from_the_next_call_on(tmp_path: Path) -> None:
    provider = ScriptedProvider(
        [call("write_file", "1", path="a", content="x")], say("done"),
        [call("write_file", "2", path="b", content="x")], say("done"),
    )  # fmt: skip
    agent = make_agent(tmp_path, provider, approver=Yes())
    await events_of(agent, "write")
    assert (tmp_path / "a").exists()
    agent.permissions.take_up(Config(permissions=Permissions(deny=("write_file",))))
    seen = await events_of(agent, "again")
    assert not (tmp_path / "b").exists()
    finished = [event for event in seen if isinstance(event, facts.ToolFinished)]
    assert [event.is_error for event in finished] == [True]


async def test_redaction_counts_from_the_next_record_on(tmp_path: Path) -> None:
    agent = make_agent(tmp_path, ScriptedProvider(say("a"), say("b"), say("c")))
    secret = "sk-ant-" + "a1b2" * 8
    await events_of(agent, f"first {secret}")
    agent.permissions.take_up(Config(redact="record"))
    await events_of(agent, f"second {secret}")
    agent.permissions.take_up(Config())
    await events_of(agent, f"third {secret}")
    asked = [str(one.data) for one in agent.session.records if one.type == "user"]
    assert [secret in text for text in asked] == [True, False, True]


def test_a_rule_that_cannot_be_read_changes_nothing(tmp_path: Path) -> None:
    agent = make_agent(tmp_path, ScriptedProvider(say("x")))
    with pytest.raises(UsageError):
        agent.permissions.take_up(
            Config(redact="record", permissions=Permissions(deny=("two words",)))
        )
    assert agent.session.redact is False
