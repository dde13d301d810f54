"""Numbers, sizes and times as text for people: short, and always in the same form."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime


def tokens(count: int) -> str:
    """Format a count of tokens: 812, 8.1k, 82.1k, 812k, 1.2M, 1.2B."""
    if count < 1000:
        return str(count)
    if count < 99_950:
        return f"{count / 1000:.1f}k"
    if count < 999_500:
        return f"{count / 1000:.0f}k"
    if count < 999_950_000:
        return f"{count / 1_000_000:.1f}M"
    return f"{count / 1_000_000_000:.1f}B"


def size(count: int) -> str:
    """Format a count of bytes: 812 B, 8.1 KB, 1.2 MB, in steps of 1024."""
    value, unit = float(count), "B"
    for larger in ("KB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1024, larger
    return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"


def duration(seconds: float) -> str:
    """Format the time of something that still runs: 12 s, 3 min 05 s, 2 h 04 min."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def moment(then: datetime, now: datetime) -> str:
    """Format a moment in the person's time zone: 14:15, with the day if it is another."""
    there, here = then.astimezone(), now.astimezone()
    return there.strftime("%H:%M" if there.date() == here.date() else "%a %d %b %H:%M")


def utc(time: str) -> str:
    """Format the time of a record to the minute: 2026-11-21 09:00 UTC."""
    then = moment_of(time)
    return f"{then.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if then else "time unknown"


def moment_of(text: object) -> datetime | None:
    """Parse a moment as facts and records have it; None for anything else, and for one so far off
    that another time zone may not have it."""
    try:
        then = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return then if then and then.tzinfo and 1 < then.year < 9999 else None


def local(then: datetime) -> str:
    """Format a moment for a line that may be read later or elsewhere: Sat 21 Nov 14:15 CET."""
    return then.astimezone().strftime("%a %d %b %H:%M %Z")


def local_time(text: str) -> str:
    """Format a moment of a fact or record as `local` does; anything else stays as it is."""
    then = moment_of(text)
    return local(then) if then else text


def retirement(day: str, now: datetime) -> str:
    """Return "retires on 30 Nov" if that day is known (ISO 8601) and within 60 days, or over;
    otherwise ""."""
    try:
        then = datetime.fromisoformat(day).date()
    except ValueError:
        return ""
    left = (then - now.date()).days
    if left > 60:
        return ""
    return f"{'retires' if left >= 0 else 'was to retire'} on {then.day} {then:%b}"


def age(then: datetime, now: datetime) -> str:
    """Format the time since a moment, for a list: now, 5 min, 3 h, 2 d, then the date."""
    seconds = (now - then).total_seconds()
    if seconds < 60:
        return "now"
    if seconds < 3600:
        return f"{int(seconds // 60)} min"
    if seconds < 86_400:
        return f"{int(seconds // 3600)} h"
    if seconds < 14 * 86_400:
        return f"{int(seconds // 86_400)} d"
    return then.astimezone(now.tzinfo).strftime("%Y-%m-%d")


def money(usd: float | None) -> str:
    """Format an amount: $0.42, $0.0042 for very little, — if no price is known."""
    if usd is None:
        return "—"
    return f"${usd:.4f}" if 0 < usd < 0.01 else f"${usd:.2f}"


def shortened(line: str, most: int) -> str:
    """Return a line of at most `most` characters, with `…` where it was cut."""
    return line if len(line) <= most else f"{line[: most - 1]}…"


def ranges(numbers: Iterable[int], dash: str = "-", comma: str = ",") -> str:
    """Write ascending numbers as ranges: `1-3,7`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number, number])
    return comma.join(str(a) if a == b else f"{a}{dash}{b}" for a, b in runs)


def plural(count: int, word: str) -> str:
    """Return a count with its word: 1 turn, 12 turns."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def wait_time(seconds: float) -> str:
    """Format a duration in the largest units that matter, rounded up: `90 s`, `5 min`, `3 h 20
    min`."""
    whole = math.ceil(seconds - 0.05)  # so that an hour measured by a clock is an hour
    if whole < 120:
        return f"{whole} s"
    minutes = -(-whole // 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    return f"{-(-hours // 24)} days"
