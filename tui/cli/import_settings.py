"""`holdfast import-settings`: take over a person's settings for another program: Claude Code (and
the MCP servers of Claude Desktop), Codex, opencode or pi.

Everything is shown first, also what is left and why, and only the person's own configuration is
written.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import convert

from tui.app.options.arguments import Options
from tui.app.session_path import workspace_of
from tui.core.claude_names import claude_folder
from tui.core.config import Config, McpServer
from tui.core.errors import ConfigError
from tui.core.formatting import plural
from tui.core.paths import Folders, folders, shorten
from tui.core.standard_output import note, print_data, print_text
from tui.core.text_cleaning import one_line
from tui.settings import (
    claude_plugins,
    claude_servers,
    claude_settings,
    hook_files,
    layers,
    other_agents,
)
from tui.settings.claude_settings import NAME
from tui.settings.takeover import KINDS, Takeover, joined, take_over
from tui.tools.mcp import address_of

_IN_PLACE = ("command", "skill", "sub-agent", "output style", "rule", "instructions")


def run(options: Options) -> int:
    """Show what can be taken over, ask, and take it over. Returns the exit code."""
    own, workspace, source = folders(), workspace_of(options), options.target or "claude"
    config = layers.load(
        folders=own,
        workspace=workspace,
        allows=lambda _name, _value: False,  # the person's own count
        env={},
        overrides={},
    ).config
    takeover = _new(_takeover_from(source, workspace, own, config), config)
    if options.json:
        print_data(json.dumps(takeover.to_json(), indent=2, ensure_ascii=False))
    else:
        for line in _lines(takeover):
            print_text(line)
    # A lost prohibition would make things possible that the person forbade, so nothing is written.
    if takeover.lost:
        first = takeover.lost[0].where
        said = ", ".join(one.what for one in takeover.lost if one.where == first)
        raise ConfigError(
            shorten(first),
            "permissions.deny" if source == "claude" else "",
            f"no rule here can express {one_line(said)}. Nothing was written.",
            hint=f"Forbid it with a rule of your own in {shorten(own.config_file)} "
            "(holdfast help permissions), and remove it there.",
        )
    if not takeover:
        note("Nothing more to take over.")
        return 0
    if options.dry_run or not (options.yes or _agrees(own)):
        note("Nothing was written.")
        return 0
    take_over(takeover, own)
    count = sum(map(len, takeover.rules.values()))
    parts = [plural(count, "rule"), plural(len(takeover.hooks), "hook")]
    parts += [plural(len(takeover.values), "setting")] if takeover.values else []
    parts += [plural(len(takeover.copies), "file")] if takeover.copies else []
    parts += [plural(len(takeover.plugins), "plugin")] if takeover.plugins else []
    note(f"Took over {', '.join(parts)} and {plural(len(takeover.servers), 'MCP server')}.")
    return 0


def _takeover_from(source: str, workspace: Path, own: Folders, config: Config) -> Takeover:
    """All that a program has."""
    if source == "claude":
        return joined(
            [
                claude_settings.plan(claude_folder() / NAME, own, workspace, config),
                claude_servers.plan(workspace, config.mcp),
                claude_plugins.plan(own),
                claude_settings.in_place(workspace),
            ]
        )
    if source == "pi":
        return other_agents.pi(workspace, own)
    plan = other_agents.codex if source == "codex" else other_agents.opencode
    return plan(workspace, own, config.mcp)


def _new(found: Takeover, config: Config) -> Takeover:
    """The part of it that is not here yet."""
    rules = config.permissions
    kept = {kind: set(getattr(rules, kind)) for kind in KINDS}
    fresh = {
        kind: tuple(r for r in found.rules.get(kind, ()) if r not in kept[kind]) for kind in KINDS
    }
    values = {k: v for k, v in found.values.items() if getattr(config, k) == getattr(Config(), k)}
    taken = [
        one
        for one in found.taken
        if (one.kind not in KINDS or one.what in fresh[one.kind])
        and (one.kind != "setting" or one.what.partition(" = ")[0] in values)
    ]
    return Takeover(
        fresh,
        found.hooks,
        found.servers,
        values,
        found.copies,
        found.plugins,
        tuple(taken),
        found.left,
        found.lost,
    )


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
    """Yield a line for each thing that is taken, and one for all that is left for one reason, by
    their files."""
    used = [one for one in found.taken if one.kind in _IN_PLACE and one.where not in found.copies]
    used = [one for one in used if one.where.parent not in found.copies]
    shown = [one for one in found.taken if one not in used]
    for place in dict.fromkeys(one.where for one in (*shown, *found.lost, *found.left)):
        yield f"{shorten(place)}:"
        for one in shown:
            if one.where == place:
                what = _server(one.what, found.servers) if one.kind == "mcp" else one.what
                first, *more = one.note.splitlines() if one.kind == "plugin" else [one.note]
                end = f"; {first}" if first and not more else ""
                yield f"  {one.kind:<6} {one_line(what)}{end}"
                yield from (f"    {one_line(line)}" for line in (first, *more) if more)
        for label, rest in (("left", found.left), ("lost", found.lost)):
            whys = dict.fromkeys(one.why for one in rest if one.where == place)
            for why in whys:
                names = [one.what for one in rest if (one.where, one.why) == (place, why)]
                yield f"  {label}   {one_line(', '.join(filter(None, names)) or 'all')}: {why}"
    if used:
        yield "Read where they are, without taking them over:"
        for kind in _IN_PLACE:
            if names := [one.what for one in used if one.kind == kind]:
                yield f"  {_count(names, kind)}: {one_line(', '.join(names))}"


def _count(names: Sequence[str], kind: str) -> str:
    return kind if kind == "instructions" else plural(len(names), kind)


def _server(name: str, servers: Mapping[str, dict[str, object]]) -> str:
    """Describe a server. Of possible secrets only the names are shown."""
    server = convert(servers[name], McpServer)
    env = f" with the variables {', '.join(server.env)}" if server.env else ""
    return f"{name}: {address_of(server)}{env}"
