"""A command line read by its syntax tree (tree-sitter-bash): simple commands and redirections.

Quotes and braces are resolved, and so are `~`, `cd` (which may fail), and variables that the line
itself sets. Everything else that only the shell will know is UNKNOWN in a word. Functions, branches
and loops count as run. If the grammar does not understand something, that is a problem of the whole
line, and the part that was understood is still reported. Code that the tree has only as text
(backquotes in `${…}` and here-documents, an index that bash evaluates, what follows `coproc`) makes
the line `unseen`.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cache
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tui.core.late_pattern import late_pattern
from tui.permissions.parsed_command import (
    UNKNOWN,
    ParsedLine,
    Redirect,
    ShellWord,
    SimpleCommand,
    TooMuchError,
)
from tui.permissions.risk_tiers import DOWNLOADERS

if TYPE_CHECKING:
    from tree_sitter import Language, Node

_Folders: TypeAlias = "tuple[Path | None, ...]"

KEYWORDS = frozenset({"!", "{", "if", "then", "elif", "else", "while", "until", "do"})
"""Words that the grammar sometimes mistakes for a program's name."""

_PREFIXED = late_pattern(
    r"((?:^|[\n;&|({`\"')]|\b(?:do|then|else|in)\b)[ \t]*)(?:(?:!|time(?:[ \t]+-p)?)[ \t]+)+"
    r"(?=[({!]|(?:if|while|until|for|case|select|time|function)\b|\w+[ \t]*\(\))"
)
"""`!` and `time` before a compound command, which the grammar does not know."""
_CONTINUED = late_pattern(r"(?<!\\)((?:\\\\)*)\\\n")

_CODE = late_pattern(rb"\$\(|`|[<>]\(|\$\{[ \t\n|]")
"""The places inside a word where the shell may begin to run something."""
_EVALUATES = late_pattern(
    rb"\w\[|\[\[|\(\(|\[ |\$\[|printf[ \t]+-v|@P|\$\{!|\$\{\w+:[^-=?+]"
    rb"|(?<![\w-])(?:test|let|declare|typeset|local|readonly|export|read|mapfile|readarray|unset"
    rb"|getopts|wait|ulimit|compgen|complete|trap|eval|PS[0-4]|PROMPT_COMMAND|BASH_ENV)\b"
)
"""Constructs that make bash run code inside a quoted text: `[[ 'a[$(x)]' -eq 0 ]]`, `${x@P}`."""
_COPROCESS = late_pattern(rb"\bcoproc\b")
"""The grammar takes it, and the name after it, for programs."""

_DEEPEST = 80
_LONGEST_VALUE = 200
_MOST_BRACES = 64
_MOST_FOLDERS = 8
_MOVES = frozenset({"cd", "pushd", "popd"})
_MAY_BE_PASSED_OVER = frozenset(
    {
        "if_statement", "while_statement", "for_statement", "c_style_for_statement",
        "case_statement",
    }
)  # fmt: skip
_MOST_ESCAPES = 1000
_MOST_SLOW = 500
"""Maximum number of `|`, and of `<<<`: the grammar's time grows with their square, and it ignores
the time limit meanwhile."""
_MOST_SECONDS = 0.015
"""Seconds of this thread's own time. A line that takes longer mostly has too many nodes anyway."""

_ASCII = bytes(range(128)) + b"a" * 128
_CHUNK = 65_536

# Inside a word that is being assembled:
_LITERAL = "\1"  # before a character that quotes made literal
_BREAK = "\2"  # where the shell splits it
_QUOTED = "\3"  # where quotes began, so that even an empty text is a word
_VALUE = "\4"  # where something is expanded

