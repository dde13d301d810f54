"""The files whose text goes into the system prompt: how they are located and read, and the notice
about what is included.

`find` blocks: call it in a thread. It never waits for pipes and devices.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from tui.context.system_prompt import Origin, Source
from tui.core import front_matter
from tui.core.claude_names import claude_folder
from tui.core.dataclass import dataclass
from tui.core.errors import UsageError
from tui.core.files import read_small
from tui.core.late_pattern import late_pattern
from tui.core.paths import Folders, shorten
from tui.core.workspace import BOOT_FILES, BOOT_READ_MAX, PRIVATE_DIR, Workspace
from tui.settings import rule_files
from tui.settings.rule_files import RuleFile

INSTRUCTIONS: Final = ("AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md")
"""Names of instructions in a folder: of the first two one is used, AGENTS.md if it is there; of the
others all that exist."""
_NESTED: Final = 50
"""Number of folders that are searched for instructions of their own."""
_IMPORTS: Final = 30
"""Maximum number of instruction files, including those that they import."""
_DEEP: Final = 4
"""Files that import one another, behind the first."""
_NAMED: Final = 300
"""Names in one file that are looked up."""
_IMPORT = late_pattern(r"(?<![\w@./-])@((?:[^\s\\#@]|\\.){1,300})")
_POINTS: Final = ".,:;!?)]}>*_\"'|"
"""Characters that follow a name without being a part of it."""
_CODE = late_pattern(
    r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1|\Z)|(?<!`)(`+)(?!`)[^\n]*?(?<!`)\2(?!`)",
    re.DOTALL | re.MULTILINE,
)
"""Code in Markdown, where an `@` is not an import."""
_COMMENT = late_pattern(
    r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1|\Z)|^[ \t]*<!--(?:(?!-->).)*+-->[ \t]*(?:\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""A fence, or a comment that has its lines for itself."""
_UNREAD: Final = "your rules don't let it be read without a question"
MEMORY_FILES: Final = (f"{PRIVATE_DIR}/MEMORY.md", "MEMORY.md")
"""Names of the memory files of a workspace; all that exist are used."""
_NAMES: Final = frozenset(Path(name).name for name in INSTRUCTIONS)


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """The files that exist, and one line for each of them that could not be used."""

    sources: tuple[Source, ...]
    problems: tuple[str, ...]


Allows: TypeAlias = Callable[[str, bytes], bool]
"""Returns True if the person trusts a folder's own file, given its name and content."""


Reads: TypeAlias = Callable[[Path], bool]
"""Returns True if the person's rules let a real path be read without a question."""


def _all(_name: str, _content: bytes) -> bool:
    return True


def _any(_path: Path) -> bool:
    return True


def find(
    workspace: Workspace,
    folders: Folders,
    *,
    boot: Path | None = None,
    allows: Allows = _all,
    reads: Reads = _any,
) -> ProjectFiles:
    """Collect the files of the folder, its repository and the person.

    `boot` is a boot file named elsewhere (a task file's directive) and replaces the usual ones; for
    those, `allows` says if the person trusts the current content. What an instruction file imports
    or links to counts if it `reads`. Raises UsageError if the named one cannot be read.
    """
    root = workspace.root
    sources: list[Source] = []
    problems: list[str] = []
    top, into = _top(workspace), (sources, problems)
    seen = {os.path.realpath(path) for path in _candidates(root, top)}
    for path in _candidates(root, top):
        _take_with_imports(path, "project", root, within=top, into=into, seen=seen, reads=reads)
    problems += _passed_over(root, top)
    # Rules without paths apply everywhere; the others are read with their files.
    rules, unread = rule_files.load(root, folders, allows)
    problems += unread
    everywhere = [rule for rule in rules if not rule.paths]
    for rule in everywhere:
        if (real := os.path.realpath(rule.path)) not in seen:
            seen.add(real)
            sources.append(one := source_of(rule))
            inside = rule.path.parent if rule.own else top
            _take_imports(rule.path, one, root, within=inside, into=into, seen=seen, reads=reads)
    theirs = claude_folder() / "CLAUDE.md"
    if os.path.realpath(theirs) not in seen:
        anywhere = Path(theirs.anchor)
        _take_with_imports(theirs, "user", root, within=anywhere, into=into, seen=seen, reads=reads)
    own = folders.config / INSTRUCTIONS[0]
    _take(own, "user", shorten(own), within=None, into=into)
    if boot is not None:
        sources.append(_named_boot(boot, root))
    else:
        for name in BOOT_FILES:
            into = (sources, problems)
            if _take(root / name, "boot", name, within=root, into=into, allows=allows):
                break
    for name in MEMORY_FILES:
        _take(root / name, "memory", name, within=root, into=(sources, problems))
    memory = folders.config / "MEMORY.md"
    _take(memory, "recalled", shorten(memory), within=None, into=(sources, problems))
    return ProjectFiles(tuple(sources), tuple(problems))


