"""/bg: hands the session that is open to a process in the background."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from tui.agent.interrupted_work import turn_is_open
from tui.app import background
from tui.app.open_session import open_choice
from tui.app.router import require_typed
from tui.app.services import SessionChoice
from tui.core.errors import HoldfastError
from tui.session.records import last_of_turn

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.app.conversation import Conversation
    from tui.app.options.arguments import Options


async def bg(conversation: Conversation, prompt: str) -> None:
    """Start another session in the background, or hand this one over and leave."""
    services, say = conversation.services, conversation.frontend.say
    options = options_now(conversation)
    if options is None:
        say("Nothing can run in the background here.", "warning")
        return
    if prompt:
        require_typed(prompt)
        start = background.start
        one = await asyncio.to_thread(start, services.folders, replace(options, prompt=prompt))
        started, attach = background.started_words(one)
        also = f" {background.ELEVATED}" if options.permissions.yolo else ""
        say(f"{started}.{also}", "success", hint=f"{attach}.")
        return
    agent = conversation.open_agent()
    if agent is None:
        return
    if agent.session.path is None or agent.session.read_only:
        why = "This session isn't saved" if agent.session.path is None else "It is read-only"
        say(f"{why}, so no other process can continue it.", "warning")
    elif not conversation.busy:
        say("Nothing runs.", hint="/bg PROMPT starts another session in the background.")
    elif await _paused(conversation, agent):
        await _hand_over(conversation, agent, options)


def options_now(conversation: Conversation) -> Options | None:
    """The options of another session that works as this one does now: elevated if this screen was
    started so, and still is. None where none can be started."""
    options, agent = conversation.services.background_options(), conversation.agent
    if options is None or agent is None or agent.directives.elevated:
        return options
    return options.having(yolo=False)


async def _paused(conversation: Conversation, agent: Agent) -> bool:
    """Wait until the turn can be continued elsewhere. False where there is nothing to continue."""
    say, stop = conversation.frontend.say, conversation.frontend.stop_key
    conversation.pause()
    say("Handing over to the background after this step.", hint=f"{stop} stops the turn instead.")
    while conversation.busy:
        await conversation.at_rest()
    last = last_of_turn(agent.session.records)
    if agent is not conversation.agent or last is None or last.type == "interrupt":
        say("Stopped, so nothing was handed over.")
        return False
    if not turn_is_open(agent.session.records):
        say("The turn is over: nothing is left for the background.")
        return False
    return True


async def _hand_over(conversation: Conversation, agent: Agent, options: Options) -> None:
    """Close the session, let a process continue it, and leave; opened again where that fails."""
    path = agent.session.path
    assert path is not None
    mode = {"ask": "ask", "accept_edits": "edits", "plan": "plan"}[agent.permissions.mode]
    options = options.having(
        resume=str(path),
        model=None if options.models.practice else agent.models.current,
        permission_mode=mode,  # pyright: ignore[reportArgumentType] - its names on the command line
        plan=False,
        yolo=agent.directives.elevated,
        add_dirs=agent.permissions.folders[1:],
    )
    home = conversation.services.folders
    await conversation.close(leave=True)
    try:
        await asyncio.to_thread(background.start, home, options, go_on=True)
    except HoldfastError as error:
        conversation.frontend.say(error.message, "error", hint=error.hint)
        await open_choice(conversation, SessionChoice(path, go_on=True))
        return
    if leave := conversation.frontend.view("quit", ""):
        await leave
