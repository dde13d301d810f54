"""/recall on the screen: what is said, found and read."""

from __future__ import annotations

from pathlib import Path

from tests.support.provider import ScriptedProvider, call
from tests.support.provider import say as said
from tests.ui.screens.driving import items, running, say, until
from tests.ui.screens.test_rewind import RealWorld
from tui.app.services import SessionChoice
from tui.ui.widgets.conversation.items import NoticeItem


async def test_what_was_cut_is_found_and_read(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    build = call("run_command", command="seq 30000; echo the tusk is missing; seq 30000")
    world = RealWorld(tmp_path / "work", ScriptedProvider([build], said("It failed.")))
    async with running(world, choice=SessionChoice()) as (app, pilot):
        await say(pilot, "build")
        await until(pilot, lambda: not app.conversation.busy and app.chat.prompt.text == "")
        await say(pilot, "/recall")
        await until(pilot, lambda: "/recall WORDS searches" in app.chat.notice.text)
        await say(pilot, "/recall 77")
        await until(pilot, lambda: "nothing to read in message 77" in app.chat.notice.text)
        await say(pilot, "/recall tusk missing")
        await until(pilot, lambda: bool(items(app, NoticeItem)))
        assert "--- message 3 · cut ---" in items(app, NoticeItem)[-1].detail
        await say(pilot, "/recall 3 168920")
        await until(pilot, lambda: len(items(app, NoticeItem)) == 2)
        page = items(app, NoticeItem)[-1]
        assert page.text == "Recalled: 3 168920 (399 lines, more follows)"
        assert page.detail.splitlines()[:3] == ["30000", "the tusk is missing", "1"]
