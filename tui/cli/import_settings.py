"""`holdfast import-settings`: take over a person's settings for Claude Code, and the MCP servers of
Claude Desktop.

Everything is shown first, and only the person's own configuration is written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import convert

from tui.app.options.arguments import Options
from tui.app.session_path import workspace_of
from tui.core.claude_names import claude_folder
from tui.core.config import McpServer
from tui.core.errors import ConfigError
from tui.core.formatting import plural
from tui.core.paths import Folders, folders, shorten
from tui.core.standard_output import note, print_text
from tui.core.text_cleaning import one_line
from tui.settings import agent_definitions, claude_servers, edit, hook_files, layers, user_commands
from tui.settings.claude_servers import ServerImport
from tui.settings.claude_settings import KINDS, NAME, Takeover, plan, take_over
from tui.tools.mcp import address_of


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
    takeover = plan(claude_folder() / NAME, own, known)
    servers = claude_servers.plan(workspace_of(options), loaded.config.mcp)
    new = {name: entry for place in servers for name, entry in place.servers.items()}
    for line in (*_lines(takeover), *_server_lines(servers), *_in_place(workspace_of(options))):
        print_text(line)
    # A lost prohibition would make things possible that the person forbade, so nothing is written.
    if takeover.lost:
        raise ConfigError(
            shorten(takeover.source),
            "permissions.deny",
            f"holds what no rule here can say: {one_line(', '.join(takeover.lost))}. "
            "Nothing was written.",
            hint=f"Forbid it by a rule of your own in {shorten(own.config_file)} "
            "(holdfast help permissions), and take it out there.",
        )
    if not (takeover or new):
        note("Nothing more to take over.")
        return 0
    if options.dry_run or not (options.yes or _agrees(own)):
        note("Nothing was written.")
        return 0
    take_over(takeover, own)
    if new:
        edit.add_servers(own.config_file, new)
    count = sum(map(len, takeover.rules.values()))
    parts = (plural(count, "rule"), plural(len(takeover.hooks), "hook"))
    note(f"Took over {', '.join(parts)} and {plural(len(new), 'MCP server')}.")
    return 0


def _agrees(own: Folders) -> bool:
    """Ask the person. False if nobody can be asked."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        note("Add --yes to write it.")
        return False
    files = f"{shorten(own.config_file)} and {hook_files.NAME} beside it"
    sys.stderr.write(f"Write this to {files}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().casefold() in {"y", "yes"}


def _lines(found: Takeover) -> Iterator[str]:
    """Yield a line for each rule and hook."""
    yield f"{shorten(found.source)}:"
    for kind in KINDS:
        yield from (f"  {kind:<6} {one_line(rule)}" for rule in found.rules.get(kind, ()))
    for hook in found.hooks:
        when = f"{hook.event} {hook.matcher}".rstrip()
        yield f"  hook   {one_line(when)}: {one_line(hook.command)}"
    yield from (f"  left   {one_line(one)}: no rule here says that" for one in found.ignored)
    yield from (f"  lost   {one_line(one)}: no rule here says that" for one in found.lost)
    yield from (f"  left   {one_line(problem)}" for problem in found.problems)
    if not (found or found.ignored or found.lost or found.problems):
        yield "  nothing new"


def _server_lines(places: Iterable[ServerImport]) -> Iterator[str]:
    """Yield a line for each MCP server. Of possible secrets only the names are shown."""
    for place in places:
        where = f", for {shorten(place.only_in)}" if place.only_in else ""
        yield f"{shorten(place.source)}{where}:"
        for name, entry in place.servers.items():
            server = convert(entry, McpServer)
            env = f" with the variables {', '.join(server.env)}" if server.env else ""
            everywhere = "; it starts in every folder" if place.only_in else ""
            yield f"  mcp    {one_line(f'{name}: {address_of(server)}{env}{everywhere}')}"
        yield from (
            f"  kept   {one_line(name)}: another MCP server has this name here"
            for name in place.kept
        )
        yield from (f"  left   {one_line(problem)}" for problem in place.problems)
        if not (place.servers or place.kept or place.problems):
            yield "  nothing new"


def _in_place(workspace: Path) -> Iterator[str]:
    """Yield lines about the files that are used as they are."""
    yield "Read where they are, without taking them over:"
    for folder in (claude_folder(), workspace / ".claude"):
        counts = (
            (len(list(user_commands.command_files(folder / "commands"))), "command"),
            (len(list((folder / "skills").glob("*/SKILL.md"))), "skill"),
            (len(agent_definitions.agent_files(folder / "agents")), "sub-agent"),
        )
        listed = ", ".join(plural(count, name) for count, name in counts if count)
        yield f"  {shorten(folder)}: {listed or 'none'}"
