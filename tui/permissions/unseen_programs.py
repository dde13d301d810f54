"""The reasons why the words of a command do not show which programs it starts: code in another
language, its input, and files that the same line writes and then runs.

This makes a command no riskier, since any program may start others: it matters only where a rule
forbids some, because then a person has to check.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise

from tui.core.late_pattern import late_pattern
from tui.permissions.parsed_command import UNKNOWN, Redirect, SimpleCommand
from tui.permissions.risk_tiers import INTERPRETERS, SHELLS, names

READS_INPUT = "runs what it reads as its input"
MADE = "runs a text that is made while it runs"
_STARTS = "starts programs by itself, or evaluates what it makes"
_OWN_FILE = "runs a file that the same command writes"
_LOADS_CODE = "lets a variable load code into programs"

STANDARD_INPUT = late_pattern(r"-|0|/dev/stdin|/dev/fd/\d+|/proc/\w+/fd/\d+")
"""Names of an open file in place of a script; `0` is the number in `0< file`."""

_INLINE = late_pattern(r"-[A-Za-z]*[ceEpr]|--(?:eval|execute|print|command)(?:=.*)?", re.DOTALL)
"""Options of interpreters that put the program among the words."""
_SHELL_INLINE = late_pattern(r"[-+]\w*c\w*|--command")
_LETTERS = late_pattern(r"-[A-Za-z]{0,8}")
_STARTING = (
    r"(?i)\b(?:\w*exec|eval|exec(?:l|v|file|sync)\w*|system|\w*subprocess\w*|popen\w*|\w*spawn(?:[lvpe]{1,3}|sync)?"
    r"|child_process|fork\w*|pty|ctypes|cffi|getattr|vars|globals|importlib|runpy|syscall|qx"
    r"|shell_exec|passthru|proc_open|open3|instance_eval|new\s+Function|do\s+shell\s+script"
    r"|\w*pipepager|pydoc|webbrowser|multiprocessing|pickle|marshal|shelve|dlopen|binding)\b"
    r"|__(?:import|builtins|dict|globals|subclasses|getattribute)__|%x[^\w\s]|\b(?:os|io|_G|_ENV)\s*\["
)
"""The ways in which programs of other languages start programs, or evaluate a text."""
_AWK_STARTS = late_pattern(r"\|&?\s*(?:getline|[\"'])|@\w+\s*\(", re.IGNORECASE)
_PIPES = late_pattern(r"(?<!\|)\|(?!\|)")
_STATEMENTS = late_pattern(r"[;{}\n]")
_BACKQUOTES = late_pattern(r"(?:perl|ruby|php)[\d.]*")
_INTERPRETER_VALUED = frozenset(names("-W -X -I -r -M -C -L -d -F -T --require --import"))
_AWK_VALUED = frozenset(names("-v -F -f -i -l --assign --field-separator --file --include --load"))
_RUN_MODULES = frozenset(names("timeit pdb IPython code cProfile"))
"""Modules of Python whose own words are code."""

_EVAL = r"-[eEc].*|--eval.*"

# fmt: off
_CODE_OPTIONS: Mapping[str, str] = {
    name: f"(?s:{pattern})"
    for programs, pattern in (
        ("vi vim vimdiff view nvim gvim ex", r"-[cSs].*|--cmd|\+(?!\d*$|/[^\n\r|]*$).+"),
        ("less more most", r"\+(?![\dgGF]*$|/[^\n\r!|]*$).+|-k.*|--lesskey.*"),
        ("emacs emacsclient", r"-e|-f|--?eval.*|--execute.*|--funcall.*"),
        ("gdb lldb", r"--?(?:ex|iex|eval-command|o|s|x|command).*"),
        ("r rscript julia octave ipython ipython3 irb tsx ts-node elixir iex racket", _EVAL),
        ("guile scala groovy swift ghc runghc ocaml gnuplot xonsh nu clojure bb nodejs", _EVAL),
        ("sbcl erl clisp maxima", r"-?-eval.*|-x|-run|-s|--batch-string.*"),
        ("expect", r"-c.*"),
        ("dc", r"(?:-e|--expression).*|.*!.*"),
        ("make gmake", r"--eval.*|(?:SHELL|\.SHELLFLAGS|MAKE)=.*|.*\$[({].*"),
        ("sqlite3", (r"\s*\.(?!(?:tables?|schema|headers?|mode|dump|indexes|width)\b[^\n|]*$).*"
                    r"|-cmd|-init|.*(?:load_extension|\bedit\s*\().*")),
        ("psql", r".*(?:\\[!goisw]|\\copy|\bprogram\b).*"),
        ("mysql mariadb", r".*(?:\\[!P.]|\b(?:system|pager|source)\b).*"),
        ("socat", r"(?i:exec|system|shell):.*"),
        ("nc ncat netcat", r"-\w*[ec]|--(?:sh-)?exec.*"),
        ("ssh scp sftp", r"-?o?\s*(?:ProxyCommand|LocalCommand|KnownHostsCommand).*"),
        ("gh", r"alias"),
        ("enable", r"-f.*"),
        ("bind", r"-x.*"),
        ("fc", r".*"),
        ("cmake", r"-E"),
    )
    for name in programs.split()
}
"""Options and words that contain code, for programs that can start others with it: patterns that
are compiled once such a program is named."""
_EDITORS = frozenset(names("ed ex vi vim nvim view"))
_TAKE_A_SCRIPT = frozenset(names(
    "r rscript julia octave ipython ipython3 irb tsx ts-node racket guile scala groovy swift ocaml"
    " gnuplot xonsh nu clojure bb nodejs sbcl clisp expect m4 wish"
))
_READ_CODE = frozenset(names(
    "iex erl dc gdb lldb sqlite3 psql mysql mariadb sftp ftp at batch crontab script su uv"
)) | _EDITORS | _TAKE_A_SCRIPT
"""Programs that run their input, if they have any."""
_RUN_GIVEN = frozenset(names(
    "pytest tox nox go cargo gcc g++ cc c++ clang clang++ rustc tcc javac java kotlinc swiftc jest"
    " vitest mocha rake cmake ninja just gradle invoke ansible-playbook emacs wish m4"
))
"""Programs that run, or compile, the files among their words."""
_SCRIPTS = late_pattern(r".*\.(?:[cm]?[jt]sx?|json)")
_OWN_FILES: Mapping[str, re.Pattern[str]] = {
    **dict.fromkeys(("make", "gmake"), late_pattern(r"(?:gnu)?makefile|.*\.mk", re.IGNORECASE)),
    **dict.fromkeys(names("npm pnpm yarn bun jest vitest mocha"), _SCRIPTS),
    **dict.fromkeys(names("pytest tox nox"), late_pattern(r".*\.py|.*\.toml|.*\.ini|.*\.cfg")),
    "go": late_pattern(r".*\.go"),
    "cargo": late_pattern(r".*\.rs|cargo\.toml"),
    "just": late_pattern(r"\.?justfile"),
    "rake": late_pattern(r"rakefile"),
}
"""Files that programs find and run by themselves."""
_WRITE_OPERANDS = frozenset(names("cp mv ln install rsync scp tee patch ed ex truncate sponge"))
_WRITE_INTO = late_pattern(r"(?:-o|-O|--output|--output-document|of)=?(.*)", re.DOTALL)
_IN_PLACE = late_pattern(r"-\w*i.*|--in-place.*")
_EDIT_IN_PLACE = frozenset(names("sed perl ruby"))
# fmt: on

_SED_STARTS = r"(?:^|[\s;{}\d$!/,+~])e(?:[\s;}]|$)|[^\w\s\\][gpiImM\d]*e[gpiImM\d]*\s*(?:[;}\n]|$)"
"""sed's command `e`, and the flag of `s` (GNU sed 4.9)."""
_AWK_FILE = late_pattern(r"-f|--file|-i|--include|-l|--load")

