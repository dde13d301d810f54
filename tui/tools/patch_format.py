"""Patches as text: the `*** Begin Patch` format, and unified diffs with git's headers.

Both are parsed to the same: an action for each file, and its hunks. The lines of a hunk count, not
the numbers in its header: models count badly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from tui.core.dataclass import dataclass, field
from tui.core.errors import ToolError
from tui.core.formatting import plural
from tui.core.late_pattern import late_pattern

Action: TypeAlias = Literal["add", "update", "delete"]

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_AT_END = "*** End of File"
_FILE = late_pattern(r"\*\*\* (Add|Update|Delete) File: (.+)")
_MOVE = late_pattern(r"\*\*\* Move to: (.+)")
_ACTIONS: dict[str, Action] = {"Add": "add", "Update": "update", "Delete": "delete"}
_RANGES = late_pattern(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")
_GIT = late_pattern(r'diff --git ("a/.+"|a/.+) ("b/.+"|b/.+)')
_MODE = late_pattern(r"new file mode 100([0-7]{3})")
_NULL = "/dev/null"
_WRAPPER = late_pattern(r"(?:```\w*|EOF)?")
"""Lines that a patch is wrapped in: of a code block, of a here-document, or blank."""
_REFUSED = {
    "GIT binary patch": "is of a binary file.",
    "Binary files ": "is of a binary file.",
    "copy from ": "copies a file.",
    "old mode ": "changes a file's mode.",
}
_LABELLED = 3
_FORMATS = "Begin it with *** Begin Patch, or send a unified diff with --- and +++ lines."


@dataclass(slots=True)
class Hunk:
    """Lines that are replaced by others.

    `rows` are a sign (" ", "-", "+") and a line. `anchors` are lines that come before them, one
    after the other; `line` is their number according to a unified diff. `at_end`: the last line is
    the file's. `new_ends` is True if a newline ends the new file; None if the patch does not say.
    """

    rows: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    anchors: list[str] = field(default_factory=list[str])
    line: int | None = None
    at_end: bool = False
    new_ends: bool | None = None

    @property
    def old(self) -> list[str]:
        return [line for sign, line in self.rows if sign != "+"]

    @property
    def new(self) -> list[str]:
        return [line for sign, line in self.rows if sign != "-"]


@dataclass(slots=True)
class FilePatch:
    """The changes of a patch to one file. `target` is its path after a move, "" if it stays.

    An added file has its lines in one hunk. A deleted one may have hunks with its content. `mode`
    is that of a new file, None for the usual one.
    """

    action: Action
    path: str
    target: str = ""
    hunks: list[Hunk] = field(default_factory=list[Hunk])
    mode: int | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path, self.target) if self.target else (self.path,)


def parse_patch(text: str) -> list[FilePatch]:
    """Parse the files of a patch, in its order. Raises ToolError that names the wrong line."""
    lines = text.replace("\r\n", "\n").split("\n")
    while lines and _WRAPPER.fullmatch(lines[-1].strip()):
        lines.pop()
    begin = next((n for n, line in enumerate(lines) if line.strip() == _BEGIN), None)
    if begin is not None:
        files = _parse_marked(lines, begin + 1)
    elif any(_GIT.fullmatch(line) or _is_header(lines, n) for n, line in enumerate(lines)):
        files = _parse_unified(lines)
    else:
        raise ToolError("The patch is in no known format.", hint=_FORMATS)
    if not files:
        raise ToolError("The patch names no file.", hint=_FORMATS)
    for file in files:
        _complete(file)
    return files


def named_paths(text: str) -> tuple[str, ...]:
    """Return the paths that a patch names, each once; none if it can't be parsed."""
    try:
        files = parse_patch(text)
    except ToolError:
        return ()
    return tuple(dict.fromkeys(path for file in files for path in file.paths))


def label_of(paths: Sequence[str]) -> str:
    """Return the first paths of a patch, and how many more there are."""
    more = len(paths) - _LABELLED
    named = ", ".join(paths[:_LABELLED])
    return f"{named} and {plural(more, 'more file')}" if more > 0 else named


def _wrong(number: int, why: str, hint: str = "") -> ToolError:
    return ToolError(f"Line {number + 1} of the patch {why}", hint=hint)


def _complete(file: FilePatch) -> None:
    """Check a parsed file, and drop empty hunks."""
    for hunk in file.hunks:
        while hunk.rows and hunk.rows[-1] == ("", ""):
            hunk.rows.pop()  # a blank line between two parts of the patch, not one of the file
        hunk.rows = [(sign or " ", line) for sign, line in hunk.rows]
    if file.action != "add":
        file.hunks = [hunk for hunk in file.hunks if hunk.rows]
    if file.action == "update" and not file.hunks and not file.target:
        raise ToolError(
            f"The patch updates {file.path}, but has no hunk for it.",
            hint="After *** Update File comes @@, then lines with space, - or + in front.",
        )


def _parse_marked(lines: Sequence[str], begin: int) -> list[FilePatch]:
    """Parse the format with `*** Begin Patch`."""
    files: list[FilePatch] = []
    for number, line in enumerate(lines[begin:], begin):
        file = files[-1] if files else None
        bare = line.rstrip()
        if bare == _END:
            return files
        if header := _FILE.fullmatch(bare):
            files.append(FilePatch(_ACTIONS[header[1]], header[2].strip()))
        elif file is not None and file.action == "add" and line.startswith("+"):
            file.hunks = file.hunks or [Hunk()]
            file.hunks[0].rows.append(("+", line[1:]))
        elif file is None or file.action != "update":
            if bare:
                raise _wrong(number, f"belongs to no file: {_clipped(line)}.", _HEADERS)
        elif (moved := _MOVE.fullmatch(bare)) and not file.hunks:
            file.target = moved[1].strip()
        elif line.startswith("@@"):
            _begin_hunk(file, line)
        elif bare == _AT_END and file.hunks:
            file.hunks[-1].at_end = True
        else:
            file.hunks = file.hunks or [Hunk()]
            # A hunk may lack its @@ line.
            _take_row(file.hunks[-1], line, number)
    raise ToolError(
        f"The patch has no {_END} line: it may be cut off.", hint="Send all of it again."
    )


