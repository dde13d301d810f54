"""`holdfast usage`: where tokens and money went, over all sessions.

Nothing is written but the index in the cache folder.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from tui.app.options.arguments import Options
from tui.app.reports.usage_table import (
    IN_ORDER,
    Piece,
    UsageTable,
    last,
    legend,
    lines,
    plain,
    summed,
    table_of,
    unknown_prices,
)
from tui.cli.session_io import print_json, reading_progress
from tui.context.usage import (
    Amount,
    Bill,
    BilledSession,
    LocalDays,
    bills_in,
    rows_in,
    total_of,
)
from tui.core.clock import SystemClock
from tui.core.config import Price
from tui.core.facts import DEFAULT_PROFILE
from tui.core.formatting import moment_of, plural
from tui.core.paths import folders, shorten
from tui.core.standard_output import cells, note, print_text
from tui.core.workspace import checkout_of
from tui.settings.layers import own_prices

if TYPE_CHECKING:
    from tui.context.usage.attribution import Grouping

_QUICK: Final = ("day", "model", "folder", "repository", "session", "purpose", "profile")
"""The groupings that the bills alone are enough for."""
_WHOLE: Final = frozenset({*_QUICK, "prompt", "break"})
"""The groupings in which each request has one row."""
_SHOWN: Final = 40
_DAYS: Final = 60
_WIDTH: Final = 100
_COLOURS: Final = {
    "head": "1",
    "muted": "2",
    "cached": "32",
    "new": "33",
    "output": "36",
    "warning": "33",
}


def run(options: Options) -> int:
    """Print where tokens and money went. Returns the exit code."""
    by = options.sessions.kind or "day"
    prices = own_prices(folders(), os.environ)
    since = _since(options.sessions.since)
    found = bills_in(folders(), reading_progress)
    if by in _QUICK:
        made = _of_bills(by, found, prices, since)
    else:
        made = _of_shares(by, found, prices, since)
    table = table_of(by, made.amounts, made.names)
    notes = [*_notes(found, made)]
    if options.json:
        return print_json(_described(table, since, made, notes))
    if not table.rows:
        note("No session has used anything" + (f" since {since}." if since else " so far."))
    else:
        _show(table, since, len(made.sessions))
    for text in notes:
        note(text)
    return 0


def _since(asked: float | datetime | None) -> str:
    """The first day that counts, "" for all: whole days here."""
    if asked is None:
        return ""
    try:
        then = asked
        if not isinstance(then, datetime):
            then = SystemClock().now() - timedelta(seconds=then)
        return then.astimezone().date().isoformat()
    except (OverflowError, ValueError, OSError):
        return ""


class _Made:
    """The amounts of a grouping by their keys, names for them, and what else there is to say."""

    def __init__(self) -> None:
        self.amounts: dict[str, Amount] = {}
        self.names: dict[str, str] = {}
        self.unknown: dict[str, None] = {}
        self.sessions: set[str] = set()

    def add(self, key: str, amount: Amount) -> None:
        known = self.amounts.get(key)
        if known is None:
            known = self.amounts[key] = Amount()
        known.add(amount)


def _of_bills(
    by: str,
    found: Sequence[BilledSession],
    prices: Mapping[str, Mapping[str, Price]],
    since: str,
) -> _Made:
    made = _Made()
    days = LocalDays()

    def day_of(time: str) -> str:
        return days.of(moment_of(time))

    for session in found:
        key_of = _key_of(by, session, day_of)
        for bill in session.bills:
            if since and day_of(bill.time) < since:
                continue
            price = bill.price(prices.get(bill.profile, prices[""]))
            if price is None:
                made.unknown[bill.model] = None
            key = key_of(bill)
            made.add(key, Amount.of(bill, price))
            made.sessions.add(session.file[1])
            if by == "session" and key not in made.names:
                made.names[key] = f"{key}  {session.about.title}".rstrip()
    return made


def _key_of(by: str, session: BilledSession, day_of: Callable[[str], str]) -> Callable[[Bill], str]:
    match by:
        case "day":
            return lambda bill: day_of(bill.time)
        case "model":
            return lambda bill: bill.model
        case "purpose":
            return lambda bill: bill.purpose
        case "profile":
            return lambda bill: bill.profile or DEFAULT_PROFILE
        case "folder":
            folder = shorten(session.about.cwd) if session.about.cwd else ""
            return lambda _bill: folder
        case "repository":
            name = repository(session.about.cwd)
            return lambda _bill: name
        case _:
            return lambda _bill: session.about.id


@cache
def repository(cwd: str) -> str:
    """The repository that a session's folder is in, or the folder itself."""
    if not cwd:
        return ""
    folder = checkout_of(Path(cwd))
    top = next((one for one in (folder, *folder.parents) if (one / ".git").exists()), folder)
    return shorten(top)