def source_of(rule: RuleFile) -> Source:
    """Return a rule's text as a part of the prompt."""
    return Source("user" if rule.own else "project", rule.name, rule.text, rule.size)


def nested(workspace: Workspace, touched: Iterable[Path], reads: Reads = _any) -> Sequence[Source]:
    """Return the instructions in folders below the root that apply to some files there, or to
    folders. Blocks."""
    root = workspace.root
    below = {
        folder for path in touched for folder in (path, *path.parents) if root in folder.parents
    }
    files: tuple[list[Source], list[str]] = ([], [])
    top = _top(workspace)
    seen = {os.path.realpath(path) for path in _candidates(root, top)}
    for folder in sorted(below)[:_NESTED]:
        for path in _instructions(folder):
            if (real := os.path.realpath(path)) not in seen:
                seen.add(real)
                _take_with_imports(
                    path, "project", root, within=root, into=files, seen=seen, reads=reads
                )
    return files[0]


def nested_again(
    workspace: Workspace, names: Iterable[str], reads: Reads = _any
) -> Sequence[Source]:
    """Return the current version of the files that `nested` once returned under these names.
    Blocks."""
    paths = (Path(name) for name in names)
    folders = [
        workspace.root / path.parent
        for path in paths
        if path.name in _NAMES and not path.is_absolute() and path.parts[1:]
    ]
    return nested(workspace, folders, reads)


def _take_with_imports(
    path: Path,
    origin: Origin,
    root: Path,
    *,
    within: Path,
    into: tuple[list[Source], list[str]],
    seen: set[str],
    reads: Reads,
    deep: int = 0,
) -> None:
    """Take an instruction file, and after it the files that it names with `@`, and theirs."""
    sources, _ = into
    before = len(sources)
    name = shorten(path) if origin == "user" else _shown(path, root, within)
    _take(path, origin, name, within=within, into=into, reads=reads)
    if len(sources) > before:
        _take_imports(
            path, sources[-1], root, within=within, into=into, seen=seen, reads=reads, deep=deep
        )


def _take_imports(
    path: Path,
    source: Source,
    root: Path,
    *,
    within: Path,
    into: tuple[list[Source], list[str]],
    seen: set[str],
    reads: Reads,
    deep: int = 0,
) -> None:
    """Take the files that an instruction file names with `@` in its text, and theirs."""
    for named in _IMPORT.findall(_CODE.sub(" ", source.text))[:_NAMED]:
        other = _imported(path.parent, named)
        if other is None or (name := os.path.realpath(other)) in seen:
            continue
        why = "it lies outside the project" if within not in Path(name).parents else ""
        if not why and not reads(Path(name)):
            why = _UNREAD
        if deep >= _DEEP or len(seen) > _IMPORTS:
            why = f"imports go at most {_DEEP} files deep, and to {_IMPORTS} files in all"
        seen.add(name)
        if why:
            into[1].append(f"{_shown(other, root)} was left out: {why}.")
            continue
        _take_with_imports(
            other,
            source.origin,
            root,
            within=within,
            into=into,
            seen=seen,
            reads=reads,
            deep=deep + 1,
        )


def _imported(folder: Path, named: str) -> Path | None:
    """The file that an `@` names, with what is glued to its name or without; None if none."""
    text = re.sub(r"\\(.)", r"\1", named)
    for name in (text, text.rstrip(_POINTS)):
        try:
            path = folder / Path(name).expanduser()
            if name and path.is_file():
                return path
        except (OSError, RuntimeError, ValueError):
            continue  # no name of a file, or nobody's home
    return None


def _candidates(root: Path, top: Path) -> Iterator[Path]:
    """Yield the instruction file of each folder from `top` down to `root`."""
    chain = [folder for folder in (root, *root.parents) if folder == top or top in folder.parents]
    for folder in reversed(chain):
        yield from _instructions(folder)


