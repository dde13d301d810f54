"""Checks for commands that are never run or are high-risk; each returns a reason, or ""."""

from __future__ import annotations

import re

from tui.permissions.parsed_command import (
    UNKNOWN,
    Invocation,
    Redirect,
    ShellWord,
    SimpleCommand,
)
from tui.permissions.path_risk import Places
from tui.permissions.risk_tiers import (
    BLOCKED_NAMES,
    BLOCKED_PROGRAMS,
    CONNECTS,
    DECIDED_BY_WORDS,
    GIT_HIGH,
    GIT_ORDINARY,
    GIT_REACHES,
    GIT_RUNS,
    HIGH_PROGRAMS,
    HIGH_WORDS,
    INITIALIZERS,
    INTERPRETERS,
    RECURSIVE,
    SHELLS,
    SSH_ADDRESS,
    STOPS_MACHINE,
    WRITERS,
)
from tui.permissions.types import Risk
from tui.permissions.wrapper_commands import find_narrows, find_roots

_WRITE_DATA = WRITERS - {"ln"}
_SENDS = ("-T", "--upload-file", "-F", "--form", "-d", "--data", "--data-binary", "--data-raw")
_KEYRINGS = {"secret-tool", "security", "keyring", "kwallet-query", "pass", "gopass"}
_MAY_NAME = {"ls", "cd", "stat", "du", "test", "[", "echo", "printf", "mkdir"}
_OWN_KEY = "it reaches Holdfast's own key"
ONLY_THEN = "what it does is only known when it runs"
TEXT_ONLY_THEN = "it runs text produced while it runs"
_FILE_ONLY_THEN = "a file that is only known when it runs"
HIDDEN = frozenset(
    {
        ONLY_THEN,
        TEXT_ONLY_THEN,
        f"it touches {_FILE_ONLY_THEN}",
        f"it writes to {_FILE_ONLY_THEN}",
    }
)
"""Reasons that name no danger, only that a command's words do not show what it does."""


def blocked_reason(simple: SimpleCommand, program: Invocation, places: Places) -> str:
    """Explain why the command is never run; "" if nothing speaks against it."""
    name, operands = program.name, program.operands
    texts = {word.text for word in program.args}
    if name in BLOCKED_PROGRAMS:
        return BLOCKED_PROGRAMS[name]
    if BLOCKED_NAMES.fullmatch(name):
        return "it overwrites a file system"
    if (name in {"systemctl", "loginctl"} and texts & STOPS_MACHINE) or (
        name == "init" and texts & {"0", "6"}
    ):
        return "it stops the machine"
    written = operands[-1:] if name in {"cp", "mv", "install"} else operands
    if name == "dd":
        written = tuple(ShellWord(w.text[3:]) for w in program.args if w.text.startswith("of="))
    if name in _WRITE_DATA and any(places.device(word, simple.cwd) for word in written):
        return "it writes onto a device"
    return _destroys(simple, program, places) or _reads_key(simple, program, places)


def _destroys(simple: SimpleCommand, program: Invocation, places: Places) -> str:
    name, targets, cwd = program.name, program.operands, simple.cwd
    if name == "find" and any(word.text == "-delete" for word in program.args):
        targets = () if find_narrows(simple) else find_roots(simple)
    elif name not in {"rimraf", "srm"} and not program.has(*RECURSIVE.get(name, ())):
        return ""
    if name in RECURSIVE and name != "rm":
        lost = next((s for word in targets if (s := places.system(word, cwd))), "")
        return f"it changes every file of {lost}" if lost else ""
    lost = next((v for word in targets if (v := places.vital(word, cwd))), "")
    return f"it deletes {lost}" if lost else ""


def _reads_key(simple: SimpleCommand, program: Invocation, places: Places) -> str:
    name, args = program.name, program.args
    for word in dict.fromkeys(simple.words[1:]):
        for text in {word.text, word.text.partition("=")[2]} - {""}:
            at_config = places.config and places.path(text, simple.cwd) == places.config
            named = at_config and name not in _MAY_NAME
            if named or places.secret(ShellWord(text, word.glob), simple.cwd):
                return _OWN_KEY
    if name in _KEYRINGS and any("holdfast" in word.text.lower() for word in args):
        return _OWN_KEY
    if name == "ps" and any(
        re.fullmatch(r"[A-Za-z]*e[A-Za-z]*|-[A-Za-z]*E[A-Za-z]*", word.text) for word in args[:1]
    ):
        return "it shows the environment of other processes, including Holdfast's own key"
    return ""


def high_risk_reason(simple: SimpleCommand, program: Invocation, places: Places) -> str:
    """Explain why the command is high-risk; "" if it is not."""
    return named_risk(simple, program) or _writes(simple, program, places)


