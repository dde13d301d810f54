"""The MCP servers that a person has set up for Claude Code and Claude Desktop, to be taken over."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from msgspec import convert

from tui.core.config import McpServer
from tui.core.files import read_small
from tui.core.json_files import parse_json
from tui.core.messages import object_of
from tui.settings.mcp_json import servers_of

_SIZE_MAX: Final = 64 * 1024**2
"""Claude Code keeps much else in the same file."""


@dataclass(frozen=True, slots=True)
class ServerImport:
    """Those of one place. `servers` are new here, as entries of `[mcp]`; `kept` are names that
    another server has here. `only_in` is the folder that they are for, None for all."""

    source: Path
    servers: Mapping[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    kept: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    only_in: Path | None = None


def plan(workspace: Path, known: Mapping[str, McpServer]) -> tuple[ServerImport, ...]:
    """The servers that are not here yet; `known` are those that are. Of two with the same name the
    nearer place counts. Blocks; never raises."""
    known = dict(known)
    imports: list[ServerImport] = []
    for source, listed, only_in, problem in _places(workspace):
        read = servers_of(listed, source.name)
        same = {name for name, entry in read.servers.items() if known.get(name) == _server(entry)}
        servers = {name: entry for name, entry in read.servers.items() if name not in known}
        differing = tuple(name for name in read.servers if name in known and name not in same)
        problems = tuple(f"{key}: {why}" for key, why in read.problems.items())
        problems += (problem,) if problem else ()
        problems += tuple(
            f"{name}: {field_} means nothing here" for name in servers for field_ in read.left[name]
        )
        known |= {name: _server(entry) for name, entry in servers.items()}
        imports.append(ServerImport(source, servers, differing, problems, only_in))
    return tuple(imports)


def _server(entry: Mapping[str, Any]) -> McpServer:
    return convert(entry, McpServer)


def _places(workspace: Path) -> Iterator[tuple[Path, Mapping[str, object], Path | None, str]]:
    """Yield the places where servers may be: the file, its list, the folder that it is for (None:
    any), its fault."""
    home = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home())
    code = home / ".claude.json"
    read, problem = _read(code)
    if read is not None:
        project = object_of(object_of(read.get("projects")).get(str(workspace)))
        if listed := object_of(project.get("mcpServers")):
            yield code, listed, workspace, ""
        yield code, object_of(read.get("mcpServers")), None, problem
    read, problem = _read(_desktop_file())
    if read is not None:
        yield _desktop_file(), object_of(read.get("mcpServers")), None, problem


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
        return {}, "It is not valid JSON."
    return object_of(content), ""
