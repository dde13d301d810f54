"""What a person may do about a failed request: send it again, repair it, change key or model.

A wait is shortened by the banner's keys and by /retry. Where the same request would fail again, a
dialog shows what is wrong and the ways on; it opens by itself after the turn, and by /retry.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from tui.agent.events import ErrorRaised
from tui.app.dialog_data import Trouble
from tui.app.error_options import RUNGS, asked_last, refused, trouble_of, unanswered
from tui.app.ports import Agent, SessionChoice
from tui.ui.screens.recovery import RecoveryScreen
from tui.ui.session_flow import model_switch
from tui.ui.session_flow.command_context import Desk
from tui.ui.session_flow.credentials_prompt import set_up
from tui.ui.turn_controller import TurnEnded


def turn_ended(desk: Desk, ended: TurnEnded) -> None:
    """After a turn: show the ways on where it failed by what would only come again."""
    if ended.outcome == "failed" and ended.error and desk.app.screen is desk.bridge.chat:
        _show(desk, ended.error)


async def retry(desk: Desk, argument: str) -> None:
    """/retry: do not wait any longer, or go on with the turn that stopped."""
    bridge = desk.bridge
    agent, say = bridge.agent, bridge.chat.notice.say
    other = argument.strip().lower() == "other"
    if agent is None:
        say("No session is open yet.")
    elif argument.strip() and not other:
        say("/retry sends it again now, /retry other with another model.", "warning")
    elif agent.other_model() if other else agent.retry_now():
        return
    elif bridge.busy:
        what = "switched from" if other else "waited for"
        say(f"There is nothing to be {what} now: the agent is at work.", hint="Esc stops it.")
    elif other:
        say("Nothing is waited for now.", hint="/model switches to another model.")
    elif failed := refused(agent):
        _show(desk, failed)
    elif not (unanswered(agent.session.records) and bridge.go_on()):
        say("There is nothing to send again: the last turn is complete.")


def _show(desk: Desk, error: ErrorRaised) -> None:
    """Show the ways on from an error, where there are any but sending the same again."""
    agent = desk.bridge.agent
    if agent is not None and (trouble := trouble_of(agent, error)):
        _work(desk, _lead(desk, agent, trouble))


async def _lead(desk: Desk, agent: Agent, trouble: Trouble) -> None:
    """Show the dialog and go the way that is chosen."""
    bridge = desk.bridge
    chat = bridge.chat
    screen = RecoveryScreen(trouble, chat.clock, chat.prompt.insert)
    name = await desk.app.push_screen_wait(screen)
    if name is None or bridge.agent is not agent:
        chat.notice.say("Everything is kept as it is.", hint="/retry shows the ways on again.")
        return
    if name in RUNGS:
        for event in await agent.repair(RUNGS[name][0]):
            bridge.presenter.show(event)
        bridge.go_on()
    elif name == "retry":
        bridge.go_on()
    elif name == "model":
        if await model_switch.choose(desk):
            bridge.go_on()
    elif name == "key":
        await _other_key(desk, agent)
    elif name == "context":
        await desk.app.run_action("app.command('context')")
    else:
        await _begin_anew(desk, agent)


async def _other_key(desk: Desk, agent: Agent) -> None:
    """Ask for a key, then open the session with it and go on."""
    path = agent.session.path
    said = await set_up(desk.app, desk.bridge.services, "The server refused the key.")
    if said is None:
        return
    await desk.bridge.close()  # it is opened again, by this program
    await desk.open_session(SessionChoice(path)).wait()
    desk.bridge.chat.notice.say(said, "success")
    desk.bridge.go_on()


async def _begin_anew(desk: Desk, agent: Agent) -> None:
    """A new session, with what was asked last laid ready in the prompt."""
    last = asked_last(agent)
    await desk.open_session(SessionChoice()).wait()
    if last and not desk.bridge.chat.prompt.text:
        desk.bridge.chat.prompt.put(last)


def _work(desk: Desk, work: Coroutine[Any, Any, object]) -> None:
    desk.app.run_worker(work, group="recovery", exclusive=True)