_QUOTES = late_pattern(
    rf"""(?=[{_VALUE}\\'"$\s{{()<>|&;`])(?:
    \\\n | \\(?P<escaped>.?) | '(?P<single>[^']*)' | \$'(?P<coded>(?:[^'\\]|\\.)*)'
    | \$?"(?P<double>(?:[^"\\]|\\.)*)" | (?P<value>{_VALUE}) | \$(?P<name>[A-Za-z_]\w*)
    | (?P<one>\{{-?\d+\.\.-?\d+\}}) | (?P<open>[\s()<>|&;`]+))""",
    re.VERBOSE | re.DOTALL,
)

_GLOB = late_pattern(rf"(?<!{_LITERAL})[*?\[]")
_CHOICE = rf"(?:[^{{}},{_LITERAL}]|{_LITERAL}.)*+"
_BRACES = late_pattern(rf"(?<!{_LITERAL})\{{({_CHOICE}(?:,{_CHOICE})++)\}}", re.DOTALL)

_COMMANDS = {"command", "declaration_command", "unset_command"}
_REDIRECTS = {"file_redirect", "heredoc_redirect", "herestring_redirect"}
_EXPANSIONS = {
    "simple_expansion", "expansion", "arithmetic_expansion", "command_substitution",
    "process_substitution",
}  # fmt: skip


def read(
    command: str, *, cwd: Path | None, known: Mapping[str, str], most: int, fed: bool = False
) -> ParsedLine:
    """Read a command line. Raises TooMuchError if that would take too long.

    `fed`: it runs where it has input. `known` are values of variables (HOME must be among them) and
    outputs of substitutions: `$(…)`. `most` is the maximum number of nodes of the syntax tree.
    """
    text = re.sub("[\0-\4]", "?", command)
    if "\\\n" in text:
        text = _CONTINUED.sub(r"\1", text)
    if "!" in text or "time" in text:
        text = _PREFIXED.sub(r"\1", text)
    source = text.encode("utf-8", "replace")
    root = _tree(source)
    if root.has_error and b"$((" in source:  # perhaps no arithmetic, but a subshell in `$(…)`
        source = source.replace(b"$((", b"$( (")
        root = _tree(source)
    if root.descendant_count > most:
        raise TooMuchError
    reader = _Reader(source, cwd, dict(known), most, fed=fed)
    if root.has_error:
        reader.line.problem = "its syntax is wrong or unknown"
    reader.walk(root)
    reader.line.nodes = root.descendant_count
    # A comment is not continued on the next line: what looks like that is a separate command.
    continued = (line for line in command.split("\n")[:-1] if line.endswith("\\"))
    reader.line.unseen = reader.hides_code() or any("#" in line for line in continued)
    return reader.line


def _tree(source: bytes) -> Node:
    """Parse a line for the grammar, which reads beyond its tables for characters above 255 and may
    crash the process.

    So a letter replaces every byte that is not ASCII; positions in the text stay the same. The
    parser is new each time: one that was stopped would continue with the previous text.
    """
    import tree_sitter  # noqa: PLC0415 - start-up stays light

    if max(source.count(b"|"), source.count(b"<<<")) > _MOST_SLOW:
        raise TooMuchError
    text = source.translate(_ASCII)
    end = time.thread_time() + _MOST_SECONDS
    try:
        tree = tree_sitter.Parser(_language()).parse(
            lambda start, _point: text[start : start + _CHUNK],
            progress_callback=lambda _start, _error: time.thread_time() > end,
        )
    except ValueError as error:
        raise TooMuchError from error
    return tree.root_node


@cache
def _language() -> Language:
    import tree_sitter  # noqa: PLC0415
    import tree_sitter_bash  # noqa: PLC0415

    return tree_sitter.Language(tree_sitter_bash.language())


