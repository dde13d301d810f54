"""Whether rules cover a call: forbidding rules generously, allowing rules narrowly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias

from tui.core.workspace import PRIVATE_DIR, Workspace
from tui.permissions.plain_command import Simple
from tui.permissions.risk import Part, RiskVerdict
from tui.permissions.rules import Rule
from tui.permissions.types import Call

Line: TypeAlias = tuple[tuple[Simple, str], ...] | None
"""The commands of a line in plain words, each with why it asks; None for every other line."""

GUARDED: Mapping[str, str] = {
    ".git": "hooks and settings there run programs",
    PRIVATE_DIR: "what stands there steers later sessions",
}
"""Folders that only a rule which names them opens for writing."""


def path_forms(path: Path, workspace: Workspace, home: Path) -> tuple[str, ...]:
    """A real path as rules may write it: inside the workspace, from the home, absolute."""
    forms = [str(path)]
    if path == workspace.root or workspace.root in path.parents:
        forms.append(str(path.relative_to(workspace.root)))
    if path == home or home in path.parents:
        forms.append(f"~/{path.relative_to(home)}")
    return tuple(forms)


def matching(
    rules: Iterable[Rule], call: Call, verdict: RiskVerdict | None, forms: tuple[str, ...]
) -> Rule | None:
    """The first rule that forbids or asks: it matches the whole, any part, or any spelling."""
    subjects = {call.subject, *call.paths, *forms} if verdict is None else {call.subject}
    if verdict is not None:
        subjects.add(str(call.command).strip())
        for part in verdict.parts:
            subjects |= {part.text, *part.spellings}
    for rule in rules:
        if rule.names(call.tool) and any(rule.matches(subject) for subject in subjects):
            return rule
    return None


def naming(rules: Iterable[Rule], call: Call) -> Rule | None:
    """The first rule whose program is named anywhere in the command, as a word of its own."""
    for rule in rules:
        first, *more = rule.start.split(" ")
        name = first.rpartition("/")[2]
        whole = r"(?!\w)" if more or rule.literal else ""  # `git*` is also meant for `git-lfs`
        pattern = rf"(?<!\w){re.escape(name)}{whole}"
        if name and rule.names(call.tool) and re.search(pattern, call.subject, re.IGNORECASE):
            return rule
    return None


def allowing_command(
    rules: Iterable[Rule],
    call: Call,
    verdict: RiskVerdict,
    line: Line,
    *,
    explicit: bool = True,
) -> Rule | None:
    """A rule by which a command is allowed, None if it is not.

    A rule without wildcards allows its very text. Every other rule is for lines in plain words
    (`line`, each command with "" if it only looks): every command must be covered, unless it only
    looks: `git commit*` does not cover `git commit && make`. What is high-risk needs a rule that
    says so by name (not `run_command`, not `*`); without `explicit` no rule is enough for it.
    """
    own = [rule for rule in rules if rule.names(call.tool)]
    whole = str(call.command).strip()
    if explicit or verdict.risk != "high-risk":
        for rule in own:
            if rule.literal is not None and rule.literal.strip() == whole:
                return rule
    if line is None or not verdict.complete:
        return None
    used: Rule | None = None
    for one, why in line:
        found = next((rule for rule in own if _matches_words(rule, one)), None) if why else None
        if why and found is None:
            return None
        used = used or found
    risky = [part for part in verdict.parts if part.risk != "safe"]
    if all(any(_covers(rule, part, explicit=explicit) for rule in own) for part in risky):
        return used
    return None


def _matches_words(rule: Rule, one: Simple) -> bool:
    """Whether a rule covers a command: the program's name by the rule's first word, then all.

    Between slashes a wildcard is part of a name: `pytest*` does not cover `pytest/../x`.
    """
    if rule.glob in {None, "*"}:
        return True
    ruled = str(rule.glob).partition(" ")[0].split("/")
    named = one.words[0].split("/")
    same = len(ruled) == len(named) and all(
        fnmatchcase(name, glob) and (name != ".." or glob == "..")
        for name, glob in zip(named, ruled, strict=True)
    )
    return same and rule.matches(one.text)


def allowing_path(
    rules: Iterable[Rule], call: Call, forms: tuple[str, ...], guarded: str, *, explicit: bool
) -> Rule | None:
    """A rule by which a call on paths is allowed, None if it is not.

    What is in a guarded folder needs a rule that says so by name, and `explicit`.
    """
    own = [rule for rule in rules if rule.names(call.tool)]
    if len(call.paths) > 1:
        own = [rule for rule in own if rule.glob is None]
    for rule in own:
        opens = not guarded or (explicit and guarded in rule.start)
        if opens and any(rule.matches(form) for form in forms):
            return rule
    return None


def _covers(rule: Rule, part: Part, *, explicit: bool) -> bool:
    if part.risk == "high-risk" and not (explicit and rule.start):
        return False
    if rule.matches(part.text):
        return True
    # `sudo apt*` names what sudo runs, `bash -c *` does not.
    program = part.text.partition(" ")[0]
    named = re.search(rf"(?<![\w./-]){re.escape(program)}(?![\w./-])", rule.start)
    return named is not None and any(rule.matches(outer) for outer in part.around)
