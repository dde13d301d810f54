"""`holdfast sessions view --at` and `view --diff`: requests rebuilt from the file.

Nothing is sent, written or locked: a session that is open elsewhere, damaged or copied from another
installation is read as it is.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from itertools import islice
from typing import Any

from tui.app.options.arguments import Options
from tui.cli.session_io import load, path_of, print_json
from tui.context.breaks import BREAK
from tui.context.request_difference import RequestBlock, RequestDifference, difference, unified
from tui.context.request_replay import ReplayedRequest, RequestReplay
from tui.core.dataclass import dataclass
from tui.core.errors import HoldfastError, UsageError
from tui.core.fact_words import words
from tui.core.files import known_key
from tui.core.formatting import plural, ranges
from tui.core.messages import string_of
from tui.core.paths import folders
from tui.core.retold import retold
from tui.core.standard_output import note, print_text
from tui.provider.anthropic import convert
from tui.session.reader import LoadedSession
from tui.session.records import Finding, Record

_NONE = (
    "This session has no record of its requests: nothing was sent, or it comes from an older "
    "version "
    "or from another program."
)
_FOREIGN = "the system prompt and tools were recorded by another installation, or edited"
_LOST = "its record is missing"
_PIECES = 60
_NAMED = 1000
"""Number of lost requests that are named."""


def view(options: Options, number: int) -> int:
    """Print the body of a request as it was sent; exit 1 if it cannot be rebuilt."""
    loaded = load(path_of(options))
    replayed = _at(_replay(loaded), number)
    if options.json:
        print_json(_described(replayed, loaded) | {"body": _body(replayed)})
    elif replayed.request is not None:
        body = convert.body(replayed.request) + b"\n"
        if sys.stdout.isatty():
            sys.stdout.write(body.decode("utf-8", "replace"))
        else:
            sys.stdout.buffer.write(body)
        sys.stdout.flush()
    _note_about(replayed)
    return 1 if replayed.problem else 0


def compare(options: Options, first: int, second: int) -> int:
    """Describe how two requests differ, then print a unified diff."""
    loaded = load(path_of(options))
    replay = _replay(loaded)
    replayed, other = _at(replay, first), _at(replay, second)
    for one in (replayed, other):
        # A difference needs both bodies, even if one does not match its hash.
        if one.request is None:
            raise HoldfastError(f"Request {one.number} can't be rebuilt: {one.problem}.")
    assert replayed.request
    assert other.request
    changes = difference(replayed.request, other.request)
    names = f"request {first}", f"request {second}"
    text = unified(replayed.request, other.request, names)
    breaks, parted = _between(replay, replayed, other)
    if options.json:
        return print_json(
            {
                "from": _described(replayed, loaded),
                "to": _described(other, loaded),
                "extends": changes.extends,
                "same_messages": changes.same,
                "front": list(changes.front),
                "added": [piece.to_json() for piece in changes.added],
                "removed": [piece.to_json() for piece in changes.gone],
                "thoughts_removed": changes.thoughts_gone,
                "breaks": [record.data for record in breaks],
                "parted_at": parted,
                "diff": text,
            }
        )
    for line in _words(changes, first, second, parted):
        print_text(line)
    for record in breaks:
        print_text(_broken(record))
    print_text(f"\n{text}" if text else "\nOnly the cache marks differ.")
    for one in (replayed, other):
        _note_about(one)
    return 0


@dataclass(frozen=True, slots=True)
class CheckedRequests:
    """The requests of a session that can be rebuilt as they were sent, and those that cannot.
    `failed` lists the latter: the number, the line of the record, if there is one, and the
    reason."""

    count: int
    failed: Sequence[tuple[int, int | None, str]]
    foreign: Sequence[int]
    """Requests whose frame this installation didn't make."""
    findings: Sequence[Finding]
    more: int = 0
    """Number of further lost requests, which `failed` doesn't name."""

    @property
    def rebuilt(self) -> int:
        """Number of requests that are as they were sent."""
        return self.count - sum(line is not None for _, line, _ in self.failed)

    def to_json(self) -> dict[str, Any]:
        failed = [
            {"n": number, "line": line, "reason": reason} for number, line, reason in self.failed
        ]
        return {
            "requests": self.count,
            "rebuilt": self.rebuilt,
            "failed": failed,
            "more_lost": self.more,
            "foreign_frames": list(self.foreign),
            "findings": [finding.to_json() for finding in self.findings],
        }

    def say(self) -> None:
        """Print the requests that aren't as they were sent, and note the rest."""
        for number, line, reason in self.failed:
            where = f" (line {line})" if line else ""
            print_text(f"request {number}{where}: {reason}")
        if self.more:
            print_text(f"and {self.more:,} more: {_LOST}")
        if not self.count and not self.failed:
            note(_NONE)
            return
        if self.foreign:
            note(f"{_ranges(self.foreign)}: {_FOREIGN}.")
        if self.findings:
            note("The file is damaged: holdfast sessions check says where.")
        if not self.failed:
            note(f"{plural(self.count, 'request')}: all rebuilt exactly as sent.")
        else:
            every = plural(self.rebuilt + len(self.failed) + self.more, "request")
            note(f"Rebuilt {self.rebuilt} of {every} exactly as sent.")


