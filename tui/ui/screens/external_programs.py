"""Opens a file in the person's own pager or editor: the app steps aside and comes back
afterwards."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any, Literal, TypeAlias

from textual.app import App, SuspendNotSupported

from tui.core.apart import folder_apart, linked_apart
from tui.core.dataclass import dataclass
from tui.core.errors import StorageError
from tui.core.output_store import open_full_copy
from tui.ui.widgets.notices import NoticeLine
from tui.ui.widgets.prompt import Prompt

Program: TypeAlias = Literal["pager", "editor"]

_PROGRAMS: dict[Program, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "pager": (("PAGER",), ("less -R", "more", "vi")),
    "editor": (("VISUAL", "EDITOR"), ("vi", "nano", "less -R", "more")),
}
"""The environment variables that name a program, and the usual programs."""
AT_ONCE_S = 1.0
"""Seconds; a program that fails sooner has shown nothing."""


def command_of(program: Program) -> list[str]:
    """Return the command that the person has set, else the first usual one; [] if there is none.

    A setting that can't be found is not used.
    """
    variables, usual = _PROGRAMS[program]
    for text in (*(os.environ.get(name, "") for name in variables), *usual):
        with suppress(ValueError):
            words = shlex.split(text)
            if words and shutil.which(words[0]):
                return words
    return []


async def open_copy(app: App[Any], path: Path, results: Path, program: Program) -> str | None:
    """Open the full copy of an output, which is in the folder `results`, as `open_file` does; an
    editor can only read it, by a name that no command can give to something else. Returns None if
    it can't be read there."""
    try:
        copy = await asyncio.to_thread(open_full_copy, path, results)
    except (OSError, ValueError):
        return None
    try:
        with folder_apart(StorageError) as apart, _unwritable(copy):
            await asyncio.to_thread(linked_apart, copy, apart / path.name)
            return await open_file(app, apart / path.name, program)
    except OSError as error:
        return f"Can't open {path}: {error.strerror or error}."
    except StorageError as error:
        return str(error)
    finally:
        os.close(copy)


async def open_file(app: App[Any], path: Path, program: Program) -> str:
    """Open a file and wait until the program ends; return "" or the problem in a sentence.

    Running work continues meanwhile; nothing is drawn.
    """
    return (await _opened(app, path, program))[0]


async def _opened(app: App[Any], path: Path, program: Program) -> tuple[str, str]:
    """Like `open_file`; return also how the program ended, "" if well."""
    command = command_of(program)
    if not command:
        variable = _PROGRAMS[program][0][-1]
        missing = f"${variable} isn't set, and none of the usual programs is installed."
        return f"No {program} found: {missing}", ""
    before = signal.getsignal(signal.SIGINT)
    try:
        # Ctrl+C is for the other program. It is not ignored, since that would be inherited.
        signal.signal(signal.SIGINT, _nothing)
        await asyncio.to_thread(path.stat)
        with app.batch_update(), app.suspend():
            started = monotonic()
            code = await _run([*command, str(path)])
    except SuspendNotSupported:
        return "This terminal can't be handed to another program.", ""
    except FileNotFoundError as error:
        return f"Can't open {error.filename or path}: the file is gone.", ""
    except OSError as error:
        return f"Can't start {command[0]}: {error.strerror or error}.", ""
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
    ended = f"{Path(command[0]).name} closed with exit code {code}" if code else ""
    if not code or monotonic() - started > AT_ONCE_S:
        return "", ended  # a pager's exit code also says how it was left
    return f"{command[0]} closed at once with exit code {code}.", ended


async def open_text(app: App[Any], text: bytes, program: Program) -> str:
    """Like `open_file`, for a text that is in no file."""
    try:
        with folder_apart(StorageError) as apart:
            file = apart / "text.txt"
            file.touch(0o600)
            file.write_bytes(text)
            return await open_file(app, file, program)
    except OSError as error:
        return f"Can't write a temporary file: {error.strerror or error}."
    except StorageError as error:
        return str(error)


@dataclass(frozen=True, slots=True)
class EditedText:
    """The outcome of an edit in the person's editor: `text` is as they left it, None if nothing is
    to change. `problem` says why; `refused` is what an editor saved that failed, or that was left
    in the way that gives an edit up (`:cq`)."""

    text: str | None = None
    problem: str = ""
    refused: str = ""


async def edited(app: App[Any], text: str) -> EditedText:
    """Let the person edit a text in their editor."""
    try:
        with folder_apart(StorageError) as apart:
            file = apart / "prompt.md"
            file.write_text(text, encoding="utf-8", errors="replace")
            problem, ended = await _opened(app, file, "editor")
            if problem and not ended:
                return EditedText(problem=problem)
            saved = file.read_text(encoding="utf-8", errors="replace")
            if not ended:
                return EditedText(saved)
            changed = saved.removesuffix("\n") != text.removesuffix("\n")
            return EditedText(
                problem=f"{ended}; nothing changed.", refused=saved if changed else ""
            )
    except OSError as error:
        return EditedText(problem=f"Can't read the text back: {error.strerror or error}.")
    except StorageError as error:
        return EditedText(problem=str(error))


@contextmanager
def _unwritable(file: int) -> Generator[None]:
    """Keep an open file from being written by mistake: a receipt names its hash."""
    mode = os.fstat(file).st_mode & 0o777
    os.fchmod(file, mode & ~0o222)
    try:
        yield
    finally:
        with suppress(OSError):
            os.fchmod(file, mode)


async def _run(command: list[str]) -> int:
    out = sys.__stdout__
    process = await asyncio.create_subprocess_exec(*command, stdout=out, stderr=out)
    try:
        return await process.wait()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
        raise


def _nothing(_signal: int, _frame: object) -> None:
    """Do nothing: Ctrl+C is for the program in front."""


def step_aside(app: App[Any], *words: str) -> str:
    """Leave the terminal to `holdfast` with these words until it ends. Blocks.

    It is a process of its own, isolated from this one. Returns the problem, "" if there was none.
    """
    try:
        with app.suspend():
            subprocess.run(own_command(words, app.theme), check=False)
    except SuspendNotSupported:
        return f"This terminal can't be shared. Run `holdfast {words[0]}` in another one."
    return ""


def own_command(words: Sequence[str], theme: str) -> list[str]:
    """Return a command line of this program. Modules in the current folder are never imported."""
    return [sys.executable, "-P", "-m", "tui", *words, "--theme", theme]


async def edit_prompt(app: App[Any], prompt: Prompt, notice: NoticeLine) -> None:
    """Ctrl+G: edit the prompt in the editor. A text that can't be read back changes nothing; nor
    does one that an editor saved before it failed, but Up brings that."""
    result = await edited(app, prompt.value)
    if result.problem:
        hint = "Up brings its text." if result.refused else ""
        notice.say(result.problem, "error", hint=hint)
    if result.refused:
        prompt.past.keep(result.refused.removesuffix("\n"))
    if result.text is not None:
        prompt.put_whole(result.text.removesuffix("\n"))
    await asyncio.sleep(0)
    prompt.focus()
