"""Permission rules: `tool` or `tool(glob)`, the glob against the command, path or URL.

In a glob `*` matches everything, including `/`; `?` one character; `[*]` a literal star. A trailing
` *` also matches nothing: `git status *` covers `git status`. A word after the rule, `network` or
`outside`, lets the allowed command reach further than the workspace (`tui.permissions.sandbox`);
`private` lets a web address lead into the person's own network. Rules that forbid or ask match
generously, rules that allow narrowly: see `rule_allowing_command` and `rule_allowing_url`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tui.core import claude_names
from tui.core.dataclass import dataclass
from tui.core.errors import UsageError
from tui.core.late_pattern import late_pattern
from tui.core.web_address import WebAddress
from tui.core.workspace import PRIVATE_DIR, Workspace
from tui.permissions.parsed_command import UNKNOWN
from tui.permissions.sandbox.walls import Level
from tui.permissions.types import Call

if TYPE_CHECKING:
    from tui.permissions.plain_command import PlainCommand
    from tui.permissions.risk import CommandPart, RiskVerdict

_SYNTAX = late_pattern(
    r"\s*([\w*?.:/-]+)\s*(?:\((.+)\))?(?:\s+(network|outside|private))?\s*", re.DOTALL
)
_WORDS: Mapping[str, Level] = {"network": Level.NETWORK, "outside": Level.OUTSIDE}
_PRIVATE = "private"
_SERVERS = "mcp__"
"""The prefix of the names of MCP servers' tools."""
_NO_WORD = late_pattern(r"""[\s"'`();,\[\]{}|&<>!=\\]+""")
_MOST_NAMED = 50
"""Maximum number of places of a program's name in a command that are examined one by one."""
_GIT_ELSEWHERE = late_pattern(
    r"GIT_CONFIG|GIT_EXEC_PATH|--exec-path=|--config-env|\binclude(if)?\.|\bconfig\b.*\balias\."
    r"|\bhelp\.autocorrect",
    re.IGNORECASE | re.DOTALL,
)
_GIT_ALSO: Mapping[str, tuple[str, ...]] = {
    "push": (
        *("send-pack", "http-push", "subtree push", "lfs push", "svn dcommit", "p4 submit"),
        *("remote-http", "remote-https", "remote-ftp", "remote-ftps"),
    ),
    "fetch": ("fetch-pack", "http-fetch"),
    "add": ("stage",),
    "init": ("init-db",),
}
"""Subcommands of git that do the same as another one, under other names (git 2.39)."""
_ESCAPED = late_pattern(r"\[([*?\[])\]")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `str(rule)` is its text, `glob` None means everything that the tool does.

    `level` is what a command that the rule allows may do: `run_command(git push *) outside`.
    `private`: a web address that it allows may lead into the person's own network.
    """

    tool: str
    glob: str | None = None
    level: Level = Level.WORKSPACE
    private: bool = False

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Parse a rule. Raises UsageError that names it."""
        match = _SYNTAX.fullmatch(text)
        if match is None:
            raise UsageError(
                f"{text!r} isn't a permission rule.",
                hint="A rule is a tool, or tool(pattern): run_command(git status*), "
                "write_file(src/*).",
            )
        level = _WORDS.get(match[3] or "", Level.WORKSPACE)
        return cls(match[1], match[2], level, match[3] == _PRIVATE)

    @classmethod
    def exactly(cls, tool: str, subject: str) -> Rule:
        """The rule for one subject and nothing else."""
        return cls(tool, escape(subject))

    def __str__(self) -> str:
        text = self.tool if self.glob is None else f"{self.tool}({self.glob})"
        word = next((word for word, level in _WORDS.items() if level is self.level), "")
        word = _PRIVATE if self.private else word
        return f"{text} {word}".rstrip()

    def names(self, tool: str) -> bool:
        return fnmatchcase(tool, self.tool)

    def matches(self, subject: str) -> bool:
        """True if the glob matches; without one it always does."""
        return self.glob is None or any(fnmatchcase(subject, glob) for glob in self._globs)

    def meets(self, path: str) -> bool:
        """Do the same for a path, in any spelling that a file system takes for the same name."""
        return self.glob is None or any(
            fnmatchcase(_folded(path), _folded(glob)) for glob in self._globs
        )

    @property
    def _globs(self) -> set[str]:
        glob = self.glob or ""
        return {glob, glob.removesuffix(" *"), glob.replace("**/", "")}

    @property
    def literal(self) -> str | None:
        """The one subject that it names; None if it has a wildcard, or no glob."""
        if self.glob is None or re.search(r"[*?\[]", _ESCAPED.sub("", self.glob)):
            return None
        return _ESCAPED.sub(r"\1", self.glob)

    @property
    def start(self) -> str:
        """The part before the first wildcard: what the rule says by name."""
        glob = _ESCAPED.sub(lambda m: f"\0{'*?['.index(m[1])}", self.glob or "")
        head = re.split(r"[*?\[]", glob, maxsplit=1)[0]
        return re.sub(r"\0(\d)", lambda m: "*?["[int(m[1])], head)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def escape(subject: str) -> str:
    """A text as a glob that matches only itself."""
    return re.sub(r"[*?\[]", lambda m: f"[{m[0]}]", subject)


