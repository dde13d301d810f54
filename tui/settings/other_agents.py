"""The settings of Codex, opencode and pi that can be taken over, and all that can't, key by key.

The formats are those of codex 0.171.0, opencode 1.18.33 and pi 0.73.1, as the programs read them
(`tests/settings/other_agents/`).
"""

from __future__ import annotations

import ast
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tui.core.config import McpServer
from tui.core.files import read_small
from tui.core.json_files import parse_json
from tui.core.messages import is_object, list_of, object_of, string_of
from tui.core.paths import Folders
from tui.settings.allowed_tools import for_all_editors
from tui.settings.claude_servers import new_servers
from tui.settings.claude_settings import NO_SETTING
from tui.settings.takeover import ImportedItem, SkippedItem, Takeover, joined, unused_keys

_SIZE_MAX: Final = 1_000_000
_OTHER_MODEL: Final = "a model of another provider"
_CREDENTIALS: Final = "sign-ins are never taken over; holdfast login"
_PROGRAMS: Final = "its own programs, which only it can run"
_DATA: Final = "its own data"
_HERE: Final = "you have one with this name already"
_ODD: Final = r"\$(?!ARGUMENTS\b|[1-9\s]|$)"
"""A placeholder that is read otherwise here."""
_OTHER_WORDS: Final = "it has placeholders that mean something else here"


def codex(workspace: Path, folders: Folders, known: Mapping[str, McpServer]) -> Takeover:
    """Read what Codex has, in its folder and the workspace's. Blocks; raises nothing."""
    home = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
    parts = [
        _codex_config(home / "config.toml", dict(known)),
        *map(_codex_rules, sorted((home / "rules").glob("*.rules"))),
        _files(home / "prompts", folders.config / "commands", _ODD),
        _skills(home / "skills", folders.config / "skills"),
        _others(home, {"config.toml", "rules", "prompts", "skills"}, _CODEX_FILES),
        _workspace_files(workspace / ".codex"),
    ]
    return joined(parts)


_CODEX_FILES: Final = {
    "auth.json": _CREDENTIALS,
    "AGENTS.md": "put what applies everywhere into AGENTS.md in the configuration folder",
    "AGENTS.override.md": "put what applies everywhere into AGENTS.md in the configuration folder",
    "agents": "sub-agents have a different format here; see holdfast help agents",
    "hooks.json": "not read here; write hooks.json in the configuration folder",
}
_CODEX_KEYS: Final = {
    "model": _OTHER_MODEL,
    "approval_policy": "start with --permission-mode ask or edits; what no rule allows asks",
    "sandbox_mode": "commands always run in a sandbox here; see holdfast help permissions",
    "projects": "Holdfast asks again which files you trust",
    "profiles": "write [profile.NAME] yourself",
    "notify": "set [terminal] notifications",
}


def _codex_config(file: Path, known: dict[str, McpServer]) -> Takeover:
    try:
        table = tomllib.loads(read_small(file, limit=_SIZE_MAX)[0].decode())
    except (FileNotFoundError, NotADirectoryError):
        return Takeover()
    except (OSError, ValueError, RecursionError) as error:
        return Takeover(left=(SkippedItem("", file, f"Can't read it: {error}."),))
    listed, left = dict[str, object](), list[SkippedItem]()
    denied: list[str] = []
    for name, one in object_of(table.pop("mcp_servers", {})).items():
        entry = object_of(one)
        why = "switched off there" if entry.pop("enabled", True) is False else ""
        if entry.pop("enabled_tools", None) is not None:
            why = why or "no rule here can say that only some of its tools count"
        if why:
            left.append(SkippedItem(f"mcp_servers.{name}", file, why))
            continue
        denied += [f"mcp__{name}__{tool}" for tool in list_of(entry.pop("disabled_tools", []))]
        variable = string_of(entry.pop("bearer_token_env_var", ""))
        headers = object_of(entry.pop("http_headers", {}))
        headers |= {k: f"${{{v}}}" for k, v in object_of(entry.pop("env_http_headers", {})).items()}
        if variable:
            headers["Authorization"] = f"Bearer ${{{variable}}}"
        listed[name] = entry | ({"headers": headers, "type": "http"} if headers else {})
    servers, taken, more = new_servers(listed, file, known, everywhere=False)
    left += [*more, *unused_keys(table, file, _CODEX_KEYS, NO_SETTING)]
    taken += [ImportedItem("deny", rule, file) for rule in denied]
    rules = {"deny": tuple(denied)}
    return Takeover(rules, servers=servers, taken=tuple(taken), left=tuple(left))


