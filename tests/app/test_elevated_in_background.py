"""What is started in the background is elevated only where the screen is, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.test_conversation import Recorder, until
from tests.support.world import World
from tui.app.background import BackgroundSession
from tui.app.conversation import Conversation
from tui.app.dialog_data import ChoiceQuestion, Question
from tui.app.open_session import open_first
from tui.app.options.arguments import Options
from tui.app.router import route
from tui.app.services import SessionChoice
from tui.core.paths import Folders


class Starter(Recorder):
    """Starts what it is asked about."""

    async def choose(self, question: Question) -> str | None:
        assert isinstance(question, ChoiceQuestion)
        self.said.append(question.text)
        return "start"


@pytest.mark.parametrize("command", ["/every 10m look", "/bg look", "/bg /goal look"])
@pytest.mark.parametrize("now", ["elevated", "off again", "never"])
async def test_what_starts_elevated_in_the_background_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, now: str
) -> None:
    world = World(tmp_path)
    world.background_options = Options().having(yolo=now != "never")
    frontend = Starter()
    conversation = Conversation(world.services(), frontend)
    await open_first(conversation, SessionChoice())
    if now == "elevated":
        await route(conversation, "/elevated on")
        agent = conversation.agent
        await until(lambda: agent is not None and agent.directives.elevated)
    begun: list[Options] = []

    def start(_: Folders, options: Options) -> BackgroundSession:
        begun.append(options)
        return BackgroundSession(id="s", path="", cwd="", pid=0, born="", host="")

    monkeypatch.setattr("tui.app.background.start", start)
    await route(conversation, command)
    await until(lambda: any("Running in the background" in line for line in frontend.said))
    elevated = begun[0].permissions.yolo
    assert elevated == any("It starts elevated" in line for line in frontend.said)
    assert elevated == (now == "elevated")
    await conversation.close()
