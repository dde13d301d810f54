"""Workspace trust: what a project's own files may change, decided by the person one by one.

A decision is bound to the content that was seen: a change is asked about again. Decisions are
stored in the data folder, by real path, so that nothing inside a project can item itself trust.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from tui.core import front_matter, variables
from tui.core.checkers import brought_programs
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import ConfigError, StorageError, os_error_as
from tui.core.files import locked, read_small, replace_file
from tui.core.formatting import plural
from tui.core.messages import object_of, string_of
from tui.core.paths import Folders, shorten
from tui.core.redaction import mask
from tui.core.workspace import BOOT_FILES, BOOT_READ_MAX, checkout_of
from tui.settings import layers, rule_files, skills, user_commands
from tui.settings.agent_definitions import (
    AGENT_FOLDERS,
    OWN_NAMES,
    STYLE_FOLDERS,
    agent_files,
    parsed,
)
from tui.settings.hook_files import HOOK_FILES, described, hooks_in, scripts_in

_log = logging.getLogger(__name__)
_LIMIT = 10_000_000
_TEXT_MAX = 50_000
_SCRIPT_MAX = 20_000
"""Bytes of a script that are kept to show what has changed in it."""
_PROGRAMS = "language servers"


@dataclass(frozen=True, slots=True)
class TrustItem:
    """One thing that a folder's own files would do; `does` says it in words.

    `sha256` is of the content that a decision is bound to, `text` what of it can be read. `change`
    is how that differs from the text that was decided about last: lines as in a diff, none for what
    is new.
    """

    name: str
    does: str
    sha256: str
    text: str = ""
    change: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trust:
    """The person's trust in a folder's own files: `everything` for this run, or what was `granted`,
    the hashes of contents by name."""

    everything: bool = False
    granted: Mapping[str, str] = field(default_factory=dict[str, str])

    def allows(self, name: str, content: object) -> bool:
        """True if one thing counts with its present content: bytes, or a value of the settings."""
        return self.everything or self.granted.get(name) == _hash(content)

    def allows_file(self, name: str, path: Path) -> bool:
        """The same of a file, which is read. One that cannot be read counts for nothing."""
        try:
            return self.allows(name, read_small(path, limit=BOOT_READ_MAX, whole=False)[0])
        except OSError:
            return False


def trust_of(folders: Folders, workspace: Path) -> Trust:
    """Read what the person granted to a folder. A store that cannot be read grants nothing."""
    known = _known(folders, workspace)
    return Trust(granted={name: one.sha256 for name, one in known.items() if one.granted})


def undecided(folders: Folders, workspace: Path) -> tuple[TrustItem, ...]:
    """List what a folder's files would do that was not decided about, or has changed since.
    Blocks."""
    known = _known(folders, workspace)
    undecided_items: list[TrustItem] = []
    for item in items(workspace):
        last = known.get(item.name)
        if last is None:
            undecided_items.append(item)
        elif last.sha256 != item.sha256:
            undecided_items.append(replace(item, change=_change(last.text, item.text)))
    return tuple(undecided_items)


def items(workspace: Path) -> tuple[TrustItem, ...]:
    """All that a folder's own files would do beyond making things stricter. Blocks."""
    return tuple(_items(workspace))


def trusted_programs(workspace: Path, trust: Trust) -> tuple[str, ...]:
    """The language servers of the folder's own that the person trusts. Blocks."""
    programs = brought_programs(workspace)
    return programs if trust.allows(_PROGRAMS, list(programs)) else ()


def decide(
    folders: Folders, workspace: Path, about: Sequence[TrustItem], granted: Collection[str]
) -> None:
    """Remember what the person said `about` some things: which names are granted, and that the
    others are not. Blocks; raises StorageError."""
    file = _file(folders)
    hint = "This decision lasts until you quit."
    what = f"Can't write {shorten(file)}"
    with os_error_as(StorageError, what, hint=hint), locked(file.parent):
        try:
            every = _read(file)
        except (ValueError, RecursionError):
            with suppress(FileNotFoundError):
                file.replace(file.with_name("trust.json.broken"))
            every = {}
        there = {item.name for item in items(workspace)}
        mine = {n: one for n, one in every.get(_key(workspace), {}).items() if n in there}
        for one in about:
            mine[one.name] = _Decision(one.name in granted, one.sha256, one.text)
        every[_key(workspace)] = mine
        entries = {place: {n: one.to_json() for n, one in d.items()} for place, d in every.items()}
        text = json.dumps({"version": 2, "folders": entries}, indent=1, sort_keys=True)
        replace_file(file, text.encode())


@dataclass(frozen=True, slots=True)
class _Decision:
    granted: bool
    sha256: str
    text: str

    def to_json(self) -> dict[str, object]:
        return {"granted": self.granted, "sha256": self.sha256, "text": self.text}


