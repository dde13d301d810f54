"""/model: which model answers, and whether the session fits it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.app.commands.models import rows
from tui.core.formatting import tokens

if TYPE_CHECKING:
    from tui.ui.session_flow.command_context import Desk


async def model(desk: Desk, name: str) -> None:
    """/model: choose the model of the next request, or name it."""
    bridge = desk.bridge
    if bridge.agent is None:
        bridge.chat.notice.say("No session is open yet.")
    elif name:
        desk.app.run_worker(_switch(desk, name), group="recovery", exclusive=True)
    else:
        desk.app.run_worker(choose(desk), group="recovery", exclusive=True)


async def choose(desk: Desk) -> bool:
    """Let the person choose, from a worker. Whether another model is asked now."""
    from tui.ui.screens.models import ModelsScreen  # noqa: PLC0415 - on demand

    agent = desk.bridge.agent
    if agent is None:
        return False
    name = await desk.app.push_screen_wait(ModelsScreen(await rows(desk.bridge.services, agent)))
    return name is not None and await _switch(desk, name)


async def _switch(desk: Desk, name: str) -> bool:
    """Ask another model from the next request on; one that is too small only if that is meant."""
    from tui.ui.widgets.confirmation import Confirmation, Question  # noqa: PLC0415 - on demand

    bridge = desk.bridge
    agent, say = bridge.agent, bridge.chat.notice.say
    if agent is None:
        return False
    if name == agent.model:
        say(f"The model is {name} already.")
        return False
    fit = agent.fits(await bridge.services.model_info(name))
    if not fit.ok:
        question = Question(
            f"Switch to {name}?",
            f"The session needs {tokens(fit.tokens)} tokens with what the next answer takes, and"
            f" its window holds {tokens(fit.window)}. The oldest part would be shortened.",
            yes="Switch",
            no="Stay",
        )
        if not await desk.app.push_screen_wait(Confirmation(question)):
            return False
    before = agent.model
    await bridge.use_model(name)
    say(f"From the next request on: {name}.", "success", hint=f"/model {before} goes back.")
    return True