def checked(loaded: LoadedSession) -> CheckedRequests:
    """Rebuild every request, and compare it with its hash."""
    replay = _replay(loaded)
    requests = list(replay.every())
    lines = dict(zip((record.id for record in loaded.records), loaded.lines, strict=False))
    failed = [
        (one.number, lines.get(one.record.id), one.problem) for one in requests if one.problem
    ]
    missing, more = _missing(loaded, replay)
    lost = [(number, None, _LOST) for number in missing]
    foreign = [one.number for one in requests if one.frame is not None and not one.own_frame]
    return CheckedRequests(len(requests), sorted([*failed, *lost]), foreign, loaded.findings, more)


def rebuilt(loaded: LoadedSession, number: int) -> ReplayedRequest:
    """Return a request, rebuilt. Raises HoldfastError if it does not exist."""
    return _at(_replay(loaded), number)


def before(loaded: LoadedSession, number: int) -> list[Record]:
    """Return the records before a request, on its branch."""
    return _replay(loaded).branch(number)


def _replay(loaded: LoadedSession) -> RequestReplay:
    return RequestReplay(loaded.records, known_key(folders().data))


def _at(replay: RequestReplay, number: int) -> ReplayedRequest:
    """Return a request, rebuilt. Raises HoldfastError if it does not exist."""
    if not replay.requests:
        raise HoldfastError(_NONE)
    if number not in replay.requests:
        known = _ranges([*replay.requests])
        raise UsageError(f"There is no request {number} in this session; it has {known}.")
    return replay.at(number)


def _missing(loaded: LoadedSession, replay: RequestReplay) -> tuple[list[int], int]:
    """Return the first numbers that are not in the file, and how many more are missing; a copy need
    not have them all. The number in a record may be anything."""
    if loaded.header.origin is not None:
        return [], 0
    last = max(replay.requests, default=0)
    lost = (n for n in range(1, last) if n not in replay.requests)
    named = list(islice(lost, _NAMED))
    return named, last - len(replay.requests) - len(named)


def _body(replayed: ReplayedRequest) -> Any:
    return None if replayed.request is None else json.loads(convert.body(replayed.request))


def _described(replayed: ReplayedRequest, loaded: LoadedSession) -> dict[str, Any]:
    """Return a request as JSON, without its body."""
    data = replayed.record.data
    return {
        "n": replayed.number,
        "session": loaded.header.id,
        "time": replayed.record.time,
        "model": data.get("model"),
        "server": data.get("server"),
        "sha256": data.get("sha256"),
        "rebuilt": not replayed.problem,
        "problem": replayed.problem or None,
        "foreign_frame": replayed.frame is not None and not replayed.own_frame,
        "break": data.get("break"),
    }


def _note_about(replayed: ReplayedRequest) -> None:
    if replayed.problem:
        note(f"Request {replayed.number} can't be rebuilt as sent: {replayed.problem}.")
    else:
        sha256 = str(replayed.record.data.get("sha256"))[:12]
        note(f"Request {replayed.number} as it was sent: its hash matches ({sha256}…).")
    if replayed.frame is not None and not replayed.own_frame:
        note(f"Request {replayed.number}: {_FOREIGN}.")


def _between(
    replay: RequestReplay, first: ReplayedRequest, second: ReplayedRequest
) -> tuple[list[Record], int | None]:
    """Return the breaks between two requests, and the number of the last one that both share (0 for
    none) if they are on two branches, otherwise None. On two branches, the breaks are those on the
    second's."""
    one, two = ([*replay.branch(replayed.number), replayed.record] for replayed in (first, second))
    pairs = enumerate(zip(one, two, strict=False))
    same = next((n for n, (a, b) in pairs if a is not b), min(len(one), len(two)))
    numbers = {record.id: number for number, record in replay.requests.items()}
    shared = [numbers[record.id] for record in two[:same] if record.id in numbers]
    on_one = same == min(len(one), len(two))
    newer = max(one, two, key=len) if on_one else two
    breaks = [record for record in newer[same:] if record.type == BREAK]
    return breaks, None if on_one else max(shared, default=0)


def _words(found: RequestDifference, first: int, second: int, parted: int | None) -> list[str]:
    """Describe a difference in sentences."""
    lines: list[str] = []
    if parted is not None:
        where = f"after request {parted}" if parted else "before the first request"
        lines.append(f"They are on two branches, which split {where}.")
    if found.extends:
        lines.append(f"Request {second} extends request {first}: it starts with all of it.")
    elif found.same:
        same = "message is" if found.same == 1 else f"{found.same:,} messages are"
        lines.append(f"The first {same} the same; what follows differs.")
    else:
        lines.append("They differ from the first message on.")
    lines += found.front
    if found.thoughts_gone:
        lines.append(f"Left out: {plural(found.thoughts_gone, 'thought')}.")
    lines += _listed("Added", found.added)
    if not found.extends:
        lines += _listed("Removed", found.gone)
    return lines


def _listed(title: str, pieces: Sequence[RequestBlock]) -> list[str]:
    if not pieces:
        return []
    shown = [f"  message {one.message}, {one.role}: {one.text}" for one in pieces[:_PIECES]]
    more = [f"  … and {len(pieces) - _PIECES} more"] if len(pieces) > _PIECES else []
    return [f"{title}: {plural(len(pieces), 'block')}.", *shown, *more]


def _broken(record: Record) -> str:
    """Return a break in one line."""
    ((_, fact),) = retold([record])
    sentence = words(fact) if fact else None
    text = sentence.text.removesuffix(".") if sentence else "The cache restarts"
    return f"{text}, by the {string_of(record.data.get('by')) or 'program'}."


def _ranges(numbers: Sequence[int]) -> str:
    """Return numbers in words: `requests 1–4, 7`."""
    word = "request" if len(numbers) == 1 else "requests"
    return f"{word} {ranges(numbers, '–', ', ')}"
