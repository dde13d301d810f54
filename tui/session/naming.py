"""Sessions by what people call them: an id, the start of one, a file, or a title.

An id always counts first. Of titles, a whole one goes before the start of one, and that before
words within one, regardless of case and spacing. Where several fit, none is chosen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from tui.core.errors import MissingSessionError, SessionError
from tui.core.paths import Folders, shorten
from tui.core.text_cleaning import one_line
from tui.session import catalog
from tui.session.catalog import SessionSummary

_SHOWN: Final = 10
_TITLE_CHARS: Final = 60
_COMPLETED_CHARS: Final = 200
_One = TypeVar("_One")


def named(title: str, every: Iterable[tuple[str, _One]], *, whole: bool = False) -> list[_One]:
    """Return the things whose title is meant, of pairs with their titles; with `whole` only those
    that are called exactly so."""
    wanted = _folded(title)
    if not wanted:
        return []
    known = [(_folded(called), one) for called, one in every]
    found = [one for called, one in known if called == wanted]
    if whole or found:
        return found
    found = [one for called, one in known if called.startswith(wanted)]
    return found or [one for called, one in known if wanted in called]


def completed(every: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the sessions for a shell to complete, of pairs of titles and ids: a title and its id;
    where the title names none or several, is too long for a command line, or might be taken for an
    option, the id and ""."""
    known = [(one_line(title), id_) for title, id_ in every]
    times = Counter(_folded(title) for title, _ in known)
    return [
        (title, id_)
        if 0 < len(title) <= _COMPLETED_CHARS
        and times[_folded(title)] == 1
        and not title.startswith("-")
        else (id_, "")
        for title, id_ in known
    ]


def find(reference: str, folders: Folders, *, whole: bool = False) -> Path:
    """The file of the session that a person means. With `whole`, a title must be complete. Blocks;
    raises SessionError where there is none, or more than one: then it lists them."""
    try:
        return catalog.resolve(reference, folders)
    except MissingSessionError:
        found = _by_title(reference, folders, whole=whole)
        if len(found) == 1:
            return Path(found[0].path)
        if not found and whole:
            raise MissingSessionError(
                f"No session has the id or the whole title {one_line(reference)}.",
                hint="List them with `holdfast sessions list`.",
            ) from None
        if not found:
            raise
        raise SessionError(
            f"{len(found)} sessions are called “{one_line(reference)}”.",
            hint=f"Name one by its id:\n{_listed(found)}",
        ) from None


def _by_title(reference: str, folders: Folders, *, whole: bool) -> Sequence[SessionSummary]:
    from tui.session import index  # noqa: PLC0415 - it needs sqlite, and an id doesn't

    every = index.list_sessions(folders)
    return named(reference, ((one.title, one) for one in every), whole=whole)


def _listed(found: Sequence[SessionSummary]) -> str:
    """The sessions, a line each: id, day, title and folder."""
    lines = [
        f"  {one.id}  {one.updated[:10]}  {one_line(one.title)[:_TITLE_CHARS]}"
        f"  {one_line(shorten(Path(one.cwd)))}"
        for one in found[:_SHOWN]
    ]
    more = len(found) - len(lines)
    return "\n".join([*lines, *([f"  … and {more} more"] if more > 0 else [])])


def _folded(title: str) -> str:
    return " ".join(title.casefold().split())
