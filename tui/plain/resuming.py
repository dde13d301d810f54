"""The way to a session, as lines: trust, damage, another program, open calls, elevation (K47)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui.agent import events
from tui.agent.leftovers import Leftovers, left_open, new_findings
from tui.errors import CredentialsError, HoldfastError, SessionInUseError
from tui.figures import plural
from tui.live.services import Agent, SessionChoice
from tui.live.taking_up import forked_file, known, shelf_of, told, written_copy
from tui.messages import blocks_of, text_of
from tui.plain.reading import read
from tui.plain.setup import set_up
from tui.plain.spoken import said, sentence
from tui.screens.damage import beyond_interruption, in_words, where
from tui.session.records import Finding, Record, new_session_id
from tui.tools.process import end_group

if TYPE_CHECKING:
    from tui.plain.talk import Talk

_FINDINGS: Final = 20
_WORDS: Final = 300
RECHECK_S: Final = 2.0
"""How often it is looked whether everything is saved and the session still ours."""


async def first(talk: Talk, choice: SessionChoice | None) -> None:
    """The first session of a run. Raises where there is none to talk in, not even a new one."""
    untrusted = talk.services.untrusted
    if untrusted:
        await _ask_trust(talk, untrusted)
    if choice is None:
        choice = await pick(talk) or SessionChoice()
    await _lead(talk, choice)


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
    shown = rows[:_FINDINGS]
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
    more = "" if len(rows) <= _FINDINGS else "holdfast sessions list shows all"
    id_ = await talk.asker.choose([sentence(head, more)], labels)
    return next((SessionChoice(row.path) for row in shown if row.id == id_), None)


async def _lead(talk: Talk, choice: SessionChoice) -> None:
    """Open a session, with the questions on the way. Without a key, as often as it takes."""
    while True:
        try:
            if choice.foreign and choice.path is not None:
                wanted = await _from_elsewhere(talk, choice.path)
            elif (wanted := await _opened(talk, choice)) == choice:
                return
        except SessionInUseError as error:
            wanted = await _in_use(talk, choice, error)
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
    wanted = await _accepted(talk, choice, agent)
    if wanted != choice:
        await agent.close()
        return wanted
    await talk.let_go(typed=False)
    talk.agent = agent
    began = await agent.start()
    if any(record.type == "user" for record in agent.session.records):
        talk.face.say(*past(agent.session.records, agent.session.title))
    for event in began:
        talk.teller.tell(event)
    talk.bring_back()
    if agent.session.read_only:
        talk.face.say("This session is open read-only. /fork goes on with a copy.")
        return choice
    if choice.path is not None:
        await _left(talk, agent)
    await _ask_elevated(talk, agent)
    if any(isinstance(event, events.Parked) for event in began):
        await talk.go_on()  # it waits for the time that the server named
    return choice


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


async def _accepted(talk: Talk, choice: SessionChoice, agent: Agent) -> SessionChoice | None:
    """Damage is shown before a session is gone on with."""
    session, path = agent.session, choice.path
    if path is None or choice.read_only:
        return choice
    seen = await asyncio.to_thread(agent.view)
    found = (*session.findings, *seen.findings)
    found = beyond_interruption(new_findings(session.records, found))
    if not found:
        return choice
    return await damaged(talk, path, found, choice)


async def damaged(
    talk: Talk, path: Path, found: Sequence[Finding], choice: SessionChoice
) -> SessionChoice | None:
    """Say what is wrong with a session's file, and go the way that is chosen."""
    id_, clock = new_session_id(), talk.services.clock
    copy = path.with_name(f"{clock.now():%Y%m%dT%H%M%SZ}-{id_}.jsonl")
    ways = [
        ("continue", "continue; what comes next is added at the end of the file"),
        ("read_only", "open it read-only"),
        ("copy", f"write a repaired copy, {copy.name}, and go on with that"),
        ("back", "back"),
    ]
    match await talk.asker.choose(damage_lines(found), ways):
        case "continue":
            return choice
        case "read_only":
            return replace(choice, read_only=True)
        case "copy":
            await asyncio.to_thread(written_copy, path, copy, id_, clock)
            return SessionChoice(copy)
        case _:
            return None


