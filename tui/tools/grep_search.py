"""grep_search: lines of files that match a pattern."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from msgspec import Meta

from tui.core.errors import ToolError
from tui.core.messages import ToolOutput
from tui.tools import search
from tui.tools.base import Effect, Params, Tool, ToolContext
from tui.tools.python_search import SECONDS, SearchOrder

_COLUMNS = 500
_MAX_BYTES = 2_000_000
_HELD_LINES = 20_000
"""Lines that ripgrep may hold of one file in each of its threads, where they search at once."""


class GrepSearchParams(Params, frozen=True, kw_only=True):
    pattern: Annotated[
        str,
        Meta(description="A regular expression, matched line by line; or a text, with literal."),
    ]
    path: Annotated[str, Meta(description="The folder or file to search in.")] = "."
    glob: Annotated[
        str | None,
        Meta(
            description="Only files that match, such as `*.py` or `src/**/*.{ts,tsx}` below path."
        ),
    ] = None
    case_insensitive: Annotated[bool, Meta(description="Ignore case.")] = False
    literal: Annotated[bool, Meta(description="The pattern is a text, not an expression.")] = False
    context: Annotated[
        int, Meta(ge=0, le=20, description="Lines to show before and after each match.")
    ] = 0
    max_results: Annotated[
        int, Meta(ge=1, le=10_000, description="Stop after this many matching lines.")
    ] = 1000


class GrepSearch(Tool[GrepSearchParams]):
    name: ClassVar[str] = "grep_search"
    effect: ClassVar[Effect] = "read"
    params: ClassVar[type[Params]] = GrepSearchParams

    async def run(self, params: GrepSearchParams, ctx: ToolContext) -> ToolOutput:
        search.check_argument("pattern", params.pattern)
        if params.glob:
            search.check_argument("glob", params.glob)
        root = await asyncio.to_thread(search.find_root, ctx.workspace, params.path)
        found, ended = await _search(params, root)
        if ended.status == 2 and ended.stderr and not found.hits:
            raise ToolError(
                f"The search failed: {_reason(ended.stderr)}",
                hint="Correct the pattern or glob; to search for the text as it is, set literal.",
            )
        notes = found.notes(params)
        if ended.status == -signal.SIGALRM:
            notes.append(
                f"[stopped after {SECONDS} s: simplify the pattern or name a smaller path]"
            )
        elif ended.status == 2:
            notes.append("[some files could not be read]")
        elif ended.status is not None and ended.status < 0:
            raise ToolError(f"The search was ended by signal {-ended.status}.")
        if not found.hits:
            where = "" if params.path == "." else f" in {params.path}"
            notes.insert(0, f"No match for {params.pattern!r}{where}.")
        files = f"{len(found.files)} file{'s' * (len(found.files) != 1)}"
        count = f"{found.matches} match{'es' * (found.matches != 1)}"
        lines = [*found.lines(), *notes]
        return ToolOutput.text("\n".join(lines), summary=f"{count} in {files}")

    def label(self, params: GrepSearchParams) -> str:
        return params.pattern if params.path == "." else f"{params.pattern} in {params.path}"


async def _search(
    params: GrepSearchParams, root: search.SearchRoot
) -> tuple[_Matches, search.SearchEnd]:
    """What is found; where that is too much, the first of it in path order.

    Several threads search, and what they find is put in order here. Of too much they would not
    find the first: then it is searched again in order, which ends once there is enough.
    """
    program = await asyncio.to_thread(search.ripgrep)
    if program is None:
        return await _collect(search.plain_command(_order(params, root)), params, root)
    rg = str(program)
    if params.max_results * (2 * params.context + 1) <= _HELD_LINES:
        arguments = _arguments(params, root, in_order=False)
        found, ended = await _collect([rg, *arguments], params, root)
        if not found.more:
            return found, ended
    return await _collect([rg, *_arguments(params, root, in_order=True)], params, root)


async def _collect(
    command: list[str], params: GrepSearchParams, root: search.SearchRoot
) -> tuple[_Matches, search.SearchEnd]:
    found = _Matches(root, params.context, params.max_results)
    return found, await search.run(command, root.folder, b"\n", found.take)


def _arguments(params: GrepSearchParams, root: search.SearchRoot, *, in_order: bool) -> list[str]:
    options = search.ripgrep_options(root, in_order=in_order)
    options += ["--no-heading", "--with-filename", "--line-number"]
    if not in_order:  # what it finds in a file is held until the file is done
        options += ["--max-count", str(params.max_results + 1)]
    options += ["--crlf", "--engine", "auto"]
    options += ["--max-columns", str(_COLUMNS), "--max-columns-preview"]
    if params.case_insensitive:
        options.append("--ignore-case")
    if params.literal:
        options.append("--fixed-strings")
    if params.context:
        options += ["--context", str(params.context)]
    if params.glob:
        options += ["--glob", params.glob]
    if root.name is not None:  # a file that is named is searched, whatever is in it
        options.append("--text")
    return [*options, *search.exclusions(), "-e", params.pattern, "--", f"./{root.name or ''}"]


def _order(params: GrepSearchParams, root: search.SearchRoot) -> SearchOrder:
    return SearchOrder(
        excluded=search.EXCLUDED,
        pattern=params.pattern,
        name=root.name,
        glob=params.glob or None,
        literal=params.literal,
        case_insensitive=params.case_insensitive,
        context=params.context,
        columns=_COLUMNS,
    )


def _reason(stderr: str) -> str:
    """What ripgrep says, less its name and the blank lines."""
    lines = [line for line in stderr.splitlines() if line.strip(" ~")]
    return "\n".join(lines[:12]).removeprefix("rg: ")


@dataclass(slots=True)
class _Matches:
    """Collects records `path NUL number (: or -) text`: those of a file together, in order."""

    root: search.SearchRoot
    context: int
    limit: int
    hits: list[tuple[bytes, int, str, str]] = field(
        default_factory=list[tuple[bytes, int, str, str]]
    )
    files: set[bytes] = field(default_factory=set[bytes])
    matches: int = 0
    more: bool = False
    _bytes: int = 0
    _start: bytes = b""

    def take(self, record: bytes) -> bool:
        path, nul, line = record.partition(b"\0")
        if not nul:  # the first part of a name with a newline, or a remark
            self._start = record + b"\n" if record.startswith(b"./") else b""
            return True
        if self._start and not path.startswith(b"./"):
            path = self._start + path
        self._start = b""
        parsed = re.match(rb"(\d+)([:-])", line)
        if parsed is None:
            return True
        is_match = parsed[2] == b":"
        if (is_match and self.matches == self.limit) or self._bytes > _MAX_BYTES:
            self.more = True
            return False
        self.matches += is_match
        if is_match:
            self.files.add(path)
        text = line[parsed.end() :].rstrip(b"\r").decode("utf-8", "replace").replace("\0", "\ufffd")
        self.hits.append((path, int(parsed[1]), parsed[2].decode(), text))
        self._bytes += len(record)
        return True

    def lines(self) -> Iterator[str]:
        """What was found as lines for the model, in path order."""
        last: tuple[bytes, int] | None = None
        for path, number, mark, text in sorted(
            self.hits, key=lambda hit: search.in_path_order(hit[0])
        ):
            if self.context and last not in {None, (path, number - 1)}:
                yield "--"
            last = (path, number)
            shown = self.root.show(os.fsdecode(path.removeprefix(b"./")))
            yield f"{shown}{mark}{number}{mark}{text}"

    def notes(self, params: GrepSearchParams) -> list[str]:
        if not self.more:
            return []
        advice = "narrow the pattern, path or glob"
        if self.matches == self.limit:
            advice += f", or raise max_results above {params.max_results}"
        return [f"[stopped after {self.matches} matching lines, there are more: {advice}]"]
