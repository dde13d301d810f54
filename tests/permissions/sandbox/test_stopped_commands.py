"""What a person is asked because of everyday commands, from what these really printed.

`record_stopped_commands` made the records; `stopped_commands.json` names the versions.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from tests.permissions.sandbox.record_stopped_commands import (
    RECORDS,
    Expected,
    is_missing,
    run,
    table,
)
from tui.core.workspace import Workspace
from tui.permissions.named_needs import named_needs
from tui.permissions.policy import Policy, decide
from tui.permissions.sandbox.engine import Engine, Sandbox
from tui.permissions.sandbox.explain import Explanation, Met, explain_failure, languages_of
from tui.permissions.sandbox.walls import Level, Walls
from tui.permissions.types import Call, Decision

HOLDS = (Level.READ_ONLY, Level.WORKSPACE, Level.NETWORK)
TABLE = table()


class Records(msgspec.Struct):
    versions: list[str]
    commands: dict[str, dict[str, tuple[int, str]]]


SAID = msgspec.json.decode(RECORDS.read_bytes(), type=Records).commands
FIRST_TRIES = [one for one in TABLE if not one.before]


class Place:
    """A workspace and a home, without a sandbox."""

    def __init__(self, base: Path) -> None:
        self.root, self.home = base / "work", base / "home"
        for folder in (self.root, self.home):
            folder.mkdir()
        self.workspace = Workspace(self.root, temporary=base / "state" / "tmp")
        self.walls = Walls(
            workspace=self.root, session=base / "state", cache=base / "cache", home=self.home
        )

    def decide(self, command: str) -> Decision:
        call = Call("c0", "run_command", "run", command, command)
        return decide(
            call, Policy(home=self.home), mode="ask", elevated=False, grants=(),
            workspace=self.workspace, holds=HOLDS,
        )  # fmt: skip

    def explain(
        self, command: str, code: int, output: str, level: Level = Level.READ_ONLY,
        engine: str = "bubblewrap", language: str = "C.UTF-8", *, signs: bool = False,
    ) -> Explanation:  # fmt: skip
        text = output.replace("@WS@", str(self.root)).replace("@HOME@", str(self.home))
        met = Met.in_output(
            text, languages_of({"LANG": language}), denies=engine == Engine.LANDLOCK
        )
        named = named_needs(command, self.root, self.workspace, self.home)
        said = explain_failure(met, level, self.walls, named, failed=code != 0, signs=signs)
        assert said is not None
        return said


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("one", TABLE, ids=lambda one: one.command)
def test_what_everyday_commands_ask_for(place: Place, one: Expected) -> None:
    decision = place.decide(one.command)
    if one.before:
        assert (decision.answer, decision.level) == ("ask", one.level)
        return
    assert (decision.answer, decision.level) == ("allow", Level.READ_ONLY)
    for engine, (code, output) in SAID[one.command].items():
        said = place.explain(one.command, code, output, engine=engine)
        assert said.level is one.level, (engine, code, output, said)


def test_the_table_is_large_and_its_records_are_there() -> None:
    assert len([one for one in TABLE if one.level is Level.WORKSPACE]) >= 120
    missing = [one.command for one in FIRST_TRIES if not SAID.get(one.command)]
    assert missing == []


@pytest.mark.slow
@pytest.mark.parametrize("engine", [Engine.BUBBLEWRAP, Engine.LAUNCHER])
async def test_the_same_for_real(place: Place, engine: Engine, runnable_engine: object) -> None:
    assert runnable_engine
    sandbox = Sandbox(engine)
    wrong: list[str] = []
    for one in FIRST_TRIES[:: 4 if engine is Engine.BUBBLEWRAP else 9]:
        code, output = await run(sandbox, one.command)
        said = place.explain(one.command, code, output, engine=engine)
        if not is_missing(code, output) and said.level is not one.level:
            wrong.append(f"{one.command}: {said} {code} {output}")
    await asyncio.to_thread(sandbox.close)
    assert wrong == []