_DECISIONS: Final = {"allow": "allow", "prompt": "ask", "forbidden": "deny"}


def _codex_rules(file: Path) -> Takeover:
    """The rules in a file of Codex, each a call `prefix_rule(pattern=[…], decision="…")`; what else
    is in it may forbid something, so it is lost."""
    rules: dict[str, tuple[str, ...]] = {}
    lost: list[SkippedItem] = []
    try:
        body = ast.parse(read_small(file, limit=_SIZE_MAX)[0].decode()).body
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError) as error:
        return Takeover(lost=(SkippedItem("", file, f"can't read it: {error}"),))
    for one in body:
        read = _codex_rule(one)
        if read is None:
            lost.append(SkippedItem(ast.unparse(one), file, "no rule here can express it"))
            continue
        kind, texts = read
        rules[kind] = (*rules.get(kind, ()), *texts)
    taken = tuple(ImportedItem(kind, text, file) for kind, texts in rules.items() for text in texts)
    return Takeover(rules, taken=taken, lost=tuple(lost))


def _codex_rule(statement: ast.stmt) -> tuple[str, list[str]] | None:
    """A rule as ours, and its kind; None for what is no plain rule."""
    match statement:
        case ast.Expr(ast.Call(ast.Name("prefix_rule"), [], keywords)):
            pass
        case _:
            return None
    try:
        given = {one.arg: ast.literal_eval(one.value) for one in keywords}
    except ValueError:
        return None
    kind = _DECISIONS.get(string_of(given.get("decision", "allow")))
    words = [
        [one] if isinstance(one, str) else list_of(one) for one in list_of(given.get("pattern"))
    ]
    if kind is None or not words or not all(words) or len(words) > _WORDS_MAX:
        return None
    lines = [""]
    for choices in words:
        lines = [f"{line} {word}".strip() for line in lines for word in choices]
        if len(lines) > _LINES_MAX:
            return None
    return kind, [f"run_command({_literal(line)} *)" for line in lines]


_WORDS_MAX: Final = 20
_LINES_MAX: Final = 200


def _literal(text: str) -> str:
    return re.sub(r"[*?\[]", lambda match: f"[{match[0]}]", text)


def opencode(workspace: Path, folders: Folders, known: Mapping[str, McpServer]) -> Takeover:
    """Read what opencode has, in its folder and the workspace's. Blocks; raises nothing."""
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    home = Path(os.environ.get("OPENCODE_CONFIG_DIR") or base / "opencode")
    known = dict(known)
    configs = ("config.json", "opencode.json", "opencode.jsonc")
    copied = ("command", "commands", "skill", "skills")
    commands, skills = folders.config / "commands", folders.config / "skills"
    parts = [
        *(_opencode_config(home / name, known) for name in configs),
        *(_files(home / name, commands, f"{_ODD}|!`") for name in ("command", "commands")),
        *(_skills(home / name, skills) for name in ("skill", "skills")),
        _others(home, {*configs, *copied}, _OPENCODE_FILES),
        _workspace_files(workspace / ".opencode"),
        *(_workspace_file(workspace / name) for name in configs[1:]),
    ]
    return joined(parts)


