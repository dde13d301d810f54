"""find_by_name: files and folders whose path matches a glob."""

from __future__ import annotations

import asyncio
import fnmatch
import os
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Annotated, ClassVar

from tui.core.dataclass import dataclass, field
from tui.core.errors import ToolError
from tui.core.messages import ToolOutput
from tui.tools import search
from tui.tools.base import Effect, Params, Tool, ToolContext, about
from tui.tools.search_proof import confirmed_names

_GLOB_CHARS = 500
_CHOICES = 64
_NARROWER = "Use a simpler pattern, or several calls."


class FindByNameParams(Params, frozen=True, kw_only=True):
    pattern: Annotated[
        str,
        about(
            "A glob: `*.py` matches names at any depth, `src/**/test_*.py` paths below "
            "path; `{a,b}` means either."
        ),
    ]
    path: Annotated[str, about("The folder to look in.")] = "."
    max_results: Annotated[int, about("Stop after this many results.", ge=1, le=10_000)] = 1000


class FindByName(Tool[FindByNameParams]):
    name: ClassVar[str] = "find_by_name"
    effect: ClassVar[Effect] = "read"
    params: ClassVar[type[Params]] = FindByNameParams

    async def run(self, params: FindByNameParams, ctx: ToolContext) -> ToolOutput:
        search.check_argument("pattern", params.pattern)
        root = await asyncio.to_thread(search.find_root, ctx, params.path)
        if root.name is not None:
            raise ToolError(
                f"{params.path} is a file, not a folder.", hint="Give a folder as path."
            )
        wanted = [*search.exclusions(), "--files"]
        command = await asyncio.to_thread(search.command, root, wanted)
        shows = search.Shown(root, ctx.host, names=True)
        matches = glob_matcher(params.pattern)
        from tui.tools.search_scope import search_scope  # noqa: PLC0415 - for a search only

        scope = asyncio.ensure_future(asyncio.to_thread(search_scope, root, matches))
        results = _Results(root, matches, params.max_results, shows)
        ended = await search.run(command, root, b"\0", results.take, ctx.start_reader)
        lines = results.names
        # Without walls, a name counts only if no link leads to it.
        if not ended.walled:
            lines = await asyncio.to_thread(_confirmed, root, lines)
        notes = shows.notes()
        if results.more:
            notes.append(
                f"[stopped after {len(lines)} results, there are more: "
                "use a narrower pattern or path]"
            )
        if ended.status not in {None, 0, 1, 2}:
            raise ToolError(f"The search failed: {ended.stderr or ended.status}")
        if ended.status == 2:
            notes.append("[some folders couldn't be read]")
        if not lines:
            where = "" if params.path == "." else f" in {params.path}"
            notes.insert(0, f"Nothing matches {params.pattern!r}{where}.")
        if not results.more:
            notes += (await scope).line(root, found=bool(lines))
        count = len(lines)
        summary = f"{count}{'+' * results.more} result{'s' * (count != 1)}"
        shown = [root.show(name) for name in lines]
        return ToolOutput.text("\n".join(shown + notes), summary=summary)

    def label(self, params: FindByNameParams) -> str:
        return params.pattern if params.path == "." else f"{params.pattern} in {params.path}"


def _confirmed(root: search.SearchRoot, names: list[str]) -> list[str]:
    """Return the names that exist if no link is followed. Blocks."""
    there = set(confirmed_names(root.folder, [os.fsencode(name.rstrip("/")) for name in names]))
    return [name for name in names if os.fsencode(name.rstrip("/")) in there]


@dataclass(slots=True)
class _Results:
    """Collects the paths that match; a folder is known by the files below it."""

    root: search.SearchRoot
    matches: Callable[[str], bool]
    limit: int
    shows: search.Shown
    names: list[str] = field(default_factory=list[str])
    more: bool = False
    _folders: set[str] = field(default_factory=set[str])

    def take(self, record: bytes) -> bool:
        path = self.root.relative_path(record)
        for parent in reversed(self._new_parents(path)):
            if self.matches(parent) and not self._add(f"{parent}/"):
                return False
        return not self.matches(path) or self._add(path)

    def _new_parents(self, path: str) -> list[str]:
        """Return the folders above a path that were not met before, the innermost first."""
        new: list[str] = []
        while (path := path.rpartition("/")[0]) and path not in self._folders:
            self._folders.add(path)
            new.append(path)
        return new

    def _add(self, path: str) -> bool:
        if not self.shows(path.rstrip("/")):
            return True
        if len(self.names) == self.limit:
            self.more = True
            return False
        self.names.append(path)
        return True


def glob_matcher(glob: str) -> Callable[[str], bool]:
    """Return a test of relative paths. A glob without a slash is about the name, at any depth.

    Supports `*`, `?`, `[…]`, `{a,b}`, `**` as a whole part, and a leading `!` for "not". Raises
    ToolError for a glob that is too long, or that stands for too many.
    """
    if len(glob) > _GLOB_CHARS:
        raise ToolError(f"The pattern has more than {_GLOB_CHARS} characters.", hint=_NARROWER)
    positive = glob.lstrip("!")
    wanted = (len(glob) - len(positive)) % 2 == 0
    choices = [_parts(choice) for choice in islice(_braces(positive), _CHOICES + 1)]
    if len(choices) > _CHOICES:
        raise ToolError(f"The braces expand to more than {_CHOICES} patterns.", hint=_NARROWER)
    return lambda path: any(_matches(parts, path.split("/")) for parts in choices) == wanted


def _parts(glob: str) -> list[re.Pattern[str] | None]:
    """Return the glob's parts; None stands for `**`, any number of folders."""
    names = glob.removeprefix("./").split("/")
    if names[-1] == "":
        names[-1] = "**"
    if len(names) == 1:
        names.insert(0, "**")
    elif names[0] == "":
        names.pop(0)
    return [None if name == "**" else re.compile(fnmatch.translate(name)) for name in names]


def _matches(parts: list[re.Pattern[str] | None], names: list[str]) -> bool:
    """True if the parts match all of the names; quadratic at most."""
    reached = {0}
    for index, part in enumerate(parts):
        if part is None:
            least = min(reached, default=len(names))
            # A last `**` stands for the content of a folder, so for at least one name.
            reached = set(range(least + (index == len(parts) - 1), len(names) + 1))
        else:
            reached = {n + 1 for n in reached if n < len(names) and part.match(names[n])}
    return len(names) in reached


def _braces(glob: str) -> Iterator[str]:
    """Expand braces: `a{b,c}` gives `ab` and `ac`. Braces that do not close stand for
    themselves."""
    match = re.search(r"\{([^{}]*)\}", glob)
    if match is None:
        yield glob
        return
    for choice in match[1].split(","):
        yield from _braces(glob[: match.start()] + choice + glob[match.end() :])
