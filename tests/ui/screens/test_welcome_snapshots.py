"""Pictures of the first screen without a key."""

from __future__ import annotations

from collections.abc import Callable

from textual.pilot import Pilot
from textual.widgets import OptionList

from tests.support.world import World
from tests.ui.screens.driving import until
from tests.ui.screens.pictures import Picture, Pictures, Shot, Stage, Take, each_of, press
from tui.app.dialog_data import Account
from tui.core.errors import CredentialsError
from tui.settings.local_servers import LocalServer
from tui.ui.screens.welcome import WelcomeScreen


def keyless(*keys: str, found: bool = True, sign_in: str = "") -> Callable[[Stage], Shot]:
    def make(stage: Stage) -> Shot:
        world = World()
        world.account = Account(sign_in=sign_in)
        world.refusals.append(CredentialsError("No API key found."))
        if found:
            ollama = LocalServer("Ollama", "http://127.0.0.1:11434", ("llama3.2", "qwen3"))
            world.servers = (ollama,)

        async def drive(pilot: Pilot[None]) -> None:
            await press()(pilot)
            listing = pilot.app.screen.query_one("#choices", OptionList)
            await until(pilot, lambda: listing.option_count == 4 + found + bool(sign_in))
            world.clock.elapsed += 1
            await pilot.press(*keys)
            await pilot.pause()

        return stage.app(world), drive

    return make


PICTURES: Pictures = {
    "key": Picture(WelcomeScreen, keyless()),
    "nothing pasted": Picture(WelcomeScreen, keyless("enter", "enter"), state=True),
    "server found": Picture(WelcomeScreen, keyless("down")),
    "another server": Picture(WelcomeScreen, keyless("down", found=False), state=True),
    "wrong address": Picture(
        WelcomeScreen, keyless("down", "enter", *"ftp://here", "enter", found=False), state=True
    ),
    "sign-in": Picture(WelcomeScreen, keyless(sign_in="work"), state=True),
    "practice": Picture(WelcomeScreen, keyless("end", "up"), state=True),
}


@each_of(PICTURES)
def test_picture(take: Take, picture: Picture) -> None:
    take(picture)
