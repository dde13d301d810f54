"""Commands about the session as a whole."""

from __future__ import annotations

import asyncio

from tui.app.commands.export import FORMATS, written
from tui.app.commands.rewind import Point, outcome_lines, points, restored
from tui.app.damage_report import beyond_interruption
from tui.app.ports import Agent, SessionChoice
from tui.app.resume import forked
from tui.context.file_changes import RestoredFile
from tui.core.errors import UsageError
from tui.core.formatting import plural
from tui.core.paths import shorten
from tui.plain import error_options
from tui.plain.conversation import Talk, free
from tui.plain.open_session import change, pick
from tui.plain.resume_questions import damaged
from tui.plain.speech_text import said

_POINTS = 30


async def new(talk: Talk, _: str) -> None:
    if talk.at_rest():
        await talk.save_first()
        await change(talk, SessionChoice())


async def resume(talk: Talk, wanted: str) -> None:
    if not talk.at_rest():
        return
    if not wanted:
        if choice := await pick(talk):
            await change(talk, choice)
        return
    rows = await talk.services.list_sessions()
    found = [row for row in rows if row.id.startswith(wanted)]
    if len(found) == 1:
        await change(talk, SessionChoice(found[0].path))
        return
    many = f"{len(found)} sessions begin" if found else "No session of this folder begins"
    raise UsageError(f"{many} with {wanted}.", hint="/resume lists them.")


def _begun(talk: Talk, what: str) -> Agent:
    """The agent whose session holds something. Raises UsageError where there is nothing yet."""
    if talk.agent is None or not talk.agent.session.records:
        raise UsageError(f"There is nothing to {what} yet.")
    return talk.agent


async def rename(talk: Talk, title: str) -> None:
    if not title:
        raise UsageError("What is the title?", hint="/rename a few words")
    agent = _begun(talk, "rename")
    agent.session.append("title", title=" ".join(title.split()))
    talk.face.say(f"The session is called {said(title)} now.")


async def fork(talk: Talk, _: str) -> None:
    """Go on with a copy of the session, as it stands in memory."""
    agent = _begun(talk, "fork")
    if talk.at_rest():
        await change(talk, await forked(agent.session, talk.services))


async def export(talk: Talk, format_: str) -> None:
    """Write the session, as it stands in memory, into the workspace."""
    wanted = FORMATS.get(format_.lower() or "md")
    if wanted is None:
        raise UsageError(f"{format_} is no format.", hint="/export md, html or jsonl")
    agent = _begun(talk, "export")
    root = talk.services.workspace
    path, secrets = await asyncio.to_thread(written, agent.session, root, wanted)
    removed = f" {plural(secrets, 'secret')} removed." if secrets else ""
    talk.face.say(f"Written: {shorten(path)}.{removed}")


async def repair(talk: Talk, _: str) -> None:
    """Say what is damaged; after a refused request, the ways on from it."""
    agent = _begun(talk, "repair")
    if agent.offers():
        await error_options.retry(talk, "")
        return
    if not talk.at_rest():
        return
    found = beyond_interruption((*agent.session.findings, *agent.view().findings))
    path = agent.session.path
    if not found:
        talk.face.say("Nothing in this session needs repair.")
    elif path is None:
        talk.face.say(f"Repaired in memory, in {plural(len(found), 'place')}.")
    else:
        now = SessionChoice(path)
        choice = await damaged(talk, now, path, found)
        if choice is not None and choice != now:
            await change(talk, choice)


async def rewind(talk: Talk, argument: str) -> None:
    """Back to an earlier prompt, in the conversation and, if wanted, in the files."""
    agent = free(talk)
    if agent is None:
        return
    found = points(agent.session.records)
    if not found:
        raise UsageError("There is no prompt to go back to yet.")
    if agent.session.path is None:
        raise UsageError("This session is not kept on disk, so it has no branches to go back to.")
    point = await _point(talk, found, argument.strip())
    if point is None or talk.agent is not agent:
        return
    files = False
    if point.changed:
        choice = await talk.asker.choose(
            [
                (
                    f"Rewind the files too? {plural(len(point.changed), 'file')} changed since that"
                    " prompt. A file that somebody else has changed meanwhile is left alone, and"
                    " what is replaced is kept."
                ),
                *(said(str(change.path)) for change in point.changed),
            ],
            [
                ("both", "the conversation and the files"),
                ("talk", "only the conversation"),
                ("back", "back"),
            ],
        )
        if choice not in {"both", "talk"}:
            return
        files = choice == "both"
    await _back_to(talk, agent, point, files=files)


async def _point(talk: Talk, found: list[Point], number: str) -> Point | None:
    """The prompt to go back to, the newest first."""
    recent = list(reversed(found))[:_POINTS]
    if number:
        if not number.isdecimal() or not 1 <= int(number[:9]) <= len(recent):
            raise UsageError(f"There is no prompt {number}.", hint="/rewind lists them.")
        return recent[int(number) - 1]
    labels = [
        (
            str(place),
            said(point.text)[:120]
            + (f", {plural(len(point.changed), 'file')} changed since" if point.changed else ""),
        )
        for place, point in enumerate(recent)
    ]
    chosen = await talk.asker.choose(["Back to before which prompt? The newest first."], labels)
    return recent[int(chosen)] if chosen is not None else None


async def _back_to(talk: Talk, agent: Agent, point: Point, *, files: bool) -> None:
    """Go on from before a prompt, which is laid ready to be sent again."""
    path, root = agent.session.path, talk.services.workspace
    await agent.session.rewind(point.record.id)
    done: list[RestoredFile] = []
    if files:
        done = await asyncio.to_thread(restored, point.changed, root)
    mode, model = agent.mode, agent.model
    await change(talk, SessionChoice(path))
    if talk.agent is None:
        return
    talk.agent.mode = mode
    if talk.agent.model != model:
        talk.agent.use_model(await talk.services.model_info(model))
    talk.begin_with = point.text
    talk.face.say("Back before that prompt; what came since stays in the session's file.")
    if done:
        title, lines = outcome_lines(done, root)
        talk.face.say(title, *(said(line) for line in lines))
