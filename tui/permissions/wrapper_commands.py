"""Commands that run another command, such as `sudo` or `sh -c`: which one they run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import dropwhile

from tui.permissions.parsed_command import SimpleCommand, is_option, known_output
from tui.permissions.risk_tiers import SHELLS, names
from tui.permissions.shell_words import PIPE, UNKNOWN, ShellWord


@dataclass(frozen=True, slots=True)
class Wrapper:
    """Where in the words of a wrapper the inner command begins."""

    valued: tuple[str, ...] = ()
    """Options that take the next word as their value."""
    operands: int = 0
    """How many operands stand before the command."""
    assignments: bool = False
    """`NAME=value` words may stand before it, too."""
    after: tuple[str, ...] = ()
    """Only where the first operand is one of these words (`uv run`)."""


_RUN = ("run",)
WRAPPERS: Mapping[str, Wrapper] = {
    **dict.fromkeys(
        names(
            "nohup setsid command builtin coproc unbuffer unshare busybox toybox firejail torify "
            "entr"
        ),
        Wrapper(),
    ),
    **dict.fromkeys(names("chrt taskset"), Wrapper(operands=1)),
    **dict.fromkeys(names("strace ltrace"), Wrapper(names("-o -e -p -s -u"))),
    **dict.fromkeys(names("poetry pipenv pdm hatch rye"), Wrapper(after=_RUN)),
    "env": Wrapper(("-u", "-C", "--unset", "--chdir"), assignments=True),
    "sudo": Wrapper(names("-u -g -h -p -C -T -r -t -D -R -U"), assignments=True),
    "doas": Wrapper(("-u", "-C")),
    "pkexec": Wrapper(("--user",)),
    "runuser": Wrapper(("-u", "-g", "-G")),
    "xargs": Wrapper(
        names("-I -n -P -L -s -d -E -a --max-args --max-procs --delimiter --arg-file")
    ),
    "nice": Wrapper(("-n", "--adjustment")),
    "ionice": Wrapper(("-c", "-n", "--class", "--classdata")),
    "stdbuf": Wrapper(("-i", "-o", "-e", "--input", "--output", "--error")),
    "timeout": Wrapper(("-s", "-k", "--signal", "--kill-after"), operands=1),
    "gtimeout": Wrapper(("-s", "-k"), operands=1),
    "time": Wrapper(("-f", "-o", "--format", "--output")),
    "gtime": Wrapper(("-f", "-o")),
    "exec": Wrapper(("-a",)),
    "caffeinate": Wrapper(("-t", "-w")),
    "chroot": Wrapper(("--userspec", "--groups"), operands=1),
    "nsenter": Wrapper(("-t", "--target")),
    "proxychains": Wrapper(("-f",)),
    "xvfb-run": Wrapper(("-n", "-s", "-e", "-f")),
    "flock": Wrapper(("-w", "-E", "--timeout"), operands=1),
    "parallel": Wrapper(("-j", "--jobs", "-a", "-n", "-I")),
    "watch": Wrapper(("-n", "-d", "--interval")),
    "uv": Wrapper(("--with", "--python", "-p", "--extra", "--group", "--directory"), after=_RUN),
    "conda": Wrapper(("-n", "-p", "--name"), after=_RUN),
    "bundle": Wrapper(after=("exec",)),
    "npx": Wrapper(("-p", "--package")),
}

_TEXT_AFTER: Mapping[str, tuple[str, ...]] = {
    "su": ("-c", "--command"),
    "runuser": ("-c", "--command"),
    "script": ("-c", "--command"),
    "flock": ("-c", "--command"),
    "env": ("-S", "--split-string"),
    "npx": ("-c", "--call"),
    "rebase": ("-x", "--exec"),
}
"""Options whose value is a command line."""

_FIND_EXEC = {"-exec", "-execdir", "-ok", "-okdir"}
_FIND_NARROWS = re.compile(
    r"-(name|iname|path|ipath|regex|iregex|size|mtime|mmin|ctime|cmin|atime|amin|newer.*|empty|"
    r"user|group|perm|links|inum|samefile|type|maxdepth|prune|wholename|lname)"
)
_FD_EXEC = {"-x", "-X", "--exec", "--exec-batch"}


@dataclass(frozen=True, slots=True)
class InnerCommands:
    """What a command runs."""

    commands: tuple[SimpleCommand, ...] = ()
    texts: tuple[str, ...] = ()
    """Command lines that a shell reads."""
    unknown: str = ""
    """In words, what it runs that cannot be known; "" if nothing."""
    arguments: tuple[str, ...] = ()
    """`$0`, `$1` … of a text."""


def inner_commands(simple: SimpleCommand, name: str) -> InnerCommands:
    """What `simple`, whose program is `name`, runs. Nothing for most programs."""
    words = simple.words
    if name in SHELLS:
        return _shell(simple)
    if name == "eval":
        text = " ".join(word.text for word in words[1:])
        return _text(text) if text else InnerCommands()
    if name == "trap":
        return _text(words[1].text) if len(words) > 2 else InnerCommands()
    if name == "alias":
        return InnerCommands(
            texts=tuple(w.text.partition("=")[2] for w in words[1:] if "=" in w.text)
        )
    if name == "find":
        return InnerCommands(commands=tuple(_find(simple)))
    if name == "fd":
        starts = [n + 1 for n, word in enumerate(words) if word.text in _FD_EXEC]
        runs = (words[start:] for start in starts if start < len(words))
        return InnerCommands(tuple(_with(simple, (*run, ShellWord(UNKNOWN))) for run in runs))
    found = _texts(simple, name)
    if name in WRAPPERS and found == InnerCommands():
        return _wrapped(simple, name, WRAPPERS[name])
    return found


def find_roots(simple: SimpleCommand) -> tuple[ShellWord, ...]:
    """Where a `find` starts."""
    roots: list[ShellWord] = []
    for word in simple.words[1:]:
        if word.text[:1] in {"-", "(", "!"} and word.text not in {"-H", "-L", "-P"}:
            break
        if not word.text.startswith("-"):
            roots.append(word)
    return tuple(roots) or (ShellWord("."),)


def find_narrows(simple: SimpleCommand) -> bool:
    """Whether a `find` finds only some of what is below its roots."""
    return any(_FIND_NARROWS.fullmatch(word.text) for word in simple.words)


def _with(
    simple: SimpleCommand, words: tuple[ShellWord, ...], stdin: str | None = None
) -> SimpleCommand:
    return replace(
        simple, words=words, text=" ".join(w.text for w in words), assigned=(), stdin=stdin
    )


def _text(text: str, arguments: tuple[str, ...] = ()) -> InnerCommands:
    if UNKNOWN in text:
        return InnerCommands(
            texts=(text.replace(UNKNOWN, "$_"),),
            unknown="runs a text that is made while it runs",
            arguments=arguments,
        )
    return InnerCommands(texts=(text,), arguments=arguments)


def _texts(simple: SimpleCommand, name: str) -> InnerCommands:
    words = simple.words
    if name == "git":
        texts = [word.text for word in words]
        if "foreach" in texts and "submodule" in texts:
            rest = texts[texts.index("foreach") + 1 :]
            return _text(" ".join(t for t in rest if not t.startswith("-")))
        if "bisect" in texts and "run" in texts:
            return InnerCommands(commands=(_with(simple, words[texts.index("run") + 1 :]),))
        name = next((t for t in texts[1:] if t in _TEXT_AFTER), "")
    if name == "watch":
        return _text(" ".join(w.text for w in _wrapped_words(simple, WRAPPERS["watch"])))
    for n, word in enumerate(words):
        for option in _TEXT_AFTER.get(name, ()):
            if word.text == option and n + 1 < len(words):
                rest = " ".join(w.text for w in words[n + 2 :]) if name == "env" else ""
                return _text(f"{words[n + 1].text} {rest}".strip())
            if option.startswith("--"):
                value = word.text.partition("=")[2] if is_option(word.text, option) else ""
            else:
                value = word.text.removeprefix(option) if word.text.startswith(option) else ""
            if value:
                return _text(value)
    return InnerCommands()


def _shell(simple: SimpleCommand) -> InnerCommands:
    """`sh -c text`, `sh script`, or a shell that reads what is piped or redirected to it."""
    words = simple.words[1:]
    for n, word in enumerate(words):
        if re.fullmatch(r"[-+][A-Za-z]*c[A-Za-z]*", word.text) or word.text == "--command":
            rest = tuple(dropwhile(lambda w: w.text.startswith(("-", "+")), words[n + 1 :]))
            if not rest:
                return InnerCommands(unknown="runs a text that cannot be found")
            return _text(rest[0].text, tuple(w.text for w in rest[1:]))
    operands = [word for word in words if not word.text.startswith(("-", "+"))]
    if any(word.text in {"-o", "-O", "--rcfile", "--init-file"} for word in words):
        operands = operands[1:]
    reads_stdin = not operands or any(word.text == "-s" for word in words)
    if not reads_stdin:
        stdin_too = operands[0].text in {"-", "/dev/stdin", "/dev/fd/0"}
        if operands[0].known and not stdin_too and operands[0].text != PIPE:
            return InnerCommands()
        if not stdin_too:
            return InnerCommands(unknown="runs a text that is made while it runs")
    if simple.stdin is not None:
        return _text(simple.stdin)
    if simple.feeds:
        text = known_output(simple.feeds[-1], {})
        return (
            _text(text)
            if UNKNOWN not in text
            else InnerCommands(unknown="runs what is piped to it")
        )
    return InnerCommands()


def _find(simple: SimpleCommand) -> list[SimpleCommand]:
    """The commands of `-exec … ;`. `{}` is something below where the search starts, or, where
    nothing narrows it, that too."""
    found: list[SimpleCommand] = []
    current: list[ShellWord] | None = None
    roots = find_roots(simple)
    found_at = (
        roots if not find_narrows(simple) else tuple(ShellWord(f"{r.text}/found") for r in roots)
    )
    for word in simple.words[1:]:
        if current is None:
            current = [] if word.text in _FIND_EXEC else None
        elif word.text in {";", "+"}:
            found.append(_with(simple, tuple(current)))
            current = None
        else:
            whole = word.text == "{}"
            current += found_at if whole else (ShellWord(word.text.replace("{}", UNKNOWN)),)
    if current:
        found.append(_with(simple, tuple(current)))
    return [one for one in found if one.words]


def _wrapped_words(simple: SimpleCommand, wrapper: Wrapper) -> tuple[ShellWord, ...]:
    words, at = simple.words, 1
    if wrapper.after:
        operand = next((n for n, w in enumerate(words) if n and not w.text.startswith("-")), None)
        if operand is None or words[operand].text not in wrapper.after:
            return ()
        at = operand + 1
    operands = wrapper.operands
    while at < len(words):
        text = words[at].text
        if text == "--":
            at += 1
            break
        if text.startswith("-") and len(text) > 1:
            at += 2 if text in wrapper.valued else 1
        elif text in {"!", "{"} or (wrapper.assignments and re.match(r"[A-Za-z_]\w*=", text)):
            at += 1  # `time ! x`, `time { x; }`: the grammar takes time for a program
        elif operands:
            at, operands = at + 1, operands - 1
        else:
            break
    return words[at + operands :]


def _wrapped(simple: SimpleCommand, name: str, wrapper: Wrapper) -> InnerCommands:
    words = _wrapped_words(simple, wrapper)
    if not words or (name == "command" and simple.words[1].text in {"-v", "-V"}):
        return InnerCommands()
    if name in {"xargs", "parallel"}:
        piped = known_output(simple.feeds[-1], {}) if simple.feeds else simple.stdin or UNKNOWN
        arguments = tuple(ShellWord(text) for text in piped.split()) or (ShellWord(UNKNOWN),)
        words = (*words, *arguments)
    before = simple.words[: len(simple.words) - len(words)] if wrapper.assignments else ()
    found = (re.match(r"([A-Za-z_]\w*)=", word.text) for word in before)
    assigned = tuple(match[1] for match in found if match)
    return InnerCommands((replace(_with(simple, words, simple.stdin), assigned=assigned),))
