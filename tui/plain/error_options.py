"""What a person may do about a failed request, as lines; see `tui.app.error_options`."""

from __future__ import annotations

from tui.agent.events import ErrorRaised
from tui.app.dialog_data import Trouble
from tui.app.error_options import RUNGS, asked_last, refused, trouble_of, unanswered
from tui.app.ports import Agent, SessionChoice
from tui.plain.context_commands import context
from tui.plain.conversation import Talk
from tui.plain.credentials_prompt import set_up
from tui.plain.models import choose_model
from tui.plain.open_session import change
from tui.plain.speech_text import said, sentence

_FINDINGS = 20
_NOTHING = "The check of the request finds nothing that is against the rules it knows."


async def after(talk: Talk, error: ErrorRaised) -> None:
    """Offer the ways on from an error that would only come again."""
    agent = talk.agent
    if agent is None or (trouble := trouble_of(agent, error)) is None:
        return
    name = await talk.asker.choose(
        trouble_lines(trouble), [(way.name, f"{way.label}: {way.help}") for way in trouble.ways]
    )
    if name is None or talk.agent is not agent:
        talk.face.say("Everything is kept as it is. /retry shows the ways on again.")
    elif name in RUNGS:
        for event in await agent.repair(RUNGS[name][0]):
            talk.teller.tell(event)
        talk.go_on()
    elif name == "retry":
        talk.go_on()
    elif name == "model":
        if await choose_model(talk):
            talk.go_on()
    elif name == "key":
        await _other_key(talk, agent)
    elif name == "context":
        await context(talk, "")
    else:
        last = asked_last(agent)
        await change(talk, SessionChoice())
        talk.begin_with = talk.begin_with or last


def trouble_lines(trouble: Trouble) -> list[str]:
    """What is known of a failed request."""
    status = f"Status {trouble.status}" if trouble.status else ""
    id_ = f"request {trouble.request_id}" if trouble.request_id else ""
    lines = [sentence(trouble.title, ", ".join(filter(None, (status, id_))))]
    lines += [sentence(trouble.meaning)] if trouble.meaning else []
    if trouble.before:
        lines.append(sentence(f"Tried already: {', '.join(trouble.before)}"))
    if trouble.findings is not None:
        lines += [f"Finding: {said(one)}" for one in trouble.findings[:_FINDINGS]] or [_NOTHING]
        if (more := len(trouble.findings) - _FINDINGS) > 0:
            lines.append(f"And {more:,} more findings.")
    return lines


async def retry(talk: Talk, argument: str) -> None:
    """/retry: do not wait any longer, or go on with the turn that stopped."""
    agent, say = talk.agent, talk.face.say
    other = argument.strip().lower() == "other"
    if agent is None:
        say("No session is open yet.")
    elif argument.strip() and not other:
        say("/retry sends it again now, /retry other with another model.")
    elif agent.other_model() if other else agent.retry_now():
        say("Going on with another model." if other else "Sent again now.")
    elif talk.busy:
        what = "switched from" if other else "waited for"
        say(f"There is nothing to be {what} now: the agent is at work. Ctrl+C stops it.")
    elif other:
        say("Nothing is waited for now. /model switches to another model.")
    elif failed := refused(agent):
        await after(talk, failed)
    elif unanswered(agent.session.records):
        talk.go_on()
    else:
        say("There is nothing to send again: the last turn is complete.")


async def _other_key(talk: Talk, agent: Agent) -> None:
    """Ask for a key, then open the session with it and go on."""
    path = agent.session.path
    if await set_up(talk, "The server refused the key."):
        await change(talk, SessionChoice(path))
        talk.go_on()
