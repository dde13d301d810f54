"""Globs of paths: `*`, `?`, `[…]`, `{a,b}`, and `**` as a whole part."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator
from itertools import islice


def glob_matcher(glob: str) -> Callable[[str], bool]:
    """A test of relative paths. A glob without a slash is about the name, at any depth.

    Knows `*`, `?`, `[…]`, `{a,b}`, `**` as a whole part, and a leading `!` for "not".
    """
    if glob.startswith("!"):
        positive = glob_matcher(glob[1:])
        return lambda path: not positive(path)
    choices = [_parts(choice) for choice in islice(_braces(glob), 256)]
    return lambda path: any(_matches(parts, path.split("/")) for parts in choices)


def _parts(glob: str) -> list[re.Pattern[str] | None]:
    """The glob's parts; None stands for `**`, any number of folders."""
    names = glob.removeprefix("./").split("/")
    if names[-1] == "":
        names[-1] = "**"
    if len(names) == 1:
        names.insert(0, "**")
    elif names[0] == "":
        names.pop(0)
    return [None if name == "**" else re.compile(fnmatch.translate(name)) for name in names]


def _matches(parts: list[re.Pattern[str] | None], names: list[str]) -> bool:
    """Whether all names are used up by all parts; quadratic at most."""
    reached = {0}
    for index, part in enumerate(parts):
        if part is None:
            least = min(reached, default=len(names))
            # A last `**` stands for what is in the folder, so for one name at least.
            reached = set(range(least + (index == len(parts) - 1), len(names) + 1))
        else:
            reached = {n + 1 for n in reached if n < len(names) and part.match(names[n])}
    return len(names) in reached


def _braces(glob: str) -> Iterator[str]:
    """`a{b,c}` as `ab` and `ac`. Braces that do not close stand for themselves."""
    found = re.search(r"\{([^{}]*)\}", glob)
    if found is None:
        yield glob
        return
    for choice in found[1].split(","):
        yield from _braces(glob[: found.start()] + choice + glob[found.end() :])