class _Reader:
    """Walks the tree in the order of the text, and keeps track of variables and folder."""

    def __init__(
        self, source: bytes, cwd: Path | None, known: dict[str, str], most: int, *, fed: bool
    ) -> None:
        self.line = ParsedLine()
        self._most = most
        self._source = source
        self._done: _Folders = (cwd,)
        """The folders that the shell may be in if what came last has succeeded, the likely one
        first; none if it doesn't get here then."""
        self._failed: _Folders = (cwd,)
        """Those that it may be in if that has failed, as by a `cd` into a folder that isn't there.
        """
        self._last: _Folders = (cwd,)
        self._known = known
        self._downloaded: bool = False
        self._fed: bool = fed
        self._depth = 0
        self._aliases = dict[str, tuple[ShellWord, ...]]()
        self._functions = dict[str, tuple[SimpleCommand, ...]]()
        self._moving = set[str]()
        """The functions that go to another folder."""
        self._shown = set[int]()
        """The places where code that was walked begins or ends."""
        self._quoted = bytearray()
        """For each byte, 1 if it is in single quotes or a comment; empty while none is."""

    def hides_code(self) -> bool:
        """True if there is code that was not walked."""
        source = self._source
        if _COPROCESS.search(source):
            return True
        evaluates = _EVALUATES.search(source) is not None
        for start in _CODE.finditer(source):
            at = start.start()
            if at in self._shown:
                continue
            quoted = bool(self._quoted) and bool(self._quoted[at])
            escapes = 0
            while source[at - escapes - 1 : at - escapes] == b"\\":
                escapes += 1
            if evaluates or not (quoted or (escapes % 2 and b"`" not in source)):
                return True
        return False

    def walk(self, node: Node) -> None:
        """Walk a node, and all commands anywhere in it."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise TooMuchError
        match node.type:
            case kind if kind in _COMMANDS:
                self._command(node)
            case "variable_assignment":
                name, self._known[name] = self._assignment(node)
                set_here = ((name, self._known[name]),)
                here, *elsewhere = self._here()
                text = self._text(node)
                self._add(SimpleCommand((), text, here, set_here, elsewhere=(*elsewhere,)))
            case "redirected_statement":
                self._redirected(node)
            case "pipeline":
                self._pipeline(node)
            case "function_definition":
                self._function(node)
            case "subshell" | "command_substitution" | "process_substitution":
                self._shown |= {node.start_byte, node.end_byte - 1}
                with self._apart():
                    self._walk_all(node.named_children)
            case "arithmetic_expansion":  # it may have substitutions inside
                self._shown.add(node.start_byte)
                self._walk_all(node.named_children)
            case "raw_string" | "ansi_c_string" | "comment":
                self._is_quoted(node)
            case kind if kind in _REDIRECTS:
                self._redirect(node)
            case kind:
                if kind == "for_statement":
                    self._known[self._text(node.child_by_field_name("variable"))] = UNKNOWN
                self._in_turn(node)
        self._depth -= 1

    def _in_turn(self, node: Node) -> None:
        """Walk what is in a node, one after the other."""
        if node.type == "list":
            with self._narrowed(node) as right:
                self._walk_all(right)
            return
        before = self._here()
        self._walk_all(node.named_children)
        if node.type == "negated_command":
            self._done, self._failed = self._failed, self._done
        elif node.type in _MAY_BE_PASSED_OVER:  # also the `exit` in it
            self._done = self._failed = _either(before, self._here())

    def _walk_all(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            after = node.next_sibling
            with self._apart() if after and after.type == "&" else nullcontext():
                self.walk(node)

    @contextmanager
    def _apart(self) -> Generator[None]:
        """Walk in a separate shell: folder and variables are restored afterwards."""
        here = self._here()
        saved = dict(self._known), self._downloaded, self._fed
        yield
        self._known, self._downloaded, self._fed = saved
        self._last = self._done = self._failed = here

    def _here(self) -> _Folders:
        """The folders that the shell may be in."""
        return _either(self._done, self._failed) or self._last

    @property
    def _cwd(self) -> Path | None:
        return self._here()[0]

    @contextmanager
    def _narrowed(self, node: Node) -> Generator[list[Node]]:
        """Walk the left side of `&&` or `||`, then what is on its right in the folders in which it
        gets there; yields that."""
        left, *right = node.named_children
        self.walk(left)
        done, failed = self._done, self._failed
        either = any(child.type == "||" for child in node.children)
        self._done, self._failed = (failed, failed) if either else (done, done)
        self._last = self._done or self._last
        yield right
        if either:
            self._done = _either(done, self._done)
        else:
            self._failed = _either(failed, self._failed)

    @contextmanager
    def _feeding(self, redirects: Iterable[Node]) -> Generator[None]:
        """Mark commands as fed while these redirections apply, if one of them provides input."""
        saved = self._fed
        self._fed |= any(map(_feeds, redirects))
        yield
        self._fed = saved

    def _text(self, node: Node | None) -> str:
        start, end = (node.start_byte, node.end_byte) if node else (0, 0)
        return self._source[start:end].decode("utf-8", "replace")

    # Commands

    def _add(self, simple: SimpleCommand) -> None:
        if len(self.line.commands) >= self._most:
            raise TooMuchError
        self.line.commands.append(simple)

    def _command(self, node: Node, further: Sequence[Node] = ()) -> None:
        """Add a simple command. `further` are words that the grammar has put elsewhere."""
        assigned: list[tuple[str, str]] = []
        parts: list[Node] = []
        written: list[str] = []
        hung = list(further)
        for child in node.children:
            if child.type == "variable_assignment":
                name, value = self._assignment(child)
                assigned.append((name, value))
                if node.type == "command":  # applies to this command only
                    written.append(self._text(child))
                else:
                    self._known[name] = value
            elif child.type in _REDIRECTS:
                hung += self._redirect(child)
            elif child.is_missing or child.type == "ERROR":
                self.walk(child)
            else:
                parts += child.children if child.type == "command_name" else [child]
        # The grammar may split one word into several nodes.
        groups = list(_adjacent([*parts, *hung]))
        resolved = [word for group in groups for word in self._words(group)]
        words = tuple(dropwhile(lambda word: word.text in KEYWORDS, resolved))
        written += ["".join(map(self._text, group)) for group in groups]
        text = " ".join(written) if node.type == "command" else self._text(node)
        if words and (other := self._aliases.get(words[0].text)):
            words = (*other, *words[1:])
        fed = self._fed or any(map(_feeds, node.children))
        self._last = self._done = self._failed = self._here()
        here, *more = self._last
        sets, elsewhere = tuple(assigned), tuple(more)
        made = SimpleCommand(words, text, here, sets, self._downloaded, fed, elsewhere)
        self._add(made)
        self._call(made)
        self._follow([word.text for word in words])

    def _call(self, simple: SimpleCommand) -> None:
        """Add what a function of the line does with the words of its call."""
        name = simple.words[0].text if simple.words else ""
        for one in self._functions.get(name, ()):
            if not all(word.known for word in one.words):
                known_words, given = [w for w in one.words if w.known], simple.words[1:]
                first = 0 if one.words and one.words[0].known else 1
                self._add(replace(simple, words=(*given[:first], *known_words, *given[first:])))

    def _follow(self, words: Sequence[str]) -> None:
        """Apply a builtin's effect on the folder and the variables."""
        match words:
            case ["cd" | "pushd", *rest]:
                targets = (word for word in rest if word == "-" or word[:1] != "-")
                target = next(targets, "") or self._known["HOME"]
                self._done = _either(*((self._folder(target, one),) for one in self._done))
            case ["popd", *_]:
                self._done = (None,)
            case ["builtin" | "command", *rest]:
                self._follow(rest)
            case ["exit", *_] if "exit" not in self._functions:  # it gets no further
                self._done = self._failed = ()
            case [name, *_] if name in self._moving:
                self._done = _either(self._done, (None,))
            case ["read" | "mapfile" | "readarray" | "getopts" | "unset", *names]:
                self._known.update(dict.fromkeys(names, UNKNOWN))
            case ["alias", *defined]:
                for name, _, value in (one.partition("=") for one in defined):
                    self._aliases[name] = tuple(map(ShellWord, value.split()))
            case ["hash", "-p", program, *names]:
                self._aliases.update(dict.fromkeys(names, (ShellWord(program),)))
            case _:
                pass

    def _folder(self, target: str, here: Path | None) -> Path | None:
        if target == "-" or UNKNOWN in target or (here is None and target[:1] != "/"):
            return None
        folder = os.path.normpath((here or Path("/")) / target)
        return Path(folder) if len(folder) <= _LONGEST_VALUE else None

    def _pipeline(self, node: Node) -> None:
        with self._apart():
            for stage in node.named_children:
                start = len(self.line.commands)
                with self._apart():
                    self.walk(stage)
                self._download(start)
                self._fed = True

    def _download(self, start: int) -> None:
        """Note if a command since `start` downloads something."""
        names = {simple.program for simple in self.line.commands[start:]}
        self._downloaded |= not DOWNLOADERS.isdisjoint(names)

    def _function(self, node: Node) -> None:
        """Add a function's body, which counts as run and as fed. A function that starts itself in
        parallel is a fork bomb."""
        start = len(self.line.commands)
        with self._apart():
            self._fed = True
            self._walk_all(node.named_children)
        name = self._text(node.child_by_field_name("name"))
        self._functions[name] = tuple(self.line.commands[start:])
        if not _MOVES.isdisjoint(simple.program for simple in self._functions[name]):
            self._moving.add(name)
        itself = [s for s in self.line.commands[start:] if s.words and s.words[0].text == name]
        if len(itself) > 1 or (itself and any(n.type in {"pipeline", "&"} for n in _below(node))):
            self.line.fork_bomb = True

    def _assignment(self, node: Node) -> tuple[str, str]:
        """Return the variable that is set, and its value."""
        value = node.child_by_field_name("value")
        words = self._words((value,)) if value else []
        text = " ".join(word.text for word in words)
        if len(text) > _LONGEST_VALUE or any(child.type == "+=" for child in node.children):
            text = UNKNOWN
        return self._text(node.child_by_field_name("name")).partition("[")[0], text

    def _is_quoted(self, node: Node) -> None:
        self._quoted = self._quoted or bytearray(len(self._source))
        length = node.end_byte - node.start_byte
        self._quoted[node.start_byte : node.end_byte] = b"\1" * length

    # Redirections. The grammar attaches the rest of the line to them: further words of the command,
    # and after the start of a here-document the pipe and commands that follow.

    def _redirected(self, node: Node) -> None:
        body = node.child_by_field_name("body")
        redirects = node.children_by_field_name("redirect")
        if body is not None and body.type == "list":  # they belong to its last command
            with self._narrowed(body) as right:
                self._redirected_last(right[-1] if right else None, redirects)
        else:
            self._redirected_last(body, redirects)

    def _redirected_last(self, body: Node | None, redirects: Sequence[Node]) -> None:
        words = [word for one in redirects for word in self._redirect(one)]
        start = len(self.line.commands)
        with self._feeding(redirects):
            if body and body.type in _COMMANDS:
                self._command(body, words)
                words = []
            elif body:
                self.walk(body)
        if body and self._text(body) == "exec":  # applies to the rest of the shell
            self._fed |= any(map(_feeds, redirects))
        if words and self.line.commands[start:]:
            last = self.line.commands.pop()  # the words belong to the last command of a pipeline
            expanded = (word for group in _adjacent(words) for word in self._words(group))
            self._add(replace(last, words=(*last.words, *expanded)))
            self.line.problem = "its syntax is wrong or unknown"
        with self._apart():
            self._download(start)
            for one in redirects:
                self._walk_all(child for child in one.named_children if child.type == "pipeline")
        for one in redirects:
            self._walk_all(one.children_by_field_name("right"))

    def _redirect(self, node: Node) -> list[Node]:
        """Record a redirection; return the words that are attached to it."""
        if node.type == "file_redirect":
            return self._file(node)
        words = node.children_by_field_name("argument")
        ends = next((one for one in node.children if one.type == "heredoc_start"), None)
        quoted = ends is not None and re.search(r"[\\'\"]", self._text(ends)) is not None
        for child in node.named_children:
            if quoted and child.type == "heredoc_body":
                self._is_quoted(child)
            if child.type in _REDIRECTS:
                words += self._redirect(child)
            elif node.type == "herestring_redirect" or child.type == "heredoc_body":
                self.walk(child)
        return words

    def _file(self, node: Node) -> list[Node]:
        operator = next((child.type for child in node.children if not child.is_named), "")
        nodes = node.children_by_field_name("destination")
        if operator.endswith("-"):  # `>&-` closes, and has no file
            return nodes
        for target in nodes[:1]:
            words, written = self._words((target,)), self._text(target)
            stream = operator in {">&", "<&"} and re.fullmatch(r"\d+-?|-", written)
            if not stream and target.type != "process_substitution":
                word = words[0] if len(words) == 1 else ShellWord(UNKNOWN)
                text = f"{operator} {written}"
                here, *elsewhere = self._here()
                writes = ">" in operator
                self.line.redirects.append(Redirect(word, writes, text, here, (*elsewhere,)))
        return nodes[1:]

    # Words

    def _words(self, group: Sequence[Node]) -> list[ShellWord]:
        """Return the words that adjacent nodes expand to."""
        self._walk_all(group)
        text, end, values = "", group[0].start_byte, list[str]()
        for node in (expansion for one in group for expansion in _expansions(one)):
            written = self._text(node)  # may begin with the blanks before it
            text += self._source[end : node.start_byte].decode("utf-8", "replace")
            text += written[: len(written) - len(written.lstrip())] + _VALUE
            values.append(self._expanded(node.type, written.lstrip()))
            end = node.end_byte
        text += self._source[end : group[-1].end_byte].decode("utf-8", "replace")
        if text.count("\\") > _MOST_ESCAPES:
            return [ShellWord(UNKNOWN)]
        fields = self._unquoted(text, iter(values)).split(_BREAK)
        return [self._finished(word) for field in fields if field for word in _braces(field)]

    def _unquoted(self, text: str, values: Iterator[str]) -> str:
        """Replace a text's quotes by marks."""

        def one(match: re.Match[str]) -> str:
            match match.lastgroup:
                case "double":
                    inner = re.sub(r'\\([$`"\\]|\n)', lambda m: m[1].strip("\n"), match["double"])
                    return _literal(re.sub(_VALUE, lambda _: next(values), inner))
                case "coded":
                    return _literal(ansi_c(match["coded"]))
                case "value":
                    return _split(next(values))
                case "name":
                    return _split(self._value(match["name"]))
                case "one":
                    return "1"
                case "open":
                    return UNKNOWN
                case _:
                    return _literal(match["single"] or match["escaped"] or "")

        return _QUOTES.sub(one, text)

    def _finished(self, marked: str) -> ShellWord:
        if re.match(r"~(?=/|$)", marked):
            marked = self._known["HOME"] + marked[1:]
        elif marked.startswith("~"):
            marked = UNKNOWN
        text = marked.replace(_LITERAL, "").replace(_QUOTED, "")
        return ShellWord(text, bool(_GLOB.search(marked)))

    def _expanded(self, kind: str, text: str) -> str:
        """Return the value of `$name`, `${name}`, `${name:-…}` if it is set, or of a known
        `$(…)`."""
        if kind == "arithmetic_expansion":
            return "1"
        if match := re.fullmatch(r"\$\{?(\w+)(:?[-=].*)?\}?", text, re.DOTALL):
            value = self._value(match[1])
            return value if value or not match[2] else UNKNOWN
        inner = " ".join(text.removeprefix("$(").strip("`)").split())
        return self._value("PWD" if inner == "pwd" else f"$({inner})")

    def _value(self, name: str) -> str:
        if name == "PWD":
            here = self._here()
            return str(here[0]) if here[0] and len(here) == 1 else UNKNOWN
        return self._known.get(name, UNKNOWN)


