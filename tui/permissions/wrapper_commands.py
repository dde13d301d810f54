"""Commands that run another command, such as `sudo` or `sh -c`: which one they run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import dropwhile, pairwise

from tui.core.dataclass import dataclass, replace
from tui.core.late_pattern import late_pattern
from tui.permissions.parsed_command import (
    UNKNOWN,
    ShellWord,
    SimpleCommand,
    invocation,
    is_option,
)
from tui.permissions.risk_tiers import GIT_RUNS, SHELLS, names
from tui.permissions.unseen_programs import (
    MADE,
    PROGRAM_VARIABLES,
    READS_INPUT,
    STANDARD_INPUT,
    unseen_code,
    unseen_variable,
)


@dataclass(frozen=True, slots=True)
class Wrapper:
    """The place in a wrapper's words where the inner command begins."""

    valued: tuple[str, ...] = ()
    """Options that take the next word as their value."""
    operands: int = 0
    """Number of operands before the command."""
    assignments: bool = False
    """True if `NAME=value` words may precede it, too."""
    after: tuple[str, ...] = ()
    """Only if the first operand is one of these words (`uv run`)."""


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
    **dict.fromkeys(names("npx npm pnpm"), ("-c", "--call")),
    "entr": ("-s",),
    "man": ("-P", "--pager", "--html"),
    "rsync": ("-e", "--rsh", "--rsync-path"),
    "sort": ("--compress-program",),
    "split": ("--filter",),
    "tar": (
        *("-I", "-F", "--use-compress-program", "--to-command", "--info-script"),
        *("--new-volume-script", "--rsh-command", "--rmt-command", "--checkpoint-action"),
    ),
    "zip": ("-TT", "--unzip-command"),
    "mapfile": ("-C",),
    "readarray": ("-C",),
    "compgen": ("-C", "-W"),
    "complete": ("-C", "-W"),
    "rebase": ("-x", "--exec"),
    "difftool": ("-x", "--extcmd"),
    "clone": ("-u", "--upload-pack"),
    **dict.fromkeys(names("fetch pull ls-remote fetch-pack"), ("--upload-pack", "--exec")),
    **dict.fromkeys(names("push send-pack archive"), ("--receive-pack", "--exec")),
    "grep": ("-O", "--open-files-in-pager"),
    "filter-branch": tuple(
        f"--{kind}-filter" for kind in names("env tree index parent msg commit tag-name setup")
    ),
}
"""Options whose value is a command line."""

_GIT_RUNS = names(
    "rebase difftool grep filter-branch clone fetch pull ls-remote fetch-pack push send-pack "
    "archive"
)
"""Subcommands of git with such options."""
_GIT_PROGRAMS = late_pattern(
    r"pager\..+|.+\.(pager|editor|command|cmd|driver|external|textconv|sshcommand|fsmonitor"
    r"|askpass|helper|program|clean|smudge|process|uploadpack|receivepack|difffilter"
    r"|packobjectshook|alternaterefscommand)"
)
"""Settings of git that name a program, with its arguments."""