_OPENCODE_FILES: Final = {
    "AGENTS.md": "put what applies everywhere into AGENTS.md in the configuration folder",
    **dict.fromkeys(
        ("agent", "agents", "mode", "modes"), "sub-agents have a different format here"
    ),
    **dict.fromkeys(("plugin", "plugins", "tool", "tools"), _PROGRAMS),
    **dict.fromkeys(("theme", "themes"), "themes have a different format here"),
}
_OPENCODE_TOOLS: Final[Mapping[str, Sequence[str]]] = {
    "bash": ("run_command",), "edit": ("edit_file",), "glob": ("find_by_name",),
    "grep": ("grep_search",), "list": ("list_dir",), "read": ("read_file",), "skill": ("skill",),
    "task": ("task",), "todowrite": ("todo_write",), "webfetch": ("web_fetch",),
    "websearch": ("web_search",), "write": ("write_file",),
}  # fmt: skip
_NO_SUBJECT: Final = frozenset({"web_search", "todo_write"})
"""Tools of which a rule is about all calls."""


def _opencode_config(file: Path, known: dict[str, McpServer]) -> Takeover:
    try:
        parsed = parse_json(_plain_json(read_small(file, limit=_SIZE_MAX)[0].decode()).encode())
    except (FileNotFoundError, NotADirectoryError):
        return Takeover()
    except (OSError, ValueError, RecursionError) as error:
        # It may forbid something.
        return Takeover(lost=(SkippedItem(file.name, file, f"can't read it: {error}"),))
    table, left = object_of(parsed), list[SkippedItem]()
    listed: dict[str, object] = {}
    for name, one in object_of(table.pop("mcp", {})).items():
        entry = object_of(one)
        if entry.pop("enabled", True) is False:
            left.append(SkippedItem(f"mcp.{name}", file, "switched off there"))
            continue
        words = list_of(entry.pop("command", []))
        local = {"command": words, "env": entry.pop("environment", {})} if words else {}
        entry.pop("type", "")
        listed[name] = {**entry, **local}
    servers, taken, more = new_servers(listed, file, known, everywhere=False)
    left += more
    ruled = _opencode_rules(table.pop("permission", {}), file, listed)
    switched = _opencode_rules(_switched_off(table.pop("tools", {})), file, listed)
    lost = tuple(
        SkippedItem(key, file, "it forbids something to an agent, which no rule here says")
        for key in ("agent", "mode")
        if _forbids(table.get(key))
    )
    model = string_of(table.get("model"))
    values: dict[str, str] = {}
    if model.startswith("anthropic/claude-"):
        values["model"] = model.removeprefix("anthropic/")
        taken.append(ImportedItem("setting", f"model = {values['model']}", file))
        del table["model"]
    table.pop("$schema", None)
    left += unused_keys(table, file, _OPENCODE_KEYS, NO_SETTING)
    mine = Takeover(servers=servers, values=values, taken=tuple(taken), left=tuple(left), lost=lost)
    return joined([mine, ruled, switched])


def _switched_off(tools: object) -> object:
    """The permissions that a table of tools stands for, as opencode makes them of it."""
    if not is_object(tools):
        return tools
    named = {"write": "edit", "patch": "edit"}
    return {named.get(name, name): "deny" for name, on in tools.items() if on is not True}


def _forbids(value: object) -> bool:
    """True if anything in a value denies something, or switches it off."""
    left: list[object] = [value]
    while left:
        one = left.pop()
        if is_object(one):
            left += one.values()
        elif one is False or one == "deny":
            return True
    return False


_OPENCODE_KEYS: Final = {
    "model": _OTHER_MODEL,
    "agent": "sub-agents have a different format here; see holdfast help agents",
    "command": "write each into a file in the commands folder",
    "provider": "Holdfast only speaks Anthropic's API; set base_url for a gateway",
    "instructions": "name them in AGENTS.md",
    "plugin": _PROGRAMS,
}


