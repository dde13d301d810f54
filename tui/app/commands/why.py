"""/why: says which prompt wrote lines of a file, by which call, with which model, at what price."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Final

from tui.app.dialog_data import ShownLine
from tui.app.open_session import switch_session
from tui.app.reports.why import WhyAnswer, why_report
from tui.app.services import SessionChoice
from tui.context.blame import FileBlame, RecordedStep, asked_lines, blame_file, line_range
from tui.core.config import Price
from tui.core.dataclass import replace
from tui.core.errors import HoldfastError, os_error_as
from tui.core.formatting import plural
from tui.core.images import prompt_of
from tui.core.paths import Folders, expanded
from tui.core.text_cleaning import clean, one_line, visible
from tui.session import catalog, copies
from tui.session.reader import read
from tui.session.records import Record
from tui.tools.file_access import in_thread
from tui.tools.text_decoding import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tui.app.conversation import Conversation

USAGE: Final = "/why FILE:10 asks about a line, FILE:10-20 about some, FILE about all."
_SPACED: Final = re.compile(r"\s+:?(?=\d[\d,+-]*$)")
"""The text before the lines where a completed path has left its blank."""
_CUT: Final = re.compile(r"… \([\d,]+ characters\)$")
"""The end of a line that a diff has cut."""


async def why(conversation: Conversation, asked: str) -> None:
    """Report on the lines that are named."""
    if not asked:
        conversation.frontend.say(USAGE)
        return
    await answer_why(
        conversation,
        asked.removeprefix("@"),
        lambda it: conversation.frontend.report(why_report(it)),
    )


async def answer_why(
    conversation: Conversation, asked: str, show: Callable[[WhyAnswer], None]
) -> None:
    """Find where the lines come from and show that."""
    services, frontend = conversation.services, conversation.frontend

    async def answer() -> None:
        prices = services.settings.now.prices
        work = partial(looked_up, asked, services.workspace, services.folders, prices)
        try:
            found = await in_thread(work)
            rows = await services.list_sessions()
        except HoldfastError as error:
            frontend.say(error.message, "warning", hint=error.hint)
            return
        own = conversation.agent.session.id if conversation.agent else ""
        show(replace(found, own=own, here=frozenset(row.id for row in rows)))

    await conversation.run_reading("reading the sessions", answer)


def looked_up(
    asked: str,
    workspace: Path,
    folders: Folders,
    prices: Mapping[str, Price],
    stop: Event,
) -> WhyAnswer:
    """Answer about FILE or FILE:LINES. Blocks. Raises HoldfastError where there is no answer, and
    once `stop` is set."""
    if not os.path.lexists(workspace / asked):
        asked = _SPACED.sub(":", asked)
    path, wanted = asked_lines(asked, workspace)
    found, lines = blame_file(path, folders, _until(stop))
    first, last = line_range(wanted, len(lines), path.name)
    return WhyAnswer(_name(found, workspace), found, lines, first, last, prices)


async def line_answer(conversation: Conversation, line: ShownLine) -> WhyAnswer:
    """Return where a line of a view comes from. Raises HoldfastError where there is no answer;
    cancelled, it stops reading."""
    services = conversation.services
    work = partial(
        located, line, services.workspace, services.folders, services.settings.now.prices
    )
    answer = await in_thread(work)
    own = conversation.agent.session.id if conversation.agent else ""
    return replace(answer, own=own)


def located(
    line: ShownLine,
    workspace: Path,
    folders: Folders,
    prices: Mapping[str, Price],
    stop: Event,
) -> WhyAnswer:
    """Answer about a line of a view, which the file may have elsewhere by now. Blocks, and raises
    as `looked_up`."""
    with os_error_as(HoldfastError, f"Can't read {one_line(line.path)}"):
        path = _shown_file(workspace / expanded(line.path))
    if path is None:
        raise HoldfastError(
            f"{one_line(line.path)} isn't there any more.",
            hint="It was deleted or renamed: ask about its new name with /why FILE.",
        )
    found, lines = blame_file(path, folders, _until(stop))
    number = _place(line, lines, path.name, _name(found, workspace))
    return WhyAnswer(_name(found, workspace), found, lines, number, number, prices)


def _shown_file(path: Path) -> Path | None:
    """The file that a view names; None where there is none. A view cleans names: where no file has
    this one, it is the only one in its folder that is shown so. Raises OSError."""
    with suppress(FileNotFoundError, NotADirectoryError):
        path.lstat()
        return path
    with suppress(FileNotFoundError, NotADirectoryError):
        alike = [one for one in path.parent.iterdir() if path.name in _shown_names(one.name)]
        return alike[0] if len(alike) == 1 else None
    return None


def _shown_names(name: str) -> set[str]:
    """The forms in which diffs name a file that has odd characters in its name."""
    return {one_line(name), clean(printable(name)), one_line(printable(name))}


def _place(line: ShownLine, lines: Sequence[str], name: str, path: str) -> int:
    """The number of a line in the file as it is now. Raises HoldfastError where it isn't there, or
    where several are like it; `path` is how /why takes it."""
    if not lines:
        raise HoldfastError(f"{name} is empty.")
    if line.text is None:
        return min(max(1, line.number), len(lines))
    text, cut = _CUT.subn("", line.text.removesuffix("␍"))
    text = _spaced(text)

    def is_it(own: str) -> bool:
        return _spaced(own).startswith(text) if cut else _spaced(own) == text

    if line.number <= len(lines) and is_it(lines[line.number - 1]):
        return line.number
    places = [] if line.removed else [n for n, own in enumerate(lines, 1) if is_it(own)]
    if len(places) == 1:
        return places[0]
    if places:
        raise HoldfastError(
            f"{name} has this line {plural(len(places), 'time')}.",
            hint=f"Ask about one by its number: /why {path}:{places[0]}",
        )
    raise HoldfastError(
        f"This line isn't in {name} any more.",
        hint=f"It was removed or changed. /why {path} answers about those that are.",
    )


def _spaced(line: str) -> str:
    """A line of a file, or of a view of it, in the form in which they are compared: views widen
    tabs, and spell out what hides."""
    plain = line.isascii() and line.replace("\t", " ").isprintable()
    return " ".join((line if plain else visible(clean(line))).split())


def _until(stop: Event) -> Callable[[int, int], None]:
    def still_wanted(_done: int, _of: int) -> None:
        if stop.is_set():
            raise HoldfastError("Stopped.")

    return still_wanted


def _name(found: FileBlame, workspace: Path) -> str:
    """The file's name, as it is shown: below the workspace, else whole."""
    with suppress(ValueError):
        return str(Path(found.path).relative_to(workspace.resolve()))
    return found.path


async def fork_before(conversation: Conversation, step: RecordedStep) -> None:
    """Continue in a copy of a step's session that ends before its prompt, which is typed again.
    Raises HoldfastError."""
    services = conversation.services
    if not conversation.says_idle() or conversation.opening:
        return

    def copied() -> tuple[Path, Record | None]:
        loaded = read(catalog.resolve(step.session, services.folders))
        path = copies.fork(
            loaded,
            folders=services.folders,
            clock=services.clock,
            at=step.before,
            cwd=services.workspace,
        )
        return path, next((one for one in loaded.records if one.id == step.prompt), None)

    path, prompt = await asyncio.to_thread(copied)
    await switch_session(conversation, SessionChoice(path))
    if prompt is not None:
        conversation.images.learn(prompt)
        conversation.frontend.put_prompt(prompt_of(prompt.data), replace=True)