def _instructions(folder: Path) -> Iterator[Path]:
    """Yield the instruction files of a folder; of two that are one file, the first."""
    there = [folder / name for name in INSTRUCTIONS if os.path.lexists(folder / name)]
    if there[:2] == [folder / name for name in INSTRUCTIONS[:2]]:
        del there[1]
    real = [os.path.realpath(path) for path in there]
    yield from (path for n, path in enumerate(there) if real[n] not in real[:n])


def _passed_over(root: Path, top: Path) -> Iterator[str]:
    """Say which CLAUDE.md does not count beside an AGENTS.md that it does not name."""
    for path in _candidates(root, top):
        other = path.with_name(INSTRUCTIONS[1])
        if path.name != INSTRUCTIONS[0] or not other.is_file():
            continue
        try:
            there, ours = (_read(one)[0] for one in (other, path))
        except OSError:
            continue  # said where it counts
        if there != ours and INSTRUCTIONS[0].encode() not in there:
            yield f"{_shown(other, root, top)} was left out: {INSTRUCTIONS[0]} is beside it."


def _top(workspace: Workspace) -> Path:
    """Return the repository that contains the workspace, as long as it is below the ceiling."""
    root, ceiling = workspace.root, workspace.ceiling
    for folder in (root, *root.parents):
        if folder not in (root, ceiling) and ceiling not in folder.parents:
            break
        if (folder / ".git").exists():
            return folder
    return root


def _take(
    path: Path,
    origin: Origin,
    name: str,
    *,
    within: Path | None,
    into: tuple[list[Source], list[str]],
    allows: Allows = _all,
    reads: Reads = _any,
) -> bool:
    """Read a file if it exists. A link that leads out of `within` is not followed."""
    sources, problems = into
    if not os.path.lexists(path):
        return False
    real = Path(os.path.realpath(path))
    if within is not None and within not in real.parents:
        problems.append(f"{name} was left out: it is a link that leads out of the project.")
        return True
    if path.is_symlink() and not reads(real):
        problems.append(f"{name} was left out: {_UNREAD}.")
        return True
    try:
        data, size = _read(real, real=True)
    except OSError as error:
        problems.append(f"Couldn't read {name}: {error.strerror or error}.")
        return True
    # A file can steer the agent, so the person must have trusted this version of it.
    if allows(name, data):
        sources.append(_source(origin, name, data, size))
    else:
        problems.append(
            f"{name} was left out: you haven't trusted its current version. See /trust."
        )
    return True


def _read(path: Path, *, real: bool = False) -> tuple[bytes, int]:
    """Read the beginning of a file. Also returns its whole size if that is more, else 0."""
    data, state = read_small(path, limit=BOOT_READ_MAX, whole=False, real=real)
    return data, state.st_size if state.st_size > len(data) else 0


def _source(origin: Origin, name: str, data: bytes, size: int) -> Source:
    text = data.decode("utf-8-sig", "replace").replace("\0", "").replace("\r\n", "\n").strip()
    if origin in {"project", "user"}:
        text = _for_the_model(text)
    return Source(origin, name, text, size=size)


def _for_the_model(text: str) -> str:
    """Leave out of instructions what is not meant for the model: a front matter, and comments."""
    body = front_matter.parse(text.encode()).body if text.startswith("---\n") else text
    return _COMMENT.sub(lambda found: found[0] if found[1] else "", body).strip()


def _named_boot(path: Path, root: Path) -> Source:
    """Read a boot file named elsewhere. From a worktree it may be one of the folder that this
    belongs to: then its name is the same in each of them."""
    usual = (name for name in BOOT_FILES if path.parts[-2:] == Path(name).parts)
    inside = os.path.relpath(path, root) if root in path.parents else next(usual, path.name)
    try:
        return _source("boot", inside, *_read(path))
    except OSError as error:
        raise UsageError(
            f"Can't read the boot file {path}: {error.strerror or error}.",
            hint="Fix the path in the task file's boot directive, or remove the line.",
        ) from error


def _shown(path: Path, root: Path, project: Path | None = None) -> str:
    """Return the name of a file: from the root if it is in the project, so that it is the same in
    each of its worktrees."""
    inside = (project or root) in path.parents
    return os.path.relpath(path, root) if inside else shorten(path)
