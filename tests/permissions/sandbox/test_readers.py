"""The program's own readers: searches behind the walls, and folders that are exchanged."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.permissions.sandbox.conftest import MARK, Scene, runnable
from tests.permissions.sandbox.test_swapped_folders import FLIP
from tests.support.folder_picture import picture
from tests.tools.folder import Folder
from tui.core.config import SandboxSettings
from tui.core.errors import ToolError
from tui.core.workspace import Workspace
from tui.permissions.sandbox.confinement import Confinement
from tui.permissions.sandbox.engine import Engine, Sandbox
from tui.permissions.sandbox.walls import Level, Walls
from tui.tools import search
from tui.tools.base import Tool
from tui.tools.edit_file import EditFile
from tui.tools.find_by_name import FindByName
from tui.tools.grep_search import GrepSearch
from tui.tools.list_dir import ListDir
from tui.tools.read_file import ReadFile
from tui.tools.write_file import WriteFile


async def confined(scene: Scene, engine: Engine) -> Confinement:
    made = Confinement(
        SandboxSettings(engine=engine.value),
        Workspace.at(scene.workspace),
        scene.walls.session,
        scene.walls.cache,
        environment=scene.environment,
    )
    assert await made.engine() is not None, made.reason
    return made


@pytest.fixture
async def confinement(scene: Scene, engine: Engine) -> AsyncIterator[Confinement]:
    made = await confined(scene, engine)
    yield made
    await made.close()


def searching(scene: Scene, confinement: Confinement | None) -> Folder:
    changes: dict[str, Any] = {}
    if confinement is not None:
        changes["start_reader"] = confinement.start_reader
    return Folder(scene.workspace, changes=changes)


async def test_a_search_runs_behind_the_read_only_walls(
    scene: Scene, confinement: Confinement, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = scene.workspace / "rg"
    program.write_text(
        f"#!/bin/sh\nfor file in {scene.walls.home}/.ssh/id file.txt; do\n"
        'printf "./%s\\0001:" $file; cat $file; echo; done; touch new\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr(search, "ripgrep", lambda: program)
    text = await searching(scene, confinement).text(GrepSearch(), pattern="x")
    assert "file.txt:1:text" in text
    assert MARK not in text
    assert not (scene.workspace / "new").exists()


async def test_a_search_finds_the_same_behind_walls(scene: Scene, confinement: Confinement) -> None:
    for name in ("a/x.py", "a/b/y.py", "gone/z.log"):
        (scene.workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (scene.workspace / name).write_text("one\ntwo\n")
    (scene.workspace / ".gitignore").write_text("*.log\n")
    walled, plain = searching(scene, confinement), searching(scene, None)
    for tool, arguments in (
        (GrepSearch(), {"pattern": "tw?o", "context": 1}),
        (GrepSearch(), {"pattern": "one", "path": "a/x.py"}),
        (GrepSearch(), {"pattern": "nowhere"}),
        (FindByName(), {"pattern": "*.py", "path": "a"}),
    ):
        assert await walled.text(tool, **arguments) == await plain.text(tool, **arguments)
    assert "regex parse error" in await walled.error(GrepSearch(), pattern="(x")


async def test_walls_that_cannot_be_built_are_no_empty_result(
    scene: Scene, confinement: Confinement, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = replace(confinement.walls(), workspace=scene.base / "gone")

    def walls(_: Confinement) -> Walls:
        return gone

    monkeypatch.setattr(Confinement, "walls", walls)
    text = await searching(scene, confinement).text(GrepSearch(), pattern="text")
    assert text == "file.txt:1:text"


@pytest.mark.parametrize("rule", [".env", "keys/*", "deep/er/.env"])
async def test_what_may_not_be_read_is_closed_to_commands(
    scene: Scene, any_engine: Engine, rule: str
) -> None:
    path = scene.workspace / rule.replace("*", "one")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(MARK)
    made = await confined(scene, any_engine)
    made.denied = lambda root: (root / rule.removesuffix("/*"),)
    levels = await made.levels()
    sandbox = Sandbox(any_engine)
    scene.walls = made.walls()
    for level in (one for one in (Level.READ_ONLY, Level.WORKSPACE) if one in levels):
        attack = (
            f"cat {path}; mv {path} moved; ln {path} linked; cat linked moved; "
            f"mv {path.parent} away; cat away/*; grep -r mark . && false"
        )
        code, output = await scene.run(sandbox, attack, level)
        assert code != 0
        assert MARK not in output
        assert path.read_text() == MARK
    await asyncio.to_thread(sandbox.close)
    await made.close()


CALLS: list[tuple[Tool[Any], dict[str, Any]]] = [
    (GrepSearch(), {"pattern": MARK[:8]}),
    (GrepSearch(), {"pattern": MARK[:8], "path": "deep"}),
    (FindByName(), {"pattern": "only-outside*"}),
    (ReadFile(), {"path": "deep/config"}),
    (ListDir(), {"path": "deep"}),
    (WriteFile(), {"path": "deep/new", "content": "x"}),
    (EditFile(), {"path": "deep/config", "edits": [{"old_string": "in", "new_string": "In"}]}),
]


@pytest.fixture
def exchanged(scene: Scene) -> Iterator[Scene]:
    """A folder that something exchanges with a link to the home folder, all the time."""
    for place, text in ((scene.workspace / "deep", "inside"), (scene.walls.home, MARK)):
        for number in range(20):
            (place / f"d{number}").mkdir(parents=True)
            (place / f"d{number}/file").write_text(f"{text}\n")
        (place / "config").write_text(f"{text}\n")
    (scene.walls.home / "only-outside").write_text(MARK)
    (scene.workspace / "link").symlink_to(scene.walls.home)
    flipping = subprocess.Popen([sys.executable, "-c", FLIP], cwd=scene.workspace)
    yield scene
    flipping.kill()
    flipping.wait()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["none", "bubblewrap", "launcher", "landlock"])
async def test_nothing_is_read_through_an_exchanged_folder(
    exchanged: Scene, probe_folder: Path, name: str
) -> None:
    made = None
    if name != "none":
        made = await confined(
            exchanged, await asyncio.to_thread(runnable, Engine(name), probe_folder)
        )
    before, folder = picture(exchanged.walls.home), searching(exchanged, made)
    end, rounds = time.monotonic() + 4, 0
    while time.monotonic() < end or not rounds:
        for tool, arguments in CALLS:
            with suppress(ToolError):
                text = await folder.text(tool, **arguments)
                assert MARK not in text.replace(f"for {MARK[:8]!r}", "")
                assert "only-outside" not in text.replace("'only-outside*'", "")
        rounds += 1
    assert picture(exchanged.walls.home) == before
    if made is not None:
        await made.close()