def _either(*folders: _Folders) -> _Folders:
    """All of these folders, each once; one that isn't known for those that are too many."""
    every = tuple(dict.fromkeys(one for some in folders for one in some))
    return every if len(every) <= _MOST_FOLDERS else (*every[: _MOST_FOLDERS - 1], None)


def _expansions(node: Node) -> Iterator[Node]:
    """The parts of a word that the shell replaces."""
    if node.type in _EXPANSIONS:
        yield node
    else:
        for child in node.named_children:
            yield from _expansions(child)


def _feeds(node: Node) -> bool:
    """True if it is a redirection that gives a command input."""
    if node.type not in _REDIRECTS:
        return False
    if any(map(_feeds, node.named_children)):  # a here-document contains those that follow it
        return True
    if any(child.type == "file_descriptor" and child.text != b"0" for child in node.children):
        return False
    if node.type != "file_redirect":
        return True
    from_where = node.children_by_field_name("destination")[:1]
    reads = any(child.type in {"<", "<&", "<>"} for child in node.children)
    return reads and not any(one.text == b"/dev/null" for one in from_where)


def _literal(text: str) -> str:
    """Mark a text that the shell takes as it is."""
    return _QUOTED + re.sub(r"[{},*?\[\]~]", lambda m: _LITERAL + m[0], text)