def named_risk(simple: SimpleCommand, program: Invocation) -> str:
    """Explain why the command is high-risk wherever it is run; "" if it is not."""
    name, args, operands = program.name, program.args, program.operands
    if name in HIGH_PROGRAMS:
        return f"{name} {HIGH_PROGRAMS[name]}"
    first = operands[:2] if name in HIGH_WORDS else ()
    if not HIGH_WORDS.get(name, frozenset()).isdisjoint(word.text for word in first):
        return f"{name} installs, removes or publishes"
    if name in INITIALIZERS and [word.text for word in operands[:1]] == ["init"] and operands[1:]:
        return f"{name} init downloads and runs a program"
    if name in RECURSIVE and program.has(*RECURSIVE[name]):
        return "it deletes folders" if name == "rm" else "it changes a whole folder"
    if name == "rm" and any(word.glob for word in operands):
        return "it deletes whatever matches a pattern"
    if name == "find" and any(word.text == "-delete" for word in args):
        return "it deletes whatever it finds"
    # From here on, unknown words count: an option among them could do anything.
    if (name in DECIDED_BY_WORDS and program.open) or not all(word.known for word in first):
        return ONLY_THEN
    if name == "git":
        return _git(program)
    if name in {"curl", "wget"} and program.has(*_SENDS, "--post-file"):
        return "it may send data to a server"
    runs_text = name in {"source", "."} or INTERPRETERS.fullmatch(name)
    if runs_text and not all(word.known for word in (*args[:1], *operands[:1])):
        return TEXT_ONLY_THEN
    if simple.downloaded and (name in SHELLS or INTERPRETERS.fullmatch(name)):
        return "it runs what was downloaded"
    return ""


def _git(program: Invocation) -> str:
    subcommand = program.args[0].text if program.args else ""
    rest = Invocation("git", program.args[1:])
    texts = [word.text for word in (*program.settings, *program.args)]
    if subcommand == "clean" and rest.has("-n", "--dry-run"):
        return ""
    # Unstaging loses nothing, unless the working tree is restored, too.
    staged = rest.has("--staged", "-S") and not (rest.open or rest.has("-W", "--worktree"))
    if subcommand == "restore" and staged:
        return ""
    if subcommand in GIT_REACHES and any(map(SSH_ADDRESS.match, texts)):
        return f"git {subcommand} signs in with your SSH keys"
    needed = GIT_HIGH.get(subcommand)
    if needed is not None and (
        not needed or rest.has(*needed) or ("--" in needed and "--" in texts)
    ):
        return f"git {subcommand} can lose or publish work"
    may_set = subcommand == "config" or any(text in {"-c", "--config-env"} for text in texts)
    if may_set and any(GIT_RUNS.search(text) for text in texts):
        return "it makes git run another program"
    if rest.has("--upload-pack", "--receive-pack", "--exec") or any(
        text.startswith("--exec-path=") for text in texts
    ):
        return "it makes git run another program"
    setting = texts if subcommand == "config" else [w.text for w in program.settings]
    unknown = any(UNKNOWN in text for text in (subcommand, *setting))
    return ONLY_THEN if unknown or (program.open and subcommand not in GIT_ORDINARY) else ""


def _writes(simple: SimpleCommand, program: Invocation, places: Places) -> str:
    """Explain the danger of a writing program that gets a path it should not touch; "" for none."""
    in_place = program.name == "sed" and (program.open or program.has("-i", "--in-place"))
    if program.name not in WRITERS and not in_place:
        return ""
    operands = program.operands[1:] if in_place or program.name == "chmod" else program.operands
    for word in operands:
        path = places.path(word.text, simple.cwd)
        if places.outside(word, simple.cwd):
            where = path or _FILE_ONLY_THEN
            return f"it touches {where}, outside the workspace" if path else f"it touches {where}"
        if path and (inner := _internal(path.parts, places)):
            return f"it touches {inner}"
    return ""


def _internal(parts: tuple[str, ...], places: Places) -> str:
    root = places.root.parts
    below = parts[len(root) :]
    if parts[: len(root)] != root or not below:
        return ""
    known = {".git": "the repository's own files", ".holdfast": "Holdfast's own files"}
    return known.get(below[0], "")


def redirect(one: Redirect, places: Places) -> tuple[Risk, str]:
    """Return the tier of a redirection, and the reason."""
    path = places.path(one.target.text, one.cwd)
    if places.secret(one.target, one.cwd):
        return "blocked", "it reaches Holdfast's own key"
    if one.writes and places.device(one.target, one.cwd):
        return "blocked", "it writes onto a device"
    if places.network(one.target):
        return "high-risk", CONNECTS
    if places.outside(one.target, one.cwd):
        beyond = f"{path}, outside the workspace" if path else _FILE_ONLY_THEN
        if one.writes:
            return "high-risk", f"it writes to {beyond}"
        return "standard", f"it reads {beyond}"
    if not one.writes or (path is not None and path.parts[:2] == ("/", "dev")):
        return "safe", "it only reads"
    if path is not None and (inner := _internal(path.parts, places)):
        return "high-risk", f"it writes into {inner}"
    return "standard", f"it writes {one.target.text}"
