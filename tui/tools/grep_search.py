"""grep_search: lines of files that match a pattern."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, ClassVar

from tui.core.dataclass import dataclass, field
from tui.core.errors import ToolError
from tui.core.formatting import plural
from tui.core.late_pattern import late_pattern
from tui.core.messages import ToolOutput
from tui.tools import search
from tui.tools.base import Effect, Params, Tool, ToolContext, about
from tui.tools.file_access import open_regular
from tui.tools.search_proof import confirmed_lines, confirmed_names, shown_line
from tui.tools.text_decoding import HEAD_BYTES, binary_kind

_BINARY = late_pattern(
    rb"(.*): (?:binary file matches|WARNING: stopped searching binary file after match) "
    rb'\(found "\\0" byte around offset (\d+)\)',
    re.DOTALL,
)
_PATIENCE_S = 5.0
"""If a search takes longer, binary files are the likely reason: it runs once more, and reads those
up to their first NUL only."""
_MAX_BYTES = 2_000_000
_AS_TEXT = ("--text",)
"""A file that is named is searched, whatever its content."""
_HOW_BINARY = ("--binary",)
"""Of others with a NUL, ripgrep says that they match."""
_COLUMNS = 500
"""Bytes of a line that are shown."""
_TEXTS = 200
"""Texts with a NUL that are searched once more."""
_HELD_LINES = 20_000
"""Lines that ripgrep may hold of one file in each of its threads, if several search at once."""


class GrepSearchParams(Params, frozen=True, kw_only=True):
    pattern: Annotated[
        str, about("A regular expression, matched line by line; or plain text, with literal.")
    ]
    path: Annotated[str, about("The folder or file to search in.")] = "."
    glob: Annotated[
        str | None,
        about("Only files that match, such as `*.py` or `src/**/*.{ts,tsx}` below path."),
    ] = None
    case_insensitive: Annotated[bool, about("Ignore case.")] = False
    literal: Annotated[bool, about("Treat the pattern as plain text.")] = False
    context: Annotated[int, about("Lines to show before and after each match.", ge=0, le=20)] = 0
    max_results: Annotated[int, about("Stop after this many matching lines.", ge=1, le=10_000)] = (
        1000
    )


class GrepSearch(Tool[GrepSearchParams]):
    name: ClassVar[str] = "grep_search"
    effect: ClassVar[Effect] = "read"
    params: ClassVar[type[Params]] = GrepSearchParams

    def __init__(self) -> None:
        self._large = set[Path]()
        """Folders whose binary files take too long to read."""

    async def run(self, params: GrepSearchParams, ctx: ToolContext) -> ToolOutput:
        search.check_argument("pattern", params.pattern)
        if params.glob:
            search.check_argument("glob", params.glob)
        root = await asyncio.to_thread(search.find_root, ctx, params.path)
        from tui.tools.search_scope import search_scope  # noqa: PLC0415 - for a search only

        scope = asyncio.ensure_future(asyncio.to_thread(search_scope, root))
        matches, ended = await self._searched(params, root, ctx)
        if matches.nul and not matches.more:
            await _search_texts(matches, params, ctx)
        if not ended.walled:
            await asyncio.to_thread(matches.prove)
        if ended.status == 2 and ended.stderr and not matches.hits:
            raise ToolError(
                f"The search failed: {_reason(ended.stderr)}",
                hint="Fix the pattern or glob; to search for the text as it is, set literal.",
            )
        notes = matches.notes(params)
        if ended.status == 2:
            notes.append("[some files couldn't be read]")
        elif ended.status is not None and ended.status < 0:
            raise ToolError(f"The search was ended by signal {-ended.status}.")
        if not matches.matches:
            where = "" if params.path == "." else f" in {params.path}"
            notes.insert(0, f"No match for {params.pattern!r}{where}.")
        files = f"{len(matches.files)} file{'s' * (len(matches.files) != 1)}"
        count = f"{matches.matches} match{'es' * (matches.matches != 1)}"
        if root.folder in self._large and root.name is None:
            notes.append("[binary files are large here: read up to their first NUL only]")
        if not matches.more:
            binary = [root.show(name) for name in sorted(matches.nul)]
            notes += (await scope).line(root, binary=binary, found=bool(matches.matches))
        lines = [*matches.lines(), *notes]
        return ToolOutput.text("\n".join(lines), summary=f"{count} in {files}")

    async def _searched(
        self, params: GrepSearchParams, root: search.SearchRoot, ctx: ToolContext
    ) -> tuple[_Matches, search.SearchEnd]:
        """Search; where that takes long, not to the end of binary files."""
        if root.name is None and root.folder not in self._large:
            with suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE_S):
                    return await _search(params, root, ctx, _HOW_BINARY)
            self._large.add(root.folder)
        return await _search(params, root, ctx, () if root.name is None else _AS_TEXT)

    def label(self, params: GrepSearchParams) -> str:
        return params.pattern if params.path == "." else f"{params.pattern} in {params.path}"


async def _search(
    params: GrepSearchParams, root: search.SearchRoot, ctx: ToolContext, nul: Sequence[str]
) -> tuple[_Matches, search.SearchEnd]:
    """Search, and return the matches; of too many, the first in path order.

    Several threads search, and their matches are sorted here. With too many matches they would not
    find the first ones: then the search runs once more in order, and ends once there are enough.
    `nul` is the option about files with a NUL.
    """
    wanted = [*_options(params), *nul]
    if params.max_results * (2 * params.context + 1) <= _HELD_LINES:
        command = search.command(root, wanted, most=params.max_results + 1)
        matches, ended = await _collect(command, params, root, ctx)
        if not matches.more:
            return matches, ended
    return await _collect(search.command(root, wanted), params, root, ctx)


def _options(params: GrepSearchParams) -> list[str]:
    options = [f"--glob={params.glob}"] if params.glob else []
    options += search.exclusions()
    options += ["--no-heading", "--with-filename", "--line-number", "--crlf"]
    options += ["--max-columns", str(_COLUMNS), "--max-columns-preview"]
    options += ["--context", str(params.context), "--engine", "auto"]
    options += [f"--regexp={params.pattern}"]
    options += ["--ignore-case"] if params.case_insensitive else []
    return [*options, "--fixed-strings"] if params.literal else options


async def _collect(
    command: list[str], params: GrepSearchParams, root: search.SearchRoot, ctx: ToolContext
) -> tuple[_Matches, search.SearchEnd]:
    shows = search.Shown(root, ctx.host)
    matches = _Matches(root, params.context, params.max_results, shows)
    return matches, await search.run(command, root, b"\n", matches.take, ctx.start_reader)


async def _search_texts(matches: _Matches, params: GrepSearchParams, ctx: ToolContext) -> None:
    """Search the texts among the files that match and have a NUL, and add their lines."""
    root = matches.root
    late = [name for name, offset in sorted(matches.nul.items()) if offset >= HEAD_BYTES]
    texts = await asyncio.to_thread(_texts, root.folder, late[:_TEXTS])
    if not texts:
        return
    wanted = [*_options(params), *_AS_TEXT]
    more, _ = await _collect(search.command(root, wanted, files=texts), params, root, ctx)
    matches.take_in(more, texts)


def _texts(folder: Path, names: Sequence[str]) -> list[str]:
    """Return the files that begin as a text. Blocks."""
    found: list[str] = []
    for name in names:
        with suppress(OSError, ToolError), open_regular(folder / name, name) as file:
            if binary_kind(file.read(HEAD_BYTES)) is None:
                found.append(name)
    return found


def _reason(stderr: str) -> str:
    """Return ripgrep's message, without its name and the blank lines."""
    lines = [line for line in stderr.splitlines() if line.strip(" ~")]
    return "\n".join(lines[:12]).removeprefix("rg: ")