PROGRAM_VARIABLES = frozenset(
    names(
        "GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER GIT_SSH_COMMAND GIT_SSH GIT_EXTERNAL_DIFF"
        " GIT_ASKPASS SSH_ASKPASS SUDO_ASKPASS GIT_PROXY_COMMAND PAGER MANPAGER EDITOR VISUAL"
        " FCEDIT BROWSER RSYNC_RSH SVN_EDITOR HGEDITOR"
    )
)
"""Variables whose value is a command line that a program runs."""
_CODE_VARIABLES = (
    r"LESSOPEN|LESSCLOSE|PYTHONSTARTUP|PERL5OPT|PERL5DB|RUBYOPT|JAVA_TOOL_OPTIONS|LD_PRELOAD"
    r"|LD_AUDIT|DYLD_INSERT_LIBRARIES|GCONV_PATH|GIT_CONFIG\w*|GIT_EXEC_PATH|GIT_TEMPLATE_DIR"
    r"|ENV|ZDOTDIR|MAKEFILES|VIMINIT|EXINIT"
)
"""Variables that make programs load code, or settings that name some."""
_CODE_IN_OPTIONS = late_pattern(r"-r|--require|--import|--eval|--loader|-e|--init-file|-f")


def unseen_code(simple: SimpleCommand) -> str:
    """Explain why the words of a command do not show which programs it starts; "" if they do, as
    far as can be seen. The command must have words."""
    name, texts = simple.program, [word.text for word in simple.words[1:]]
    if code := _CODE_OPTIONS.get(name):
        holds_code = re.compile(code).fullmatch
        if any(UNKNOWN in text and holds_code(text.replace(UNKNOWN, "")) for text in texts):
            return MADE
        if any(map(holds_code, texts)):
            return _STARTS
    if name == "tar" and re.fullmatch(r"[A-Za-z]*[IF][A-Za-z]*", "".join(texts[:1])):
        return _STARTS
    if name == "sed":
        return _sed(texts, fed=simple.fed)
    if INTERPRETERS.fullmatch(name):
        return _interpreter(name, texts, fed=simple.fed)
    if name in {"make", "gmake"} and re.search(_MAKE_READS, " ".join(texts)):
        return READS_INPUT
    reads = simple.fed and name in _READ_CODE and not _has_own_code(name, texts)
    return READS_INPUT if reads else ""