_FIND_EXEC = {"-exec", "-execdir", "-ok", "-okdir"}
_FIND_NARROWS = late_pattern(
    r"-(name|iname|path|ipath|regex|iregex|size|mtime|mmin|ctime|cmin|atime|amin|newer.*|empty|"
    r"user|group|perm|links|inum|samefile|type|maxdepth|prune|wholename|lname)"
)
_FD_EXEC = {"-x", "-X", "--exec", "--exec-batch"}
_SETTINGS = "runs what settings from elsewhere name"
_ELSEWHERE = late_pattern(r"include\.path|includeif\.", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class InnerCommands:
    """The commands that a command runs."""

    commands: tuple[SimpleCommand, ...] = ()
    texts: tuple[str, ...] = ()
    """Command lines that a shell reads."""
    unknown: str = ""
    """In words, the part that cannot be known; "" if there is none."""
    unseen: str = ""
    """Likewise for what makes a command no riskier, since any program may start others."""


def inner_commands(simple: SimpleCommand) -> InnerCommands:
    """Find the commands that a command runs, also by the variables that it sets. Mostly none."""
    inner = _run_by(simple) if simple.words else InnerCommands()
    values = [value for name, value in simple.assigned if name in PROGRAM_VARIABLES and value]
    if not simple.assigned:
        return inner
    made = MADE if any(UNKNOWN in value for value in values) else ""
    loads = next((why for one in simple.assigned if (why := unseen_variable(*one))), "")
    texts = (*inner.texts, *(value.replace(UNKNOWN, "$_") for value in values))
    return replace(inner, texts=texts, unseen=inner.unseen or loads or made)


def _run_by(simple: SimpleCommand) -> InnerCommands:
    words, name = simple.words, simple.program
    if name in SHELLS:
        return _shell(words[1:])
    if name == "eval":
        return _text(" ".join(word.text for word in words[1:]))
    if name in {"source", "."} and any(STANDARD_INPUT.fullmatch(one.text) for one in words[1:2]):
        return InnerCommands(unknown=READS_INPUT)
    if name == "jobs" and any(word.text == "-x" for word in words[1:2]):
        return _commands(simple, words[2:])
    if name == "trap":
        given = words[2:] if words[1:2] and words[1].text == "--" else words[1:]
        return _text(given[0].text if len(given) > 1 else "")
    if name == "alias":
        return InnerCommands(texts=tuple(word.text.partition("=")[2] for word in words[1:]))
    if name == "find":
        return InnerCommands(commands=tuple(_find(simple)))
    if name == "fd":
        starts = [n + 1 for n, word in enumerate(words) if word.text in _FD_EXEC]
        # fd appends the path that it found.
        return _commands(simple, *((*words[n:], ShellWord(UNKNOWN)) for n in starts if words[n:]))
    if name == "git":
        return _git(simple)
    if texts := _texts_after(words, name):
        read_texts = tuple(map(_text, texts))
        return InnerCommands(
            texts=tuple(text for one in read_texts for text in one.texts),
            unknown=next((one.unknown for one in read_texts if one.unknown), ""),
            unseen=unseen_code(simple),
        )
    if name in WRAPPERS and [word.text for word in words[1:]] != ["run", "-"]:
        return _wrapped(simple, WRAPPERS[name])
    return InnerCommands(unseen=unseen_code(simple))


def find_roots(simple: SimpleCommand) -> tuple[ShellWord, ...]:
    """The places where a `find` starts."""
    roots: list[ShellWord] = []
    for word in simple.words[1:]:
        if word.text[:1] in {"-", "(", "!"} and word.text not in {"-H", "-L", "-P"}:
            break
        if not word.text.startswith("-"):
            roots.append(word)
    return tuple(roots) or (ShellWord("."),)


def find_narrows(simple: SimpleCommand) -> bool:
    """True if a `find` matches only some of what is below its roots."""
    return any(_FIND_NARROWS.fullmatch(word.text) for word in simple.words)


def _commands(simple: SimpleCommand, *word_lists: tuple[ShellWord, ...]) -> InnerCommands:
    return InnerCommands(tuple(_with(simple, words) for words in word_lists if words))


def _with(simple: SimpleCommand, words: tuple[ShellWord, ...]) -> SimpleCommand:
    text = " ".join(word.text for word in words).replace(UNKNOWN, "…")
    return replace(simple, words=words, text=text, assigned=())


def _text(text: str) -> InnerCommands:
    """Read a text as a command line. UNKNOWN in it is read as a variable."""
    unknown = MADE if UNKNOWN in text else ""
    return InnerCommands(texts=(text.replace(UNKNOWN, "$_"),) if text else (), unknown=unknown)


def _texts_after(words: tuple[ShellWord, ...], name: str) -> tuple[str, ...]:
    """The command lines that are values of options."""
    if name == "watch":
        return (" ".join(word.text for word in _wrapped_words(words, WRAPPERS[name])),)
    if name not in _TEXT_AFTER:
        return ()
    texts = [word.text for word in words]
    values = dict.fromkeys(
        value
        for option in _TEXT_AFTER[name]
        for n, text in enumerate(texts)
        if (
            value := _value(option, text, texts[n + 1 :] if name == "env" else texts[n + 1 : n + 2])
        )
    )
    return tuple(one.removeprefix("exec=") if name == "tar" else one for one in values)


def _value(option: str, text: str, after: Sequence[str]) -> str:
    """The value of an option, if a word is that option."""
    if text == option:
        return " ".join(after)
    if option.startswith("--"):
        return text.partition("=")[2] if is_option(text, option) else ""
    # Also at the end of grouped options: `env -vS…`, `script -qc …`
    row = re.match(rf"-[a-zA-Z]*?{option[1]}(.*)", text, re.DOTALL)
    return (row[1] or " ".join(after)) if row else ""


def _git(simple: SimpleCommand) -> InnerCommands:
    """Find what git runs: an alias in its options, and programs that its settings and options
    name."""
    called = invocation(simple)
    given = [word.text for word in called.settings]
    settings = [value for option, value in pairwise(given) if option == "-c"]
    texts = [
        value.removeprefix("!")
        for name, _, value in (one.partition("=") for one in settings)
        if _GIT_PROGRAMS.fullmatch(name.lower())
    ]
    if called.args and (alias := _alias(called.args[0].text, settings)):
        # The other settings apply in it, too: an alias may refer to another one.
        others = [f"-c {shlex.quote(one)}" for one in settings if one != alias]
        value, rest = alias.partition("=")[2], [word.text for word in called.args[1:]]
        run = [value[1:]] if value.startswith("!") else ["git", *others, value]
        texts.append(" ".join([*run, *rest]))
    words = [word.text for word in called.args]
    if words[:2] == ["submodule", "foreach"]:
        texts.append(" ".join(text for text in words[2:] if not text.startswith("-")))
    elif words[:2] == ["bisect", "run"]:
        return _commands(simple, called.args[2:])
    elif words:
        texts += _texts_after(called.args, words[0]) if words[0] in _GIT_RUNS else ()
        if words[0] != "config":  # `config` only writes the address
            texts += [text.partition("::")[2] for text in words if text.startswith("ext::")]
    unknown = MADE if any(UNKNOWN in text for text in texts) else ""
    if any(one.startswith("--config-env") for one in given):
        unknown = "runs what only its environment says"
    known_texts = tuple(text.replace(UNKNOWN, "$_") for text in texts if text)
    sets = words[:1] == ["config"] and any(map(GIT_RUNS.match, words))
    elsewhere = sets or any(map(_ELSEWHERE.match, settings))
    elsewhere |= any(one.startswith("--exec-path=") for one in given)
    return InnerCommands(texts=known_texts, unknown=unknown, unseen=_SETTINGS if elsewhere else "")


def _alias(name: str, settings: Sequence[str]) -> str:
    """The setting that makes a subcommand an alias, "" for none: the last one counts."""
    key = f"alias.{name}".lower()
    return next((one for one in reversed(settings) if one.partition("=")[0].lower() == key), "")


def _shell(words: tuple[ShellWord, ...]) -> InnerCommands:
    """Find what a shell runs: `sh -c text`, `sh script`, or its piped or redirected input."""
    for n, word in enumerate(words):
        if re.fullmatch(r"[-+][A-Za-z]*c[A-Za-z]*", word.text) or word.text == "--command":
            rest = dropwhile(lambda w: w.text.startswith(("-", "+")), words[n + 1 :])
            return _text(next((word.text for word in rest), UNKNOWN))
    operands = [word for word in words if not word.text.startswith(("-", "+"))]
    if any(word.text in {"-o", "-O", "--rcfile", "--init-file"} for word in words):
        operands = operands[1:]
    if words and words[0].text in {"--version", "--help"}:
        return InnerCommands()
    from_file = operands and operands[0].known and not STANDARD_INPUT.fullmatch(operands[0].text)
    reads = not from_file or any(word.open or word.text == "-s" for word in words)
    return InnerCommands(unknown=READS_INPUT if reads else "")


def _find(simple: SimpleCommand) -> list[SimpleCommand]:
    """Find the commands of `-exec … ;`. `{}` is something below the starting points, or, if nothing
    narrows the search, the starting points themselves."""
    commands: list[SimpleCommand] = []
    current: list[ShellWord] | None = None
    roots = find_roots(simple)
    if find_narrows(simple):
        roots = tuple(ShellWord(f"{root.text}/found") for root in roots)
    for word in (*simple.words[1:], ShellWord(";")):
        if current is None:
            current = [] if word.text in _FIND_EXEC else None
        elif word.text in {";", "+"}:
            commands += [_with(simple, tuple(current))] if current else []
            current = None
        else:
            whole = word.text == "{}"
            current += roots if whole else (ShellWord(word.text.replace("{}", UNKNOWN)),)
    return commands


def _wrapped_words(words: tuple[ShellWord, ...], wrapper: Wrapper) -> tuple[ShellWord, ...]:
    at = 1
    # Wrappers such as `uv` run something only after a subcommand.
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


def _replaced(options: Sequence[ShellWord]) -> str:
    """The placeholder in the words of `xargs` or `parallel` for their input."""
    texts = [word.text for word in options]
    after = (value for option, value in pairwise(texts) if option == "-I" and value)
    attached = (re.fullmatch(r"(?:-I|-i|--replace=)(.+)", text, re.DOTALL) for text in texts)
    return next(iter([*after, *(one[1] for one in attached if one)]), "{}")


def _wrapped(simple: SimpleCommand, wrapper: Wrapper) -> InnerCommands:
    words, name = _wrapped_words(simple.words, wrapper), simple.program
    own = simple.words[1 : len(simple.words) - len(words)]
    if name == "command" and any(word.text in {"-v", "-V"} for word in own):
        return InnerCommands()
    unknown = "runs what is only known when it runs" if any(word.open for word in own) else ""
    if not words:
        unknown = unknown or (READS_INPUT if name == "parallel" else "")
        return InnerCommands(unknown=unknown, unseen=READS_INPUT if simple.fed else "")
    if name == "parallel" and words[0].text.startswith(":::"):
        return InnerCommands(texts=tuple(word.text.replace(UNKNOWN, "$_") for word in words[1:]))
    inner = _with(simple, words)
    if name in {"xargs", "parallel"}:  # their input may be anywhere in a shell's text
        unknown = unknown or (MADE if inner.program in SHELLS else "")
        runs = words if inner.program in WRAPPERS else words[:1]
        token = _replaced(own)
        runs = tuple(ShellWord(word.text.replace(token, UNKNOWN), word.glob) for word in runs)
        inner = replace(inner, words=(*runs, *words[len(runs) :], ShellWord(UNKNOWN)))
    assignments = (
        re.match(r"([A-Za-z_]\w*)=(.*)", word.text, re.DOTALL)
        for word in own
        if wrapper.assignments
    )
    assigned = tuple((match[1], match[2]) for match in assignments if match)
    return InnerCommands((replace(inner, assigned=assigned),), unknown=unknown)
