"""The MCP servers that a folder's `.mcp.json` names, in the form that other programs write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from tui.core.dataclass import dataclass, field
from tui.core.errors import ConfigError
from tui.core.files import read_small
from tui.core.json_files import parse_json
from tui.core.messages import is_object, object_of
from tui.settings.validation import check, dotted

NAME: Final = ".mcp.json"

_KEYS: Final = ("command", "args", "env", "url", "headers")
_OAUTH: Final = ("clientId", "callbackPort", "scopes")
_TYPES: Final[Mapping[object, str]] = dict.fromkeys(
    ("streamable-http", "streamableHttp", "streamable_http"), "http"
)
"""Names that some programs give to the usual transport to an address."""


@dataclass(frozen=True, slots=True)
class McpFile:
    """The contents of such a file: `servers` by name, as entries of `[mcp]`, and `raw` as the file
    has them. `problems` holds by key the faults of the others, or under ("mcpServers") that of the
    file."""

    servers: Mapping[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    raw: Mapping[str, object] = field(default_factory=dict[str, object])
    problems: Mapping[str, str] = field(default_factory=dict[str, str])
    left: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """The fields of each server that mean nothing here."""


def path_of(workspace: Path) -> Path:
    return workspace / NAME


def trust_name(server: str) -> str:
    """The name under which a server of the file is trusted."""
    return f"{NAME}: {server}"


def read(workspace: Path) -> McpFile:
    """The servers of a folder's file; none where there is none. Never raises. Blocks."""
    try:
        data, _ = read_small(path_of(workspace))
        parsed: Any = parse_json(data)
    except (FileNotFoundError, NotADirectoryError):
        return McpFile()
    except OSError as error:
        return _broken(f"it can't be read: {error.strerror or error}")
    except ValueError as error:
        return _broken(f"it is not valid JSON: {error}")
    listed = object_of(parsed).get("mcpServers")
    return servers_of(listed, NAME) if is_object(listed) else _broken("it has no object mcpServers")


def servers_of(listed: Mapping[str, object], file: str) -> McpFile:
    """The servers of an object in this form; `file` is what problems call the file that has it."""
    servers: dict[str, dict[str, Any]] = {}
    raw: dict[str, object] = {}
    problems: dict[str, str] = {}
    left: dict[str, tuple[str, ...]] = {}
    for name, entry in listed.items():
        if object_of(entry).get("disabled") is True:
            continue
        try:
            servers[name] = _entry(name, entry, file)
            raw[name] = entry
            left[name] = _ignored_fields(object_of(entry))
        except ConfigError as error:
            why = error.message.removeprefix(f"{file}: ").rstrip(".")
            problems[dotted(("mcp", name))] = f"it is not valid ({why})"
    return McpFile(servers, raw, problems, left)


def _ignored_fields(entry: Mapping[str, object]) -> tuple[str, ...]:
    """The fields of an entry that say something, and are not taken over."""
    known = {*_KEYS, "type", "oauth", "disabled"}
    own = [name for name, value in entry.items() if value and name not in known]
    oauth = object_of(entry.get("oauth"))
    return (
        *own,
        *(f"oauth.{name}" for name, value in oauth.items() if value and name not in _OAUTH),
    )


def _broken(why: str) -> McpFile:
    return McpFile(problems={"mcpServers": why})


def _entry(name: str, entry: object, file: str) -> dict[str, Any]:
    """An entry as `[mcp]` has it. Raises ConfigError. What only other programs know is left out."""
    wrapped: dict[str, Any] = {"mcp": {name: entry}}
    if isinstance(entry, dict):
        fields = cast("dict[str, Any]", entry)
        table = {key: fields[key] for key in _KEYS if fields.get(key)}
        table |= _sign_in(object_of(fields.get("oauth")))
        if kind := fields.get("type"):
            table["type"] = _TYPES.get(kind, kind) if isinstance(kind, str) else kind
        wrapped = {"mcp": {name: table}}
    check(wrapped, wrapped, file)
    return cast("dict[str, Any]", wrapped["mcp"][name])


def _sign_in(oauth: Mapping[str, object]) -> dict[str, object]:
    """The keys of a sign-in as `[mcp]` has them, from the form of Claude Code (2.1.332), which has
    `scopes` in one text and keeps the secret elsewhere."""
    table: dict[str, object] = {
        own: oauth[key]
        for key, own in (("clientId", "client_id"), ("callbackPort", "callback_port"))
        if oauth.get(key)
    }
    scopes = oauth.get("scopes")
    if isinstance(scopes, str):
        scopes = scopes.split()
    return table | ({"scopes": scopes} if scopes else {})
