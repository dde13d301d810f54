"""Pictures of images in the prompt, in the conversation, and in the inspector."""

from __future__ import annotations

from textual import events as keys
from textual.pilot import Pilot

from tests.context.pictures import jpeg, png
from tests.support.world import World
from tests.ui.screens.driving import answer, until
from tests.ui.screens.pictures import Picture, Pictures, Shot, Stage, Take, each_of, here, opened
from tui.core import facts
from tui.core.clipboard import Clip
from tui.core.messages import Usage
from tui.ui.screens.chat import ChatScreen


def _world(stage: Stage) -> World:
    (stage.folder / "shot.png").write_bytes(png(1280, 800) + b"\0" * 84 * 1024)
    (stage.folder / "a photo.jpg").write_bytes(jpeg(1600, 1200) + b"\0" * 2_400_000)
    world = World()
    world.untitled = True
    return world


async def _attach(pilot: Pilot[None], stage: Stage) -> None:
    await opened(pilot)
    app = here(pilot.app)
    prompt = app.chat.prompt
    for name, text in (("shot.png", "What is wrong in "), ("a photo.jpg", ", unlike ")):
        prompt.add_paste(text)
        prompt.post_message(keys.Paste(f"'{stage.folder}/{name}'"))
        await until(pilot, lambda name=name: f": {name} " in prompt.text)
    await pilot.press("question_mark")


def typed(stage: Stage) -> Shot:
    async def drive(pilot: Pilot[None]) -> None:
        await _attach(pilot, stage)
        await pilot.pause()

    return stage.app(_world(stage)), drive


def sent(stage: Stage) -> Shot:
    world = _world(stage)

    async def drive(pilot: Pilot[None]) -> None:
        await _attach(pilot, stage)
        app = here(pilot.app)
        text = app.chat.prompt.text
        steps = answer("The button is cut off on the right.")
        world.scripts.append([facts.UserMessage(text), *steps])
        await pilot.press("enter")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        app.chat.prompt.past.add(text)
        world.scripts.append([facts.TurnFinished("done", Usage(), None)])
        await pilot.press("up")
        await pilot.pause()

    return stage.app(world), drive


def out_of_reach(stage: Stage) -> Shot:
    async def drive(pilot: Pilot[None]) -> None:
        await opened(pilot)
        app = here(pilot.app)
        clip = Clip(
            problem="Can't reach the clipboard over ssh.",
            hint="Paste or drop the file's path, or write @path.",
        )
        app.conversation.images.clipboard = lambda: clip
        await pilot.press("ctrl+v")
        await until(pilot, lambda: "Can't reach the clipboard" in app.chat.notice.text)

    return stage.app(_world(stage)), drive


PICTURES: Pictures = {
    "images in the prompt": Picture(ChatScreen, typed),
    "images in the conversation": Picture(ChatScreen, sent),
    "no clipboard": Picture(ChatScreen, out_of_reach, state=True),
}


@each_of(PICTURES)
def test_picture(take: Take, picture: Picture) -> None:
    take(picture)
