"""`holdfast import-settings`: take over what a person has set up for Claude Code.

It shows everything first, and writes only to the person's own configuration.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from tui.app.options.arguments import Options
from tui.app.session_path import workspace_of
from tui.cli.session_io import note, print_text
from tui.core.claude_names import claude_folder
from tui.core.formatting import plural
from tui.core.paths import Folders, folders, shorten
from tui.core.text_cleaning import one_line
from tui.settings import agent_definitions, hook_files, layers, user_commands
from tui.settings.claude_settings import KINDS, NAME, Takeover, plan, take_over


def run(options: Options) -> int:
    """Show what can be taken over, ask, and take it over. Returns the exit code."""
    own = folders()
    loaded = layers.load(
        folders=own,
        workspace=workspace_of(options),
        allows=lambda _name, _value: False,  # the person's own count
        env={},
        overrides={},
    )
    rules = loaded.config.permissions
    known = {kind: getattr(rules, kind) for kind in KINDS}
    found = plan(claude_folder() / NAME, own, known)
    for line in _lines(found, workspace_of(options)):
        print_text(line)
    if not found:
        note("Nothing more to take over.")
        return 0
    if options.dry_run or not (options.yes or _agrees(own)):
        note("Nothing was written.")
        return 0
    take_over(found, own)
    count = sum(map(len, found.rules.values()))
    note(f"Took over {plural(count, 'rule')} and {plural(len(found.hooks), 'hook')}.")
    return 0


def _agrees(own: Folders) -> bool:
    """Whether the person says yes; nobody who can't be asked does."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        note("Add --yes to write it.")
        return False
    files = f"{shorten(own.config_file)} and {hook_files.NAME} beside it"
    sys.stderr.write(f"Write this to {files}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().casefold() in {"y", "yes"}


def _lines(found: Takeover, workspace: Path) -> Iterator[str]:
    """What was found, and what is read in place."""
    yield f"{shorten(found.source)}:"
    for kind in KINDS:
        yield from (f"  {kind:<6} {one_line(rule)}" for rule in found.rules.get(kind, ()))
    for hook in found.hooks:
        when = f"{hook.event} {hook.matcher}".rstrip()
        yield f"  hook   {one_line(when)}: {one_line(hook.command)}"
    yield from (f"  left   {one_line(one)}: no rule here says that" for one in found.ignored)
    yield from (f"  left   {one_line(problem)}" for problem in found.problems)
    if not (found or found.ignored or found.problems):
        yield "  nothing new"
    yield "Read where they are, without taking them over:"
    for folder in (claude_folder(), workspace / ".claude"):
        counts = (
            (len(list(user_commands.command_files(folder / "commands"))), "command"),
            (len(list((folder / "skills").glob("*/SKILL.md"))), "skill"),
            (len(agent_definitions.agent_files(folder / "agents")), "sub-agent"),
        )
        said = ", ".join(plural(count, name) for count, name in counts if count)
        yield f"  {shorten(folder)}: {said or 'none'}"
