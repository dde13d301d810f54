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
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

os.environ["COLORTERM"] = "truecolor"
os.environ["TEXTUAL_ANIMATIONS"] = "none"
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"

from textual.pilot import Pilot

from tests.pictures import scenes
from tui.app.options.parser import parse
from tui.app.program import Program
from tui.batch.plan import plan
from tui.core.paths import folders
from tui.demo import tour_scene as touring
from tui.demo.tour_screen import TourApp, TourProgram
from tui.ui.app import HoldfastApp
from tui.ui.tasks.run import TasksApp

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
        for name in [*(n for n in os.environ if n.startswith("XDG_")), "HOLDFAST_HOME", "NO_COLOR"]:
            os.environ.pop(name, None)
        for name, text in scenes.FILES.items():
            (self.project / name).write_text(text, encoding="utf-8")
        for command in (
            ["init", "-q", "-b", "main"],
            ["add", "-A"],
            ["-c", "user.name=me", "-c", "user.email=me@localhost", "commit", "-qm", "begin"],
        ):
            subprocess.run(["git", *command], cwd=self.project, check=True)

    def practise(self, script: str) -> tuple[str, ...]:
        """The words for a practice model on this script."""
        path = self.root / "script.toml"
        path.write_text(script, encoding="utf-8")
        return ("--practice-script", str(path), "-C", str(self.project), *scenes.RULES)

    def ask(self, script: str, prompt: str) -> None:
        """Leave a session behind."""
        words = [*self.practise(script), "-p", prompt]
        subprocess.run(
            [sys.executable, "-m", "tui", *words],
            cwd=FOLDER.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=True,
        )

    def damage(self) -> None:
        """Do to one session what a power cut does: its last line is torn."""
        path = min(folders().sessions_of(self.project).glob("*.jsonl"))
        path.write_bytes(path.read_bytes()[:-60])


_HOME = "/home/me/code/tools"
"""What pictures show in the place of this machine's folder."""


@contextmanager
def opened(stage: Stage, scene: scenes.Scene) -> Generator[HoldfastApp | TasksApp]:
    """The app that a scene begins with."""
    match scene.app:
        case "tour":
            with touring.place() as root:
                yield TourApp(TourProgram(root, scene.theme))
        case "run":
            words = ["run", str(stage.project / "TASKS.md"), "--allow", "edit_file"]
            options = parse([*words, *stage.practise(scene.script)])
            yield TasksApp(plan(options), options, theme=scene.theme)
        case "chat":
            for prompt in scene.before:
                stage.ask(scene.script, prompt)
            if scene.damaged:
                stage.damage()
            words = [*stage.practise(scene.script), "--theme", scene.theme]
            yield HoldfastApp(Program(parse(words), None).opening, theme=scene.theme)


async def settled(pilot: Pilot[None], done: Callable[[], bool]) -> None:
    """Wait for the program to have come somewhere, 60 s at most."""
    for _ in range(600):
        await pilot.pause(0.1)
        if done():
            await pilot.pause(0.3)
            return
    raise TimeoutError("the program never came to what the picture shows")


async def take(app: HoldfastApp | TasksApp, scene: scenes.Scene, home: Path) -> None:
    async with app.run_test(size=scene.size) as pilot:
        if isinstance(app, HoldfastApp):
            await settled(pilot, lambda: app.ready and app.conversation.agent is not None)
        await scene.drive(app, pilot, settled)
        picture = app.export_screenshot(title="holdfast")
        assert len(str(home)) == len(_HOME), "columns would no longer fit"
        picture = picture.replace(str(home), _HOME)
        (FOLDER / f"{scene.name}.svg").write_text(picture, encoding="utf-8")


def main(names: list[str]) -> None:
    wanted = [scene for scene in scenes.SCENES if not names or scene.name in names]
    for scene in wanted:
        with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder:
            stage = Stage(Path(os.path.realpath(folder)))
            stage.build()
            with opened(stage, scene) as app:
                asyncio.run(take(app, scene, stage.root / "me"))
            print(scene.name)


main(sys.argv[1:])
