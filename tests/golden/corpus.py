"""The stored corpus: how it is written, and what of it changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from pathlib import Path
from typing import Final
from zlib import crc32

from tests.golden.forms import EXACT, FORMS, Form, Lines
from tests.golden.sessions import HERE, sessions, steady, utc

FOLDER: Final = HERE / "forms"
_LONG: Final = 120
"""Characters from which a line that was there before is only pointed to."""
_MOST: Final = 2000
"""Characters from which the rest of a line is only counted, and summed up by a checksum."""
_WHOLE: Final = "requests"
_SHOWN: Final = 160
"""Characters of a changed line around what changed in it."""


def path_of(form: str) -> Path:
    return FOLDER / f"{form}.txt"


def kept(form: str) -> Lines:
    """The lines of a form as they are stored, without what only points to another."""
    path = path_of(form)
    return [*_unfolded(path.read_bytes().decode().split("\n")[:-1])] if path.exists() else []


def keep(form: str, told: Lines) -> None:
    FOLDER.mkdir(exist_ok=True)
    path_of(form).write_bytes("\n".join([*_folded(told), ""]).encode())


def made(name: str) -> Lines:
    """The lines of a form as the program makes them now: each session under its name."""
    form: Form = FORMS[name]
    with utc():
        forms = [(one, "\n".join(form(one))) for one in sessions()]
    told: Lines = []
    for session, raw in forms:
        text = steady(session, raw).encode("utf-8", "backslashreplace").decode()
        lines = text.split("\n") if text else []
        told.append(f"== {session.name}")
        told += [f"|{line if name == _WHOLE else _summed(line)}" for line in lines]
    return told


def _folded(told: Lines) -> Iterator[str]:
    """A long line that was there before is only pointed to: by its session and its beginning."""
    places: dict[str, str] = {}
    session = ""
    for line in told:
        if line.startswith("== "):
            session = line[3:]
        if len(line) < _LONG:
            yield line
        elif line in places:
            yield f"^{places[line]}"
        else:
            place = f"{session}: {line[1:40]}…"
            while place in places.values():
                place += "…"
            places[line] = place
            yield line


def _unfolded(stored: Lines) -> Iterator[str]:
    places: dict[str, str] = {}
    session = ""
    for line in stored:
        if line.startswith("== "):
            session = line[3:]
        elif line.startswith("^"):
            yield places[line[1:]]
            continue
        elif len(line) >= _LONG:
            place = f"{session}: {line[1:40]}…"
            while place in places:
                place += "…"
            places[place] = line
        yield line


def _summed(line: str) -> str:
    rest = line[_MOST:]
    return f"{line[:_MOST]}… +{len(rest)}, crc {crc32(rest.encode()):08x}" if rest else line


@dataclass(frozen=True)
class Change:
    """What of a form is not as it was: the lines that came and those that are gone or changed, each
    after the name of its session. A session that is new stands in the `diff` alone."""

    form: str
    gained: Lines
    lost: Lines
    diff: Lines

    @property
    def allowed(self) -> bool:
        """Whether it is of the kind that a form may take without a reason of its own."""
        return not self.lost and (self.form not in EXACT or not self.gained)

    def summary(self) -> str:
        return f"{self.form}: {len(self.gained):,} lines gained, {len(self.lost):,} lost"


def change(form: str) -> Change | None:
    """How a form differs from the stored one; None where it does not."""
    before, now = kept(form), made(form)
    if before == now:
        return None
    gained: Lines = []
    lost: Lines = []
    diff: Lines = []
    old, new = _by_session(before), _by_session(now)
    for name in dict.fromkeys([*old, *new]):
        one = _difference(old.get(name, []), new.get(name, []))
        if one:
            diff += [f"== {name}", *one]
            gained += [f"{name} {line[1:]}" for line in one if line[0] == "+" and name in old]
            lost += [f"{name} {line[1:]}" for line in one if line[0] == "-"]
    return Change(form, gained, lost, diff)


def _by_session(told: Lines) -> dict[str, Lines]:
    found: dict[str, Lines] = {}
    name = ""
    for line in told:
        if line.startswith("== "):
            name = line[3:]
            found[name] = []
        else:
            found[name].append(line)
    return found


def _difference(before: Lines, now: Lines) -> Lines:
    """The lines that are not in both, `-` and `+`; of a long pair only where they differ."""
    told: Lines = []
    for what, a, b, c, d in SequenceMatcher(None, before, now, autojunk=False).get_opcodes():
        if what == "equal":
            continue
        old, new = before[a:b], now[c:d]
        if len(old) == len(new):
            for one, other in zip(old, new, strict=True):
                told += _where_they_differ(one, other)
        else:
            told += [f"-{line[:_SHOWN]}" for line in old] + [f"+{line[:_SHOWN]}" for line in new]
    return told


def _where_they_differ(one: str, other: str) -> Lines:
    if len(one) <= _SHOWN and len(other) <= _SHOWN:
        return [f"-{one}", f"+{other}"]
    pairs = zip(one, other, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    start = max(0, same - 40)
    head = "…" if start else ""
    return [
        f"{mark}{head}{line[start : start + _SHOWN]}" for mark, line in (("-", one), ("+", other))
    ]


def changes() -> Iterator[Change]:
    """Every form that differs from what is stored."""
    yield from filter(None, map(change, FORMS))
