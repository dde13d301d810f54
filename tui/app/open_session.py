"""From a choice to a session that is open, with the questions on the way: trust, which session,
how a model is reached, damage, another program that has it, elevation.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui.agent.interrupted_work import new_findings
from tui.app.background import mark_opened, running_at
from tui.app.commands.trust import ask_trust
from tui.app.conversation import Conversation
from tui.app.damage_report import Damage, damage_findings
from tui.app.dialog_data import (
    AnswerOption,
    ChoiceQuestion,
    DamageQuestion,
    SetupQuestion,
    YesNoQuestion,
)
from tui.app.handover import ask_attach, take
from tui.app.passing_questions import answer_while, until
from tui.app.services import AppServices, SessionChoice
from tui.app.session_repository import SessionRepository
from tui.core.clock import Clock
from tui.core.dataclass import dataclass, replace
from tui.core.errors import CredentialsError, HoldfastError, SessionInUseError
from tui.core.fact_words import goal_progress
from tui.core.facts import Notice, StorageChanged
from tui.core.formatting import wait_time
from tui.core.gc_pause import gc_pause
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line
from tui.core.workspace import worktree_of
from tui.session import copies
from tui.session.lock import holder
from tui.session.reader import read
from tui.session.records import GOAL, Finding, new_session_id

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.session.session import Session

log = logging.getLogger(__name__)

RECHECK_S: Final = 2.0
"""Seconds between two checks that everything is saved and the session still ours."""

_IN_USE: Final = (
    AnswerOption("t", "Take over (the other becomes read-only)", "take_over"),
    AnswerOption("r", "Open read-only", "read_only"),
    AnswerOption("f", "Fork (continue in a copy)", "fork"),
)


async def open_first(
    conversation: Conversation, choice: SessionChoice | None, *, fallback: bool = True
) -> None:
    """The first session of a run; None lets the person choose. Raises HoldfastError where none
    can be opened; with `fallback` a new one is tried before."""
    services = conversation.services
    if undecided := await asyncio.to_thread(services.undecided):
        await ask_trust(conversation, undecided, unasked=True)
    if choice is None:
        choice = await conversation.frontend.pick_session() or SessionChoice()
    await open_choice(conversation, choice, fallback=fallback)


async def switch_session(conversation: Conversation, choice: SessionChoice) -> None:
    """Leave the session that is open for another one. Raises HoldfastError where it cannot be
    opened."""
    if conversation.says_idle() and not conversation.opening:
        await open_choice(conversation, choice)


async def open_choice(
    conversation: Conversation, choice: SessionChoice, *, fallback: bool = True
) -> None:
    """Open a session. Without a key that is asked for, as often as it takes. Where none can be
    opened, what was sent to it is typed again. Raises HoldfastError."""
    try:
        await _open(conversation, choice, fallback=fallback)
    finally:
        conversation.opening_failed()


async def _open(conversation: Conversation, choice: SessionChoice, *, fallback: bool) -> None:
    while True:
        try:
            if choice.foreign and choice.path is not None:
                wanted = await _copy_foreign(conversation, choice.path)
            else:
                wanted = await conversation.open(choice, partial(_accept, conversation, choice))
                if wanted == choice:
                    await after_opening(conversation, choice)
                    return
        except SessionInUseError as error:
            wanted = await _ask_in_use(conversation, choice, error)
        except CredentialsError as error:
            if not await set_up(conversation, error.message):
                if conversation.agent is None:
                    raise
                return
            continue
        except HoldfastError as error:
            if conversation.agent or choice == SessionChoice() or not fallback:
                raise
            conversation.frontend.say(error.message, "error", hint=error.hint)
            wanted = None
        except Exception as error:  # the boundary: the program continues without a session
            log.exception("couldn't open the session")
            conversation.frontend.say(
                f"Couldn't open the session ({type(error).__name__}).",
                "error",
                hint="Details are in the log file.",
            )
            return
        if wanted is None and conversation.agent:
            return
        choice = wanted or _new_instead(conversation)


def _new_instead(conversation: Conversation) -> SessionChoice:
    """A new session in the place of the one that was wanted."""
    conversation.given_up += 1
    return SessionChoice()


async def _accept(
    conversation: Conversation, choice: SessionChoice, agent: Agent
) -> SessionChoice | None:
    """A session was read: the choice itself where it is to be shown, another, or None."""
    if choice.path is None or choice.read_only:
        return choice
    with gc_pause(loading=True):
        damage = await _damage(agent)  # of a long session it takes a while
    return await ask_damaged(conversation, agent, choice, damage) if damage else choice


async def after_opening(conversation: Conversation, choice: SessionChoice) -> None:
    """Say and ask what an open session needs: read-only, left open work, elevation."""
    agent = conversation.agent
    if agent is None:
        return
    if agent.session.read_only:
        conversation.frontend.say(
            "This session is read-only.", hint="Use /fork to continue in a copy."
        )
        return
    say_other_worktree(conversation, agent)
    if choice.path is not None and not choice.go_on:
        await conversation.frontend.painted()
        await asyncio.to_thread(mark_opened, conversation.services.folders, agent.session.id)
        work = await asyncio.to_thread(agent.interrupted_work)
        if work and agent is conversation.agent and not conversation.busy:
            await conversation.frontend.offer_interrupted_work(work)
        _offer_goal(conversation, agent)
    _offer_repetition(conversation, agent)
    waits = conversation.busy  # it was parked, and is again
    if not choice.same:  # else a note says so: a dialog would take the key that undoes a rewind
        await _ask_elevated(conversation, agent)
    if choice.go_on and not waits:
        while conversation.busy:  # with what the question above came to
            await conversation.at_rest()
        conversation.continue_turn()


def _offer_goal(conversation: Conversation, agent: Agent) -> None:
    """Say that a goal of an earlier run isn't met: only a person lets it go on."""
    if not any(record.type == GOAL for record in agent.session.records):
        return
    now = agent.goal.now
    if agent is conversation.agent and now is not None and now.state == "paused":
        text = f"Its goal isn't met yet ({goal_progress(now)}): {one_line(now.goal)}"
        text += "\n/goal continue resumes it, /goal stop ends it."
        conversation.frontend.show(Notice(text))