def _split(value: str) -> str:
    """Mark an unquoted value: it is split, and its patterns count."""
    return re.sub(r"\s+", _BREAK, re.sub(r"[{},~]", lambda m: _LITERAL + m[0], value))


def ansi_c(text: str) -> str:
    """Decode the inside of `$'…'` if it has only common escapes; otherwise it is UNKNOWN."""
    common = r"(?:[^\\]|\\[abfnrtv\\'\"]|\\x[0-9a-fA-F]{2}|\\[0-3]?[0-7]{1,2})*"
    if not text.isascii() or not re.fullmatch(common, text):
        return UNKNOWN
    return re.sub("[\1-\4]", UNKNOWN, text.encode().decode("unicode_escape"))


def _braces(marked: str) -> list[str]:
    """Expand `a{b,c}` to `ab`, `ac`, the innermost first. Braces without a comma stay."""
    done: list[str] = []
    pending = [marked]
    while pending:
        text = pending.pop(0)
        if match := _BRACES.search(text):
            choices = re.split(rf"(?<!{_LITERAL}),", match[1])
            whole = [text[: match.start()] + choice + text[match.end() :] for choice in choices]
            pending = whole + pending
        else:
            bare = re.sub(rf"{_LITERAL}.", "", text, flags=re.DOTALL) if "{" in text else ""
            nested = re.search(r"\{[^,]*,[^}]*\}", bare)  # there are braces without a comma inside
            done.append(UNKNOWN if nested else text)
        if len(done) + len(pending) > _MOST_BRACES:
            return [UNKNOWN]
    return done


def _adjacent(nodes: Sequence[Node]) -> Iterator[tuple[Node, ...]]:
    """Group nodes with nothing between them: the grammar splits some words into several nodes."""
    group: list[Node] = []
    for node in nodes:
        if group and group[-1].end_byte != node.start_byte:
            yield tuple(group)
            group = []
        group.append(node)
    if group:
        yield tuple(group)


def _below(node: Node) -> Iterator[Node]:
    pending = [node]
    while pending:
        pending += (current := pending.pop()).children
        yield current
