"""The ends of the dependencies' ranges in pyproject.toml, for `.ci/lowest` and `.ci/newest`.

ends.py lowest          fail if a package is newer than its lower end
ends.py newest          list the packages that are newer than their range allows
ends.py open [NAME…]    print the requirements of some packages, or `all`, without an upper end
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

REQUIREMENT = re.compile(r"([\w.-]+)(\[[\w,]+\])?\s*([^;]*)")
PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def ranges() -> Iterator[tuple[str, str, str]]:
    """Each dependency of the program: name, lower end, upper end, both the same in an exact one."""
    for line in tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["dependencies"]:
        if match := REQUIREMENT.match(line):
            ends = dict(re.findall(r"(>=|<=|<|==)\s*([\w.]+)", match[3]))
            exact = ends.get("==", "")
            yield match[1], ends.get(">=", exact), exact or ends.get("<", ends.get("<=", ""))


def numbers(version: str) -> tuple[int, ...]:
    """A version's release numbers, without zeros at the end: 6 and 6.0.0 are the same."""
    found = [int(part) for part in re.findall(r"\d+", version.partition("+")[0])]
    while found and not found[-1]:
        found.pop()
    return tuple(found)


def beyond(have: str, lower: str, upper: str) -> bool:
    """Whether a version is above a range, whose upper end is not in it unless it is exact."""
    return numbers(have) > numbers(upper) or (lower != upper and numbers(have) == numbers(upper))


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def main() -> int:
    what, *names = sys.argv[1:] or [""]
    wrong = 0
    for name, lower, upper in ranges():
        if what == "open":
            if name in names or names == ["all"]:
                say(f"{name}>={lower}" if lower else name)
            continue
        try:
            have = metadata.version(name)
        except metadata.PackageNotFoundError:  # it is for another system
            continue
        if what == "lowest" and lower and numbers(have) != numbers(lower):
            say(f"{name}: {lower} is the lower end, and {have} the oldest that can be installed")
            wrong += 1
        if what == "newest" and upper and beyond(have, lower, upper):
            say(f"{name}: {have} is beyond {upper}")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
