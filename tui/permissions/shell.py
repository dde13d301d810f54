"""A command line as the shell would read it: its simple commands, words and redirections.

Read by a grammar (tree-sitter-bash), then followed in order: quotes and braces are resolved,
variables and `cd` as far as the line itself decides them. Functions, branches and loops count as
run. What only the shell will know stands in a word as UNKNOWN. What the grammar does not
understand is a problem of the whole line, and what was understood of it is still reported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING

from tui.permissions.parsed_command import (
    LONGEST_VALUE,
    ParsedLine,
    Redirect,
    SimpleCommand,
    known_output,
)
from tui.permissions.shell_words import UNKNOWN, Expander, ShellWord
from tui.permissions.syntax import RESERVED, TooMuchError, parse

if TYPE_CHECKING:
    from tree_sitter import Node

_DEEPEST = 40
_MOST_COMMANDS = 1000
_MOST_STEPS = 20_000
_MOST_TURNS = 16

_SEQUENCES = {
    "program", "list", "compound_statement", "do_group", "if_statement", "elif_clause",
    "else_clause", "while_statement", "case_statement", "case_item", "negated_command",
    "variable_assignments", "c_style_for_statement", "test_command",
}  # fmt: skip
_WORDS = {
    "word", "number", "string", "raw_string", "ansi_c_string", "translated_string",
    "concatenation", "simple_expansion", "expansion", "command_substitution",
    "process_substitution", "arithmetic_expansion", "brace_expression", "extglob_pattern",
    "regex", "variable_name", "special_variable_name", "test_operator", "file_descriptor",
    "subscript", "array", "binary_expression", "unary_expression", "postfix_expression",
    "parenthesized_expression", "ternary_expression", "heredoc_start", "heredoc_body",
    "heredoc_end", "heredoc_content",
}  # fmt: skip


def read(
    command: str,
    *,
    cwd: Path | None,
    home: Path,
    variables: Mapping[str, str] | None = None,
    outputs: Mapping[str, str] | None = None,
) -> ParsedLine:
    """Read a command line. Never raises for any text.

    `variables` are known from the start; `outputs` says what known commands print, so that
    `$(pwd)` is a known word.
    """
    try:
        source, root = parse(command)
    except TooMuchError as error:
        return ParsedLine(problem=str(error))
    reader = _Reader(source, cwd, {"HOME": str(home), "IFS": " ", **(variables or {})}, outputs)
    try:
        if root.has_error:
            reader.script.problem = "its syntax cannot be read"
        reader.walk(root)
    except TooMuchError as error:
        reader.script.problem = str(error)
    return reader.script


class _Reader:
    """Walks the tree in the order of execution, and keeps variables and folder on the way."""

    def __init__(
        self,
        source: bytes,
        cwd: Path | None,
        variables: dict[str, str],
        outputs: Mapping[str, str] | None,
    ) -> None:
        self.script = ParsedLine()
        self._at = Expander(source, cwd, variables, self._output)
        self._outputs = outputs or {}
        self._feeds: tuple[SimpleCommand, ...] = ()
        self._depth = 0
        self._steps = 0

    def walk(self, node: Node) -> None:
        """A statement, and all statements in it."""
        with self._deeper():
            self._statement(node)

    @contextmanager
    def _deeper(self) -> Generator[None]:
        self._depth += 1
        self._steps += 1
        if self._depth > _DEEPEST:
            raise TooMuchError("it is nested too deeply")
        if self._steps > _MOST_STEPS:
            raise TooMuchError("it holds too much")
        try:
            yield
        finally:
            self._depth -= 1

    def _statement(self, node: Node) -> None:  # noqa: C901, PLR0912 - one branch a kind
        kind = node.type
        if kind == "command":
            self._command(node)
        elif kind == "redirected_statement":
            self._redirected(node)
        elif kind == "pipeline":
            self._pipeline(node, self._feeds)
        elif kind == "subshell":
            self._apart(node)
        elif kind == "for_statement":
            self._for(node)
        elif kind == "function_definition":
            self._function(node)
        elif kind == "variable_assignment":
            name = self._assign(node)
            self._add(SimpleCommand((), self._at.text(node), self._at.cwd, assigned=(name,)))
        elif kind in {"declaration_command", "unset_command"}:
            self._declaration(node)
        elif kind in _SEQUENCES or kind == "ERROR":
            for child in node.named_children:
                self.walk(child)
        elif kind in _WORDS:
            self._at.walk_substitutions(node)
        elif kind not in {"comment", "file_redirect", "herestring_redirect", "command_name"}:
            self.script.problem = f"it holds a {kind.replace('_', ' ')}"
            for child in node.named_children:
                self.walk(child)

    # Commands

    def _add(self, simple: SimpleCommand) -> None:
        if len(self.script.commands) >= _MOST_COMMANDS:
            raise TooMuchError("it holds too many commands")
        self.script.commands.append(simple)

    def _command(self, node: Node, extra: tuple[Node, ...] = (), stdin: str | None = None) -> None:
        assigned: list[str] = []
        parts: list[Node] = []
        shown: list[Node] = []
        for child in node.children:
            if child.type == "variable_assignment":
                before = dict(self._at.variables)
                assigned.append(self._assign(child))
                self._at.variables = before
                shown.append(child)
            elif child.type == "command_name":
                parts += child.children
            elif child.type in {"file_redirect", "herestring_redirect"}:
                redirected = self._redirect(child)
                stdin = redirected.stdin if redirected.stdin is not None else stdin
                extra += redirected.extra
            elif child.is_missing or child.type == "ERROR":
                self.walk(child)
            else:
                parts.append(child)
        groups = list(_adjacent([*parts, *extra]))
        found = (word for group in groups for word in self._at.words(group))
        words = tuple(dropwhile(lambda word: word.text in RESERVED, found))
        text = " ".join(
            [*map(self._at.text, shown), *("".join(map(self._at.text, group)) for group in groups)]
        )
        self._add(SimpleCommand(words, text, self._at.cwd, tuple(assigned), stdin, self._feeds))
        self._follow(words)

    def _follow(self, words: tuple[ShellWord, ...]) -> None:
        """What a builtin does to the folder and the variables."""
        match [word.text for word in words]:
            case ["cd" | "pushd", *rest]:
                targets = [t for t in rest if t == "-" or not t.startswith("-")]
                self._at.cwd = self._folder(targets[0]) if targets else self._folder("~")
            case ["popd", *_]:
                self._at.cwd = None
            case ["read" | "mapfile" | "readarray" | "getopts", *names]:
                self._at.variables.update(dict.fromkeys(names, UNKNOWN))
            case _:
                pass

    def _folder(self, target: str) -> Path | None:
        if target == "~":
            return Path(self._at.variables["HOME"])
        if target == "-" or UNKNOWN in target or (self._at.cwd is None and target[:1] != "/"):
            return None
        return Path(os.path.normpath((self._at.cwd or Path("/")) / target))

    def _pipeline(self, node: Node, feeds: tuple[SimpleCommand, ...]) -> None:
        before = self._feeds
        self._feeds = feeds
        for stage in node.named_children:
            start = len(self.script.commands)
            kept = dict(self._at.variables), self._at.cwd
            self.walk(stage)
            self._at.variables, self._at.cwd = kept
            self._feeds = (*self._feeds, *self.script.commands[start:])
        self._feeds = before

    def _apart(self, node: Node) -> None:
        """In a subshell: folder and variables are as before afterwards."""
        kept = dict(self._at.variables), self._at.cwd
        for child in node.named_children:
            self.walk(child)
        self._at.variables, self._at.cwd = kept

    def _for(self, node: Node) -> None:
        """The body once per value, as far as the values are known."""
        variable = node.child_by_field_name("variable")
        name = self._at.text(variable) if variable else ""
        values = [
            word
            for child in node.children_by_field_name("value")
            for word in self._at.words((child,))
        ]
        if not values or len(values) > _MOST_TURNS:
            values = [ShellWord(UNKNOWN)]
        body = node.child_by_field_name("body")
        for value in values:
            self._at.variables[name] = value.text
            if body is not None:
                self.walk(body)

    def _function(self, node: Node) -> None:
        """The body counts as run. One that starts itself in parallel is a fork bomb."""
        name_node, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name_node is None or body is None:
            self.script.problem = "its syntax cannot be read"
            return
        start = len(self.script.commands)
        kept = dict(self._at.variables), self._at.cwd
        self.walk(body)
        self._at.variables, self._at.cwd = kept
        name = self._at.text(name_node)
        itself = [s for s in self.script.commands[start:] if s.words and s.words[0].text == name]
        forks = any(n.type in {"pipeline", "&"} for n in _all(body))
        if itself and (forks or len(itself) > 1):
            self.script.fork_bomb = True

    def _declaration(self, node: Node) -> None:
        assigned: list[str] = []
        words = [ShellWord(self._at.text(node.children[0]))]
        for child in node.children[1:]:
            if child.type == "variable_assignment":
                assigned.append(self._assign(child))
            else:
                self._at.walk_substitutions(child)
                words.append(ShellWord(self._at.text(child)))
        self._add(SimpleCommand(tuple(words), self._at.text(node), self._at.cwd, tuple(assigned)))

    def _assign(self, node: Node) -> str:
        """Sets a variable; returns its name."""
        name_node, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        name = self._at.text(name_node) if name_node else ""
        text = ""
        if value is not None:
            words = self._at.words((value,)) if value.type != "array" else [ShellWord(UNKNOWN)]
            if value.type == "array":
                self._at.walk_substitutions(value)
            text = " ".join(word.text for word in words)
        if any(child.type == "+=" for child in node.children):
            text = self._at.variables.get(name, UNKNOWN) + text
        self._at.variables[name] = text if len(text) <= LONGEST_VALUE else UNKNOWN
        return name.partition("[")[0]

    # Redirections

    def _redirected(self, node: Node) -> None:
        body = node.child_by_field_name("body")
        found = [self._redirect(child) for child in node.children_by_field_name("redirect")]
        extra = tuple(word for one in found for word in one.extra)
        stdin = next((one.stdin for one in found if one.stdin is not None), None)
        start = len(self.script.commands)
        if body is not None and body.type == "command":
            self._command(body, extra, stdin)
        else:
            if body is not None:
                self.walk(body)
            self._attach(start, extra, stdin)
        produced = tuple(self.script.commands[start:])
        for one in found:
            for pipeline in one.pipelines:
                self._pipeline(pipeline, (*self._feeds, *produced))
            for statement in one.after:
                self.walk(statement)

    def _attach(self, start: int, extra: tuple[Node, ...], stdin: str | None) -> None:
        """Input and further words that the grammar hung on a list or group of commands."""
        commands = self.script.commands
        if stdin is not None:
            for n in range(start, len(commands)):
                if commands[n].stdin is None:
                    commands[n] = replace(commands[n], stdin=stdin)
        if extra and len(commands) > start:
            words = [word for group in _adjacent(list(extra)) for word in self._at.words(group)]
            commands[-1] = replace(commands[-1], words=(*commands[-1].words, *words))
        if extra:
            self.script.problem = "its syntax cannot be read"

    def _redirect(self, node: Node) -> _Redirected:
        if node.type == "heredoc_redirect":
            return self._heredoc(node)
        if node.type == "herestring_redirect":
            words = [w for child in node.named_children for w in self._at.words((child,))]
            return _Redirected(stdin=" ".join(word.text for word in words))
        operator = next((c.type for c in node.children if not c.is_named), "")
        targets = node.children_by_field_name("destination")
        if not targets or operator.endswith("-"):
            return _Redirected()
        duplicates = operator in {">&", "<&"} and re.fullmatch(
            r"\d+-?|-", self._at.text(targets[0])
        )
        words = self._at.words((targets[0],))
        target = words[0] if len(words) == 1 else ShellWord(UNKNOWN)
        if targets[0].type != "process_substitution" and not duplicates:
            text = f"{operator} {self._at.text(targets[0])}"
            self.script.redirects.append(Redirect(target, ">" in operator, text, self._at.cwd))
        return _Redirected(extra=tuple(targets[1:]))

    def _heredoc(self, node: Node) -> _Redirected:
        found = _Redirected(stdin="")
        for child in node.named_children:
            if child.type == "heredoc_body":
                self._at.walk_substitutions(child)
                found.stdin = self._at.text(child)
            elif child.type in {"file_redirect", "herestring_redirect"}:
                found.extra += self._redirect(child).extra
            elif child.type == "pipeline":
                found.pipelines += (child,)
            elif child.type in {"heredoc_start", "heredoc_end"}:
                continue
            elif child.type in _WORDS:
                found.extra += (child,)
            else:
                found.after += (child,)
        return found

    def _output(self, node: Node) -> str:
        """Walks a substitution. Returns what it prints where that is known."""
        start = len(self.script.commands)
        feeds, self._feeds = self._feeds, ()
        with self._deeper():
            self._apart(node)
        self._feeds = feeds
        produced = self.script.commands[start:]
        if len(produced) != 1 or node.type == "process_substitution":
            return UNKNOWN
        return known_output(produced[0], self._outputs)


@dataclass(slots=True)
class _Redirected:
    """What a redirection node holds beside its file: the grammar hangs the line's rest on it."""

    stdin: str | None = None
    extra: tuple[Node, ...] = ()
    pipelines: tuple[Node, ...] = ()
    after: tuple[Node, ...] = ()


def _adjacent(nodes: list[Node]) -> Iterator[tuple[Node, ...]]:
    """Nodes with nothing between them are one word: the grammar splits some that are."""
    group: list[Node] = []
    for node in nodes:
        if group and group[-1].end_byte != node.start_byte:
            yield tuple(group)
            group = []
        group.append(node)
    if group:
        yield tuple(group)


def _all(node: Node) -> Iterator[Node]:
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending += current.children
