"""No command that a person types out of habit goes to the model as text, or into the void."""

from __future__ import annotations

import pytest

from tests.support.world import World
from tests.ui.habits import rows
from tests.ui.screens.driving import running, say, until
from tui.app.commands import find, unknown
from tui.app.commands.table import ELSEWHERE, INSTEAD
from tui.settings.user_commands import SHIPPED

COMMANDS = rows("commands")
OWN = {path.stem for path in SHIPPED.glob("*.md")}


def leads_to(name: str) -> str:
    """Where a command of another agent leads here: to a command, or to words about one."""
    command = find(ELSEWHERE.get(name, name))
    if command is not None:
        return f"/{command.name}"
    return f"/{name}" if name in OWN else "says" if name in INSTEAD else "nowhere"


def test_every_command_of_the_table_leads_somewhere() -> None:
    found = {row["command"]: leads_to(row["command"][1:]) for row in COMMANDS}
    assert found == {row["command"]: row["does"] for row in COMMANDS}


def test_what_is_said_is_one_line_that_names_something_to_do() -> None:
    for name, text in INSTEAD.items():
        assert unknown(name) == (f"No command /{name} here.", text)
        assert len(text) <= 80
        assert text.endswith(".")


@pytest.mark.parametrize("typed", ["/recap now", "/release-notes", "/stop"])
async def test_a_command_that_there_is_not_stays_in_the_prompt(typed: str) -> None:
    world = World()
    async with running(world) as (app, pilot):
        await say(pilot, typed)
        name = typed.split(maxsplit=1)[0][1:]
        await until(pilot, lambda: INSTEAD[name] in app.chat.notice.text)
        assert app.chat.prompt.text == typed
        assert world.agent.sent == []