def parse_all(texts: Iterable[str], *, allow: bool = False) -> tuple[Rule, ...]:
    """Parse rules. Raises UsageError that names the first bad one. Only one that allows may have a
    level."""
    rules = tuple(map(Rule.parse, texts))
    for rule in rules:
        if (rule.level is not Level.WORKSPACE or rule.private) and not allow:
            raise UsageError(
                f"{str(rule)!r} forbids or asks, so it can't say how far.",
                hint="Leave the word out: the rule applies with and without the sandbox.",
            )
    return rules


def without_tool(rules: Iterable[Rule], tools: Collection[str]) -> Iterator[Rule]:
    """The rules that concern none of these tools, nor a tool of an MCP server."""
    for rule in rules:
        of_server = rule.tool.startswith(_SERVERS) or fnmatchcase(f"{_SERVERS}x__x", rule.tool)
        if not of_server and not any(map(rule.names, tools)):
            yield rule


def require_tools(rules: Iterable[Rule], tools: Collection[str]) -> None:
    """Raise UsageError for a rule that would forbid nothing, or ask about nothing."""
    for rule in without_tool(rules, tools):
        ours = claude_names.known(rule.tool)
        meant = f"It is called {' and '.join(ours)} here." if ours else ""
        raise UsageError(
            f"The rule {str(rule)!r} is about no tool that there is.",
            hint=meant or f"The tools are: {', '.join(sorted(tools))}; and mcp__SERVER__TOOL.",
        )


Line: TypeAlias = "tuple[tuple[PlainCommand, str], ...] | None"
"""The commands of a line in plain words, each with the reason why it asks; None for other lines."""

GUARDED: Mapping[str, str] = {
    ".git": "hooks and settings there run programs",
    PRIVATE_DIR: "files there steer later sessions",
    ".claude": "hooks, commands and skills there steer later sessions",
    ".agents": "skills there steer later sessions",
}
"""Folders that are opened for writing only by a rule that names them."""

FILE_EDITORS = ("edit_file", "write_file")
"""The tools that write one file."""
READS_FILES = "read_file"
COMMANDS = "run_command"
_AS_WELL: Mapping[str, tuple[str, ...]] = {
    "apply_patch": FILE_EDITORS,
    "grep_search": (READS_FILES,),
    "recall": (READS_FILES,),
    "terminal": (COMMANDS,),
}
"""Tools that do what others do: rules that forbid those, or ask, apply to them, too."""


def path_forms(path: Path, workspace: Workspace, home: Path) -> tuple[str, ...]:
    """The spellings of a real path in rules: inside the workspace, from the home, absolute."""
    forms = [str(path)]
    if path == workspace.root or workspace.root in path.parents:
        forms.append(str(path.relative_to(workspace.root)))
    if workspace.is_temporary(path):
        return (workspace.show(path),)
    if path == home or home in path.parents:
        forms.append(f"~/{path.relative_to(home)}")
    return tuple(forms)


