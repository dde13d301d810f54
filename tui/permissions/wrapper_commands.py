"""Commands that run another command: what is inside."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tui.permissions.parsed_command import Simple, known_output
from tui.permissions.risk_tiers import SHELLS, names
from tui.permissions.shell_words import PIPE, UNKNOWN, Word


@dataclass(frozen=True, slots=True)
class Wrapper:
    """How to find the command after it: options with a value, operands before it."""

    valued: tuple[str, ...] = ()
    operands: int = 0
    assignments: bool = False
    after: tuple[str, ...] = ()
    """Only where the first operand is one of these words (`uv run`)."""


_RUN = ("run",)
WRAPPERS: Mapping[str, Wrapper] = {
    "env": Wrapper(("-u", "-C", "--unset", "--chdir"), assignments=True),
    "sudo": Wrapper(names("-u -g -h -p -C -T -r -t -D -R -U"), assignments=True),
    "doas": Wrapper(("-u", "-C")),
    "pkexec": Wrapper(("--user",)),
    "runuser": Wrapper(("-u", "-g", "-G")),
    "xargs": Wrapper(
        names("-I -n -P -L -s -d -E -a --max-args --max-procs --delimiter --arg-file")
    ),
    "nohup": Wrapper(),
    "setsid": Wrapper(),
    "nice": Wrapper(("-n", "--adjustment")),
    "ionice": Wrapper(("-c", "-n", "--class", "--classdata")),
    "chrt": Wrapper(operands=1),
    "taskset": Wrapper(operands=1),
    "stdbuf": Wrapper(("-i", "-o", "-e", "--input", "--output", "--error")),
    "timeout": Wrapper(("-s", "-k", "--signal", "--kill-after"), operands=1),
    "gtimeout": Wrapper(("-s", "-k"), operands=1),
    "time": Wrapper(("-f", "-o", "--format", "--output")),
    "gtime": Wrapper(("-f", "-o")),
    "command": Wrapper(),
    "builtin": Wrapper(),
    "exec": Wrapper(("-a",)),
    "coproc": Wrapper(),
    "strace": Wrapper(("-o", "-e", "-p", "-s", "-u")),
    "ltrace": Wrapper(("-o", "-e", "-p", "-s", "-u")),
    "unbuffer": Wrapper(),
    "caffeinate": Wrapper(("-t", "-w")),
    "chroot": Wrapper(("--userspec", "--groups"), operands=1),
    "unshare": Wrapper(),
    "nsenter": Wrapper(("-t", "--target")),
    "busybox": Wrapper(),
    "toybox": Wrapper(),
    "firejail": Wrapper(),
    "proxychains": Wrapper(("-f",)),
    "torify": Wrapper(),
    "xvfb-run": Wrapper(("-n", "-s", "-e", "-f")),
    "flock": Wrapper(("-w", "-E", "--timeout"), operands=1),
    "parallel": Wrapper(("-j", "--jobs", "-a", "-n", "-I")),
    "watch": Wrapper(("-n", "-d", "--interval")),
    "entr": Wrapper(),
    "uv": Wrapper(("--with", "--python", "-p", "--extra", "--group", "--directory"), after=_RUN),
    "poetry": Wrapper(after=_RUN),
    "pipenv": Wrapper(after=_RUN),
    "pdm": Wrapper(after=_RUN),
    "hatch": Wrapper(after=_RUN),
    "rye": Wrapper(after=_RUN),
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
class Inside:
    """What a command runs: commands, texts that a shell reads, and whether some of it is open.

    `unknown` says in words what cannot be known, "" if nothing. `arguments` are `$0`, `$1` … of
    a text.
    """

    commands: tuple[Simple, ...] = ()
    texts: tuple[str, ...] = ()
    unknown: str = ""
    arguments: tuple[str, ...] = ()


def inside(simple: Simple, name: str) -> Inside:
    """What `simple`, whose program is `name`, runs. Nothing for most programs."""
    words = simple.words
    if name in SHELLS:
        return _shell(simple)
    if name == "eval":
        text = " ".join(word.text for word in words[1:])
        return _text(text) if text else Inside()
    if name == "trap":
        return _text(words[1].text) if len(words) > 2 else Inside()
    if name == "alias":
        return Inside(texts=tuple(w.text.partition("=")[2] for w in words[1:] if "=" in w.text))
    if name == "find":
        return Inside(commands=tuple(_find(simple)))
    if name == "fd":
        return Inside(commands=tuple(_after(simple, _FD_EXEC)))
    found = _texts(simple, name)
    if name in WRAPPERS and found == Inside():
        return _wrapped(simple, name, WRAPPERS[name])
    return found


def find_roots(simple: Simple) -> tuple[Word, ...]:
    """Where a `find` starts."""
    roots: list[Word] = []
    for word in simple.words[1:]:
        if word.text[:1] in {"-", "(", "!"} and word.text not in {"-H", "-L", "-P"}:
            break
        if not word.text.startswith("-"):
            roots.append(word)
    return tuple(roots) or (Word("."),)


def find_narrows(simple: Simple) -> bool:
    """Whether a `find` finds only some of what is below its roots."""
    return any(_FIND_NARROWS.fullmatch(word.text) for word in simple.words)


def _with(simple: Simple, words: tuple[Word, ...], stdin: str | None = None) -> Simple:
    return replace(
        simple, words=words, text=" ".join(w.text for w in words), assigned=(), stdin=stdin
    )


def _text(text: str, arguments: tuple[str, ...] = ()) -> Inside:
    if UNKNOWN in text:
        return Inside(
            texts=(text.replace(UNKNOWN, "$_"),),
            unknown="runs a text that is made while it runs",
            arguments=arguments,
        )
    return Inside(texts=(text,), arguments=arguments)


def _texts(simple: Simple, name: str) -> Inside:
    words = simple.words
    if name == "git":
        texts = [word.text for word in words]
        if "foreach" in texts and "submodule" in texts:
            rest = texts[texts.index("foreach") + 1 :]
            return _text(" ".join(t for t in rest if not t.startswith("-")))
        if "bisect" in texts and "run" in texts:
            return Inside(commands=(_with(simple, words[texts.index("run") + 1 :]),))
        name = next((t for t in texts[1:] if t in _TEXT_AFTER), "")
    if name == "watch":
        return _text(" ".join(w.text for w in _wrapped_words(simple, WRAPPERS["watch"])))
    for n, word in enumerate(words):
        for option in _TEXT_AFTER.get(name, ()):
            if word.text == option and n + 1 < len(words):
                rest = " ".join(w.text for w in words[n + 2 :]) if name == "env" else ""
                return _text(f"{words[n + 1].text} {rest}".strip())
            if word.text.startswith(option + "=" if option[:2] == "--" else option):
                value = word.text[len(option) :].removeprefix("=")
                if value:
                    return _text(value)
    return Inside()


def _shell(simple: Simple) -> Inside:
    """`sh -c text`, `sh script`, or a shell that reads what is piped or redirected to it."""
    words = simple.words[1:]
    for n, word in enumerate(words):
        if re.fullmatch(r"[-+][A-Za-z]*c[A-Za-z]*", word.text) or word.text == "--command":
            rest = words[n + 1 :]
            while rest and rest[0].text.startswith(("-", "+")):
                rest = rest[1:]
            if not rest:
                return Inside(unknown="runs a text that cannot be found")
            return _text(rest[0].text, tuple(w.text for w in rest[1:]))
    operands = [word for word in words if not word.text.startswith(("-", "+"))]
    if any(word.text in {"-o", "-O", "--rcfile", "--init-file"} for word in words):
        operands = operands[1:]
    reads_stdin = not operands or any(word.text == "-s" for word in words)
    if not reads_stdin:
        stdin_too = operands[0].text in {"-", "/dev/stdin", "/dev/fd/0"}
        if operands[0].known and not stdin_too and operands[0].text != PIPE:
            return Inside()
        if not stdin_too:
            return Inside(unknown="runs a text that is made while it runs")
    if simple.stdin is not None:
        return _text(simple.stdin)
    if simple.feeds:
        text = known_output(simple.feeds[-1], {})
        return _text(text) if UNKNOWN not in text else Inside(unknown="runs what is piped to it")
    return Inside()


def _find(simple: Simple) -> list[Simple]:
    """The commands of `-exec … ;`. `{}` is something below where the search starts, or, where
    nothing narrows it, that too."""
    found: list[Simple] = []
    current: list[Word] | None = None
    roots = find_roots(simple)
    found_at = roots if not find_narrows(simple) else tuple(Word(f"{r.text}/found") for r in roots)
    for word in simple.words[1:]:
        if current is None:
            current = [] if word.text in _FIND_EXEC else None
        elif word.text in {";", "+"}:
            found.append(_with(simple, tuple(current)))
            current = None
        else:
            whole = word.text == "{}"
            current += found_at if whole else (Word(word.text.replace("{}", UNKNOWN)),)
    if current:
        found.append(_with(simple, tuple(current)))
    return [one for one in found if one.words]


def _after(simple: Simple, options: set[str]) -> list[Simple]:
    texts = [word.text for word in simple.words]
    starts = [n + 1 for n, text in enumerate(texts) if text in options]
    return [
        _with(simple, (*simple.words[start:], Word(UNKNOWN)))
        for start in starts
        if start < len(texts)
    ]


def _wrapped_words(simple: Simple, wrapper: Wrapper) -> tuple[Word, ...]:
    words = list(simple.words[1:])
    if wrapper.after:
        operands = [n for n, word in enumerate(words) if not word.text.startswith("-")]
        if not operands or words[operands[0]].text not in wrapper.after:
            return ()
        words = words[operands[0] + 1 :]
    skip = wrapper.operands
    while words:
        text = words[0].text
        if text == "--":
            words = words[1:]
            break
        if text.startswith("-") and len(text) > 1:
            words = words[2 if text in wrapper.valued else 1 :]
        elif text in {"!", "{"} or (wrapper.assignments and re.match(r"[A-Za-z_]\w*=", text)):
            words = words[1:]  # `time ! x`, `time { x; }`: the grammar takes time for a program
        elif skip:
            words, skip = words[1:], skip - 1
        else:
            break
    return tuple(words[skip:])


def _wrapped(simple: Simple, name: str, wrapper: Wrapper) -> Inside:
    words = _wrapped_words(simple, wrapper)
    if not words or (name == "command" and simple.words[1].text in {"-v", "-V"}):
        return Inside()
    if name in {"xargs", "parallel"}:
        piped = known_output(simple.feeds[-1], {}) if simple.feeds else simple.stdin or UNKNOWN
        arguments = tuple(Word(text) for text in piped.split()) or (Word(UNKNOWN),)
        words = (*words, *arguments)
    return Inside(commands=(_with(simple, words, simple.stdin),))
