"""Reading tool results as a model does: what they say, and what of it is worth showing.

Tolerant on purpose: results may be cut, pruned, or come from other tools than the built-in ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

EXCERPT_LINES = 12
_EXCERPT_COLUMNS = 160

_FOOTER = re.compile(
    r"\[(?:lines? [\d,]+|up to byte|the file is empty|nothing but blanks|bytes that are not).*\]"
)
_NEXT = re.compile(r"continue with offset=(\d+)")
_EXIT = re.compile(r"\[(exit code (-?\d+)|timed out[^·\]]*|[^·\]]*) · ([\d.]+) s\]\s*$")
_SPILL_EXIT = re.compile(r"^Exit code: (-?\d+)\. Last \d+ bytes:\n((?: .*\n?)*)", re.MULTILINE)
_MATCH = re.compile(r"^(?P<path>[^:\n]+):(?P<line>\d+):(?P<text>.*)$", re.MULTILINE)
_CUT = re.compile(
    r"\[tool output truncated|^Output too large|\[Output truncated: |^\[stopped after ",
    re.MULTILINE,
)
_JOB = re.compile(r"\bjob-\w+")
_NOTHING = re.compile(r"(?:no|nothing)\b.*", re.IGNORECASE)
_FAILED_TEST = re.compile(r"^(?:FAILED|ERROR) +(\S+?\.py)(?:::(\S+))?(?: - (.*))?$", re.MULTILINE)
_TRACE_LINE = re.compile(r"^(\S+\.py):(\d+): ", re.MULTILINE)
_LANGUAGES = {
    "py": "python", "md": "markdown", "js": "javascript", "ts": "typescript", "rs": "rust",
    "sh": "bash", "yml": "yaml", "toml": "toml", "json": "json", "html": "html", "css": "css",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Page:
    """What read_file gave: the file's text, where it goes on, and whether that was all of it."""

    text: str
    next_line: int | None
    complete: bool

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


def page(text: str) -> Page:
    """A result of read_file, taken apart."""
    body, _, last = text.rpartition("\n")
    if not _FOOTER.fullmatch(last):
        return Page(text, None, complete=not was_cut(text))
    more = _NEXT.search(last)
    following = int(more[1]) if more else None
    return Page(f"{body}\n" if body else "", following, "continue with" not in last)


def was_cut(text: str) -> bool:
    """Whether a guard left only a part of an output."""
    return _CUT.search(text) is not None


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command printed, and how it ended. `code` is None where that is not told."""

    output: str
    code: int | None
    words: str
    seconds: str


def ran(text: str) -> Ran:
    """A result of run_command, taken apart."""
    found = _EXIT.search(text)
    spilled = _SPILL_EXIT.search(text)
    if spilled:
        tail = "\n".join(line[1:] for line in spilled[2].splitlines())
        return Ran(tail, int(spilled[1]), f"exit code {spilled[1]}", "")
    if not found:
        return Ran(text.rstrip(), None, "", "")
    code = int(found[2]) if found[2] else None
    return Ran(text[: found.start()].rstrip(), code, found[1].strip(), found[3])


@dataclass(frozen=True, slots=True)
class Match:
    path: str
    line: int
    text: str


def matches(text: str) -> list[Match]:
    """The hits in a result of grep_search."""
    return [Match(m["path"], int(m["line"]), m["text"].strip()) for m in _MATCH.finditer(text)]


def entries(text: str) -> list[str]:
    """The names in a result of list_dir or find_by_name; folders end with a slash."""
    first, _, _ = text.strip().partition("\n")
    if _NOTHING.fullmatch(first) and " " in first:
        return []
    lines = (re.split(r" {2,}| -> ", line.strip())[0] for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("[")]


def job_id(text: str) -> str:
    """The name of the background command that a result is about."""
    found = _JOB.search(text)
    return found[0] if found else "job"


@dataclass(frozen=True, slots=True)
class FailedTest:
    path: str
    name: str
    reason: str


def failed_tests(output: str) -> list[FailedTest]:
    """The failures that pytest's summary names."""
    found = (FailedTest(*(part or "" for part in m)) for m in _FAILED_TEST.findall(output))
    return list(dict.fromkeys(found))


def trace_lines(output: str, path: str) -> list[int]:
    """Where in a file pytest says that something was raised."""
    return [int(line) for name, line in _TRACE_LINE.findall(output) if name == path]


def outline(path: str, text: str) -> list[str]:
    """Headings of a markdown file, classes and functions of a Python file; else nothing."""
    if path.endswith((".md", ".markdown")):
        plain = re.sub(r"^(`{3,}).*?^\1", "", text, flags=re.DOTALL | re.MULTILINE)
        return re.findall(r"^#{1,3} +(.+?)\s*#*$", plain, re.MULTILINE)
    if path.endswith(".py"):
        found = re.findall(r"^(?:async )?(class|def) (\w+)", text, re.MULTILINE)
        return [f"`{name}`" + ("" if kind == "class" else "()") for kind, name in found]
    return []


def fence(lines: list[str], language: str = "", *, tail: bool = False) -> str:
    """Some lines as a code block: the first ones, or with `tail` the last."""
    room = len(lines) - EXCERPT_LINES
    kept = lines if room <= 1 else lines[-EXCERPT_LINES:] if tail else lines[:EXCERPT_LINES]
    shown = [
        line if len(line) <= _EXCERPT_COLUMNS else line[:_EXCERPT_COLUMNS] + "…" for line in kept
    ]
    if room > 1:
        note = f"… {room:,} {'earlier' if tail else 'more'} lines"
        shown = [note, *shown] if tail else [*shown, note]
    body = "\n".join(shown)
    longest = max((len(run) for run in re.findall(r"`+", body)), default=0)
    marks = "`" * max(3, longest + 1)
    return f"{marks}{language}\n{body}\n{marks}"


def language(path: str) -> str:
    """The name of a file's language in a code block, "" if it is not known."""
    return _LANGUAGES.get(path.rpartition(".")[2].lower(), "")
