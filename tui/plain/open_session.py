"""The way to a session, as lines: trust, which one, how a model is reached, elevation (K47)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tui.agent import events
from tui.app.ports import Agent, SessionChoice
from tui.app.resume import RECHECK_S, Watch
from tui.core.errors import CredentialsError, HoldfastError, SessionInUseError
from tui.core.formatting import plural
from tui.core.messages import blocks_of, text_of
from tui.plain.conversation import Talk
from tui.plain.credentials_prompt import set_up
from tui.plain.interrupted_work import ask_left
from tui.plain.markdown_to_speech import read
from tui.plain.resume_questions import accepted, from_elsewhere, in_use
from tui.plain.speech_text import said, sentence
from tui.session.records import Record

_LISTED: Final = 20
_WORDS: Final = 300


async def first(talk: Talk, choice: SessionChoice | None) -> None:
    """The first session of a run. Raises where there is none to talk in, not even a new one."""
    untrusted = talk.services.untrusted
    if untrusted:
        await _ask_trust(talk, untrusted)
    if choice is None:
        choice = await pick(talk) or SessionChoice()
    await _lead(talk, choice)
    talk.opening = False


async def change(talk: Talk, choice: SessionChoice) -> None:
    """Leave the session that is open for another one."""
    if talk.at_rest():
        try:
            await _lead(talk, choice)
        except HoldfastError as error:
            talk.explain(error)


async def pick(talk: Talk) -> SessionChoice | None:
    """Let the person choose a session of this folder."""
    rows = await talk.services.list_sessions()
    if not rows:
        talk.face.say("There is no session of this folder yet.")
        return None
    current = talk.agent.session.id if talk.agent else ""
    shown = rows[:_LISTED]
    labels = [
        (
            row.id,
            f"{row.title or 'untitled'}, {row.updated.astimezone():%d %B %H:%M},"
            f" {plural(row.messages, 'message')}"
            + (f", {row.state.replace('_', ' ')}" if row.state != "ok" else "")
            + (", open now" if row.id == current else ""),
        )
        for row in shown
    ]
    head = f"{plural(len(rows), 'session')} of this folder, the newest first."
    more = "" if len(rows) <= _LISTED else "holdfast sessions list shows all"
    id_ = await talk.asker.choose([sentence(head, more)], labels)
    return next((SessionChoice(row.path) for row in shown if row.id == id_), None)


async def keep_looking(talk: Talk) -> None:
    """Say what becomes of the saving, and that a session was taken away. Runs on."""
    watch, agent = Watch(), talk.agent
    while True:
        await talk.services.clock.sleep(RECHECK_S)
        if agent is not talk.agent:
            watch.opened()
            agent = talk.agent
        if agent is None:
            continue
        changed, lost = await watch.look(agent.session)
        if lost:
            talk.face.say(
                sentence(
                    f"This session was taken over. {agent.session.lost}",
                    "Nothing more is written here",
                    "/fork goes on with all that you have",
                )
            )
        elif changed is not None:
            talk.teller.tell(changed)


async def _lead(talk: Talk, choice: SessionChoice) -> None:
    """Open a session, with the questions on the way. Without a key, as often as it takes."""
    while True:
        try:
            if choice.foreign and choice.path is not None:
                wanted = await from_elsewhere(talk, choice.path)
            elif (wanted := await _opened(talk, choice)) == choice:
                return
        except SessionInUseError as error:
            wanted = await in_use(talk, choice, error)
        except CredentialsError as error:
            if not await set_up(talk, error.message):
                if talk.agent is None:
                    raise
                return
            continue
        if wanted is None and talk.agent:
            return
        choice = wanted or SessionChoice()


async def _opened(talk: Talk, choice: SessionChoice) -> SessionChoice | None:
    """Open a session; the choice where it is open, else the one that was made instead."""
    if choice.path is not None:
        talk.face.say("Opening the session.")
    if talk.agent is not None and talk.agent.session.path == choice.path is not None:
        await talk.let_go(typed=False)  # opened again, by this program
    agent = await talk.services.make_agent(choice, talk.asker)
    wanted: SessionChoice | None = None
    try:
        wanted = await accepted(talk, choice, agent)
    finally:
        if wanted != choice:
            await agent.close()
    if wanted == choice:
        await talk.let_go(typed=False)
        talk.agent = agent
        await _begin(talk, agent, choice)
    return wanted


async def _begin(talk: Talk, agent: Agent, choice: SessionChoice) -> None:
    """Say where an open session stands, and what it waits for."""
    began = await agent.start()
    if any(record.type == "user" for record in agent.session.records):
        talk.face.say(*past(agent.session.records, agent.session.title))
    for event in began:
        talk.teller.tell(event)
    talk.bring_back()
    if agent.session.read_only:
        talk.face.say("This session is open read-only. /fork goes on with a copy.")
        return
    if choice.path is not None:
        await ask_left(talk, agent)
    await _ask_elevated(talk, agent)
    if any(isinstance(event, events.Parked) for event in began):
        talk.go_on()  # it waits for the time that the server named


def past(records: Sequence[Record], title: str) -> list[str]:
    """Where a session stands: its title, what was said last."""
    prompts = [str(r.data["text"]) for r in records if r.type == "user" and r.data.get("text")]
    answers = (
        text_of(blocks_of(r.data.get("content")))
        for r in reversed(records)
        if r.type == "assistant"
    )
    answer = next((text for text in answers if text.strip()), "")
    lines = [sentence(f"Session: {title or 'untitled'}, {plural(len(prompts), 'prompt')}")]
    if prompts:
        lines.append(f"You said last: {_short(prompts[-1])}")
    if answer:
        lines.append(f"Holdfast said last: {_short(' '.join(read(answer)))}")
    return lines


def _short(text: str) -> str:
    text = said(text)
    return text if len(text) <= _WORDS else f"{text[:_WORDS].rstrip()} ..."


async def _ask_trust(talk: Talk, brought: Sequence[str]) -> None:
    lines = [
        "Trust this folder?",
        (
            "It brings files that change how holdfast works here: settings, instructions, commands."
            " Until you trust it they can only make things stricter."
        ),
        *(f"File: {said(name)}" for name in brought),
    ]
    trusted = await talk.asker.confirm(lines, "trust it", "not now")
    try:
        await talk.services.decide_trust(trusted)
    except HoldfastError as error:
        talk.explain(error)


async def _ask_elevated(talk: Talk, agent: Agent) -> None:
    """A session that was elevated is so again only where the person says so (K47)."""
    if not agent.was_elevated:
        return
    lines = [
        "Elevate again?",
        (
            "This session was elevated when it was left: nothing was asked, and the file tools"
            " could leave the folder. It is not elevated now."
        ),
    ]
    if await talk.asker.confirm(lines, "elevate it", "ask me as usual"):
        talk.submit("/elevated on")
