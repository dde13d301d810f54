"""Whether rules cover a call: forbidding rules generously, allowing rules narrowly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from tui.permissions.base import Call
from tui.permissions.risk import Part, RiskVerdict
from tui.permissions.rules import Rule
from tui.workspace import PRIVATE_DIR, Workspace

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


def allowing(
    rules: Iterable[Rule],
    call: Call,
    verdict: RiskVerdict | None,
    forms: tuple[str, ...],
    *,
    guarded: str = "",
    explicit: bool = True,
) -> Rule | None:
    """A rule by which the call is allowed, None if it is not.

    Of a command line every part must be covered, unless it only looks: `git status*` does not
    cover `git status && make`. What is high-risk, or in a guarded folder, needs a rule that says
    so by name (not `run_command`, not `*`); without `explicit` no rule is enough for it.
    """
    own = [rule for rule in rules if rule.names(call.tool)]
    if verdict is None:
        return _allowing_path(own, call, forms, guarded, explicit=explicit)
    whole = str(call.command).strip()
    if explicit or verdict.risk != "high-risk":
        for rule in own:
            if rule.literal is not None and rule.literal.strip() == whole:
                return rule
    if not verdict.complete:
        return None
    used: Rule | None = None
    for part in verdict.parts:
        if part.risk == "safe":
            continue
        found = next((rule for rule in own if _covers(rule, part, explicit=explicit)), None)
        if found is None:
            return None
        used = used or found
    return used


def _allowing_path(
    rules: list[Rule], call: Call, forms: tuple[str, ...], guarded: str, *, explicit: bool
) -> Rule | None:
    if len(call.paths) > 1:
        rules = [rule for rule in rules if rule.glob is None]
    for rule in rules:
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
