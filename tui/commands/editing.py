"""Commands that open the person's own editor, and one that asks the model to write a file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tui.desk import Desk
from tui.errors import ConfigError
from tui.files import read_small
from tui.paths import shorten

_INIT: Final = (
    "Look at this folder and write AGENTS.md for whoever works here next. Read the README, the"
    " build and test configuration and a few typical files first. Say in under 60 lines: what the"
    " project is, how to build, test and check it (the exact commands), how it is laid out, and"
    " the conventions that cannot be seen at once. Only what you have verified. If AGENTS.md is"
    " there already, improve it and keep what is right."
)


def init(desk: Desk, _: str) -> None:
    desk.bridge.submit(_INIT)


def edit_file(desk: Desk, path: Path, then: Callable[[], object] | None = None) -> None:
    """Open a file in the editor; `then` is called when it is closed again."""

    async def work() -> None:
        from tui.screens.outside import look  # noqa: PLC0415 - on demand

        problem = await look(desk.app, path, "editor", exact=False)
        if problem:
            desk.bridge.chat.notice.say(problem, "error")
        elif then is not None:
            then()

    desk.app.run_worker(work(), group="editor", exclusive=True)


def config(desk: Desk, _: str) -> None:
    """Edit config.toml; say afterwards whether it can be used."""
    from tui.session.store import make_private  # noqa: PLC0415 - on demand

    file = desk.bridge.services.folders.config_file
    say = desk.bridge.chat.notice.say
    try:
        make_private(file.parent)
        file.touch(mode=0o600, exist_ok=True)
        before = file.read_bytes()
    except OSError as error:
        say(f"{shorten(file)} cannot be opened: {error.strerror or error}.", "error")
        return

    def check() -> None:
        if problem := config_problem(file):
            say(problem.message, "error", hint=problem.hint or "/config opens it again.")
        elif file.read_bytes() == before:
            say("The settings are as they were.")
        else:
            say("The settings are sound.", "success", hint="They count from the next start.")

    edit_file(desk, file, check)


def config_problem(file: Path) -> ConfigError | None:
    """What is wrong with a configuration file; None where it can be used. Blocks."""
    from tui.config_check import check  # noqa: PLC0415 - on demand
    from tui.settings import parse  # noqa: PLC0415 - on demand

    try:
        data, _ = read_small(file)
        found = parse(data, file)
        check(found, found, shorten(file))
    except ConfigError as error:
        return error
    except OSError as error:
        return ConfigError(shorten(file), "", f"cannot be read: {error.strerror or error}.")
    return None


async def edit_prompt(desk: Desk) -> None:
    """Ctrl+G: what is typed, in the editor. What cannot be read back changes nothing."""
    from tui.screens.outside import edited  # noqa: PLC0415 - on demand

    prompt, say = desk.bridge.chat.prompt, desk.bridge.chat.notice.say
    text, problem = await edited(desk.app, prompt.value)
    if problem:
        say(problem, "error")
    if text is not None:
        prompt.put_whole(text.removesuffix("\n"))
    await asyncio.sleep(0)
    prompt.focus()