def _of_shares(
    by: str,
    found: Sequence[BilledSession],
    prices: Mapping[str, Mapping[str, Price]],
    since: str,
) -> _Made:
    made = _Made()
    grouping = cast("Grouping", by)  # the others are in _QUICK
    days = LocalDays()

    def counts(bill: Bill) -> bool:
        return not since or days.of(moment_of(bill.time)) >= since

    billed = [one for one in found if any(map(counts, one.bills))]  # the others have no rows
    for session, shares in rows_in(folders(), billed, prices, reading_progress):
        rows = shares.rows(grouping, lambda day: day >= since)
        for key, amount in rows.items():
            name = key
            if by in IN_ORDER and key:
                name = f"{session.about.id} {key}"
                made.names[name] = f"{session.about.id[:8]} {key}. {shares.titles.get(key, '')}"
            made.add(name, amount)
        if rows:
            made.sessions.add(session.file[1])
    made.unknown = dict.fromkeys(_unknown(found, prices))
    return made


def _unknown(
    found: Sequence[BilledSession], prices: Mapping[str, Mapping[str, Price]]
) -> Iterator[str]:
    """Yield the models without a known price."""
    bills: dict[tuple[str, str], Bill] = {}
    for session in found:
        for bill in session.bills:
            bills.setdefault((bill.model, bill.profile), bill)
    for bill in bills.values():
        if bill.price(prices.get(bill.profile, prices[""])) is None:
            yield bill.model


def _notes(found: Sequence[BilledSession], made: _Made) -> Iterator[str]:
    if words := unknown_prices([*made.unknown]):
        yield words
    by_state: dict[str, list[BilledSession]] = {}
    for session in found:
        by_state.setdefault(session.about.state, []).append(session)
    if some := by_state.get("damaged"):
        told = f"{plural(len(some), 'damaged session')}: counted as far as can be read"
        yield f"{told} (first: {some[0].about.id})."
    if some := by_state.get("unreadable"):
        yield f"{plural(len(some), 'session')} not counted: {some[0].about.problem}"
    if running := sum(session.running for session in found):
        yield f"{plural(running, 'session')} running: counted up to now."


def _show(table: UsageTable, since: str, sessions: int) -> None:
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else _WIDTH
    plainly = os.environ.get("TERM") == "dumb" or not _can_show_blocks()
    coloured = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    shown = last(table, _DAYS) if table.by in IN_ORDER else summed(table, _SHOWN)
    _print(
        [("head", f"{plural(sessions, 'session')}{f', since {since}' if since else ''}")], coloured
    )
    print_text("")
    for line in lines(shown, width, cells, ascii_only=plainly):
        _print(line, coloured)
    print_text("")
    for line in _wrapped(legend(ascii_only=plainly), width):
        _print(line, coloured)


def _can_show_blocks() -> bool:
    encoding = (getattr(sys.stdout, "encoding", "") or "").lower()
    return encoding.startswith(("utf", "cp65001"))


def _wrapped(pieces: Sequence[Piece], width: int) -> Iterator[list[Piece]]:
    """The legend in lines: a sign stays with its words."""
    line: list[Piece] = []
    for at in range(0, len(pieces), 2):
        pair = pieces[at : at + 2]
        if line and cells(plain([*line, *pair])) > width:
            yield line
            line = []
        line += pair
    yield line


def _print(pieces: Sequence[Piece], coloured: bool) -> None:
    if not coloured:
        print_text(plain(pieces))
        return
    from tui.core.text_cleaning import clean  # noqa: PLC0415 - on a terminal only

    text = "".join(
        f"\x1b[{_COLOURS[look]}m{clean(part)}\x1b[0m" if look else clean(part)
        for look, part in pieces
    )
    stream = sys.__stdout__ or sys.stdout
    sys.stdout.flush()
    stream.write(f"{text.rstrip()}\n")
    stream.flush()


def _described(table: UsageTable, since: str, made: _Made, notes: Sequence[str]) -> dict[str, Any]:
    return {
        "by": table.by,
        "since": since or None,
        "sessions": len(made.sessions),
        "rows": [
            {"key": row.key, "name": row.name, **_numbers(table.by, row.amount)}
            for row in table.rows
        ],
        "total": (total := _numbers(table.by, total_of(row.amount for row in table.rows))),
        "total_usd": total["cost_usd"],
        "models_without_price": [*made.unknown],
        "notes": list(notes),
    }


def _numbers(by: str, amount: Amount) -> dict[str, Any]:
    """An amount as data. `cost_usd` is null where no price is known for any of it, `requests`
    where each request is shared among several rows."""
    known = not amount.unpriced or amount.usd > 0
    return {
        "requests": round(amount.requests) if by in _WHOLE else None,
        "tokens": round(amount.tokens),
        "cost_usd": round(amount.usd, 6) if known else None,
        "tokens_of": {
            "cached": round(amount.read),
            "written_to_cache": round(amount.written),
            "new": round(amount.fresh),
            "output": round(amount.output),
            "without_price": round(amount.unpriced),
        },
        "cost_usd_of": {
            "cached": round(amount.read_usd, 6),
            "written_to_cache": round(amount.written_usd, 6),
            "new": round(amount.fresh_usd, 6),
            "output": round(amount.output_usd, 6),
            "searches": round(amount.fees, 6),
        },
    }
