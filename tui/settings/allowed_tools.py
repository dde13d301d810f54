"""`allowed-tools` as Claude Code writes it, as rules of ours: `Read, Bash(git add:*)`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tui.core import claude_names

_OURS: Final = frozenset(tool for tools in claude_names.TOOLS.values() for tool in tools)
_NOT_SO: Final = frozenset({"web_search"})
"""What the person allows for a whole session, before its frame is made."""
_FORM = re.compile(r"([\w*-]+)\s*(?:\((.*)\))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class AllowedTools:
    """Rules that allow, and what was named that is no tool here or can't be allowed so."""

    rules: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def allowed_tools(names: Iterable[str]) -> AllowedTools:
    """The rules for what a file names."""
    rules, ignored = list[str](), list[str]()
    for name in names:
        found = _rules(name)
        rules += found
        ignored += [] if found else [name]
    return AllowedTools(tuple(dict.fromkeys(rules)), tuple(ignored))


def _rules(name: str) -> list[str]:
    form = _FORM.fullmatch(name.strip())
    if form is None:
        return []
    named, given = form[1], (form[2] or "").strip()
    if named.startswith("mcp__"):
        whole = named.count("__") > 1
        return [] if "*" in named or form[2] else [named if whole else f"{named}__*"]
    if named in _OURS:
        return [f"{named}({given})" if given else named]
    tools = [tool for tool in claude_names.known(named) if tool not in _NOT_SO]
    pattern = _pattern(named.lower(), given)
    if pattern is None:
        return []
    return [f"{tool}({pattern})" if pattern else tool for tool in tools]


def _pattern(named: str, given: str) -> str | None:
    """What a rule's pattern is with us, "" for none; None where there is no such rule."""
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