_MAKE_READS = (
    rf"(?:^|\s)(?:-\w*f|--(?:make)?file)[ =]?(?:-|/dev/stdin|/dev/fd/\d+|{UNKNOWN})(?:\s|$)"
)


def _has_own_code(name: str, texts: Sequence[str]) -> bool:
    """True if a program gets words that replace its input."""
    operands = [text for text in texts if text[:1] not in {"-", "+"}]
    if name in _EDITORS:
        return False
    if any(re.fullmatch(r"-\w*[ecf]|--(?:eval|command|file)(?:=.*)?", text) for text in texts):
        return True
    if name == "uv":  # `uv run -` reads it
        return operands != ["run"]
    return len(operands) > 1 if name == "sqlite3" else name in _TAKE_A_SCRIPT and bool(operands)


def unseen_variable(name: str, value: str) -> str:
    """Explain why setting a variable hides which programs others start; "" if it does not."""
    if re.fullmatch(_CODE_VARIABLES, name):
        return _LOADS_CODE
    options = name in {"NODE_OPTIONS", "MAKEFLAGS", "BUN_OPTIONS"}
    words = value.split()
    loads = any(UNKNOWN in word or _CODE_IN_OPTIONS.match(word) for word in words)
    return _LOADS_CODE if options and loads else ""


def _interpreter(name: str, texts: Sequence[str], *, fed: bool) -> str:
    is_awk = "awk" in name
    valued = _AWK_VALUED if is_awk else _INTERPRETER_VALUED
    options = {n for n, text in enumerate(texts) if text.startswith("-") and text != "-"}
    options |= {n + 1 for n in options if texts[n] in valued}
    at = next((n for n in range(len(texts)) if n not in options), len(texts))
    own, script = texts[:at], texts[at] if at < len(texts) else "-"
    # Some modules run their own arguments as code, like `-c`.
    module = own[-1:] == ["-m"] and script in _RUN_MODULES
    from_file = is_awk and any(text in {"-f", "--file"} for text in own)
    inline = is_awk or script == "eval" or module or any(map(_INLINE.fullmatch, own))
    code = [*(texts if inline else ()), *(part for option in own for part in _attached(option))]
    quotes = "`" if _BACKQUOTES.fullmatch(name) else "\n`"
    starts = any(re.search(_STARTING, text) or quotes in text for text in code)
    if script in {"pdb", "IPython"} and module and "-c" in texts:
        return _STARTS
    if starts or (is_awk and any(map(_awk_starts, texts))):
        return _STARTS
    # A script that only the shell knows could be anything.
    made = [script, *(text for text in own[-1:] if text.startswith("-"))]
    if inline and not from_file and any(UNKNOWN in text for text in made):
        return MADE
    scripts = own if from_file else () if inline else (script,)
    opened = [text for text in scripts if STANDARD_INPUT.fullmatch(text)]
    return READS_INPUT if opened and (fed or opened != ["-"]) else ""


def _awk_starts(text: str) -> bool:
    """True if awk would start a program: it prints into one, reads from one, or calls a function by
    a name that it computes."""
    printed = (part.partition("print")[2] for part in _STATEMENTS.split(text) if "print" in part)
    return _AWK_STARTS.search(text) is not None or any(map(_PIPES.search, printed))


