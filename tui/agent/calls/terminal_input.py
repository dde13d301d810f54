"""Input for a terminal as the permissions see it: where it goes, and which line a shell gets."""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui.agent.agent_context import AgentContext
from tui.core.dataclass import replace
from tui.core.messages import string_of
from tui.permissions.sandbox.walls import Level
from tui.permissions.types import Call, TypedInput
from tui.tools.base import Params
from tui.tools.terminal import TerminalParams, input_of, readable

if TYPE_CHECKING:
    from tui.tools.jobs import Job

_OTHER_KEYS: Final = re.compile(r"[^\n\x20-\x7e\x80-\U0010ffff]")
_PLAIN_OPTION: Final = re.compile(r"-[eilux]{1,4}c?|-c|--(?:norc|noprofile|posix|login)")
"""An option with which a shell reads nothing but a command line that it was started for (`-c`). Any
other may have a value that looks like one, and with `-s`, dash reads on after that line."""
_LONGEST_LINE: Final = 4095
"""Bytes of a line that a terminal keeps for a program that reads whole lines: it drops the rest."""
_SHELLS: Final = frozenset({"bash", "sh", "dash", "zsh", "ksh", "fish", "ash", "busybox"})


async def with_input(ctx: AgentContext, call: Call, params: Params) -> Call:
    """Return a call that types with what it types, and where. Raises ToolError for a terminal that
    isn't there, and for keys that are none."""
    if not isinstance(params, TerminalParams) or params.action != "send":
        return call
    job = ctx.toolbox.jobs.get(params.terminal)
    if job.terminal is None:
        return call
    await job.terminal.refresh()  # another program may have it by now
    data = input_of(params, job.terminal)
    level = string_of(job.kept.call.get("walls"))
    typed = TypedInput(
        job.id,
        Level(level) if level else Level.OUTSIDE,
        str(job.path),
        began=_start_of(job, ctx, call),
    )
    line = job.terminal.line_with(data)
    if not _may_reach_a_shell(await job.terminal.judged(call.id)):
        line = ""
    cut = any(len(one.encode()) > _LONGEST_LINE for one in line.split("\n"))
    unsure = bool(line) and (job.terminal.in_line or cut)
    typed = replace(typed, edited=unsure or _OTHER_KEYS.search(line) is not None)
    subject = f"{job.id} ← {readable(data).rstrip()}"
    return replace(call, subject=subject, command=line or None, types=typed)


def _start_of(job: Job, ctx: AgentContext, call: Call) -> Call | None:
    """The call that would start a terminal now; None if its folder isn't known."""
    folder = string_of(job.kept.call.get("cwd"))
    if not folder:
        return None
    paths = () if Path(folder) == ctx.workspace.root else (ctx.workspace.show(Path(folder)),)
    return Call(
        call.id, call.tool, "run", job.command, command=job.command, paths=paths, background=True
    )


def _may_reach_a_shell(programs: list[list[str]]) -> bool:
    """True if a shell has the terminal, or reads what the program that has it leaves unread: also
    where nothing is known of the programs."""
    return not programs or any(_takes_lines(*words) for words in programs)


def _takes_lines(name: str, *words: str) -> bool:
    """True for a shell that was not started for one command line (`-c`)."""
    called = words[0].rpartition("/")[2].lstrip("-") if words else ""
    if _SHELLS.isdisjoint({name, called}):
        return False
    options = [*takewhile(lambda word: word.startswith("-"), words[1:])]
    plain = all(map(_PLAIN_OPTION.fullmatch, options))
    return not plain or not any(word.endswith("c") and word[1] != "-" for word in options)
