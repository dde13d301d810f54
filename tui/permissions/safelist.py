"""Which commands are safe: they only read. In doubt the answer is no."""

from __future__ import annotations

import re

from tui.permissions.parsed_command import Invocation, SimpleCommand
from tui.permissions.path_risk import Places
from tui.permissions.risk_tiers import (
    GIT_SAFE,
    GIT_SAFE_PAIRS,
    INJECTING,
    SAFE,
    SED_SAFE,
    SYSTEM_FOLDERS,
    SafeProgram,
)
from tui.permissions.shell_words import ShellWord

_HARMLESS_GIT = re.compile(
    r"(color\.[\w.]+|core\.quotepath|log\.\w+|diff\.(context|noprefix|renames))=\w*"
    r"|core\.pager=(cat)?"
)
_SETS = {"read", "mapfile", "readarray", "printf", "export", "declare", "typeset", "local"}


def is_read_only(simple: SimpleCommand, program: Invocation, places: Places) -> bool:
    """Whether the command changes nothing and reads nothing outside the workspace."""
    folder, _, name = simple.words[0].text.rpartition("/")
    if folder not in SYSTEM_FOLDERS or name != program.name or injects(simple):
        return False
    if program.name == "git":
        return _git(simple, program, places)
    if [word.text for word in program.args] in (["--version"], ["--help"]):
        return not folder
    if program.name == "sed":
        return _sed(simple, program, places)
    if program.name == "command":
        return bool(program.args) and program.args[0].text in {"-v", "-V"}
    rule = SAFE.get(program.name)
    return rule is not None and _fits(simple, program, rule, places)


def shows_contents(program: Invocation) -> bool:
    """Whether a safe command shows what is in files, not only which there are."""
    if program.name == "git":
        subcommand = program.args[0].text if program.args else ""
        rule = GIT_SAFE.get(subcommand)
        return rule.contents if rule else subcommand in {"stash", "notes"}
    return program.name not in SAFE or SAFE[program.name].contents


def injects(simple: SimpleCommand) -> bool:
    """Whether it sets a variable that makes other programs do something else."""
    names = [*simple.assigned]
    if simple.words and simple.words[0].text in {*_SETS, "env"}:
        names += [word.text.partition("=")[0] for word in simple.words[1:]]
    return any(INJECTING.fullmatch(name) for name in names)


def _fits(simple: SimpleCommand, program: Invocation, rule: SafeProgram, places: Places) -> bool:
    operands = program.operands
    if program.has(*rule.never) or len(operands) > rule.operands:
        return False
    if not rule.paths:
        return True
    first = 0 if program.has("-e", "-f", "--regexp", "--file") else rule.first
    return _inside(simple, program, operands[first:], places)


def _inside(
    simple: SimpleCommand, program: Invocation, operands: tuple[ShellWord, ...], places: Places
) -> bool:
    """Every path that it names, or may name, is one that the file tools reach too."""
    if not all(word.known for word in program.args):
        return False
    attached = [_attached(word) for word in program.args if word.text.startswith("-")]
    named = [*operands, *(ShellWord(text) for text in attached if text)]
    return not any(places.outside(word, simple.cwd) for word in named if word.text not in {"-", ""})


def _attached(word: ShellWord) -> str:
    """A path inside an option: `--file=/x`, `-f/x`, `-f../x`."""
    name, equals, value = word.text.partition("=")
    if equals:
        return value
    start = min((name.find(mark) for mark in ("/", "~", "..") if mark in name), default=-1)
    return name[start:] if start > 0 else ""


def _sed(simple: SimpleCommand, program: Invocation, places: Places) -> bool:
    allowed = all(
        word.text in {"-n", "-E", "-r", "-e", "-s", "-u", "--quiet", "--silent", "--posix"}
        for word in program.args
        if word.text.startswith("-") and word.text != "-"
    )
    if not allowed or not program.operands:
        return False
    texts = [word.text for word in program.args]
    scripts = {n + 1 for n, text in enumerate(texts) if text == "-e"}
    if not scripts:
        scripts = {next(n for n, text in enumerate(texts) if not text.startswith("-"))}
    files = tuple(
        word
        for n, word in enumerate(program.args)
        if n not in scripts and not word.text.startswith("-")
    )
    return all(
        n < len(texts) and all(SED_SAFE.fullmatch(one.strip()) for one in texts[n].split(";"))
        for n in scripts
    ) and _inside(simple, program, files, places)


def _git(simple: SimpleCommand, program: Invocation, places: Places) -> bool:
    settings = [word.text for word in program.settings]
    if not program.args:
        return settings in (["--version"], ["--help"])
    while settings:
        match settings:
            case ["--no-pager" | "-P" | "-p" | "--paginate" | "--no-optional-locks", *rest]:
                settings = rest
            case ["-C", folder, *rest] if not places.outside(ShellWord(folder), simple.cwd):
                settings = rest
            case ["-c", setting, *rest] if _HARMLESS_GIT.fullmatch(setting):
                settings = rest
            case _:
                return False
    subcommand, rest = program.args[0].text, Invocation("git", program.args[1:])
    if rest.args and (subcommand, rest.args[0].text) in GIT_SAFE_PAIRS:
        return _inside(simple, rest, rest.operands, places) and not rest.has("--output")
    if subcommand in {"stash", "config", "worktree", "bisect", "submodule", "notes"}:
        return False
    if subcommand == "reflog":
        return not rest.operands
    rule = GIT_SAFE.get(subcommand)
    if rule is None:
        return False
    if subcommand in {"branch", "tag"} and rest.has("-l", "--list"):
        return not rest.has(*rule.never)
    return _fits(simple, rest, rule, places)