def _opencode_rules(permission: object, file: Path, servers: Iterable[str]) -> Takeover:
    """Its permissions as rules. Of several that match, the strictest counts here."""
    if isinstance(permission, str):
        permission = dict.fromkeys(_OPENCODE_TOOLS, permission)
    rules: dict[str, list[str]] = {"allow": [], "ask": [], "deny": []}
    left: list[SkippedItem] = []
    lost: list[SkippedItem] = []
    if not is_object(permission):
        lost.append(SkippedItem("permission", file, "it is no object"))
    for name, given in object_of(permission).items():
        tools = _OPENCODE_TOOLS.get(name) or _tools_of_servers(name, servers)
        patterns = object_of(given) if is_object(given) else {"*": given}
        before = False
        for pattern, action in patterns.items():
            what = f"permission.{name} {pattern}: {action}"
            if not tools or not isinstance(action, str) or action not in rules:
                unknown = SkippedItem(what, file, "no rule here can express it")
                harmless = action in ("allow", "ask") or name in _GUARDED
                (left if harmless else lost).append(unknown)
            elif action == "ask" and pattern == "*" and name in _ASKED and not before:
                left.append(SkippedItem(what, file, "Holdfast asks without a rule, too"))
            else:
                rules[action] += _opencode_rule(tools, pattern)
            # What a later pattern asks about is not allowed by an earlier one.
            before = before or action == "allow"
    found = {kind: tuple(for_all_editors(texts, kind)) for kind, texts in rules.items() if texts}
    taken = tuple(ImportedItem(kind, text, file) for kind, texts in found.items() for text in texts)
    return Takeover(found, taken=taken, left=tuple(left), lost=tuple(lost))


def _tools_of_servers(name: str, servers: Iterable[str]) -> tuple[str, ...]:
    """The tools of MCP servers that it calls by a name: the server's, `_`, and the tool's."""
    of = (server for server in servers if name.startswith(f"{server}_"))
    return tuple(f"mcp__{server}__{name.removeprefix(f'{server}_')}" for server in of)


_ASKED: Final = frozenset({"bash", "edit", "webfetch"})
"""Actions that are asked about where no rule says anything."""
_GUARDED: Final = frozenset(
    {"external_directory", "doom_loop", "question", "plan_enter", "plan_exit"}
)
"""Actions that are refused here, or harm nothing."""


def _opencode_rule(tools: Iterable[str], pattern: str) -> Iterator[str]:
    for tool in tools:
        yield tool if pattern == "*" or tool in _NO_SUBJECT else f"{tool}({pattern})"


def pi(workspace: Path, folders: Folders) -> Takeover:
    """Read what pi has, in its folder and the workspace's. Blocks; raises nothing."""
    home = Path(os.environ.get("PI_CODING_AGENT_DIR") or Path.home() / ".pi" / "agent")
    parts = [
        _pi_settings(home / "settings.json"),
        _files(home / "prompts", folders.config / "commands", _ODD),
        _skills(home / "skills", folders.config / "skills"),
        _others(home, {"settings.json", "prompts", "skills"}, _PI_FILES),
        _workspace_files(workspace / ".pi"),
    ]
    return joined(parts)


_PI_FILES: Final = {
    "auth.json": _CREDENTIALS,
    "AGENTS.md": "put what applies everywhere into AGENTS.md in the configuration folder",
    "SYSTEM.md": "start with --system-prompt",
    "APPEND_SYSTEM.md": "start with --append-system-prompt",
    "extensions": _PROGRAMS,
    "keybindings.json": "keys are set in [keys]",
    "models.json": "Holdfast only speaks Anthropic's API; set base_url for a gateway",
    "sessions": "sessions stay where they are; holdfast sessions import reads them",
    "themes": "themes have a different format here",
}
_PI_KEYS: Final = {
    "defaultModel": _OTHER_MODEL,
    "extensions": _PROGRAMS,
    "packages": _PROGRAMS,
    "theme": "themes have a different format here",
    "retry": "set [retry]",
    "compaction": "set [compaction]",
    "defaultThinkingLevel": "set effort",
}