def damage_lines(found: Sequence[Finding]) -> list[str]:
    """What was found, counted, then one by one."""
    places = "one place" if len(found) == 1 else f"{len(found):,} places"
    lines = [
        sentence(f"This session is damaged. It needs repair in {places}: {in_words(found)}"),
        "Nothing in the file is changed: it is repaired in memory.",
        *(said(f"{one.code}, {where(one)}: {one.action}") for one in found[:_FINDINGS]),
    ]
    if (more := len(found) - _FINDINGS) > 0:
        lines.append(f"And {more:,} more.")
    return lines


async def _from_elsewhere(talk: Talk, path: Path) -> SessionChoice | None:
    """Another agent's session becomes a copy of ours; its damage is told first."""
    from tui.session import importers  # noqa: PLC0415 - on demand

    shelf = shelf_of(talk.services)
    loaded = await asyncio.to_thread(importers.load, path)
    found = beyond_interruption(await asyncio.to_thread(shelf.damage, loaded))
    if found:
        ways = [("continue", "continue with a repaired copy of it"), ("back", "back")]
        if await talk.asker.choose(damage_lines(found), ways) != "continue":
            return None
    return SessionChoice(await asyncio.to_thread(shelf.take_over, path))


async def _in_use(
    talk: Talk, choice: SessionChoice, error: SessionInUseError
) -> SessionChoice | None:
    """Another program has the session: take it over, only read it, or go on with a copy."""
    mixed = "Two programs that write one session would mix it up"
    ways = [
        ("take_over", "take it over: the other program writes no more"),
        ("read_only", "open it read-only"),
        ("fork", "fork it: go on with a copy"),
        ("back", "back"),
    ]
    match await talk.asker.choose([sentence(error.message, mixed)], ways):
        case "take_over":
            return replace(choice, take_over=True)
        case "read_only":
            return replace(choice, read_only=True)
        case "fork" if choice.path is not None:
            return SessionChoice(await asyncio.to_thread(forked_file, choice.path, talk.services))
        case _:
            return None


async def _left(talk: Talk, agent: Agent) -> None:
    """What an earlier run left open, and what shall become of it."""
    root, records = talk.services.workspace, list(agent.session.records)
    left = await asyncio.to_thread(left_open, records, root)
    while left:
        ways = [("tell", "tell the model what is known, and let it go on")]
        if left.calls:
            ways.append(("again", "run what was interrupted again, with the questions it needs"))
        if left.orphans:
            ways.append(("stop", f"stop {plural(len(left.orphans), 'command')} that still runs"))
        ways.append(("leave", "leave it: the model sees that it was interrupted"))
        ids = [call.call_id for call in left.calls]
        match await talk.asker.choose(left_lines(left), ways):
            case "tell":
                talk.submit(told(left))
                return
            case "again":
                await talk.go_on(ids)
                return
            case "leave":
                await agent.close_calls(ids)
                talk.face.say("Left as it is. The model sees that it was interrupted.")
                return
            case "stop":
                await _stop(talk, left)
                left = Leftovers(left.calls)
            case _:
                return


def left_lines(left: Leftovers) -> list[str]:
    """Each call with what is known of it, each command that still runs."""
    lines = ["The last run of this session was interrupted."]
    lines += [
        said(f"Tool {call.tool} {call.label}".rstrip() + f": {known(call)}.") for call in left.calls
    ]
    lines += [
        said(f"Still running: process {each.pid}, {each.command}, since {each.started[:16]} UTC.")
        for each in left.orphans
    ]
    return lines


async def _stop(talk: Talk, left: Leftovers) -> None:
    clock = talk.services.clock
    ended = [await end_group(each.pid, each.born, clock) for each in left.orphans]
    if all(ended):
        talk.face.say(f"{plural(len(ended), 'command')} stopped.")
    else:
        talk.face.say("Not every command could be stopped.")


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


async def keep_looking(talk: Talk) -> None:
    """Try again what could not be saved, and notice a session that was taken away. Runs on."""
    told_of: str = ""
    lost: str = ""
    while True:
        await talk.services.clock.sleep(RECHECK_S)
        agent = talk.agent
        if agent is None:
            continue
        before, told_of = told_of, await agent.session.recheck()
        if agent.session.read_only and agent.session.lost and agent.session.id != lost:
            lost = agent.session.id
            talk.face.say(
                sentence(
                    f"This session was taken over. {agent.session.lost}",
                    "Nothing more is written here",
                    "/fork goes on with all that you have",
                )
            )
        elif told_of != before:
            talk.teller.tell(events.StorageChanged(not told_of, told_of))