def matching_rule(
    rules: Iterable[Rule], call: Call, verdict: RiskVerdict | None, forms: tuple[str, ...]
) -> Rule | None:
    """The first rule that forbids or asks: it matches the whole, any part, or any spelling.

    A patch does the same as the other tools that write files, so their rules apply to it, too; a
    search reads, and so does recall where it names a file.
    """
    reads = bool(call.paths) or call.effect != "none"
    tools = (call.tool, *(_AS_WELL.get(call.tool, ()) if reads else ()))
    subjects = {call.subject, *call.paths, *forms} if verdict is None else {call.subject}
    if verdict is not None:
        subjects.add(str(call.command).strip())
        for part in verdict.parts:
            subjects |= {part.text, *part.spellings}
    for rule in rules:
        if not any(map(rule.names, tools)):
            continue
        matches = rule.meets if verdict is None and call.effect != "fetch" else rule.matches
        within = _within(rule, verdict.parts) if verdict is not None else ()
        if any(map(matches, subjects)) or any(within):
            return rule
    return None


def _within(rule: Rule, parts: Iterable[CommandPart]) -> Iterator[bool]:
    """Yield True if a rule's program is in the words of a command that may run it: of a wrapper
    that is not known (`setpriv … git push`), or in a text of another language (`python -c "…"`).

    Git's own words are also texts of the person; what it runs is known, see `wrapper_commands`.
    """
    program = rule.start.partition(" ")[0]
    if not program or rule.glob is None:
        return
    for part in parts:
        text = next(iter(part.spellings), part.text)
        first, _, after = text.partition(" ")
        if fnmatchcase(program, first.rpartition("/")[2]):  # `/usr/bin/g?t` is whatever it matches
            yield rule.matches(f"{program} {after}")
        words = _NO_WORD.sub(" ", text).split()
        own = words[0].rpartition("/")[2].lower() if words else ""
        if own.startswith("git-"):  # `git-push` is `git push`
            yield from _as_git(rule, f"git {' '.join([own[4:], *words[1:]])}")
        if own == "git":
            yield from _as_git(rule, part.spellings[-1] if part.spellings else text)
            # Only the shell will know the rest of it.
            head, unknown, _ = text.partition(UNKNOWN)
            yield bool(unknown) and (rule.start.startswith(head) or head.startswith(rule.start))
        elif part.risk != "safe":
            at = [n for n, word in enumerate(words) if word.rpartition("/")[2] == program]
            yield len(at) > _MOST_NAMED
            yield from (
                rule.matches(" ".join([program, *words[n + 1 :]])) for n in at[:_MOST_NAMED]
            )


def _as_git(rule: Rule, command: str) -> Iterator[bool]:
    """Yield True if a rule matches a command of git, or the one that does the same."""
    yield rule.matches(command)
    for name, others in _GIT_ALSO.items():
        for other in others:
            rest = command.removeprefix(f"git {other}")
            if rest != command and rest[:1] in {"", " "}:
                yield rule.matches(f"git {name}{rest}")


def git_settings_from_elsewhere(command: str) -> bool:
    """True if a line may change the meaning of git's words."""
    return _GIT_ELSEWHERE.search(command) is not None


def _for_command(rule: Rule, call: Call) -> bool:
    """True if a rule is about the tool of a call, or about commands, which another tool may run,
    too."""
    return any(map(rule.names, (call.tool, *_AS_WELL.get(call.tool, ()))))


def rule_naming_program(rules: Iterable[Rule], call: Call) -> Rule | None:
    """The first rule whose program is named anywhere in the command, as a separate word."""
    for rule in rules:
        first, *more = rule.start.split(" ")
        name = first.rpartition("/")[2]
        whole = r"(?!\w)" if more or rule.literal else ""  # `git*` also means `git-lfs`
        pattern = rf"(?<!\w){re.escape(name)}{whole}"
        if name and _for_command(rule, call) and re.search(pattern, call.subject, re.IGNORECASE):
            return rule
    return None