_HEADERS = (
    "Expected *** Add File: PATH with + in front of each line, *** Update File: PATH, "
    "*** Delete File: PATH or *** End Patch."
)


def _begin_hunk(file: FilePatch, line: str) -> None:
    """Start the hunk of an @@ line; several of them in a row lead to one hunk."""
    if not file.hunks or file.hunks[-1].rows:
        file.hunks.append(Hunk())
    hunk = file.hunks[-1]
    if ranges := _RANGES.match(line):
        hunk.line = int(ranges[1])
    elif anchor := line.removeprefix("@@").removesuffix("@@").strip():
        hunk.anchors.append(anchor)


def _take_row(hunk: Hunk, line: str, number: int) -> None:
    """Add a line to a hunk. A blank one that has lost its space is context."""
    sign = line[:1]
    if sign == "\\":
        if hunk.rows:
            no_newline = hunk.rows[-1][0] != "-"
            hunk.new_ends = not no_newline
            hunk.at_end = True
        return
    if sign not in {"", " ", "-", "+"}:
        raise _wrong(
            number,
            f"begins with none of space, - and +: {_clipped(line)}.",
            "Put a space in front of lines that stay, - of removed ones, + of added ones.",
        )
    hunk.rows.append((sign, line[1:]))


def _clipped(line: str) -> str:
    return line if len(line) <= 80 else f"{line[:80]}…"


def _is_header(lines: Sequence[str], number: int, *, in_hunk: bool = False) -> bool:
    """True if the two lines that name a file begin here. The last lines of a hunk may look like
    them, but then no other hunk follows at once."""
    after = [*lines[number + 1 : number + 3], "", ""]
    if not (lines[number].startswith("--- ") and after[0].startswith("+++ ")):
        return False
    return after[1].startswith("@@ ") or (
        not in_hunk and (not after[1].strip() or after[1].startswith("diff --git "))
    )


@dataclass(slots=True)
class _GitHeader:
    """Git's header of a file, before its hunks."""

    old: str = ""
    new: str = ""
    added: bool = False
    deleted: bool = False
    mode: int | None = None
    old_name: str = ""
    new_name: str = ""


def _parse_unified(lines: Sequence[str]) -> list[FilePatch]:
    """Parse unified diffs, with git's headers or without."""
    files: list[FilePatch] = []
    git: _GitHeader | None = None
    in_hunks = False
    skip = False
    for number, line in enumerate(lines):
        if skip:
            skip = False
        elif named := _GIT.fullmatch(line):
            files += _only_named(git)
            git = _GitHeader(_path_of(named[1]), _path_of(named[2]))
            in_hunks = False
        elif _is_header(lines, number, in_hunk=in_hunks):
            files.append(_named_file(line[4:], lines[number + 1][4:], git))
            git, in_hunks, skip = None, False, True
        elif line.startswith("@@ ") and files and git is None:
            _begin_hunk(files[-1], line)
            in_hunks = True
        elif in_hunks and line == "-- " and len(lines) - number <= 2:
            break  # the signature of a mail
        elif in_hunks:
            _take_row(files[-1].hunks[-1], line, number)
        elif why := next((why for start, why in _REFUSED.items() if line.startswith(start)), ""):
            raise _wrong(number, why, "apply_patch can't do that: use a command.")
        elif git is not None:
            _note_git(git, line)
    return files + _only_named(git)


def _note_git(git: _GitHeader, line: str) -> None:
    if mode := _MODE.fullmatch(line):
        git.added, git.mode = True, int(mode[1], 8)
    elif line.startswith("deleted file mode "):
        git.deleted = True
    elif line.startswith("rename from "):
        git.old_name = _unquoted(line.removeprefix("rename from "))
    elif line.startswith("rename to "):
        git.new_name = _unquoted(line.removeprefix("rename to "))


def _only_named(git: _GitHeader | None) -> list[FilePatch]:
    """Return a file that git describes without hunks: an empty one, or one that only moves."""
    if git is None:
        return []
    if git.old_name and git.new_name:
        return [FilePatch("update", git.old_name, git.new_name)]
    if git.added:
        return [FilePatch("add", git.new, mode=git.mode)]
    return [FilePatch("delete", git.old)] if git.deleted else []


def _named_file(old: str, new: str, git: _GitHeader | None) -> FilePatch:
    old, new = (_unquoted(name.partition("\t")[0].strip()) for name in (old, new))
    if old.startswith(("a/", _NULL)) and new.startswith(("b/", _NULL)):
        old, new = old.removeprefix("a/"), new.removeprefix("b/")
    if old == _NULL:
        return FilePatch("add", new, mode=git.mode if git else None)
    if new == _NULL:
        return FilePatch("delete", old)
    if git is not None and git.old_name and git.new_name:
        return FilePatch("update", git.old_name, git.new_name)
    return FilePatch("update", new)


def _path_of(name: str) -> str:
    return _unquoted(name)[2:]


def _unquoted(name: str) -> str:
    """Return a name that git put in quotes without its quotes and escapes."""
    if not name.startswith('"'):
        return name
    from tui.core.git.quoted_names import unquoted  # noqa: PLC0415 - seldom needed

    return unquoted(name)
