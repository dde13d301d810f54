"""Permission rules: `tool` or `tool(glob)`, the glob against the command, path or URL.

In a glob `*` matches everything, `/` too; `?` one character; `[*]` a literal star. A trailing ` *`
also matches nothing: `git status *` covers `git status`. Of a command, what an allow rule with a
pattern covers is narrower: see `matching.allowing_command`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tui.core.errors import UsageError

_SYNTAX = re.compile(r"\s*([\w*?.:/-]+)\s*(?:\((.+)\))?\s*", re.DOTALL)
_ESCAPED = re.compile(r"\[([*?\[])\]")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `str(rule)` is its text, `glob` None means whatever the tool does."""

    tool: str
    glob: str | None = None

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Raises UsageError that names the rule."""
        found = _SYNTAX.fullmatch(text)
        if found is None:
            raise UsageError(
                f"{text!r} is not a permission rule.",
                hint="A rule is a tool, or tool(pattern): run_command(git status*), "
                "write_file(src/*).",
            )
        return cls(found[1], found[2])

    @classmethod
    def exactly(cls, tool: str, subject: str) -> Rule:
        """The rule for one subject and nothing else."""
        return cls(tool, escape(subject))

    def __str__(self) -> str:
        return self.tool if self.glob is None else f"{self.tool}({self.glob})"

    def names(self, tool: str) -> bool:
        return fnmatchcase(tool, self.tool)

    def matches(self, subject: str) -> bool:
        """Whether the glob matches; without one it always does."""
        if self.glob is None:
            return True
        globs = {self.glob, self.glob.removesuffix(" *"), self.glob.replace("**/", "")}
        return any(fnmatchcase(subject, glob) for glob in globs)

    @property
    def literal(self) -> str | None:
        """The one subject that it stands for; None where there is a wildcard, or no glob."""
        if self.glob is None or re.search(r"[*?\[]", _ESCAPED.sub("", self.glob)):
            return None
        return _ESCAPED.sub(r"\1", self.glob)

    @property
    def start(self) -> str:
        """What stands before the first wildcard: what the rule says by name."""
        glob = _ESCAPED.sub(lambda m: f"\0{'*?['.index(m[1])}", self.glob or "")
        head = re.split(r"[*?\[]", glob, maxsplit=1)[0]
        return re.sub(r"\0(\d)", lambda m: "*?["[int(m[1])], head)


def escape(subject: str) -> str:
    """A text as a glob that matches only itself."""
    return re.sub(r"[*?\[]", lambda m: f"[{m[0]}]", subject)


def parse_all(texts: Iterable[str]) -> tuple[Rule, ...]:
    """Raises UsageError that names the first bad rule."""
    return tuple(map(Rule.parse, texts))
