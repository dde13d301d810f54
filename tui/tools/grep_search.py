"""grep_search: lines of files that match a pattern."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from msgspec import Meta

from tui.errors import ToolError
from tui.messages import ToolOutput
from tui.tools import search
from tui.tools.base import Effect, Params, Tool, ToolContext
from tui.tools.plain_search import SECONDS, Order

_COLUMNS = 500
_MAX_BYTES = 2_000_000


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
        program = search.ripgrep()
        command = (
            [str(program), *_arguments(params, root)]
            if program
            else search.plain_command(_order(params, root))
        )
        found = _Found(root, params.context, params.max_results)
        ended = await search.run(command, root.folder, b"\n", found.take)
        if ended.status == 2 and ended.stderr and not found.lines:
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
        if not found.lines:
            where = "" if params.path == "." else f" in {params.path}"
            notes.insert(0, f"No match for {params.pattern!r}{where}.")
        files = f"{len(found.files)} file{'s' * (len(found.files) != 1)}"
        count = f"{found.matches} match{'es' * (found.matches != 1)}"
        return ToolOutput.text("\n".join(found.lines + notes), summary=f"{count} in {files}")

    def label(self, params: GrepSearchParams) -> str:
        return params.pattern if params.path == "." else f"{params.pattern} in {params.path}"


def _arguments(params: GrepSearchParams, root: search.Root) -> list[str]:
    options = [*search.ripgrep_options(root), "--no-heading", "--with-filename", "--line-number"]
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


def _order(params: GrepSearchParams, root: search.Root) -> Order:
    return Order(
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
class _Found:
    """Collects records `path NUL number (: or -) text` as lines for the model."""

    root: search.Root
    context: int
    limit: int
    lines: list[str] = field(default_factory=list[str])
    files: set[bytes] = field(default_factory=set[bytes])
    matches: int = 0
    more: bool = False
    _bytes: int = 0
    _start: bytes = b""
    _last: tuple[bytes, int] = (b"", 0)

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
        number = int(parsed[1])
        if self.context and self.lines and self._last != (path, number - 1):
            self.lines.append("--")
        self._last = (path, number)
        self.matches += is_match
        if is_match:
            self.files.add(path)
        mark = parsed[2].decode()
        text = line[parsed.end() :].rstrip(b"\r").decode("utf-8", "replace").replace("\0", "\ufffd")
        shown = self.root.show(os.fsdecode(path.removeprefix(b"./")))
        self.lines.append(f"{shown}{mark}{number}{mark}{text}")
        self._bytes += len(record)
        return True

    def notes(self, params: GrepSearchParams) -> list[str]:
        if not self.more:
            return []
        advice = "narrow the pattern, path or glob"
        if self.matches == self.limit:
            advice += f", or raise max_results above {params.max_results}"
        return [f"[stopped after {self.matches} matching lines, there are more: {advice}]"]
