"""/login and /profile: another key, server, sign-in or profile for the session that is open.

For another profile the session is opened again, as resuming it with --profile would: so all that
the profile's settings say counts, and nothing of the one before is left. Only a person at the
session's own screen chooses whose key pays.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from tui.app.conversation import Conversation
from tui.app.dialog_data import OTHER_PROFILE, ProfileQuestion, ProfileRow, ProfileSetup
from tui.app.models import fits_or_meant, next_prompt_words
from tui.app.open_session import ask_setup, reconnect, switch_session
from tui.app.services import SessionChoice
from tui.core.facts import DEFAULT_PROFILE
from tui.core.text_cleaning import one_line

if TYPE_CHECKING:
    from tui.agent.agent import Agent


async def profile(conversation: Conversation, name: str) -> None:
    """/profile: choose the profile of the next request, or name it."""
    await choose_profile(conversation, name)


async def login(conversation: Conversation, _: str) -> None:
    """/login: choose how the model is reached from the next request on."""
    if not conversation.says_idle() or conversation.opening:
        return
    await change_account(conversation, await asyncio.to_thread(conversation.services.connection))


async def change_account(conversation: Conversation, why: str) -> bool:
    """Ask how the model is reached, and do so. False where it stays as it is."""
    done = await ask_setup(conversation, why)
    if done == OTHER_PROFILE:
        return await choose_profile(conversation)
    if done is None:
        return False
    conversation.frontend.say(done, "success")
    await reconnect(conversation)
    return True


async def choose_profile(conversation: Conversation, name: str = "") -> bool:
    """Use the profile of that name from the next request on; without a name the person chooses.
    False where the one in use stays. Raises HoldfastError, and then it does."""
    agent = _agent_to_switch(conversation)
    if agent is None:
        return False
    services, frontend = conversation.services, conversation.frontend
    rows = await asyncio.to_thread(services.profiles)
    if not rows:
        file = services.folders.config_file.name
        hint = f"Add a table [profile.NAME] to your {file}: /help profiles."
        frontend.say("There are no profiles yet.", hint=hint)
        return False
    if not name:
        question = ProfileQuestion([await _with_next(conversation, agent, row) for row in rows])
        name = await frontend.choose(question) or ""
    if not name:
        return False
    wanted = next((row for row in rows if row.name == name), None)
    if wanted is None:
        from difflib import get_close_matches  # noqa: PLC0415 - for a typing mistake only

        near = get_close_matches(name, [row.name for row in rows], n=1)
        names = ", ".join(one_line(row.name) for row in rows)
        hint = f"Did you mean {one_line(near[0])}?" if near else f"Available: {names}."
        frontend.say(f"There is no profile {one_line(name)}.", "error", hint=hint)
        return False
    if wanted.now:
        frontend.say(f"Already using profile {one_line(name)}.")
        return False
    return await _switch(conversation, agent, wanted)


def _agent_to_switch(conversation: Conversation) -> Agent | None:
    """The agent of a session that can be opened again now; else a message says why not."""
    agent = conversation.idle_agent()
    if agent is None or conversation.opening:
        return None
    if agent.session.path is None or not agent.session.saved:
        text = "This session isn't saved, so it keeps its profile."
        hint = agent.session.problem or "Start with --profile NAME."
        conversation.frontend.say(text, "warning", hint=hint)
        return None
    return agent


async def _with_next(conversation: Conversation, agent: Agent, row: ProfileRow) -> ProfileRow:
    """Return a row with what the next prompt costs with that profile."""
    if row.now:  # /model may have chosen another one
        row = replace(row, model=agent.models.current, window=agent.models.window)
    info = replace(await conversation.services.model_info(row.model), window=row.window)
    usd, sends = next_prompt_words(agent, info, row.payer)
    return replace(row, next=usd, sends=sends)


async def _switch(conversation: Conversation, agent: Agent, wanted: ProfileRow) -> bool:
    """Open the session again with another profile, and say what the next prompt costs there."""
    services, frontend = conversation.services, conversation.frontend
    info = replace(await services.model_info(wanted.model), window=wanted.window)
    if not await fits_or_meant(conversation, agent, info):
        return False
    if _agent_to_switch(conversation) is not agent:  # meanwhile a turn may have begun
        return False
    await services.set_up(ProfileSetup(wanted.name))
    await _open_again(conversation, agent)
    now = conversation.agent
    if now is None or now is agent:
        return False
    _, sends = next_prompt_words(now, await services.model_info(now.models.current))
    text = f"Switched to profile {one_line(wanted.name)}: {now.models.current} at {wanted.server}."
    before = one_line(agent.models.profile or DEFAULT_PROFILE)
    hint = f"/profile {before} switches back."
    frontend.say(" ".join(filter(None, (text, sends))), "success", hint=hint)
    return True


async def _open_again(conversation: Conversation, agent: Agent) -> None:
    """Open the session with what was set up, in the same mode, with the folders that were added.
    One that nothing was asked in has no file yet: a new one takes its place."""
    services, frontend, path = conversation.services, conversation.frontend, agent.session.path
    mode, added = agent.permissions.mode, agent.permissions.folders[1:]
    begun = path is not None and await asyncio.to_thread(path.exists)
    await switch_session(conversation, SessionChoice(path, same=True) if begun else SessionChoice())
    now = conversation.agent
    if now is None or now is agent:
        return
    now.permissions.mode = mode
    for folder in added:
        now.permissions.add_dir(folder)
    for event in now.models.record_payer():
        frontend.show(event)
    services.settings.change_to((await asyncio.to_thread(services.read_settings)).config)
    frontend.refresh()
