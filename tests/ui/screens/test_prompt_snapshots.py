"""Pictures of what opens at the prompt: suggestions, searches, the palette."""

from __future__ import annotations

from collections.abc import Callable

from textual.pilot import Pilot

from tests.support.world import World
from tests.ui.screens.driving import answer, turn, until
from tests.ui.screens.pictures import (
    Picture,
    Pictures,
    Shot,
    Stage,
    Take,
    each_of,
    here,
    opened,
    press,
    prompt,
)
from tui.ui.screens.chat import ChatScreen
from tui.ui.screens.palette import PaletteScreen
from tui.ui.widgets.autocomplete import Suggestions


def typed(*keys: str) -> Callable[[Stage], Shot]:
    def make(stage: Stage) -> Shot:
        root = stage.workspace()
        world = World(root)
        for name in ("src/store.py", "src/index.py", "tests/test_store.py", "README.md"):
            path = root / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("")

        async def drive(pilot: Pilot[None]) -> None:
            await press(*keys)(pilot)
            popup = here(pilot.app).chat.query_one(Suggestions)
            await until(pilot, lambda: popup.opened and popup.size.height > 0)

        return stage.app(world), drive

    return make


def looked_back(*keys: str) -> Callable[[Stage], Shot]:
    async def drive(pilot: Pilot[None]) -> None:
        await opened(pilot)
        for entry in ("read the README", "run the tests", "why is test_store.py flaky? " * 6):
            here(pilot.app).chat.prompt.past.add(entry)
        await pilot.press(*"draft", "ctrl+r", *keys)
        await pilot.pause()

    return lambda stage: (stage.app(World()), drive)


def looked_for(word: str) -> Callable[[Stage], Shot]:
    def make(stage: Stage) -> Shot:
        world = World()
        world.untitled = True
        text = "The *test* is flaky: it opens a file and never closes it."
        world.scripts.append(turn(*answer(text)))

        async def drive(pilot: Pilot[None]) -> None:
            await prompt(
                "fix the test", lambda app: app.chat.status.state.turns == 1 and not app.chat.busy
            )(pilot)
            await pilot.press("ctrl+f", *word)
            await pilot.pause()

        return stage.app(world), drive

    return make


def palette(*keys: str) -> Callable[[Stage], Shot]:
    async def drive(pilot: Pilot[None]) -> None:
        await press("ctrl+p")(pilot)
        await until(pilot, lambda: isinstance(pilot.app.screen, PaletteScreen))
        await pilot.press(*keys)
        await pilot.pause()

    return lambda stage: (stage.app(World()), drive)


PICTURES: Pictures = {
    "commands": Picture(ChatScreen, typed("slash")),
    "command": Picture(ChatScreen, typed(*"/me"), state=True),
    "arguments": Picture(ChatScreen, typed(*"/theme", "space"), state=True),
    "files": Picture(ChatScreen, typed(*"look at @st"), state=True),
    "history": Picture(ChatScreen, looked_back()),
    "history without a match": Picture(ChatScreen, looked_back(*"zzz"), state=True),
    "find": Picture(ChatScreen, looked_for("test")),
    "find without a match": Picture(ChatScreen, looked_for("zzz"), state=True),
    "palette": Picture(PaletteScreen, palette(), fresh=True),
    "palette while typing": Picture(PaletteScreen, palette(*"con"), state=True, fresh=True),
}


@each_of(PICTURES)
def test_picture(take: Take, picture: Picture) -> None:
    take(picture)