def _items(workspace: Path) -> Iterator[TrustItem]:
    try:
        brought = layers.read(layers.project_file(workspace))
    except ConfigError:
        brought = {}  # it stops the program with words of its own
    settings = (*layers.brought_settings(brought), *layers.brought_servers(workspace))
    for one in sorted(settings, key=_weight):
        yield TrustItem(one.name, does := _setting(one), _hash(one.value), does[:_TEXT_MAX])
    for name in BOOT_FILES:
        if os.path.lexists(path := workspace / name):
            yield _file_item(path, name, "Adds a text to each session")
            break
    yield from _hook_items(workspace)
    yield from _rule_items(workspace)
    yield from _program_items(workspace)
    yield from _agent_items(workspace)
    yield from _prompt_items(workspace)


def _hook_items(workspace: Path) -> Iterator[TrustItem]:
    for name in HOOK_FILES:
        hooks = hooks_in(workspace / name)
        if isinstance(hooks, dict) and (lines := described(hooks)):
            does = f"Runs {plural(len(lines), 'hook')}, outside the sandbox: {'; '.join(lines)}"
            scripts = scripts_in(hooks, workspace)
            if there := [path for path, data in scripts.items() if data is not None]:
                does += f"; they name files of this folder: {', '.join(there)}"
            texts = [_script_text(path, data) for path, data in scripts.items()]
            text = "\n".join([*lines, *texts])[:_TEXT_MAX]
            yield TrustItem(name, does, _hash(with_scripts(hooks, scripts)), text)


def with_scripts(hooks: dict[str, Any], scripts: Mapping[str, bytes | None]) -> object:
    """Return what trust in hooks is bound to: the content of their file, and the scripts that they
    run."""
    if not scripts:
        return hooks
    hashes = {name: "" if data is None else _hash(data) for name, data in scripts.items()}
    return {"hooks": hooks, "scripts": hashes}


def _script_text(path: str, data: bytes | None) -> str:
    if data is None:
        return f"{path}: not there, or too large to read"
    return f"{path}:\n{data[:_SCRIPT_MAX].decode('utf-8', 'replace')}"


def _rule_items(workspace: Path) -> Iterator[TrustItem]:
    for path in rule_files.brought_files(workspace):
        name = path.relative_to(workspace).as_posix()
        yield _file_item(path, name, "Adds instructions", _holds_for)
    for folder in STYLE_FOLDERS:
        for path in agent_files(workspace / folder, workspace):
            name = path.relative_to(workspace).as_posix()
            yield _file_item(path, name, "Adds an output style")


def _holds_for(data: bytes) -> str:
    """Name the files that a rule is for."""
    paths = ", ".join(rule_files.paths_of(data))
    return f", for {paths}" if paths else ""


def _program_items(workspace: Path) -> Iterator[TrustItem]:
    """The language servers. A decision is about their paths: each update changes what they are,
    and they only run where a sandbox confines them."""
    if programs := brought_programs(workspace):
        does = f"Starts after edits, read-only in the sandbox: {', '.join(programs)}"
        yield TrustItem(_PROGRAMS, does, _hash(list(programs)), "\n".join(programs))


def _agent_items(workspace: Path) -> Iterator[TrustItem]:
    for folder in AGENT_FOLDERS:
        for path in agent_files(workspace / folder, workspace):
            name = path.relative_to(workspace).as_posix()
            yield _file_item(path, name, _adds_agent(path))


def _adds_agent(path: Path) -> str:
    """Say what a definition adds, by its name."""
    name = path.stem
    with suppress(OSError):
        definition = parsed(path, read_small(path, limit=BOOT_READ_MAX, whole=False)[0])
        name = name if isinstance(definition, str) else definition.name
    own = " instead of Holdfast's own" if name.casefold() in OWN_NAMES else ""
    return f"Adds the sub-agent {name}{own}"


def _prompt_items(workspace: Path) -> Iterator[TrustItem]:
    """The skills and the commands."""
    for name, (skill, path) in skills.brought_files(workspace).items():
        yield _file_item(path, name, f"Adds the skill {skill}")
    seen = set[str]()
    for folder in reversed(user_commands.FOLDERS):
        for path in user_commands.command_files(workspace / folder):
            if (real := os.path.realpath(path)) not in seen:
                seen.add(real)
                name = str(path.relative_to(workspace))
                yield _file_item(path, name, f"Adds the command /{path.stem}", _grants)


def _weight(one: layers.BroughtSetting) -> int:
    """Rank a setting, the most powerful first: where the conversation is sent, programs, rules, the
    rest."""
    first = ("profile", "base_url", "mcp", "status", "diagnostics", "background", "permissions")
    return first.index(one.path[0]) if one.path[0] in first else len(first)


def _grants(data: bytes) -> str:
    """Say what a command's file does beyond adding it."""
    rules = ", ".join(user_commands.parsed_rules(data).rules)
    return f"; in its turns it allows without asking: {rules}" if rules else ""