def rule_allowing_command(
    rules: Iterable[Rule], call: Call, verdict: RiskVerdict, line: Line, *, explicit: bool = True
) -> Rule | None:
    """The rule by which a command is allowed, None if it is not.

    A rule without wildcards allows exactly its text. Every other rule is for lines in plain words
    (`line`, each command with "" if it only reads), and every command that does more than read must
    be covered: `git commit*` does not cover `git commit && make`. A high-risk command needs a rule
    that says so by name (not `run_command`, not `*`); without `explicit` no rule is enough for it.
    """
    own = [rule for rule in rules if _for_command(rule, call)]
    whole = str(call.command).strip()
    if explicit or verdict.risk != "high-risk":
        for rule in own:
            if rule.literal is not None and rule.literal.strip() == whole:
                return rule
    # A rule with a wildcard only covers lines in which every word is known.
    if line is None or not verdict.complete:
        return None
    used: Rule | None = None
    for one, why in line:
        covering = next((rule for rule in own if _matches_words(rule, one)), None) if why else None
        if why and covering is None:
            return None
        used = used or covering
    risky = [part for part in verdict.parts if part.risk != "safe"]
    if all(any(_covers(rule, part, explicit=explicit) for rule in own) for part in risky):
        return used
    return None


def _matches_words(rule: Rule, one: PlainCommand) -> bool:
    """True if a rule covers a command: the program's name by the rule's first word, then the rest.

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


@dataclass(frozen=True, slots=True)
class RuledPath:
    """The texts by which rules may name one path of a call, and the guarded folder it is in, "" for
    none: see `GUARDED`."""

    forms: tuple[str, ...]
    guarded: str = ""


def rule_allowing_path(
    rules: Iterable[Rule], call: Call, paths: Sequence[RuledPath], *, explicit: bool
) -> Rule | None:
    """The rule by which a call on paths is allowed, None if it is not. Each path needs one; of
    several rules the first path's is returned.

    A path in a guarded folder needs a rule that says so by name, and `explicit`.
    """
    own = [rule for rule in rules if rule.names(call.tool)]
    used: list[Rule] = []
    for path in paths:
        for rule in own:
            opens = not path.guarded or (explicit and path.guarded in rule.start)
            if opens and any(map(rule.matches, path.forms)):
                used.append(rule)
                break
        else:
            return None
    return used[0] if used else None


def rule_allowing_url(rules: Iterable[Rule], call: Call) -> Rule | None:
    """The rule by which a web address may be fetched, None if there is none.

    A wildcard in the host of a rule covers nothing of the path: `https://*.example.org/*` is not
    `https://example.com/.example.org/`. An address that itself is in the person's own network needs
    a rule that names its host, or says `private`.
    """
    address = WebAddress.parse(call.subject)
    for rule in rules:
        named = rule.private or rule.start.startswith(f"{address.origin}/")
        if rule.names(call.tool) and _covers_url(rule, address) and (named or not address.is_local):
            return rule
    return None


def _covers_url(rule: Rule, address: WebAddress) -> bool:
    """True if a rule matches an address: its host by the rule's host, the rest by the rest."""
    if rule.glob in {None, "*"}:
        return True
    scheme, slashes, rest = str(rule.glob).partition("://")
    host, slash, target = rest.partition("/")
    if not slash and host.endswith("*"):  # what begins with a host's name is another host
        host, target = host[:-1], "*"
    return (
        bool(slashes)
        and fnmatchcase(address.scheme, scheme)
        and fnmatchcase(address.site, host.lower())
        and fnmatchcase(address.target, f"/{target}")
    )


def _covers(rule: Rule, part: CommandPart, *, explicit: bool) -> bool:
    if part.risk == "high-risk" and not (explicit and rule.start):
        return False
    if rule.matches(part.text):
        return True
    # `sudo apt*` names what sudo runs, `bash -c *` does not.
    program = part.text.partition(" ")[0]
    named = re.search(rf"(?<![\w./-]){re.escape(program)}(?![\w./-])", rule.start)
    return named is not None and any(rule.matches(outer) for outer in part.around)
