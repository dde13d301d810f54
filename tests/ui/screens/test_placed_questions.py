"""Questions of placed tasks in the dialogs of the screen."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from tests.batch.cluster.test_questions import CALL, DECISION, Run, run
from tests.support.world import World
from tests.ui.screens.driving import running, until
from tui.permissions.types import Answer
from tui.ui.screens.modal_approver import ModalApprover
from tui.ui.widgets.approval import ApprovalModal

__all__ = ["run"]
HIDING = "make \u202eslaitnederc\u202c\u200b\x1b[8m; rm -rf ~\x1b[0m"
SPELT = "make \\u202eslaitnederc\\u202c\\u200b\\x1b[8m; rm -rf ~\\x1b[0m"


async def test_a_dialog_shows_whose_question_it_is_and_hides_nothing_of_it(run: Run) -> None:
    call = replace(CALL, preview=HIDING, agent=f"explorer {HIDING}")
    world = World()
    async with running(world, (160, 40)) as (app, pilot):
        driver = run.driver(ModalApprover(app, app.chat))
        asking = asyncio.ensure_future(run.approver().ask(call, DECISION))
        await run.until(driver, lambda: isinstance(app.screen, ApprovalModal))
        modal = app.screen
        assert isinstance(modal, ApprovalModal)
        await until(pilot, lambda: modal.is_mounted)
        title = str(modal.query_one("#box").border_title)
        assert f"task 4, explorer {SPELT}" in title
        shown = [str(part.render()) for part in modal.query("#preview Static").results()]
        assert f"$ {SPELT}" in shown
        world.clock.elapsed += 1
        await pilot.press("2")
        await run.until(driver, asking.done)
        assert asking.result() == Answer("session")
        assert app.screen is app.chat
        await driver.close()