def _file_item(
    path: Path, name: str, does: str, more: Callable[[bytes], str] = lambda _: ""
) -> TrustItem:
    try:
        data, _ = read_small(path, limit=BOOT_READ_MAX, whole=False)
    except OSError as error:
        return TrustItem(name, f"{does}: {name}, which can't be read: {error.strerror}", _hash(b""))
    text = data.decode("utf-8-sig", "replace")
    lines = text.strip().splitlines()
    body = front_matter.parse(data).body.splitlines()
    first = next((line.strip() for line in body or lines if line.strip(" #-")), "")
    summary = f"{does}: {name}, {plural(len(lines), 'line')}, “{first[:60]}”{more(data)}"
    return TrustItem(name, summary, _hash(data), text[:_TEXT_MAX])


def _change(before: str, now: str) -> tuple[str, ...]:
    import difflib  # noqa: PLC0415 - rarely needed

    old, new = before.splitlines(), now.splitlines()
    lines = list(difflib.unified_diff(old, new, n=0, lineterm=""))[2:]
    return tuple(line for line in lines if not line.startswith("@@"))


def _setting(one: layers.BroughtSetting) -> str:
    """Say what a setting would do."""
    value = one.value
    if one.path == ("profile",):
        return f"Uses your profile {value}: its settings, and its key, which pays"
    if one.path == ("base_url",):
        return f"Sends the conversation, and the key kept for it, to {value}"
    if one.path[0] == "mcp" and isinstance(value, dict):
        return _server(one.path[-1], cast("dict[str, object]", value))
    if one.path == ("status", "command"):
        return f"Runs after each turn, outside the sandbox: {value}"
    if one.path == ("diagnostics", "checkers"):
        starts = [_checker(name, checker) for name, checker in object_of(value).items()]
        return f"Starts after edits, read-only in the sandbox: {', '.join(starts)}"
    if one.path == ("background", "notify"):
        return f"Runs where a background session needs you, outside the sandbox: {value}"
    if one.path == ("permissions", "allow"):
        return f"Allows without asking: {value}"
    if one.path == ("permissions", "auto_grant"):
        return f"Lets files be written without asking: {value}"
    return f"Sets {one.name} = {_text(value)}"


def _server(name: str, server: Mapping[str, object]) -> str:
    """Say what an MCP server would do. Values of headers are not shown: they may be keys."""
    env = {key: _words(value) for key, value in object_of(server.get("env")).items()}
    headers = {key: _words(value) for key, value in object_of(server.get("headers")).items()}
    url, words = string_of(server.get("url")), _words(server.get("command"))
    words += _words(server.get("args"))
    does = f"Connects to {url}" if url else f"Starts {shlex.join(words)}"
    values = (value for part in (*env.values(), *headers.values()) for value in part)
    taken = ", ".join(variables.names_in([url, *words, *values]))
    more = [f"{key}={mask(' '.join(value))[0]:.80}" for key, value in env.items()]
    more += [f"the header {key}" for key in headers]
    more += [f"your variables {taken}"] if taken else []
    return f"{does} (MCP server {name})" + (f" with {', '.join(more)}" if more else "")


def _checker(name: str, told: object) -> str:
    """A checker by its command, or by its name where the known one is meant."""
    return " ".join(_words(object_of(told).get("command"))) or name


def _words(value: object) -> list[str]:
    """A word or a list of them, as texts."""
    if isinstance(value, list):
        return [str(word) for word in cast("list[object]", value)]
    return [] if value is None else [str(value)]


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _hash(content: object) -> str:
    data = content if isinstance(content, bytes) else _text(content).encode("utf-8", "replace")
    return hashlib.sha256(data).hexdigest()


def _file(folders: Folders) -> Path:
    return folders.data / "trust.json"


def _key(workspace: Path) -> str:
    return os.path.realpath(workspace)


def _known(folders: Folders, workspace: Path) -> Mapping[str, _Decision]:
    """Read the decisions about a folder; for one in a worktree, those about its checkout, too: a
    decision is bound to the content, which is the same there."""
    checkout = checkout_of(Path(_key(workspace)))
    try:
        every = _read(_file(folders))
        return every.get(str(checkout), {}) | every.get(_key(workspace), {})
    except (OSError, ValueError, RecursionError) as error:
        _log.warning("can't read the trust decisions, nothing counts as decided: %s", error)
        return {}


def _read(file: Path) -> dict[str, dict[str, _Decision]]:
    """All decisions, by folder and name. Those of the first version named no content: they do not
    count."""
    try:
        data, _ = read_small(file, limit=_LIMIT)
    except FileNotFoundError:
        return {}
    content: Any = json.loads(data)
    if not isinstance(content, dict):
        raise ValueError("no object at the top")  # noqa: TRY004 - a broken file, not a broken call
    entries: Any = cast("dict[str, Any]", content).get("folders")
    if not isinstance(entries, dict):
        raise ValueError("no list of folders")  # noqa: TRY004
    return {
        place: {
            name: _Decision(
                one.get("granted") is True, string_of(one.get("sha256")), string_of(one.get("text"))
            )
            for name, one in ((n, object_of(d)) for n, d in object_of(decisions).items())
        }
        for place, decisions in cast("dict[str, Any]", entries).items()
    }