def _attached(option: str) -> list[str]:
    """The programs that may follow in the word of an option, as in `-c'import os'`."""
    letters = _LETTERS.match(option)
    ends = range(2, letters.end() + 1) if letters else ()
    return [option[n:] for n in ends if option[n - 1] in "ceEpr"]


def _sed(texts: Sequence[str], *, fed: bool) -> str:
    """Explain if sed runs a program: by its command `e`, or by the flag of `s`."""
    scripts: list[str] = []
    operands = [text for text in texts if not text.startswith("-")]
    for n, text in enumerate(texts):
        if match := re.match(r"-\w*?([ef])(.*)|--(expression|file)(?:=(.*))?", text, re.DOTALL):
            kind, value = (match[1] or match[3])[:1], match[2] or match[4] or ""
            value = value or next(iter(texts[n + 1 : n + 2]), "")
            if kind == "e":
                scripts.append(value)
            elif fed and STANDARD_INPUT.fullmatch(value):
                return READS_INPUT
    scripts = scripts or operands[:1]
    if any(UNKNOWN in script for script in scripts):
        return MADE
    return _STARTS if any(map(re.compile(_SED_STARTS).search, scripts)) else ""


# Files that a line writes, and the commands that run them


def names_written(
    commands: Iterable[SimpleCommand], redirects: Iterable[Redirect]
) -> Iterator[str]:
    """Yield the names, without their folders, of the files that a line writes: `*` for one that
    only the shell will know, with a slash before those that are only named in code."""
    for one in redirects:
        if one.writes and one.target.text != "/dev/null":
            yield _bare(one.target.text)
    for simple in commands:
        texts = [word.text for word in simple.words[1:]]
        yield from map(_bare, _written_by(simple))
        if INTERPRETERS.fullmatch(simple.program) and any(map(_INLINE.fullmatch, texts)):
            yield from (f"/{one.lower()}" for text in texts for one in _NAME.findall(text))


def _written_by(simple: SimpleCommand) -> Iterator[str]:
    name, texts = simple.program, [word.text for word in simple.words[1:]]
    operands = [text for text in texts if not text.startswith("-")]
    in_place = name in _EDIT_IN_PLACE and any(map(_IN_PLACE.fullmatch, texts))
    if name in _WRITE_OPERANDS or in_place:
        yield from operands
    elif name in {"curl", "wget", "dd"}:
        options = [(n, _WRITE_INTO.match(text)) for n, text in enumerate(texts)]
        yield from (match[1] or "".join(texts[n + 1 : n + 2]) for n, match in options if match)
        yield from operands
    elif name in {"npm", "pnpm", "yarn", "bun"} and operands[:1] == ["pkg"]:
        yield "package.json"


def runs_written(simple: SimpleCommand, written: frozenset[str]) -> str:
    """Explain why a command may run one of the files that its line writes; "" if it doesn't."""
    if not written:
        return ""
    name, program = simple.program, simple.words[0].text
    texts = [word.text for word in simple.words[1:]]
    files = {program} if "/" in program or program in written else set[str]()
    if name in SHELLS or INTERPRETERS.fullmatch(name) or name in {"source", ".", "uv"}:
        files |= {b for a, b in pairwise(texts) if a in _FILE_OPTIONS}
        inline = _SHELL_INLINE if name in SHELLS else _INLINE
        if not any(map(inline.fullmatch, texts)):
            at = next((n for n, text in enumerate(texts) if not text.startswith("-")), len(texts))
            files |= {*texts[: at + 1], *(f"{text}.py" for text in texts[at : at + 1])}
            files |= {text[2:] for text in texts[:at]}  # attached, as in `-fx`
    elif name in _RUN_GIVEN or name in _READ_CODE or name in _CODE_OPTIONS:
        files |= {*texts, *(text.rpartition("=")[2] for text in texts)}
    own = _OWN_FILES.get(name)
    if own and any(map(own.fullmatch, written)):
        return _OWN_FILE
    bare = {_bare(file) for file in files} - {"", ".", "-", "*"}
    known = {one.removeprefix("/") for one in written}
    globs = [file for file in bare if re.search(r"[*?\[]", file)]
    meets = any(fnmatchcase(one, file) for file in globs for one in known)
    return _OWN_FILE if meets or (bare and "*" in written) or not bare.isdisjoint(known) else ""


_NAME = late_pattern(r"[\w.-]+")
_FILE_OPTIONS = frozenset(names("-f --file -r --require --import -l --load"))


def _bare(text: str) -> str:
    """The name of a file without its folders, in lower case; `*` if only the shell knows it."""
    name = text.rstrip("/").rpartition("/")[2].lower()
    return "*" if UNKNOWN in name else name
