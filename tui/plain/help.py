"""/help, and what commands are called here that take other words than on the full screen."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from tui.app.commands.registry import COMMANDS
from tui.plain.conversation import Talk
from tui.plain.speech_text import said

REASONS: Final[Mapping[str, str]] = {
    "copy": "The answer stands in this terminal as text: copy it there, or use /export.",
    "find": "Search with your terminal or screen reader, or use: holdfast sessions search TEXT.",
    "theme": "Plain lines have no colours.",
    "drill": "The drill needs the full screen: run holdfast drill in another terminal.",
    "tour": "The tour needs the full screen: run holdfast tour in another terminal.",
}
"""Why a command is not for plain lines."""


HELP: Final[Mapping[str, tuple[str, str]]] = {
    "help": ("", "this list"),
    "rewind": ("[N]", "back to before an earlier prompt, with the files if wanted; 1 is the last"),
    "context": (
        "[all | mask N | unmask N | pin N | unpin N | read N]",
        "what the model sees, item by item, with tokens",
    ),
    "pin": ("[N]", "keep item N of /context, or the last tool result, or let it go"),
    "memory": ("[save]", "read MEMORY.md out, or save to it now"),
    "output": ("[N]", "read the whole output of the last tool, or of the one N from the end"),
    "plan": (
        "[edits | ask]",
        "plan mode: read only; again leaves it; edits accepts edits of files",
    ),
    "mcp": (
        "[restart NAME | on NAME TOOL | off NAME TOOL | log NAME]",
        "the MCP servers and their tools",
    ),
    "config": ("", "where the settings stand, and whether they are sound"),
}
"""What takes other words here than on the full screen: the argument, and what it does."""


async def help_(talk: Talk, _: str) -> None:
    await asyncio.to_thread(talk.own.load)
    talk.face.say(
        "Type a prompt and press Enter. A backslash at the end of a line, or three quotes around"
        " the text, make it several lines.",
        "While the agent works you may type on: it is sent when the agent can take it.",
        "Ctrl+C stops what runs; at an empty prompt twice it leaves, as Ctrl+D does at once.",
        "Tab completes a command, and a file behind @; an image that is named so goes along.",
        "! before a line runs it in the shell, and the model sees its output with your next"
        " prompt; !! keeps it from the model.",
        "Commands:",
        *(
            said(f"/{command.name} {argument}").rstrip() + f": {text}."
            for command in COMMANDS
            for argument, text in (HELP.get(command.name, (command.argument, command.help)),)
            if command.name not in REASONS
        ),
        *(f"/{own.name}, yours: {said(own.description)}" for own in talk.own.commands.values()),
        f"Only on the full screen: {', '.join(f'/{name}' for name in REASONS)}.",
    )
    talk.face.say(*(said(problem) for problem in talk.own.problems[:1]))
