"""Rules as Claude Code writes them, as rules of ours: `Read, Bash(git add:*)`.

What allows is read narrowly: what is not understood allows nothing. What forbids or asks is read
generously: of two meanings it has both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, cast

from tui.core import claude_names
from tui.core.dataclass import dataclass, replace
from tui.core.late_pattern import late_pattern
from tui.core.messages import object_of

_EDITORS: Final = ("edit_file", "write_file", "apply_patch")
_OURS: Final = frozenset(tool for tools in claude_names.TOOLS.values() for tool in tools)
_NOT_SO: Final = frozenset({"web_search"})
"""Tools that the person allows for a whole session, before its frame is made."""
_BY_PATH: Final = frozenset(
    {"read_file", "write_file", "edit_file", "apply_patch", "list_dir", "grep_search",
     "find_by_name"}
)  # fmt: skip
_BY_NAME: Final = frozenset({"task", "skill"})
"""Tools whose rules name a kind of sub-agent, or a skill."""
_FORM = late_pattern(r"([\w*-]+)\s*(?:\((.*)\))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class AllowedTools:
    """Rules, and what was named that is no tool here or that no rule can say. `wider` are those in
    whose place stands a rule that forbids or asks about more."""

    rules: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    wider: tuple[str, ...] = ()


def allowed_tools(names: Iterable[str]) -> AllowedTools:
    """The rules for what a file allows."""
    return _all(names, _rules)


def restricted_tools(names: Iterable[str]) -> AllowedTools:
    """The rules for what a file forbids, or asks about: where no rule can say it, the nearest one
    that says more."""
    names = tuple(names)
    wider = tuple(name for name in names if _is_widened(name))
    return replace(_all(names, _restrictions), wider=wider)


def _all(names: Iterable[str], read: Callable[[str], list[str]]) -> AllowedTools:
    rules, ignored = list[str](), list[str]()
    for name in names:
        own = read(name)
        rules += own
        ignored += [] if own else [name]
    return AllowedTools(tuple(dict.fromkeys(rules)), tuple(ignored))


def _rules(name: str) -> list[str]:
    form = _FORM.fullmatch(name.strip())
    if form is None:
        return []
    named, pattern_text = form[1], (form[2] or "").strip()
    if named.startswith("mcp__"):
        whole = named.count("__") > 1
        return [] if "*" in named or form[2] else [named if whole else f"{named}__*"]
    if named in _OURS:
        return [f"{named}({pattern_text})" if pattern_text else named]
    tools = [tool for tool in claude_names.known(named) if tool not in _NOT_SO]
    pattern = _pattern(named.lower(), pattern_text)
    if pattern is None:
        return []
    return [f"{tool}({pattern})" if pattern else tool for tool in tools]


def _restrictions(name: str) -> list[str]:
    form = _FORM.fullmatch(name.strip())
    if form is None:
        return []
    named, pattern_text = form[1], (form[2] or "").strip()
    if named == "*" or named.startswith("mcp__"):
        whole = named.count("__") > 1 or "*" in named
        return [named if whole else f"{named}__*"]
    tools = [named] if named in _OURS else claude_names.known(named)
    return [
        f"{tool}({pattern})" if pattern else tool
        for tool in tools
        for pattern in _restricted(tool, named, pattern_text)
    ]


def _is_widened(name: str) -> bool:
    """True if the rule in the place of one says more: it has no word for what is in brackets."""
    form = _FORM.fullmatch(name.strip())
    if form is None or (form[2] or "").strip() in {"", "*", "**"}:
        return False
    if form[1] == "*" or form[1].startswith("mcp__"):
        return True
    tools = claude_names.known(form[1]) if form[1] not in _OURS else ()
    return any(_restricted(tool, form[1], form[2].strip()) == ("",) for tool in tools)


def _restricted(tool: str, named: str, given: str) -> Sequence[str]:
    """The patterns of rules that forbid what Claude Code's does, "" for one that forbids all: also
    where no pattern can say it."""
    if given in {"", "*", "**"} or (tool == "web_search" and named != tool):
        return ("",)
    if named == tool:  # a rule of ours
        return (given,)
    if tool == "run_command":
        return (re.sub(r":\*\Z", " *", given),)
    if tool == "web_fetch":
        domain = re.fullmatch(r"domain:\s*([\w.*-]+)", given)
        # Any scheme and any port of it: the rule is about the host.
        return (f"*://{domain[1]}", f"*://{domain[1]}:*") if domain else ("",)
    if tool in _BY_NAME:
        return (given.removesuffix(":*"),)
    if tool not in _BY_PATH:
        return ("",)
    # As Claude Code 2.1.332 reads it (tried): `.env` and `./.env` are meant at any depth, and what
    # is a folder with all that is in it.
    path = _pattern(named.lower(), given) or ""
    path = path if "/" in path.rstrip("/") or path.startswith("~") else f"**/{path}"
    below = () if path.endswith("*") else (f"{path.rstrip('/')}/*",)
    return (*((path,) if not path.endswith("/") else ()), *below)


def _pattern(named: str, given: str) -> str | None:
    """Translate the pattern of a rule, "" for none; None where there is no such rule."""
    if given in {"", "*", "**"}:
        return ""
    if named == "bash":
        return re.sub(r":\*\Z", " *", given)
    if named == "webfetch":
        domain = re.fullmatch(r"domain:\s*([\w.-]+)", given)
        return f"https://{domain[1]}/*" if domain else None
    if given.startswith("//"):
        return given[1:]
    return re.sub(r"\A\.?/", "", given)


def rules_of(permissions: object, kind: str) -> AllowedTools:
    """The rules of a kind in ours. Anything but a list of texts is named as not expressible."""
    named: object = object_of(permissions).get(kind, [])
    every = cast("list[object]", named) if isinstance(named, list) else [named]
    texts = [one for one in every if isinstance(one, str)]
    read = allowed_tools(texts) if kind == "allow" else restricted_tools(texts)
    rules = read.rules if kind == "allow" else tuple(for_all_editors(read.rules, kind))
    odd = (json.dumps(one, default=str) for one in every if not isinstance(one, str))
    return AllowedTools(rules, (*read.ignored, *odd), read.wider)


def for_all_editors(rules: Iterable[str], kind: str) -> Iterator[str]:
    """Rules that forbid or ask: what they say of one tool that writes files, they mean of all.
    What is not to be read is not to be written, as Claude Code 2.1.332 has it (tried)."""
    found: dict[str, None] = {}
    for rule in rules:
        tool, mark, pattern = rule.partition("(")
        writes = tool in _EDITORS or (tool == "read_file" and kind == "deny")
        for each in dict.fromkeys((tool, *_EDITORS)) if writes else (tool,):
            found[f"{each}{mark}{pattern}"] = None
    return iter(found)
