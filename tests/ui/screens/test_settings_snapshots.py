"""Pictures of the settings: all of them, one in its field, a list, none found, a broken file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from textual.pilot import Pilot

from tests.support.clock import FakeClock
from tests.support.world import World
from tests.ui.screens.driving import until
from tests.ui.screens.pictures import (
    Drive,
    Picture,
    Pictures,
    Shot,
    Stage,
    Take,
    each_of,
    here,
    prompt,
)
from tui.core.paths import folders
from tui.ui.screens.settings import SettingsScreen
from tui.ui.widgets.questions import EditText

TEXT = """\
# mine
model = "claude-opus-5-5"
notify = "off"

[retry]
max_attempts = 5

[guard.bytes]
grep_search = 30000

[permissions]
allow = ["read_file", "run_command(git status*)"]

[mcp.time]
command = ["uvx", "mcp-server-time"]
"""


def settings(*keys: str, text: str = TEXT, words: str = "") -> Callable[[Stage], Shot]:
    """The settings of a file, after some keys."""

    def make(stage: Stage) -> Shot:
        home = Path("/home/me/.config/holdfast-home")
        stage.monkeypatch.setenv("HOLDFAST_HOME", str(stage.folder))
        folders().config.mkdir(parents=True)
        folders().config_file.write_text(text)
        world = World(Path("/home/me/proj"))
        world.env = {"ANTHROPIC_BASE_URL": "http://me:word@127.0.0.1:8080"}
        world.overrides = {"permissions": {"deny": ["run_command(git push*)"]}}
        for name in (
            "ui.screens.settings",
            "settings.layers",
            "settings.edit",
        ):
            stage.monkeypatch.setattr(f"tui.{name}.shorten", _short(stage.folder, home))
        return stage.app(world), _drive(f"/config {words}".strip(), *keys)

    return make


def _short(folder: Path, home: Path) -> Callable[[Path], str]:
    def shorten(path: Path) -> str:
        return str(path).replace(str(folder), str(home)).replace("/home/me", "~")

    return shorten


def _drive(command: str, *keys: str) -> Drive:
    async def drive(pilot: Pilot[None]) -> None:
        await prompt(command, lambda app: isinstance(app.screen, SettingsScreen))(pilot)
        screen = here(pilot.app).screen
        assert isinstance(screen, SettingsScreen)
        await until(pilot, lambda: bool(screen.shown) or screen.has_class("-broken"))
        clock = here(pilot.app).conversation.services.clock
        assert isinstance(clock, FakeClock)
        clock.elapsed += 1  # the next Enter is not the held one that opened it
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        own = [worker for worker in screen.workers if worker.node is screen]
        await until(pilot, lambda: all(w.is_finished for w in own) or keys[-1:] == ("enter",))

    return drive


PICTURES: Pictures = {
    "settings": Picture(SettingsScreen, settings("down", "down", "down")),
    "field": Picture(
        SettingsScreen,
        settings("enter", "backspace", "x", "enter", words="max_attempts"),
        True,
        fresh=True,
    ),
    "rules": Picture(SettingsScreen, settings(words="permissions"), True),
    "list": Picture(EditText, settings("enter", words="permissions.allow")),
    "none": Picture(SettingsScreen, settings("z", "z"), True),
    "broken": Picture(SettingsScreen, settings(text="[retry]\nmax_attempts = -1\n"), True),
}


@each_of(PICTURES)
def test_picture(take: Take, picture: Picture) -> None:
    take(picture)
