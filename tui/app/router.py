"""The routing of a typed line: to a command, a shell line, or a prompt."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Final

from tui.app.commands import find, split, unknown
from tui.app.commands.table import ELSEWHERE, QUIT_WORDS, SlashCommand
from tui.core.config import profile_of
from tui.core.errors import HoldfastError, UsageError
from tui.core.partly_typed import PartlyTyped, count_typed, note_of, part_of
from tui.settings.user_commands import find as find_own

if TYPE_CHECKING:
    from tui.app.conversation import Conversation
    from tui.app.frontend import Submitted
    from tui.tools.mcp import McpPrompt, Server


_HANDED_OVER: Final = frozenset({"bg", "every"})
"""Commands whose prompt goes to another process, as text."""


async def route(conversation: Conversation, text: str) -> Submitted | None:
    """Do what was typed. What became of it where it is sent or run, None for a command of the
    program."""
    if isinstance(text, PartlyTyped) and text.folded:
        return conversation.submit(text)
    if text.startswith("!") and text.lstrip("!").strip():
        return conversation.run_shell(text[1:].strip())
    named = ("memory", note) if (note := note_of(text)) else split(text)
    if text.rstrip() in QUIT_WORDS:
        named = ("quit", "")
    if named is None:
        return conversation.submit(text)
    name, argument = named
    command = find(name)
    if command is None:
        return await _user_command(conversation, text, name, argument)
    if command.directive:
        return await _directive(conversation, text)
    if _chooses_profile(command, argument) and count_typed(text) < len(text.rstrip()):
        conversation.frontend.say(
            "Part of this was pasted, and a choice of profile must be typed.",
            "warning",
            hint=f"Type /{command.name} and the name.",
        )
        return "refused"
    if command.name in _HANDED_OVER:
        argument = part_of(text, argument, len(text.rstrip()) - len(argument))
    await conversation.frontend.run_command(_guarded(conversation, command, argument))
    return None


def _chooses_profile(command: SlashCommand, argument: str) -> bool:
    """True for a command that changes whose account pays: it does nothing where any part of it was
    pasted."""
    return command.name == "profile" or (command.name == "model" and bool(profile_of(argument)))


def refuse_command(text: str) -> None:
    """Raises UsageError for a command of the program where only prompts are taken: the model would
    get it as text and could do nothing with it. Directives are part of a prompt; after a space any
    command is text, as where it is typed."""
    named = split(text.rstrip())
    command = find(named[0]) if named else None
    if named is None or command is None or command.directive:
        return
    from tui.agent.prompts import parse  # noqa: PLC0415 - the table is read at start-up

    if not parse(text).changes:
        where = "in the session (holdfast -c)"
        if command.name == "every":
            where = f'{where}, or start it in the background: holdfast --bg "/every …"'
        raise UsageError(
            f"/{named[0]} is a command of the program, and only prompts are taken here.",
            hint=f"Type it {where}. A space before it sends it as text.",
        )


def require_typed(text: str) -> None:
    """Raises UsageError for a prompt that is handed to another process, as text alone, and begins
    with a command or a directive of which a part was pasted: there it would count as typed."""
    from tui.agent.prompts import parse  # noqa: PLC0415 - the table is read at start-up

    whole = str(text)
    named = split(whole)
    begun = named is not None and count_typed(text) < len(f"/{named[0]}")
    if begun or parse(text).changes != parse(whole).changes:
        raise UsageError(
            "The prompt begins with a command that was pasted, and only a typed one counts.",
            hint="Type the command, then paste the rest.",
        )


async def route_own(conversation: Conversation, text: str, attached: str = "") -> Submitted | None:
    """Send what a program was given as a prompt: of commands only those that are prompts
    themselves, the person's own, are more than text. Raises UsageError for one of the program's.
    """
    named = split(text.strip())
    if named is not None and named[0].lower() == "goal" and conversation.agent is not None:
        from tui.app.commands.goal import act  # noqa: PLC0415 - few prompts set one

        return act(conversation, conversation.agent, f"{text}\n\n{attached}".strip())
    refuse_command(text)
    if named is not None and find(named[0]) is None and not attached:
        await asyncio.to_thread(conversation.user_commands.load)
        if find_own(conversation.user_commands.commands, named[0]):
            return await _user_command(conversation, text, *named)
    return conversation.submit(text, attached)


async def route_from_afar(conversation: Conversation, text: str) -> Submitted | None:
    """Do what was typed in another process that watches the session, as if it was typed here. A
    directive asks nothing first. Raises UsageError for a command that would open something on the
    screen where the session is, which somebody else may be looking at.
    """
    if text.startswith("!") and text.lstrip("!").strip():
        return conversation.run_shell(text[1:].strip())
    named = ("memory", "") if note_of(text) else split(text)
    if text.rstrip() in QUIT_WORDS:
        named = ("quit", "")
    if named is None:
        return conversation.submit(text)
    name = ELSEWHERE.get(named[0].lower(), named[0])
    command = find(name)
    if command is None:
        return await _user_command(conversation, text, *named)
    if command.directive:
        return conversation.submit(text)
    if name == "every" and named[1] in {"", "stop"} and conversation.repetition is not None:
        if not named[1]:
            report = conversation.repetition.report
            conversation.frontend.say("\n".join((report.title, *report.lines)))
        else:
            conversation.repetition.stop()
        return None
    if name == "goal" and named[1] and (agent := conversation.agent) is not None:
        from tui.app.commands.goal import act  # noqa: PLC0415 - few prompts set one

        return act(conversation, agent, text)
    raise UsageError(
        f"/{name} needs the session's own screen.",
        hint="Use it where the session is open, or open the session here with holdfast -r.",
    )


async def _directive(conversation: Conversation, text: str) -> Submitted | None:
    """Send a directive; one that costs something after the price was shown."""
    from tui.agent.prompts import parse  # noqa: PLC0415 - the table is read at start-up

    agent, on = conversation.agent, parse(text).changes.get("think")
    if agent is None or on is None or agent.models.think_cost(bool(on)) is None:
        return conversation.submit(text)
    from tui.app.commands.effort import think  # noqa: PLC0415 - for this question alone

    await conversation.frontend.run_command(think(conversation, text))
    return None


async def _guarded(conversation: Conversation, command: SlashCommand, argument: str) -> None:
    """Carry out a command of the program, by the front end's own view or by its handler."""
    try:
        work = conversation.frontend.view(command.name, argument)
        if work is None:
            module = import_module(f"tui.app.{command.module}")
            handler = getattr(module, command.name.replace("-", "_"))
            work = handler(conversation, argument)
        await work
    except HoldfastError as error:
        conversation.frontend.say(error.message, "error", hint=error.hint)