@dataclass(slots=True)
class _Matches:
    """Collects records `path NUL number (: or -) text`: those of a file together, in order."""

    root: search.SearchRoot
    context: int
    limit: int
    shows: search.Shown
    hits: list[tuple[bytes, int, str, str]] = field(
        default_factory=list[tuple[bytes, int, str, str]]
    )
    files: set[bytes] = field(default_factory=set[bytes])
    matches: int = 0
    nul: dict[str, int] = field(default_factory=dict[str, int])
    """Files with a NUL that match, by their path below the root, and its place."""
    more: bool = False
    changed: int = 0
    _bytes: int = 0
    _start: bytes = b""

    def take(self, record: bytes) -> bool:
        path, nul, line = record.partition(b"\0")
        if not nul:  # the first part of a name with a newline, or a message
            if told := _BINARY.fullmatch(self._start + record):
                name = self.root.relative_path(told[1])
                if self.shows(name):
                    self.nul[name] = int(told[2])
                self._start = b""
                return True
            self._start = record + b"\n" if record.startswith(b"./") else b""
            return True
        if self._start and not path.startswith(b"./"):
            path = self._start + path
        self._start = b""
        parsed = re.match(rb"(\d+)([:-])", line)
        if parsed is None or not self.shows(self.root.relative_path(path)):
            return True
        is_match = parsed[2] == b":"
        if (is_match and self.matches == self.limit) or self._bytes > _MAX_BYTES:
            self.more = True
            return False
        self.matches += is_match
        if is_match:
            self.files.add(path)
        text = shown_line(line[parsed.end() :])
        self.hits.append((path, int(parsed[1]), parsed[2].decode(), text))
        self._bytes += len(record)
        return True

    def take_in(self, other: _Matches, names: Sequence[str]) -> None:
        """Take the matches in some files from another search."""
        paths = {b"./" + os.fsencode(name) for name in names}
        kept = [hit for hit in self.hits if hit[0] not in paths]
        self.hits = [*kept, *other.hits]
        self.files = {path for path, _, mark, _ in self.hits if mark == ":"}
        self.matches = sum(mark == ":" for _, _, mark, _ in self.hits)
        self.more = other.more or self.matches > self.limit
        for name in names:
            del self.nul[name]

    def prove(self) -> None:
        """Drop the lines that are not in their file if no link is followed. Blocks."""
        self.nul = {
            os.fsdecode(name): self.nul[os.fsdecode(name)]
            for name in confirmed_names(self.root.folder, map(os.fsencode, self.nul))
        }
        lines: dict[bytes, dict[int, str]] = {}
        for path, number, _, text in self.hits:
            name = os.fsencode(self.root.relative_path(path))
            lines.setdefault(name, {})[number] = text
        confirmed = confirmed_lines(self.root.folder, lines)
        names = {path: os.fsencode(self.root.relative_path(path)) for path, *_ in self.hits}
        hits = [hit for hit in self.hits if hit[1] in confirmed.get(names[hit[0]], ())]
        lost = {hit[0] for hit in self.hits}
        self.hits, self.files = hits, {path for path, _, mark, _ in hits if mark == ":"}
        self.matches = sum(mark == ":" for _, _, mark, _ in hits)
        self.changed = len(lost - {hit[0] for hit in hits})

    def lines(self) -> Iterator[str]:
        """Yield the matches as lines for the model, in path order."""
        last: tuple[bytes, int] | None = None
        in_order = sorted(self.hits, key=lambda hit: hit[0].split(b"/"))  # as --sort path has it
        for path, number, mark, text in in_order:
            if self.context and last not in {None, (path, number - 1)}:
                yield "--"
            last = (path, number)
            shown = self.root.show(self.root.relative_path(path))
            yield f"{shown}{mark}{number}{mark}{text}"

    def notes(self, params: GrepSearchParams) -> list[str]:
        notes = self.shows.notes()
        if self.changed:
            what = f"{plural(self.changed, 'file')} changed while it was searched"
            notes.append(f"[{what}; what was found there is left out]")
        if not self.more:
            return notes
        advice = "narrow the pattern, path or glob"
        if self.matches == self.limit:
            advice += f", or raise max_results above {params.max_results}"
        stopped = f"[stopped after {self.matches} matching lines, there are more: {advice}]"
        return [stopped, *notes]