def _pi_settings(file: Path) -> Takeover:
    try:
        parsed = parse_json(read_small(file, limit=_SIZE_MAX)[0])
    except (FileNotFoundError, NotADirectoryError):
        return Takeover()
    except (OSError, ValueError, RecursionError) as error:
        return Takeover(left=(SkippedItem("", file, f"Can't read it: {error}."),))
    table, taken, values = object_of(parsed), list[ImportedItem](), dict[str, str]()
    model = string_of(table.get("defaultModel"))
    if model.startswith("claude-") and table.get("defaultProvider") in {None, "anthropic"}:
        values["model"] = model
        taken.append(ImportedItem("setting", f"model = {model}", file))
        table = {k: v for k, v in table.items() if k not in {"defaultModel", "defaultProvider"}}
    left = tuple(unused_keys(table, file, _PI_KEYS, NO_SETTING))
    return Takeover(values=values, taken=tuple(taken), left=left)


def _files(folder: Path, target: Path, odd: str) -> Takeover:
    """The prompts in a folder, as commands: those without words that are read otherwise here."""
    copies: dict[Path, Path] = {}
    left: list[SkippedItem] = []
    for file in sorted(folder.glob("*.md")):
        try:
            text = read_small(file, limit=_SIZE_MAX)[0].decode()
        except (OSError, ValueError) as error:
            left.append(SkippedItem(file.name, file, f"can't read it: {error}"))
            continue
        if (target / file.name).exists():
            left.append(SkippedItem(file.name, file, _HERE))
        elif re.search(odd, text, re.MULTILINE):
            left.append(SkippedItem(file.name, file, _OTHER_WORDS))
        else:
            copies[file] = target / file.name
    taken = tuple(ImportedItem("command", file.stem, file) for file in copies)
    return Takeover(copies=copies, taken=taken, left=tuple(left))


def _skills(folder: Path, target: Path) -> Takeover:
    """The skills in a folder, but for those that come with the program."""
    copies: dict[Path, Path] = {}
    left: list[SkippedItem] = []
    for file in sorted(folder.glob("*/SKILL.md")):
        name = file.parent.name
        if file.parent.is_symlink() or any(path.is_symlink() for path in file.parent.rglob("*")):
            left.append(SkippedItem(name, file, "it has links; copy it yourself"))
        elif (target / name).exists():
            left.append(SkippedItem(name, file, _HERE))
        else:
            copies[file.parent] = target / name
    taken = tuple(ImportedItem("skill", one.name, one / "SKILL.md") for one in copies)
    return Takeover(copies=copies, taken=taken, left=tuple(left))


def _others(home: Path, read: set[str], whys: Mapping[str, str]) -> Takeover:
    """The other files of a program's folder."""
    try:
        names = sorted(path.name for path in home.iterdir() if path.name not in read)
    except OSError:
        return Takeover()
    return Takeover(left=tuple(SkippedItem(name, home, whys.get(name, _DATA)) for name in names))


def _workspace_files(folder: Path) -> Takeover:
    """The files of a program in the workspace."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError:
        return Takeover()
    why = "for one folder only: put it into its .holdfast/"
    return Takeover(left=tuple(SkippedItem(name, folder, why) for name in names))


def _workspace_file(file: Path) -> Takeover:
    why = "for one folder only: put it into its .holdfast/config.toml"
    return Takeover(left=(SkippedItem(file.name, file.parent, why),) if file.is_file() else ())


_JSONC: Final = re.compile(r'"(?:[^"\\\n]|\\.)*+"|//[^\n]*|/\*(?:[^*]|\*(?!/))*+\*/', re.DOTALL)
_TRAILING: Final = re.compile(r'"(?:[^"\\\n]|\\.)*+"|,(?=\s*+[}\]])')


def _plain_json(text: str) -> str:
    """JSON without the comments and trailing commas that JSONC may have."""
    bare = _JSONC.sub(lambda match: match[0] if match[0].startswith('"') else " ", text)
    return _TRAILING.sub(lambda match: match[0] if match[0].startswith('"') else "", bare)