async def _offered_prompt(
    conversation: Conversation, text: str, offered: tuple[Server, McpPrompt], argument: str
) -> None:
    """Send the text of an MCP server's prompt; one that there is none of goes back."""
    server, prompt = offered
    try:
        session = conversation.agent.session.id if conversation.agent else ""
        conversation.submit(text, await server.calls.prompt_text(prompt, argument, session))
    except HoldfastError as error:
        conversation.frontend.say(error.message, "error", hint=error.hint)
        conversation.frontend.put_prompt(text)


async def _later(conversation: Conversation, text: str, name: str, argument: str) -> None:
    """Do a command once the servers that may offer it are there."""
    from tui.app.mcp_offers import all_known  # noqa: PLC0415 - few lines name one

    if agent := conversation.agent:
        conversation.frontend.say(f"/{name} waits for the MCP servers to start.")
        await all_known(agent)
    if await _user_command(conversation, text, name, argument) == "refused":
        conversation.frontend.put_prompt(text)


async def _user_command(
    conversation: Conversation, text: str, name: str, argument: str
) -> Submitted | None:
    """A command that the person wrote: its text goes along with what was typed. Else one that has
    another name here."""
    await asyncio.to_thread(conversation.user_commands.load)
    own_commands = conversation.user_commands.commands
    if command := find_own(own_commands, name):
        from tui.app.commands.own import (  # noqa: PLC0415 - as above
            command_turn,
            turn_variables,
        )

        say, services = conversation.frontend.say, conversation.services
        session = conversation.agent.session.id if conversation.agent else None
        variables = turn_variables(services.workspace, session)
        turn = await command_turn(command, argument, services.asked_model, say, variables)
        return conversation.submit_command(text.strip(), turn)
    from tui.app.mcp_offers import may_come, prompts_of  # noqa: PLC0415 - few lines name one

    if offered := prompts_of(conversation).get(name.lower()):
        await conversation.frontend.run_command(
            _offered_prompt(conversation, text.strip(), offered, argument)
        )
        return None
    if may_come(conversation, name):
        await conversation.frontend.run_command(_later(conversation, text, name, argument))
        return None
    if "." in name:  # rather a path
        return conversation.submit(text)
    name = name.lower()
    if name in ELSEWHERE:
        named = f"/{ELSEWHERE[name]} {argument}".rstrip()
        pasted = len(text) - count_typed(text)
        typed = max(0, len(named) - pasted)
        return await route(conversation, PartlyTyped(named, typed) if pasted else named)
    what, hint = unknown(name, tuple(own_commands))
    conversation.frontend.say(what, "warning", hint=hint)
    return "refused"