def _offer_repetition(conversation: Conversation, agent: Agent) -> None:
    """Say that a prompt is repeated no more since its process has ended, and offer it again."""
    notes = any(
        record.data.get("every") for record in agent.session.records if record.type == "note"
    )
    if not notes or conversation.door.kind not in {"screen", "plain"}:
        return
    from tui.app.repeat_wish import cut_off  # noqa: PLC0415 - few sessions repeat anything

    wish, frontend = cut_off(agent.session.records), conversation.frontend
    if wish is None or agent is not conversation.agent:
        return
    often = f"A prompt was repeated every {wait_time(wish.interval_s)} until its process ended."
    frontend.show(Notice(f"{often} This command starts it again:\n{wish.typed}"))
    if not frontend.prompt_text:
        frontend.put_prompt(wish.typed)


async def set_up(conversation: Conversation, why: str) -> bool:
    """Ask how a model is reached. False where the person wants none."""
    done = await ask_setup(conversation, why)
    if done:
        conversation.frontend.say(done, "success")
    return done is not None


async def ask_setup(conversation: Conversation, why: str) -> str | None:
    """Ask it. What was done, or None; `OTHER_PROFILE`, which only an open session can have."""
    session = conversation.agent is not None
    now = await asyncio.to_thread(conversation.services.account)
    question = SetupQuestion(
        why,
        sign_in=now.sign_in,
        session=session,
        profile=now.profile,
        server=now.server,
        others=now.profiles and session,
    )
    return await conversation.frontend.ask_setup(question)


async def reconnect(conversation: Conversation) -> None:
    """Use what was set up; without a session, open one."""
    agent, frontend = conversation.agent, conversation.frontend
    if agent is None:
        await open_choice(conversation, SessionChoice())
        return
    for event in await conversation.services.reconnect(agent):
        frontend.show(event)
    frontend.refresh()


async def _ask_elevated(conversation: Conversation, agent: Agent) -> None:
    """A session that was elevated is so again only where the person says so."""
    if not agent.was_elevated:
        return
    question = YesNoQuestion(
        "Elevate again?",
        "This session was elevated when you left: no prompts, and file tools"
        " could leave the folder. It isn't elevated now.",
        yes="Elevate",
        no="Ask me as usual",
        unasked=True,
    )
    if await conversation.frontend.confirm(question):
        conversation.submit("/elevated on")


# Another program has it


async def _ask_in_use(
    conversation: Conversation, choice: SessionChoice, error: SessionInUseError
) -> SessionChoice | None:
    """Take it over, only read it, or continue in a copy."""
    home, now = conversation.services.folders, conversation.services.clock.now()
    running = choice.path and await asyncio.to_thread(running_at, home, choice.path, now)
    if running:
        answer = await ask_attach(conversation, choice, running)
        if answer == "attach":
            return await take(conversation, choice, running)
    else:
        answer = await _ask_owner(conversation, choice, error)
    match answer:
        case "gone":
            conversation.frontend.say("The other program has let go of this session.")
            return choice
        case "take_over":
            return replace(choice, take_over=True)
        case "read_only":
            return replace(choice, read_only=True)
        case "fork" if choice.path is not None:
            copy = partial(_forked_file, choice.path, conversation.services)
            return SessionChoice(await asyncio.to_thread(copy))
        case _:
            return None


async def _ask_owner(
    conversation: Conversation, choice: SessionChoice, error: SessionInUseError
) -> str | None:
    """Ask what to do about a session that another program has open; "gone" where it has no more."""
    path = choice.path
    owner = None if path is None else await asyncio.to_thread(holder, path)
    said = error.message if owner is None else f"It's open in {owner}."  # not its file's long name
    question = ChoiceQuestion(
        "This session is open elsewhere",
        f"{said} Two instances can't write one session.",
        _IN_USE,
        warning=True,
    )
    asking = conversation.frontend.choose(question)
    if path is None or owner is None:
        return await asking
    over = until(lambda: holder(path) is None)
    return await answer_while(asking, over, "gone")


