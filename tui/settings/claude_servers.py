"""The MCP servers that a person has set up for Claude Code and Claude Desktop, to be taken over."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import convert

from tui.core.config import McpServer
from tui.core.files import read_small
from tui.core.json_files import parse_json
from tui.core.messages import list_of, object_of
from tui.settings.mcp_json import servers_of
from tui.settings.takeover import ImportedItem, SkippedItem, Takeover

_SIZE_MAX: Final = 64 * 1024**2
"""Claude Code keeps much else in the same file."""
_SAME_NAME: Final = "you have an MCP server with this name already"
_KEPT: Final = "Claude Code's own data"
_EVERYWHERE: Final = "it starts in every folder"


def plan(workspace: Path, known: Mapping[str, McpServer]) -> Takeover:
    """The servers that are not here yet; `known` are those that are. Of two with the same name the
    nearer place counts. Blocks; never raises."""
    known = dict(known)
    servers: dict[str, dict[str, Any]] = {}
    taken: list[ImportedItem] = []
    left: list[SkippedItem] = []
    for source, listed, only_in, problem in _places(workspace):
        left += [SkippedItem("", source, problem)] if problem else []
        new, here, rest = new_servers(listed, source, known, everywhere=only_in is not None)
        servers |= new
        taken += here
        left += rest
    left += _other_state(workspace)
    return Takeover(servers=servers, taken=tuple(taken), left=tuple(left))


def new_servers(
    listed: Mapping[str, object], source: Path, known: dict[str, McpServer], *, everywhere: bool
) -> tuple[dict[str, dict[str, Any]], list[ImportedItem], list[SkippedItem]]:
    """The servers of a list in the form of `.mcp.json` that are not `known` yet, which they are
    then; and what is said about them. `everywhere`: they were for one folder only."""
    read = servers_of(listed, source.name)
    left = [SkippedItem(key, source, why) for key, why in read.problems.items()]
    taken: list[ImportedItem] = []
    servers: dict[str, dict[str, Any]] = {}
    for name, entry in listed.items():
        if name not in read.servers:
            if object_of(entry).get("disabled") is True:
                left.append(SkippedItem(name, source, "switched off there"))
            continue
        ours = read.servers[name]
        server = convert(ours, McpServer)
        if name in known:
            left += [] if known[name] == server else [SkippedItem(name, source, _SAME_NAME)]
            continue
        known[name], servers[name] = server, ours
        taken.append(ImportedItem("mcp", name, source, _EVERYWHERE if everywhere else ""))
        left += [
            SkippedItem(f"mcp.{name}.{one}", source, "no setting here does that")
            for one in read.left[name]
        ]
    return servers, taken, left


def _places(workspace: Path) -> Iterator[tuple[Path, Mapping[str, object], Path | None, str]]:
    """Yield the places where servers may be: the file, its list, the folder that it is for (None:
    any), its fault."""
    code = _code_file()
    read, problem = _read(code)
    if read is not None:
        project = object_of(object_of(read.get("projects")).get(str(workspace)))
        if listed := object_of(project.get("mcpServers")):
            yield code, listed, workspace, ""
        yield code, object_of(read.get("mcpServers")), None, problem
    read, problem = _read(_desktop_file())
    if read is not None:
        yield _desktop_file(), object_of(read.get("mcpServers")), None, problem


def _other_state(workspace: Path) -> Iterator[SkippedItem]:
    """Yield all else that is in the file of Claude Code's state, and what is for other folders."""
    read, _ = _read(_code_file())
    for key, value in (read or {}).items():
        if key == "projects":
            for folder, project in object_of(value).items():
                yield from _of_project(folder, object_of(project), workspace)
        elif key != "mcpServers":
            yield SkippedItem(key, _code_file(), _KEPT)


def _of_project(
    folder: str, project: Mapping[str, object], workspace: Path
) -> Iterator[SkippedItem]:
    for rule in list_of(project.get("allowedTools")):
        what = f"projects.{folder}.allowedTools {rule}"
        yield SkippedItem(what, _code_file(), "an approval for one folder: Holdfast asks again")
    for name in object_of(project.get("mcpServers")) if folder != str(workspace) else ():
        what = f"projects.{folder}.mcpServers.{name}"
        yield SkippedItem(what, _code_file(), "for another folder: run import-settings there")
    for key in project:
        if key not in {"allowedTools", "mcpServers"}:
            yield SkippedItem(f"projects.{folder}.{key}", _code_file(), _KEPT)


def _code_file() -> Path:
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home()) / ".claude.json"


def _desktop_file() -> Path:
    if sys.platform == "darwin":
        folder = Path.home() / "Library" / "Application Support"
    else:
        folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return folder / "Claude" / "claude_desktop_config.json"


def _read(file: Path) -> tuple[Mapping[str, object] | None, str]:
    """Return the content of a file, and its fault; None where there is no file."""
    try:
        content: object = parse_json(read_small(file, limit=_SIZE_MAX)[0])
    except (FileNotFoundError, NotADirectoryError):
        return None, ""
    except OSError as error:
        return {}, f"Can't read it: {error.strerror or error}."
    except (ValueError, RecursionError):
        return {}, "It isn't valid JSON."
    return object_of(content), ""
