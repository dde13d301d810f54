"""Takes each picture anew and writes it beside the others.

The whole program runs, with the practice model on a script: real files, real commands, real
sessions, in a small project in a home of its own. Figures such as seconds differ from run to run,
so nothing is compared; the tests of the screens do that.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

os.environ["TEXTUAL_ANIMATIONS"] = "none"

from textual.pilot import Pilot

from tests.pictures import scenes
from tui.app import HoldfastApp
from tui.arguments import parse
from tui.fullscreen import Wiring

FOLDER = Path(__file__).parents[2] / ".github"


@dataclass(frozen=True, slots=True)
class Stage:
    """A home and a project in it, both empty of anything of the person's."""

    root: Path

    @property
    def project(self) -> Path:
        return self.root / "me" / "store"

    def build(self) -> None:
        self.project.mkdir(parents=True)
        os.environ["HOME"] = str(self.root / "me")
        os.environ["HOLDFAST_HOME"] = str(self.root / "holdfast")
        os.environ.pop("NO_COLOR", None)
        for name, text in scenes.FILES.items():
            (self.project / name).write_text(text, encoding="utf-8")
        for command in (
            ["init", "-q", "-b", "main"],
            ["add", "-A"],
            ["-c", "user.name=me", "-c", "user.email=me@localhost", "commit", "-qm", "begin"],
        ):
            subprocess.run(["git", *command], cwd=self.project, check=True)

    def app(self, script: str, theme: str) -> HoldfastApp:
        path = self.root / "script.toml"
        path.write_text(script, encoding="utf-8")
        words = ["--practice-script", str(path), "-C", str(self.project), "--theme", theme]
        return HoldfastApp(Wiring(parse([*words, *scenes.RULES]), None).opening, theme=theme)


async def settled(pilot: Pilot[None], done: Callable[[], bool]) -> None:
    """Wait for the program to have come somewhere, 60 s at most."""
    for _ in range(600):
        await pilot.pause(0.1)
        if done():
            await pilot.pause(0.3)
            return
    raise TimeoutError("the program never came to what the picture shows")


async def take(stage: Stage, scene: scenes.Scene) -> None:
    app = stage.app(scene.script, scene.theme)
    async with app.run_test(size=scene.size) as pilot:
        await settled(pilot, lambda: app.ready and app.bridge.agent is not None)
        drive: Callable[[HoldfastApp, Pilot[None], scenes.Settled], Awaitable[None]] = scene.drive
        await drive(app, pilot, settled)
        picture = app.export_screenshot(title="holdfast")
        (FOLDER / f"{scene.name}.svg").write_text(picture, encoding="utf-8")


def main(names: list[str]) -> None:
    wanted = [scene for scene in scenes.SCENES if not names or scene.name in names]
    for scene in wanted:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            stage = Stage(Path(os.path.realpath(folder)))
            stage.build()
            asyncio.run(take(stage, scene))
            print(scene.name)


main(sys.argv[1:])