@dataclass(slots=True)
class SessionWatch:
    """Tries again what could not be saved, and notices a session that was taken away."""

    _trouble: str = ""
    _lost: str = ""
    _session: Session | None = None
    _looking: bool = False

    async def check(self, conversation: Conversation) -> bool:
        """Show what has changed with the saving since the last look. Returns True if the session
        was taken away, which is reported once each time that one is opened."""
        agent = conversation.agent
        if agent is None or conversation.opening or self._looking:
            return False
        self._looking = True
        try:
            session = agent.session
            if session is not self._session:
                self._session, self._lost = session, ""
            before, self._trouble = self._trouble, await session.recheck()
        finally:
            self._looking = False
        lost = session.read_only and bool(session.lost) and session.id != self._lost
        self._lost = session.id if lost else self._lost
        if self._trouble != before:
            conversation.frontend.show(StorageChanged(not self._trouble, self._trouble))
        return lost


def say_other_worktree(conversation: Conversation, agent: Agent) -> None:
    """Say so where a session worked in another worktree of the repository than this run."""
    session, here = agent.session, conversation.services.workspace
    cwd = Path(session.header.cwd)
    tree = worktree_of(cwd)
    if tree == worktree_of(here) or not cwd.is_dir():  # one that is gone is a notice of its own
        return
    where = f"the worktree {one_line(tree.name)}" if tree else shorten(cwd)
    hint = f"To work there: holdfast -r {session.id}"
    conversation.frontend.say(
        f"This session began in {where}. Now it works in {shorten(here)}.", "warning", hint=hint
    )


# Damage


async def ask_damaged(
    conversation: Conversation, agent: Agent, choice: SessionChoice, found: Sequence[Finding]
) -> SessionChoice | None:
    """Show what is wrong with a session's file, and how to continue; what is to be opened, None for
    nothing. Raises SessionError, StorageError."""
    path, clock, session = choice.path, conversation.services.clock, agent.session
    if path is None:
        return None
    id_ = new_session_id()
    copy = path.with_name(f"{clock.now():%Y%m%dT%H%M%SZ}-{id_}.jsonl")
    damage = Damage(path, session.records, tuple(found))
    match await conversation.frontend.choose(DamageQuestion(damage, copy, session.title)):
        case "continue":
            return choice
        case "read_only":
            return replace(choice, read_only=True)
        case "copy":
            await asyncio.to_thread(_write_repaired, path, copy, id_, clock)
            return SessionChoice(copy)
        case _:
            return None


async def _damage(agent: Agent) -> list[Finding]:
    """Return what is wrong with a session that was read: no mere interruption, and not reported
    before."""
    seen = await asyncio.to_thread(agent.context.view)
    session = agent.session
    findings = new_findings(session.records, (*session.findings, *seen.findings))
    return damage_findings(findings)


async def _copy_foreign(conversation: Conversation, path: Path) -> SessionChoice | None:
    """Another agent's session becomes a copy of ours; its damage is shown first. Raises
    SessionError, StorageError."""
    from tui.session import importers  # noqa: PLC0415 - on demand

    repository = SessionRepository.of(conversation.services)
    loaded = await asyncio.to_thread(importers.load, path)
    copies.check_speaks(loaded)
    damage = damage_findings(await asyncio.to_thread(repository.damage, loaded))
    if damage:
        question = DamageQuestion(Damage(path, loaded.branch, damage), None)
        if await conversation.frontend.choose(question) != "continue":
            return None
    return SessionChoice(await asyncio.to_thread(repository.take_over, path))


# Copies


async def forked(session: Session, services: AppServices) -> SessionChoice:
    """A copy of an open session, as it is in memory. Raises StorageError."""
    make = partial(
        copies.fork_records, folders=services.folders, clock=services.clock, cwd=services.workspace
    )
    return SessionChoice(await asyncio.to_thread(make, session.header, list(session.records)))


def _forked_file(path: Path, services: AppServices) -> Path:
    """A copy of a session's file, as it is on the disk. Blocks; raises SessionError."""
    return copies.fork(
        read(path), folders=services.folders, clock=services.clock, cwd=services.workspace
    )


def _write_repaired(path: Path, copy: Path, id_: str, clock: Clock) -> None:
    """Write a repaired copy of a session, with an id, beside its original bytes. Blocks."""
    from tui.context.history import history  # noqa: PLC0415 - on demand
    from tui.context.repair import repair  # noqa: PLC0415 - on demand

    loaded = read(path)
    messages, _ = repair(history(loaded.branch).messages, tail="open")
    header = copies.header_of(loaded, clock=clock)
    copies.write_repaired(loaded, replace(header, id=id_), messages, copy)
